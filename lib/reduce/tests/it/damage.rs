//! Damage behind checksums, in sections whose counts follow from those of others.

use std::collections::BTreeSet;

use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallId;
use st_model::form::Form;
use st_model::ints::Sealed;
use st_model::section::{Elastic, Section};
use st_model::tree::{FlatTree, Item};
use st_reduce::merge::{Error, Merger};
use st_stream::{ReadOptions, Trace, WriteOptions};

/// A damaged trace of the section is refused, or is another trace that is read as one.
pub(crate) fn is_never_worse_than_an_error(merged: Section) {
    let trace = Trace { sections: vec![merged], ..Trace::default() };
    let mut bytes = Vec::new();
    st_stream::write(&trace, &mut bytes, WriteOptions { level: 0 }).unwrap();
    let read = |bytes: &[u8]| st_stream::read(bytes, ReadOptions::default());
    let frames = st_damage::frames(&bytes).unwrap();
    let at = frames.iter().position(|frame| frame.kind == STRUCT).unwrap();
    let flipped = (0..frames[at].payload.len()).flat_map(|i| [1, 2, 64].map(|bit| (i, bit))).step_by(4).map(
        |(i, bit)| {
            let mut damaged = frames.clone();
            damaged[at].payload[i] ^= bit;
            read(&st_damage::stream(&bytes, &damaged))
        },
    );
    let found: Vec<_> =
        flipped.chain((0..200).map(|seed| read(&st_damage::damaged(&bytes, seed).unwrap()))).collect();
    let refused: BTreeSet<String> = found.iter().filter_map(|r| r.as_ref().err()).map(describe).collect();
    // Damage gets past the checksums, to what is tested here; some of it makes another trace, which is read as one.
    assert!(!refused.iter().any(|why| why.contains("checksum")), "{refused:?}");
    assert!(refused.contains("counts that do not follow"), "{refused:?}");
    for trace in found.into_iter().flatten() {
        let mut again = Vec::new();
        st_stream::write(&trace, &mut again, WriteOptions { level: 0 }).unwrap();
        assert_eq!(read(&again).unwrap().sections, trace.sections);
    }
}

/// Kind of the frame that holds structure and parameters.
const STRUCT: u8 = 6;

/// The innermost cause.
fn describe(error: &st_stream::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// A rank that makes a call in so many loops.
fn nested(loops: u32) -> Section {
    let mut r = RankRecorder::new(0, Options::default());
    let thread = r.open_thread(0);
    let site = r.sites.label("there");
    // MPI_Finalize has no parameters.
    let sym = r.symbol(CallId(3), site, 0);
    r.record(thread, sym, &[], 0, 0);
    let mut section = r.finish("host");
    let body = |below| Item::Body { below };
    let items: Vec<Item> = (1..=loops).rev().map(body).chain([Item::Leaf { sym }]).collect();
    let once = Elastic { form: Form::Absolute, partition: 0, streams: [Sealed::from_constant(1)].into() };
    section.threads[0].counts = vec![once; items.len()];
    section.threads[0].tree = FlatTree::new(items);
    section
}

/// A stream of some hundred kB holds so many.
#[test]
fn loops_in_each_other_without_end_are_refused_before_they_are_aligned() {
    assert_eq!(Merger::new(false).add(nested(100_000)), Err(Error::Deep(256)));
    assert_eq!(Merger::new(false).add(nested(255)), Ok(()));
}
