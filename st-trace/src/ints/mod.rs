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
mod sealed;

use coder::Coder;
use cursor::Parts;
pub use cursor::{Cursor, Values};
pub use sealed::{Element, Sealed};

/// An online integer stream.
///
/// *Cost:* 24 bytes while all values are equal; then memory in proportion to the values that had to be stored.
#[derive(Debug, Clone, Default)]
pub struct Ints {
    len: u64,
    /// The only value so far, while `coder` is absent.
    value: i64,
    coder: Option<Box<Coder>>,
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
        self.push_run(value, 1);
    }

    /// Appends `n` equal values; the result is that of `n` single pushes.
    #[inline]
    pub fn push_run(&mut self, value: i64, n: u64) {
        if self.coder.is_none() {
            if self.value == value || self.len == 0 {
                self.value = value;
                self.len += n;
                return;
            }
            if n == 0 {
                return;
            }
            let mut coder = Box::new(Coder::default());
            coder.push_run(self.value, self.len);
            self.coder = Some(coder);
        }
        self.len += n;
        if let Some(coder) = &mut self.coder {
            coder.push_run(value, n);
        }
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

    /// Exactly the values pushed.
    #[must_use]
    pub fn iter(&self) -> Values<'_> {
        Values::new(self.cursor(), self.len)
    }

    /// A reader with an open tail: after the last value the last run or copy goes on, a plain value repeats.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(self.parts())
    }

    /// The stored form.
    #[must_use]
    pub fn seal(self) -> Sealed {
        match self.coder {
            None if self.len == 0 => Sealed::default(),
            None => Sealed::from_constant(self.value),
            Some(coder) => {
                let (lits, runs, copies) = coder.into_parts();
                Sealed::canonical(lits, runs, copies)
            }
        }
    }

    /// Memory behind this stream, in words of 8 bytes.
    #[must_use]
    pub fn heap_words(&self) -> usize {
        self.coder.as_ref().map_or(0, |coder| coder.heap_words())
    }

    fn parts(&self) -> Parts<'_> {
        match &self.coder {
            Some(coder) => coder.parts(),
            None if self.len == 0 => Parts::default(),
            None => Parts { lits: std::slice::from_ref(&self.value), runs: &[], copies: &[] },
        }
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
