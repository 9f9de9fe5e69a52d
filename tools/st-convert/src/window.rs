//! The part of the run that is written.

use st_model::columns::Column;
use st_model::num::rounded;

/// Calls that overlap this are written, ns since the trace's zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    pub(crate) from: i64,
    pub(crate) until: i64,
}

impl Window {
    /// All calls.
    pub(crate) const ALL: Self = Self { from: i64::MIN, until: i64::MAX };

    /// What lies between two times in seconds; `None` if there is nothing.
    pub(crate) fn between(from: Option<f64>, until: Option<f64>) -> Option<Self> {
        let ns = |seconds: f64| i64::try_from(rounded(seconds * 1e9)).ok();
        let from = from.and_then(ns).unwrap_or(Self::ALL.from);
        let until = until.and_then(ns).unwrap_or(Self::ALL.until);
        (from < until).then_some(Self { from, until })
    }

    pub(crate) fn is_all(&self) -> bool {
        *self == Self::ALL
    }

    /// Calls of a column that overlap it, of times since `zero`. *Cost:* that of finding two times.
    pub(crate) fn count(&self, column: &Column, zero: i64) -> u64 {
        let place = |time: i64| column.find(time.saturating_add(zero)).map_or(column.events(), |(at, _)| at);
        let first = if self.from == Self::ALL.from { 0 } else { place(self.from) };
        if self.until == Self::ALL.until {
            return column.events().saturating_sub(first);
        }
        // The call that a thread is in when the window ends is written, if it has begun by then.
        let last = column.find(self.until.saturating_add(zero));
        let end = last.map_or(column.events(), |(at, (enter, _))| {
            at.saturating_add(u64::from(enter.saturating_sub(zero) < self.until))
        });
        end.saturating_sub(first)
    }

    pub(crate) fn has(&self, (enter, exit): (i64, i64)) -> bool {
        enter < self.until && exit > self.from
    }
}
