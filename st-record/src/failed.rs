//! Ranks that could not record, or not to their end.

use std::collections::BTreeSet;

use st_stream::directory::FAILED_RANK;

/// Ranks that said that they could not record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Failed {
    /// Their number.
    pub ranks: u64,
    /// What the first of them said.
    pub why: String,
    /// Those that have left a stream all the same, of what was recorded before.
    pub there: u64,
    /// Those that knew which rank they are.
    pub known: BTreeSet<u32>,
}

impl Failed {
    /// One more line, without its first word.
    pub(crate) fn add(&mut self, said: &str) {
        let named = said.strip_prefix(FAILED_RANK).and_then(|rest| rest.split_once(' '));
        let known = named.and_then(|(rank, why)| Some((rank.parse().ok()?, why)));
        let why = known.map_or(said, |(_, why)| why);
        // A rank may say more than one thing.
        if known.is_some_and(|(rank, _)| !self.known.insert(rank)) {
            return;
        }
        if self.ranks == 0 {
            why.clone_into(&mut self.why);
        }
        self.ranks += 1;
    }

    /// Those that left nothing.
    #[must_use]
    pub fn without_stream(&self) -> u64 {
        self.ranks.saturating_sub(self.there)
    }
}
