//! Bytes that calls send and receive, by hand: what the ways of recording do not make.

use std::collections::{BTreeMap, BTreeSet};

use st_capture::record::{Options, RankRecorder};
use st_match::volume::{Alike, Graphs, Moved, Volume, Volumes};
use st_model::calls::CallTable;
use st_model::objects::{Comm, Type};
use st_model::ranks::RankSeq;
use st_model::section::Section;
use st_model::steps::Budget;
use st_model::values::{NONE, PROC_NULL};

/// Rank 1 of four that makes these calls, each with an error class.
fn rank(calls: &[(&str, &[i64], u32)]) -> Section {
    let mut r = RankRecorder::new(1, Options::default());
    let (kind, members) = ("MPI_COMM_WORLD".into(), RankSeq::first(4));
    r.objects.comms.predefined(Comm { kind, parent: 0, members, remote: RankSeq::default() });
    for (kind, size) in [("MPI_INT", 4), ("MPI_DOUBLE", 8)] {
        let (words, parts) = (Vec::new(), Vec::new());
        r.objects.types.predefined(Type { kind: kind.into(), words, parts, size, lb: 0, extent: size });
    }
    r.open_thread(0);
    for (name, words, error) in calls {
        let site = r.sites.label("here");
        let sym = r.symbol(CallTable::builtin().by_name(name).unwrap().id, site, *error);
        r.record(0, sym, words, 0, 0);
    }
    r.finish("host")
}

/// Bytes sent and received by each call.
fn moved(calls: &[(&str, &[i64], u32)]) -> Vec<(u128, u128)> {
    let section = rank(calls);
    let graphs = Graphs::of([&section]).unwrap();
    let mut volumes = Volumes::new(&section, 1, &graphs);
    let (mut events, mut out) = (section.events(0, 1).unwrap(), Vec::new());
    while let Some(event) = events.next_event().unwrap() {
        let volume = volumes.next_event(&event);
        out.push((volume.sent.bytes, volume.received.bytes));
    }
    out
}

#[test]
fn a_type_for_each_partner_counts_with_its_own_size() {
    // inplace; sendcounts, sdispls, sendtypes; recvcounts, rdispls, recvtypes; comm
    let apart =
        [&[0][..], &[4, 1, 2, 3, 4], &[0], &[4, 0, 1, 0, 1], &[4, 1, 1, 1, 1], &[0], &[4, 1, 1, 1, 1], &[0]]
            .concat();
    let inplace = [&[1][..], &[0], &[0], &[0], &[4, 1, 2, 3, 4], &[0], &[4, 1, 1, 1, 0], &[0]].concat();
    let calls = [("MPI_Alltoallw", &apart[..], 0), ("MPI_Alltoallw", &inplace[..], 0)];
    // The rank's own block of two doubles stays where it is.
    assert_eq!(moved(&calls), [(4 + 16 + 12 + 32, 32), (8 + 24 + 16, 8 + 24 + 16)]);
}

#[test]
fn what_failed_moved_nothing_but_what_it_completed_or_received() {
    // count type dest tag comm; n requests completed source tag bytes
    let send = [3, 0, 2, 7, 0];
    let wait = [2, 2, 5, 6, 1, 1, 1, 2, 1, 7, 1, 12];
    let calls = [("MPI_Send", &send[..], 0), ("MPI_Send", &send[..], 9), ("MPI_Waitall", &wait[..], 9)];
    assert_eq!(moved(&calls), [(12, 0), (0, 0), (0, 12)]);
    // count type source tag comm rsource rtag bytes; of MPI_ERR_TRUNCATE, and of another class
    let receive = [3, 0, 2, 7, 0, NONE, NONE, 40];
    assert_eq!(moved(&[("MPI_Recv", &receive, 15), ("MPI_Recv", &receive, 14)]), [(0, 40), (0, 0)]);
    // sendcount sendtype dest sendtag, the same of the receive, comm rsource rtag bytes
    let exchange = [3, 0, 2, 7, 3, 0, 2, 7, 0, NONE, NONE, -1];
    assert_eq!(moved(&[("MPI_Sendrecv", &exchange, 15), ("MPI_Sendrecv", &exchange, 9)]), [(12, 0), (0, 0)]);
}

#[test]
fn nothing_goes_to_nobody_and_unknown_sizes_are_nothing() {
    let nobody = [3, 0, PROC_NULL, 7, 0];
    let untyped = [3, -1, 2, 7, 0];
    // count type source tag comm rsource rtag bytes
    let unknown = [3, 0, 2, 7, 0, NONE, NONE, -1];
    let calls = [("MPI_Send", &nobody[..], 0), ("MPI_Send", &untyped[..], 0), ("MPI_Recv", &unknown[..], 0)];
    assert_eq!(moved(&calls), [(0, 0); 3]);
    // No sum overflows, whatever a damaged trace says.
    let most = [&[4][..], &[i64::MAX; 4], &[0, 0, 4], &[i64::MAX; 4], &[0, 1, 0]].concat();
    let words = [&[0][..], &most].concat();
    assert!(moved(&[("MPI_Alltoallv", &words[..], 0)])[0].0 > 0);
}

#[test]
fn a_request_number_that_is_used_again_is_another_request() {
    // file, offset, count type request
    let write = [0, 0, 10, 0, 3];
    // requests, completed, source, tag, bytes
    let wrote = [1, 3, 1, 0, 1, NONE, 1, NONE, 1, 40];
    // count type source tag comm request
    let receive = [10, 0, 2, 7, 0, 3];
    let received = [1, 3, 1, 0, 1, 2, 1, 7, 1, 40];
    let read = [0, 0, 10, 0, 3];
    let calls = [
        ("MPI_File_iwrite_at", &write[..], 0),
        ("MPI_Wait", &wrote[..], 0),
        ("MPI_Irecv", &receive[..], 0),
        ("MPI_Wait", &received[..], 0),
        ("MPI_File_iread_at", &read[..], 0),
        ("MPI_Wait", &wrote[..], 0),
    ];
    assert_eq!(moved(&calls), [(40, 0), (0, 0), (0, 0), (0, 40), (0, 0), (0, 40)]);
}

#[test]
fn what_an_exchange_that_begins_receives_is_counted_once() {
    // sendcount sendtype dest sendtag, the same of the receive, comm newrequest; n requests completed source tag bytes
    let exchange = [3, 0, 2, 7, 4, 0, 2, 7, 0, 5];
    let wait = [1, 1, 5, 1, 0, 1, 2, 1, 7, 1, 16];
    assert_eq!(moved(&[("MPI_Isendrecv", &exchange, 0), ("MPI_Waitall", &wait, 0)]), [(12, 16), (0, 0)]);
    // The number of its request may be another's when that is over.
    let receive = [4, 0, 2, 7, 0, 5];
    let calls =
        [("MPI_Isendrecv", &exchange[..], 0), ("MPI_Irecv", &receive[..], 0), ("MPI_Waitall", &wait[..], 0)];
    assert_eq!(moved(&calls), [(12, 16), (0, 0), (0, 16)]);
}

/// Events, calls, bytes sent and received, and whom to, by symbol.
type Sums = BTreeMap<u32, (u64, u64, u128, u128, BTreeSet<u32>)>;

#[test]
fn what_is_added_up_without_order_is_what_the_calls_move_one_by_one() {
    let send = |n| [n, 0, 2, n % 3, 0];
    let receive = [10, 0, 2, 7, 0, NONE, NONE, 40];
    // n, requests, completed, source, tag, bytes; of a test: requests, flag, the same, and how often it came to nothing
    let wait = [2, 2, 3, 4, 2, 0, 1, 2, 2, 3, 2, 7, 7, 2, 40, 80];
    let test = [1, 3, 0, 0, 0, 0, 0, 9];
    // inplace count type op comm
    let sum = [0, 5, 1, 0, 0];
    let sends = [send(1), send(2), send(3)];
    let mut calls: Vec<(&str, &[i64], u32)> = Vec::new();
    for _ in 0..50 {
        calls.extend(sends.iter().map(|words| ("MPI_Send", &words[..], 0)));
        calls.extend([("MPI_Recv", &receive[..], 0), ("MPI_Recv", &receive, 15), ("MPI_Send", &sends[0], 9)]);
        calls.extend([("MPI_Test", &test[..], 0), ("MPI_Waitall", &wait, 0), ("MPI_Allreduce", &sum, 0)]);
        calls.push(("MPI_Barrier", &[0], 0));
    }
    let section = rank(&calls);
    let graphs = Graphs::default();
    let mut volumes = Volumes::new(&section, 1, &graphs);
    let (mut one_by_one, mut together, mut turns) = (Sums::new(), Sums::new(), 0);
    let add = |sums: &mut Sums, sym, volume: &Volume, times: u64, calls: u64| {
        let sum = sums.entry(sym).or_default();
        sum.0 += times;
        sum.1 += calls;
        sum.2 += volume.sent.in_all(times).bytes;
        sum.3 += volume.received.in_all(times).bytes;
        sum.4.extend(volume.partners.iter().map(|(rank, _)| *rank));
    };
    let mut events = section.events(0, 1).unwrap();
    while let Some(event) = events.next_event().unwrap() {
        add(&mut one_by_one, event.sym, volumes.next_event(&event), 1, event.calls());
    }
    let moved = Moved::of(&section).unwrap();
    let told = |alike: Alike<'_>| {
        turns += 1;
        add(&mut together, alike.sym, alike.volume, alike.times, alike.calls);
    };
    moved.each(1, &Budget::default(), told).unwrap();
    assert_eq!(together, one_by_one);
    assert!(turns < 60, "{turns} of {} calls", calls.len());
    // count type dest tag comm request: what it moves is known where it is started.
    assert!(Moved::of(&rank(&[("MPI_Send_init", &[3, 0, 2, 7, 0, 1], 0)])).is_none());
    // What an exchange that begins receives is not to be counted again where it is completed.
    assert!(Moved::of(&rank(&[("MPI_Isendrecv", &[3, 0, 2, 7, 4, 0, 2, 7, 0, 5], 0)])).is_none());
}
