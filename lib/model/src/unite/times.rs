//! Folding times over ranks: sketches add up; each rank's totals are kept, quantised.

use crate::num::saturate;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use crate::ints::Sealed;
use crate::ranklist::RankList;
use crate::section::{PathSketch, Predecessors, RankSums, Sym, Thread, number_anew};
use crate::sketch::{Sketch, bucket};

use super::tables::Renaming;

/// Sketches and per-rank sums of a thread, in order.
pub type Summed = (Vec<PathSketch>, Vec<RankSums>);

/// Times of one thread index under construction.
#[derive(Clone, Debug, Default)]
pub struct Times {
    sketches: BTreeMap<(Sym, Sym), (Sketch, Sketch)>,
    sums: BTreeMap<Sym, Sums>,
}

/// Per-rank sums of a symbol under construction.
#[derive(Clone, Debug, Default)]
struct Sums {
    /// Of ranks that came alone: rank, compute bucket, communication bucket.
    ranks: Vec<(u32, u16, u16)>,
    /// Of ranks that came together, as they came: with what they are shared with, they take no memory until all are there.
    parts: Vec<(Arc<RankList>, RankSums)>,
}

impl Sums {
    /// Of all ranks, ascending.
    fn rows(self) -> Vec<(u32, u16, u16)> {
        let mut rows = self.ranks;
        for (ranks, sums) in self.parts {
            let (mut a, mut b) = (sums.compute.cursor(), sums.comm.cursor());
            rows.extend(ranks.iter().map(|r| (r, saturate(a.next()), saturate(b.next()))));
        }
        if !rows.is_sorted() {
            rows.sort_unstable();
        }
        rows
    }
}

impl Times {
    /// Adds a section's thread.
    pub fn add(&mut self, thread: &Thread, renaming: &Renaming) {
        let to = |sym: Sym| number_anew(sym, |s| renaming.symbols.get(s as usize).copied().unwrap_or(s));
        match (thread.ranks.len(), thread.ranks.lowest()) {
            (1, Some(rank)) => self.add_rank(rank, &thread.sketches, to),
            _ => self.add_sketches(&thread.sketches, to),
        }
        if thread.sums.is_empty() {
            return;
        }
        let ranks = Arc::new(thread.ranks.clone());
        for s in &thread.sums {
            self.sums.entry(to(s.sym)).or_default().parts.push((Arc::clone(&ranks), s.clone()));
        }
    }

    fn add_sketches(&mut self, sketches: &[PathSketch], to: impl Fn(Sym) -> Sym) {
        for s in sketches {
            let into = self.sketches.entry((to(s.sym), to(s.pred))).or_default();
            into.0.merge(&s.compute);
            into.1.merge(&s.comm);
        }
    }

    /// Adds the sketches of one rank, with its symbols renumbered.
    pub fn add_rank(&mut self, rank: u32, sketches: &[PathSketch], to: impl Fn(Sym) -> Sym) {
        self.add_sketches(sketches, &to);
        let mut totals: Vec<(Sym, u128, u128)> = Vec::with_capacity(sketches.len());
        for s in sketches {
            let sym = to(s.sym);
            match totals.last_mut().filter(|t| t.0 == sym) {
                Some(t) => (t.1, t.2) = (t.1 + s.compute.sum, t.2 + s.comm.sum),
                None => totals.push((sym, s.compute.sum, s.comm.sum)),
            }
        }
        // As a rule they come in the order of symbols.
        if !totals.is_sorted_by(|a, b| a.0 < b.0) {
            totals.sort_by_key(|t| t.0);
            totals.dedup_by(|next, t| {
                let same = next.0 == t.0;
                if same {
                    (t.1, t.2) = (t.1 + next.1, t.2 + next.2);
                }
                same
            });
        }
        for (sym, compute, comm) in totals {
            let sums = self.sums.entry(sym).or_default();
            sums.ranks.push((rank, quantised(compute), quantised(comm)));
        }
    }

    /// The sketches and per-rank sums, with symbols renumbered; `ranks` are the thread's.
    pub fn finish(self, number: impl Fn(Sym) -> Sym, ranks: &RankList) -> Summed {
        self.finish_as(number, ranks, Sealed::from)
    }

    /// As [`Times::finish`], for sections that others will be added to: sums are not compressed, which takes most of the time.
    pub fn finish_part(self, number: impl Fn(Sym) -> Sym, ranks: &RankList) -> Summed {
        self.finish_as(number, ranks, Sealed::plain)
    }

    fn finish_as(
        self,
        number: impl Fn(Sym) -> Sym,
        ranks: &RankList,
        seal: impl Fn(Vec<i64>) -> Sealed,
    ) -> Summed {
        let mut sketches: Vec<PathSketch> = self
            .sketches
            .into_iter()
            .map(|((sym, pred), (compute, comm))| PathSketch {
                sym: number(sym),
                pred: number_anew(pred, &number),
                compute,
                comm,
            })
            .collect();
        sketches.sort_by_key(|s| (s.sym, s.pred));
        // Where some tell no paths apart, no others do.
        if Predecessors::of(&sketches) == Predecessors::Any {
            sketches = one_path(sketches);
        }
        if ranks.len() < 2 {
            return (sketches, Vec::new());
        }
        let mut sums: Vec<RankSums> = self
            .sums
            .into_iter()
            .map(|(sym, sums)| {
                let rows = sums.rows();
                let (mut compute, mut comm) =
                    (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
                let mut rows = rows.into_iter().peekable();
                for rank in ranks.iter() {
                    let (_, a, b) = rows.next_if(|r| r.0 == rank).unwrap_or((rank, 0, 0));
                    compute.push(i64::from(a));
                    comm.push(i64::from(b));
                }
                RankSums { sym: number(sym), compute: seal(compute), comm: seal(comm) }
            })
            .collect();
        sums.sort_by_key(|s| s.sym);
        (sketches, sums)
    }
}

/// Distributions of events whatever comes before them, but for the thread's first, of those of their paths, in order.
#[must_use]
pub fn one_path(sketches: Vec<PathSketch>) -> Vec<PathSketch> {
    let mut all: BTreeMap<(Sym, Sym), PathSketch> = BTreeMap::new();
    for s in sketches {
        let pred = Predecessors::Any.pred(s.pred);
        match all.entry((s.sym, pred)) {
            Entry::Vacant(place) => drop(place.insert(PathSketch { pred, ..s })),
            Entry::Occupied(mut place) => {
                let into = place.get_mut();
                into.compute.merge(&s.compute);
                into.comm.merge(&s.comm);
            }
        }
    }
    all.into_values().collect()
}

fn quantised(ns: u128) -> u16 {
    bucket(saturate(ns))
}
