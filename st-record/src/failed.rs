//! Ranks that could not record, or not to their end.

use std::collections::BTreeSet;
use std::str::FromStr;

use st_stream::directory::{FAILED_PROCESS, FAILED_RANK};

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
    /// Processes that did not know it: number and host.
    pub processes: BTreeSet<String>,
}

impl Failed {
    /// One more line, without its first word.
    pub(crate) fn add(&mut self, said: &str) {
        let (rank, rest) = named(said, FAILED_RANK);
        let (process, why) = named::<String>(rest, FAILED_PROCESS);
        // Each may say more than one thing, and know its rank only later.
        let new = match (rank, process) {
            (Some(rank), Some(process)) => self.known.insert(rank) && !self.processes.remove(&process),
            (Some(rank), None) => self.known.insert(rank),
            (None, Some(process)) => self.processes.insert(process),
            (None, None) => true,
        };
        if !new {
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

/// What stands at the beginning behind a word, and the rest.
fn named<'a, T: FromStr>(said: &'a str, word: &str) -> (Option<T>, &'a str) {
    let named = said.strip_prefix(word).and_then(|rest| rest.split_once(' '));
    let found = named.and_then(|(name, rest)| Some((name.parse().ok()?, rest)));
    found.map_or((None, said), |(name, rest)| (Some(name), rest))
}
