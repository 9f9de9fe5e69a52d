//! Reading, correcting, writing.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use st_tool::{Output, Status, Whole, engine, step};
use st_trace::graph::{Barriers, Ends, Graph, Latency, Shortest, Survey};

use crate::args::{Args, Barrier, Method};
use crate::clc::{self, GAMMA_UNITS, Moves, Outcome, Points};
use crate::offsets::Map;
use crate::pack;
use crate::report::{RankReport, Report};
use crate::team::Team;
use crate::trace::{Mapped, Sketched, Traces, parallel};
use crate::write::{self, Corrected, To};

/// Name of the program.
pub const NAME: &str = "st-sync";

/// File name of the engine: the program in jobs of several processes.
const ENGINE: &str = "st-sync-engine";

/// Runs the program; below a launcher that started several processes, becomes its engine.
///
/// # Errors
///
/// If an input cannot be read, holds no exact times or rounded ones, or histograms of parameters, or the output cannot be
/// written.
pub fn run(args: &Args) -> Result<Status> {
    engine::join_others(ENGINE)?;
    run_in(args, &mut Team::alone())
}

/// Runs the program as one process of a team. The first one talks.
///
/// # Errors
///
/// As [`run`]; on all processes if on one.
pub fn run_in(args: &Args, team: &mut Team<'_>) -> Result<Status> {
    let first = team.me() == 0;
    let to = To::open(args, first);
    let to = team.agree(to)?;
    let mut traces = Traces::read(&args.inputs, &args.input, team)?;
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
    let graph = traces.graph(barriers(&args.barriers), team)?;
    let (mut report, moves, maps) = correct(args, &traces, &graph, team)?;
    if first {
        talk(args, &report);
    }
    for file in &mut traces.share.files {
        note(args, &report, &mut file.whole);
    }
    let corrected = (args.method != Method::None).then_some(Corrected { maps: &maps, moves: &moves });
    report.sketched = write::write(args, to, &mut traces, &graph, corrected, team)?;
    if first && let Some(kept) = report.kept() {
        args.talk.warn(NAME, kept);
    }
    let reported = match &args.report {
        Some(path) if first => write_report(path, &report),
        _ => Ok(()),
    };
    team.agree(reported)?;
    Ok(Status::Ok)
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

/// Collective operations that a thread counts at once.
const INSTANCES: usize = 512;

/// Surveys the messages of the whole team. On the first process all is counted, on others what they matched; the number
/// of violated messages and the least latencies that messages show are those of all.
fn surveyed<I: Iterator<Item = i64>>(
    graph: &Graph,
    points: impl Fn(usize) -> I + Sync,
    latency: Latency,
    jobs: usize,
    team: &mut Team<'_>,
) -> Result<(Survey, u64, Latency)> {
    let mut ends = Ends::unread(graph);
    let (n, links) = (graph.streams.len(), &team.links);
    let read = parallel(n, jobs, |s| ends.read(graph, links, s, points(s)));
    ends.close(links, read);
    let (from, to) = ends.span.unwrap_or((i64::MAX, i64::MIN));
    let spans = team.all(&[from, to])?;
    let first = spans.iter().filter_map(|s| s.first().copied()).min().unwrap_or(0);
    let last = spans.iter().filter_map(|s| s.get(1).copied()).max().unwrap_or(0);
    let came = team.swap_times(std::mem::take(&mut ends.out))?;
    ends.take_in(&team.links, &came);
    // Streams first, then collective operations.
    let all = graph.instances.len();
    let parts = parallel(n + all.div_ceil(INSTANCES), jobs, |part| {
        let mut found = Survey::none((first, last));
        match part.checked_sub(n) {
            None => ends.received(graph, part, points(part), latency, &mut found),
            Some(part) => {
                let instances = part * INSTANCES..all.min((part + 1) * INSTANCES);
                ends.collective(graph, instances, latency, &mut found);
            }
        }
        found
    });
    let mut found = Survey::none((first, last));
    parts.iter().for_each(|part| found.absorb(part));
    let Shortest { near, far } = found.shortest;
    let all = team.all(&[wide(found.all().violated), near, far])?;
    let violated = all.iter().filter_map(|n| n.first()).map(|n| n.unsigned_abs()).sum();
    let least = |i: usize| all.iter().filter_map(|n| n.get(i)).copied().min().unwrap_or(i64::MAX);
    let shown = Shortest { near: least(1), far: least(2) }.latency();
    let mut words = Vec::new();
    if team.me() > 0 {
        pack::put_survey(&mut words, &found);
    }
    team.gather(&words, |theirs| found.absorb(&theirs.survey()))?;
    Ok((found, violated, shown))
}

fn wide(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The maps of all streams of which the comparisons are known here.
fn maps(args: &Args, traces: &Traces, graph: &Graph) -> Vec<Map> {
    let map = |stream: usize| {
        let comparison = traces.comparison(graph.streams[stream].rank);
        match (args.method, comparison) {
            (Method::None, _) | (_, None) => Map::default(),
            (Method::Offset, Some(c)) => Map::constant(c),
            (Method::Linear | Method::Clc, Some(c)) => Map::linear(c),
        }
    };
    (0..graph.streams.len()).map(map).collect()
}

/// Finds by how much to move the points of this process's streams, beyond the maps. The report is whole on the first
/// process.
fn correct(
    args: &Args,
    traces: &Traces,
    graph: &Graph,
    team: &mut Team<'_>,
) -> Result<(Report, Vec<Moves>, Vec<Map>)> {
    let (n, jobs) = (graph.streams.len(), usize::from(args.jobs));
    // Messages are violated below what is given; below what they show themselves, if they are reversed.
    let given = latency(args, Latency::default());
    let maps = maps(args, traces, graph);
    let mine: Vec<bool> = (0..n).map(|s| team.has(s)).collect();
    let unmoved = vec![Map::default(); n];
    let measured = Mapped { traces, graph, maps: &unmoved, mine: &mine };
    let mapped = Mapped { maps: &maps, ..measured };
    let back = parallel(n, jobs, |s| if mine[s] { traces.back(s, graph.streams[s].points) } else { 0 });
    let (before, mut violated, mut shown) = surveyed(graph, |s| measured.of(s), given, jobs, team)?;
    let mut interpolated: Option<Survey> = None;
    let moves = i64::from(maps.iter().any(|m| !m.is_identity()));
    if team.all(&[moves])?.iter().any(|m| *m == [1]) {
        let found = surveyed(graph, |s| mapped.of(s), given, jobs, team)?;
        (violated, shown) = (found.1, found.2);
        interpolated = Some(found.0);
    }
    let latency = latency(args, shown);
    let (mut outcome, mut moves) = (None, Vec::new());
    let mut after = interpolated.clone().unwrap_or_else(|| before.clone());
    if args.method == Method::Clc && violated > 0 {
        // Threads with fewer ranks each wait for each other at every message, which takes longer than all the work.
        let jobs = jobs.min(n / STREAMS).max(1);
        let options =
            clc::Options { latency, delta: args.delta, gamma: args.gamma, passes: args.max_passes, jobs };
        let done = clc::correct(graph, &mapped, &options, team)?;
        moves = done.0;
        outcome = Some(done.1);
        after = surveyed(graph, |s| moves[s].apply(mapped.of(s)), latency, jobs, team)?.0;
    }
    let mut ranks = parallel(n, jobs, |s| {
        let points = if mine[s] { graph.streams[s].points as usize } else { 0 };
        let moves = moves.get(s).into_iter().flat_map(|m: &Moves| m.iter().take(points));
        RankReport::new(graph.streams[s], &maps[s], moves)
    });
    let mut issues = graph.issues.clone();
    let mut back: u64 = back.iter().sum();
    let mut words = Vec::new();
    if team.me() > 0 {
        words.push(wide(back));
        pack::put_issues(&mut words, &issues);
        for (s, rank) in ranks.iter().enumerate().filter(|(s, _)| mine[*s]) {
            words.push(wide(s as u64));
            rank.put(&mut words);
        }
    }
    team.gather(&words, |theirs| {
        back += theirs.one().unsigned_abs();
        issues.add(&theirs.issues());
        while !theirs.0.as_slice().is_empty() {
            let s = usize::try_from(theirs.one()).unwrap_or(0);
            if let Some(rank) = ranks.get_mut(s) {
                rank.get(theirs);
            }
        }
    })?;
    let delta = args.delta;
    let sketched = Sketched::default();
    let report =
        Report { latency, delta, before, interpolated, after, outcome, ranks, back, issues, sketched };
    Ok((report, moves, maps))
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
    if let Some(Outcome { circular, .. }) = report.outcome.filter(|o| o.circular > 0) {
        args.talk.warn(NAME, format_args!("{circular} receives wait for each other in circles: left alone"));
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

fn write_report(path: &Path, report: &Report) -> Result<()> {
    let text = match path.extension().and_then(|e| e.to_str()) {
        Some("csv") => report.csv(),
        Some("json") => report.json(),
        Some("svg") => report.svg(),
        _ => report.text(),
    };
    if path.as_os_str() == "-" {
        use std::io::Write as _;
        return std::io::stderr().lock().write_all(text.as_bytes()).context("writing the report");
    }
    let mut out = Output::text(path)?;
    std::io::Write::write_all(&mut out, text.as_bytes())?;
    out.commit()
}
