//! Integer streams: trip counts and call parameters in execution order, compressed while they grow.
//!
//! A stream is a source of *elements* and *copies* between them. An element is one value, or an arithmetic run
//! (first value, step, number of further values; a constant run has step 0). A copy repeats, cyclically, the
//! elements from its start to the end of the source as it stood when the copy began; periods therefore cost
//! their first occurrence once, however often they recur, and a period may contain runs.
//!
//! The encoder looks for a copy by a hash of the last three values and starts it after four more values have
//! agreed, so that noise leaves plain values rather than many short copies. It is a deterministic function of
//! the values: equal content gives equal encoding, however it was pushed.
//!
//! [`Sealed`] is the stored form. It has an *open tail*: the last run or copy goes on for ever, because the tree
//! knows how many values are read. Ranks with different trip counts thus share a constant or a period.
//!
//! *Invariant:* arithmetic runs of nonzero step built here contain no negative value, since negative values are
//! specials (`values.rs`) that endpoint forms map differently.
//!
//! Source: Wu, Mueller 2013 (elastic data elements) for the purpose; the copy coder is our own, it replaces the
//! `Run`/`Arith`/`Repeat` segments of ScalaTrace II, which lose a period that breaks off half way.

mod codec;
mod coder;
mod cursor;
mod encode;
mod product;
mod sealed;
mod together;

use crate::num::Exact;
use coder::Coder;
use cursor::Parts;
pub use cursor::{Cursor, Values};
pub use product::Chain;
pub use sealed::{Element, Sealed};
pub use together::Together;

/// An online integer stream.
///
/// *Cost:* 32 bytes while all values are equal, 64 more up to 8 values; then memory in proportion to the values that
/// had to be stored.
#[derive(Debug, Clone, Default)]
pub struct Ints {
    len: u64,
    /// The first value.
    value: i64,
    store: Store,
}

/// Values of a short stream. Most streams inside folded bodies are short or constant, and an encoder is large.
const FEW: usize = 8;

#[derive(Debug, Clone, Default)]
enum Store {
    /// All values are the first.
    #[default]
    Constant,
    /// The first `len` of these.
    Few(Box<[i64; FEW]>),
    Coded(Box<Coder>),
}

impl Ints {
    /// An empty stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends one value.
    #[inline]
    pub fn push(&mut self, value: i64) {
        if let Store::Coded(coder) = &mut self.store {
            coder.push(value);
            self.len += 1;
        } else {
            self.push_run(value, 1);
        }
    }

    /// Appends values one after the other.
    pub fn push_all(&mut self, values: &[i64]) {
        let mut rest = values;
        while let Some((&value, after)) = rest.split_first() {
            if let Store::Coded(coder) = &mut self.store {
                coder.push_all(rest);
                self.len += rest.len().to_u64();
                return;
            }
            self.push_run(value, 1);
            rest = after;
        }
    }

    /// Appends `n` equal values; the result is that of `n` single pushes.
    #[inline]
    pub fn push_run(&mut self, value: i64, n: u64) {
        match &mut self.store {
            Store::Constant if self.value == value || self.len == 0 => {
                if n > 0 {
                    self.value = value;
                }
            }
            Store::Coded(coder) => coder.push_run(value, n),
            _ => self.push_few(value, n),
        }
        self.len += n;
    }

    /// Appends the same values `n` times; the result is that of single pushes, the cost soon no longer grows with `n`.
    pub fn push_cycle(&mut self, values: &[i64], n: u64) {
        if n == 1 {
            return self.push_all(values);
        }
        if let [value, rest @ ..] = values
            && rest.iter().all(|v| v == value)
        {
            return self.push_run(*value, n * values.len().to_u64());
        }
        let mut left = if values.is_empty() { 0 } else { n };
        while left > 0 {
            left -= 1;
            values.iter().for_each(|&v| self.push(v));
            if left > 1
                && let Store::Coded(coder) = &mut self.store
            {
                let turns = coder.turn(values, left);
                self.len += turns * values.len().to_u64();
                left -= turns;
            }
        }
    }

    /// Appends to a stream that has no encoder, and makes one if it no longer fits.
    fn push_few(&mut self, value: i64, n: u64) {
        let few = self.few();
        let places = usize::try_from(self.len).ok().zip(usize::try_from(self.len + n).ok());
        if let Some((from, to)) = places.filter(|&(_, to)| to <= FEW) {
            let mut few = few;
            few[from..to].fill(value);
            match &mut self.store {
                Store::Few(store) => **store = few,
                store => *store = Store::Few(Box::new(few)),
            }
            return;
        }
        let mut coder = Box::new(self.encode_few(&few));
        coder.push_run(value, n);
        self.store = Store::Coded(coder);
    }

    /// The values of a stream without encoder, as far as they fit.
    fn few(&self) -> [i64; FEW] {
        match &self.store {
            Store::Few(few) => **few,
            _ => [self.value; FEW],
        }
    }

    fn encode_few(&self, few: &[i64; FEW]) -> Coder {
        let mut coder = Coder::default();
        match self.store {
            Store::Constant => coder.push_run(self.value, self.len),
            _ => few.iter().take(self.len.to_usize()).for_each(|&value| coder.push(value)),
        }
        coder
    }

    /// Appends the content of another stream.
    pub fn extend_from(&mut self, other: &Self) {
        if self.len == 0 {
            self.clone_from(other);
            return;
        }
        let mut cursor = other.cursor();
        let mut left = other.len;
        while left > 0 {
            let (value, n) = cursor.next_run(left);
            self.push_run(value, n);
            left -= n;
        }
    }

    /// Number of values pushed.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was pushed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value, if there is one and all are equal.
    #[must_use]
    pub fn constant(&self) -> Option<i64> {
        (self.len > 0 && matches!(self.store, Store::Constant)).then_some(self.value)
    }

    /// Exactly the values pushed.
    #[must_use]
    pub fn iter(&self) -> Values<'_> {
        Values::new(self.cursor(), self.len)
    }

    /// A reader with an open tail: after the last value a run or copy goes on, another value repeats. (A stream of
    /// up to 8 values repeats its last; its sealed form may know better.)
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(self.parts(), &[])
    }

    /// The stored form.
    #[must_use]
    pub fn seal(self) -> Sealed {
        let coder = match self.store {
            Store::Constant if self.len == 0 => return Sealed::default(),
            Store::Constant => return Sealed::from_constant(self.value),
            Store::Few(ref few) => self.encode_few(few),
            Store::Coded(coder) => *coder,
        };
        let (lits, runs, copies) = coder.into_parts();
        Sealed::canonical(lits, runs, copies)
    }

    /// Memory behind this stream, in words of 8 bytes.
    #[must_use]
    pub fn heap_words(&self) -> usize {
        match &self.store {
            Store::Constant => 0,
            Store::Few(_) => FEW,
            Store::Coded(coder) => coder.heap_words(),
        }
    }

    fn parts(&self) -> Parts<'_> {
        let lits = match &self.store {
            Store::Coded(coder) => return coder.parts(),
            Store::Constant if self.len == 0 => &[],
            Store::Constant => std::slice::from_ref(&self.value),
            Store::Few(few) => few.get(..self.len.to_usize()).unwrap_or(&**few),
        };
        Parts { lits, runs: &[], copies: &[] }
    }
}

impl Extend<i64> for Ints {
    fn extend<I: IntoIterator<Item = i64>>(&mut self, values: I) {
        for value in values {
            self.push(value);
        }
    }
}

impl FromIterator<i64> for Ints {
    fn from_iter<I: IntoIterator<Item = i64>>(values: I) -> Self {
        let mut ints = Self::new();
        ints.extend(values);
        ints
    }
}

impl From<Vec<i64>> for Ints {
    fn from(values: Vec<i64>) -> Self {
        values.into_iter().collect()
    }
}

impl<'a> IntoIterator for &'a Ints {
    type Item = i64;
    type IntoIter = Values<'a>;

    fn into_iter(self) -> Values<'a> {
        self.iter()
    }
}
