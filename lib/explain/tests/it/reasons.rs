//! What waits and polls have as their reason is told of once, with all that it costs.

use std::collections::BTreeSet;

use crate::simulator::Machine;
use st_explain::{Analysis, Explains, Finding, Kept, Matter, analyse_causes, gathered, joined};
use st_model::calls::names;

const STEPS: u64 = 20;

fn analysed(ranks: usize, step: impl Fn(&mut Machine)) -> Analysis {
    let mut machine = Machine::new(ranks);
    (0..STEPS).for_each(|_| step(&mut machine));
    analyse_causes(&machine.finish().0, &|_| ()).unwrap()
}

/// As `st-stat why` tells it: what costs less than a hundredth of all is told of together.
fn told(of: &dyn Explains) -> Vec<Finding> {
    let least = of.time() / 100;
    let matters = |f: &Finding| f.cost > least || f.matter.is_reason();
    let (mut all, little): (Vec<_>, Vec<_>) = of.findings().into_iter().partition(matters);
    all.extend(gathered(&little, of.places()).into_iter().filter(|f| f.cost > least));
    joined(all, of)
}

#[test]
fn places_and_waits_of_a_slow_rank_count_one_by_one_where_they_are_told_of_together() {
    let analysis = analysed(4, |m| {
        for site in 10..50 {
            (0..4).for_each(|me| m.compute(me, if site == 10 { 5_000_000 } else { 1_000_000 }));
            m.compute(2, if site == 10 { 1_500_000 } else { 300_000 });
            m.collective(names::MPI_Barrier, 0, site);
        }
    });
    let all = told(&analysis);
    let [f] = &all[..] else { panic!("{all:?}") };
    assert_eq!((f.matter, f.places), (Matter::SlowRank, 40));
    // They all wait for rank 2 alone: what ranks wait there is what it costs.
    assert_eq!(f.victims.iter().map(|(_, ns)| ns).sum::<u64>(), f.cost, "{f:?}");
}

/// Rank 2 computes longer everywhere by so much, and sends the others what they then test for that long.
fn polling(slow: i64, polled: i64) -> Analysis {
    analysed(4, |m| {
        for site in 10..14 {
            for me in 0..4 {
                m.compute(me, 1_000_000 + if me == 2 { slow } else { 0 });
                let now = m.now(me);
                m.record(me, names::MPI_Comm_test_inter, site, vec![], now, now + 100);
            }
            for me in [0, 1, 3] {
                m.message((2, me), (false, [false, true]), false, [1, 2]);
                m.test(me, 3, (40, polled));
                m.wait(me, 4, |_| true);
            }
            let last = m.now(0).max(m.now(2));
            for me in 0..4 {
                let now = m.now(me);
                m.record(me, names::MPI_Comm_test_inter, 5, vec![], now, last.max(now));
            }
        }
    })
}

#[test]
fn a_slow_rank_that_others_poll_for_is_named() {
    for of_kept in [false, true] {
        let tell = |of: &Analysis| if of_kept { told(&Kept::of(&of.kept())) } else { told(of) };
        let matters = |all: &[Finding]| all.iter().map(|f| f.matter).collect::<BTreeSet<_>>();
        let analysis = polling(300_000, 300_000);
        let all = tell(&analysis);
        let f = all.iter().find(|f| f.matter == Matter::SlowRank).unwrap_or_else(|| panic!("{all:?}"));
        let who = |ranks: Vec<u32>| ranks.into_iter().collect::<BTreeSet<_>>();
        assert_eq!(who(f.culprits.iter().map(|(at, _)| at.rank).collect()), BTreeSet::from([2]));
        assert_eq!(who(f.victims.iter().map(|(rank, _)| *rank).collect()), BTreeSet::from([0, 1, 3]));
        assert_eq!((f.cost, f.together.len()), (3 * 4 * 300_000 * STEPS, 0), "a loss counts once");
        assert!(!matters(&all).contains(&Matter::Polling), "{all:?}");
        // They test for much longer than it is late: for something else.
        let all = tell(&polling(300_000, 3_000_000));
        assert!(matters(&all).contains(&Matter::Polling), "{all:?}");
        assert!(!matters(&all).contains(&Matter::SlowRank), "{all:?}");
    }
}
