//! Requests of a thread, which a source names, or numbers as a trace does.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use st_model::lowest::Lowest;
use st_model::values::NULL;

/// The requests that are under way.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    named: HashMap<String, i64, FixedState>,
    active: HashMap<i64, Active, FixedState>,
    /// Of the numbers that are given to names; those that the source itself has given may be in use nevertheless.
    free: Lowest,
    /// Receives from any rank.
    from_any: HashSet<i64, FixedState>,
}

#[derive(Clone, Debug)]
struct Active {
    /// None of one that the source names by its number.
    name: Option<String>,
    /// It stays when it is complete, until it is freed.
    persistent: bool,
}

impl Requests {
    /// Number of a request that begins: the lowest that is free. A name that is begun again stands for the new one.
    pub(crate) fn begin(&mut self, name: &str, persistent: bool) -> i64 {
        if let Some(before) = self.named.get(name) {
            self.end(*before);
        }
        let mut number = i64::from(self.free.take());
        // It is free for names again when the one that has it ends.
        while self.active.contains_key(&number) {
            number = self.free.take().into();
        }
        self.named.insert(name.to_owned(), number);
        self.active.insert(number, Active { name: Some(name.to_owned()), persistent });
        number
    }

    /// A request begins that has this number.
    pub(crate) fn begin_numbered(&mut self, number: i64, persistent: bool) {
        self.end(number);
        self.active.insert(number, Active { name: None, persistent });
    }

    /// Number of a request; null if nothing has begun it.
    pub(crate) fn find(&self, name: &str) -> i64 {
        self.named.get(name).copied().unwrap_or(NULL)
    }

    /// Whether a request of this name is under way, or waits to be started again.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.named.contains_key(name)
    }

    /// Whether one of this number is.
    pub(crate) fn has_number(&self, number: i64) -> bool {
        self.active.contains_key(&number)
    }

    /// Says whether the request of this number receives from any rank.
    pub(crate) fn receives(&mut self, number: i64, from_any: bool) {
        if from_any {
            self.from_any.insert(number);
        } else {
            self.from_any.remove(&number);
        }
    }

    /// Whether it does.
    pub(crate) fn is_from_any(&self, number: i64) -> bool {
        self.from_any.contains(&number)
    }

    /// A request is complete: the number of one that is not persistent is free again.
    pub(crate) fn complete(&mut self, number: i64) {
        if self.active.get(&number).is_some_and(|active| !active.persistent) {
            self.end(number);
        }
    }

    /// A request is freed.
    pub(crate) fn free(&mut self, number: i64) {
        self.end(number);
    }

    fn end(&mut self, number: i64) {
        let Some(active) = self.active.remove(&number) else { return };
        if let Some(name) = active.name {
            self.named.remove(&name);
        }
        if let Ok(number) = u32::try_from(number) {
            self.free.give(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_lowest_that_are_free() {
        let mut r = Requests::default();
        assert_eq!((r.begin("a", false), r.begin("b", true), r.begin("c", false)), (0, 1, 2));
        r.complete(0);
        r.complete(1);
        assert_eq!((r.find("a"), r.find("b"), r.find("c")), (NULL, 1, 2));
        assert_eq!(r.begin("d", false), 0);
        r.free(1);
        assert_eq!((r.find("b"), r.begin("c", false)), (NULL, 1));
    }

    #[test]
    fn names_get_no_number_that_is_in_use() {
        let mut r = Requests::default();
        r.begin_numbered(0, false);
        assert_eq!((r.begin("a", false), r.begin("b", false)), (1, 2));
        r.complete(0);
        assert_eq!((r.begin("c", false), r.begin("d", false)), (0, 3));
    }
}
