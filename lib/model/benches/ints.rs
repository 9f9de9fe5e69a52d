//! Nanoseconds per value appended to an integer stream, and per value read.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use st_model::ints::Ints;

/// Values per run.
const VALUES: usize = 1_000_000;

fn main() {
    divan::main();
}

fn noise(n: usize, below: u64) -> Vec<i64> {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((state >> 33) % below).unwrap_or(0)
    };
    (0..n).map(|_| next()).collect()
}

fn push_all(bencher: Bencher<'_, '_>, values: &[i64]) {
    let push = || {
        let mut ints = Ints::new();
        for &value in values {
            ints.push(black_box(value));
        }
        ints
    };
    bencher.counter(ItemsCount::new(values.len())).bench_local(push);
}

#[divan::bench]
fn constant(bencher: Bencher<'_, '_>) {
    push_all(bencher, &vec![5; VALUES]);
}

#[divan::bench]
fn counter(bencher: Bencher<'_, '_>) {
    push_all(bencher, &(0..1_000_000).collect::<Vec<_>>());
}

#[divan::bench(args = [7, 500, 5_000, 50_000])]
fn period(bencher: Bencher<'_, '_>, period: usize) {
    push_all(bencher, &noise(period, 64).repeat(VALUES / period));
}

#[divan::bench]
fn period_of_counters(bencher: Bencher<'_, '_>) {
    push_all(bencher, &(0..1_000_000).map(|i| i % 1_000).collect::<Vec<_>>());
}

/// A period of 500 in which one value in a hundred is another one.
#[divan::bench]
fn period_with_noise(bencher: Bencher<'_, '_>) {
    let mut values = noise(500, 64).repeat(VALUES / 500);
    for (value, chance) in values.iter_mut().zip(noise(VALUES, 100)) {
        if chance == 0 {
            *value = 99;
        }
    }
    push_all(bencher, &values);
}

#[divan::bench(args = [2, 64, 1 << 30])]
fn random(bencher: Bencher<'_, '_>, below: u64) {
    push_all(bencher, &noise(VALUES, below));
}

#[divan::bench(args = [1, 500, 1_000_000])]
fn read_period(bencher: Bencher<'_, '_>, period: usize) {
    let sealed = Ints::from(noise(period, 64).repeat(VALUES / period)).seal();
    let read = || {
        let mut cursor = sealed.cursor();
        (0..VALUES).fold(0_i64, |sum, _| sum.wrapping_add(cursor.next()))
    };
    bencher.counter(ItemsCount::new(VALUES)).bench_local(read);
}
