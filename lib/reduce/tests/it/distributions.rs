//! What a merged trace keeps of distributions: durations at fixed ranks, and of what matters to no rank the mean.

use st_kernels::{Kernel, Options, paper};
use st_model::header::{Header, SKETCH_ERROR};
use st_model::rank_times::totals;
use st_model::section::Section;
use st_model::sketch::Shape;
use st_reduce::cluster::Tolerance;
use st_reduce::distributions::{ERROR, keep_quantiles};
use st_reduce::kept::Kept;
use st_reduce::merge::Merger;

fn merged() -> Section {
    let mut merger = Merger::default();
    let options = Options { steps: Some(20), ..Options::default() };
    paper::sections(Kernel::Multigrid, &options, 16).for_each(|s| merger.add(s.unwrap()).unwrap());
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
