//! Streams that older versions wrote (`tests/data`, made by `tools/test-data`) are read for ever, by every program, and hold
//! what they held. What that is stands beside each: `NAME.calls`, see [`content`]; where there is `NAME.text`, that reads
//! as the same trace. Needs no MPI and nothing built before.
//!
//! `ST_TESTS_DATA=write` writes what is missing there, and nothing else: to be looked at before it is committed.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod content;
mod readers;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use st_cli::each_section;
use st_cli::options::{StreamIn, threads};
use st_stream::{CURRENT, MAGIC, Trace};
use st_tests::{Failure, conclude};
use tempfile::TempDir;

/// Where the sets of streams are, one directory per version of the format.
fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data")
}

fn sorted(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths
}

/// A trace of a set, and where it can be read: directories of streams and journals are put together in a place of their own.
struct Kept {
    /// Its name without extension: that of the files of what it holds.
    stem: PathBuf,
    /// What to read.
    path: PathBuf,
    _place: Option<TempDir>,
}

impl Kept {
    /// The trace at a path of a set; `None` if what is there is no trace.
    fn at(path: PathBuf) -> Option<Self> {
        let stem = path.with_extension("");
        if path.extension().is_some_and(|e| e == "st") {
            return Some(Self { stem, path, _place: None });
        }
        if !path.is_dir() {
            return None;
        }
        let place = st_tests::place::unpacked(&path).unwrap();
        Some(Self { stem, path: place.path().to_owned(), _place: Some(place) })
    }
}

/// All traces of all sets.
fn kept() -> Vec<Kept> {
    sorted(&data()).iter().flat_map(|set| sorted(set)).filter_map(Kept::at).collect()
}

/// Reads a file, or the streams and journals of a directory, as every program does.
fn read(path: &Path) -> Result<Trace, Failure> {
    let mut sections = Vec::new();
    let whole = each_section(&[path.to_owned()], &StreamIn::default(), |_, section| {
        sections.push(section);
        Ok(())
    });
    let whole = whole.map_err(|e| format!("{}: {e:#}", path.display()))?;
    let st_cli::Whole { header, provenance, complete, level, explanation, .. } = whole;
    Ok(Trace { header, provenance, sections, explanation, complete, level })
}

/// Runs a test on each trace of each set, on all processors, and fails with all that failed.
fn each(test: impl Fn(&Kept, &Trace) -> Result<(), Failure> + Sync) {
    let (all, next) = (kept(), AtomicUsize::new(0));
    let faults = || {
        let left = std::iter::from_fn(|| all.get(next.fetch_add(1, Ordering::Relaxed)));
        left.filter_map(|k| {
            let fault = read(&k.path).and_then(|trace| test(k, &trace)).err()?;
            Some(format!("{}: {fault}", k.stem.display()))
        })
        .collect::<Vec<Failure>>()
    };
    let failed: Vec<Failure> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads(0)).map(|_| scope.spawn(faults)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    conclude(all.len(), &failed);
}

#[test]
fn what_is_read_is_what_was_stored() {
    each(|kept, trace| {
        let path = kept.stem.with_extension("calls");
        let found = content::content(trace)?;
        if !path.exists() && std::env::var_os("ST_TESTS_DATA").is_some_and(|v| v == "write") {
            return fs::write(&path, found).map_err(|e| e.to_string());
        }
        let stored = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        content::same(&stored, &found)
    });
}

#[test]
fn every_program_reads_it() {
    each(|kept, trace| readers::all(&kept.path, trace));
}

#[test]
fn text_forms_read_as_the_streams_beside_them() {
    let texts: Vec<_> = sorted(&data()).iter().flat_map(|set| sorted(set)).collect();
    let texts: Vec<_> = texts.iter().filter(|p| p.extension().is_some_and(|e| e == "text")).collect();
    assert!(!texts.is_empty());
    for path in texts {
        let trace = st_stream::text::parse(&fs::read(path).unwrap()[..]).unwrap();
        assert!(trace == read(&path.with_extension("st")).unwrap(), "{} reads otherwise", path.display());
    }
}

#[test]
fn a_set_is_of_the_version_that_its_directory_names() {
    for set in sorted(&data()) {
        let name = set.file_name().unwrap().to_str().unwrap().trim_start_matches('v').to_owned();
        let (major, minor) = name.split_once('.').unwrap_or((&name, "0"));
        let version: [u8; 2] = [major.parse().unwrap(), minor.parse().unwrap()];
        assert!(version <= [CURRENT.major, CURRENT.minor], "version {name} is still to come");
        for stream in sorted(&set).iter().filter(|p| p.extension().is_some_and(|e| e == "st")) {
            let bytes = fs::read(stream).unwrap();
            assert_eq!(bytes[MAGIC.len()..][..2], version, "{}", stream.display());
        }
    }
}
