//! From the ranks' streams to one file. Of a rank that ended early its journal stands for its stream.

use crate::args::Naming;
use crate::notes::Notes;
use crate::tool::TOOL;
use anyhow::{Context, Error, Result};
use st_cli::options::{Steps, Talk};
use st_cli::{Amount, Input, recording, streams_in};
use st_model::anonymise::Anonymiser;
use st_model::header::{Header, Step};
use st_model::names::Names;
use st_model::num::Exact;
use st_stream::directory::{INTERIM, MERGED, RankFile};
use st_stream::{CopyError, ReadOptions, Reader, TimeBytes, WriteOptions, Writer};
use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The ranks' streams in a directory, by rank. Journals become streams first, and what they hold is added to the notes; `told`
/// hears of those that hold nothing, or are damaged. Of ranks that have merged their streams it is the merged one, without exact times.
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
            Err(Unmade::Held(e)) => told(&format!("{e:#}")),
            // What it holds is not lost: the directory stays.
            Err(Unmade::Copied(e)) => return Err(e),
        }
    }
    let failed =
        found.iter().filter_map(|path| rank_of(path)).filter(|rank| notes.failed.known.contains(rank));
    notes.failed.there = failed.count().to_u64();
    Ok(found)
}

/// Why a journal has not become a stream.
enum Unmade {
    /// It holds nothing that can be read.
    Held(Error),
    /// The system did not let it be read or copied.
    Copied(Error),
}

/// Makes a journal a stream.
fn recovered(path: &Path, notes: &mut Notes) -> Result<PathBuf, Unmade> {
    let stream = path.with_extension("").with_extension("st");
    // What the system refuses has a number; damage has none.
    let refused = |e: &Error| {
        e.chain().any(|e| e.downcast_ref::<io::Error>().is_some_and(|e| e.raw_os_error().is_some()))
    };
    let told = |e: Error| if refused(&e) { Unmade::Copied(e) } else { Unmade::Held(e) };
    let copied = || -> Result<()> {
        let mut journal = Input::open(path, &Steps::ANY)?;
        let made = File::create(&stream).and_then(|mut to| io::copy(&mut journal, &mut to));
        made.map(drop).with_context(|| format!("{}: copying to {}", path.display(), stream.display()))
    };
    let made = copied().and_then(|()| count(&stream, notes));
    made.inspect_err(|_| drop(fs::remove_file(&stream))).map_err(told)?;
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
    use st_capture::journal;
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
    fn a_journal_that_cannot_be_copied_is_not_one_that_holds_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rank-000000.1.journal");
        let snapshot =
            journal::snapshot(&RankRecorder::new(0, Options::default()), &Header::default(), &[], "here")
                .unwrap();
        let bytes = journal::whole(&snapshot, &[]);
        fs::write(&path, &bytes).unwrap();
        // What is in the way cannot be written to.
        let stream = directory.path().join("rank-000000.st");
        fs::create_dir(&stream).unwrap();
        assert!(matches!(recovered(&path, &mut Notes::default()), Err(Unmade::Copied(_))));
        fs::remove_dir(&stream).unwrap();
        recovered(&path, &mut Notes::default()).unwrap_or_else(|_| panic!("it is copied"));
        fs::remove_file(&stream).unwrap();
        fs::write(&path, vec![0; bytes.len()]).unwrap();
        assert!(matches!(recovered(&path, &mut Notes::default()), Err(Unmade::Held(_))));
        assert!(!stream.exists());
    }
}
