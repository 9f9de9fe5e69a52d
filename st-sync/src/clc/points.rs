//! Where measured points come from.

/// The measured points of a graph's streams, each read from one end to the other as often as needed. Points of a stream must
/// not decrease. Of streams that other processes have there are none.
pub trait Points: Sync {
    /// The points of a stream.
    fn of(&self, stream: usize) -> Box<dyn Iterator<Item = i64> + Send + '_>;
}

impl Points for [Vec<i64>] {
    fn of(&self, stream: usize) -> Box<dyn Iterator<Item = i64> + Send + '_> {
        Box::new(self.get(stream).into_iter().flatten().copied())
    }
}

/// Points that are looked at at once.
const WINDOW: usize = 1024;

/// The points of a stream, a window at a time.
pub(super) struct Window<'a> {
    source: Box<dyn Iterator<Item = i64> + Send + 'a>,
    points: Vec<i64>,
    /// Number of the first point in the window.
    start: usize,
}

impl<'a> Window<'a> {
    pub(super) fn new(source: Box<dyn Iterator<Item = i64> + Send + 'a>) -> Self {
        let mut window = Self { source, points: Vec::new(), start: 0 };
        window.fill();
        window
    }

    fn fill(&mut self) {
        self.start += self.points.len();
        self.points.clear();
        self.points.extend(self.source.by_ref().take(WINDOW));
    }

    /// The points from the `at`-th on that are there at once: none after the last point. Earlier ones are forgotten.
    #[inline]
    pub(super) fn from(&mut self, at: usize) -> &[i64] {
        if at - self.start >= self.points.len() && !self.points.is_empty() {
            self.fill();
        }
        self.points.get(at - self.start..).unwrap_or(&[])
    }
}
