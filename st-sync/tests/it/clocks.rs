//! Clocks that are not right, recordings by them, and how far off they are when they have been corrected.

use std::path::Path;

use clap::Parser;
use st_model::columns::{Comparison, Offset};
use st_sync::args::Args;
use st_sync::run_in;
use st_sync::team::Team;

use crate::cli::{load, save};
use crate::program::Program;

/// Numbers that look random.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// From 0 up to, but not including, `end`.
    pub(crate) fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.0 >> 33) % end.unsigned_abs()).unwrap()
    }
    pub(crate) fn within(&mut self, most: i64) -> i64 {
        self.below(2 * most + 1) - most
    }
}

/// What a clock is ahead, ns, at equal distances in time.
pub(crate) struct Fake {
    pub(crate) ahead: Vec<i64>,
    pub(crate) every: i64,
}

impl Fake {
    /// A clock that is right, over so many ns.
    pub(crate) fn none(length: i64) -> Self {
        Self { ahead: vec![0; 2], every: length + 1 }
    }
    pub(crate) fn shows(&self, t: i64) -> i64 {
        let i = usize::try_from(t / self.every).unwrap().min(self.ahead.len() - 2);
        let (a, b) = (self.ahead[i], self.ahead[i + 1]);
        t + a + (b - a) * (t - i64::try_from(i).unwrap() * self.every) / self.every
    }
}

/// A call: rank, function, the other rank, true times of enter and exit.
pub(crate) type Call = (usize, &'static str, i64, (i64, i64));

/// Records calls by a clock for each rank, each on a node of its own, and how these were compared.
pub(crate) fn record(
    calls: &[Call],
    fakes: &[Fake],
    mut compared: impl FnMut(usize) -> Vec<Offset>,
    path: &Path,
) {
    let nodes: Vec<usize> = (0..fakes.len()).collect();
    let mut p = Program::new(&nodes);
    for (r, name, peer, times) in calls {
        let words = [("count", 1.into()), ("dest", (*peer).into()), ("source", (*peer).into())];
        let shows = |t| fakes[*r].shows(t);
        p.call(*r, name, &words, (shows(times.0), shows(times.1)));
    }
    let mut sections = p.sections();
    for (r, section) in sections.iter_mut().enumerate() {
        let clock = Comparison { points: compared(r), near: 0, far: 2_000 };
        section.threads[0].columns[0].1.clock = clock;
    }
    save(path, sections);
}

/// So many comparisons of a rank's clock at equal distances in time, up to `error` of the rank off.
pub(crate) fn points(
    (begin, end): (i64, i64),
    (comparisons, fake): (i64, &Fake),
    chance: &mut Chance,
    error: impl Fn(&mut Chance) -> i64,
) -> Vec<Offset> {
    let point = |i: i64| {
        let t = begin + (end - begin) * i / (comparisons - 1);
        let error = error(chance);
        let local = fake.shows(t);
        Offset { local, offset: t + chance.within(error * 6 / 10) - local, error }
    };
    (0..comparisons).map(point).collect()
}

/// Stated and true largest error, ns.
pub(crate) type Errors = (i64, i64);

/// Corrects what was recorded: the errors of each rank but 0, and the report.
pub(crate) fn corrected(truth: &[Vec<i64>], method: &str, path: &Path) -> (Vec<Errors>, serde_json::Value) {
    let (out, report) = (path.with_extension("out"), path.with_extension("json"));
    let words = ["st-sync", "-q", "--level", "1", "--method", method, "-o"].map(Path::new);
    let args = words.into_iter().chain([&out, Path::new("--report"), &report, path]);
    let _ = run_in(&Args::parse_from(args), &mut Team::alone()).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let found = load(&std::fs::read(out).unwrap());
    let of = |r: usize| {
        let times = found.sections[r].threads[0].columns[0].1.points();
        let off = times.zip(&truth[r]).map(|(a, b)| (a - b).abs()).max().unwrap();
        (report["ranks"][r]["error_ns"].as_i64().unwrap(), off)
    };
    ((1..truth.len()).map(of).collect(), report)
}
