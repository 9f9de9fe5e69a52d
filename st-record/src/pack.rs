//! From the ranks' streams to one file. Of a rank that ended early its journal stands for its stream.

use crate::args::Naming;
use crate::failed::Failed;
use crate::levels::Levels;
use crate::tool::TOOL;
use anyhow::{Context, Error, Result};
use st_cli::options::{Steps, Talk};
use st_cli::{Amount, Input, recording, streams_in};
use st_model::anonymise::Anonymiser;
use st_model::header::UNRECORDED;
use st_model::header::{Header, Queued, Step};
use st_model::names::Names;
use st_model::num::Exact;
use st_stream::directory::{FAILED, INTERIM, MERGED, NOTES, RankFile};
use st_stream::{CopyError, ReadOptions, Reader, TimeBytes, WriteOptions, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What the ranks said, summed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Notes {
    /// Ranks that said how they ended.
    pub told: BTreeSet<u32>,
    /// Ranks of which only what they left tells.
    pub silent: u64,
    /// Ranks of the job, as its first one says.
    pub world: Option<u32>,
    /// `MPI_Init` was called.
    pub began: bool,
    /// Ranks that could not record, or not to their end.
    pub failed: Failed,
    /// Calls recorded.
    pub calls: u64,
    /// Processor time of the recorder's own work, and of the ranks in all, ns.
    pub own_ns: u64,
    /// See there.
    pub cpu_ns: u64,
    /// How long ranks had no processor.
    pub queued: Option<Queued>,
    /// Bytes of exact times that ranks wrote.
    pub time_bytes: u64,
    /// Ranks whose exact times stopped at the budget.
    pub stopped: u64,
    /// Ranks whose exact times could not be written.
    pub lost: u64,
    /// Ranks whose loops are those that exact folding finds, and those with approximate ones, as they say.
    pub chosen: [u64; 2],
    /// Ranks that ended early: killed, aborted, or without MPI_Finalize.
    pub ended: u64,
    /// Calls recorded by name only.
    pub opaque: BTreeMap<String, u64>,
    /// Functions of the MPI that the recorder does not have.
    pub unrecorded: BTreeSet<String>,
    /// Language bindings that calls came through.
    pub bindings: BTreeSet<String>,
    /// What merging in MPI_Finalize took: processor time of all ranks, the most that one took, and the longest time until one was
    /// through, ns.
    pub merging: Option<[u64; 3]>,
    /// The same of each level of the tree that ranks form: of their own calls, of each level from the lowest, of the result.
    pub levels: Levels,
    /// The ranks have merged their streams.
    pub merged: bool,
    /// They had exact times, which sketches stand for now.
    pub folded: bool,
    /// Reductions while they ran, those that failed, and processor time of all ranks for them, ns.
    pub interims: [u64; 3],
}

/// Room kept for the notes, bytes: a rank that finds the disk full can still say so.
const ROOM: u64 = 16 << 10;

/// Makes the file of notes in a directory: the name that the trace will have, and this process.
///
/// # Errors
///
/// If it cannot be written.
pub fn begin_notes(directory: &Path, name: &str) -> io::Result<()> {
    let mut notes = File::create(directory.join(NOTES))?;
    // Not every file system can.
    let _ = rustix::fs::fallocate(&notes, rustix::fs::FallocateFlags::KEEP_SIZE, 0, ROOM);
    notes.write_all(format!("{name}\nlauncher={}\n", std::process::id()).as_bytes())
}

impl Notes {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(NOTES);
        let text = fs::read_to_string(&path).with_context(|| format!("{}: reading", path.display()))?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let mut notes = Self::default();
        for line in text.lines().skip(1) {
            if let Some(said) = line.strip_prefix(FAILED) {
                notes.failed.add(said);
                continue;
            }
            let mut rank = None;
            for (name, value) in line.split_whitespace().filter_map(|w| w.split_once('=')) {
                let named = value.split(',').filter(|b| !b.is_empty()).map(str::to_owned);
                match name {
                    "bindings" => notes.bindings.extend(named),
                    UNRECORDED => notes.unrecorded.extend(named),
                    "merge_levels" => notes.levels.add(value),
                    _ => {}
                }
                let value: u64 = value.parse().unwrap_or(0);
                match name {
                    "calls" => notes.calls += value,
                    "rank" => {
                        rank = u32::try_from(value).ok();
                        notes.told.extend(rank);
                    }
                    "queued_ns" => rank
                        .into_iter()
                        .for_each(|rank| notes.queued.get_or_insert_default().add(rank, value)),
                    "approximate" => notes.chosen[usize::from(value > 0)] += 1,
                    "world" => notes.world = u32::try_from(value).ok(),
                    "init" => notes.began = true,
                    "own_ns" => notes.own_ns += value,
                    "cpu_ns" => notes.cpu_ns += value,
                    "time_bytes" => notes.time_bytes += value,
                    "stopped" => notes.stopped += value,
                    "lost" => notes.lost += value,
                    "ended" => notes.ended += value,
                    "interim" => notes.interims[0] += value,
                    "interim_failed" => notes.interims[1] += value,
                    "interim_ns" => notes.interims[2] += value,
                    "merge_ns" => {
                        let [sum, most, _] = notes.merging.get_or_insert_default();
                        (*sum, *most) = (*sum + value, value.max(*most));
                    }
                    "merge_wall_ns" => {
                        let [.., wall] = notes.merging.get_or_insert_default();
                        *wall = value.max(*wall);
                    }
                    _ if name.starts_with("MPI") => {
                        *notes.opaque.entry(name.to_owned()).or_default() += value
                    }
                    _ => {}
                }
            }
        }
        notes
    }
}

/// The ranks' streams in a directory, by rank. Journals become streams first, and what they hold is added to the notes; `told`
/// hears of those that hold nothing. Of ranks that have merged their streams it is the merged one, without exact times.
///
/// # Errors
///
/// If the directory cannot be read, or a stream not written.
pub fn streams(directory: &Path, notes: &mut Notes, mut told: impl FnMut(&str)) -> Result<Vec<PathBuf>> {
    let merged = directory.join(MERGED);
    if merged.is_file() {
        (notes.merged, notes.folded) = (true, notes.time_bytes > 0);
        (notes.stopped, notes.lost) = (0, 0);
        return Ok(vec![merged]);
    }
    let mut found = Vec::new();
    for path in streams_in(directory)? {
        if path.file_name().is_some_and(|name| name == INTERIM) {
            continue;
        }
        if path.extension().is_some_and(|e| e == "st") {
            if rank_of(&path).is_some_and(|rank| !notes.told.contains(&rank)) {
                // It could not say so: no descriptor was left for it, or no room, or it was killed when its stream was whole.
                notes.silent += 1;
                notes.ended += u64::from(count(&path, notes)?);
            }
            found.push(path);
            continue;
        }
        match recovered(&path, notes) {
            Ok(stream) => found.push(stream),
            Err(e) => told(&format!("{e:#}")),
        }
    }
    let failed =
        found.iter().filter_map(|path| rank_of(path)).filter(|rank| notes.failed.known.contains(rank));
    notes.failed.there = failed.count().to_u64();
    Ok(found)
}

/// Makes a journal a stream.
fn recovered(path: &Path, notes: &mut Notes) -> Result<PathBuf> {
    let told = || path.display().to_string();
    let stream = path.with_extension("").with_extension("st");
    io::copy(&mut Input::open(path, &Steps::ANY)?, &mut File::create(&stream).with_context(told)?)
        .with_context(told)?;
    count(&stream, notes)?;
    notes.silent += 1;
    notes.ended += 1;
    Ok(stream)
}

/// Adds the calls of a stream to the notes. Returns whether its rank ended early.
fn count(stream: &Path, notes: &mut Notes) -> Result<bool> {
    let mut reader = open(stream)?;
    let mut early = false;
    while let Some(section) = reader.next_section().with_context(|| stream.display().to_string())? {
        notes.calls += section.threads.iter().map(|t| t.lanes.calls).sum::<u64>();
        early |= !section.ended.is_empty();
    }
    Ok(early)
}

/// The rank of `rank-000003.st`.
pub(crate) fn rank_of(path: &Path) -> Option<u32> {
    RankFile::of(path.file_name()?).map(|file| file.rank)
}

/// A job that was recorded, and the directory of its streams.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Job {
    /// One that a launcher started, the how manieth.
    Launched(u32, PathBuf),
    /// One that another has spawned, and its name, `spawn-N`.
    Spawned(String, PathBuf),
}

impl Display for Job {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Launched(number, _) => write!(f, "job {number}"),
            Self::Spawned(name, _) => f.write_str(name),
        }
    }
}

impl Job {
    /// Its directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        match self {
            Self::Launched(_, directory) | Self::Spawned(_, directory) => directory,
        }
    }
}

/// The jobs that have recorded: the first in the directory itself, others in `job-N` and `spawn-N` below, in their order.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn jobs(directory: &Path) -> Result<Vec<Job>> {
    let told = || format!("{}: reading", directory.display());
    let mut found = vec![Job::Launched(1, directory.to_owned())];
    for entry in fs::read_dir(directory).with_context(told)? {
        let path = entry.with_context(told)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !path.is_dir() {
            continue;
        }
        if let Some(number) = name.strip_prefix(recording::JOB).and_then(|n| n.parse().ok()) {
            found.push(Job::Launched(number, path));
        } else if name.starts_with("spawn-") {
            found.push(Job::Spawned(name, path));
        }
    }
    found.sort();
    Ok(found)
}

/// The header of the whole: the first rank's, with all bindings, and all programs, as on a launcher's command line.
///
/// # Errors
///
/// If a stream is damaged.
pub fn header(streams: &[PathBuf]) -> Result<Header> {
    let headers = streams.iter().map(|path| Ok(open(path)?.header().clone()));
    Header::of_job(headers.collect::<Result<Vec<_>>>()?).context("no streams")
}

/// What is said otherwise in what is written than in the streams.
#[derive(Debug, Default)]
pub struct Change {
    /// What call sites are called, beside what the streams say.
    pub names: Names,
    /// What the streams say of that is left out.
    unnamed: bool,
    anonymiser: Option<Anonymiser>,
    /// Tools that had made the streams, and are told.
    pub before: Vec<Step>,
    /// How this program is told to have been started, if not as it was.
    pub started: Option<Step>,
}

impl Change {
    /// What options ask for, without names.
    #[must_use]
    pub fn new(options: &Naming) -> Self {
        let anonymiser = options.anonymise.then(Anonymiser::default);
        Self { unnamed: !options.wanted(), anonymiser, ..Self::default() }
    }
}

/// Writes all streams as one, showing how far that is; returns what exact times have added to it.
///
/// # Errors
///
/// If a stream is damaged, or the result cannot be written.
pub fn pack(
    streams: &[PathBuf],
    header: &Header,
    mut change: Change,
    talk: &Talk,
    to: impl Write,
) -> Result<TimeBytes> {
    let ranks = streams.len().to_u64();
    let progress = talk.progress(TOOL, "packing", Amount::Things("ranks", ranks));
    let header = if change.anonymiser.is_some() { &Anonymiser::header(header) } else { header };
    let mut writer = Writer::new(to, header, WriteOptions::default())?;
    // The program has ended: its processors are free.
    writer.threads(st_cli::options::threads(0))?;
    let started = change.started.take().unwrap_or_else(|| st_cli::step("st-record"));
    for step in change.before.iter().chain([&started]) {
        match change.anonymiser {
            Some(_) => writer.provenance(&Anonymiser::step(step))?,
            None => writer.provenance(step)?,
        }
    }
    writer.names(&change.names)?;
    let mut explained = None;
    for path in streams {
        let (mut reader, told) = (open(path)?, || path.display().to_string());
        progress.advance(1);
        if !change.unnamed {
            writer.copy(&mut reader).map_err(|e| match e {
                // It is not at fault.
                CopyError::Write(e) => Error::new(e),
                CopyError::Read(e) => Error::new(e).context(told()),
            })?;
            explained = reader.explanation().cloned();
            continue;
        }
        while let Some(mut section) = reader.next_section().with_context(told)? {
            section.sites.set_names(Names::default());
            if let Some(anonymiser) = &mut change.anonymiser {
                anonymiser.section(&mut section);
            }
            writer.section(&section)?;
        }
        explained = reader.explanation().cloned();
    }
    // That of one among several streams is of its own ranks.
    explained.iter().filter(|_| streams.len() == 1).try_for_each(|e| writer.explanation(e))?;
    let times = writer.time_bytes()?;
    writer.finish()?.flush()?;
    Ok(times)
}

pub(crate) fn open(path: &Path) -> Result<Reader<Input>> {
    Reader::new(Input::open(path, &Steps::ANY)?, ReadOptions::default())
        .with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_capture::record::{Options, RankRecorder};
    use st_model::calls::CallTable;
    use st_stream::{Trace, write};

    #[test]
    fn what_is_left_without_exact_times_is_what_a_trace_without_has() {
        let directory = tempfile::tempdir().unwrap();
        let header = Header { world: 1, ..Header::default() };
        let pack = |calls: i64, columns: bool| {
            let mut recorder = RankRecorder::new(0, Options { columns, ..Options::default() });
            let thread = recorder.open_thread(0);
            let call = CallTable::builtin().by_name("MPI_Barrier").unwrap().id;
            let site = recorder.sites.label("barrier");
            let sym = recorder.symbol(call, site, 0);
            let mut chunks = Vec::new();
            for i in 0..calls {
                let at = 1_000 * i + i * i % 97;
                chunks.extend(recorder.record(thread, sym, &[0], at, at + 400 + i * i % 31));
            }
            let mut chunks: Vec<_> = chunks.into_iter().map(|c| *c).collect();
            chunks.extend(recorder.flush_columns().into_iter().map(|(_, c)| c));
            let mut section = recorder.finish("host");
            if columns {
                let clock = st_model::columns::Comparison::default();
                section.threads[0].columns.push((0, st_model::columns::Column { chunks, clock }));
            }
            let path = directory.path().join("rank-000000.st");
            let trace = Trace { header: header.clone(), sections: vec![section], ..Trace::default() };
            write(&trace, File::create(&path).unwrap(), WriteOptions::PIPE).unwrap();
            let mut packed = Vec::new();
            let times =
                super::pack(&[path], &header, Change::default(), &Talk::default(), &mut packed).unwrap();
            (u64::try_from(packed.len()).unwrap(), times)
        };
        // Of few calls the sketches follow from exact times.
        for calls in [50_000, 500] {
            let ((all, times), (without, none)) = (pack(calls, true), pack(calls, false));
            assert!(
                times.stored > calls.unsigned_abs() / 5 && (times.spared > 0) == (calls == 500),
                "{times:?}"
            );
            assert_eq!(none, TimeBytes::default());
            // The end frame has the number of frames.
            assert!(times.without(all).abs_diff(without) <= 2, "{all}, {times:?} is not {without}");
        }
    }

    #[test]
    fn a_rank_that_was_killed_before_it_could_say_so_has_ended_early() {
        for early in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let mut recorder = RankRecorder::new(1, Options::default());
            let thread = recorder.open_thread(0);
            let site = recorder.sites.label("end");
            let sym = recorder.symbol(CallTable::builtin().by_name("MPI_Abort").unwrap().id, site, 0);
            let _ = recorder.record(thread, sym, &[0, 3], 1_000, 2_000);
            let ended = recorder.ended();
            let mut section = recorder.finish("host");
            section.ended = if early { ended } else { Vec::new() };
            let trace = Trace {
                header: Header { world: 2, ..Header::default() },
                sections: vec![section],
                ..Trace::default()
            };
            let file = File::create(directory.path().join("rank-000001.st")).unwrap();
            write(&trace, file, WriteOptions { level: 1 }).unwrap();
            let mut notes = Notes { told: [0].into(), ended: 1, ..Notes::default() };
            streams(directory.path(), &mut notes, |why| panic!("{why}")).unwrap();
            assert_eq!((notes.silent, notes.calls, notes.ended), (1, 1, 1 + u64::from(early)));
        }
    }

    #[test]
    fn a_rank_that_failed_and_left_its_stream_is_not_one_that_left_none() {
        let directory = tempfile::tempdir().unwrap();
        let section = RankRecorder::new(1, Options::default()).finish("host");
        let trace = Trace {
            header: Header { world: 3, ..Header::default() },
            sections: vec![section],
            ..Trace::default()
        };
        let file = File::create(directory.path().join("rank-000001.st")).unwrap();
        write(&trace, file, WriteOptions { level: 1 }).unwrap();
        let mut notes = Notes::parse("x.st\nworld=3\nfailed rank=1 no room\nfailed rank=2 no room\n");
        streams(directory.path(), &mut notes, |why| panic!("{why}")).unwrap();
        // Rank 0 was killed, without a word.
        assert_eq!((notes.failed.ranks, notes.failed.there, notes.failed.without_stream()), (2, 1, 1));
    }

    #[test]
    fn notes_are_summed() {
        let n = Notes::parse(
            "out.st\nrank=0 calls=5 own_ns=7 queued_ns=30 time_bytes=3 stopped=0 MPI_File_open=1 approximate=0\n\
             rank=1 calls=6 queued_ns=40 own_ns=1 cpu_ns=50 time_bytes=4 approximate=1 stopped=1 MPI_File_open=2 MPI_Put=9 bindings=C,C++\n\
             world=3\nfailed process=7@a a=1 file: no room\nfailed process=7@a it again\nfailed process=7@b another\nfailed rank=2 process=7@b it\nfailed rank=3 it\nfailed rank=3 process=9@a again\n\
             interim=3 interim_failed=1 interim_ns=9\ninterim_ns=8\nmerging=1 merge_ns=20 merge_wall_ns=40 merge_levels=5/0,6/70\nmerging=0 merge_ns=30 merge_wall_ns=35 merge_levels=4/0,7/0,9/0\n",
        );
        assert_eq!((n.calls, n.own_ns, n.cpu_ns, n.time_bytes, n.stopped), (11, 8, 50, 7, 1));
        assert_eq!((n.told, n.world), ([0, 1].into(), Some(3)));
        assert_eq!((n.failed.ranks, &*n.failed.why), (3, "a=1 file: no room"));
        assert_eq!(n.chosen, [1, 1]);
        assert_eq!((n.merging, n.interims), (Some([50, 30, 40]), [3, 1, 17]));
        assert_eq!(n.levels.lines().count(), 3);
        assert_eq!(n.queued, Some(Queued { ns: 70, ranks: 2, longest_ns: 40, longest_rank: 1 }));
        assert_eq!(n.bindings, BTreeSet::from(["C".into(), "C++".into()]));
        assert_eq!(n.opaque, BTreeMap::from([("MPI_File_open".into(), 3), ("MPI_Put".into(), 9)]));
    }
}
