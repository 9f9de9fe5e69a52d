//! Clocks whose drift changes, and what st-sync says of its errors, beside the truth.

use std::path::Path;

use st_model::columns::Offset;

use crate::clocks::{self, Call, Chance, Errors, Fake, points, record};
use crate::stated::summary;

const RANKS: usize = 8;
const STEPS: i64 = 300;

/// A message's time: mostly quick, some wait for a processor.
fn latency(chance: &mut Chance) -> i64 {
    let late = if chance.below(3) == 0 { chance.below(400_000) } else { chance.below(700) };
    900 + late
}

/// How a clock's rate goes.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Constant,
    Kink,
    Wave,
    Steps,
    Slope,
}

const SHAPES: [Shape; 5] = [Shape::Constant, Shape::Kink, Shape::Wave, Shape::Steps, Shape::Slope];

/// A clock over so many ns, whose rate is off by some ns per s.
fn fake(shape: Shape, rate: i64, length: i64, chance: &mut Chance) -> Fake {
    let n: i64 = 1_000;
    let every = length / n + 1;
    let mut ahead = vec![chance.within(5_000_000)];
    let (kink, mut now) = (200 + chance.below(600), rate);
    for i in 0..n + 100 {
        let off = match shape {
            Shape::Constant => rate,
            Shape::Kink => {
                if i < kink {
                    rate
                } else {
                    -rate
                }
            }
            Shape::Wave => rate * (250 - (i % 500 - 250).abs() - 125) / 125,
            Shape::Steps => {
                if i % 100 == 0 {
                    now = chance.within(rate);
                }
                now
            }
            Shape::Slope => rate * (500 - i) / 500,
        };
        ahead.push(ahead.last().unwrap() + off * every / 1_000_000_000);
    }
    Fake { ahead, every }
}

/// True times of all calls by rank; as recorded by fake clocks, a program.
struct Run {
    truth: Vec<Vec<i64>>,
    calls: Vec<Call>,
    /// When messages begin and end.
    begin: i64,
    end: i64,
}

/// A ring with a sum every so often, and nothing of either for a tenth of the time before.
fn ring(pause: i64, sums: i64, chance: &mut Chance) -> Run {
    let begin = STEPS / 10 * pause;
    let mut now = [begin; RANKS];
    let mut run = Run { truth: vec![Vec::new(); RANKS], calls: Vec::new(), begin, end: 0 };
    let mut call = |r: usize, name, peer, times: (i64, i64)| {
        run.truth[r].extend([times.0, times.1]);
        run.calls.push((r, name, peer, times));
        times.1
    };
    for (r, now) in now.iter().enumerate() {
        call(r, "MPI_Init", 0, (20_000, *now));
    }
    for step in 0..STEPS {
        let sent: Vec<i64> = now.iter().map(|t| t + pause + chance.below(pause / 4)).collect();
        for r in 0..RANKS {
            let right = i64::try_from((r + 1) % RANKS).unwrap();
            now[r] = call(r, "MPI_Send", right, (sent[r], sent[r] + 500));
        }
        for r in 0..RANKS {
            let left = (r + RANKS - 1) % RANKS;
            let arrived = (sent[left] + latency(chance)).max(now[r] + 300);
            now[r] = call(r, "MPI_Recv", i64::try_from(left).unwrap(), (now[r] + 100, arrived));
        }
        if step % sums == 0 {
            let last = now.iter().max().unwrap() + 100;
            for r in 0..RANKS {
                now[r] = call(r, "MPI_Allreduce", 0, (now[r] + 100, last + latency(chance)));
            }
        }
    }
    run.end = *now.iter().max().unwrap();
    run
}

/// Errors of each rank but 0, whether rank 0 was moved, and what was advised.
struct Found {
    ranks: Vec<Errors>,
    reference: u64,
    advised: bool,
}

fn corrected(run: &Run, path: &Path, method: &str) -> Found {
    let (ranks, report) = clocks::corrected(&run.truth, method, path);
    let reference = report["rank_0_moved"].as_u64().unwrap();
    Found { ranks, reference, advised: !report["advice"].is_null() }
}

/// A run by clocks that differ, compared so many times: pause between calls, steps from sum to sum, rates.
fn varying(shape: Shape, setting: (i64, i64, i64), comparisons: i64, seed: u64, path: &Path) -> Run {
    let mut chance = Chance(seed);
    let (pause, sums, rate) = setting;
    let run = ring(pause, sums, &mut chance);
    let mut fakes = vec![Fake::none(run.end)];
    for _ in 1..RANKS {
        let rate = chance.within(rate);
        fakes.push(fake(shape, rate, run.end, &mut chance));
    }
    let compared = |r: usize| {
        let error = |chance: &mut Chance| 2_000 + chance.below(6_000);
        let points = points((run.begin, run.end), (comparisons, &fakes[r]), &mut chance, error);
        if r == 0 { vec![Offset { local: run.begin, offset: 0, error: 0 }] } else { points }
    };
    record(&run.calls, &fakes, compared, path);
    run
}

/// Sums often, seldom, never, very often; rates from those of computers to much worse ones.
const SETTINGS: [(i64, i64, i64); 4] =
    [(2_000_000, 5, 40_000), (20_000_000, 20, 40_000), (500_000, 1_000, 200_000), (10_000_000, 3, 5_000)];

#[test]
fn errors_are_stated_whatever_clocks_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.st");
    for method in ["linear", "clc"] {
        let mut all = Vec::new();
        for shape in SHAPES {
            let mut of_shape = Vec::new();
            for (seed, setting) in (1..).zip(SETTINGS) {
                let run = varying(shape, setting, 2, seed, &path);
                let found = corrected(&run, &path, method);
                if let (Shape::Constant, "clc") = (shape, method) {
                    assert_eq!((found.reference, found.advised), (0, false), "{setting:?}");
                }
                of_shape.extend(found.ranks);
            }
            let (held, times) = summary(&of_shape);
            assert!(held >= 85 && times <= 500, "{shape:?} {method}: {held} %, {times} %: {of_shape:?}");
            all.extend(of_shape);
        }
        let (held, times) = summary(&all);
        assert!(held >= 95 && times <= 500, "{method}: {held} %, {times} %");
    }
}

#[test]
fn what_two_comparisons_cannot_follow_is_followed_by_messages_or_by_more() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.st");
    let run = varying(Shape::Kink, SETTINGS[1], 2, 2, &path);
    let largest = |e: &Found| e.ranks.iter().map(|(_, truth)| *truth).max().unwrap();
    let (linear, clc) = (corrected(&run, &path, "linear"), corrected(&run, &path, "clc"));
    assert!(linear.advised && clc.advised);
    assert!(largest(&linear) > 5 * largest(&clc), "{:?} {:?}", linear.ranks, clc.ranks);
    assert_eq!(clc.reference, 0, "rank 0 is the reference");
    let run = varying(Shape::Kink, SETTINGS[1], 60, 2, &path);
    let more = corrected(&run, &path, "clc");
    assert!(!more.advised && largest(&more) < 15_000, "{:?}", more.ranks);
}
