//! st-record: starts an MPI job with the recorder preloaded, and packs what its ranks leave into one file.
//!
//! The recorder itself is `libst_pmpi.so` (crate st-pmpi), one for all MPIs. This crate finds out how a job is started
//! ([`target`], [`launcher`]), hands the recorder to its ranks ([`job`]), and afterwards
//! copies the ranks' sections into one stream ([`pack`]). It never decides how the job ends: its exit status passes
//! through.

pub mod args;
mod ask;
pub mod binary;
pub mod by_path;
pub mod check;
pub mod clocks;
pub mod env_list;
pub mod exports;
pub mod failed;
mod forecast;
pub mod interim;
mod interpreter;
pub mod job;
pub mod launcher;
pub mod left_out;
pub mod levels;
pub mod names;
pub mod notes;
pub mod pack;
pub mod preloads;
mod recover;
pub mod rename;
mod save;
pub mod script;
pub mod summary;
pub mod target;
mod tool;
pub mod trace_name;
pub mod wrapped_command;

use anyhow::{Context, Result};
use args::Args;
use forecast::Forecaster;
use job::Failure;
use notes::Notes;
use pack::Job;
use save::{clear, each_job, recorded};
use st_cli::{Launch, Output, counted, engine, typed};
use st_model::num::narrow;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};
use summary::{Ended, Summary};
pub use tool::TOOL;
use tool::complain;

/// Exit status of a failure of our own before the program starts (as of `env`, `nohup`, `timeout`).
const FAILED: u8 = 125;
/// Exit status if there is no such program, and if there is but it cannot be started (as of shells).
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// The program, from its command line to its exit status, which is the job's.
#[must_use]
pub fn main() -> ExitCode {
    if let Some(library) = env::var_os(ask::LIBRARY) {
        let told = ask::answer(&library).is_some_and(|text| print(text.as_bytes()).is_ok());
        return if told { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    match stand_in_words() {
        Some(words) => stand_in(&words),
        None => engine::parse(TOOL).map_or_else(|code| code, |args| run(&args)),
    }
}

fn run(args: &Args) -> ExitCode {
    if let Some(option) = args.passed_on().filter(|_| Launch::current().is_none_or(|l| l.rank == 0)) {
        let text = "is passed on to the command that it follows; options of st-record come before that";
        args.talk.warn(TOOL, format_args!("{option} {text}"));
    }
    if let Some([option, without]) = args.idle() {
        complain(&format!("{option} says nothing without {without}"));
        return ExitCode::from(FAILED);
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
            let words = command.as_encoded_bytes();
            let path = Path::new(&command);
            let (why, status) = match words.contains(&b'/') {
                true if path.is_dir() => ("a directory, not a program", NOT_STARTED),
                true if path.exists() => ("permission denied: not a file that may be executed", NOT_STARTED),
                _ if words.starts_with(b"-") => {
                    ("command not found; options of st-record come before --", NOT_FOUND)
                }
                _ => ("command not found", NOT_FOUND),
            };
            complain(&format!("{}: {why}", command.display()));
            ExitCode::from(status)
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
    if let Err(e) = print(report.to_string().as_bytes()) {
        complain(&format!("{e:#}"));
        return ExitCode::from(FAILED);
    }
    ExitCode::from(if report.problems.is_empty() { 0 } else { 4 })
}

/// Writes text to standard output.
fn print(text: &[u8]) -> Result<()> {
    let mut out = Output::text(Path::new("-"))?;
    let written = out.write_all(text).map_err(anyhow::Error::from).and_then(|()| out.commit());
    // A reader that has left wants no more.
    written.or_else(|e| if st_cli::reader_left(&e) { Ok(()) } else { Err(e) })
}

/// `--env`.
fn tell(args: &Args) -> Result<u8> {
    let directory = args.output.clone().unwrap_or_else(|| PathBuf::from("run"));
    fs::create_dir_all(&directory).with_context(|| format!("{}: cannot create", directory.display()))?;
    let directory = fs::canonicalize(&directory).with_context(|| directory.display().to_string())?;
    let text = job::environment(args, &directory)?;
    print(&text)?;
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
    // Where the program leaves no trace none of an earlier run may be taken for it.
    for older in save::left_by(&directory, launch.rank) {
        fs::remove_file(&older).with_context(|| format!("{}: cannot replace", older.display()))?;
    }
    let variable = |name: &str| env::var(name).ok();
    let own = env::args_os().next();
    if args.sync || args.no_sync || clocks::all_recorded(&launch, own.as_deref(), variable) {
        return job::become_rank(args, &directory);
    }
    if launch.rank == 0 && !clocks::one_node(&launch, variable) {
        args.talk.note(
            TOOL,
            "clocks are not compared: cannot tell whether all ranks of the job are recorded (--sync if they are)",
        );
    }
    job::become_rank(&Args { no_sync: true, ..args.clone() }, &directory)
}

fn outside(args: &Args) -> Result<u8, Failure> {
    // Beside the result, so that packing moves nothing between file systems.
    // What is not a file, as /dev/null or a fifo, has nothing beside it that would be ours to write into.
    let beside = args.output.as_deref().filter(|o| fs::metadata(o).map_or(true, |found| found.is_file()));
    let home = match beside.and_then(Path::parent) {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let home = fs::canonicalize(&home).with_context(|| format!("{}: no such directory", home.display()))?;
    for left in recover::left_in(&home) {
        let packs = typed([TOOL, "--recover", &left.to_string_lossy()]);
        let left = left.display();
        args.talk.note(TOOL, format_args!("{left} is of a recording that was cut off: {packs}"));
    }
    let directory = tempfile::Builder::new()
        .prefix(st_stream::directory::RECORDING)
        .tempdir_in(&home)
        .with_context(|| format!("{}: cannot create a directory", home.display()))?;
    let name = args.output.as_ref().map_or_else(String::new, |o| o.display().to_string());
    notes::begin(directory.path(), &name).context("writing to our directory")?;
    let mut command = job::command(args, directory.path())?;
    if let Some(output) = &args.output {
        if output.is_dir() {
            let output = output.display();
            return Err(anyhow::anyhow!(
                "{output}: is a directory; -o names the file that the trace becomes"
            )
            .into());
        }
        clear(output, &args.command)?;
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
    let forecaster = Forecaster::of(args, directory.path());
    let status = job::run(command)?;
    drop(forecaster);
    let code = exit_code(status);
    match finish(args, directory.path(), start.elapsed(), status) {
        Ok(true) => Ok(code),
        Ok(false) => Ok(if code == 0 && args.must_record { FAILED } else { code }),
        // The job has ended as it has; only where it says nothing do we.
        Err(e) => {
            let why = format!("{e:#}");
            complain(&format!("{why}{}", summary::advice(&why)));
            let kept = directory.keep();
            let packs = typed([TOOL, "--recover", &kept.to_string_lossy()]);
            complain(&format!("what the ranks recorded stays in {}: {packs} packs it", kept.display()));
            let failed = if args.must_record { FAILED } else { 1 };
            Ok(if code == 0 { failed } else { code })
        }
    }
}

/// The job's exit status; 128 + n if signal n ended it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|s| 128 + s));
    code.map_or(1, narrow)
}

/// Room on the disk of ranks' streams below which it is taken for full: less than a stream and what one is made of may need.
const ROOM: u64 = 64 << 10;

/// Whether a directory's disk has no room.
fn is_full(directory: &Path) -> bool {
    rustix::fs::statvfs(directory).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM)
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
                complain(&format!("{which}{}", nothing(args, notes, is_full(directory))));
            }
            complete &= !launched(job);
            return;
        };
        let file = (saved.target.as_os_str() != "-").then_some(&saved.target);
        let summary = Summary {
            file: file.map_or_else(|| "standard output".to_owned(), |file| file.display().to_string()),
            bytes: file
                .and_then(|file| fs::metadata(file).ok().filter(fs::Metadata::is_file))
                .map(|f| f.len()),
            time_bytes: saved.time_bytes,
            packing,
            notes,
            ranks: saved.ranks,
            world: recorded(&saved.header),
            full: is_full(directory),
            untimed: (args.reduce_every.is_some() && args.time == args::Time::Columns)
                .then_some("--reduce-every"),
            ended: (jobs == 1).then_some(&ended),
        };
        if !launched(job) {
            args.talk.note(TOOL, format_args!("{}, of a spawned job", summary.what()));
            return;
        }
        args.talk.note(TOOL, summary.line());
        let more = [summary.interims(), summary.merging()].into_iter().flatten();
        for more in more.chain(notes.levels.lines()) {
            args.talk.detail(TOOL, more);
        }
        if let Some(no) = missing(args.only.as_deref(), saved.header.world) {
            args.talk.warn(TOOL, no);
        }
        if let Some(hint) = summary.hint(args.python) {
            args.talk.note(TOOL, hint);
        }
        complete &= summary.ranks >= summary.world && notes.failed.ranks == 0;
        if summary.bytes.is_some() {
            first.get_or_insert(saved.target);
        }
    });
    if jobs > 1 {
        args.talk.note(TOOL, format_args!("{jobs} jobs{}", ended.words()));
    }
    if let Some(first) = first {
        args.talk.note(TOOL, format_args!("next: {}", typed(["st-stat", &first.to_string_lossy()])));
    }
    packed.map(|()| complete)
}

/// Why there is no trace.
fn nothing(args: &Args, notes: &Notes, full: bool) -> String {
    let why = &notes.failed.why;
    if let ranks @ 1.. = notes.failed.ranks {
        let ranks = counted(ranks, "rank");
        return format!(
            "there is no trace: {ranks} could not record; the first says: {why}{}",
            summary::advice(why)
        );
    }
    if let Some(world) = notes.world {
        if let Some(no) = missing(args.only.as_deref(), world) {
            return format!("there is no trace: {no}");
        }
        let why = if full {
            format!("; the disk has no room{}", summary::advice(summary::FULL))
        } else {
            String::new()
        };
        return format!("there is no trace: none of the job's {world} ranks has left one{why}");
    }
    if notes.began {
        return "there is no trace: the program called MPI_Init, and ended before that had returned".into();
    }
    let mut text = "no MPI call was seen, and there is no trace: does the program use MPI, is it started by a launcher, did it reach \
                    MPI_Init?"
        .to_owned();
    for launcher in script::out_of_reach(&args.command) {
        text.push_str(&format!("; nor is what the script starts by {launcher}, with its full path"));
    }
    for program in script::without_launcher(&args.command) {
        text.push_str(&format!("; {program}, which the script starts without a launcher, is not recorded"));
    }
    if let Some(at) = wrapped_command::behind(&args.command) {
        let [by, it] = [0, at].map(|word| args.command[word].display());
        text.push_str(&format!("; does {by} leave {it} the environment that st-record gives it?"));
    }
    text
}

/// Which of the ranks that were asked for do not exist in a job of so many.
fn missing(only: Option<&str>, world: u32) -> Option<String> {
    let ranks = st_model::ranklist_notation::parse_any(only?).ok()?;
    let mut beyond = ranks.iter().filter(|rank| *rank >= world);
    let first = beyond.next()?;
    let more = if beyond.next().is_some() { " (and others)" } else { "" };
    Some(format!(
        "--only: there is no rank {first}{more}; the job has ranks 0 to {}",
        world.saturating_sub(1)
    ))
}

/// The words that this process was started with, if its name is a launcher's.
fn stand_in_words() -> Option<Vec<OsString>> {
    let words: Vec<_> = env::args_os().collect();
    words.first().is_some_and(|w| launcher::is_launcher(w)).then_some(words)
}
