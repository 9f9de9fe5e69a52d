//! What a merged trace keeps of ranks' totals: each rank's computation and time in MPI to 1 %, and in which events ranks differ.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use st_kernels::{Kernel, Options, paper};
use st_model::calls::{CallId, CallTable, names};
use st_model::ints::Sealed;
use st_model::num::{float, rounded};
use st_model::section::{NO_SYM, PathSketch, RankSums, Section};
use st_model::sketch::{Sketch, bucket, representative};
use st_model::unite::Times;
use st_reduce::rank_sums::{EACH, keep_rank_sums};

/// Events of a rank: calls, their mean duration in ns, how much one differs from the other, and by what ranks take longer.
struct Event {
    calls: u32,
    mean: f64,
    noise: f64,
    longer: fn(u32) -> f64,
}

fn call(name: &str) -> CallId {
    CallTable::builtin().by_name(name).unwrap().id
}

fn even(_: u32) -> f64 {
    1.0
}

fn section(ranks: u32, events: &[Event], seed: u64) -> Section {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut times = Times::default();
    for rank in 0..ranks {
        let of_event = |(sym, event): (usize, &Event)| {
            let mut duration = || {
                let by = 1.0 + event.noise * (random.random::<f64>() - 0.5) * 2.0;
                rounded(event.mean * by * (event.longer)(rank))
            };
            let (mut compute, mut comm) = (Sketch::default(), Sketch::default());
            for _ in 0..event.calls {
                compute.add(duration(), rank);
                comm.add(duration() / 4, rank);
            }
            PathSketch { sym: u32::try_from(sym).unwrap(), pred: NO_SYM, compute, comm }
        };
        let sketches: Vec<_> = events.iter().enumerate().map(of_event).collect();
        times.add_rank(rank, &sketches, |s| s);
    }
    let mut section = paper::sections(Kernel::Halo, &Options::default(), 2).next().unwrap().unwrap();
    section.ranks = (0..ranks).collect();
    // All of them count as a rank's time.
    section.symbols.iter_mut().for_each(|s| s.call = call(names::MPI_Barrier));
    let thread = &mut section.threads[0];
    thread.ranks = section.ranks.clone();
    (thread.sketches, thread.sums) = times.finish(|s| s, &section.ranks);
    section
}

fn values(of: &Sealed, ranks: u32) -> Vec<u64> {
    let mut cursor = of.cursor();
    (0..ranks).map(|_| representative(cursor.next().try_into().unwrap())).collect()
}

fn per_rank(section: &Section, ranks: u32, of: fn(&RankSums) -> &Sealed) -> Vec<f64> {
    let mut all = vec![0.0; ranks.try_into().unwrap()];
    for sums in &section.threads[0].sums {
        values(of(sums), ranks).iter().zip(&mut all).for_each(|(n, all)| *all += float((*n).into()));
    }
    all
}

fn different(of: &Sealed, ranks: u32) -> usize {
    let mut all = values(of, ranks);
    all.sort_unstable();
    all.dedup();
    all.len()
}

const HALVES: [fn(&RankSums) -> &Sealed; 2] = [|s| &s.compute, |s| &s.comm];

/// Of one rank, and of every third.
fn slow_at_7(rank: u32) -> f64 {
    if rank == 7 { 1.5 } else { 1.0 }
}
fn every_third(rank: u32) -> f64 {
    if rank.is_multiple_of(3) { 2.0 } else { 1.0 }
}

proptest! {
    #[test]
    fn totals_of_ranks_stay(
        ranks in 2u32..40,
        shape in proptest::collection::vec((1u32..50, 10u32..1_000_000, 0.0f64..1.0, 0usize..3), 1..12),
        seed: u64,
    ) {
        let longer: [fn(u32) -> f64; 3] = [even, slow_at_7, every_third];
        let events: Vec<Event> = shape
            .iter()
            .map(|(calls, mean, noise, which)| Event {
                calls: *calls, mean: f64::from(*mean), noise: *noise, longer: longer[*which],
            })
            .collect();
        let whole = section(ranks, &events, seed);
        let mut kept = whole.clone();
        keep_rank_sums(&mut kept);
        let run: Vec<f64> = {
            let [a, b] = HALVES.map(|of| per_rank(&whole, ranks, of));
            a.iter().zip(b).map(|(a, b)| a + b).collect()
        };
        for of in HALVES {
            let (was, is) = (per_rank(&whole, ranks, of), per_rank(&kept, ranks, of));
            for ((was, is), run) in was.iter().zip(is).zip(&run) {
                prop_assert!((was - is).abs() <= (0.005 * was).max(0.0001 * run) + 1.0, "{was} {is} {run}");
            }
        }
        // Sketches, which have the exact sums, are as they were; once more changes little.
        prop_assert_eq!(&kept.threads[0].sketches, &whole.threads[0].sketches);
        prop_assert_eq!(kept.threads[0].sums.len(), whole.threads[0].sums.len());
    }
}

#[test]
fn ranks_that_differ_by_chance_are_alike_and_those_that_do_not_are_not() {
    let event = |longer, mean| Event { calls: 100, mean, noise: 0.5, longer };
    // Most of the time passes in what is even.
    let even_event = || event(even, 1e6);
    let events = [even_event(), event(slow_at_7, 1e4), event(every_third, 1e5), event(even, 1e4)];
    let whole = section(64, &events, 1);
    let mut kept = whole.clone();
    assert!(keep_rank_sums(&mut kept));
    let sums = &kept.threads[0].sums;
    // Chance alone, in what is too small to change a rank's total: all ranks are alike.
    assert_eq!(different(&sums[3].compute, 64), 1);
    assert!(different(&whole.threads[0].sums[3].compute, 64) > 5);
    // One rank that is slow: it keeps what it takes, to 1 %, and the others are alike.
    let (was, is) = (values(&whole.threads[0].sums[1].compute, 64), values(&sums[1].compute, 64));
    assert_eq!(was[7], is[7]);
    assert_eq!(different(&sums[1].compute, 64), 2);
    // Those that take twice as long are told apart.
    let thirds = values(&sums[2].compute, 64);
    assert!((0..64).all(|r| (thirds[r] > 15_000_000) == r.is_multiple_of(3)), "{thirds:?}");
}

#[test]
fn what_is_no_part_of_the_run_makes_room_for_nothing() {
    let event = |mean, longer| Event { calls: 50, mean, noise: 0.4, longer };
    let mut whole = section(16, &[event(1e9, even), event(1e5, even)], 4);
    whole.symbols[0].call = call(names::MPI_Init);
    let mut kept = whole.clone();
    keep_rank_sums(&mut kept);
    let (was, is) = (&whole.threads[0].sums[1], &kept.threads[0].sums[1]);
    for (was, is) in values(&was.comm, 16).iter().zip(values(&is.comm, 16)) {
        assert!(was.abs_diff(is) * 200 <= *was, "{was} {is}");
    }
}

#[test]
fn who_has_no_such_event_takes_no_time_for_it() {
    let some = |rank: u32| if rank.is_multiple_of(2) { 1.0 } else { 0.0 };
    let whole = section(32, &[Event { calls: 30, mean: 1e5, noise: 0.3, longer: some }], 2);
    let mut kept = whole.clone();
    keep_rank_sums(&mut kept);
    let is = values(&kept.threads[0].sums[0].compute, 32);
    assert!((0..32).all(|r| (is[r] == 0) == (r % 2 == 1)), "{is:?}");
}

#[test]
fn many_ranks_take_no_more_room_than_what_was_planted() {
    let slow = |rank: u32| if rank == 4_321 { 3.0 } else { 1.0 };
    // The second half is slower: what a run of ranks has in common is seen.
    let half = |rank: u32| if rank > 3_000 { 1.2 } else { 1.0 };
    let ranks = u32::try_from(EACH).unwrap() + 2_000;
    let events = [
        Event { calls: 4, mean: 1e6, noise: 0.5, longer: even },
        Event { calls: 4, mean: 1e6, noise: 0.1, longer: slow },
        Event { calls: 4, mean: 1e6, noise: 0.1, longer: half },
    ];
    let whole = section(ranks, &events, 3);
    let mut kept = whole.clone();
    assert!(keep_rank_sums(&mut kept));
    let sums = &kept.threads[0].sums;
    let was = |event: usize| values(&whole.threads[0].sums[event].compute, ranks);
    // The mean, and 32 extremes.
    let unlike = |event: usize| {
        let (was, is) = (was(event), values(&sums[event].compute, ranks));
        let mean = is[0].min(is[100]).min(is[200]);
        (is.iter().filter(|n| **n != mean).count(), was.iter().zip(is).filter(|(was, is)| *was != is).count())
    };
    assert!(unlike(0).0 <= 32 && unlike(0).1 > 3_000, "{:?}", unlike(0));
    let one = values(&sums[1].compute, ranks);
    assert_eq!(one[4_321], was(1)[4_321]);
    assert!(unlike(1).0 <= 32, "{:?}", unlike(1));
    let two = values(&sums[2].compute, ranks);
    assert!(different(&sums[2].compute, ranks) <= 64 + 32);
    for (at, kept) in was(2).iter().zip(&two) {
        assert!(at.abs_diff(*kept) * 3 < *at, "{at} {kept}");
    }
    assert!(two[100] * 11 < two[5_000] * 10);
    let mean = bucket(1_000_000 * 4);
    assert!(bucket(values(&sums[0].compute, ranks)[0]).abs_diff(mean) <= 1);
}
