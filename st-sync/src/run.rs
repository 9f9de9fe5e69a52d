//! Reading, correcting, writing.

use std::path::Path;

use anyhow::{Context, Result, bail};
use st_tool::{Output, Status, Whole, step};
use st_trace::graph::{Barriers, Graph, Latency, Survey, survey};

use crate::args::{Args, Barrier, Method};
use crate::clc::{self, GAMMA_UNITS, Outcome};
use crate::offsets::Map;
use crate::report::{RankReport, Report};
use crate::team::Team;
use crate::trace::{Traces, parallel, target, write};

const NAME: &str = "st-sync";

/// Runs the program.
///
/// # Errors
///
/// If an input cannot be read, holds no exact times or rounded ones, or histograms of parameters, or the output cannot be written.
pub fn run(args: &Args) -> Result<Status> {
    let to = &args.output.output;
    // A terminal is refused before the work.
    let single = if to.is_dir() || to.as_os_str().as_encoded_bytes().ends_with(b"/") {
        std::fs::create_dir_all(to).with_context(|| format!("{}: cannot create", to.display()))?;
        None
    } else {
        Some(Output::stream(to)?)
    };
    let mut traces = Traces::read(&args.inputs, &args.input)?;
    if traces.files.iter().any(|f| !f.whole.complete) {
        args.talk.warn(NAME, "an input is truncated; the result holds what is whole");
    }
    if traces.files.iter().flat_map(|f| &f.sections).any(|s| s.histograms().next().is_some()) {
        bail!("parameters are histograms: correct clocks before st-merge --histogram or --force-merge");
    }
    let graph = traces.graph(barriers(&args.barriers))?;
    if graph.streams.iter().all(|s| s.points == 0) {
        bail!("the trace holds no exact times: record with --time columns");
    }
    let units = traces.files.iter().flat_map(|f| &f.sections).flat_map(|s| &s.threads);
    if let Some(unit) = units.flat_map(|t| &t.columns).map(|(_, c)| c.unit()).max().filter(|unit| *unit > 1) {
        bail!("times are rounded to {unit} ns: correct clocks before st-merge --quantise");
    }
    let report = correct(args, &mut traces, &graph)?;
    talk(args, &report);
    for file in &mut traces.files {
        note(args, &report, &mut file.whole);
    }
    match single {
        Some(out) => {
            let options = args.output.write_options(&out);
            let mut whole = traces.files.first().map(|f| f.whole.clone()).unwrap_or_default();
            whole.complete = traces.files.iter().all(|f| f.whole.complete);
            write(out, &whole, traces.files.iter().flat_map(|f| &f.sections), options)?;
        }
        None => {
            for file in &traces.files {
                let out = Output::stream(&target(to, &file.path).unwrap_or_default())?;
                let options = args.output.write_options(&out);
                write(out, &file.whole, file.sections.iter(), options)?;
            }
        }
    }
    if let Some(path) = &args.report {
        write_report(path, &report)?;
    }
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

/// The least latencies: as given, else half of what was measured.
fn latency(args: &Args, traces: &Traces, graph: &Graph) -> Latency {
    let mut ranks: Vec<u32> = graph.streams.iter().map(|s| s.rank).collect();
    ranks.dedup();
    let measured = |far: bool| {
        let of = |r: &u32| traces.comparison(*r).map(|c| if far { c.far } else { c.near });
        ranks.iter().filter_map(of).filter(|l| *l > 0).min().unwrap_or(0) / 2
    };
    Latency {
        near: args.lmin_intra.unwrap_or_else(|| measured(false)),
        far: args.lmin_inter.unwrap_or_else(|| measured(true)),
    }
}

/// Corrects the columns in place.
fn correct(args: &Args, traces: &mut Traces, graph: &Graph) -> Result<Report> {
    let (n, jobs) = (graph.streams.len(), usize::from(args.jobs));
    let latency = latency(args, traces, graph);
    let map = |stream: usize| {
        let comparison = traces.comparison(graph.streams[stream].rank);
        match (args.method, comparison) {
            (Method::None, _) | (_, None) => Map::default(),
            (Method::Offset, Some(c)) => Map::constant(c),
            (Method::Linear | Method::Clc, Some(c)) => Map::linear(c),
        }
    };
    let maps: Vec<Map> = (0..n).map(map).collect();
    let load = |maps: &[Map]| {
        let of = |s: usize| traces.points(s, graph.streams[s].points, &maps[s]);
        parallel(n, jobs, of).into_iter().unzip::<_, _, Vec<_>, Vec<_>>()
    };
    let (mut times, back) = load(&vec![Map::default(); n]);
    let before = survey(graph, &times, latency);
    let mut interpolated: Option<Survey> = None;
    if maps.iter().any(|m| !m.is_identity()) {
        times = load(&maps).0;
        interpolated = Some(survey(graph, &times, latency));
    }
    let mut outcome = None;
    let mut after = interpolated.clone().unwrap_or_else(|| before.clone());
    if args.method == Method::Clc && after.all().violated > 0 {
        let options =
            clc::Options { latency, delta: args.delta, gamma: args.gamma, passes: args.max_passes, jobs };
        let again = |s: usize| traces.points(s, graph.streams[s].points, &maps[s]).0;
        let (corrected, done) = clc::correct(graph, times, &options, again, &mut Team::alone())?;
        times = corrected;
        outcome = Some(done);
        after = survey(graph, &times, latency);
    }
    let ranks = parallel(n, jobs, |s| {
        let input = outcome.map(|_| traces.points(s, graph.streams[s].points, &maps[s]).0);
        RankReport::new(graph.streams[s], &maps[s], input.as_deref().unwrap_or(&times[s]), &times[s])
    });
    if args.method != Method::None {
        for (s, times) in times.iter().enumerate() {
            traces.replace(s, times, &maps[s]);
        }
    }
    Ok(Report {
        latency,
        delta: args.delta,
        before,
        interpolated,
        after,
        outcome,
        ranks,
        back: back.iter().sum(),
        issues: graph.issues.clone(),
    })
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
