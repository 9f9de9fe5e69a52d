//! Functions that the call table does not list.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use st_model::calls::{CallId, FIRST_UNKNOWN};
use st_model::num::saturate;
use st_model::section::Section;

/// Their numbers, by name: what a section calls them by is its own.
#[derive(Debug, Default)]
pub(crate) struct Strangers(HashMap<String, CallId, FixedState>);

impl Strangers {
    /// Gives them numbers that mean the same in all sections.
    pub(crate) fn number(&mut self, section: &mut Section) {
        let mut numbers: BTreeMap<CallId, CallId> = BTreeMap::new();
        for (own, name) in std::mem::take(&mut section.tables.names) {
            let next = CallId(FIRST_UNKNOWN + saturate::<u16>(self.0.len()).min(u16::MAX - FIRST_UNKNOWN));
            let number = *self.0.entry(name.clone()).or_insert(next);
            numbers.insert(own, number);
            section.tables.names.entry(number).or_insert(name);
        }
        for symbol in &mut section.symbols {
            symbol.call = numbers.get(&symbol.call).copied().unwrap_or(symbol.call);
        }
    }
}
