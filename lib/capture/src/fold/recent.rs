//! Where each event stood last in the open list.
//!
//! Links from place to place would find the same, but in a long list without repeats every step along them is a cache miss;
//! here all places of an event that are looked at lie together.

use super::node::Sym;
use st_model::num::Exact;

/// Places that are kept of an event: its last one, and 16 before that.
pub(super) const PLACES: usize = 17;
/// Symbols from here on have no places here: these take 220 bytes each.
const SYMBOLS: usize = 1 << 10;

/// A place: its position in the list, and a hash of what stood before it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Occurrence {
    pub(super) at: usize,
    pub(super) before: u32,
}

/// The last places of one event, in a ring.
#[derive(Debug, Clone, Default)]
struct Ring {
    at: [usize; PLACES],
    before: [u32; PLACES],
    /// Number of places, and where the next one goes.
    len: usize,
    next: usize,
}

/// The last places of all events.
#[derive(Debug, Clone, Default)]
pub(super) struct Recent(Vec<Ring>);

impl Recent {
    /// Whether places of the symbol are kept.
    pub(super) fn keeps(sym: Sym) -> bool {
        index(sym) < SYMBOLS
    }

    /// Enters a place; returns the position of the one before, if there is one.
    pub(super) fn push(&mut self, sym: Sym, place: Occurrence) -> Option<usize> {
        let index = index(sym);
        if index >= self.0.len() {
            self.0.resize_with(index + 1, Ring::default);
        }
        let ring = &mut self.0[index];
        let last = ring.last();
        ring.set(place);
        ring.next = (ring.next + 1) % PLACES;
        ring.len = PLACES.min(ring.len + 1);
        last.map(|place| place.at)
    }

    /// Removes the last place. Where all places are in use, `earlier` knows the one before a position.
    pub(super) fn pop(&mut self, sym: Sym, earlier: impl Fn(usize) -> Option<Occurrence>) {
        let Some(ring) = self.0.get_mut(index(sym)).filter(|ring| ring.len > 0) else { return };
        let oldest = (ring.len == PLACES).then(|| ring.at[ring.next]);
        ring.next = (ring.next + PLACES - 1) % PLACES;
        ring.len -= 1;
        if let Some(place) = oldest.and_then(earlier) {
            ring.set(place);
            ring.len += 1;
        }
    }

    /// The n-th place of a symbol, the last one being the first.
    #[inline]
    pub(super) fn place(&self, sym: Sym, n: usize) -> Option<Occurrence> {
        self.0.get(index(sym)).filter(|ring| n <= ring.len).map(|ring| ring.back(n))
    }

    /// The oldest place of a symbol, if as many are kept as can be and none of them follows what the last one follows, as far as the
    /// upper half of its hash tells. Mostly none does: all are looked at together, without a branch for each.
    #[inline]
    pub(super) fn unlike(&self, sym: Sym) -> Option<usize> {
        let ring = self.0.get(index(sym)).filter(|ring| ring.len == PLACES)?;
        let last = ring.back(1).before;
        let like: u32 = ring.before.iter().map(|hash| u32::from((hash ^ last) >> 16 == 0)).sum();
        (like == 1).then(|| ring.back(PLACES).at)
    }

    /// Memory, in words of 8 bytes.
    pub(super) fn heap_words(&self) -> usize {
        self.0.capacity() * size_of::<Ring>() / 8
    }
}

impl Ring {
    #[inline]
    fn back(&self, n: usize) -> Occurrence {
        let index = if n <= self.next { self.next - n } else { self.next + PLACES - n };
        Occurrence { at: self.at[index], before: self.before[index] }
    }

    fn set(&mut self, place: Occurrence) {
        self.at[self.next] = place.at;
        self.before[self.next] = place.before;
    }

    fn last(&self) -> Option<Occurrence> {
        (self.len > 0).then(|| self.back(1))
    }
}

fn index(sym: Sym) -> usize {
    sym.to_usize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The list is kept beside; links lead from each place to the one before.
        #[test]
        fn the_last_places_are_known_after_any_pushes_and_pops(moves: Vec<(bool, u32)>) {
            let (mut recent, mut list) = (Recent::default(), Vec::<(u32, Option<usize>)>::new());
            for (push, sym) in moves {
                let sym = sym % 2;
                let place = |at: usize| Occurrence { at, before: 7 };
                if push {
                    let before = recent.push(sym, place(list.len()));
                    list.push((sym, before));
                } else if let Some((sym, _)) = list.pop() {
                    recent.pop(sym, |at| list[at].1.map(place));
                }
                for sym in 0..2 {
                    let all = (0..list.len()).rev().filter(|at| list[*at].0 == sym);
                    let found: Vec<usize> = (1..).map_while(|n| recent.place(sym, n)).map(|p| p.at).collect();
                    prop_assert_eq!(found, all.take(PLACES).collect::<Vec<_>>());
                }
            }
        }
    }
}
