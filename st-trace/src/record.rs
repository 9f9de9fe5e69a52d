//! Building one rank's trace while its program runs.
//!
//! *Cost:* amortised constant per call; memory proportional to the structure found (and to the literals of parameters
//! that no predictor explains), never to the number of calls.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::calls::{CallId, CallTable, FIRST_UNKNOWN, Meaning, Object, Slot};
use crate::columns::{Chunk, ColumnWriter};
use crate::fold::{DEFAULT_WINDOW, Folder};
use crate::ints::{Ints, Sealed};
use crate::lanes::Lanes;
use crate::objects::{Comm, Content, Group, Op, Registry, Type};
use crate::proof::{Proof, call_word};
use crate::ranklist::RankList;
use crate::section::{
    Elastic, Entry, Form, NO_SYM, Partition, PathSketch, Section, SlotStreams, Sym, Symbol, Tables, Thread,
};
use crate::sites::SiteTable;
use crate::sketch::LiveSketch;

/// What is recorded beside the structure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Keep exact times, handed out in chunks.
    pub columns: bool,
    /// Keep path-sensitive time sketches.
    pub sketches: bool,
    /// Tree nodes that folding looks back over.
    pub window: usize,
}

impl Default for Options {
    /// Columns and sketches, and the default window.
    fn default() -> Self {
        Self { columns: true, sketches: true, window: DEFAULT_WINDOW }
    }
}

/// Records one rank.
#[derive(Debug)]
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
    /// Call sites.
    pub sites: SiteTable,
    names: HashMap<String, CallId>,
    symbols: Vec<Symbol>,
    infos: Vec<SymInfo>,
    by_symbol: HashMap<Symbol, Sym, FixedState>,
    threads: Vec<SequenceRecorder>,
}

#[derive(Debug)]
struct SymInfo {
    slots: &'static [Slot],
    call: u64,
    error: u32,
    site: u128,
}

#[derive(Debug)]
struct SequenceRecorder {
    folder: Folder,
    params: Vec<Vec<SlotColumn>>,
    lanes: Lanes,
    columns: Option<ColumnWriter>,
    sketches: Vec<(Sym, Sym, LiveSketch, LiveSketch)>,
    by_path: HashMap<(Sym, Sym), usize, FixedState>,
    /// Per symbol the last predecessor and its sketch: the lookup of most calls.
    last_path: Vec<(Sym, usize)>,
    pred: Sym,
    last_exit: i64,
}

#[derive(Debug, Default, Clone)]
struct SlotColumn {
    lens: Option<Ints>,
    values: Ints,
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
            sites: SiteTable::new(),
            names: HashMap::new(),
            symbols: Vec::new(),
            infos: Vec::new(),
            by_symbol: HashMap::default(),
            threads: Vec::new(),
        }
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

    /// Opens the next thread (index 0 first) whose clock starts at `start` ns; returns its index.
    pub fn open_thread(&mut self, start: i64) -> usize {
        self.threads.push(SequenceRecorder {
            folder: Folder::new(self.options.window),
            params: Vec::new(),
            lanes: Lanes::new(),
            columns: self.options.columns.then(|| ColumnWriter::new(start)),
            sketches: Vec::new(),
            by_path: HashMap::default(),
            last_path: Vec::new(),
            pred: NO_SYM,
            last_exit: start,
        });
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
        self.infos.push(SymInfo {
            slots: CallTable::builtin().slots(call),
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
        let info = self.infos.get(sym as usize)?;
        let t = self.threads.get_mut(thread)?;
        let proof = Proof { call: info.call, error: info.error, site: info.site, slots: info.slots, words };
        proof.enter(&mut t.lanes, |object, i| match object {
            Object::Comm => lane_word(&self.comms, i),
            Object::Group => lane_word(&self.groups, i),
            Object::Type => lane_word(&self.types, i),
            Object::Op => lane_word(&self.ops, i),
        });
        t.folder.push(sym);
        t.push_params(sym, info.slots, words);
        t.time(sym, enter, exit, self.options.sketches, self.rank)
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
        let rank = self.rank;
        let ranks = RankList::single(rank);
        let threads = self.threads.into_iter().enumerate().map(|(i, t)| t.finish(rank, i)).collect();
        Section {
            hosts: vec![(host.to_owned(), ranks.clone())],
            sites: self.sites,
            tables: Tables {
                comms: entries(&self.comms, &ranks),
                groups: entries(&self.groups, &ranks),
                types: entries(&self.types, &ranks),
                ops: entries(&self.ops, &ranks),
                names: self.names.into_iter().map(|(n, id)| (id, n)).collect(),
            },
            symbols: self.symbols,
            partitions: vec![Partition { classes: vec![ranks.clone()] }],
            ranks,
            threads,
        }
    }
}

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

impl SequenceRecorder {
    fn push_params(&mut self, sym: Sym, slots: &[Slot], words: &[i64]) {
        let i = sym as usize;
        if self.params.len() <= i {
            self.params.resize_with(i + 1, Vec::new);
        }
        let columns = &mut self.params[i];
        if columns.len() < slots.len() {
            columns.extend(
                slots.iter().map(|s| SlotColumn { lens: s.list.then(Ints::new), values: Ints::new() }),
            );
        }
        let mut words = words.iter().copied();
        for c in columns {
            match &mut c.lens {
                None => c.values.push(words.next().unwrap_or(0)),
                Some(lens) => {
                    let n = words.next().unwrap_or(0);
                    lens.push(n);
                    words.by_ref().take(usize::try_from(n).unwrap_or(0)).for_each(|w| c.values.push(w));
                }
            }
        }
    }

    fn time(&mut self, sym: Sym, enter: i64, exit: i64, sketches: bool, rank: u32) -> Option<Chunk> {
        if sketches {
            let pred = self.pred;
            let i = sym as usize;
            if self.last_path.len() <= i {
                self.last_path.resize(i + 1, (NO_SYM, usize::MAX));
            }
            let (p, mut at) = self.last_path[i];
            if p != pred || at == usize::MAX {
                at = *self.by_path.entry((sym, pred)).or_insert_with(|| {
                    self.sketches.push((sym, pred, LiveSketch::default(), LiveSketch::default()));
                    self.sketches.len() - 1
                });
                self.last_path[i] = (pred, at);
            }
            let (_, _, compute, comm) = &mut self.sketches[at];
            compute.add(duration(self.last_exit, enter), rank);
            comm.add(duration(enter, exit), rank);
            self.pred = sym;
        }
        self.last_exit = exit;
        self.columns.as_mut()?.push(enter, exit)
    }

    fn finish(self, rank: u32, index: usize) -> Thread {
        let (tree, counts) = self.folder.finish().flatten();
        let mut sketches: Vec<PathSketch> = self
            .sketches
            .into_iter()
            .map(|(sym, pred, compute, comm)| PathSketch {
                sym,
                pred,
                compute: compute.finish(),
                comm: comm.finish(),
            })
            .collect();
        sketches.sort_by_key(|s| (s.sym, s.pred));
        let slot =
            |c: SlotColumn| SlotStreams { lens: c.lens.map(|l| own(l.seal())), values: own(c.values.seal()) };
        Thread {
            ranks: RankList::single(rank),
            tree,
            counts: counts.into_iter().map(own).collect(),
            params: self.params.into_iter().map(|p| p.into_iter().map(slot).collect()).collect(),
            lanes: self.lanes.keyed(rank, u32::try_from(index).unwrap_or(u32::MAX)),
            sketches,
            sums: Vec::new(),
            columns: Vec::new(),
        }
    }
}

/// An elastic stream of the section's only class.
fn own(stream: Sealed) -> Elastic {
    Elastic { form: Form::Absolute, partition: 0, streams: vec![stream] }
}

/// ns from `a` to `b`, 0 if the clock went back.
fn duration(a: i64, b: i64) -> u64 {
    u64::try_from(b.saturating_sub(a)).unwrap_or(0)
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
