//! How many messages arrive before they were sent.
//!
//! Definitions: a *logical message* is counted once per receive (per thread leaving a collective operation) and compared
//! with the sender that binds it, the one of the largest time plus latency. It is *reversed* if it is received before
//! it was sent, *violated* if it is received earlier than the least latency after. Edges are counted beside it, each
//! pair of a collective operation by itself.
//!
//! The least latency is what a user says, or else what the messages themselves show: within a node, and between nodes, the
//! shortest time that one takes ([`Shortest`]), since no real message is below it; and nothing where one seems to arrive
//! before it was sent, which only the clocks can be blamed for. So without anything said a message is violated if
//! it is reversed. Source: Becker et al. 2008, section 5, figure 3 and table 1, which do not
//! say which of the two they count.

use std::collections::BTreeMap;

use super::Latency;

/// Counts of a set of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// All.
    pub messages: u64,
    /// Received before they were sent.
    pub reversed: u64,
    /// Received earlier than possible, reversed ones included.
    pub violated: u64,
    /// Sum over the violated ones of how much too early they are, ns: earlier than the least latency after they were sent.
    pub error: u128,
    /// The largest of these, ns.
    pub largest: i64,
}

impl Tally {
    /// Adds the counts of other messages.
    pub fn absorb(&mut self, other: &Self) {
        self.messages += other.messages;
        self.reversed += other.reversed;
        self.violated += other.violated;
        self.error += other.error;
        self.largest = self.largest.max(other.largest);
    }
    /// Counts a message, but not by how much it is too early.
    pub(super) fn count(&mut self, edge: Edge) {
        self.messages += 1;
        self.reversed += u64::from(edge.received < edge.sent);
        self.violated += u64::from(edge.received < edge.bound());
    }
    /// Adds a message.
    pub(super) fn add(&mut self, edge: Edge) {
        self.count(edge);
        let error = edge.bound().saturating_sub(edge.received).max(0);
        self.error += u128::from(error.unsigned_abs());
        self.largest = self.largest.max(error);
    }
    /// Mean over the violated messages of how much too early they are, ns.
    #[must_use]
    pub fn mean_error(&self) -> u128 {
        self.error / u128::from(self.violated.max(1))
    }
}

/// A message between world ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) sent: i64,
    pub(super) received: i64,
    /// The least that it can take, ns.
    pub(super) latency: i64,
}

impl Edge {
    /// Before when it cannot be received.
    pub(super) fn bound(self) -> i64 {
        self.sent.saturating_add(self.latency)
    }
    /// The one that binds a receiver of both.
    pub(super) fn later(self, other: Self) -> Self {
        if (other.bound(), other.from) > (self.bound(), self.from) { other } else { self }
    }
}

/// The shortest times of messages by the trace's clocks, ns, less than nothing for reversed ones; [`i64::MAX`] if there are no
/// messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shortest {
    /// Within a node.
    pub near: i64,
    /// Between nodes.
    pub far: i64,
}

impl Default for Shortest {
    fn default() -> Self {
        Self { near: i64::MAX, far: i64::MAX }
    }
}

impl Shortest {
    /// The least latencies that the messages show.
    #[must_use]
    pub fn latency(self) -> Latency {
        let [near, far] = [self.near, self.far].map(|t| if t == i64::MAX { 0 } else { t.max(0) });
        Latency { near, far }
    }
    /// Takes in those of other messages.
    pub fn absorb(&mut self, other: Self) {
        *self = Self { near: self.near.min(other.near), far: self.far.min(other.far) };
    }
    pub(super) fn add(&mut self, near: bool, sent: i64, received: i64) {
        let known = if near { &mut self.near } else { &mut self.far };
        *known = received.saturating_sub(sent).min(*known);
    }
}

/// From the first point to the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// When the first is, ns.
    pub first: i64,
    /// When the last is, ns.
    pub last: i64,
}

impl Span {
    /// Of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// How long it is: it may be longer than a time can be.
    #[must_use]
    pub fn ns(self) -> i128 {
        i128::from(self.last) - i128::from(self.first)
    }
}

/// What a trace's messages say about its clocks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Survey {
    /// Point-to-point messages.
    pub messages: Tally,
    /// Logical messages of collective operations.
    pub collective: Tally,
    /// Edges of collective operations, each pair by itself. Errors are not summed.
    pub pairs: Tally,
    /// Violated messages by (sender, receiver) in world ranks, binding pairs only.
    pub ranks: BTreeMap<(u32, u32), Tally>,
    /// Violated messages by when they are received: counts in equal parts of [`Survey::span`].
    pub over_time: Vec<u64>,
    /// First and last point.
    pub span: Span,
    /// The shortest times of edges of both kinds.
    pub shortest: Shortest,
}

impl Survey {
    /// Of no message yet, in a span.
    #[must_use]
    pub fn none(span: Span) -> Self {
        Self { over_time: vec![0; PARTS], span, ..Self::default() }
    }

    /// Logical messages of both kinds.
    #[must_use]
    pub fn all(&self) -> Tally {
        let mut all = self.messages;
        all.absorb(&self.collective);
        all
    }

    /// Adds what another process has surveyed.
    pub fn absorb(&mut self, other: &Self) {
        self.messages.absorb(&other.messages);
        self.collective.absorb(&other.collective);
        self.pairs.absorb(&other.pairs);
        self.shortest.absorb(other.shortest);
        for (pair, tally) in &other.ranks {
            self.ranks.entry(*pair).or_default().absorb(tally);
        }
        self.over_time.iter_mut().zip(&other.over_time).for_each(|(a, b)| *a += b);
    }

    /// Adds the logical message of a collective operation.
    pub(super) fn collective(&mut self, edge: Edge) {
        self.collective.add(edge);
        self.violation(edge);
    }

    pub(super) fn violation(&mut self, edge: Edge) {
        let Edge { from, to, received, .. } = edge;
        if received >= edge.bound() {
            return;
        }
        self.ranks.entry((from, to)).or_default().add(edge);
        let since = Span { last: received, ..self.span }.ns();
        let at = since * self.over_time.len() as i128 / (self.span.ns() + 1);
        if let Some(n) = usize::try_from(at).ok().and_then(|i| self.over_time.get_mut(i)) {
            *n += 1;
        }
    }
}

/// Parts that [`Survey::over_time`] has.
const PARTS: usize = 100;
