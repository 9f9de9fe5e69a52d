//! What ranks do as simulators are told it: computation, messages, and waits for these, rank by rank.
//!
//! A receive must name its source when it is posted. Of one with a wildcard that is only known when it completes: what comes
//! after it on its rank waits until then. Collective operations are messages ([`lowering`]).

mod between;
mod lowering;
mod transfers;

use std::collections::{HashMap, VecDeque};

use anyhow::{Result, bail};
use foldhash::fast::FixedState;
use st_cli::UsageError;
use st_explain::{Fit, Transfers};
use st_model::calls::Kind;
use st_model::calls::roles::Action;
use st_model::num::{Exact as _, saturate};

use crate::exchanges::{Exchange, ExchangePart, Side};
use crate::format::Call;
use crate::losses::Losses;
use crate::matters::Matter;
use crate::trace::{Lane, Trace};
use lowering::{Lowered, Members, lower};
use transfers::Transfer;

/// What the algorithms are called, for who reads a result.
pub(crate) const ALGORITHMS: &str = lowering::ALGORITHMS;

/// What is not played.
pub(crate) const LACKS: &[Matter] = &[
    Matter::Datatypes,
    Matter::Reductions,
    Matter::Collectives,
    Matter::Comms,
    Matter::Wildcards,
    Matter::Files,
    Matter::Sites,
    Matter::Errors,
    Matter::Others,
];

/// One end of a message: the other rank by its place among those that are converted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct End {
    pub(crate) peer: usize,
    /// Equal for messages of one communicator and tag, and for no others.
    pub(crate) tag: u32,
    pub(crate) bytes: u64,
}

/// What a rank does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// So many ns.
    Compute(u64),
    Send(End),
    Receive(End),
    /// Begins a send, by a number of the rank's own.
    Isend(End, u64),
    Ireceive(End, u64),
    /// Waits for what has begun; the end of a send, or of a receive (`true`).
    Wait(End, u64, bool),
}

/// A place in a rank's order that may not be known yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    Known(Op),
    /// A receive with a wildcard, by its number.
    Open(u64),
    Nothing,
}

/// One rank being written.
#[derive(Debug, Default)]
struct Rank {
    last: Option<i64>,
    slots: VecDeque<Slot>,
    /// Slots that have been taken out.
    taken: u64,
    /// Where receives stand that are not complete, and what they name.
    open: HashMap<u64, (u64, Side), FixedState>,
    /// What has begun and is not complete.
    begun: HashMap<u64, (End, bool), FixedState>,
    /// Of collective operations that have begun: their messages.
    parts: HashMap<u64, Vec<(End, u64, bool)>, FixedState>,
    /// Sends of the exchange that is being read.
    exchanged: Vec<(End, u64)>,
    next: u64,
}

/// Turns calls into what ranks do.
#[derive(Debug)]
pub(crate) struct Script {
    /// World ranks in their order.
    ranks: Vec<u32>,
    tags: HashMap<(u32, i64), u32, FixedState>,
    /// Of each communicator that has been met; none where its operations are not lowered.
    members: HashMap<u32, Option<Members>, FixedState>,
    rank: Rank,
    pub(crate) losses: Losses,
}

/// The tag of a communicator's collective operations, which no message has.
const COLLECTIVE: i64 = -1;

impl Script {
    /// # Errors
    ///
    /// If ranks have several threads, of which these formats know nothing.
    pub(crate) fn new(trace: &Trace, format: &str) -> Result<Self> {
        let mut ranks: Vec<u32> = trace.lanes.iter().map(|lane| lane.rank).collect();
        ranks.dedup();
        if ranks.len() < trace.lanes.len() {
            let why = format!(
                "ranks call MPI in several threads, of which {format} knows nothing: choose others with --ranks"
            );
            bail!(UsageError(why));
        }
        let ended = |lane: &&Lane| !trace.section(lane).ended_of(lane.rank).is_empty();
        let (mut losses, ended) = (Losses::default(), trace.lanes.iter().filter(ended).count());
        losses.add(
            "ends of ranks that stop early (simulations may wait for what they would send)",
            ended.to_u64(),
        );
        let (tags, members) = (HashMap::default(), HashMap::default());
        Ok(Self { ranks, tags, members, rank: Rank::default(), losses })
    }

    pub(crate) fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    fn place(&self, rank: u32) -> Option<usize> {
        self.ranks.binary_search(&rank).ok()
    }

    fn tag(&mut self, group: u32, tag: i64) -> u32 {
        let next = saturate(self.tags.len());
        *self.tags.entry((group, tag)).or_insert(next)
    }

    /// The next call of the rank that is being written: calls of a rank come together, in their order.
    pub(crate) fn call(&mut self, call: &Call<'_>, mut to: impl FnMut(Op) -> Result<()>) -> Result<()> {
        self.compute(call);
        call.exchanges.iter().for_each(|exchange| self.exchange(call, exchange));
        // Of an exchange with nobody to receive from.
        self.complete_exchange();
        self.lose(call);
        self.rank.take(&mut to)
    }

    /// The rank has no more calls.
    pub(crate) fn end(&mut self, mut to: impl FnMut(Op) -> Result<()>) -> Result<()> {
        let mut open: Vec<_> = std::mem::take(&mut self.rank.open).into_values().collect();
        open.sort_unstable_by_key(|(at, _)| *at);
        for (at, side) in open {
            let is_known = side.peer.is_some() && side.tag.is_some();
            let end = if is_known { self.end_of(&side) } else { None };
            self.losses.add("receives with a wildcard that are not seen to complete", u64::from(!is_known));
            // It may be what a send waits for.
            self.rank.fill(at, end.map_or(Slot::Nothing, |end| Slot::Known(Op::Ireceive(end, side.id << 1))));
        }
        self.rank.take(&mut to)?;
        self.rank = Rank::default();
        Ok(())
    }

    /// Time since the last call, and that of calls that concern nobody else.
    fn compute(&mut self, call: &Call<'_>) {
        let Some((enter, exit)) = call.times else { return };
        let kind = call.event.row.map_or(Kind::Other, |row| row.kind);
        let own = call.event.action() == Action::Internal && kind != Kind::Probe;
        let since = self.rank.last.replace(exit);
        let until = if own { exit } else { enter };
        // What comes before MPI begins is not the run's.
        let ns = since.filter(|_| kind != Kind::Init).map_or(0, |since| until.saturating_sub(since));
        if ns > 0 {
            self.rank.push(Op::Compute(saturate(ns)));
        }
    }

    fn end_of(&mut self, side: &Side) -> Option<End> {
        let Some(peer) = side.peer.and_then(|peer| self.place(peer)) else {
            self.losses.add("ends of messages whose other end is not converted", 1);
            return None;
        };
        Some(End { peer, tag: self.tag(side.group, side.tag.unwrap_or_default()), bytes: side.bytes })
    }

    fn exchange(&mut self, call: &Call<'_>, exchange: &Exchange) {
        let exchanges = matches!(call.event.action(), Action::Both { .. });
        match exchange {
            Exchange::Send { side, done } => {
                let Some(end) = self.end_of(side) else { return };
                if *done && !exchanges {
                    return self.rank.push(Op::Send(end));
                }
                let id = self.rank.begin(end, false, side.id << 1 | 1);
                self.rank.push(Op::Isend(end, id));
                if *done {
                    self.rank.exchanged.push((end, id));
                }
            }
            // It is complete in the same call.
            Exchange::Post { done: true, .. } => {}
            Exchange::Post { side, .. } => {
                // Its size is known when it is complete.
                let at = self.rank.reserve(side.id);
                self.rank.open.insert(side.id, (at, *side));
            }
            Exchange::Received { side, at_once } => self.received(side, *at_once),
            Exchange::Sent { id } => self.rank.wait(*id << 1 | 1),
            Exchange::Cancelled { id, send: false } => {
                if let Some((at, _)) = self.rank.open.remove(id) {
                    self.rank.fill(at, Slot::Nothing);
                }
            }
            Exchange::Cancelled { .. } => self.losses.add("cancelled sends", 1),
            Exchange::Join { part, done } => self.join(call, part, *done),
            Exchange::Left { part } => {
                let messages = self.rank.parts.remove(&part.id).unwrap_or_default();
                messages.into_iter().for_each(|(end, id, receives)| {
                    self.rank.push(Op::Wait(end, id, receives));
                });
            }
        }
    }

    fn received(&mut self, side: &Side, at_once: bool) {
        let (no_source, no_tag) = (side.peer.is_none(), side.tag.is_none());
        self.losses.add("receives whose source is not known", u64::from(no_source));
        self.losses.add("receives whose tag is not known", u64::from(no_tag && !no_source));
        let end = if no_source || no_tag { None } else { self.end_of(side) };
        if at_once {
            // The send of an exchange was begun before, so that neither rank waits for the other.
            self.rank.extend(end.map(Op::Receive));
            return self.complete_exchange();
        }
        let Some((at, _)) = self.rank.open.remove(&side.id) else { return };
        let Some(end) = end else { return self.rank.fill(at, Slot::Nothing) };
        let id = side.id << 1;
        self.rank.fill(at, Slot::Known(Op::Ireceive(end, id)));
        self.rank.push(Op::Wait(end, id, true));
    }

    fn complete_exchange(&mut self) {
        for (end, id) in std::mem::take(&mut self.rank.exchanged) {
            self.rank.push(Op::Wait(end, id, false));
        }
    }

    fn lower(&mut self, call: &Call<'_>, part: &ExchangePart, done: bool) -> Result<Lowered, &'static str> {
        let ranks = &self.ranks;
        let members = self.members.entry(part.group).or_insert_with(|| {
            Members::of(call.groups.get(part.group)?, |rank| ranks.binary_search(&rank).ok())
        });
        let some_missing = "parts in operations some of whose ranks are not converted";
        lower(part, members.as_ref().ok_or(some_missing)?, done)
    }

    fn join(&mut self, call: &Call<'_>, part: &ExchangePart, done: bool) {
        let lowered = match self.lower(call, part, done) {
            Ok(lowered) => lowered,
            Err(what) => return self.losses.add(what, 1),
        };
        let tag = self.tag(part.group, COLLECTIVE);
        let end = |(peer, bytes)| End { peer, tag, bytes };
        let mut begun = Vec::new();
        for step in lowered.steps {
            match step {
                Transfer::Send(to) if !lowered.at_once => self.rank.push(Op::Send(end(to))),
                Transfer::Receive(from) if !lowered.at_once => self.rank.push(Op::Receive(end(from))),
                Transfer::Send(to) => {
                    let id = self.rank.number();
                    self.rank.push(Op::Isend(end(to), id));
                    begun.push((end(to), id, false));
                }
                Transfer::Receive(from) => {
                    let id = self.rank.number();
                    self.rank.push(Op::Ireceive(end(from), id));
                    begun.push((end(from), id, true));
                }
                Transfer::Exchange(to, from) => {
                    let id = self.rank.number();
                    self.rank.push(Op::Ireceive(end(from), id));
                    self.rank.push(Op::Send(end(to)));
                    self.rank.push(Op::Wait(end(from), id, true));
                }
            }
        }
        if done {
            begun.into_iter().for_each(|(end, id, receives)| self.rank.push(Op::Wait(end, id, receives)));
        } else {
            self.rank.parts.insert(part.id, begun);
        }
    }

    /// What there is no operation for.
    fn lose(&mut self, call: &Call<'_>) {
        let what = match call.event.row.map(|row| row.kind) {
            Some(Kind::Put | Kind::Get | Kind::GetPut | Kind::CompareSwap) => "accesses to windows",
            _ => match call.event.action() {
                Action::Epoch(_) => "synchronisations of windows",
                Action::Creation | Action::Topology => "synchronisations where communicators are made",
                _ => return,
            },
        };
        self.losses.add(what, 1);
    }
}

impl Rank {
    fn push(&mut self, op: Op) {
        self.slots.push_back(Slot::Known(op));
    }

    fn extend(&mut self, op: Option<Op>) {
        op.into_iter().for_each(|op| self.push(op));
    }

    /// A number for a message of the rank's own making.
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next | OWN
    }

    fn begin(&mut self, end: End, receives: bool, id: u64) -> u64 {
        self.begun.insert(id, (end, receives));
        id
    }

    fn wait(&mut self, id: u64) {
        if let Some((end, receives)) = self.begun.remove(&id) {
            self.push(Op::Wait(end, id, receives));
        }
    }

    /// A place for a receive that is to be known later.
    fn reserve(&mut self, id: u64) -> u64 {
        self.slots.push_back(Slot::Open(id));
        self.taken + self.slots.len().to_u64() - 1
    }

    fn fill(&mut self, at: u64, with: Slot) {
        let slot = at.checked_sub(self.taken).and_then(|i| self.slots.get_mut(i.to_usize()));
        slot.into_iter().for_each(|slot| *slot = with);
    }

    /// Hands over what is known.
    fn take(&mut self, to: &mut impl FnMut(Op) -> Result<()>) -> Result<()> {
        while let Some(slot) = self.slots.front() {
            match *slot {
                Slot::Open(_) => break,
                Slot::Known(op) => to(op)?,
                Slot::Nothing => {}
            }
            self.slots.pop_front();
            self.taken += 1;
        }
        Ok(())
    }
}

/// Numbers of messages of collective operations have this bit.
const OWN: u64 = 1 << 63;

/// What messages take, as far as the trace says: between nodes or, if there is but one, within.
pub(crate) fn network(trace: &Trace) -> Result<Option<Fit>> {
    if !trace.is_timed() {
        return Ok(None);
    }
    let transfers = Transfers::of(&trace.sections, &|_| ())?;
    Ok(transfers.fit(true).or_else(|| transfers.fit(false)))
}
