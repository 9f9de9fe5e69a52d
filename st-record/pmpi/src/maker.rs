//! What made an object: its function and call site.

use st_model::calls::CallId;

/// What made an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Maker<'a> {
    pub(crate) function: &'a str,
    pub(crate) call: CallId,
    pub(crate) site: u128,
}

impl Maker<'_> {
    /// A function without a row, some time ago.
    pub(crate) fn unknown() -> Maker<'static> {
        Maker { function: "unknown", call: CallId(0), site: 0 }
    }
}
