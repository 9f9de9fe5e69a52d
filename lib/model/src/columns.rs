//! Time columns: the exact enter and exit time of every event, in execution order.
//!
//! Times are ns on the rank's clock. A column is two integer columns: the *gap* from the previous event's exit to the
//! enter, and the *duration* from enter to exit; both signed, since clocks may be corrected. They leave the recorder
//! in chunks, so that they stream to disk while the program runs. Where they may be a little wrong, they can be rounded:
//! gaps and durations then count units ([`Column::rounded`]).

use crate::num::{Exact, narrow};
use crate::varint;

/// Events per chunk.
pub const CHUNK_EVENTS: u32 = 16_384;

/// Times of consecutive events of one (rank, thread).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Position of the first event.
    pub first: u64,
    /// Exit time of the event before it (of the thread's start, for the first chunk).
    pub base: i64,
    /// Number of events.
    pub events: u32,
    /// What gaps and durations count, ns: 1, or what times were rounded to multiples of; they are wrong by at most half of it.
    pub unit: u32,
    /// Gaps, zigzag varints.
    pub gaps: Vec<u8>,
    /// Durations, zigzag varints.
    pub durations: Vec<u8>,
}

impl Chunk {
    /// (enter, exit) of the events in order; ends early at malformed bytes.
    pub fn times(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        let (mut gaps, mut durations) = (&self.gaps[..], &self.durations[..]);
        let (mut last, unit) = (self.base, i64::from(self.unit));
        (0..self.events).map_while(move |_| {
            let enter = last.wrapping_add(varint::get_i64(&mut gaps).ok()?.wrapping_mul(unit));
            let exit = enter.wrapping_add(varint::get_i64(&mut durations).ok()?.wrapping_mul(unit));
            last = exit;
            Some((enter, exit))
        })
    }
    fn rounded(self, unit: u32) -> Self {
        if self.unit != 1 || unit < 2 {
            return self;
        }
        let wide = i64::from(unit);
        // Halves go up. Nothing is lost at the ends of the range but the half unit that is not there.
        let units = |t: i64| t.saturating_add(wide / 2).div_euclid(wide);
        let mut last = units(self.base);
        let base = last.wrapping_mul(wide);
        let (mut gaps, mut durations) = (Vec::new(), Vec::new());
        for (enter, exit) in self.times() {
            let (enter, exit) = (units(enter), units(exit));
            varint::put_i64(&mut gaps, enter.wrapping_sub(last));
            varint::put_i64(&mut durations, exit.wrapping_sub(enter));
            last = exit;
        }
        Self { base, unit, gaps, durations, ..self }
    }
}

/// One comparison of a rank's clock with that of rank 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offset {
    /// When, on the rank's own clock, ns.
    pub local: i64,
    /// What to add to the rank's clock to have that of rank 0, ns.
    pub offset: i64,
    /// The offset is wrong by at most this much, ns.
    pub error: i64,
}

/// How a rank's clock was compared with that of rank 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Comparison {
    /// The comparisons, in order.
    pub points: Vec<Offset>,
    /// Shortest time of a message within the node that was met, ns; 0 if none was.
    pub near: i64,
    /// Shortest time of a message between nodes that was met, ns; 0 if none was.
    pub far: i64,
}

impl Comparison {
    /// Whether nothing was compared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// All times of one (rank, thread): chunks in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Column {
    /// The chunks, contiguous from event 0.
    pub chunks: Vec<Chunk>,
    /// Comparisons of the rank's clock, on its first thread.
    pub clock: Comparison,
}

impl Column {
    /// When its thread began.
    #[must_use]
    pub fn start(&self) -> Option<i64> {
        self.chunks.first().map(|chunk| chunk.base)
    }
    /// Number of events that have times. Events after a spent time budget have none.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.chunks.iter().map(|c| u64::from(c.events)).sum()
    }
    /// (enter, exit) of the events in order; ends early at malformed bytes.
    pub fn times(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.chunks.iter().flat_map(Chunk::times)
    }
    /// Times from the event at a position on. *Cost:* that of reading part of a chunk.
    pub fn times_from(&self, index: u64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let at = self.chunks.partition_point(|c| c.first.saturating_add(c.events.into()) <= index);
        let chunks = self.chunks.get(at..).unwrap_or(&[]);
        let before = index.saturating_sub(chunks.first().map_or(0, |c| c.first));
        chunks.iter().flat_map(Chunk::times).skip(before.to_usize())
    }
    /// The first event that ends after a time, by its position, with its times; `None` if all have ended. *Cost:* the logarithm
    /// of the number of chunks, and that of reading one, where no event ends before the one before it.
    #[must_use]
    pub fn find(&self, time: i64) -> Option<(u64, (i64, i64))> {
        let after = self.chunks.partition_point(|c| c.base <= time);
        let chunks = self.chunks.get(after.saturating_sub(1)..).unwrap_or(&[]);
        let find = |c: &Chunk| {
            let (i, times) = (0u64..).zip(c.times()).find(|(_, (_, exit))| *exit > time)?;
            Some((c.first.saturating_add(i), times))
        };
        chunks.iter().find_map(find)
    }
    /// The same times one by one: enter and exit of the first event, of the second, and so on.
    #[must_use]
    pub fn points(&self) -> Points<'_> {
        Points { chunks: self.chunks.iter(), ..Points::default() }
    }
    /// The times rounded to multiples of so many ns: each is wrong by at most half of it, and none comes before one that it
    /// did not come before. Times that are rounded already stay as they are.
    #[must_use]
    pub fn rounded(self, unit: u32) -> Self {
        Self { chunks: self.chunks.into_iter().map(|c| c.rounded(unit)).collect(), ..self }
    }
    /// What times are rounded to, ns: the most of all chunks; 1 if all are exact.
    #[must_use]
    pub fn unit(&self) -> u32 {
        self.chunks.iter().map(|c| c.unit).max().unwrap_or(1)
    }
}

/// Times of a column, one by one. What [`Column::times`] gives, without a layer of iterators for each.
#[derive(Clone, Debug, Default)]
pub struct Points<'a> {
    chunks: std::slice::Iter<'a, Chunk>,
    gaps: &'a [u8],
    durations: &'a [u8],
    /// Events of the chunk that are still to come.
    left: u32,
    unit: i64,
    last: i64,
    /// The event was entered, and this is when it is left.
    exit: Option<i64>,
}

impl Iterator for Points<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        if let Some(exit) = self.exit.take() {
            return Some(exit);
        }
        loop {
            if self.left > 0 {
                self.left -= 1;
                let event = varint::get_i64(&mut self.gaps)
                    .and_then(|g| Ok((g, varint::get_i64(&mut self.durations)?)));
                if let Ok((gap, duration)) = event {
                    let enter = self.last.wrapping_add(gap.wrapping_mul(self.unit));
                    self.last = enter.wrapping_add(duration.wrapping_mul(self.unit));
                    self.exit = Some(self.last);
                    return Some(enter);
                }
            }
            let chunk = self.chunks.next()?;
            (self.gaps, self.durations) = (&chunk.gaps, &chunk.durations);
            (self.left, self.unit, self.last) = (chunk.events, i64::from(chunk.unit), chunk.base);
        }
    }
}

/// Events that wait to be written at most: many at once cost a fraction, since no branch depends on each one's length.
const WAITING: usize = 64;

/// Collects times into chunks.
#[derive(Clone, Debug)]
pub struct ColumnWriter {
    open: Chunk,
    /// Exit of the last event that is written.
    last: i64,
    /// Enter and exit of those that are not.
    waiting: Vec<(i64, i64)>,
}

impl ColumnWriter {
    /// Starts at a time.
    #[must_use]
    pub fn new(start: i64) -> Self {
        Self::resume(0, start)
    }
    /// Goes on after `events` events, the last of which ended at `last`.
    #[must_use]
    pub fn resume(events: u64, last: i64) -> Self {
        Self { open: chunk(events, last), last, waiting: Vec::new() }
    }
    /// Adds an event; a full chunk is handed out.
    #[inline]
    pub fn push(&mut self, enter: i64, exit: i64) -> Option<Chunk> {
        self.waiting.push((enter, exit));
        // No more wait than the chunk has room for.
        let events = self.open.events + narrow::<u32>(self.waiting.len());
        if self.waiting.len() < WAITING && events < CHUNK_EVENTS {
            return None;
        }
        self.settle();
        (events >= CHUNK_EVENTS).then(|| self.cut())
    }
    /// Adds events, no more than a chunk has; a full chunk is handed out. *Cost:* a fraction of [`ColumnWriter::push`]'s each.
    pub fn push_all(&mut self, events: &[(i64, i64)]) -> Option<Chunk> {
        self.settle();
        let room = (CHUNK_EVENTS - self.open.events).to_usize();
        let (fit, rest) = events.split_at(events.len().min(room));
        self.put(fit);
        let full = (fit.len() == room).then(|| self.cut());
        self.put(rest);
        full
    }
    /// Writes the events that wait.
    #[inline(never)]
    fn settle(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        self.put(&waiting);
        waiting.clear();
        self.waiting = waiting;
    }
    fn put(&mut self, events: &[(i64, i64)]) {
        let before = std::iter::once(self.last).chain(events.iter().map(|e| e.1));
        varint::put_all(
            &mut self.open.gaps,
            events.iter().zip(before).map(|(e, last)| e.0.wrapping_sub(last)),
        );
        varint::put_all(&mut self.open.durations, events.iter().map(|e| e.1.wrapping_sub(e.0)));
        self.last = events.last().map_or(self.last, |e| e.1);
        self.open.events += narrow::<u32>(events.len());
    }
    /// The open chunk, if it has events.
    pub fn flush(&mut self) -> Option<Chunk> {
        self.settle();
        (self.open.events > 0).then(|| self.cut())
    }
    fn cut(&mut self) -> Chunk {
        let next = chunk(self.open.first + u64::from(self.open.events), self.last);
        std::mem::replace(&mut self.open, next)
    }
}

/// ns from `a` to `b`, 0 if the clock went back.
#[must_use]
#[inline]
pub fn duration(a: i64, b: i64) -> u64 {
    if b > a { b.wrapping_sub(a).cast_unsigned() } else { 0 }
}

fn chunk(first: u64, base: i64) -> Chunk {
    Chunk { first, base, events: 0, unit: 1, gaps: Vec::new(), durations: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn times_come_back(v in proptest::collection::vec((any::<i64>(), any::<i64>()), 0..50), start: i64) {
            let mut w = ColumnWriter::new(start);
            let mut c = Column::default();
            for &(a, b) in &v {
                c.chunks.extend(w.push(a, b));
            }
            c.chunks.extend(w.flush());
            prop_assert_eq!(c.times().collect::<Vec<_>>(), v);
            prop_assert_eq!(c.points().collect::<Vec<_>>(), c.times().flat_map(|(a, b)| [a, b]).collect::<Vec<_>>());
            // Malformed bytes end a chunk for both alike.
            let shorten = |chunk: &mut Chunk| chunk.durations.truncate(chunk.durations.len() / 2);
            c.chunks.iter_mut().for_each(shorten);
            c.chunks.extend_from_within(..);
            prop_assert_eq!(c.points().collect::<Vec<_>>(), c.times().flat_map(|(a, b)| [a, b]).collect::<Vec<_>>());
        }

        #[test]
        fn times_may_be_pushed_at_once(
            begun in CHUNK_EVENTS - 100..CHUNK_EVENTS,
            parts in proptest::collection::vec(proptest::collection::vec((any::<i64>(), any::<i64>()), 0..50), 0..4),
        ) {
            let mut singly = ColumnWriter::new(7);
            let begin: Vec<_> = (0..begun).map(|i| (i64::from(10 * i), i64::from(10 * i + 3))).collect();
            begin.iter().for_each(|e| assert_eq!(singly.push(e.0, e.1), None));
            let mut at_once = ColumnWriter::new(7);
            prop_assert_eq!(at_once.push_all(&begin), None);
            for part in &parts {
                let full: Vec<_> = part.iter().filter_map(|e| singly.push(e.0, e.1)).collect();
                prop_assert_eq!(at_once.push_all(part).into_iter().collect::<Vec<_>>(), full);
            }
            prop_assert_eq!(at_once.flush(), singly.flush());
        }

        #[test]
        fn rounded_times_are_wrong_by_half_a_unit(
            v in proptest::collection::vec((-1_i64 << 60..1 << 60, 0..5_000_i64), 0..50),
            unit in prop_oneof![1..9_u32, any::<u32>()],
        ) {
            let mut w = ColumnWriter::new(-7);
            v.iter().for_each(|&(enter, took)| drop(w.push(enter, enter + took)));
            let exact = Column { chunks: w.flush().into_iter().collect(), ..Column::default() };
            let rounded = exact.clone().rounded(unit);
            prop_assert_eq!(rounded.times().count(), v.len());
            for (a, b) in exact.times().zip(rounded.times()) {
                for (a, b) in [(a.0, b.0), (a.1, b.1)] {
                    prop_assert!(2 * a.abs_diff(b) <= unit.into(), "{a} {b} {unit}");
                    prop_assert!(unit < 2 || b % i64::from(unit) == 0);
                }
                prop_assert!(b.0 <= b.1);
            }
            if unit > 1 && !v.is_empty() {
                prop_assert_eq!((exact.unit(), rounded.unit()), (1, unit));
                prop_assert_eq!(rounded.clone().rounded(3), rounded);
            }
        }
    }
}
