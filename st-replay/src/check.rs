//! Whether a trace can be replayed to its end: found out by matching, without MPI.
//!
//! Per channel (communicator, source, destination, tag) as many messages are sent as received, and each fits the
//! receive that it meets; the members of each communicator take part in the same collective operations, in one
//! order, and agree on function, root, sizes and operation; what was started is completed. What a rank did that is
//! not in the trace (it was killed, or a call failed), or of which it is not known what it did, is not held against
//! others.
//!
//! *Cost:* expected O(words); memory for the messages that wait for their other end (equal ones in a row together)
//! and for one member's collective operations per communicator.
//!
//! Source: Bahmani, Mueller 2014, and what MPI demands of programs (MPI 3.1, sections 3.5, 3.7 and 5.1).

mod finding;
mod sequence;

use std::collections::{BTreeMap, HashMap, HashSet};

use st_cli::Symbols;
use st_match::fifo::{Channels, Numbered};
use st_match::{Channel, NO_MESSAGE};
use st_model::calls::{CallTable, Kind};
use st_model::num::Exact as _;
use st_model::project::Error;
use st_model::ranklist::RankList;
use st_model::ranklist_notation;
use st_model::section::{Section, Symbol};

use finding::{Finding, Loose, Telling};
use sequence::{Agreement, Cursor, Sequence, differ};

use crate::factor::Factor;
use crate::groups::Groups;
use crate::operations::{End, Operation, OperationPart, Walked, Walker};
use crate::places::{PlaceId, Places};
use crate::scaling::Scaling;
use crate::supported::Where;
use crate::threads::Threads;

/// Equal ends of messages in a row that wait for their other ends.
#[derive(Clone, Copy, Debug)]
struct Run {
    bytes: i64,
    place: PlaceId,
    /// It may not end without its other end.
    waits: bool,
    n: u64,
}

impl Numbered for Run {
    fn take_in(&mut self, next: &Self) -> bool {
        let equal = (self.bytes, self.place, self.waits) == (next.bytes, next.place, next.waits);
        self.n += if equal { next.n } else { 0 };
        equal
    }

    fn first_of_several(&mut self) -> Option<Self> {
        self.n = self.n.checked_sub(1).filter(|left| *left > 0)?;
        Some(Self { n: 1, ..*self })
    }
}

/// Bytes of a message that is sent without its receive by every MPI we know.
const EAGER: i64 = 4 << 10;

/// Threads are not told apart where ends are paired: each channel's are counted, in whatever order they come.
const ALL_ALIKE: u32 = 0;

/// What a check found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// What is wrong, a line each; nothing if the trace can be replayed.
    pub faults: Vec<String>,
    /// Which ranks end before `MPI_Finalize`, if any do: a replay goes so far.
    pub unfinished: Option<String>,
    /// Which ranks have calls that failed, if any have: these are left out, and what others wait for there is not judged.
    pub failed: Option<String>,
    /// What is not found of the names of their call sites.
    pub unnamed: Vec<String>,
    /// Calls seen, of a series of polls each.
    pub calls: u64,
    /// Messages matched.
    pub messages: u64,
    /// Channels that they went through.
    pub channels: u64,
    /// Collective operations.
    pub operations: u64,
}

/// Takes the sections of a trace one by one.
#[derive(Debug, Default)]
pub struct Checker {
    /// The state, in parts that are borrowed apart.
    groups: Groups,
    state: State,
    factor: Option<Factor>,
    /// Where a replay is that leaves out what it cannot make.
    here: Option<Where>,
}

/// What is known of a rank that was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// All that it did.
    all: bool,
    /// All that it does in a replay, so that others wait for it in vain if it is not there.
    replayed: bool,
}

#[derive(Debug, Default)]
struct State {
    places: Places,
    channels: Channels<Run>,
    /// Channels that several threads of a rank use: the order is not known.
    unordered: HashSet<Channel>,
    /// Channels of which one message that did not fit has been told.
    told: HashSet<Channel>,
    sequences: BTreeMap<(u32, u32), Sequence>,
    ranks: HashMap<u32, Known>,
    /// Receivers (communicator, side, position) with receives of unknown source.
    open: HashSet<(u32, u8, u32)>,
    findings: Vec<Finding>,
    /// Channels of messages that were cancelled after they seemed to have met their receives.
    unsure_channels: Vec<Channel>,
    /// How often something is left undone, by rank and place.
    loose: BTreeMap<(Loose, u32, PlaceId), u64>,
    verdict: Verdict,
    /// Ranks that end before `MPI_Finalize`, and the fewest and most calls of one.
    unfinished: RankList,
    unfinished_calls: Option<(u64, u64)>,
    /// Ranks that came to their end, but not by calls of which all is known.
    failed: RankList,
    /// What messages are is drawn, so that they need not match.
    drawn: bool,
}

/// The rank at hand.
#[derive(Debug, Default)]
struct Current {
    rank: u32,
    thread: usize,
    several: bool,
    symbols: Vec<PlaceId>,
    /// Whether they are sends that end when their receives have begun.
    synchronous: Vec<bool>,
    cursors: HashMap<(u32, u32), Cursor>,
    users: HashMap<(Channel, bool), usize>,
}

impl Checker {
    /// A check of what is replayed: messages scaled by a factor; where calls and threads are left out that cannot be replayed, without
    /// those that cannot be `here`.
    #[must_use]
    pub fn new(scale_bytes: Option<Factor>, here: Option<Where>) -> Self {
        Self { factor: scale_bytes, here, ..Self::default() }
    }

    /// Looks at the ranks of a section.
    ///
    /// # Errors
    ///
    /// If it is malformed.
    pub fn see(&mut self, section: &Section) -> Result<(), Error> {
        let scaling = Scaling::new(section, self.factor.unwrap_or(Factor::ONE));
        let here = self.here.as_ref();
        let state = &mut self.state;
        state.drawn |= section.histograms().next().is_some();
        let row = |s: &Symbol| CallTable::builtin().get(s.call);
        let synchronous = |s| row(s).is_some_and(|row| row.kind == Kind::SyncSend);
        let synchronous = section.symbols.iter().map(synchronous).collect();
        let mut current = Current { symbols: state.places.of(section), synchronous, ..Current::default() };
        for rank in section.ranks.iter() {
            current.rank = rank;
            current.cursors.clear();
            current.users.clear();
            let alone = here.is_some() && Threads::of(section, rank)?.is_none();
            let threads = if alone { 1 } else { section.threads.len() };
            let present = section.threads.iter().take(threads).filter(|t| t.ranks.contains(rank));
            current.several = present.count() > 1;
            let ended = !section.ended_of(rank).is_empty();
            let (mut sure, mut finalized) = (!ended, false);
            let before = state.verdict.calls;
            for thread in 0..threads {
                current.thread = thread;
                let tell = |operation| state.take(&mut current, operation);
                let walker = Walker::new(section, rank, &mut self.groups, here, tell);
                let Walked { calls, finalized: f, unsure } = walker.walk(thread, &scaling, u64::MAX)?;
                finalized |= f;
                sure &= !unsure;
                state.verdict.calls += calls;
            }
            if !finalized {
                state.ends(rank, state.verdict.calls - before);
            }
            let all = sure && finalized;
            if finalized && !sure && !ended && here.is_none() {
                state.failed.insert(rank);
            }
            state.leave(&current, Known { all, replayed: all || here.is_some() && finalized });
        }
        Ok(())
    }

    /// Channels in which ends still wait for their other ends.
    #[must_use]
    pub fn open_channels(&self) -> u64 {
        self.state.channels.waiting().count().to_u64()
    }

    /// What has been found; told is of each open channel that has been looked at.
    #[must_use]
    pub fn finish(self, symbols: &Symbols, tell: &dyn Fn(u64)) -> Verdict {
        let Self { groups, mut state, .. } = self;
        state.unbalanced(&groups, tell);
        state.absent(&groups);
        for ((what, rank, place), n) in std::mem::take(&mut state.loose) {
            state.findings.push(Finding::Loose { what, rank, place, n });
        }
        state.forget_unsure(&groups);
        state.findings.sort();
        // Without findings no place is named.
        let (sites, unnamed) =
            if state.findings.is_empty() { Default::default() } else { state.places.named(symbols) };
        let telling = Telling { groups: &groups, places: &state.places, sites: &sites };
        let faults = state.findings.iter().map(|f| telling.line(f)).collect();
        let operations = state.sequences.values().map(|s| s.runs.iter().map(|r| r.1).sum::<u64>()).sum();
        let unfinished =
            state.unfinished_calls.map(|(fewest, most)| unfinished(&state.unfinished, fewest, most));
        let failed = Some(&state.failed).filter(|ranks| !ranks.is_empty()).map(failed);
        Verdict { faults, unfinished, failed, unnamed, operations, ..state.verdict }
    }
}

/// Ranks that end before `MPI_Finalize`, after so many calls.
fn unfinished(ranks: &RankList, fewest: u64, most: u64) -> String {
    let [rank, end] = if ranks.len() == 1 { ["rank", "ends"] } else { ["ranks", "end"] };
    let after = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    let which = ranklist_notation::plain(ranks);
    format!(
        "{rank} {which} {end} before MPI_Finalize, after {after} calls: a replay ends there, with status 1"
    )
}

/// Ranks of which calls failed.
fn failed(ranks: &RankList) -> String {
    let which = ranklist_notation::plain(ranks);
    format!(
        "not judged: calls on rank{} {which} that failed, or are of unknown functions: a replay leaves them out, and others may wait \
         for them in vain",
        if ranks.len() == 1 { "" } else { "s" }
    )
}

impl State {
    /// A rank ends before `MPI_Finalize`.
    fn ends(&mut self, rank: u32, calls: u64) {
        self.unfinished.insert(rank);
        let (fewest, most) = self.unfinished_calls.unwrap_or((calls, calls));
        self.unfinished_calls = Some((fewest.min(calls), most.max(calls)));
    }

    fn take(&mut self, current: &mut Current, operation: Operation) {
        let place = |sym: u32| current.symbols.get(sym as usize).copied();
        match operation {
            Operation::Send(end) | Operation::Receive(end) | Operation::Pair(end, _) => {
                let receives = matches!(operation, Operation::Receive(_) | Operation::Pair(_, true));
                let Some(place) = place(end.sym) else { return };
                if current.several {
                    let first = *current.users.entry((end.channel, receives)).or_insert(current.thread);
                    if first != current.thread {
                        self.unordered.insert(end.channel);
                    }
                }
                let synchronous = current.synchronous.get(end.sym as usize).copied().unwrap_or_default();
                let waits = receives || synchronous || end.bytes > EAGER;
                self.meet(end.channel, Run { bytes: end.bytes, place, waits, n: 1 }, receives);
            }
            Operation::Unsent(end) => self.unsent(&end),
            Operation::Probe(_) | Operation::Held(..) => {}
            Operation::Open(end) => {
                let side = end.channel.side;
                self.open.insert((end.channel.group, side, end.channel.to));
            }
            Operation::Part(part) => self.part(current, &part),
            // What one thread starts another may complete: told there, for a replay cannot.
            Operation::Incomplete(_) if current.several => {}
            Operation::Unknown(sym) if current.several => {
                self.loose(Loose::Elsewhere, current.rank, place(sym))
            }
            Operation::Incomplete(sym) => self.loose(Loose::Incomplete, current.rank, place(sym)),
            Operation::Unknown(sym) => self.loose(Loose::Unknown, current.rank, place(sym)),
            Operation::Unmade(sym) => self.loose(Loose::Unmade, current.rank, place(sym)),
        }
    }

    fn loose(&mut self, what: Loose, rank: u32, place: Option<PlaceId>) {
        if let Some(place) = place {
            *self.loose.entry((what, rank, place)).or_default() += 1;
        }
    }

    /// An end meets its other end, or waits for it.
    fn meet(&mut self, channel: Channel, end: Run, receives: bool) {
        let pair = channel.tag < NO_MESSAGE;
        if self.drawn && !pair {
            return;
        }
        let Some(other) = self.channels.enter(channel, receives, ALL_ALIKE, end) else { return };
        let (sent, room) = if receives { (other.bytes, end.bytes) } else { (end.bytes, other.bytes) };
        let fits = if pair { sent == room } else { sent <= room };
        let judged = sent >= 0 && room >= 0 && !self.unordered.contains(&channel);
        if judged && !fits && self.told.insert(channel) {
            let places = if receives { [other.place, end.place] } else { [end.place, other.place] };
            self.findings.push(Finding::TooLarge { channel, sent, room, places });
        }
        self.verdict.messages += u64::from(!pair);
    }

    /// A message was not sent after all.
    fn unsent(&mut self, end: &End) {
        if self.channels.unsend(&end.channel).is_none() && self.channels.met_in(&end.channel) > Some(0) {
            self.unsure_channels.push(end.channel);
        }
    }

    fn part(&mut self, current: &mut Current, part: &OperationPart) {
        let key = (part.at.group, part.lane);
        let Some(&place) = current.symbols.get(part.sym as usize) else { return };
        let OperationPart { function, root, bytes, op, .. } = *part;
        let mine = Agreement { function, root, bytes, op, place };
        let s = self.sequences.entry(key).or_default();
        s.seen.insert(current.rank);
        let fresh = Cursor { thread: current.thread, ..Cursor::default() };
        let cursor = current.cursors.entry(key).or_insert(fresh);
        // The order of calls of several threads is not known.
        s.done |= cursor.thread != current.thread;
        cursor.total += 1;
        if s.done {
            return;
        }
        let Some((theirs, _)) = s.runs.get(cursor.run).copied() else {
            if s.closed {
                let finding = (s.of, current.rank);
                s.done = true;
                let has = cursor.total - 1;
                let [rank, other] = [finding.0, finding.1];
                self.findings.push(Finding::Missing { group: part.at.group, rank, has, other, place });
                return;
            }
            // The first member, or one that goes on after another that did not come to its end.
            s.of = current.rank;
            match s.runs.last_mut() {
                Some((last, n)) if *last == mine => *n += 1,
                _ => s.runs.push((mine, 1)),
            }
            *cursor = Cursor { run: s.runs.len(), within: 0, ..*cursor };
            return;
        };
        if let Some(about) = differ(&theirs, &mine) {
            s.done = true;
            self.findings.push(Finding::Disagree {
                group: part.at.group,
                number: cursor.total,
                ranks: [s.of, current.rank],
                places: [theirs.place, place],
                about,
            });
            return;
        }
        cursor.within += 1;
        s.advance(cursor);
    }

    /// After the last call of a rank.
    fn leave(&mut self, current: &Current, known: Known) {
        self.ranks.insert(current.rank, known);
        let sure = known.replayed;
        for (key, cursor) in &current.cursors {
            let Some(s) = self.sequences.get_mut(key).filter(|s| !s.done) else { continue };
            let n: u64 = s.runs.iter().map(|r| r.1).sum();
            if cursor.total < n && sure {
                s.done = true;
                let at = s.at(cursor.total);
                let (rank, other) = (current.rank, s.of);
                if let Some(place) = at {
                    self.findings.push(Finding::Missing {
                        group: key.0,
                        rank,
                        has: cursor.total,
                        other,
                        place,
                    });
                }
            } else if cursor.total == n {
                s.closed |= sure;
            }
        }
    }

    /// Messages of which one end is missing, though all is known of the rank that should have it.
    fn unbalanced(&mut self, groups: &Groups, tell: &dyn Fn(u64)) {
        let messages = |channel: &Channel| channel.tag >= NO_MESSAGE;
        self.verdict.channels +=
            self.channels.met().filter(|(channel, _)| messages(channel)).count().to_u64();
        for (channel, receives, waiting) in self.channels.waiting() {
            tell(1);
            if self.drawn && messages(channel) {
                continue;
            }
            let Some(group) = groups.get(channel.group).filter(|g| g.shared) else { continue };
            let to_side = if group.sides[1].is_empty() { 0 } else { 1 - channel.side };
            let lacking = if receives {
                group.world(channel.side, channel.from)
            } else {
                group.world(to_side, channel.to)
            };
            let known = lacking.and_then(|r| self.ranks.get(&r)).copied().unwrap_or_default();
            let (mut places, mut n, mut waits) = (Vec::new(), 0, false);
            for run in waiting {
                places.push(run.place);
                n += run.n;
                waits |= run.waits;
            }
            let judged = if waits { known.replayed } else { known.all };
            let maybe = self.unsure_channels.contains(channel)
                || !receives && self.open.contains(&(channel.group, channel.side, channel.to));
            if !judged || maybe {
                continue;
            }
            places.sort_unstable();
            places.dedup();
            let mut ends = [self.channels.met_in(channel).unwrap_or_default(); 2];
            ends[usize::from(receives)] += n;
            let channel = *channel;
            self.findings.push(Finding::Unbalanced { channel, receives, waits, n, ends, places });
        }
    }

    /// Forgets messages that do not fit where one end has done more than is known: others may have met.
    fn forget_unsure(&mut self, groups: &Groups) {
        let (ranks, drawn) = (&self.ranks, self.drawn);
        let sure = |c: &Channel| {
            let Some(group) = groups.get(c.group) else { return false };
            let to_side = if group.sides[1].is_empty() { 0 } else { 1 - c.side };
            let ends = [group.world(c.side, c.from), group.world(to_side, c.to)];
            ends.iter().all(|r| r.and_then(|r| ranks.get(&r)).is_some_and(|known| known.all))
        };
        self.findings.retain(|f| match f {
            Finding::TooLarge { channel, .. } => sure(channel) && (!drawn || channel.tag < NO_MESSAGE),
            _ => true,
        });
    }

    /// Members that took no part in any operation of a communicator.
    fn absent(&mut self, groups: &Groups) {
        for ((group, _), s) in self.sequences.iter().filter(|(_, s)| !s.done) {
            let Some(members) = groups.get(*group).filter(|g| g.shared) else { continue };
            let sure = |r: &u32| self.ranks.get(r).is_some_and(|known| known.replayed);
            let Some(rank) = members.members().find(|r| !s.seen.contains(r) && sure(r)) else { continue };
            if let Some(place) = s.at(0) {
                self.findings.push(Finding::Missing { group: *group, rank, has: 0, other: s.of, place });
            }
        }
    }
}
