//! Planted faults that are no waits: they are found at their places, with what they cost, and not where there are none.

use crate::simulator::{Machine, OWN, site};
use st_explain::{Analysis, Finding, Matter, WaitKind, analyse, analyse_causes, joined};
use st_model::calls::names;

const STEPS: u64 = 20;
const EAGER: (bool, [bool; 2]) = (false, [false; 2]);

/// A program of four ranks that do something else beside computing.
fn run(step: impl Fn(&mut Machine)) -> Analysis {
    let mut machine = Machine::new(4);
    for _ in 0..STEPS {
        (0..4).for_each(|me| machine.compute(me, 1_000_000));
        step(&mut machine);
    }
    analyse(&machine.finish().0, &|_| ()).unwrap()
}

fn of(analysis: &Analysis, matter: Matter) -> Vec<Finding> {
    analysis.findings().into_iter().filter(|f| f.matter == matter).collect()
}

fn at(analysis: &Analysis, matter: Matter, number: u32) -> Vec<Finding> {
    of(analysis, matter).into_iter().filter(|f| site(analysis, f.place) == number).collect()
}

/// That there is one finding of a kind at a site: how often, what it costs, and whose fault it is.
fn only(analysis: &Analysis, matter: Matter, site: u32) -> (u64, u64, Vec<u32>) {
    let found = at(analysis, matter, site);
    assert_eq!(found.len(), 1, "{found:?}");
    let f = &found[0];
    (f.count, f.cost, f.culprits.iter().map(|(at, _)| at.rank).collect())
}

#[test]
fn polling_counts_tests_and_their_time() {
    let polls = run(|m| {
        m.message((2, 1), (false, [false, true]), false, [1, 2]);
        m.test(1, 3, (40, 4_000_000));
        m.wait(1, 4, |_| true);
    });
    assert_eq!(only(&polls, Matter::Polling, 3), (40 * STEPS, 4_000_000 * STEPS, vec![1]));
    let waits = run(|m| {
        m.message((2, 1), (false, [false, true]), false, [1, 2]);
        m.wait(1, 4, |_| true);
    });
    assert_eq!(of(&waits, Matter::Polling), []);
}

#[test]
fn tests_that_find_nothing_are_for_who_sends_late() {
    let polls = run(|m| {
        // It is there 4 ms before the message is sent, and tests for 1 ms more than that.
        m.compute(2, 4_000_000);
        m.message((2, 1), (false, [false, true]), false, [1, 2]);
        m.test(1, 3, (40, 5_000_000));
        m.test_finds(1, 3);
        (0..4).for_each(|me| m.compute(me, m.now(1).max(m.now(2)) - m.now(me)));
    });
    let found = at(&polls, Matter::Polling, 3);
    let [f] = &found[..] else { panic!("{found:?}") };
    let [(culprit, ns)] = f.culprits[..] else { panic!("{f:?}") };
    assert_eq!((f.cost, culprit.rank, site(&polls, culprit.place)), (5_000_000 * STEPS, 2, 1));
    assert!(ns.abs_diff(4_000_000 * STEPS) < 10_000 * STEPS, "{ns}");
    let [(1, _)] = f.victims[..] else { panic!("{f:?}") };
    let excess = f.excess.map(|e| (e.at.rank, site(&polls, e.at.place)));
    assert_eq!(excess, Some((2, 1)));
    // They are no wait states.
    assert_eq!(polls.waits.total().count, 0);
}

#[test]
fn what_comes_first_of_several_is_in_no_wrong_order_though_it_is_the_last_of_them() {
    let found = run(|m| {
        // Rank 3 is a step ahead of rank 2, for both of which rank 0 waits.
        m.compute(2, 5_000_000);
        m.message((3, 0), (false, [false, true]), false, [1, 2]);
        m.message((2, 0), (false, [false, true]), false, [3, 2]);
        m.wait_any(0, 4, 0);
        m.wait_any(0, 4, 1);
    });
    assert_eq!(of(&found, Matter::Wait(WaitKind::WrongOrderOther)), []);
    assert!(!at(&found, Matter::Wait(WaitKind::LateSender), 4).is_empty());
}

#[test]
fn tests_of_requests_that_are_over_are_no_polls() {
    let test = |name: &'static str, words: [(&'static str, Vec<i64>); 2]| {
        run(move |m| {
            let now = m.now(0);
            m.record(0, name, 3, words.to_vec(), now, now + 1_000_000);
        })
    };
    let polls = |of: Analysis| of.totals.values().map(|t| t.failed_tests).sum::<u64>();
    let all = |requests, flag| [("requests", requests), ("flag", vec![flag])];
    assert_eq!(polls(test(names::MPI_Testall, all(vec![-1, -1], 1))), 0);
    assert_eq!(polls(test(names::MPI_Testall, all(vec![0, -1], 0))), STEPS);
    let some = |requests| [("requests", requests), ("completed", vec![])];
    assert_eq!(polls(test(names::MPI_Testsome, some(vec![-1, -1]))), 0);
    assert_eq!(polls(test(names::MPI_Testsome, some(vec![-1, 0]))), STEPS);
}

#[test]
fn short_messages_are_those_up_to_a_kib_and_cost_their_calls() {
    for (elements, found) in [(1, true), (256, true), (257, false)] {
        let sends = run(|m| {
            m.elements = elements;
            (0..50).for_each(|_| m.message((3, 0), EAGER, false, [1, 2]));
        });
        if found {
            let own = OWN.unsigned_abs();
            assert_eq!(only(&sends, Matter::Latency, 1), (50 * STEPS, 50 * STEPS * own, vec![3]));
        } else {
            assert_eq!(at(&sends, Matter::Latency, 1), []);
        }
    }
}

#[test]
fn requests_that_nothing_completes_are_leaks() {
    let leaks = run(|m| {
        m.message((3, 2), (false, [true, false]), false, [1, 2]);
        m.lose(3);
        m.message((3, 2), (false, [true, false]), false, [4, 2]);
        m.wait(3, 5, |_| true);
    });
    assert_eq!(only(&leaks, Matter::LeakedRequests, 1), (STEPS, 0, vec![3]));
}

#[test]
fn objects_that_nothing_frees_are_leaks_where_they_come_with_the_steps() {
    let index = std::cell::Cell::new(1);
    let leaks = |frees: bool| {
        run(|m| {
            let (now, made) = (m.now(2), index.replace(index.get() + 1));
            m.record(2, names::MPI_Comm_dup, 1, vec![("newcomm", vec![made])], now, now + 10);
            if frees {
                m.record(2, names::MPI_Comm_free, 2, vec![("freecomm", vec![made])], now + 20, now + 30);
            }
        })
    };
    let left = leaks(false);
    assert_eq!(only(&left, Matter::LeakedObjects, 1), (STEPS, 0, vec![2]));
    assert!(of(&left, Matter::LeakedObjects)[0].is_leak());
    assert_eq!(of(&leaks(true), Matter::LeakedObjects), []);
}

#[test]
fn late_data_of_an_operation_that_another_call_completes_is_found() {
    let gather = run(|m| {
        m.compute(3, 5_000_000);
        for me in 0..4 {
            let now = m.now(me);
            let words = vec![("root", vec![1]), ("request", vec![0])];
            m.record(me, names::MPI_Igather, 1, words, now, now + 10);
        }
        let until = m.now(3);
        for me in 0..4 {
            let now = m.now(me);
            let words = vec![("request", vec![0]), ("requests", vec![0]), ("completed", vec![0])];
            let exit = if me == 1 { until + 100 } else { now + 10 };
            m.record(me, names::MPI_Wait, 2, words, now, exit);
            m.compute(me, until + 1000 - exit);
        }
    });
    let (count, cost, who) = only(&gather, Matter::Wait(WaitKind::LateContribution), 2);
    assert_eq!((count, who), (STEPS, vec![3]));
    assert!(cost.abs_diff(5_000_000 * STEPS) < 100 * STEPS, "{cost}");
    assert_eq!(of(&gather, Matter::Wait(WaitKind::EarlyReduce)), []);
}

#[test]
fn ranks_that_do_the_same_work_before_other_calls_are_not_slow() {
    let found = run(|m| {
        for site in 10..14 {
            for me in 0..4 {
                let own = if me == 2 { site < 13 } else { site == 13 };
                m.compute(me, if own { 9_000_000 / if me == 2 { 3 } else { 1 } } else { 0 });
            }
            m.collective(names::MPI_Barrier, 0, site);
        }
    });
    assert_eq!(of(&found, Matter::SlowRank), []);
}

#[test]
fn a_rank_that_is_slow_everywhere_is_named_and_one_that_is_slow_somewhere_is_not() {
    let program = |slow: fn(u32) -> bool| {
        run(move |m| {
            for site in 10..14 {
                (0..4).for_each(|me| m.compute(me, 1_000_000));
                m.compute(2, if slow(site) { 300_000 } else { 0 });
                m.collective(names::MPI_Barrier, 0, site);
            }
        })
    };
    let found = of(&program(|_| true), Matter::SlowRank);
    assert_eq!(found.len(), 1, "{found:?}");
    let f = &found[0];
    assert_eq!(f.culprits.iter().map(|(at, _)| at.rank).collect::<Vec<_>>(), [2]);
    // Four times in each step; the barriers themselves take nearly nothing.
    let lost = 4 * 300_000 * STEPS;
    assert!(f.cost.abs_diff(lost) < lost / 20, "{f:?}");
    assert_eq!(of(&program(|_| false), Matter::SlowRank), []);
    assert_eq!(of(&program(|site| site == 11), Matter::SlowRank), []);
}

/// Findings of a program of so many ranks, told of once each, without what is less than a hundredth of all; and what they cost as they are
/// found.
fn told(ranks: usize, step: impl Fn(&mut Machine, u64)) -> Vec<Finding> {
    let mut machine = Machine::new(ranks);
    (0..STEPS).for_each(|n| step(&mut machine, n));
    let analysis = analyse_causes(&machine.finish().0, &|_| ()).unwrap();
    let found = analysis.findings();
    let waits = |all: &[Finding]| -> u64 {
        let of = |f: &&Finding| matches!(f.matter, Matter::Wait(_) | Matter::SlowRank | Matter::Serialised);
        all.iter().filter(of).map(|f| f.cost).sum()
    };
    let plain: Vec<Finding> = found.iter().filter(|f| !f.matter.is_reason()).cloned().collect();
    let mut told = joined(found, &analysis);
    assert_eq!(waits(&told), waits(&plain), "each loss counts once: {told:?}");
    told.retain(|f| f.cost > analysis.time() / 100);
    told
}

#[test]
fn what_a_slow_rank_costs_is_what_others_wait_for_it_and_counts_once() {
    let program = |everywhere: bool| {
        told(4, move |m, _| {
            for site in 10..14 {
                (0..4).for_each(|me| m.compute(me, 1_000_000));
                // By chance it is a tenth longer at two other places, too.
                let more =
                    if everywhere || site == 10 { 300_000 } else { [0, 110_000][usize::from(site < 13)] };
                m.compute(2, more);
                m.collective(names::MPI_Barrier, 0, site);
            }
        })
    };
    let all = program(true);
    let [f] = &all[..] else { panic!("{all:?}") };
    assert_eq!((f.matter, f.places), (Matter::SlowRank, 4));
    assert_eq!(f.culprits.iter().map(|(at, _)| at.rank).collect::<Vec<_>>(), [2]);
    let waited = 3 * 4 * 300_000 * STEPS;
    assert!(f.cost.abs_diff(waited) < waited / 20, "{f:?}");
}

#[test]
fn a_rank_that_is_slow_at_one_place_is_told_by_those_who_wait() {
    // Elsewhere it is longer by chance, in one run and not in the next.
    for chance in [0, 120_000] {
        let all = told(4, |m, _| {
            for site in 10..14 {
                (0..4).for_each(|me| m.compute(me, if site == 10 { 0 } else { 100_000 }));
                m.compute(2, if site == 10 { 9_000_000 } else { chance });
                m.collective(names::MPI_Barrier, 0, site);
            }
        });
        assert_eq!(all[0].matter, Matter::Wait(WaitKind::Barrier));
        assert!(!all.iter().any(|f| f.matter == Matter::SlowRank), "{all:?}");
    }
}

#[test]
fn ranks_that_run_one_after_another_are_serialised() {
    let ring = told(4, |m, step| {
        for me in 0..4 {
            let next = (me + 1) % 4;
            m.compute(me, 10_000_000 + i64::try_from(step * 7919 % 1000).unwrap());
            m.message((me, next), EAGER, false, [1, 2]);
        }
    });
    let token = told(8, |m, _| {
        for me in 0..8 {
            m.compute(me, 10_000_000);
            if me < 7 {
                m.message((me, me + 1), EAGER, false, [1, 2]);
            }
        }
        m.collective(names::MPI_Barrier, 0, 3);
    });
    for (all, places) in [(ring, 1), (token, 2)] {
        let [f] = &all[..] else { panic!("{all:?}") };
        assert_eq!((f.matter, f.places), (Matter::Serialised, places));
    }
}

#[test]
fn ranks_that_are_late_in_turn_or_for_neighbours_by_chance_are_not_serialised() {
    let moves = told(4, |m, step| {
        (0..4).for_each(|me| m.compute(me, 1_000_000));
        m.compute(usize::try_from(step % 4).unwrap(), 5_000_000);
        m.collective(names::MPI_Barrier, 0, 3);
    });
    let neighbours = told(4, |m, step| {
        for me in 0..4 {
            let chance =
                (step * 4 + u64::try_from(me).unwrap()).wrapping_mul(6_364_136_223_846_793_005) >> 40;
            m.compute(me, 1_000_000 + i64::try_from(chance % 4).unwrap() * 1_500_000);
        }
        for me in 0..4 {
            [1, 3]
                .into_iter()
                .for_each(|to| m.message((me, (me + to) % 4), (false, [true; 2]), false, [1, 2]));
        }
        (0..4).for_each(|me| m.wait(me, 3, |_| true));
    });
    // Who is late in turn, and holds up all others in a ring: they hand it on, and have no turn of their own.
    let ring = told(8, |m, step| {
        (0..8).for_each(|me| m.compute(me, 1_000_000));
        m.compute(usize::try_from(step % 8).unwrap(), 5_000_000);
        for _ in 1..8 {
            (0..8).for_each(|me| m.message((me, (me + 1) % 8), (false, [true; 2]), false, [1, 2]));
            (0..8).for_each(|me| m.wait(me, 3, |_| true));
        }
    });
    for all in [moves, neighbours, ring] {
        assert!(!all.is_empty() && !all.iter().any(|f| f.matter == Matter::Serialised), "{all:?}");
    }
}

/// A program of hundreds of call sites with two calls each, that compute by chance up to half longer or less long.
#[test]
fn a_rank_that_is_slow_before_hundreds_of_call_sites_is_named_with_what_it_loses() {
    let program = |slow: fn(u32) -> bool| {
        let (mut machine, mut chance) = (Machine::new(4), 1u64);
        for site in (10..510).chain(10..510) {
            for me in 0..4 {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let ns = 500_000 + i64::try_from(chance >> 33).unwrap() * 1_000_000 / (1 << 31);
                machine.compute(me, if me == 2 && slow(site) { ns * 13 / 10 } else { ns });
            }
            machine.collective(names::MPI_Barrier, 0, site);
        }
        analyse(&machine.finish().0, &|_| ()).unwrap()
    };
    let found = of(&program(|_| true), Matter::SlowRank);
    let [f] = &found[..] else { panic!("{found:?}") };
    assert_eq!(f.culprits.iter().map(|(at, _)| at.rank).collect::<Vec<_>>(), [2]);
    let lost = 1000 * 300_000u64;
    assert!(f.cost.abs_diff(lost) < lost / 10, "{f:?}");
    assert_eq!(of(&program(|_| false), Matter::SlowRank), []);
    assert_eq!(of(&program(|site| site < 260), Matter::SlowRank), []);
}

#[test]
fn a_rank_that_ends_late_keeps_the_others_waiting() {
    let program = |later: i64, slow: &[usize]| {
        let mut machine = Machine::new(4);
        for _ in 0..STEPS {
            (0..4).for_each(|me| machine.compute(me, 1_000_000));
            machine.collective(names::MPI_Barrier, 0, 7);
        }
        slow.iter().for_each(|me| machine.compute(*me, later));
        analyse(&machine.finish().0, &|_| ()).unwrap()
    };
    let found = of(&program(30_000_000, &[1]), Matter::LateEnd);
    let [f] = &found[..] else { panic!("{found:?}") };
    assert_eq!(f.culprits.iter().map(|(at, _)| at.rank).collect::<Vec<_>>(), [1]);
    assert!(f.cost.abs_diff(3 * 30_000_000) < 100_000, "{f:?}");
    assert!(f.excess.is_some_and(|e| e.at.rank == 1 && e.ns.abs_diff(30_000_000) < 100_000), "{f:?}");
    // What several compute longer than the others is not less for there being several.
    let found = of(&program(30_000_000, &[1, 2]), Matter::LateEnd);
    let [f] = &found[..] else { panic!("{found:?}") };
    assert_eq!(f.culprits.iter().map(|(at, _)| at.rank).collect::<Vec<_>>(), [1, 2]);
    assert!(f.excess.is_some_and(|e| e.ns.abs_diff(30_000_000) < 100_000), "{f:?}");
    let even = program(0, &[]);
    assert!(of(&even, Matter::LateEnd).iter().all(|f| f.cost < even.time() / 1000), "{even:?}");
}

#[test]
fn a_probe_has_waited_where_clocks_are_a_little_apart() {
    for apart in [-100, 100] {
        let analysis = run(|m| {
            m.compute(1, 50_000_000);
            let (enter, exit) = (m.now(0) + 64, m.now(1) + 64 + apart);
            m.record(0, names::MPI_Probe, 1, vec![("source", vec![1])], enter, exit);
            m.message((1, 0), EAGER, false, [2, 3]);
        });
        let found = at(&analysis, Matter::Wait(WaitKind::LateSender), 1);
        assert_eq!(found.iter().map(|f| f.culprits[0].0.rank).collect::<Vec<_>>(), [1], "{apart} ns");
        assert!(found[0].cost.abs_diff(1_000_000_000) < 50_000_000, "{found:?}");
        assert_eq!(analysis.waits.violations > 0, apart < 0);
    }
}

#[test]
fn who_has_nothing_for_others_is_waited_for_where_these_leave_when_it_comes() {
    // Only ranks 1 and 2 have something for each other, and rank 0 comes last by 20 ms.
    let waits = |leaves: i64| {
        let analysis = run(|m| {
            m.compute(0, 20_000_000);
            let last = m.now(0);
            for me in 0..4 {
                let counts: Vec<i64> =
                    (0..4).map(|you| i64::from([(1, 2), (2, 1)].contains(&(me, you)))).collect();
                let words = vec![("sendcounts", counts.clone()), ("recvcounts", counts)];
                let enter = m.now(me);
                let exit = if me == 0 { last } else { last + leaves } + OWN;
                m.record(me, names::MPI_Alltoallv, 3, words, enter, exit);
            }
            m.collective(names::MPI_Barrier, 0, 4);
        });
        let at = analysis.waits.culprits.iter().filter(|((kind, ..), _)| *kind == WaitKind::AllToAll);
        let found = at.map(|((_, _, by), sum)| (by.rank, sum.count)).collect::<Vec<_>>();
        assert_eq!(analysis.waits.violations, 0);
        found
    };
    assert_eq!(waits(0), [(0, 3 * STEPS)]);
    // They leave before it comes, or long after it.
    assert_eq!(waits(-15_000_000), []);
    assert_eq!(waits(15_000_000), []);
}

#[test]
fn data_that_go_through_a_late_rank_are_waited_for_there() {
    // What rank 0 sends reaches rank 3 through rank 1, which comes 20 ms late; rank 2 has it at once.
    let analysis = run(|m| {
        m.compute(1, 20_000_000);
        let late = m.now(1);
        for me in 0..4 {
            let enter = m.now(me);
            let exit = if [1, 3].contains(&me) { late } else { enter } + OWN;
            m.record(me, names::MPI_Bcast, 3, vec![("root", vec![0])], enter, exit);
        }
        m.collective(names::MPI_Barrier, 0, 4);
    });
    let at = analysis.waits.culprits.iter().filter(|((kind, ..), _)| *kind != WaitKind::Barrier);
    let found: Vec<_> = at.map(|((_, _, by), sum)| (by.rank, sum.count)).collect();
    assert_eq!(found, [(1, STEPS)]);
}

#[test]
fn who_computes_between_the_ends_of_a_message_holds_up_the_other_where_it_shows() {
    // Rank 1 posts its receive and computes 20 ms before it waits for it: only then the message moves. Or rank 0 does, between its
    // send and its end. Of short messages that is seen only where it is so repeatedly; what is over long after the other one comes, or
    // at any time before, is long for another reason.
    let soon = |_: u64| Some(OWN);
    let late_or_early = |n: u64| Some(if n.is_multiple_of(2) { 20_000_000 } else { -10_000_000 });
    let seldom = |n: u64| (n < 3).then_some(OWN);
    type After = dyn Fn(u64) -> Option<i64>;
    let all: [(i64, &After, bool); 5] = [
        (1 << 20, &soon, true),
        (4000, &soon, true),
        (8, &soon, true),
        (4000, &late_or_early, false),
        (8, &seldom, false),
    ];
    for late in [0, 1] {
        for (bytes, after, waits) in all {
            let step = std::cell::Cell::new(0);
            let analysis = run(|m| {
                let n = step.replace(step.get() + 1);
                let request = |m: &mut Machine, me: usize, name, words: Vec<_>| {
                    let enter = m.now(me);
                    m.record(me, name, 1, words, enter, enter + OWN);
                };
                let count = ("count", vec![bytes / 4]);
                request(m, 0, names::MPI_Isend, vec![count.clone(), ("dest", vec![1]), ("request", vec![0])]);
                request(m, 1, names::MPI_Irecv, vec![count, ("source", vec![0]), ("request", vec![0])]);
                m.compute(late, 20_000_000);
                let until = m.now(late);
                for me in [0, 1] {
                    let enter = m.now(me);
                    let got = [("requests", 0), ("completed", 0), ("source", 0), ("bytes", bytes)]
                        .map(|(name, word)| (name, vec![word]));
                    let exit = if me == late { enter } else { after(n).map_or(enter, |after| until + after) };
                    m.record(me, names::MPI_Wait, 2, got.to_vec(), enter, exit.max(enter + OWN));
                }
                m.collective(names::MPI_Barrier, 0, 4);
            });
            let found: Vec<_> =
                analysis.waits.culprits.iter().filter(|((kind, ..), _)| *kind != WaitKind::Barrier).collect();
            let kind = if late == 0 { WaitKind::LateSender } else { WaitKind::LateReceiver };
            let said: Vec<_> = found.iter().map(|((kind, _, by), sum)| (*kind, by.rank, sum.count)).collect();
            let expected = (kind, u32::try_from(late).unwrap(), STEPS);
            assert_eq!(said, Vec::from_iter(waits.then_some(expected)), "{late} {bytes}");
        }
    }
}

#[test]
fn a_rank_that_is_late_by_less_than_a_millisecond_is_waited_for_where_calls_end_as_it_comes() {
    // Rank 0 has nothing to wait for, but does: for rank 1. Or its calls take that long, and rank 1 comes at any time within them.
    for (waits, counts) in [(true, STEPS - 3), (false, 0)] {
        let step = std::cell::Cell::new(0);
        let analysis = run(|m| {
            let all = m.now(0) + 800_000;
            step.set(step.get() + 1);
            m.compute(1, if waits { 800_000 } else { 97_000 * step.get() % 800_000 });
            let (late, root) = (m.now(1) + OWN, m.now(0));
            let leaves = if waits { late } else { all };
            m.record(0, names::MPI_Bcast, 3, vec![("root", vec![0])], root, leaves + OWN);
            for me in 1..4 {
                let enter = m.now(me);
                m.record(me, names::MPI_Bcast, 3, vec![("root", vec![0])], enter, enter + OWN);
            }
            m.collective(names::MPI_Barrier, 0, 4);
        });
        let at = analysis.waits.culprits.iter().filter(|((kind, ..), _)| *kind == WaitKind::AllToAll);
        assert_eq!(at.map(|(_, sum)| sum.count).sum::<u64>(), counts, "{waits}");
    }
}

#[test]
fn who_computes_between_the_ends_of_a_large_operation_holds_up_the_others() {
    // Who asks whether it is complete is in MPI while it does.
    let large = 1 << 16;
    for (elements, tests, counts) in [(large, false, 3 * STEPS), (10, false, 0), (large, true, 0)] {
        let analysis = run(|m| {
            let words = [("count", elements), ("request", 0)].map(|(name, word)| (name, vec![word]));
            for me in 0..4 {
                let enter = m.now(me);
                m.record(me, names::MPI_Iallreduce, 1, words.to_vec(), enter, enter + OWN);
            }
            m.compute(1, 20_000_000);
            let until = m.now(1);
            for me in 0..4 {
                let enter = m.now(me);
                let mut done =
                    [("requests", 0), ("completed", 0)].map(|(name, word)| (name, vec![word])).to_vec();
                let mut call = names::MPI_Wait;
                if tests && me == 1 {
                    call = names::MPI_Test;
                    done.extend([("flag", vec![1]), ("times", vec![1])]);
                }
                m.record(me, call, 2, done, enter, until + OWN);
            }
            m.collective(names::MPI_Barrier, 0, 4);
        });
        let at = analysis.waits.culprits.iter().filter(|((kind, ..), _)| *kind == WaitKind::AllToAll);
        let found: Vec<_> = at.map(|((_, _, by), sum)| (by.rank, sum.count)).collect();
        assert_eq!(found, Vec::from_iter((counts > 0).then_some((1, counts))), "{elements} {tests}");
    }
}

#[test]
fn who_comes_late_to_a_call_on_a_file_is_waited_for_where_it_shows() {
    let program = |waits: bool| {
        run(move |m| {
            m.compute(1, 20_000_000);
            let last = m.now(1);
            for me in 0..4 {
                let now = m.now(me);
                let exit = if waits { last + 500_000 } else { now + 500_000 };
                m.record(me, names::MPI_File_write_at_all, 1, vec![("file", vec![0])], now, exit);
                m.compute(me, last + 600_000 - exit);
            }
        })
    };
    let (count, cost, who) = only(&program(true), Matter::Wait(WaitKind::AllToAll), 1);
    assert_eq!((count, who), (3 * STEPS, vec![1]));
    assert!(cost.abs_diff(3 * 20_000_000 * STEPS) < 3 * 1_000_000 * STEPS, "{cost}");
    assert_eq!(at(&program(false), Matter::Wait(WaitKind::AllToAll), 1), []);
}

#[test]
fn a_sender_waits_for_the_call_that_takes_what_a_matched_probe_has_found() {
    // Rank 0 looks for the message 5 ms before it is sent, and receives it 20 ms after.
    let found = |probe: &'static str, takes: &[&'static str]| {
        let analysis = run(|m| {
            let sent = m.now(1) + 5_000_000;
            let taken = sent + 20_000_000;
            let exit = taken + OWN;
            m.record(0, probe, 1, vec![("source", vec![1])], m.now(0) + 1, sent + OWN);
            for (i, take) in (0..).zip(takes) {
                let one = |name| (name, vec![0]);
                let mut words = vec![("n", vec![1]), ("source", vec![1]), one("tag"), ("bytes", vec![4])];
                words.extend([one("requests"), one("completed")]);
                let ends = if *take == takes[takes.len() - 1] { exit } else { taken + i };
                m.record(0, take, 2, words, taken + i, ends);
            }
            m.record(1, names::MPI_Ssend, 3, vec![("dest", vec![0])], sent, exit);
        });
        assert_eq!(analysis.waits.violations, 0);
        let at = |kind, place| only(&analysis, Matter::Wait(kind), place);
        [at(WaitKind::LateSender, 1), at(WaitKind::LateReceiver, 3)]
    };
    let plain = found(names::MPI_Probe, &[names::MPI_Recv]);
    let [_, (count, cost, ranks)] = &plain;
    assert!(
        *count == STEPS && cost.abs_diff(STEPS * 20_000_000) < STEPS * 1000 && ranks == &[0],
        "{plain:?}"
    );
    assert_eq!(found(names::MPI_Mprobe, &[names::MPI_Mrecv]), plain);
    assert_eq!(found(names::MPI_Mprobe, &[names::MPI_Imrecv, names::MPI_Waitall]), plain);
}
