//! Building one rank's trace while its program runs.
//!
//! *Cost:* amortised constant per call; memory proportional to the structure found (and to the literals of parameters
//! that no predictor explains), never to the number of calls.

mod known;
mod restore;
mod rounds;
mod sequence;

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::calls::{CallId, CallTable, FIRST_UNKNOWN, Lane, Meaning, Object, Slot};
use crate::columns::{Chunk, ColumnWriter};
use crate::fold::{DEFAULT_WINDOW, Fold, Folded};
use crate::ints::Sealed;
use crate::objects::{Comm, Content, Group, Joint, Op, Registry, Text, Type};
use crate::proof::call_word;
use crate::ranklist::RankList;
use crate::section::{Elastic, Entry, Form, NO_SYM, Partition, Section, Sym, Symbol, Tables};
use crate::sites::{Frame, Similar, SiteTable};
use crate::sketch::Shape;
use crate::tree::FlatTree;

pub use known::Change;
use known::Known;
pub use restore::{Extent, RestoreError};
use sequence::SequenceRecorder;

/// What is recorded beside the structure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Keep exact times, handed out in chunks.
    pub columns: bool,
    /// Keep path-sensitive time sketches.
    pub sketches: bool,
    /// What sketches keep beside their totals.
    pub shape: Shape,
    /// How loops are found.
    pub fold: Fold,
    /// Tree nodes that folding looks back over.
    pub window: usize,
}

impl Default for Options {
    /// Columns and sketches, exact folding and the default window.
    fn default() -> Self {
        Self {
            columns: true,
            sketches: true,
            shape: Shape::Buckets,
            fold: Fold::Exact,
            window: DEFAULT_WINDOW,
        }
    }
}

/// Records one rank.
#[derive(Debug, Clone)]
pub struct RankRecorder {
    rank: u32,
    options: Options,
    /// Communicators. Register world first (index 0), then self (index 1).
    pub comms: Registry<Comm>,
    /// Groups.
    pub groups: Registry<Group>,
    /// Datatypes.
    pub types: Registry<Type>,
    /// Reduction operations.
    pub ops: Registry<Op>,
    /// Windows.
    pub wins: Registry<Joint>,
    /// Files.
    pub files: Registry<Joint>,
    /// Texts: register with [`RankRecorder::text`].
    pub texts: Registry<Text>,
    /// Call sites.
    pub sites: SiteTable,
    names: HashMap<String, CallId>,
    symbols: Vec<Symbol>,
    infos: Vec<SymInfo>,
    by_symbol: HashMap<Symbol, Sym, FixedState>,
    threads: Vec<SequenceRecorder>,
    /// How the last event's words differ from those of its symbol's one before.
    change: Change,
    /// Positions of the words that do, if so few can be told.
    changed: Vec<u16>,
    similar: Similar,
    /// Whether some call is recorded under another call site than its own.
    sites_differ: bool,
}

#[derive(Debug, Clone)]
struct SymInfo {
    slots: &'static [Slot],
    call: u64,
    error: u32,
    site: u128,
}

impl RankRecorder {
    /// A recorder for a world rank.
    #[must_use]
    pub fn new(rank: u32, options: Options) -> Self {
        Self {
            rank,
            options,
            comms: Registry::new(),
            groups: Registry::new(),
            types: Registry::new(),
            ops: Registry::new(),
            wins: Registry::new(),
            files: Registry::new(),
            texts: Registry::new(),
            sites: SiteTable::new(),
            names: HashMap::new(),
            symbols: Vec::new(),
            infos: Vec::new(),
            by_symbol: HashMap::default(),
            threads: Vec::new(),
            change: Change::New,
            changed: Vec::new(),
            similar: Similar::default(),
            sites_differ: false,
        }
    }

    /// Takes call sites that are similar for one, from now on. Voids the lane of call sites once that has happened.
    pub fn unite_sites(&mut self, similar: Similar) {
        self.similar = similar;
    }

    /// Index of the call site with these frames (modules from [`RankRecorder::sites`]), or of the first one similar to it.
    pub fn site(&mut self, frames: Vec<Frame>) -> u32 {
        if self.similar.is_exact() || self.sites.contains_stack(&frames) {
            return self.sites.stack(frames);
        }
        if let Some(first) = self.similar.first(&self.sites, &frames) {
            self.sites_differ = true;
            return first;
        }
        self.sites.stack(frames)
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
        self.options.columns = false;
        let chunks = self.flush_columns();
        self.threads.iter_mut().for_each(|t| t.columns = None);
        chunks
    }

    /// Number for a function outside the call table, by its name.
    pub fn unknown_call(&mut self, name: &str) -> CallId {
        if let Some(&id) = self.names.get(name) {
            return id;
        }
        let n = u16::try_from(self.names.len()).unwrap_or(0xFFF).min(0xFFF);
        let id = CallId(FIRST_UNKNOWN + n);
        self.names.insert(name.to_owned(), id);
        id
    }

    /// Index of a text that a call of a function from a site is given or has returned.
    pub fn text(&mut self, call: CallId, site: u128, text: String) -> i64 {
        let index = self.texts.create(call, site, Text(text));
        self.texts.free(index);
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
        let s = Sym::try_from(self.symbols.len()).unwrap_or(NO_SYM - 1);
        let name = self.names.iter().find(|(_, id)| **id == call).map(|(n, _)| n.as_str());
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
    pub fn record(&mut self, thread: usize, sym: Sym, words: &[i64], enter: i64, exit: i64) -> Option<Chunk> {
        self.change = Change::New;
        let t = self.threads.get_mut(thread)?;
        let known = t.known.get_mut(sym as usize);
        let repeats = known.as_ref().is_some_and(|known| known.repeats(words));
        match known {
            Some(known) if repeats && t.rounds.expects(sym) => {
                self.change = Change::None;
                known.repeat();
                t.go_on(sym);
            }
            _ => self.enter(thread, sym, words, repeats.then_some(0))?,
        }
        let shape = self.options.sketches.then_some(self.options.shape);
        self.threads[thread].time(sym, enter, exit, shape)
    }

    /// Records one more event of a symbol with the words of the thread's last one of it, which there must have been.
    #[inline]
    pub fn again(&mut self, thread: usize, sym: Sym, enter: i64, exit: i64) -> Option<Box<Chunk>> {
        let t = self.threads.get_mut(thread)?;
        let known = t.known.get_mut(sym as usize)?;
        if !t.rounds.expects(sym) {
            let words = known.last_words()?.to_vec();
            return self.record(thread, sym, &words, enter, exit).map(Box::new);
        }
        self.change = Change::None;
        known.repeat();
        t.go_on(sym);
        t.time(sym, enter, exit, self.options.sketches.then_some(self.options.shape)).map(Box::new)
    }

    /// Records one more event of a symbol with the words of the thread's last one of it, which there must have been, except for
    /// those at the positions `changed` (ascending), which may differ. No list has another length.
    pub fn again_but(
        &mut self,
        thread: usize,
        sym: Sym,
        (words, changed): (&[i64], &[u16]),
        enter: i64,
        exit: i64,
    ) -> Option<Box<Chunk>> {
        let t = self.threads.get(thread)?;
        let known = t.known.get(sym as usize).filter(|_| t.rounds.expects(sym));
        let lanes = known.and_then(|k| k.lanes_of(self.infos.get(sym as usize)?, words, changed));
        let Some(lanes) = lanes else { return self.record(thread, sym, words, enter, exit).map(Box::new) };
        self.changed.clear();
        self.changed.extend_from_slice(changed);
        self.enter(thread, sym, words, Some(lanes))?;
        let shape = self.options.sketches.then_some(self.options.shape);
        self.threads[thread].time(sym, enter, exit, shape).map(Box::new)
    }

    /// Enters an event that is not just the next one of the round in progress. Its words differ from its symbol's last ones as noted in
    /// `changed`, in these lanes (0: not at all), if that is known.
    #[inline(never)]
    fn enter(&mut self, thread: usize, sym: Sym, words: &[i64], differ: Option<u8>) -> Option<()> {
        let info = self.infos.get(sym as usize)?;
        let t = &mut self.threads[thread];
        if t.known.len() <= sym as usize {
            t.known.extend(self.infos[t.known.len()..=sym as usize].iter().map(Known::new));
        }
        let known = &t.known[sym as usize];
        let differ = differ.or_else(|| known.compare(info, words, &mut self.changed));
        // What has been counted is entered with the digests that it had.
        let differ_in_round = differ.filter(|_| t.rounds.expects(sym));
        match differ_in_round {
            Some(lanes) => t.rounds.enliven(lanes, &t.known, &mut t.lanes),
            None => t.rounds.end(&t.known, &mut t.lanes, &mut t.folder),
        }
        let known = &mut t.known[sym as usize];
        let object = |object, i| match object {
            Object::Comm => lane_word(&self.comms, i),
            Object::Group => lane_word(&self.groups, i),
            Object::Type => lane_word(&self.types, i),
            Object::Op => lane_word(&self.ops, i),
            Object::Win => lane_word(&self.wins, i),
            Object::File => lane_word(&self.files, i),
            Object::Text => lane_word(&self.texts, i),
        };
        self.change = match differ {
            Some(0) => {
                known.repeat();
                Change::None
            }
            Some(lanes) => {
                known.edit(info, words, (&self.changed, lanes), object);
                Change::Some
            }
            None => {
                known.replace(info.slots, words, object);
                Change::New
            }
        };
        let one = known.digests.is_one();
        if differ_in_round.is_some() || (one && t.rounds.begins(sym)) {
            t.lanes.calls += 1;
            t.lanes.enter_some(t.rounds.go_on(), known.digests.lanes());
        } else {
            known.digests.enter(&mut t.lanes);
            t.folder.push(sym);
            t.rounds.learn(sym, one);
        }
        Some(())
    }

    /// How the words of the event recorded last differ from those of the one of its symbol before it on its thread.
    #[must_use]
    #[inline]
    pub fn change(&self) -> Change {
        self.change
    }

    /// Positions of the words that differ, ascending: those of a [`Change::Some`].
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

    /// Words of the last event of a symbol on a thread, if there was one.
    #[must_use]
    pub fn last_words(&self, thread: usize, sym: Sym) -> Option<&[i64]> {
        let known = self.threads.get(thread)?.known.get(usize::try_from(sym).ok()?)?;
        known.last_words()
    }

    /// The open chunks of exact times, by thread: call before [`RankRecorder::finish`], and to bound what a crash can lose.
    pub fn flush_columns(&mut self) -> Vec<(u32, Chunk)> {
        let mut out = Vec::new();
        for (i, t) in self.threads.iter_mut().enumerate() {
            if let Some(chunk) = t.columns.as_mut().and_then(ColumnWriter::flush) {
                out.push((u32::try_from(i).unwrap_or(u32::MAX), chunk));
            }
        }
        out
    }

    /// Number of calls recorded so far, all threads, poll series expanded.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.threads.iter().map(|t| t.lanes.calls).sum()
    }

    /// The rank's trace. Exact times are not in it: they left in chunks.
    #[must_use]
    pub fn finish(self, host: &str) -> Section {
        let tree = if self.options.fold == Fold::Exact { Folded::smallest } else { Folded::flatten };
        self.finish_by(host, tree)
    }

    fn finish_by(self, host: &str, tree: fn(Folded) -> (FlatTree, Vec<Sealed>)) -> Section {
        let rank = self.rank;
        let ranks = RankList::single(rank);
        let voided = if self.sites_differ { 1 << Lane::Site as u8 } else { 0 };
        let threads = self
            .threads
            .into_iter()
            .enumerate()
            .map(|(i, t)| {
                let mut thread = t.finish(rank, i, &self.infos, tree);
                thread.lanes.voided |= voided;
                thread
            })
            .collect();
        Section {
            hosts: vec![(host.to_owned(), ranks.clone())],
            sites: self.sites,
            tables: Tables {
                comms: entries(&self.comms, &ranks),
                groups: entries(&self.groups, &ranks),
                types: entries(&self.types, &ranks),
                ops: entries(&self.ops, &ranks),
                wins: entries(&self.wins, &ranks),
                files: entries(&self.files, &ranks),
                texts: entries(&self.texts, &ranks),
                names: self.names.into_iter().map(|(n, id)| (id, n)).collect(),
            },
            symbols: self.symbols,
            partitions: vec![Partition { classes: vec![ranks.clone()] }],
            ranks,
            threads,
            ended: Vec::new(),
        }
    }
}

/// What the lanes hash for an object. Not inlined: few words that change are objects.
#[inline(never)]
fn lane_word<T: Content>(registry: &Registry<T>, index: i64) -> u64 {
    if index < 0 { 0 } else { registry.get(index).map_or(!index.unsigned_abs(), |o| o.lane_word()) }
}

fn entries<T: Content + Clone>(registry: &Registry<T>, ranks: &RankList) -> Vec<Entry<T>> {
    registry
        .entries()
        .iter()
        .map(|e| Entry { family: e.family, of: vec![(ranks.clone(), e.object.clone())] })
        .collect()
}

/// An elastic stream of the section's only class.
fn own(stream: Sealed) -> Elastic {
    Elastic { form: Form::Absolute, partition: 0, streams: vec![stream] }
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
