//! One graph in several processes, each of which has read some of the ranks.
//!
//! Every match is made in one place. A message is matched by the process that has its receiver; a collective operation
//! whose members are in several processes, by one of these, its *home*, the n-th operation by the n-th of them in turn.
//! What the others know of it is sent there, and what came out is sent back: an operation at a point of one of their
//! threads. Such an operation is a *link* between the two processes; both number their links alike, so that times are
//! handed over by number.
//!
//! Three rounds of messages, which the caller carries: [`roll`], what threads there are; [`Matcher::sent`], ends of
//! messages and parts in collective operations; [`Matcher::matched`], what came out.

use st_model::num::{Exact, narrow};
use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::collective::Part;
use super::matcher::{Matcher, Waiting};
use super::sharing::{Outgoing, Sharing, host, points};
use super::{
    ENTER, Graph, Group, LEAVE, LIMIT, NOBODY, Op, RECEIVE, RECEIVE_PAIR, SEND_FAR, SEND_NEAR, Stream, TELL,
};
use crate::channel::Channel;
use st_model::calls::roles::Rule;
use st_model::objects::Name;
use st_model::ranks::{RankSeq, Run};
use st_model::section::Section;
use st_stream::DecodeError;
use st_stream::bytes::{
    get_i64, get_id, get_len, get_str, get_u8, get_u32, get_u64, put_i64, put_id, put_str, put_u64, put_usize,
};

/// Why what other processes sent cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShareError {
    /// Two inputs have the same rank.
    #[error("rank {0} is there twice")]
    Twice(u32),
    /// The processes run different programs.
    #[error("what another process sent cannot be read")]
    Decode(#[from] DecodeError),
}

/// How the graph of one process continues in others.
///
/// The *places* of a graph, where times are handed over, are its messages, then the slots of its collective
/// operations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Links {
    /// Per process: the place of each link.
    pub places: Vec<Vec<u32>>,
    /// Process of each stream.
    pub owners: Vec<u32>,
    /// Per place the process and the number of its link; empty if there is one process.
    routes: Vec<(u32, u32)>,
}

impl Links {
    /// Where the time of a place comes from or goes to: process and number of the link; `None` if it stays here.
    #[must_use]
    #[inline]
    pub fn route(&self, place: usize) -> Option<(u32, u32)> {
        self.routes.get(place).copied().filter(|(process, _)| *process != NOBODY)
    }
    /// Whether there is one process.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.owners.is_empty()
    }
}

/// A place of which the number of messages is not yet known: a slot.
const SLOT: u32 = 1 << 31;

const GROUP: u8 = 0;
const END: u8 = 1;
const PART: u8 = 2;

/// What the other processes must know of the ranks of this one; `own` says of a section's ranks which these are.
pub fn roll<'a>(sections: impl IntoIterator<Item = &'a Section>, own: impl Fn(u32) -> bool) -> Vec<u8> {
    let mut out = Vec::new();
    for section in sections {
        for rank in section.ranks.iter().filter(|r| own(*r)) {
            put_u64(&mut out, rank.into());
            put_str(&mut out, host(section, rank));
            let threads = || section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank));
            put_usize(&mut out, threads().count());
            for (i, thread) in threads() {
                put_usize(&mut out, i);
                put_u64(&mut out, points(thread, rank).into());
            }
        }
    }
    out
}

impl Matcher {
    /// Begins a graph in several processes, of which this is the `me`-th, from what each wrote by [`roll`].
    ///
    /// # Errors
    ///
    /// If a rank is there twice.
    pub fn share(&mut self, me: usize, rolls: &[Vec<u8>]) -> Result<(), ShareError> {
        let process = narrow::<u32>;
        let mut s = Sharing {
            me: process(me),
            ranks: HashMap::default(),
            out: rolls.iter().map(|_| Outgoing::default()).collect(),
            spread: HashMap::default(),
            here: vec![Vec::new(); rolls.len()],
            there: vec![Vec::new(); rolls.len()],
            owners: Vec::new(),
        };
        for (p, mut src) in rolls.iter().enumerate().map(|(p, r)| (process(p), r.as_slice())) {
            while !src.is_empty() {
                let rank = get_u32(&mut src)?;
                let node = self.node(&get_str(&mut src)?);
                self.node_of.insert(rank.into(), node);
                let first = narrow(self.graph.streams.len());
                let n = get_len(&mut src)?;
                for _ in 0..n {
                    let (thread, points) = (get_u32(&mut src)?, get_u32(&mut src)?);
                    self.graph.streams.push(Stream { rank, thread, node, points });
                    self.graph.ops.push(Vec::new());
                    s.owners.push(p);
                }
                let n = narrow(n);
                if s.ranks.insert(rank, (p, first, n)).is_some() {
                    return Err(ShareError::Twice(rank));
                }
            }
        }
        self.sharing = Some(Box::new(s));
        Ok(())
    }

    /// The first stream of a rank, if this process has it.
    pub(super) fn first_stream(&self, rank: u32) -> Option<usize> {
        let sharing = self.sharing.as_ref()?;
        let (process, first, _) = sharing.ranks.get(&rank).copied()?;
        (process == sharing.me).then_some(first as usize)
    }

    /// Where an end meets the other: sends do at the process that has the receiver. True if that is another one.
    pub(super) fn send_end(&mut self, key: Channel, mine: Waiting) -> bool {
        let Some(s) = &mut self.sharing else { return false };
        let group = &self.graph.groups[key.group as usize];
        let side = if group.sides[1].is_empty() { 0 } else { 1 - key.side };
        let to = group.sides[usize::from(side)].get(key.to.into());
        let to = to.and_then(|r| s.ranks.get(&u32::try_from(r).ok()?)).map(|r| r.0);
        let Some(to) = to.filter(|p| *p != s.me) else { return false };
        let out = &mut s.out[to as usize];
        out.name(&self.names, key.group, group);
        out.bytes.push(END);
        out.bytes.push(u8::from(mine.sync) | u8::from(self.channels.is_unordered(&key)) << 1 | key.side << 2);
        for v in [key.group, key.from, key.to, mine.stream, mine.point, mine.other.wrapping_add(1)] {
            put_u64(&mut out.bytes, v.into());
        }
        put_i64(&mut out.bytes, key.tag);
        put_u64(&mut out.bytes, mine.sequence);
        true
    }

    /// Sends a part of an operation with members in several processes to its home. True if it is such a one.
    pub(super) fn send_part(&mut self, stream: u32, part: &Part, sequence: u64) -> bool {
        let Some(s) = &mut self.sharing else { return false };
        let group = &self.graph.groups[part.group as usize];
        let ranks = &s.ranks;
        let homes = s.spread.entry(part.group).or_insert_with(|| {
            let members = group.sides.iter().flat_map(RankSeq::iter);
            let all = members.filter_map(|r| ranks.get(&u32::try_from(r).ok()?)).map(|r| r.0);
            let all: HashSet<u32, FixedState> = all.collect();
            let mut all: Vec<u32> = all.into_iter().collect();
            all.sort_unstable();
            all
        });
        if homes.len() < 2 {
            return false;
        }
        // Persistent operations have their number in the upper half.
        let turn = sequence.wrapping_add(sequence >> 32) % homes.len() as u64;
        let home = homes[turn.to_usize()];
        let out = &mut s.out[home as usize];
        out.name(&self.names, part.group, group);
        out.bytes.push(PART);
        let flags = u8::from(part.sends) | u8::from(part.receives) << 1 | part.side << 2;
        out.bytes.extend_from_slice(&[flags, part.rule.number()]);
        for v in [part.group, part.me, stream, part.enter, part.exit.wrapping_add(1)] {
            put_u64(&mut out.bytes, v.into());
        }
        put_u64(&mut out.bytes, part.root.map_or(0, |(s, p)| (u64::from(p) << 1 | u64::from(s)) + 1));
        put_u64(&mut out.bytes, sequence);
        true
    }

    /// What each process must know of the ends and parts of this one, after [`Matcher::add`] of all its sections.
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        let Some(s) = &mut self.sharing else { return Vec::new() };
        s.out.iter_mut().map(|o| std::mem::take(&mut o.bytes)).collect()
    }

    /// Matches what the processes sent. Returns what each must know of it.
    ///
    /// # Errors
    ///
    /// If a process runs another program.
    pub fn matched(&mut self, from: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, ShareError> {
        for bytes in from {
            self.take_in(bytes)?;
        }
        // Slots are counted by the members that have nodes.
        self.place();
        let Some(mut s) = self.sharing.take() else { return Ok(Vec::new()) };
        let mut out = vec![Vec::new(); from.len()];
        for stream in 0..self.graph.streams.len() {
            let owner = s.owners[stream];
            if owner == s.me || self.graph.ops[stream].is_empty() {
                continue;
            }
            let mut ops = std::mem::take(&mut self.graph.ops[stream]);
            ops.sort_unstable();
            for op in ops {
                self.tell(&mut out[owner as usize], &mut s.here[owner as usize], stream, op);
            }
        }
        self.sharing = Some(s);
        Ok(out)
    }

    /// Adds the ends and parts that a process sent.
    fn take_in(&mut self, mut src: &[u8]) -> Result<(), DecodeError> {
        let src = &mut src;
        let mut groups: HashMap<u32, u32, FixedState> = HashMap::default();
        let streams = self.graph.streams.len();
        while !src.is_empty() {
            match get_u8(src)? {
                GROUP => {
                    let (theirs, name) = (get_u32(src)?, get_id(src)?);
                    let sides = [get_seq(src)?, get_seq(src)?];
                    groups.insert(theirs, self.group(name, || sides));
                }
                END => {
                    let flags = get_u8(src)?;
                    let group = *groups.get(&get_u32(src)?).ok_or(DecodeError::Integer)?;
                    let (from, to, stream, point) =
                        (get_u32(src)?, get_u32(src)?, get_u32(src)?, get_u32(src)?);
                    let other = get_u32(src)?.wrapping_sub(1);
                    let (tag, sequence) = (get_i64(src)?, get_u64(src)?);
                    let key = Channel { group, side: flags >> 2 & 1, from, to, tag };
                    if stream as usize >= streams {
                        return Err(DecodeError::Integer);
                    }
                    if flags & 2 != 0 {
                        self.channels.confuse(key);
                    }
                    let sync = flags & 1 != 0;
                    self.meet(key, Waiting { stream, point, other, sequence, sync }, false);
                }
                PART => {
                    let (flags, rule) = (get_u8(src)?, get_u8(src)?);
                    let group = *groups.get(&get_u32(src)?).ok_or(DecodeError::Integer)?;
                    let (me, stream, enter) = (get_u32(src)?, get_u32(src)?, get_u32(src)?);
                    let exit = get_u32(src)?.wrapping_sub(1);
                    let root = get_u64(src)?.checked_sub(1);
                    let position = |r: u64| u32::try_from(r >> 1).map_err(|_| DecodeError::Integer);
                    let root = root.map(|r| Ok::<_, DecodeError>((u8::from(r & 1 == 1), position(r)?)));
                    let part = Part {
                        group,
                        side: flags >> 2 & 1,
                        me,
                        rule: Rule::from_number(rule).ok_or(DecodeError::Integer)?,
                        root: root.transpose()?,
                        persistent: None,
                        sends: flags & 1 != 0,
                        receives: flags & 2 != 0,
                        enter,
                        exit,
                        pairs: None,
                    };
                    if stream as usize >= streams {
                        return Err(DecodeError::Integer);
                    }
                    self.part(stream, &part, get_u64(src)?);
                }
                _ => return Err(DecodeError::Integer),
            }
        }
        Ok(())
    }

    /// Tells the owner of a thread what happens at one of its points.
    fn tell(&self, out: &mut Vec<u8>, places: &mut Vec<u32>, stream: usize, op: Op) {
        let (kind, id) = (op.code & 7, op.code >> 3);
        let graph = &self.graph;
        let position_on = |side: u8| {
            let group = &graph.groups[graph.instances[id as usize].group as usize];
            let rank = graph.streams[stream].rank;
            let position = group.sides[usize::from(side)].position(rank.into());
            position.map_or(0, Exact::to_usize)
        };
        let slot = |slot: usize| SLOT | narrow::<u32>(slot);
        let place = match kind {
            ENTER | LEAVE => {
                let i = &graph.instances[id as usize];
                let group = &graph.groups[i.group as usize];
                if i.senders == 0 || i.receivers == 0 {
                    return;
                }
                slot(if kind == ENTER {
                    i.sender_slot(position_on(i.side))
                } else {
                    i.receiver_slot(group, position_on(i.to_side(group)))
                })
            }
            _ => id,
        };
        places.push(place);
        put_usize(out, stream);
        put_u64(out, op.at.into());
        put_u64(out, kind.into());
        if matches!(kind, RECEIVE | RECEIVE_PAIR) {
            put_u64(out, graph.senders[id as usize].into());
        }
    }

    /// The graph of this process and its links, from what the processes returned by [`Matcher::matched`].
    ///
    /// # Errors
    ///
    /// If a process runs another program.
    pub fn finish_shared(mut self, from: &[Vec<u8>]) -> Result<(Graph, Links), ShareError> {
        let Some(mut s) = self.sharing.take() else { return Ok((self.finish(), Links::default())) };
        for (process, mut src) in from.iter().enumerate().map(|(p, b)| (p, b.as_slice())) {
            let src = &mut src;
            while !src.is_empty() {
                let stream = get_u32(src)? as usize;
                let (at, kind) = (get_u32(src)?, get_u32(src)?);
                let (kind, sender) = match kind {
                    RECEIVE | RECEIVE_PAIR => (kind, get_u32(src)?),
                    SEND_NEAR | SEND_FAR => (kind, narrow(stream)),
                    LEAVE => (RECEIVE, NOBODY),
                    _ => (TELL, NOBODY),
                };
                if s.owners.get(stream) != Some(&s.me) || self.messages as usize >= LIMIT {
                    return Err(DecodeError::Integer.into());
                }
                self.graph.ops[stream].push(Op::new(at, kind, self.messages));
                self.graph.senders.push(sender);
                s.there[process].push(self.messages);
                self.messages += 1;
            }
        }
        let messages = self.messages;
        let graph = self.finish();
        let me = s.me as usize;
        let lists = s.here.into_iter().zip(s.there).enumerate();
        let places: Vec<Vec<u32>> = lists
            .map(|(p, (here, there))| {
                // Links to what was matched by the first of the two come first.
                let (mut a, b) = if me < p { (here, there) } else { (there, here) };
                a.extend(b);
                a.iter_mut().filter(|v| **v & SLOT != 0).for_each(|v| *v = (*v & !SLOT) + messages);
                a
            })
            .collect();
        let mut routes = vec![(NOBODY, 0); graph.senders.len() + graph.slots];
        for (process, list) in (0u32..).zip(&places) {
            for (k, place) in (0u32..).zip(list) {
                routes[*place as usize] = (process, k);
            }
        }
        Ok((graph, Links { places, owners: s.owners, routes }))
    }
}

impl Outgoing {
    /// Names a communicator, once.
    fn name(&mut self, names: &HashMap<Name, u32>, index: u32, group: &Group) {
        if !self.named.insert(index) {
            return;
        }
        // Rarely done: once per communicator and process.
        let name = names.iter().find(|(_, i)| **i == index).map_or(0, |(name, _)| *name);
        self.bytes.push(GROUP);
        put_u64(&mut self.bytes, index.into());
        put_id(&mut self.bytes, name);
        group.sides.iter().for_each(|side| put_seq(&mut self.bytes, side));
    }
}

fn put_seq(out: &mut Vec<u8>, seq: &RankSeq) {
    put_usize(out, seq.runs().len());
    for r in seq.runs().iter() {
        put_i64(out, r.start);
        put_i64(out, r.step);
        put_u64(out, r.n);
    }
}

fn get_seq(src: &mut &[u8]) -> Result<RankSeq, DecodeError> {
    let n = get_len(src)?;
    let mut runs = Vec::with_capacity(n);
    for _ in 0..n {
        runs.push(Run { start: get_i64(src)?, step: get_i64(src)?, n: get_u64(src)? });
    }
    Ok(RankSeq::from_runs(runs))
}
