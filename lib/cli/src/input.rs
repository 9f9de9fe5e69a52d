//! Reading inputs: files, directories of rank streams, standard input. The journal of a rank that ended early reads as
//! its stream.

use crate::options::Steps;
use crate::output::is_dash;
use crate::temporary;
use crate::{InvalidStream, UsageError, identity};
use anyhow::{Context, Result, bail};
use st_capture::journal::{self, PAGE, RecoverError, recover};
use st_capture::record::RestoreError;
use st_model::num::Exact as _;
use st_stream::WriteOptions;
use st_stream::directory::{INTERIM, JOURNAL, RankFile, TIMES};
use std::cmp;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// An opened input: a file, or standard input (`-`).
#[derive(Debug)]
pub struct Input {
    name: String,
    from: Source,
}

/// Bytes that are read at once: what a pipe holds.
const BUFFER: usize = 1 << 16;

#[derive(Debug)]
enum Source {
    Stdin(BufReader<io::StdinLock<'static>>),
    File(BufReader<File>),
    /// What was recovered from a journal.
    Memory(Cursor<Vec<u8>>),
}

impl Input {
    /// Opens a file, or standard input for `-`. To read a journal, whose calls are made again, may take so many steps.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or is a directory, if an output would take its place, or if standard input is a terminal.
    pub fn open(path: &Path, steps: &Steps) -> Result<Self> {
        if is_dash(path) {
            let stdin = io::stdin();
            if stdin.is_terminal() {
                bail!(UsageError("no input: name a file, or pipe one in".into()));
            }
            return Ok(Self {
                name: "standard input".into(),
                from: Source::Stdin(BufReader::with_capacity(BUFFER, stdin.lock())),
            });
        }
        reads(path)?;
        let name = path.display().to_string();
        let why = if name.starts_with('-') { " (options come before --)" } else { "" };
        let file = File::open(path).with_context(|| format!("{name}: cannot open{why}"))?;
        if file.metadata().is_ok_and(|found| found.is_dir()) {
            bail!("{name}: is a directory");
        }
        let mut from = BufReader::with_capacity(BUFFER, file);
        // A pipe may hold less at first; nobody sends journals through pipes.
        let begins = from.fill_buf().with_context(|| format!("{name}: reading"))?;
        if journal::is_journal(begins) {
            let stream = recovered(path, from, steps).with_context(|| name.clone())?;
            return Ok(Self { name, from: Source::Memory(Cursor::new(stream)) });
        }
        Ok(Self { name, from: Source::File(from) })
    }

    /// What is read, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The input as a file that can be read twice, positioned at its beginning.
    ///
    /// A regular file is returned itself. Anything else is copied to an unnamed temporary file in `spool`
    /// (default: the system's directory for temporary files), which disappears with the returned handle.
    ///
    /// # Errors
    ///
    /// If the input cannot be read or the copy cannot be written.
    pub fn seekable(self, spool: Option<&Path>) -> Result<File> {
        let Self { name, from } = self;
        match from {
            Source::File(reader) if reader.get_ref().metadata().is_ok_and(|found| found.is_file()) => {
                let mut file = reader.into_inner();
                file.seek(SeekFrom::Start(0)).with_context(|| format!("{name}: seeking"))?;
                Ok(file)
            }
            Source::File(mut reader) => spooled(&mut reader, &name, spool),
            Source::Memory(mut reader) => spooled(&mut reader, &name, spool),
            Source::Stdin(mut reader) => spooled(&mut reader, &name, spool),
        }
    }
}

impl Read for Input {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.from {
            Source::Stdin(reader) => reader.read(buf),
            Source::File(reader) => reader.read(buf),
            Source::Memory(reader) => reader.read(buf),
        }
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match &mut self.from {
            Source::Stdin(reader) => reader.fill_buf(),
            Source::File(reader) => reader.fill_buf(),
            Source::Memory(reader) => reader.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        match &mut self.from {
            Source::Stdin(reader) => reader.consume(amount),
            Source::File(reader) => reader.consume(amount),
            Source::Memory(reader) => reader.consume(amount),
        }
    }
}

/// Says of a file that it is read: from now on no output may be it.
///
/// # Errors
///
/// If an output is that already.
pub fn reads(input: &Path) -> Result<(), UsageError> {
    if is_dash(input) {
        return Ok(());
    }
    temporary::refuse_input(input)?;
    identity::note_input(input)
}

fn spooled(reader: &mut dyn Read, name: &str, spool: Option<&Path>) -> Result<File> {
    let directory = spool.map_or_else(std::env::temp_dir, Path::to_owned);
    let place = || format!("{}: temporary copy of {name}", directory.display());
    let mut copy = tempfile::tempfile_in(&directory).with_context(place)?;
    io::copy(reader, &mut copy).with_context(place)?;
    copy.seek(SeekFrom::Start(0)).with_context(place)?;
    Ok(copy)
}

/// How often a journal is read again that is being written.
const TRIES: u32 = 100;

/// All of a journal. If its rank runs, what was read while a region took the place of another may be of both: it is read again.
fn unchanged(from: &mut (impl Read + Seek)) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for _ in 0..TRIES {
        bytes.clear();
        from.read_to_end(&mut bytes)?;
        // Nobody writes to what is no file.
        if from.rewind().is_err() {
            return Ok(bytes);
        }
        let mut head = Vec::new();
        from.by_ref().take(PAGE.to_u64()).read_to_end(&mut head)?;
        if journal::generations(&head) == journal::generations(&bytes) {
            return Ok(bytes);
        }
        from.rewind()?;
    }
    Err(io::Error::other("its rank writes it faster than it can be read"))
}

/// The stream of a rank that ended early, from its journal and, if it is there, the file of exact times beside it.
fn recovered(path: &Path, mut from: BufReader<File>, steps: &Steps) -> Result<Vec<u8>> {
    let bytes = unchanged(&mut from).context("reading")?;
    let times = File::open(path.with_extension(TIMES)).ok();
    let times: Box<dyn Read> =
        times.map_or_else(|| Box::new(io::empty()) as _, |f| Box::new(BufReader::new(f)) as _);
    let trace = recover(&bytes, times, &steps.budget()).map_err(|e| match e {
        RecoverError::Restore(RestoreError::Exceeded(e)) => e.into(),
        e => anyhow::Error::new(InvalidStream(format!("{:#}", anyhow::Error::new(e)))),
    })?;
    let mut out = Vec::new();
    st_stream::write(&trace, &mut out, WriteOptions::PIPE).context("writing to memory")?;
    out.flush()?;
    Ok(out)
}

/// The inputs that `paths` stand for: no path is standard input, a directory is the streams in it, see [`streams_in`].
///
/// # Errors
///
/// If a directory cannot be read or holds no stream.
pub fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if paths.is_empty() {
        return Ok(vec![PathBuf::from("-")]);
    }
    let mut inputs = Vec::with_capacity(paths.len());
    for path in paths {
        if is_dash(path) || !path.is_dir() {
            inputs.push(path.clone());
            continue;
        }
        let streams = streams_in(path)?;
        if streams.is_empty() {
            bail!("{}: no stream (*.st) and no journal in this directory", path.display());
        }
        inputs.extend(streams);
    }
    Ok(inputs)
}

/// The `*.st` files in a directory, in natural order (`rank10.st` after `rank9.st`), and the journals of ranks that left
/// nothing newer (`rank-000002.4711.journal`). What all ranks had before, `interim.st`, counts if there is nothing else.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn streams_in(directory: &Path) -> Result<Vec<PathBuf>> {
    listed(directory).with_context(|| format!("{}: cannot list", directory.display()))
}

fn listed(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut streams = Vec::new();
    let mut newest = HashMap::new();
    let mut early = HashSet::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        // Names that begin with a dot are results still being written.
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let named = path.extension().is_some_and(|e| e == "st" || e == JOURNAL);
        if hidden || !named || !path.is_file() {
            continue;
        }
        let written = fs::metadata(&path).and_then(|m| m.modified())?;
        // Of a rank that was killed when its stream was whole both are left, and as old.
        let age = (written, path.extension().is_none_or(|e| e != JOURNAL));
        if let Some(file) = rank_file(&path) {
            let latest = newest.entry(file.rank).or_insert(age);
            *latest = age.max(*latest);
            if file.ends == JOURNAL {
                early.insert(file.rank);
            }
        }
        streams.push((path, age));
    }
    // Of a rank's journals and its stream the newest is that of its last run; streams of other names all count.
    streams.retain(|(path, age)| {
        let rank = rank_file(path).map(|file| file.rank).filter(|rank| early.contains(rank));
        rank.is_none_or(|rank| newest.get(&rank) == Some(age))
    });
    let mut streams: Vec<_> = streams.into_iter().map(|(p, _)| p).collect();
    if streams.len() > 1 {
        streams.retain(|p| p.file_name().is_none_or(|name| name != INTERIM));
    }
    streams.sort_by(|a, b| natural(a.as_os_str().as_encoded_bytes(), b.as_os_str().as_encoded_bytes()));
    Ok(streams)
}

fn rank_file(path: &Path) -> Option<RankFile<'_>> {
    RankFile::of(path.file_name()?)
}

/// Compares names with runs of digits as numbers; names equal so far are ordered as bytes.
fn natural(a: &[u8], b: &[u8]) -> cmp::Ordering {
    let (mut x, mut y) = (a, b);
    loop {
        let (p, q) = (digits(x), digits(y));
        if !p.is_empty() && !q.is_empty() {
            let (m, n) = (without_zeros(p), without_zeros(q));
            match m.len().cmp(&n.len()).then_with(|| m.cmp(n)) {
                cmp::Ordering::Equal => (x, y) = (&x[p.len()..], &y[q.len()..]),
                unequal => return unequal,
            }
            continue;
        }
        match (x.split_first(), y.split_first()) {
            (Some((c, rest)), Some((d, others))) if c == d => (x, y) = (rest, others),
            (Some((c, _)), Some((d, _))) => return c.cmp(d),
            (None, None) => return a.cmp(b),
            (first, second) => return first.is_some().cmp(&second.is_some()),
        }
    }
}

fn digits(text: &[u8]) -> &[u8] {
    &text[..text.iter().take_while(|c| c.is_ascii_digit()).count()]
}

fn without_zeros(digits: &[u8]) -> &[u8] {
    &digits[digits.iter().take_while(|c| **c == b'0').count()..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_capture::record::{Options, RankRecorder};
    use st_model::calls::CallId;
    use st_model::header::Header;

    #[test]
    fn an_option_that_is_taken_for_a_file_is_told_from_one() {
        let said = |name: &str| Input::open(Path::new(name), &Steps::default()).err().unwrap().to_string();
        assert_eq!(said("--partial"), "--partial: cannot open (options come before --)");
        assert_eq!(said("no-such.st"), "no-such.st: cannot open");
    }

    #[test]
    fn a_directory_is_its_streams_in_order_of_rank() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["rank10.st", "rank9.st", "rank1.st", ".rank2.st", "notes.txt"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let found = expand(&[directory.path().to_owned(), "-".into()]).unwrap();
        let names: Vec<_> = found.iter().map(|p| p.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["rank1.st", "rank9.st", "rank10.st", "-"]);
    }

    #[test]
    fn what_ranks_had_before_counts_if_there_is_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(INTERIM), "").unwrap();
        assert_eq!(streams_in(directory.path()).unwrap(), [directory.path().join(INTERIM)]);
        let journal = directory.path().join("rank-000001.77.journal");
        fs::write(&journal, "").unwrap();
        assert_eq!(streams_in(directory.path()).unwrap(), [journal]);
    }

    #[test]
    fn a_rank_is_its_newest_file_and_a_stream_that_is_as_old_as_a_journal() {
        let directory = tempfile::tempdir().unwrap();
        let [stream, journal] =
            ["rank-000001.st", "rank-000001.77.journal"].map(|n| directory.path().join(n));
        let then = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        let made = |path: &Path, seconds| {
            let file = File::create(path).unwrap();
            file.set_modified(then + std::time::Duration::from_secs(seconds)).unwrap();
        };
        for (of_journal, expected) in [(0, &stream), (1, &stream), (2, &journal)] {
            made(&stream, 1);
            made(&journal, of_journal);
            assert_eq!(
                &streams_in(directory.path()).unwrap(),
                std::slice::from_ref(expected),
                "{of_journal}"
            );
        }
    }

    #[test]
    fn nothing_is_standard_input_and_an_empty_directory_an_error() {
        assert_eq!(expand(&[]).unwrap(), [PathBuf::from("-")]);
        let directory = tempfile::tempdir().unwrap();
        assert!(expand(&[directory.path().to_owned()]).is_err());
    }

    #[test]
    fn natural_order_is_total() {
        let sorted = ["a", "a0", "a00", "a01", "a1", "a2", "a10", "a10b", "a10b2", "b"];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                let (forward, backward) =
                    (natural(a.as_bytes(), b.as_bytes()), natural(b.as_bytes(), a.as_bytes()));
                assert_eq!(forward, backward.reverse(), "{a} {b}");
                assert_eq!(forward, i.cmp(&j), "{a} {b}");
            }
        }
    }

    #[test]
    fn a_seekable_input_starts_at_its_beginning() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.st");
        fs::write(&path, "abc").unwrap();
        let mut input = Input::open(&path, &Steps::default()).unwrap();
        let mut first = [0];
        input.read_exact(&mut first).unwrap();
        let mut text = String::new();
        input.seekable(None).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "abc");
    }

    #[test]
    fn a_pipe_is_spooled() {
        let directory = tempfile::tempdir().unwrap();
        let mut copy = spooled(&mut &b"abc"[..], "standard input", Some(directory.path())).unwrap();
        let mut text = String::new();
        copy.read_to_string(&mut text).unwrap();
        copy.seek(SeekFrom::Start(1)).unwrap();
        copy.read_to_string(&mut text).unwrap();
        assert_eq!(text, "abcbc");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    /// The journal of a rank that had made five calls.
    fn five_calls() -> Vec<u8> {
        let mut r = RankRecorder::new(0, Options::default());
        let (thread, site) = (r.open_thread(0), r.sites.label("here"));
        let sym = r.symbol(CallId(9), site, 0);
        for _ in 0..5 {
            r.record(thread, sym, &[0; 8], 0, 0);
        }
        let snapshot = journal::snapshot(&r, &Header::default(), &[], "here").unwrap();
        journal::whole(&snapshot, &[])
    }

    #[test]
    fn a_journal_takes_as_many_steps_as_it_is_opened_with() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rank-000000.1.journal");
        fs::write(&path, five_calls()).unwrap();
        let open = |max_steps| Input::open(&path, &Steps { max_steps });
        let mut stream = Vec::new();
        open(100).unwrap().read_to_end(&mut stream).unwrap();
        assert!(stream.starts_with(&st_stream::MAGIC));
        let refused = format!("{:#}", open(3).unwrap_err());
        assert!(refused.contains(".journal: ") && refused.contains("--max-steps allows 3"), "{refused}");
        // What one reader was told does not hold for the next.
        assert!(open(100).is_ok());
    }

    /// A file whose content is another one each time that it is read anew, the last of them for ever.
    struct Turning(Vec<Vec<u8>>, Cursor<Vec<u8>>);

    impl Read for Turning {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            self.1.read(buf)
        }
    }

    impl Seek for Turning {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            if self.0.len() > 1 {
                self.0.remove(0);
            }
            self.1 = Cursor::new(self.0[0].clone());
            self.1.seek(to)
        }
    }

    #[test]
    fn a_journal_is_read_until_no_region_has_taken_the_place_of_another_meanwhile() {
        // The head with the generation, and what is behind it.
        let of = |generation: u8| {
            let mut bytes = vec![generation; PAGE + 100];
            bytes[..PAGE].fill(0);
            bytes[journal::REGIONS[usize::from(generation % 2)]] = generation;
            bytes
        };
        let read = |all: &[u8]| {
            let all: Vec<_> = all.iter().map(|generation| of(*generation)).collect();
            unchanged(&mut Turning(all.clone(), Cursor::new(all[0].clone())))
        };
        assert_eq!(read(&[4]).unwrap(), of(4));
        // Read, and its head; read again, and its head.
        assert_eq!(read(&[4, 5, 6, 6]).unwrap(), of(6));
        assert_eq!(read(&[4, 4, 6]).unwrap(), of(4));
        let always: Vec<u8> = (0..=250).collect();
        let error = read(&always).unwrap_err();
        assert!(error.to_string().contains("faster than it can be read"), "{error}");
    }
}
