//! Any bytes are a journal or an error, and what is recovered is a stream that proves itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use st_model::header::Header;
use st_capture::journal::{self, recover};
use st_capture::record::{Options, RankRecorder};
use st_model::steps::Budget;
use st_stream::{ReadOptions, WriteOptions, read, write};

/// A few bytes can stand for many calls; nobody waits for the end.
const EVENTS: u64 = 10_000;

/// A journal with an empty snapshot and these bytes as its log: checksums keep a fuzzer out of everything but that.
fn with_log(log: &[u8]) -> Vec<u8> {
    let mut recorder = RankRecorder::new(0, Options::default());
    recorder.open_thread(0);
    let snapshot = journal::snapshot(&recorder, &Header::default(), &[], "host").expect("a vector takes all");
    journal::whole(&snapshot, log)
}

fuzz_target!(|bytes: &[u8]| {
    let _ = recover(bytes, std::io::empty(), &Budget::new(EVENTS));
    let trace = recover(&with_log(bytes), std::io::empty(), &Budget::new(EVENTS)).expect("its snapshot is whole");
    let mut stream = Vec::new();
    write(&trace, &mut stream, WriteOptions { level: 0 }).expect("a vector takes all");
    let back = read(&stream[..], ReadOptions::default()).expect("what was written is a stream");
    assert_eq!(back.sections, trace.sections);
});
