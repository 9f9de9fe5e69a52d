//! Receive counts of all-to-all exchanges are made again from the send counts of the others.

use crate::common::{bytes, comm, recorder};
use crate::damage;
use proptest::prelude::*;
use st_model::calls::CallTable;
use st_model::section::Section;
use st_reduce::merge::merge;
use st_stream::{ReadOptions, Trace, WriteOptions};

const RANKS: u32 = 6;

/// Keys that one rank sends to another in a step.
fn keys(step: i64, from: i64, to: i64) -> i64 {
    (from * 7919 + to * 104_729 + step * step * 31 + from * to * step) % 1009
}

/// Exchanges of all ranks and of each row of two ranks, whose counts `wrong` changes.
fn section(rank: u32, steps: i64, wrong: impl Fn(i64, i64, i64) -> i64) -> Section {
    let (mut r, world, int) = recorder(rank, RANKS);
    let table = CallTable::builtin();
    let split = table.by_name("MPI_Comm_split").unwrap().id;
    let row: Vec<u32> = (0..RANKS).filter(|other| other / 2 == rank / 2).collect();
    let rows = r.objects.comms.create(split, 9, comm("MPI_Comm_split", 1, row.iter().copied().collect()));
    let exchange = table.by_name("MPI_Alltoallv").unwrap().id;
    for step in 0..steps {
        for (site, comm, members) in [("all", world, (0..RANKS).collect()), ("row", rows, row.clone())] {
            let site = r.sites.label(site);
            let sym = r.symbol(exchange, site, 0);
            let n = i64::try_from(members.len()).unwrap();
            let me = i64::from(rank);
            let sent = members.iter().map(|to| keys(step, me, i64::from(*to)));
            let received = members.iter().map(|from| {
                let from = i64::from(*from);
                keys(step, from, me) + wrong(step, from, me)
            });
            let mut words = vec![0, n];
            words.extend(sent);
            words.extend([0, int, n]);
            words.extend(received);
            words.extend([0, int, comm]);
            r.record(0, sym, &words, 0, 0);
        }
    }
    r.finish("host")
}

/// Bytes of the merged trace, which is read back and proved on the way.
fn size(steps: i64, wrong: impl Fn(i64, i64, i64) -> i64 + Copy) -> usize {
    bytes(merge((0..RANKS).map(|r| section(r, steps, wrong)), false).unwrap(), 19)
}

#[test]
fn counts_received_follow_from_those_sent() {
    let follows = size(40, |_, _, _| 0);
    // One count that does not: all are stored.
    let stored = size(40, |step, from, me| i64::from((step, from, me) == (17, 2, 3)));
    assert!(follows * 10 < stored * 6, "{follows} and {stored} bytes");
}

#[test]
fn a_rank_that_is_missing_leaves_all_as_it_is() {
    let merged = merge((1..RANKS).map(|r| section(r, 20, |_, _, _| 0)), false).unwrap();
    let trace = Trace { sections: vec![merged], ..Trace::default() };
    let mut bytes = Vec::new();
    st_stream::write(&trace, &mut bytes, WriteOptions { level: 0 }).unwrap();
    assert_eq!(st_stream::read(&bytes[..], ReadOptions::default()).unwrap().sections, trace.sections);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_counts_read_back(steps in 0i64..30, at in (0i64..60, 0i64..6, 0i64..6), by in 0i64..3) {
        size(steps, |step, from, me| if (step, from, me) == at { by } else { 0 });
    }
}

#[test]
fn damage_behind_checksums_is_never_worse_than_an_error() {
    let merged = merge((0..RANKS).map(|r| section(r, 12, |_, _, _| 0)), false).unwrap();
    damage::is_never_worse_than_an_error(merged);
}
