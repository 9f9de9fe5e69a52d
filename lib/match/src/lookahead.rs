//! Who sent what a wildcard receive got: known only when the receive completes, needed when it is posted.
//!
//! A second cursor over the same rank's events runs ahead of who asks until the receive in question has completed.
//! *Cost:* one more pass over the rank's calls; memory for the wildcard receives between the two cursors.
//!
//! Source: Wu, Mueller 2011 ("resolved" wildcards), section on deterministic replay: a live wildcard can take
//! another receive's message and hang the replay.

use std::collections::VecDeque;

use st_model::calls::roles::Start;
use st_model::event::{Completed, Events};
use st_model::project::Error;
use st_model::section::Section;

use crate::wildcards::{Wildcards, opened};

/// What a wildcard receive got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// One message (or, for a persistent receive, messages of one kind only).
    Message {
        /// Rank in the receive's communicator.
        source: i64,
        /// Tag.
        tag: i64,
    },
    /// It was cancelled, never completed, or got messages of several kinds: it has to stay a wildcard.
    Open,
}

/// The cursor that runs ahead.
#[derive(Debug)]
pub struct LookAhead<'a> {
    events: Events<'a>,
    wildcards: Wildcards,
    /// Wildcard receives that have not been asked for, in the order of the calls that post or make them.
    receives: VecDeque<Receive>,
    ended: bool,
}

#[derive(Debug)]
struct Receive {
    /// Position of the call that posts it, or makes it if it is persistent.
    call: u64,
    persistent: bool,
    done: bool,
    outcome: Option<Received>,
}

impl<'a> LookAhead<'a> {
    /// Runs ahead over a rank's thread from its beginning; `None` if the section does not hold it.
    #[must_use]
    pub fn new(section: &'a Section, thread: usize, rank: u32) -> Option<Self> {
        let events = section.events(thread, rank)?;
        Some(Self { events, wildcards: Wildcards::default(), receives: VecDeque::new(), ended: false })
    }

    /// What the wildcard receive got that this call posts or makes. Calls are asked for in ascending order; those that
    /// nobody asks for are passed over.
    ///
    /// # Errors
    ///
    /// If the trace is malformed.
    pub fn outcome(&mut self, call: u64) -> Result<Received, Error> {
        loop {
            while self.receives.front().is_some_and(|r| r.call < call) {
                self.receives.pop_front();
            }
            if self.ended || self.receives.front().is_some_and(|r| r.done || r.call > call) {
                break;
            }
            self.step()?;
        }
        let receive = self.receives.front().filter(|r| r.call == call);
        Ok(receive.and_then(|r| r.outcome).unwrap_or(Received::Open))
    }

    fn step(&mut self) -> Result<(), Error> {
        let Some(event) = self.events.next_event()? else {
            self.ended = true;
            return Ok(());
        };
        if let Some(start) = opened(&event) {
            let (call, persistent) = (event.index, start == Start::Persistent);
            self.receives.push_back(Receive { call, persistent, done: false, outcome: None });
        }
        let receives = &mut self.receives;
        self.wildcards.event(&event, |call, got| {
            let at = receives.binary_search_by_key(&call, |r| r.call);
            if let Some(receive) = at.ok().and_then(|at| receives.get_mut(at)) {
                receive.settle(got);
            }
        });
        Ok(())
    }
}

impl Receive {
    /// It got a message; nothing: its request is freed.
    fn settle(&mut self, got: Option<&Completed>) {
        self.done |= !self.persistent || got.is_none();
        let Some(got) = got else { return };
        let outcome = match (got.source, got.tag) {
            (Some(source), Some(tag)) if !got.cancelled => Received::Message { source: source.into(), tag },
            _ => Received::Open,
        };
        let differs = self.outcome.is_some_and(|before| before != outcome);
        self.outcome = Some(if differs { Received::Open } else { outcome });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_capture::record::{Options, RankRecorder};
    use st_model::calls::CallTable;
    use st_model::values::{ANY_SOURCE, ANY_TAG, CANCELLED, PROC_NULL};

    /// A trace of rank 0 with these calls, each from one site.
    fn section(calls: &[(&str, &[i64])]) -> Section {
        let mut recorder = RankRecorder::new(0, Options::default());
        let thread = recorder.open_thread(0);
        let site = recorder.sites.stack(Vec::new());
        for (name, words) in calls {
            let sym = recorder.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
            recorder.record(thread, sym, words, 0, 0);
        }
        recorder.finish("host")
    }

    /// What the first wildcard receives got.
    fn outcomes(calls: &[(&str, &[i64])], n: usize) -> Vec<Received> {
        let section = section(calls);
        let (mut events, mut posted) = (section.events(0, 0).unwrap(), Vec::new());
        while let Some(event) = events.next_event().unwrap() {
            posted.extend(opened(&event).map(|_| event.index));
        }
        let mut ahead = LookAhead::new(&section, 0, 0).unwrap();
        posted.into_iter().take(n).map(|call| ahead.outcome(call).unwrap()).collect()
    }

    // count type source tag comm request
    const ANY_0: (&str, &[i64]) = ("MPI_Irecv", &[1, 0, ANY_SOURCE, ANY_TAG, 0, 0]);
    const ANY_1: (&str, &[i64]) = ("MPI_Irecv", &[1, 0, ANY_SOURCE, 5, 0, 1]);
    const NAMED: (&str, &[i64]) = ("MPI_Irecv", &[1, 0, 3, 5, 0, 2]);

    #[test]
    fn receives_get_what_their_completion_says_in_whatever_order() {
        let calls: &[(&str, &[i64])] = &[
            ANY_0,
            ANY_1,
            NAMED,
            // n requests completed source tag bytes
            ("MPI_Waitany", &[3, 3, 0, 1, 2, 1, 1, 1, 7, 1, 5, 1, 8]),
            ("MPI_Wait", &[1, 2, 1, 0, 1, 3, 1, 5, 1, 8]),
            ("MPI_Wait", &[1, 0, 1, 0, 1, 2, 1, 9, 1, 8]),
            ANY_0,
        ];
        let message = |source, tag| Received::Message { source, tag };
        assert_eq!(outcomes(calls, 3), [message(2, 9), message(7, 5), Received::Open]);
    }

    #[test]
    fn receives_that_nobody_asks_for_are_passed_over() {
        let got = |source| [1, 0, 1, 0, 1, source, 1, 9, 1, 8];
        let (first, second) = (got(2), got(3));
        let section = section(&[ANY_0, ("MPI_Wait", &first), NAMED, ANY_0, ("MPI_Wait", &second)]);
        let mut ahead = LookAhead::new(&section, 0, 0).unwrap();
        assert_eq!(ahead.outcome(2), Ok(Received::Open));
        assert_eq!(ahead.outcome(3), Ok(Received::Message { source: 3, tag: 9 }));
        assert_eq!(ahead.outcome(4), Ok(Received::Open));
    }

    #[test]
    fn cancelled_and_freed_receives_stay_open() {
        let calls: &[(&str, &[i64])] = &[
            ANY_0,
            ("MPI_Cancel", &[0]),
            ("MPI_Wait", &[1, 0, 1, 0, 1, -9, 1, -9, 1, CANCELLED]),
            ANY_0,
            ("MPI_Request_free", &[0]),
            ANY_0,
            ("MPI_Wait", &[1, 0, 1, 0, 1, 4, 1, 6, 1, 8]),
        ];
        let got = outcomes(calls, 3);
        assert_eq!(got, [Received::Open, Received::Open, Received::Message { source: 4, tag: 6 }]);
    }

    #[test]
    fn a_persistent_receive_is_named_if_all_its_messages_agree() {
        let init: (&str, &[i64]) = ("MPI_Recv_init", &[1, 0, ANY_SOURCE, 5, 0, 0]);
        let wait: (&str, &[i64]) = ("MPI_Wait", &[1, 0, 1, 0, 1, 4, 1, 5, 1, 8]);
        let other: (&str, &[i64]) = ("MPI_Wait", &[1, 0, 1, 0, 1, 3, 1, 5, 1, 8]);
        let start: (&str, &[i64]) = ("MPI_Start", &[0]);
        let free: (&str, &[i64]) = ("MPI_Request_free", &[0]);
        let named = [Received::Message { source: 4, tag: 5 }];
        assert_eq!(outcomes(&[init, start, wait, start, wait, free, other], 1), named);
        assert_eq!(outcomes(&[init, start, wait, start, wait], 1), named);
        assert_eq!(outcomes(&[init, start, wait, start, other, free], 1), [Received::Open]);
        // Who waits for a request that is not active gets nothing.
        let nothing: (&str, &[i64]) = ("MPI_Wait", &[1, 0, 1, 0, 1, ANY_SOURCE, 1, ANY_TAG, 1, 0]);
        assert_eq!(outcomes(&[init, nothing, start, wait], 1), named);
    }

    #[test]
    fn what_comes_from_nobody_is_named() {
        let nobody: (&str, &[i64]) = ("MPI_Irecv", &[1, 0, PROC_NULL, ANY_TAG, 0, 0]);
        let wait: (&str, &[i64]) = ("MPI_Wait", &[1, 0, 1, 0, 1, 2, 1, 9, 1, 8]);
        assert_eq!(
            outcomes(&[nobody, ("MPI_Wait", &[1, 0, 1, 0, 1, PROC_NULL, 1, ANY_TAG, 1, 0]), ANY_0, wait], 1),
            [Received::Message { source: 2, tag: 9 }]
        );
    }
}
