//! Clocks whose drift changes, and what st-sync says of its errors, beside the truth.

use std::path::Path;

use clap::Parser;
use st_model::columns::{Comparison, Offset};
use st_sync::args::Args;
use st_sync::run_in;
use st_sync::team::Team;

use crate::cli::{load, save};
use crate::program::Program;

const RANKS: usize = 8;
const STEPS: i64 = 300;

/// Numbers that look random.
struct Chance(u64);

impl Chance {
    /// From 0 up to, but not including, `end`.
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.0 >> 33) % end.unsigned_abs()).unwrap()
    }
    fn within(&mut self, most: i64) -> i64 {
        self.below(2 * most + 1) - most
    }
    /// A message's time: mostly quick, some wait for a processor.
    fn latency(&mut self) -> i64 {
        let late = if self.below(3) == 0 { self.below(400_000) } else { self.below(700) };
        900 + late
    }
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

/// What a clock is ahead, ns, at equal distances in time.
struct Fake {
    ahead: Vec<i64>,
    every: i64,
}

impl Fake {
    /// A clock over so many ns, whose rate is off by some ns per s.
    fn new(shape: Shape, rate: i64, length: i64, chance: &mut Chance) -> Self {
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
        Self { ahead, every }
    }
    fn none() -> Self {
        Self { ahead: vec![0; 1_102], every: 1 << 40 }
    }
    fn shows(&self, t: i64) -> i64 {
        let i = usize::try_from(t / self.every).unwrap().min(self.ahead.len() - 2);
        let (a, b) = (self.ahead[i], self.ahead[i + 1]);
        t + a + (b - a) * (t % self.every) / self.every
    }
}

/// True times of all calls by rank; as recorded by fake clocks, a program.
struct Run {
    truth: Vec<Vec<i64>>,
    calls: Vec<(usize, &'static str, i64, (i64, i64))>,
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
            let arrived = (sent[left] + chance.latency()).max(now[r] + 300);
            now[r] = call(r, "MPI_Recv", i64::try_from(left).unwrap(), (now[r] + 100, arrived));
        }
        if step % sums == 0 {
            let last = now.iter().max().unwrap() + 100;
            for r in 0..RANKS {
                now[r] = call(r, "MPI_Allreduce", 0, (now[r] + 100, last + chance.latency()));
            }
        }
    }
    run.end = *now.iter().max().unwrap();
    run
}

/// Records a run by clocks that are compared at its ends, or more often.
fn recorded(run: &Run, fakes: &[Fake], comparisons: i64, chance: &mut Chance, path: &Path) {
    let nodes: Vec<usize> = (0..RANKS).collect();
    let mut p = Program::new(&nodes);
    for (r, name, peer, times) in &run.calls {
        let words = [("count", 1.into()), ("dest", (*peer).into()), ("source", (*peer).into())];
        let shows = |t| fakes[*r].shows(t);
        p.call(*r, name, &words, (shows(times.0), shows(times.1)));
    }
    let mut sections = p.sections();
    for (r, section) in sections.iter_mut().enumerate() {
        let mut point = |i: i64| {
            let t = run.begin + (run.end - run.begin) * i / (comparisons - 1);
            let error = 2_000 + chance.below(6_000);
            let local = fakes[r].shows(t);
            Offset { local, offset: t + chance.within(error * 6 / 10) - local, error }
        };
        let points = (0..comparisons).map(&mut point).collect();
        let zero = Offset { local: run.begin, offset: 0, error: 0 };
        let points = if r == 0 { vec![zero] } else { points };
        section.threads[0].columns[0].1.clock = Comparison { points, near: 0, far: 2_000 };
    }
    save(path, sections);
}

/// Stated and true largest errors of each rank but 0, whether rank 0 was moved, and what was advised.
struct Errors {
    ranks: Vec<(i64, i64)>,
    reference: u64,
    advised: bool,
}

fn corrected(run: &Run, path: &Path, method: &str) -> Errors {
    let (out, report) = (path.with_extension("out"), path.with_extension("json"));
    let words = ["st-sync", "-q", "--level", "1", "--method", method, "-o"].map(Path::new);
    let args = words.into_iter().chain([&out, Path::new("--report"), &report, path]);
    let _ = run_in(&Args::parse_from(args), &mut Team::alone()).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let found = load(&std::fs::read(out).unwrap());
    let of = |r: usize| {
        let times = found.sections[r].threads[0].columns[0].1.points();
        let off = times.zip(&run.truth[r]).map(|(a, b)| (a - b).abs()).max().unwrap();
        (report["ranks"][r]["error_ns"].as_i64().unwrap(), off)
    };
    let advised = !report["advice"].is_null();
    Errors {
        ranks: (1..RANKS).map(of).collect(),
        reference: report["rank_0_moved"].as_u64().unwrap(),
        advised,
    }
}

/// A run by clocks that differ, compared so many times: pause between calls, steps from sum to sum, rates.
fn varying(shape: Shape, setting: (i64, i64, i64), comparisons: i64, seed: u64, path: &Path) -> Run {
    let mut chance = Chance(seed);
    let (pause, sums, rate) = setting;
    let run = ring(pause, sums, &mut chance);
    let mut fakes = vec![Fake::none()];
    for _ in 1..RANKS {
        let rate = chance.within(rate);
        fakes.push(Fake::new(shape, rate, run.end, &mut chance));
    }
    recorded(&run, &fakes, comparisons, &mut chance, path);
    run
}

/// Sums often, seldom, never, very often; rates from those of computers to much worse ones.
const SETTINGS: [(i64, i64, i64); 4] =
    [(2_000_000, 5, 40_000), (20_000_000, 20, 40_000), (500_000, 1_000, 200_000), (10_000_000, 3, 5_000)];

/// Percentage of ranks of which the truth is no worse than what is stated, and the median of stated by true errors.
fn summary(errors: &[(i64, i64)]) -> (usize, i64) {
    let held = errors.iter().filter(|(stated, truth)| stated >= truth).count();
    let mut times: Vec<i64> = errors.iter().map(|(stated, truth)| 100 * stated / truth.max(&1)).collect();
    times.sort_unstable();
    (held * 100 / errors.len(), times[times.len() / 2])
}

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
    let largest = |e: &Errors| e.ranks.iter().map(|(_, truth)| *truth).max().unwrap();
    let (linear, clc) = (corrected(&run, &path, "linear"), corrected(&run, &path, "clc"));
    assert!(linear.advised && clc.advised);
    assert!(largest(&linear) > 5 * largest(&clc), "{:?} {:?}", linear.ranks, clc.ranks);
    assert_eq!(clc.reference, 0, "rank 0 is the reference");
    let run = varying(Shape::Kink, SETTINGS[1], 60, 2, &path);
    let more = corrected(&run, &path, "clc");
    assert!(!more.advised && largest(&more) < 15_000, "{:?}", more.ranks);
}
