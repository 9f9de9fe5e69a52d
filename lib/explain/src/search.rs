//! All threads of a trace in the order of their times.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use st_match::volume::Graphs;
use st_model::lead::lead;
use st_model::num::{Exact as _, narrow, saturate};
use st_model::project::Error;
use st_model::section::Section;

use crate::ahead::{Ahead, CALLS};
use crate::analysis::{Analysis, RankTotals};
use crate::cursor::{Come, Context, Cursor, Known};
use crate::meetings::Meetings;
use crate::order::Order;
use crate::pending_calls::Track;
use crate::predict::Steps;
use crate::reading::Groups;
use crate::shared::Shared;
use crate::timeline::{Sums, Timeline};
use crate::waits::At;

/// Who is told how many more calls have been read.
pub type Tell<'a> = &'a dyn Fn(u64);

/// Calls that are read before it is told.
const TOLD: u64 = 1 << 14;

/// Finds the wait states of a trace whose ranks have exact times. Threads without are left out.
///
/// *Cost:* O(words + calls · log threads) time; memory for what waits for its other end, and by places, ranks and pairs of
/// ranks, beside the sections.
///
/// # Errors
///
/// If a rank cannot be read back.
pub fn analyse(sections: &[Section], tell: Tell<'_>) -> Result<Analysis, Error> {
    Ok(search(sections, Shared::default(), tell)?.0)
}

/// The same, and keeps what causes are looked for in: 24 bytes per call and 32 per wait.
///
/// # Errors
///
/// If a rank cannot be read back.
pub fn analyse_causes(sections: &[Section], tell: Tell<'_>) -> Result<Analysis, Error> {
    let mut shared = Shared::default();
    shared.ledger.meetings = Some(Meetings::default());
    Ok(search(sections, shared, tell)?.0)
}

/// The same, and keeps each wait.
///
/// # Errors
///
/// If a rank cannot be read back.
pub fn analyse_each(sections: &[Section], tell: Tell<'_>) -> Result<Analysis, Error> {
    Ok(search(sections, Shared { each: Some(Vec::new()), ..Shared::default() }, tell)?.0)
}

/// The same, and keeps what causes are looked for in, too, and each wait and each message: 56 and 48 bytes.
///
/// # Errors
///
/// If a rank cannot be read back.
pub fn analyse_all(sections: &[Section], tell: Tell<'_>) -> Result<Analysis, Error> {
    let mut shared = Shared { each: Some(Vec::new()), ..Shared::default() };
    shared.ledger.meetings = Some(Meetings::default());
    shared.messages.keep_each();
    Ok(search(sections, shared, tell)?.0)
}

/// The same, and tells what happens to `steps`.
///
/// # Errors
///
/// If a rank cannot be read back.
pub(crate) fn analyse_steps(
    sections: &[Section],
    steps: Steps,
    tell: Tell<'_>,
) -> Result<(Analysis, Steps), Error> {
    let mut shared = Shared::default();
    shared.ledger.steps = steps;
    search(sections, shared, tell)
}

/// Number of the node of each rank of a section; of some ranks none is known.
fn nodes<'a>(
    section: &'a Section,
    known: &mut HashMap<&'a str, u32, FixedState>,
) -> HashMap<u32, u32, FixedState> {
    let mut all = HashMap::default();
    for (host, ranks) in &section.hosts {
        let next = narrow(known.len());
        let node = *known.entry(host).or_insert(next);
        all.extend(ranks.iter().map(|rank| (rank, node)));
    }
    all
}

fn search(sections: &[Section], mut shared: Shared, tell: Tell<'_>) -> Result<(Analysis, Steps), Error> {
    let mut hosts = HashMap::default();
    let graphs = Graphs::of(sections)?;
    let mut found = Analysis::default();
    let mut cursors = Vec::new();
    shared.groups = Groups::of(sections);
    shared.messages.with_ranks(shared.groups.ranks());
    let known = |section| Known {
        section,
        places: found.places.of(section).into(),
        nodes: nodes(section, &mut hosts),
    };
    let known: Vec<Known<'_>> = sections.iter().map(known).collect();
    found.nodes = known.iter().flat_map(|known| &known.nodes).map(|(rank, node)| (*rank, *node)).collect();
    // Ranks of clusters lie between each other.
    let mut ranks: Vec<(u32, usize)> = sections
        .iter()
        .enumerate()
        .flat_map(|(s, section)| section.ranks.iter().map(move |r| (r, s)))
        .collect();
    ranks.sort_unstable();
    for (rank, s) in ranks {
        let known = &known[s];
        let number = shared.groups.number(rank.into()).unwrap_or_default();
        let of_rank = known.section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank));
        let mut of_rank: Vec<usize> = of_rank.map(|(i, _)| i).collect();
        // The one that stands for the rank comes first.
        let lead = lead(known.section, rank);
        of_rank.sort_by_key(|i| lead.is_some_and(|lead| lead.thread != *i));
        for i in of_rank {
            let cursor = Cursor::new(known, i, rank, &graphs);
            let leads = lead.as_ref().filter(|lead| lead.thread == i);
            cursors.extend(cursor.map(|cursor| match leads {
                Some(lead) => cursor.leads(lead),
                None => cursor,
            }));
            if shared.ledger.tracks.len() < cursors.len() {
                found.lanes.push((rank, narrow(i)));
                shared.ledger.tracks.push(Track::of(rank, number));
                shared.ledger.steps.add_thread(known.nodes.get(&rank).copied().unwrap_or(u32::MAX));
            }
            if shared.ledger.meetings.is_some() {
                shared.timelines.resize_with(cursors.len(), || Timeline::new(rank));
            }
        }
    }
    let mut threads = Threads::of(cursors);
    let first = (0..narrow(threads.cursors.len())).map(|i| threads.read(i, &mut shared));
    let mut order = Order::of(first.collect::<Result<Vec<_>, _>>()?.into_iter());
    let (mut untold, mut turns) = (0, Vec::with_capacity(TURNS));
    while let Some(last) = threads.turns(&mut order, &mut turns) {
        untold += turns.len().to_u64();
        if untold >= TOLD {
            tell(std::mem::take(&mut untold));
        }
        shared.look(&threads.ahead, &turns);
        for i in turns.drain(..) {
            let ahead = &mut threads.ahead[i as usize];
            if let Some(call) = ahead.next_call() {
                shared.take_turn(&call, ahead);
                shared.settle(&mut found.waits);
            }
        }
        if threads.ahead[last as usize].is_empty() {
            order.go_on(last, threads.read(last, &mut shared)?);
        }
    }
    shared.operations.end(&mut shared.ledger);
    shared.messages.end(&mut shared.ledger);
    shared.ledger.end();
    shared.settle(&mut found.waits);
    found.finish(threads.cursors, &mut shared);
    found.each = shared.each.take().unwrap_or_default();
    let mut steps = std::mem::take(&mut shared.ledger.steps);
    steps.learn(&shared.ledger.doubts.sizes);
    found.keep(shared);
    Ok((found, steps))
}

/// Turns whose order is found before they are taken.
const TURNS: usize = 16;

/// All threads, by number.
struct Threads<'a> {
    cursors: Vec<Cursor<'a>>,
    ahead: Vec<Ahead>,
    /// When the calls are entered that have been read, and how many of these are to come. They stand apart from the calls: only they are
    /// needed to find the order of turns.
    enters: Vec<[i64; CALLS]>,
    left: Vec<u8>,
}

impl<'a> Threads<'a> {
    fn of(cursors: Vec<Cursor<'a>>) -> Self {
        let n = cursors.len();
        let mut ahead = Vec::new();
        ahead.resize_with(n, Ahead::default);
        Self { cursors, ahead, enters: vec![[0; CALLS]; n], left: vec![0; n] }
    }

    /// Reads the next calls of a thread. Returns when the first is entered; `None` if there is none.
    fn read(&mut self, number: u32, shared: &mut Shared) -> Result<Option<i64>, Error> {
        let i = number as usize;
        let Shared { groups, timelines, .. } = shared;
        let context = Context { groups, line: timelines.get_mut(i) };
        self.cursors[i].read_ahead(number, context, &mut self.ahead[i])?;
        // The last ones stand at the end.
        let n = self.ahead[i].enters().count();
        let places = &mut self.enters[i][CALLS - n..];
        places.iter_mut().zip(self.ahead[i].enters()).for_each(|(place, enter)| *place = enter);
        self.left[i] = narrow(n);
        Ok(self.next(number))
    }

    /// When the next call of a thread is entered, of those that have been read.
    fn next(&self, thread: u32) -> Option<i64> {
        let i = thread as usize;
        let left = usize::from(self.left[i]);
        (left > 0).then(|| self.enters[i][CALLS - left])
    }

    /// The threads whose turns come next, in this order; returns the last one, which may have to be read on. `None` if all are over.
    fn turns(&mut self, order: &mut Order, turns: &mut Vec<u32>) -> Option<u32> {
        while let Some(thread) = order.first().filter(|_| turns.len() < TURNS) {
            turns.push(thread);
            self.left[thread as usize] -= 1;
            match self.next(thread) {
                Some(time) => order.go_on(thread, Some(time)),
                None => break,
            }
        }
        turns.last().copied()
    }
}

impl Analysis {
    fn finish(&mut self, cursors: Vec<Cursor<'_>>, shared: &mut Shared) {
        let Shared { ledger, messages, operations, unfreed, .. } = shared;
        let ended: HashSet<u32> = cursors.iter().flat_map(|c| c.early()).collect();
        for (rank, place) in unfreed.left().filter(|(rank, _)| !ended.contains(rank)) {
            self.totals.entry(At { rank, place }).or_default().unfreed += 1;
        }
        self.unmatched.untimed_threads = cursors.iter().filter(|c| c.untimed).count().to_u64();
        for (cursor, track) in cursors.into_iter().zip(&ledger.tracks) {
            let Come { times, totals } = cursor.finish();
            for (place, t) in totals {
                self.totals.entry(At { rank: track.rank, place }).or_default().add(&t);
            }
            // The thread that stands for it comes first.
            if self.ranks.last().is_none_or(|last| last.rank != track.rank) {
                self.ranks.push(RankTotals { wait: track.waited, ..times });
            }
        }
        self.ranks.sort_by_key(|r| r.rank);
        self.ideal = saturate(ledger.steps.ideal().saturating_sub(self.begin()));
        let [sends, receives] = messages.unmatched();
        let unmatched = &mut self.unmatched;
        (unmatched.sends, unmatched.receives, unmatched.ambiguous) = (sends, receives, messages.unordered());
        unmatched.operations = operations.disagreements + operations.lacking();
        self.window = ledger.most();
    }
}

impl Analysis {
    /// Keeps what causes are looked for in.
    fn keep(&mut self, shared: Shared) {
        let Shared { mut timelines, ledger, mut messages, .. } = shared;
        self.messages = messages.take_each();
        let mut sums = Sums::new(self.places.len());
        timelines.iter_mut().for_each(|line| line.finish(&mut sums));
        if let Some(mut meetings) = ledger.meetings {
            meetings.settle(&mut timelines);
        }
        self.timelines = timelines;
    }
}
