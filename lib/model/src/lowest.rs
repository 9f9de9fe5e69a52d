//! Numbers of things that come and go: each takes the lowest one that is free.

use crate::num::narrow;

/// The numbers in use.
#[derive(Clone, Debug, Default)]
pub struct Lowest {
    /// By bit.
    words: Vec<u64>,
    /// No word before this one has a free bit.
    first: usize,
}

impl Lowest {
    /// Takes the lowest free number.
    #[inline]
    pub fn take(&mut self) -> u32 {
        while self.words.get(self.first).is_some_and(|w| *w == u64::MAX) {
            self.first += 1;
        }
        if self.first == self.words.len() {
            self.words.push(0);
        }
        let word = &mut self.words[self.first];
        let bit = word.trailing_ones();
        *word |= 1 << bit;
        narrow::<u32>(64 * self.first) + bit
    }

    /// Takes 0, unless it is in use.
    pub(crate) fn take_first(&mut self) {
        if self.words.first().is_none_or(|w| w & 1 == 0) {
            self.take();
        }
    }

    /// Gives a number back.
    #[inline]
    pub fn give(&mut self, number: u32) {
        let word = number as usize / 64;
        if let Some(w) = self.words.get_mut(word) {
            *w &= !(1 << (number % 64));
            self.first = self.first.min(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_lowest_number_is_taken(takes in proptest::collection::vec(prop_oneof![Just(None), (0..12_u32).prop_map(Some)], 0..60)) {
            let (mut numbers, mut used) = (Lowest::default(), BTreeSet::new());
            for take in takes {
                match take {
                    None => {
                        let lowest = (0..).find(|n| !used.contains(n)).unwrap();
                        used.insert(lowest);
                        prop_assert_eq!(numbers.take(), lowest);
                    }
                    Some(0) => {
                        used.insert(0);
                        numbers.take_first();
                    }
                    Some(number) => {
                        used.remove(&number);
                        numbers.give(number);
                    }
                }
            }
        }
    }

    #[test]
    fn the_lowest_free_number_is_taken() {
        let mut n = Lowest::default();
        assert_eq!((0..130).map(|_| n.take()).collect::<Vec<_>>(), (0..130).collect::<Vec<_>>());
        n.give(70);
        n.give(3);
        assert_eq!([n.take(), n.take(), n.take()], [3, 70, 130]);
    }
}
