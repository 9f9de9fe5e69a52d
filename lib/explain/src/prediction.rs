//! What a run would take under other conditions ([`crate::predict`]).

use std::collections::BTreeSet;

use st_model::num::saturate;
use st_model::project::Error;
use st_model::section::Section;

use crate::analysis::Analysis;
use crate::predict::{
    Calls, Changed, Means, Model, Recorded, RunStep, Scenario, Seeing, Steps, Summing, Walk,
};
use crate::search::{Tell, analyse_steps};
use crate::transfers::Transfers;

impl Transfers {
    /// Measures the messages of a trace with exact times.
    ///
    /// *Cost:* that of [`crate::analyse`].
    ///
    /// # Errors
    ///
    /// If a rank cannot be read back.
    pub fn of(sections: &[Section], tell: Tell<'_>) -> Result<Self, Error> {
        let (_, mut steps) = analyse_steps(sections, Steps::measured(false), tell)?;
        Ok(steps.measures().transfers)
    }
}

/// Scenarios that are walked through at a time.
const AT_ONCE: usize = 8;

/// A trace of which can be said what it would take.
#[derive(Debug)]
pub struct Prediction {
    nodes: Vec<u32>,
    steps: Vec<RunStep>,
    begin: i64,
    model: Model,
    calls: Calls,
}

impl Prediction {
    /// Finds what happens in a trace with exact times, and a network that explains it.
    ///
    /// *Cost:* O(words + calls · log threads) time; memory: 40 bytes per call, and
    /// 128 per message and 160 per part in a collective operation, and 64 more per message of more than 4 KiB,
    /// or one that a call of 1 ms or more completes.
    ///
    /// # Errors
    ///
    /// If a rank cannot be read back.
    pub fn of(sections: &[Section], tell: Tell<'_>) -> Result<(Analysis, Self), Error> {
        let (analysis, mut told) = analyse_steps(sections, Steps::measured(true), tell)?;
        let model = told.measures().model();
        let Steps { nodes, kept, .. } = told;
        let steps = kept.unwrap_or_default();
        let mut walk = Walk::new([model.network], Seeing::default(), nodes.clone());
        steps.iter().for_each(|step| walk.step(step));
        walk.finish();
        let bound = walk.pace.bound;
        let mut walk = Walk::new([model.network], Recorded::new(&bound), nodes.clone());
        steps.iter().for_each(|step| walk.step(step));
        walk.finish();
        let calls = Calls { own: walk.pace.own(), bound };
        let begin = analysis.begin();
        Ok((analysis, Self { nodes, steps, begin, model, calls }))
    }

    /// The network that the trace was recorded on.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// How many nodes ranks are on.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.iter().collect::<BTreeSet<_>>().len()
    }

    /// What the run would take, from the first rank's beginning to the last one's end, ns, under each of some conditions.
    ///
    /// *Cost:* O(steps) for every eight of them.
    #[must_use]
    pub fn times(&self, scenarios: &[Scenario]) -> Vec<u64> {
        let means = self.means(scenarios);
        scenarios.chunks(AT_ONCE).flat_map(|some| self.some(some, &means)).collect()
    }

    fn means(&self, scenarios: &[Scenario]) -> Means {
        let places: Vec<u32> = scenarios.iter().flat_map(|s| &s.balanced).copied().collect();
        let any = !places.is_empty();
        let mut walk = Walk::new([], Summing::of(places), self.nodes.clone());
        self.steps.iter().filter(|_| any).for_each(|step| walk.step(step));
        walk.pace.means()
    }

    /// Of at most so many as are walked through at a time.
    fn some(&self, scenarios: &[Scenario], means: &Means) -> Vec<u64> {
        let Some(last) = scenarios.last() else { return Vec::new() };
        let lanes: [&Scenario; AT_ONCE] = std::array::from_fn(|k| scenarios.get(k).unwrap_or(last));
        let pace = Changed::new(&self.model.network, &self.calls, means, &lanes);
        let mut walk = Walk::new(lanes.map(|s| s.network), pace, self.nodes.clone());
        self.steps.iter().for_each(|step| walk.step(step));
        let ends = walk.finish();
        ends[..scenarios.len()].iter().map(|end| saturate(end.saturating_sub(self.begin))).collect()
    }
}
