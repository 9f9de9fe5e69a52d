//! Sketches that follow from exact times.

use crate::sections::recorder;
use crate::stream::{bytes, frame, read};
use crate::whole::{pair, sample};
use st_capture::record::Finished;
use st_model::calls::CallTable;
use st_model::columns::{Chunk, Column, Comparison};
use st_model::section::{ANY_SYM, Section};
use st_model::sketch::Shape;
use st_stream::{ReadOptions, Reader, TimeBytes, Trace, WriteOptions, Writer, frame_sizes, most_calls};

const LEVEL: u8 = 9;

fn file(sections: Vec<Section>) -> Vec<u8> {
    bytes(&Trace { sections, level: LEVEL, ..Trace::default() })
}

/// Whether the sketches of a section are left out of a file, from which it comes back all the same.
fn left_out(section: &Section) -> bool {
    let file = file(vec![section.clone()]);
    assert_eq!(read(&file).unwrap().sections, std::slice::from_ref(section));
    let frames = frame_sizes(&file[..], ReadOptions::default()).unwrap();
    let has = |kind: &str| frames.iter().any(|f| f.kind == kind);
    assert_ne!(has("DERIVED"), has("SKETCH"));
    has("DERIVED")
}

#[test]
fn they_are_left_out_of_files_and_not_of_pipes() {
    assert!(left_out(&sample(0)));
    let pipe = bytes(&Trace { sections: vec![sample(0)], level: 1, ..Trace::default() });
    assert_eq!(read(&pipe).unwrap().sections, [sample(0)]);
    let frames = frame_sizes(&pipe[..], ReadOptions::default()).unwrap();
    assert!(frames.iter().any(|f| f.kind == "SKETCH"));
}

#[test]
fn what_does_not_follow_is_stored() {
    let changed = |change: &dyn Fn(&mut Section)| {
        let mut section = sample(0);
        change(&mut section);
        section
    };
    assert!(!left_out(&changed(&|s| s.threads[0].sketches[1].compute.sum += 1)));
    assert!(!left_out(&changed(&|s| drop(s.threads[0].sketches.pop()))));
    assert!(!left_out(&changed(&|s| s.threads[0].columns.clear())));
    let any = |s: &mut Section| s.threads[0].sketches.iter_mut().for_each(|path| path.pred = ANY_SYM);
    let any = file(vec![changed(&any)]);
    assert!(frame_sizes(&any[..], ReadOptions::default()).unwrap().iter().all(|f| f.kind != "DERIVED"));
    let pair = file(vec![pair()]);
    assert!(frame_sizes(&pair[..], ReadOptions::default()).unwrap().iter().all(|f| f.kind != "DERIVED"));
}

/// A rank that makes one call so often, after its first.
fn loops(calls: u64) -> Section {
    threads(1, calls, Shape::Buckets)
}

/// The same in each of some threads.
fn threads(threads: usize, calls: u64, shape: Shape) -> Section {
    let mut r = recorder(3, shape);
    let mut chunks = vec![Vec::new(); threads];
    let sym = r.symbol(CallTable::builtin().by_name("MPI_Barrier").unwrap().id, 0, 0);
    for (thread, chunks) in chunks.iter_mut().enumerate() {
        assert_eq!(r.open_thread(0), thread);
        for i in 0..i64::try_from(calls).unwrap() {
            chunks.extend(r.record(thread, sym, &[0], 100 * i + i % 7, 100 * i + 50).map(|c| *c));
        }
    }
    for (thread, chunk) in r.flush_columns() {
        chunks[usize::try_from(thread).unwrap()].push(chunk);
    }
    let mut section = r.finish("host");
    for (thread, chunks) in section.threads.iter_mut().zip(chunks) {
        thread.columns.push((3, Column { chunks, clock: Comparison::default() }));
    }
    section
}

#[test]
fn each_thread_has_its_own_in_any_shape() {
    for shape in [Shape::Buckets, Shape::BINS, Shape::Totals] {
        assert!(left_out(&threads(3, 700, shape)));
        // All are stored if those of one thread do not follow.
        let mut one = threads(3, 700, shape);
        one.threads[1].sketches[0].comm.sum += 1;
        assert!(!left_out(&one));
    }
}

#[test]
fn copies_have_them_at_any_level() {
    let section = sample(0);
    for (from, to) in [(1, 9), (9, 1), (9, 9), (9, 19)] {
        let source = bytes(&Trace { sections: vec![section.clone()], level: from, ..Trace::default() });
        let mut writer =
            Writer::new(Vec::new(), &Trace::default().header, WriteOptions { level: to }).unwrap();
        writer.copy(&mut Reader::new(&source[..], ReadOptions::default()).unwrap()).unwrap();
        let copy = writer.finish().unwrap();
        assert_eq!(read(&copy).unwrap().sections, std::slice::from_ref(&section));
        assert!(frame_sizes(&copy[..], ReadOptions::default()).unwrap().iter().any(|f| f.kind == "DERIVED"));
    }
}

#[test]
fn those_of_many_calls_each_are_stored_because_making_them_takes_longer_than_it_is_worth() {
    // The first call, and those after another one.
    assert_eq!(loops(9).threads[0].sketches.len(), 2);
    assert!(left_out(&loops(most_calls(2))));
    assert!(!left_out(&loops(most_calls(2) + 1)));
}

#[test]
fn what_a_stream_would_have_without_exact_times_is_known() {
    let written = |section: &Section| {
        let mut writer =
            Writer::new(Vec::new(), &Trace::default().header, WriteOptions { level: LEVEL }).unwrap();
        writer.section(section).unwrap();
        let times = writer.time_bytes().unwrap();
        (u64::try_from(writer.finish().unwrap().len()).unwrap(), times)
    };
    for section in [sample(0), loops(500), loops(5_000)] {
        let mut without = section.clone();
        without.threads[0].columns.clear();
        let ((all, times), (truth, none)) = (written(&section), written(&without));
        assert_eq!((times.without(all), none), (truth, Default::default()));
        assert_eq!(times.spared > 0, left_out(&section));
    }
}

#[test]
fn what_does_not_follow_is_refused() {
    let section = sample(0);
    let sketches = u8::try_from(section.threads[0].sketches.len()).unwrap();
    let file = file(vec![section]);
    let own = frame(19, 0, &[1, sketches]);
    let at = file.windows(own.len()).position(|bytes| bytes == own).unwrap();
    let said = |payload: &[u8]| {
        let mut changed = file.clone();
        changed.splice(at..at + own.len(), frame(19, 0, payload));
        read(&changed).map_err(|e| format!("{e}: {:?}", std::error::Error::source(&e)))
    };
    assert!(said(&[1, sketches]).is_ok());
    assert!(said(&[0]).unwrap().sections[0].threads[0].sketches.is_empty());
    // Those of another shape follow, too: it is what the recorder was told.
    assert!(said(&[2, sketches]).is_ok());
    for payload in [
        &[4, sketches][..],
        &[1],
        &[],
        &[1, sketches, 0],
        &[1, sketches + 1],
        &[1, 0],
        &[1, 255, 255, 255, 1],
    ] {
        let refused = said(payload).unwrap_err();
        assert!(refused.contains("DERIVED"), "{refused}");
    }
}

/// A rank that makes some calls in no order, each so often after each; its exact times; and what it is if none is left out.
fn irregular(times: u64, left_out: i64) -> (Finished, Vec<Chunk>, Section) {
    let mut r = recorder(3, Shape::Buckets);
    let call = CallTable::builtin().by_name("MPI_Barrier").unwrap().id;
    let symbols: Vec<_> = (0..4).map(|error| r.symbol(call, 0, error)).collect();
    let thread = r.open_thread(0);
    let (mut chunks, mut now) = (Vec::new(), 0);
    for i in 0..16 * times {
        let n = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let sym = symbols[usize::try_from(n % 4).unwrap()];
        let (enter, exit) = (now + i64::try_from(n % 5000).unwrap(), now + 6000);
        chunks.extend(r.record(thread, sym, &[0], enter, exit).map(|c| *c));
        now = exit;
    }
    chunks.extend(r.leave_out(thread, left_out).map(|c| *c));
    chunks.extend(r.flush_columns().into_iter().map(|(_, chunk)| chunk));
    let mut whole = r.clone().finish("host");
    whole.threads[0].columns.push((3, Column { chunks: chunks.clone(), clock: Comparison::default() }));
    (r.finish_for_writing("host", true), chunks, whole)
}

/// A recorder's stream.
fn written(finished: &Finished, chunks: &[Chunk]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &Trace::default().header, WriteOptions { level: 4 }).unwrap();
    chunks.iter().for_each(|chunk| writer.column_chunk(3, 0, chunk).unwrap());
    writer.recorded(&finished.section, finished.left_out.clone()).unwrap();
    writer.finish().unwrap()
}

/// A file that a stream is copied to, and what exact times add to it.
fn packed(stream: &[u8]) -> (Vec<u8>, TimeBytes) {
    let mut writer =
        Writer::new(Vec::new(), &Trace::default().header, WriteOptions { level: LEVEL }).unwrap();
    writer.copy(&mut Reader::new(stream, ReadOptions::default()).unwrap()).unwrap();
    let times = writer.time_bytes().unwrap();
    (writer.finish().unwrap(), times)
}

#[test]
fn a_recorder_leaves_out_those_of_few_calls_and_files_are_the_same() {
    let (mut finished, chunks, whole) = irregular(8, 0);
    assert!(finished.left_out.is_some() && finished.section.threads[0].sketches.is_empty());
    let short = written(&finished, &chunks);
    assert_eq!(read(&short).unwrap().sections, std::slice::from_ref(&whole));
    // Exact times could not be written after all.
    finished.sketch();
    assert_eq!(finished.section.threads[0].sketches, whole.threads[0].sketches);
    assert!(finished.left_out.is_none());
    let long = written(&finished, &chunks);
    assert_eq!(read(&long).unwrap().sections, std::slice::from_ref(&whole));
    assert!(short.len() < long.len());
    let (file, times) = packed(&short);
    assert_eq!((file, times), packed(&long));
    assert!(times.spared > 0);
}

#[test]
fn a_recorder_keeps_those_that_others_would_not_make_as_fast_or_not_at_all() {
    assert!(irregular(100, 0).0.left_out.is_none());
    let (finished, _, whole) = irregular(8, 1000);
    assert!(finished.left_out.is_none());
    assert_eq!(finished.section.threads[0].sketches, whole.threads[0].sketches);
}
