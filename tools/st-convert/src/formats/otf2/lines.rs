//! What no record has a place for, kept for st-convert itself: calls and tables as JSON lines have them.
//!
//! A call's parameters are attributes of its enter record: numbers under their names, for ranks would make texts of them that all differ,
//! the others as one text, equal ones being one string. What lines say of the run, its ranks, objects and call sites is a text in pieces.

use std::collections::HashMap;

use anyhow::Result;
use foldhash::fast::FixedState;
use serde_json::{Map, Value};
use st_model::num::{Exact as _, narrow};
use st_stream::json::{self, Objects};

use super::library::Attribute;
use crate::format::Call;
use crate::level::Level;
use crate::losses::Losses;
use crate::otf2::{PARAMETERS, SITE};
use crate::trace::Trace;
use crate::words::own;

/// Bytes of memory for texts of calls: where these differ so much, records must do.
const MOST: usize = 1 << 26;
/// What a text takes beside its own bytes.
const EACH: usize = 64;
/// Different calls of a rank that are remembered.
const KNOWN: usize = 1 << 12;
/// Bytes of a piece, of which a definition has room for many.
const PIECE: usize = 1 << 15;

/// The texts and numbers of calls.
#[derive(Debug)]
pub(super) struct Lines {
    /// All calls so far can be read back.
    is_whole: bool,
    bytes: usize,
    texts: HashMap<String, u32, FixedState>,
    /// Names of attributes.
    names: HashMap<String, u32, FixedState>,
    /// Attributes of calls that the rank has made, by symbol and words, all that lines say of a rank's calls but their times.
    known: HashMap<Vec<i64>, Vec<Attribute>, FixedState>,
    /// Of the call that is looked up.
    key: Vec<i64>,
}

/// The text of all lines before calls, and of those behind them.
pub(super) struct Tables {
    pub(super) before: String,
    pub(super) behind: String,
}

impl Lines {
    /// Of a trace of which all calls are written. Parts are for other readers, for which they begin and end in the middle of what ranks do.
    pub(super) fn of(trace: &Trace) -> Self {
        let is_whole = trace.level == Level::Calls && trace.is_whole();
        let names = [PARAMETERS, SITE].into_iter().map(str::to_owned).zip(0..).collect();
        let (texts, known) = (HashMap::default(), HashMap::default());
        Self { is_whole, bytes: 0, texts, names, known, key: Vec::new() }
    }

    /// Another rank is written.
    pub(super) fn next_rank(&mut self) {
        self.known.clear();
    }

    /// Whether what is written can be read back as it was.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// A call is not written.
    pub(super) fn miss(&mut self) {
        self.is_whole = false;
    }

    /// Attributes of a call.
    pub(super) fn call(&mut self, call: &Call<'_>, to: &mut Vec<Attribute>) {
        to.clear();
        if !self.is_whole {
            return;
        }
        self.key.clear();
        self.key.push(call.event.sym.into());
        self.key.extend_from_slice(&call.event.words().words);
        if let Some(known) = self.known.get(&self.key) {
            to.extend_from_slice(known);
            return;
        }
        self.new_call(call, to);
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        self.known.insert(self.key.clone(), to.clone());
    }

    fn new_call(&mut self, call: &Call<'_>, to: &mut Vec<Attribute>) {
        let mut rest = Map::new();
        for (key, value) in own(json::call(call.event, call.site)) {
            match value.as_i64() {
                Some(number) => to.push(Attribute::Number(self.name(key), number)),
                None => drop(rest.insert(key, value)),
            }
        }
        if call.site != u32::MAX {
            to.push(Attribute::Number(1, call.site.into()));
        }
        match self.text(Value::Object(rest).to_string()) {
            Some(text) => to.push(Attribute::Text(0, text)),
            None => to.clear(),
        }
    }

    fn name(&mut self, key: String) -> u32 {
        let next = narrow(self.names.len());
        *self.names.entry(key).or_insert(next)
    }

    /// Number of a string; `None` if there are too many.
    fn text(&mut self, text: String) -> Option<u32> {
        let next = narrow(self.texts.len());
        if let Some(known) = self.texts.get(&text) {
            return Some(*known);
        }
        self.bytes = self.bytes.saturating_add(text.len()).saturating_add(EACH);
        self.is_whole = self.bytes <= MOST;
        self.is_whole.then(|| *self.texts.entry(text).or_insert(next))
    }

    /// Texts by number, from 0.
    pub(super) fn texts(&self) -> Vec<&str> {
        by_number(&self.texts)
    }

    /// Names of attributes by number, from 0.
    pub(super) fn names(&self) -> Vec<&str> {
        by_number(&self.names)
    }

    /// What even lines have no place for.
    pub(super) fn losses(&self, trace: &Trace) -> Losses {
        let mut losses = Losses::default();
        let drawn = trace.sections.iter().map(|section| section.histograms().count().to_u64()).sum();
        let ended = trace.sections.iter().flat_map(|section| &section.ended);
        let early = ended.filter(|ended| ended.calls == 0 && trace.has(ended.rank)).count();
        losses.add("ends of threads that have made no call before", early.to_u64());
        losses.add("distributions of parameters (calls have drawn values)", drawn);
        losses
    }
}

fn by_number(of: &HashMap<String, u32, FixedState>) -> Vec<&str> {
    let mut all: Vec<_> = of.iter().map(|(text, number)| (*number, text.as_str())).collect();
    all.sort_unstable();
    all.into_iter().map(|(_, text)| text).collect()
}

impl Tables {
    /// Those of a trace.
    pub(super) fn of(trace: &Trace) -> Result<Self> {
        let zero = trace.zero.unwrap_or(0);
        let (mut before, mut behind) = (String::new(), String::new());
        let mut line = |key: &str, value: Value| add(&mut before, &Map::from_iter([(key.to_owned(), value)]));
        line("header", serde_json::to_value(&trace.whole.header)?);
        for step in &trace.whole.provenance {
            line("step", serde_json::to_value(step)?);
        }
        (0..trace.sites.len()).for_each(|at| add(&mut before, &json::site(&trace.sites, at)));
        let mut objects = Objects::default();
        trace.sections.iter().for_each(|section| objects.add(section));
        objects.lines(zero).for_each(|object| add(&mut before, &object));
        for (section, sites) in trace.sections.iter().zip(&*trace.numbers) {
            for (sym, slot, streams) in section.histograms() {
                let site = section.symbols.get(sym.to_usize()).and_then(|s| sites.get(s.site.to_usize()));
                let of = json::histogram(section, sym, slot, streams, site.copied().unwrap_or(u32::MAX));
                of.iter().for_each(|object| add(&mut before, object));
            }
            for ended in section.ended.iter().filter(|ended| trace.has(ended.rank)) {
                add(&mut behind, &json::ended(ended, section, sites, zero));
            }
        }
        Ok(Self { before, behind })
    }
}

fn add(to: &mut String, line: &Map<String, Value>) {
    to.push_str(&serde_json::to_string(line).unwrap_or_default());
    to.push('\n');
}

/// A text in pieces.
pub(super) fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let most = PIECE.min(text.len());
        let (piece, rest) = text.split_at((0..=most).rev().find(|at| text.is_char_boundary(*at))?);
        text = rest;
        Some(piece).filter(|piece| !piece.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_texts_than_there_is_room_for_are_none() {
        let (names, known) = (HashMap::default(), HashMap::default());
        let bytes = MOST - 2 * EACH - 4;
        let mut lines =
            Lines { is_whole: true, bytes, texts: HashMap::default(), names, known, key: Vec::new() };
        assert_eq!(["ab", "cd", "ab"].map(|text| lines.text(text.into())), [Some(0), Some(1), Some(0)]);
        assert!(lines.is_whole());
        assert_eq!(lines.text("e".into()), None);
        assert!(!lines.is_whole() && lines.texts() == ["ab", "cd"]);
    }

    #[test]
    fn pieces_make_the_text_again() {
        let text = "äöü€".repeat(PIECE);
        let all: Vec<&str> = pieces(&text).collect();
        assert!(all.len() > 4 && all.iter().all(|piece| piece.len() <= PIECE) && all.concat() == text);
        assert_eq!(pieces("").count(), 0);
    }
}
