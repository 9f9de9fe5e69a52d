//! From the command line to running ranks: inside a job by becoming its engine, outside by starting `mpirun`.

use st_model::num::narrow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::available_parallelism;

use anyhow::{Context, Result, bail};
use st_cli::{
    Amount, FailedCheck, Input, InvalidStream, Launch, Mpi, Output, Status, UsageError, Whole, counted,
    each_section, engine,
};
use st_model::header::Header;
use tempfile::NamedTempFile;

use crate::TOOL;
use crate::args::Args;
use crate::check::{Checker, Verdict};
use crate::cut::{Cutter, Stop};
use crate::factor::Factor;
use crate::preflight::{Preflight, summary};
use crate::supported::Where;
use crate::whatif::{WhatIf, placement};

/// How the program ended.
enum Ended {
    /// Without starting ranks.
    Here(Status),
    /// With the exit status of the ranks' launcher.
    Ranks(u8),
}

/// The program, from its command line to its exit status.
#[must_use]
pub fn main() -> ExitCode {
    let args = match engine::parse(TOOL) {
        Ok(args) => args,
        Err(code) => return code,
    };
    match run(&args) {
        Ok(Ended::Here(status)) => st_cli::report(TOOL, Ok(status)),
        Ok(Ended::Ranks(code)) => ExitCode::from(code),
        Err(error) => st_cli::report(TOOL, Err(error)),
    }
}

/// Does what the command line asks for. Inside a job, returns only on failure.
fn run(args: &Args) -> Result<Ended> {
    let job = Launch::current();
    if let Some(job) = job.filter(|_| !args.list && !args.check) {
        if args.trace.as_os_str() == "-" {
            bail!(UsageError("inside a job, name the trace: standard input reaches one rank only".into()));
        }
        let job = Launch { mpi: args.mpi.or(job.mpi), ..job };
        match engine::become_engine(TOOL, &job)? {}
    }
    let spooled = spool(&args.trace, args)?;
    let trace = spooled.as_ref().map_or(args.trace.as_path(), |file| file.path());
    let (preflight, whole) = survey_under(trace, args)?;
    remark(&preflight, &whole, args);
    let header = whole.header;
    if args.list {
        list(&preflight, job.map(|j| j.rank))?;
        return Ok(Ended::Here(Status::Ok));
    }
    if args.check {
        let first = job.is_none_or(|j| j.rank == 0);
        return Ok(Ended::Here(if first { verdict(trace, &preflight, &header, args)? } else { Status::Ok }));
    }
    check(&preflight, &header, args)?;
    start(args, trace, recorded(&header), preflight.world(&header))
}

/// Looks at the whole trace, also for functions that the MPI does not have, where it is known which that is.
fn survey_under(trace: &Path, args: &Args) -> Result<(Preflight, Whole)> {
    let (preflight, whole) = survey(trace, args, HashSet::new())?;
    if !knows_mpi(args) {
        return Ok((preflight, whole));
    }
    // Without an engine nothing is known of it.
    let lacking =
        choose(args.mpi, recorded(&whole.header)).ok().map(|mpi| lacking(mpi, preflight.functions()));
    match lacking.transpose()?.filter(|lacking| !lacking.is_empty()) {
        Some(lacking) => survey(trace, args, lacking),
        None => Ok((preflight, whole)),
    }
}

/// Whether this process knows which MPI the ranks will have: a launcher that the user names may be that of any.
fn knows_mpi(args: &Args) -> bool {
    args.list || args.check || args.mpirun.is_none()
}

/// Which of these functions an MPI does not have: what is linked to it says so.
fn lacking(mpi: Mpi, functions: &BTreeSet<String>) -> Result<HashSet<String>> {
    let file = mpi.find(engine::ENGINE)?;
    let asked = Command::new(&file).arg(engine::LACKING).args(functions).output();
    let answer = asked.with_context(|| format!("{}: cannot start", file.display()))?;
    if !answer.status.success() {
        let said = String::from_utf8_lossy(&answer.stderr);
        bail!("{}: {}: {}", file.display(), answer.status, said.trim_end());
    }
    Ok(String::from_utf8_lossy(&answer.stdout).lines().map(str::to_owned).collect())
}

/// The MPI under which the program ran.
fn recorded(header: &Header) -> Option<Mpi> {
    Mpi::ALL.into_iter().find(|mpi| mpi.name() == header.mpi.flavour)
}

/// Looks at the whole trace, under an MPI without these functions.
///
/// # Errors
///
/// If it cannot be read.
pub fn survey(trace: &Path, args: &Args, lacking: HashSet<String>) -> Result<(Preflight, Whole)> {
    let here = Where { files: args.io.is_some(), lacking };
    let left_out = args.skip_unsupported.then(|| here.clone());
    let mut checker = (!args.unchecked && !args.list).then(|| Checker::new(args.scale_bytes, left_out));
    let mut preflight = Preflight::new(here, args.scale_bytes);
    let mut found = HashSet::new();
    let budget = args.input.steps.budget();
    let shown = args.input.shown(TOOL, &args.talk);
    let whole = each_section(&[trace.to_owned()], &shown, |_, section| {
        if !args.unchecked && budget.spend(&section, None, 1).is_err() {
            return Ok(());
        }
        if !args.scale.is_empty() {
            found.extend(WhatIf::new(&section, args).found().iter().cloned());
        }
        if let Some(checker) = &mut checker {
            checker.see(&section)?;
        }
        Ok(preflight.see(&section)?)
    })?;
    budget.check()?;
    let open = checker.as_ref().map_or(0, Checker::open_channels);
    let matching = args.talk.progress(TOOL, "matching", Amount::Things("channels", open));
    preflight.judged(checker.map(|c| c.finish(&args.symbols, &|n| matching.advance(n))));
    drop(matching);
    if let Some(scaled) = args.scale.iter().find(|s| !found.contains(&s.what)) {
        bail!(UsageError(format!("--scale: the trace has no function or call site {}", scaled.what)));
    }
    Ok((preflight, whole))
}

/// Says what is to be known of a trace, and of its replay if there is to be one.
pub fn remark(preflight: &Preflight, whole: &Whole, args: &Args) {
    let talk = &args.talk;
    whole.remark(TOOL, talk);
    for why in &preflight.verdict().unnamed {
        talk.warn(TOOL, format_args!("{why} (--symbols DIR)"));
    }
    if args.list || args.check {
        return;
    }
    if let Some(failed) = &preflight.verdict().failed {
        talk.warn(TOOL, failed);
    }
    if preflight.has_histograms() {
        talk.detail(TOOL, "parameters are histograms: messages are drawn");
    }
    if preflight.has_unknown_order() {
        talk.note(
            TOOL,
            "times are drawn, and no operation of all ranks tells in which order ranks were slow: where they were at the same time, \
             this replay is too slow; where they were in turns and wait only for neighbours, too fast (a trace with exact times is \
             neither: st-merge --keep-columns)",
        );
    }
    let unsupported = preflight.unsupported();
    if args.skip_unsupported && !unsupported.is_empty() {
        talk.warn(TOOL, format_args!("{}; left out", summary(&unsupported)));
    }
}

/// Where each rank stops, if it is to stop before its end, under an MPI without these functions.
///
/// # Errors
///
/// If the trace cannot be read.
pub fn stops(trace: &Path, args: &Args, lacking: HashSet<String>) -> Result<Option<BTreeMap<u32, Stop>>> {
    let Some(limit) = args.stop_after else { return Ok(None) };
    let left_out = args.skip_unsupported.then_some(Where { files: args.io.is_some(), lacking });
    let mut cutter = Cutter::new(limit, args.scale_bytes.unwrap_or(Factor::ONE), left_out);
    each_section(&[trace.to_owned()], &args.input, |_, section| Ok(cutter.see(&section)?)).map(drop)?;
    Ok(Some(cutter.finish()))
}

/// A copy of standard input, if the trace comes from there: every rank opens it for itself.
fn spool(trace: &Path, args: &Args) -> Result<Option<NamedTempFile>> {
    if trace.as_os_str() != "-" {
        return Ok(None);
    }
    let mut input = Input::open(trace, &args.input.steps)?;
    let what = "temporary copy of standard input";
    // Errors name it.
    let mut copy =
        tempfile::Builder::new().prefix("standard-input-").suffix(".st").tempfile().context(what)?;
    io::copy(&mut input, copy.as_file_mut()).context(what)?;
    Ok(Some(copy))
}

/// Prints the unsupported calls, one a line with their number; on one rank of a job only.
fn list(preflight: &Preflight, rank: Option<u32>) -> Result<()> {
    use std::io::Write as _;
    if rank.unwrap_or(0) == 0 {
        let mut out = Output::text(Path::new("-"))?;
        for u in preflight.unsupported().into_iter().chain(preflight.ignored()) {
            writeln!(out, "{}\t{}", u.name, u.calls)?;
        }
        out.commit()?;
    }
    Ok(())
}

/// Prints what the check found.
fn verdict(trace: &Path, preflight: &Preflight, header: &Header, args: &Args) -> Result<Status> {
    use std::io::Write as _;
    possible(preflight, header, args)?;
    let mut out = Output::text(Path::new("-"))?;
    let unsupported = Some(preflight.unsupported()).filter(|u| !u.is_empty() && !args.skip_unsupported);
    let verdict = preflight.verdict();
    // A replay that stops before its end does not come to where they end.
    let unfinished = verdict.unfinished.clone().filter(|_| args.stop_after.is_none());
    let faults = unsupported.map(|u| summary(&u)).into_iter().chain(verdict.faults.iter().cloned());
    let mut faults = faults.chain(unfinished);
    let mut n = 0;
    faults.try_for_each(|fault| {
        n += 1;
        writeln!(out, "{fault}")
    })?;
    let Verdict { calls, messages, channels, operations, .. } = verdict;
    let seen = [(calls, "call"), (messages, "message"), (channels, "channel"), (operations, "collective")];
    let [calls, messages, channels, operations] = seen.map(|(n, what)| counted(*n, what));
    let seen = format_args!("{calls}, {messages} on {channels}, {operations}");
    let trace = if args.trace.as_os_str() == "-" { &args.trace } else { trace };
    match n {
        0 => writeln!(out, "{}: ok: {seen}", trace.display())?,
        n => writeln!(
            out,
            "{}: cannot be replayed to its end: {} in {seen}",
            trace.display(),
            counted(n, "fault")
        )?,
    }
    if let Some(failed) = &verdict.failed {
        writeln!(out, "{failed}")?;
    }
    out.commit()?;
    Ok(if n == 0 { Status::Ok } else { Status::Difference })
}

/// Whether all ranks and all their parameters are there, and what is wished can be.
fn possible(preflight: &Preflight, header: &Header, args: &Args) -> Result<()> {
    let (world, trace) = (preflight.world(header), args.trace.display());
    let missing = preflight.missing(world);
    if let Some(first) = missing.lowest() {
        let n = missing.len();
        bail!(InvalidStream(format!(
            "{trace}: {n} of {world} ranks are missing, the first of them rank {first}"
        )));
    }
    if preflight.has_histograms() {
        if let Some(reason) = preflight.undrawable() {
            bail!(FailedCheck(format!(
                "{trace}: parameters are histograms, and {reason}: messages cannot be drawn; replay the trace as \
                 recorded, or merged without --histogram and --force-merge"
            )));
        }
        if args.stop_after.is_some() {
            bail!(UsageError(format!(
                "{trace}: parameters are histograms: --stop-after needs messages that are known"
            )));
        }
    }
    if args.stop_after.is_some() && preflight.has_threads() {
        bail!(UsageError(format!(
            "{trace}: ranks have several threads: --stop-after stops ranks of one thread only"
        )));
    }
    placement(args, world)?;
    Ok(())
}

/// Checks that all ranks and all their parameters are there, that what is wished can be, and that the trace comes to its end, and
/// fails where calls cannot be replayed, unless they are to be left out.
///
/// # Errors
///
/// If a rank is missing, if parameters are histograms and messages cannot be drawn, if a wish cannot be fulfilled, if there are such
/// calls and `--skip-unsupported` was not given, or if what ranks do does not match.
pub fn check(preflight: &Preflight, header: &Header, args: &Args) -> Result<()> {
    possible(preflight, header, args)?;
    let unsupported = preflight.unsupported();
    if !args.skip_unsupported && !unsupported.is_empty() {
        let files = if preflight.leaves_out_files() { "replay files with --io, " } else { "" };
        let (trace, summary) = (args.trace.display(), summary(&unsupported));
        bail!("{trace}: {summary}; {files}leave them out with --skip-unsupported");
    }
    if let Some((first, more)) = preflight.verdict().faults.split_first() {
        let trace = args.trace.display();
        let more = if more.is_empty() { String::new() } else { format!(" (and {} more)", more.len()) };
        bail!(FailedCheck(format!(
            "{trace}: cannot be replayed: {first}{more}; st-replay --check lists all, --unchecked replays it all the same"
        )));
    }
    Ok(())
}

/// Starts this program once per rank.
fn start(args: &Args, trace: &Path, recorded: Option<Mpi>, world: u32) -> Result<Ended> {
    let exe = env::current_exe().context("this program's own path is unknown")?;
    let words = match &args.mpirun {
        Some(command) => command.split_whitespace().map(OsString::from).collect(),
        None => {
            let mpi = choose(args.mpi, recorded)?;
            let mut words = vec![mpirun(mpi)?.into_os_string()];
            let cores = available_parallelism().map_or(1, usize::from);
            if mpi == Mpi::Openmpi && usize::try_from(world).is_ok_and(|n| n > cores) {
                words.push("--oversubscribe".into());
            }
            words
        }
    };
    let (program, options) = words.split_first().context("--mpirun names no program")?;
    let mut command = Command::new(program);
    command.args(options).arg("-n").arg(world.to_string()).arg(exe);
    // This process has checked for them, and has said what is to be said. What is left out depends on their MPI.
    if !args.unchecked && (!args.skip_unsupported || knows_mpi(args)) {
        command.arg("--unchecked");
    }
    command.arg("--said");
    if !args.progress && !args.talk.quiet && io::stderr().is_terminal() {
        command.arg("--progress");
    }
    // The same command line, but with the copy in place of standard input. What follows `--` in it is no option.
    for word in env::args_os().skip(1) {
        command.arg(if word == "-" { trace.as_os_str().to_owned() } else { word });
    }
    args.talk.detail(TOOL, format_args!("{command:?}"));
    // Open MPI's launcher does not say when it cannot write what ranks print: it gives it to this program.
    let out = args.prints().then(|| Output::text(Path::new("-"))).transpose()?;
    if out.is_some() {
        command.stdout(Stdio::piped());
    }
    let mut ranks =
        command.spawn().with_context(|| format!("{}: cannot start", Path::new(program).display()))?;
    let printed = out.map_or(Ok(()), |out| print(&mut ranks, out));
    let status = ranks.wait().with_context(|| Path::new(program).display().to_string())?;
    let code = status.code().with_context(|| format!("{}: {status}", Path::new(program).display()))?;
    // Ranks that failed have said why.
    if code == 0 {
        printed?;
    }
    Ok(Ended::Ranks(narrow(code)))
}

/// Passes on what ranks print, to its end.
fn print(ranks: &mut Child, mut out: Output) -> Result<()> {
    let Some(mut printed) = ranks.stdout.take() else { return Ok(()) };
    let copied = io::copy(&mut printed, &mut out);
    // Ranks that can print no more would wait, or fail.
    io::copy(&mut printed, &mut io::sink()).context("what the ranks print")?;
    copied?;
    out.commit()
}

/// The MPI to replay under: the one asked for, the recorded one, or whatever has both launcher and engine.
fn choose(wanted: Option<Mpi>, recorded: Option<Mpi>) -> Result<Mpi> {
    if let Some(mpi) = wanted {
        mpi.find(engine::ENGINE)?;
        return Ok(mpi);
    }
    let usable = |mpi: &Mpi| mpi.find(engine::ENGINE).is_ok() && mpirun(*mpi).is_ok();
    let mut order = recorded.into_iter().chain(Mpi::ALL);
    order.find(usable).context(
        "no MPI has both its mpirun in PATH and an engine beside this program; `make build` makes the engines",
    )
}

/// The launcher of an MPI: with Debian's suffix, or plain.
fn mpirun(mpi: Mpi) -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    [format!("mpirun.{}", mpi.name()), "mpirun".to_owned()]
        .iter()
        .flat_map(|name| env::split_paths(&path).map(move |directory| directory.join(name)))
        .find(|file| File::open(file).is_ok())
        .with_context(|| format!("no mpirun of {mpi} in PATH; name one with --mpirun"))
}
