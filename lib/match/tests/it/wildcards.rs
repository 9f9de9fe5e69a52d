//! What is told of receives with wildcards, call by call.

use st_capture::record::{Options, RankRecorder};
use st_match::wildcards::{Wildcards, is_open, opened};
use st_model::calls::roles::Start;
use st_model::calls::{CallTable, names};
use st_model::values::{ANY_SOURCE, ANY_TAG, CANCELLED, NONE, PROC_NULL};

type Call<'a> = (&'a str, &'a [i64]);

/// What a call opens, and what is told of it: the receive's call, and the source and tag that it got.
type Told = (Vec<(u64, Start)>, Vec<(u64, Option<(Option<u32>, Option<i64>)>)>);

/// A rank that makes these calls one after the other.
fn told(calls: &[Call<'_>]) -> Told {
    let mut recorder = RankRecorder::new(0, Options::default());
    let thread = recorder.open_thread(0);
    let site = recorder.sites.stack(Vec::new());
    for (name, words) in calls {
        let symbol = recorder.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
        recorder.record(thread, symbol, words, 0, 0);
    }
    let section = recorder.finish("host");
    let (mut events, mut wildcards) = (section.events(0, 0).unwrap(), Wildcards::default());
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    while let Some(event) = events.next_event().unwrap() {
        begun.extend(opened(&event).map(|start| (event.index, start)));
        wildcards.event(&event, |call, got| ended.push((call, got.map(|got| (got.source, got.tag)))));
    }
    (begun, ended)
}

// count type source tag comm request
const ANY: Call<'_> = (names::MPI_Irecv, &[1, 0, ANY_SOURCE, 5, 0, 0]);
const NAMED: Call<'_> = (names::MPI_Irecv, &[1, 0, 3, 5, 0, 1]);
const FREE: Call<'_> = (names::MPI_Request_free, &[0]);

#[test]
fn a_receive_is_told_once_and_a_named_one_never() {
    let any_tag: Call<'_> = (names::MPI_Irecv, &[1, 0, 3, ANY_TAG, 0, 2]);
    // n requests completed source tag bytes
    let all: Call<'_> =
        (names::MPI_Waitall, &[3, 3, 0, 1, 2, 3, 0, 1, 2, 3, 7, 3, 3, 3, 5, 5, 6, 3, 8, 8, 8]);
    let (begun, ended) = told(&[ANY, NAMED, any_tag, all, FREE]);
    assert_eq!(begun, [(0, Start::Request), (2, Start::Request)]);
    assert_eq!(ended, [(0, Some((Some(7), Some(5)))), (2, Some((Some(3), Some(6))))]);
}

#[test]
fn what_is_cancelled_got_nothing_and_what_is_freed_is_over() {
    let cancelled: Call<'_> = (names::MPI_Wait, &[1, 0, 1, 0, 1, NONE, 1, NONE, 1, CANCELLED]);
    let (_, ended) = told(&[ANY, cancelled, ANY, FREE, NAMED, (names::MPI_Request_free, &[1])]);
    assert_eq!(ended, [(0, Some((None, None))), (2, None)]);
}

#[test]
fn each_start_of_a_persistent_receive_is_told_by_the_call_that_made_it() {
    let (init, start): (Call<'_>, Call<'_>) =
        ((names::MPI_Recv_init, &[1, 0, ANY_SOURCE, 5, 0, 0]), (names::MPI_Start, &[0]));
    let from = |source| [1, 0, 1, 0, 1, source, 1, 5, 1, 8];
    let (two, four) = (from(2), from(4));
    let waits: [Call<'_>; 2] = [(names::MPI_Wait, &two), (names::MPI_Wait, &four)];
    let (begun, ended) = told(&[NAMED, init, start, waits[0], start, waits[1], FREE]);
    assert_eq!(begun, [(1, Start::Persistent)]);
    assert_eq!(ended, [(1, Some((Some(2), Some(5)))), (1, Some((Some(4), Some(5)))), (1, None)]);
}

#[test]
fn receives_that_are_sent_with_are_told() {
    // sendcount sendtype dest sendtag recvcount recvtype source recvtag comm request
    let both: Call<'_> = (names::MPI_Isendrecv, &[1, 0, 1, 4, 1, 0, ANY_SOURCE, ANY_TAG, 0, 0]);
    let (begun, ended) = told(&[both, (names::MPI_Wait, &[1, 0, 1, 0, 1, 6, 1, 9, 1, 8])]);
    assert_eq!((begun, ended), (vec![(0, Start::Request)], vec![(0, Some((Some(6), Some(9))))]));
}

#[test]
fn what_comes_from_nobody_is_not_open() {
    assert!(is_open(ANY_SOURCE, 5) && is_open(3, ANY_TAG) && is_open(ANY_SOURCE, ANY_TAG));
    assert!(!is_open(3, 5) && !is_open(PROC_NULL, ANY_TAG));
}
