//! Requests: which operation a handle stands for.
//!
//! A request's *number* is the lowest one free on its thread when the operation was made; it is free again when the
//! operation completes (a persistent one: when it is freed). Handles are not unique: both libraries give one handle to
//! several operations that are complete from the start. So a handle leads to a queue of slots; among those, a request
//! is recognised by the place in which the program keeps it, or else the first in is the first out.

mod queue;

use foldhash::fast::FixedState;
use queue::{Claimant, Queue};
use st_trace::lowest::Lowest;
use std::collections::HashMap;

/// What an operation is, as its creation says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Kind {
    /// Its completion tells source, tag and size.
    pub(crate) receive: bool,
    /// Its completion tells the size: it reads or writes a file.
    pub(crate) sized: bool,
    /// Starts inactive and survives its completion.
    pub(crate) persistent: bool,
    /// Leaves its source or tag open.
    pub(crate) wildcard: bool,
}

/// A communicator that exists when the request completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Promise {
    /// Address of the program's variable for the handle.
    pub(crate) place: usize,
    /// Index of the communicator.
    pub(crate) comm: i64,
}

/// A live request.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    handle: u64,
    /// Address of the program's variable when the request was made.
    place: usize,
    thread: usize,
    number: u32,
    /// Requests made before it.
    age: u64,
    /// The call that has already claimed it.
    claimed: u64,
    pub(crate) kind: Kind,
    /// Started and not complete.
    pub(crate) active: bool,
    pub(crate) promise: Option<Promise>,
}

/// Index of a live request.
pub(crate) type Key = u32;

/// All live requests (or, in another instance, matched messages) of the process.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    slots: Vec<Slot>,
    unused: Vec<Key>,
    /// Most handles stand for one request, and few are out at a time: those stay here, each at its hash, as far as
    /// that place is free. No handle is both here and in `queues`.
    single: Singles,
    queues: HashMap<u64, Queue, FixedState>,
    /// The call that claims requests now.
    call: u64,
    /// Requests made so far.
    made: u64,
}

/// Handles with one request, direct-mapped.
#[derive(Debug)]
struct Singles(Box<[Option<(u64, Key)>; SINGLES]>);

/// Places for those; a power of two.
const SINGLES: usize = 64;

impl Default for Singles {
    fn default() -> Self {
        Self(Box::new([None; SINGLES]))
    }
}

impl Singles {
    #[inline]
    fn place(&mut self, handle: u64) -> &mut Option<(u64, Key)> {
        // The upper bits of the product: handles are addresses or small numbers.
        let hash = handle.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(6);
        &mut self.0[usize::try_from(hash % SINGLES as u64).unwrap_or(0)]
    }

    #[inline]
    fn find(&mut self, handle: u64) -> Option<Key> {
        self.place(handle).filter(|s| s.0 == handle).map(|s| s.1)
    }
}

impl Requests {
    /// Begins a call: no request is claimed.
    pub(crate) fn begin(&mut self) {
        self.call += 1;
    }

    /// A new request under a number of its thread.
    pub(crate) fn add(
        &mut self,
        numbers: &mut Lowest,
        thread: usize,
        handle: u64,
        place: usize,
        kind: Kind,
    ) -> Key {
        let slot = Slot {
            handle,
            place,
            thread,
            number: numbers.take(),
            age: self.made,
            claimed: 0,
            kind,
            active: !kind.persistent,
            promise: None,
        };
        self.made += 1;
        let key = match self.unused.pop() {
            Some(k) => {
                self.slots[k as usize] = slot;
                k
            }
            None => {
                self.slots.push(slot);
                u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.enter(handle, key);
        key
    }

    #[inline]
    fn enter(&mut self, handle: u64, key: Key) {
        let known = !self.queues.is_empty() && self.queues.contains_key(&handle);
        let place = self.single.place(handle);
        match *place {
            None if !known => *place = Some((handle, key)),
            Some((h, first)) if h == handle => {
                *place = None;
                let mut queue = Queue::new(first);
                queue.push(key, &self.slots);
                self.queues.insert(handle, queue);
            }
            _ => self.queue(handle, key),
        }
    }

    fn queue(&mut self, handle: u64, key: Key) {
        self.queues.entry(handle).and_modify(|q| q.push(key, &self.slots)).or_insert_with(|| Queue::new(key));
    }

    /// Finds and claims the request that a handle kept at `place` stands for: one that was made there, or else one of the
    /// calling thread, or else any.
    pub(crate) fn claim(&mut self, handle: u64, place: usize, thread: usize) -> Option<Key> {
        let call = self.call;
        let key = match self.single.find(handle) {
            Some(key) => Some(key).filter(|k| self.slots[*k as usize].claimed != call),
            None => self.queues.get_mut(&handle)?.claim(&self.slots, Claimant { call, place, thread }),
        }?;
        self.slots[key as usize].claimed = call;
        Some(key)
    }

    /// The request.
    pub(crate) fn get(&mut self, key: Key) -> &mut Slot {
        &mut self.slots[key as usize]
    }

    /// Its number.
    pub(crate) fn number(&self, key: Key) -> i64 {
        i64::from(self.slots[key as usize].number)
    }

    /// Forgets a request; returns the thread and number that are free again.
    pub(crate) fn remove(&mut self, key: Key) -> (usize, u32) {
        let slot = &self.slots[key as usize];
        let (handle, thread, number) = (slot.handle, slot.thread, slot.number);
        if self.single.find(handle) == Some(key) {
            *self.single.place(handle) = None;
        } else if let Some(queue) = self.queues.get_mut(&handle)
            && !queue.remove(key, &self.slots)
        {
            self.queues.remove(&handle);
        }
        self.unused.push(key);
        (thread, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(r: &mut Requests, n: &mut Lowest, handle: u64, place: usize) -> Key {
        r.add(n, 0, handle, place, Kind::default())
    }

    #[test]
    fn one_handle_for_several_requests() {
        let (mut r, mut n) = (Requests::default(), Lowest::default());
        let keys: Vec<_> = (0..3).map(|i| add(&mut r, &mut n, 9, 100 + i)).collect();
        r.begin();
        // By place, whatever the order; then the oldest that is left.
        assert_eq!(r.claim(9, 102, 0), Some(keys[2]));
        assert_eq!(r.claim(9, 7, 0), Some(keys[0]));
        assert_eq!(r.claim(9, 7, 0), Some(keys[1]));
        assert_eq!(r.claim(9, 7, 0), None);
        r.begin();
        assert_eq!(r.remove(keys[0]), (0, 0));
        assert_eq!(r.claim(9, 7, 0), Some(keys[1]));
        r.remove(keys[1]);
        r.remove(keys[2]);
        r.begin();
        assert_eq!(r.claim(9, 102, 0), None);
    }

    #[test]
    fn one_handle_for_requests_of_two_threads() {
        let (mut r, mut n) = (Requests::default(), [Lowest::default(), Lowest::default()]);
        let mut add = |thread: usize, place| r.add(&mut n[thread], thread, 9, place, Kind::default());
        let (first, second) = (add(0, 100), add(1, 101));
        r.begin();
        // The program has moved both handles.
        assert_eq!(r.claim(9, 7, 1), Some(second));
        assert_eq!(r.claim(9, 7, 1), Some(first));
    }

    #[test]
    fn numbers_are_free_after_removal() {
        let (mut r, mut n) = (Requests::default(), Lowest::default());
        let (a, b) = (add(&mut r, &mut n, 1, 0), add(&mut r, &mut n, 2, 0));
        let (_, number) = r.remove(a);
        n.give(number);
        let c = add(&mut r, &mut n, 3, 0);
        assert_eq!((r.number(b), r.number(c)), (1, 0));
    }

    /// What is to be found among requests that share a handle, by looking at all of them.
    fn plainly(all: &[Key], r: &Requests, claimed: &[Key], place: usize, thread: usize) -> Option<Key> {
        let free = || all.iter().copied().filter(|k| !claimed.contains(k));
        let slot = |k: &Key| &r.slots[*k as usize];
        let made_here = free().find(|k| slot(k).place == place && slot(k).thread == thread);
        let here = || free().find(|k| slot(k).place == place);
        let own = || free().find(|k| slot(k).thread == thread);
        made_here.or_else(here).or_else(own).or_else(|| free().next())
    }

    #[test]
    fn few_and_many_requests_of_a_handle_are_told_apart_alike() {
        // As many as are looked through at most: beyond that threads are no longer told apart for sure.
        let mut state = 7_u64;
        let mut draw = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % n
        };
        for size in [3, 20, 64] {
            let (mut r, mut n) = (Requests::default(), [Lowest::default(), Lowest::default()]);
            let mut all = Vec::new();
            for _ in 0..600 {
                while all.len() < size && draw(8) > 0 {
                    let (thread, place) = (draw(2), draw(size));
                    all.push(r.add(&mut n[thread], thread, 9, place, Kind::default()));
                }
                r.begin();
                let mut claimed = Vec::new();
                for _ in 0..draw(size) {
                    let (thread, place) = (draw(2), draw(2 * size));
                    let found = r.claim(9, place, thread);
                    assert_eq!(found, plainly(&all, &r, &claimed, place, thread));
                    claimed.extend(found);
                }
                for key in claimed.into_iter().filter(|_| draw(2) > 0) {
                    let (thread, number) = r.remove(key);
                    n[thread].give(number);
                    all.retain(|k| *k != key);
                }
            }
        }
    }

    #[test]
    fn requests_of_a_handle_are_found_in_any_order_without_looking_through_them() {
        const MANY: usize = 200_000;
        let (mut r, mut n) = (Requests::default(), Lowest::default());
        let keys: Vec<_> = (0..MANY).map(|place| add(&mut r, &mut n, 9, place)).collect();
        r.begin();
        // By place from the last one on; the first half has been moved elsewhere.
        for place in (MANY / 2..MANY).rev() {
            assert_eq!(r.claim(9, place, 0), Some(keys[place]));
        }
        for (place, key) in keys[..MANY / 2].iter().enumerate() {
            assert_eq!(r.claim(9, MANY + place, 0), Some(*key));
        }
        assert_eq!(r.claim(9, 0, 0), None);
        for key in keys.iter().rev() {
            r.remove(*key);
        }
        assert!(r.queues.is_empty());
    }
}
