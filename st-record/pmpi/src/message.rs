//! The few lines that the recorder prints.

use std::io::Write;

/// Prints `st-record: text` on standard error.
pub(crate) fn say(text: &str) {
    // One write, so that lines of many ranks do not mix. A closed standard error must not stop the program.
    let _ = std::io::stderr().write_all(format!("st-record: {text}\n").as_bytes());
}
