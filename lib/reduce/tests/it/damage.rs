//! Damage behind checksums, in sections whose counts follow from those of others.

use std::collections::BTreeSet;

use st_model::section::Section;
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
