//! What calls of collective operations take once nobody is late any more, by thread and place.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::num::saturate;

/// Calls that are remembered of each thread at each place: the last ones.
const LAST: usize = 16;

/// What a place takes is known after so many calls.
const KNOWN: usize = 4;

#[derive(Clone, Copy, Default, Debug)]
struct Last {
    ns: [u32; LAST],
    calls: usize,
}

/// Times from when the last one has come to the end of the call. Memory is bounded by threads and places.
#[derive(Default, Debug)]
pub(crate) struct Usual {
    at: HashMap<(u32, u32), Last, FixedState>,
}

impl Usual {
    /// A call of a thread at a place has taken so long alone; returns what the median of the last ones took, if enough are known.
    pub(crate) fn took(&mut self, thread: u32, place: u32, ns: i64) -> Option<i64> {
        let last = self.at.entry((thread, place)).or_default();
        last.ns[last.calls % LAST] = saturate(ns);
        last.calls += 1;
        let known = last.calls.min(LAST);
        let mut sorted = last.ns;
        let (_, median, _) = sorted[..known].select_nth_unstable(known / 2);
        (known >= KNOWN).then(|| i64::from(*median))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_last_calls_is_usual_once_there_are_some() {
        let mut usual = Usual::default();
        let times: Vec<_> = [9, 7_000_000_000, 5, 7].iter().map(|ns| usual.took(1, 2, *ns)).collect();
        assert_eq!(times, [None, None, None, Some(9)]);
        assert_eq!(usual.took(2, 2, 1), None);
        (0..LAST).for_each(|_| {
            usual.took(1, 2, 100);
        });
        assert_eq!(usual.took(1, 2, 3), Some(100));
    }
}
