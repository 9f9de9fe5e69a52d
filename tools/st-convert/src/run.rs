//! The program.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use st_cli::{Amount, FailedCheck, Output, Screen, Status, UsageError, counted, engine, grouped, wrapped};
use st_explain::PhasesBy;
use st_model::num::{Exact as _, float};
use st_model::project;
use st_model::rank_times::rank_times;

use crate::NAME;
use crate::alike;
use crate::args::Args;
use crate::format::{Format, FormatKind, Summary};
use crate::formats;
use crate::groups::Groups;
use crate::import;
use crate::input::{Asked, Input, TooMany};
use crate::level::Level;
use crate::losses::Losses;
use crate::phases::{Handed, phases};
use crate::selection::{HOW, LACK};
use crate::series;
use crate::trace::{Lane, Trace};
use crate::walk::walk;
use crate::way::Way;
use crate::window::Window;

/// The program, from its command line to its exit status.
#[must_use]
pub fn main() -> ExitCode {
    engine::start(NAME, run)
}

/// Does what the command line asks for.
///
/// # Errors
///
/// If an input cannot be read or the output cannot be written, or if the format cannot hold what it is to hold.
pub fn run(args: &Args) -> Result<Status> {
    if args.list {
        return list().map(|()| Status::Ok);
    }
    let Some(output) = &args.output else { bail!(UsageError("no output: name one with -o".into())) };
    if import::is_wanted(args.to.as_deref(), output) {
        return import(args, output).map(|()| Status::Ok);
    }
    if args.read_as.is_some() {
        bail!(UsageError("--read-as: is for what others have written: --to st".into()));
    }
    let kind = chosen(args, output)?;
    check_options(kind, args)?;
    let read = |input: Input| Ok((input.named(), opened(kind, &input, args)?));
    let runs = inputs(kind, args).into_iter().map(read).collect::<Result<Vec<_>>>()?;
    if kind.is_series {
        series::check(&runs, kind.name, &args.talk)?;
    }
    let Some((_, first)) = runs.first() else { return Ok(Status::Ok) };
    let (mut format, mut losses) = ((kind.open)(output, first)?, Losses::default());
    for (number, (named, trace)) in runs.iter().enumerate() {
        if number > 0 {
            format.next_run(trace);
        }
        losses.take_in(written(trace, kind, named, args, &mut *format)?);
    }
    if args.strict && !losses.is_empty() {
        let lost = losses.listed();
        bail!(FailedCheck(format!("--strict: {} has no place for {lost}; nothing is written", kind.name)));
    }
    format.commit()?;
    losses.tell(NAME, kind.name, &args.talk);
    Ok(Status::Ok)
}

/// Makes a stream of what others have written.
fn import(args: &Args, output: &Path) -> Result<()> {
    let chooses = [
        ("--ranks", args.ranks.is_some()),
        ("--from", args.from.is_some()),
        ("--until", args.until.is_some()),
        ("--sites", !args.sites.is_empty()),
        ("--phase", args.phase.is_some()),
        ("--waits", args.waits),
        ("--level", args.level.is_some()),
        ("--by", args.by.is_some()),
        ("--symbols", !args.symbols.directories.is_empty()),
        ("--partial", args.input.partial),
    ];
    if let Some((option, _)) = chooses.iter().find(|(_, given)| *given) {
        bail!(UsageError(format!(
            "{option}: is for traces of st; what others have written is read as a whole"
        )));
    }
    let (inputs, read_as) = (&args.inputs[..], args.read_as.as_deref());
    let task =
        import::Task { inputs, read_as, strict: args.strict, steps: &args.input.steps, talk: &args.talk };
    import::run(task, output)
}

/// Refuses what a format cannot do.
fn check_options(kind: &FormatKind, args: &Args) -> Result<()> {
    if kind.whole_only && args.selection().is_part() {
        let name = kind.name;
        bail!(UsageError(format!(
            "{name} is played, which a part of the run cannot be, for messages cross its borders: leave out --from, --until, --phase and --sites"
        )));
    }
    let level = level(kind, args);
    if !kind.levels.contains(&level) {
        let (level, with) = (level.name(), having(|kind| kind.levels.contains(&level)));
        bail!(UsageError(format!("--level {level}: {} has no {level}; these have: {with}", kind.name)));
    }
    if level != Level::Phases && args.waits && !kind.has_waits {
        let with = having(|kind| kind.has_waits);
        bail!(UsageError(format!("--waits: {} has no waits; these have: {with}", kind.name)));
    }
    if level != Level::Phases && args.by.is_some() {
        bail!(UsageError("--by: is for --level phases".into()));
    }
    if level == Level::Phases && !args.sites.is_empty() {
        bail!(UsageError("--sites: chooses calls, and phases are written as a whole: leave it out".into()));
    }
    Ok(())
}

/// How much is written.
fn level(kind: &FormatKind, args: &Args) -> Level {
    args.level.or_else(|| kind.levels.first().copied()).unwrap_or_default()
}

/// The names of formats.
fn having(has: impl Fn(&FormatKind) -> bool) -> String {
    formats::ALL.iter().filter(|kind| has(kind)).map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

/// What is read as one trace each: everything or, for a series, each input.
fn inputs(kind: &FormatKind, args: &Args) -> Vec<Input> {
    let all = args.reads();
    if !kind.is_series || all.paths.is_empty() {
        return vec![all];
    }
    all.paths.iter().map(|path| Input { paths: vec![path.clone()], ..all.clone() }).collect()
}

/// Reads a trace, and says how much of it is written.
fn opened(kind: &FormatKind, input: &Input, args: &Args) -> Result<Trace> {
    let sums = alike::suffices(kind, level(kind, args));
    let asked = Asked { selection: args.selection(), sums };
    let (read, named) = (input.read(NAME, Some(&args.input.steps), Some(&asked)), input.named());
    let mut trace = match (read, needing_times(kind, args)) {
        // More steps would not help.
        (Err(e), Some(what)) if e.downcast_ref().is_some_and(|many: &TooMany| !many.timed) => {
            bail!(UsageError(format!("{named}: {LACK}, which {what} needs: {HOW}")))
        }
        (read, _) => read?,
    };
    if args.waits && !trace.is_timed() {
        bail!(UsageError(format!("{named}: {LACK}, which --waits needs: {HOW}")));
    }
    check_times(&trace, kind, &named, args)?;
    args.selection().narrow(&named, &mut trace)?;
    check_files(&trace, kind, args)?;
    trace.waits = args.waits;
    trace.level = level(kind, args);
    trace.by = args.by.unwrap_or_default();
    tell_size(&trace, kind, args);
    Ok(trace)
}

/// Writes a trace. What has no place is returned.
fn written(
    trace: &Trace,
    kind: &FormatKind,
    named: &str,
    args: &Args,
    format: &mut dyn Format,
) -> Result<Losses> {
    let progress = args.talk.progress(NAME, "converting", Amount::Things("calls", trace.events));
    let tell = |calls: u64| {
        progress.advance(calls);
        Ok(())
    };
    // Of an output that cannot be written the input is not to blame.
    let about = |e: anyhow::Error| if e.is::<project::Error>() { e.context(named.to_owned()) } else { e };
    if trace.level == Level::Phases {
        let mut handed = phases(trace, &args.input.steps, &tell, format).map_err(about)?;
        drop(progress);
        handed.losses.take_in(format.finish(&Summary { groups: &Groups::default() })?);
        tell_phases(&handed, trace, args);
        return Ok(handed.losses);
    }
    if alike::suffices(kind, trace.level)
        && alike::sums(trace, &args.input.steps.budget(), &tell, format).map_err(about)?
    {
        drop(progress);
        return format.finish(&Summary { groups: &Groups::default() });
    }
    let way = match (kind.by_rank || trace.level == Level::Summary, kind.whole_only) {
        (true, true) => Way::Played,
        (true, false) => Way::ByRank,
        (false, _) => Way::InTime,
    };
    let shared = walk(trace, way, &tell, format).map_err(about)?;
    drop(progress);
    let mut losses = format.finish(&Summary { groups: &shared.groups })?;
    tell_played(trace, kind, args);
    if trace.level == Level::Summary {
        let partly = trace.lanes.iter().filter(|lane| lane.timed > 0 && trace.sketches(lane).is_none());
        let untimed = partly.map(|lane| lane.calls.saturating_sub(lane.timed)).sum();
        losses.add("calls whose times are not known", untimed);
    }
    if trace.level == Level::Calls && !format.holds_all() {
        losses.take_in(shared.said.left_out(kind.lacks));
    }
    losses.take_in(shared.undrawn(trace.window.until != Window::ALL.until));
    losses.take_in(shared.losses);
    Ok(losses)
}

/// The formats, a line each.
fn list() -> Result<()> {
    let mut out = Output::text(Path::new("-"))?;
    let width = Screen::of(&out).width;
    listed(width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    out.commit()
}

/// The formats, with the endings of names that mean them, in lines of so many characters.
fn listed(width: usize) -> Vec<String> {
    let format = |name: &str, endings: &str, about: &str| {
        let others = " ".repeat(36);
        wrapped(about.split(' '), width, [&format!("{name:<9} {endings:<25} "), &others])
    };
    let written = formats::ALL.iter().map(|kind| format(kind.name, &kind.endings.join(" "), kind.about));
    let read = format!("a stream, of what others have written: {}", import::names().join(", "));
    written.chain([format(import::ST, import::ENDING, &read)]).flatten().collect()
}

/// The format that is asked for, or that the output's name tells.
fn chosen(args: &Args, output: &Path) -> Result<&'static FormatKind> {
    let named = args.to.as_deref().and_then(formats::by_name);
    let Some(kind) = named.or_else(|| formats::by_ending(output)) else {
        let output = output.display();
        let why =
            format!("{output}: the name does not tell the format: --to {}", formats::names().join(", "));
        bail!(UsageError(why));
    };
    Ok(kind)
}

/// What it is that exact times are needed for, if they are.
fn needing_times(kind: &FormatKind, args: &Args) -> Option<String> {
    if level(kind, args) == Level::Phases {
        return Some(format!("--level {}", Level::Phases.name()));
    }
    kind.needs_times.then(|| kind.name.to_owned())
}

/// Refuses a trace without the times that are needed.
fn check_times(trace: &Trace, kind: &FormatKind, named: &str, args: &Args) -> Result<()> {
    if trace.is_timed() {
        return Ok(());
    }
    let lack = format!("{named}: {LACK}");
    if let Some(what) = needing_times(kind, args) {
        bail!(UsageError(format!("{lack}, which {what} needs: {HOW}")));
    }
    // What is asked for by times is refused.
    if args.selection().needs_times() {
        return Ok(());
    }
    let summed = level(kind, args) == Level::Summary;
    if summed && trace.lanes.iter().all(|lane| trace.sketches(lane).is_some()) {
        return Ok(());
    }
    let how = match (summed, kind.by_rank) {
        (true, _) => "times are summed up only of ranks whose sums are exact",
        (false, true) => "calls are written without computation",
        (false, false) => {
            "calls are written by their positions, some of each thread at a time, without times"
        }
    };
    args.talk.warn(NAME, format_args!("{lack}: {how}"));
    Ok(())
}

/// Says how much shorter than the run a simulation may be.
fn tell_played(trace: &Trace, kind: &FormatKind, args: &Args) {
    if !kind.whole_only || !trace.is_timed() {
        return;
    }
    let times = || trace.sections.iter().flat_map(rank_times).filter(|time| trace.has(time.rank));
    let longest = times().map(|time| time.whole).max().unwrap_or(0);
    let computes = times().map(|time| time.computation()).max().unwrap_or(0);
    if longest == 0 {
        return;
    }
    let share = 100.0 * float(longest.saturating_sub(computes)) / float(longest);
    args.talk.note(
        NAME,
        format_args!(
            "a simulation may be up to {share:.1} % shorter than the run's {:.3} s: as long as the rank that computes longest is in MPI; what calls take themselves is not in it, but messages",
            float(longest) / 1e9
        ),
    );
}

/// Files beside those of threads, at most.
const FILES: u64 = 4;
/// Threads from which on it is said what readers need.
const MANY: u64 = 1000;

/// Refuses more files than are agreed to, and says what many take to read.
fn check_files(trace: &Trace, kind: &FormatKind, args: &Args) -> Result<()> {
    let threads = trace.lanes.len().to_u64();
    let files = |threads: u64| threads.saturating_mul(kind.files_each).saturating_add(FILES);
    let (name, most) = (kind.name, args.max_files);
    if kind.files_each > 0 && files(threads) > most {
        let room = most.saturating_sub(FILES) / kind.files_each;
        let (fit, rest) = trace.lanes.split_at_checked(room.to_usize()).unwrap_or_default();
        let whole = |lane: &&Lane| rest.first().is_none_or(|next| next.rank != lane.rank);
        let fits = fit.iter().rev().find(whole).map(|lane| lane.rank);
        let first = trace.lanes.first().map_or(0, |lane| lane.rank);
        let part =
            fits.map_or_else(String::new, |last| format!("--ranks {first}-{last} would be fewer, or "));
        bail!(UsageError(format!(
            "{name} would be some {} files for {}: {part}choose one rank of each cluster with --ranks (st-stat clusters); --max-files {} agrees to all",
            grouped(files(threads)),
            counted(threads, "thread"),
            files(threads)
        )));
    }
    if kind.files_each > 1 && threads > MANY {
        args.talk.note(
            NAME,
            format_args!(
                "who reads it may hold a file open for each thread, which ulimit -n must allow: more than {}, with 256 kB of memory each",
                grouped(threads)
            ),
        );
    }
    Ok(())
}

/// Says how much it will be, and what to do if that is more than who reads it bears.
fn tell_size(trace: &Trace, kind: &FormatKind, args: &Args) {
    let written = trace.written();
    let bytes = written.saturating_mul(kind.bytes);
    // Of call sites and phases it is known when calls are read.
    let most = if args.phase.is_some() || !args.sites.is_empty() { "at most " } else { "" };
    let (calls, size) = (trace.counted(), megabytes(bytes));
    let threads = counted(trace.lanes.len().to_u64(), "thread");
    if trace.level == Level::Phases {
        return args.talk.note(NAME, format_args!("{most}{calls} of {threads}, as phases"));
    }
    if kind.bytes == 0 || trace.level == Level::Summary {
        return args.talk.note(NAME, format_args!("{most}{calls} of {threads}, summed up"));
    }
    args.talk.note(NAME, format_args!("{most}{calls} of {threads}, some {size} of {}", kind.name));
    if bytes <= kind.bears {
        return;
    }
    let first = trace.lanes.iter().filter_map(|lane| lane.timed.checked_sub(1)).count();
    let part = float(kind.bears.into()) / float(bytes.into());
    let from = args.from.unwrap_or(0.0);
    if let Some(whole) = trace.run_time().filter(|_| first > 0 && args.until.is_none()) {
        let until = from + (whole - from) * part;
        args.talk.warn(
            NAME,
            format_args!(
                "what reads it bears some {}: --until {until:.3} would be that much, or choose --ranks",
                megabytes(kind.bears)
            ),
        );
    }
}

/// Says how many phases it was.
fn tell_phases(handed: &Handed, trace: &Trace, args: &Args) {
    let what = if trace.by == PhasesBy::Loop { "iteration" } else { "phase" };
    let written = [(handed.phases, what), (handed.between, "part")].map(|(n, what)| counted(n, what));
    args.talk.note(NAME, format_args!("{}, and {} between these", written[0], written[1]));
    if handed.loops > 0 {
        return;
    }
    let (none, other) = match trace.by {
        PhasesBy::Loop => {
            ("no loop around calls is known", "--by pcontrol, if the program says when phases begin")
        }
        PhasesBy::Pcontrol => ("the program does not say when phases begin", "--by loop"),
    };
    args.talk.warn(NAME, format_args!("{none}: what each rank does is one part, or try {other}"));
}

fn megabytes(bytes: u64) -> String {
    match bytes {
        0..10_000_000 => format!("{} kB", grouped(bytes.div_ceil(1000))),
        _ => format!("{} MB", grouped(bytes.div_ceil(1_000_000))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_formats_fits_its_width() {
        assert!(listed(80).iter().all(|line| line.chars().count() <= 80));
        assert_eq!(listed(usize::MAX).len(), formats::ALL.len() + 1);
    }
}
