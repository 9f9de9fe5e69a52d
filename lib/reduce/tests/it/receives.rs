//! Counts of receives are made again from those of the sends that they match.

use crate::common::{bytes, comm, recorder};
use crate::damage;
use proptest::prelude::*;
use st_model::calls::CallTable;
use st_model::section::Section;
use st_reduce::merge::merge;

const RANKS: u32 = 6;
const ANY: i64 = -2;

/// Elements that one rank sends to the next but one.
fn elements(step: i64, from: i64) -> i64 {
    (from * 7919 + step * step * 31 + from * step * 97) % 1009
}

/// Exchanges along a ring among the ranks of the same parity, every other one by `MPI_Sendrecv`. Of each message `change`
/// gives what its receive's count is greater by, and its source as the receive has it, if it is another.
fn section(rank: u32, steps: i64, change: impl Fn(i64, i64) -> (i64, Option<i64>)) -> Section {
    let (mut r, _, int) = recorder(rank, RANKS);
    let table = CallTable::builtin();
    let same: Vec<u32> = (0..RANKS).filter(|other| other % 2 == rank % 2).collect();
    let split = table.by_name("MPI_Comm_split").unwrap().id;
    let mine = r.objects.comms.create(split, 9, comm("MPI_Comm_split", 1, same.iter().copied().collect()));
    let n = i64::try_from(same.len()).unwrap();
    let me = i64::from(rank / 2);
    let (next, before) = ((me + 1) % n, (me + n - 1) % n);
    let parity = i64::from(rank % 2);
    for step in 0..steps {
        let sent = elements(step, 2 * me + parity);
        let (more, other) = change(step, i64::from(rank));
        let received = elements(step, 2 * before + parity) + more;
        let source = other.unwrap_or(before);
        let mut call = |name: &str, words: &[i64]| {
            let site = r.sites.label(name);
            let sym = r.symbol(table.by_name(name).unwrap().id, site, 0);
            r.record(0, sym, words, 0, 0);
        };
        if step % 2 == 0 {
            call("MPI_Irecv", &[received, int, source, 3, mine, 0]);
            call("MPI_Send", &[sent, int, next, 3, mine]);
            call("MPI_Wait", &[1, 0, 1, 0, 1, before, 1, 3, 1, 4 * received]);
        } else {
            let words = [sent, int, next, 4, received, int, source, 4, mine, before, 4, 4 * received];
            call("MPI_Sendrecv", &words);
        }
    }
    r.finish("host")
}

/// Bytes of the merged trace, which is read back and proved on the way.
fn size(ranks: u32, steps: i64, change: impl Fn(i64, i64) -> (i64, Option<i64>) + Copy) -> usize {
    bytes(merge((0..ranks).map(|r| section(r, steps, change)), false).unwrap(), 0)
}

#[test]
fn counts_received_follow_from_those_sent() {
    let follows = size(RANKS, 100, |_, _| (0, None));
    // Half of the streams cannot follow if one count does not, or if a source is not known.
    let greater = size(RANKS, 100, |step, rank| (i64::from((step, rank) == (40, 3)), None));
    let unknown = size(RANKS, 100, |step, rank| (0, ((step, rank) == (40, 3)).then_some(ANY)));
    let all = size(RANKS, 100, |step, rank| (i64::from(step < 2 && rank == 0), None));
    assert!(follows + 200 < greater && greater + 200 < all, "{follows}, {greater} and {all} bytes");
    assert!(follows + 200 < unknown, "{follows} and {unknown} bytes");
}

#[test]
fn a_rank_that_is_missing_leaves_all_as_it_is() {
    size(RANKS - 1, 60, |_, _| (0, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_counts_read_back(steps in 0i64..80, at in (0i64..80, 0i64..6), by in 0i64..3, source in -3i64..4) {
        let changed = |step, rank| (step, rank) == at;
        size(RANKS, steps, |step, rank| if changed(step, rank) { (by, Some(source)) } else { (0, None) });
    }
}

#[test]
fn damage_behind_checksums_is_never_worse_than_an_error() {
    let merged = merge((0..RANKS).map(|r| section(r, 40, |_, _| (0, None))), false).unwrap();
    damage::is_never_worse_than_an_error(merged);
}
