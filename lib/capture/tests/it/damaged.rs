//! Damage behind checksums: whatever is in a stream or journal, it is read or refused, and what is read is a trace.

use std::fs;
use std::path::PathBuf;

use st_capture::journal::recover;
use st_model::steps::Budget;
use st_stream::{ReadOptions, Trace, WriteOptions, read, write};

/// Damaged variants of each stream.
const SEEDS: u64 = 12;
/// How journals are kept.
const JOURNAL: &str = ".journal.zst";
/// Longer ones take longer.
const LONGEST: usize = 40_000;
/// A few bytes can stand for many calls; nobody waits for the end.
const CALLS: u64 = 10_000;

/// What the repository keeps of streams, or of journals.
fn kept(extension: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data")];
    while let Some(directory) = directories.pop() {
        for path in fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()) {
            if path.is_dir() {
                directories.push(path);
            } else if path.to_str().unwrap().ends_with(extension) {
                let mut bytes = fs::read(&path).unwrap();
                if extension == JOURNAL {
                    bytes = zstd::stream::decode_all(&bytes[..]).unwrap();
                }
                found.push((path, bytes));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty());
    found
}

/// A trace that was read is written and read again unchanged, and its calls are read back, up to where they are malformed.
fn is_sound(trace: &Trace) {
    let mut again = Vec::new();
    write(trace, &mut again, WriteOptions { level: 0 }).unwrap();
    assert_eq!(&read(&again[..], ReadOptions::default()).unwrap().sections, &trace.sections);
    let mut words = Vec::new();
    for section in &trace.sections {
        let steps = section.steps(None);
        for (i, thread) in section.threads.iter().enumerate() {
            let Some(rank) = thread.ranks.lowest() else { continue };
            let Some(mut calls) = section.project(i, rank) else { continue };
            let mut n = 0;
            while n < CALLS && matches!(calls.next_call(&mut words), Ok(Some(_))) {
                n += 1;
            }
            assert!(n <= steps, "{n} calls in {steps} steps");
            let times = thread.columns.iter().find(|(of, _)| *of == rank).map_or(0, |(_, c)| c.events());
            assert!(
                n == CALLS || calls.next_call(&mut words).is_err() || times <= n,
                "{times} times, {n} calls"
            );
        }
    }
}

#[test]
fn damaged_streams_are_read_or_refused() {
    let (mut taken, mut refused) = (0, 0);
    for (path, whole) in kept(".st") {
        let trace = read(&whole[..], ReadOptions::default()).unwrap();
        let mut plain = Vec::new();
        write(&trace, &mut plain, WriteOptions { level: 0 }).unwrap();
        for bytes in [&whole, &plain].into_iter().filter(|bytes| bytes.len() < LONGEST) {
            let frames = st_damage::frames(bytes).unwrap();
            assert_eq!(&st_damage::stream(bytes, &frames), bytes, "{}", path.display());
            for seed in 0..SEEDS {
                let damaged = st_damage::damaged(bytes, seed).unwrap();
                match read(&damaged[..], ReadOptions { partial: seed % 4 == 0 }) {
                    Ok(trace) => {
                        taken += 1;
                        is_sound(&trace);
                    }
                    Err(e) => {
                        refused += 1;
                        assert!(!format!("{e:?}").contains("Checksum"), "{}: {seed}: {e}", path.display());
                    }
                }
            }
        }
    }
    assert!(taken > 20 && refused > 200, "{taken} taken, {refused} refused");
}

#[test]
fn damaged_journals_are_read_or_refused() {
    let mut taken = 0;
    for (path, whole) in kept(JOURNAL) {
        for seed in 0..4 * SEEDS {
            let damaged = st_damage::damaged_journal(&whole, seed).unwrap();
            assert_ne!(damaged.len(), 0, "{}", path.display());
            if let Ok(trace) = recover(&damaged, std::io::empty(), &Budget::new(CALLS)) {
                taken += 1;
                is_sound(&trace);
            }
        }
    }
    assert!(taken > 20, "{taken} taken");
}
