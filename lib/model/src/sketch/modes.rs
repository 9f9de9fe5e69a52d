//! The modes of a distribution: durations that are common, with less common ones between them.
//!
//! The density over the buckets, whose positions are logarithms of durations beyond some 100 ns, is estimated with a
//! triangular kernel half as wide as the rule of thumb says, which is made for one mode and blurs two. Each of its maxima is a candidate. Two neighbours are one mode
//! unless the density between them falls to half of the lower one, by more than chance would have it ([`SIGMAS`]), and
//! each holds a share of the calls ([`LEAST`]). So neither a long tail, nor a few durations far from the others, nor the
//! unevenness of few durations is a mode of its own.
//!
//! Source: the width, Silverman 1986, section 3.4.2 (equation 3.31); depth, significance and share are our own.

use crate::num::{Exact, float, narrow, rounded, saturate};

use super::{Sketch, representative};

/// A mode of a distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode {
    /// How many durations belong to it: those between the minima of the density on both sides.
    pub count: u64,
    /// Their median, ns, to 1 %.
    pub median: u64,
}

/// Fewest durations that modes are looked for in.
const ENOUGH: u64 = 50;
/// A mode has at least one duration in so many.
const LEAST: u64 = 20;
/// A minimum is lower than the maxima beside it by so many standard deviations of what it counts.
const SIGMAS: f64 = 3.0;
/// Narrowest kernel, in buckets to one side: 6 %.
const NARROWEST: usize = 3;

/// Kernel of Silverman's rule is the normal one; a triangle has the variance of one whose deviation is 1/√6 of its half width.
const TRIANGLE: f64 = 2.45;

/// A maximum of the density with what belongs to it.
#[derive(Clone, Copy)]
struct Peak {
    /// Positions: from, up to but without, and that of the maximum.
    from: usize,
    to: usize,
    at: usize,
    count: u64,
}

impl Sketch {
    /// The modes, in ascending order; none of few durations, or of a sketch without buckets. *Cost:* O(buckets²).
    #[must_use]
    pub fn modes(&self) -> Vec<Mode> {
        let Some((first, _)) = self.buckets().next() else { return Vec::new() };
        let counts = dense(self.buckets().map(|(b, n)| (usize::from(b - first), n)));
        if counts.iter().sum::<u64>() < ENOUGH {
            return Vec::new();
        }
        let density = smooth(&counts, width(&counts));
        let mode = |peak: Peak| {
            let at = quantile(&counts[peak.from..peak.to], 0.5);
            Mode { count: peak.count, median: representative(first + narrow::<u16>(peak.from + at)) }
        };
        let peaks = united(peaks(&density, &counts), &density);
        peaks.into_iter().map(mode).collect()
    }
}

/// Numbers by position, without gaps.
fn dense(of: impl Iterator<Item = (usize, u64)>) -> Vec<u64> {
    let mut out = Vec::new();
    for (at, n) in of {
        out.resize(at + 1, 0);
        out[at] = n;
    }
    out
}

/// Position of a quantile.
fn quantile(counts: &[u64], q: f64) -> usize {
    let whole: u64 = counts.iter().sum();
    let target = rounded(float(whole.into()) * q).max(1);
    let mut seen = 0;
    let reached = |n: &u64| {
        seen += n;
        seen >= target
    };
    counts.iter().position(reached).unwrap_or(0)
}

/// Half width of the kernel, in positions.
fn width(counts: &[u64]) -> usize {
    let n: u64 = counts.iter().sum();
    let position = |i: usize| float(i.to_u64().into());
    let sum = |of: &dyn Fn(f64) -> f64| {
        counts.iter().enumerate().map(|(i, c)| float((*c).into()) * of(position(i))).sum::<f64>()
    };
    let mean = sum(&|x| x) / float(n.into());
    let deviation = (sum(&|x| (x - mean).powi(2)) / float(n.into())).sqrt();
    let between = position(quantile(counts, 0.75) - quantile(counts, 0.25)) / 1.34;
    let normal = 0.9 * deviation.min(between) * float(n.into()).powf(-0.2);
    saturate::<usize>(rounded(normal * TRIANGLE / 2.0)).max(NARROWEST)
}

/// How many durations the kernel counts at each position: those there wholly, others by their distance.
fn smooth(counts: &[u64], width: usize) -> Vec<f64> {
    let at = |i: usize| {
        let from = (i + 1).saturating_sub(width);
        let near = counts.iter().enumerate().take(i + width).skip(from);
        let weighed = near.map(|(j, n)| u128::from(*n) * u128::from((width - i.abs_diff(j)).to_u64()));
        float(weighed.sum()) / float(width.to_u64().into())
    };
    (0..counts.len()).map(at).collect()
}

/// All maxima. What lies up to the minimum between two belongs to the first.
fn peaks(density: &[f64], counts: &[u64]) -> Vec<Peak> {
    let mut out: Vec<Peak> = Vec::new();
    let (mut rising, mut low) = (true, 0);
    for i in 0..density.len() {
        let next = density.get(i + 1).copied().unwrap_or(f64::NEG_INFINITY);
        if rising && next < density[i] {
            out.push(Peak { from: low, to: counts.len(), at: i, count: 0 });
            rising = false;
        } else if !rising && next > density[i] {
            low = i + 1;
            if let Some(last) = out.last_mut() {
                last.to = low;
            }
            rising = true;
        }
    }
    for peak in &mut out {
        peak.count = counts[peak.from..peak.to].iter().sum();
    }
    out
}

/// Neighbours that are no two modes made one, those with the shallowest minimum between them first.
fn united(mut peaks: Vec<Peak>, density: &[f64]) -> Vec<Peak> {
    let whole: u64 = peaks.iter().map(|p| p.count).sum();
    while let Some(i) = most_alike(&peaks, density, whole) {
        let (a, b) = (peaks[i], peaks.remove(i + 1));
        let at = if density[a.at] < density[b.at] { b.at } else { a.at };
        peaks[i] = Peak { from: a.from, to: b.to, at, count: a.count + b.count };
    }
    peaks
}

/// Of the neighbours that are one mode, the first of those that differ least; depths decide before shares.
fn most_alike(peaks: &[Peak], density: &[f64], whole: u64) -> Option<usize> {
    let mut found: Option<(bool, f64, usize)> = None;
    for (i, pair) in peaks.windows(2).enumerate() {
        let [a, b] = [pair[0], pair[1]];
        let lower = density[a.at].min(density[b.at]);
        let valley = density[a.at..=b.at].iter().copied().fold(f64::INFINITY, f64::min);
        let shallow = 2.0 * valley > lower || lower - valley < SIGMAS * (lower + valley).sqrt();
        let small = a.count.min(b.count).saturating_mul(LEAST) < whole;
        let better = |(s, ratio, _): (bool, f64, usize)| (shallow, valley / lower) > (s, ratio);
        if (shallow || small) && found.is_none_or(better) {
            found = Some((shallow, valley / lower, i));
        }
    }
    found.map(|(.., i)| i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;
    use rand_pcg::Pcg64;

    /// A number from 0 to 1.
    fn uniform(from: &mut Pcg64) -> f64 {
        float((from.next_u64() >> 11).into()) / float(1 << 53)
    }

    fn normal(from: &mut Pcg64) -> f64 {
        (0..12).map(|_| uniform(from)).sum::<f64>() - 6.0
    }

    fn modes(n: u64, seed: u128, mut draw: impl FnMut(&mut Pcg64) -> f64) -> Vec<Mode> {
        let mut from = Pcg64::new(seed, 7);
        let mut sketch = Sketch::default();
        (0..n).for_each(|_| sketch.add(rounded(draw(&mut from)), 0));
        sketch.modes()
    }

    #[test]
    fn what_has_one_mode_has_no_other() {
        type Draw = fn(&mut Pcg64) -> f64;
        let shapes: [(&str, Draw); 9] = [
            ("constant", |_| 5_000.0),
            ("narrow", |r| 1e5 * (0.02 * normal(r)).exp()),
            ("wide", |r| 1e5 * normal(r).exp()),
            ("exponential", |r| -2e4 * (1.0 - uniform(r)).ln()),
            ("uniform", |r| 1e4 + 1e6 * uniform(r)),
            ("a tail by a power", |r| 1e4 * (1.0 - uniform(r)).powf(-0.8)),
            ("one in a hundred is far away", |r| {
                if uniform(r) < 0.01 { 1e7 } else { 1e4 * (0.1 * normal(r)).exp() }
            }),
            ("two that overlap", |r| {
                1e5 * (0.3 * f64::from(u8::from(uniform(r) < 0.5)) + 0.1 * normal(r)).exp()
            }),
            ("some nanoseconds", |r| 40.0 + 8.0 * normal(r).abs()),
        ];
        for (name, draw) in shapes {
            for (n, seeds) in [(50, 40), (200, 40), (3_000, 10), (20_000, 2)] {
                for seed in 0..seeds {
                    let found = modes(n, seed, draw);
                    assert_eq!(found.len(), 1, "{name}, {n} durations, seed {seed}: {found:?}");
                    assert_eq!(found[0].count, n);
                }
            }
        }
        assert!(modes(49, 1, |_| 7.0).is_empty() && Sketch::default().modes().is_empty());
        assert!(Sketch::from_totals(Sketch { count: 100, ..Sketch::default() }).modes().is_empty());
    }

    #[test]
    fn two_modes_are_found_with_their_shares_and_places() {
        for (n, share, apart, spread) in [
            (100, 0.5, 4.0, 0.2),
            (1_000, 0.2, 2.0, 0.1),
            (20_000, 0.08, 3.0, 0.15),
            (5_000, 0.5, 1.25, 0.03),
            (2_000, 0.7, 1e3, 0.5),
        ] {
            for seed in 0..10 {
                let found = modes(n, seed, |r| {
                    let place = if uniform(r) < share { 1e4 * apart } else { 1e4 };
                    place * (spread * normal(r)).exp()
                });
                assert_eq!(found.len(), 2, "{n} durations, {apart} times, seed {seed}: {found:?}");
                let slow = float(found[1].count.into()) / float(n.into());
                assert!((slow - share).abs() < 0.15, "{slow} of {share}");
                let middles = [0, 1].map(|i| float(found[i].median.into()) / 1e4);
                assert!(
                    (middles[0] - 1.0).abs() < 0.2 && (middles[1] / apart - 1.0).abs() < 0.2,
                    "{middles:?}"
                );
            }
        }
    }

    #[test]
    fn three_modes_are_three() {
        let found = modes(3_000, 3, |r| {
            1e4 * 8f64.powi([0, 1, 2][(r.next_u64() % 3).to_usize()]) * (0.1 * normal(r)).exp()
        });
        assert_eq!(found.len(), 3, "{found:?}");
    }
}
