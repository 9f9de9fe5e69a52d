//! How much ranks differ from run to run, each by itself, where the program is the same.
//!
//! How a change differs between the ranks at one place does not tell that. Two ranks may change alike by chance. And one rank
//! that takes ten times as long is a change of the program as often as all that do, but it makes four ranks differ so much that no
//! test of theirs alone can tell it. So other places are asked: how much the changes of two ranks differ at most of
//! them (the median, so that where something has changed does not count as chance).
//!
//! * Where ranks differ at a place by less than is usual, its variance is moderated towards that.
//! * Where they differ by more, what is known stands in the place of that, and a difference that is large beside it is told, too.
//!   A rank's time may change by a quarter from one run to the next, for it may be put on another processor or beside
//!   another job (`USUAL`), or by more if that is usual, but not beyond `MOST`. Time in calls is also waiting for others, which moves from
//!   rank to rank by small causes, and at one place more than at another: there half of it (`IN_CALLS`), and how ranks differ
//!   at the place counts, too.
//!
//! Sources: Smyth 2004 (moderated variances); Bickel, Lehmann 1979 (the median of the distances of values from each other);
//! the constants are our own, chosen on drawn pairs of equal programs (st-stat/tests/times).

use st_model::num::{Exact as _, float};

use super::side::{Side, Variance, distances, products};

/// Standard deviation of the change of one rank's time at a place from run to run, as a share of the mean of both times.
pub(super) const USUAL: f64 = 0.25;

/// What ranks differ by at most places counts as chance up to so much: where a rank takes ten times as long at most of them,
/// that is no chance.
const MOST: f64 = 0.4;

/// The same of time in calls.
const IN_CALLS: f64 = 0.5;

/// So many differences it weighs as much as, where those of a place count.
const WEIGHT: f64 = 4.0;

/// The standard deviation of normal values by the median of their distances from each other, and the part of the values that it
/// is worth.
const BY_MEDIAN: f64 = 1.0483;
const WORTH: f64 = 0.5;

/// How the times of ranks change at the places of a comparison, beside the mean of the place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Apart {
    /// The usual variance of the change of one rank's time, as a share of that squared.
    variance: f64,
    freedom: f64,
    /// Whether it is of the time in calls.
    in_call: bool,
}

/// A group of ranks that takes any time at a place in either run.
struct Group {
    ranks: f64,
    /// The mean of both times of a rank, ns.
    level: f64,
    /// The change as a share of that.
    change: f64,
}

fn groups(a: Side<'_>, b: Side<'_>) -> Vec<Group> {
    let times = a.by_group().into_iter().zip(b.by_group()).zip(b.groups);
    let group = |((x, y), ranks): ((f64, f64), &u64)| {
        let level = f64::midpoint(x, y);
        Group { ranks: float((*ranks).into()), level, change: (y - x) / level }
    };
    times.map(group).filter(|g| g.level > 0.0).collect()
}

impl Apart {
    /// Of computation or of the time in calls: by that at all places, of the same ranks in both runs.
    #[must_use]
    pub fn of<'a>(places: impl IntoIterator<Item = (Side<'a>, Side<'a>)>, in_call: bool) -> Self {
        let (mut all, mut freedom) = (Vec::new(), 0.0);
        for (a, b) in places {
            let groups = groups(a, b);
            for (i, one) in groups.iter().enumerate() {
                all.extend(groups.iter().skip(i + 1).map(|other| (one.change - other.change).abs()));
            }
            freedom += WORTH * float(groups.len().saturating_sub(1).to_u64().into());
        }
        all.sort_by(f64::total_cmp);
        let median = all.get(all.len() / 2).copied().unwrap_or_default();
        Self { variance: (BY_MEDIAN * median).powi(2), freedom, in_call }
    }

    /// Variance of the change of the mean of all ranks at a place, by how they differ there, and where that is less than usual, as
    /// of few ranks it is by chance, also by how they usually do.
    pub(super) fn moderated(self, differing: Variance, a: Side<'_>, b: Side<'_>) -> Variance {
        let usual = self.variance * levels(a, b);
        if usual <= differing.of_mean {
            return differing;
        }
        let weight = self.freedom.min(WEIGHT);
        let freedom = differing.freedom + weight;
        let of_mean = (differing.freedom * differing.of_mean + weight * usual) / freedom;
        Variance { of_mean, freedom }
    }

    /// The same by what is known, whatever has changed at the place.
    pub(super) fn known(self, a: Side<'_>, b: Side<'_>) -> Variance {
        let least = if self.in_call { IN_CALLS * IN_CALLS } else { USUAL * USUAL };
        let (variance, freedom) = if self.in_call {
            let changes: Vec<f64> = groups(a, b).iter().map(|g| g.change).collect();
            let (distances, n) = distances(&changes);
            let freedom = WEIGHT + (n - 1.0).max(0.0);
            ((WEIGHT * least.max(self.variance) + products(&distances, &distances)) / freedom, freedom)
        } else if self.variance > MOST * MOST {
            (MOST * MOST, f64::INFINITY)
        } else if self.variance > least {
            (self.variance, self.freedom.max(1.0))
        } else {
            (least, f64::INFINITY)
        };
        Variance { of_mean: variance * levels(a, b), freedom }
    }
}

/// Variance of the mean of all ranks at a place, where that of each is the square of its level.
fn levels(a: Side<'_>, b: Side<'_>) -> f64 {
    let squares: f64 = groups(a, b).iter().map(|g| (g.ranks * g.level).powi(2)).sum();
    squares / float(b.groups.iter().map(|n| u128::from(*n)).sum()).max(1.0).powi(2)
}
