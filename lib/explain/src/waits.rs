//! Wait states, and what they add up to.
//!
//! Source of the definitions: Scalasca's trace analyser, version 2.5 (pattern definitions). Two things differ. A root that
//! takes from all waits for the first of them, as there, and then for the last, which is a wait of its own: without it the
//! time would be the library's, and whoever waits for the root in turn would find no cause. And a message is in the wrong
//! order only if the rank sends nothing between its wait and the receive of the older message. Else that message often is
//! of a later step, which a neighbour has begun already, and no other order could have helped.

use std::collections::HashMap;

use foldhash::fast::FixedState;

/// Kinds of wait states.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WaitKind {
    /// A receive was there before its message was sent.
    LateSender,
    /// The same, while an older message from the same rank was there, which the rank received later without having sent
    /// anything in between: it could have taken that first.
    WrongOrderSame,
    /// The same, with an older message from another rank.
    WrongOrderOther,
    /// A send could not complete before its receive was posted.
    LateReceiver,
    /// An operation in which all wait for all: barriers, fences, what makes and frees communicators, windows and files.
    Barrier,
    /// Operations from all to all: waiting for the last that sends. Of any operation, waiting for one that has nothing to give: where the
    /// call goes on for longer than a millisecond beyond what it surely waits for, and ends soon after that one comes.
    AllToAll,
    /// Operations from one to all: waiting for the root.
    LateBroadcast,
    /// Operations from all to one: the root waits for the first of the others.
    EarlyReduce,
    /// The same, from then on until the last of the others.
    LateContribution,
    /// Prefix operations: waiting for ranks before the own.
    EarlyScan,
    /// An access to a window could not end before its rank had posted it.
    LatePost,
    /// A rank waited for accesses to its window to be completed.
    EarlyWait,
}

impl WaitKind {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::LateSender,
        Self::WrongOrderSame,
        Self::WrongOrderOther,
        Self::LateReceiver,
        Self::Barrier,
        Self::AllToAll,
        Self::LateBroadcast,
        Self::EarlyReduce,
        Self::LateContribution,
        Self::EarlyScan,
        Self::LatePost,
        Self::EarlyWait,
    ];

    /// Its name, as Scalasca has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LateSender => "late sender",
            Self::WrongOrderSame => "late sender, wrong order, same source",
            Self::WrongOrderOther => "late sender, wrong order, different sources",
            Self::LateReceiver => "late receiver",
            Self::Barrier => "wait at barrier",
            Self::AllToAll => "wait at NxN",
            Self::LateBroadcast => "late broadcast",
            Self::EarlyReduce => "early reduce",
            Self::LateContribution => "late contribution",
            Self::EarlyScan => "early scan",
            Self::LatePost => "late post",
            Self::EarlyWait => "early wait",
        }
    }
}

/// A number of waits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sum {
    /// How many.
    pub count: u64,
    /// How long in all, ns.
    pub ns: u64,
    /// The longest, ns.
    pub longest: u64,
}

impl Sum {
    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        self.ns = self.ns.saturating_add(other.ns);
        self.longest = self.longest.max(other.longest);
    }

    /// Takes away what was added; the longest stays.
    fn take(&mut self, other: Self) {
        self.count = self.count.saturating_sub(other.count);
        self.ns = self.ns.saturating_sub(other.ns);
    }
}

/// A rank at a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct At {
    /// World rank.
    pub rank: u32,
    /// Number of the place ([`crate::Places`]).
    pub place: u32,
}

/// One wait state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Wait {
    /// Which.
    pub kind: WaitKind,
    /// Who waits, and in which call.
    pub victim: At,
    /// Who comes too late, and with which call.
    pub culprit: At,
    /// How long, ns.
    pub ns: u64,
}

/// Waits of a trace, added up. Memory is bounded by places, ranks, and pairs of ranks.
#[derive(Clone, Default, Debug)]
pub struct Waits {
    /// By kind and who waits where.
    pub victims: HashMap<(WaitKind, At), Sum, FixedState>,
    /// By kind, place of those who wait, and whom they wait for.
    pub culprits: HashMap<(WaitKind, u32, At), Sum, FixedState>,
    /// By rank that waits and rank that comes too late.
    pub pairs: HashMap<(u32, u32), Sum, FixedState>,
    /// By place of tests that found nothing, and for whom they were made, as far as that is known: they are in no other sum.
    pub polls: HashMap<(u32, At), Sum, FixedState>,
    /// Waits that would end after the call in which they are: what clocks that disagree make. They are cut there.
    pub violations: u64,
}

/// Pairs of ranks that are kept apart: what more there are is not in [`Waits::pairs`].
const PAIRS: usize = 1 << 22;

impl Waits {
    /// Adds a wait.
    pub(crate) fn add(&mut self, wait: &Wait) {
        let one = Sum { count: 1, ns: wait.ns, longest: wait.ns };
        self.enter(wait, one);
        let pair = (wait.victim.rank, wait.culprit.rank);
        if self.pairs.len() < PAIRS {
            self.pairs.entry(pair).or_default().add(one);
        } else if let Some(sum) = self.pairs.get_mut(&pair) {
            sum.add(one);
        }
    }

    fn enter(&mut self, wait: &Wait, sum: Sum) {
        self.victims.entry((wait.kind, wait.victim)).or_default().add(sum);
        self.culprits.entry((wait.kind, wait.victim.place, wait.culprit)).or_default().add(sum);
    }

    /// Waits that turn out to be of another kind.
    pub(crate) fn rename(&mut self, wait: &Wait, to: WaitKind, sum: Sum) {
        take(&mut self.victims, &(wait.kind, wait.victim), sum);
        take(&mut self.culprits, &(wait.kind, wait.victim.place, wait.culprit), sum);
        self.enter(&Wait { kind: to, ..*wait }, sum);
    }

    /// All waits together.
    #[must_use]
    pub fn total(&self) -> Sum {
        let mut all = Sum::default();
        self.victims.values().for_each(|s| all.add(*s));
        all
    }

    /// By kind and place: the ranks that wait there, ascending, and how long, ns.
    pub(crate) fn by_place(&self) -> HashMap<(WaitKind, u32), Vec<(u32, u64)>, FixedState> {
        let mut all: HashMap<(WaitKind, u32), Vec<(u32, u64)>, FixedState> = HashMap::default();
        for ((kind, at), sum) in &self.victims {
            all.entry((*kind, at.place)).or_default().push((at.rank, sum.ns));
        }
        all.values_mut().for_each(|ranks| ranks.sort_unstable());
        all
    }

    /// Waits of a kind.
    #[must_use]
    pub fn of(&self, kind: WaitKind) -> Sum {
        let mut all = Sum::default();
        self.victims.iter().filter(|((k, _), _)| *k == kind).for_each(|(_, s)| all.add(*s));
        all
    }
}

fn take<K: Eq + std::hash::Hash>(from: &mut HashMap<K, Sum, FixedState>, key: &K, sum: Sum) {
    if let Some(left) = from.get_mut(key) {
        left.take(sum);
        if left.count == 0 {
            from.remove(key);
        }
    }
}
