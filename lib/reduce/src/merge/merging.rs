//! The merge as a reduction in a tree: parts without what only the root can know.

use st_model::section::Section;
use st_model::steps::Budget;

use super::alike::Alike;
use super::error::Error;
use super::master::Loops;
use super::merger::Merger;
use crate::lossy::Lossy;
use crate::tree::Reduce;
use crate::user::Param;

/// How sections are merged.
#[derive(Debug, Clone, Default)]
pub struct Merging {
    /// Whether exact times are kept.
    pub keep_columns: bool,
    /// What these are rounded to multiples of, ns; 0 is not at all.
    pub rounding: u32,
    /// How loops are united.
    pub loops: Loops,
    /// Expressions for parameters.
    pub users: Vec<Param>,
    /// What becomes a histogram.
    pub lossy: Lossy,
    /// Whether tags may be left out.
    pub watch_tags: bool,
    /// What may be done rank by rank; ranks that come alone are paid for by their bytes.
    pub budget: Budget,
}

impl Merging {
    fn merger(&self) -> Merger {
        let merger = Merger::new(self.keep_columns).within(self.budget.clone());
        merger.rounding(self.rounding).loops(self.loops).with(self.users.clone())
    }

    /// A block of ranks, that is merged at once if they are alike.
    #[must_use]
    pub fn alike(&self) -> Alike {
        Alike::new(self.keep_columns, self.rounding, self.budget.clone())
    }

    /// The merger of the root's parts.
    #[must_use]
    pub fn root(&self) -> Merger {
        self.merger().watching_tags(self.watch_tags).with_loss(self.lossy.clone())
    }
}

impl Reduce for Merging {
    type Error = Error;

    fn join(&self, sections: Vec<Section>) -> Result<Vec<Section>, Error> {
        let mut merger = self.merger().of_part();
        sections.into_iter().try_for_each(|s| merger.add(s))?;
        Ok(vec![merger.finish_part()])
    }
}
