//! The commands.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::CommandFactory;
use st_cli::{Amount, Finished, Output, Screen, Status, UsageError, engine, typed};
use st_match::Unknown;
use st_model::num::Exact as _;
use st_model::project;
use st_model::steps::Exceeded;

use crate::args::{
    Args, CallsArgs, ClustersArgs, Command, DPI, Explaining, MapeArgs, SizesArgs, SizesBy, SummaryArgs,
    ViolationsArgs,
};
use crate::ended::Running;
use crate::input::{Lacking, NAME};
use crate::table::Format;
use crate::topology::Grid;
use crate::{
    at, calls, causes, clusters, compare, exact, explain, figure, forecast, hist, input, leaks, mape, matrix,
    messages, phases, picture, predict, report, sizes, spread, summary, timeline, violations, waits, why,
};

/// The program, from its command line to its exit status.
#[must_use]
pub fn main() -> ExitCode {
    engine::start(NAME, run)
}

/// Does what the command line asks for.
///
/// # Errors
///
/// If an input cannot be read or the output cannot be written.
pub fn run(args: &Args) -> Result<Status> {
    match &args.command {
        None => named(&args.summary.of, summarise(&args.summary)),
        Some(Command::Calls(a)) => named(&a.of, list_calls(a)),
        Some(Command::Why(a)) => named(&a.of, why::why(a)),
        Some(Command::Report(a)) => named(&a.explaining(), report::report(a)),
        Some(Command::Timeline(a)) => named(&a.of, timeline::timeline(a)),
        Some(Command::Waits(a)) => named(&a.of, waits::waits(a)),
        Some(Command::Delays(a)) => named(&a.of, causes::delays(a)),
        Some(Command::Path(a)) => named(&a.of, causes::path(a)),
        Some(Command::Efficiency(a)) => named(&a.of, explain::efficiency(a)),
        Some(Command::Predict(a)) => named(&a.of, predict::predict(a)),
        Some(Command::Ranks(a)) => named(&a.of, explain::ranks(a)),
        Some(Command::Phases(a)) => named(&a.of, phases::phases(a)),
        Some(Command::At(a)) => named(&a.of, at::at(a)),
        Some(Command::Between(a)) => named(&a.of, at::between(a)),
        Some(Command::Leaks(a)) => named(&a.of, leaks::leaks(a)),
        Some(Command::Matrix(a)) => named(&a.of, matrix::matrix(a)),
        Some(Command::Messages(a)) => named(&a.of, messages::messages(a)),
        Some(Command::Sizes(a)) => list_sizes(a),
        Some(Command::Forecast(a)) => forecast::forecast(a),
        Some(Command::Violations(a)) => named(&a.of, list_violations(a)),
        Some(Command::Clusters(a)) => named(&a.of, list_clusters(a)),
        Some(Command::Diff(a)) => compare::compare(a),
        Some(Command::Hist(a)) => named(&a.of, hist::hist(a)),
        Some(Command::Mape(a)) => errors(a),
    }
}

/// Says of which trace it is that it cannot be read back, not in the steps that are allowed, or lacks what the command needs: streams
/// have been named while they were read, not what they are together.
fn named(of: &Explaining, result: Result<Status>) -> Result<Status> {
    let about_all = |cause: &(dyn std::error::Error + 'static)| {
        cause.is::<Exceeded>()
            || cause.is::<Unknown>()
            || cause.is::<project::Error>()
            || cause.is::<Lacking>()
    };
    // A stream's name stands before what is wrong in it.
    result.map_err(|e| match e.chain().next().is_some_and(about_all) {
        true => e.context(match &of.inputs[..] {
            [one] if one.as_os_str() != "-" => one.display().to_string(),
            [] | [_] => "standard input".to_owned(),
            all => format!("{} streams", all.len()),
        }),
        false => e,
    })
}

/// The command that a word is like, as clap finds it for words that can be nothing else: files have dots and slashes in their names, and
/// a word that is spelt otherwise in more than half of its letters is something else.
fn meant(word: &str) -> Option<String> {
    let near = |name: &String| strsim::normalized_damerau_levenshtein(word, name) >= 0.5;
    let names = Args::command().get_subcommands().map(|c| c.get_name().to_owned()).collect::<Vec<_>>();
    calls::like(word, names).filter(|name| near(name) && !word.contains(['.', '/']))
}

/// A command line, as it is typed, with its command before all else.
fn command_first(command: &str, words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    let at = words.iter().position(|w| w == command);
    let others = words.iter().enumerate().filter(|(i, _)| Some(*i) != at).map(|(_, w)| w.as_str());
    typed([NAME, command].into_iter().chain(others))
}

/// Rows of the summary's table of functions.
const TOP: usize = 8;

fn summarise(args: &SummaryArgs) -> Result<Status> {
    if let Some(word) = args.of.inputs.first().filter(|p| !p.exists()).and_then(|p| p.to_str())
        && (meant(word).is_some() || word.chars().all(char::is_alphabetic))
    {
        let Some(meant) = meant(word) else {
            let list = "st-stat --help lists them";
            bail!(UsageError(format!("{word}: there is no such file, nor a command of this name ({list})")));
        };
        let given = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        let how = if word == meant {
            format!("options go after the command: {}", command_first(&meant, given))
        } else {
            format!("and no such command: {meant:?} is one")
        };
        bail!(UsageError(format!("{word}: there is no such file, {how}")));
    }
    let (whole, sections) = input::profiled(&args.of.inputs, &args.of.input, &args.of.talk)?;
    let mut out = Output::text(&args.of.output.output)?;
    // Only where ranks ended is said by call sites.
    let ended = sections.iter().any(|(s, _)| !s.ended.is_empty());
    let tables = sections.iter().filter(|_| ended).map(|(s, _)| &s.sites);
    let sites = args.symbols.call_sites((input::NAME, &args.of.talk), tables);
    let screen = Screen::of(&out);
    let running = Running::of(&args.of.inputs, sections.iter().map(|(s, _)| s));
    let facts = summary::Facts::of(&whole.header, whole.complete, whole.bytes, &sections, &sites, &running);
    if args.of.format == Format::Text {
        facts.write_text(screen.width, &mut out)?;
        let mut top = calls::functions(&sections);
        let rest = top.rows.len().saturating_sub(TOP);
        top.rows.truncate(TOP);
        writeln!(out)?;
        top.write(Format::Text, screen, &mut out)?;
        if rest > 0 {
            writeln!(
                out,
                "… and {rest} more {} (st-stat calls)",
                if rest == 1 { "function" } else { "functions" }
            )?;
        }
    } else {
        facts.table().write(args.of.format, screen, &mut out)?;
    }
    out.commit()?;
    Ok(Status::Ok)
}

/// How the calls of each site are spread.
fn list_spread(args: &CallsArgs) -> Result<Status> {
    let (_, sections) = input::sections(&args.of.inputs, &args.of.input, &args.of.talk)?;
    let sites = args.symbols.call_sites((input::NAME, &args.of.talk), sections.iter().map(|s| &s.sites));
    let (all, _) = hist::gathered(&sections, &sites, |_, _| true, &args.of.input.steps.budget())?;
    if all.is_empty() {
        bail!("the trace holds no times: record without --time none");
    }
    exact::source(&sections).into_iter().for_each(|how| args.of.talk.note(input::NAME, how));
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    spread::table(&all, &sites).write(args.of.format, screen, &mut out)?;
    out.commit()?;
    Ok(Status::Ok)
}

fn list_calls(args: &CallsArgs) -> Result<Status> {
    if args.spread {
        return list_spread(args);
    }
    let (_, sections) = input::profiled(&args.of.inputs, &args.of.input, &args.of.talk)?;
    let told = exact::source(sections.iter().map(|(section, _)| section));
    told.into_iter().for_each(|how| args.of.talk.note(input::NAME, how));
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    // Forms for programs hold one table: that of the functions unless the sites are asked for.
    let text = args.of.format == Format::Text;
    let only_sites = args.sites || (args.stacks && !text);
    if !only_sites {
        calls::functions(&sections).write(args.of.format, screen, &mut out)?;
    }
    if !only_sites && !args.functions && text {
        writeln!(out)?;
    }
    if only_sites || (!args.functions && text) {
        let tables = sections.iter().map(|(s, _)| &s.sites);
        let sites = args.symbols.call_sites((input::NAME, &args.of.talk), tables);
        calls::sites(&sections, args.stacks, &sites).write(args.of.format, screen, &mut out)?;
    }
    out.commit()?;
    Ok(Status::Ok)
}

fn list_sizes(args: &SizesArgs) -> Result<Status> {
    let read = sizes::Sizes::read(args)?;
    let sizes = read.parts();
    let mut out = Output::text(&args.output.output)?;
    let screen = Screen::of(&out);
    match args.by {
        Some(SizesBy::Frame) => sizes.frames().write(args.format, screen, &mut out)?,
        Some(SizesBy::Site) => sizes.sites()?.write(args.format, screen, &mut out)?,
        Some(SizesBy::Parameter) => sizes.parameters()?.write(args.format, screen, &mut out)?,
        None => {
            sizes.frames().write(args.format, screen, &mut out)?;
            if args.format == Format::Text {
                let mut largest = sizes.parameters()?;
                let rest = largest.rows.len().saturating_sub(TOP);
                largest.rows.truncate(TOP);
                writeln!(out)?;
                largest.write(Format::Text, screen, &mut out)?;
                if rest > 0 {
                    writeln!(out, "… and {rest} more (st-stat sizes --by parameter)")?;
                }
            }
        }
    }
    out.commit()?;
    Ok(Status::Ok)
}

fn list_violations(args: &ViolationsArgs) -> Result<Status> {
    let (survey, unmatched) = violations::find(args)?;
    unmatched.iter().for_each(|u| args.of.talk.warn(input::NAME, u));
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    let table = if args.pairs { violations::pairs(&survey) } else { violations::totals(&survey) };
    table.write(args.of.format, screen, &mut out)?;
    out.commit()?;
    Ok(Status::Ok)
}

fn list_clusters(args: &ClustersArgs) -> Result<Status> {
    let (whole, sections) = input::sections(&args.of.inputs, &args.of.input, &args.of.talk)?;
    let asked = args.asked.asked || clusters::by_asked(&whole.provenance);
    let budget = args.of.input.steps.budget();
    sections.iter().try_for_each(|section| budget.spend_ranks(section))?;
    let clustering =
        args.of.talk.progress(input::NAME, "clustering", Amount::Things("ranks", sections.len().to_u64()));
    let sections = clusters::found(sections, asked, &|n| clustering.advance(n))?;
    drop(clustering);
    let mains = clusters::mains(&sections, asked);
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    let grid = || Grid::new(&mains, &sections, args.width.and_then(|w| usize::try_from(w).ok()));
    if args.space {
        clusters::space(&mains, &sections)?.write(args.of.format, screen, &mut out)?;
    } else {
        let sites = args.symbols.call_sites((input::NAME, &args.of.talk), sections.iter().map(|s| &s.sites));
        clusters::table(&mains, asked, &sites)?.write(args.of.format, screen, &mut out)?;
        if args.of.format == Format::Text {
            writeln!(out)?;
            grid().draw(&mut out)?;
        }
    }
    let mut drawn = None;
    if let Some(path) = &args.draw {
        figure::not_called_a_trace("--draw", path, figure::PICTURE)?;
        let mut picture = Output::text(path)?;
        let drawing = picture::figure(&grid(), format!("{}: clusters", whole.header.command()))?;
        match path.extension().is_some_and(|e| e.eq_ignore_ascii_case("png")) {
            true => figure::png(&drawing, DPI, &mut picture)?,
            false => figure::svg(&drawing, &mut picture)?,
        }
        drawn = Some(picture.finish()?);
    }
    out.finish()?.commit()?;
    drawn.map_or(Ok(()), Finished::commit)?;
    Ok(Status::Ok)
}

/// By this much more than a limit is above it: less is what adding up makes of numbers that decimals wrote.
const MORE: f64 = 1.0 + 1e-12;

fn errors(args: &MapeArgs) -> Result<Status> {
    let runs = match &args.runs {
        Some(path) => mape::table(path)?,
        None => mape::pairs(&args.traces, &args.input, &args.talk)?,
    };
    let mut out = Output::text(&args.output.output)?;
    let screen = Screen::of(&out);
    mape::report(&runs).write(args.format, screen, &mut out)?;
    out.commit()?;
    let above = args.limit.is_some_and(|limit| mape::mape(&runs) > limit * MORE);
    Ok(if above { Status::Difference } else { Status::Ok })
}
