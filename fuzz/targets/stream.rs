//! Any bytes are a stream or an error, and a stream that was read is written and read again unchanged. Its ranks
//! can be projected, up to where they are malformed, and merged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use st_model::steps::Budget;
use st_reduce::merge::Merger;
use st_stream::{ReadOptions, Trace, WriteOptions, read, write};

/// A few bytes can stand for many calls; nobody waits for the end.
const CALLS: usize = 1000;
/// Nor of a merge.
const STEPS: u64 = 100_000;

fuzz_target!(|bytes: &[u8]| {
    let Ok(trace) = read(bytes, ReadOptions { partial: true }) else { return };
    if trace.complete {
        let mut again = Vec::new();
        write(&trace, &mut again, WriteOptions { level: 0 }).expect("a vector takes all");
        let back = read(&again[..], ReadOptions::default()).expect("what was written is a stream");
        assert_eq!(Trace { level: trace.level, ..back }, trace);
    }
    let mut words = Vec::new();
    for section in &trace.sections {
        for (i, thread) in section.threads.iter().enumerate() {
            let Some(rank) = thread.ranks.iter().next() else { continue };
            let Some(mut calls) = section.project(i, rank) else { continue };
            for _ in 0..CALLS {
                if !matches!(calls.next_call(&mut words), Ok(Some(_))) {
                    break;
                }
            }
        }
    }
    let mut merger = Merger::new(false).within(Budget::new(STEPS));
    if trace.sections.into_iter().all(|section| merger.add(section).is_ok()) {
        drop(merger.finish());
    }
});
