//! How far passes over all points are, for people.

use std::sync::atomic::{AtomicUsize, Ordering};

use st_cli::Progress;
use st_match::graph::Graph;

/// Points that are told of at once.
const TOLD: u64 = 1 << 14;

/// Passes over the points of a process's streams, each of which is read once in a pass. How many there will be is not known
/// beforehand: what is to be done grows as one begins.
#[derive(Debug)]
pub(crate) struct Passes<'a> {
    shown: Option<&'a Progress>,
    /// Streams that are read in a pass, and their points.
    streams: usize,
    points: u64,
    opened: AtomicUsize,
}

impl<'a> Passes<'a> {
    pub(crate) fn new(shown: Option<&'a Progress>, graph: &Graph, mine: &[bool]) -> Self {
        let own = || graph.streams.iter().zip(mine).filter(|(_, mine)| **mine).map(|(stream, _)| stream);
        let (streams, points) = (own().count(), own().map(|stream| u64::from(stream.points)).sum());
        Self { shown, streams, points, opened: AtomicUsize::new(0) }
    }

    /// The points of a stream, which is read in the next pass; told of as they are read.
    pub(crate) fn of<I: Iterator<Item = i64>>(&self, points: I) -> Told<'_, I> {
        if let Some(shown) = self.shown
            && self.opened.fetch_add(1, Ordering::Relaxed).checked_rem(self.streams) == Some(0)
        {
            shown.expect(self.points);
        }
        Told { points, shown: self.shown, read: 0 }
    }
}

/// Points that are told of.
#[derive(Debug)]
pub(crate) struct Told<'a, I> {
    points: I,
    shown: Option<&'a Progress>,
    /// Since it was told last.
    read: u64,
}

impl<I> Told<'_, I> {
    fn tell(&mut self) {
        let read = std::mem::take(&mut self.read);
        self.shown.iter().for_each(|shown| shown.advance(read));
    }
}

impl<I: Iterator<Item = i64>> Iterator for Told<'_, I> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        let next = self.points.next();
        self.read += u64::from(next.is_some());
        if self.read >= TOLD {
            self.tell();
        }
        next
    }
}

impl<I> Drop for Told<'_, I> {
    fn drop(&mut self) {
        self.tell();
    }
}
