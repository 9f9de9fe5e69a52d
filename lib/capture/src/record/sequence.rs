//! Recording one thread: its loops, its proof and its times.

use st_model::num::{Exact, narrow};
use std::mem;

use super::known::Known;
use super::options::Options;
use super::paths::Paths;
use super::rounds::Rounds;
use super::symbol::SymInfo;
use crate::fold::Folder;
use st_model::columns::{Chunk, ColumnWriter, duration};
use st_model::ints::Sealed;
use st_model::lanes::Lanes;
use st_model::objects::Objects;
use st_model::ranklist::RankList;
use st_model::section::{Elastic, NO_SYM, PathSketch, Sym, Thread};
use st_model::sketch::Shape;
use st_model::tree::FlatTree;
use st_stream::Sketched;

/// Records one thread.
#[derive(Debug, Clone)]
pub(super) struct SequenceRecorder {
    pub(super) folder: Folder,
    pub(super) known: Vec<Known>,
    pub(super) lanes: Lanes,
    pub(super) rounds: Rounds,
    pub(super) columns: Option<ColumnWriter>,
    paths: Paths,
    pred: Sym,
    last_exit: i64,
    /// Sketches lack some time that exact times have.
    has_left_out: bool,
}

/// What a thread's sketches are made of, once it has ended.
#[derive(Debug, Default)]
pub(super) struct SequenceTimes {
    paths: Paths,
    events: u64,
    /// They follow from exact times, which are those of all events.
    follow: bool,
}

impl SequenceTimes {
    /// What would be sketched, in a shape, if that follows from exact times.
    pub(super) fn sketched(&self, shape: Shape) -> Option<Sketched> {
        let sketches = self.paths.len().to_u64();
        self.follow.then_some(Sketched { shape, sketches, events: self.events })
    }

    /// The sketches.
    pub(super) fn sketches(self, rank: u32) -> Vec<PathSketch> {
        self.paths.finish(rank)
    }
}

impl SequenceRecorder {
    /// Begins a thread whose clock starts at `start` ns.
    pub(super) fn new(options: &Options, start: i64) -> Self {
        Self {
            folder: Folder::by(options.fold, options.window),
            known: Vec::new(),
            lanes: Lanes::new(),
            rounds: Rounds::default(),
            columns: options.columns.then(|| ColumnWriter::new(start)),
            paths: Paths::default(),
            pred: NO_SYM,
            last_exit: start,
            has_left_out: false,
        }
    }

    /// Enters what is on the tape of the round in progress. Returns a chunk of exact times when one is full.
    #[inline(never)]
    pub(super) fn enter_tape(
        &mut self,
        infos: &[SymInfo],
        sketches: Option<Shape>,
        objects: &Objects,
    ) -> Option<Box<Chunk>> {
        let waiting = self.rounds.waiting();
        if waiting == 0 {
            return None;
        }
        self.lanes.calls += waiting.to_u64();
        let times = mem::take(&mut self.rounds.times);
        if let Some(shape) = sketches {
            self.enter_times(&times, shape);
        }
        self.rounds.times = times;
        // A tape is shorter than a chunk.
        let full = self.columns.as_mut().and_then(|c| c.push_all(&self.rounds.times[1..])).map(Box::new);
        self.rounds.enter(&mut self.known, &mut self.lanes, infos, objects);
        self.last_exit = self.rounds.times[0].1;
        self.pred = self.rounds.symbol_before(self.rounds.first());
        full
    }

    /// Enters times on the tape, the first of which are those of the event before it, into sketches.
    fn enter_times(&mut self, times: &[(i64, i64)], shape: Shape) {
        let Some((length, _)) = self.rounds.progress() else { return };
        for i in 0..length.min(times.len() - 1) {
            let at = (self.rounds.first() + i) % length;
            let path = match self.rounds.places[at].path {
                Some(path) => path,
                None => {
                    let sym = self.rounds.symbol_before(at + 1);
                    let path = self.paths.find(sym, self.rounds.symbol_before(at), shape);
                    *self.rounds.places[at].path.insert(path)
                }
            };
            self.paths.add_every(path, &times[i..], length);
        }
    }

    /// Calls so far, poll series expanded.
    pub(super) fn calls(&self) -> u64 {
        self.lanes.calls + self.rounds.waiting().to_u64()
    }

    /// The last event's symbol.
    pub(super) fn last(&self) -> Sym {
        self.rounds.last_waiting().unwrap_or(self.pred)
    }

    /// Exit of the last event, or when the thread began.
    pub(super) fn last_exit(&self) -> i64 {
        match self.rounds.times.last() {
            Some((_, exit)) if self.rounds.waiting() > 0 => *exit,
            _ => self.last_exit,
        }
    }

    /// Takes the last event to have ended so many ns later. The tape has been entered.
    pub(super) fn leave_out(&mut self, ns: i64) {
        self.has_left_out |= ns != 0;
        self.last_exit = self.last_exit.saturating_add(ns);
        if let Some((_, exit)) = self.rounds.times.first_mut() {
            *exit = self.last_exit;
        }
    }

    /// Takes the times of the thread's next event. Returns a chunk of exact ones when one is full.
    #[inline]
    pub(super) fn time(
        &mut self,
        sym: Sym,
        enter: i64,
        exit: i64,
        sketches: Option<Shape>,
    ) -> Option<Box<Chunk>> {
        if let Some(shape) = sketches {
            let path = self.paths.find(sym, self.pred, shape);
            self.paths.add(path, duration(self.last_exit, enter), duration(enter, exit));
        }
        self.pred = sym;
        self.last_exit = exit;
        self.columns.as_mut()?.push(enter, exit).map(Box::new)
    }

    /// Goes on with the sketches of a thread after its last event and its end.
    pub(super) fn resume_times(&mut self, t: &Thread, last: Sym, exit: i64, sketches: Option<Shape>) {
        self.last_exit = exit;
        let Some(shape) = sketches else { return };
        self.pred = last;
        self.paths.resume(&t.sketches, shape);
    }

    /// Enters all of the round in progress, whose tape has been entered.
    pub(super) fn end_round(&mut self, infos: &[SymInfo]) {
        self.rounds.end(&mut self.known, &mut self.lanes, &mut self.folder, infos);
    }

    /// A copy that holds all but the tree, which is by far the largest, exact times, and, if no call waits to be entered into them,
    /// the [sketches](SequenceRecorder::sketches): for the [trace](SequenceRecorder::finish) of a thread that goes on.
    pub(super) fn without_tree(&self) -> Self {
        Self {
            folder: self.folder.successor(),
            known: self.known.clone(),
            lanes: self.lanes,
            rounds: self.rounds.clone(),
            columns: None,
            paths: if self.rounds.waiting() == 0 { Paths::default() } else { self.paths.clone() },
            pred: self.pred,
            last_exit: self.last_exit,
            has_left_out: self.has_left_out,
        }
    }

    /// The sketches of the thread, which goes on, if no call waits to be entered into them.
    pub(super) fn sketches(&self, rank: u32) -> Option<Vec<PathSketch>> {
        (self.rounds.waiting() == 0).then(|| self.paths.so_far(rank))
    }

    /// The thread's trace without sketches, and what these are made of. No round is in progress. `tree` is made of the folder.
    pub(super) fn finish(
        self,
        rank: u32,
        index: usize,
        infos: &[SymInfo],
        tree: impl FnOnce(Folder) -> (FlatTree, Vec<Sealed>),
    ) -> (Thread, SequenceTimes) {
        let (tree, counts) = tree(self.folder);
        let events = self.known.iter().map(|known| known.events).sum();
        let follow = self.columns.is_some() && !self.has_left_out;
        let times = SequenceTimes { paths: self.paths, events, follow };
        let thread = Thread {
            ranks: RankList::single(rank),
            tree,
            counts: counts.into_iter().map(Elastic::only).collect(),
            params: self.known.into_iter().zip(infos).map(|(k, i)| k.finish(i.slots)).collect(),
            lanes: self.lanes.keyed(rank, narrow(index)),
            sketches: Vec::new(),
            sums: Vec::new(),
            slow: Vec::new(),
            columns: Vec::new(),
        };
        (thread, times)
    }
}
