//! Sites by where a call came from, proved by re-reading the stack slots that led to them.

use crate::frame::StartFrame;
use crate::rules::{Check, Trail, spread};
use crate::sites::SiteId;
use crate::stack::read_word;

/// Stacks remembered per (return address, stack pointer).
const WAYS: usize = 64;
/// Checks kept per thread (16 bytes each); the memo starts anew when they are used up.
const MAX_CHECKS: usize = 1 << 20;
/// Entries kept per thread (56 bytes each).
const MAX_ENTRIES: usize = 1 << 16;
/// Checks compared at a time; lists are filled up with their last one.
const STRIDE: usize = 4;
const FIRST_HEADS: usize = 1024;
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Entry {
    start: StartFrame,
    /// All ones if the starting frame pointer matters, else zero.
    frame_mask: u64,
    /// Range in the checks.
    first: u32,
    count: u32,
    site: SiteId,
    /// Next entry of the same hash.
    next: u32,
}

/// The memo of one thread, for frames on the thread's own stack only.
#[derive(Debug)]
pub(crate) struct Memo {
    /// First entry per hash; a power of two.
    heads: Vec<u32>,
    entries: Vec<Entry>,
    checks: Vec<Check>,
    /// Which of a full set of ways is replaced next.
    turn: usize,
}

impl Memo {
    pub(crate) fn new() -> Self {
        Self { heads: vec![NONE; FIRST_HEADS], entries: Vec::new(), checks: Vec::new(), turn: 0 }
    }
    pub(crate) fn clear(&mut self) {
        self.heads.fill(NONE);
        self.entries.clear();
        self.checks.clear();
    }
    /// The site of a call, if its stack is one that was seen before.
    ///
    /// # Safety
    ///
    /// `start` must be a live frame on the stack of the thread that all `insert`s were made on.
    #[inline(always)]
    pub(crate) unsafe fn lookup(&self, start: &StartFrame) -> Option<SiteId> {
        // SAFETY: the caller's promise.
        unsafe { self.entry(start) }.map(|entry| entry.site)
    }
    /// What proves that a later call from the same frame has the stack that this one has: slots to check, and whether the
    /// frame pointer matters.
    ///
    /// # Safety
    ///
    /// As [`Memo::lookup`].
    pub(crate) unsafe fn proof(&self, start: &StartFrame) -> Option<(&[Check], bool)> {
        // SAFETY: the caller's promise.
        unsafe { self.entry(start) }.map(|entry| (self.checks_of(entry), entry.frame_mask != 0))
    }
    #[inline(always)]
    unsafe fn entry(&self, start: &StartFrame) -> Option<&Entry> {
        let mut at = *self.heads.get(self.head(start))?;
        while let Some(entry) = usize::try_from(at).ok().and_then(|i| self.entries.get(i)) {
            if entry.is_from(start) {
                let (fours, _) = self.checks_of(entry).as_chunks::<STRIDE>();
                // SAFETY: the slots were aligned and in this stack, above the same live stack pointer.
                let differ = |c: &Check| unsafe { read_word(c.slot) } ^ c.value;
                if fours.iter().all(|four| four.iter().fold(0, |bits, c| bits | differ(c)) == 0) {
                    return Some(entry);
                }
            }
            at = entry.next;
        }
        None
    }
    /// Remembers the site of a walk from `start` that read what `trail` says.
    pub(crate) fn insert(&mut self, start: StartFrame, trail: &Trail, site: SiteId) {
        let padded = trail.checks.len().next_multiple_of(STRIDE);
        if self.checks.len() + padded > MAX_CHECKS || self.entries.len() >= MAX_ENTRIES {
            self.clear();
        }
        let (Ok(first), Ok(count)) = (u32::try_from(self.checks.len()), u32::try_from(padded)) else {
            return;
        };
        self.checks.extend_from_slice(&trail.checks);
        if let Some(&last) = trail.checks.last() {
            self.checks.resize(self.checks.len().next_multiple_of(STRIDE), last);
        }
        let frame_mask = if trail.start_frame_used { u64::MAX } else { 0 };
        let mut entry = Entry { start, frame_mask, first, count, site, next: NONE };
        if let Some(victim) = self.victim(&start) {
            entry.next = victim.next;
            *victim = entry;
            return;
        }
        if self.entries.len() >= self.heads.len() {
            self.grow();
        }
        let head = self.head(&start);
        if let (Some(place), Ok(index)) = (self.heads.get_mut(head), u32::try_from(self.entries.len())) {
            entry.next = std::mem::replace(place, index);
            self.entries.push(entry);
        }
    }
    #[inline(always)]
    fn head(&self, start: &StartFrame) -> usize {
        spread(start.return_address ^ start.stack_pointer.rotate_left(20)) & (self.heads.len() - 1)
    }
    #[inline(always)]
    fn checks_of(&self, entry: &Entry) -> &[Check] {
        let range = |first: u32, count: u32| {
            let first = usize::try_from(first).ok()?;
            self.checks.get(first..first + usize::try_from(count).ok()?)
        };
        range(entry.first, entry.count).unwrap_or_default()
    }
    /// The entry to replace, if all ways of a start are in use.
    fn victim(&mut self, start: &StartFrame) -> Option<&mut Entry> {
        let mut ways = [0_usize; WAYS];
        let mut used = 0;
        let mut at = *self.heads.get(self.head(start))?;
        while let Some((index, entry)) =
            usize::try_from(at).ok().and_then(|i| Some((i, self.entries.get(i)?)))
        {
            if entry.start.return_address == start.return_address
                && entry.start.stack_pointer == start.stack_pointer
            {
                *ways.get_mut(used)? = index;
                used += 1;
            }
            at = entry.next;
            if used == WAYS {
                break;
            }
        }
        if used < WAYS {
            return None;
        }
        self.turn = (self.turn + 1) % WAYS;
        let index = *ways.get(self.turn)?;
        self.entries.get_mut(index)
    }
    fn grow(&mut self) {
        self.heads = vec![NONE; 2 * self.heads.len()];
        for i in 0..self.entries.len() {
            let Some(entry) = self.entries.get(i) else { return };
            let head = self.head(&entry.start);
            let (Some(place), Ok(index)) = (self.heads.get_mut(head), u32::try_from(i)) else { return };
            let next = std::mem::replace(place, index);
            if let Some(entry) = self.entries.get_mut(i) {
                entry.next = next;
            }
        }
    }
}

impl Entry {
    #[inline(always)]
    fn is_from(&self, start: &StartFrame) -> bool {
        self.start.return_address == start.return_address
            && self.start.stack_pointer == start.stack_pointer
            && (self.start.frame_pointer ^ start.frame_pointer) & self.frame_mask == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn slot(word: &Cell<u64>) -> u64 {
        word.as_ptr().expose_provenance() as u64
    }

    #[test]
    fn a_hit_needs_equal_slots_and_a_frame_pointer_where_it_matters() {
        let mut memo = Memo::new();
        let words = [Cell::new(1), Cell::new(2)];
        let start = StartFrame { return_address: 10, stack_pointer: 20, frame_pointer: 30 };
        let checks = words.iter().map(|w| Check { slot: slot(w), value: w.get() }).collect();
        memo.insert(start, &Trail { checks, start_frame_used: true }, SiteId(7));
        // SAFETY: the slots are words that are alive.
        let lookup = |memo: &Memo, start: &StartFrame| unsafe { memo.lookup(start) };
        assert_eq!(lookup(&memo, &start), Some(SiteId(7)));
        assert_eq!(lookup(&memo, &StartFrame { frame_pointer: 31, ..start }), None);
        assert_eq!(lookup(&memo, &StartFrame { stack_pointer: 28, ..start }), None);
        words[1].set(3);
        assert_eq!(lookup(&memo, &start), None);
        words[1].set(2);
        assert_eq!(lookup(&memo, &start), Some(SiteId(7)));
    }

    #[test]
    fn many_starts_and_many_stacks_per_start_stay_bounded_and_right() {
        let mut memo = Memo::new();
        let word = Cell::new(0);
        let at = slot(&word);
        for n in 0..5000_u64 {
            let start = StartFrame { return_address: n, stack_pointer: 8 * n, frame_pointer: n };
            memo.insert(start, &Trail::default(), SiteId(u32::try_from(n).unwrap()));
        }
        // SAFETY: the only slot is a word that is alive.
        let lookup = |memo: &Memo, start: &StartFrame| unsafe { memo.lookup(start) };
        for n in (0..5000_u64).rev() {
            let start = StartFrame { return_address: n, stack_pointer: 8 * n, frame_pointer: 0 };
            assert_eq!(lookup(&memo, &start), Some(SiteId(u32::try_from(n).unwrap())));
        }
        let start = StartFrame { return_address: 6000, stack_pointer: 8, frame_pointer: 0 };
        let before = memo.entries.len();
        for value in 0..100 {
            let checks = vec![Check { slot: at, value }];
            memo.insert(start, &Trail { checks, start_frame_used: false }, SiteId(9));
        }
        assert_eq!(memo.entries.len(), before + WAYS);
        word.set(99);
        assert_eq!(lookup(&memo, &start), Some(SiteId(9)));
        word.set(1000);
        assert_eq!(lookup(&memo, &start), None);
    }
}
