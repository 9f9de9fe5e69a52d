//! What ranks are taken together by.

use std::collections::{BTreeMap, BTreeSet};

use st_explain::Analysis;
use st_model::section::Section;

use crate::clusters;

/// What ranks are taken together by: each with its name, and of each rank its number.
#[derive(Clone, Debug)]
pub(crate) struct RankGroups {
    pub(crate) names: Vec<String>,
    of: BTreeMap<u32, usize>,
}

impl RankGroups {
    /// Those of the trace, and others.
    pub(crate) fn ranks(sections: &[Section], others: impl Iterator<Item = u32>) -> Self {
        let ranks: BTreeSet<u32> = sections.iter().flat_map(|s| s.ranks.iter()).chain(others).collect();
        let names = ranks.iter().map(u32::to_string).collect();
        Self { names, of: ranks.into_iter().zip(0..).collect() }
    }

    /// Hosts, by their lowest ranks.
    pub(crate) fn nodes<'a>(sections: impl IntoIterator<Item = &'a Section>) -> Self {
        let hosts = sections.into_iter().flat_map(|s| &s.hosts);
        let mut of: BTreeMap<u32, &str> = BTreeMap::new();
        hosts.for_each(|(host, ranks)| of.extend(ranks.iter().map(|rank| (rank, host.as_str()))));
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let mut names = Vec::new();
        let mut number = |host| {
            *numbers.entry(host).or_insert_with(|| {
                names.push(host.to_owned());
                names.len() - 1
            })
        };
        let of = of.into_iter().map(|(rank, host)| (rank, number(host))).collect();
        Self { names, of }
    }

    /// Main clusters, as the trace stores them ([`clusters::mains`]).
    pub(crate) fn clusters(sections: &[Section], asked: bool) -> Self {
        let mains = clusters::mains(sections, asked);
        let ranks = mains.iter().enumerate().flat_map(|(i, main)| {
            let ranks = main.subs.iter().flat_map(|sub| sub.ranks.iter());
            ranks.map(move |rank| (rank, i)).collect::<Vec<_>>()
        });
        Self { of: ranks.collect(), names: (0..mains.len()).map(|i| i.to_string()).collect() }
    }

    /// What all are called, and the number of each rank of the analysis, in its order.
    pub(crate) fn rows(mut self, analysis: &Analysis) -> (Vec<String>, Vec<usize>) {
        let of = analysis.ranks.iter().map(|of| self.number(of.rank)).collect();
        (self.names, of)
    }

    /// The number of a rank; ranks that the trace does not hold get one after all others when they are first met.
    pub(crate) fn number(&mut self, rank: u32) -> usize {
        let Self { names, of } = self;
        *of.entry(rank).or_insert_with(|| {
            names.push(format!("(rank {rank})"));
            names.len() - 1
        })
    }
}
