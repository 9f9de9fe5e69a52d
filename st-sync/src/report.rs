//! What was wrong, and what was done about it.

use st_model::num::saturate;
use std::fmt::Write as _;

use serde_json::{Map as Object, Value, json};
use st_cli::{counted, grouped};
use st_match::graph::{Issues, Latency, Stream, Survey, Tally};

use crate::clc::{Correction, GAMMA_UNITS};
use crate::clocks::Clock;
use crate::pack::{self, Words};
use crate::plot;
use crate::trace::Sketched;

/// Ranks that are named one by one.
const NAMED: usize = 8;

/// One thread of one rank.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RankReport {
    stream: Stream,
    /// First measured offset to rank 0, drift in 1e-12, largest error bound.
    offset: Option<i64>,
    drift: Option<i64>,
    error: Option<i64>,
    /// Points that the logical clock moved, the sum and the largest of the distances, ns.
    modified: u64,
    moved: u128,
    farthest: i64,
}

impl RankReport {
    /// From the moves of all points by the logical clock. They take over the errors of clocks that messages come from, at most
    /// that of the worst.
    pub(crate) fn new(stream: Stream, clock: &Clock, worst: i64, moves: impl Iterator<Item = i64>) -> Self {
        let map = &clock.interpolated;
        let mut r = Self {
            stream,
            offset: map.points().first().map(|p| p.offset),
            drift: map.drift(),
            error: clock.error,
            modified: 0,
            moved: 0,
            farthest: 0,
        };
        for by in moves {
            r.modified += u64::from(by != 0);
            r.moved += u128::from(by.unsigned_abs());
            r.farthest = r.farthest.max(by);
        }
        r.error = r.error.map(|error| error.saturating_add(r.farthest).min(error.max(worst)));
        r
    }
}

impl RankReport {
    /// Appends what [`RankReport::get`] takes.
    pub(crate) fn put(&self, out: &mut Vec<i64>) {
        [self.offset, self.drift, self.error].into_iter().for_each(|v| pack::put_maybe(out, v));
        out.push(self.modified.cast_signed());
        pack::put_sum(out, self.moved);
        out.push(self.farthest);
    }
    /// Takes what another process has found.
    pub(crate) fn get(&mut self, words: &mut Words<'_>) {
        [self.offset, self.drift, self.error] = [words.maybe(), words.maybe(), words.maybe()];
        self.modified = words.one().cast_unsigned();
        self.moved = words.sum();
        self.farthest = words.one();
    }
}

/// The whole of it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Report {
    pub(crate) latency: Latency,
    pub(crate) delta: i64,
    pub(crate) before: Survey,
    /// After interpolation, if there were offsets.
    pub(crate) interpolated: Option<Survey>,
    /// How often clocks were corrected by what messages say.
    pub(crate) turns: usize,
    pub(crate) after: Survey,
    /// What the logical clock did, if it ran.
    pub(crate) outcome: Option<Correction>,
    pub(crate) ranks: Vec<RankReport>,
    /// How often clocks went back.
    pub(crate) back: u64,
    pub(crate) issues: Issues,
    pub(crate) sketched: Sketched,
    /// What would make errors smaller.
    pub(crate) advice: Option<String>,
}

impl Report {
    fn stages(&self) -> impl Iterator<Item = (&'static str, &Survey)> {
        let middle = self.interpolated.as_ref().map(|s| ("interpolated", s));
        [Some(("measured", &self.before)), middle, Some(("corrected", &self.after))].into_iter().flatten()
    }
    fn points(&self) -> u64 {
        self.ranks.iter().map(|r| u64::from(r.stream.points)).sum()
    }
    fn modified(&self) -> u64 {
        self.ranks.iter().map(|r| r.modified).sum()
    }
    fn mean_move(&self) -> u128 {
        self.ranks.iter().map(|r| r.moved).sum::<u128>() / u128::from(self.modified().max(1))
    }

    /// How many times of rank 0 were moved, and how far at most.
    fn reference(&self) -> (u64, i64) {
        let of_rank_0 = self.ranks.iter().filter(|r| r.stream.rank == 0);
        of_rank_0.fold((0, 0), |(n, far), r| (n + r.modified, far.max(r.farthest)))
    }

    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let (a, b) = (self.before.all(), self.after.all());
        let mut line = format!(
            "{}: {} reversed, {} violated; after correction {} and {}",
            counted(a.messages, "message"),
            grouped(a.reversed),
            grouped(a.violated),
            grouped(b.reversed),
            grouped(b.violated)
        );
        if self.outcome.is_some() {
            let _ = write!(line, "; {} of {} times moved", grouped(self.modified()), grouped(self.points()));
        }
        if let (n @ 1.., far) = self.reference() {
            let why = "no correction of the other clocks within their errors suffices";
            let _ = write!(line, ", {} of rank 0 by at most {far} ns, for {why}", grouped(n));
        }
        line
    }

    /// Whose sketches are not made of corrected times, and why.
    pub(crate) fn kept(&self) -> Option<String> {
        let ranks = &self.sketched.kept;
        let named: Vec<String> = ranks.iter().take(NAMED).map(|r| r.to_string()).collect();
        let more = match ranks.len().saturating_sub(NAMED as u64) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let ranks = if ranks.len() == 1 { "rank" } else { "ranks" };
        let why = "sketches and sums stay as recorded, for exact times are not kept of every call";
        (!named.is_empty()).then(|| format!("{ranks} {}{more}: {why}", named.join(", ")))
    }

    /// Names and values, in order.
    fn facts(&self) -> Vec<(String, Value)> {
        let mut facts: Vec<(String, Value)> = vec![
            ("lmin_intra_ns".into(), self.latency.near.into()),
            ("lmin_inter_ns".into(), self.latency.far.into()),
            ("points".into(), self.points().into()),
            ("clocks_went_back".into(), self.back.into()),
        ];
        for (stage, survey) in self.stages() {
            let kinds = [
                ("messages", survey.messages),
                ("collective", survey.collective),
                ("collective_pairs", survey.pairs),
            ];
            for (kind, t) in kinds {
                for (what, n) in tally(&t, kind != "collective_pairs") {
                    facts.push((format!("{stage}_{kind}_{what}"), n));
                }
            }
        }
        if let Some(o) = self.outcome {
            facts.push(("delta_ns".into(), self.delta.into()));
            facts.push((
                "gamma".into(),
                format!("{}.{:09}", o.gamma / GAMMA_UNITS, o.gamma % GAMMA_UNITS).into(),
            ));
            facts.push(("passes".into(), o.passes.into()));
            facts.push(("detected".into(), o.detected.into()));
            facts.push(("circular".into(), o.circular.into()));
            facts.push(("modified".into(), self.modified().into()));
            facts.push(("moved_mean_ns".into(), number(self.mean_move())));
            let farthest = self.ranks.iter().map(|r| r.farthest).max().unwrap_or(0);
            facts.push(("moved_max_ns".into(), farthest.into()));
        }
        facts.push(("corrections_by_messages".into(), self.turns.into()));
        facts.push(("rank_0_moved".into(), self.reference().0.into()));
        facts.push(("sketches_anew".into(), self.sketched.anew.into()));
        facts.push(("ranks_with_sketches_as_recorded".into(), self.sketched.kept.len().into()));
        facts.extend(self.issues.counts().map(|(what, n)| (what.replace(' ', "_"), n.into())));
        facts
    }

    /// Facts, one a line, then a table of the ranks.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for (name, value) in self.facts() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let _ = writeln!(out, "{:<44} {value}", name.replace('_', " "));
        }
        for example in &self.issues.examples {
            let _ = writeln!(out, "{example}");
        }
        for said in self.kept().iter().chain(&self.advice) {
            let _ = writeln!(out, "{said}");
        }
        let _ = writeln!(
            out,
            "\n{:>6} {:>6} {:>16} {:>14} {:>12} {:>10} {:>12} {:>12}",
            "rank", "thread", "offset ns", "drift 1e-12", "error ns", "modified", "mean ns", "max ns"
        );
        for r in &self.ranks {
            let shown = |v: Option<i64>| v.map_or_else(|| "-".to_owned(), |v| v.to_string());
            let _ = writeln!(
                out,
                "{:>6} {:>6} {:>16} {:>14} {:>12} {:>10} {:>12} {:>12}",
                r.stream.rank,
                r.stream.thread,
                shown(r.offset),
                shown(r.drift),
                shown(r.error),
                r.modified,
                r.moved / u128::from(r.modified.max(1)),
                r.farthest
            );
        }
        out
    }

    /// Lines `kind,a,b,name,value`: facts, ranks, and pairs of ranks with violated messages.
    pub(crate) fn csv(&self) -> String {
        let mut out = String::from("kind,a,b,name,value\n");
        for (name, value) in self.facts() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let _ = writeln!(out, "fact,,,{name},{value}");
        }
        for r in &self.ranks {
            for (name, value) in rank_values(r) {
                let value = if value.is_null() { String::new() } else { value.to_string() };
                let _ = writeln!(out, "rank,{},{},{name},{value}", r.stream.rank, r.stream.thread);
            }
        }
        for (stage, survey) in self.stages() {
            for ((a, b), t) in &survey.ranks {
                let _ = writeln!(out, "{stage},{a},{b},violated,{}", t.violated);
                let _ = writeln!(out, "{stage},{a},{b},reversed,{}", t.reversed);
                let _ = writeln!(out, "{stage},{a},{b},error_max_ns,{}", t.largest);
            }
        }
        out
    }

    /// One object.
    pub(crate) fn json(&self) -> String {
        let mut object: Object<String, Value> = self.facts().into_iter().collect();
        let of = |r: &RankReport| {
            let mut o = Object::new();
            o.insert("rank".into(), r.stream.rank.into());
            o.insert("thread".into(), r.stream.thread.into());
            o.extend(rank_values(r).into_iter().map(|(n, v)| (n.to_owned(), v)));
            Value::from(o)
        };
        object.insert("ranks".into(), self.ranks.iter().map(of).collect());
        for (stage, survey) in self.stages() {
            let pair = |((a, b), t): (&(u32, u32), &Tally)| json!({"from": a, "to": b, "violated": t.violated, "reversed": t.reversed, "error_max_ns": t.largest});
            object.insert(format!("{stage}_pairs"), survey.ranks.iter().map(pair).collect());
            object.insert(format!("{stage}_over_time"), survey.over_time.clone().into());
        }
        object.insert("advice".into(), self.advice.clone().into());
        let examples = self.issues.examples.iter().map(|e| Value::from(e.to_string()));
        object.insert("examples".into(), examples.collect());
        format!("{}\n", Value::from(object))
    }

    /// Violated messages over time and per pair of ranks, before and after.
    pub(crate) fn svg(&self) -> String {
        plot::svg(&[("measured", &self.before), ("corrected", &self.after)], &self.line())
    }
}

fn rank_values(r: &RankReport) -> [(&'static str, Value); 6] {
    [
        ("offset_ns", r.offset.into()),
        ("drift_1e12", r.drift.into()),
        ("error_ns", r.error.into()),
        ("modified", r.modified.into()),
        ("moved_mean_ns", number(r.moved / u128::from(r.modified.max(1)))),
        ("moved_max_ns", r.farthest.into()),
    ]
}

fn tally(t: &Tally, errors: bool) -> Vec<(&'static str, Value)> {
    let mut all: Vec<(&'static str, Value)> =
        vec![("all", t.messages.into()), ("reversed", t.reversed.into()), ("violated", t.violated.into())];
    if errors {
        all.push(("error_mean_ns", number(t.mean_error())));
        all.push(("error_max_ns", t.largest.into()));
    }
    all
}

fn number(n: u128) -> Value {
    saturate::<u64>(n).into()
}
