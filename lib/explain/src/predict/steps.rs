//! Who hears of the steps of a trace while they are found.

use st_model::num::Exact as _;

use super::measure::Measures;
use super::network::Network;
use super::step::{Reach, RunStep};
use super::walk::{Computing, Walk};
use crate::sizes::Sizes;

/// Where the search tells its steps to.
#[derive(Debug)]
pub(crate) struct Steps {
    /// Number of the node of each thread.
    pub(crate) nodes: Vec<u32>,
    ideal: Walk<1, Computing>,
    /// What messages take, if that is measured.
    measures: Option<Box<Walk<1, Measures>>>,
    /// All steps, if they are kept.
    pub(crate) kept: Option<Vec<RunStep>>,
}

impl Default for Steps {
    fn default() -> Self {
        let ideal = Walk::new([Network::IDEAL], Computing, Vec::new());
        Self { nodes: Vec::new(), ideal, measures: None, kept: None }
    }
}

impl Steps {
    /// What messages take is measured, and all steps are kept if that is asked for.
    pub(crate) fn measured(keep: bool) -> Self {
        let measures = Walk::new([Network::IDEAL], Measures::default(), Vec::new());
        Self { measures: Some(Box::new(measures)), kept: keep.then(Vec::new), ..Self::default() }
    }

    #[inline]
    pub(crate) fn tell(&mut self, step: RunStep) {
        self.ideal.step(&step);
        self.measures.iter_mut().for_each(|measures| measures.step(&step));
        self.kept.iter_mut().for_each(|kept| kept.push(step));
    }

    /// The next thread is there, on a node.
    pub(crate) fn add_thread(&mut self, node: u32) {
        self.nodes.push(node);
        self.ideal.add_thread(node);
        self.measures.iter_mut().for_each(|measures| measures.add_thread(node));
    }

    /// Whether threads are on different nodes.
    pub(crate) fn far(&self, threads: [u32; 2]) -> bool {
        let [a, b] = threads.map(|thread| self.nodes.get(thread.to_usize()));
        a != b
    }

    /// It is known of which sizes messages wait for their other ends: the others do not move only together.
    pub(crate) fn learn(&mut self, sizes: &Sizes) {
        let waits = |step: &RunStep| match step {
            RunStep::Reach(Reach { size: Some(size), .. }) => sizes.wait(*size),
            _ => true,
        };
        self.kept.iter_mut().for_each(|kept| kept.retain(waits));
        self.measures.iter_mut().for_each(|walk| walk.pace.shortest = sizes.shortest());
    }

    /// What has been measured: nothing if that was not asked for.
    pub(crate) fn measures(&mut self) -> Measures {
        let mut walk = self.measures.take();
        walk.iter_mut().for_each(|walk| _ = walk.finish());
        walk.map(|walk| walk.pace).unwrap_or_default()
    }

    /// When the last thread is at its end on an ideal network, ns.
    pub(crate) fn ideal(&mut self) -> i64 {
        self.ideal.finish()[0]
    }
}
