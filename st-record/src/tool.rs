//! This program in its own words.

use std::io::{self, Write as _};

/// Name in messages.
pub const TOOL: &str = "st-record";

/// Says what went wrong where nothing ends by it.
pub(crate) fn complain(message: &str) {
    // Standard error may be closed; there is nowhere left to say so.
    let _ = writeln!(io::stderr().lock(), "{TOOL}: {message}");
}
