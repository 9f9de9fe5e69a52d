//! The online encoder.

use super::cursor::{Copied, ElementCursor, Parts, Run};
use crate::num::Exact;

/// Values that must agree after a hash hit before a copy begins. A copy costs as much as three plain values in
/// memory, so shorter agreements do not pay.
const CONFIRM: u32 = 4;

/// A candidate with so many agreements is not given up for one of a longer context.
const FAR: u32 = 12;

/// Slots at most: the table has to stay in the cache, among all else that a program needs there. From twice, four times... so
/// many elements on, one context in two, four... is entered and looked up: by its hash, so that they are the same ones
/// wherever they stand. A period is found soon after it has begun to recur, however long it is, and values without structure
/// cost few loads that miss the cache.
const SLOTS: usize = 1 << 14;

/// Copies up to this length are always turned into elements when they break off.
const SHORT: u64 = 64;

/// What the encoder expects next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    /// Nothing, or a candidate for a copy that is still being confirmed.
    #[default]
    Plain,
    /// The last element is a run and goes on.
    Run,
    /// The last copy goes on.
    Copy,
}

/// A walk through earlier elements whose values are compared with the arriving ones.
#[derive(Debug, Clone, Copy, Default)]
struct Track {
    place: ElementCursor,
    /// The value after `place`'s; `place` has already moved onto it.
    expected: i64,
    /// Whether `expected` is the first value of its element.
    first: bool,
    /// Start that a copy beginning with `expected` would have, if that place can be named.
    start: Option<usize>,
    /// Values that agreed so far.
    agreed: u32,
}

/// State of a stream that is not constant.
#[derive(Debug, Clone, Default)]
pub(super) struct Coder {
    lits: Vec<i64>,
    runs: Vec<Run>,
    copies: Vec<Copied>,
    mode: Mode,
    /// The last value.
    tip: i64,
    context: Context,
    /// Elements at the end that are plain values following one another in the stream.
    plain: u32,
    /// Candidate (mode `Plain`, `Run`) or running copy (mode `Copy`).
    track: Option<Track>,
    wrap: ElementCursor,
    /// Direct-mapped by tag: hash of a context, and one more than the element at its end (0: empty).
    slots: Vec<(u32, u32)>,
}

impl Coder {
    pub(super) fn parts(&self) -> Parts<'_> {
        Parts { lits: &self.lits, runs: &self.runs, copies: &self.copies }
    }

    pub(super) fn into_parts(self) -> (Vec<i64>, Vec<Run>, Vec<Copied>) {
        (self.lits, self.runs, self.copies)
    }

    pub(super) fn heap_words(&self) -> usize {
        size_of::<Self>() / 8
            + self.lits.capacity()
            + 3 * (self.runs.capacity() + self.copies.capacity())
            + self.slots.capacity()
    }

    /// Appends equal values; long constant runs take constant time.
    pub(super) fn push_run(&mut self, value: i64, n: u64) {
        let mut left = n;
        while left > 0 {
            self.push(value);
            left -= 1;
            // A candidate would have to see each value; without one, the rest of a constant run is one addition.
            if self.mode == Mode::Run
                && self.track.is_none()
                && let Some(run) = self.runs.last_mut()
                && run.step == 0
            {
                run.more += left;
                return;
            }
        }
    }

    /// Appends values one after the other.
    pub(super) fn push_all(&mut self, values: &[i64]) {
        let mut rest = values;
        loop {
            rest = &rest[self.go_on(rest)..];
            let Some((&value, after)) = rest.split_first() else { return };
            self.push(value);
            rest = after;
        }
    }

    /// Lets the running copy go on, if there is one, as far as it has these values: returns how many.
    #[inline]
    fn go_on(&mut self, values: &[i64]) -> usize {
        let (Mode::Copy, Some(mut track), Some(copy)) = (self.mode, self.track, self.copies.last_mut())
        else {
            return 0;
        };
        let mut n = 0;
        while let Some(&value) = values.get(n)
            && value == track.expected
        {
            track.step_cyclic(&self.lits, &self.runs, copy.at, self.wrap);
            (self.tip, n) = (value, n + 1);
        }
        copy.n += n.to_u64();
        self.track = Some(track);
        n
    }

    #[inline]
    pub(super) fn push(&mut self, value: i64) {
        match self.mode {
            Mode::Copy => {
                if let (Some(track), Some(copy)) = (&mut self.track, self.copies.last_mut())
                    && track.expected == value
                {
                    copy.n += 1;
                    let end = copy.at;
                    track.step_cyclic(&self.lits, &self.runs, end, self.wrap);
                    self.tip = value;
                    return;
                }
                // First what the copy leaves behind is settled, then the value is looked at as any other.
                self.track = None;
                self.leave_copy();
            }
            Mode::Run => {
                if self.lengthen(value) {
                    if self.track.is_some() {
                        self.follow(value);
                    }
                    return;
                }
                self.leave_run();
            }
            Mode::Plain => {}
        }
        self.push_plain(value);
    }

    /// If the running copy cycles through just these values, lets it do so `n` more times: returns how many it did.
    pub(super) fn turn(&mut self, values: &[i64], n: u64) -> u64 {
        let (Mode::Copy, Some(track), Some(copy)) = (self.mode, self.track, self.copies.last_mut()) else {
            return 0;
        };
        // As many steps as there are values must lead to the same place past the same values.
        let mut next = track;
        for &value in values {
            if next.expected != value {
                return 0;
            }
            next.step_cyclic(&self.lits, &self.runs, copy.at, self.wrap);
        }
        if next.place != track.place {
            return 0;
        }
        copy.n += n * values.len().to_u64();
        n
    }

    fn leave_run(&mut self) {
        self.mode = Mode::Plain;
        self.plain = 0;
        if let Some(run) = self.runs.last() {
            self.context.enter(run.step.wrapping_mul(31).wrapping_add(run.more.cast_signed()));
        }
    }

    /// Adds the value to the run in progress, if it continues it.
    #[inline]
    fn lengthen(&mut self, value: i64) -> bool {
        let Some(run) = self.runs.last_mut() else { return false };
        let fits = self.tip.wrapping_add(run.step) == value && (run.step == 0 || value >= 0);
        if fits {
            run.more += 1;
            self.tip = value;
        }
        fits
    }

    fn push_plain(&mut self, value: i64) {
        if self.begin_copy(value) {
            return;
        }
        self.follow(value);
        let [near, far] = self.append(value);
        let unsure = self.track.is_none_or(|track| track.agreed < FAR);
        // A long context has agreed in more tokens than confirm a copy, so it replaces a candidate that may be chance. Short
        // contexts are often chance: one candidate at a time is followed, until it is wrong.
        if let Some(found) = far.filter(|_| unsure) {
            self.track = Track::new(&self.lits, &self.runs, found);
            if let Some(track) = &mut self.track {
                track.agreed = FAR;
            }
        } else if let Some(found) = near.filter(|_| self.track.is_none()) {
            self.track = Track::new(&self.lits, &self.runs, found);
        }
    }

    /// Appends an element, or turns the last one into a run. Returns where a copy may start: after the latest
    /// earlier occurrence of the short and of the long context.
    fn append(&mut self, value: i64) -> [Option<usize>; 2] {
        self.tip = value;
        if let Some(step) = self.run_step(value) {
            self.runs.push(Run { at: self.lits.len() - 1, step, more: 1 });
            self.mode = Mode::Run;
            return [None; 2];
        }
        self.lits.push(value);
        self.plain = self.plain.saturating_add(1);
        self.context.enter(value);
        if self.slots.len() < self.lits.len().min(SLOTS) {
            self.grow_slots();
        }
        // With every doubling of the elements beyond the table's size, half as many contexts are entered: see SLOTS.
        let thin = usize::BITS - (self.lits.len() / (2 * SLOTS)).leading_zeros();
        let near = self.context.short(thin).and_then(|tag| self.remember(tag));
        let far = self.context.long(thin).and_then(|tag| self.remember(tag));
        [near, far]
    }

    /// Leaves a copy. One that broke off soon turns into elements: otherwise a longer period around it would never
    /// stand in the source as a whole, and every occurrence would cost anew. Longer copies stay: the bound keeps
    /// the source in proportion to what had to be stored anyway.
    fn leave_copy(&mut self) {
        self.mode = Mode::Plain;
        self.plain = 0;
        let bound = (self.lits.len() * 2).to_u64().max(SHORT);
        let Some(copy) = self.copies.pop_if(|copy| copy.n <= bound) else {
            // The copy's values were not entered one by one: the last of them stands for all.
            self.context.enter(self.tip);
            return;
        };
        // Its values are read from where it began, and take the way of any others, but that they begin no copy.
        let mut track = Track { place: self.wrap, ..Track::default() };
        for _ in 0..copy.n {
            track.step_cyclic(&self.lits, &self.runs, copy.at, self.wrap);
            if self.mode == Mode::Run {
                if self.lengthen(track.expected) {
                    continue;
                }
                self.leave_run();
            }
            self.append(track.expected);
        }
        if self.mode == Mode::Run {
            self.leave_run();
        }
    }

    /// Begins the copy if the candidate is confirmed, agrees once more and its place can be named.
    fn begin_copy(&mut self, value: i64) -> bool {
        let end = self.lits.len();
        let Some(track) = &mut self.track else { return false };
        let Some(start) = track.start.filter(|&start| start < end) else { return false };
        if track.agreed < CONFIRM || track.expected != value {
            return false;
        }
        self.copies.push(Copied { at: end, start, n: 1 });
        self.tip = value;
        self.wrap = ElementCursor::at_start(&self.lits, &self.runs, start);
        // The candidate may have seen a run while it still grew: start again from the named place.
        track.place = self.wrap;
        // Past the value that has just come, onto the next one.
        track.step_cyclic(&self.lits, &self.runs, end, self.wrap);
        track.step_cyclic(&self.lits, &self.runs, end, self.wrap);
        self.mode = Mode::Copy;
        true
    }

    /// Compares a value with the candidate and moves or drops it.
    fn follow(&mut self, value: i64) {
        let kept = match &mut self.track {
            Some(track) if track.expected == value => {
                track.agreed = track.agreed.saturating_add(1);
                track.step(&self.lits, &self.runs, self.lits.len())
            }
            _ => false,
        };
        if !kept {
            self.track = None;
        }
    }

    /// The step, if the last three elements and this value are an arithmetic run (of nonnegative values, unless
    /// it is constant).
    fn run_step(&self, value: i64) -> Option<i64> {
        if self.plain < 3 {
            return None;
        }
        let [.., a, b, c] = self.lits[..] else { return None };
        let step = value.wrapping_sub(c);
        let even = c.wrapping_sub(b) == step && b.wrapping_sub(a) == step;
        (even && (step == 0 || (a >= 0 && value >= 0))).then_some(step)
    }

    /// Enters the last element under a context; returns the start after the context's latest earlier occurrence.
    fn remember(&mut self, tag: u32) -> Option<usize> {
        let place = slot_of(tag, self.slots.len());
        // One entry per slot, the latest: others of the same slot are forgotten, which costs a copy and never correctness, since
        // values are compared before one begins.
        let (found, start) = self.slots[place];
        self.slots[place] = (tag, u32::try_from(self.lits.len()).ok()?);
        if start == 0 || found != tag { None } else { usize::try_from(start).ok() }
    }

    fn grow_slots(&mut self) {
        let size = (self.slots.len() * 2).max(8);
        let old = std::mem::replace(&mut self.slots, vec![(0, 0); size]);
        for entry in old.into_iter().filter(|entry| entry.1 != 0) {
            self.slots[slot_of(entry.0, size)] = entry;
        }
    }
}

impl Track {
    /// A candidate that starts after the first value of element `start − 1`, if something follows there.
    fn new(lits: &[i64], runs: &[Run], start: usize) -> Option<Self> {
        let mut track =
            Self { place: ElementCursor::at_start(lits, runs, start), first: true, ..Self::default() };
        track.step(lits, runs, lits.len()).then_some(track)
    }

    /// Moves onto the next value; false at the end.
    #[inline]
    fn step(&mut self, lits: &[i64], runs: &[Run], end: usize) -> bool {
        // Copies begin behind the first value of an element: places further inside a run have no name.
        self.start = self.first.then_some(self.place.pos);
        self.first = self.place.rest == 0;
        if !self.first {
            self.expected = self.place.in_run();
        } else if self.place.pos < end {
            self.expected = self.place.enter(lits, runs);
        } else {
            return false;
        }
        true
    }

    /// Moves onto the next value of the cycle from `wrap` to element `end`.
    #[inline]
    fn step_cyclic(&mut self, lits: &[i64], runs: &[Run], end: usize, wrap: ElementCursor) {
        if self.place.rest == 0 && self.place.pos == end {
            self.place = wrap;
        }
        self.expected = if self.place.rest > 0 { self.place.in_run() } else { self.place.enter(lits, runs) };
    }
}

/// What came last: values, and for each finished run its step and length, so that places in runs of different length
/// differ.
#[derive(Debug, Clone, Copy)]
struct Context {
    /// Tokens spread over 64 bits.
    tokens: [u64; LONG],
    next: usize,
    /// Polynomial hashes of all tokens kept, and of the last three.
    long: u64,
    short: u64,
}

impl Default for Context {
    fn default() -> Self {
        let none = spread(0);
        let short = (0..SHORT_CONTEXT).fold(0_u64, |hash, _| hash.wrapping_mul(FACTOR).wrapping_add(none));
        Self { tokens: [none; LONG], next: 0, long: 0, short }
    }
}

impl Context {
    #[inline]
    fn enter(&mut self, token: i64) {
        let new = spread(token);
        // Rolling hashes: what goes out is taken out with the power of the factor that it has come to have.
        let third = if self.next >= SHORT_CONTEXT { self.next } else { self.next + LONG } - SHORT_CONTEXT;
        let turned = |hash: u64, gone: u64| hash.wrapping_sub(gone).wrapping_mul(FACTOR).wrapping_add(new);
        self.short = turned(self.short, self.tokens[third].wrapping_mul(FACTOR.wrapping_mul(FACTOR)));
        let old = std::mem::replace(&mut self.tokens[self.next], new);
        self.long = turned(self.long, old.wrapping_mul(OLDEST));
        self.next = if self.next + 1 == LONG { 0 } else { self.next + 1 };
    }

    /// Hash of the last three tokens, in one case of 2^`thin`.
    #[inline]
    fn short(&self, thin: u32) -> Option<u32> {
        (self.short.leading_zeros() >= thin).then(|| upper(self.short.wrapping_mul(FACTOR)))
    }

    /// Hash of all tokens kept, in one case of 2^`thin`, but of four at least.
    #[inline]
    fn long(&self, thin: u32) -> Option<u32> {
        (self.long.leading_zeros() >= thin.max(2)).then(|| upper(self.long.wrapping_mul(FACTOR)))
    }
}

/// Tokens of a long and of a short context.
const LONG: usize = 12;
const SHORT_CONTEXT: usize = 3;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// FACTOR to the power LONG − 1: what the oldest token was multiplied with.
const OLDEST: u64 = {
    let mut power = 1_u64;
    let mut i = 1;
    while i < LONG {
        power = power.wrapping_mul(FACTOR);
        i += 1;
    }
    power
};

fn spread(token: i64) -> u64 {
    let mixed = token.cast_unsigned().wrapping_add(1).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    mixed ^ (mixed >> 32)
}

/// The upper half of a hash.
fn upper(hash: u64) -> u32 {
    let [a, b, c, d, ..] = hash.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// The slot of a tag in a table whose size is a power of two.
fn slot_of(tag: u32, size: usize) -> usize {
    tag.to_usize() & (size - 1)
}
