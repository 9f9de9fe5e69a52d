//! Collective operations as messages.
//!
//! Blocking ones go in rounds. Those that only begin send all of their messages at once, each to whom it is for in the end:
//! who waits for one is told by nobody in between.

use std::collections::HashMap;
use std::rc::Rc;

use foldhash::fast::FixedState;
use st_model::calls::roles::Rule;
use st_model::calls::words::ABSENT;
use st_model::event::{Event, RECEIVED, SENT};

use crate::exchanges::ExchangePart;
use crate::format::Call;
use crate::groups::Group;

/// By which algorithm each is lowered.
pub(crate) const ALGORITHMS: &str = "barriers by dissemination, broadcasts and reductions by binomial trees (for all: to the first \
rank and back), gathers and scatters rank by rank at the root, allgathers in a ring, exchanges pair by pair, scans in a chain; \
operations that only begin send every message to its receiver at once";

/// To or from whom, by place among the ranks that are converted, and bytes.
type Message = (usize, u64);

/// What a rank does, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Transfer {
    Send(Message),
    Receive(Message),
    /// Sends the first and receives the second at the same time.
    Exchange(Message, Message),
}

/// The members of a communicator, by their places among the ranks that are converted.
#[derive(Debug)]
pub(super) struct Members {
    places: Rc<[usize]>,
    positions: HashMap<usize, usize, FixedState>,
}

impl Members {
    /// `None` of an intercommunicator, and if some are not converted. `place` finds a world rank's place.
    pub(super) fn of(group: &Group, place: impl Fn(u32) -> Option<usize>) -> Option<Self> {
        if !group.sides[1].is_empty() {
            return None;
        }
        let places = group.sides[0].iter().map(|rank| place(u32::try_from(rank).ok()?));
        let places: Rc<[usize]> = places.collect::<Option<Vec<usize>>>()?.into();
        let positions = places.iter().copied().zip(0..).collect();
        Some(Self { places, positions })
    }
}

/// One rank's part in an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Collective {
    rule: Rule,
    me: usize,
    root: usize,
    /// Where the communicator's members stand among the ranks that are converted.
    members: Rc<[usize]>,
    /// Bytes to and from each member, or one number for all.
    sizes: [Vec<u64>; 2],
}

/// Bytes of each block of a side: one number where all are alike.
fn sizes(event: &Event<'_>, side: usize) -> Vec<u64> {
    let (role, words) = (event.role, event.words());
    let own = event.own_types(side);
    let of = |k: usize, count: i64| {
        let datatype = own.get(k).copied().or_else(|| words.get(role.types[side]));
        datatype.and_then(|datatype| event.size(count, datatype)).unwrap_or(0)
    };
    match words.list(role.counts[side]) {
        [] if role.counts[side] == ABSENT => vec![of(0, words.get(role.count[side]).unwrap_or(0))],
        counts => counts.iter().enumerate().map(|(k, count)| of(k, *count)).collect(),
    }
}

impl Collective {
    /// What the rank at a place does; `None` of those that are not lowered.
    pub(super) fn of(call: &Call<'_>, part: &ExchangePart, members: &Members, own: usize) -> Option<Self> {
        if matches!(part.rule, Rule::Neighbour | Rule::NeighbourV) {
            return None;
        }
        let me = *members.positions.get(&own)?;
        let root = part.root.map_or(Some(0), |root| usize::try_from(root).ok())?;
        let event = call.event;
        let mut sizes = [SENT, RECEIVED].map(|side| sizes(event, side));
        let inplace = event.words().get(event.role.inplace).is_some_and(|inplace| inplace != 0);
        if inplace
            && matches!(part.rule, Rule::Alltoall | Rule::Alltoallv | Rule::Allgather | Rule::Allgatherv)
        {
            sizes[SENT] = sizes[RECEIVED].clone();
        }
        Some(Self { rule: part.rule, me, root, members: Rc::clone(&members.places), sizes })
    }

    fn n(&self) -> usize {
        self.members.len()
    }

    /// A member that is so many places on.
    fn after(&self, by: usize) -> usize {
        (self.me + by) % self.n()
    }

    /// Bytes of a member's block.
    fn size(&self, side: usize, member: usize) -> u64 {
        let sizes = &self.sizes[side];
        let all_alike = sizes.len() == 1;
        sizes.get(if all_alike { 0 } else { member }).copied().unwrap_or(0)
    }

    fn message(&self, member: usize, bytes: u64) -> Message {
        (self.members.get(member).copied().unwrap_or_default(), bytes)
    }

    fn exchange(&self, to: usize, sent: u64, from: usize, received: u64) -> Transfer {
        Transfer::Exchange(self.message(to, sent), self.message(from, received))
    }

    /// In rounds.
    pub(super) fn steps(&self) -> Vec<Transfer> {
        let (n, me) = (self.n(), self.me);
        let rounds = 1..n;
        match self.rule {
            Rule::Barrier => {
                let distances =
                    std::iter::successors(Some(1usize), |d| d.checked_mul(2)).take_while(|d| *d < n);
                distances.map(|d| self.exchange(self.after(d), 0, self.after(n - d), 0)).collect()
            }
            Rule::Bcast => self.tree(self.root, self.size(SENT, 0), false),
            Rule::Reduce => self.tree(self.root, self.size(SENT, 0), true),
            Rule::Allreduce => {
                let bytes = self.size(SENT, 0);
                [self.tree(0, bytes, true), self.tree(0, bytes, false)].concat()
            }
            Rule::Gather | Rule::Scatter => self.at_once(),
            Rule::Allgather | Rule::Allgatherv => {
                let block = |behind: usize| self.size(RECEIVED, self.after(n - behind % n));
                let round =
                    |k: usize| self.exchange(self.after(1), block(k - 1), self.after(n - 1), block(k));
                rounds.map(round).collect()
            }
            Rule::Alltoall | Rule::Alltoallv => rounds
                .map(|k| {
                    let (to, from) = (self.after(k), self.after(n - k));
                    self.exchange(to, self.size(SENT, to), from, self.size(RECEIVED, from))
                })
                .collect(),
            Rule::ReduceScatter => rounds
                .map(|k| {
                    let (to, from) = (self.after(k), self.after(n - k));
                    self.exchange(to, self.size(SENT, to), from, self.size(SENT, me))
                })
                .collect(),
            Rule::Scan => {
                let bytes = self.size(SENT, 0);
                let before = (me > 0).then(|| Transfer::Receive(self.message(me.saturating_sub(1), bytes)));
                let behind = (me + 1 < n).then(|| Transfer::Send(self.message(me + 1, bytes)));
                before.into_iter().chain(behind).collect()
            }
            Rule::Neighbour | Rule::NeighbourV => Vec::new(),
        }
    }

    /// A binomial tree below a root: up to it (`up`) or down.
    fn tree(&self, root: usize, bytes: u64, up: bool) -> Vec<Transfer> {
        let n = self.n();
        let me = (self.me + n - root % n) % n;
        let member = |relative: usize| self.message((relative + root) % n, bytes);
        let lowest = if me == 0 { usize::MAX } else { me & me.wrapping_neg() };
        let below = std::iter::successors(Some(1usize), |d| d.checked_mul(2));
        let below: Vec<usize> = below.take_while(|d| *d < lowest && *d < n).filter(|d| me + d < n).collect();
        let parent = (me > 0).then(|| me - lowest);
        if up {
            let children = below.iter().map(|d| Transfer::Receive(member(me + d)));
            children.chain(parent.map(|parent| Transfer::Send(member(parent)))).collect()
        } else {
            let children = below.iter().rev().map(|d| Transfer::Send(member(me + d)));
            parent.map(|parent| Transfer::Receive(member(parent))).into_iter().chain(children).collect()
        }
    }

    /// Every message to its receiver.
    pub(super) fn at_once(&self) -> Vec<Transfer> {
        let (me, root) = (self.me, self.root);
        let others = || (0..self.n()).filter(|k| *k != me);
        let send = |k: usize, bytes: u64| Transfer::Send(self.message(k, bytes));
        let receive = |k: usize, bytes: u64| Transfer::Receive(self.message(k, bytes));
        let one = self.size(SENT, 0);
        match self.rule {
            Rule::Bcast if me == root => others().map(|k| send(k, one)).collect(),
            Rule::Bcast => vec![receive(root, one)],
            Rule::Reduce if me == root => others().map(|k| receive(k, one)).collect(),
            Rule::Reduce => vec![send(root, one)],
            Rule::Gather if me == root => others().map(|k| receive(k, self.size(RECEIVED, k))).collect(),
            Rule::Gather => vec![send(root, one)],
            Rule::Scatter if me == root => others().map(|k| send(k, self.size(SENT, k))).collect(),
            Rule::Scatter => vec![receive(root, self.size(RECEIVED, 0))],
            Rule::Barrier => others().map(|k| receive(k, 0)).chain(others().map(|k| send(k, 0))).collect(),
            Rule::Allreduce => {
                others().map(|k| receive(k, one)).chain(others().map(|k| send(k, one))).collect()
            }
            Rule::Allgather | Rule::Allgatherv => {
                let receives = others().map(|k| receive(k, self.size(RECEIVED, k)));
                receives.chain(others().map(|k| send(k, self.size(RECEIVED, me)))).collect()
            }
            Rule::Alltoall | Rule::Alltoallv => {
                let receives = others().map(|k| receive(k, self.size(RECEIVED, k)));
                receives.chain(others().map(|k| send(k, self.size(SENT, k)))).collect()
            }
            Rule::ReduceScatter => {
                let receives = others().map(|k| receive(k, self.size(SENT, me)));
                receives.chain(others().map(|k| send(k, self.size(SENT, k)))).collect()
            }
            Rule::Scan => {
                let receives = (0..me).map(|k| receive(k, one));
                receives.chain((me + 1..self.n()).map(|k| send(k, one))).collect()
            }
            Rule::Neighbour | Rule::NeighbourV => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use st_model::num::saturate;

    use super::*;

    const RULES: [Rule; 12] = [
        Rule::Barrier,
        Rule::Bcast,
        Rule::Gather,
        Rule::Scatter,
        Rule::Reduce,
        Rule::Allgather,
        Rule::Allgatherv,
        Rule::Alltoall,
        Rule::Alltoallv,
        Rule::Allreduce,
        Rule::ReduceScatter,
        Rule::Scan,
    ];

    /// Parts of all ranks; `varying`: blocks of each pair have a size of their own.
    fn all(rule: Rule, n: usize, root: usize) -> Vec<Collective> {
        let part = |me: usize| {
            let block = |from: usize, to: usize| saturate::<u64>(100 * from + to + 1);
            let sizes = match rule {
                Rule::Alltoallv => {
                    [(0..n).map(|to| block(me, to)).collect(), (0..n).map(|from| block(from, me)).collect()]
                }
                Rule::Allgatherv => [vec![block(me, 0)], (0..n).map(|from| block(from, 0)).collect()],
                Rule::ReduceScatter => [(0..n).map(|to| block(0, to)).collect(), vec![]],
                Rule::Gather => [vec![block(me, 0)], (0..n).map(|from| block(from, 0)).collect()],
                Rule::Scatter => [(0..n).map(|to| block(0, to)).collect(), vec![block(0, me)]],
                _ => [vec![8], vec![8]],
            };
            Collective { rule, me, root, members: (0..n).collect(), sizes }
        };
        (0..n).map(part).collect()
    }

    /// Runs all ranks as if each send waited for its receive; sends and receives that are left.
    fn run(steps: &[Vec<Transfer>]) -> usize {
        let mut at = vec![0; steps.len()];
        let mut ready: HashMap<(usize, usize), u64> = HashMap::new();
        loop {
            let mut moved = false;
            for me in 0..steps.len() {
                match steps[me].get(at[me]) {
                    Some(Transfer::Send((to, bytes))) => {
                        ready.insert((me, *to), *bytes);
                        at[me] += 1;
                        moved = true;
                    }
                    Some(Transfer::Receive((from, bytes))) => {
                        if let Some(sent) = ready.remove(&(*from, me)) {
                            assert_eq!(sent, *bytes);
                            at[me] += 1;
                            moved = true;
                        }
                    }
                    Some(Transfer::Exchange((to, bytes), (from, wanted))) => {
                        // Both of the exchange's halves are under way at once.
                        let sent = ready.contains_key(&(me, *to)) || {
                            ready.insert((me, *to), *bytes);
                            moved = true;
                            true
                        };
                        if let (true, Some(got)) = (sent, ready.remove(&(*from, me))) {
                            assert_eq!(got, *wanted);
                            at[me] += 1;
                            moved = true;
                        }
                    }
                    None => {}
                }
            }
            if !moved {
                return steps.iter().zip(&at).map(|(steps, at)| steps.len() - at).sum();
            }
        }
    }

    /// Messages from each rank to each, as both ends have them.
    fn ends(steps: &[Vec<Transfer>]) -> [Vec<(usize, usize, u64)>; 2] {
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        for (me, steps) in steps.iter().enumerate() {
            for step in steps {
                let (to, from) = match *step {
                    Transfer::Send(to) => (Some(to), None),
                    Transfer::Receive(from) => (None, Some(from)),
                    Transfer::Exchange(to, from) => (Some(to), Some(from)),
                };
                sent.extend(to.map(|(to, bytes)| (me, to, bytes)));
                received.extend(from.map(|(from, bytes)| (from, me, bytes)));
            }
        }
        sent.sort_unstable();
        received.sort_unstable();
        [sent, received]
    }

    #[test]
    fn both_ends_of_all_messages_agree() {
        for rule in RULES {
            for n in 2..10 {
                for root in [0, n / 2, n - 1] {
                    let parts = all(rule, n, root);
                    let rounds: Vec<_> = parts.iter().map(Collective::steps).collect();
                    let [sent, received] = ends(&rounds);
                    assert_eq!(sent, received, "{rule:?} {n} {root}");
                    let direct: Vec<_> = parts.iter().map(Collective::at_once).collect();
                    let [sent, received] = ends(&direct);
                    assert_eq!(sent, received, "{rule:?} {n} {root}");
                }
            }
        }
    }

    #[test]
    fn rounds_come_to_their_end() {
        for rule in [Rule::Bcast, Rule::Reduce, Rule::Allreduce, Rule::Gather, Rule::Scatter, Rule::Scan] {
            for n in 2..10 {
                let steps: Vec<_> = all(rule, n, n - 1).iter().map(Collective::steps).collect();
                assert_eq!(run(&steps), 0, "{rule:?} {n}");
            }
        }
    }

    #[test]
    fn a_tree_has_as_many_messages_as_it_has_ranks_below_the_root() {
        for n in 2..20 {
            let steps: Vec<_> = all(Rule::Bcast, n, 1).iter().map(Collective::steps).collect();
            assert_eq!(ends(&steps)[0].len(), n - 1);
        }
    }
}
