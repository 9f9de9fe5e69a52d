//! Wait states of programs by chance, against a slow look at all their messages; and planted faults.

use std::collections::BTreeMap;

use crate::simulator::{Key, Machine, programs, run, site};
use proptest::prelude::*;
use st_explain::{Analysis, At, Finding, Matter, WaitKind, analyse, analyse_all};
use st_model::calls::names;
use st_model::section::Section;

/// All waits, as the machine has them.
fn found(analysis: &Analysis) -> BTreeMap<(WaitKind, u32, u32, u32), i64> {
    let mut all = BTreeMap::new();
    for ((kind, place, culprit), sum) in &analysis.waits.culprits {
        let key = (*kind, site(analysis, *place), culprit.rank, site(analysis, culprit.place));
        *all.entry(key).or_default() += i64::try_from(sum.ns).unwrap();
    }
    all
}

/// By who waits.
fn victims(analysis: &Analysis) -> BTreeMap<(WaitKind, u32, u32), i64> {
    let mut all = BTreeMap::new();
    for ((kind, at), sum) in &analysis.waits.victims {
        let key = (*kind, at.rank, site(analysis, at.place));
        *all.entry(key).or_default() += i64::try_from(sum.ns).unwrap();
    }
    all
}

fn check(sections: &[Section], waits: &BTreeMap<Key, i64>) {
    let analysis = analyse(sections, &|_| ()).unwrap();
    let mut expected = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for ((kind, victim, at, culprit, from), ns) in waits {
        *expected.0.entry((*kind, *at, *culprit, *from)).or_default() += ns;
        *expected.1.entry((*kind, *victim, *at)).or_default() += ns;
        *expected.2.entry((*victim, *culprit)).or_insert(0_i64) += ns;
    }
    assert_eq!(found(&analysis), expected.0);
    assert_eq!(victims(&analysis), expected.1);
    let pairs = analysis.waits.pairs.iter().map(|(pair, sum)| (*pair, i64::try_from(sum.ns).unwrap()));
    assert_eq!(pairs.collect::<BTreeMap<_, _>>(), expected.2);
    assert_eq!(analysis.waits.violations, 0);
    // What a rank waits is part of its time in MPI; efficiencies multiply.
    for rank in &analysis.ranks {
        assert!(rank.wait.ns <= rank.mpi, "{rank:?}");
        assert_eq!(rank.computation() + rank.mpi, rank.whole());
    }
    let e = analysis.efficiency();
    assert!(e.longest <= e.ideal && e.ideal <= e.run, "{e:?}");
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{e:?}");
    if let (Some(pe), Some(lb), Some(ce)) = (e.parallel(), e.load_balance(), e.communication()) {
        near(pe, lb * ce);
        near(ce, e.serialisation().unwrap() * e.transfer().unwrap());
    }
}

proptest! {
    #[test]
    fn waits_are_those_of_a_slow_look(program in programs()) {
        let (sections, waits, _) = run(program).finish();
        check(&sections, &waits);
        check_each(&sections);
    }
}

/// Waits, calls and messages one by one are what has been added up.
fn check_each(sections: &[Section]) {
    let all = analyse_all(sections, &|_| ()).unwrap();
    let (mut pairs, mut victims, mut culprits) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut calls = BTreeMap::new();
    for section in sections {
        for (rank, thread) in
            section.ranks.iter().flat_map(|rank| (0..section.threads.len()).map(move |i| (rank, i)))
        {
            let Some(mut events) = section.events(thread, rank).map(|events| events.timed()) else {
                continue;
            };
            while let Some(event) = events.next_event().unwrap() {
                calls.extend(
                    event.times.map(|times| ((rank, u32::try_from(thread).unwrap(), event.index), times)),
                );
            }
        }
    }
    for wait in &all.each {
        *pairs.entry((wait.rank, wait.for_rank)).or_insert(0) += wait.ns;
        let (rank, place) = (wait.rank, wait.place);
        *victims.entry((wait.kind, At { rank, place })).or_insert(0) += wait.ns;
        let (rank, place) = (wait.for_rank, wait.for_place);
        *culprits.entry((wait.kind, wait.place, At { rank, place })).or_insert(0) += wait.ns;
        let thread = all.threads().nth(wait.thread as usize).unwrap();
        assert_eq!((thread.rank(), all.lanes[wait.thread as usize].0), (wait.rank, wait.rank));
        let (rank, thread) = all.lanes[wait.thread as usize];
        // What a root waits for the last of all begins within its call.
        let (enter, exit) = calls[&(rank, thread, wait.call)];
        assert!(wait.kind == WaitKind::LateContribution || wait.enter == enter, "{wait:?}");
        assert!(enter <= wait.enter && wait.enter + i64::try_from(wait.ns).unwrap() <= exit, "{wait:?}");
    }
    assert_eq!(pairs, all.waits.pairs.iter().map(|(pair, sum)| (*pair, sum.ns)).collect::<BTreeMap<_, _>>());
    assert_eq!(victims, all.waits.victims.iter().map(|(at, sum)| (*at, sum.ns)).collect::<BTreeMap<_, _>>());
    assert_eq!(
        culprits,
        all.waits.culprits.iter().map(|(at, sum)| (*at, sum.ns)).collect::<BTreeMap<_, _>>()
    );
    let mut inside = BTreeMap::new();
    for thread in all.threads() {
        let calls: i64 = thread.calls().map(|call| call.exit - call.enter).sum();
        *inside.entry(thread.rank()).or_insert(0) += u64::try_from(calls).unwrap();
        let after = thread.calls().nth(3).map_or(0, |call| call.exit);
        assert!(thread.calls_after(after).eq(thread.calls().filter(|call| call.exit > after)));
    }
    assert_eq!(inside, all.ranks.iter().map(|rank| (rank.rank, rank.mpi)).collect::<BTreeMap<_, _>>());
    let ranks: Vec<u32> = all.threads().map(|thread| thread.rank()).collect();
    for m in &all.messages {
        assert!(m.sent <= m.received, "{m:?}");
        assert_eq!(m.threads.map(|thread| ranks[thread as usize]), [m.from, m.to]);
    }
}

/// A program of four ranks in which one thing is wrong.
fn planted(fault: impl Fn(&mut Machine)) -> (Analysis, Finding) {
    let (sections, waits, _) = crate::simulator::planted(4, fault).finish();
    check(&sections, &waits);
    let analysis = analyse(&sections, &|_| ()).unwrap();
    // Ranks that take no part have nothing to do in the end, either.
    let first = analysis.findings().into_iter().find(|f| f.matter != Matter::LateEnd).unwrap();
    (analysis, first)
}

/// The first finding is of a kind, costs so many ms, and blames a rank at a site for what is at another.
fn is(of: &(Analysis, Finding), kind: WaitKind, ms: u64, (rank, culprit, at): (u32, u32, u32)) {
    let (analysis, f) = of;
    assert_eq!(f.matter, Matter::Wait(kind), "{f:?}");
    assert!(f.cost.abs_diff(ms * 1_000_000) * 20 < ms * 1_000_000, "{} is not {ms} ms", f.cost);
    let At { rank: found, place } = f.culprits[0].0;
    assert_eq!((found, site(analysis, place), site(analysis, f.place)), (rank, culprit, at), "{f:?}");
}

const EAGER: (bool, [bool; 2]) = (false, [false; 2]);

#[test]
fn planted_faults_are_found_at_their_places() {
    let late = |m: &mut Machine, me| m.compute(me, 50_000_000);
    let sender = planted(|m| {
        late(m, 2);
        m.message((2, 1), EAGER, false, [1, 2]);
        m.message((1, 2), EAGER, false, [4, 5]);
    });
    is(&sender, WaitKind::LateSender, 1000, (2, 1, 2));
    assert_eq!(sender.1.victims, [(1, sender.1.cost)]);
    let receiver = planted(|m| {
        late(m, 3);
        m.message((0, 3), (true, [false; 2]), false, [1, 2]);
    });
    is(&receiver, WaitKind::LateReceiver, 1000, (3, 2, 1));
    for (name, kind, victims) in
        [(names::MPI_Barrier, WaitKind::Barrier, 3), (names::MPI_Allreduce, WaitKind::AllToAll, 3)]
    {
        let imbalance = planted(|m| {
            late(m, 1);
            m.collective(name, 0, 3);
        });
        is(&imbalance, kind, 50 * 20 * victims, (1, 3, 3));
        let excess = imbalance.1.excess.unwrap();
        assert_eq!((excess.at.rank, site(&imbalance.0, excess.at.place)), (1, 3));
        assert!(excess.ns.abs_diff(1_000_000_000) < 50_000_000, "{excess:?}");
    }
    let broadcast = planted(|m| {
        late(m, 2);
        m.collective(names::MPI_Bcast, 2, 3);
        m.collective(names::MPI_Barrier, 0, 4);
    });
    is(&broadcast, WaitKind::LateBroadcast, 3000, (2, 3, 3));
    let reduce = planted(|m| {
        [0, 1, 3].into_iter().for_each(|me| late(m, me));
        m.collective(names::MPI_Reduce, 2, 3);
    });
    is(&reduce, WaitKind::EarlyReduce, 1000, (0, 3, 3));
    let scan = planted(|m| {
        late(m, 0);
        m.collective(names::MPI_Scan, 0, 3);
        m.collective(names::MPI_Barrier, 0, 4);
    });
    is(&scan, WaitKind::EarlyScan, 3000, (0, 3, 3));
    let order = planted(|m| {
        m.message((1, 0), (false, [false, true]), false, [1, 2]);
        late(m, 2);
        m.message((2, 0), EAGER, false, [3, 4]);
        m.wait(0, 5, |_| true);
        m.collective(names::MPI_Barrier, 0, 6);
    });
    assert!(order.0.waits.of(WaitKind::WrongOrderOther).ns.abs_diff(1_000_000_000) < 50_000_000);
    // A message that comes just before the one that is waited for could not have been taken instead of waiting.
    let together = planted(|m| {
        late(m, 1);
        m.message((1, 0), (false, [false, true]), false, [1, 2]);
        late(m, 2);
        m.compute(2, 50_000);
        m.message((2, 0), EAGER, false, [3, 4]);
        m.wait(0, 5, |_| true);
        m.collective(names::MPI_Barrier, 0, 6);
    });
    assert_eq!(together.0.waits.of(WaitKind::WrongOrderOther).ns, 0);
    // What takes whichever message comes first asks for no order.
    let any = planted(|m| {
        m.message((1, 0), (false, [false, true]), false, [1, 2]);
        late(m, 2);
        m.message((2, 0), (false, [false, true]), false, [3, 4]);
        m.wait_any(0, 5, 1);
        m.wait(0, 6, |_| true);
        m.collective(names::MPI_Barrier, 0, 7);
    });
    assert_eq!(any.0.waits.of(WaitKind::WrongOrderOther).ns, 0);
    assert!(any.0.waits.of(WaitKind::LateSender).ns.abs_diff(1_000_000_000) < 50_000_000);
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let (sections, ..) = {
        let mut machine = Machine::new(4);
        for _ in 0..50 {
            (0..4).for_each(|me| machine.compute(me, 1_000_000));
            (0..4).for_each(|me| machine.message((me, (me + 1) % 4), (false, [true; 2]), false, [1, 2]));
            (0..4).for_each(|me| machine.wait(me, 3, |_| true));
            machine.collective(names::MPI_Allreduce, 0, 4);
        }
        machine.finish()
    };
    let analysis = analyse(&sections, &|_| ()).unwrap();
    let costly = |f: &Finding| f.cost > analysis.time() / 100;
    assert!(!analysis.findings().iter().any(costly), "{:?}", analysis.findings());
}

#[test]
fn each_message_is_kept_with_both_ends() {
    let mut machine = Machine::new(3);
    for _ in 0..7 {
        machine.compute(0, 1_000_000);
        machine.message((0, 2), EAGER, false, [1, 2]);
        machine.message((2, 1), EAGER, false, [3, 4]);
    }
    let (sections, ..) = machine.finish();
    let all = analyse_all(&sections, &|_| ()).unwrap();
    let between = |from, to| all.messages.iter().filter(|m| (m.from, m.to) == (from, to)).count();
    assert_eq!((all.messages.len(), between(0, 2), between(2, 1)), (14, 7, 7));
}
