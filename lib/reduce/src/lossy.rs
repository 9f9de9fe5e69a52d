//! Parameters that become histograms, in place of which call had which value.
//!
//! Destinations, sources and counts of messages, if asked for: where the streams of a parameter of a call site take more room than the
//! histogram, or hold so many values (`--histogram`), or where ranks differ in it (`--force-merge`). The codes are those of whichever of three forms
//! leaves the fewest; of counts more than 64 different ones are gathered into bins, whose number and sum stay exact.
//!
//! Source: Wu, Mueller 2013, section 3.1 (histograms of parameters, with a threshold that 1 makes "always") and
//! Bahmani, Mueller 2014, section 5 (events that differ in SOURCE or DEST merged by force). We differ in that a
//! parameter never keeps events apart here, so that forced merging only unites values; and in that a stream of one
//! value stays as it is.

use std::collections::BTreeMap;
use std::str::FromStr;

use st_model::calls::{Meaning, Row, Slot};
use st_model::form::{Codes, Form, Own};
use st_model::frequencies::Frequencies;
use st_model::ints::Sealed;
use st_model::ranklist::RankList;

/// How much better streams of values in their order are packed than histograms, and bytes that a histogram must save. It is a
/// guess: in the end the trace is kept without any where it is no smaller with them.
const PACKED: usize = 2;
const SAVED: usize = 16;

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
    /// Kinds that do where their streams hold much.
    pub histogram: Vec<ParamKind>,
    /// Values from which on that is much; `None`: where the histogram takes less room.
    pub threshold: Option<usize>,
    /// Kinds that do where ranks differ.
    pub force_merge: Vec<ParamKind>,
}

impl Lossy {
    /// Whether any parameter may.
    #[must_use]
    pub fn is_any(&self) -> bool {
        !self.histogram.is_empty() || !self.force_merge.is_empty()
    }
    /// Whether any may for the sake of room.
    pub(crate) fn is_where_smaller(&self) -> bool {
        !self.histogram.is_empty() && self.threshold.is_none()
    }
    /// What holds for parameters of a kind.
    pub(crate) fn rule(&self, kind: Option<ParamKind>) -> Option<Rule> {
        let has = |kinds: &[ParamKind]| kind.is_some_and(|k| kinds.contains(&k));
        let (chosen, forced) = (has(&self.histogram), has(&self.force_merge));
        let stored = self.threshold.filter(|_| chosen);
        (chosen || forced).then_some(Rule { stored, smaller: chosen && stored.is_none(), forced })
    }
}

/// Why a text does not say which parameters become histograms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not some of dest, source and count, separated by commas, or these, a colon and a number from 1 on")]
pub struct NoKinds;

impl FromStr for Lossy {
    type Err = NoKinds;

    /// `KINDS` or `KINDS:THRESHOLD`.
    fn from_str(text: &str) -> Result<Self, NoKinds> {
        let (kinds, threshold) = match text.split_once(':') {
            Some((kinds, n)) => (kinds, Some(n.parse().ok().filter(|n| *n > 0).ok_or(NoKinds)?)),
            None => (text, None),
        };
        let kind = |word| match word {
            "dest" => Ok(ParamKind::Dest),
            "source" => Ok(ParamKind::Source),
            "count" => Ok(ParamKind::Count),
            _ => Err(NoKinds),
        };
        let histogram = kinds.split(',').map(kind).collect::<Result<_, _>>()?;
        Ok(Self { histogram, threshold, ..Self::default() })
    }
}

/// When a parameter becomes a histogram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    /// Once its streams hold so many values.
    stored: Option<usize>,
    /// Once it takes less room.
    smaller: bool,
    /// Once ranks differ.
    forced: bool,
}

impl Rule {
    pub(crate) fn applies(self, classes: usize, stored: usize) -> bool {
        self.stored.is_some_and(|from| stored >= from) || self.forced && classes > 1
    }
    /// The same, but for the sake of room.
    pub(crate) fn without_room(self) -> Self {
        Self { smaller: false, ..self }
    }
    /// Whether it has to be looked at.
    pub(crate) fn may_apply(self, classes: usize, stored: usize) -> bool {
        self.smaller || self.applies(classes, stored)
    }
    /// Whether a parameter to which nothing else applies becomes a histogram, in the place of these streams.
    pub(crate) fn prefers<'a>(self, histogram: &Sealed, streams: impl Iterator<Item = &'a Sealed>) -> bool {
        self.smaller && room([histogram]) * PACKED + SAVED <= room(streams)
    }
}

/// Bytes of streams, before they are packed.
fn room<'a>(streams: impl IntoIterator<Item = &'a Sealed>) -> usize {
    let (mut head, mut values) = (Vec::new(), Vec::new());
    streams.into_iter().for_each(|stream| stream.encode(&mut head, &mut values));
    head.len() + values.len()
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
