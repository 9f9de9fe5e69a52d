//! Nanoseconds of folding per call: regular programs, long periods, and input without structure.
//!
//! Figures are per run of `CALLS` symbols; the counter column shows calls per second.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use st_capture::fold::{DEFAULT_WINDOW, Folder, Sym};

/// Symbols per run.
const CALLS: usize = 2_000_000;

fn main() {
    divan::main();
}

/// `n` symbols below `below` without structure.
fn noise(n: usize, below: u64) -> Vec<Sym> {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Sym::try_from((state >> 33) % below).unwrap_or(0)
    };
    (0..n).map(|_| next()).collect()
}

fn run(bencher: Bencher<'_, '_>, make: fn(usize) -> Folder, symbols: &[Sym]) {
    let fold = || {
        let mut folder = make(DEFAULT_WINDOW);
        for &sym in symbols {
            folder.push(black_box(sym));
        }
        folder
    };
    bencher.counter(ItemsCount::new(symbols.len())).bench_local(fold);
}

fn both(bencher: Bencher<'_, '_>, predicted: bool, symbols: &[Sym]) {
    run(bencher, if predicted { Folder::new } else { Folder::without_prediction }, symbols);
}

#[divan::bench(args = [true, false], sample_count = 5)]
fn loop_of_three(bencher: Bencher<'_, '_>, predicted: bool) {
    both(bencher, predicted, &[1, 2, 3].repeat(CALLS / 3));
}

#[divan::bench(args = [500, 5_000, 50_000], sample_count = 5)]
fn period(bencher: Bencher<'_, '_>, period: usize) {
    run(bencher, Folder::new, &noise(period, 64).repeat(CALLS / period));
}

#[divan::bench(args = [500, 5_000, 50_000], sample_count = 5)]
fn period_slow(bencher: Bencher<'_, '_>, period: usize) {
    run(bencher, Folder::without_prediction, &noise(period, 64).repeat(CALLS / period));
}

/// Steps with two inner loops, one inside the other, of trip counts 1 to 7.
#[divan::bench(args = [true, false], sample_count = 5)]
fn nested_varying_trips(bencher: Bencher<'_, '_>, predicted: bool) {
    let trips = noise(CALLS / 20, 7);
    let step = |&trips: &Sym| {
        let inner: Vec<Sym> = [vec![2], [3, 4].repeat(usize::try_from(1 + trips % 3).unwrap_or(1))].concat();
        [vec![1], inner.repeat(usize::try_from(1 + trips).unwrap_or(1)), vec![5, 6, 6]].concat()
    };
    let symbols: Vec<Sym> = trips.iter().flat_map(step).take(CALLS).collect();
    both(bencher, predicted, &symbols);
}

/// Trip counts 0 to 9 without structure.
#[divan::bench(args = [true, false], sample_count = 5)]
fn random_trips(bencher: Bencher<'_, '_>, predicted: bool) {
    let step =
        |&trips: &Sym| [vec![1], [2, 3, 4].repeat(usize::try_from(trips).unwrap_or(0)), vec![5]].concat();
    let symbols: Vec<Sym> = noise(CALLS / 8, 10).iter().flat_map(step).take(CALLS).collect();
    both(bencher, predicted, &symbols);
}

/// Three of eight calls in a loop are made or not by chance.
#[divan::bench(sample_count = 5)]
fn random_ifs(bencher: Bencher<'_, '_>) {
    let step = |&chance: &Sym| {
        let made = |bit: Sym, sym: Sym| if chance >> bit & 1 == 1 { vec![sym] } else { Vec::new() };
        [vec![1, 2], made(0, 3), vec![4], made(1, 5), made(2, 6), vec![7, 8]].concat()
    };
    let symbols: Vec<Sym> = noise(CALLS / 6, 8).iter().flat_map(step).take(CALLS).collect();
    run(bencher, Folder::new, &symbols);
}

/// What a call costs, and the memory, do not depend on how many there were; what no longer folds takes a few bytes.
fn long(bencher: Bencher<'_, '_>, symbols: &[Sym]) {
    let fold = || {
        let mut folder = Folder::new(DEFAULT_WINDOW);
        symbols.iter().for_each(|&sym| folder.push(black_box(sym)));
        let words = folder.heap_words();
        assert!(words < 32 * 2 * DEFAULT_WINDOW + symbols.len(), "{words} words for {} calls", symbols.len());
        folder
    };
    bencher.counter(ItemsCount::new(symbols.len())).bench_local(fold);
}

#[divan::bench(args = [1_000_000, 10_000_000], sample_count = 3)]
fn long_period(bencher: Bencher<'_, '_>, calls: usize) {
    long(bencher, &noise(500, 64).repeat(calls / 500));
}

#[divan::bench(args = [1_000_000, 10_000_000], sample_count = 3)]
fn long_random(bencher: Bencher<'_, '_>, calls: usize) {
    long(bencher, &noise(calls, 20));
}

#[divan::bench(args = [3, 20, 1_000], sample_count = 5)]
fn random(bencher: Bencher<'_, '_>, symbols: u64) {
    run(bencher, Folder::new, &noise(CALLS, symbols));
}

/// The smallest of the trees that are tried at the end, where many call sites come in passages of no order: some come again, each
/// time without a call in eight.
#[divan::bench(args = [100_000], sample_count = 3)]
fn smallest(bencher: Bencher<'_, '_>, calls: usize) {
    let (passages, left_out, which) = (noise(60 * 40, 15_000), noise(calls, 8), noise(calls, 60));
    let symbols =
        (0..calls).filter(|i| left_out[*i] > 0).map(|i| passages[which[i / 40] as usize * 40 + i % 40]);
    let mut folder = Folder::new(DEFAULT_WINDOW);
    symbols.for_each(|sym| folder.push(sym));
    let folded = folder.finish();
    bencher
        .counter(ItemsCount::new(calls))
        .with_inputs(|| folded.clone())
        .bench_local_values(|folded| folded.smallest().tree.0.items().len());
}
