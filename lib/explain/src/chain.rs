//! The waits of who is waited for, so far as it has its turn after them.

use st_model::num::{Exact as _, narrow, saturate};

use crate::timeline::Held;

/// Who waits, and then computes for less than one part in so many of that before it is waited for no longer, hands on a delay: it has had no
/// turn.
const TURN: u64 = 16;

/// No wait.
const NONE: u32 = u32::MAX;

/// Waits of a thread, in the order of time, none before the one before it ends.
#[derive(Debug)]
pub(crate) struct Chain<'a> {
    waits: &'a [Held],
    /// How long those before each are, ns.
    before: Vec<u64>,
    /// Of each the last one before it that reaches further ([`reach`]).
    further: Vec<u32>,
}

fn long(from: i64, to: i64) -> u64 {
    saturate(to.saturating_sub(from))
}

/// Until when, in parts of a turn, a wait needs time after it.
fn reach(wait: &Held) -> i128 {
    i128::from(wait.ns()) + i128::from(TURN) * i128::from(wait.until)
}

/// How long a wait is within another, if it is followed by a turn before that ends, ns.
fn part(wait: &Held, enter: i64, until: i64) -> u64 {
    let ns = long(wait.enter.max(enter), wait.until.min(until));
    if long(wait.until, until) >= ns / TURN { ns } else { 0 }
}

impl<'a> Chain<'a> {
    /// *Cost:* O(waits).
    pub(crate) fn of(waits: &'a [Held]) -> Self {
        let (mut before, mut further) =
            (Vec::with_capacity(waits.len() + 1), Vec::with_capacity(waits.len()));
        let mut sum = 0_u64;
        for (i, wait) in waits.iter().enumerate() {
            before.push(sum);
            sum = sum.saturating_add(long(wait.enter, wait.until));
            let mut last = i.checked_sub(1);
            while let Some(j) = last.filter(|j| reach(&waits[*j]) <= reach(wait)) {
                last = Some(further[j]).filter(|j| *j != NONE).map(|j: u32| j.to_usize());
            }
            further.push(last.map_or(NONE, narrow));
        }
        before.push(sum);
        Self { waits, before, further }
    }

    /// How long the thread waits within a wait for it, each time followed by a turn, ns. *Cost:* O(log waits), and some steps more: of waits that
    /// reach beyond the end, each is seventeen times as long as what is between it and the end, or more.
    pub(crate) fn within(&self, enter: i64, until: i64) -> u64 {
        let first = self.waits.partition_point(|w| w.until <= enter);
        let all = &self.waits[first..];
        let all = &all[..all.partition_point(|w| w.enter < until)];
        // The first and the last may lie in it with a part.
        let [begin, inner @ .., end] = all else {
            return all.iter().map(|w| part(w, enter, until)).sum();
        };
        let mut sum = self.before[first + 1 + inner.len()] - self.before[first + 1];
        let beyond = i128::from(TURN) * (i128::from(until) + 1);
        let mut last: u32 = narrow(first + inner.len());
        while last != NONE && last.to_usize() > first {
            let i = last.to_usize();
            last = if reach(&self.waits[i]) >= beyond {
                sum -= long(self.waits[i].enter, self.waits[i].until);
                last - 1
            } else {
                self.further[i]
            };
        }
        sum + part(begin, enter, until) + part(end, enter, until)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_within_a_wait_are_those_of_all_waits(
            waits in proptest::collection::vec((0..40_i64, 1..700_i64), 0..80),
            windows in proptest::collection::vec((-5..20_000_i64, 1..20_000_i64), 20),
        ) {
            let mut at = 0;
            let waits: Vec<Held> = waits.into_iter().map(|(gap, ns)| {
                let enter = at + gap;
                at = enter + ns;
                Held { enter, until: at, since: enter, by: 0, place: 0 }
            }).collect();
            let chain = Chain::of(&waits);
            for (enter, ns) in windows {
                let until = enter + ns;
                let overlap = |w: &&Held| w.until > enter && w.enter < until;
                let slowly: u64 = waits.iter().filter(overlap).map(|w| part(w, enter, until)).sum();
                prop_assert_eq!(chain.within(enter, until), slowly);
            }
        }
    }
}
