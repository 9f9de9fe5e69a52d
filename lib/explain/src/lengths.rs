//! Whether most of what waits cost is in few calls of many.

use st_model::num::Exact as _;

use crate::waits::Sum;

/// Few calls of many, in which most is waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Few {
    /// How many waits.
    pub waits: u64,
    /// How long they are together, ns.
    pub ns: u64,
    /// The calls of those who wait there, with these and all others.
    pub calls: u64,
}

/// The part of all waits that few must have, in percent.
const MOST: u64 = 90;

/// One of so many calls at most is one of few; fewer than twice as many calls are not many.
const MANY: u64 = 10;

/// Waits by their length, in powers of two.
#[derive(Clone, Debug)]
pub(crate) struct Lengths([Sum; 64]);

impl Default for Lengths {
    fn default() -> Self {
        Self([Sum::default(); 64])
    }
}

impl Lengths {
    pub(crate) fn add(&mut self, ns: u64) {
        let sum = self.0.get_mut(ns.max(1).ilog2().to_usize());
        sum.into_iter().for_each(|sum| sum.add(Sum { count: 1, ns, longest: ns }));
    }

    /// The few longest of them in so many calls. None where they are not what a finding of this cost is about.
    pub(crate) fn few(&self, cost: u64, calls: u64) -> Option<Few> {
        let all = self.0.iter().fold(0_u64, |ns, sum| ns.saturating_add(sum.ns));
        if all == 0 || all.abs_diff(cost) > cost / 100 || calls < 2 * MANY {
            return None;
        }
        let mut few = Few { waits: 0, ns: 0, calls };
        for sum in self.0.iter().rev() {
            if u128::from(few.ns) * 100 >= u128::from(all) * u128::from(MOST) {
                break;
            }
            (few.waits, few.ns) = (few.waits + sum.count, few.ns + sum.ns);
        }
        (few.waits.saturating_mul(MANY) <= calls).then_some(few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn few(waits: &[(u64, u64)], calls: u64) -> Option<Few> {
        let mut lengths = Lengths::default();
        waits.iter().for_each(|(n, ns)| (0..*n).for_each(|_| lengths.add(*ns)));
        lengths.few(waits.iter().map(|(n, ns)| n * ns).sum(), calls)
    }

    #[test]
    fn few_of_many_calls_have_most_of_the_waits() {
        assert_eq!(few(&[(198, 1_000), (2, 100_000)], 200), None);
        assert_eq!(few(&[(198, 10), (2, 100_000)], 200), Some(Few { waits: 2, ns: 200_000, calls: 200 }));
        assert_eq!(few(&[(1, 150_000), (1, 60_000)], 200), Some(Few { waits: 2, ns: 210_000, calls: 200 }));
        assert_eq!(few(&[(200, 100_000)], 200), None);
        assert_eq!(few(&[(1, 100_000)], 19), None);
        assert_eq!(few(&[(1, u64::MAX)], 20).map(|few| few.waits), Some(1));
        assert_eq!(few(&[], 200), None);
        // Waits of another matter at the same places.
        let mut lengths = Lengths::default();
        lengths.add(100);
        assert_eq!(lengths.few(50, 200), None);
    }
}
