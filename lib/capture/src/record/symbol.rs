//! A symbol as recording needs it.

use st_model::calls::Slot;

/// What of a symbol is looked at with each of its events.
#[derive(Debug, Clone)]
pub(super) struct SymInfo {
    pub(super) slots: &'static [Slot],
    pub(super) call: u64,
    pub(super) error: u32,
    pub(super) site: u128,
}
