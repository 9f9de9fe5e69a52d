//! The controlled logical clock against its worked example, its invariants, and a slow and simple implementation.

use crate::author::{RANKS, action, receive, send, written};
use crate::program::{Point, Program};
use crate::shared;
use proptest::prelude::*;
use st_match::graph::{Barriers, Graph, Latency, Matcher, Shortest, survey};
use st_model::section::Section;
use st_sync::clc::{Correction, Options, correct};
use st_sync::team::Team;

fn graph(sections: &[Section]) -> (Graph, Vec<Vec<i64>>) {
    let mut matcher = Matcher::new(Barriers::default());
    sections.iter().for_each(|s| matcher.add(s).unwrap());
    let times = sections
        .iter()
        .map(|s| s.threads[0].columns[0].1.times().flat_map(|(a, b)| [a, b]).collect())
        .collect();
    (matcher.finish(), times)
}

pub(crate) fn run(graph: &Graph, times: &[Vec<i64>], options: &Options) -> (Vec<Vec<i64>>, Correction) {
    let (moves, outcome) = correct(graph, times, options, &mut Team::alone()).unwrap();
    (moves.iter().zip(times).map(|(m, t)| m.apply(t.iter().copied()).collect()).collect(), outcome)
}

/// Becker et al. 2008, figure 1: one violated message, stretched before and kept after.
#[test]
fn the_worked_example() {
    let options =
        Options { latency: Latency { near: 2, far: 2 }, gamma: Some(1_000_000_000), ..Options::default() };
    let mut p = Program::new(&[0, 1]);
    send(&mut p, 0, 1, 0, (10, 10));
    p.call(1, "MPI_Comm_rank", &[], (0, 4));
    receive(&mut p, 1, 0, 0, (4, 9));
    p.call(1, "MPI_Comm_rank", &[], (11, 11));
    let (g, times) = graph(&p.sections());
    let (corrected, outcome) = run(&g, &times, &options);
    assert_eq!(corrected, [vec![10, 10], vec![0, 5, 5, 12, 14, 14]]);
    assert_eq!((outcome.detected, outcome.largest, outcome.passes), (1, 3, 1));
}

#[test]
fn the_worked_example_with_a_send_before_the_jump() {
    // Hull (0,0), (6,1), (9,3): the send goes to 7, what was at 4 stays.
    let options =
        Options { latency: Latency { near: 2, far: 2 }, gamma: Some(1_000_000_000), ..Options::default() };
    let mut p = Program::new(&[0, 1, 2]);
    send(&mut p, 0, 1, 0, (10, 10));
    p.call(1, "MPI_Comm_rank", &[], (0, 4));
    send(&mut p, 1, 2, 0, (6, 6));
    receive(&mut p, 1, 0, 0, (9, 9));
    receive(&mut p, 2, 1, 0, (0, 9));
    let (g, times) = graph(&p.sections());
    let (corrected, _) = run(&g, &times, &options);
    assert_eq!(corrected[1], [0, 4, 7, 7, 12, 12]);
}

#[test]
fn streams_that_wait_in_a_circle_are_reported_and_survived() {
    // Recorded by a broken tool: both receive before they send.
    let mut p = Program::new(&[0, 1]);
    for (me, you) in [(0, 1), (1, 0)] {
        receive(&mut p, me, you, 0, (0, 5));
        send(&mut p, me, you, 0, (6, 7));
    }
    let sections = p.sections();
    shared::check(&sections, Barriers::default(), Latency::default(), 2, 1);
    let (g, times) = graph(&sections);
    let (corrected, outcome) = run(&g, &times, &Options::default());
    assert_eq!(outcome.circular, 1);
    assert!(corrected.iter().all(|t| t.is_sorted()));
}

#[test]
fn what_does_not_match_is_counted_and_left_alone() {
    let mut p = Program::new(&[0, 1]);
    send(&mut p, 0, 1, 3, (100, 110));
    receive(&mut p, 1, 0, 4, (0, 5));
    p.call(0, "MPI_Barrier", &[], (120, 130));
    let (g, times) = graph(&p.sections());
    assert_eq!((g.issues.sends, g.issues.receives, g.issues.members), (1, 1, 1));
    assert_eq!(g.issues.examples.len(), 2);
    assert!(g.issues.examples[0].to_string().contains("rank 0 to 1, tag 3"), "{:?}", g.issues.examples);
    assert_eq!(run(&g, &times, &Options::default()).0, times);
}

/// Per rank: point and height.
type Jumps = Vec<Vec<(usize, i64)>>;

/// The definitions, word by word, on an explicit list of edges.
struct Plain<'a> {
    edges: &'a [(Point, Point)],
    nodes: &'a [usize],
    options: Options,
}

impl Plain<'_> {
    fn l(&self, a: Point, b: Point) -> i64 {
        if self.nodes[a.0] == self.nodes[b.0] { self.options.latency.near } else { self.options.latency.far }
    }

    fn forward(&self, t: &[Vec<i64>], gamma: i64) -> (Vec<Vec<i64>>, Jumps) {
        let mut c: Vec<Vec<i64>> = vec![Vec::new(); t.len()];
        let mut jumps = vec![Vec::new(); t.len()];
        loop {
            let mut moved = false;
            for r in 0..t.len() {
                let j = c[r].len();
                let Some(&now) = t[r].get(j) else { continue };
                let into = |e: &&(Point, Point)| e.1.0 == r && e.1.1 as usize == j;
                let limits: Option<Vec<i64>> = self
                    .edges
                    .iter()
                    .filter(into)
                    .map(|(a, b)| c[a.0].get(a.1 as usize).map(|s| s + self.l(*a, *b)))
                    .collect();
                let Some(limits) = limits else { continue };
                let mut base = now;
                if j > 0 {
                    let g = now - t[r][j - 1];
                    let before = c[r][j - 1];
                    let shrunk = (i128::from(g) * i128::from(gamma)).div_euclid(1_000_000_000);
                    base = base
                        .max(before + self.options.delta.min(g))
                        .max(before + i64::try_from(shrunk).unwrap());
                }
                let corrected = limits.into_iter().fold(base, i64::max);
                if corrected > base {
                    jumps[r].push((j, corrected - base));
                }
                c[r].push(corrected);
                moved = true;
            }
            if !moved {
                return (c, jumps);
            }
        }
    }

    fn backward(&self, c: &[Vec<i64>], jumps: &Jumps) -> Vec<Vec<i64>> {
        let mut times = c.to_vec();
        for r in 0..c.len() {
            let limit = |j: usize| {
                let out = self.edges.iter().filter(|(a, _)| a.0 == r && a.1 as usize == j);
                out.map(|(a, b)| c[b.0][b.1 as usize] - self.l(*a, *b)).min()
            };
            for &(at, d) in &jumps[r] {
                let base = c[r][at] - d;
                let from = (base - 100 * d).max(c[r][0]);
                if from >= base {
                    continue;
                }
                let mut corners = vec![(from, 0), (base, d)];
                for j in 0..at {
                    if let Some(u) = limit(j)
                        && from < times[r][j]
                        && times[r][j] < base
                    {
                        corners.push((times[r][j], u - times[r][j]));
                    }
                }
                let mut cap = d;
                for e in (0..at).rev() {
                    let x = times[r][e];
                    if x <= from {
                        break;
                    }
                    if let Some(u) = limit(e) {
                        cap = cap.min(u - x);
                    }
                    times[r][e] += cap.min(hull(&corners, x));
                }
            }
        }
        times
    }
}

/// The lower convex hull at x, rounded down: the lowest chord.
fn hull(corners: &[(i64, i64)], x: i64) -> i64 {
    let mut lowest = i64::MAX;
    for a in corners.iter().filter(|a| a.0 <= x) {
        for b in corners.iter().filter(|b| b.0 >= x) {
            let y = if a.0 == b.0 {
                a.1.min(b.1)
            } else {
                let part = (i128::from(b.1 - a.1) * i128::from(x - a.0)).div_euclid(i128::from(b.0 - a.0));
                a.1 + i64::try_from(part).unwrap()
            };
            lowest = lowest.min(y);
        }
    }
    lowest
}

/// The least times that respect all edges: the longest path to each point, by relaxation.
fn longest(plain: &Plain<'_>, measured: &[Vec<i64>]) -> Vec<Vec<i64>> {
    let mut c = measured.to_vec();
    loop {
        let mut changed = false;
        let mut raise = |c: &mut Vec<Vec<i64>>, p: Point, to: i64| {
            let at = &mut c[p.0][p.1 as usize];
            changed |= to > *at;
            *at = to.max(*at);
        };
        for r in 0..c.len() {
            for j in 1..c[r].len() {
                let before = c[r][j - 1];
                raise(&mut c, (r, u32::try_from(j).unwrap()), before);
            }
        }
        for (a, b) in plain.edges {
            let arrival = c[a.0][a.1 as usize] + plain.l(*a, *b);
            raise(&mut c, *b, arrival);
        }
        if !changed {
            return c;
        }
    }
}

fn largest(after: &[Vec<i64>], before: &[Vec<i64>]) -> i64 {
    after.iter().flatten().zip(before.iter().flatten()).map(|(a, b)| a - b).max().unwrap_or(0)
}

fn holds(edges: &[(Point, Point)], plain: &Plain<'_>, times: &[Vec<i64>]) -> bool {
    edges.iter().all(|(a, b)| times[b.0][b.1 as usize] >= times[a.0][a.1 as usize] + plain.l(*a, *b))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_programs(
        actions in proptest::collection::vec(action(), 1..60),
        ticks in proptest::collection::vec(0i64..6, 1..20),
        offsets in proptest::collection::vec(0i64..40, RANKS),
        scale in prop_oneof![Just(1i64), Just(7), Just(1000)],
        nodes in proptest::collection::vec(0usize..3, RANKS),
        near in 0i64..3, far in 0i64..9,
        gamma in prop_oneof![Just(0i64), Just(999_990_000), Just(1_000_000_000), Just(500_000_000)],
        delta in 0i64..2,
    ) {
        let ticks: Vec<i64> = ticks.iter().map(|t| t * scale).collect();
        let program = written(&actions, &ticks, &offsets, &nodes);
        let edges = program.edges.clone();
        let sections = program.sections();
        for processes in [2, 3, 5] {
            shared::check(&sections, Barriers::default(), Latency { near, far }, processes, 1);
        }
        let (g, times) = graph(&sections);
        prop_assert_eq!(g.issues.counts().collect::<Vec<_>>(), vec![]);
        let latency = Latency { near, far };
        let options = Options { latency, delta, gamma: Some(gamma), passes: 1, jobs: 1 };
        let plain = Plain { edges: &edges, nodes: &nodes, options };

        // The same as the definitions, word by word.
        let (c, jumps) = plain.forward(&times, gamma);
        prop_assert!(c.iter().zip(&times).all(|(c, t)| c.len() == t.len()), "the program itself is circular");
        let expected = plain.backward(&c, &jumps);
        let (corrected, outcome) = run(&g, &times, &options);
        prop_assert_eq!(&corrected, &expected);
        prop_assert_eq!(outcome.detected, jumps.iter().map(|j| j.len() as u64).sum::<u64>());
        prop_assert_eq!(outcome.circular, 0);

        // Invariants.
        prop_assert!(holds(&edges, &plain, &c) && holds(&edges, &plain, &corrected));
        for ((f, c), t) in corrected.iter().zip(&c).zip(&times) {
            prop_assert!(f.is_sorted());
            prop_assert!(f.iter().zip(c).zip(t).all(|((f, c), t)| f >= c && c >= t));
        }
        let found = survey(&g, |s| times[s].iter().copied(), latency);
        let plainly = |test: &dyn Fn(i64, i64, i64) -> bool| {
            let of = |e: &&(Point, Point)| test(times[e.0.0][e.0.1 as usize], times[e.1.0][e.1.1 as usize], plain.l(e.0, e.1));
            edges.iter().filter(of).count() as u64
        };
        let pairs = found.messages.messages + found.pairs.messages;
        prop_assert!(pairs <= edges.len() as u64);
        prop_assert_eq!(pairs, edges.len() as u64);
        prop_assert_eq!(found.messages.violated + found.pairs.violated, plainly(&|s, r, l| r < s + l));
        prop_assert_eq!(found.messages.reversed + found.pairs.reversed, plainly(&|s, r, _| r < s));
        if found.all().violated == 0 {
            prop_assert_eq!(&corrected, &times);
        }
        // The shortest time of each kind of edge; without anything said, what is violated is reversed.
        let shortest = |near: bool| {
            let of = |e: &&(Point, Point)| (nodes[e.0.0] == nodes[e.1.0]) == near;
            let took = |e: &(Point, Point)| times[e.1.0][e.1.1 as usize] - times[e.0.0][e.0.1 as usize];
            edges.iter().filter(of).map(took).min().unwrap_or(i64::MAX)
        };
        prop_assert_eq!(found.shortest, Shortest { near: shortest(true), far: shortest(false) });
        let usual = survey(&g, |s| times[s].iter().copied(), found.shortest.latency());
        prop_assert_eq!(usual.all().violated, usual.all().reversed);
        prop_assert_eq!(survey(&g, |s| corrected[s].iter().copied(), latency).all().violated, 0);
        let (second, outcome) = run(&g, &corrected, &options);
        prop_assert_eq!(&second, &corrected);
        prop_assert_eq!(outcome.detected, 0);

        // A gap before a point that no message moves shrinks by no more than the factor, and never grows.
        for ((c, t), jumps) in c.iter().zip(&times).zip(&jumps) {
            for j in (1..c.len()).filter(|j| jumps.iter().all(|(at, _)| at != j)) {
                let (now, gap) = (c[j] - c[j - 1], t[j] - t[j - 1]);
                let least = i64::try_from((i128::from(gap) * i128::from(gamma)).div_euclid(1_000_000_000)).unwrap();
                prop_assert!(least <= now && now <= gap);
            }
        }

        // γ = 0 and δ = 0 give the longest path.
        let least = Options { delta: 0, gamma: Some(0), ..options };
        let plain = Plain { options: least, ..plain };
        let path = longest(&plain, &times);
        let (c, jumps) = plain.forward(&times, 0);
        prop_assert_eq!(&c, &path);
        let (corrected, outcome) = run(&g, &times, &least);
        prop_assert_eq!(outcome.largest, largest(&path, &times));
        prop_assert_eq!(corrected, plain.backward(&path, &jumps));

        // Any number of threads gives the same, also with the whole schedule of γ.
        let several = Options { gamma: None, passes: 5, ..options };
        let (one, kept) = run(&g, &times, &several);
        for jobs in [2, 3] {
            prop_assert_eq!(run(&g, &times, &Options { jobs, ..several }), (one.clone(), kept));
        }
        // No other γ moves anything farther than the one that moves nothing more than it must.
        prop_assert!(outcome.largest <= kept.largest);
    }
}
