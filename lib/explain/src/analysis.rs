//! All threads of a trace in the order of their times.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use foldhash::fast::FixedState;
use st_match::Channel;
use st_match::communication::{Communication, End, Listener};
use st_match::graph::{COMPLETED, Epochs, POSTED, Part, Topologies, Turn};
use st_match::leaks::{What, came_to_its_end, requests};
use st_match::standing::{Scope, Standing, standing};
use st_match::volume::{Graphs, Volumes};
use st_model::calls::Kind as CallKind;
use st_model::calls::roles::{Action, Rule, Start};
use st_model::calls::words::slot;
use st_model::columns::Points;
use st_model::event::{Completed, Event, Events};
use st_model::num::{Exact as _, narrow, saturate};
use st_model::objects::Name;
use st_model::project::Error;
use st_model::ranks::RankSeq;
use st_model::section::{Section, Tables};

use crate::efficiency::Efficiency;
use crate::ledger::{Finished, Ledger, Track, Visit};
use crate::meetings::Meetings;
use crate::messages::Messages;
use crate::operations::Operations;
use crate::places::Places;
use crate::timeline::{Activity, Sums, Timeline};
use crate::waits::{At, Kind, Sum, Wait, Waits};

/// What a rank's first thread did between the end of `MPI_Init` and the start of `MPI_Finalize`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RankTotals {
    /// World rank.
    pub rank: u32,
    /// From the end of `MPI_Init`, or of the trace's beginning, ns.
    pub begin: i64,
    /// To the start of `MPI_Finalize`, or the last call's end, ns.
    pub end: i64,
    /// Time in MPI, ns.
    pub mpi: u64,
    /// The part of it that is wait states, of all threads, ns.
    pub wait: Sum,
}

impl RankTotals {
    /// The whole time, ns.
    #[must_use]
    pub fn whole(&self) -> u64 {
        saturate(self.end.saturating_sub(self.begin))
    }

    /// Time outside of MPI, ns.
    #[must_use]
    pub fn computation(&self) -> u64 {
        self.whole().saturating_sub(self.mpi)
    }
}

/// What a rank did at a place.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PlaceTotals {
    /// Calls, polls counted one by one.
    pub calls: u64,
    /// Time in them, ns.
    pub time: u64,
    /// Time outside of MPI right before them, ns.
    pub before: u64,
    /// Tests among them that completed nothing.
    pub failed_tests: u64,
    /// Time in these and between them, ns.
    pub polling: u64,
    /// Bytes sent and received, of messages where they complete.
    pub bytes: u64,
    /// Requests made here that nothing has completed when the rank ended.
    pub leaked: u64,
}

/// What could not be matched; no wait is known of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Unmatched {
    /// Sends without receive.
    pub sends: u64,
    /// Receives without send.
    pub receives: u64,
    /// Messages whose order is not known: several threads of a rank use their channel.
    pub ambiguous: u64,
    /// Collective operations that lack a member, or that members disagree on.
    pub operations: u64,
    /// Threads whose exact times end before they do.
    pub untimed_threads: u64,
}

/// What is found in a trace.
#[derive(Clone, Default, Debug)]
pub struct Analysis {
    /// Call sites.
    pub places: Places,
    /// Wait states.
    pub waits: Waits,
    /// Ranks, ascending.
    pub ranks: Vec<RankTotals>,
    /// What each rank did at each place.
    pub totals: HashMap<At, PlaceTotals, FixedState>,
    /// Time on an ideal network, ns.
    pub ideal: u64,
    /// What is left out.
    pub unmatched: Unmatched,
    /// Calls that waited to hear of their other ends at a time, at most: what memory depends on.
    pub window: usize,
    /// What each thread does when, in the order of ranks, if causes are looked for.
    pub(crate) timelines: Vec<Timeline>,
    /// Each wait of [`analyse_each`], in no particular order.
    pub each: Vec<Waited>,
}

/// A wait by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Waited {
    /// World rank.
    pub rank: u32,
    /// When the call in which it is was entered.
    pub enter: i64,
    /// How long it is, ns.
    pub ns: u64,
}

impl Analysis {
    /// From the first rank's beginning to the last rank's end, ns.
    #[must_use]
    pub fn run(&self) -> u64 {
        let first = self.ranks.iter().map(|r| r.begin).min().unwrap_or(0);
        let last = self.ranks.iter().map(|r| r.end).max().unwrap_or(0);
        saturate(last.saturating_sub(first))
    }

    /// What the run time is made of.
    #[must_use]
    pub fn efficiency(&self) -> Efficiency {
        let sum: u64 = self.ranks.iter().map(RankTotals::computation).sum();
        let mean = sum / self.ranks.len().to_u64().max(1);
        let longest = self.ranks.iter().map(RankTotals::computation).max().unwrap_or(0);
        Efficiency { run: self.run(), ideal: self.ideal, mean, longest }
    }
}

/// One thread being read.
struct Cursor<'a> {
    section: &'a Section,
    events: Events<'a>,
    points: Points<'a>,
    places: Vec<u32>,
    communication: Communication<(Part, Standing)>,
    topologies: Topologies,
    epochs: Epochs,
    volumes: Volumes<'a>,
    totals: Vec<PlaceTotals>,
    times: RankTotals,
    begun: bool,
    ended: bool,
    last: i64,
}

/// All that threads share.
#[derive(Default)]
struct Shared {
    groups: Vec<[RankSeq; 2]>,
    names: HashMap<Name, u32, FixedState>,
    ledger: Ledger,
    messages: Messages,
    operations: Operations,
    /// By thread and window: posts that its epoch waits for.
    accessed: HashMap<(u32, u32), Vec<u32>, FixedState>,
    /// None unless causes are looked for.
    timelines: Vec<Timeline>,
    /// Waits one by one, if they are asked for.
    each: Option<Vec<Waited>>,
}

/// A call that is being read.
struct Reading<'s, 'a> {
    shared: &'s mut Shared,
    section: &'a Section,
    topologies: &'s mut Topologies,
    visit: Visit,
    call: Option<u64>,
    /// The call's bytes are known from its own words.
    measured: bool,
    bytes: u64,
}

impl Reading<'_, '_> {
    /// The call's number, as one that completes something.
    fn number(&mut self) -> u64 {
        let Self { shared, visit, call, .. } = self;
        *call.get_or_insert_with(|| shared.ledger.open(*visit))
    }

    /// A message of so many bytes is complete.
    fn carry(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(if self.measured { 0 } else { bytes });
    }

    fn barrier(&mut self, at: Option<Standing>) {
        let Some(at) = at.filter(|at| at.members > 1) else { return };
        let part = Part { sends: true, receives: true, ..Part::internal(at, Rule::Barrier) };
        self.take_part(part, at, true);
    }

    fn take_part(&mut self, part: Part, at: Standing, done: bool) -> usize {
        let call = done.then(|| self.number());
        let of = at.members.to_usize();
        self.shared.operations.join(&self.visit, part, of, call, &mut self.shared.ledger).to_usize()
    }
}

impl Listener for Reading<'_, '_> {
    type Part = (Part, Standing);

    fn standing(&mut self, event: &Event<'_>, scope: Scope) -> Option<Standing> {
        let Shared { groups, names, .. } = self.shared;
        standing(self.section, event.rank, scope, |met| {
            Some(*names.entry(met.name).or_insert_with(|| {
                groups.push(met.sides.map(Clone::clone));
                narrow(groups.len() - 1)
            }))
        })
    }

    fn bytes(&mut self, event: &Event<'_>, count: i64, datatype: i64) -> i64 {
        let found = Tables::find(&event.section().tables.types, datatype, event.rank);
        found.map_or(-1, |t| t.content.size.saturating_mul(count))
    }

    fn send(&mut self, _: &Event<'_>, end: &End, done: bool) -> usize {
        let call = done.then(|| self.number());
        if done {
            self.carry(saturate(end.bytes));
        }
        let Shared { groups, messages, ledger, .. } = self.shared;
        let side = usize::from(end.at.other());
        let to = groups.get(end.at.group as usize).and_then(|g| g[side].get(end.peer.into()));
        let to = to.and_then(|rank| u32::try_from(rank).ok());
        messages.send(&self.visit, end, to, call, ledger).to_usize()
    }

    fn sent(&mut self, _: &Event<'_>, number: usize, end: &End, cancelled: bool) {
        let call = self.number();
        self.carry(saturate(end.bytes));
        self.shared.messages.sent(narrow(number), call, cancelled, &mut self.shared.ledger);
    }

    fn post(&mut self, event: &Event<'_>, end: &End, done: bool) -> usize {
        let call = done.then(|| self.number());
        let found_by = (event.action() == Action::Match).then(|| self.number());
        let Shared { messages, ledger, .. } = self.shared;
        messages.post(&self.visit, end, (call, found_by), ledger).to_usize()
    }

    fn received(&mut self, _: &Event<'_>, number: usize, got: &Completed) {
        let call = self.number();
        self.carry(got.bytes.unwrap_or(0));
        self.shared.messages.received(narrow(number), call, got, &mut self.shared.ledger);
    }

    fn forget(&mut self, number: usize) {
        self.shared.messages.forget(narrow(number));
    }

    fn part(&mut self, event: &Event<'_>, at: Standing, rule: Rule) -> Self::Part {
        let part = Part::of(event, at, rule, self.topologies);
        (part.unwrap_or_else(|| Part::internal(at, rule)), at)
    }

    fn join(
        &mut self,
        _: &Event<'_>,
        (part, at): Self::Part,
        persistent: Option<(u32, u32)>,
        done: bool,
    ) -> usize {
        self.take_part(Part { persistent, ..part }, at, done)
    }

    fn leave(&mut self, _: &Event<'_>, number: usize) {
        let call = self.number();
        self.shared.operations.leave(narrow(number), call, &mut self.shared.ledger);
    }

    fn unknown(&mut self, _: &Event<'_>) {}
}

/// Finds the wait states of a trace whose ranks have exact times. Threads without are left out.
///
/// *Cost:* O(words + calls · log threads) time; memory for what waits for its other end, and by places, ranks and pairs of
/// ranks, beside the sections.
///
/// # Errors
///
/// If a rank cannot be read back.
pub fn analyse(sections: &[Section]) -> Result<Analysis, Error> {
    search(sections, Shared::default())
}

/// The same, and keeps what causes are looked for in: 24 bytes per call and 32 per wait.
///
/// # Errors
///
/// If a rank cannot be read back.
pub fn analyse_causes(sections: &[Section]) -> Result<Analysis, Error> {
    let mut shared = Shared::default();
    shared.ledger.meetings = Some(Meetings::default());
    search(sections, shared)
}

/// The same, and keeps each wait.
///
/// # Errors
///
/// If a rank cannot be read back.
pub fn analyse_each(sections: &[Section]) -> Result<Analysis, Error> {
    search(sections, Shared { each: Some(Vec::new()), ..Shared::default() })
}

fn search(sections: &[Section], mut shared: Shared) -> Result<Analysis, Error> {
    let graphs = Graphs::of(sections)?;
    let mut found = Analysis::default();
    let mut cursors = Vec::new();
    for section in sections {
        let places = found.places.of(section);
        for rank in section.ranks.iter() {
            for (i, _) in section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank)) {
                cursors.extend(Cursor::new(section, (rank, i), &places, &graphs));
                shared.ledger.tracks.resize_with(cursors.len(), || Track::of(rank));
                if shared.ledger.meetings.is_some() {
                    shared.timelines.resize_with(cursors.len(), || Timeline::new(rank));
                }
            }
        }
    }
    let mut next = BinaryHeap::new();
    for (i, cursor) in (0u32..).zip(&mut cursors) {
        next.extend(cursor.points.next().map(|t| Reverse((t, i))));
    }
    while let Some(Reverse((enter, i))) = next.pop() {
        let cursor = &mut cursors[i as usize];
        let exit = cursor.points.next().unwrap_or(enter);
        if cursor.read(i, (enter, exit), &mut shared)? {
            match cursor.points.next() {
                Some(t) => next.push(Reverse((t, i))),
                None => found.unmatched.untimed_threads += u64::from(!cursor.is_at_end()?),
            }
        }
        shared.settle(&mut found.waits);
    }
    found.finish(cursors, &shared);
    found.each = shared.each.take().unwrap_or_default();
    found.keep(shared);
    Ok(found)
}

impl Shared {
    /// Enters what has become known.
    fn settle(&mut self, waits: &mut Waits) {
        for number in std::mem::take(&mut self.ledger.received) {
            if let Some((rank, sent)) = self.ledger.sender(number) {
                self.ledger.set_older(number, self.messages.older(rank, sent));
            }
        }
        for Finished { visit, reason, older } in std::mem::take(&mut self.ledger.finished) {
            let at = |thread: u32, place| At { rank: self.ledger.rank(thread), place };
            let until = reason.until.min(visit.exit);
            waits.violations += u64::from(reason.until > visit.exit);
            let ns = saturate(until.saturating_sub(visit.enter));
            let (victim, culprit) =
                (at(visit.thread, visit.place), at(reason.cause.thread, reason.cause.place));
            let wait = Wait { kind: reason.kind, victim, culprit, ns };
            if ns == 0 {
                continue;
            }
            waits.add(&wait);
            let waited = Waited { rank: victim.rank, enter: visit.enter, ns };
            self.each.iter_mut().for_each(|each| each.push(waited));
            self.ledger.tracks[visit.thread as usize].waited.add(Sum { count: 1, ns, longest: ns });
            if let Some(line) = self.timelines.get_mut(visit.thread as usize) {
                line.wait(visit.enter, until, (reason.cause.thread, reason.cause.place));
            }
            if reason.kind == Kind::LateSender
                && let Some(older) =
                    older.unwrap_or_else(|| self.messages.older(victim.rank, reason.cause.at))
            {
                let told = self.ledger.tracks[visit.thread as usize].told;
                self.messages.suspect(&older, &reason.cause, (&wait, visit.call), told);
            }
        }
        for (wait, same, sum) in std::mem::take(&mut self.messages.proven) {
            waits.rename(&wait, if same { Kind::WrongOrderSame } else { Kind::WrongOrderOther }, sum);
        }
    }
}

impl<'a> Cursor<'a> {
    fn new(
        section: &'a Section,
        (rank, thread): (u32, usize),
        places: &[u32],
        graphs: &'a Graphs,
    ) -> Option<Self> {
        let (_, column) = section.threads.get(thread)?.columns.iter().find(|(r, _)| *r == rank)?;
        Some(Self {
            section,
            events: section.events(thread, rank)?,
            points: column.points(),
            places: places.to_vec(),
            communication: Communication::default(),
            topologies: Topologies::default(),
            epochs: Epochs::default(),
            volumes: Volumes::new(section, rank, graphs),
            totals: vec![PlaceTotals::default(); section.symbols.len()],
            times: RankTotals { rank, ..RankTotals::default() },
            begun: false,
            ended: false,
            last: 0,
        })
    }

    fn is_at_end(&mut self) -> Result<bool, Error> {
        Ok(self.events.next_event()?.is_none())
    }
}

impl Cursor<'_> {
    /// Reads the next call; `false` if there is none.
    fn read(&mut self, number: u32, (enter, exit): (i64, i64), shared: &mut Shared) -> Result<bool, Error> {
        let Some(event) = self.events.next_event()? else { return Ok(false) };
        let sym = event.sym as usize;
        let kind = event.row.map(|row| row.kind);
        let poll = event.row.is_some_and(|row| row.properties.poll);
        if kind == Some(CallKind::Init) || !self.begun {
            let init = kind == Some(CallKind::Init);
            (self.begun, self.last) = (true, enter);
            self.times.begin = if init { exit } else { enter };
            shared.ledger.tracks[number as usize].ideal = self.times.begin;
            if let Some(line) = shared.timelines.get_mut(number as usize) {
                let what = if init { Activity::Call } else { Activity::Computation };
                line.start(self.times.begin, self.places[sym], what);
            }
            if init {
                (self.last, self.times.end) = (exit, exit);
                return Ok(true);
            }
        }
        let gap: u64 = saturate(enter.saturating_sub(self.last));
        let inside: u64 = saturate(exit.saturating_sub(enter));
        let track = &mut shared.ledger.tracks[number as usize];
        track.ideal = track.ideal.saturating_add(enter.saturating_sub(self.last).max(0));
        self.last = exit;
        let totals = &mut self.totals[sym];
        totals.calls += event.calls();
        totals.before = totals.before.saturating_add(gap);
        if let Some(line) = shared.timelines.get_mut(number as usize).filter(|_| !self.ended) {
            // The end of a run is the beginning of the last call.
            let end = if kind == Some(CallKind::Finalize) { enter } else { exit };
            line.call(self.places[sym], enter, end);
        }
        if kind == Some(CallKind::Finalize) {
            (self.ended, self.times.end) = (true, enter);
        } else if !self.ended {
            self.times.end = exit;
            self.times.mpi = self.times.mpi.saturating_add(inside);
        }
        totals.time = totals.time.saturating_add(inside);
        if poll && finds_nothing(&event) {
            totals.failed_tests += event.calls();
            totals.polling += inside;
        }
        let place = self.places.get(sym).copied().unwrap_or(u32::MAX);
        let visit = Visit { thread: number, place, enter, exit, waits: !poll, call: event.index };
        let measured = says_its_bytes(event.action());
        let volume = measured.then(|| self.volumes.next_event(&event));
        let bytes = volume.map_or(0, |v| saturate(v.sent.bytes.saturating_add(v.received.bytes)));
        let (section, topologies) = (self.section, &mut self.topologies);
        let mut reading = Reading { shared, section, topologies, visit, call: None, measured, bytes };
        self.communication.event(&event, &mut reading);
        synchronise(&event, &mut self.communication, &mut self.epochs, &mut reading);
        totals.bytes = totals.bytes.saturating_add(reading.bytes);
        if let Some(call) = reading.call {
            shared.ledger.give(call, false, None);
        }
        Ok(true)
    }
}

/// Whether what a call moves stands in its own words, and is moved in it.
fn says_its_bytes(action: Action) -> bool {
    match action {
        Action::Send { start, .. }
        | Action::Receive { start }
        | Action::Both { start }
        | Action::Matched { start } => start == Start::Blocking,
        Action::Complete | Action::Match | Action::Free => false,
        _ => true,
    }
}

/// Whether a test or probe has found nothing.
fn finds_nothing(event: &Event<'_>) -> bool {
    match event.action() {
        Action::Complete => event.completed().next().is_none() && !event.requests().is_empty(),
        _ => event.words().get(event.role.flag) == Some(0),
    }
}

/// What is neither message nor collective operation, and yet synchronises.
fn synchronise(
    event: &Event<'_>,
    communication: &mut Communication<(Part, Standing)>,
    epochs: &mut Epochs,
    reading: &mut Reading<'_, '_>,
) {
    let scope = match event.action() {
        Action::Close => Scope::File(event.words().one(event.role.file)),
        Action::Creation | Action::Topology => Scope::Comm(event.comm().unwrap_or(0)),
        Action::Collective { rule: Rule::Barrier, start: Start::Request } => {
            return learn(event, communication, reading);
        }
        Action::Internal if event.row.is_some_and(|row| row.kind == CallKind::Probe) => {
            let at = communication.standing(event, Scope::Comm(event.comm().unwrap_or(0)), reading);
            return reading.probe(event, at);
        }
        Action::Epoch(epoch) => {
            let stand = |win| communication.standing(event, Scope::Win(win), reading);
            if let Some((at, turn)) = epochs.turn(event, epoch, stand) {
                reading.turn(event, at, &turn);
            }
            return;
        }
        _ => return,
    };
    let at = communication.standing(event, scope, reading);
    reading.barrier(at);
    learn(event, communication, reading);
}

impl Reading<'_, '_> {
    /// Begins or ends an epoch.
    fn turn(&mut self, event: &Event<'_>, at: Standing, turn: &Turn) {
        match turn {
            Turn::Fence(ends) if at.members > 1 => {
                let part = Part { sends: *ends, receives: *ends, ..Part::internal(at, Rule::Barrier) };
                self.take_part(part, at, true);
            }
            Turn::Fence(_) => {}
            Turn::Free => self.barrier(Some(at)),
            Turn::Post(origins) => self.tell(event, at, origins, POSTED),
            Turn::Start(targets) => {
                let call = self.number();
                let Shared { messages, ledger, accessed, .. } = self.shared;
                let post = |end| messages.post(&self.visit, &end, (None, Some(call)), ledger);
                let posts = ends(event, at, targets, POSTED).map(post).collect();
                accessed.insert((self.visit.thread, at.group), posts);
            }
            Turn::Complete(targets) => {
                // The library waits for posts where the epoch begins, or here.
                let call = self.number();
                let Shared { messages, ledger, accessed, .. } = self.shared;
                let posts = accessed.remove(&(self.visit.thread, at.group)).unwrap_or_default();
                posts.into_iter().for_each(|id| messages.received(id, call, &Completed::default(), ledger));
                self.tell(event, at, targets, COMPLETED);
            }
            Turn::Wait(origins) => self.hear(event, at, origins, COMPLETED),
        }
    }

    /// A probe that has found a message, which its thread will receive.
    fn probe(&mut self, event: &Event<'_>, at: Option<Standing>) {
        if let (Some(at), Some(from), Some(tag), true) =
            (at, event.source(), event.received_tag(), self.visit.waits)
        {
            let call = self.number();
            let channel = Channel { group: at.group, side: at.other(), from, to: at.me, tag };
            let Shared { messages, ledger, .. } = self.shared;
            messages.probe(&self.visit, channel, call, ledger);
        }
    }

    fn tell(&mut self, event: &Event<'_>, at: Standing, peers: &[u32], tag: i64) {
        let call = self.number();
        let Shared { messages, ledger, .. } = self.shared;
        for end in ends(event, at, peers, tag) {
            messages.send(&self.visit, &end, None, Some(call), ledger);
        }
    }

    fn hear(&mut self, event: &Event<'_>, at: Standing, peers: &[u32], tag: i64) {
        let call = self.number();
        let Shared { messages, ledger, .. } = self.shared;
        for end in ends(event, at, peers, tag) {
            messages.post(&self.visit, &end, (Some(call), None), ledger);
        }
    }
}

/// Ends of what is told of epochs.
fn ends<'a>(
    event: &'a Event<'_>,
    at: Standing,
    peers: &'a [u32],
    tag: i64,
) -> impl Iterator<Item = End> + 'a {
    let end = move |peer: &u32| End {
        at,
        peer: *peer,
        tag,
        sync: false,
        bytes: 0,
        sym: event.sym,
        call: event.index,
    };
    peers.iter().map(end)
}

/// A communicator may have been made.
fn learn(
    event: &Event<'_>,
    communication: &mut Communication<(Part, Standing)>,
    reading: &mut Reading<'_, '_>,
) {
    let made = event.row.and_then(|row| event.words().get(slot(row, "newcomm"))).filter(|new| *new >= 0);
    let at = made.and_then(|new| communication.standing(event, Scope::Comm(new), reading));
    reading.topologies.learn_of(event, |_| at);
}

impl Analysis {
    fn finish(&mut self, cursors: Vec<Cursor<'_>>, shared: &Shared) {
        let Shared { ledger, messages, operations, .. } = shared;
        let mut ideal = 0;
        for (cursor, track) in cursors.into_iter().zip(&ledger.tracks) {
            ideal = ideal.max(track.ideal);
            let rank = track.rank;
            let mut totals = cursor.totals;
            let whole = came_to_its_end(cursor.section, rank);
            let left = requests(cursor.section, &cursor.communication);
            for (sym, _) in left.filter(|(_, what)| whole && *what == What::Request) {
                totals[sym as usize].leaked += 1;
            }
            for (place, t) in cursor.places.iter().zip(totals).filter(|(_, t)| t.calls > 0) {
                self.totals.entry(At { rank, place: *place }).or_default().add(&t);
            }
            match self.ranks.last_mut().filter(|last| last.rank == rank) {
                Some(last) => last.wait.add(track.waited),
                None => self.ranks.push(RankTotals { wait: track.waited, ..cursor.times }),
            }
        }
        self.ranks.sort_by_key(|r| r.rank);
        let first = self.ranks.iter().map(|r| r.begin).min().unwrap_or(0);
        self.ideal = saturate(ideal.saturating_sub(first));
        let [sends, receives] = messages.unmatched();
        let unmatched = &mut self.unmatched;
        (unmatched.sends, unmatched.receives, unmatched.ambiguous) = (sends, receives, messages.ambiguous);
        unmatched.operations = operations.disagreements + operations.lacking();
        self.window = ledger.most();
    }
}

impl Analysis {
    /// Keeps what causes are looked for in.
    fn keep(&mut self, shared: Shared) {
        let Shared { mut timelines, ledger, .. } = shared;
        let mut sums = Sums::new(self.places.len());
        timelines.iter_mut().for_each(|line| line.finish(&mut sums));
        if let Some(mut meetings) = ledger.meetings {
            meetings.settle(&mut timelines);
        }
        self.timelines = timelines;
    }
}

impl PlaceTotals {
    /// Adds those of another thread.
    pub fn add(&mut self, other: &Self) {
        let Self { calls, time, before, failed_tests, polling, bytes, leaked } = *other;
        self.calls += calls;
        self.time += time;
        self.before += before;
        self.failed_tests += failed_tests;
        self.polling += polling;
        self.bytes = self.bytes.saturating_add(bytes);
        self.leaked += leaked;
    }
}
