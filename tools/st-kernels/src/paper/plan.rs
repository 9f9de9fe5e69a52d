//! What goes wrong on paper: ranks that are slow, and how long others wait for them, as simulation.rs finds it.

use st_model::num::Exact as _;

use crate::args::Slow;

/// Waits of a rank: which of its calls, from 1, and for how long, ns.
pub(super) type Waits = Vec<(u64, i64)>;

/// What goes wrong, and what others wait for then.
#[derive(Clone, Default, Debug)]
pub struct Plan {
    pub(super) slow: Vec<Slow>,
    /// By rank, if ranks wait for each other.
    pub(super) waits: Option<Vec<Waits>>,
}

impl Plan {
    /// How many times as long a rank computes.
    pub(super) fn pace(&self, rank: u32) -> f64 {
        self.slow.iter().filter(|slow| slow.rank == rank).map(|slow| slow.factor).product()
    }

    /// What a rank waits, if ranks wait for each other.
    pub(super) fn waits(&self, rank: u32) -> Option<&[(u64, i64)]> {
        let waits = self.waits.as_ref()?;
        Some(waits.get(rank.to_usize()).map_or(&[], |w| w))
    }
}
