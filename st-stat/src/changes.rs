//! Which call sites became slower or faster from one run to another.
//!
//! How places of two runs are told to be the same is in `changes/pairs.rs`.

mod alone;
mod pairs;
mod rows;
mod whole;

use std::collections::BTreeMap;

use st_cli::counted;
use st_model::num::{Exact, float, rounded};
use st_model::sites::CallSites;

use self::alone::{Alone, Before};
use self::pairs::{Found, Pair, Sure, pairs};
use self::whole::Whole;
use crate::judge::{Apart, Judged, Known, Side, Usual, adjusted, is_enough, judge};
use crate::table::{Cell, grouped};
use crate::times::{Phases, Sample, Times};

/// Of all places of a comparison without a difference, none is taken for one in so many of a hundred comparisons.
const SURE: f64 = 0.99;
/// Smaller changes than so many percent are none: so much differs between any two runs.
pub(crate) const LEAST_PERCENT: f64 = 5.0;
/// Changes of less than this share of the run's time matter to nobody.
const LEAST_OF_RUN: f64 = 0.001;

/// Changes of more than this share are worth a word where chance may have made them, or nobody can tell.
const MUCH_OF_RUN: f64 = 0.02;

/// Calls of each rank at a place that tell how its computation there differs.
const ENOUGH: u64 = 8;

/// What is found of a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// It takes longer.
    Slower,
    /// It takes less long.
    Faster,
    /// Only the second run has it.
    New,
    /// Only the first run has it.
    Gone,
    /// No change that matters.
    Alike,
    /// A large change, but chance alone may make it.
    Unsure,
    /// There are too few durations to tell.
    Unjudged,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Alike => "alike",
            Self::Unsure => "unsure",
            Self::Unjudged => "too few",
        }
    }
}

/// How two runs are compared.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct How {
    /// The work grows with the ranks: the time of a rank is to stay, not that of all.
    pub weak: bool,
    /// Percent from which on a place counts as slower beyond the threshold.
    pub threshold: Option<f64>,
}

/// One phase of one place.
#[derive(Clone, Debug)]
pub struct Change {
    /// What is found.
    pub verdict: Verdict,
    /// The function, with its error class if it failed.
    pub function: String,
    /// Number of the call site in either trace.
    pub sites: [Option<u32>; 2],
    /// Call sites that are taken for one here, as their stacks are called the same and the builds are not one: of the run with more.
    pub together: usize,
    /// Whether it is the time in the call; else the computation before it.
    pub in_call: bool,
    /// Events of either run.
    pub events: [Option<u64>; 2],
    /// Time per rank of either run, ns.
    pub times: [Option<f64>; 2],
    /// What the second is expected to take, ns: as long as the first, by the ranks that they have.
    pub expected: f64,
    /// How sure the difference is.
    pub judged: Option<Judged>,
    /// Whether the difference is large enough for the run to tell of.
    pub matters: bool,
}

impl Change {
    /// Whether it is among what people are told without asking for all.
    fn is_told(&self) -> bool {
        self.matters && self.verdict != Verdict::Alike
    }

    /// How much longer it takes than expected, ns.
    fn change(&self) -> f64 {
        self.times[1].unwrap_or(0.0) - self.expected
    }

    /// The same in percent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        100.0 * self.change() / self.expected
    }
}

/// What differs between the times of two runs.
#[derive(Clone, Debug)]
pub struct Changes {
    /// By verdict, largest change first.
    pub rows: Vec<Change>,
    /// Number of ranks of either run.
    ranks: [usize; 2],
    /// Mean time of a rank of either run, ns.
    run: [f64; 2],
    /// Whether the run as a whole takes longer; `None` if it takes no time.
    whole: Option<Whole>,
    /// A rank that computes longer alone, or a group with one.
    alone: Option<Alone>,
    /// More runs of the first program.
    bases: usize,
    how: How,
}

/// A run: its times and call sites.
pub type Run = (Times, CallSites);

/// Durations of other runs of the first program, by what its trace calls their place.
type Others = BTreeMap<(String, Option<u32>), Vec<Phases>>;

fn others(a: &Run, bases: &[Run]) -> Others {
    let mut out = Others::new();
    for base in bases {
        for Pair { function, found, .. } in pairs([&a.0, &base.0], [&a.1, &base.1]) {
            if let [Some(first), Some(second)] = found {
                out.entry((function, first.site)).or_default().push(second.phases);
            }
        }
    }
    out
}

/// Compares the times of two runs, of which `bases` are more of the first one's program on as many ranks.
#[must_use]
pub fn changes([a, b]: [&Run; 2], bases: &[Run], how: How) -> Changes {
    let times = [&a.0, &b.0];
    let ranks = times.map(|t| t.ranks.len());
    let mut runs: Vec<f64> =
        bases.iter().map(|(times, _)| times).chain([&a.0]).map(|t| float(t.run.0)).collect();
    let run = [runs.iter().sum::<f64>() / float(runs.len().to_u64().into()), float(b.0.run.0)];
    let mut changes =
        Changes { rows: Vec::new(), ranks, run, whole: None, alone: None, bases: bases.len(), how };
    runs.iter_mut().for_each(|time| *time *= changes.factor());
    changes.whole = Whole::of(&runs, run[1]);
    let (others, all) = (others(a, bases), pairs(times, [&a.1, &b.1]));
    let compared = Compared { times, factor: changes.factor() };
    let longer = all.iter().filter_map(|pair| Alone::of(&compared.before(pair)?, run[1]));
    changes.alone = longer.max_by(|a, b| a.more.total_cmp(&b.more));
    let least = LEAST_OF_RUN * run[1];
    let apart = [0, 1].map(|phase| compared.apart(&all, phase, least));
    let more = |pair: &Pair, phase| compared.more(pair, phase, &others);
    let usual = [0, 1].map(|phase| compared.usual(&all, phase, least, &more));
    for pair in &all {
        let Pair { function, found, .. } = pair;
        changes.rows.extend([0, 1].into_iter().filter_map(|phase| {
            let others = more(pair, phase);
            let known = Known { others: &others, usual: usual[phase], apart: apart[phase] };
            let (times, expected, judged) = compared.judged(found, phase, known)?;
            let verdict = match times {
                [Some(_), Some(_)] => Verdict::Unjudged,
                [Some(_), None] => Verdict::Gone,
                _ => Verdict::New,
            };
            Some(Change {
                verdict,
                function: function.clone(),
                sites: [0, 1].map(|i| found[i].as_ref().and_then(|f| f.site)),
                together: found.iter().flatten().map(|f| f.sites).max().unwrap_or(1),
                in_call: phase == 1,
                events: [0, 1].map(|i| found[i].as_ref().map(|f| f.phases[phase].events)),
                times,
                expected,
                judged,
                matters: false,
            })
        }));
    }
    changes.decide(compared.factor * run[0]);
    changes
}

/// How much of two runs is at the same places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Common {
    /// None of it.
    Nothing,
    /// Places that functions of the same names have in other files, or that nothing is known of but MPI's function: such as two
    /// programs may have that have nothing to do with each other.
    Names,
    /// Less than half of the time of a run.
    Little,
    /// Most of it.
    Most,
}

impl Common {
    /// Of two runs.
    #[must_use]
    pub fn of([a, b]: [&Run; 2]) -> Self {
        let (mut all, mut both, mut any, mut sure) = ([0u128; 2], [0u128; 2], false, false);
        for Pair { found, how, .. } in pairs([&a.0, &b.0], [&a.1, &b.1]) {
            let times = found.each_ref().map(|f| f.as_ref().map(|f| f.phases[0].sum + f.phases[1].sum));
            let is_common = times.iter().all(Option::is_some);
            for (side, time) in times.into_iter().enumerate() {
                all[side] += time.unwrap_or(0);
                both[side] += time.filter(|_| is_common).unwrap_or(0);
            }
            any |= is_common;
            sure |= is_common && how == Sure::Yes;
        }
        match (any, sure) {
            (false, _) => Self::Nothing,
            (true, false) => Self::Names,
            (true, true) if (0..2).any(|side| both[side] < all[side] / 2) => Self::Little,
            (true, true) => Self::Most,
        }
    }
}

/// Times per rank of either run, what the second is expected to take, and how sure it is.
type OfPhase = ([Option<f64>; 2], f64, Option<Judged>);

/// Two runs whose places are compared.
#[derive(Clone, Copy)]
struct Compared<'a> {
    times: [&'a Times; 2],
    /// What times of the first are multiplied by.
    factor: f64,
}

impl<'a> Compared<'a> {
    fn side(self, i: usize, sample: &'a Sample) -> Side<'a> {
        let factor = if i == 0 { self.factor } else { 1.0 };
        Side { sample, groups: &self.times[i].groups, factor }
    }

    /// How long ranks compute before a place, each by itself or in groups, if the same are in both runs.
    fn before(self, Pair { function, found, .. }: &'a Pair) -> Option<Before<'a>> {
        let [Some(Found { phases: x, site, .. }), Some(Found { phases: y, .. })] = found else { return None };
        let [a, b] = self.times;
        let times = [self.side(0, &x[0]), self.side(1, &y[0])].map(|side| side.by_group());
        let same = a.ranks == b.ranks;
        same.then(|| Before { ranks: &b.ranks, groups: &b.groups, times, function, site: *site })
    }

    /// How much ranks differ in a phase, by places with enough calls that take more than so much time of a rank.
    fn apart(self, all: &'a [Pair], phase: usize, least: f64) -> Option<Apart> {
        let ranks = self.times[1].ranks.len().to_u64();
        let both = |pair: &'a Pair| {
            let [Some(Found { phases: x, .. }), Some(Found { phases: y, .. })] = &pair.found else {
                return None;
            };
            let enough = [x, y].iter().all(|phases| phases[phase].events >= ranks.saturating_mul(ENOUGH));
            let sides = (self.side(0, &x[phase]), self.side(1, &y[phase]));
            (enough && sides.0.mean().max(sides.1.mean()) > least).then_some(sides)
        };
        let same = self.times[0].ranks == self.times[1].ranks;
        same.then(|| Apart::of(all.iter().filter_map(both), phase == 1))
    }

    /// Times per rank of more runs of the first program at a place.
    fn more(self, Pair { function, found, .. }: &Pair, phase: usize, others: &Others) -> Vec<f64> {
        let more = found[0].as_ref().and_then(|f| others.get(&(function.clone(), f.site)));
        more.into_iter().flatten().map(|phases| self.side(0, &phases[phase]).mean()).collect()
    }

    /// How runs of the first program differ in a phase, by places with enough calls that take more than so much time of a rank.
    fn usual(
        self,
        all: &'a [Pair],
        phase: usize,
        least: f64,
        more: &dyn Fn(&Pair, usize) -> Vec<f64>,
    ) -> Usual {
        let runs = |pair: &'a Pair| {
            let first = self.side(0, &pair.found[0].as_ref()?.phases[phase]);
            let tells = first.mean() > least && is_enough(first);
            tells.then(|| more(pair, phase).into_iter().chain([first.mean()]).collect())
        };
        Usual::of(all.iter().filter_map(runs), least)
    }

    /// A phase of a place; `None` if it takes no time.
    fn judged(self, found: &'a [Option<Found>; 2], phase: usize, known: Known<'_>) -> Option<OfPhase> {
        let samples = [0, 1].map(|i| found[i].as_ref().map(|f| &f.phases[phase]));
        if samples.iter().flatten().all(|s| s.sum == 0) {
            return None;
        }
        let [x, y] = [0, 1].map(|i| samples[i].map(|sample| self.side(i, sample)));
        let judged = x.zip(y).and_then(|(x, y)| judge(x, y, known));
        let expected = judged.map_or_else(|| x.map_or(0.0, |s| s.mean()), |j| j.expected);
        Some(([x.map(|_| expected / self.factor), y.map(|s| s.mean())], expected, judged))
    }
}

impl Changes {
    /// Decides about all rows together, and brings them in order; `run` is what a rank's whole time is expected to be.
    fn decide(&mut self, run: f64) {
        let judged: Vec<f64> = self.rows.iter().filter_map(|r| r.judged.map(|j| j.probability)).collect();
        let mut all = adjusted(&judged).into_iter();
        let least = self.how.threshold.unwrap_or(LEAST_PERCENT).min(LEAST_PERCENT) / 100.0;
        for row in &mut self.rows {
            let change = row.change();
            // Verdicts are those of where a place is until it is judged.
            let few = row.verdict == Verdict::Unjudged && row.judged.is_none();
            let of_run = if few { MUCH_OF_RUN } else { LEAST_OF_RUN };
            row.matters = change.abs() >= least * row.expected && change.abs() >= of_run * run;
            let Some(judged) = &mut row.judged else { continue };
            judged.probability = all.next().unwrap_or(1.0);
            row.verdict = match (row.matters, judged.probability <= 1.0 - SURE) {
                (true, true) if change > 0.0 => Verdict::Slower,
                (true, true) => Verdict::Faster,
                (true, false) if change.abs() >= MUCH_OF_RUN * run => Verdict::Unsure,
                _ => Verdict::Alike,
            };
        }
        // What is told comes first; of what is not the order is one.
        let rank = |r: &Change| (!r.is_told(), r.is_told().then_some(r.verdict));
        self.rows.sort_by(|a, b| {
            let sizes = b.change().abs().total_cmp(&a.change().abs());
            rank(a).cmp(&rank(b)).then(sizes)
        });
    }

    /// Whether a place is slower beyond the threshold, if there is one, or the run as a whole.
    #[must_use]
    pub fn beyond(&self) -> bool {
        let slower =
            |least: f64| self.rows.iter().any(|r| r.verdict == Verdict::Slower && r.percent() > least);
        self.how.threshold.is_some_and(|least| slower(least) || self.longer(least).is_some())
    }

    fn longer(&self, least: f64) -> Option<Whole> {
        self.whole.filter(|whole| whole.is_longer(least))
    }

    /// That the run as a whole takes longer, if it does by more than equal runs differ, in a line.
    pub(crate) fn whole(&self) -> Option<String> {
        let [slower, unsure] = [Verdict::Slower, Verdict::Unsure].map(|v| self.with(v));
        self.longer(LEAST_PERCENT).map(|whole| whole.told(slower, unsure))
    }

    /// Where calls take longer and no computation is found to: the rank that computes longer alone, in a line.
    pub(crate) fn alone(&self, sites: &CallSites) -> Option<String> {
        let slower = |in_call: bool| {
            self.rows.iter().any(|r| r.in_call == in_call && r.verdict == Verdict::Slower && r.matters)
        };
        self.alone.as_ref().filter(|_| slower(true) && !slower(false)).map(|alone| alone.told(sites))
    }

    fn with(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|r| r.verdict == verdict).count()
    }

    /// How long ranks take, in a line: `3.20 s → 3.84 s per rank (+20.0 %)`.
    pub(crate) fn runs(&self) -> String {
        let [a, b] = self.run.map(|ns| ns_cell(Some(ns)).text);
        if self.ranks[0] == self.ranks[1] {
            return format!("{a} → {b} per rank ({:+.1} %)", 100.0 * (self.run[1] / self.run[0] - 1.0));
        }
        let [p, q] = self.ranks;
        let speedup = self.run[0] / self.run[1];
        let efficiency = 100.0 * speedup * self.factor();
        let p = counted(p.to_u64(), "rank");
        format!("{a} on {p} → {b} on {q}: speedup {speedup:.2}, efficiency {efficiency:.1} %")
    }

    /// What the time of a rank is multiplied by where all scales.
    fn factor(&self) -> f64 {
        let [p, q] = self.ranks.map(|n| float(n.to_u64().into()));
        if self.how.weak { 1.0 } else { p / q.max(1.0) }
    }

    /// What is found, in a line.
    pub(crate) fn counts(&self) -> String {
        let verdicts = [Verdict::Slower, Verdict::Faster, Verdict::New, Verdict::Gone, Verdict::Alike];
        let count = |(n, v): (usize, &Verdict)| {
            let small = self.rows.iter().filter(|r| r.verdict == *v && !r.matters).count();
            let count = format!("{} {}", grouped(n.to_u64()), v.name());
            match v {
                Verdict::New | Verdict::Gone if small > 0 => {
                    format!("{count} ({} below 0.1 % of the run)", grouped(small.to_u64()))
                }
                _ => count,
            }
        };
        let counted = verdicts.iter().map(|v| (self.with(*v), v));
        let mut parts: Vec<String> =
            counted.filter(|(n, v)| *n > 0 || **v == Verdict::Slower).map(count).collect();
        let unsure = self.with(Verdict::Unsure);
        if unsure > 0 {
            let more = if self.bases == 0 { ": --base" } else { "" };
            parts.push(format!("{} unsure (chance may make such changes{more})", grouped(unsure.to_u64())));
        }
        let few = self.with(Verdict::Unjudged);
        if few > 0 {
            parts.push(format!("{} with too few calls to tell", grouped(few.to_u64())));
        }
        parts.join(", ")
    }
}

fn ns_cell(ns: Option<f64>) -> Cell {
    ns.map_or_else(Cell::none, |ns| Cell::ns(rounded(ns).into()))
}
