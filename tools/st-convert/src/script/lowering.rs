//! Collective operations as messages.
//!
//! Blocking ones go in rounds. Those that only begin send all of their messages at once, each to whom it is for in the end:
//! who waits for one is told by nobody in between.

use std::rc::Rc;

use st_model::calls::roles::Rule;
use st_model::event::{RECEIVED, SENT};

use super::between::Between;
use super::transfers::{Message, Transfer, tree};
use crate::amounts::Amounts;
use crate::exchanges::ExchangePart;
use crate::groups::Group;

/// By which algorithm each is lowered.
pub(crate) const ALGORITHMS: &str = "barriers by dissemination, broadcasts and reductions by binomial trees (for all: to the first \
rank and back), gathers and scatters rank by rank at the root, allgathers in a ring, exchanges pair by pair, scans in a chain; \
between two groups, what all get goes by the first rank of each, a tree has the root and the other group, allgathers and exchanges go pair \
by pair; operations of neighbourhoods, and those that only begin, send every message to its receiver at once";

/// What a rank does in an operation.
#[derive(Debug)]
pub(super) struct Lowered {
    pub(super) steps: Vec<Transfer>,
    /// All of them begin before any is waited for.
    pub(super) at_once: bool,
}

/// The members of a communicator's groups, by their places among the ranks that are converted; the second is empty but for
/// intercommunicators.
#[derive(Debug)]
pub(super) struct Members([Rc<[usize]>; 2]);

impl Members {
    /// `None` if some are not converted. `place` finds a world rank's place.
    pub(super) fn of(group: &Group, place: impl Fn(u32) -> Option<usize>) -> Option<Self> {
        let side = |side: usize| {
            let places = group.sides[side].iter().map(|rank| place(u32::try_from(rank).ok()?));
            places.collect::<Option<Vec<usize>>>().map(Rc::from)
        };
        Some(Self([side(0)?, side(1)?]))
    }
}

/// What the rank does that has this part, in a call that also completes it (`done`) or only begins it.
///
/// # Errors
///
/// What is not lowered.
pub(super) fn lower(part: &ExchangePart, members: &Members, done: bool) -> Result<Lowered, &'static str> {
    let Members(sides) = members;
    let (side, me) = (usize::from(part.side), part.me);
    let (Some(own), Some(amounts)) = (sides.get(side), &part.amounts) else { return Err(UNKNOWN) };
    if matches!(part.rule, Rule::Neighbour | Rule::NeighbourV) {
        return Ok(Lowered { steps: to_neighbours(amounts, own)?, at_once: true });
    }
    let at_once = !done;
    if !sides[1].is_empty() {
        let (rule, root, others) = (part.rule, part.root, &sides[1 - side][..]);
        let between = Between { rule, me, root, own, others, amounts };
        return Ok(Lowered { steps: if done { between.steps() } else { between.at_once() }, at_once });
    }
    let root = part.root.map_or(Some(0), |root| usize::try_from(root).ok()).ok_or(UNKNOWN)?;
    let of = Collective { rule: part.rule, me, root, members: Rc::clone(own), amounts: Rc::clone(amounts) };
    Ok(Lowered { steps: if done { of.steps() } else { of.at_once() }, at_once })
}

const UNKNOWN: &str = "parts in operations that are not known";

/// A message to and from each neighbour.
fn to_neighbours(amounts: &Amounts, members: &[usize]) -> Result<Vec<Transfer>, &'static str> {
    let near =
        amounts.neighbours.as_ref().ok_or("neighbourhood operations whose neighbours are not known")?;
    if !near.ordered && amounts.sizes.iter().any(|sizes| sizes.len() > 1) {
        return Err("neighbourhood operations of which it is not known which block is for whom");
    }
    let of = |side: usize| {
        let there = near.lists[side].iter().enumerate();
        there.filter_map(move |(k, n)| {
            let place = members.get(usize::try_from(*n).ok()?)?;
            Some((k, (*place, amounts.size(side, k))))
        })
    };
    let mut receives: Vec<(usize, Message)> = of(RECEIVED).collect();
    if near.grid {
        // What goes to the lower neighbour comes from the upper one: where both are the same rank, in this order.
        receives.sort_by_key(|(k, _)| *k ^ 1);
    }
    let receives = receives.into_iter().map(|(_, message)| Transfer::Receive(message));
    Ok(receives.chain(of(SENT).map(|(_, message)| Transfer::Send(message))).collect())
}

/// One rank's part in an operation of one group.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Collective {
    rule: Rule,
    me: usize,
    root: usize,
    /// Where the communicator's members stand among the ranks that are converted.
    members: Rc<[usize]>,
    amounts: Rc<Amounts>,
}

impl Collective {
    fn n(&self) -> usize {
        self.members.len()
    }

    /// A member that is so many places on.
    fn after(&self, by: usize) -> usize {
        (self.me + by) % self.n()
    }

    /// Bytes of a member's block.
    fn size(&self, side: usize, member: usize) -> u64 {
        self.amounts.size(side, member)
    }

    fn message(&self, member: usize, bytes: u64) -> Message {
        (self.members.get(member).copied().unwrap_or_default(), bytes)
    }

    fn exchange(&self, to: usize, sent: u64, from: usize, received: u64) -> Transfer {
        Transfer::Exchange(self.message(to, sent), self.message(from, received))
    }

    /// In rounds.
    fn steps(&self) -> Vec<Transfer> {
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

    fn tree(&self, root: usize, bytes: u64, up: bool) -> Vec<Transfer> {
        tree(&self.members, self.me, root, bytes, up)
    }

    /// Every message to its receiver.
    fn at_once(&self) -> Vec<Transfer> {
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
    use std::collections::HashMap;

    use st_match::volume::Neighbours;
    use st_model::num::{narrow, saturate};

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
            let amounts = Rc::new(Amounts { sizes, neighbours: None });
            Collective { rule, me, root, members: (0..n).collect(), amounts }
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

    /// Parts of all ranks of two groups of `n` and `m`; the root is the last of the second one.
    fn between(rule: Rule, [n, m]: [usize; 2], done: bool) -> Vec<Vec<Transfer>> {
        let members = Members([(0..n).collect(), (n..n + m).collect()]);
        let block = |from: usize, to: usize| saturate::<u64>(100 * from + to + 1);
        let steps = |rank: usize| {
            let side = usize::from(rank >= n);
            let others: Vec<usize> = if side == 0 { (n..n + m).collect() } else { (0..n).collect() };
            let me = if side == 0 { rank } else { rank - n };
            let root = match side {
                0 => i64::try_from(m - 1).unwrap(),
                _ if me == m - 1 => st_model::values::ROOT,
                _ => st_model::values::PROC_NULL,
            };
            let each =
                |of: &dyn Fn(usize) -> u64| others.iter().map(|other| of(*other)).collect::<Vec<u64>>();
            let sizes = match rule {
                Rule::Alltoallv => [each(&|to| block(rank, to)), each(&|from| block(from, rank))],
                Rule::Allgatherv => [vec![block(rank, 0)], each(&|from| block(from, 0))],
                Rule::Gather => [vec![block(rank, 0)], each(&|from| block(from, 0))],
                Rule::Scatter => [each(&|to| block(0, to)), vec![block(0, rank)]],
                // Each group's blocks make the same together.
                Rule::ReduceScatter => [vec![saturate(if side == 0 { m } else { n })], vec![]],
                _ => [vec![8], vec![8]],
            };
            let amounts = Some(Rc::new(Amounts { sizes, neighbours: None }));
            let (operation, id, group, side, alone, root) = (0, 0, 0, narrow(side), false, Some(root));
            let part = ExchangePart { operation, id, group, side, me, rule, alone, root, amounts };
            lower(&part, &members, done).unwrap().steps
        };
        (0..n + m).map(steps).collect()
    }

    #[test]
    fn both_ends_agree_between_groups_and_come_to_their_end() {
        for rule in RULES.into_iter().filter(|rule| *rule != Rule::Scan) {
            for sizes in [[1, 1], [1, 3], [3, 1], [4, 4], [5, 2], [2, 7]] {
                let rounds = between(rule, sizes, true);
                let [sent, received] = ends(&rounds);
                assert_eq!(sent, received, "{rule:?} {sizes:?}");
                assert!(!sent.is_empty(), "{rule:?} {sizes:?}");
                assert_eq!(run(&rounds), 0, "{rule:?} {sizes:?}");
                let [sent, received] = ends(&between(rule, sizes, false));
                assert_eq!(sent, received, "{rule:?} {sizes:?}");
            }
        }
    }

    #[test]
    fn what_goes_to_the_lower_neighbour_comes_from_the_upper_one() {
        // A ring of two: both neighbours are the same rank.
        let of = |me: u64| {
            let other = i64::from(me == 0);
            let lists = [vec![other; 2], vec![other; 2]];
            let neighbours = Some(Neighbours { lists, grid: true, ordered: true });
            let down_and_up = |of: u64| vec![10 * of + 1, 10 * of + 2];
            let from = down_and_up(1 - me).into_iter().rev().collect();
            to_neighbours(&Amounts { sizes: [down_and_up(me), from], neighbours }, &[0, 1]).unwrap()
        };
        let in_order = |steps: &[Transfer], receives: bool| -> Vec<u64> {
            let bytes = |step: &Transfer| match step {
                Transfer::Send((_, bytes)) if !receives => Some(*bytes),
                Transfer::Receive((_, bytes)) if receives => Some(*bytes),
                _ => None,
            };
            steps.iter().filter_map(bytes).collect()
        };
        assert_eq!(in_order(&of(0), false), in_order(&of(1), true));
        assert_eq!(in_order(&of(1), false), in_order(&of(0), true));
    }
}
