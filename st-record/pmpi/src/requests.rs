//! Requests: which operation a handle stands for.
//!
//! A request's *number* is the lowest one free on its thread when the operation was made; it is free again when the
//! operation completes (a persistent one: when it is freed). Handles are not unique: both libraries give one handle to
//! several operations that are complete from the start. So a handle leads to a queue of slots. Among those, a request
//! is recognised by the place in which the program keeps it, if it is the only one that was made there. A program may have
//! moved it; then its neighbours in the list that names it tell when it was made: what is named together was mostly made
//! together, in that order. Where they do not tell either, the first in is the first out.

mod live;
mod queue;

use foldhash::fast::FixedState;
use live::Slot;
pub(crate) use live::{Key, Meant, Promise, RequestKind};
use queue::{Claimant, Near, Queue};
use st_model::lowest::Lowest;
use st_model::num::{Exact, narrow};
use std::collections::HashMap;

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
        &mut self.0[(hash % SINGLES as u64).to_usize()]
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
        kind: RequestKind,
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
                narrow(self.slots.len() - 1)
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

    /// Finds and claims the request that a handle kept at `place` stands for.
    #[inline]
    pub(crate) fn claim(&mut self, handle: u64, place: usize) -> Meant {
        let call = self.call;
        let meant = match self.single.find(handle) {
            Some(key) if self.slots[key as usize].claimed != call => Meant::One(key),
            Some(_) => Meant::Nothing,
            None => self.queues.get(&handle).map_or(Meant::Nothing, |q| q.at(&self.slots, call, place)),
        };
        if let Meant::One(key) = meant {
            self.slots[key as usize].claimed = call;
        }
        meant
    }

    /// Finds and claims the request of a call of the thread that names no others: if its place does not tell it, the oldest one.
    #[inline]
    pub(crate) fn claim_one(&mut self, handle: u64, place: usize, thread: usize) -> Option<Key> {
        match self.claim(handle, place) {
            Meant::One(key) => Some(key),
            Meant::OneOfSeveral => self.claim_near(handle, Near::After(0), thread),
            Meant::Nothing => None,
        }
    }

    /// Claims what [`Requests::claim`] has left open in a list, at ascending positions: what was made right after the request named
    /// before it, or, at the beginning of the list, right before the one named after it.
    pub(crate) fn claim_open(
        &mut self,
        listed: &mut [Option<Key>],
        open: &[usize],
        handle: impl Fn(usize) -> u64,
        thread: usize,
    ) {
        let known = listed.iter().enumerate().find_map(|(i, key)| Some((i, (*key)?)));
        let leading = known.map_or(0, |(first, _)| open.partition_point(|i| *i < first));
        let mut next = known.map_or(0, |(_, key)| self.age(key));
        for &i in open[..leading].iter().rev() {
            listed[i] = self.claim_near(handle(i), Near::Before(next), thread);
            next = listed[i].map_or(next, |key| self.age(key));
        }
        let (mut seen, mut from) = (0, 0);
        for &i in &open[leading..] {
            let before = listed[seen..i].iter().rev().find_map(|key| *key);
            from = before.map_or(from, |key| self.age(key) + 1);
            listed[i] = self.claim_near(handle(i), Near::After(from), thread);
            seen = i;
        }
    }

    fn claim_near(&mut self, handle: u64, near: Near, thread: usize) -> Option<Key> {
        let of = Claimant { call: self.call, thread };
        let key = self.queues.get_mut(&handle)?.near(&self.slots, of, near)?;
        self.slots[key as usize].claimed = self.call;
        Some(key)
    }

    /// Number of requests made before it.
    fn age(&self, key: Key) -> u64 {
        self.slots[key as usize].age
    }

    /// Whether it was made in this place.
    pub(crate) fn is_made_at(&self, key: Key, place: usize) -> bool {
        self.slots[key as usize].place == place
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
        r.add(n, 0, handle, place, RequestKind::default())
    }

    /// The requests that a list of handles and places stands for.
    fn list(r: &mut Requests, thread: usize, named: &[(u64, usize)]) -> Vec<Option<Key>> {
        r.begin();
        let (mut listed, mut open) = (Vec::new(), Vec::new());
        for (i, &(handle, place)) in named.iter().enumerate() {
            let meant = r.claim(handle, place);
            listed.push(if let Meant::One(key) = meant { Some(key) } else { None });
            open.extend((meant == Meant::OneOfSeveral).then_some(i));
        }
        r.claim_open(&mut listed, &open, |i| named[i].0, thread);
        listed
    }

    #[test]
    fn one_handle_for_several_requests() {
        let (mut r, mut n) = (Requests::default(), Lowest::default());
        let keys: Vec<_> = (0..3).map(|i| add(&mut r, &mut n, 9, 100 + i)).collect();
        r.begin();
        // By place, whatever the order; then the oldest that is left.
        assert_eq!(r.claim(9, 102), Meant::One(keys[2]));
        assert_eq!(r.claim(9, 7), Meant::OneOfSeveral);
        assert_eq!(r.claim_one(9, 7, 0), Some(keys[0]));
        assert_eq!(r.claim_one(9, 7, 0), Some(keys[1]));
        assert_eq!(r.claim_one(9, 7, 0), None);
        r.begin();
        assert_eq!(r.remove(keys[0]), (0, 0));
        assert_eq!(r.claim_one(9, 7, 0), Some(keys[1]));
        r.remove(keys[1]);
        r.remove(keys[2]);
        r.begin();
        assert_eq!(r.claim(9, 102), Meant::Nothing);
    }

    #[test]
    fn one_handle_for_requests_of_two_threads() {
        let (mut r, mut n) = (Requests::default(), [Lowest::default(), Lowest::default()]);
        let mut add = |thread: usize, place| r.add(&mut n[thread], thread, 9, place, RequestKind::default());
        let (first, second) = (add(0, 100), add(1, 101));
        // The program has moved both handles.
        assert_eq!(list(&mut r, 1, &[(9, 7), (9, 8)]), [Some(second), Some(first)]);
    }

    #[test]
    fn requests_made_in_one_variable_and_moved_are_those_that_were_made_with_their_neighbours() {
        // Two batches of two receives and two sends, all made in the variable at 5.
        let (mut r, mut n) = (Requests::default(), Lowest::default());
        let handles = [1, 2, 9, 9, 3, 4, 9, 9];
        let k: Vec<_> = handles.iter().map(|h| add(&mut r, &mut n, *h, 5)).collect();
        let all = |i: &[usize]| -> Vec<_> { i.iter().map(|i| Some(k[*i])).collect() };
        // The second batch first: sends behind the receives, before them, and between them.
        assert_eq!(list(&mut r, 0, &[(3, 20), (4, 21), (9, 22), (9, 23)]), all(&[4, 5, 6, 7]));
        assert_eq!(list(&mut r, 0, &[(3, 20), (9, 22), (4, 21), (9, 23)]), all(&[4, 6, 5, 7]));
        let sends_first: Vec<_> = [9, 9, 3, 4].iter().map(|h| add(&mut r, &mut n, 10 + h, 5)).collect();
        let named = [(19, 22), (19, 23), (13, 20), (14, 21)];
        assert_eq!(list(&mut r, 0, &named), sends_first.iter().copied().map(Some).collect::<Vec<_>>());
        // Nothing tells: the oldest first.
        assert_eq!(list(&mut r, 0, &[(9, 22), (9, 23)]), all(&[2, 3]));
        // More than there are.
        let none = list(&mut r, 0, &[(9, 31), (9, 32), (9, 33), (9, 34), (9, 35)]);
        assert_eq!(none, [all(&[2, 3, 6, 7]), vec![None]].concat());
    }

    #[test]
    fn sends_made_between_receives_and_named_behind_them_are_of_their_batch() {
        // Two batches of three receives, each followed by a send, all made in one variable.
        let (mut r, mut n) = (Requests::default(), Lowest::default());
        let handles = [1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 6, 9];
        let k: Vec<_> = handles.iter().map(|h| add(&mut r, &mut n, *h, 5)).collect();
        let named = [(4, 20), (5, 21), (6, 22), (9, 23), (9, 24), (9, 25)];
        let mut found = list(&mut r, 0, &named);
        found[3..].sort_by_key(|key| key.map(|key| r.age(key)));
        assert_eq!(found, [6, 8, 10, 7, 9, 11].map(|i| Some(k[i])));
    }

    #[test]
    fn sends_at_the_beginning_of_a_list_are_those_right_before_what_follows() {
        let (mut r, mut n) = (Requests::default(), Lowest::default());
        let k: Vec<_> = [9, 9, 1, 9, 9, 2].iter().map(|h| add(&mut r, &mut n, *h, 5)).collect();
        assert_eq!(list(&mut r, 0, &[(9, 20), (9, 21), (2, 22)]), [Some(k[3]), Some(k[4]), Some(k[5])]);
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
        let slot = |k: &Key| &r.slots[*k as usize];
        let free = |k: &Key| !claimed.contains(k);
        let mut here = all.iter().copied().filter(|k| slot(k).place == place);
        if let (Some(one), None) = (here.next().filter(free), here.next()) {
            return Some(one);
        }
        let mut free = all.iter().copied().filter(free);
        let own = free.clone().find(|k| slot(k).thread == thread);
        own.or_else(|| free.next())
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
                    all.push(r.add(&mut n[thread], thread, 9, place, RequestKind::default()));
                }
                r.begin();
                let mut claimed = Vec::new();
                for _ in 0..draw(size) {
                    let (thread, place) = (draw(2), draw(2 * size));
                    let expected = plainly(&all, &r, &claimed, place, thread);
                    let found = r.claim_one(9, place, thread);
                    assert_eq!(found, expected);
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
        // By place from the last one on; the first half has been moved elsewhere.
        let placed = (MANY / 2..MANY).rev().map(|place| (9, place));
        let moved = (MANY..MANY + MANY / 2).map(|place| (9, place));
        let named: Vec<_> = moved.chain(placed).collect();
        let expected = (0..MANY / 2).chain((MANY / 2..MANY).rev());
        let expected: Vec<_> = expected.map(|i| Some(keys[i])).collect();
        assert_eq!(list(&mut r, 0, &named), expected);
        assert_eq!(r.claim_one(9, 7, 0), None);
        for key in keys.iter().rev() {
            r.remove(*key);
        }
        assert!(r.queues.is_empty());
    }
}
