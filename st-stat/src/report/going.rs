//! What a page says that is made anew while its program runs.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use st_cli::counted;
use st_model::num::saturate;
use st_model::ranklist::RankList;

use super::data::Live;
use crate::table::{duration, grouped};

/// How many times as long as a page takes to be made is waited for the next, at least: of one processor it is a quarter.
pub(super) const IDLE: u32 = 3;

/// A page that will be made anew.
#[derive(Clone, Copy, Debug)]
pub(super) struct Going<'a> {
    /// Ranks that record now.
    pub(super) ranks: &'a RankList,
    /// From one page to the next, at least.
    pub(super) every: Duration,
    /// Since when this one is made.
    pub(super) begun: Instant,
    /// Which job of a script it is, and the highest number of those that have come.
    pub(super) job: (usize, usize),
}

impl Going<'_> {
    /// What the page says of it. `reaches`: until when after its beginning the run is there, ns, if that is known; ranks that are
    /// there, and those of the job.
    pub(super) fn live(&self, reaches: Option<u64>, there: u64, world: u32) -> Live {
        let mut told = "running: ".to_owned();
        let (job, jobs) = self.job;
        if jobs > 1 {
            told += &format!("job {job} of {jobs} so far, ");
        }
        if let Some(ns) = reaches {
            told += &format!("state at {}, ", duration(ns));
        }
        told += &format!("{} of {}", grouped(there), counted(world.into(), "rank"));
        let ended = there.saturating_sub(self.ranks.len());
        if ended > 0 {
            told += &format!(", {} of these ended", grouped(ended));
        }
        // The next is there after a pause by how long this one takes, and as long again.
        let next = self.every.max(self.begun.elapsed().saturating_mul(IDLE + 1));
        let written = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Live { told, written_ms: saturate(written.as_millis()), every_ms: saturate(next.as_millis()) }
    }
}
