//! All threads of a trace in the order of their times.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::rc::Rc;

use foldhash::fast::FixedState;

use st_match::communication::Communication;
use st_match::graph::{Epochs, Part, Topologies};
use st_match::leaks::{What, came_to_its_end, requests};
use st_match::standing::Standing;
use st_match::unfreed::Slots;
use st_match::volume::{Graphs, Volumes};
use st_model::calls::Kind;
use st_model::columns::Points;
use st_model::event::{Event, Events};
use st_model::num::{narrow, saturate};
use st_model::project::Error;
use st_model::section::Section;

use crate::analysis::{Analysis, PlaceTotals, RankTotals, Waited};
use crate::meetings::Meetings;
use crate::messages::Suspect;
use crate::pauses::lasting;
use crate::pending_calls::{Finished, Track, Visit};
use crate::predict::{Call, Does, RunStep, Steps};
use crate::reading::{Reading, Shared, finds_nothing, says_its_bytes, synchronise};
use crate::timeline::{Activity, Sums, Timeline};
use crate::waits::{At, Sum, Wait, WaitKind, Waits};

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
    shared.ranks = sections.iter().flat_map(|s| s.ranks.iter()).collect();
    shared.ranks.sort_unstable();
    shared.ranks.dedup();
    shared.messages.with_ranks(shared.ranks.len());
    let known = |section| Known {
        section,
        places: found.places.of(section).into(),
        objects: Slots::of(section),
        nodes: nodes(section, &mut hosts),
    };
    let known: Vec<Known<'_>> = sections.iter().map(known).collect();
    // Ranks of clusters lie between each other.
    let mut ranks: Vec<(u32, usize)> = sections
        .iter()
        .enumerate()
        .flat_map(|(s, section)| section.ranks.iter().map(move |r| (r, s)))
        .collect();
    ranks.sort_unstable();
    for (rank, s) in ranks {
        let known = &known[s];
        let number = shared.number(rank.into()).unwrap_or_default();
        for (i, _) in known.section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank)) {
            cursors.extend(Cursor::new(known, i, rank, &graphs));
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
    let mut next = BinaryHeap::new();
    for (i, cursor) in (0u32..).zip(&mut cursors) {
        next.extend(cursor.points.next().map(|t| Reverse((t, i))));
    }
    let mut untold = 0;
    while let Some(mut first) = next.peek_mut() {
        untold += 1;
        if untold == TOLD {
            tell(untold);
            untold = 0;
        }
        let Reverse((enter, i)) = *first;
        let cursor = &mut cursors[i as usize];
        let exit = cursor.points.next().unwrap_or(enter);
        let more = cursor.read(i, enter, exit, &mut shared)?;
        match cursor.points.next().filter(|_| more) {
            Some(t) => *first = Reverse((t, i)),
            None => {
                PeekMut::pop(first);
                cursor.untimed = more && !cursor.is_at_end()?;
                found.unmatched.untimed_threads += u64::from(cursor.untimed);
            }
        }
        shared.settle(&mut found.waits);
    }
    found.finish(cursors, &mut shared);
    found.each = shared.each.take().unwrap_or_default();
    let steps = std::mem::take(&mut shared.ledger.steps);
    found.keep(shared);
    Ok((found, steps))
}

/// What is found of a section before its threads are read.
struct Known<'a> {
    section: &'a Section,
    /// Number of the place of each symbol.
    places: Rc<[u32]>,
    objects: Slots,
    /// Number of the node of each rank, where it is known.
    nodes: HashMap<u32, u32, FixedState>,
}

/// One thread being read.
struct Cursor<'a> {
    section: &'a Section,
    events: Events<'a>,
    points: Points<'a>,
    places: Rc<[u32]>,
    communication: Communication<(Part, Standing)>,
    topologies: Topologies,
    epochs: Epochs,
    volumes: Volumes<'a>,
    objects: Slots,
    totals: Vec<PlaceTotals>,
    times: RankTotals,
    begun: bool,
    ended: bool,
    /// Its exact times end before it does.
    untimed: bool,
    last: i64,
}

impl Shared {
    /// Enters what has become known.
    fn settle(&mut self, waits: &mut Waits) {
        while let Some(number) = self.ledger.received.pop() {
            if let Some((rank, sent)) = self.ledger.sender(number) {
                let older = self.messages.older(rank, sent);
                older.iter().for_each(|older| self.messages.watch(older, number));
                self.ledger.set_older(number, older);
            }
        }
        let mut finished = std::mem::take(&mut self.ledger.finished);
        for Finished { visit, reason, older } in finished.drain(..) {
            let at = |thread: u32, place| At { rank: self.ledger.rank(thread), place };
            let until = reason.until().min(visit.exit);
            waits.violations += u64::from(reason.until() > visit.exit);
            let ns = saturate(until.saturating_sub(visit.enter));
            let (victim, culprit) =
                (at(visit.thread, visit.place), at(reason.cause.thread, reason.cause.place));
            let wait = Wait { kind: reason.kind, victim, culprit, ns };
            if ns == 0 {
                continue;
            }
            waits.add(&wait);
            let number = self.each.as_ref().map(|each| narrow(each.len()));
            let waited = Waited {
                rank: victim.rank,
                enter: visit.enter,
                ns,
                thread: visit.thread,
                for_rank: culprit.rank,
                kind: reason.kind,
                call: visit.call,
                place: victim.place,
                for_place: culprit.place,
            };
            self.each.iter_mut().for_each(|each| each.push(waited));
            self.ledger.tracks[visit.thread as usize].waited.add(Sum { count: 1, ns, longest: ns });
            if let Some(line) = self.timelines.get_mut(visit.thread as usize) {
                line.wait(visit.enter, until, reason.cause.thread, reason.cause.place);
            }
            if reason.kind == WaitKind::LateSender
                && visit.orders
                && let Some(older) = older.unwrap_or_else(|| {
                    let rank = self.ledger.tracks[visit.thread as usize].place;
                    self.messages.older(rank, reason.cause.at)
                })
            {
                let told = self.ledger.tracks[visit.thread as usize].told;
                let (thread, call) = (visit.thread, visit.call);
                let suspect = Suspect { wait: &wait, cause: &reason.cause, thread, call, number };
                self.messages.suspect(&older, suspect, told);
            }
        }
        // The lists keep their room: this is done after each call.
        self.ledger.finished = finished;
        let wrong = |same: bool| if same { WaitKind::WrongOrderSame } else { WaitKind::WrongOrderOther };
        for (wait, same, sum) in self.messages.proven.drain(..) {
            waits.rename(&wait, wrong(same), sum);
        }
        for (number, same) in self.messages.proven_each.drain(..) {
            let waited = self.each.as_mut().and_then(|each| each.get_mut(number as usize));
            waited.into_iter().for_each(|waited| waited.kind = wrong(same));
        }
    }
}

impl<'a> Cursor<'a> {
    fn new(known: &Known<'a>, thread: usize, rank: u32, graphs: &'a Graphs) -> Option<Self> {
        let section = known.section;
        let (_, column) = section.threads.get(thread)?.columns.iter().find(|(r, _)| *r == rank)?;
        Some(Self {
            section,
            events: section.events(thread, rank)?,
            points: column.points(),
            places: Rc::clone(&known.places),
            communication: Communication::default(),
            topologies: Topologies::default(),
            epochs: Epochs::default(),
            volumes: Volumes::new(section, rank, graphs),
            objects: known.objects.clone(),
            totals: vec![PlaceTotals::default(); section.symbols.len()],
            times: RankTotals { rank, ..RankTotals::default() },
            begun: false,
            ended: false,
            untimed: false,
            last: 0,
        })
    }

    /// Its rank, if that did not come to its end, or its times did not.
    fn early(&self) -> Option<u32> {
        let rank = self.times.rank;
        (self.untimed || !came_to_its_end(self.section, rank)).then_some(rank)
    }

    fn is_at_end(&mut self) -> Result<bool, Error> {
        Ok(self.events.next_event()?.is_none())
    }
}

impl Cursor<'_> {
    /// Reads the next call; `false` if there is none.
    fn read(&mut self, number: u32, enter: i64, exit: i64, shared: &mut Shared) -> Result<bool, Error> {
        let Some(event) = self.events.next_event()? else { return Ok(false) };
        let sym = event.sym as usize;
        let kind = event.row.map(|row| row.kind);
        let poll = event.row.is_some_and(|row| row.properties.poll);
        if kind == Some(Kind::Init) || !self.begun {
            let init = kind == Some(Kind::Init);
            (self.begun, self.last) = (true, enter);
            self.times.begin = if init { exit } else { enter };
            shared.ledger.steps.tell(RunStep::Begin(number, self.times.begin));
            if let Some(line) = shared.timelines.get_mut(number as usize) {
                let what = if init { Activity::Call } else { Activity::Computation };
                line.start(self.times.begin, self.places[sym], what);
            }
            if init {
                (self.last, self.times.end) = (exit, exit);
                return Ok(true);
            }
        }
        let pauses = shared.pauses.within(event.rank, self.last, enter);
        let paused = lasting(&pauses);
        let gap = saturate::<u64>(enter.saturating_sub(self.last)).saturating_sub(paused);
        shared.pauses.event(&event, enter, exit);
        let inside: u64 = saturate(exit.saturating_sub(enter));
        self.last = exit;
        let place = self.places.get(sym).copied().unwrap_or(u32::MAX);
        if !self.ended {
            let does = match kind {
                Some(Kind::Finalize) => Does::End,
                _ if poll && finds_nothing(&event) => Does::Poll,
                _ => Does::Work,
            };
            shared.ledger.steps.tell(RunStep::Call(Call { thread: number, place, enter, exit, does }));
        }
        let totals = &mut self.totals[sym];
        totals.calls += event.calls();
        totals.before = totals.before.saturating_add(gap);
        if let Some(line) = shared.timelines.get_mut(number as usize).filter(|_| !self.ended) {
            // The end of a run is the beginning of the last call.
            let end = if kind == Some(Kind::Finalize) { enter } else { exit };
            // What is done while recording is paused is no computation: it is taken for a part of the call that paused it.
            pauses.iter().for_each(|p| line.call(self.places[p.sym as usize], p.begin, p.end));
            line.call(self.places[sym], enter, end);
        }
        self.times.paused = self.times.paused.saturating_add(if self.ended { 0 } else { paused });
        if kind == Some(Kind::Finalize) {
            (self.ended, self.times.end) = (true, enter);
        } else if !self.ended {
            self.times.end = exit;
            self.times.mpi = self.times.mpi.saturating_add(inside);
        }
        // The run ends where it begins.
        if kind != Some(Kind::Finalize) {
            totals.time = totals.time.saturating_add(inside);
        }
        if poll && finds_nothing(&event) {
            totals.failed_tests += event.calls();
            totals.polling += inside;
        }
        let measured = says_its_bytes(event.action());
        let volume = measured.then(|| self.volumes.next_event(&event));
        let bytes = volume.map_or(0, |v| saturate(v.sent.bytes.saturating_add(v.received.bytes)));
        let visit = Visit {
            thread: number,
            place,
            enter,
            exit,
            waits: !poll,
            orders: orders(&event),
            call: event.index,
            bytes,
        };
        let (section, topologies) = (self.section, &mut self.topologies);
        let volumes = &mut self.volumes;
        let mut reading =
            Reading { shared, section, topologies, volumes, visit, call: None, measured, bytes };
        self.communication.event(&event, &mut reading);
        synchronise(&event, &mut self.communication, &mut self.epochs, &mut reading);
        totals.bytes = totals.bytes.saturating_add(reading.bytes);
        if let Some(call) = reading.call {
            shared.ledger.give(call, false, None);
        }
        shared.unfreed.event(&event, &self.objects, place);
        Ok(true)
    }
}

/// Whether a call completes all the requests that it names: what comes first of several is not waited for before the others.
fn orders(event: &Event<'_>) -> bool {
    let requests = event.requests();
    requests.len() < 2 || requests.iter().filter(|r| **r >= 0).count() <= event.completed().count()
}

impl Analysis {
    fn finish(&mut self, cursors: Vec<Cursor<'_>>, shared: &mut Shared) {
        let Shared { ledger, messages, operations, unfreed, .. } = shared;
        let ended: HashSet<u32> = cursors.iter().flat_map(|c| c.early()).collect();
        for (rank, place) in unfreed.left().filter(|(rank, _)| !ended.contains(rank)) {
            self.totals.entry(At { rank, place }).or_default().unfreed += 1;
        }
        for (cursor, track) in cursors.into_iter().zip(&ledger.tracks) {
            let rank = track.rank;
            let whole = cursor.early().is_none();
            let mut totals = cursor.totals;
            let left = requests(cursor.section, &cursor.communication);
            for (sym, _) in left.filter(|(_, what)| whole && *what == What::Request) {
                totals[sym as usize].leaked += 1;
            }
            for (place, t) in cursor.places.iter().zip(totals).filter(|(_, t)| t.calls > 0) {
                self.totals.entry(At { rank, place: *place }).or_default().add(&t);
            }
            // Its first thread comes first.
            if self.ranks.last().is_none_or(|last| last.rank != rank) {
                self.ranks.push(RankTotals { wait: track.waited, ..cursor.times });
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
