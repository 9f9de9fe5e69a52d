//! What a program that folds exact times keeps of them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use st_model::explanation::Explanation;
use st_model::num::Exact as _;
use st_model::section::Section;
use st_model::steps::Budget;

use crate::search::{Tell, analyse_causes};

/// Exact times that are held until all ranks have been read, as long as there are not too many; copies count together.
#[derive(Clone, Debug)]
pub struct Folding {
    most: u64,
    events: Arc<AtomicU64>,
}

/// Why nothing is kept of waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unkept {
    /// Nobody has asked.
    Unasked,
    /// There are more calls than so many.
    Many(u64),
    /// Not all calls have exact times.
    Times,
    /// Of so many threads only the first calls have exact times: the time budget was spent.
    Spent(u64),
    /// Calls are not those that ranks have made.
    Lossy,
    /// To go through the calls takes more steps than are allowed.
    Steps(st_model::steps::Exceeded),
    /// A rank cannot be read back.
    Rank(String),
}

impl Unkept {
    /// Whether another option would keep it.
    #[must_use]
    pub fn is_a_choice(&self) -> bool {
        matches!(self, Self::Many(_) | Self::Spent(_))
    }
}

impl fmt::Display for Unkept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing is kept of waits: ")?;
        match self {
            Self::Unasked => f.write_str("nobody has asked"),
            Self::Many(most) => {
                write!(f, "there are more than {most} calls with exact times (--waits always keeps them)")
            }
            Self::Times => f.write_str("not all calls of all ranks have exact times"),
            Self::Spent(threads) => write!(
                f,
                "exact times of {threads} threads end early, since --time-budget was spent (st-record --time-budget allows more)"
            ),
            Self::Lossy => f.write_str("parameters are not those that ranks have used"),
            Self::Steps(e) => e.fmt(f),
            Self::Rank(e) => f.write_str(e),
        }
    }
}

impl Folding {
    /// Of at most so many calls; 0 is none.
    #[must_use]
    pub fn new(most: u64) -> Self {
        Self { most, events: Arc::default() }
    }

    /// Whether exact times have to be held, of what has been counted and what may come.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.most > 0 && self.events() <= self.most
    }

    /// Counts the exact times of a section.
    pub fn count(&self, section: &Section) {
        let columns = section.threads.iter().flat_map(|t| &t.columns);
        let events = columns.map(|(_, column)| column.events()).fold(0, u64::saturating_add);
        self.events.fetch_add(events, Ordering::Relaxed);
    }

    /// How many have been counted.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Keeps what is told of sections that hold all ranks, of which so many calls were counted in all, or else what has been
    /// kept before. Returns why nothing is kept now, if somebody has asked.
    ///
    /// *Cost:* as [`analyse_causes`], and of the delays.
    pub fn keep(
        &self,
        kept: &mut Option<Explanation>,
        sections: &[Section],
        events: u64,
        budget: &Budget,
        tell: Tell<'_>,
    ) -> Option<Unkept> {
        match self.told(sections, events, budget, tell) {
            Ok(told) => *kept = Some(told),
            Err(why) => return Some(why).filter(|why| kept.is_none() && *why != Unkept::Unasked),
        }
        None
    }

    fn told(
        &self,
        sections: &[Section],
        events: u64,
        budget: &Budget,
        tell: Tell<'_>,
    ) -> Result<Explanation, Unkept> {
        let threads = || sections.iter().flat_map(|s| s.threads.iter().map(move |t| (s, t)));
        if self.most == 0 {
            return Err(Unkept::Unasked);
        }
        if events > self.most {
            return Err(Unkept::Many(self.most));
        }
        if threads().any(|(s, t)| t.lanes.voided != 0 || s.histograms().next().is_some()) {
            return Err(Unkept::Lossy);
        }
        let is_untimed = |t: &st_model::section::Thread| t.columns.len().to_u64() < t.ranks.len();
        if sections.is_empty() || threads().any(|(_, t)| is_untimed(t)) {
            return Err(Unkept::Times);
        }
        budget.spend_all(sections, None, 1).map_err(Unkept::Steps)?;
        let analysis = analyse_causes(sections, tell).map_err(|e| Unkept::Rank(e.to_string()))?;
        match analysis.unmatched.untimed_threads {
            0 => Ok(analysis.kept()),
            threads => Err(Unkept::Spent(threads)),
        }
    }
}
