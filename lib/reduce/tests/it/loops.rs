//! Loops of different ranks: the papers' example, merged by what is in the loops and by their structure.

use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::section::Section;
use st_reduce::merge::Merger;
use st_reduce::merge::master::Loops;
use st_stream::text::flat;

/// A rank that makes these calls, each a letter; a capital is `MPI_Finalize`, which has no parameters, from a site of its own.
fn rank(rank: u32, calls: &str) -> Section {
    let mut r = RankRecorder::new(rank, Options::default());
    r.open_thread(0);
    let id = CallTable::builtin().by_name("MPI_Finalize").unwrap().id;
    for (name, now) in calls.chars().zip(0..) {
        let site = r.sites.label(&name.to_string());
        let sym = r.symbol(id, site, 0);
        r.record(0, sym, &[], now, now);
    }
    r.finish("host")
}

fn merged(loops: Loops, sections: &[&Section]) -> Section {
    let mut m = Merger::new(false).loops(loops);
    sections.iter().for_each(|s| m.add((*s).clone()).unwrap());
    let merged = m.finish();
    for s in sections {
        let rank = s.ranks.lowest().unwrap();
        let calls = |s: &Section| -> Vec<String> {
            let label = |sym: u32| s.sites.get(s.symbols[sym as usize].site).unwrap().label.clone();
            s.project(0, rank).unwrap().map(|c| label(c.unwrap().sym)).collect()
        };
        assert_eq!(calls(&merged), calls(s), "rank {rank}");
    }
    merged
}

/// The leaf list with sites' letters for events.
fn leaves(s: &Section) -> Vec<String> {
    let name = |line: &String| {
        let (ranks, rest) = line.split_once(" s").unwrap();
        let (sym, stack) = rest.split_once(" MPI_Finalize").unwrap();
        let symbol = s.symbols[sym.parse::<usize>().unwrap()];
        format!("{ranks} {}{stack}", s.sites.get(symbol.site).unwrap().label)
    };
    flat::Lists::default().leaves(s, &s.threads[0]).iter().map(name).collect()
}

/// Source: Wu, Mueller 2013, figures 4 and 5. Rank 0 repeats Isend (S) and Irecv (R) five times, and then calls another
/// Isend (s), another Irecv (r) and Waitall (W); rank 1 repeats Isend, Irecv and Waitall six times.
#[test]
fn figure_5() {
    let zero = rank(0, &format!("I{}srWF", "SR".repeat(5)));
    let one = rank(1, &format!("I{}F", "SRW".repeat(6)));
    for order in [[&zero, &one], [&one, &zero]] {
        assert_eq!(
            leaves(&merged(Loops::Agnostic, &order)),
            [
                "<1 0 2 1> I",
                "<1 0 2 1> S (2,5)@<1 0 1 0>(3,6)@<1 1 1 0>",
                "<1 0 2 1> R",
                "<1 0 1 0> s",
                "<1 0 1 0> r",
                "<1 0 2 1> W",
                "<1 0 2 1> F",
            ]
        );
    }
}

#[test]
fn loops_of_unequal_structure_can_stay_apart() {
    let zero = rank(0, &format!("I{}srWF", "SR".repeat(5)));
    let one = rank(1, &format!("I{}F", "SRW".repeat(6)));
    let two = rank(2, &format!("I{}F", "SRW".repeat(4)));
    let merged = merged(Loops::Structural, &[&zero, &one, &two]);
    assert_eq!(
        leaves(&merged),
        [
            "<1 0 3 1> I",
            "<1 0 1 0> S (2,5)",
            "<1 0 1 0> R",
            "<1 0 1 0> s",
            "<1 0 1 0> r",
            "<1 0 1 0> W",
            "<1 1 2 1> S (3,6)@<1 1 1 0>(3,4)@<1 2 1 0>",
            "<1 1 2 1> R",
            "<1 1 2 1> W",
            "<1 0 3 1> F",
        ]
    );
}
