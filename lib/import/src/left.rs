//! What a source does not tell, or a trace has no place for.

use std::collections::BTreeMap;

/// How often it was met what, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Left(BTreeMap<String, u64>);

/// Different things that are counted by themselves; those beyond are counted together.
const MOST: usize = 40;

impl Left {
    /// Counts something.
    pub fn add(&mut self, what: &str, times: u64) {
        if times == 0 {
            return;
        }
        if let Some(n) = self.0.get_mut(what) {
            *n = n.saturating_add(times);
        } else if self.0.len() < MOST {
            self.0.insert(what.to_owned(), times);
        } else {
            let n = self.0.entry("others".to_owned()).or_default();
            *n = n.saturating_add(times);
        }
    }

    /// Each with how often it was.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(what, n)| (what.as_str(), *n))
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
