//! Histograms of parameters: how often each value was, in place of which call had it.
//!
//! A lossy option puts one in the place of a stream of destinations, sources or counts ([`Form::Histogram`]). It is kept
//! per merged event, so that its size does not depend on the number of ranks or calls, and it is exact: each code
//! with its frequency. Reading such a stream back draws values from it, by the rank, the call and the number of the
//! value alone, so that everybody who asks for a rank's values gets the same.
//!
//! Source: Wu, Mueller 2013, section 3.1 (histograms of SOURCE, DEST and COUNT) and 3.5 (values that every rank
//! draws equally). We differ in that a value follows from its number, not from a generator's state.

use crate::num::{Exact, narrow, saturate};
use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use crate::form::{Form, Own, SPECIAL};
use crate::ints::Sealed;
use crate::values::PROC_NULL;

/// Codes that a stored histogram may have.
const MOST: i64 = 1 << 20;

/// How often each code was.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Frequencies(BTreeMap<i64, u64>);

impl Frequencies {
    /// Counts a code so many times.
    pub fn add(&mut self, code: i64, times: u64) {
        if times > 0 {
            let into = self.0.entry(code).or_insert(0);
            *into = into.saturating_add(times);
        }
    }
    /// Number of different codes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Codes with their frequencies, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        self.0.iter().map(|(code, times)| (*code, *times))
    }
    /// Number of values counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().fold(0, |sum, n| sum.saturating_add(*n))
    }
    /// Sum of the codes that are not negative, each times its frequency.
    #[must_use]
    pub fn sum(&self) -> u128 {
        let term = |(code, n): (i64, u64)| u128::from(saturate::<u64>(code)).saturating_mul(n.into());
        self.iter().map(term).fold(0, u128::saturating_add)
    }

    /// At most about so many codes: neighbouring ones become their mean where there are more, so that number and
    /// sum stay what they are. Negative ones, which are no quantities, stay apart.
    #[must_use]
    pub fn coarser(&self, most: usize) -> Self {
        if self.len() <= most {
            return self.clone();
        }
        let (special, plain): (Vec<_>, Vec<_>) = self.iter().partition(|(code, _)| *code < 0);
        let mut out = Self(special.into_iter().collect());
        // A bin leaves up to two codes: its mean need not be a whole number.
        let bins = u128::from((most / 2).to_u64().max(1));
        let total: u128 = plain.iter().map(|(_, n)| u128::from(*n)).sum();
        let (mut bin, mut before) = (Self::default(), 0);
        for (code, n) in plain {
            bin.add(code, n);
            before += u128::from(n);
            // A bin ends with the code by which its share of all is reached.
            if before * bins / total.max(1) > (before - u128::from(bin.total())) * bins / total.max(1) {
                out.add_mean(&std::mem::take(&mut bin));
            }
        }
        out.add_mean(&bin);
        out
    }

    /// Adds as many values of the same sum, all the mean rounded down or up.
    fn add_mean(&mut self, bin: &Self) {
        let (n, sum) = (u128::from(bin.total()), bin.sum());
        if n == 0 {
            return;
        }
        let mean = saturate::<i64>(sum / n).min(i64::MAX - 1);
        let more = narrow(sum % n);
        self.add(mean, bin.total() - more);
        self.add(mean + 1, more);
    }

    /// As a stream: the number of codes, the codes ascending, their frequencies.
    #[must_use]
    pub fn to_stream(&self) -> Sealed {
        let words = self.iter().map(|(code, _)| code);
        let numbers = self.0.values().map(|n| saturate(*n));
        std::iter::once(narrow(self.len())).chain(words).chain(numbers).collect()
    }

    /// From such a stream; `None` if it is none.
    #[must_use]
    pub fn from_stream(stream: &Sealed) -> Option<Self> {
        let mut cursor = stream.cursor();
        let n = Some(cursor.next()).filter(|n| (1..=MOST).contains(n))?;
        let codes: Vec<i64> = (0..n).map(|_| cursor.next()).collect();
        let ascending = codes.windows(2).all(|w| w[0] < w[1]);
        let mut total = 0u64;
        let mut out = BTreeMap::new();
        for code in codes {
            let times = u64::try_from(cursor.next()).ok().filter(|n| *n > 0)?;
            total = total.checked_add(times)?;
            out.insert(code, times);
        }
        ascending.then_some(Self(out))
    }
}

/// Which value of a stream is drawn: the same draw by everybody who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Draw {
    /// World rank of the caller.
    pub rank: u32,
    /// Its thread.
    pub thread: u32,
    /// The function's number in the call table, and 65536 times the error class.
    pub call: u64,
    /// Identity of the call site.
    pub site: u128,
    /// Position of the slot in the row.
    pub slot: u32,
    /// Which of the caller's values of the stream, from 0.
    pub n: u64,
}

impl Draw {
    /// A number of 64 bits: the hash (XXH3) of rank, thread, call, slot and n as 64 bits and site as 128, each with the
    /// lowest byte first.
    #[must_use]
    pub fn number(&self) -> u64 {
        let fields = [self.rank.into(), self.thread.into(), self.call, self.slot.into(), self.n];
        let mut bytes = [0; 56];
        let (plain, site) = bytes.split_at_mut(40);
        for (to, field) in plain.chunks_exact_mut(8).zip(fields) {
            to.copy_from_slice(&u64::to_le_bytes(field));
        }
        site.copy_from_slice(&self.site.to_le_bytes());
        xxh3_64(&bytes)
    }
}

/// The values that a caller can draw, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Values {
    values: Vec<i64>,
    /// Up to each value, how many there were.
    up_to: Vec<u64>,
}

impl Values {
    /// The values of codes for a caller. Of `ranks`, only those that there are in its communicator (and what is no rank);
    /// all, if there are none of these.
    #[must_use]
    pub fn new(of: &Frequencies, form: Form, own: Own, ranks: bool) -> Self {
        let form = if let Form::Histogram(codes) = form { codes.form() } else { form };
        let special = |code: i64| code < if form == Form::Absolute { 0 } else { -(SPECIAL / 2) };
        let rank = |v: i64| v >= 0 && (own.size <= 0 || v < own.size);
        let there = |code: i64| !ranks || special(code) || rank(form.value(code, own));
        let some = of.iter().any(|(code, _)| there(code));
        let (mut values, mut up_to, mut total) = (Vec::new(), Vec::new(), 0u64);
        for (code, n) in of.iter().filter(|(code, _)| !some || there(*code)) {
            total = total.saturating_add(n);
            values.push(form.value(code, own));
            up_to.push(total);
        }
        Self { values, up_to }
    }

    /// The value that a number of 64 bits draws: the one that the number's share of all reaches.
    #[must_use]
    pub fn draw(&self, number: u64) -> i64 {
        let total = u128::from(self.up_to.last().copied().unwrap_or(0));
        let at = narrow((u128::from(number) * total) >> 64);
        let i = self.up_to.partition_point(|up_to| *up_to <= at);
        self.values.get(i).copied().unwrap_or(PROC_NULL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frequencies() -> impl Strategy<Value = Frequencies> {
        let codes = prop_oneof![-20i64..20, 0i64..1 << 40, Just(i64::MIN), Just(i64::MAX)];
        prop::collection::btree_map(codes, 1u64..1 << 50, 1..200).prop_map(Frequencies)
    }

    fn quantities() -> impl Strategy<Value = Frequencies> {
        prop::collection::btree_map(-10i64..5000, 1u64..1000, 1..300).prop_map(Frequencies)
    }

    proptest! {
        #[test]
        fn streams_lead_back(f in frequencies()) {
            prop_assert_eq!(Frequencies::from_stream(&f.to_stream()), Some(f));
        }

        #[test]
        fn any_stream_can_be_asked(values in prop::collection::vec(-2i64..6, 0..12)) {
            if let Some(f) = Frequencies::from_stream(&values.into_iter().collect()) {
                prop_assert_eq!(Frequencies::from_stream(&f.to_stream()), Some(f));
            }
        }

        #[test]
        fn fewer_codes_keep_number_and_sum(f in quantities(), most in 4usize..80) {
            let few = f.coarser(most);
            let special = |f: &Frequencies| f.iter().filter(|(code, _)| *code < 0).collect::<Vec<_>>();
            prop_assert_eq!((few.total(), few.sum()), (f.total(), f.sum()));
            prop_assert_eq!(special(&few), special(&f));
            prop_assert!(few.len() <= f.len().max(most + 2 + special(&f).len()));
        }

        #[test]
        fn what_is_drawn_has_been_there(f in quantities(), number: u64, me in 0i64..9) {
            let own = Own { me, size: 9 };
            let values = Values::new(&f, Form::RELATIVE, own, true);
            let drawn = values.draw(number);
            prop_assert!(f.iter().any(|(code, _)| Form::RELATIVE.value(code, own) == drawn));
        }
    }

    #[test]
    fn ranks_that_are_not_there_are_not_drawn() {
        let mut f = Frequencies::default();
        f.add(-1, 5);
        f.add(1, 5);
        let first = Values::new(&f, Form::RELATIVE, Own { me: 0, size: 4 }, true);
        let within = Values::new(&f, Form::RELATIVE, Own { me: 2, size: 4 }, true);
        let spread = |v: &Values| (0..64).map(|i| v.draw(i << 58)).filter(|v| *v == 1).count();
        assert_eq!((spread(&first), spread(&within)), (64, 32));
    }

    #[test]
    fn draws_follow_the_frequencies() {
        let mut f = Frequencies::default();
        f.add(7, 100);
        f.add(9, 300);
        let values = Values::new(&f, Form::Absolute, Own::default(), false);
        let draw = |n| values.draw(Draw { rank: 3, thread: 0, call: 20, site: 1, slot: 2, n }.number());
        let sevens = (0..4000).filter(|n| draw(*n) == 7).count();
        assert!((900..1100).contains(&sevens), "{sevens}");
    }
}
