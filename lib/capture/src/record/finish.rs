//! The trace of a rank whose program has ended, or goes on.

use super::sequence::{SequenceRecorder, SequenceTimes};
use super::{Fold, Folded, Folder, RankRecorder};
use st_model::calls::Lane;
use st_model::ints::Sealed;
use st_model::objects::{Content, Registry};
use st_model::ranklist::RankList;
use st_model::section::{Entry, Partition, Section, Tables, Thread};
use st_model::tree::FlatTree;
use st_stream::LeftOut;
use std::mem;

/// A rank's trace, for who writes it.
#[derive(Debug)]
pub struct Finished {
    /// The trace. Exact times are not in it: they left in chunks.
    pub section: Section,
    /// Whether the tree of any thread is one that only [`Fold::Approx`] finds.
    pub approximate: bool,
    /// What stands for its sketches, if these have been left out.
    pub left_out: Option<LeftOut>,
    times: Vec<SequenceTimes>,
}

impl Finished {
    /// Makes the sketches after all, if they have been left out: exact times could not be kept.
    pub fn sketch(&mut self) {
        let rank = self.section.ranks.lowest().unwrap_or_default();
        let times = mem::take(&mut self.times).into_iter();
        self.section.threads.iter_mut().zip(times).for_each(|(t, times)| t.sketches = times.sketches(rank));
        self.left_out = None;
    }
}

impl RankRecorder {
    /// The rank's trace. Exact times are not in it: they left in chunks.
    #[must_use]
    pub fn finish(self, host: &str) -> Section {
        self.finish_for_writing(host, false).section
    }

    /// As [`RankRecorder::finish`], for who writes the trace and needs it for nothing else. If `timed`, all exact times have been
    /// written: then sketches are left out that whoever reads makes of these as fast.
    #[must_use]
    pub fn finish_for_writing(self, host: &str, timed: bool) -> Finished {
        let (none, mut approximate) = (self.options.fold == Fold::None, false);
        let finished = self.finish_by(host, timed, |folded| {
            if none {
                return folded.flatten();
            }
            let chosen = folded.smallest();
            approximate |= chosen.approximate;
            chosen.tree
        });
        Finished { approximate, ..finished }
    }

    pub(super) fn finish_by(
        mut self,
        host: &str,
        timed: bool,
        mut tree: impl FnMut(Folded) -> (FlatTree, Vec<Sealed>),
    ) -> Finished {
        let threads = mem::take(&mut self.threads);
        let finish = |(i, t)| self.finish_thread(i, t, |folder| tree(folder.finish()));
        let (threads, times): (Vec<_>, Vec<_>) = threads.into_iter().enumerate().map(finish).unzip();
        let section = self.section(host, threads);
        let told = || times.iter().map(|t| t.sketched(self.options.shape)).collect::<Option<Vec<_>>>();
        let left_out = if timed { told().and_then(|told| LeftOut::of(&section, &told)) } else { None };
        let sketched = left_out.is_none();
        let mut finished = Finished { section, approximate: false, left_out, times };
        if sketched {
            finished.sketch();
        }
        finished
    }

    /// The trace of a thread, which may be a copy for this purpose, without its sketches; and what these are made of.
    pub(super) fn finish_thread(
        &self,
        index: usize,
        mut t: SequenceRecorder,
        tree: impl FnOnce(Folder) -> (FlatTree, Vec<Sealed>),
    ) -> (Thread, SequenceTimes) {
        // Exact times have been taken out.
        t.enter_tape(&self.infos, self.sketched(), &self.objects);
        t.end_round(&self.infos);
        let (mut thread, times) = t.finish(self.rank, index, &self.infos, tree);
        thread.lanes.voided |= if self.sites_differ { 1 << Lane::Site as u8 } else { 0 };
        (thread, times)
    }

    pub(super) fn section(&self, host: &str, threads: Vec<Thread>) -> Section {
        let ranks = RankList::single(self.rank);
        let objects = &self.objects;
        Section {
            hosts: vec![(host.to_owned(), ranks.clone())],
            sites: self.sites.clone(),
            tables: Tables {
                comms: entries(&objects.comms, &ranks),
                groups: entries(&objects.groups, &ranks),
                types: entries(&objects.types, &ranks),
                ops: entries(&objects.ops, &ranks),
                wins: entries(&objects.wins, &ranks),
                files: entries(&objects.files, &ranks),
                texts: entries(&objects.texts, &ranks),
                names: self.names.iter().map(|(n, id)| (*id, n.clone())).collect(),
            },
            symbols: self.symbols.clone(),
            partitions: vec![Partition { classes: vec![ranks.clone()] }],
            ranks,
            threads,
            ended: Vec::new(),
        }
    }
}

fn entries<T: Content + Clone>(registry: &Registry<T>, ranks: &RankList) -> Vec<Entry<T>> {
    registry
        .entries()
        .iter()
        .map(|e| Entry { family: e.family, of: vec![(ranks.clone(), e.object.clone())] })
        .collect()
}
