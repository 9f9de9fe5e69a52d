//! Live requests that share a handle.

use super::live::{Key, Meant, Slot};
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

/// Requests that are looked through for one of the calling thread: a program that never completes what it starts must not make
/// every call slower.
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
    pub(super) thread: usize,
}

/// Which of the requests of a handle is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Near {
    /// The oldest one of this age or younger.
    After(u64),
    /// The youngest one that is older than this.
    Before(u64),
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

    /// The request that is meant by the handle at a place: the only one, or the only one that was made there, unless the call has
    /// claimed it.
    #[inline]
    pub(super) fn at(&self, slots: &[Slot], call: u64, place: usize) -> Meant {
        let free = |key: Key| slots[key as usize].claimed != call;
        match self {
            Self::Few { first, rest } if rest.is_empty() => {
                if free(*first) {
                    Meant::One(*first)
                } else {
                    Meant::Nothing
                }
            }
            Self::Few { first, rest } => {
                let all = std::iter::once(*first).chain(rest.iter().copied());
                only(all.filter(|key| slots[*key as usize].place == place), free)
            }
            Self::Many(many) => {
                let there = many.by_place.get(&place).into_iter().flatten();
                only(there.map(|(_, key)| *key), free)
            }
        }
    }

    /// A request among those that the call has not claimed: the nearest one, or else the nearest on the other side, for receives and sends
    /// that are made by turns are named one kind after the other (of many the oldest one); of the thread if there is one.
    pub(super) fn near(&mut self, slots: &[Slot], of: Claimant, near: Near) -> Option<Key> {
        let free = |key: &Key| slots[*key as usize].claimed != of.call;
        let own = |key: &Key| slots[*key as usize].thread == of.thread;
        match self {
            Self::Few { first, rest } => {
                let all = || std::iter::once(*first).chain(rest.iter().copied()).filter(free);
                let age = |key: &Key| slots[*key as usize].age;
                let nearest = |wanted: &dyn Fn(&Key) -> bool| match near {
                    Near::After(from) => all().find(|k| age(k) >= from && wanted(k)),
                    Near::Before(end) => all().filter(|k| age(k) < end && wanted(k)).last(),
                };
                let beyond = |wanted: &dyn Fn(&Key) -> bool| match near {
                    Near::After(_) => all().filter(|k| wanted(k)).last(),
                    Near::Before(_) => all().find(|k| wanted(k)),
                };
                let of = |wanted: &dyn Fn(&Key) -> bool| nearest(wanted).or_else(|| beyond(wanted));
                of(&own).or_else(|| of(&|_| true))
            }
            Self::Many(many) => many.near(slots, of, near),
        }
    }
}

/// The only one of those that were made in a place, if it is free.
#[inline]
fn only(mut there: impl Iterator<Item = Key>, free: impl Fn(Key) -> bool) -> Meant {
    match (there.next(), there.next()) {
        (Some(key), None) if free(key) => Meant::One(key),
        _ => Meant::OneOfSeveral,
    }
}

/// The first one of the thread, or else the first of all.
fn first_of(free: impl Iterator<Item = Key>, own: impl Fn(&Key) -> bool) -> Option<Key> {
    let mut free = free.take(LOOK);
    let first = free.next()?;
    Some(if own(&first) { first } else { free.find(own).unwrap_or(first) })
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

    fn near(&mut self, slots: &[Slot], of: Claimant, near: Near) -> Option<Key> {
        let free = |key: &Key| slots[*key as usize].claimed != of.call;
        let own = |key: &Key| slots[*key as usize].thread == of.thread;
        let nearest = match near {
            Near::After(from) => first_of(self.by_age.range(from..).map(|(_, k)| *k).filter(free), own),
            Near::Before(end) => first_of(self.by_age.range(..end).rev().map(|(_, k)| *k).filter(free), own),
        };
        nearest
            .filter(own)
            .or_else(|| self.oldest(slots, of).filter(own))
            .or(nearest)
            .or_else(|| self.oldest(slots, of))
    }

    /// The oldest one of the thread, or of all.
    fn oldest(&mut self, slots: &[Slot], of: Claimant) -> Option<Key> {
        let free = |key: &Key| slots[*key as usize].claimed != of.call;
        let from = if self.claimed.0 == of.call { self.claimed.1 } else { 0 };
        let mut all = self.by_age.range(from..).filter(|(_, key)| free(key));
        let (age, _) = all.next()?;
        self.claimed = (of.call, *age);
        first_of(self.by_age.range(*age..).map(|(_, key)| *key).filter(free), |key| {
            slots[*key as usize].thread == of.thread
        })
    }
}
