//! In which order ranks were slow, where exact times are not kept: of each call, whether what was computed before it was long.
//!
//! Durations are in few classes by their length. An event's first call on each rank is step 0, its second is step 1; what is kept
//! tells the class of each rank at each step, or of as many steps as a pattern has before it begins anew. Where ranks are
//! slow by chance so that nothing short tells it, how often they are so together is kept.
//!
//! Source: our own.

use crate::ints::Sealed;
use crate::num::{Exact, narrow};

/// Calls not in the first class, and steps of a pattern, at most.
pub const MOST: u64 = 1 << 20;

/// What shares of steps are counted in.
pub const WHOLE: i64 = 64;

/// In which order a thread's ranks computed longer before an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slow {
    /// The event: a symbol of the section.
    pub sym: u32,
    /// What is known.
    pub how: How,
}

/// What is known of the order in which ranks are slow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum How {
    /// In which steps.
    Steps(Steps),
    /// By chance: in how many of [`WHOLE`] steps together, or, if negative, one when others are not.
    Chance(i8),
}

/// Classes of durations, by step and rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steps {
    /// From how many ns on a duration is of the next class: ascending, at least one.
    pub limits: Vec<u64>,
    /// Steps after which all begins anew; others than the first class may be there beyond it only if none does.
    pub steps: u64,
    /// How many durations are not of the first class.
    pub number: u64,
    /// Each of these, step by step and in each by the rank's place: how many durations after the one before it (the first: from 0, before
    /// which there is one), times the number of classes but the first, plus its class less one.
    pub slow: Sealed,
}

impl Steps {
    /// The classes of a rank by step, of `ranks`; nothing if that is no such thing.
    #[must_use]
    pub fn of_rank(&self, place: u64, ranks: u64) -> Option<Vec<u8>> {
        let more = i64::try_from(self.limits.len()).ok().filter(|n| (1..=8).contains(n))?;
        let ascending = self.limits.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || place >= ranks || !(1..=MOST).contains(&self.steps) || self.number > MOST {
            return None;
        }
        let mut classes = vec![0; usize::try_from(self.steps).ok()?];
        let (mut slow, mut next) = (self.slow.cursor(), 0_u64);
        for _ in 0..self.number {
            let code = slow.next();
            let ahead = u64::try_from(code / more).ok().filter(|ahead| *ahead > 0)?;
            next = next.checked_add(ahead)?;
            let at = next - 1;
            if at % ranks == place {
                *classes.get_mut(usize::try_from(at / ranks).ok()?)? = u8::try_from(code % more + 1).ok()?;
            }
        }
        Some(classes)
    }

    /// Of classes by rank and step, of which all ranks have the same number.
    #[must_use]
    pub fn new(limits: Vec<u64>, classes: &[Vec<u8>]) -> Self {
        let (steps, more) = (classes.first().map_or(0, Vec::len), narrow::<i64>(limits.len()));
        let (mut codes, mut since) = (Vec::new(), 1);
        for step in 0..steps {
            for of_rank in classes {
                match of_rank.get(step).copied().unwrap_or(0) {
                    0 => since += 1,
                    class => {
                        codes.push(since * more + i64::from(class) - 1);
                        since = 1;
                    }
                }
            }
        }
        Self { limits, steps: steps.to_u64(), number: codes.len().to_u64(), slow: Sealed::from(codes) }
    }

    /// The class of a duration.
    #[must_use]
    pub fn class(limits: &[u64], ns: u64) -> u8 {
        crate::num::saturate(limits.partition_point(|limit| *limit <= ns))
    }

    /// Bytes that it takes before compression.
    #[must_use]
    pub fn size(&self) -> usize {
        let (mut head, mut values) = (Vec::new(), Vec::new());
        self.slow.encode(&mut head, &mut values);
        head.len() + values.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_reads_its_classes_back() {
        let classes = [vec![0, 1, 0, 2, 0], vec![2, 0, 0, 0, 1], vec![0; 5]];
        let steps = Steps::new(vec![10, 20], &classes);
        for (place, of) in (0..).zip(&classes) {
            assert_eq!(steps.of_rank(place, 3).as_ref(), Some(of));
        }
        assert_eq!(steps.of_rank(3, 3), None);
        assert_eq!([9, 10, 19, 20].map(|ns| Steps::class(&steps.limits, ns)), [0, 1, 1, 2]);
    }

    #[test]
    fn one_rank_after_the_other_takes_few_bytes_whatever_their_number() {
        for ranks in [4, 64, 512] {
            let classes: Vec<Vec<u8>> =
                (0..ranks).map(|rank| (0..ranks).map(|step| u8::from(rank == step)).collect()).collect();
            let steps = Steps::new(vec![1_000_000], &classes);
            assert!(steps.size() <= 12, "{ranks}: {}", steps.size());
        }
    }

    #[test]
    fn what_no_writer_makes_is_nothing() {
        let steps = Steps::new(vec![10], &[vec![0, 1]]);
        for wrong in [
            Steps { limits: Vec::new(), ..steps.clone() },
            Steps { limits: vec![10, 10], ..steps.clone() },
            Steps { steps: 0, ..steps.clone() },
            Steps { steps: MOST + 1, ..steps.clone() },
            Steps { number: 3, ..steps.clone() },
            Steps { slow: Sealed::from(vec![-1]), ..steps.clone() },
            Steps { slow: Sealed::from(vec![0]), ..steps },
        ] {
            assert_eq!(wrong.of_rank(0, 1), None, "{wrong:?}");
        }
    }
}
