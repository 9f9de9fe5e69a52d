//! A recorder's state as a section, and a recorder from such a section: what a journal keeps and a reader goes on from.
//!
//! A section holds every call, so the recorder is restored by recording them again. Recording depends on nothing but the
//! calls and the order in which tables grew: the restored recorder goes on exactly as the first one would have.

use super::{RankRecorder, SequenceRecorder};
use crate::fold::{Folded, Packed};
use st_model::calls::CallId;
use st_model::num::narrow;
use st_model::objects::{Content, Registry};
use st_model::project;
use st_model::section::{Ended, Entry, NO_SYM, Section, Sym, Symbol};
use st_model::sketch::Shape;
use st_model::steps::{Budget, Exceeded};

use super::Options;

/// Why a recorder cannot be restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// Not the section of exactly one rank.
    #[error("not the section of one rank")]
    NotOneRank,
    /// Its calls cannot be read back.
    #[error(transparent)]
    Project(#[from] project::Error),
    /// Its tables name something twice, or its calls are not those that were recorded.
    #[error("the section contradicts itself: {0}")]
    Contradiction(&'static str),
    /// More calls than the caller wants to wait for.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}

/// How far a recorder's tables and threads have grown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// Modules of call sites.
    pub modules: usize,
    /// Call sites.
    pub sites: usize,
    /// Symbols.
    pub symbols: usize,
    /// Communicators.
    pub comms: usize,
    /// Groups.
    pub groups: usize,
    /// Datatypes.
    pub types: usize,
    /// Operations.
    pub ops: usize,
    /// Windows.
    pub wins: usize,
    /// Files.
    pub files: usize,
    /// Texts.
    pub texts: usize,
    /// Names of functions outside the call table.
    pub names: usize,
    /// Threads.
    pub threads: usize,
}

/// A rank's trace, with its trees apart: laying these out takes ten times longer than packing them.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The trace; the threads in it have empty trees.
    pub section: Section,
    /// Tree of each thread.
    pub trees: Vec<Packed>,
}

impl RankRecorder {
    /// The rank's trace so far; recording goes on. *Cost:* as [`RankRecorder::finish`], and a copy.
    #[must_use]
    pub fn snapshot(&self, host: &str) -> Section {
        self.clone().finish_by(host, false, Folded::flatten).section
    }

    /// The rank's trace so far, to [restore](RankRecorder::restore) from: what has not been folded yet stands behind what has.
    /// *Cost:* O(what has been recorded), of the trees a few bytes per node.
    #[must_use]
    pub fn draft(&self, host: &str) -> Draft {
        let mut trees = Vec::new();
        let finish = |(i, t): (usize, &SequenceRecorder)| {
            let (mut thread, times) = self.finish_thread(i, t.without_tree(), |rest| {
                trees.push(t.folder.packed(rest));
                Default::default()
            });
            thread.sketches = t.sketches(self.rank).unwrap_or_else(|| times.sketches(self.rank));
            thread
        };
        let threads = self.threads.iter().enumerate().map(finish).collect();
        Draft { section: self.section(host, threads), trees }
    }

    /// How far tables and threads have grown. They never shrink.
    #[must_use]
    pub fn extent(&self) -> Extent {
        Extent {
            modules: self.sites.modules().len(),
            sites: self.sites.sites().len(),
            symbols: self.symbols.len(),
            comms: self.objects.comms.entries().len(),
            groups: self.objects.groups.entries().len(),
            types: self.objects.types.entries().len(),
            ops: self.objects.ops.entries().len(),
            wins: self.objects.wins.entries().len(),
            files: self.objects.files.entries().len(),
            texts: self.objects.texts.entries().len(),
            names: self.names.len(),
            threads: self.threads.len(),
        }
    }

    /// A number that changes whenever [`RankRecorder::extent`] or [`RankRecorder::keeps_columns`] does. *Cost:* a few loads.
    #[must_use]
    #[inline]
    pub fn stamp(&self) -> usize {
        self.sites.modules().len()
            + self.sites.sites().len()
            + self.symbols.len()
            + self.objects.registered()
            + self.names.len()
            + self.threads.len()
            + usize::from(!self.options.columns)
    }

    /// The symbols, by index.
    #[must_use]
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Number and name of the functions outside the call table.
    pub fn names(&self) -> impl Iterator<Item = (CallId, &str)> {
        self.names.iter().map(|(n, id)| (*id, n.as_str()))
    }

    /// Whether exact times are kept.
    #[must_use]
    #[inline]
    pub fn keeps_columns(&self) -> bool {
        self.options.columns
    }

    /// The shape of the time sketches that are kept.
    #[must_use]
    pub fn keeps_sketches(&self) -> Option<Shape> {
        self.options.sketches.then_some(self.options.shape)
    }

    /// Exit of the last event of a thread, ns; of its start, if it has none.
    #[must_use]
    pub fn last_exit(&self, thread: usize) -> i64 {
        self.threads.get(thread).map_or(0, SequenceRecorder::last_exit)
    }

    /// Calls of a thread so far, poll series expanded.
    #[must_use]
    pub fn calls_of(&self, thread: usize) -> u64 {
        self.threads.get(thread).map_or(0, SequenceRecorder::calls)
    }

    /// Where the threads are, as of a program that goes no further.
    #[must_use]
    pub fn ended(&self) -> Vec<Ended> {
        let ended = self.threads.iter().enumerate().map(|(i, t)| Ended {
            rank: self.rank,
            thread: narrow(i),
            calls: t.calls(),
            last: t.last(),
            inside: NO_SYM,
            entered: 0,
        });
        ended.collect()
    }

    /// A recorder that has recorded what a [`RankRecorder::draft`] holds, its trees in their places. It keeps no columns;
    /// sketches go on in the shape given, if there is one.
    /// `exits` are the threads' last exits. Hands each event (its thread) to `seen`. *Cost:* O(events), which are
    /// taken from `budget` before.
    ///
    /// # Errors
    ///
    /// If the section is not one that a recorder can have made, or is more than `budget` allows.
    pub fn restore(
        section: &Section,
        sketches: Option<Shape>,
        exits: &[i64],
        budget: &Budget,
        mut seen: impl FnMut(usize, Sym),
    ) -> Result<Self, RestoreError> {
        let rank = section.ranks.lowest().filter(|_| section.ranks.len() == 1);
        let rank = rank.ok_or(RestoreError::NotOneRank)?;
        let mut r = Self::new(rank, Options { columns: false, sketches: false, ..Options::default() });
        r.sites = section.sites.clone();
        let tables = &section.tables;
        adopt(&mut r.objects.comms, &tables.comms, rank)?;
        adopt(&mut r.objects.groups, &tables.groups, rank)?;
        adopt(&mut r.objects.types, &tables.types, rank)?;
        adopt(&mut r.objects.ops, &tables.ops, rank)?;
        adopt(&mut r.objects.wins, &tables.wins, rank)?;
        adopt(&mut r.objects.files, &tables.files, rank)?;
        adopt(&mut r.objects.texts, &tables.texts, rank)?;
        r.names = tables.names.iter().map(|(id, n)| (n.clone(), *id)).collect();
        for s in &section.symbols {
            let at = r.symbols.len();
            if r.symbol(s.call, s.site, s.error) as usize != at {
                return Err(RestoreError::Contradiction("a symbol is listed twice"));
            }
        }
        budget.spend(section, None, 1)?;
        let mut words = Vec::new();
        for (i, t) in section.threads.iter().enumerate() {
            let thread = r.open_thread(0);
            let mut last = NO_SYM;
            if let Some(mut calls) = section.project(i, rank) {
                while let Some(sym) = calls.next_call(&mut words)? {
                    r.record(thread, sym, &words, 0, 0);
                    seen(thread, sym);
                    last = sym;
                }
            }
            r.end_round(thread);
            let into = &mut r.threads[thread];
            if into.lanes.keyed(rank, narrow(i)).hash != t.lanes.hash {
                return Err(RestoreError::Contradiction("its calls are not those that were recorded"));
            }
            into.resume_times(t, last, exits.get(i).copied().unwrap_or(0), sketches);
        }
        if let Some(shape) = sketches {
            (r.options.sketches, r.options.shape) = (true, shape);
        }
        Ok(r)
    }
}

fn adopt<T: Content + Clone>(
    into: &mut Registry<T>,
    table: &[Entry<T>],
    rank: u32,
) -> Result<(), RestoreError> {
    for e in table {
        let object = e.on(rank).ok_or(RestoreError::Contradiction("an object of no rank"))?;
        into.adopt(e.family, object.clone());
    }
    Ok(())
}
