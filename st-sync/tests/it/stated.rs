//! What st-sync says of its errors, beside the truth, whatever clocks and programs do.

use crate::clocks::{Errors, corrected};
use crate::simulated::{Case, Pattern, SHAPES, Shape};

/// Seconds, ms, and µs, in ns.
const S: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;
const US: i64 = 1_000;

/// Some seconds of a program in which messages are late now and then.
const SECONDS: Case = Case {
    shape: Shape::Constant,
    pattern: Pattern::Ring,
    ranks: 8,
    steps: 120,
    pause: 35 * MS,
    uneven: 10,
    sums: 0,
    late: 400 * US,
    bend: 20 * US,
    quiet: 10,
    comparisons: 2,
};
/// The same with many messages that are hardly late.
const BUSY: Case = Case { steps: 300, pause: 10 * MS, uneven: 2, late: 20 * US, quiet: 1, ..SECONDS };
/// Most of an hour.
const HOUR: Case = Case { steps: 200, pause: 15 * S, uneven: 2, quiet: 1, ..SECONDS };

/// Percentage of ranks of which the truth is no worse than what is stated, and the median of stated by true errors, in percent.
pub(crate) fn summary(errors: &[Errors]) -> (usize, i64) {
    let held = errors.iter().filter(|(stated, truth)| stated >= truth).count();
    let mut times: Vec<i64> = errors.iter().map(|(stated, truth)| 100 * stated / truth.max(&1)).collect();
    times.sort_unstable();
    (held * 100 / errors.len(), times[times.len() / 2])
}

/// What a case comes to with clocks of all shapes, bent by little or much, compared at the ends only or more often: by
/// interpolation, and with all that is known.
fn family(case: Case, seed: u64) -> [Vec<Errors>; 2] {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in.st");
    let (mut linear, mut clc) = (Vec::new(), Vec::new());
    for (i, shape) in (seed..).zip(SHAPES) {
        let bend = case.bend * if i % 2 == 0 { 1 } else { 15 };
        let comparisons = if i % 4 < 2 { 2 } else { 6 };
        let case = Case { shape, bend, comparisons, ..case };
        let truth = case.record(i, &path);
        linear.extend(corrected(&truth, "linear", &path).0);
        clc.extend(corrected(&truth, "clc", &path).0);
    }
    [linear, clc]
}

/// Errors hold for 95 % of all ranks and are at most five times the true ones in the median, whatever the method. The same is
/// asked of each pattern, but for what chance makes of few ranks.
fn hold(patterns: &[(Pattern, usize, i64)]) {
    let mut all = [Vec::new(), Vec::new()];
    for (seed, &(pattern, ranks, sums)) in (1..).zip(patterns) {
        let mut of_pattern = [Vec::new(), Vec::new()];
        for (i, setting) in (seed..).zip([SECONDS, BUSY, HOUR]) {
            let found = family(Case { pattern, ranks, sums, ..setting }, i);
            of_pattern.iter_mut().zip(found).for_each(|(all, found)| all.extend(found));
        }
        for (all, errors) in all.iter_mut().zip(of_pattern) {
            let (held, times) = summary(&errors);
            assert!(held >= 90 && times <= 600, "{pattern:?}: {held} %, {times} %: {errors:?}");
            all.extend(errors);
        }
    }
    for (errors, method) in all.iter().zip(["linear", "clc"]) {
        let (held, times) = summary(errors);
        assert!(held >= 95 && times <= 500, "{method}: {held} %, {times} %");
    }
}

#[test]
fn errors_hold_where_messages_go_both_ways() {
    use Pattern::{BothWays, Stencil, Workers};
    hold(&[(BothWays, 4, 0), (Stencil, 6, 0), (Workers, 5, 0)]);
}

#[test]
fn errors_hold_where_messages_go_in_circles_or_sums_are_made() {
    hold(&[(Pattern::Ring, 4, 0), (Pattern::Ring, 6, 10), (Pattern::Pipeline, 4, 10)]);
}
