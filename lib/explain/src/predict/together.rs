//! What moves only while all who complete it are in MPI: long messages between ranks that compute beside them, non-blocking operations,
//! and operations that wait for a rank that has nothing to give. By what programs must wait for, such calls take long; by when they end
//! it is seen that they have waited for another one to be entered. Under other conditions they do so, too.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::num::Exact as _;

use super::step::Reach;

/// A call that completes its end of something.
#[derive(Clone, Copy, Debug)]
struct Reached<const K: usize> {
    /// Its number among all.
    number: usize,
    /// When it was entered.
    recorded: i64,
    /// When it and all before it have been entered, under each condition.
    at: [i64; K],
}

/// The end of something that a call completes before it is left.
#[derive(Clone, Copy, Debug)]
struct End {
    group: u64,
    /// Its number among those of the group.
    index: usize,
    waits: bool,
    all: bool,
}

/// The calls that complete one thing.
#[derive(Debug)]
struct Group<const K: usize> {
    reached: Vec<Reached<K>>,
    /// Those that have not been left.
    inside: u32,
}

/// What a call that is left completes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met<const K: usize> {
    /// The number of its end.
    pub(crate) number: usize,
    /// When all that were entered before it was left have been entered.
    pub(crate) at: [i64; K],
    /// The number of the first end of those that wait for each other if this one waits.
    pub(crate) first: Option<usize>,
}

/// All that is under way.
#[derive(Default, Debug)]
pub(crate) struct Together<const K: usize> {
    groups: HashMap<u64, Group<K>, FixedState>,
    /// By thread.
    ends: Vec<Vec<End>>,
    count: usize,
}

impl<const K: usize> Together<K> {
    /// The call that a thread is in completes its end.
    pub(crate) fn reach(&mut self, what: &Reach, recorded: i64, entered: [i64; K]) {
        let Reach { thread, group, waits, all, .. } = *what;
        let Group { reached, inside } =
            self.groups.entry(group).or_insert_with(|| Group { reached: Vec::new(), inside: 0 });
        let before = reached.last().map_or(entered, |last| last.at);
        let at = std::array::from_fn(|k| entered[k].max(before[k]));
        let index = reached.len();
        reached.push(Reached { number: self.count, recorded, at });
        *inside += 1;
        self.count += 1;
        let n = thread.to_usize();
        if self.ends.len() <= n {
            self.ends.resize_with(n + 1, Vec::new);
        }
        self.ends[n].push(End { group, index, waits, all });
    }

    /// A thread leaves its call, which ended then as recorded.
    pub(crate) fn leave(&mut self, thread: u32, exit: i64, mut meet: impl FnMut(&Met<K>)) {
        let Some(ends) = self.ends.get_mut(thread.to_usize()) else { return };
        for End { group: id, index, waits, all } in ends.drain(..) {
            let Some(group) = self.groups.get_mut(&id) else { continue };
            let reached = &group.reached;
            let n = reached.partition_point(|other| other.recorded <= exit).max(index + 1);
            if waits {
                let first = all.then_some(reached[0].number);
                meet(&Met { number: reached[index].number, at: reached[n - 1].at, first });
            }
            group.inside -= 1;
            if group.inside == 0 {
                self.groups.remove(&id);
            }
        }
    }
}

/// Ends of which it has been seen that they wait for the others: by number, and those that all do by that of the first.
#[derive(Default, Debug)]
pub(crate) struct Bound {
    ends: Numbers,
    all: Numbers,
}

impl Bound {
    pub(crate) fn has<const K: usize>(&self, met: &Met<K>) -> bool {
        self.ends.has(met.number) || met.first.is_some_and(|first| self.all.has(first))
    }

    pub(crate) fn add<const K: usize>(&mut self, met: &Met<K>) {
        match met.first {
            Some(first) => self.all.add(first),
            None => self.ends.add(met.number),
        }
    }
}

/// Some numbers.
#[derive(Default, Debug)]
struct Numbers(Vec<bool>);

impl Numbers {
    fn has(&self, number: usize) -> bool {
        self.0.get(number).copied().unwrap_or_default()
    }

    fn add(&mut self, number: usize) {
        if self.0.len() <= number {
            self.0.resize(number + 1, false);
        }
        self.0[number] = true;
    }
}
