//! What going through a section takes is known before it is done.

use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::ints::Sealed;
use st_model::ranklist::RankList;
use st_model::section::Section;
use st_model::steps::Budget;
use st_model::tree::Item;

/// A rank that makes a call a hundred times, and then waits for three requests.
fn section() -> Section {
    let mut r = RankRecorder::new(3, Options::default());
    r.open_thread(0);
    let site = r.sites.label("here");
    let [send, wait] = ["MPI_Send", "MPI_Waitall"]
        .map(|name| r.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0));
    for i in 0..100 {
        r.record(0, send, &[3, 0, 1, 7, 0], 10 * i, 10 * i + 1);
    }
    r.record(0, wait, &[3, 0, 1, 2, 0, 0, 0, 0, 0], 1000, 1001);
    r.finish("host")
}

#[test]
fn steps_are_of_the_order_of_calls() {
    let section = section();
    let steps = section.steps(None);
    assert!((101..200).contains(&steps), "{steps}");
    assert_eq!(section.steps(Some(&section.ranks)), steps);
    assert_eq!(section.steps(Some(&RankList::single(2))), 0);
    // Of many ranks the few that are asked for are looked up.
    let mut many = section.clone();
    many.ranks = RankList::first(1000);
    many.threads[0].ranks = RankList::first(1000);
    let of = |ranks: &[u32]| many.steps(Some(&ranks.iter().copied().collect()));
    assert_eq!((of(&[3]), of(&[1000])), (steps, 0));
    assert!(of(&[999]) > 0);
    assert_eq!(of(&[3, 999, 1000]), of(&[3]) + of(&[999]));
    assert_eq!(many.steps(None), (0..1000).map(|rank| of(&[rank])).sum::<u64>());
    let thread = &section.threads[0];
    assert!(!section.fewer_calls(thread, 3, 101) && section.fewer_calls(thread, 3, 102));
}

#[test]
fn calls_with_few_parameters_that_are_only_gone_through_are_less_than_a_step() {
    let of = |name: &str, words: &[i64]| {
        let mut r = RankRecorder::new(0, Options::default());
        r.open_thread(0);
        let site = r.sites.label("here");
        let symbol = r.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
        for i in 0..8_000 {
            r.record(0, symbol, words, 10 * i, 10 * i + 1);
        }
        r.finish("host")
    };
    let reads = |section: &Section, most: u64| Budget::new(most).spend_reading(section).is_ok();
    let (bare, send) = (of("MPI_Comm_rank", &[0, 0]), of("MPI_Send", &[3, 0, 1, 7, 0]));
    assert!(bare.steps(None) >= 8_000 && send.steps(None) >= 8_000);
    assert!(reads(&bare, 3_100) && !reads(&bare, 2_000));
    assert!(reads(&send, 9_100) && !reads(&send, 8_000));
}

#[test]
fn what_nobody_waits_for_is_known_at_once() {
    let mut s = section();
    let of_all = s.threads[0].counts[0].clone();
    let with = |values: Sealed| {
        let mut counts = of_all.clone();
        counts.streams = std::iter::once(values).collect();
        counts
    };
    // A loop around the rest, and in it a pattern, and what never repeats.
    let below = u32::try_from(s.threads[0].tree.items().len()).unwrap();
    let items = std::iter::once(Item::Body { below }).chain(s.threads[0].tree.items().iter().copied());
    s.threads[0].tree = st_model::tree::FlatTree::new(items.collect());
    s.threads[0].counts.insert(0, with(Sealed::from_constant(1_000_000_000)));
    assert!(s.steps(None) >= 100_000_000_000);
    let calls = |s: &Section| s.calls_of(&s.threads[0], 3)[0];
    assert_eq!(calls(&s), 100_000_000_000);
    s.threads[0].counts[1] = with([1, 2].repeat(50).into_iter().collect());
    assert_eq!(calls(&s), 1_500_000_000);
    assert!((5_000_000_000..6_000_000_000).contains(&s.steps(None)), "{}", s.steps(None));
    // That is given up after a while, and taken for any number.
    s.threads[0].counts[1] = with((0..100).collect());
    assert!(!s.fewer_calls(&s.threads[0], 3, 1 << 16));
    s.threads[0].counts[1] = of_all.clone();
    s.threads[0].counts[0] = with(Sealed::from_constant(i64::MAX));
    assert_eq!(s.steps(None), u64::MAX);
}
