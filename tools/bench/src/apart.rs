//! How far the distributions of times of a merged trace are from those that ranks have recorded.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Write as _};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use st_model::num::float;
use st_model::section::{PathSketch, Predecessors, Section};
use st_model::sketch::{Shape, Sketch, representative};
use st_stream::{ReadOptions, read};

/// Of each distribution this many quantiles are compared.
const QUANTILES: u64 = 50;

/// A quantile is off where it differs by more than this.
const OFF_PERCENT: u64 = 5;

/// What is added up over all distributions.
#[derive(Default)]
struct Apart {
    distributions: u64,
    /// Area between them and all durations, ns.
    area: u128,
    sum: u128,
    off: u64,
}

impl Apart {
    /// What is kept may be of more durations, those of other paths, too: then each stands for a part of one.
    fn add(&mut self, truth: &Sketch, kept: &Sketch) {
        let (of_truth, of_kept) = (u128::from(truth.count), u128::from(kept.count));
        let mut made = durations(kept).into_iter().map(|(ns, n)| (ns, u128::from(n) * of_truth));
        let (mut ns, mut left) = (0, 0);
        let mut parts = 0;
        for (bucket, n) in truth.buckets() {
            let was = representative(bucket);
            self.sum += u128::from(was) * u128::from(n);
            let mut n = u128::from(n) * of_kept;
            while n > 0 {
                if left == 0 {
                    // Both have as many parts.
                    (ns, left) = made.next().unwrap_or((was, n));
                }
                let both = n.min(left);
                parts += u128::from(was.abs_diff(ns)) * both;
                (n, left) = (n - both, left - both);
            }
        }
        self.area += parts / of_kept.max(1);
        let off = |at: u64| {
            let share = (2 * at + 1) * (1000 / QUANTILES / 2);
            let (was, made) = (truth.quantile(share), kept.quantile(share));
            u64::from(was.abs_diff(made).saturating_mul(100) > was.saturating_mul(OFF_PERCENT))
        };
        self.off += (0..QUANTILES).map(off).sum::<u64>();
        self.distributions += 1;
    }
}

/// What a replay makes of a distribution: durations in ascending order, and how often each was. A bin's, and those of which only the
/// totals are kept, are their mean, as Ratn and others 2008 have it.
fn durations(sketch: &Sketch) -> Vec<(u64, u64)> {
    match sketch.shape() {
        Shape::Buckets | Shape::Quantiles => {
            sketch.buckets().map(|(bucket, n)| (representative(bucket), n)).collect()
        }
        Shape::Bins(_) => {
            sketch.bins().iter().filter(|bin| bin.count > 0).map(|bin| (bin.mean(), bin.count)).collect()
        }
        Shape::Totals => vec![(sketch.mean(), sketch.count)],
    }
}

/// Prints number of distributions of several durations, the area between those of both traces in percent of their sum, and which
/// part of their quantiles is off.
///
/// # Errors
///
/// If one cannot be read, or they are not of the same streams, merged the same way.
pub(crate) fn print(truth: &Path, kept: &Path) -> Result<()> {
    let (was, made) = (sections(truth)?, sections(kept)?);
    let other = || format!("{}: not what {} has, merged otherwise", kept.display(), truth.display());
    let threads = |sections: &[Section]| sections.iter().map(|s| s.threads.len()).collect::<Vec<_>>();
    ensure!(threads(&was) == threads(&made), other());
    let mut apart = Apart::default();
    for (was, made) in was.iter().zip(&made).flat_map(|(a, b)| a.threads.iter().zip(&b.threads)) {
        let calls = |sketches: &[PathSketch]| sketches.iter().map(|s| s.comm.count).sum::<u64>();
        ensure!(calls(&was.sketches) == calls(&made.sketches), other());
        let paths = Predecessors::of(&made.sketches);
        let made: BTreeMap<_, _> = made.sketches.iter().map(|s| ((s.sym, s.pred), s)).collect();
        for was in &was.sketches {
            let made = made.get(&(was.sym, paths.pred(was.pred))).with_context(other)?;
            for (was, made) in [(&was.compute, &made.compute), (&was.comm, &made.comm)] {
                ensure!(was.count <= made.count, other());
                if was.count > 1 && !made.is_mean() {
                    apart.add(was, made);
                }
            }
        }
    }
    let percent = |part: u128, all: u128| 100.0 * float(part) / float(all.max(1));
    let quantiles = u128::from(apart.distributions * QUANTILES);
    let mut out = std::io::stdout().lock();
    writeln!(out, "distributions_count {}", apart.distributions)?;
    writeln!(out, "area_percent {:.3}", percent(apart.area, apart.sum))?;
    writeln!(out, "off_percent {:.3}", percent(apart.off.into(), quantiles))?;
    Ok(())
}

fn sections(path: &Path) -> Result<Vec<Section>> {
    let file = File::open(path).with_context(|| format!("{}: cannot open", path.display()))?;
    let trace = read(BufReader::new(file), ReadOptions::default())
        .with_context(|| format!("{}: cannot read", path.display()))?;
    Ok(trace.sections)
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_model::sketch::LiveSketch;
    use st_model::sketch::histogram::Binning;

    /// The more bins, the nearer; totals are farthest.
    #[test]
    fn what_is_kept_in_any_shape_has_an_area() {
        let kept = |shape| {
            let mut live = LiveSketch::new(shape);
            (0..1000).for_each(|i: u64| live.add(1_000 + i * i % 977 * 1_000));
            live.finish(0)
        };
        let truth = kept(Shape::Buckets);
        let area = |shape| {
            let mut apart = Apart::default();
            apart.add(&truth, &kept(shape));
            apart.area
        };
        let bins = |n| area(Shape::Bins(Binning::new(n, 50).unwrap()));
        let areas = [area(Shape::Buckets), bins(10), bins(5), bins(1), area(Shape::Totals)];
        assert!(
            areas[0] == 0 && areas[1] < areas[2] && areas[2] < areas[3] && areas[3] == areas[4],
            "{areas:?}"
        );
    }
}
