//! Which edges each kind of call gives, exactly; and that the corrected times keep them.

use crate::program::{Point, Word, exit};
use crate::script::{STRICT, Script, none};
use crate::shared;
use st_match::graph::{Barriers, Latency, Matcher, survey};
use st_model::values::{ANY_SOURCE, ANY_TAG, CANCELLED, NONE, PROC_NULL, ROOT};

fn r(rank: usize) -> i64 {
    i64::try_from(rank).unwrap()
}

#[test]
fn exchanges_in_one_call() {
    let mut s = Script::new(4);
    // A line: the ends have no partner on one side.
    let shift = |me: usize| {
        let (right, left) =
            (if me < 3 { r(me) + 1 } else { PROC_NULL }, if me > 0 { r(me) - 1 } else { PROC_NULL });
        vec![("dest", right.into()), ("source", left.into()), ("sendtag", 5.into()), ("recvtag", 5.into())]
    };
    for name in ["MPI_Sendrecv", "MPI_Sendrecv_replace"] {
        let calls = s.all(name, shift);
        (0..3).for_each(|i| s.edge(calls[i], exit(calls[i + 1])));
    }
    // Rank 1 takes it from anybody.
    let a = s.call(0, "MPI_Send", &[("dest", 1.into()), ("tag", 9.into())]);
    let any: [(&str, Word); 5] = [
        ("dest", PROC_NULL.into()),
        ("source", ANY_SOURCE.into()),
        ("recvtag", ANY_TAG.into()),
        ("rsource", 0.into()),
        ("rtag", 9.into()),
    ];
    let b = s.call(1, "MPI_Sendrecv", &any);
    s.edge(a, exit(b));
    none(&s.check(STRICT));
}

#[test]
fn matched_probes() {
    let mut s = Script::new(2);
    let sends: Vec<Point> =
        (0..2).map(|tag| s.call(0, "MPI_Send", &[("dest", 1.into()), ("tag", tag.into())])).collect();
    // Plain probes bind nobody.
    s.call(
        1,
        "MPI_Probe",
        &[("source", ANY_SOURCE.into()), ("tag", ANY_TAG.into()), ("rsource", 0.into()), ("rtag", 0.into())],
    );
    s.call(
        1,
        "MPI_Improbe",
        &[
            ("source", 0.into()),
            ("tag", 1.into()),
            ("flag", 0.into()),
            ("request", (-1).into()),
            ("times", 3.into()),
        ],
    );
    let any: [(&str, Word); 5] = [
        ("source", ANY_SOURCE.into()),
        ("tag", ANY_TAG.into()),
        ("rsource", 0.into()),
        ("rtag", 1.into()),
        ("flag", 1.into()),
    ];
    // The later message first.
    s.call(1, "MPI_Improbe", &any);
    s.call(1, "MPI_Mprobe", &[("source", 0.into()), ("tag", 0.into()), ("request", 1.into())]);
    let b = s.call(1, "MPI_Mrecv", &[("request", 1.into())]);
    s.edge(sends[0], exit(b));
    let issues = s.check(STRICT);
    // The first was matched and never received.
    assert_eq!(issues.incomplete, 1);
}

#[test]
fn persistent_operations() {
    let mut s = Script::new(2);
    let post = s.call(
        1,
        "MPI_Recv_init",
        &[("source", ANY_SOURCE.into()), ("tag", 3.into()), ("request", 0.into())],
    );
    s.call(0, "MPI_Ssend_init", &[("dest", 1.into()), ("tag", 3.into()), ("request", 0.into())]);
    assert_eq!(post.1, 0);
    for _ in 0..3 {
        let posted = s.call(1, "MPI_Start", &[("request", 0.into())]);
        let sent = s.call(0, "MPI_Startall", &[("n", 1.into()), ("requests", vec![0].into())]);
        let got = s.waitall(1, &[0], [vec![0], vec![3], vec![4]]);
        let done = s.wait(0, &[0]);
        s.edge(sent, got);
        s.edge(posted, done);
    }
    let made = s.all("MPI_Barrier_init", |_| vec![("request", 1.into())]);
    assert_eq!(made.len(), 2);
    for _ in 0..2 {
        let begun = s.all("MPI_Start", |_| vec![("request", 1.into())]);
        let done: Vec<Point> = (0..2).map(|i| s.wait(i, &[1])).collect();
        s.edge(begun[0], done[1]);
        s.edge(begun[1], done[0]);
    }
    s.all("MPI_Request_free", |_| vec![("request", 1.into())]);
    none(&s.check(STRICT));
}

#[test]
fn cancelled_receives_and_sends_have_no_partner() {
    let mut s = Script::new(2);
    for request in 0..2 {
        s.call(1, "MPI_Irecv", &[("source", 0.into()), ("request", request.into())]);
    }
    s.call(1, "MPI_Cancel", &[("request", 0.into())]);
    s.waitall(1, &[0], [vec![0], vec![0], vec![CANCELLED]]);
    s.call(0, "MPI_Isend", &[("dest", 1.into()), ("request", 0.into())]);
    s.call(0, "MPI_Cancel", &[("request", 0.into())]);
    s.waitall(0, &[0], [vec![NONE], vec![NONE], vec![CANCELLED]]);
    let sent = s.call(0, "MPI_Send", &[("dest", 1.into())]);
    let got = s.waitall(1, &[1], [vec![0], vec![0], vec![4]]);
    s.edge(sent, got);
    let issues = s.check(STRICT);
    assert_eq!(issues.counts().map(|(_, n)| n).collect::<Vec<_>>(), [2]);
    assert_eq!(issues.cancelled, 2);
}

#[test]
fn a_synchronous_send_ends_after_its_receive_was_posted() {
    let mut s = Script::new(2);
    let sent = s.call(0, "MPI_Issend", &[("dest", 1.into()), ("request", 0.into())]);
    let posted = s.call(1, "MPI_Irecv", &[("source", 0.into()), ("request", 0.into())]);
    let done = s.wait(0, &[0]);
    let got = s.waitall(1, &[0], [vec![0], vec![0], vec![4]]);
    s.edge(sent, got);
    s.edge(posted, done);
    none(&s.check(STRICT));
}

#[test]
fn neighbourhoods() {
    let mut s = Script::new(4);
    let world = [0, 1, 2, 3];
    let cart: Vec<i64> = (0..4).map(|i| s.program.comm(i, &world, &[])).collect();
    let graph: Vec<i64> = (0..4).map(|i| s.program.comm(i, &world, &[])).collect();
    assert_ne!(cart, graph);
    // A line, not a ring.
    let (c, g) = (cart[0], graph[0]);
    s.all("MPI_Cart_create", |_| {
        vec![
            ("ndims", 1.into()),
            ("dims", vec![4].into()),
            ("periods", vec![0].into()),
            ("newcomm", c.into()),
        ]
    });
    let some = || vec![("sendcount", Word::from(1)), ("recvcount", Word::from(1))];
    let calls = s.all("MPI_Neighbor_alltoall", |_| [some(), vec![("comm", c.into())]].concat());
    for i in 0..3 {
        s.edge(calls[i], exit(calls[i + 1]));
        s.edge(calls[i + 1], exit(calls[i]));
    }
    // Everyone sends to the next two on a ring; the farther one gets nothing the second time.
    s.all("MPI_Dist_graph_create_adjacent", |me| {
        let at = |by: i64| (r(me) + by).rem_euclid(4);
        vec![
            ("indegree", 2.into()),
            ("sources", vec![at(-1), at(-2)].into()),
            ("outdegree", 2.into()),
            ("destinations", vec![at(1), at(2)].into()),
            ("newcomm", g.into()),
        ]
    });
    let calls = s.all("MPI_Neighbor_alltoallv", |_| {
        vec![("comm", g.into()), ("sendcounts", vec![1, 0].into()), ("recvcounts", vec![1, 0].into())]
    });
    (0..4).for_each(|i| s.edge(calls[i], exit(calls[(i + 1) % 4])));
    let begun = s.all("MPI_Ineighbor_allgather", |_| [some(), vec![("comm", g.into())]].concat());
    let done: Vec<Point> = (0..4).map(|i| s.wait(i, &[0])).collect();
    for i in 0..4 {
        s.edge(begun[i], done[(i + 1) % 4]);
        s.edge(begun[i], done[(i + 2) % 4]);
    }
    none(&s.check(STRICT));
}

#[test]
fn intercommunicators() {
    let mut s = Script::new(4);
    let comm = [
        s.program.comm(0, &[0, 2], &[1, 3]),
        s.program.comm(1, &[1, 3], &[0, 2]),
        s.program.comm(2, &[0, 2], &[1, 3]),
        s.program.comm(3, &[1, 3], &[0, 2]),
    ][0];
    let on = |words: Vec<(&'static str, Word)>| [vec![("comm", Word::from(comm))], words].concat();
    // Ranks in calls are those of the other side: world rank 0 to 3, and back.
    let a = s.call(0, "MPI_Send", &on(vec![("dest", 1.into())]));
    let b = s.call(3, "MPI_Recv", &on(vec![("source", 0.into())]));
    s.edge(a, exit(b));
    let a = s.call(3, "MPI_Send", &on(vec![("dest", 0.into())]));
    let b = s.call(0, "MPI_Recv", &on(vec![("source", 1.into())]));
    s.edge(a, exit(b));
    let other = |me: usize| [[1, 3], [0, 2]][me % 2];
    let calls = s.all("MPI_Barrier", |_| on(vec![]));
    for me in 0..4 {
        other(me).into_iter().for_each(|q| s.edge(calls[me], exit(calls[q])));
    }
    // From world rank 2 to the other side.
    let root = |me: usize| {
        if me == 2 {
            ROOT
        } else if me == 0 {
            PROC_NULL
        } else {
            1
        }
    };
    let calls = s.all("MPI_Bcast", |me| on(vec![("count", 1.into()), ("root", root(me).into())]));
    [1, 3].into_iter().for_each(|q| s.edge(calls[2], exit(calls[q])));
    let calls = s.all("MPI_Gather", |me| {
        on(vec![("sendcount", 1.into()), ("recvcount", 1.into()), ("root", root(me).into())])
    });
    [1, 3].into_iter().for_each(|q| s.edge(calls[q], exit(calls[2])));
    // Only the side of ranks 0 and 2 sends.
    let calls = s.all("MPI_Allgather", |me| {
        let (send, receive) = if me % 2 == 0 { (1, 0) } else { (0, 1) };
        on(vec![("sendcount", send.into()), ("recvcount", receive.into())])
    });
    for me in [0, 2] {
        other(me).into_iter().for_each(|q| s.edge(calls[me], exit(calls[q])));
    }
    none(&s.check(STRICT));
}

#[test]
fn counts_of_zero_bind_nobody() {
    let mut s = Script::new(3);
    let counts = [[0, 1, 0], [0, 0, 1], [1, 1, 0]];
    let calls = s.all("MPI_Alltoallw", |me| {
        let column: Vec<i64> = (0..3).map(|q| counts[q][me]).collect();
        vec![("sendcounts", counts[me].to_vec().into()), ("recvcounts", column.into())]
    });
    for (a, row) in counts.iter().enumerate() {
        (0..3).filter(|b| row[*b] > 0).for_each(|b| s.edge(calls[a], exit(calls[b])));
    }
    // The result has a part for ranks 0 and 2 only.
    let calls = s.all("MPI_Reduce_scatter", |_| vec![("counts", vec![2, 0, 1].into())]);
    for a in 0..3 {
        s.edge(calls[a], exit(calls[0]));
        s.edge(calls[a], exit(calls[2]));
    }
    let calls = s.all("MPI_Scatterv", |me| {
        let sends = if me == 1 { vec![3, 0, 0] } else { vec![] };
        vec![("root", 1.into()), ("sendcounts", sends.into()), ("recvcount", [3, 0, 0][me].into())]
    });
    s.edge(calls[1], exit(calls[0]));
    s.all("MPI_Allreduce", |_| vec![("count", 0.into())]);
    none(&s.check(STRICT));
}

#[test]
fn data_of_each_pair_of_a_collective_operation_is_no_message_point_to_point() {
    let mut s = Script::new(3);
    for _ in 0..2 {
        s.all("MPI_Alltoallv", |_| {
            vec![("sendcounts", vec![1; 3].into()), ("recvcounts", vec![1; 3].into())]
        });
    }
    let mut matcher = Matcher::new(STRICT);
    let sections = s.program.sections();
    sections.iter().for_each(|s| matcher.add(s).unwrap());
    let graph = matcher.finish();
    let times: Vec<Vec<i64>> = sections.iter().flat_map(shared::points).collect();
    let found = survey(&graph, |s| times[s].iter().copied(), Latency::default());
    assert_eq!([found.messages, found.collective, found.pairs].map(|t| t.messages), [0, 6, 12]);
    // Rank 2's clock is ahead of rank 0's by 400 ns and of rank 1's by 900, in both calls; rank 0's of rank 1's by 500.
    assert_eq!([found.collective, found.pairs].map(|t| t.reversed), [4, 6]);
    assert_eq!(found.ranks.keys().copied().collect::<Vec<_>>(), [(2, 0), (2, 1)]);
    // Of what a message takes at least, it is the violated ones that are too early.
    let least = 2000;
    let slow = survey(&graph, |s| times[s].iter().copied(), Latency { near: least, far: least });
    assert_eq!((slow.collective.reversed, slow.collective.violated), (4, 6));
    assert_eq!(slow.collective.largest, least - found.shortest.near.min(found.shortest.far));
    assert!(slow.collective.mean_error() > found.collective.mean_error());
}

#[test]
fn epochs_of_windows() {
    let mut s = Script::new(3);
    let win = (0..3).map(|i| s.program.window(i, &[2, 0, 1])).last().unwrap();
    let of = |words: Vec<(&'static str, Word)>| [vec![("win", Word::from(win))], words].concat();
    // Ranks 0 and 1 access rank 2.
    let origins = s.program.group(2, &[0, 1]);
    let target = [s.program.group(0, &[2]), s.program.group(1, &[2])];
    for round in 0..2 {
        let posted = s.call(2, "MPI_Win_post", &of(vec![("group", origins.into())]));
        let mut completed = Vec::new();
        for me in 0..2 {
            s.call(me, "MPI_Win_start", &of(vec![("group", target[me].into())]));
            s.call(me, "MPI_Put", &of(vec![]));
            let c = s.call(me, "MPI_Win_complete", &of(vec![]));
            s.edge(posted, exit(c));
            completed.push(c);
        }
        let waited = if round == 0 {
            s.call(2, "MPI_Win_wait", &of(vec![]))
        } else {
            s.call(2, "MPI_Win_test", &of(vec![("flag", 0.into()), ("times", 2.into())]));
            s.call(2, "MPI_Win_test", &of(vec![("flag", 1.into())]))
        };
        completed.into_iter().for_each(|c| s.edge(c, exit(waited)));
    }
    // The first fence and one that says so end no epoch.
    for (assert, ends) in [(0, false), (0, true), (1 << 4, true), (0, false), (1 << 3, false), (0, true)] {
        let calls = s.all("MPI_Win_fence", |_| of(vec![("assert", assert.into())]));
        if ends {
            s.barrier(&calls);
        }
    }
    none(&s.check(Barriers { fence: true, ..STRICT }));
}

#[test]
fn epochs_of_locks_are_counted_and_bind_nobody() {
    let mut s = Script::new(2);
    let win = (0..2).map(|i| s.program.window(i, &[0, 1])).last().unwrap();
    let of = || vec![("win", Word::from(win))];
    for (lock, unlock) in [("MPI_Win_lock", "MPI_Win_unlock"), ("MPI_Win_lock_all", "MPI_Win_unlock_all")] {
        for name in [lock, "MPI_Put", "MPI_Win_flush", unlock] {
            s.call(1, name, &of());
        }
    }
    let issues = s.check(STRICT);
    assert_eq!(issues.counts().collect::<Vec<_>>(), [("one-sided epochs of locks", 2)]);
}

#[test]
fn freeing_windows_and_closing_files_are_barriers_if_told_so() {
    for barriers in [STRICT, Barriers::default()] {
        let mut s = Script::new(3);
        let win = (0..3).map(|i| s.program.window(i, &[0, 1, 2])).last().unwrap();
        let file = (0..2).map(|i| s.program.file(i, &[0, 1])).last().unwrap();
        let mut calls = vec![s.all("MPI_Win_free", |_| vec![("freewin", win.into())])];
        calls.push((0..2).map(|r| s.call(r, "MPI_File_close", &[("freefile", file.into())])).collect());
        if barriers.creation {
            calls.iter().for_each(|c| s.barrier(c));
        }
        none(&s.check(barriers));
    }
}

#[test]
fn messages_in_parts_meet_each_other_only() {
    let mut s = Script::new(2);
    let words = |peer, request: i64, tag: i64| {
        let peer = if peer == "dest" { ("dest", 1.into()) } else { ("source", 0.into()) };
        [("count", 1.into()), peer, ("tag", tag.into()), ("request", request.into())]
    };
    // Two of the same tag, started in another order, and a message of the usual kind.
    s.call(0, "MPI_Psend_init", &words("dest", 0, 5));
    s.call(0, "MPI_Psend_init", &words("dest", 1, 5));
    s.call(1, "MPI_Precv_init", &words("source", 0, 5));
    s.call(1, "MPI_Precv_init", &words("source", 1, 5));
    for _ in 0..2 {
        let second = s.call(0, "MPI_Start", &[("request", 1.into())]);
        let first = s.call(0, "MPI_Start", &[("request", 0.into())]);
        let usual = s.call(0, "MPI_Send", &[("count", 1.into()), ("dest", 1.into()), ("tag", 5.into())]);
        s.wait(0, &[0, 1]);
        s.call(1, "MPI_Startall", &[("n", 2.into()), ("requests", vec![0, 1].into())]);
        let got = s.call(1, "MPI_Recv", &[("count", 1.into()), ("tag", 5.into())]);
        s.edge(usual, exit(got));
        let done = s.wait(1, &[0]);
        s.edge(first, done);
        let done = s.wait(1, &[1]);
        s.edge(second, done);
    }
    none(&s.check(STRICT));
}

#[test]
fn calls_that_make_objects_are_barriers_if_told_so() {
    let strict = [STRICT, Barriers::default(), Barriers { finalize: true, ..Barriers::default() }];
    for (n, barriers) in strict.into_iter().enumerate() {
        let mut s = Script::new(3);
        let dup = (0..3).map(|i| s.program.comm(i, &[0, 1, 2], &[])).last().unwrap();
        for (name, at) in [("MPI_Init", 1), ("MPI_Comm_dup", 1), ("MPI_Win_create", 1), ("MPI_Finalize", 2)] {
            let calls = s.all(name, |_| vec![("newcomm", dup.into())]);
            if n >= at {
                s.barrier(&calls);
            }
        }
        none(&s.check(barriers));
    }
}

#[test]
fn threads() {
    let mut s = Script::new(2);
    let second = s.program.thread(1);
    // Messages by tag; the collective operation on the other thread.
    let a = s.call(0, "MPI_Send", &[("dest", 1.into()), ("tag", 1.into())]);
    let b = s.call(0, "MPI_Send", &[("dest", 1.into()), ("tag", 2.into())]);
    let got = s.on(1, second, "MPI_Recv", &[("tag", 2.into())]);
    s.edge(b, exit(got));
    let got = s.call(1, "MPI_Recv", &[("tag", 1.into())]);
    s.edge(a, exit(got));
    let calls = [s.call(0, "MPI_Barrier", &[]), s.on(1, second, "MPI_Barrier", &[])];
    s.barrier(&calls);
    let calls = [s.call(0, "MPI_Barrier", &[]), s.call(1, "MPI_Barrier", &[])];
    s.barrier(&calls);
    // Both threads take messages of one tag: nobody knows which.
    for _ in 0..2 {
        s.call(0, "MPI_Send", &[("dest", 1.into()), ("tag", 7.into())]);
    }
    s.on(1, second, "MPI_Recv", &[("tag", 7.into())]);
    s.call(1, "MPI_Recv", &[("tag", 7.into())]);
    let issues = s.check(STRICT);
    assert_eq!(issues.counts().collect::<Vec<_>>(), [("messages whose order between threads is unknown", 2)]);
}
