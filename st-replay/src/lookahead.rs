//! Who sent what a wildcard receive got: known only when the receive completes, needed when it is posted.
//!
//! A second projection of the same rank runs ahead of the replay until the receive in question has completed.
//! *Cost:* one more pass over the rank's calls; memory for the wildcard receives between the two cursors.
//!
//! Source: Wu, Mueller 2011 ("resolved" wildcards), section on deterministic replay: a live wildcard can take
//! another receive's message and hang the replay.

use st_model::calls::names;
use st_model::num::Exact;
use std::collections::{HashMap, VecDeque};

use st_model::calls::{CallTable, Meaning, Row};
use st_model::project::{Error, Projection};
use st_model::section::Section;
use st_model::values::{ANY_SOURCE, ANY_TAG, CANCELLED};

use crate::words::slot;

/// What a wildcard receive got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
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
    section: &'a Section,
    calls: Projection<'a>,
    words: Vec<i64>,
    /// Wildcard receives in the order of their creation; `None` while they are open.
    receives: VecDeque<Receive>,
    /// Number of receives taken out of the front.
    taken: u64,
    /// Request slot → number of the receive that holds it.
    open: HashMap<i64, u64>,
    ended: bool,
}

#[derive(Debug)]
struct Receive {
    persistent: bool,
    done: bool,
    outcome: Option<Outcome>,
}

/// Calls that post a receive and give its answer only on completion.
const POSTS: [&str; 4] =
    [names::MPI_Irecv, names::MPI_Recv_init, names::MPI_Isendrecv, names::MPI_Isendrecv_replace];

/// Whether a call posts a receive that names a wildcard and gives its answer only on completion.
#[must_use]
pub fn is_open_wildcard(name: &str, source: i64, tag: i64) -> bool {
    POSTS.contains(&name) && (source == ANY_SOURCE || tag == ANY_TAG)
}

impl<'a> LookAhead<'a> {
    /// Runs ahead over a projection of the section from its beginning.
    #[must_use]
    pub fn new(section: &'a Section, calls: Projection<'a>) -> Self {
        Self {
            section,
            calls,
            words: Vec::new(),
            receives: VecDeque::new(),
            taken: 0,
            open: HashMap::new(),
            ended: false,
        }
    }

    /// What the next wildcard receive (in order of posting) got.
    ///
    /// # Errors
    ///
    /// If the trace is malformed.
    pub fn next_outcome(&mut self) -> Result<Outcome, Error> {
        while !self.ended && self.receives.front().is_none_or(|r| !r.done) {
            self.step()?;
        }
        let outcome = self.receives.pop_front().and_then(|r| r.outcome);
        self.taken += 1;
        Ok(outcome.unwrap_or(Outcome::Open))
    }

    fn step(&mut self) -> Result<(), Error> {
        let mut words = std::mem::take(&mut self.words);
        let call = self.calls.next_call(&mut words)?;
        match call {
            None => self.ended = true,
            Some(sym) => {
                let symbol = self.section.symbols.get(sym as usize);
                if let Some(row) =
                    symbol.filter(|s| s.error == 0).and_then(|s| CallTable::builtin().get(s.call))
                {
                    self.see(row, &words);
                }
            }
        }
        self.words = words;
        Ok(())
    }

    fn see(&mut self, row: &Row, words: &[i64]) {
        if row.slot("completed").is_some() {
            self.complete(row, words);
            return;
        }
        match row.base() {
            name if POSTS.contains(&name) => {
                let value = |name| scalar(row, words, name);
                let tag = if row.slot("tag").is_some() { "tag" } else { "recvtag" };
                if !is_open_wildcard(row.base(), value("source"), value(tag)) {
                    return;
                }
                let persistent = row.base() == names::MPI_Recv_init;
                let number = self.taken + self.receives.len().to_u64();
                self.open.insert(value("request"), number);
                self.receives.push_back(Receive { persistent, done: false, outcome: None });
            }
            names::MPI_Request_free => {
                let number = self.open.remove(&scalar(row, words, "request"));
                if let Some(r) = number.and_then(|n| self.receive(n)) {
                    r.done = true;
                }
            }
            _ => {}
        }
    }

    fn complete(&mut self, row: &Row, words: &[i64]) {
        if self.open.is_empty() {
            return;
        }
        let list = |name| list(row, words, name);
        let requests = list("requests");
        let (sources, tags, bytes) = (list("source"), list("tag"), list("bytes"));
        for (i, &position) in list("completed").iter().enumerate() {
            let slot = usize::try_from(position).ok().and_then(|p| requests.get(p));
            let Some((&slot, &number)) = slot.and_then(|s| self.open.get_key_value(s)) else { continue };
            let at = |l: &[i64]| l.get(i).copied();
            let outcome = match (at(sources), at(tags), at(bytes)) {
                (Some(source), Some(tag), Some(b)) if source >= 0 && tag >= 0 && b != CANCELLED => {
                    Outcome::Message { source, tag }
                }
                _ => Outcome::Open,
            };
            let Some(r) = self.receive(number) else { continue };
            r.outcome = match r.outcome {
                Some(before) if before != outcome => Some(Outcome::Open),
                _ => Some(outcome),
            };
            if !r.persistent {
                r.done = true;
                self.open.remove(&slot);
            }
        }
    }

    fn receive(&mut self, number: u64) -> Option<&mut Receive> {
        self.receives.get_mut(usize::try_from(number.checked_sub(self.taken)?).ok()?)
    }
}

fn list<'w>(row: &Row, words: &'w [i64], name: &str) -> &'w [i64] {
    slot(row, words, |s| s.name == name && s.list)
}

fn scalar(row: &Row, words: &[i64], name: &str) -> i64 {
    slot(row, words, |s| s.name == name && !s.list && s.meaning != Meaning::Times)
        .first()
        .copied()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_capture::record::{Options, RankRecorder};
    use st_model::calls::CallTable;

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

    fn outcomes(calls: &[(&str, &[i64])], n: usize) -> Vec<Outcome> {
        let section = section(calls);
        let mut ahead = LookAhead::new(&section, section.project(0, 0).unwrap());
        (0..n).map(|_| ahead.next_outcome().unwrap()).collect()
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
        let message = |source, tag| Outcome::Message { source, tag };
        assert_eq!(outcomes(calls, 3), [message(2, 9), message(7, 5), Outcome::Open]);
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
        assert_eq!(got, [Outcome::Open, Outcome::Open, Outcome::Message { source: 4, tag: 6 }]);
    }

    #[test]
    fn a_persistent_receive_is_named_if_all_its_messages_agree() {
        let init: (&str, &[i64]) = ("MPI_Recv_init", &[1, 0, ANY_SOURCE, 5, 0, 0]);
        let wait: (&str, &[i64]) = ("MPI_Wait", &[1, 0, 1, 0, 1, 4, 1, 5, 1, 8]);
        let other: (&str, &[i64]) = ("MPI_Wait", &[1, 0, 1, 0, 1, 3, 1, 5, 1, 8]);
        let free: (&str, &[i64]) = ("MPI_Request_free", &[0]);
        let named = [Outcome::Message { source: 4, tag: 5 }];
        assert_eq!(outcomes(&[init, wait, wait, free, other], 1), named);
        assert_eq!(outcomes(&[init, wait, wait], 1), named);
        assert_eq!(outcomes(&[init, wait, other, free], 1), [Outcome::Open]);
    }
}
