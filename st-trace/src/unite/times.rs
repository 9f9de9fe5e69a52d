//! Folding times over ranks: sketches add up; each rank's totals are kept, quantised.

use std::collections::BTreeMap;

use crate::ints::Sealed;
use crate::ranklist::RankList;
use crate::section::{NO_SYM, PathSketch, RankSums, Sym, Thread};
use crate::sketch::{Sketch, bucket};

use super::tables::Renaming;

/// Times of one thread index under construction.
#[derive(Debug, Default)]
pub struct Times {
    sketches: BTreeMap<(Sym, Sym), (Sketch, Sketch)>,
    /// Per symbol: (rank, compute bucket, communication bucket).
    sums: BTreeMap<Sym, Vec<(u32, u16, u16)>>,
}

impl Times {
    /// Adds a section's thread.
    pub fn add(&mut self, thread: &Thread, renaming: &Renaming) {
        let to =
            |s: Sym| if s == NO_SYM { s } else { renaming.symbols.get(s as usize).copied().unwrap_or(s) };
        for s in &thread.sketches {
            let into = self.sketches.entry((to(s.sym), to(s.pred))).or_default();
            into.0.merge(&s.compute);
            into.1.merge(&s.comm);
        }
        if let (1, Some(rank)) = (thread.ranks.len(), thread.ranks.lowest()) {
            let mut totals: BTreeMap<Sym, (u128, u128)> = BTreeMap::new();
            for s in &thread.sketches {
                let t = totals.entry(to(s.sym)).or_default();
                t.0 += s.compute.sum;
                t.1 += s.comm.sum;
            }
            for (sym, (compute, comm)) in totals {
                self.sums.entry(sym).or_default().push((rank, quantised(compute), quantised(comm)));
            }
        }
        for s in &thread.sums {
            let (mut a, mut b) = (s.compute.cursor(), s.comm.cursor());
            let bucket = |v: i64| u16::try_from(v).unwrap_or(u16::MAX);
            let rows = thread.ranks.iter().map(|r| (r, bucket(a.next()), bucket(b.next())));
            self.sums.entry(to(s.sym)).or_default().extend(rows);
        }
    }

    /// The sketches and per-rank sums, with symbols renumbered; `ranks` are the thread's.
    pub fn finish(self, number: impl Fn(Sym) -> Sym, ranks: &RankList) -> (Vec<PathSketch>, Vec<RankSums>) {
        let mut sketches: Vec<PathSketch> = self
            .sketches
            .into_iter()
            .map(|((sym, pred), (compute, comm))| PathSketch {
                sym: number(sym),
                pred: number(pred),
                compute,
                comm,
            })
            .collect();
        sketches.sort_by_key(|s| (s.sym, s.pred));
        if ranks.len() < 2 {
            return (sketches, Vec::new());
        }
        let mut sums: Vec<RankSums> = self
            .sums
            .into_iter()
            .map(|(sym, mut rows)| {
                rows.sort_unstable();
                let (mut compute, mut comm) = (Vec::new(), Vec::new());
                let mut rows = rows.into_iter().peekable();
                for rank in ranks.iter() {
                    let (_, a, b) = rows.next_if(|r| r.0 == rank).unwrap_or((rank, 0, 0));
                    compute.push(i64::from(a));
                    comm.push(i64::from(b));
                }
                RankSums { sym: number(sym), compute: Sealed::from(compute), comm: Sealed::from(comm) }
            })
            .collect();
        sums.sort_by_key(|s| s.sym);
        (sketches, sums)
    }
}

fn quantised(ns: u128) -> u16 {
    bucket(u64::try_from(ns).unwrap_or(u64::MAX))
}
