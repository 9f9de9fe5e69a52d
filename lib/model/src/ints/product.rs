//! Products over the values of a stream, in time of its encoding instead of its length.

use super::cursor::{ElementCursor, Parts};
use super::sealed::Sealed;

/// What a sequence amounts to, put together from what its parts amount to: a monoid.
pub trait Chain: Copy {
    /// The empty sequence.
    fn empty() -> Self;
    /// This sequence, then another.
    #[must_use]
    fn then(self, next: Self) -> Self;
    /// This sequence `n` times over. *Cost:* O(log n).
    #[must_use]
    fn times(self, n: u64) -> Self {
        let (mut out, mut power, mut left) = (Self::empty(), self, n);
        while left > 0 {
            if left & 1 == 1 {
                out = out.then(power);
            }
            left >>= 1;
            if left > 0 {
                power = power.then(power);
            }
        }
        out
    }
}

impl Sealed {
    /// What the first `len` values amount to, from what each value does. *Cost:* O(stored elements per copy, and values in
    /// rising or falling runs), each times O(log `len`) where something repeats.
    #[must_use]
    pub fn product<C: Chain>(&self, len: u64, one: impl Fn(i64) -> C) -> C {
        if let Some(value) = self.constant() {
            return one(value).times(len);
        }
        if let values @ [_, ..] = self.small() {
            return Self::elemental(values).product(len, one);
        }
        let parts = self.parts();
        let mut sum = Sum { parts, one, left: len, all: C::empty() };
        let mut at = 0;
        for copy in parts.copies {
            sum.elements(ElementCursor::before(parts.runs, at), copy.at, false);
            at = copy.at;
            let open = copy.at == parts.lits.len();
            sum.copy(
                ElementCursor::at_start(parts.lits, parts.runs, copy.start),
                copy.at,
                if open { u64::MAX } else { copy.n },
            );
        }
        sum.elements(ElementCursor::before(parts.runs, at), parts.lits.len(), true);
        sum.all
    }
}

/// A product in the making.
struct Sum<'a, C, F> {
    parts: Parts<'a>,
    one: F,
    /// Values still to come.
    left: u64,
    all: C,
}

impl<C: Chain, F: Fn(i64) -> C> Sum<'_, C, F> {
    /// Elements from a place up to the `end`-th. The last one of a stream goes on for ever.
    fn elements(&mut self, place: ElementCursor, end: usize, open: bool) {
        let (product, n) = self.block(place, end, open, self.left);
        self.all = self.all.then(product);
        self.left -= n;
    }

    /// `n` values that go round from a place to the `end`-th element.
    fn copy(&mut self, place: ElementCursor, end: usize, n: u64) {
        let n = n.min(self.left);
        let (round, length) = self.block(place, end, false, n);
        if length == 0 {
            return;
        }
        let (rest, _) = self.block(place, end, false, n % length);
        self.all = self.all.then(round.times(n / length)).then(rest);
        self.left -= n;
    }

    /// The product of at most `most` values from a place up to the `end`-th element, and their number.
    fn block(&self, mut place: ElementCursor, end: usize, open: bool, most: u64) -> (C, u64) {
        let (mut product, mut left) = (C::empty(), most);
        if place.rest > 0 {
            let n = place.rest.min(left);
            product = self.run(place.value(), place.step(), 1, n);
            left -= n;
            place.rest = 0;
        }
        while place.pos < end && left > 0 {
            let last = open && place.pos + 1 == end;
            let first = place.enter(self.parts.lits, self.parts.runs);
            let (step, more) = if place.rest > 0 { (place.step(), place.rest) } else { (0, 0) };
            place.rest = 0;
            let n = if last { left } else { (more.saturating_add(1)).min(left) };
            product = product.then(self.run(first, step, 0, n));
            left -= n;
        }
        (product, most - left)
    }

    /// `n` values of an arithmetic progression, from its `from`-th.
    fn run(&self, first: i64, step: i64, from: i64, n: u64) -> C {
        if step == 0 {
            return (self.one)(first).times(n);
        }
        let mut value = first.wrapping_add(step.wrapping_mul(from));
        let mut product = C::empty();
        for _ in 0..n {
            product = product.then((self.one)(value));
            value = value.wrapping_add(step);
        }
        product
    }
}
