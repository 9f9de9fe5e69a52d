//! The programs that have a page.

use clap::Command;

/// The option definitions of every program, in alphabetical order.
pub(crate) fn programs() -> Vec<Command> {
    Vec::new()
}
