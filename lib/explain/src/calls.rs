//! The calls of a thread with their times, in the order of time.
//!
//! *Memory:* 12 bytes per call: times stand as distances from that of the first call of a block, which nearly always fit into 32
//! bits of ns. A block in which they do not takes 24 bytes per call.

use st_model::num::saturate;

/// A call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    /// Number of the place.
    pub(crate) place: u32,
    pub(crate) enter: i64,
    pub(crate) exit: i64,
}

/// Calls of a block.
const BLOCK: usize = 64;

/// A call whose times are distances, ns.
#[derive(Clone, Copy, Debug)]
struct Short {
    place: u32,
    enter: u32,
    exit: u32,
}

#[derive(Clone, Debug)]
enum Block {
    /// Distances from a time.
    Short(i64, Box<[Short]>),
    Long(Box<[Call]>),
}

impl Block {
    fn of(calls: &[Call]) -> Self {
        let base = calls.first().map_or(0, |c| c.enter);
        let long = calls.last().is_some_and(|c| c.exit - base > i64::from(u32::MAX));
        if long {
            return Self::Long(calls.into());
        }
        let from = |time: i64| saturate(time - base);
        let short = |c: &Call| Short { place: c.place, enter: from(c.enter), exit: from(c.exit) };
        Self::Short(base, calls.iter().map(short).collect())
    }

    #[inline]
    fn get(&self, n: usize) -> Option<Call> {
        match self {
            Self::Short(base, calls) => {
                let Short { place, enter, exit } = *calls.get(n)?;
                Some(Call { place, enter: base + i64::from(enter), exit: base + i64::from(exit) })
            }
            Self::Long(calls) => calls.get(n).copied(),
        }
    }
}

/// The calls of a thread. Their times never go back.
#[derive(Clone, Default, Debug)]
pub(crate) struct Calls {
    blocks: Vec<Block>,
    /// The block that is not full.
    open: Vec<Call>,
    /// When the last call ends.
    end: Option<i64>,
    len: usize,
}

impl Calls {
    pub(crate) fn push(&mut self, call: Call) {
        self.open.push(call);
        self.end = Some(call.exit);
        self.len += 1;
        if self.open.len() == BLOCK {
            self.blocks.push(Block::of(&self.open));
            self.open.clear();
        }
    }

    /// There are no more calls; these can be asked for from now on.
    pub(crate) fn finish(&mut self) {
        self.blocks.push(Block::of(&self.open));
        self.blocks.shrink_to_fit();
        self.open = Vec::new();
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn end(&self) -> Option<i64> {
        self.end
    }

    #[inline]
    pub(crate) fn get(&self, n: usize) -> Option<Call> {
        self.blocks.get(n / BLOCK)?.get(n % BLOCK)
    }

    /// All calls from one on.
    pub(crate) fn from(&self, first: usize) -> impl Iterator<Item = Call> + '_ {
        (first..self.len).map_while(|n| self.get(n))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Call> + '_ {
        self.from(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn calls_read_back(steps in proptest::collection::vec((0..9_u32, 0..3_usize, 0..3_usize), 0..300)) {
            // A moment, a while, and longer than distances can be.
            const TIMES: [i64; 3] = [7, 1_000_000, 5_000_000_000];
            let (mut calls, mut pushed, mut now) = (Calls::default(), Vec::new(), -1_000);
            for (place, before, inside) in steps {
                let enter = now + TIMES[before];
                now = enter + TIMES[inside];
                pushed.push(Call { place, enter, exit: now });
                calls.push(Call { place, enter, exit: now });
            }
            calls.finish();
            prop_assert_eq!(calls.len(), pushed.len());
            prop_assert_eq!(calls.iter().collect::<Vec<_>>(), pushed);
        }
    }
}
