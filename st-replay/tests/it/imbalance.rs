//! Imbalance that varies from step to step comes back from merged traces without exact times.

use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::ints::Sealed;
use st_model::objects::Comm;
use st_model::ranklist::RankList;
use st_model::ranks::RankSeq;
use st_model::section::{NO_SYM, PathSketch, RankSums, Section, Sym};
use st_model::sketch::{LiveSketch, Shape, bucket};
use st_model::slow::{How, Slow, Steps};
use st_model::unknown_order::is_unknown;
use st_replay::pace::Pace;

const RANKS: u32 = 4;
const STEPS: u64 = 120;
/// What the operation takes by itself, ns.
const NETWORK: u64 = 20_000;

/// The merged section of ranks that compute as long as `takes` says in each step, and wait for all; and how long all steps take.
fn merged(shape: Shape, number: u64, takes: impl Fn(u32, u64) -> u64) -> (Section, u64) {
    let mut recorder = RankRecorder::new(0, Options::default());
    let members = RankSeq::first(RANKS);
    let kind = "MPI_COMM_WORLD".into();
    recorder.objects.comms.predefined(Comm { kind, parent: 0, members, remote: RankSeq::default() });
    let thread = recorder.open_thread(0);
    let site = recorder.sites.label("line 1");
    let mut symbol = |name: &str| recorder.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
    let (init, all) = (symbol("MPI_Init"), symbol("MPI_Barrier"));
    recorder.record(thread, init, &[], 0, 0);
    (0..number).for_each(|_| drop(recorder.record(thread, all, &[0], 0, 0)));
    let mut section = recorder.finish("host");
    let ranks = RankList::first(RANKS);
    // What rank 0 does, all do.
    section.ranks = ranks.clone();
    section.partitions.iter_mut().flat_map(|p| &mut p.classes).for_each(|class| *class = ranks.clone());
    section.tables.comms.iter_mut().flat_map(|c| &mut c.of).for_each(|of| of.0 = ranks.clone());

    let slowest = |step: u64| (0..RANKS).map(|rank| takes(rank, step)).max().unwrap();
    let steps: Vec<u64> = (0..number).collect();
    let sketch = |steps: &[u64], of: &dyn Fn(u32, u64) -> u64| {
        let mut all = st_model::sketch::Sketch::default();
        for rank in 0..RANKS {
            let mut live = LiveSketch::new(shape);
            steps.iter().for_each(|step| live.add(of(rank, *step)));
            all.merge(&live.finish(rank));
        }
        all
    };
    let waits = |rank: u32, step: u64| slowest(step) - takes(rank, step) + NETWORK;
    let pair = |sym: Sym, pred: Sym, steps: &[u64]| PathSketch {
        sym,
        pred,
        compute: sketch(steps, &takes),
        comm: sketch(steps, &waits),
    };
    let sums = |of: &dyn Fn(u32, u64) -> u64| -> Sealed {
        let total = |rank: u32| steps.iter().map(|step| of(rank, *step)).sum();
        (0..RANKS).map(|rank| i64::from(bucket(total(rank)))).collect::<Vec<_>>().into()
    };
    let t = &mut section.threads[0];
    t.ranks = ranks;
    t.columns = Vec::new();
    t.sketches = vec![
        PathSketch { sym: init, pred: NO_SYM, compute: sketch(&[], &takes), comm: sketch(&[], &takes) },
        pair(all, init, &steps[..1]),
        pair(all, all, &steps[1..]),
    ];
    t.sums = vec![RankSums { sym: all, compute: sums(&takes), comm: sums(&waits) }];
    (section, steps.iter().map(|step| slowest(*step)).sum())
}

/// How far a replay's total is off, thousandths: each step takes what the slowest rank does.
fn error(shape: Shape, number: u64, takes: impl Fn(u32, u64) -> u64) -> u64 {
    let (section, total) = merged(shape, number, takes);
    let mut paces: Vec<Pace<'_>> = (0..RANKS).map(|rank| Pace::new(&section, 0, rank).unwrap()).collect();
    let mut step = |sym: Sym| paces.iter_mut().map(|pace| pace.step(sym).gap).max().unwrap();
    step(0);
    let replayed: u64 = (0..number).map(|_| step(1)).sum();
    1000 * replayed.abs_diff(total) / total
}

/// Chance, the same each time.
fn chance(rank: u32, step: u64, of: u64) -> u64 {
    let mut x = (step * 64 + u64::from(rank) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (x ^ (x >> 31)) % of
}

const MS: u64 = 1_000_000;

#[test]
fn ranks_that_were_slow_by_chance_together_or_in_turns_are_so_again() {
    let jitter = |rank, step| chance(rank, step + 1000, MS / 10);
    let slow = |yes: bool| if yes { 200 * MS } else { 10 * MS };
    for shape in [Shape::Buckets, Shape::BINS, Shape::Totals] {
        let alone = error(shape, STEPS, |r, s| slow(chance(r, s, 8) == 0) + jitter(r, s));
        let together = error(shape, STEPS, |r, s| slow(chance(0, s, 8) == 0) + jitter(r, s));
        let moving = error(shape, STEPS, |r, s| slow(s % u64::from(RANKS) == u64::from(r)) + jitter(r, s));
        let even = error(shape, STEPS, |r, s| 10 * MS + jitter(r, s));
        let one = error(shape, STEPS, |r, s| slow(r == 2) + jitter(r, s));
        let found = [alone, together, moving, even, one];
        assert!(found.iter().all(|error| *error < 20), "{shape:?}: {found:?}");
    }
}

#[test]
fn ranks_agree_on_how_they_were_slow_also_in_few_steps() {
    let slow = |yes: bool| if yes { 60 * MS } else { 3 * MS };
    let found = |number: u64, seed: u64| {
        error(Shape::Buckets, number, |r, s| {
            slow(chance(r, s + 1000 * seed, 8) == 0) + chance(r, s + 5000, MS / 10)
        })
    };
    for number in [40, 60, 90] {
        let errors: Vec<u64> = (0..12).map(|seed| found(number, seed)).collect();
        assert!(errors.iter().all(|error| *error < 20), "{number} steps: {errors:?}");
    }
}

#[test]
fn where_no_rank_waits_for_all_it_is_not_known_how_they_were_slow() {
    let slow = |r: u32, s: u64| if chance(r, s, 8) == 0 { 200 * MS } else { 10 * MS };
    let (mut section, _) = merged(Shape::Buckets, STEPS, slow);
    assert!(!is_unknown(&section), "they wait in a barrier");
    let call = CallTable::builtin().by_name("MPI_Sendrecv").unwrap().id;
    section.symbols[1].call = call;
    assert!(is_unknown(&section));
    let (mut even, _) = merged(Shape::Buckets, STEPS, |_, _| 10 * MS);
    even.symbols[1].call = call;
    assert!(!is_unknown(&even), "all steps are alike");
}

/// Another call in the place of the barrier: one with the same parameters, in which nobody waits for all.
fn nobody_waits(section: &mut Section) {
    section.symbols[1].call = CallTable::builtin().by_name("MPI_Comm_free").unwrap().id;
}

/// How long a ring takes in which each rank waits for its neighbours: `(last step, this step's)` of all ranks.
fn ring(takes: impl Fn(usize, u64) -> u64, number: u64) -> u64 {
    let ranks = usize::try_from(RANKS).unwrap();
    let mut done = vec![0_u64; ranks];
    for step in 0..number {
        let came: Vec<u64> = (0..ranks).map(|rank| done[rank] + takes(rank, step)).collect();
        done = (0..ranks)
            .map(|rank| came[rank].max(came[(rank + 1) % ranks]).max(came[(rank + ranks - 1) % ranks]))
            .collect();
    }
    done.into_iter().max().unwrap()
}

#[test]
fn ranks_that_wait_for_neighbours_only_are_slow_in_the_order_that_is_kept() {
    let takes = |r: u32, s: u64| {
        let slow = s % u64::from(RANKS) == u64::from(r);
        if slow { 60 * MS } else { 6 * MS + chance(r, s, MS / 10) }
    };
    for shape in [Shape::Buckets, Shape::BINS, Shape::Totals] {
        let (mut section, _) = merged(shape, STEPS, takes);
        nobody_waits(&mut section);
        let recorded = ring(|rank, step| takes(u32::try_from(rank).unwrap(), step), STEPS);
        let replayed = |section: &Section| {
            let pace = |rank: u32| Pace::new(section, 0, rank).unwrap();
            let mut paces: Vec<_> = (0..RANKS).map(pace).collect();
            paces.iter_mut().for_each(|pace| _ = pace.step(0));
            let gaps: Vec<Vec<u64>> =
                paces.iter_mut().map(|pace| (0..STEPS).map(|_| pace.step(1).gap).collect()).collect();
            ring(|rank, step| gaps[rank][usize::try_from(step).unwrap()], STEPS)
        };
        // By chance: too fast.
        assert!(is_unknown(&section) && replayed(&section) * 10 < recorded * 9, "{shape:?}");
        let classes: Vec<Vec<u8>> =
            (0..4).map(|rank| (0..4).map(|step| u8::from(rank == step)).collect()).collect();
        let steps = Steps::new(vec![20 * MS], &classes);
        section.threads[0].slow = vec![Slow { sym: 1, how: How::Steps(steps) }];
        let error = 1000 * replayed(&section).abs_diff(recorded) / recorded;
        assert!(!is_unknown(&section) && error < 20, "{shape:?}: {error}");
    }
}

#[test]
fn ranks_are_slow_together_as_often_as_is_kept() {
    let takes = |r: u32, s: u64| if chance(0, s, 8) == 0 { 60 * MS } else { 6 * MS + chance(r, s, MS / 10) };
    let (mut section, total) = merged(Shape::Buckets, STEPS, takes);
    nobody_waits(&mut section);
    section.threads[0].slow = vec![Slow { sym: 1, how: How::Chance(64) }];
    let mut paces: Vec<_> = (0..RANKS).map(|rank| Pace::new(&section, 0, rank).unwrap()).collect();
    paces.iter_mut().for_each(|pace| _ = pace.step(0));
    let mut step = || paces.iter_mut().map(|pace| pace.step(1).gap).max().unwrap();
    let replayed: u64 = (0..STEPS).map(|_| step()).sum();
    assert!(1000 * replayed.abs_diff(total) / total < 20, "{replayed} {total}");
}
