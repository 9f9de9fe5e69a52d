//! Requests of a thread that a source names otherwise than by small numbers.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use st_model::lowest::Lowest;
use st_model::values::NULL;

/// The requests that are under way, by their names.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    named: HashMap<String, Active, FixedState>,
    names: HashMap<i64, String, FixedState>,
    free: Lowest,
    /// Receives from any rank.
    from_any: HashSet<i64, FixedState>,
}

#[derive(Clone, Copy, Debug)]
struct Active {
    number: u32,
    /// It stays when it is complete, until it is freed.
    persistent: bool,
}

impl Requests {
    /// Number of a request that begins: the lowest that is free. A name that is begun again stands for the new one.
    pub(crate) fn begin(&mut self, name: &str, persistent: bool) -> i64 {
        self.end(name);
        let number = self.free.take();
        self.named.insert(name.to_owned(), Active { number, persistent });
        self.names.insert(number.into(), name.to_owned());
        number.into()
    }

    /// Number of a request; null if nothing has begun it.
    pub(crate) fn find(&self, name: &str) -> i64 {
        self.named.get(name).map_or(NULL, |active| active.number.into())
    }

    /// Whether a request of this name is under way, or waits to be started again.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.named.contains_key(name)
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
        let Some(name) = self.names.get(&number) else { return };
        if self.named.get(name).is_some_and(|active| !active.persistent) {
            let name = name.clone();
            self.end(&name);
        }
    }

    /// A request is freed.
    pub(crate) fn free(&mut self, number: i64) {
        if let Some(name) = self.names.get(&number).cloned() {
            self.end(&name);
        }
    }

    fn end(&mut self, name: &str) {
        if let Some(active) = self.named.remove(name) {
            self.names.remove(&i64::from(active.number));
            self.free.give(active.number);
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
}
