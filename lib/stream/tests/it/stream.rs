//! Streams: whole, cut short, damaged, of other versions.

mod threads;

use crate::full::{self, full};
use crate::sections::{recorded, recorder};
use crate::whole::{pair, sample};
use proptest::prelude::*;
use st_model::calls::CallTable;
use st_model::header::{Clock, Header, Mpi, Queued, Step};
use st_model::ints::Sealed;
use st_model::objects::Registered;
use st_model::ranklist::RankList;
use st_model::section::{ANY_SYM, Elastic, Entry, NO_SYM, Section, SlotStreams, Sym};
use st_model::sketch::Shape;
use st_stream::objects::{Codec, get_object, put_object};
use st_stream::{CURRENT, ErrorKind, MAGIC, ReadOptions, Reader, Trace, WriteOptions, Writer};

const PARTIAL: ReadOptions = ReadOptions { partial: true };

fn trace(sections: Vec<Section>, level: u8) -> Trace {
    let header = Header {
        world: 8,
        program: "a \"quoted\" name".into(),
        args: vec!["-n".into(), String::new()],
        run: "0123456789abcdef0123456789abcdef".into(),
        started: u64::MAX,
        mpi: Mpi { flavour: "openmpi".into(), version: "4.1.4".into(), standard: "3.1".into() },
        clock: Clock { source: "tsc".into(), resolution: 3 },
        bindings: vec!["c".into(), "mpi_f08".into()],
        options: [("time".to_owned(), "full".into())].into(),
        allowed: [("node1".to_owned(), "0-3,8".to_owned())].into(),
        processors: [(5, 2), (64, 1)].into(),
        queued: Some(Queued { ns: 70, ranks: 4, longest_ns: 40, longest_rank: 2 }),
        more: [("newer".to_owned(), 5.into())].into_iter().collect(),
    };
    let step = Step { tool: "st-test".into(), version: "1".into(), args: vec!["--x".into()] };
    Trace { header, provenance: vec![step], sections, level, ..Trace::default() }
}

pub(crate) fn bytes(trace: &Trace) -> Vec<u8> {
    let mut out = Vec::new();
    st_stream::write(trace, &mut out, WriteOptions { level: trace.level }).unwrap();
    out
}

pub(crate) fn read(bytes: &[u8]) -> Result<Trace, st_stream::Error> {
    st_stream::read(bytes, ReadOptions::default())
}

/// Checks that nothing a reader accepts makes the rest of the library panic.
fn use_up(trace: &Trace) {
    for s in &trace.sections {
        for (i, t) in s.threads.iter().enumerate() {
            for rank in t.ranks.iter().take(4) {
                if let Some(calls) = s.project(i, rank) {
                    calls.take(10_000).take_while(Result::is_ok).for_each(drop);
                }
            }
            t.columns.iter().for_each(|(_, c)| assert!(c.times().count() as u64 == c.events()));
        }
    }
}

#[test]
fn a_predecessor_must_be_a_symbol() {
    let of = |preds: [Sym; 2]| {
        let mut section = sample(0);
        let sketches = &mut section.threads[0].sketches;
        sketches.truncate(2);
        sketches.iter_mut().zip(preds).for_each(|(path, pred)| path.pred = pred);
        read(&bytes(&trace(vec![section], 0)))
    };
    // Whether or not some path has any predecessor: numbers are others then.
    for pred in [NO_SYM, ANY_SYM, 0] {
        let read = of([pred, 1]).unwrap();
        assert_eq!(
            read.sections[0].threads[0].sketches.iter().map(|s| s.pred).collect::<Vec<_>>(),
            [pred, 1]
        );
        let refused = of([pred, 1_000]).unwrap_err();
        let said =
            std::error::Error::source(&refused).map(|e| format!("{refused}: {e:?}")).unwrap_or_default();
        assert!(said.contains("1000"), "{refused:?}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(ranks in prop::collection::vec(recorded(), 0..4), level in 0u8..4) {
        let sections: Vec<Section> = (0..).zip(&ranks).map(|(r, calls)| calls.section(r)).collect();
        let trace = trace(sections, level);
        let written = bytes(&trace);
        let back = read(&written).unwrap();
        prop_assert_eq!(&back, &trace);
        prop_assert_eq!(bytes(&back), written);
    }

    #[test]
    fn every_field_is_written_and_read(section in full()) {
        let trace = trace(vec![section], 0);
        prop_assert_eq!(&read(&bytes(&trace)).unwrap(), &trace);
    }

    #[test]
    fn an_object_by_itself_comes_back(tables in full::tables(), family: u128) {
        fn check<T: Codec + Clone + PartialEq + std::fmt::Debug>(table: &[Entry<T>], family: u128) {
            for (_, object) in table.iter().flat_map(|e| &e.of) {
                let mut out = Vec::new();
                put_object(&mut out, &Registered { family, object: object.clone() }, 3);
                assert_eq!(get_object::<T>(&mut &out[..], 3).unwrap(), (family, object.clone()));
            }
        }
        check(&tables.comms, family);
        check(&tables.wins, family);
        check(&tables.types, family);
        check(&tables.texts, family);
    }

    #[test]
    fn damage_is_never_a_panic(at in any::<prop::sample::Index>(), xor in 1u8.., level in 0u8..2) {
        let mut written = bytes(&trace(vec![sample(0), sample(1)], level));
        let at = at.index(written.len());
        written[at] ^= xor;
        // Flips in the preamble's minor version and level change nothing that is read.
        let harmless = at == MAGIC.len() + 1 || at == MAGIC.len() + 2;
        for options in [ReadOptions::default(), PARTIAL] {
            let result = st_stream::read(&written[..], options);
            if !harmless && !options.partial {
                prop_assert!(result.is_err(), "byte {at} xor {xor}");
            }
            result.iter().for_each(use_up);
        }
    }

    #[test]
    fn damage_behind_a_good_checksum_is_never_a_panic(at in any::<prop::sample::Index>(), xor in 1u8..) {
        let mut written = bytes(&trace(vec![pair()], 0));
        let at = at.index(written.len());
        written[at] ^= xor;
        mend(&mut written);
        if let Ok(accepted) = read(&written) {
            use_up(&accepted);
            prop_assert_eq!(&read(&bytes(&accepted)).unwrap(), &accepted);
            let mut text = Vec::new();
            st_stream::text::write(&accepted, &mut text).unwrap();
            prop_assert_eq!(&st_stream::text::parse(&text[..]).unwrap(), &accepted);
        }
    }

    #[test]
    fn any_bytes_are_never_a_panic(tail in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([CURRENT.major, 0, 0]);
        bytes.extend(tail);
        prop_assert!(read(&bytes).is_err());
    }
}

/// Recomputes the checksums of as many frames as can be followed.
fn mend(bytes: &mut [u8]) {
    let mut at = MAGIC.len() + 3;
    while let Some(rest) = bytes.get(at + 2..) {
        let Some(width) = rest.iter().take(4).position(|b| *b < 0x80).map(|i| i + 1) else { return };
        let len = rest[..width].iter().rev().fold(0usize, |v, b| v << 7 | usize::from(b & 0x7F));
        let (crc, payload) = (at + 2 + width, at + 2 + width + 4);
        let Some(stored) = bytes.get(payload..payload + len) else { return };
        let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[at..crc]), stored);
        bytes[crc..payload].copy_from_slice(&sum.to_le_bytes());
        at = payload + len;
    }
}

#[test]
fn every_truncation_is_told_and_keeps_whole_sections() {
    let whole = trace(vec![sample(0), sample(1), sample(2)], 1);
    let written = bytes(&whole);
    let mut kept = Vec::new();
    for cut in 0..written.len() {
        let error = read(&written[..cut]).unwrap_err();
        assert!(error.is_truncated() || cut == 0, "{cut}: {error}");
        if let Ok(part) = st_stream::read(&written[..cut], PARTIAL) {
            assert!(!part.complete);
            assert_eq!(part.sections[..], whole.sections[..part.sections.len()], "cut at {cut}");
            kept.push(part.sections.len());
        }
    }
    assert!(kept.is_sorted());
    kept.dedup();
    assert_eq!(kept, [0, 1, 2, 3]);
}

#[test]
fn classes_of_ranks_and_relative_endpoints_are_kept() {
    for level in [0, 1] {
        let trace = trace(vec![pair(), sample(5)], level);
        assert_eq!(read(&bytes(&trace)).unwrap(), trace);
    }
    let peers = |rank| {
        let first = pair().project(0, rank).unwrap().next().unwrap().unwrap();
        first.words[2]
    };
    assert_eq!((peers(0), peers(1)), (1, 2));
}

#[test]
fn a_count_below_zero_is_refused() {
    let mut section = pair();
    let node = section.threads[0].counts.last_mut().unwrap();
    *node = Elastic { partition: 0, streams: [Sealed::from_constant(-1)].into(), ..node.clone() };
    let text = format!("{:?}", read(&bytes(&trace(vec![section], 0))).unwrap_err());
    assert!(text.contains("a count below zero"), "{text}");
}

/// What is said of a stream of this section.
fn refused(section: Section) -> String {
    format!("{:?}", read(&bytes(&trace(vec![section], 0))).unwrap_err())
}

#[test]
fn a_list_shorter_than_none_is_refused() {
    let below = |s: &mut SlotStreams| {
        s.lens.iter_mut().for_each(|lens| lens.streams = [Sealed::from_constant(-1)].into());
        s.lens.is_some()
    };
    let mut recorder = recorder(5, Shape::Buckets);
    recorder.open_thread(1_000);
    let call = CallTable::builtin().by_name("MPI_Startall").unwrap().id;
    let sym = recorder.symbol(call, 0, 0);
    recorder.record(0, sym, &[2, 2, 0, 1], 0, 0);
    let mut section = recorder.finish("host");
    assert!(section.threads[0].params.iter_mut().flatten().any(below));
    let text = refused(section);
    assert!(text.contains("a length below zero"), "{text}");
}

#[test]
fn objects_of_ranks_that_a_section_has_not_are_refused() {
    for ranks in [RankList::first(1 << 31), RankList::single(1 << 31)] {
        let mut section = pair();
        section.tables.ops[0].of[0].0 = ranks;
        let text = refused(section);
        assert!(text.contains("not the section's"), "{text}");
    }
}

#[test]
fn other_versions_and_other_files_are_named() {
    let written = bytes(&trace(vec![], 0));
    let mut newer = written.clone();
    newer[MAGIC.len()] = 9;
    let text = read(&newer).unwrap_err().to_string();
    assert!(text.contains("stream version 9.") && text.contains("a newer st is needed"), "{text}");
    let mut minor = written.clone();
    minor[MAGIC.len() + 1] = 77;
    assert!(read(&minor).is_ok());
    assert!(matches!(read(b"").unwrap_err().kind(), ErrorKind::Empty));
    for other in [&b"#!/bin/sh\n"[..], b"\x89PNG\r\n\x1a\n\x00\x00"] {
        let error = read(other).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotAStream), "{error}");
    }
}

/// A frame that is not compressed.
pub(crate) fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut head = vec![kind, flags];
    st_model::varint::put_u64(&mut head, u64::try_from(payload.len()).unwrap());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&head), payload);
    [&head[..], &crc.to_le_bytes(), payload].concat()
}

/// A frame of a kind that no reader knows, with the given flags.
fn stranger(flags: u8) -> Vec<u8> {
    frame(200, flags, b"hi")
}

#[test]
fn header_and_provenance_are_of_limited_length() {
    let step = Step { tool: "x".repeat(3 << 20), ..Step::default() };
    let mut written = Vec::new();
    let mut writer = Writer::new(&mut written, &Header::default(), WriteOptions::default()).unwrap();
    writer.provenance(&step).and_then(|()| writer.provenance(&step)).unwrap();
    let refused = writer.provenance(&step).unwrap_err();
    assert_eq!(refused.to_string(), "header and provenance are longer than 8 MiB");
    // A hostile stream need not have been written by this.
    let mut long = bytes(&trace(vec![], 0));
    long.truncate(long.len() - 11);
    let provenance = frame(2, 0, &serde_json::to_vec(&step).unwrap());
    let error = read(&[long, provenance.repeat(3)].concat()).unwrap_err();
    assert!(error.to_string().ends_with("PROV: the payload expands beyond the limit"), "{error}");
}

/// The stream with a frame put in front of its end frame, whose count is raised.
fn with_stranger(flags: u8) -> Vec<u8> {
    let mut out = bytes(&trace(vec![sample(0)], 0));
    let end = out.len() - 11;
    let stranger = stranger(flags);
    out[end + 7] += 1;
    out.splice(end..end, stranger);
    mend(&mut out);
    out
}

#[test]
fn unknown_frames_are_skipped_or_refused_by_name() {
    assert_eq!(read(&with_stranger(0)).unwrap().sections, [sample(0)]);
    let mut minor = with_stranger(0x80);
    minor[MAGIC.len() + 1] = CURRENT.minor + 1;
    assert_eq!(read(&minor).unwrap().sections, [sample(0)]);
    let error = read(&with_stranger(2)).unwrap_err().to_string();
    assert!(error.contains("required frame of unknown kind 200"), "{error}");
}

#[test]
fn a_lost_frame_and_trailing_bytes_are_told() {
    let mut long = bytes(&trace(vec![], 0));
    long.push(0);
    assert!(matches!(read(&long).unwrap_err().kind(), ErrorKind::Trailing));
    let mut short = bytes(&trace(vec![], 0));
    let end = short.len() - 11;
    short[end + 7] += 1;
    mend(&mut short);
    assert!(matches!(read(&short).unwrap_err().kind(), ErrorKind::Count { stated: 3, found: 2 }));
}

#[test]
fn errors_say_where() {
    let mut written = bytes(&trace(vec![sample(0)], 0));
    let at = written.len() - 20;
    written[at] ^= 1;
    let error = read(&written).unwrap_err();
    assert!(error.to_string().starts_with(&format!(
        "frame {} at byte {}: ",
        error.frame().unwrap(),
        error.offset()
    )));
}

/// Streams of single ranks, as a recorder leaves them: exact times first.
fn rank_stream(rank: u32) -> Vec<u8> {
    bytes(&trace(vec![sample(rank)], 1))
}

#[test]
fn packing_copies_sections_and_stores_equal_tables_once() {
    let mut writer = Writer::new(Vec::new(), &Header::default(), WriteOptions { level: 1 }).unwrap();
    let mut sizes = Vec::new();
    for rank in 0..8 {
        let source = rank_stream(rank);
        sizes.push(source.len());
        let mut reader = Reader::new(&source[..], ReadOptions::default()).unwrap();
        assert_eq!(writer.copy(&mut reader).unwrap(), 1);
        assert!(reader.is_complete());
    }
    let packed = writer.finish().unwrap();
    let back = read(&packed).unwrap();
    assert_eq!(back.sections, (0..8).map(sample).collect::<Vec<_>>());
    assert!(back.sections.iter().all(|s| s.sites.names() == sample(0).sites.names()));
    let names = |bytes: &[u8]| {
        st_stream::frame_sizes(bytes, ReadOptions::default())
            .unwrap()
            .iter()
            .filter(|f| f.kind == "NAMES")
            .count()
    };
    assert_eq!(names(&packed), 1, "names are stored once");
    let mut direct = Vec::new();
    let all = Trace { level: 1, sections: back.sections, ..Trace::default() };
    st_stream::write(&all, &mut direct, WriteOptions { level: 1 }).unwrap();
    assert_eq!(direct, packed, "copying equals writing");

    // Packing at another level gives what writing at that level gives.
    for level in [0, 9] {
        let mut writer = Writer::new(Vec::new(), &Header::default(), WriteOptions { level }).unwrap();
        for rank in 0..8 {
            let source = rank_stream(rank);
            writer.copy(&mut Reader::new(&source[..], ReadOptions::default()).unwrap()).unwrap();
        }
        let mut direct = Vec::new();
        st_stream::write(&all, &mut direct, WriteOptions { level }).unwrap();
        assert!(writer.finish().unwrap() == direct, "level {level}");
    }

    // Tables are in the first section only: the second costs less than a stream of its own by more than them.
    let mut two = Writer::new(Vec::new(), &Header::default(), WriteOptions { level: 1 }).unwrap();
    two.section(&sample(0)).unwrap();
    let one = two.finish().unwrap();
    assert!(packed.len() < one.len() * 8 * 3 / 4, "{} {}", packed.len(), one.len());
}

#[test]
fn the_index_finds_a_rank() {
    let written = bytes(&trace((0..6).map(sample).collect(), 1));
    let mut reader = Reader::new(std::io::Cursor::new(&written), ReadOptions::default()).unwrap();
    let places = reader.index().unwrap().unwrap();
    assert_eq!(places.len(), 6);
    for rank in [4, 0, 5] {
        let place = places.iter().find(|p| p.ranks.contains(rank)).unwrap();
        reader.seek(place).unwrap();
        assert_eq!(reader.next_section().unwrap().unwrap(), sample(rank));
    }
    let single = bytes(&trace(vec![sample(0)], 1));
    let mut reader = Reader::new(std::io::Cursor::new(&single), ReadOptions::default()).unwrap();
    assert_eq!(reader.index().unwrap(), None);
    assert_eq!(reader.next_section().unwrap().unwrap(), sample(0));
}
