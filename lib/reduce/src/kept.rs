//! What a merged trace keeps of times, once all ranks are in it.

use st_model::header::{Header, RANK_SUMS, SKETCH_ERROR};
use st_model::section::Section;
use st_model::sketch::Shape;
use st_model::unite::one_path;

use crate::cluster::Tolerance;
use crate::distributions::{ERROR, LEAST, keep_quantiles};
use crate::rank_sums::{EACH, keep_rank_sums};

/// What stays as ranks have recorded it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Buckets of 1 %, in place of durations at fixed ranks.
    pub buckets: bool,
    /// What an event takes less of every rank's time than where number, sum and deviation are kept only, with durations at fixed
    /// ranks.
    pub least: Tolerance,
    /// How far durations at fixed ranks may be from what was recorded.
    pub error: Tolerance,
    /// One distribution of an event, whatever call came before.
    pub one_path: bool,
    /// The total times of every event on every rank.
    pub rank_sums: bool,
}

impl Default for Kept {
    fn default() -> Self {
        Self { buckets: false, least: LEAST, error: ERROR, one_path: false, rank_sums: false }
    }
}

impl Kept {
    /// Leaves out what is not kept; the header says so of what the section does not show.
    pub fn apply(&self, section: &mut Section, header: &mut Header) {
        if self.one_path {
            for thread in &mut section.threads {
                thread.sketches = one_path(std::mem::take(&mut thread.sketches));
            }
        }
        // What matters to a rank is told by its totals, as they are recorded.
        if !self.buckets {
            // What was kept before is no better for being merged again.
            let before = header.options.get(SKETCH_ERROR).and_then(|said| said.as_str()?.parse().ok());
            let before: Option<Tolerance> = before.or_else(|| is_kept(section).then_some(ERROR));
            let error = before.map_or(self.error, |before| before.max(self.error));
            keep_quantiles(section, self.least, self.error);
            if error != ERROR {
                header.options.insert(SKETCH_ERROR.to_owned(), error.to_string().into());
            }
        }
        if !self.rank_sums && keep_rank_sums(section) {
            let how =
                if section.ranks.len() > EACH { "means of runs of ranks" } else { "where ranks differ" };
            header.options.insert(RANK_SUMS.to_owned(), how.into());
        }
    }
}

/// Whether some distributions are durations at fixed ranks.
fn is_kept(section: &Section) -> bool {
    let paths = section.threads.iter().flat_map(|thread| &thread.sketches);
    paths.flat_map(|path| [&path.compute, &path.comm]).any(|sketch| sketch.shape() == Shape::Quantiles)
}
