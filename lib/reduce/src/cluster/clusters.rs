//! All clusters of a trace, rank by rank.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use st_model::form::Form;
use st_model::groups::{Group, groups};
use st_model::ranklist::RankList;
use st_model::section::Section;

use crate::cluster::options::{Options, Signatures};
use crate::cluster::paper;
use crate::cluster::representative::{Cluster, Drawn};
use crate::cluster::signature::call_path;
use crate::cluster::tolerance::Average;
use crate::tree::Reduce;

/// Puts ranks into clusters one at a time. *Memory:* per cluster its structure and what differs between its ranks; per rank
/// its times per symbol in two numbers.
#[derive(Debug, Default)]
pub struct Clusterer {
    options: Options,
    ranks: RankList,
    clusters: Vec<(Key, Cluster)>,
    index: HashMap<Key, usize, FixedState>,
}

/// Clustering as a reduction in a tree.
///
/// The published signatures and differences of counts that do not matter depend on who comes first among all ranks: there
/// the ranks stay as they are until all are known.
#[derive(Clone, Debug, Default)]
pub struct Clustering(pub Options);

impl Clustering {
    /// The clusters of the root's parts.
    ///
    /// # Errors
    ///
    /// If a rank is in two parts.
    pub fn root(&self, parts: Vec<Section>) -> Result<Clusters, Error> {
        Ok(self.gathered(parts, &|_| ())?.finish())
    }

    /// A clusterer of the root's parts; told is of how many ranks each of them is.
    ///
    /// # Errors
    ///
    /// If a rank is in two parts.
    pub fn gathered(&self, parts: Vec<Section>, tell: &dyn Fn(u64)) -> Result<Clusterer, Error> {
        gathered(parts, self.0.clone(), tell)
    }

    /// A clusterer of a block of ranks, whose [`Clusterer::finish_parts`] is what the tree has for the block; nothing if ranks
    /// stay as they are.
    #[must_use]
    pub fn block(&self) -> Option<Clusterer> {
        // Counts near each other are united at the root.
        let options = Options { tolerance: None, ..self.0.clone() };
        (self.0.signatures != Signatures::Paper).then(|| Clusterer::new(options))
    }
}

fn gathered(parts: Vec<Section>, options: Options, tell: &dyn Fn(u64)) -> Result<Clusterer, Error> {
    let mut clusterer = Clusterer::new(options);
    for section in parts {
        let ranks = section.ranks.len();
        clusterer.add_part(section)?;
        tell(ranks);
    }
    Ok(clusterer)
}

impl Reduce for Clustering {
    type Error = Error;

    fn join(&self, sections: Vec<Section>) -> Result<Vec<Section>, Error> {
        match self.block() {
            None => Ok(sections),
            Some(block) => Ok(gathered(sections, block.options, &|_| ())?.finish_parts()),
        }
    }
}

/// What ranks of a cluster have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Key {
    Exact(u128),
    /// Call path, parameters without counts, and counts: sum and number.
    Paper(u64, u64, (u64, u64)),
}

/// Why a section cannot be put into a cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Two sections hold the same rank.
    #[error("rank {0} is in more than one input; give each rank's stream once")]
    Duplicate(u32),
    /// A section holds several ranks, or parameters in forms that only merging gives them.
    #[error("holds merged ranks; cluster before merging")]
    Merged,
}

/// The rank of a section that holds one, as recorded.
///
/// # Errors
///
/// If it holds several, or parameters in forms that only merging gives them.
pub fn alone(section: &Section) -> Result<u32, Error> {
    let mut params = section.threads.iter().flat_map(|t| t.params.iter().flatten());
    match (section.ranks.len(), section.ranks.lowest()) {
        (1, Some(rank)) if section.is_plain() && params.all(|s| s.values.form == Form::Absolute) => Ok(rank),
        _ => Err(Error::Merged),
    }
}

/// The clusters of a trace.
#[derive(Debug, Default)]
pub struct Clusters {
    /// The representatives, by lowest rank: what each stands for is its ranks.
    pub sections: Vec<Section>,
    /// The main clusters and their sub-clusters, by lowest rank.
    pub table: Vec<Group>,
}

impl Clusterer {
    /// No rank yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// Keeps the exact times of no rank but the lowest of each main cluster from now on, nor of those that are there.
    pub fn drop_columns(&mut self) {
        if std::mem::take(&mut self.options.keep_columns) {
            self.clusters.iter_mut().for_each(|(_, cluster)| cluster.drop_columns());
        }
    }

    /// Adds a rank: those before it should have lower numbers.
    ///
    /// # Errors
    ///
    /// If the section holds more than one rank, or merged ones, or one that was added already.
    pub fn add(&mut self, section: Section) -> Result<(), Error> {
        let rank = alone(&section)?;
        if self.ranks.contains(rank) {
            return Err(Error::Duplicate(rank));
        }
        self.ranks.insert(rank);
        self.gather(section, rank);
        Ok(())
    }

    /// Adds what stands for a part of the ranks: clusters of [`Clustering`], whose ranks have not been added yet.
    ///
    /// # Errors
    ///
    /// If one has been.
    pub fn add_part(&mut self, section: Section) -> Result<(), Error> {
        let Some(first) = section.ranks.lowest() else { return Err(Error::Merged) };
        if let Some(twice) = section.ranks.iter().find(|r| self.ranks.contains(*r)) {
            return Err(Error::Duplicate(twice));
        }
        self.ranks.extend(&section.ranks);
        self.gather(section, first);
        Ok(())
    }

    fn gather(&mut self, section: Section, rank: u32) {
        let path = call_path(&section, rank);
        let key = match self.options.signatures {
            Signatures::Exact | Signatures::Reference => Key::Exact(path.value()),
            Signatures::Paper => self.published(&section, rank),
        };
        let at = *self.index.entry(key).or_insert_with(|| {
            self.clusters.push((key, Cluster::default()));
            self.clusters.len() - 1
        });
        self.clusters[at].1.add(section, path, &self.options);
    }

    fn published(&self, section: &Section, rank: u32) -> Key {
        let path = paper::call_path(section, rank);
        let parameters = paper::parameters(section, rank, &self.options);
        match self.options.tolerance {
            None => Key::Paper(path, parameters.value(), (0, 0)),
            Some(_) => Key::Paper(path, parameters.bits, (parameters.count.sum, parameters.count.n)),
        }
    }

    /// The clusters as sections that others will be added to.
    #[must_use]
    pub fn finish_parts(self) -> Vec<Section> {
        self.clusters.into_iter().map(|(_, cluster)| cluster.finish_part()).collect()
    }

    /// The clusters.
    #[must_use]
    pub fn finish(self) -> Clusters {
        self.finish_telling(&|_| ())
    }

    /// The clusters; told is how many ranks each of them has as it is done.
    #[must_use]
    pub fn finish_telling(self, tell: &dyn Fn(u64)) -> Clusters {
        let published = self.options.signatures == Signatures::Paper;
        let asked = self.options.asked;
        // With call paths as published.
        let mut clusters: Vec<(u64, Cluster)> = match published {
            true => near(self.clusters, &self.options),
            false => self.clusters.into_iter().map(|(_, c)| (0, c)).collect(),
        };
        let mut drawn = Drawn::default();
        for (_, c) in &mut clusters {
            c.settle();
            c.differing(&mut drawn);
        }
        let tolerance = self.options.tolerance.filter(|_| !published);
        let finish = |(path, c): (u64, Cluster)| {
            tell(c.ranks().len());
            (path, c.finish(tolerance, asked, &drawn))
        };
        let mut sections: Vec<(u64, Section)> = clusters.into_iter().map(finish).collect();
        sections.sort_by_key(|(_, s)| s.ranks.lowest());
        let table = match published {
            true => main_clusters(&sections),
            false => sections.iter().flat_map(|(_, s)| groups(s, asked)).collect(),
        };
        Clusters { sections: sections.into_iter().map(|(_, s)| s).collect(), table }
    }
}

/// Sub-clusters as published, with their call paths, those with counts near each other united.
fn near(clusters: Vec<(Key, Cluster)>, options: &Options) -> Vec<(u64, Cluster)> {
    // By call path and parameters without counts.
    let mut alike: BTreeMap<(u64, u64), Vec<(Average, Cluster)>> = BTreeMap::new();
    for (key, cluster) in clusters {
        if let Key::Paper(path, parameters, (sum, n)) = key {
            alike.entry((path, parameters)).or_default().push((Average { sum, n }, cluster));
        }
    }
    let mut out = Vec::new();
    for ((path, _), list) in alike {
        let vectors: Vec<Vec<Average>> = list.iter().map(|(a, _)| vec![*a]).collect();
        let each = || (0..list.len()).collect();
        let founders = options.tolerance.map_or_else(each, |t| t.founders(&vectors));
        let mut joined: BTreeMap<usize, Vec<Cluster>> = BTreeMap::new();
        for ((_, cluster), founder) in list.into_iter().zip(founders) {
            joined.entry(founder).or_default().push(cluster);
        }
        for mut group in joined.into_values() {
            group.sort_by_key(|c| c.ranks().lowest());
            let mut group = group.into_iter();
            let Some(mut first) = group.next() else { continue };
            group.for_each(|c| first.absorb(c, options));
            out.push((path, first));
        }
    }
    out
}

/// Main clusters of sub-clusters with their call paths.
fn main_clusters(subs: &[(u64, Section)]) -> Vec<Group> {
    let mut main: BTreeMap<u64, Group> = BTreeMap::new();
    for (path, section) in subs {
        let group = main.entry(*path).or_default();
        group.ranks.extend(&section.ranks);
        group.subs.push(section.ranks.clone());
    }
    let mut table: Vec<Group> = main.into_values().collect();
    table.sort_by_key(|g| g.ranks.lowest());
    table
}
