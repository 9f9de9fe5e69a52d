//! Loops and calls as boxes on one axis: a loop is as wide as all its turns, and its body, drawn once, fills it.

use std::cmp::Reverse;

use st_model::num::saturate;

use super::shape::Node;

/// What a box stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    Loop,
    /// By number among the calls of the thread.
    Call(usize),
    /// Neighbours in one loop for which there is no room, and all in them.
    Others,
}

/// A box. Times are of one rank, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Boxed {
    /// How many loops it is in.
    pub(crate) depth: usize,
    pub(crate) what: What,
    /// How often it runs in all, and how often in each turn of the loop around it; of others how many there are.
    pub(crate) runs: u64,
    pub(crate) visits: u64,
    pub(crate) calls: u64,
    /// Time, and calls, of all boxes before it.
    pub(crate) begin: u128,
    pub(crate) begin_calls: u64,
    /// Before calls, and in them.
    pub(crate) computation: u128,
    pub(crate) mpi: u128,
}

/// Sums of a node with all below it.
#[derive(Clone, Copy, Default)]
struct Sums {
    calls: u64,
    times: [u128; 2],
    begin: u128,
    begin_calls: u64,
}

impl Sums {
    fn time(&self) -> u128 {
        self.times[0] + self.times[1]
    }
}

/// Boxes of nodes in preorder, at most so many: of more those that take longest stay, and neighbours of them that do not are one box.
/// `times`: by call, what all of its calls take before and in them; where nothing is known of times, boxes are as wide as their calls.
pub(crate) fn boxes(nodes: &[Node], times: &[[u128; 2]], most: usize) -> Vec<Boxed> {
    let (parents, sums) = (parents(nodes), sums(nodes, times));
    let timed = times.iter().any(|time| *time != [0, 0]);
    let weight = |i: usize| if timed { sums[i].time() } else { sums[i].calls.into() };
    // A loop takes at least what is in it and comes before that, so that it stays with it.
    let mut order: Vec<usize> = (0..nodes.len()).filter(|i| sums[*i].calls > 0).collect();
    order.sort_by_key(|i| (Reverse(weight(*i)), *i));
    // Each that stays may have others in it and after it.
    let room = if order.len() <= most { most } else { most.saturating_sub(1) / 3 };
    let mut stays = vec![false; nodes.len()];
    order.iter().take(room).for_each(|i| stays[*i] = true);
    order.sort_unstable();
    let mut all: Vec<(Option<usize>, Boxed)> = Vec::new();
    for i in order {
        let (node, sum, around) = (&nodes[i], sums[i], parents[i]);
        let [computation, mpi] = sum.times;
        let mut one = Boxed {
            depth: node.depth,
            what: node.call.map_or(What::Loop, What::Call),
            runs: node.runs,
            visits: around.map_or(1, |around| nodes[around].runs),
            calls: sum.calls,
            begin: sum.begin,
            begin_calls: sum.begin_calls,
            computation,
            mpi,
        };
        if !stays[i] {
            if around.is_some_and(|around| !stays[around]) {
                continue;
            }
            let last = all.last_mut().filter(|(of, last)| *of == around && last.what == What::Others);
            if let Some((_, last)) = last {
                last.runs += 1;
                last.calls = last.calls.saturating_add(one.calls);
                last.computation += computation;
                last.mpi += mpi;
                continue;
            }
            (one.what, one.runs, one.visits) = (What::Others, 1, 1);
        }
        all.push((around, one));
    }
    all.into_iter().map(|(_, one)| one).collect()
}

/// The loop around each node.
fn parents(nodes: &[Node]) -> Vec<Option<usize>> {
    let mut around = Vec::new();
    let parent = |(i, node): (usize, &Node)| {
        around.truncate(node.depth);
        let parent = around.last().copied();
        around.push(i);
        parent
    };
    nodes.iter().enumerate().map(parent).collect()
}

/// What each node comes to. Each call has the part of its function's time at its place that its number of calls is, so that all
/// together have all of it.
fn sums(nodes: &[Node], times: &[[u128; 2]]) -> Vec<Sums> {
    let calls = nodes.iter().filter_map(|node| Some((node.call?, node.runs)));
    let (mut all, mut done) = (vec![0u64; times.len()], vec![0u64; times.len()]);
    for (call, runs) in calls {
        if let Some(all) = all.get_mut(call) {
            *all = all.saturating_add(runs);
        }
    }
    let (mut sums, mut around) = (vec![Sums::default(); nodes.len()], Vec::<usize>::new());
    let mut before = Sums::default();
    for (i, node) in nodes.iter().enumerate() {
        around.truncate(node.depth);
        (sums[i].begin, sums[i].begin_calls) = (before.time(), before.calls);
        if let Some((call, runs)) = node.call.map(|call| (call, node.runs)) {
            let mut own = [0; 2];
            if let (Some(done), Some(all), Some(time)) = (done.get_mut(call), all.get(call), times.get(call))
            {
                let until = done.saturating_add(runs);
                let part = |time: u128, n: u64| parted(time, n, *all);
                own = [0, 1].map(|k| part(time[k], until) - part(time[k], *done));
                *done = until;
            }
            around.iter().chain([&i]).for_each(|at| add(&mut sums[*at], runs, own));
            add(&mut before, runs, own);
        }
        around.push(i);
    }
    sums
}

fn add(sum: &mut Sums, calls: u64, [before, within]: [u128; 2]) {
    sum.calls = sum.calls.saturating_add(calls);
    sum.times = [sum.times[0] + before, sum.times[1] + within];
}

/// `n` of `all` parts of a time, without a product that is too large.
fn parted(time: u128, n: u64, all: u64) -> u128 {
    u128::from(saturate::<u64>(time)) * u128::from(n) / u128::from(all.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};

    fn node(depth: usize, runs: u64, call: Option<usize>) -> Node {
        Node { depth, runs, call }
    }

    /// A call, a loop of 10 turns with a call and a loop of 3 turns in it, and the first call again.
    fn program() -> Vec<Node> {
        let inner = [node(1, 10, Some(1)), node(1, 30, None), node(2, 60, Some(2)), node(2, 30, Some(0))];
        [&[node(0, 1, Some(0)), node(0, 10, None)], &inner[..], &[node(0, 1, Some(0))]].concat()
    }

    #[test]
    fn a_loop_is_as_wide_as_its_turns_and_its_body_fills_it() {
        let all = boxes(&program(), &[[0, 320], [500, 50], [60, 6]], 100);
        let told: Vec<_> = all.iter().map(|b| (b.begin, b.computation, b.mpi, b.calls, b.visits)).collect();
        let expected = [
            (0, 0, 10, 1, 1),
            (10, 560, 356, 100, 1),
            (10, 500, 50, 10, 10),
            (560, 60, 306, 90, 10),
            (560, 60, 6, 60, 30),
            (626, 0, 300, 30, 30),
            (926, 0, 10, 1, 1),
        ];
        assert_eq!(told, expected);
        // By numbers of calls, where there are no times.
        let few = boxes(&program(), &[[0; 2]; 3], 4);
        let counted: Vec<_> = few.iter().map(|b| (b.begin_calls, b.calls, b.what)).collect();
        let (others, a_loop) = (What::Others, What::Loop);
        assert_eq!(counted, [(0, 1, others), (1, 100, a_loop), (1, 100, others), (101, 1, others)]);
    }

    /// Whatever the program and the room: children fill their loop one after the other, and all together is all there is.
    #[test]
    fn widths_add_up_and_few_boxes_lose_nothing() {
        let mut random = rand_pcg::Pcg64::seed_from_u64(23);
        for _ in 0..300 {
            let mut nodes = Vec::new();
            let mut depth = 0;
            for _ in 0..random.random_range(1..60) {
                let is_loop = random.random_range(0..3) == 0;
                nodes.push(node(
                    depth,
                    random.random_range(0..9),
                    (!is_loop).then(|| random.random_range(0..5)),
                ));
                depth = if is_loop { depth + 1 } else { random.random_range(0..=depth) };
            }
            let times: Vec<[u128; 2]> =
                (0..5).map(|_| [0; 2].map(|_: u128| random.random_range(0..1_000))).collect();
            let made: std::collections::BTreeSet<usize> =
                nodes.iter().filter(|n| n.runs > 0).filter_map(|n| n.call).collect();
            let whole: u128 = made.iter().map(|call| times[*call][0] + times[*call][1]).sum();
            let most = random.random_range(2..80);
            let all = boxes(&nodes, &times, most);
            assert!(all.len() <= most.max(1), "{} of {most}", all.len());
            let time = |b: &Boxed| b.computation + b.mpi;
            let mut ends = Vec::<u128>::new();
            let mut at = 0;
            for one in &all {
                // What is around it has ended where it is not deeper.
                while ends.len() > one.depth {
                    assert_eq!(ends.pop(), Some(at));
                }
                assert_eq!(one.begin, at);
                if one.what == What::Loop { ends.push(at + time(one)) } else { at += time(one) }
            }
            assert!(ends.iter().all(|end| *end == at));
            assert_eq!(at, whole);
        }
    }
}
