//! What a merged trace keeps of the distributions of times: few durations at fixed ranks, and of what does not matter to any
//! rank the mean.

use std::collections::HashMap;

use st_model::rank_times::totals;
use st_model::section::{Section, Sym, Thread};
use st_model::sketch::quantiles;

use crate::cluster::Tolerance;

/// What an event takes less of a rank's time than where it does not matter.
pub const LEAST: Tolerance = Tolerance::from_millionths(100);

/// How far what is kept of a distribution may be from it.
pub const ERROR: Tolerance = Tolerance::from_millionths(quantiles::ERROR);

/// A million of them are a rank's whole time.
const MILLION: u128 = 1_000_000;

/// Keeps durations at fixed ranks of buckets, and number, sum and deviation of what takes at most `least` of its time on every
/// rank; a distribution may then be `error` of its sum away from what it was. *Cost:* O(events · ranks + buckets).
pub fn keep_quantiles(section: &mut Section, least: Tolerance, error: Tolerance) {
    for thread in &mut section.threads {
        let small = small(thread, least.millionths());
        let lowest = thread.ranks.lowest().unwrap_or_default();
        for path in &mut thread.sketches {
            let small = small.get(&path.sym).copied().unwrap_or_default();
            for (sketch, small) in [&mut path.compute, &mut path.comm].into_iter().zip(small) {
                if small { sketch.keep_mean(lowest) } else { sketch.keep_quantiles(error.millionths()) }
            }
        }
    }
}

/// Whether what is before an event, and what is in it, takes at most so many millionths of the time of every rank.
fn small(thread: &Thread, least: u32) -> HashMap<Sym, [bool; 2]> {
    let mut whole: Vec<u128> = Vec::new();
    for of in totals(thread) {
        whole.resize(whole.len().max(of.compute.len()), 0);
        for (all, (a, b)) in whole.iter_mut().zip(of.compute.iter().zip(&of.comm)) {
            *all += a + b;
        }
    }
    let small = |parts: &[u128]| {
        parts
            .iter()
            .zip(&whole)
            .all(|(part, whole)| part.saturating_mul(MILLION) <= whole.saturating_mul(least.into()))
    };
    totals(thread).map(|of| (of.sym, [small(&of.compute), small(&of.comm)])).collect()
}
