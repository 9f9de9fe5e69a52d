//! Elastic streams under construction: ranks gathered by the content of their streams.

use crate::num::narrow;
use std::collections::HashMap;

use crate::ints::Sealed;
use crate::ranklist::RankList;
use crate::section::{Elastic, Form, Partition, Streams};
use foldhash::fast::FixedState;

/// Classes that are tried before a stream is encoded.
const NEAR: usize = 4;

/// Streams and the ranks that have them.
#[derive(Debug, Default, Clone)]
pub struct Classes {
    list: Vec<(Sealed, RankList)>,
    index: HashMap<Sealed, usize, FixedState>,
    /// The class that a rank came to last: the next one's, as a rule.
    recent: usize,
}

impl Classes {
    /// Adds a rank's stream.
    pub fn add(&mut self, stream: Sealed, rank: u32) {
        self.entry(stream).insert(rank);
    }
    /// Adds a stream that several ranks share.
    pub fn add_all(&mut self, stream: Sealed, ranks: &RankList) {
        self.entry(stream).extend(ranks);
    }
    fn entry(&mut self, stream: Sealed) -> &mut RankList {
        if self.list.get(self.recent).is_none_or(|(s, _)| *s != stream) {
            self.recent = *self.index.entry(stream).or_insert_with_key(|s| {
                self.list.push((s.clone(), RankList::default()));
                self.list.len() - 1
            });
        }
        &mut self.list[self.recent].1
    }
    /// Adds a rank to the class that the last one came to, or to one of the first, if its stream is the same to `same`;
    /// whether there is such a class.
    pub fn join(&mut self, rank: u32, same: impl Fn(&Sealed) -> bool) -> bool {
        let near = std::iter::once(self.recent).chain(0..NEAR).filter(|i| *i < self.list.len());
        let mut found = near.filter(|i| same(&self.list[*i].0));
        if let Some(i) = found.next() {
            self.recent = i;
            self.list[i].1.insert(rank);
            return true;
        }
        false
    }
    /// Number of distinct streams.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }
    /// Whether no rank has a stream.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// The streams with their ranks.
    #[must_use]
    pub fn list(&self) -> &[(Sealed, RankList)] {
        &self.list
    }
    /// All ranks that have a stream.
    #[must_use]
    pub fn ranks(&self) -> RankList {
        let mut lists = self.list.iter().map(|(_, r)| r);
        let first = lists.next().cloned().unwrap_or_default();
        lists.fold(first, |a, r| a.union(r))
    }
    /// Words that the distinct streams take: what choosing between forms compares.
    #[must_use]
    pub fn cost(&self) -> usize {
        self.list.iter().map(|(s, r)| s.heap_words() + 1 + r.runs().len()).sum()
    }
}

/// The partitions of a section under construction, each stored once.
#[derive(Debug)]
pub struct Partitions {
    list: Vec<Partition>,
    index: HashMap<Vec<RankList>, u32>,
    /// Whether single classes keep their ranks.
    exact: bool,
}

impl Partitions {
    /// Starts with the partition of one class: all ranks.
    #[must_use]
    pub fn new(all: RankList) -> Self {
        let classes = vec![all];
        let index = HashMap::from([(classes.clone(), 0)]);
        Self { list: vec![Partition { classes }], index, exact: false }
    }
    /// Says of single classes, too, which ranks they have: for sections that others will be added to.
    #[must_use]
    pub fn exact(self) -> Self {
        Self { exact: true, ..self }
    }
    /// Makes an elastic stream of classes. A single class reads as all ranks, unless classes are exact: who never executes it
    /// never asks.
    pub fn elastic(&mut self, classes: Classes, form: Form) -> Elastic {
        let mut list = classes.list;
        if list.is_empty() {
            return Elastic { form, partition: 0, streams: [Sealed::zero().clone()].into() };
        }
        if list.len() == 1 && !self.exact {
            return Elastic { form, partition: 0, streams: list.into_iter().map(|(s, _)| s).collect() };
        }
        list.sort_by_key(|(_, r)| r.lowest());
        let (streams, ranks): (Streams, Vec<_>) = list.into_iter().unzip();
        Elastic { form, partition: self.number(ranks), streams }
    }
    /// The partition of only one class, which others than these ranks are not in.
    pub fn only(&mut self, ranks: RankList) -> u32 {
        self.number(vec![ranks])
    }
    fn number(&mut self, classes: Vec<RankList>) -> u32 {
        let next = narrow(self.list.len());
        *self.index.entry(classes).or_insert_with_key(|classes| {
            self.list.push(Partition { classes: classes.clone() });
            next
        })
    }
    /// The partitions so far, by index.
    #[must_use]
    pub fn list(&self) -> &[Partition] {
        &self.list
    }
    /// The partitions, by index.
    #[must_use]
    pub fn into_list(self) -> Vec<Partition> {
        self.list
    }
}
