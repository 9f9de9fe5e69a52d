//! The calls of one symbol without their order: equal ones are read once, with how often they come.
//!
//! A loop of a million turns whose parameters repeat costs as much as one of ten. What depends on the order of different
//! calls, as what requests stand for does, is for [`crate::event`].

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::calls::words::Words;
use crate::calls::{CallTable, Object, Slot};
use crate::event::Event;
use crate::form::{Form, Own};
use crate::ints::{Cursor, Together};
use crate::num::saturate;
use crate::project::{Error, LONGEST_LIST, base_word, stream};
use crate::section::{Section, Sym};

/// The calls of one symbol on a thread of a rank.
#[derive(Clone, Copy, Debug)]
pub struct SymbolCalls {
    /// World rank.
    pub rank: u32,
    /// Number of the thread in the section.
    pub thread: usize,
    /// Number of the symbol in the section.
    pub sym: Sym,
    /// How many they are ([`Section::calls_of`]).
    pub calls: u64,
}

/// They are read, equal ones once.
#[derive(Debug)]
pub struct Folded<'a> {
    section: &'a Section,
    of: SymbolCalls,
    slots: &'static [Slot],
    /// By slot: whether it is read, whether it has lengths, and how its values are written.
    forms: Vec<(bool, bool, Form)>,
    turns: Together<'a>,
    own: HashMap<(Object, i64), Own, FixedState>,
    words: Words,
}

impl Section {
    /// Reads the calls of a symbol; only the slots of its row that are asked for are read, others are 0 or empty. `None` where the thread does not make them, and where a slot that
    /// is read cannot be without the order of the calls: what is drawn, expected, or depends on the number of the call.
    #[must_use]
    pub fn folded(&self, of: SymbolCalls, reads: impl Fn(usize) -> bool) -> Option<Folded<'_>> {
        let SymbolCalls { rank, thread, sym, calls } = of;
        let t = self.threads.get(thread).filter(|t| t.ranks.contains(rank))?;
        let slots = CallTable::builtin().slots(self.symbols.get(sym as usize)?.call);
        let streams = t.params.get(sym as usize).map_or(&[][..], |p| p);
        let classes: Vec<Option<usize>> = self.partitions.iter().map(|p| p.class_of(rank)).collect();
        let (mut forms, mut cursors) = (Vec::new(), Vec::new());
        for (i, s) in streams.iter().enumerate().take(slots.len()) {
            let (read, form) = (reads(i), s.values.form);
            if read && (form.counts() || matches!(form, Form::Histogram(_) | Form::Predicted)) {
                return None;
            }
            if read {
                cursors.extend(s.lens.as_ref().map(|lens| stream(lens, &classes).cursor()));
                cursors.push(stream(&s.values, &classes).cursor());
            }
            forms.push((read, s.lens.is_some(), form));
        }
        let (turns, words) = (Together::new(cursors, calls), Words::default());
        let own = HashMap::default();
        Some(Folded { section: self, of, slots, forms, turns, own, words })
    }
}

impl Folded<'_> {
    /// The next call, and how often it comes; the same call may come again. Its position is 0.
    ///
    /// # Errors
    ///
    /// If a list is longer than any can be.
    pub fn next_call(&mut self) -> Result<Option<(Event<'_>, u64)>, Error> {
        let Some(times) = self.turns.next_turn() else { return Ok(None) };
        self.words.words.clear();
        let mut cursors = self.turns.cursors().iter_mut();
        for (read, listed, _) in &self.forms {
            let mut value = || if *read { cursors.next() } else { None };
            let n = if *listed { value().map_or(0, Cursor::next) } else { 1 };
            if !(0..=LONGEST_LIST).contains(&n) {
                return Err(Error::Length { rank: self.of.rank, index: 0, len: n });
            }
            self.words.words.extend(listed.then_some(n));
            match value() {
                Some(values) => self.words.words.extend((0..n).map(|_| values.next())),
                None => self.words.words.extend((!listed).then_some(0)),
            }
        }
        self.resolve();
        self.words.split(self.slots);
        let SymbolCalls { rank, thread, sym, .. } = self.of;
        let event = Event::apart(self.section, rank, sym, &self.words);
        Ok(event.map(|event| (event.at(thread, 0), times)))
    }

    /// Turns symbolic values into absolute ones.
    fn resolve(&mut self) {
        if self.forms.iter().all(|(_, _, form)| *form == Form::Absolute) {
            return;
        }
        let words = &mut self.words.words;
        let (base, section, rank) = (base_word(self.slots, words), self.section, self.of.rank);
        let own = *self.own.entry(base).or_insert_with(|| section.own(base, rank).unwrap_or_default());
        let mut at = 0;
        for (read, listed, form) in &self.forms {
            let n = if *listed { words.get(at).copied().map_or(0, saturate::<usize>) } else { 1 };
            at += usize::from(*listed);
            if *read && *form != Form::Absolute {
                words.iter_mut().skip(at).take(n).for_each(|w| *w = form.value_at(*w, own, 0));
            }
            at += n;
        }
    }
}
