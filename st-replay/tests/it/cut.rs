//! Where a replay of the beginning of a trace stops.

use std::collections::BTreeMap;

use crate::script::sections;
use crate::simulator::{Chance, program};
use st_match::Channel;
use st_model::section::Section;
use st_replay::cut::{Cutter, Left, Limit, Stop};
use st_replay::factor::Factor;
use st_replay::groups::Groups;
use st_replay::operations::{Operation, Walker};
use st_replay::scaling::Scaling;

fn stops(all: &[Section], limit: Limit) -> BTreeMap<u32, Stop> {
    let mut cutter = Cutter::new(limit, Factor::ONE, None);
    all.iter().for_each(|s| cutter.see(s).unwrap());
    cutter.finish()
}

fn calls(ranks: u32, text: &str, limit: u64) -> Vec<u64> {
    let all = sections(ranks, &format!("* MPI_Init\n{text}\n* MPI_Finalize"));
    stops(&all, Limit::Calls(limit)).values().map(|s| s.calls).collect()
}

#[test]
fn no_rank_goes_where_another_does_not_follow() {
    // Rank 1 may not post a receive whose message is sent too late.
    let text = "0 MPI_Comm_rank\n0 MPI_Comm_rank\n0 MPI_Send dest=1\n1 MPI_Recv source=0\n1 MPI_Comm_rank";
    assert_eq!(calls(2, text, 3), [3, 1]);
    assert_eq!(calls(2, text, 4), [4, 3]);
    // Nor enter an operation that others do not come to.
    let text = "0 MPI_Comm_rank\n* MPI_Barrier\n1 MPI_Comm_rank\n* MPI_Barrier";
    assert_eq!(calls(3, text, 2), [2, 1, 1]);
    assert_eq!(calls(3, text, 3), [3, 3, 2]);
    assert_eq!(calls(3, text, 1000), [4, 4, 3]);
    // Nor stop between finding a message and receiving it, or find one that is not sent.
    let text = "0 MPI_Send dest=1\n1 MPI_Mprobe source=0 request=0\n1 MPI_Mrecv request=0";
    assert_eq!(calls(2, text, 2), [2, 1]);
    let text = "0 MPI_Wtick\n0 MPI_Send dest=1\n1 MPI_Probe source=0\n1 MPI_Recv source=0";
    assert_eq!((calls(2, text, 2), calls(2, text, 3)), (vec![2, 1], vec![3, 3]));
    // On an intercommunicator ranks are those of the other side.
    let text = "0 MPI_Send dest=1 comm=2\n3 MPI_Probe source=0 comm=2\n3 MPI_Recv source=0 comm=2";
    assert_eq!(calls(4, text, 3), [2, 1, 1, 3]);
}

#[test]
fn what_was_sent_and_not_received_is_left() {
    let text = "* MPI_Init\n0 MPI_Send dest=1 count=3 tag=4\n0 MPI_Send dest=1 count=5 tag=4\n\
                1 MPI_Recv source=0 count=3 tag=4\n1 MPI_Recv source=0 count=9 tag=4\n* MPI_Finalize";
    let stop = &stops(&sections(2, text), Limit::Calls(2))[&1];
    assert_eq!((stop.calls, &stop.left[..]), (2, &[][..]));
    let all = sections(2, text);
    let late = stops(&all, Limit::Time(35));
    assert_eq!((late[&0].calls, late[&1].calls), (3, 3));
    let text = text.replace("1 MPI_Recv source=0 count=9", "1 MPI_Wtick\n1 MPI_Recv source=0 count=9");
    let stop = &stops(&sections(2, &text), Limit::Calls(3))[&1];
    let left = Left { comms: vec![0], source: 0, tag: 4, bytes: 20 };
    assert_eq!((stop.calls, &stop.left[..]), (3, &[left][..]));
    assert_eq!(Stop::from_words(&stop.to_words()).as_ref(), Some(stop));
    assert_eq!(Stop::from_words(&[1, 2]), None);
}

#[test]
fn cuts_of_random_programs_are_consistent_and_leave_what_is_under_way() {
    for seed in 0..300 {
        let mut chance = Chance(seed);
        let ranks = 2 + chance.below(4);
        let text = program(&mut chance, ranks);
        let all = sections(u32::try_from(ranks).unwrap(), &text);
        let limit = Limit::Calls(1 + u64::try_from(chance.below(20)).unwrap());
        let stops = stops(&all, limit);
        let mut groups = Groups::default();
        let mut ends: BTreeMap<Channel, [usize; 2]> = BTreeMap::new();
        let mut operations = Vec::new();
        for (rank, section) in (0u32..).zip(&all) {
            let cut = stops[&rank].calls;
            let mut n = 0;
            let tell = |operation| match operation {
                Operation::Send(e) if e.call < cut => ends.entry(e.channel).or_default()[0] += 1,
                Operation::Receive(e) if e.call < cut => ends.entry(e.channel).or_default()[1] += 1,
                Operation::Part(p) if p.call < cut => n += 1,
                _ => {}
            };
            let walker = Walker::new(section, rank, &mut groups, None, tell);
            walker.walk(0, &Scaling::new(section, Factor::ONE), u64::MAX).unwrap();
            operations.push(n);
        }
        assert!(operations.windows(2).all(|w| w[0] == w[1]), "seed {seed}: {operations:?}\n{text}");
        assert!(ends.values().all(|[sent, received]| sent >= received), "seed {seed}\n{text}");
        let left: usize = stops.values().map(|s| s.left.len()).sum();
        assert_eq!(left, ends.values().map(|[s, r]| s - r).sum::<usize>(), "seed {seed}\n{text}");
    }
}
