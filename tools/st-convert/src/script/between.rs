//! Collective operations between two groups.

use st_model::calls::roles::Rule;
use st_model::event::{RECEIVED, SENT};
use st_model::num::Exact as _;
use st_model::values::{PROC_NULL, ROOT};

use super::transfers::{Message, Transfer, tree};
use crate::amounts::Amounts;

/// One rank's part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Between<'a> {
    pub(super) rule: Rule,
    pub(super) me: usize,
    /// As the call names it: a position in the other group, [`ROOT`] or [`PROC_NULL`].
    pub(super) root: Option<i64>,
    /// Where the members of the rank's own group stand among the ranks that are converted.
    pub(super) own: &'a [usize],
    pub(super) others: &'a [usize],
    pub(super) amounts: &'a Amounts,
}

/// A rank's part in an operation with a root.
enum Part {
    Root,
    /// Of the other group: the root's place.
    For(usize),
    Nothing,
}

impl Between<'_> {
    fn part(&self) -> Part {
        match self.root {
            Some(ROOT) => Part::Root,
            Some(PROC_NULL) | None => Part::Nothing,
            Some(root) => {
                let place = usize::try_from(root).ok().and_then(|root| self.others.get(root));
                place.map_or(Part::Nothing, |place| Part::For(*place))
            }
        }
    }

    fn other(&self, member: usize, bytes: u64) -> Message {
        (self.others.get(member).copied().unwrap_or_default(), bytes)
    }

    fn size(&self, side: usize, member: usize) -> u64 {
        self.amounts.size(side, member)
    }

    /// Bytes of what all members of the own group get together.
    fn total(&self) -> u64 {
        (0..self.own.len()).map(|k| self.size(SENT, k)).fold(0, u64::saturating_add)
    }

    /// In rounds.
    pub(super) fn steps(&self) -> Vec<Transfer> {
        match self.rule {
            Rule::Barrier => self.by_firsts(0, true),
            Rule::Allreduce => self.by_firsts(self.size(SENT, 0), true),
            Rule::ReduceScatter => {
                let mut steps = self.by_firsts(self.total(), false);
                steps.extend(self.spread());
                steps
            }
            Rule::Bcast => self.below_root(false),
            Rule::Reduce => self.below_root(true),
            Rule::Allgather | Rule::Allgatherv | Rule::Alltoall | Rule::Alltoallv => self.pair_by_pair(),
            Rule::Gather | Rule::Scatter => self.at_once(),
            // Of one group only.
            Rule::Scan | Rule::Neighbour | Rule::NeighbourV => Vec::new(),
        }
    }

    /// To the first rank of the own group, between the first ones and, with `back`, to all again.
    fn by_firsts(&self, bytes: u64, back: bool) -> Vec<Transfer> {
        let mut steps = tree(self.own, self.me, 0, bytes, true);
        if self.me == 0 {
            let first = self.other(0, bytes);
            steps.push(Transfer::Exchange(first, first));
        }
        if back {
            steps.extend(tree(self.own, self.me, 0, bytes, false));
        }
        steps
    }

    /// From the first rank to each of the own group what is its.
    fn spread(&self) -> Vec<Transfer> {
        let first = self.own.first().copied().unwrap_or_default();
        if self.me > 0 {
            return vec![Transfer::Receive((first, self.size(SENT, self.me)))];
        }
        let rest = self.own.iter().enumerate().skip(1);
        rest.map(|(k, place)| Transfer::Send((*place, self.size(SENT, k)))).collect()
    }

    /// A tree of the root and the other group.
    fn below_root(&self, up: bool) -> Vec<Transfer> {
        let own_place = self.own.get(self.me).copied().unwrap_or_default();
        let (root, group, me) = match self.part() {
            Part::Root => (own_place, self.others, 0),
            Part::For(root) => (root, self.own, self.me + 1),
            Part::Nothing => return Vec::new(),
        };
        let members: Vec<usize> = std::iter::once(root).chain(group.iter().copied()).collect();
        tree(&members, me, 0, self.size(SENT, 0), up)
    }

    /// In each round another partner, or none: as many rounds as the larger group has members.
    fn pair_by_pair(&self) -> Vec<Transfer> {
        let rounds = self.own.len().max(self.others.len());
        let there = |k: usize| Some(k).filter(|k| *k < self.others.len());
        let round = |i: usize| {
            let to = there((self.me + i) % rounds).map(|k| self.other(k, self.size(SENT, k)));
            let from = there((self.me + rounds - i) % rounds).map(|k| self.other(k, self.size(RECEIVED, k)));
            match (to, from) {
                (Some(to), Some(from)) => Some(Transfer::Exchange(to, from)),
                (Some(to), None) => Some(Transfer::Send(to)),
                (None, from) => from.map(Transfer::Receive),
            }
        };
        (0..rounds).filter_map(round).collect()
    }

    /// Every message to its receiver.
    pub(super) fn at_once(&self) -> Vec<Transfer> {
        let all = 0..self.others.len();
        let send = |k: usize, bytes: u64| Transfer::Send(self.other(k, bytes));
        let receive = |k: usize, bytes: u64| Transfer::Receive(self.other(k, bytes));
        let both = |sent: &dyn Fn(usize) -> u64, received: &dyn Fn(usize) -> u64| {
            let receives = all.clone().map(|k| receive(k, received(k)));
            receives.chain(all.clone().map(|k| send(k, sent(k)))).collect()
        };
        let one = self.size(SENT, 0);
        match (self.rule, self.part()) {
            (Rule::Bcast, Part::Root) => all.map(|k| send(k, one)).collect(),
            (Rule::Bcast, Part::For(root)) => vec![Transfer::Receive((root, one))],
            (Rule::Reduce, Part::Root) => all.map(|k| receive(k, one)).collect(),
            (Rule::Reduce | Rule::Gather, Part::For(root)) => vec![Transfer::Send((root, one))],
            (Rule::Gather, Part::Root) => all.map(|k| receive(k, self.size(RECEIVED, k))).collect(),
            (Rule::Scatter, Part::Root) => all.map(|k| send(k, self.size(SENT, k))).collect(),
            (Rule::Scatter, Part::For(root)) => vec![Transfer::Receive((root, self.size(RECEIVED, 0)))],
            (Rule::Barrier, _) => both(&|_| 0, &|_| 0),
            (Rule::Allreduce, _) => both(&|_| one, &|_| one),
            (Rule::Allgather | Rule::Allgatherv | Rule::Alltoall | Rule::Alltoallv, _) => {
                both(&|k| self.size(SENT, k), &|k| self.size(RECEIVED, k))
            }
            // Only the other group knows what each of its members gets: as much as the others.
            (Rule::ReduceScatter, _) => {
                let share = |of: &[usize]| self.total() / of.len().to_u64().max(1);
                both(&|_| share(self.others), &|_| share(self.own))
            }
            (Rule::Bcast | Rule::Reduce | Rule::Gather | Rule::Scatter, Part::Nothing)
            | (Rule::Scan | Rule::Neighbour | Rule::NeighbourV, _) => Vec::new(),
        }
    }
}
