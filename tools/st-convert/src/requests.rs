//! Requests of all threads that are being read: one may complete what another of its rank has made.

use std::ops::Range;
use std::rc::Rc;

use st_match::communication::{Communication, Moved};
use st_match::standing::Standing;
use st_model::calls::roles::Rule;
use st_model::num::{Exact as _, narrow};

use crate::amounts::Amounts;
use crate::way::Way;

/// What is known of a part when its operation is made or begins.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) at: Standing,
    pub(crate) rule: Rule,
    pub(crate) root: Option<i64>,
    pub(crate) amounts: Option<Rc<Amounts>>,
}

/// Those of all threads, in the order of these.
pub(crate) struct Requests {
    all: Vec<Communication<Made>>,
    /// Of each thread: those of its rank.
    ranks: Vec<Range<usize>>,
}

/// A thread's, and those of the other threads of its rank.
pub(crate) struct Of<'s> {
    pub(crate) own: &'s mut Communication<Made>,
    pub(crate) others: Others<'s>,
}

/// Those of threads before and behind one.
pub(crate) struct Others<'s> {
    before: &'s mut [Communication<Made>],
    behind: &'s mut [Communication<Made>],
    /// Number of the first.
    first: u32,
}

/// A request that another thread of the rank has made.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) request: Moved<Made>,
    /// That thread, by number.
    pub(crate) by: u32,
    /// A further one has a request with this number.
    pub(crate) is_unsure: bool,
}

impl Requests {
    /// None yet, of threads of these ranks, which ascend.
    pub(crate) fn new(of: impl Iterator<Item = u32>, way: Way) -> Self {
        let of: Vec<u32> = of.collect();
        let mut ranks = Vec::with_capacity(of.len());
        for rank in of.chunk_by(|a, b| a == b) {
            let first = ranks.len();
            for at in first..first + rank.len() {
                // Who reads one thread after the other cannot say what another had under way.
                let in_time = matches!(way, Way::InTime | Way::ByRank);
                ranks.push(if in_time { first..first + rank.len() } else { at..at + 1 });
            }
        }
        Self { all: of.iter().map(|_| Communication::default()).collect(), ranks }
    }

    /// Those of a thread, by its number.
    pub(crate) fn of(&mut self, thread: u32) -> Of<'_> {
        let at = thread.to_usize();
        let Range { start, end } = self.ranks[at];
        let (before, rest) = self.all[start..end].split_at_mut(at - start);
        let (own, behind) = rest.split_at_mut(1);
        Of { own: &mut own[0], others: Others { before, behind, first: narrow(start) } }
    }
}

impl Others<'_> {
    /// Takes the live request with this number from the first thread that has one.
    pub(crate) fn take(&mut self, number: i64) -> Option<Found> {
        // The thread itself lies between them.
        let behind = self.first + narrow::<u32>(self.before.len()) + 1;
        let all = self.before.iter_mut().zip(self.first..).chain(self.behind.iter_mut().zip(behind..));
        let mut having = all.filter(|(of, _)| of.has(number));
        let (of, by) = having.next()?;
        let is_unsure = having.next().is_some();
        Some(Found { request: of.give_up(number)?, by, is_unsure })
    }
}
