//! Which of many threads comes next.

use st_model::num::{Exact as _, narrow};

/// A thread has no more calls.
const OVER: u128 = 1 << 127;

/// A tournament of threads: the one whose next call is the earliest has won, of several the one with the lowest number.
///
/// *Cost:* O(log threads) per call. Where a thread plays follows from its number, and not from what others there are: unlike in a
/// heap, processors fetch all of its matches at once. That matters where there are more threads than their caches hold.
#[derive(Debug)]
pub(crate) struct Order {
    /// The winner, and behind it who has lost each match. That of the players `2k` and `2k + 1` is match `k`.
    matches: Vec<u128>,
}

/// Times in their order, and threads in theirs.
fn player(thread: u32, time: Option<i64>) -> u128 {
    let time = time.map_or(OVER, |time| u128::from(time.cast_unsigned() ^ 1 << 63) << 32);
    time | u128::from(thread)
}

impl Order {
    /// Threads by when their first calls are, if they have any.
    pub(crate) fn of(first: impl Iterator<Item = Option<i64>>) -> Self {
        let threads: Vec<u128> = (0u32..).zip(first).map(|(thread, time)| player(thread, time)).collect();
        let n = threads.len();
        let mut matches = vec![OVER; n.max(1)];
        let mut winners = [vec![OVER; n], threads].concat();
        for k in (1..n).rev() {
            let [a, b] = [winners[2 * k], winners[2 * k + 1]];
            (winners[k], matches[k]) = (a.min(b), a.max(b));
        }
        matches[0] = winners.get(1).copied().unwrap_or(OVER);
        Self { matches }
    }

    /// The thread whose turn it is; `None` if all are over.
    pub(crate) fn first(&self) -> Option<u32> {
        let first = self.matches[0];
        (first & OVER == 0).then(|| narrow(first & u128::from(u32::MAX)))
    }

    /// When the next call of the thread is whose turn it is.
    pub(crate) fn go_on(&mut self, thread: u32, time: Option<i64>) {
        let mut winner = player(thread, time);
        let mut at = (self.matches.len() + thread.to_usize()) / 2;
        while at > 0 {
            let other = self.matches[at];
            (winner, self.matches[at]) = (winner.min(other), winner.max(other));
            at /= 2;
        }
        self.matches[0] = winner;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_earliest_comes_first_and_of_several_the_lowest(
            threads in proptest::collection::vec(proptest::collection::vec(prop_oneof![-3..3_i64, any::<i64>()], 0..9), 0..20),
        ) {
            let mut left: Vec<_> = threads.iter().map(|calls| calls.iter().copied().peekable()).collect();
            let mut order = Order::of(left.iter_mut().map(|calls| calls.peek().copied()));
            loop {
                let next = (0..).zip(&mut left).filter_map(|(i, calls)| Some((*calls.peek()?, i))).min();
                prop_assert_eq!(order.first(), next.map(|(_, i)| i));
                let Some((_, i)) = next else { break };
                let calls = &mut left[usize::try_from(i).unwrap()];
                calls.next();
                order.go_on(i, calls.peek().copied());
            }
        }
    }
}
