//! What goes wrong on paper: ranks that are slow, noise, and how long others wait for it, as simulation.rs finds it.

use std::collections::HashMap;

use st_model::num::Exact as _;

/// Waits of a rank: which of its calls, from 1, and for how long, ns.
pub(super) type Waits = Vec<(u64, i64)>;

/// What goes wrong, and what others wait for then.
#[derive(Clone, Default, Debug)]
pub struct Plan {
    /// How many times as long slow ranks compute.
    pub(super) slow: HashMap<u32, f64>,
    /// By what part computing takes longer or shorter, by rank and again each time: one standard deviation of each.
    pub(super) noise: f64,
    /// By rank, if ranks wait for each other.
    pub(super) waits: Option<Vec<Waits>>,
}

impl Plan {
    /// How many times as long a rank computes.
    pub(super) fn pace(&self, rank: u32) -> f64 {
        self.slow.get(&rank).copied().unwrap_or(1.0)
    }

    /// What a rank waits, if ranks wait for each other.
    pub(super) fn waits(&self, rank: u32) -> Option<&[(u64, i64)]> {
        let waits = self.waits.as_ref()?;
        Some(waits.get(rank.to_usize()).map_or(&[], |w| w))
    }
}
