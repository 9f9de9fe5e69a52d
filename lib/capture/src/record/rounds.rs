//! The loop in progress: as long as the calls of its last round come again, they are only put on a tape.
//!
//! A *round* is what has come twice in a row; its symbols are its *places*. The words of a place's last execution are kept with
//! it, so that of its next one only what differs has to be looked at, also where one call site stands at several places of the
//! round. Proof lanes, folding and parameter streams all know how to take many equal rounds at once, and have work to do only
//! for words that change. These and the times are put on a *tape*, and entered place by place: what is done for one place's
//! executions after each other is done in a small loop. At the first call that is not expected all is caught up with.

use super::finder::Finder;
use super::known::Known;
use super::last::{Last, equal};
use super::symbol::SymInfo;
use crate::fold::Folder;
use st_model::lanes::{Cycle, Lanes};
use st_model::objects::Objects;
use st_model::section::Sym;
use std::collections::HashMap;
use std::mem;
use std::ops::Range;

/// Events on the tape at most, and edits, but for those of the last event.
const TAPE: usize = 512;
const EDITS: usize = 4 * TAPE;

/// A place of the round.
#[derive(Debug, Clone)]
pub(super) struct RoundCall {
    sym: Sym,
    /// Its last execution, as far as it is entered.
    last: Last,
    /// Words of its last execution.
    now: Vec<i64>,
    /// How they have changed since those that are entered; none where the symbol stands at several places.
    edits: Vec<Edit>,
    /// How many places before it have the symbol, and how many of the round do.
    turn: u64,
    turns: u64,
    /// The place before it, in the round before if need be, that has the symbol.
    before: usize,
    /// Which path of the thread its times belong to, once that is known.
    pub(super) path: Option<usize>,
}

/// A word that differs from what it was at the place's execution before.
#[derive(Debug, Clone, Copy)]
struct Edit {
    /// In which round.
    round: u64,
    at: u16,
    word: i64,
}

/// The round in progress, and what has come of it and is not entered.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds {
    finder: Finder,
    /// Its symbols; none if there is no round in progress.
    round: Vec<Sym>,
    /// Its places, or the first `filled` of a round that is to be; and others from before, for their memory.
    pub(super) places: Vec<RoundCall>,
    filled: usize,
    coming: Vec<Sym>,
    /// Which round of the thread it is.
    number: u64,
    /// Whole rounds so far, and the place of the next event.
    whole: u64,
    next: usize,
    lanes: Cycle,
    /// Place of the first event on the tape.
    first: usize,
    /// Enter and exit of each event on the tape, after those of the event before it.
    pub(super) times: Vec<(i64, i64)>,
    /// Places that have edits, and how many words have changed since the tape began.
    edited: Vec<usize>,
    edits: usize,
    /// For values on their way into a stream.
    space: Vec<i64>,
}

impl Rounds {
    /// Whether the round goes on with a symbol.
    #[inline]
    pub(super) fn expects(&self, sym: Sym) -> bool {
        self.round.get(self.next) == Some(&sym)
    }

    /// Number of symbols of the round, and of those that have come of it since it began.
    #[inline]
    pub(super) fn progress(&self) -> Option<(usize, usize)> {
        (!self.round.is_empty()).then_some((self.round.len(), self.next))
    }

    /// Which round of the thread is in progress.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Symbols of the round, and the words of their last executions.
    pub(super) fn places(&self) -> impl ExactSizeIterator<Item = (Sym, &[i64])> {
        self.places[..self.round.len()].iter().map(|p| (p.sym, p.now.as_slice()))
    }

    /// Whether the event a round before the next one had these words.
    #[inline]
    pub(super) fn repeats(&self, words: &[i64]) -> bool {
        self.places.get(self.next).is_some_and(|place| equal(&place.now, words))
    }

    /// Whether the next event may have these words; then `changed` are the positions at which they differ from those of the event
    /// a round ago.
    #[inline]
    pub(super) fn takes(&self, words: &[i64], changed: &mut Vec<u16>) -> bool {
        changed.clear();
        let Some(place) = self.places.get(self.next) else { return false };
        // Mostly nothing has changed: one comparison of memory says so.
        equal(&place.now, words) || place.last.compare(&place.now, words, changed)
    }

    /// Whether the next event may have words that differ at these positions from those of the event a round ago.
    #[inline]
    pub(super) fn takes_at(&self, words: &[i64], changed: &[u16]) -> bool {
        self.places.get(self.next).is_some_and(|p| {
            p.now.len() == words.len() && changed.iter().all(|at| p.last.lane(*at).is_some())
        })
    }

    /// Puts the next event on the tape, whose words are those of a round ago, or have been [changed](Rounds::change). Says
    /// whether the tape is full.
    #[inline]
    pub(super) fn push(&mut self, enter: i64, exit: i64) -> bool {
        self.times.push((enter, exit));
        self.next += 1;
        if self.next == self.round.len() {
            self.next = 0;
            self.whole += 1;
        }
        self.times.len() > TAPE || self.edits > EDITS
    }

    /// Takes how the next event's words differ from those of a round ago: at the positions `changed`. Says whether they are to be
    /// [entered](Rounds::change_in_turn) at once.
    #[inline]
    pub(super) fn change(&mut self, words: &[i64], changed: &[u16]) -> bool {
        let place = &mut self.places[self.next];
        self.edits += changed.len();
        if place.turns > 1 {
            return true;
        }
        if place.edits.is_empty() {
            self.edited.push(self.next);
        }
        for &at in changed {
            let word = words[usize::from(at)];
            place.now[usize::from(at)] = word;
            place.edits.push(Edit { round: self.whole, at, word });
        }
        false
    }

    /// Enters how the next event's words differ, whose symbol stands at several places: their words go to the same streams in
    /// turn.
    pub(super) fn change_in_turn(
        &mut self,
        words: &[i64],
        changed: &[u16],
        known: &mut [Known],
        lanes: &mut Lanes,
        infos: &[SymInfo],
        objects: &Objects,
    ) {
        self.know();
        let (at, whole) = (self.next, self.whole);
        let RoundCall { sym, turn, turns, before, .. } = self.places[at];
        let of = &mut known[sym as usize];
        // Executions before this one: those before the round, and in each round as many as the symbol has places.
        let event = of.events + whole * turns + turn;
        let mut last = None;
        for slot in changed.iter().map(|i| self.places[at].last.slot(*i)) {
            // Positions ascend, so those of a slot follow each other. What came before the change is entered while it is known.
            if last != Some(slot) {
                last = Some(slot);
                settle(&mut of.columns[slot], &self.places, before, slot, event);
            }
        }
        let place = &mut self.places[at];
        changed.iter().map(|i| usize::from(*i)).for_each(|i| place.now[i] = words[i]);
        let changes = changed.iter().map(|i| (*i, words[usize::from(*i)]));
        let digest = |lane: usize, by| self.lanes.change(at, lane, by, whole, lanes);
        place.last.edit(&infos[sym as usize], changes, objects, digest);
    }

    /// The sums of the lanes are needed, before a digest changes.
    #[inline]
    fn know(&mut self) {
        self.lanes.know(self.places[..self.round.len()].iter().map(|p| p.last.digests.lanes()));
    }

    /// Enters the tape, but for its times; it begins anew, after its last event.
    pub(super) fn enter(
        &mut self,
        known: &mut [Known],
        lanes: &mut Lanes,
        infos: &[SymInfo],
        objects: &Objects,
    ) {
        // Times are counted from the event before: the last one stays for those to come.
        let last = self.times.len() - 1;
        self.times.swap(0, last);
        self.times.truncate(1);
        self.first = self.next;
        if self.edits == 0 {
            return;
        }
        self.know();
        let edited = mem::take(&mut self.edited);
        for &at in &edited {
            let sym = self.places[at].sym as usize;
            // Before the digests: these put the new words in the place of those that the streams start from.
            self.enter_streams(at, &mut known[sym]);
            let (place, sums) = (&mut self.places[at], &mut self.lanes);
            let edits = &place.edits;
            // Mostly one word changes from round to round, such as a counter: no lists of changes need to be made.
            if edits.iter().all(|e| e.at == edits[0].at) {
                let changes = edits.iter().map(|e| (e.round, e.word));
                let digest = |round, lane: usize, by| sums.note(round, lane, by);
                place.last.edit_one(&infos[sym], edits[0].at, changes, objects, digest);
            } else {
                for of in edits.chunk_by(|a, b| a.round == b.round) {
                    let changes = of.iter().map(|e| (e.at, e.word));
                    let digest = |lane: usize, by| sums.note(of[0].round, lane, by);
                    place.last.edit(&infos[sym], changes, objects, digest);
                }
            }
            sums.enter(at, self.whole, lanes);
            place.edits.clear();
        }
        self.edited = edited;
        self.edited.clear();
        self.edits = 0;
    }

    /// Enters the edits of a place into the streams of its symbol, slot by slot.
    fn enter_streams(&mut self, at: usize, of: &mut Known) {
        let place = &self.places[at];
        let (mut words, mut rest) = (Vec::new(), place.edits.as_slice());
        // Mostly one slot has all of them.
        let mut done: Vec<Range<usize>> = Vec::new();
        while let Some(first) = rest.first() {
            let slot = place.last.slot(first.at);
            let span = place.last.span(slot);
            words.clear();
            words.extend_from_slice(place.last.words_of(slot));
            let its = rest.iter().filter(|e| span.contains(&usize::from(e.at)));
            let changes = its.map(|e| (of.events + e.round, usize::from(e.at) - span.start, e.word));
            of.columns[slot].settle_changes(&mut words, changes, &mut self.space);
            done.push(span);
            let other = |e: &Edit| !done.iter().any(|span| span.contains(&usize::from(e.at)));
            rest = rest.iter().position(other).map_or(&[], |from| &rest[from..]);
        }
    }

    /// Number of events on the tape.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.times.len().saturating_sub(1)
    }

    /// The last event's symbol, if it is on the tape.
    pub(super) fn last_waiting(&self) -> Option<Sym> {
        let length = self.round.len();
        (self.waiting() > 0).then(|| self.round[(self.next + length - 1) % length])
    }

    /// Words of the last event of a symbol, if it is one of the round's.
    pub(super) fn last_words(&self, sym: Sym) -> Option<&[i64]> {
        let (before, after) = self.places[..self.round.len()].split_at(self.next);
        let latest_first = before.iter().rev().chain(after.iter().rev());
        latest_first.into_iter().find(|p| p.sym == sym).map(|p| p.now.as_slice())
    }

    /// Place of the first event on the tape.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// Symbol of the place before one.
    pub(super) fn symbol_before(&self, place: usize) -> Sym {
        self.round[(place + self.round.len() - 1) % self.round.len()]
    }

    /// Enters the round, whose tape is: something else has come.
    pub(super) fn end(
        &mut self,
        known: &mut [Known],
        lanes: &mut Lanes,
        folder: &mut Folder,
        infos: &[SymInfo],
    ) {
        if self.round.is_empty() {
            return;
        }
        let digests = self.places[..self.round.len()].iter().map(|p| p.last.digests.lanes());
        self.lanes.end(digests, self.whole, self.next, lanes);
        // Whole rounds are folded as one; what has begun of the next one is as if there had been no round.
        folder.push_rounds(&self.round, self.whole);
        self.round[..self.next].iter().for_each(|sym| folder.push(*sym));
        self.finder.note_rounds(&self.round, self.whole, self.next);
        // A symbol's latest place has its last words, and enters for all its places; `in_round` says that it has not.
        let latest_first = (0..self.next).rev().chain((self.next..self.round.len()).rev());
        for i in latest_first {
            let place = &self.places[i];
            let of = &mut known[place.sym as usize];
            if !mem::take(&mut of.in_round) {
                continue;
            }
            let begun = if i < self.next { place.turn + 1 } else { 0 };
            of.events += self.whole * place.turns + begun;
            if place.turns > 1 {
                for slot in 0..infos[place.sym as usize].slots.len() {
                    settle(&mut of.columns[slot], &self.places, i, slot, of.events);
                }
            }
            mem::swap(&mut of.last, &mut self.places[i].last);
        }
        self.round.clear();
        (self.whole, self.next, self.first) = (0, 0, 0);
        self.times.clear();
    }

    /// Takes an event that is entered, as part of a loop to be found, or of the first round of one that has been. `simple` is one
    /// call, whose words have its row's shape.
    pub(super) fn learn(
        &mut self,
        sym: Sym,
        simple: bool,
        known: &mut [Known],
        infos: &[SymInfo],
        enter: i64,
        exit: i64,
    ) {
        // Such a call may have other words and lengths each time, which places do not hold.
        if !simple {
            self.coming.clear();
            return self.finder.bar();
        }
        // It hears of all events, so that a round is found again at once when this one is given up.
        let found = self.finder.note(sym);
        if self.coming.get(self.filled) == Some(&sym) {
            self.fill(sym, &known[sym as usize]);
            if self.filled == self.coming.len() {
                self.begin(known, infos, enter, exit);
            }
        } else {
            self.coming.clear();
            self.filled = 0;
            if let Some(length) = found {
                self.coming.extend(self.finder.round(length));
            }
        }
    }

    /// Takes the last execution of a symbol as that of the next place.
    fn fill(&mut self, sym: Sym, known: &Known) {
        if self.places.len() == self.filled {
            let (last, now, edits) = (known.last.clone(), Vec::new(), Vec::new());
            self.places.push(RoundCall { sym, last, now, edits, turn: 0, turns: 0, before: 0, path: None });
        }
        let place = &mut self.places[self.filled];
        place.sym = sym;
        place.last.copy(&known.last);
        place.now.clone_from(&known.last.words);
        place.path = None;
        self.filled += 1;
    }

    /// All places are filled: the round is in progress.
    fn begin(&mut self, known: &mut [Known], infos: &[SymInfo], enter: i64, exit: i64) {
        mem::swap(&mut self.round, &mut self.coming);
        self.coming.clear();
        self.filled = 0;
        // The last place with each symbol so far, and how many there are.
        let mut so_far = HashMap::<Sym, (usize, u64)>::new();
        for (i, sym) in self.round.iter().enumerate() {
            let (last, turns) = so_far.entry(*sym).or_default();
            (self.places[i].before, self.places[i].turn) = (*last, *turns);
            (*last, *turns) = (i, *turns + 1);
        }
        for place in &mut self.places[..self.round.len()] {
            let (last, turns) = so_far.get(&place.sym).copied().unwrap_or_default();
            place.turns = turns;
            // Before the first place of a symbol in a round is its last one in the round before.
            if place.turn == 0 {
                place.before = last;
            }
            let of = &mut known[place.sym as usize];
            // From here on its places enter in turn, after what is known of the symbol alone.
            if turns > 1 && !of.in_round {
                of.settle(infos[place.sym as usize].slots);
            }
            of.in_round = true;
        }
        self.number += 1;
        self.times.clear();
        self.times.push((enter, exit));
    }
}

/// Enters a slot's words at the places of a symbol, of which the one at `latest` is the last that has been executed, for all
/// executions before `event`.
fn settle(
    column: &mut super::known::SlotColumn,
    places: &[RoundCall],
    latest: usize,
    slot: usize,
    event: u64,
) {
    let place = &places[latest];
    if place.turns == 1 {
        return column.settle(place.last.words_of(slot), event);
    }
    let mut turns = Vec::new();
    let mut at = latest;
    // Back over the places only as far as the column has not heard of them.
    for _ in 0..place.turns.min(column.lacks(event)) {
        turns.push(places[at].last.words_of(slot));
        at = places[at].before;
    }
    turns.reverse();
    column.settle_turns(&turns, event);
}
