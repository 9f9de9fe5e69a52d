//! Ranks of one file that are put together with others, rank by rank, are refused before that is done.

use crate::common::recorder;
use st_model::calls::{CallTable, names};
use st_model::section::Section;
use st_model::steps::Budget;
use st_reduce::merge::{Error, Merging};

const RANKS: u32 = 64;

/// A rank that sends one message: in the lower half to the next rank, in the upper half to one that no form explains.
fn section(rank: u32) -> Section {
    let (mut r, ..) = recorder(rank, RANKS);
    let site = r.sites.label("send");
    let send = r.symbol(CallTable::builtin().by_name(names::MPI_Send).unwrap().id, site, 0);
    let any = i64::from(rank * rank * 7 % 61);
    let dest = if rank < RANKS / 2 { i64::from(rank) + 1 } else { any };
    r.record(0, send, &[1, 0, dest, 0, 0], 1, 2);
    r.finish("host")
}

fn merged(sections: Vec<Section>, budget: Budget) -> Result<Section, Error> {
    let mut merger = Merging { budget, ..Merging::default() }.root();
    sections.into_iter().try_for_each(|s| merger.add(s))?;
    Ok(merger.finish())
}

#[test]
fn many_ranks_of_a_file_are_refused_and_single_ranks_are_not() {
    let half = |ranks: std::ops::Range<u32>| merged(ranks.map(section).collect(), Budget::default()).unwrap();
    let halves = || vec![half(0..RANKS / 2), half(RANKS / 2..RANKS)];
    let refused = merged(halves(), Budget::new(50)).unwrap_err();
    assert!(matches!(refused, Error::Steps(_)) && refused.to_string().contains("--max-steps"), "{refused}");
    let both = merged(halves(), Budget::new(1000)).unwrap();
    // Bytes pay for ranks that come alone.
    let single = merged((0..RANKS).map(section).collect(), Budget::new(0)).unwrap();
    for rank in 0..RANKS {
        let calls =
            |s: &Section| s.project(0, rank).unwrap().map(|c| c.unwrap().words.to_vec()).collect::<Vec<_>>();
        assert_eq!(calls(&both), calls(&section(rank)));
        assert_eq!(calls(&single), calls(&section(rank)));
    }
}
