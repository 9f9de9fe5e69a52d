//! Reading, correcting, writing.

use st_model::num::{Exact as _, narrow};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use st_cli::{Amount, Finished, Output, Progress, Status, Whole, engine, step};
use st_match::graph::{Barriers, Graph, Latency, Matcher};

use crate::args::{Args, Barrier, Method};
use crate::clc::{self, Correction, GAMMA_UNITS, Moves, Points};
use crate::clocks::Clocks;
use crate::offsets::Map;
use crate::pack;
use crate::passes::Passes;
use crate::report::{RankReport, Report};
use crate::survey::Surveying;
use crate::team::Team;
use crate::trace::{Mapped, Sketched, Traces, parallel};
use crate::write::{self, Corrected, To};

/// Name of the program.
pub const NAME: &str = "st-sync";

/// The program, from its command line to its exit status.
#[must_use]
pub fn main() -> ExitCode {
    engine::start(NAME, run)
}

/// Does what the command line asks for; below a launcher that started several processes, becomes its engine.
///
/// # Errors
///
/// If an input cannot be read, holds no exact times or rounded ones, or histograms of parameters, or the output cannot be
/// written.
pub fn run(args: &Args) -> Result<Status> {
    engine::join_others(NAME)?;
    run_in(args, &mut Team::alone())
}

/// Runs the program as one process of a team. The first one talks.
///
/// # Errors
///
/// As [`run`]; on all processes if on one.
pub fn run_in(args: &Args, team: &mut Team<'_>) -> Result<Status> {
    let first = team.me() == 0;
    let open = || Ok((To::open(args, first)?, report_out(args, first)?));
    let (to, report_out) = team.agree(open())?;
    let mut traces = Traces::read(&args.inputs, &args.input.shown(NAME, &args.talk), args.jobs.into(), team)?;
    if first {
        traces.whole.remark(NAME, &args.talk);
    }
    let mut sections = traces.files().iter().flat_map(|f| &f.sections);
    let matchable = if sections.any(|s| s.histograms().next().is_some()) {
        Err(anyhow!("parameters are histograms: correct clocks before st-merge --histogram or --force-merge"))
    } else {
        Ok(())
    };
    team.agree(matchable)?;
    // Before any call is read: there may be any number of them.
    if !traces.are_timed(team)? {
        return team.agree(Err(anyhow!("the trace holds no exact times: record with --time columns")));
    }
    let units = traces.files().iter().flat_map(|f| &f.sections).flat_map(|s| &s.threads);
    let unit = units.flat_map(|t| &t.columns).map(|(_, c)| c.unit()).max().filter(|unit| *unit > 1);
    let exact = match unit {
        Some(unit) => {
            Err(anyhow!("times are rounded to {unit} ns: correct clocks before st-merge --quantise"))
        }
        None => Ok(()),
    };
    team.agree(exact)?;
    let budget = args.input.steps.budget();
    let affordable = traces.files().iter().try_for_each(|file| {
        // Messages are kept, and looked at again.
        let spent = budget.spend_all(&file.sections, None, 2);
        spent.with_context(|| file.path.display().to_string())
    });
    team.agree(affordable)?;
    let shown = |what, amount| first.then(|| args.talk.progress(NAME, what, amount));
    let ranks = traces.files().iter().flat_map(|f| &f.sections).map(|s| s.ranks.len()).sum();
    let matching = shown("matching", Amount::Things("ranks", ranks));
    let tell = |ranks| matching.iter().for_each(|shown| shown.advance(ranks));
    let matcher = Matcher::within(barriers(&args.barriers), budget);
    let graph = traces.graph(matcher, &tell, team)?;
    drop(matching);
    let correcting = shown("correcting", Amount::Things("times", 0));
    let (mut report, moves, maps) = correct(args, &traces, &graph, correcting.as_ref(), team)?;
    if first {
        talk(args, &report);
    }
    if first && traces.files().iter().any(|file| file.whole.explanation.is_some()) {
        args.talk.note(NAME, "what was kept of waits is left out: times are others now");
    }
    for file in &mut traces.share.files {
        note(args, &report, &mut file.whole);
    }
    drop(correcting);
    let writing = shown("writing", Amount::Things("threads", graph.streams.len().to_u64()));
    let tell = |ranks| writing.iter().for_each(|shown| shown.advance(ranks));
    if args.method != Method::None {
        let corrected = Corrected { maps: &maps, moves: &moves };
        report.sketched = corrected.enter(&mut traces, &graph, args.jobs.into(), &tell, team)?;
    }
    let written = write::write(args, to, &traces, team)?;
    drop(writing);
    if first && let Some(kept) = report.kept() {
        args.talk.warn(NAME, kept);
    }
    let reported = match &args.report {
        Some(path) if first => write_report(path, report_out, &report),
        _ => Ok(None),
    };
    let reported = team.agree(reported)?;
    let named = written.into_iter().chain(reported).try_for_each(Finished::commit);
    team.agree(named)?;
    Ok(Status::Ok)
}

/// Where the report goes, opened before the work; standard error need not be.
fn report_out(args: &Args, first: bool) -> Result<Option<Output>> {
    let file = args.report.as_ref().filter(|path| first && path.as_os_str() != "-");
    file.map(|path| Output::text(path)).transpose()
}

fn barriers(named: &[Barrier]) -> Barriers {
    let has = |b| named.contains(&b);
    Barriers {
        init: has(Barrier::Init),
        finalize: has(Barrier::Finalize),
        creation: has(Barrier::Creation),
        fence: has(Barrier::Fence),
    }
}

/// The least latencies: as given, else as messages show them by the clocks that are corrected.
fn latency(args: &Args, shown: Latency) -> Latency {
    let Latency { near, far } = shown;
    Latency { near: args.lmin_intra.unwrap_or(near), far: args.lmin_inter.unwrap_or(far) }
}

/// Streams that a thread of the logical clock has at least.
const STREAMS: usize = 8;

fn wide(n: u64) -> i64 {
    narrow(n)
}

/// Finds by how much to move the points of this process's streams, beyond the maps. The report is whole on the first
/// process.
fn correct(
    args: &Args,
    traces: &Traces,
    graph: &Graph,
    shown: Option<&Progress>,
    team: &mut Team<'_>,
) -> Result<(Report, Vec<Moves>, Vec<Arc<Map>>)> {
    let (n, jobs) = (graph.streams.len(), usize::from(args.jobs));
    let mine: Vec<bool> = (0..n).map(|s| team.has(s)).collect();
    let back = parallel(n, jobs, |s| if mine[s] { traces.back(s, graph.streams[s].points) } else { 0 });
    let mut clocks = Clocks::new(args.method, traces, graph, team)?;
    // Messages are violated below what is given; below what they show themselves, if they are reversed.
    let given = latency(args, Latency::default());
    let identity = Arc::new(Map::default());
    let unmoved = vec![identity; n];
    let passes = Passes::new(shown, graph, &mine);
    let measured = Mapped { traces, graph, maps: &unmoved, mine: &mine, passes: &passes };
    let by_clocks = Surveying { graph, latency: given, jobs, clocks: &clocks };
    let before = by_clocks.survey(|s| measured.of(s), team)?;
    let mut maps = clocks.maps();
    let (mut interpolated, mut last) = (None, None);
    if maps.iter().any(|m| !m.is_identity()) {
        let mapped = Mapped { maps: &maps, ..measured };
        let found = by_clocks.survey(|s| mapped.of(s), team)?;
        interpolated = Some(found.found.clone());
        last = Some(found);
    }
    let mut last = last.unwrap_or_else(|| before.clone());
    let follows = matches!(args.method, Method::Linear | Method::Clc);
    let mut turn = 0;
    while follows && clocks.learn_together(&last, turn, args.method == Method::Clc, team)? {
        maps = clocks.maps();
        let mapped = Mapped { maps: &maps, ..measured };
        let by_clocks = Surveying { graph, latency: given, jobs, clocks: &clocks };
        last = by_clocks.survey(|s| mapped.of(s), team)?;
        turn += 1;
    }
    let latency = latency(args, last.shortest.latency());
    let (mut outcome, mut moves, mut after) = (None, Vec::new(), last.found);
    let mapped = Mapped { maps: &maps, ..measured };
    if args.method == Method::Clc && last.violated > 0 {
        // Threads with fewer ranks each wait for each other at every message, which takes longer than all the work.
        let threads = jobs.min(n / STREAMS).max(1);
        let (delta, gamma, passes) = (args.delta, args.gamma, args.max_passes);
        let options = clc::Options { latency, delta, gamma, passes, jobs: threads };
        let done = clc::correct(graph, &mapped, &options, team)?;
        (moves, outcome) = (done.0, Some(done.1));
        let by_clocks = Surveying { graph, latency, jobs, clocks: &Clocks::default() };
        after = by_clocks.survey(|s| moves[s].apply(mapped.of(s)), team)?.found;
    }
    let ranks = parallel(n, jobs, |s| {
        let points = if mine[s] { graph.streams[s].points as usize } else { 0 };
        let moves = moves.get(s).into_iter().flat_map(|m: &Moves| m.iter().take(points));
        RankReport::new(graph.streams[s], clocks.of(s), clocks.worst(), moves)
    });
    let mut report = Report {
        latency,
        delta: args.delta,
        before: before.found,
        interpolated,
        turns: turn,
        after,
        outcome,
        ranks,
        back: back.iter().sum(),
        issues: graph.issues.clone(),
        sketched: Sketched::default(),
        advice: clocks.advice(),
    };
    gather(&mut report, &mine, team)?;
    Ok((report, moves, maps))
}

/// Brings what the processes found of their streams to the first one.
fn gather(report: &mut Report, mine: &[bool], team: &mut Team<'_>) -> Result<()> {
    let Report { ranks, back, issues, .. } = report;
    let mut words = Vec::new();
    if team.me() > 0 {
        words.push(wide(*back));
        pack::put_issues(&mut words, issues);
        for (s, rank) in ranks.iter().enumerate().filter(|(s, _)| mine[*s]) {
            words.push(wide(s as u64));
            rank.put(&mut words);
        }
    }
    team.gather(&words, |theirs| {
        *back += theirs.one().unsigned_abs();
        issues.add(&theirs.issues());
        while !theirs.0.as_slice().is_empty() {
            let s = narrow::<usize>(theirs.one());
            if let Some(rank) = ranks.get_mut(s) {
                rank.get(theirs);
            }
        }
    })?;
    Ok(())
}

/// Says what was done, in one or a few lines.
fn talk(args: &Args, report: &Report) {
    for (what, n) in report.issues.counts() {
        args.talk.warn(NAME, format_args!("{n} {what}: left alone"));
    }
    for example in &report.issues.examples {
        args.talk.detail(NAME, example);
    }
    if report.back > 0 {
        args.talk
            .warn(NAME, format_args!("clocks went back {} times: held until they caught up", report.back));
    }
    if let Some(Correction { circular, .. }) = report.outcome.filter(|o| o.circular > 0) {
        args.talk.warn(NAME, format_args!("{circular} receives wait for each other in circles: left alone"));
    }
    if let Some(advice) = &report.advice {
        args.talk.warn(NAME, advice);
    }
    args.talk.note(NAME, report.line());
}

/// Adds this program to the provenance, with the settings in force.
fn note(args: &Args, report: &Report, whole: &mut Whole) {
    if args.output.no_provenance {
        return;
    }
    let mut step = step(NAME);
    step.args.push(format!("lmin-intra={}", report.latency.near));
    step.args.push(format!("lmin-inter={}", report.latency.far));
    if let Some(o) = report.outcome {
        step.args.push(format!("delta={}", report.delta));
        step.args.push(format!("gamma={}.{:09}", o.gamma / GAMMA_UNITS, o.gamma % GAMMA_UNITS));
        step.args.push(format!("passes={}", o.passes));
    }
    whole.provenance.push(step);
}

fn write_report(path: &Path, out: Option<Output>, report: &Report) -> Result<Option<Finished>> {
    let text = match path.extension().and_then(|e| e.to_str()) {
        Some("csv") => report.csv(),
        Some("json") => report.json(),
        Some("svg") => report.svg(),
        _ => report.text(),
    };
    let Some(mut out) = out else {
        io::stderr().lock().write_all(text.as_bytes()).context("writing the report")?;
        return Ok(None);
    };
    out.write_all(text.as_bytes())?;
    out.finish().map(Some)
}
