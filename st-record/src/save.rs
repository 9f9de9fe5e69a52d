//! What a recording leaves becomes traces, one of each job.

use crate::args::Args;
use crate::interim::Interim;
use crate::names;
use crate::notes::Notes;
use crate::pack::{self, Change, Job};
use crate::tool::{TOOL, complain};
use crate::trace_name::numbered;
use anyhow::{Context, Result, bail};
use clap::Parser as _;
use st_capture::fold::Fold;
use st_cli::{Destination, Output, free_name, is_same_file, recording, step};
use st_model::header::{Header, INSIDE, Step};
use st_model::num::Exact;
use st_model::ranklist::RankList;
use st_stream::directory::RankFile;
use st_stream::{MAGIC, TimeBytes};
use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// What helps where names are not found.
const NAME_LATER: &str = "st-record --name --symbols DIR TRACE names them later";

/// In a header's options, how loops were looked for.
const FOLD: &str = "fold";

/// Removes what an earlier recording has left under the name of this one: it must not be taken for this one's if that leaves
/// nothing. A link stays, and what is no file.
///
/// # Errors
///
/// If a file has the name that is no trace, or that the command to be recorded names, or cannot be removed.
pub(crate) fn clear(output: &Path, command: &[OsString]) -> Result<()> {
    if output.as_os_str() == "-" {
        return Ok(());
    }
    let later = (2..).map(|n| (n, numbered(output, n))).take_while(|(_, path)| path.is_file());
    let later = later.filter(|(n, path)| is_of_job(path, *n, output)).map(|(_, path)| path);
    let mut files = Vec::new();
    for path in std::iter::once(output.to_owned()).chain(later) {
        let beside = |name: &str| path.with_extension(format!("{name}.st"));
        let spawned = (1..).map(|n| beside(&format!("spawn-{n}"))).take_while(|path| path.is_file());
        files.extend([path.clone(), beside("rest")].into_iter().chain(spawned).filter(|path| path.is_file()));
    }
    for path in &files {
        if !is_replaceable(path)? {
            let path = path.display();
            bail!("{path}: this file is no trace, and would be replaced: remove it, or give -o another name");
        }
        if command.iter().any(|word| is_same_file(Path::new(word), path)) {
            let path = path.display();
            bail!("{path}: the command reads this trace, and it would be replaced: give -o another name");
        }
    }
    for path in files {
        let file = fs::canonicalize(&path).with_context(|| path.display().to_string())?;
        fs::remove_file(file).with_context(|| format!("{}: cannot replace", path.display()))?;
    }
    Ok(())
}

/// What a rank of an earlier run has left in a directory. What belongs to a process that runs stays: it has started this one.
pub(crate) fn left_by(directory: &Path, rank: u32) -> Vec<PathBuf> {
    let is_left = |entry: &fs::DirEntry| {
        RankFile::of(&entry.file_name()).is_some_and(|file| file.rank == rank && !file.is_in_use())
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(is_left).map(|entry| entry.path()).collect()
}

/// Whether a file is a trace, as its first bytes say, or empty.
fn is_replaceable(file: &Path) -> Result<bool> {
    let mut first = Vec::new();
    let begin = fs::File::open(file).and_then(|f| f.take(MAGIC.len() as u64).read_to_end(&mut first));
    begin.with_context(|| format!("{}: cannot read", file.display()))?;
    Ok(first.is_empty() || first == MAGIC)
}

/// Whether a trace is, untouched since, that of this job of a recording with this output.
fn is_of_job(path: &Path, number: u32, output: &Path) -> bool {
    let Ok(reader) = pack::open(path) else { return false };
    let [step] = reader.provenance() else { return false };
    let asked = Args::try_parse_from(std::iter::once(TOOL).chain(step.args.iter().map(String::as_str)));
    let named = asked.is_ok_and(|a| a.output.is_some_and(|asked| asked.file_name() == output.file_name()));
    named && recording::number(reader.header()) == u64::from(number)
}

/// Packs what each job has left, one after the other, and hands it, with the time that it took and what the job's ranks said,
/// to `told`; of one that has left nothing, nothing. If one cannot be packed the others still are.
pub(crate) fn each_job(
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
                let first = first.clone().unwrap_or_else(|| path(named(args, header, home, 1)));
                Destination::Replaced(first.with_extension(format!("{name}.st")))
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
fn named(args: &Args, header: &Header, home: &Path, number: u32) -> Destination {
    // What is no file, standard output or a device, takes one trace.
    let takes = |o: &&PathBuf| {
        number == 1 || o.as_os_str() != "-" && fs::metadata(o).map_or(true, |found| found.is_file())
    };
    let Some(asked) = args.output.as_ref().filter(takes) else {
        let program = if args.naming.anonymise { "trace" } else { &header.program };
        let app = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Destination::Free(free_name(&home.join(format!("{app}-{}r.st", header.world))));
    };
    // What was there is gone since this recording began: a trace is that of another one, which began later, or of this job, which a
    // recovery has before it once more.
    let taken = |path: &Path| {
        let same = || pack::open(path).is_ok_and(|r| !header.run.is_empty() && r.header().run == header.run);
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0) && !same()
    };
    if number == 1 && asked.as_os_str() == "-" {
        return Destination::Replaced(asked.clone());
    }
    // Asked in this order, what comes there in between is not replaced.
    let place = |path: PathBuf| match fs::symlink_metadata(&path) {
        Err(_) => Some(Destination::Free(path)),
        Ok(_) => (!taken(&path)).then_some(Destination::Replaced(path)),
    };
    let later = (number.max(2)..).map(|n| numbered(asked, n));
    let mut all = (number == 1).then(|| asked.clone()).into_iter().chain(later).filter_map(place);
    all.next().unwrap_or_else(|| Destination::Replaced(asked.clone()))
}

/// Its path.
fn path(place: Destination) -> PathBuf {
    match place {
        Destination::Free(path) | Destination::Replaced(path) => path,
    }
}

/// A trace that has been written.
pub(crate) struct Saved {
    pub(crate) target: PathBuf,
    pub(crate) header: Header,
    /// Number of ranks in it.
    pub(crate) ranks: u64,
    /// Those that have left nothing.
    pub(crate) missing: RankList,
    /// What exact times have added to it.
    pub(crate) time_bytes: TimeBytes,
}

/// Writes what a job's ranks have left as one stream, whose name follows from its header. Where some have left nothing
/// but what all had before, it is that, and what the others left is beside it. Nothing of ranks that have left nothing at all.
fn save(
    args: &Args,
    job: &Job,
    notes: &mut Notes,
    name: impl Fn(&Header) -> Destination,
) -> Result<Option<Saved>> {
    let directory = job.directory();
    let left = pack::streams(directory, notes, |why| args.talk.warn(TOOL, why))?;
    let interim = if notes.merged { None } else { Interim::of(directory, &left)? };
    let streams = interim.as_ref().map_or(&left[..], |interim| std::slice::from_ref(&interim.path));
    if streams.is_empty() {
        return Ok(None);
    }
    let mut header = pack::header(streams)?;
    let ranks = if notes.merged { recorded(&header) } else { left.len().to_u64() };
    let exact = kept_exactly(&header, notes, ranks).filter(|_| interim.is_none());
    let started = exact.as_ref().map(|_| without_folding(step(TOOL), args.command.len()));
    let write = |streams: &[PathBuf], header: &Header, place: &dyn Fn() -> Destination| {
        let mut change = Change::new(&args.naming);
        change.started.clone_from(&started);
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
        let mut output = Output::rewritten(&path(place()))?;
        let times = pack::pack(streams, header, change, &args.talk, &mut output)?;
        Ok::<_, anyhow::Error>((output.finish()?.commit_to(place)?, times))
    };
    // The ranks' headers were written in MPI_Init; they said more at the end.
    header
        .bindings
        .extend(notes.bindings.iter().filter(|b| !header.bindings.contains(b)).cloned().collect::<Vec<_>>());
    header.queued = notes.queued;
    if !notes.inside.is_empty() {
        let inside = notes.inside.iter().map(|(name, n)| (name.clone(), *n)).collect();
        header.options.insert(INSIDE.to_owned(), inside);
    }
    if let Some(exact) = exact {
        header.options.insert(FOLD.to_owned(), exact.into());
    }
    if let Job::Launched(number @ 2.., _) = job {
        header.options.insert(recording::NUMBER.to_owned(), (*number).into());
    }
    let (target, time_bytes) = write(streams, &header, &|| name(&header))?;
    let Some(interim) = interim else {
        let missing = if notes.merged { RankList::default() } else { missing(&header, &left) };
        return Ok(Some(Saved { target, header, ranks, missing, time_bytes }));
    };
    args.talk.warn(TOOL, interim.line(&target.display().to_string()));
    if !left.is_empty() {
        let rest = target.with_extension("rest.st");
        write(&left, &pack::header(&left)?, &|| Destination::Replaced(rest.clone()))?;
        args.talk.warn(TOOL, format_args!("{}: what the others left", rest.display()));
    }
    (notes.calls, notes.ended) = (interim.calls, interim.world.into());
    let (ranks, missing) = (interim.world.into(), RankList::default());
    Ok(Some(Saved { target, header, ranks, missing, time_bytes }))
}

/// What a trace's header says of its loops if approximate ones were looked for, too, and all of its ranks say that they kept none: then
/// it is the trace that it were without.
fn kept_exactly(header: &Header, notes: &Notes, ranks: u64) -> Option<String> {
    let asked: Fold = header.options.get(FOLD)?.as_str()?.parse().ok()?;
    (matches!(asked, Fold::Approx(_)) && notes.chosen == [ranks, 0]).then(|| Fold::Exact.to_string())
}

/// How the program was started, without what asked for approximate loops: of a trace that has none that would be as wrong as in its
/// header, and some bytes more than exact folding takes. The last words are the `command` that was recorded.
fn without_folding(mut step: Step, command: usize) -> Step {
    const ASKED: [&str; 4] = ["--fold", "--fold-window", "--fold-ratio", "--fold-common"];
    let command = step.args.split_off(step.args.len().saturating_sub(command));
    let mut options = std::mem::take(&mut step.args).into_iter();
    while let Some(word) = options.next() {
        match word.split_once('=') {
            Some((option, _)) if ASKED.contains(&option) => {}
            None if ASKED.contains(&word.as_str()) => drop(options.next()),
            _ => step.args.push(word),
        }
    }
    step.args.extend(command);
    step
}

/// Number of ranks that were to be recorded.
pub(crate) fn recorded(header: &Header) -> u64 {
    match only(header) {
        Some(ranks) => ranks.iter().filter(|r| *r < header.world).count() as u64,
        None => u64::from(header.world),
    }
}

/// The ranks that were to be recorded, if not all were.
fn only(header: &Header) -> Option<RankList> {
    let only = header.options.get("only").and_then(|v| v.as_str());
    only.and_then(|t| st_model::ranklist_notation::parse_any(t).ok())
}

/// The ranks that were to be recorded and are not among those who have left these streams.
fn missing(header: &Header, left: &[PathBuf]) -> RankList {
    let there: RankList = left.iter().filter_map(|path| pack::rank_of(path)).collect();
    let missing = there.others(header.world);
    match only(header) {
        Some(wanted) => missing.iter().filter(|rank| wanted.contains(*rank)).collect(),
        None => missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_stream::Trace;

    #[test]
    fn a_trace_without_approximate_loops_does_not_name_them() {
        let of = |fold: &str, chosen, ranks| {
            let options = [(FOLD.to_owned(), fold.into())].into();
            let notes = Notes { chosen, ..Notes::default() };
            kept_exactly(&Header { options, ..Header::default() }, &notes, ranks)
        };
        assert_eq!(of("approx:5000:60:20", [2, 0], 2).as_deref(), Some("exact"));
        // One kept such loops, one has not said so, and who was not asked for them.
        let others =
            [of("approx:5000:60:20", [1, 1], 2), of("approx:5000:60:20", [1, 0], 2), of("none", [2, 0], 2)];
        assert_eq!(others, [None, None, None]);
    }

    #[test]
    fn ranks_whose_streams_are_gone_are_missing() {
        let left = ["rank-000000.st", "rank-000002.7.journal"].map(PathBuf::from);
        let header = Header { world: 4, ..Header::default() };
        assert_eq!(missing(&header, &left), [1, 3].into_iter().collect());
        let options = [("only".to_owned(), "0,1".into())].into();
        assert_eq!(missing(&Header { options, ..header }, &left), RankList::single(1));
    }

    #[test]
    fn what_asked_for_approximate_loops_that_are_not_there_is_not_told() {
        let told = |words: &str, command| {
            let args = words.split(' ').map(str::to_owned).collect();
            without_folding(Step { args, ..Step::default() }, command).args.join(" ")
        };
        assert_eq!(
            told("-q --fold approx -o a.st -- app --fold approx", 3),
            "-q -o a.st -- app --fold approx"
        );
        assert_eq!(told("--fold=approx --fold-window 9 -v app", 1), "-v app");
    }

    #[test]
    fn a_trace_that_came_meanwhile_is_not_replaced() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        let asked = path("app.st");
        let args = Args::parse_from([Path::new(TOOL), Path::new("-o"), &asked, Path::new("x")]);
        let named = |number| super::path(named(&args, &Header::default(), home.path(), number));
        assert_eq!((named(1), named(2)), (asked.clone(), path("app-2.st")));
        fs::write(&asked, "").unwrap();
        assert_eq!(named(1), asked);
        fs::write(&asked, MAGIC).unwrap();
        assert_eq!((named(1), named(3)), (path("app-2.st"), path("app-3.st")));
        let header = Header { run: "its".into(), ..Header::default() };
        let mut bytes = Vec::new();
        let trace = Trace { header: header.clone(), ..Trace::default() };
        st_stream::write(&trace, &mut bytes, st_stream::WriteOptions::PIPE).unwrap();
        fs::write(path("app-2.st"), bytes).unwrap();
        assert_eq!((named(1), named(2)), (path("app-3.st"), path("app-3.st")));
        // Once more.
        assert_eq!(super::named(&args, &header, home.path(), 2), Destination::Replaced(path("app-2.st")));
    }
}
