//! Building one rank's trace while its program runs.
//!
//! *Cost:* amortised constant per call; memory proportional to the structure found (and to the literals of parameters
//! that no predictor explains), never to the number of calls.

mod finder;
mod finish;
mod known;
mod last;
mod options;
mod paths;
mod restore;
mod rounds;
mod sequence;
mod symbol;

use st_model::num::{narrow, saturate};
use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::fold::{Fold, Folded, Folder};
use st_model::calls::{CallId, CallTable, FIRST_UNKNOWN, Meaning, Slot};
use st_model::columns::{Chunk, ColumnWriter};
use st_model::objects::{Objects, Text};
use st_model::proof::call_word;
use st_model::section::{NO_SYM, Sym, Symbol};
use st_model::sites::{Frame, Representatives, Similar, SiteTable};
use st_model::sketch::Shape;

pub use finish::Finished;
use known::Known;
pub use options::Options;
pub use restore::{Draft, Extent, RestoreError};
use sequence::SequenceRecorder;
use symbol::SymInfo;

/// How the words of an event differ from those of an event before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// They are those of the event of its symbol before.
    None,
    /// Some words differ from those of the event of its symbol before, at known positions; all lists have the lengths they had.
    Some,
    /// There was none before, or the words lie at other places.
    New,
    /// It is the next event of the round in progress: some words, or none, differ from those of the event a round ago, at known
    /// positions; all lists have the lengths they had.
    Next,
}

/// Records one rank.
#[derive(Debug, Clone)]
pub struct RankRecorder {
    rank: u32,
    options: Options,
    /// Its objects; register texts with [`RankRecorder::text`].
    pub objects: Objects,
    /// Call sites.
    pub sites: SiteTable,
    names: HashMap<String, CallId>,
    symbols: Vec<Symbol>,
    infos: Vec<SymInfo>,
    by_symbol: HashMap<Symbol, Sym, FixedState>,
    threads: Vec<SequenceRecorder>,
    /// How the last event's words differ from those of one before.
    change: Change,
    /// Positions of the words that do, if so few can be told.
    changed: Vec<u16>,
    /// Those that others are taken for, if similar ones are taken for one.
    similar: Representatives,
    /// Whether some call is recorded under another call site than its own.
    sites_differ: bool,
}

impl RankRecorder {
    /// A recorder for a world rank.
    #[must_use]
    pub fn new(rank: u32, options: Options) -> Self {
        Self {
            rank,
            options,
            objects: Objects::default(),
            sites: SiteTable::new(),
            names: HashMap::new(),
            symbols: Vec::new(),
            infos: Vec::new(),
            by_symbol: HashMap::default(),
            threads: Vec::new(),
            change: Change::New,
            changed: Vec::new(),
            similar: Representatives::default(),
            sites_differ: false,
        }
    }

    /// Takes call sites of a function that are similar for one, from now on. Voids the lane of call sites once that has happened.
    pub fn unite_sites(&mut self, similar: Similar) {
        self.similar = Representatives::new(similar);
    }

    /// Whether each call has its own call site ([`RankRecorder::unite_sites`]), whatever its function.
    #[must_use]
    pub fn keeps_sites(&self) -> bool {
        self.similar.is_exact()
    }

    /// Index of the call site with these frames (modules from [`RankRecorder::sites`]), or of the one that stands for it in calls
    /// of this function.
    pub fn site(&mut self, call: CallId, frames: Vec<Frame>) -> u32 {
        if self.similar.is_exact() {
            return self.sites.stack(frames);
        }
        let own = self.sites.stack_id(&frames);
        let site = self.similar.site(call, &mut self.sites, frames);
        self.sites_differ |= self.sites.get(site).is_some_and(|s| s.id != own);
        site
    }

    /// The world rank.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Sets the world rank, if it was not known at first (before `MPI_Init` returns).
    pub fn set_rank(&mut self, rank: u32) {
        self.rank = rank;
    }

    /// Stops exact times (a spent budget); sketches go on. Events already timed keep their times.
    pub fn stop_columns(&mut self) -> Vec<(u32, Chunk)> {
        let chunks = self.flush_columns();
        self.options.columns = false;
        self.threads.iter_mut().for_each(|t| t.columns = None);
        chunks
    }

    /// Number for a function outside the call table, by its name.
    pub fn unknown_call(&mut self, name: &str) -> CallId {
        if let Some(&id) = self.names.get(name) {
            return id;
        }
        let n = saturate::<u16>(self.names.len()).min(0xFFF);
        let id = CallId(FIRST_UNKNOWN + n);
        self.names.insert(name.to_owned(), id);
        id
    }

    /// The name that a number from [`RankRecorder::unknown_call`] stands for.
    #[must_use]
    pub fn unknown_name(&self, call: CallId) -> Option<&str> {
        self.names.iter().find(|(_, id)| **id == call).map(|(name, _)| name.as_str())
    }

    /// Index of a text that a call of a function from a site is given or has returned.
    pub fn text(&mut self, call: CallId, site: u128, text: String) -> i64 {
        let index = self.objects.texts.create(call, site, Text(text));
        self.objects.texts.free(index);
        index
    }

    /// Opens the next thread (index 0 first) whose clock starts at `start` ns; returns its index.
    pub fn open_thread(&mut self, start: i64) -> usize {
        self.threads.push(SequenceRecorder::new(&self.options, start));
        self.threads.len() - 1
    }

    /// The symbol of a function called from a site (index in [`RankRecorder::sites`]) with an error class (0 = success).
    pub fn symbol(&mut self, call: CallId, site: u32, error: u32) -> Sym {
        let symbol = Symbol { call, site, error };
        if let Some(&s) = self.by_symbol.get(&symbol) {
            return s;
        }
        let s = narrow(self.symbols.len());
        let name = self.unknown_name(call);
        let slots = CallTable::builtin().slots(call);
        self.infos.push(SymInfo {
            slots,
            call: call_word(call, name),
            error,
            site: self.sites.get(site).map_or(0, |s| s.id),
        });
        self.symbols.push(symbol);
        self.by_symbol.insert(symbol, s);
        s
    }

    /// Records one event of a thread (from [`RankRecorder::open_thread`]): its symbol, its words in slot order, and its times
    /// in ns. A poll series is one event, from its first enter to its last exit. Returns a chunk of exact times when one
    /// is full.
    ///
    /// Words beyond the row's slots are ignored, missing ones read as 0: the recorder never stops for them.
    #[inline]
    pub fn record(
        &mut self,
        thread: usize,
        sym: Sym,
        words: &[i64],
        enter: i64,
        exit: i64,
    ) -> Option<Box<Chunk>> {
        let t = self.threads.get_mut(thread)?;
        if t.rounds.expects(sym) && t.rounds.takes(words, &mut self.changed) {
            self.change = Change::Next;
            if !self.changed.is_empty() && t.rounds.change(words, &self.changed) {
                self.enter_in_turn(thread, words);
            }
            return self.put_on_tape(thread, enter, exit);
        }
        self.enter(thread, sym, words, enter, exit)
    }

    /// Records an event as [`RankRecorder::record`] does: one that is taken for the next of the round in progress
    /// ([`RankRecorder::round`]), with words that differ from those of the event a round ago at the positions `changed`
    /// (ascending) at most.
    #[inline]
    pub fn pass(
        &mut self,
        thread: usize,
        sym: Sym,
        words: &[i64],
        changed: &[u16],
        enter: i64,
        exit: i64,
    ) -> Option<Box<Chunk>> {
        let t = self.threads.get_mut(thread)?;
        if !t.rounds.expects(sym) || !(changed.is_empty() || t.rounds.takes_at(words, changed)) {
            return self.record(thread, sym, words, enter, exit);
        }
        self.change = Change::Next;
        self.changed.clear();
        if !changed.is_empty() {
            changed.iter().for_each(|at| self.changed.push(*at));
            if t.rounds.change(words, changed) {
                self.enter_in_turn(thread, words);
            }
        }
        self.put_on_tape(thread, enter, exit)
    }

    /// Enters how the words of the next event of the round in progress differ, whose symbol stands at several places.
    #[inline(never)]
    fn enter_in_turn(&mut self, thread: usize, words: &[i64]) {
        let Self { threads, infos, changed, objects, .. } = self;
        let Some(SequenceRecorder { rounds, known, lanes, .. }) = threads.get_mut(thread) else { return };
        rounds.change_in_turn(words, changed, known, lanes, infos, objects);
    }

    /// Puts the next event of the round in progress, whose words are entered, on the tape.
    #[inline]
    fn put_on_tape(&mut self, thread: usize, enter: i64, exit: i64) -> Option<Box<Chunk>> {
        if self.threads.get_mut(thread)?.rounds.push(enter, exit) { self.enter_tape(thread) } else { None }
    }

    /// Enters an event that is not just the next one of the round in progress.
    #[inline(never)]
    fn enter(&mut self, thread: usize, sym: Sym, words: &[i64], enter: i64, exit: i64) -> Option<Box<Chunk>> {
        let slots = self.infos.get(sym as usize)?.slots;
        let chunk = self.end_round(thread);
        let shape = self.sketched();
        let Self { threads, infos, changed, objects, .. } = self;
        let t = &mut threads[thread];
        if t.known.len() <= sym as usize {
            t.known.extend(infos[t.known.len()..=sym as usize].iter().map(Known::new));
        }
        let known = &mut t.known[sym as usize];
        changed.clear();
        let again = known.events > 0;
        let change = if again
            && (known.last.repeats(words) || known.last.compare(&known.last.words, words, changed))
        {
            known.edit(&infos[sym as usize], words, changed, objects);
            if changed.is_empty() { Change::None } else { Change::Some }
        } else {
            known.replace(slots, words, objects);
            Change::New
        };
        let simple = known.last.digests.is_one() && known.last.is_shaped(slots);
        known.last.digests.enter(&mut t.lanes);
        t.folder.push(sym);
        let other = t.time(sym, enter, exit, shape);
        t.rounds.learn(sym, simple, &mut t.known, infos, enter, exit);
        self.change = change;
        // A tape is shorter than a chunk.
        chunk.or(other)
    }

    /// Enters the round in progress, if there is one. Returns a chunk of exact times when one is full.
    fn end_round(&mut self, thread: usize) -> Option<Box<Chunk>> {
        let chunk = self.enter_tape(thread);
        self.threads.get_mut(thread)?.end_round(&self.infos);
        chunk
    }

    /// Enters what is on the tape of the round in progress. Returns a chunk of exact times when one is full.
    #[inline(never)]
    fn enter_tape(&mut self, thread: usize) -> Option<Box<Chunk>> {
        let sketches = self.sketched();
        self.threads.get_mut(thread)?.enter_tape(&self.infos, sketches, &self.objects)
    }

    /// Leaves out time that has gone by since the last event of a thread, ns, as if that had ended so much later:
    /// sketches hold what is between the program's calls, exact times stay as they are. Returns a chunk of exact times
    /// when one is full.
    pub fn leave_out(&mut self, thread: usize, ns: i64) -> Option<Box<Chunk>> {
        let chunk = self.enter_tape(thread);
        self.threads.get_mut(thread)?.leave_out(ns);
        chunk
    }

    fn sketched(&self) -> Option<Shape> {
        self.options.sketches.then_some(self.options.shape)
    }

    /// How the words of the event recorded last differ from those of an event before it on its thread.
    #[must_use]
    #[inline]
    pub fn change(&self) -> Change {
        self.change
    }

    /// Positions of the words that differ, ascending.
    #[must_use]
    #[inline]
    pub fn changed(&self) -> &[u16] {
        &self.changed
    }

    /// Number of events in a round of the loop in progress on a thread, and of those recorded since the round began (0 after
    /// a whole one); `None` if no loop is known.
    #[must_use]
    #[inline]
    pub fn round(&self, thread: usize) -> Option<(usize, usize)> {
        self.threads.get(thread)?.rounds.progress()
    }

    /// Whether the next event of the round in progress on a thread is expected to have this symbol and these words.
    #[must_use]
    #[inline]
    pub fn expects(&self, thread: usize, sym: Sym, words: &[i64]) -> bool {
        self.threads.get(thread).is_some_and(|t| t.rounds.expects(sym) && t.rounds.repeats(words))
    }

    /// Symbol of the last event of a thread, if there was one.
    #[must_use]
    pub fn last_symbol(&self, thread: usize) -> Option<Sym> {
        self.threads.get(thread).map(SequenceRecorder::last).filter(|sym| *sym != NO_SYM)
    }

    /// Which round is in progress on a thread, counted from 1: another one has another number.
    #[must_use]
    #[inline]
    pub fn round_number(&self, thread: usize) -> u64 {
        self.threads.get(thread).map_or(0, |t| t.rounds.number())
    }

    /// The symbols of the round in progress on a thread, and the words of the last event of each.
    pub fn places(&self, thread: usize) -> impl Iterator<Item = (Sym, &[i64])> {
        self.threads.get(thread).into_iter().flat_map(|t| t.rounds.places())
    }

    /// Words of the last event of a symbol on a thread, if there was one. *Cost:* at most the length of a round.
    #[must_use]
    pub fn last_words(&self, thread: usize, sym: Sym) -> Option<&[i64]> {
        let t = self.threads.get(thread)?;
        t.rounds.last_words(sym).or_else(|| t.known.get(usize::try_from(sym).ok()?)?.last_words())
    }

    /// The open chunks of exact times, by thread: call before [`RankRecorder::finish`], and to bound what a crash can lose.
    pub fn flush_columns(&mut self) -> Vec<(u32, Chunk)> {
        let mut out = Vec::new();
        for i in 0..self.threads.len() {
            let full = self.enter_tape(i);
            let open = self.threads[i].columns.as_mut().and_then(ColumnWriter::flush);
            out.extend(full.map(|c| *c).into_iter().chain(open).map(|c| (narrow(i), c)));
        }
        out
    }

    /// Number of calls recorded so far, all threads, poll series expanded.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.threads.iter().map(SequenceRecorder::calls).sum()
    }
}

/// Checks that words have the shape of a row: for recorders' own tests and for readers of foreign data.
#[must_use]
pub fn well_formed(slots: &[Slot], words: &[i64]) -> bool {
    let mut rest = words;
    for s in slots {
        let Some((&first, tail)) = rest.split_first() else { return false };
        rest = tail;
        if s.list {
            match usize::try_from(first) {
                Ok(n) if n <= rest.len() => rest = &rest[n..],
                _ => return false,
            }
        } else if s.meaning == Meaning::Times && first < 1 {
            return false;
        }
    }
    rest.is_empty()
}
