//! Streams that several threads write, and what they write of long times.

use proptest::prelude::*;
use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::columns::{CHUNK_EVENTS, Column};
use st_model::section::Section;
use st_stream::{ReadOptions, Reader, Trace, WriteOptions, Writer};

use super::{bytes, read, trace};
use crate::sections::recorded;
use crate::whole::sample;

/// A rank's section with so many calls whose times are long and without order, and so many as others.
fn long(rank: u32, odd: u32, usual: u32) -> Section {
    let mut recorder = RankRecorder::new(rank, Options::default());
    let thread = recorder.open_thread(0);
    let site = recorder.sites.label("loop");
    let barrier = recorder.symbol(CallTable::builtin().by_name("MPI_Barrier").unwrap().id, site, 0);
    let (mut column, mut at, mut noise) = (Column::default(), 0i64, 1u64);
    for event in 0..odd + usual {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = |by: u32| (noise >> by & 0xfff).cast_signed();
        let (gap, duration) =
            if event < odd { (noise.cast_signed(), !noise.cast_signed()) } else { (part(20), part(40)) };
        let enter = at.wrapping_add(gap);
        at = enter.wrapping_add(duration);
        column.chunks.extend(recorder.record(thread, barrier, &[0], enter, at).map(|c| *c));
    }
    column.chunks.extend(recorder.flush_columns().into_iter().map(|(_, chunk)| chunk));
    let mut section = recorder.finish("node");
    section.threads[0].columns = vec![(rank, column)];
    section
}

/// What each frame of a kind is called, in order, and what they take.
fn kinds(stream: &[u8]) -> Vec<(String, u64, u64)> {
    let sizes = st_stream::frame_sizes(stream, ReadOptions::default()).unwrap();
    let times = sizes.into_iter().filter(|f| ["COLUMN", "SPANS"].contains(&&*f.kind));
    times.map(|f| (f.kind, f.stored, f.expanded)).collect()
}

#[test]
fn beyond_the_first_mebibyte_times_are_frames_of_many_chunks() {
    let whole =
        trace(vec![long(0, 4 * CHUNK_EVENTS, 3 * CHUNK_EVENTS), long(1, 0, 2 * CHUNK_EVENTS + 9)], 19);
    let written = bytes(&whole);
    assert_eq!(read(&written).unwrap(), whole);
    assert_eq!(by_threads(&whole, 3), written);
    let frames = kinds(&written);
    let names: Vec<_> = frames.iter().map(|(kind, ..)| kind.as_str()).collect();
    assert_eq!(names, [&["COLUMN"; 4][..], &["SPANS"; 2]].concat());
    // What other levels have, byte for byte as they write it by themselves.
    let level = 9;
    let flat = bytes(&Trace { level, ..whole.clone() });
    assert!(kinds(&flat).iter().all(|(kind, ..)| kind == "COLUMN"));
    let all = |frames: &[(String, u64, u64)]| frames.iter().map(|f| f.2).sum::<u64>();
    assert_eq!(all(&kinds(&flat)), all(&frames));
    for (from, to, by_itself) in [(&flat, 19, &written), (&written, level, &flat)] {
        let mut writer = Writer::new(Vec::new(), &whole.header, WriteOptions { level: to }).unwrap();
        writer.provenance(&whole.provenance[0]).unwrap();
        assert_eq!(writer.copy(&mut Reader::new(&from[..], ReadOptions::default()).unwrap()).unwrap(), 2);
        let copy = writer.finish().unwrap();
        assert_eq!(&copy, by_itself, "level {level} to {to}");
    }
    // As it is to a stream of the same level, and by the index.
    let mut writer = Writer::new(Vec::new(), &whole.header, WriteOptions { level: 19 }).unwrap();
    writer.copy(&mut Reader::new(&written[..], ReadOptions::default()).unwrap()).unwrap();
    assert_eq!(kinds(&writer.finish().unwrap()), frames);
    let mut reader = Reader::new(std::io::Cursor::new(&written), ReadOptions::default()).unwrap();
    let places = reader.index().unwrap().unwrap();
    reader.seek(&places[1]).unwrap();
    assert_eq!(reader.next_section().unwrap().as_ref(), Some(&whole.sections[1]));
    // Two thirds of what zstd takes, which takes more than it finds where nothing repeats.
    let usual = trace(vec![long(1, 0, 2 * CHUNK_EVENTS + 9)], 9);
    let zstd: u64 = kinds(&bytes(&usual)).iter().map(|f| f.1).sum();
    assert!(10 * frames[5].1 < 9 * zstd, "{} of {zstd}", frames[5].1);
}

/// Sections in a stream that several threads write.
fn by_threads(trace: &Trace, threads: usize) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &trace.header, WriteOptions { level: trace.level }).unwrap();
    writer.threads(threads).unwrap();
    trace.provenance.iter().for_each(|step| writer.provenance(step).unwrap());
    trace.sections.iter().for_each(|section| writer.section(section).unwrap());
    writer.finish().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_number_of_threads_writes_the_same(
        ranks in prop::collection::vec(recorded(), 0..12), level in prop_oneof![0u8..4, Just(19u8), Just(20)], threads in 2usize..6,
    ) {
        let sections: Vec<Section> = (0..).zip(&ranks).map(|(r, calls)| calls.section(r)).collect();
        let whole = trace(sections, level);
        prop_assert_eq!(by_threads(&whole, threads), bytes(&whole));
        let ranks = bytes(&Trace { level: 9, ..whole.clone() });
        let copies = [1, threads].map(|threads| {
            let mut writer = Writer::new(Vec::new(), &whole.header, WriteOptions { level }).unwrap();
            writer.threads(threads).unwrap();
            writer.copy(&mut Reader::new(&ranks[..], ReadOptions::default()).unwrap()).unwrap();
            let times = writer.time_bytes().unwrap();
            (times, writer.finish().unwrap())
        });
        prop_assert_eq!(&copies[0], &copies[1]);
    }
}

/// Takes so many bytes, and then no more.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_whoever_compresses() {
    let sections: Vec<Section> = (0..8).map(sample).collect();
    let whole = trace(sections, 19);
    let length = bytes(&whole).len();
    for (room, threads) in [(length, 3), (length - 1, 3), (length / 2, 3), (length / 2, 1), (200, 2)] {
        let written = || {
            let mut writer = Writer::new(Full(room), &whole.header, WriteOptions { level: 19 })?;
            writer.threads(threads)?;
            whole.provenance.iter().try_for_each(|step| writer.provenance(step))?;
            whole.sections.iter().try_for_each(|section| writer.section(section))?;
            writer.finish().map(drop)
        };
        assert_eq!(written().is_ok(), room == length, "{room} of {length}, {threads} threads");
    }
}
