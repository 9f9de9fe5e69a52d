//! What a format has no place for.

use std::collections::BTreeMap;

use st_cli::options::Talk;

/// How often it has met what, by name.
#[derive(Debug, Default)]
pub(crate) struct Losses(BTreeMap<String, u64>);

impl Losses {
    pub(crate) fn add(&mut self, what: &str, times: u64) {
        if times == 0 {
            return;
        }
        match self.0.get_mut(what) {
            Some(n) => *n = n.saturating_add(times),
            None => drop(self.0.insert(what.to_owned(), times)),
        }
    }

    pub(crate) fn take_in(&mut self, others: Self) {
        others.0.iter().for_each(|(what, times)| self.add(what, *times));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As part of a sentence: `3 cancelled receives, 1 …`.
    pub(crate) fn listed(&self) -> String {
        self.0.iter().map(|(what, n)| format!("{n} {what}")).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn tell(&self, tool: &str, format: &str, talk: &Talk) {
        if !self.is_empty() {
            talk.warn(tool, format_args!("{format} has no place for: {}", self.listed()));
        }
    }
}
