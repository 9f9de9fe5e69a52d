//! Recording one thread: its loops, its proof and its times.

use std::collections::HashMap;
use std::mem;

use foldhash::fast::FixedState;

use super::known::Known;
use super::rounds::Rounds;
use super::{Options, SymInfo, own};
use crate::columns::{Chunk, ColumnWriter};
use crate::fold::{Folded, Folder};
use crate::ints::Sealed;
use crate::lanes::Lanes;
use crate::objects::Objects;
use crate::ranklist::RankList;
use crate::section::{NO_SYM, PathSketch, Sym, Thread};
use crate::sketch::{LiveSketch, Shape};
use crate::tree::FlatTree;

/// Records one thread.
#[derive(Debug, Clone)]
pub(super) struct SequenceRecorder {
    pub(super) folder: Folder,
    pub(super) known: Vec<Known>,
    pub(super) lanes: Lanes,
    pub(super) rounds: Rounds,
    pub(super) columns: Option<ColumnWriter>,
    pub(super) sketches: Vec<(Sym, Sym, LiveSketch, LiveSketch)>,
    pub(super) by_path: HashMap<(Sym, Sym), usize, FixedState>,
    /// Per symbol the last predecessor and its sketch: the lookup of most calls.
    last_path: Vec<(Sym, usize)>,
    pred: Sym,
    last_exit: i64,
    /// Times of one place of a round, while they are entered.
    gaps: Vec<u64>,
    durations: Vec<u64>,
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
            sketches: Vec::new(),
            by_path: HashMap::default(),
            last_path: Vec::new(),
            pred: NO_SYM,
            last_exit: start,
            gaps: Vec::new(),
            durations: Vec::new(),
        }
    }

    /// Enters what is on the tape of the round in progress. Returns a chunk of exact times when one is full.
    #[inline(never)]
    pub(super) fn enter_tape(
        &mut self,
        infos: &[SymInfo],
        sketches: Option<Shape>,
        objects: &Objects,
    ) -> Option<Chunk> {
        let waiting = self.rounds.waiting();
        if waiting == 0 {
            return None;
        }
        self.lanes.calls += u64::try_from(waiting).unwrap_or(0);
        let times = mem::take(&mut self.rounds.times);
        if let Some(shape) = sketches {
            self.enter_times(&times, shape);
        }
        self.rounds.times = times;
        let mut full = None;
        if let Some(columns) = &mut self.columns {
            for (enter, exit) in &self.rounds.times[1..] {
                // A tape is shorter than a chunk: at most one gets full.
                full = columns.push(*enter, *exit).or(full);
            }
        }
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
            let sketch = match self.rounds.places[at].sketch {
                Some(sketch) => sketch,
                None => {
                    let sym = self.rounds.symbol_before(at + 1);
                    let sketch = self.sketch(sym, self.rounds.symbol_before(at), shape);
                    *self.rounds.places[at].sketch.insert(sketch)
                }
            };
            let (_, _, compute, comm) = &mut self.sketches[sketch];
            self.gaps.clear();
            self.durations.clear();
            for two in times.windows(2).skip(i).step_by(length) {
                let [(_, before), (enter, exit)] = *two else { continue };
                self.gaps.push(duration(before, enter));
                self.durations.push(duration(enter, exit));
            }
            compute.add_all(&self.gaps);
            comm.add_all(&self.durations);
        }
    }

    /// Which sketch the times of a symbol after another go to.
    fn sketch(&mut self, sym: Sym, pred: Sym, shape: Shape) -> usize {
        *self.by_path.entry((sym, pred)).or_insert_with(|| {
            self.sketches.push((sym, pred, LiveSketch::new(shape), LiveSketch::new(shape)));
            self.sketches.len() - 1
        })
    }

    /// Calls so far, poll series expanded.
    pub(super) fn calls(&self) -> u64 {
        self.lanes.calls + u64::try_from(self.rounds.waiting()).unwrap_or(0)
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
        self.last_exit = self.last_exit.saturating_add(ns);
        if let Some((_, exit)) = self.rounds.times.first_mut() {
            *exit = self.last_exit;
        }
    }

    /// Takes the times of the thread's next event. Returns a chunk of exact ones when one is full.
    #[inline]
    pub(super) fn time(&mut self, sym: Sym, enter: i64, exit: i64, sketches: Option<Shape>) -> Option<Chunk> {
        if let Some(shape) = sketches {
            let pred = self.pred;
            let i = sym as usize;
            if self.last_path.len() <= i {
                self.last_path.resize(i + 1, (NO_SYM, usize::MAX));
            }
            let (p, mut at) = self.last_path[i];
            if p != pred || at == usize::MAX {
                at = self.sketch(sym, pred, shape);
                self.last_path[i] = (pred, at);
            }
            let (_, _, compute, comm) = &mut self.sketches[at];
            compute.add(duration(self.last_exit, enter));
            comm.add(duration(enter, exit));
        }
        self.pred = sym;
        self.last_exit = exit;
        self.columns.as_mut()?.push(enter, exit)
    }

    /// Goes on with the sketches of a thread after its last event and its end.
    pub(super) fn resume_times(&mut self, t: &Thread, (last, exit): (Sym, i64), sketches: Option<Shape>) {
        self.last_exit = exit;
        let Some(shape) = sketches else { return };
        self.pred = last;
        for s in &t.sketches {
            self.by_path.insert((s.sym, s.pred), self.sketches.len());
            let (compute, comm) = (LiveSketch::resume(&s.compute, shape), LiveSketch::resume(&s.comm, shape));
            self.sketches.push((s.sym, s.pred, compute, comm));
        }
    }

    /// Enters all of the round in progress, whose tape has been entered.
    pub(super) fn end_round(&mut self, infos: &[SymInfo]) {
        self.rounds.end(&mut self.known, &mut self.lanes, &mut self.folder, infos);
    }

    /// The thread's trace. No round is in progress.
    pub(super) fn finish(
        self,
        rank: u32,
        index: usize,
        infos: &[SymInfo],
        tree: fn(Folded) -> (FlatTree, Vec<Sealed>),
    ) -> Thread {
        let (tree, counts) = tree(self.folder.finish());
        let mut sketches: Vec<PathSketch> = self
            .sketches
            .into_iter()
            .map(|(sym, pred, compute, comm)| PathSketch {
                sym,
                pred,
                compute: compute.finish(rank),
                comm: comm.finish(rank),
            })
            .collect();
        sketches.sort_by_key(|s| (s.sym, s.pred));
        Thread {
            ranks: RankList::single(rank),
            tree,
            counts: counts.into_iter().map(own).collect(),
            params: self.known.into_iter().zip(infos).map(|(k, i)| k.finish(i.slots)).collect(),
            lanes: self.lanes.keyed(rank, u32::try_from(index).unwrap_or(u32::MAX)),
            sketches,
            sums: Vec::new(),
            columns: Vec::new(),
        }
    }
}

/// ns from `a` to `b`, 0 if the clock went back.
fn duration(a: i64, b: i64) -> u64 {
    if b > a { b.wrapping_sub(a).cast_unsigned() } else { 0 }
}
