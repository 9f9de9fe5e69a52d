//! Recording one thread: its loops, its proof and its times.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::known::Known;
use super::rounds::Rounds;
use super::{Options, SymInfo, own};
use crate::columns::{Chunk, ColumnWriter};
use crate::fold::{Folded, Folder};
use crate::ints::Sealed;
use crate::lanes::Lanes;
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
    pub(super) pred: Sym,
    pub(super) last_exit: i64,
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
        }
    }

    /// Enters what has been counted of the loop in progress.
    pub(super) fn settle(&mut self) {
        self.rounds.end(&self.known, &mut self.lanes, &mut self.folder);
    }

    /// Takes the event that comes next in the round in progress.
    #[inline]
    pub(super) fn go_on(&mut self, sym: Sym) {
        self.lanes.calls += 1;
        let live = self.rounds.go_on();
        if live != 0 {
            self.lanes.enter_some(live, self.known[sym as usize].digests.lanes());
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
                at = *self.by_path.entry((sym, pred)).or_insert_with(|| {
                    self.sketches.push((sym, pred, LiveSketch::new(shape), LiveSketch::new(shape)));
                    self.sketches.len() - 1
                });
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

    /// The thread's trace.
    pub(super) fn finish(
        mut self,
        rank: u32,
        index: usize,
        infos: &[SymInfo],
        tree: fn(Folded) -> (FlatTree, Vec<Sealed>),
    ) -> Thread {
        self.settle();
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
    u64::try_from(b.saturating_sub(a)).unwrap_or(0)
}
