//! st-record: starts an MPI job with the recorder preloaded, and packs what its ranks leave into one file.
//!
//! The recorder itself is `libst_pmpi.so` (crate st-pmpi), built once per MPI. This crate links no MPI: it finds out
//! which one a job uses ([`target`], [`launcher`]), hands the right recorder to the ranks ([`job`]), and afterwards
//! copies the ranks' sections into one stream ([`pack`]). It never decides how the job ends: its exit status passes
//! through.

pub mod args;
pub mod binary;
pub mod check;
pub mod clocks;
pub mod interim;
pub mod job;
pub mod launcher;
pub mod names;
pub mod pack;
mod recover;
pub mod rename;
pub mod size;
pub mod summary;
pub mod target;
pub mod trace_name;

use anyhow::{Context, Result};
use args::Args;
use clap::Parser;
use interim::Interim;
use job::Failure;
use pack::{Change, Job, Notes};
use st_tool::{Launch, Output, free_name};
use st_trace::header::Header;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant, UNIX_EPOCH};
use summary::{Ended, Summary};
use trace_name::numbered;

/// Name in messages.
pub const TOOL: &str = "st-record";

/// What helps where names are not found.
const NAME_LATER: &str = "st-record --name --symbols DIR TRACE names them later";

/// In a header's options, the number of a job that was not the only one of its recording, if it was not the first.
const JOB: &str = "job";

/// Exit status of a failure of our own before the program starts (as of `env`, `nohup`, `timeout`).
const FAILED: u8 = 125;
/// Exit status if there is no such program.
const NOT_FOUND: u8 = 127;

/// The program, from its command line to its exit status, which is the job's.
#[must_use]
pub fn main() -> ExitCode {
    match stand_in_words() {
        Some(words) => stand_in(&words),
        None => run(&Args::parse()),
    }
}

fn run(args: &Args) -> ExitCode {
    if let Some(option) = args.passed_on().filter(|_| Launch::current().is_none_or(|l| l.rank == 0)) {
        let text = "is passed on to the command that it follows; options of st-record come before that";
        args.talk.warn(TOOL, format_args!("{option} {text}"));
    }
    let ended = match Launch::current() {
        _ if args.check => return look(args),
        _ if args.name => return rename::run(args),
        _ if args.env => tell(args).map_err(Failure::from),
        _ if args.recover.is_some() => recover::recover(args).map_err(Failure::from),
        Some(launch) => inside(args, launch).map(|never| match never {}),
        None => outside(args),
    };
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(Failure::NotFound(command)) => {
            let option = command.as_encoded_bytes().starts_with(b"-");
            let hint = if option { "; options of st-record come before --" } else { "" };
            complain(&format!("{}: command not found{hint}", command.display()));
            ExitCode::from(NOT_FOUND)
        }
        Err(Failure::Own(e)) => {
            complain(&format!("{e:#}"));
            ExitCode::from(FAILED)
        }
    }
}

/// `--check`.
fn look(args: &Args) -> ExitCode {
    let report = check::check(&args.command, args.python);
    // A reader that has left wants no more.
    let _ = write!(io::stdout().lock(), "{report}");
    ExitCode::from(if report.problems.is_empty() { 0 } else { 4 })
}

/// `--env`.
fn tell(args: &Args) -> Result<u8> {
    let directory = args.output.clone().unwrap_or_else(|| PathBuf::from("run"));
    fs::create_dir_all(&directory).with_context(|| format!("{}: cannot create", directory.display()))?;
    let directory = fs::canonicalize(&directory).with_context(|| directory.display().to_string())?;
    let text = job::environment(args, &directory)?;
    let _ = write!(io::stdout().lock(), "{text}");
    Ok(0)
}

/// Called under the name of a launcher (see [`job::stand_in`]).
fn stand_in(words: &[OsString]) -> ExitCode {
    match job::stand_in(words) {
        Ok(never) => match never {},
        Err(e) => {
            complain(&format!("{e:#}"));
            ExitCode::from(FAILED)
        }
    }
}

fn inside(args: &Args, launch: Launch) -> Result<std::convert::Infallible, Failure> {
    if args.must_record {
        return Err(
            anyhow::anyhow!("--must-record is for a whole job: st-record --must-record -- mpirun …").into()
        );
    }
    if let Some(no) = missing(args.only.as_deref(), launch.size).filter(|_| launch.rank == 0) {
        args.talk.warn(TOOL, no);
    }
    let directory = args.output.clone().unwrap_or_else(|| {
        let name = Path::new(&args.command[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
        PathBuf::from(format!("{name}-{}r", launch.size))
    });
    fs::create_dir_all(&directory).with_context(|| format!("{}: cannot create", directory.display()))?;
    let directory = fs::canonicalize(&directory).with_context(|| directory.display().to_string())?;
    let variable = |name: &str| env::var(name).ok();
    let own = env::args_os().next();
    if args.sync || args.no_sync || clocks::all_recorded(&launch, own.as_deref(), variable) {
        return job::become_rank(args, &directory, launch.mpi);
    }
    if launch.rank == 0 && !clocks::one_node(&launch, variable) {
        args.talk.note(
            TOOL,
            "clocks are not compared: cannot tell whether all ranks of the job are recorded (--sync if they are)",
        );
    }
    job::become_rank(&Args { no_sync: true, ..args.clone() }, &directory, launch.mpi)
}

fn outside(args: &Args) -> Result<u8, Failure> {
    // Beside the result, so that packing moves nothing between file systems.
    let home = match args.output.as_deref().and_then(Path::parent) {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let home = fs::canonicalize(&home).with_context(|| format!("{}: no such directory", home.display()))?;
    for left in recover::left_in(&home) {
        let left = left.display();
        args.talk.note(
            TOOL,
            format_args!("{left} is of a recording that was cut off: st-record --recover {left}"),
        );
    }
    let directory = tempfile::Builder::new()
        .prefix(recover::PREFIX)
        .tempdir_in(&home)
        .with_context(|| format!("{}: cannot create a directory", home.display()))?;
    let name = args.output.as_ref().map_or_else(String::new, |o| o.display().to_string());
    pack::begin_notes(directory.path(), &name).context("writing to our directory")?;
    let mut command = job::command(args, directory.path())?;
    if let Some(output) = &args.output {
        if output.is_dir() {
            let output = output.display();
            return Err(anyhow::anyhow!(
                "{output}: is a directory; -o names the file that the trace becomes"
            )
            .into());
        }
        clear(output)?;
        if output.as_os_str() == "-" {
            // What the program prints must not come between the bytes of the trace.
            let stderr = io::stderr().as_fd().try_clone_to_owned();
            command.stdout(stderr.context("standard error")?);
        }
    }
    args.talk.detail(
        TOOL,
        format_args!("until it is packed, what is recorded is in {}", directory.path().display()),
    );
    args.talk.detail(TOOL, format_args!("{command:?}"));
    let start = Instant::now();
    let status = job::run(command)?;
    let code = exit_code(status);
    match finish(args, directory.path(), start.elapsed(), status) {
        Ok(true) => Ok(code),
        Ok(false) => Ok(if code == 0 && args.must_record { FAILED } else { code }),
        // The job has ended as it has; only where it says nothing do we.
        Err(e) => {
            complain(&format!("{e:#}"));
            let kept = directory.keep();
            let kept = kept.display();
            complain(&format!(
                "what the ranks recorded stays in {kept}: st-record --recover {kept} packs it"
            ));
            Ok(if code == 0 { 1 } else { code })
        }
    }
}

/// Removes what an earlier recording has left under the name of this one: it must not be taken for this one's if that leaves
/// nothing. A link stays, and what is no file.
fn clear(output: &Path) -> Result<()> {
    let later = (2..).map(|n| (n, numbered(output, n))).take_while(|(_, path)| path.is_file());
    let later = later.filter(|(n, path)| is_of_job(path, *n, output)).map(|(_, path)| path);
    for path in std::iter::once(output.to_owned()).chain(later) {
        let beside = |name: &str| path.with_extension(format!("{name}.st"));
        let spawned = (1..).map(|n| beside(&format!("spawn-{n}"))).take_while(|path| path.is_file());
        for path in [path.clone(), beside("rest")].into_iter().chain(spawned) {
            if let Ok(file) = fs::canonicalize(&path)
                && file.is_file()
            {
                fs::remove_file(&file).with_context(|| format!("{}: cannot replace", path.display()))?;
            }
        }
    }
    Ok(())
}

/// Whether a trace is, untouched since, that of this job of a recording with this output.
fn is_of_job(path: &Path, number: u32, output: &Path) -> bool {
    let Ok(reader) = pack::open(path) else { return false };
    let [step] = reader.provenance() else { return false };
    let asked = Args::try_parse_from(std::iter::once(TOOL).chain(step.args.iter().map(String::as_str)));
    let named = asked.is_ok_and(|a| a.output.is_some_and(|asked| asked.file_name() == output.file_name()));
    named && reader.header().options.get(JOB).and_then(|job| job.as_u64()) == Some(number.into())
}

/// The job's exit status; 128 + n if signal n ended it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|s| 128 + s));
    code.and_then(|c| u8::try_from(c).ok()).unwrap_or(1)
}

/// Packs the streams and says so. Returns whether all ranks that were to be recorded are in the traces.
fn finish(args: &Args, directory: &Path, elapsed: Duration, status: ExitStatus) -> Result<bool> {
    let launched = |job: &Job| matches!(job, Job::Launched(..));
    let jobs = pack::jobs(directory)?.iter().filter(|job| launched(job)).count();
    let ended = Ended { elapsed, status };
    let mut complete = true;
    let mut first = None;
    let packed = each_job(args, directory, Path::new(""), |job, saved, notes| {
        let Some((saved, packing)) = saved else {
            let which = if jobs > 1 { format!("{job}: ") } else { String::new() };
            if launched(job) {
                complain(&format!("{which}{}", nothing(args, notes)));
            }
            complete &= !launched(job);
            return;
        };
        let summary = Summary {
            file: match saved.target.display().to_string() {
                piped if piped == "-" => "standard output".to_owned(),
                file => file,
            },
            bytes: fs::metadata(&saved.target).ok().filter(fs::Metadata::is_file).map(|file| file.len()),
            time_bytes: saved.time_bytes,
            packing,
            notes,
            ranks: saved.ranks,
            world: recorded(&saved.header),
            ended: (jobs == 1).then_some(&ended),
        };
        if !launched(job) {
            args.talk.note(TOOL, format_args!("{}, of a spawned job", summary.what()));
            return;
        }
        args.talk.note(TOOL, summary.line());
        for more in [summary.interims(), summary.merging()].into_iter().flatten() {
            args.talk.detail(TOOL, more);
        }
        if let Some(no) = missing(args.only.as_deref(), saved.header.world) {
            args.talk.warn(TOOL, no);
        }
        if let Some(hint) = summary.hint(args.python) {
            args.talk.note(TOOL, hint);
        }
        complete &= summary.ranks >= summary.world && notes.failed.0 == 0;
        if summary.bytes.is_some() {
            first.get_or_insert(saved.target);
        }
    });
    if jobs > 1 {
        args.talk.note(TOOL, format_args!("{jobs} jobs{}", ended.words()));
    }
    if let Some(first) = first {
        args.talk.note(TOOL, format_args!("next: st-stat {}", first.display()));
    }
    packed.map(|()| complete)
}

/// Packs what each job has left, one after the other, and hands it, with the time that it took and what the job's ranks said,
/// to `told`; of one that has left nothing, nothing. If one cannot be packed the others still are.
fn each_job(
    args: &Args,
    directory: &Path,
    home: &Path,
    mut told: impl FnMut(&Job, Option<(Saved, Duration)>, &Notes),
) -> Result<()> {
    let mut result = Ok(());
    let mut first: Option<PathBuf> = None;
    for job in pack::jobs(directory)? {
        let begun = Instant::now();
        let read = Notes::read(job.directory());
        let mut notes = if let Job::Launched(1, _) = job { read? } else { read.unwrap_or_default() };
        let saved = save(args, &job, &mut notes, |header| match &job {
            Job::Launched(number, _) => named(args, header, home, *number),
            Job::Spawned(name, _) => {
                let first = first.clone().unwrap_or_else(|| named(args, header, home, 1));
                first.with_extension(format!("{name}.st"))
            }
        });
        match saved {
            Ok(saved) => {
                first = first.or_else(|| saved.as_ref().map(|s| s.target.clone()));
                told(&job, saved.map(|saved| (saved, begun.elapsed())), &notes);
            }
            Err(e) if result.is_ok() => result = Err(e),
            Err(e) => complain(&format!("{e:#}")),
        }
    }
    result
}

/// A trace's name: the one asked for, of later jobs with the first number from theirs on that is free, or one in a directory that
/// follows from the program's name.
fn named(args: &Args, header: &Header, home: &Path, number: u32) -> PathBuf {
    // What is no file, standard output or a device, takes one trace.
    let takes = |o: &&PathBuf| {
        number == 1 || o.as_os_str() != "-" && fs::metadata(o).map_or(true, |found| found.is_file())
    };
    let Some(asked) = args.output.as_ref().filter(takes) else {
        let program = if args.naming.anonymise { "trace" } else { &header.program };
        let app = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        return free_name(&home.join(format!("{app}-{}r.st", header.world)));
    };
    let later = (number.max(2)..).map(|n| numbered(asked, n));
    let mut all = std::iter::once(asked.clone()).filter(|_| number == 1).chain(later);
    all.find(|path| number == 1 || fs::symlink_metadata(path).is_err()).unwrap_or_else(|| asked.clone())
}

/// Why there is no trace.
fn nothing(args: &Args, notes: &Notes) -> String {
    if let (ranks @ 1.., why) = &notes.failed {
        return format!("there is no trace: {ranks} ranks could not record; the first says: {why}");
    }
    if let Some(world) = notes.world {
        if let Some(no) = missing(args.only.as_deref(), world) {
            return format!("there is no trace: {no}");
        }
        return format!("there is no trace: none of the job's {world} ranks has left one");
    }
    let mut text = "no MPI call was seen, and there is no trace: does the program use MPI, is it started by a launcher, did it reach \
                    MPI_Init? Calls of an MPI library that it loads itself (dlopen) are not seen"
        .to_owned();
    for launcher in check::out_of_reach(&args.command) {
        text.push_str(&format!("; nor is what the script starts by {launcher}, with its full path"));
    }
    text
}

/// Which of the ranks that were asked for do not exist in a job of so many.
fn missing(only: Option<&str>, world: u32) -> Option<String> {
    let ranks = st_trace::ranklist_notation::parse_any(only?).ok()?;
    let mut beyond = ranks.iter().filter(|rank| *rank >= world);
    let first = beyond.next()?;
    let more = if beyond.next().is_some() { " (and others)" } else { "" };
    Some(format!(
        "--only: there is no rank {first}{more}; the job has ranks 0 to {}",
        world.saturating_sub(1)
    ))
}

/// A trace that has been written.
struct Saved {
    target: PathBuf,
    header: Header,
    /// Number of ranks in it.
    ranks: u64,
    /// Bytes of exact times in it.
    time_bytes: u64,
}

/// Writes what a job's ranks have left as one stream, whose name follows from its header. Where some have left nothing
/// but what all had before, it is that, and what the others left is beside it. Nothing of ranks that have left nothing at all.
fn save(
    args: &Args,
    job: &Job,
    notes: &mut Notes,
    name: impl FnOnce(&Header) -> PathBuf,
) -> Result<Option<Saved>> {
    let directory = job.directory();
    let left = pack::streams(directory, notes, |why| args.talk.warn(TOOL, why))?;
    let interim = if notes.merged { None } else { Interim::of(directory, &left)? };
    let streams = interim.as_ref().map_or(&left[..], |interim| std::slice::from_ref(&interim.path));
    if streams.is_empty() {
        return Ok(None);
    }
    let write = |streams: &[PathBuf], header: &Header, target: &Path| {
        let mut change = Change::new(&args.naming);
        // A trace without names is better than none.
        if let Some(started) = args.naming.wanted().then(|| UNIX_EPOCH + Duration::from_nanos(header.started))
        {
            match names::sites(streams) {
                Ok(sites) => {
                    let found = names::look_up(&sites, args.naming.symbols.clone(), started, names::LIMIT);
                    found
                        .missing
                        .iter()
                        .for_each(|why| args.talk.warn(TOOL, format_args!("{why} ({NAME_LATER})")));
                    change.names = found.names;
                }
                Err(why) => args.talk.warn(TOOL, format_args!("call sites are not named: {why:#}")),
            }
        }
        let mut output = Output::stream(target)?;
        let times = pack::pack(streams, header, change, &args.talk, &mut output)?;
        output.commit().map(|()| times)
    };
    let mut header = pack::header(streams)?;
    // The ranks' headers were written in MPI_Init; they said more at the end.
    header
        .bindings
        .extend(notes.bindings.iter().filter(|b| !header.bindings.contains(b)).cloned().collect::<Vec<_>>());
    if let Job::Launched(number @ 2.., _) = job {
        header.options.insert(JOB.to_owned(), (*number).into());
    }
    let target = name(&header);
    let time_bytes = write(streams, &header, &target)?;
    let Some(interim) = interim else {
        let ranks = if notes.merged { recorded(&header) } else { u64::try_from(left.len()).unwrap_or(0) };
        return Ok(Some(Saved { target, header, ranks, time_bytes }));
    };
    args.talk.warn(TOOL, interim.line(&target.display().to_string()));
    if !left.is_empty() {
        let rest = target.with_extension("rest.st");
        write(&left, &pack::header(&left)?, &rest)?;
        args.talk.warn(TOOL, format_args!("{}: what the others left", rest.display()));
    }
    (notes.calls, notes.ended) = (interim.calls, interim.world.into());
    Ok(Some(Saved { target, header, ranks: interim.world.into(), time_bytes }))
}

/// Number of ranks that were to be recorded.
fn recorded(header: &Header) -> u64 {
    let only = header.options.get("only").and_then(|v| v.as_str());
    match only.and_then(|t| st_trace::ranklist_notation::parse_any(t).ok()) {
        Some(ranks) => ranks.iter().filter(|r| *r < header.world).count() as u64,
        None => u64::from(header.world),
    }
}

fn complain(message: &str) {
    // Standard error may be closed; there is nowhere left to say so.
    let _ = writeln!(io::stderr().lock(), "{TOOL}: {message}");
}

/// The words that this process was started with, if its name is a launcher's.
fn stand_in_words() -> Option<Vec<OsString>> {
    let words: Vec<_> = env::args_os().collect();
    words.first().is_some_and(|w| launcher::is_launcher(w)).then_some(words)
}
