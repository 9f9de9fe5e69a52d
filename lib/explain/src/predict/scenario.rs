//! What a run could be like.

use std::collections::{BTreeMap, BTreeSet};

use super::network::Network;

/// Conditions of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// The network.
    pub network: Network,
    /// Calls take what they took beyond waiting when they were recorded; else nothing.
    pub calls: bool,
    /// Places before whose calls ranks compute so many times as fast.
    pub faster: BTreeMap<u32, f64>,
    /// Places before whose n-th calls all ranks that make so many compute equally long: the mean of these ranks.
    pub balanced: BTreeSet<u32>,
}

impl Scenario {
    /// Nothing but a network.
    #[must_use]
    pub fn on(network: Network) -> Self {
        Self { network, calls: true, faster: BTreeMap::new(), balanced: BTreeSet::new() }
    }

    /// A network without latency and with infinite bandwidth, on which calls take nothing but waiting for others: what
    /// [`crate::Efficiency::ideal`] is.
    #[must_use]
    pub fn ideal() -> Self {
        Self { calls: false, ..Self::on(Network::IDEAL) }
    }
}
