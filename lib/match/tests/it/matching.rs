//! Programs by chance: the matcher finds what was delivered, and nothing else.

use crate::little_mpi::LittleMpi;
use crate::program::{Point, Program, Word, edges, exit};
use proptest::prelude::*;
use st_match::graph::{Barriers, Graph, Matcher};
use st_model::section::Section;
use st_model::steps::Budget;
use st_model::values::{ANY_SOURCE, PROC_NULL};

/// No call but those that the standard says synchronise.
const STRICT: Barriers = Barriers { init: false, finalize: false, creation: false, fence: false };

/// What a rank does: which rank, which of its ways, and numbers that say how.
type Step = (usize, usize, [usize; 4]);

fn run(ranks: usize, steps: &[Step]) -> (Program, usize) {
    let mut mpi = LittleMpi::new(ranks);
    for &(me, way, [a, b, c, d]) in steps {
        let (me, comm, tag) = (me % ranks, a % 4, i64::try_from(c % 3).unwrap());
        match way % 10 {
            0..3 => mpi.send(me, comm, b, tag, d),
            3..6 => mpi.receive(me, comm, b, tag, (d, if c % 2 == 0 { 0 } else { c / 4 % 4 })),
            6 => mpi.wait(me, b, d % 2 == 0),
            7 => mpi.persistent(me, comm, b, tag, d % 2 == 0),
            8 => mpi.start(me, b),
            _ => mpi.collective(comm, b, c, d),
        }
    }
    mpi.finish()
}

fn graph(program: Program) -> Graph {
    let mut matcher = Matcher::new(STRICT);
    program.sections().iter().for_each(|s| matcher.add(s).unwrap());
    matcher.finish()
}

/// Two ranks that come to so many barriers, of which the second leaves some out.
fn barriers(all: u32, missing: u32) -> Vec<Section> {
    let mut program = Program::new(&[0, 0]);
    for (rank, n) in [(0, all), (1, all - missing)] {
        for _ in 0..n {
            program.call(rank, "MPI_Barrier", &[], (0, 0));
        }
    }
    program.sections()
}

#[test]
fn what_is_held_until_all_have_come_is_within_a_budget() {
    let add = |sections: &[Section], steps| {
        let budget = Budget::new(steps);
        let mut matcher = Matcher::within(STRICT, budget.clone());
        sections.iter().try_for_each(|s| matcher.add(s)).map(|()| budget.left())
    };
    // Each of a thousand operations is held by its number, and a rank's calls while they are read.
    let left = add(&barriers(1000, 0), 30_000).unwrap();
    assert_eq!(left, 30_000 - 1000 * 6);
    let refused = add(&barriers(1000, 1000), 5_000).unwrap_err().to_string();
    assert!(refused.contains("--max-steps allows 5000"), "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn what_was_delivered_is_found(
        ranks in 2usize..6,
        steps in prop::collection::vec((0usize..6, 0usize..10, prop::array::uniform4(0usize..256)), 0..80),
    ) {
        let (program, slots) = run(ranks, &steps);
        let mut wanted = program.edges.clone();
        wanted.sort_unstable();
        let graph = graph(program);
        let rank = |p: Point| (graph.streams[p.0].rank as usize, p.1);
        let node = |p: Point| p.0 / 2;
        let mut found = Vec::new();
        for (from, to, far) in edges(&graph) {
            let (from, to) = (rank(from), rank(to));
            prop_assert_eq!(far, node(from) != node(to));
            found.push((from, to));
        }
        found.sort_unstable();
        prop_assert_eq!(found, wanted);
        prop_assert_eq!(graph.slots, slots);
        prop_assert_eq!(graph.issues.counts().collect::<Vec<_>>(), []);
    }
}

/// Edges, and what did not match.
type Found = (Vec<(Point, Point)>, Vec<(&'static str, u64)>);

fn found(program: Program) -> Found {
    let graph = graph(program);
    (edges(&graph).into_iter().map(|(from, to, _)| (from, to)).collect(), graph.issues.counts().collect())
}

/// Two ranks that exchange data of each pair twice, the first time one expects what the other does not send.
fn exchanged(first: [[i64; 2]; 2]) -> Found {
    let mut p = Program::new(&[0, 0]);
    for [sent, received] in [first, [[1, 0], [0, 1]]] {
        let counts = |me: usize, other: i64| {
            let mut counts = vec![0, 0];
            counts[1 - me] = other;
            Word::from(counts)
        };
        for me in 0..2 {
            let words = [("sendcounts", counts(me, sent[me])), ("recvcounts", counts(me, received[me]))];
            p.call(me, "MPI_Alltoallv", &words, (10, 20));
        }
    }
    found(p)
}

#[test]
fn data_of_a_pair_meet_within_their_operation() {
    let second = ((0, 2), exit((1, 2)));
    // Rank 0 sends in the first, and rank 1 does not receive.
    assert_eq!(exchanged([[1, 0], [0, 0]]), (vec![second], vec![("sends without receive", 1)]));
    assert_eq!(exchanged([[0, 0], [0, 1]]), (vec![second], vec![("receives without send", 1)]));
    assert_eq!(exchanged([[0, 0], [0, 0]]), (vec![second], vec![]));
}

#[test]
fn members_that_are_missing_or_disagree_are_counted() {
    let calls = |calls: &[&[(&str, i64)]]| {
        let mut p = Program::new(&[0, 0, 1]);
        for (me, calls) in calls.iter().enumerate() {
            for (name, root) in *calls {
                p.call(me, name, &[("count", 1.into()), ("root", (*root).into())], (10, 20));
            }
        }
        found(p).1
    };
    let (barrier, bcast) = (("MPI_Barrier", 0), ("MPI_Bcast", 1));
    assert_eq!(calls(&[&[barrier], &[barrier], &[barrier]]), []);
    assert_eq!(calls(&[&[barrier], &[barrier], &[]]), [("collective operations that lack a member", 1)]);
    let disagree = "collective operations that members disagree on";
    assert_eq!(calls(&[&[bcast], &[bcast], &[barrier]]), [(disagree, 1)]);
    assert_eq!(calls(&[&[bcast], &[bcast], &[("MPI_Bcast", 2)]]), [(disagree, 1)]);
}

/// `MPI_ERR_TRUNCATE`, `MPI_ERR_IN_STATUS`, and one with which nothing is received.
const TRUNCATE: u32 = 15;
const IN_STATUS: u32 = 18;
const ARGUMENT: u32 = 13;

#[test]
fn a_message_that_was_too_long_is_received_all_the_same() {
    let received = |name: &str, error, source: i64| {
        let mut p = Program::new(&[0, 0]);
        for _ in 0..2 {
            p.call(0, "MPI_Send", &[("count", 9.into()), ("dest", 1.into())], (0, 5));
        }
        let words = [("count", 1.into()), ("source", source.into()), ("dest", PROC_NULL.into())];
        p.record_call((1, 0), name, &words, error, (10, 20));
        p.call(1, "MPI_Recv", &[("count", 9.into())], (30, 40));
        found(p)
    };
    let (first, second) = (((0, 0), exit((1, 0))), ((0, 2), exit((1, 2))));
    assert_eq!(received("MPI_Recv", TRUNCATE, 0), (vec![first, second], vec![]));
    assert_eq!(received("MPI_Sendrecv", TRUNCATE, 0), (vec![first, second], vec![]));
    // One that has got nothing, or one of which nobody knows what.
    let one = (vec![((0, 0), exit((1, 2)))], vec![("sends without receive", 1)]);
    assert_eq!(received("MPI_Recv", ARGUMENT, 0), one);
    assert_eq!(received("MPI_Recv", TRUNCATE, ANY_SOURCE), one);
}

#[test]
fn a_completion_that_failed_completes_what_it_names() {
    let mut p = Program::new(&[0, 0]);
    for _ in 0..2 {
        p.call(0, "MPI_Send", &[("count", 9.into()), ("dest", 1.into())], (0, 5));
    }
    for request in 0..2 {
        p.call(1, "MPI_Irecv", &[("count", 9.into()), ("request", request.into())], (10, 11));
    }
    let named =
        [("completed", vec![1, 0]), ("source", vec![0, 0]), ("tag", vec![0, 0]), ("bytes", vec![9, 36])];
    let mut words = named.map(|(name, list)| (name, Word::from(list))).to_vec();
    words.push(("requests", vec![0, 1].into()));
    p.record_call((1, 0), "MPI_Waitall", &words, IN_STATUS, (10, 20));
    let end = exit((1, 4));
    assert_eq!(found(p), (vec![((0, 0), end), ((0, 2), end)], vec![]));
}
