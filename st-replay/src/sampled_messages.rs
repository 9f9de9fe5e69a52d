//! Replay of traces in which parameters of messages are histograms: who sends what to whom is drawn.
//!
//! A draw depends on the sender, the call and the number of the value alone ([`st_model::frequencies`]), so every rank
//! that reads a sender's calls finds the same messages. A rank walks its own calls and sends what it draws; its recorded
//! receives say nothing about what then arrives, and are not made. What it receives it derives from *contexts*: cursors
//! over the calls of those that send to it, each with a clock of the time that its sender computed and communicated.
//!
//! # Rules
//!
//! 1. Every message is sent by `MPI_Isend`, and nothing waits for it but rule 4.
//! 2. Every message is received by `MPI_Irecv`, posted when the clock of the sender's context has not passed the receiver's,
//!    in the order of the sender's messages to the receiver; nothing waits for it but rule 4.
//! 3. Collective operations, communicators and roots are as recorded, and block.
//! 4. Before `MPI_Finalize` a rank posts all receives that are left, and then waits for all its messages.
//!
//! The recorded calls that send, receive and look for messages are made with `MPI_PROC_NULL` as partner: they, and what
//! waits for them, return at once, and each function is called as often as it was recorded.
//!
//! # Why it cannot deadlock
//!
//! Before rule 4 a rank blocks in collective operations only. All ranks' collective operations are those of a run that came
//! to its end, so there is an order of all of them that each rank's own order agrees with. Take the first operation in
//! that order which does not end: all of its members that have not come to it are between operations that did end, where
//! nothing blocks, so they come to it; it ends, and there is no such operation. So all ranks come to rule 4. There all
//! messages have been started, and a receive for each has been posted: sender and receiver count the same messages,
//! because they draw the same values; the n-th of a pair has the tag of its number and its size at both ends, and
//! `MPI_Isend` and `MPI_Irecv` that match complete whatever else happens (MPI 3.1, section 3.7.4, progress). A sender that
//! has not yet come to rule 4 comes to it without waiting for anybody there. So all waiting ends.
//!
//! # Cost
//!
//! A rank reads its own calls once to tell its receivers that it sends to them, and those of its senders once each: near-linear
//! where the number of partners is bounded, whatever the number of ranks. Contexts are read while the rank computes, up to
//! its own clock: reading them takes no time of its own as long as it takes less than the computation. Memory is bounded by
//! the messages under way.
//!
//! Source: Wu, Mueller 2013, section 3.5. There sends and receives keep their kinds, and absence of deadlock is observed;
//! here rules 1, 2 and 4 make it a property.

use st_model::num::saturate;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};

use st_model::calls::roles::{Action, Role, Start};
use st_model::calls::words::{Words, slot};
use st_model::calls::{CallTable, Meaning, Row};
use st_model::project::{Error, Projection};
use st_model::section::{Section, Sym, Tables};
use st_model::values::PROC_NULL;

use crate::factor::Factor;
use crate::pace::Pace;

/// A message as sender and receiver see it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Message {
    /// World rank of the sender.
    pub from: u32,
    /// World rank of the receiver.
    pub to: u32,
    /// The how-many-th of this pair.
    pub number: u64,
    /// Size.
    pub bytes: u64,
}

/// Finds the messages that a rank sends in its calls, one after the other.
#[derive(Debug)]
pub struct Sender<'a> {
    section: &'a Section,
    rank: u32,
    roles: Vec<Option<(&'static Row, Role)>>,
    /// What persistent sends are of, by request.
    persistent: HashMap<i64, Option<(u32, u64)>>,
    numbers: HashMap<u32, u64>,
    words: Words,
    /// How much larger messages are than recorded.
    scale: Factor,
}

impl<'a> Sender<'a> {
    /// Of a rank of a section; numbers of elements are multiplied by `scale`, and rounded down.
    #[must_use]
    pub fn new(section: &'a Section, rank: u32, scale: Factor) -> Self {
        let role = |s: &st_model::section::Symbol| {
            let row = CallTable::builtin().get(s.call).filter(|r| s.error == 0 && !r.properties.opaque)?;
            let role = Role::of(row);
            let sends = matches!(
                role.action,
                Action::Send { .. } | Action::Both { .. } | Action::Start | Action::Free
            );
            sends.then_some((row, role))
        };
        Self {
            section,
            rank,
            roles: section.symbols.iter().map(role).collect(),
            persistent: HashMap::new(),
            numbers: HashMap::new(),
            words: Words::default(),
            scale,
        }
    }

    /// Looks at the rank's next call, and adds the messages that it sends.
    pub fn see(&mut self, sym: Sym, words: &[i64], sent: &mut impl Extend<Message>) {
        let Some(Some((row, role))) = self.roles.get(sym as usize) else { return };
        let (row, role) = (*row, *role);
        self.words.words.clear();
        self.words.words.extend_from_slice(words);
        self.words.split(&row.slots);
        match role.action {
            Action::Send { start: Start::Persistent, .. } => {
                let template = self.named(row, &role);
                self.persistent.insert(self.words.one(role.request), template);
            }
            Action::Send { .. } | Action::Both { .. } => {
                if let Some((to, bytes)) = self.named(row, &role) {
                    sent.extend([self.message(to, bytes)]);
                }
            }
            Action::Start => {
                let all = if role.requests == u8::MAX {
                    vec![self.words.one(role.request)]
                } else {
                    self.words.list(role.requests).to_vec()
                };
                let started = all.iter().filter_map(|r| self.persistent.get(r).copied().flatten());
                for (to, bytes) in started.collect::<Vec<_>>() {
                    sent.extend([self.message(to, bytes)]);
                }
            }
            Action::Free => {
                self.persistent.remove(&self.words.one(role.request));
            }
            _ => {}
        }
    }

    /// World rank and bytes that the call names; `None` without partner.
    fn named(&self, row: &Row, role: &Role) -> Option<(u32, u64)> {
        let (words, tables) = (&self.words, &self.section.tables);
        let comm = Tables::find(&tables.comms, words.one(role.comm), self.rank)?;
        let position = u64::try_from(words.one(role.peer[0])).ok()?;
        let to = comm.content.peers().get(position).and_then(|r| u32::try_from(r).ok())?;
        let size = Tables::find(&tables.types, words.one(role.types[0]), self.rank);
        let parts = words.get(slot(row, "partitions")).unwrap_or(1);
        let bytes =
            size.map_or(0, |t| t.content.size).saturating_mul(self.scale.down(words.one(role.count[0])));
        Some((to, saturate(bytes.saturating_mul(parts))))
    }

    fn message(&mut self, to: u32, bytes: u64) -> Message {
        let number = self.numbers.entry(to).or_insert(0);
        *number += 1;
        Message { from: self.rank, to, number: *number - 1, bytes }
    }
}

/// The ranks that a rank sends to.
///
/// # Errors
///
/// If the section is malformed.
pub fn destinations(section: &Section, rank: u32) -> Result<BTreeSet<u32>, Error> {
    let mut all = BTreeSet::new();
    let Some(mut calls) = section.project(0, rank) else { return Ok(all) };
    let (mut sender, mut words, mut sent) = (Sender::new(section, rank, Factor::ONE), Vec::new(), Vec::new());
    while let Some(sym) = calls.next_call(&mut words)? {
        sender.see(sym, &words, &mut sent);
        all.extend(sent.drain(..).map(|m: Message| m.to));
    }
    Ok(all)
}

/// A cursor over the calls of one that sends to this rank.
#[derive(Debug)]
struct Context<'a> {
    calls: Projection<'a>,
    pace: Pace<'a>,
    sender: Sender<'a>,
    to: u32,
    /// Recorded time of the sender since `MPI_Init`, ns.
    clock: u64,
    /// Whether `MPI_Init` has been passed.
    begun: bool,
    words: Vec<i64>,
    /// Messages for this rank that have been found and not been told.
    found: VecDeque<Message>,
}

impl Context<'_> {
    /// When the next message for this rank is sent; `None` if there is none.
    fn advance(&mut self) -> Result<Option<u64>, Error> {
        let mut sent = Vec::new();
        while self.found.is_empty() {
            let Some(sym) = self.calls.next_call(&mut self.words)? else { return Ok(None) };
            let step = self.pace.step(sym);
            self.sender.see(sym, &self.words, &mut sent);
            self.found.extend(sent.drain(..).filter(|m: &Message| m.to == self.to));
            let before = self.clock.saturating_add(step.gap);
            if self.begun {
                self.clock = before.saturating_add(step.duration);
            }
            self.begun = true;
            if !self.found.is_empty() {
                return Ok(Some(before));
            }
        }
        Ok(Some(self.clock))
    }
}

/// What a rank receives, in the order in which it is sent.
#[derive(Debug)]
pub struct Arrivals<'a> {
    contexts: Vec<Context<'a>>,
    /// When the next message of each context is sent.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'a> Arrivals<'a> {
    /// What `to` receives from these senders, each with a section that holds it.
    ///
    /// # Errors
    ///
    /// If a section is malformed.
    pub fn new(
        to: u32,
        senders: impl IntoIterator<Item = (u32, &'a Section)>,
        scale: Factor,
    ) -> Result<Self, Error> {
        let (mut contexts, mut next) = (Vec::new(), BinaryHeap::new());
        for (from, section) in senders {
            let Some(calls) = section.project(0, from) else { continue };
            let (pace, sender) = (Pace::new(section, 0, from)?, Sender::new(section, from, scale));
            let (words, found) = (Vec::new(), VecDeque::new());
            contexts.push(Context { calls, pace, sender, to, clock: 0, begun: false, words, found });
            // Nothing is sent before the time 0: it is found out later, while the rank computes.
            next.push(Reverse((0, contexts.len() - 1)));
        }
        Ok(Self { contexts, next })
    }

    /// The next message that was sent by the time `until`, ns of the sender since `MPI_Init`.
    ///
    /// # Errors
    ///
    /// If a section is malformed.
    pub fn next(&mut self, until: u64) -> Result<Option<Message>, Error> {
        loop {
            let Some(&Reverse((time, i))) = self.next.peek() else { return Ok(None) };
            if time > until {
                return Ok(None);
            }
            self.next.pop();
            let Some(context) = self.contexts.get_mut(i) else { continue };
            let message = context.found.pop_front();
            let later = if context.found.is_empty() { context.advance()? } else { Some(time) };
            if let Some(later) = later {
                self.next.push(Reverse((later, i)));
            }
            if message.is_some() {
                return Ok(message);
            }
        }
    }
}

/// Takes the partners out of recorded calls that send, receive or look for messages.
#[derive(Debug)]
pub struct Silence {
    /// By symbol: whether each slot is a list, and whether it is a partner; empty if none is.
    slots: Vec<Vec<(bool, bool)>>,
}

impl Silence {
    /// Over the calls of a section.
    #[must_use]
    pub fn new(section: &Section) -> Self {
        let of = |s: &st_model::section::Symbol| {
            let row = CallTable::builtin().get(s.call)?;
            let tagged = row.slots.iter().any(|s| s.meaning == Meaning::Tag && !s.list);
            let partner = |name: &str| tagged && matches!(name, "dest" | "source");
            let slots: Vec<_> = row.slots.iter().map(|s| (s.list, !s.list && partner(&s.name))).collect();
            slots.iter().any(|(_, p)| *p).then_some(slots)
        };
        Self { slots: section.symbols.iter().map(|s| of(s).unwrap_or_default()).collect() }
    }

    /// Puts `MPI_PROC_NULL` in the place of partners.
    pub fn apply(&self, sym: Sym, words: &mut [i64]) {
        let mut rest = words;
        for (list, partner) in self.slots.get(sym as usize).into_iter().flatten() {
            let Some((first, tail)) = rest.split_first_mut() else { return };
            if *partner {
                *first = PROC_NULL;
            }
            let skipped = if *list { saturate::<usize>(*first).min(tail.len()) } else { 0 };
            rest = tail.split_at_mut(skipped).1;
        }
    }
}
