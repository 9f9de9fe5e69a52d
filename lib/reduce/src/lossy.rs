//! Parameters that become histograms, in place of which call had which value.
//!
//! Destinations, sources and counts of messages, if asked for: where the streams of a parameter of a call site hold so many
//! values (`--histogram`), or where ranks differ in it (`--force-merge`). The codes are those of whichever of three forms
//! leaves the fewest; of counts more than 64 different ones are gathered into bins, whose number and sum stay exact.
//!
//! Source: Wu, Mueller 2013, section 3.1 (histograms of parameters, with a threshold that 1 makes "always") and
//! Bahmani, Mueller 2014, section 5 (events that differ in SOURCE or DEST merged by force). We differ in that a
//! parameter never keeps events apart here, so that forced merging only unites values; and in that a stream of one
//! value stays as it is.

use std::collections::BTreeMap;

use st_model::calls::{Meaning, Row, Slot};
use st_model::form::{Codes, Form, Own};
use st_model::frequencies::Frequencies;
use st_model::ints::Sealed;
use st_model::ranklist::RankList;

/// Different counts that are told apart.
const COUNTS: usize = 64;

/// What a parameter of a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "options", derive(clap::ValueEnum))]
pub enum ParamKind {
    /// Destinations.
    Dest,
    /// Sources, also those that wildcards received from.
    Source,
    /// Numbers of elements, and the bytes received.
    Count,
}

impl ParamKind {
    /// The kind of a slot of a call that sends, receives, probes or completes; `None` for other parameters and calls.
    #[must_use]
    pub fn of(row: &Row, slot: &Slot) -> Option<Self> {
        let peers = ["dest", "source", "rsource"];
        let tags = row.slots.iter().any(|s| s.meaning == Meaning::Tag);
        if !tags || !row.slots.iter().any(|s| peers.contains(&s.name.as_str())) {
            return None;
        }
        match (slot.meaning, slot.name.as_str()) {
            (Meaning::Rank, "dest") => Some(Self::Dest),
            (Meaning::Rank, "source" | "rsource") => Some(Self::Source),
            (Meaning::Count, _) => Some(Self::Count),
            _ => None,
        }
    }
}

/// Which parameters become histograms, and when.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lossy {
    /// Kinds that do where their streams hold many values.
    pub histogram: Vec<ParamKind>,
    /// Values from which on these are many.
    pub threshold: usize,
    /// Kinds that do where ranks differ.
    pub force_merge: Vec<ParamKind>,
}

impl Lossy {
    /// Whether any parameter may.
    #[must_use]
    pub fn is_any(&self) -> bool {
        !self.histogram.is_empty() || !self.force_merge.is_empty()
    }
    /// What holds for parameters of a kind.
    pub(crate) fn rule(&self, kind: Option<ParamKind>) -> Option<Rule> {
        let has = |kinds: &[ParamKind]| kind.is_some_and(|k| kinds.contains(&k));
        let stored = has(&self.histogram).then_some(self.threshold);
        let forced = has(&self.force_merge);
        (stored.is_some() || forced).then_some(Rule { stored, forced })
    }
}

/// When a parameter becomes a histogram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    /// Once its streams hold so many values.
    stored: Option<usize>,
    /// Once ranks differ.
    forced: bool,
}

impl Rule {
    pub(crate) fn applies(self, classes: usize, stored: usize) -> bool {
        self.stored.is_some_and(|from| stored >= from) || self.forced && classes > 1
    }
}

/// Histograms of the same values in several forms, until it is seen which is the smallest.
#[derive(Debug)]
pub(crate) struct Counter {
    forms: Vec<(Codes, BTreeMap<i64, u64>)>,
    counts: bool,
}

impl Counter {
    /// For values of a meaning; `known` says whether their callers are known, without which there are no forms.
    pub(crate) fn new(meaning: Meaning, known: bool) -> Self {
        let forms = if known && meaning == Meaning::Rank { &Codes::ALL[..] } else { &[Codes::Absolute] };
        let forms = forms.iter().map(|codes| (*codes, BTreeMap::new())).collect();
        Self { forms, counts: meaning == Meaning::Count }
    }
    /// For values in one form; `counts` says whether they are some.
    pub(crate) fn only(codes: Codes, counts: bool) -> Self {
        Self { forms: vec![(codes, BTreeMap::new())], counts }
    }
    /// Counts the values of streams of codes of a form: the first so many, of each of their ranks.
    pub(crate) fn add_streams<'a>(
        &mut self,
        form: Form,
        streams: impl Iterator<Item = &'a (Sealed, u64, RankList)>,
        own: impl Fn(u32) -> Own,
    ) {
        for (stream, len, ranks) in streams {
            let read = codes(stream, *len, form.counts());
            for own in ranks.iter().map(&own) {
                for (&(code, times), n) in read.iter().zip(0..) {
                    self.add(form.value_at(code, own, n), own, times);
                }
            }
        }
    }
    /// Counts a value of a caller.
    pub(crate) fn add(&mut self, value: i64, own: Own, times: u64) {
        for (codes, into) in &mut self.forms {
            *into.entry(codes.form().code(value, own)).or_default() += times;
        }
    }
    /// The smallest; the first of several.
    pub(crate) fn smallest(self) -> Option<(Codes, Frequencies)> {
        let counts = self.counts;
        let (codes, smallest) = self.forms.into_iter().min_by_key(|(_, f)| f.len())?;
        let mut out = Frequencies::default();
        smallest.into_iter().for_each(|(code, times)| out.add(code, times));
        let out = if counts { out.coarser(COUNTS) } else { out };
        (!out.is_empty()).then_some((codes, out))
    }
}

/// The first values of a stream, and how often each comes; in their order where that matters.
pub(crate) fn codes(stream: &Sealed, len: u64, in_order: bool) -> Vec<(i64, u64)> {
    let mut cursor = stream.cursor();
    if in_order {
        return (0..len).map(|_| (cursor.next(), 1)).collect();
    }
    let (mut out, mut left) = (BTreeMap::new(), len);
    while left > 0 {
        let (code, times) = cursor.next_run(left);
        *out.entry(code).or_insert(0) += times;
        left -= times;
    }
    out.into_iter().collect()
}
