//! Live requests that share a handle.

use super::{Key, Slot};
use foldhash::fast::FixedState;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Requests of one handle, oldest first.
#[derive(Debug)]
pub(super) enum Queue {
    /// Nearly always one.
    Few { first: Key, rest: VecDeque<Key> },
    /// So many that to look through them for each one that is named would cost their number squared.
    Many(Box<Many>),
}

/// From so many on they are found by their places.
const FEW: usize = 32;

/// Requests that are looked through for one of the calling thread, or, of one place, for the one that it made there: a program
/// that never completes what it starts must not make every call slower.
const LOOK: usize = 64;

/// Requests of one handle by age, and by the place in which the program keeps them.
#[derive(Debug, Default)]
pub(super) struct Many {
    by_age: BTreeMap<u64, Key>,
    by_place: HashMap<usize, VecDeque<(u64, Key)>, FixedState>,
    /// The call with this number has claimed all requests before the one of this age.
    claimed: (u64, u64),
}

/// Who names a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimant {
    /// Number of the call.
    pub(super) call: u64,
    /// Where it keeps the handle.
    pub(super) place: usize,
    pub(super) thread: usize,
}

impl Queue {
    /// One request.
    pub(super) fn new(first: Key) -> Self {
        Self::Few { first, rest: VecDeque::new() }
    }

    /// Takes the youngest request of all.
    pub(super) fn push(&mut self, key: Key, slots: &[Slot]) {
        match self {
            Self::Few { rest, .. } if rest.len() < FEW => rest.push_back(key),
            Self::Few { first, rest } => {
                let mut many = Many::default();
                std::iter::once(&*first).chain(rest.iter()).for_each(|k| many.push(*k, slots));
                many.push(key, slots);
                *self = Self::Many(Box::new(many));
            }
            Self::Many(many) => many.push(key, slots),
        }
    }

    /// Takes a request out; says whether another one is left.
    pub(super) fn remove(&mut self, key: Key, slots: &[Slot]) -> bool {
        match self {
            Self::Few { first, rest } if *first == key => match rest.pop_front() {
                Some(next) => *first = next,
                None => return false,
            },
            Self::Few { rest, .. } => rest.retain(|k| *k != key),
            Self::Many(many) => return many.remove(key, slots),
        }
        true
    }

    /// The request that is meant, among those that the call has not claimed: the oldest one that was made in this place by this
    /// thread, or else by any, or else the oldest one of the thread, or else of all.
    #[inline]
    pub(super) fn claim(&mut self, slots: &[Slot], of: Claimant) -> Option<Key> {
        match self {
            Self::Few { first, rest } if rest.is_empty() => Some(*first).filter(|k| is_free(slots, *k, of)),
            Self::Few { first, rest } => {
                let all = || std::iter::once(*first).chain(rest.iter().copied());
                let free = || all().filter(|k| is_free(slots, *k, of)).map(|k| (k, &slots[k as usize]));
                let made_here = free().find(|(_, s)| s.place == of.place && s.thread == of.thread);
                let here = || free().find(|(_, s)| s.place == of.place);
                let own = || free().find(|(_, s)| s.thread == of.thread);
                made_here.or_else(here).or_else(own).or_else(|| free().next()).map(|(k, _)| k)
            }
            Self::Many(many) => many.made_here(slots, of).or_else(|| many.oldest(slots, of)),
        }
    }
}

fn is_free(slots: &[Slot], key: Key, of: Claimant) -> bool {
    slots[key as usize].claimed != of.call
}

impl Many {
    fn push(&mut self, key: Key, slots: &[Slot]) {
        let slot = &slots[key as usize];
        self.by_age.insert(slot.age, key);
        self.by_place.entry(slot.place).or_default().push_back((slot.age, key));
    }

    fn remove(&mut self, key: Key, slots: &[Slot]) -> bool {
        let slot = &slots[key as usize];
        self.by_age.remove(&slot.age);
        if let Some(there) = self.by_place.get_mut(&slot.place) {
            if let Ok(at) = there.binary_search(&(slot.age, key)) {
                there.remove(at);
            }
            if there.is_empty() {
                self.by_place.remove(&slot.place);
            }
        }
        !self.by_age.is_empty()
    }

    /// The oldest one that was made in the place.
    fn made_here(&self, slots: &[Slot], of: Claimant) -> Option<Key> {
        let there = self.by_place.get(&of.place)?.iter().map(|(_, key)| *key);
        let mut free = there.filter(|k| is_free(slots, *k, of)).take(LOOK);
        let first = free.next()?;
        let own = |k: &Key| slots[*k as usize].thread == of.thread;
        Some(if own(&first) { first } else { free.find(own).unwrap_or(first) })
    }

    /// The oldest one of the thread, or of all.
    fn oldest(&mut self, slots: &[Slot], of: Claimant) -> Option<Key> {
        let from = if self.claimed.0 == of.call { self.claimed.1 } else { 0 };
        let mut free = self.by_age.range(from..).filter(|(_, k)| is_free(slots, **k, of)).take(LOOK);
        let (age, first) = free.next()?;
        self.claimed = (of.call, *age);
        let own = |k: &Key| slots[*k as usize].thread == of.thread;
        Some(if own(first) { *first } else { free.map(|(_, k)| *k).find(own).unwrap_or(*first) })
    }
}
