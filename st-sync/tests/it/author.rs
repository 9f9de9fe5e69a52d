//! Random programs on a few ranks, with the edges that their messages and collective operations must give.

use crate::program::{Point, Program, exit};
use proptest::prelude::*;

const ANY: i64 = -2;
const ANY_TAG: i64 = -1;

pub(crate) fn send(p: &mut Program, from: usize, to: i64, tag: i64, times: (i64, i64)) -> Point {
    p.call(from, "MPI_Send", &[("count", 1.into()), ("dest", to.into()), ("tag", tag.into())], times)
}

pub(crate) fn receive(p: &mut Program, to: usize, from: i64, tag: i64, times: (i64, i64)) -> Point {
    p.call(to, "MPI_Recv", &[("count", 1.into()), ("source", from.into()), ("tag", tag.into())], times)
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Local(usize),
    /// From, to, tag, how it is sent, how it is received.
    Message(usize, usize, i64, u8, u8),
    /// Completes what a rank still waits for, latest first or not.
    Wait(usize, bool),
    /// Kind, root, counts by rank.
    Collective(u8, usize, Vec<i64>),
}

pub(crate) const RANKS: usize = 4;

pub(crate) fn action() -> impl Strategy<Value = Action> {
    let counts = proptest::collection::vec(0i64..2, RANKS * RANKS);
    prop_oneof![
        2 => (0..RANKS).prop_map(Action::Local),
        8 => (0..RANKS, 0..RANKS, 0i64..2, 0u8..4, 0u8..5).prop_map(|(a, b, t, s, r)| Action::Message(a, b, t, s, r)),
        2 => (0..RANKS, any::<bool>()).prop_map(|(r, b)| Action::Wait(r, b)),
        3 => (0u8..20, 0..RANKS, counts).prop_map(|(k, r, c)| Action::Collective(k, r, c)),
    ]
}

/// Request, source, tag, the send's point, the post's point.
type Posted = (i64, i64, i64, Point, Option<Point>);

/// Turns actions into a program whose times come from `ticks`: gaps, coarse, with many ties.
struct Author {
    program: Program,
    now: Vec<i64>,
    ticks: Vec<i64>,
    at: usize,
    /// What each rank has posted and not completed.
    open: Vec<Vec<Posted>>,
}

impl Author {
    fn times(&mut self, rank: usize) -> (i64, i64) {
        let mut tick = || {
            self.at += 1;
            self.ticks[self.at % self.ticks.len()]
        };
        let enter = self.now[rank] + tick();
        let exit = enter + tick();
        self.now[rank] = exit;
        (enter, exit)
    }

    fn message(&mut self, from: usize, to: usize, tag: i64, how: (u8, u8)) {
        let (f, t) = (i64::try_from(from).unwrap(), i64::try_from(to).unwrap());
        let (source, any) = if how.1 == 3 { (ANY, ANY_TAG) } else { (f, tag) };
        let blocking = how.1 == 4 && from != to;
        let mut post = None;
        if !blocking {
            let request = self.program.take_request(to);
            let times = self.times(to);
            let words = [
                ("count", 1.into()),
                ("source", source.into()),
                ("tag", any.into()),
                ("request", request.into()),
            ];
            post = Some((request, self.program.call(to, "MPI_Irecv", &words, times)));
        }
        let times = self.times(from);
        let name = ["MPI_Send", "MPI_Ssend", "MPI_Bsend", "MPI_Rsend"][usize::from(how.0)];
        let words = [("count", 1.into()), ("dest", t.into()), ("tag", tag.into())];
        let sent = self.program.call(from, name, &words, times);
        match post {
            Some((request, posted)) => {
                self.open[to].push((request, f, tag, sent, Some(posted)));
                if how.0 == 1 {
                    self.program.edge(posted, exit(sent));
                }
            }
            None => {
                let times = self.times(to);
                let got = receive(&mut self.program, to, f, tag, times);
                self.program.edge(sent, exit(got));
                if how.0 == 1 {
                    self.program.edge(got, exit(sent));
                }
            }
        }
    }

    fn wait(&mut self, rank: usize, latest_first: bool) {
        let mut open = std::mem::take(&mut self.open[rank]);
        if latest_first {
            open.reverse();
        }
        if open.is_empty() {
            return;
        }
        let column = |of: fn(&Posted) -> i64| open.iter().map(of).collect::<Vec<_>>();
        let n = i64::try_from(open.len()).unwrap();
        let words = [
            ("n", n.into()),
            ("requests", column(|o| o.0).into()),
            ("completed", (0..n).collect::<Vec<_>>().into()),
            ("source", column(|o| o.1).into()),
            ("tag", column(|o| o.2).into()),
            ("bytes", vec![4; open.len()].into()),
        ];
        let times = self.times(rank);
        let done = self.program.call(rank, "MPI_Waitall", &words, times);
        for (request, _, _, sent, _) in open {
            self.program.edge(sent, exit(done));
            self.program.give_request(rank, request);
        }
    }

    #[expect(clippy::too_many_lines, reason = "one table of what all operations do")]
    fn collective(&mut self, kind: u8, root: usize, c: &[i64]) {
        const NAMES: [&str; 20] = [
            "MPI_Barrier",
            "MPI_Bcast",
            "MPI_Gather",
            "MPI_Scatter",
            "MPI_Reduce",
            "MPI_Allgather",
            "MPI_Allgatherv",
            "MPI_Alltoall",
            "MPI_Alltoallv",
            "MPI_Allreduce",
            "MPI_Reduce_scatter_block",
            "MPI_Scan",
            "MPI_Exscan",
            "MPI_Ibarrier",
            "MPI_Iallreduce",
            "MPI_Gatherv",
            "MPI_Scatterv",
            "MPI_Alltoallw",
            "MPI_Reduce_scatter",
            "MPI_Ialltoallv",
        ];
        let name = NAMES[usize::from(kind)];
        let some = i64::from(c[0] > 0);
        // What rank i gives to rank j.
        let gives = |i: usize, j: usize| match name {
            "MPI_Barrier" | "MPI_Ibarrier" => true,
            "MPI_Bcast" | "MPI_Scatter" => i == root && some > 0,
            "MPI_Gather" | "MPI_Reduce" => j == root && some > 0,
            "MPI_Gatherv" => j == root && c[i] > 0,
            "MPI_Allgatherv" => c[i] > 0 && (0..RANKS).any(|q| q != j && c[q] > 0),
            "MPI_Alltoallv" | "MPI_Alltoallw" | "MPI_Ialltoallv" => c[i * RANKS + j] > 0,
            "MPI_Scatterv" => i == root && c[j] > 0,
            "MPI_Reduce_scatter" => c[j] > 0,
            "MPI_Scan" | "MPI_Exscan" => i < j && some > 0,
            _ => some > 0,
        };
        let mut points = Vec::new();
        for r in 0..RANKS {
            let row = |i: usize| (0..RANKS).map(|j| c[i * RANKS + j]).collect::<Vec<_>>();
            let column = |j: usize| (0..RANKS).map(|i| c[i * RANKS + j]).collect::<Vec<_>>();
            let mine = if matches!(name, "MPI_Gatherv" | "MPI_Allgatherv") { c[r] } else { some };
            let (send, receive) = match name {
                "MPI_Alltoallv" | "MPI_Alltoallw" | "MPI_Ialltoallv" => (row(r), column(r)),
                "MPI_Scatterv" if r == root => (row(0), vec![]),
                "MPI_Allgatherv" => (vec![], row(0)),
                "MPI_Gatherv" if r == root => (vec![], row(0)),
                _ => (vec![], vec![]),
            };
            let significant =
                if r == root || !matches!(name, "MPI_Gather" | "MPI_Scatter") { some } else { 0 };
            let (at_send, at_receive) = match name {
                "MPI_Scatter" => (significant, some),
                "MPI_Scatterv" => (0, c[r]),
                _ => (mine, significant),
            };
            let request = if name.starts_with("MPI_I") { self.program.take_request(r) } else { 0 };
            let times = self.times(r);
            let words = [
                ("root", i64::try_from(root).unwrap().into()),
                ("count", some.into()),
                ("sendcount", at_send.into()),
                ("recvcount", at_receive.into()),
                ("sendcounts", send.into()),
                ("recvcounts", receive.into()),
                ("counts", row(0).into()),
                ("request", request.into()),
            ];
            let enter = self.program.call(r, name, &words, times);
            points.push((enter, request));
        }
        let mut ends = Vec::new();
        for (r, (enter, request)) in points.iter().enumerate() {
            if !name.starts_with("MPI_I") {
                ends.push(exit(*enter));
                continue;
            }
            let times = self.times(r);
            let words = [
                ("requests", vec![*request].into()),
                ("completed", vec![0].into()),
                ("source", vec![-9].into()),
                ("tag", vec![-9].into()),
                ("bytes", vec![-9].into()),
            ];
            ends.push(exit(self.program.call(r, "MPI_Wait", &words, times)));
            self.program.give_request(r, *request);
        }
        for i in 0..RANKS {
            for j in 0..RANKS {
                if i != j && gives(i, j) {
                    self.program.edge(points[i].0, ends[j]);
                }
            }
        }
    }
}

pub(crate) fn written(actions: &[Action], ticks: &[i64], offsets: &[i64], nodes: &[usize]) -> Program {
    let mut a = Author {
        program: Program::new(nodes),
        now: offsets.to_vec(),
        ticks: ticks.to_vec(),
        at: 0,
        open: vec![Vec::new(); RANKS],
    };
    for d in actions {
        match d {
            Action::Local(r) => {
                let times = a.times(*r);
                a.program.call(*r, "MPI_Comm_rank", &[], times);
            }
            Action::Message(from, to, tag, s, r) => a.message(*from, *to, *tag, (*s, *r)),
            Action::Wait(r, latest_first) => a.wait(*r, *latest_first),
            Action::Collective(k, root, c) => a.collective(*k, *root, c),
        }
    }
    (0..RANKS).for_each(|r| a.wait(r, false));
    a.program
}
