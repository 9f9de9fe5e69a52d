//! Where each rank stops so that a replay of the beginning ends in order.
//!
//! A cut gives each rank a number of calls. It is *consistent* if no receive that was posted before it, and no message
//! that was looked for, lacks its send; if the members of each communicator have taken part in equally many collective
//! operations; and if no rank stops between finding a message and receiving it, or between starting something and
//! cancelling it. All these conditions say "if this call of one rank is made, that call of another is made, too", so the
//! union of two consistent cuts is consistent, and there is a largest one below any limit: it is found by taking calls
//! away from ranks that violate a condition until none does.
//!
//! Such a cut can be replayed, with the buffering that the program itself needed: each call that is made waits only for
//! calls that are made. Messages that were sent and not received yet are received after a rank's last call
//! ([`Stop::left`]), so that no send waits for ever.
//!
//! *Cost:* expected O(words up to the limit), and O(log n) per channel of a rank whenever calls are taken away from it.

use st_cli::quantity::nanoseconds;
use st_model::calls::{CallTable, Kind};
use st_model::num::{narrow, rounded, saturate};
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use st_match::{Channel, PARTITIONED};
use st_model::project::Error;
use st_model::section::Section;

use crate::groups::Groups;
use crate::operations::{Operation, Walker};
use crate::pace::Pace;
use crate::scaling::Scaling;
use crate::supported::Where;

/// When a replay is to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Before the recorded time since `MPI_Init` exceeds so many ns.
    Time(u64),
    /// After at most so many calls of each rank.
    Calls(u64),
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self::Calls).or_else(|_| {
            let ns = nanoseconds(text).map_err(|_| "a time as 10s, or a number of calls")?;
            Ok(Self::Time(rounded(ns)))
        })
    }
}

/// A message that a rank receives after its last call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Left {
    /// Indices that its communicator may have in the rank's table.
    pub comms: Vec<i64>,
    /// Rank of the sender in that communicator.
    pub source: i64,
    /// Tag.
    pub tag: i64,
    /// Bytes.
    pub bytes: i64,
}

/// Where a rank stops.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stop {
    /// Number of events that are replayed.
    pub calls: u64,
    /// What it receives then.
    pub left: Vec<Left>,
}

impl Stop {
    /// As words, to be sent to the rank.
    #[must_use]
    pub fn to_words(&self) -> Vec<i64> {
        let mut words = vec![saturate(self.calls)];
        for left in &self.left {
            words.extend([left.source, left.tag, left.bytes, narrow(left.comms.len())]);
            words.extend(&left.comms);
        }
        words
    }

    /// From such words; `None` if they are none.
    #[must_use]
    pub fn from_words(words: &[i64]) -> Option<Self> {
        let (calls, mut rest) = words.split_first()?;
        let mut left = Vec::new();
        while let [source, tag, bytes, n, more @ ..] = rest {
            let (comms, after) = more.split_at_checked(usize::try_from(*n).ok()?)?;
            left.push(Left { comms: comms.to_vec(), source: *source, tag: *tag, bytes: *bytes });
            rest = after;
        }
        rest.is_empty().then_some(Self { calls: u64::try_from(*calls).ok()?, left })
    }
}

#[derive(Debug, Default)]
struct Traffic {
    /// Calls that send, with bytes, and calls that post receives; ascending.
    sends: Vec<(u64, i64)>,
    receives: Vec<u64>,
    /// Calls that look for a message.
    probes: Vec<u64>,
}

/// Takes the sections of a trace one by one.
#[derive(Debug)]
pub struct Cutter {
    limit: Limit,
    here: Option<Where>,
    factor: crate::factor::Factor,
    groups: Groups,
    channels: HashMap<Channel, Traffic>,
    /// By communicator and lane: each member's calls, ascending.
    parts: HashMap<(u32, u32), BTreeMap<u32, Vec<u64>>>,
    /// Per rank: from the calls before which it may stop to those after which it may again.
    held: HashMap<u32, Vec<(u64, u64)>>,
    cuts: BTreeMap<u32, u64>,
    indices: HashMap<u32, HashMap<u32, Vec<i64>>>,
}

impl Cutter {
    /// Of a replay with messages scaled by a factor, and without the calls that cannot be replayed `here`.
    #[must_use]
    pub fn new(limit: Limit, factor: crate::factor::Factor, here: Option<Where>) -> Self {
        Self {
            limit,
            here,
            factor,
            groups: Groups::default(),
            channels: HashMap::new(),
            parts: HashMap::new(),
            held: HashMap::new(),
            cuts: BTreeMap::new(),
            indices: HashMap::new(),
        }
    }

    /// Looks at the first threads of a section's ranks.
    ///
    /// # Errors
    ///
    /// If it is malformed.
    pub fn see(&mut self, section: &Section) -> Result<(), Error> {
        let scaling = Scaling::new(section, self.factor);
        let here = self.here.as_ref();
        for rank in section.ranks.iter() {
            let limit = limit_of(section, rank, self.limit)?;
            self.cuts.insert(rank, limit);
            let (channels, parts, held) = (&mut self.channels, &mut self.parts, &mut self.held);
            let tell = |operation: Operation| match operation {
                Operation::Send(e) if e.call < limit => {
                    channels.entry(e.channel).or_default().sends.push((e.call, e.bytes));
                }
                Operation::Unsent(e) => {
                    if let Some(t) = channels.get_mut(&e.channel) {
                        t.sends.retain(|s| s.0 != e.call);
                    }
                }
                Operation::Receive(e) if e.call < limit => {
                    channels.entry(e.channel).or_default().receives.push(e.call);
                }
                Operation::Probe(e) if e.call < limit => {
                    channels.entry(e.channel).or_default().probes.push(e.call);
                }
                Operation::Part(p) if p.call < limit => {
                    let members = parts.entry((p.at.group, p.lane)).or_default();
                    members.entry(rank).or_default().push(p.call);
                }
                Operation::Held(from, to) if from < limit => held.entry(rank).or_default().push((from, to)),
                // Nobody knows whether it completes.
                Operation::Open(e) if e.call < limit => {
                    held.entry(rank).or_default().push((e.call, u64::MAX))
                }
                _ => {}
            };
            Walker::new(section, rank, &mut self.groups, here, tell).walk(0, &scaling, limit)?;
            self.indices.insert(rank, self.groups.indices(section, rank));
        }
        Ok(())
    }

    /// Where each rank stops.
    #[must_use]
    pub fn finish(mut self) -> BTreeMap<u32, Stop> {
        self.shrink();
        let mut stops: BTreeMap<u32, Stop> =
            self.cuts.iter().map(|(r, calls)| (*r, Stop { calls: *calls, left: Vec::new() })).collect();
        let mut channels: Vec<_> = self.channels.iter().collect();
        channels.sort_unstable_by_key(|(c, _)| **c);
        for (channel, t) in channels {
            let Some((from, to)) = self.ends(channel) else { continue };
            let sent = self.before(&t.sends, from, |s| s.0);
            let received = self.before(&t.receives, to, |r| *r);
            let comms = self.indices.get(&to).and_then(|i| i.get(&channel.group));
            let (Some(comms), Some(stop)) = (comms, stops.get_mut(&to)) else { continue };
            for (_, bytes) in t.sends.iter().take(sent).skip(received) {
                let (source, tag) = (i64::from(channel.from), channel.tag % PARTITIONED);
                stop.left.push(Left { comms: comms.clone(), source, tag, bytes: (*bytes).max(0) });
            }
        }
        stops
    }

    /// World ranks of a channel's ends.
    fn ends(&self, c: &Channel) -> Option<(u32, u32)> {
        let group = self.groups.get(c.group)?;
        let to_side = if group.sides[1].is_empty() { 0 } else { 1 - c.side };
        Some((group.world(c.side, c.from)?, group.world(to_side, c.to)?))
    }

    /// How many of a rank's calls are made.
    fn before<T>(&self, calls: &[T], rank: u32, call: impl Fn(&T) -> u64) -> usize {
        let cut = self.cuts.get(&rank).copied().unwrap_or(0);
        calls.partition_point(|c| call(c) < cut)
    }

    /// Takes calls away until the cut is consistent.
    fn shrink(&mut self) {
        let mut from: HashMap<u32, Vec<Channel>> = HashMap::new();
        for channel in self.channels.keys() {
            if let Some((sender, _)) = self.ends(channel) {
                from.entry(sender).or_default().push(*channel);
            }
        }
        let mut of: HashMap<u32, Vec<(u32, u32)>> = HashMap::new();
        for (key, members) in &self.parts {
            let group = self.groups.get(key.0).into_iter().flat_map(|g| g.members());
            group.chain(members.keys().copied()).for_each(|rank| of.entry(rank).or_default().push(*key));
        }
        let mut changed: Vec<u32> = self.cuts.keys().copied().collect();
        while let Some(rank) = changed.pop() {
            let mut demands = Vec::new();
            self.held_at(rank, &mut demands);
            for channel in from.get(&rank).into_iter().flatten() {
                self.receiver(channel, rank, &mut demands);
            }
            for key in of.get(&rank).into_iter().flatten() {
                let members = &self.parts[key];
                let n = members.get(&rank).map_or(0, |calls| self.before(calls, rank, |c| *c));
                demands.extend(members.iter().filter_map(|(r, calls)| calls.get(n).map(|c| (*r, *c))));
            }
            for (rank, at_most) in demands {
                if let Some(cut) = self.cuts.get_mut(&rank).filter(|cut| **cut > at_most) {
                    *cut = at_most;
                    changed.push(rank);
                }
            }
        }
    }

    fn held_at(&self, rank: u32, demands: &mut Vec<(u32, u64)>) {
        let cut = self.cuts.get(&rank).copied().unwrap_or(0);
        let held = self.held.get(&rank).into_iter().flatten();
        demands.extend(held.filter(|(a, b)| *a < cut && cut <= *b).map(|(a, _)| (rank, *a)));
    }

    /// What the messages that a rank has sent leave to their receiver.
    fn receiver(&self, channel: &Channel, rank: u32, demands: &mut Vec<(u32, u64)>) {
        let (Some(t), Some((_, to))) = (self.channels.get(channel), self.ends(channel)) else { return };
        let sent = self.before(&t.sends, rank, |s| s.0);
        demands.extend(t.receives.get(sent).map(|call| (to, *call)));
        // A probe finds the first message that is not being received.
        let lacks = |probe: &u64| t.receives.partition_point(|r| r < probe) >= sent;
        let first = t.probes.partition_point(|p| !lacks(p));
        demands.extend(t.probes.get(first).map(|call| (to, *call)));
    }
}

/// The most events of a rank that are replayed: at least `MPI_Init`, and not `MPI_Finalize`.
fn limit_of(section: &Section, rank: u32, limit: Limit) -> Result<u64, Error> {
    let most = match limit {
        Limit::Calls(n) => n,
        Limit::Time(_) => u64::MAX,
    };
    let Some(mut calls) = section.project(0, rank) else { return Ok(0) };
    let mut pace = Pace::new(section, 0, rank)?;
    let (mut n, mut elapsed, mut words) = (0, 0u64, Vec::new());
    while let Some(sym) = calls.next_call(&mut words)? {
        let row = section.symbols.get(sym as usize).and_then(|s| CallTable::builtin().get(s.call));
        let ends = row.is_some_and(|row| row.kind == Kind::Finalize);
        let step = pace.step(sym);
        if n > 0 {
            elapsed = elapsed.saturating_add(step.gap).saturating_add(step.duration);
        }
        let late = matches!(limit, Limit::Time(ns) if elapsed > ns);
        if n > 0 && (n >= most || late || ends) {
            break;
        }
        n += 1;
    }
    Ok(n)
}
