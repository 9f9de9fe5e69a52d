//! The stream of one rank: exact times are written while the program runs (`rank-N.PID.times`), the rest at its end, when
//! the file gets its name. Until then the journal beside it holds the rest. Where there is no room for the exact times they
//! are given up, and their room is used for the rest.

use crate::ancestry::ancestors;
use crate::bindings;
use crate::clock::{process_time, processor_time};
use crate::exports;
use crate::host::{allowed, host};
use crate::journal::Journal;
use crate::library::library;
use crate::limits;
use crate::message::{note_down, say, warn};
use crate::own_file::OwnFile;
use crate::real;
use crate::settings::Settings;
use crate::trace_name::numbered;
use st_capture::record::{Finished, RankRecorder};
use st_model::columns::{Chunk, Comparison};
use st_model::header::{ATTRIBUTES, Clock, Header, Mpi, Step, TIME_BUDGET, UNRECORDED};
use st_model::num::{Exact, saturate};
use st_model::section::{Ended, Section};
use st_stream::directory::{self, INTERIM, JOURNAL, MERGED, NOTES, RankFile, TIMES};
use st_stream::{WriteOptions, Writer};
use std::ffi::{CStr, c_char, c_int};
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// Compression level of what ranks have merged, which stays.
pub(crate) const LEVEL: u8 = 9;
/// Compression level of a rank's frames: the program waits in `MPI_Finalize` for it, and the launcher packs them again.
const OWN_LEVEL: u8 = 4;

/// A file that counts what goes into it.
struct Counted {
    to: BufWriter<OwnFile>,
    written: Arc<AtomicU64>,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let held = self.written.load(Ordering::Relaxed);
        if !limits::file_may_have(held.saturating_add(bytes.len().to_u64())) {
            return Err(limits::too_large());
        }
        let n = self.to.write(bytes)?;
        self.written.fetch_add(n.to_u64(), Ordering::Relaxed);
        Ok(n)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// A stream that has been written.
pub(crate) struct Written {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    /// Without exact times.
    pub(crate) section: Section,
}

/// What there is of a rank when its recording ends, beside what has been written.
pub(crate) struct Rest {
    pub(crate) recorder: RankRecorder,
    pub(crate) journal: Option<Journal>,
    /// Where the ranks' streams are.
    pub(crate) directory: PathBuf,
    /// Where the threads were, if the program has not come to its end.
    pub(crate) ended: Vec<Ended>,
    /// Nothing is said of where the streams are.
    pub(crate) quiet: bool,
    /// What a launcher is told.
    pub(crate) note: String,
    /// Processor time of the recorder's work without what follows, less that of the thread when the recording began to end, ns.
    pub(crate) own: i64,
    /// The ranks' traces are to be merged, which needs all that they hold beside exact times.
    pub(crate) merges: bool,
}

/// Whose stream it is.
pub(crate) struct Owner<'a> {
    pub(crate) rank: u32,
    /// Number of ranks.
    pub(crate) world: u32,
    /// The run's identity.
    pub(crate) run: &'a str,
    /// What all ranks have as attributes of the world.
    pub(crate) attributes: Vec<(String, i64)>,
}

/// A stream being written.
pub(crate) struct Output {
    rank: u32,
    header: Header,
    step: Step,
    writer: Option<Writer<Counted>>,
    written: Arc<AtomicU64>,
    temporary: PathBuf,
    target: PathBuf,
    /// Bytes of exact times so far.
    bytes: u64,
    /// They could not be written: none are.
    lost: bool,
}

impl Output {
    /// Creates the file, and its directory if that is missing, and writes the header; makes the journal beside it, or says why
    /// there is none.
    ///
    /// # Errors
    ///
    /// If the file cannot be created.
    pub(crate) fn create(
        settings: &Settings,
        clock: &str,
        recorder: &RankRecorder,
        owner: &Owner<'_>,
    ) -> Result<(Self, Result<Journal, String>), String> {
        let (rank, directory) = (owner.rank, &settings.output);
        if ancestors()
            .any(|pid| directory.join(format!("{}.{JOURNAL}", directory::process(rank, pid))).exists())
        {
            return Err("started by a rank that is being recorded, whose trace has this name".into());
        }
        let target = directory.join(format!("{}.st", directory::rank(rank)));
        if settings.jobs.is_some() && owner.run.is_empty() && target.exists() {
            return Err(
                "an earlier job has recorded this rank, and nothing tells the two jobs apart (--no-sync is \
                        for one job)"
                    .into(),
            );
        }
        let own = directory::process(rank, std::process::id());
        let temporary = directory.join(format!("{own}.{TIMES}"));
        let mut header = header(settings, clock, recorder, owner);
        // What all ranks have in common one tells.
        let first = settings.only.as_ref().map_or(Some(0), |(_, ranks)| ranks.lowest());
        let missed = if Some(rank) == first { missed() } else { Vec::new() };
        if Some(rank) == first && !owner.attributes.is_empty() {
            header.options.insert(ATTRIBUTES.to_owned(), owner.attributes.iter().cloned().collect());
        }
        if !missed.is_empty() {
            header.options.insert(UNRECORDED.to_owned(), missed.clone().into());
        }
        let written = Arc::new(AtomicU64::new(0));
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let step = Step { tool: "st-record".into(), version, args: Vec::new() };
        // It may be that of another node, or gone since `st-record --env` has made it.
        let writer = fs::create_dir_all(directory).and_then(|()| begin(&temporary, &written, &header, &step));
        let writer = writer.map_err(|e| format!("{}: {e}", temporary.display()))?;
        // The rank's trace of an earlier run must not be taken for this one's. There is none, mostly.
        let _ = fs::remove_file(&target);
        if Some(rank) == first {
            if !settings.quiet {
                open_line(directory, &header);
            }
            tell_missed(directory, settings.quiet, &missed);
        }
        let path = directory.join(format!("{own}.{JOURNAL}"));
        let journal = Journal::create(path.clone(), recorder, header.clone(), vec![step.clone()], host());
        let journal = journal.map_err(|e| format!("{}: {e}", path.display()));
        let writer = Some(writer);
        Ok((Self { rank, header, step, writer, written, temporary, target, bytes: 0, lost: false }, journal))
    }

    /// Whether exact times have been given up.
    pub(crate) fn lost(&self) -> bool {
        self.lost
    }

    /// What the rank's stream would be if the program had ended here, without exact times.
    pub(crate) fn so_far(&self, recorder: &RankRecorder) -> (Header, Section) {
        let mut section = recorder.snapshot(&host());
        section.ended = recorder.ended();
        (self.header.clone(), section)
    }

    /// Hands to the kernel what was written.
    pub(crate) fn flush(&mut self) {
        if let Some(w) = &mut self.writer
            && let Err(e) = w.flush()
        {
            self.fail(&e);
        }
    }

    /// Gives up exact times, and gives back the room that they took.
    fn fail(&mut self, e: &std::io::Error) {
        (self.lost, self.writer) = (true, None);
        // Nothing more can be done if even this fails.
        let _ = fs::remove_file(&self.temporary);
        warn(&format!("{}: {e}; recording goes on without exact times", self.temporary.display()));
    }

    /// Writes exact times; returns the bytes of exact times so far.
    pub(crate) fn times(&mut self, thread: u32, chunk: &Chunk) -> u64 {
        let before = self.written.load(Ordering::Relaxed);
        if let Some(w) = &mut self.writer
            && let Err(e) = w.column_chunk(self.rank, thread, chunk)
        {
            self.fail(&e);
        }
        self.bytes += self.written.load(Ordering::Relaxed) - before;
        self.bytes
    }

    /// Writes how the rank's clock was compared.
    pub(crate) fn clock(&mut self, clock: &Comparison) {
        if let Some(w) = &mut self.writer
            && let Err(e) = w.clock(self.rank, clock)
        {
            self.fail(&e);
        }
    }

    /// Writes the structure and gives the file its name.
    ///
    /// # Errors
    ///
    /// If it could not be written; the file is gone then.
    pub(crate) fn finish(mut self, rest: Rest) -> Result<Written, String> {
        let Rest { recorder, journal, directory, ended, quiet, note, own, merges } = rest;
        let timed = self.writer.is_some() && !merges;
        let mut finished = recorder.finish_for_writing(&host(), timed);
        finished.section.ended = ended;
        let mut written = self.writer.take().map(|w| finish(w, &finished));
        if let Some(Err(e)) = &written {
            self.fail(e);
            finished.sketch();
            written = None;
        }
        let written = written.unwrap_or_else(|| {
            finish(begin(&self.temporary, &self.written, &self.header, &self.step)?, &finished)
        });
        if self.target.exists() {
            // There was none when this job began.
            let later = (2..).map(|n| numbered(&self.target, n)).find(|path| !path.exists());
            let later = later.unwrap_or_else(|| self.target.clone());
            let (other, own) = (self.target.display(), later.display());
            warn(&format!("{other} is of another job at the same time: this one's stream is {own}"));
            self.target = later;
        }
        let written = written.and_then(|()| fs::rename(&self.temporary, &self.target));
        match (&written, journal) {
            (Ok(()), Some(journal)) => journal.remove(),
            (Ok(()), None) => {}
            // Nothing more can be done if even this fails. The journal stays: it holds all but older exact times.
            (Err(_), _) => drop(fs::remove_file(&self.temporary)),
        }
        written.map_err(|e| format!("{}: {e}", self.target.display()))?;
        let (bytes, lost) = (if self.lost { 0 } else { self.bytes }, u8::from(self.lost));
        let (own, all) = (own + processor_time(), process_time());
        let approximate = u8::from(finished.approximate);
        note_down(
            &directory,
            &format!(
                "{note} time_bytes={bytes} lost={lost} own_ns={own} cpu_ns={all} approximate={approximate}"
            ),
        );
        if self.rank == 0 && !quiet {
            close_line(&directory, false);
        }
        Ok(Written { path: self.target, header: self.header, section: finished.section })
    }
}

/// Creates a stream's file, replacing what is there, and writes what comes first.
fn begin(
    path: &Path,
    written: &Arc<AtomicU64>,
    header: &Header,
    step: &Step,
) -> std::io::Result<Writer<Counted>> {
    let file = OwnFile::create(path.to_owned())?;
    written.store(0, Ordering::Relaxed);
    let counted = Counted { to: BufWriter::new(file), written: Arc::clone(written) };
    let mut writer = Writer::new(counted, header, WriteOptions { level: OWN_LEVEL })?;
    writer.hurry();
    writer.provenance(step)?;
    Ok(writer)
}

fn finish(mut writer: Writer<Counted>, finished: &Finished) -> std::io::Result<()> {
    writer.recorded(&finished.section, finished.left_out.clone())?;
    writer.finish()?.flush()
}

fn header(settings: &Settings, clock: &str, recorder: &RankRecorder, owner: &Owner<'_>) -> Header {
    let mut command = fs::read("/proc/self/cmdline").unwrap_or_default();
    command.pop();
    let mut words = command.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into_owned());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut options = vec![
        ("time", settings.time.clone().into()),
        (TIME_BUDGET, settings.time_budget.into()),
        ("fold", settings.fold.to_string().into()),
        ("stack-depth", settings.stack_depth.into()),
        ("clock", clock.into()),
        ("query-times", settings.query_times.into()),
    ];
    if settings.time == "hist" {
        options.push(("hist", settings.binning.to_string().into()));
    }
    if !settings.similar.1.is_exact() {
        options.push(("sig", settings.similar.0.clone().into()));
    }
    if settings.python {
        options.push(("python", true.into()));
    }
    options.extend(settings.only.as_ref().map(|(text, _)| ("only", text.clone().into())));
    Header {
        world: owner.world,
        run: owner.run.to_owned(),
        mpi: mpi(),
        program: words.next().unwrap_or_default(),
        args: words.collect(),
        started: saturate(now.as_nanos()),
        clock: Clock { source: clock.to_owned(), resolution: 1 },
        options: options.into_iter().map(|(n, v)| (n.to_owned(), v)).collect(),
        bindings: bindings::seen(&recorder.sites).into_iter().map(str::to_owned).collect(),
        allowed: allowed().map(|list| (host(), list)).into_iter().collect(),
        ..Header::default()
    }
}

/// Removes from the directory what an earlier run has left there and this one, of so many ranks, will not replace: called by its
/// rank 0. What a process that runs has open stays, and all if one of them has started this job.
pub(crate) fn clear(settings: &Settings, world: u32) {
    let Ok(entries) = fs::read_dir(&settings.output) else { return };
    let recorded =
        |rank| rank < world && settings.only.as_ref().is_none_or(|(_, ranks)| ranks.contains(rank));
    let ancestors: Vec<_> = ancestors().collect();
    let mut older = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        if [MERGED, INTERIM].iter().any(|of_all| name == **of_all) {
            older.push(entry.path());
        }
        let Some(file) = RankFile::of(&name) else { continue };
        if file.process.is_some_and(|pid| ancestors.contains(&pid)) {
            return;
        }
        if !file.is_in_use() && !recorded(file.rank) {
            older.push(entry.path());
        }
    }
    for path in older {
        if let Err(e) = fs::remove_file(&path) {
            warn(&format!("{}: {e}; it is of an earlier run", path.display()));
        }
    }
}

/// The library and its version, as it says itself.
fn mpi() -> Mpi {
    // Not on the stack, which may be a coroutine's.
    let mut text: Vec<c_char> = vec![0; 8192];
    let (mut n, mut major, mut minor): (c_int, c_int, c_int) = (0, 0, 0);
    // SAFETY: no MPI's version text is longer (MPI_MAX_LIBRARY_VERSION_STRING is at most 8192); results go to variables.
    let text = unsafe {
        real::MPI_Get_library_version(text.as_mut_ptr(), &raw mut n);
        real::MPI_Get_version(&raw mut major, &raw mut minor);
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    };
    let number = |w: &str| w.trim_start_matches('v').trim_end_matches(',').to_owned();
    let version = text
        .split_whitespace()
        .find(|w| w.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()))
        .map_or_else(String::new, number);
    let flavour = if text.contains("Open MPI") { "openmpi" } else { "mpich" };
    Mpi { flavour: flavour.into(), version, standard: format!("{major}.{minor}") }
}

/// The functions that the program's MPI has and the recorder has not.
fn missed() -> Vec<String> {
    let Some(library) = library() else { return Vec::new() };
    let ours = real::NAMES.iter().map(|name| name.trim_end_matches('\0'));
    let ours = ours.map(str::to_owned).collect();
    exports::missed(&exports::functions(&library.path), &ours)
}

/// Names them to the launcher, and to the user.
fn tell_missed(directory: &Path, quiet: bool, missed: &[String]) {
    let Some(said) = exports::said(missed) else { return };
    note_down(directory, &format!("{UNRECORDED}={}", missed.join(",")));
    if !quiet {
        say(&said);
    }
}

/// What the library is called.
fn product() -> &'static str {
    let text = library().map_or("", |l| &l.text);
    let known = ["Open MPI", "Intel(R) MPI", "MVAPICH", "MPICH"];
    match known.into_iter().find(|name| text.contains(name)) {
        Some("Intel(R) MPI") => "Intel MPI",
        Some(name) => name,
        None => "MPI",
    }
}

/// `Open MPI 4.1.4, C; recording to run/`. Where the user has named no trace, its name is known in the end: others may have the
/// one that the program would give it.
fn open_line(directory: &Path, header: &Header) {
    // A launcher says in its file where the trace will go in the end.
    let launched = fs::read_to_string(directory.join(NOTES)).ok();
    let to = match launched.as_deref().map(|t| t.lines().next().unwrap_or_default()) {
        None => format!(" to {}/", from_here(directory).display().to_string().trim_end_matches('/')),
        Some("") => String::new(),
        Some(target) => format!(" to {target}"),
    };
    let library = product();
    say(&format!(
        "{library} {}, {}; recording{to} (-q: silent)",
        header.mpi.version,
        header.bindings.join(", ")
    ));
}

/// A directory's shortest name where the program was when this was first asked, at its begin: who has started it is there still.
fn from_here(directory: &Path) -> PathBuf {
    static HERE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let here = HERE.get_or_init(|| std::env::current_dir().ok()).as_ref();
    let below = here.and_then(|here| Some(directory.strip_prefix(here).ok()?.to_owned()));
    below.filter(|name| !name.as_os_str().is_empty()).unwrap_or_else(|| directory.to_owned())
}

/// Tells the user what has been left in the directory, if there is no launcher to do it.
pub(crate) fn close_line(directory: &Path, merged: bool) {
    if directory.join(NOTES).exists() {
        return;
    }
    let to = from_here(directory);
    let to = to.display();
    if merged {
        say(&format!("one stream in {to}/{MERGED}; next: st-stat {to}"));
    } else {
        say(&format!("one stream per rank in {to}; next: st-merge {to} -o {to}.st"));
    }
}
