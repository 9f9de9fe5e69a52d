//! What a merged trace keeps of distributions: durations at fixed ranks, and of what matters to no rank the mean.

use std::collections::BTreeMap;
use std::ops::Range;

use st_kernels::{Kernel, Options, paper};
use st_model::header::{Header, SKETCH_ERROR};
use st_model::rank_times::totals;
use st_model::section::{ANY_SYM, NO_SYM, Predecessors, Section, Sym};
use st_model::sketch::Shape;
use st_reduce::cluster::Tolerance;
use st_reduce::distributions::{ERROR, keep_quantiles};
use st_reduce::kept::Kept;
use st_reduce::merge::{Merger, merge};

fn merged() -> Section {
    merged_of(0..16)
}

fn merged_of(ranks: Range<usize>) -> Section {
    let mut merger = Merger::default();
    let options = Options { steps: Some(20), ..Options::default() };
    let sections = paper::sections(Kernel::Multigrid, &options, 16).skip(ranks.start).take(ranks.len());
    sections.for_each(|s| merger.add(s.unwrap()).unwrap());
    merger.finish()
}

#[test]
fn what_matters_to_a_rank_keeps_its_distribution() {
    let whole = merged();
    for least in [0, 100, 20_000] {
        let mut section = whole.clone();
        keep_quantiles(&mut section, Tolerance::from_millionths(least), ERROR);
        let (thread, before) = (&section.threads[0], &whole.threads[0]);
        let events: Vec<_> = totals(before).collect();
        let n = before.ranks.len();
        let run = |rank: usize| events.iter().map(|e| e.compute[rank] + e.comm[rank]).sum::<u128>();
        let (mut kept, mut small) = (0, 0);
        for (path, was) in thread.sketches.iter().zip(&before.sketches) {
            let of = events.iter().find(|e| e.sym == path.sym).unwrap();
            for (sketch, was, parts) in
                [(&path.compute, &was.compute, &of.compute), (&path.comm, &was.comm, &of.comm)]
            {
                assert_eq!((sketch.count, sketch.sum), (was.count, was.sum));
                assert_eq!(parts.len() as u64, n);
                if was.count == 0 {
                    continue;
                }
                let matters = (0..parts.len()).any(|r| parts[r] * 1_000_000 > run(r) * u128::from(least));
                if matters {
                    kept += 1;
                    assert_eq!((sketch.min.1, sketch.max.1), (was.min.1, was.max.1));
                    // Few buckets stay as they are.
                    assert!(!sketch.is_mean() && (sketch.shape() == Shape::Quantiles || sketch == was));
                } else {
                    small += 1;
                    assert_eq!((sketch.is_mean() || was.count == 1, sketch.min.0), (true, sketch.mean()));
                }
            }
        }
        assert!(kept > 0, "{least}");
        // What takes no time at all matters in no way.
        assert!(small > 0 || least == 0, "{least}");
    }
}

#[test]
fn one_path_is_one_distribution_of_each_event() {
    let whole = merged();
    let kept = |section: &Section, one_path: bool, buckets: bool| {
        let mut section = section.clone();
        Kept { one_path, buckets, rank_sums: true, ..Kept::default() }
            .apply(&mut section, &mut Header::default());
        section
    };
    let sums = |section: &Section| -> Vec<(Sym, bool, u64, u128, u128)> {
        let mut all = BTreeMap::new();
        for s in section.threads.iter().flat_map(|t| &t.sketches) {
            let into: &mut (u64, u128, u128) = all.entry((s.sym, s.pred == NO_SYM)).or_default();
            *into = (into.0 + s.comm.count, into.1 + s.compute.sum, into.2 + s.comm.sum);
        }
        all.into_iter().map(|((sym, first), (n, a, b))| (sym, first, n, a, b)).collect()
    };
    let one = kept(&whole, true, true);
    let paths = |section: &Section| section.threads.iter().map(|t| t.sketches.len()).sum::<usize>();
    assert_eq!((sums(&one), paths(&one)), (sums(&whole), sums(&whole).len()));
    assert!(paths(&one) < paths(&whole), "{} {}", paths(&one), paths(&whole));
    assert!(one.threads[0].sketches.iter().all(|s| matches!(s.pred, NO_SYM | ANY_SYM)));
    assert_eq!(one.threads[0].sums, whole.threads[0].sums);
    // What is told apart no more does not come back, nor of what is merged with it.
    assert_eq!(kept(&one, false, true), one);
    let again = merge([kept(&merged_of(0..8), true, true), merged_of(8..16)], false).unwrap();
    assert_eq!(again.threads[0].sketches, one.threads[0].sketches);
    assert_eq!(Predecessors::of(&kept(&whole, true, false).threads[0].sketches), Predecessors::Any);
}

#[test]
fn the_trace_says_another_error_than_the_usual() {
    let said = |error| {
        let (mut section, mut header) = (merged(), Header::default());
        Kept { error, ..Kept::default() }.apply(&mut section, &mut header);
        header.options.get(SKETCH_ERROR).map(|said| said.as_str().unwrap().to_owned())
    };
    assert_eq!(said(ERROR), None);
    assert_eq!(said(Tolerance::from_millionths(5_000)).as_deref(), Some("0.5%"));
    // What is lost does not come back.
    let (mut section, mut header) = (merged(), Header::default());
    for (percent, says) in [(10, Some("10%")), (1, Some("10%")), (20, Some("20%"))] {
        Kept { error: Tolerance::from_millionths(percent * 10_000), ..Kept::default() }
            .apply(&mut section, &mut header);
        assert_eq!(header.options.get(SKETCH_ERROR).and_then(|said| said.as_str()), says);
    }
    let (mut section, mut header) = (merged(), Header::default());
    for percent in [2, 1] {
        Kept { error: Tolerance::from_millionths(percent * 10_000), ..Kept::default() }
            .apply(&mut section, &mut header);
        assert_eq!(header.options.get(SKETCH_ERROR), None);
    }
}
