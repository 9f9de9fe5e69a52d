//! How long ranks took, from a rank's own trace and from a merged one.

use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::rank_times::{RankTime, rank_times};
use st_model::section::Section;
use st_model::unite::Times;

/// A rank that sends twice, for these times after such gaps.
fn rank(rank: u32, events: [(i64, i64); 2]) -> Section {
    let mut r = RankRecorder::new(rank, Options { columns: false, ..Options::default() });
    let site = r.sites.stack(Vec::new());
    let thread = r.open_thread(0);
    let calls = CallTable::builtin();
    let (init, send) = (calls.by_name("MPI_Init").unwrap(), calls.by_name("MPI_Send").unwrap());
    let (init_sym, send_sym) = (r.symbol(init.id, site, 0), r.symbol(send.id, site, 0));
    r.record(thread, init_sym, &vec![0; init.slots.len()], 0, 10);
    let mut now = 10;
    for (gap, duration) in events {
        r.record(thread, send_sym, &vec![0; send.slots.len()], now + gap, now + gap + duration);
        now += gap + duration;
    }
    r.finish("host")
}

/// The times of these ranks as a merge keeps them.
fn merged(sections: &[Section]) -> Section {
    let mut times = Times::default();
    let mut out = sections[0].clone();
    for section in sections {
        times.add_rank(section.ranks.lowest().unwrap(), &section.threads[0].sketches, |s| s);
        out.ranks = out.ranks.union(&section.ranks);
    }
    out.threads[0].ranks = out.ranks.clone();
    (out.threads[0].sketches, out.threads[0].sums) = times.finish(|s| s, &out.ranks);
    out
}

#[test]
fn ranks_of_a_merged_trace_take_together_what_they_took() {
    let equal: Vec<Section> = (0..3).map(|r| rank(r, [(1017, 203), (517, 1_000_003)])).collect();
    let whole = 1017 + 203 + 517 + 1_000_003;
    let each = |rank| RankTime { rank, whole, mpi: 203 + 1_000_003, paused: 0 };
    assert_eq!(rank_times(&merged(&equal)), [each(0), each(1), each(2)]);
    let unlike = [(1, [(1017, 203), (517, 33)]), (4, [(9, 1_000_003), (70_001, 8)]), (5, [(1, 0), (0, 1)])];
    let unlike: Vec<Section> = unlike.into_iter().map(|(r, events)| rank(r, events)).collect();
    let (exact, kept): (Vec<_>, _) =
        (unlike.iter().flat_map(rank_times).collect(), rank_times(&merged(&unlike)));
    assert_eq!(exact.iter().map(|t| t.whole).sum::<u128>(), kept.iter().map(|t| t.whole).sum());
    for (exact, kept) in exact.iter().zip(&kept) {
        assert!(exact.whole.abs_diff(kept.whole) <= 2 + exact.whole / 50, "{exact:?} {kept:?}");
    }
}
