//! The merge of sections.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::calls::Lane;
use st_model::columns::Column;
use st_model::lanes::LaneSum;
use st_model::num::Exact as _;
use st_model::ranklist::RankList;
use st_model::section::{Ended, Section, Sym, Thread, number_anew};
use st_model::steps::Budget;

use crate::lossy::Lossy;
use crate::merge::Tell;
use crate::merge::error::Error;
use crate::merge::layout::{Layout, laid_out};
use crate::merge::master::{Loops, Master};
use crate::merge::params::{Adding, Params, paid};
use crate::merge::predicted;
use crate::merge::renumber::{first_appearance, renumbered};
use crate::merge::slots::{REVIEW, REVIEW_PART};
use crate::merge::tags::Tags;
use crate::user::Param;
use st_model::unite::Partitions;
use st_model::unite::Times;
use st_model::unite::{Renaming, United};
use st_stream::structure_size;

/// Loops in each other at most: programs have some, and what is folded of n calls has no more than log n.
const DEEPEST: usize = 256;

/// Merges sections one at a time. *Memory:* the merged structure and what differs between ranks.
#[derive(Clone, Debug, Default)]
pub struct Merger {
    keep_columns: bool,
    /// What is known of tags, if they may be left out.
    tags: Option<Tags>,
    /// Whether tags have been left out of the sections so far.
    without_tags: Option<bool>,
    /// What times are rounded to, ns; 0 is not at all.
    rounding: u32,
    lossy: Lossy,
    budget: Budget,
    /// Whether these are some of the ranks: forms are left to those who see all, as far as there is room for it.
    part: bool,
    loops: Loops,
    layout: Layout,
    users: Vec<Param>,
    ranks: RankList,
    hosts: HashMap<String, RankList, FixedState>,
    united: United,
    threads: Vec<ThreadMerger>,
    ended: Vec<Ended>,
}

#[derive(Clone, Debug, Default)]
struct ThreadMerger {
    ranks: RankList,
    master: Master,
    params: Params,
    times: Times,
    lanes: LaneSum,
    columns: Vec<(u32, Column)>,
}

impl Merger {
    /// A merger that keeps exact times, or leaves them out (sketches hold what is needed of them).
    #[must_use]
    pub fn new(keep_columns: bool) -> Self {
        Self { keep_columns, ..Self::default() }
    }

    /// Uses expressions for parameters where they are worth it.
    #[must_use]
    pub fn with(mut self, params: Vec<Param>) -> Self {
        self.users = params;
        self
    }

    /// Finds out whether tags can be left out: see [`Merger::drop_tags`]. Say so before the first section is added.
    #[must_use]
    pub fn watching_tags(mut self, watch: bool) -> Self {
        self.tags = watch.then(Tags::default);
        self
    }

    /// Leaves tags out (0 in the place of each) if no two messages from one rank to another in one communicator can be told
    /// apart by them, and no receives from any source are told apart; and voids their lane.
    ///
    /// # Errors
    ///
    /// Why they are needed, in words: the trace keeps them.
    pub fn drop_tags(&mut self) -> Result<(), String> {
        let emptied = self.tags.take().unwrap_or_default().finish()?;
        for (thread, streams) in self.threads.iter_mut().zip(emptied) {
            thread.params.replace(streams);
            thread.lanes.voided |= 1 << Lane::Tag as u8;
        }
        Ok(())
    }

    /// Makes histograms of parameters where that is asked for, and voids their lanes: see [`Lossy`]. Say so before the first
    /// section is added.
    #[must_use]
    pub fn with_loss(mut self, lossy: Lossy) -> Self {
        self.lossy = lossy;
        self
    }

    /// Rounds times that are kept to multiples of so many ns ([`Column::rounded`]).
    #[must_use]
    pub fn rounding(mut self, ns: u32) -> Self {
        self.rounding = ns;
        self
    }

    /// Refuses sections of many ranks that would take more steps.
    #[must_use]
    pub fn within(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Says that these are some of the ranks: see [`Merger::finish_part`].
    #[must_use]
    pub fn of_part(mut self) -> Self {
        self.part = true;
        self
    }

    /// Unites loops so.
    #[must_use]
    pub fn loops(mut self, loops: Loops) -> Self {
        self.loops = loops;
        self
    }

    /// Lays control out so.
    #[must_use]
    pub fn layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// The expressions, which know whether they were met.
    #[must_use]
    pub fn params(&self) -> &[Param] {
        &self.users
    }

    /// Adds a section.
    ///
    /// # Errors
    ///
    /// If it holds a rank that has been added already, has tags where others have none, or has histograms of parameters that
    /// others hold in another form, or takes more steps than are allowed: nothing can be added any more then.
    pub fn add(&mut self, section: Section) -> Result<(), Error> {
        if let Some(twice) = section.ranks.iter().find(|&r| self.ranks.contains(r)) {
            return Err(Error::Duplicate(twice));
        }
        let without = section.threads.iter().any(|t| t.lanes.is_voided(Lane::Tag));
        if *self.without_tags.get_or_insert(without) != without {
            return Err(Error::Tags);
        }
        if section.ranks.len() == 1 {
            self.budget.allow(paid(&section.threads));
        }
        self.ranks.extend(&section.ranks);
        for (host, ranks) in &section.hosts {
            match self.hosts.get_mut(host) {
                Some(r) => r.extend(ranks),
                None => drop(self.hosts.insert(host.clone(), ranks.clone())),
            }
        }
        let renaming = self.united.number(&section);
        if let Some(tags) = &mut self.tags {
            tags.add(&section, &renaming);
        }
        if self.threads.len() < section.threads.len() {
            let master = || Master::new(self.loops);
            let new = || ThreadMerger { master: master(), ..ThreadMerger::default() };
            self.threads.resize_with(section.threads.len(), new);
        }
        let review = if self.part { REVIEW_PART } else { REVIEW };
        for (i, (into, thread)) in self.threads.iter_mut().zip(&section.threads).enumerate() {
            let how = Adding { users: &self.users, lossy: &self.lossy, review, budget: &self.budget };
            into.add(&section, i, thread, &renaming, &how)?;
        }
        self.united.take(section.tables);
        let to = |s: Sym| renaming.symbols.get(s as usize).copied().unwrap_or(s);
        self.ended.extend(section.ended.iter().map(|e| Ended {
            last: to(e.last),
            inside: to(e.inside),
            ..*e
        }));
        if self.keep_columns {
            for (into, thread) in self.threads.iter_mut().zip(section.threads) {
                let columns = thread.columns.into_iter();
                into.columns.extend(columns.map(|(rank, column)| (rank, column.rounded(self.rounding))));
            }
        }
        Ok(())
    }

    /// Parts that [`Merger::finish_with`] tells of: parameters of symbols have to be looked at, and ranks to be read back.
    #[must_use]
    pub fn parts(&self) -> u64 {
        self.threads.iter().map(|t| t.params.symbols().to_u64().saturating_add(t.ranks.len())).sum()
    }

    /// The merged section: symbols in the order in which the merged trees name them first.
    #[must_use]
    pub fn finish(self) -> Section {
        self.finish_with(1, &|_| ())
    }

    /// As [`Merger::finish`], with so many threads; tells how many more of its parts are done.
    #[must_use]
    pub fn finish_with(self, jobs: usize, tell: Tell<'_>) -> Section {
        if !self.lossy.is_where_smaller() {
            return self.finished(jobs, tell);
        }
        let mut exact = self.clone();
        exact.threads.iter_mut().for_each(|t| t.params.keep());
        let (exact, drawn) = (exact.finished(jobs, &|_| ()), self.finished(jobs, tell));
        // What rules predict takes no room in the end, and packing helps one of them more.
        if structure_size(&drawn) < structure_size(&exact) { drawn } else { exact }
    }

    fn finished(mut self, jobs: usize, tell: Tell<'_>) -> Section {
        for t in &mut self.threads {
            t.params.review(jobs, tell);
            t.lanes.voided |= t.params.voided();
        }
        let (partitions, budget) = (Partitions::new(self.ranks.clone()), self.budget.clone());
        let mut section = self.section(partitions, true);
        predicted::predict(&mut section, jobs, &budget, tell);
        section
    }

    /// The ranks so far as a section that will be added to others: forms are left to those who see all ranks, and classes
    /// have just the ranks that were added to them.
    #[must_use]
    pub fn finish_part(self) -> Section {
        let partitions = Partitions::new(self.ranks.clone()).exact();
        self.section(partitions, false)
    }

    /// The section, the last one or one that others will be added to.
    fn section(mut self, mut partitions: Partitions, last: bool) -> Section {
        let mut trees = Vec::new();
        for t in &mut self.threads {
            trees.push(std::mem::take(&mut t.master).finish(&t.ranks, &mut partitions));
        }
        if last {
            let threads: Vec<&RankList> = self.threads.iter().map(|t| &t.ranks).collect();
            (trees, partitions) = laid_out(self.layout, (trees, partitions), &self.ranks, &threads);
        }
        let (order, numbers) = first_appearance(trees.iter().map(|(t, _)| t), self.united.symbols().len());
        let number = |sym: Sym| number_anew(sym, |s| numbers.get(&s).copied().unwrap_or(s));
        let mut threads = Vec::new();
        for (t, (tree, counts)) in self.threads.into_iter().zip(trees) {
            let (sketches, sums) =
                if last { t.times.finish(number, &t.ranks) } else { t.times.finish_part(number, &t.ranks) };
            let mut columns = t.columns;
            columns.sort_by_key(|c| c.0);
            threads.push(Thread {
                tree: renumbered(&tree, number),
                counts,
                params: t.params.finish(&order, &mut partitions),
                lanes: t.lanes,
                sketches,
                sums,
                slow: Vec::new(),
                columns,
                ranks: t.ranks,
            });
        }
        let (sites, symbols, tables) = self.united.finish(&order);
        let mut hosts: Vec<_> = self.hosts.into_iter().collect();
        hosts.sort_unstable_by(|(a, r), (b, s)| (r.lowest(), a).cmp(&(s.lowest(), b)));
        for e in &mut self.ended {
            (e.last, e.inside) = (number(e.last), number(e.inside));
        }
        self.ended.sort_unstable_by_key(|e| (e.rank, e.thread));
        Section {
            ranks: self.ranks,
            hosts,
            sites,
            tables,
            symbols,
            partitions: partitions.into_list(),
            threads,
            ended: self.ended,
        }
    }
}

impl ThreadMerger {
    fn add(
        &mut self,
        section: &Section,
        index: usize,
        thread: &Thread,
        renaming: &Renaming,
        how: &Adding<'_>,
    ) -> Result<(), Error> {
        let to = |s: Sym| renaming.symbols.get(s as usize).copied().unwrap_or(s);
        self.ranks.extend(&thread.ranks);
        // To align trees takes going down in them, and time with the square of their depth.
        if thread.tree.depth() > DEEPEST {
            return Err(Error::Deep(DEEPEST));
        }
        self.master.add(&renumbered(&thread.tree, to), &thread.counts, &section.partitions, &thread.ranks);
        if self.master.depth() > DEEPEST {
            return Err(Error::Deep(DEEPEST));
        }
        self.params.add(section, index, thread, renaming, how)?;
        self.times.add(thread, renaming);
        self.lanes.merge(&thread.lanes);
        Ok(())
    }
}

/// Merges sections.
///
/// # Errors
///
/// If two hold the same rank.
pub fn merge(sections: impl IntoIterator<Item = Section>, keep_columns: bool) -> Result<Section, Error> {
    let mut m = Merger::new(keep_columns);
    for s in sections {
        m.add(s)?;
    }
    Ok(m.finish())
}
