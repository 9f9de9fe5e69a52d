//! Programs written call by call, with the edges that these give.

use crate::clc::run;
use crate::program::{Point, Program, Word, edges, exit};
use crate::shared;
use st_match::graph::{Barriers, Issues, Latency, Matcher};
use st_model::values::NONE;
use st_sync::clc::Options;

/// A program whose ranks' clocks are far apart.
pub(crate) struct Script {
    pub(crate) program: Program,
    now: Vec<i64>,
}

pub(crate) type Named<'a> = [(&'a str, Word)];

impl Script {
    pub(crate) fn new(ranks: usize) -> Self {
        let nodes: Vec<usize> = (0..ranks).map(|r| r / 2).collect();
        let now = (0..ranks).map(|r| [500, 0, 900, 250][r % 4]).collect();
        Self { program: Program::new(&nodes), now }
    }

    pub(crate) fn on(&mut self, rank: usize, thread: usize, name: &str, words: &Named<'_>) -> Point {
        self.now[rank] += 7;
        let enter = self.now[rank];
        self.now[rank] += 4;
        self.program.call_on((rank, thread), name, words, (enter, enter + 4))
    }

    pub(crate) fn call(&mut self, rank: usize, name: &str, words: &Named<'_>) -> Point {
        self.on(rank, 0, name, words)
    }

    /// A call on all ranks; returns the enter points.
    pub(crate) fn all(
        &mut self,
        name: &str,
        words: impl Fn(usize) -> Vec<(&'static str, Word)>,
    ) -> Vec<Point> {
        (0..self.now.len()).map(|r| self.call(r, name, &words(r))).collect()
    }

    /// Completes requests, as sends or other things that have no source; returns the exit.
    pub(crate) fn wait(&mut self, rank: usize, requests: &[i64]) -> Point {
        let none = vec![NONE; requests.len()];
        self.waitall(rank, requests, [none.clone(), none.clone(), none])
    }

    pub(crate) fn waitall(&mut self, rank: usize, requests: &[i64], status: [Vec<i64>; 3]) -> Point {
        let n = i64::try_from(requests.len()).unwrap();
        let [source, tag, bytes] = status;
        let words: [(&str, Word); 6] = [
            ("n", n.into()),
            ("requests", requests.to_vec().into()),
            ("completed", (0..n).collect::<Vec<_>>().into()),
            ("source", source.into()),
            ("tag", tag.into()),
            ("bytes", bytes.into()),
        ];
        exit(self.call(rank, "MPI_Waitall", &words))
    }

    pub(crate) fn edge(&mut self, from: Point, to: Point) {
        self.program.edge(from, to);
    }

    /// Edges from all enters to the exits of all others.
    pub(crate) fn barrier(&mut self, enters: &[Point]) {
        for &a in enters {
            for &b in enters {
                self.edge(a, exit(b));
            }
        }
    }

    /// The graph's edges are those that were written down; corrected times keep them. Returns what did not match.
    pub(crate) fn check(self, barriers: Barriers) -> Issues {
        let mut wanted = self.program.edges.clone();
        wanted.sort_unstable();
        let sections = self.program.sections();
        let mut matcher = Matcher::new(barriers);
        sections.iter().for_each(|s| matcher.add(s).unwrap());
        let graph = matcher.finish();
        let found = edges(&graph);
        let by_rank = |p: (usize, u32)| (graph.streams[p.0].rank as usize, p.1);
        let mut named: Vec<_> = found.iter().map(|(a, b, _)| (by_rank(*a), by_rank(*b))).collect();
        named.sort_unstable();
        assert_eq!(named, wanted);
        let columns = sections.iter().flat_map(|s| &s.threads).map(|t| &t.columns[0].1);
        let times: Vec<Vec<i64>> = columns.map(|c| c.times().flat_map(|(a, b)| [a, b]).collect()).collect();
        let options = Options { latency: Latency { near: 3, far: 11 }, ..Options::default() };
        let (after, outcome) = run(&graph, &times, &options);
        assert_eq!(outcome.circular, 0);
        for (a, b, far) in found {
            let l = if far { 11 } else { 3 };
            assert!(after[b.0][b.1 as usize] >= after[a.0][a.1 as usize] + l, "{a:?} {b:?}");
        }
        for processes in 2..=sections.len() {
            shared::check(&sections, barriers, options.latency, processes, 1);
        }
        graph.issues
    }
}

/// No call but those that the standard says synchronise.
pub(crate) const STRICT: Barriers = Barriers { init: false, finalize: false, creation: false, fence: false };

pub(crate) fn none(issues: &Issues) {
    assert_eq!(issues.counts().collect::<Vec<_>>(), []);
}
