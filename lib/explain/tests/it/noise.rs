//! Computations that are much longer now and then are told as that, and nodes whose ranks are slow; and neither where it is something else.

use crate::simulator::Machine;
use st_explain::{Analysis, Matter, Noise, analyse_causes};
use st_model::calls::names;

const STEPS: u64 = 200;

/// A number by chance, below another.
fn chance(seed: u64, below: u64) -> u64 {
    let mut x = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) % below
}

/// Eight ranks that compute 1 ms before each reduction, by chance up to a twentieth more, and so much more as is said. Before that some send
/// messages, fewer than so many.
fn program(messages: u64, more: impl Fn(u64, u64) -> u64) -> Analysis {
    let mut machine = Machine::new(8);
    for step in 0..STEPS {
        for _ in 0..chance(step + 30_000, messages) {
            (0..4).for_each(|me| machine.message((me, me + 4), (false, [false; 2]), false, [1, 2]));
        }
        for me in 0..8 {
            let rank = u64::try_from(me).unwrap();
            let ns = 1_000_000 + chance(step * 8 + rank, 50_000) + more(step, rank);
            machine.compute(me, i64::try_from(ns).unwrap());
        }
        machine.collective(names::MPI_Allreduce, 0, 7);
    }
    analyse_causes(&machine.finish().0, &|_| ()).unwrap()
}

fn noise(more: impl Fn(u64, u64) -> u64) -> Option<Noise> {
    noise_of(1, more)
}

fn noise_of(messages: u64, more: impl Fn(u64, u64) -> u64) -> Option<Noise> {
    program(messages, more).findings().iter().find_map(|f| f.noise)
}

/// In so many of a hundred steps, by chance, one rank by chance is longer.
fn hit(of_hundred: u64) -> impl Fn(u64, u64) -> bool {
    move |step, rank| chance(step + 10_000, 100) < of_hundred && chance(step + 20_000, 8) == rank
}

#[test]
fn few_computations_by_chance_are_noise() {
    let hit = hit(5);
    let times =
        (0..STEPS).flat_map(|step| (0..8).map(move |rank| (step, rank))).filter(|(s, r)| hit(*s, *r)).count();
    let found = noise(|step, rank| if hit(step, rank) { 10_000_000 } else { 0 }).unwrap();
    assert_eq!((found.times, found.of), (u64::try_from(times).unwrap(), STEPS));
    assert!(found.ranks > 2 && found.ns.abs_diff(10_000_000) < 100_000, "{found:?}");
}

#[test]
fn what_is_no_chance_or_always_so_is_no_noise() {
    assert_eq!(noise(|_, _| 0), None, "even");
    assert_eq!(noise(|step, rank| if step % 8 == rank { 10_000_000 } else { 0 }), None, "always, in turn");
    let often = hit(60);
    assert_eq!(noise(|step, rank| if often(step, rank) { 10_000_000 } else { 0 }), None, "often");
    let rare = hit(5);
    assert_eq!(noise(|step, rank| if rare(step, rank) { 900_000 } else { 0 }), None, "not much longer");
    let one = |step, rank| chance(step + 10_000, 100) < 5 && rank == 3;
    assert_eq!(noise(|step, rank| if one(step, rank) { 10_000_000 } else { 0 }), None, "one rank alone");
    let every = |step: u64, rank| step.is_multiple_of(20) && (step / 20) % 8 == rank;
    assert_eq!(
        noise(|step, rank| if every(step, rank) { 10_000_000 } else { 0 }),
        None,
        "every so many steps"
    );
    assert_eq!(
        noise_of(8, |step, rank| if every(step, rank) { 10_000_000 } else { 0 }),
        None,
        "every so many steps, of which each makes another number of calls"
    );
    let all = |step| chance(step + 10_000, 100) < 5;
    let uneven = |step, rank| 10_000_000 + chance(step * 8 + rank + 70_000, 2_000_000);
    assert_eq!(
        noise(|step, rank| if all(step) { uneven(step, rank) } else { 0 }),
        None,
        "all ranks are longer"
    );
}

/// Ranks that are slow, of four on each of two hosts, and of how many it is said together.
fn slow(percent: impl Fn(u32, u32) -> i64) -> Vec<Vec<u32>> {
    let mut machine = Machine::new(8);
    for _ in 0..20 {
        for site in 10..14 {
            (0..8).for_each(|me| {
                let more = percent(u32::try_from(me).unwrap(), site);
                machine.compute(me, 10_000 * (100 + more));
            });
            machine.collective(names::MPI_Barrier, 0, site);
        }
    }
    let sections = machine.finish_on(|rank| if rank < 4 { "a" } else { "b" }).0;
    let found = analyse_causes(&sections, &|_| ()).unwrap().findings();
    let slow = found.into_iter().filter(|f| f.matter == Matter::SlowRank);
    slow.map(|f| f.culprits.iter().map(|(at, _)| at.rank).collect()).collect()
}

#[test]
fn a_node_is_slow_if_all_of_its_ranks_are() {
    let none: [Vec<u32>; 0] = [];
    let on_b = |rank: u32| i64::from(rank > 3);
    // Beside the others one of its ranks is slower by less than a tenth: three of these are on the same node.
    assert_eq!(slow(|rank, _| 15 * on_b(rank)), [[4, 5, 6, 7]]);
    assert_eq!(slow(|rank, _| (10 + 5 * i64::from(rank)) * on_b(rank)), [[4, 5, 6, 7]]);
    assert_eq!(slow(|_, _| 0), none);
    assert_eq!(slow(|rank, _| 8 * on_b(rank)), none);
    assert_eq!(slow(|rank, site| if site == 11 { 40 * on_b(rank) } else { 0 }), none);
    // One of its ranks alone is.
    assert_eq!(slow(|rank, _| if rank == 5 { 60 } else { 0 }), [[5]]);
}
