//! The normal form in which two traces are compared: what a program did, apart from what chance decided.
//!
//! * Failed polls (`flag` false, or nothing completed) are removed; consecutive clock reads are one event.
//! * Wildcard receives carry the source and tag that they received, also non-blocking ones, from their completion, and
//!   persistent ones whose messages all had the same: a replay names them so, too.
//! * Completions are the set of completed requests.
//! * Objects are compared by name, never by index; calls that returned an error are left out.

use st_model::num::{self, saturate};
use std::collections::HashMap;

use st_match::lookahead::{LookAhead, Received};
use st_match::wildcards::opened;
use st_model::calls::words::{each, found_nothing};
use st_model::calls::{CallTable, Lane, Meaning, Row, Slot};
use st_model::event::Events;
use st_model::project::Error;
use st_model::section::{Section, Sym};
use st_model::values::{NONE, NULL};
use xxhash_rust::xxh3::Xxh3;

/// A call in normal form.
#[derive(Clone, Debug)]
pub struct NormalCall {
    /// Symbol in its section.
    pub sym: Sym,
    /// Position among the rank's events.
    pub index: u64,
    /// Words in slot order, resolved.
    pub words: Vec<i64>,
    /// Calls that it stands for: more than one of successive readings of the clock.
    pub times: u64,
    /// Hash of function and call site: what calls have in common that differ in their parameters.
    pub place: u64,
    /// Hash of the normal form: equal calls have equal keys.
    pub key: u64,
}

/// What stands for call sites, by identity.
pub type SiteKeys = HashMap<u128, u128>;

/// The calls of one rank in normal form.
#[derive(Debug)]
pub struct Normal<'a> {
    section: &'a Section,
    rank: u32,
    sites: Option<&'a SiteKeys>,
    /// Parameters are part of the comparison.
    parameters: bool,
    events: Events<'a>,
    ahead: LookAhead<'a>,
    /// The call read last: a clock read may still grow.
    newest: Option<Pending>,
    /// Calls that failed and were left out.
    pub failed: u64,
    /// Unsuccessful tests and probes, which were left out.
    pub polls: u64,
}

#[derive(Debug)]
struct Pending {
    sym: Sym,
    index: u64,
    words: Vec<i64>,
}

/// Displacements above this are addresses, as in the call table's `addresses`.
const ADDRESS: i64 = 1 << 32;

impl<'a> Normal<'a> {
    /// Reads a rank's thread; what stands for call sites makes these part of the comparison.
    #[must_use]
    pub fn new(section: &'a Section, thread: usize, rank: u32, sites: Option<&'a SiteKeys>) -> Option<Self> {
        Some(Self {
            section,
            rank,
            sites,
            parameters: true,
            events: section.events(thread, rank)?,
            ahead: LookAhead::new(section, thread, rank)?,
            newest: None,
            failed: 0,
            polls: 0,
        })
    }

    /// What is called is compared, and not with which parameters.
    #[must_use]
    pub fn without_parameters(self) -> Self {
        Self { parameters: false, ..self }
    }

    /// The next call.
    ///
    /// # Errors
    ///
    /// If the section cannot be read back.
    pub fn next_call(&mut self) -> Result<Option<NormalCall>, Error> {
        loop {
            let next = self.read()?;
            let ended = next.is_none();
            let before = std::mem::replace(&mut self.newest, next);
            if ended || before.is_some() {
                return Ok(before.map(|p| self.normal(p)));
            }
        }
    }

    /// Reads up to the next call that is one of its own in normal form.
    fn read(&mut self) -> Result<Option<Pending>, Error> {
        while let Some(event) = self.events.next_event()? {
            let (sym, index, words) = (event.sym, event.index, &event.words().words);
            let slots = CallTable::builtin().slots(event.symbol.call);
            if event.symbol.error != 0 {
                self.failed += times(slots, words);
                continue;
            }
            let Some(row) = event.row else {
                return Ok(Some(Pending { sym, index, words: words.clone() }));
            };
            if row.properties.fold && grew(self.newest.as_mut(), self.section, row, words) {
                continue;
            }
            if found_nothing(row, words) {
                self.polls += times(slots, words);
                continue;
            }
            let mut words = resolved(row, words.clone());
            if opened(&event).is_some()
                && let Received::Message { source, tag } = self.ahead.outcome(index)?
            {
                set(&row.slots, &mut words, "source", Some(source));
                set(&row.slots, &mut words, tag_name(row), Some(tag));
            }
            return Ok(Some(Pending { sym, index, words }));
        }
        Ok(None)
    }

    fn normal(&self, p: Pending) -> NormalCall {
        let symbol = self.section.symbols[p.sym as usize];
        let slots = CallTable::builtin().slots(symbol.call);
        let mut h = Xxh3::new();
        match self.section.tables.names.get(&symbol.call) {
            Some(name) => h.update(name.as_bytes()),
            None => h.update(&symbol.call.0.to_le_bytes()),
        }
        if let Some(keys) = self.sites {
            let id = self.section.sites.get(symbol.site).map_or(0, |s| s.id);
            h.update(&keys.get(&id).unwrap_or(&id).to_le_bytes());
        }
        let place = h.digest();
        let mut words = p.words.iter().copied();
        let completion = completion(slots, &p.words);
        for slot in slots {
            let n = if slot.list { words.next().unwrap_or(0) } else { 1 };
            let of_completion = completion.is_some() && slot.list && is_completion(slot);
            if slot.list && !of_completion {
                h.update(&n.to_le_bytes());
            }
            for w in words.by_ref().take(saturate(n)) {
                if !of_completion {
                    h.update(&self.word(slot, w).to_le_bytes());
                }
            }
        }
        for row in completion.iter().flatten() {
            for w in row {
                h.update(&w.to_le_bytes());
            }
        }
        let times = times(slots, &p.words);
        let key = if self.parameters { h.digest() } else { place };
        NormalCall { sym: p.sym, index: p.index, times, place, key, words: p.words }
    }

    #[expect(clippy::cast_sign_loss, reason = "hash input, reinterpreted")]
    fn word(&self, slot: &Slot, w: i64) -> u64 {
        let tables = &self.section.tables;
        match slot.meaning {
            Meaning::Ref(object) => tables.word_of(object, w, self.rank),
            // The lower bound of a type that holds absolute addresses is where the process has its data.
            Meaning::Int if slot.name == "lb" && w > ADDRESS => 0,
            _ => w as u64,
        }
    }
}

/// Adds a clock read to one just before it.
fn grew(last: Option<&mut Pending>, section: &Section, row: &Row, words: &[i64]) -> bool {
    let Some(last) = last else { return false };
    if section.symbols.get(last.sym as usize).is_none_or(|s| s.call != row.id) {
        return false;
    }
    match (last.words.last_mut(), words.last()) {
        (Some(a), Some(b)) => {
            *a = a.saturating_add(*b);
            true
        }
        _ => false,
    }
}

/// Number of calls that an event stands for: the last word, of functions that have series.
pub(crate) fn times(slots: &[Slot], words: &[i64]) -> u64 {
    let series = slots.last().is_some_and(|s| s.meaning == Meaning::Times);
    let last = words.last().filter(|_| series).copied();
    last.map_or(1, saturate)
}

/// Whether a list slot is part of what completed. What else a call waited for is not: which of its requests were
/// complete is chance, and a replay forces it by naming only those.
fn is_completion(slot: &Slot) -> bool {
    matches!(slot.meaning, Meaning::Position | Meaning::Request)
        || matches!(
            (slot.name.as_str(), slot.lane),
            ("source", Lane::Endpoint) | ("tag", Lane::Tag) | ("bytes", Lane::Count)
        )
}

/// The completed requests with their source, tag and bytes, as a sorted set; `None` for calls that complete nothing.
fn completion(slots: &[Slot], words: &[i64]) -> Option<Vec<[i64; 4]>> {
    let view = View { slots, words };
    let (requests, completed) = (view.list("requests")?, view.list("completed")?);
    let (s, t, b) = (view.last_list("source")?, view.last_list("tag")?, view.last_list("bytes")?);
    let at = |l: &[i64], i: usize| l.get(i).copied().unwrap_or(NONE);
    let row = |(i, &p): (usize, &i64)| {
        let request = num::at(requests, p).copied().unwrap_or(NULL);
        [request, at(s, i), at(t, i), at(b, i)]
    };
    let mut rows: Vec<_> = completed.iter().enumerate().map(row).collect();
    rows.sort_unstable();
    Some(rows)
}

/// Puts the resolved source and tag of a blocking receive or probe in the place of its wildcards.
fn resolved(row: &Row, mut words: Vec<i64>) -> Vec<i64> {
    if row.slot("rsource").is_none() {
        return words;
    }
    let view = View::new(row, &words);
    let (source, tag) = (view.one("rsource"), view.one("rtag"));
    set(&row.slots, &mut words, "source", source.filter(|&v| v != NONE));
    set(&row.slots, &mut words, tag_name(row), tag.filter(|&v| v != NONE));
    set(&row.slots, &mut words, "rsource", Some(NONE));
    set(&row.slots, &mut words, "rtag", Some(NONE));
    words
}

/// What the tag of a receive is called.
fn tag_name(row: &Row) -> &'static str {
    if row.slot("recvtag").is_some() { "recvtag" } else { "tag" }
}

/// Words by slot name.
#[derive(Clone, Copy)]
struct View<'a> {
    slots: &'a [Slot],
    words: &'a [i64],
}

impl<'a> View<'a> {
    fn new(row: &'a Row, words: &'a [i64]) -> Self {
        Self { slots: &row.slots, words }
    }
    fn one(&self, name: &str) -> Option<i64> {
        each(self.slots, self.words).find(|(s, _)| !s.list && s.name == name)?.1.first().copied()
    }
    fn list(&self, name: &str) -> Option<&'a [i64]> {
        each(self.slots, self.words).find(|(s, _)| s.list && s.name == name).map(|(_, w)| w)
    }
    fn last_list(&self, name: &str) -> Option<&'a [i64]> {
        each(self.slots, self.words).filter(|(s, _)| s.list && s.name == name).last().map(|(_, w)| w)
    }
}

/// Sets a scalar slot.
fn set(slots: &[Slot], words: &mut [i64], name: &str, value: Option<i64>) {
    let Some(value) = value else { return };
    let mut at = 0;
    for s in slots {
        if s.list {
            at += 1 + words.get(at).map_or(0, |n| saturate::<usize>(*n));
        } else {
            if s.name == name {
                if let Some(w) = words.get_mut(at) {
                    *w = value;
                }
                return;
            }
            at += 1;
        }
    }
}
