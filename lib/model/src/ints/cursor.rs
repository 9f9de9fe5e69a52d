//! Reading a stream: elements, cyclic copies, and the open tail.

/// An arithmetic run: the element at index `at` is followed by `more` values at distance `step`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Run {
    pub(super) at: usize,
    pub(super) step: i64,
    pub(super) more: u64,
}

/// A copy of `n` values, inserted after the first `at` elements.
///
/// It cycles through the values between its start and element `at`. Start `s` is the place just after the
/// *first value* of element `s − 1` (so a run there contributes its rest); 0 is the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Copied {
    pub(super) at: usize,
    pub(super) start: usize,
    pub(super) n: u64,
}

/// The parts of a stream, borrowed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parts<'a> {
    /// First value of every element.
    pub(super) lits: &'a [i64],
    /// Runs, ascending by element.
    pub(super) runs: &'a [Run],
    /// Copies, strictly ascending by `at`.
    pub(super) copies: &'a [Copied],
}

impl Parts<'_> {
    /// Whether the stream ends in a copy, which the open tail then continues.
    pub(super) fn ends_in_copy(&self) -> bool {
        self.copies.last().is_some_and(|copy| copy.at == self.lits.len())
    }
}

/// A place among the elements `..end` that moves one value at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ElementCursor {
    /// Next element.
    pub(super) pos: usize,
    /// Index of the first run at or after `pos`.
    run: usize,
    value: i64,
    step: i64,
    /// Values left in the run of element `pos − 1`.
    pub(super) rest: u64,
}

impl ElementCursor {
    /// The place after the first value of element `start − 1`, or the beginning.
    pub(super) fn at_start(lits: &[i64], runs: &[Run], start: usize) -> Self {
        let run = runs.partition_point(|run| run.at + 1 < start);
        let mut place = Self { pos: start, run, ..Self::default() };
        if let (Some(before), Some(found)) = (start.checked_sub(1), runs.get(run))
            && found.at == before
        {
            place.run += 1;
            place.value = lits[before];
            place.step = found.step;
            place.rest = found.more;
        }
        place
    }

    /// The value before the next one.
    pub(super) fn value(self) -> i64 {
        self.value
    }
    /// Distance of the values in the current run.
    pub(super) fn step(self) -> i64 {
        self.step
    }

    /// The place before element `pos`.
    pub(super) fn before(runs: &[Run], pos: usize) -> Self {
        Self { pos, run: runs.partition_point(|run| run.at < pos), ..Self::default() }
    }

    /// The next value inside the current run.
    #[inline]
    pub(super) fn in_run(&mut self) -> i64 {
        self.rest -= 1;
        self.value = self.value.wrapping_add(self.step);
        self.value
    }

    /// The first value of the next element, which must exist.
    #[inline]
    pub(super) fn enter(&mut self, lits: &[i64], runs: &[Run]) -> i64 {
        self.value = lits[self.pos];
        if let Some(run) = runs.get(self.run)
            && run.at == self.pos
        {
            self.step = run.step;
            self.rest = run.more;
            self.run += 1;
        }
        self.pos += 1;
        self.value
    }
}

/// A reader of a stream that never ends.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    parts: Parts<'a>,
    place: ElementCursor,
    /// Elements end here in the current stage (plain elements or copy).
    limit: usize,
    /// Values left in the current copy; without bound between copies.
    left: u64,
    /// Next copy to begin.
    next_copy: usize,
    /// Where the current copy wraps to.
    wrap: Option<ElementCursor>,
    /// The next of values that are no elements.
    small: &'a [u16],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(parts: Parts<'a>, small: &'a [u16]) -> Self {
        let limit = parts.copies.first().map_or(parts.lits.len(), |copy| copy.at);
        Self {
            parts,
            place: ElementCursor::default(),
            limit,
            left: u64::MAX,
            next_copy: 0,
            wrap: None,
            small,
        }
    }

    /// The next value; an empty stream yields 0.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it never ends, an iterator would have to say Some")]
    pub fn next(&mut self) -> i64 {
        if self.left == 0 {
            self.leave_copy();
        }
        if self.place.rest == 0 {
            return self.next_element();
        }
        self.left -= 1;
        self.place.in_run()
    }

    /// The next value and how often it comes in a row, as far as one run shows it; at most `max` (at least 1).
    pub fn next_run(&mut self, max: u64) -> (i64, u64) {
        let value = self.next();
        if self.place.rest == 0 || self.place.step != 0 {
            return (value, 1);
        }
        let more = self.place.rest.min(self.left).min(max.saturating_sub(1));
        self.place.rest -= more;
        self.left -= more;
        (value, more + 1)
    }

    /// How often what was read since an earlier state of this reader can be read again; `None` if it has come elsewhere, or
    /// not by going round.
    pub(super) fn again(&self, before: &Self) -> Option<u64> {
        let stage = |c: &Self| (c.limit, c.next_copy, c.wrap.is_some(), c.small.len());
        if stage(self) != stage(before) {
            return None;
        }
        // What is left of a stage is set anew only where another begins, or where the last element is entered.
        let read = before.left.checked_sub(self.left)?;
        let (now, then) = (self.place, before.place);
        if read == 0 {
            return (now == then).then_some(u64::MAX);
        }
        let copied = if self.wrap.is_some() { self.left / read } else { u64::MAX };
        if now == then {
            return self.wrap.is_some().then_some(copied);
        }
        let in_run = now.step == 0
            && ElementCursor { rest: 0, ..now } == ElementCursor { rest: 0, ..then }
            && then.rest.checked_sub(now.rest) == Some(read);
        in_run.then(|| copied.min(now.rest / read))
    }

    /// Reads on as if what was read since an earlier state were read so many times more; no more than [`Cursor::again`] says.
    pub(super) fn skip(&mut self, before: &Self, times: u64) {
        let values = (before.left - self.left) * times;
        if self.place.rest != before.place.rest {
            self.place.rest -= values;
        }
        self.left -= values;
    }

    fn next_element(&mut self) -> i64 {
        if self.place.pos == self.limit {
            if let Some(wrap) = self.wrap {
                self.place = wrap;
            } else if let Some(&copy) = self.parts.copies.get(self.next_copy) {
                self.begin_copy(copy);
            } else {
                return self.next_small();
            }
            if self.place.rest > 0 {
                self.left -= 1;
                return self.place.in_run();
            }
        }
        let value = self.place.enter(self.parts.lits, self.parts.runs);
        self.left -= 1;
        if self.wrap.is_none()
            && self.place.pos == self.parts.lits.len()
            && self.next_copy == self.parts.copies.len()
        {
            if self.place.rest == 0 {
                self.place.step = 0;
            }
            self.place.rest = u64::MAX;
            self.left = u64::MAX;
        }
        value
    }

    /// The next of values that are no elements, of which the last repeats.
    fn next_small(&mut self) -> i64 {
        let Some((value, rest)) = self.small.split_first() else { return 0 };
        if !rest.is_empty() {
            self.small = rest;
        }
        i64::from(*value)
    }

    fn begin_copy(&mut self, copy: Copied) {
        let place = ElementCursor::at_start(self.parts.lits, self.parts.runs, copy.start);
        self.place = place;
        self.wrap = Some(place);
        self.limit = copy.at;
        self.next_copy += 1;
        let open = self.next_copy == self.parts.copies.len() && copy.at == self.parts.lits.len();
        self.left = if open { u64::MAX } else { copy.n };
    }

    fn leave_copy(&mut self) {
        self.place = ElementCursor::before(self.parts.runs, self.limit);
        self.wrap = None;
        self.left = u64::MAX;
        self.limit = self.parts.copies.get(self.next_copy).map_or(self.parts.lits.len(), |copy| copy.at);
    }
}

/// The values pushed to a stream, in order.
#[derive(Debug, Clone)]
pub struct Values<'a> {
    cursor: Cursor<'a>,
    left: u64,
}

impl<'a> Values<'a> {
    pub(super) fn new(cursor: Cursor<'a>, left: u64) -> Self {
        Self { cursor, left }
    }
}

impl Iterator for Values<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        Some(self.cursor.next())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let exact = usize::try_from(self.left).ok();
        (exact.unwrap_or(usize::MAX), exact)
    }
}
