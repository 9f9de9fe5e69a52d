//! Ranks to merge, and what merged ones take.

use st_capture::record::{Options, RankRecorder};
use st_model::check::{ThreadCheck, check};
use st_model::objects::{Comm, Type};
use st_model::ranks::RankSeq;
use st_model::section::Section;
use st_stream::{ReadOptions, Trace, WriteOptions};

/// A communicator without a remote group.
pub(crate) fn comm(kind: &str, parent: u128, members: RankSeq) -> Comm {
    Comm { kind: kind.into(), parent, members, remote: RankSeq::default() }
}

/// A recorder of a rank among so many, with one thread; `MPI_COMM_WORLD` and `MPI_INT` in its tables.
pub(crate) fn recorder(rank: u32, ranks: u32) -> (RankRecorder, i64, i64) {
    let mut r = RankRecorder::new(rank, Options::default());
    let world = r.objects.comms.predefined(comm("MPI_COMM_WORLD", 0, RankSeq::first(ranks)));
    r.objects.comms.predefined(comm("MPI_COMM_SELF", 0, [rank].into_iter().collect()));
    let (words, parts) = (vec![], vec![]);
    let int = Type { kind: "MPI_INT".into(), words, parts, size: 4, lb: 0, extent: 4 };
    let int = r.objects.types.predefined(int);
    r.open_thread(0);
    (r, world, int)
}

/// Bytes of a merged section as a stream, which is read back and proved on the way.
pub(crate) fn bytes(merged: Section, level: u8) -> usize {
    let trace = Trace { sections: vec![merged], ..Trace::default() };
    let mut bytes = Vec::new();
    st_stream::write(&trace, &mut bytes, WriteOptions { level }).unwrap();
    let back = st_stream::read(&bytes[..], ReadOptions::default()).unwrap();
    assert_eq!(back.sections, trace.sections);
    assert!(check(&back.sections[0]).unwrap().iter().all(ThreadCheck::passed));
    bytes.len()
}
