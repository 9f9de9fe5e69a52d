//! How long messages take by their size, as the messages of a trace themselves tell.

use std::collections::BTreeMap;

use st_model::num::{float, rounded};
use st_model::sketch::{Sketch, bucket};

use crate::own::SHORT;

/// A line through the times of messages.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fit {
    /// What a message without data takes, ns.
    pub latency: f64,
    /// What each byte takes beyond that, ns; `None` where that does not show: all messages are short or of one size, or larger ones take no
    /// longer than chance makes of equal ones.
    pub per_byte: Option<f64>,
    /// Messages that were measured.
    pub messages: u64,
}

impl Fit {
    /// What a message of so many bytes takes, ns.
    #[must_use]
    pub fn time(&self, bytes: u64) -> f64 {
        self.latency + self.per_byte.unwrap_or(0.0) * float(bytes.into())
    }

    /// Bytes of a message that takes twice its latency: smaller ones are bound by latency, larger ones by bandwidth.
    #[must_use]
    pub fn half(&self) -> Option<f64> {
        self.per_byte.map(|per_byte| self.latency / per_byte)
    }
}

/// The bytes of the largest messages take so many times what times scatter by, or they do not show.
const SHOWS: f64 = 4.0;

/// Times of messages of about one size, ns.
#[derive(Debug, Default)]
struct Times {
    bytes: u128,
    sketch: Sketch,
}

/// Measured messages.
#[derive(Debug, Default)]
pub struct Transfers {
    /// By whether they go between nodes, and size to 1 %.
    times: BTreeMap<(bool, u16), Times>,
}

impl Transfers {
    /// A message has taken so many ns.
    pub(crate) fn add(&mut self, far: bool, bytes: u64, ns: u64) {
        let times = self.times.entry((far, bucket(bytes))).or_default();
        times.bytes += u128::from(bytes);
        times.sketch.add(ns, 0);
    }

    /// Sizes with the times of their messages.
    fn sizes(&self, far: bool) -> impl Iterator<Item = (f64, &Sketch)> {
        let of = self.times.range((far, 0)..=(far, u16::MAX));
        of.map(|(_, t)| (float(t.bytes / u128::from(t.sketch.count.max(1))), &t.sketch))
    }

    /// What messages take by the line: the quartiles of all of them. `None` where the line says that they take nothing.
    #[must_use]
    pub fn spread(&self, far: bool, fit: &Fit) -> Option<[f64; 2]> {
        let of = |thousandths| {
            let by_line = |(bytes, times): (f64, &Sketch)| {
                let whole = fit.latency + fit.per_byte.unwrap_or(0.0) * bytes;
                (whole > 0.0).then(|| (float(times.quantile(thousandths).into()) / whole, times.count))
            };
            median(self.sizes(far).filter_map(by_line).collect())
        };
        Some([of(250)?, of(750)?])
    }

    /// The line through the median times of sizes: its slope is the median of the slopes between any two of them, weighted by
    /// how far they are apart and the messages of both; its latency that of what is left without it. (P. K. Sen 1968, Estimates
    /// of the regression coefficient based on Kendall's tau: few outliers change nothing; the weights are those of G. L. Sievers
    /// 1978, Weighted rank statistics for simple linear regression: sizes that are nearly alike say little.) `None` where no
    /// message was measured.
    #[must_use]
    pub fn fit(&self, far: bool) -> Option<Fit> {
        let point = |(bytes, times): (f64, &Sketch)| (bytes, float(times.quantile(500).into()), times.count);
        let points: Vec<(f64, f64, u64)> = self.sizes(far).map(point).collect();
        let mut slopes = Vec::new();
        for (i, (x, t, n)) in points.iter().enumerate() {
            let longer = points.iter().skip(i + 1).filter(|(y, _, _)| y > x);
            let apart = |y: f64, m: u64| rounded((y - x) * float((*n).min(m).into()));
            slopes.extend(longer.map(|(y, u, m)| ((u - t) / (y - x), apart(*y, *m))));
        }
        let slope = median(slopes).filter(|slope| *slope > 0.0);
        let left = |slope: f64| -> Vec<_> { points.iter().map(|(x, t, n)| (t - x * slope, *n)).collect() };
        let slope = slope.filter(|slope| self.shows(far, *slope, &left(*slope)));
        let latency = median(left(slope.unwrap_or(0.0)))?.max(0.0);
        Some(Fit { latency, per_byte: slope, messages: points.iter().map(|(_, _, n)| n).sum() })
    }

    /// Whether the largest messages take longer by their bytes than by chance: what is left of the times of sizes without their bytes
    /// scatters about the latency, as do the times of messages of one size.
    fn shows(&self, far: bool, slope: f64, left: &[(f64, u64)]) -> bool {
        let largest = self.sizes(far).map(|(bytes, _)| bytes).fold(0.0, f64::max);
        let latency = median(left.to_vec()).unwrap_or(0.0);
        let between = median(left.iter().map(|(t, n)| ((t - latency).abs(), *n)).collect());
        let quartiles = |times: &Sketch| [250, 750].map(|q| float(times.quantile(q).into()));
        let within = self.sizes(far).map(|(_, times)| (quartiles(times), times.count));
        let within = median(within.map(|([low, high], n)| ((high - low) / 2.0, n)).collect());
        let scatter = between.unwrap_or(0.0).max(within.unwrap_or(0.0));
        largest > float(SHORT.into()) && slope * largest >= SHOWS * scatter
    }
}

/// The value on either side of which half of the weight is.
pub(crate) fn median(mut values: Vec<(f64, u64)>) -> Option<f64> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, n)| u128::from(*n)).sum::<u128>().div_ceil(2);
    let mut seen = 0;
    let reached = values.into_iter().find(|(_, n)| {
        seen += u128::from(*n);
        seen >= half
    });
    reached.map(|(value, _)| value)
}
