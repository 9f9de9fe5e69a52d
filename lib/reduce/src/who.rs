//! Who the ranks of a section are in its communicators and windows; of several ranks, looked up for all at once.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::calls::Object;
use st_model::form::Own;
use st_model::section::Section;

/// The ranks of a section, by object.
pub(crate) struct Who<'a> {
    pub(crate) section: &'a Section,
    of: HashMap<(Object, i64), HashMap<u32, Own>, FixedState>,
}

impl<'a> Who<'a> {
    pub(crate) fn new(section: &'a Section) -> Self {
        Self { section, of: HashMap::default() }
    }

    /// As [`Section::own`].
    pub(crate) fn own(&mut self, base: (Object, i64), rank: u32) -> Option<Own> {
        let section = self.section;
        if base.1 <= 0 || section.ranks.len() == 1 {
            return section.own(base, rank);
        }
        self.of.entry(base).or_insert_with(|| section.owns(base)).get(&rank).copied()
    }
}
