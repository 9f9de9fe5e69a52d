//! The stored form of a stream: immutable, canonical, with an open tail.

use crate::num::{Exact, saturate};
use std::sync::Arc;

use super::cursor::{Copied, Cursor, Parts, Run};

/// A stored stream. Cloning shares the content.
///
/// Two sealed streams are equal if their encodings are: a constant of any length equals every other of that
/// value, a period equals itself cut anywhere after two occurrences and some values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Sealed(pub(super) Form);

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) enum Form {
    /// No value was pushed.
    #[default]
    Empty,
    Constant(i64),
    Coded(Arc<Coded>),
    /// Several values one by one, small ones: a quarter of what they take as elements.
    Plain(Arc<[u16]>),
}

/// *Invariants:* as [`Parts`]; at least one element; in the open tail the last run's or copy's length is the
/// maximum; a last plain element differs from a plain element just before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Coded {
    pub(super) lits: Box<[i64]>,
    pub(super) runs: Box<[Run]>,
    pub(super) copies: Box<[Copied]>,
}

static EMPTY: Sealed = Sealed(Form::Empty);

/// One element of a stored stream: `first`, and `more` further values at distance `step`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// First value.
    pub first: i64,
    /// Distance between values; 0 for a plain or repeated value.
    pub step: i64,
    /// Number of further values; `None` in the open tail, whose end only the tree knows.
    pub more: Option<u64>,
}

impl Sealed {
    /// The stream of a place that was never visited; it reads as zeros.
    #[must_use]
    pub fn zero() -> &'static Self {
        &EMPTY
    }

    /// The stream that is `value` for ever.
    #[must_use]
    pub fn from_constant(value: i64) -> Self {
        Self(Form::Constant(value))
    }

    /// The stream of these values with nothing found in them, for values that are soon read again: equal content need not
    /// be equal. *Cost:* a copy.
    #[must_use]
    pub fn plain(values: Vec<i64>) -> Self {
        match values[..] {
            [] => Self(Form::Empty),
            [value] => Self::from_constant(value),
            _ => match values.iter().map(|value| u16::try_from(*value).ok()).collect() {
                Some(small) => Self(Form::Plain(small)),
                None => Self::of_elements(values.into()),
            },
        }
    }

    fn of_elements(lits: Box<[i64]>) -> Self {
        Self(Form::Coded(Arc::new(Coded { lits, runs: Box::default(), copies: Box::default() })))
    }

    /// Values that are one by one as elements.
    pub(super) fn elemental(values: &[u16]) -> Self {
        Self::of_elements(values.iter().map(|value| i64::from(*value)).collect())
    }

    /// Whether no value was ever pushed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self.0, Form::Empty)
    }

    /// The value of a constant stream; 0 for the empty one.
    #[must_use]
    pub fn constant(&self) -> Option<i64> {
        match self.0 {
            Form::Empty => Some(0),
            Form::Constant(value) => Some(value),
            Form::Coded(_) | Form::Plain(_) => None,
        }
    }

    /// A reader; it never ends, see the module's open tail.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(self.parts(), self.small())
    }

    /// The stream of mapped values.
    ///
    /// `f` must be injective and, on the values of each arithmetic run, affine. Runs built by [`super::Ints`] hold no
    /// negative values unless they are constant, so any map that is affine on values ≥ 0 and sends the negative
    /// specials elsewhere qualifies. For other maps use [`Sealed::rebuild`].
    #[must_use]
    pub fn map(&self, f: impl Fn(i64) -> i64) -> Self {
        match &self.0 {
            Form::Empty => Self(Form::Empty),
            Form::Constant(value) => Self::from_constant(f(*value)),
            Form::Plain(values) => Self::elemental(values).map(f),
            Form::Coded(coded) => {
                let runs = coded.runs.iter().map(|&run| {
                    let first = coded.lits[run.at];
                    let step = f(first.wrapping_add(run.step)).wrapping_sub(f(first));
                    Run { step, ..run }
                });
                let runs = runs.collect();
                let lits = coded.lits.iter().map(|&value| f(value)).collect();
                Self(Form::Coded(Arc::new(Coded { lits, runs, copies: coded.copies.clone() })))
            }
        }
    }

    /// Whether this is another stream with each value mapped, found without encoding anything: if so, all values are, as far
    /// as either is read. Streams with rising or falling runs are never found to be.
    #[must_use]
    pub fn is_mapped(&self, other: &Self, f: impl Fn(i64) -> i64) -> bool {
        match (&self.0, &other.0) {
            (Form::Constant(a), Form::Constant(b)) => f(*b) == *a,
            (Form::Coded(a), Form::Coded(b)) => {
                a.lits.len() == b.lits.len()
                    && a.copies == b.copies
                    && a.runs == b.runs
                    && a.runs.iter().all(|run| run.step == 0)
                    && a.lits.iter().zip(&b.lits).all(|(a, b)| f(*b) == *a)
            }
            _ => false,
        }
    }

    /// Every element once: all values that can occur are among these runs. Copies only repeat them.
    pub fn elements(&self) -> impl Iterator<Item = Element> + '_ {
        let parts = self.parts();
        let open = !parts.ends_in_copy();
        let mut runs = parts.runs.iter().peekable();
        let small = self.small();
        let plain = small.iter().enumerate().map(|(at, &first)| {
            let more = (at + 1 < small.len()).then_some(0);
            Element { first: first.into(), step: 0, more }
        });
        let coded = parts.lits.iter().enumerate().map(move |(at, &first)| {
            let last = open && at + 1 == parts.lits.len();
            let (step, more) = runs.next_if(|run| run.at == at).map_or((0, 0), |run| (run.step, run.more));
            Element { first, step, more: (!last).then_some(more) }
        });
        coded.chain(plain)
    }

    /// The distinct values in ascending order, if there are at most `limit` and none belongs to a rising or
    /// falling open tail.
    #[must_use]
    pub fn distinct(&self, limit: usize) -> Option<Vec<i64>> {
        let mut values = std::collections::BTreeSet::new();
        for element in self.elements() {
            let more = if element.step == 0 { 0 } else { element.more? };
            if more > limit.to_u64() {
                return None;
            }
            let mut value = element.first;
            values.insert(value);
            for _ in 0..more {
                value = value.wrapping_add(element.step);
                values.insert(value);
            }
            if values.len() > limit {
                return None;
            }
        }
        Some(values.into_iter().collect())
    }

    /// Whether a negative value occurs. Falling open tails of streams built by [`super::Ints`] stay nonnegative as far
    /// as they are read, so only their first value counts.
    #[must_use]
    pub fn any_negative(&self) -> bool {
        self.elements().any(|element| {
            let more = element.more.map_or(0, saturate);
            let last = element.step.checked_mul(more).and_then(|rise| element.first.checked_add(rise));
            element.first < 0 || last.is_none_or(|last| last < 0)
        })
    }

    /// Memory behind this stream, in words of 8 bytes (shared content counts for each holder).
    #[must_use]
    pub fn heap_words(&self) -> usize {
        match &self.0 {
            Form::Empty | Form::Constant(_) => 0,
            Form::Plain(values) => 2 + values.len().div_ceil(4),
            Form::Coded(coded) => 8 + coded.lits.len() + 3 * (coded.runs.len() + coded.copies.len()),
        }
    }

    /// Values one by one, if that is how they are.
    pub(super) fn small(&self) -> &[u16] {
        if let Form::Plain(values) = &self.0 { values } else { &[] }
    }

    /// The elements; none of values one by one.
    pub(super) fn parts(&self) -> Parts<'_> {
        match &self.0 {
            Form::Empty | Form::Plain(_) => Parts::default(),
            Form::Constant(value) => Parts { lits: std::slice::from_ref(value), runs: &[], copies: &[] },
            Form::Coded(coded) => Parts { lits: &coded.lits, runs: &coded.runs, copies: &coded.copies },
        }
    }

    /// The canonical open-tail form of an encoding.
    pub(super) fn canonical(mut lits: Vec<i64>, mut runs: Vec<Run>, mut copies: Vec<Copied>) -> Self {
        if copies.last().is_some_and(|copy| copy.at == lits.len()) {
            turn_back(&mut lits, &runs, &mut copies);
        } else {
            let floor = copies.last().map_or(0, |copy| copy.at);
            draw_back(&mut lits, &mut runs, floor);
        }
        match lits[..] {
            [] => Self(Form::Empty),
            [value] if runs.is_empty() => Self::from_constant(value),
            _ => {
                let (lits, runs, copies) = (lits.into(), runs.into(), copies.into());
                Self(Form::Coded(Arc::new(Coded { lits, runs, copies })))
            }
        }
    }
}

/// Opens a final copy, and lets it begin earlier as long as the elements before it are those it would repeat.
fn turn_back(lits: &mut Vec<i64>, runs: &[Run], copies: &mut [Copied]) {
    let Some((tail, before)) = copies.split_last_mut() else { return };
    tail.n = u64::MAX;
    let floor = before.last().map_or(0, |copy| copy.at);
    let plain = |at: usize| runs.binary_search_by_key(&at, |run| run.at).is_err();
    while tail.start > 0 && tail.at > floor + 1 {
        let (moved, last) = (tail.start - 1, tail.at - 1);
        let nameable = moved == 0 || plain(moved - 1);
        if lits[moved] != lits[last] || !plain(moved) || !plain(last) || !nameable {
            break;
        }
        lits.pop();
        tail.start = moved;
        tail.at = last;
    }
}

/// Opens a final element: a repeated value becomes one, a run begins where its values do.
fn draw_back(lits: &mut Vec<i64>, runs: &mut Vec<Run>, floor: usize) {
    let step = match runs.last() {
        Some(run) if run.at + 1 == lits.len() => {
            let step = run.step;
            runs.pop();
            step
        }
        _ => 0,
    };
    let stop = runs.last().map_or(floor, |run| floor.max(run.at + 1));
    while let [.., a, b] = lits[..] {
        if lits.len() < stop + 2 || a.wrapping_add(step) != b || (step != 0 && a < 0) {
            break;
        }
        lits.pop();
    }
    if step != 0 {
        runs.push(Run { at: lits.len() - 1, step, more: u64::MAX });
    }
}

impl From<i64> for Sealed {
    fn from(value: i64) -> Self {
        Self::from_constant(value)
    }
}
