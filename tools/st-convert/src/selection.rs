//! Which calls of a trace are asked for.

use anyhow::{Result, bail};
use st_cli::UsageError;
use st_model::ranklist::RankList;
use st_model::ranklist_notation::plain;

use crate::choice::Chosen;
use crate::trace::Trace;
use crate::window::Window;

/// Which calls are asked for.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Of these ranks; else of all.
    pub ranks: Option<RankList>,
    /// That end after this time, in seconds from when the first rank entered `MPI_Init`.
    pub from: Option<f64>,
    /// That begin before this time.
    pub until: Option<f64>,
    /// Of these functions of MPI; if empty, of all.
    pub functions: Vec<String>,
    /// And of these functions and call sites, by the texts that are printed of them; if empty, of all.
    pub sites: Vec<String>,
    /// In phases of this level of `MPI_Pcontrol`.
    pub phase: Option<i64>,
    /// What these are called where they are asked for.
    pub called: Called,
}

/// Names by which calls are asked for, in what is said of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Called {
    ranks: &'static str,
    from: &'static str,
    until: &'static str,
    phase: &'static str,
}

impl Called {
    /// Options of a command.
    pub const OPTIONS: Self = Self { ranks: "--ranks", from: "--from", until: "--until", phase: "--phase" };
    /// Arguments of functions in Python.
    pub const ARGUMENTS: Self = Self { ranks: "ranks", from: "start", until: "end", phase: "phase" };
}

impl Default for Called {
    fn default() -> Self {
        Self::OPTIONS
    }
}

impl Selection {
    /// Whether it depends on when calls are.
    pub(crate) fn needs_times(&self) -> bool {
        self.from.is_some() || self.until.is_some() || self.phase.is_some()
    }

    /// Whether it is of some calls of a thread, and not of all.
    pub(crate) fn is_part(&self) -> bool {
        self.needs_times() || !(self.functions.is_empty() && self.sites.is_empty())
    }

    /// Refuses ranks of which none is there, and says which are not.
    pub(crate) fn missing(&self, held: &RankList) -> Result<Option<String>> {
        let Some(asked) = &self.ranks else { return Ok(None) };
        let missing = asked.difference(held);
        let ranks = self.called.ranks;
        let text = format!("{ranks}: the trace has no rank {}; it has {}", plain(&missing), plain(held));
        if missing.len() == asked.len() {
            bail!(UsageError(text));
        }
        Ok((!missing.is_empty()).then_some(text))
    }

    /// Narrows what is written of a trace, of which threads have been chosen already.
    ///
    /// # Errors
    ///
    /// If there are no times that are needed, or none of what is asked for is there.
    pub(crate) fn narrow(&self, named: &str, trace: &mut Trace) -> Result<()> {
        let Called { from, until, phase, .. } = self.called;
        let Some(window) = Window::between(self.from, self.until) else {
            bail!(UsageError(format!("{from} is not before {until}")));
        };
        trace.window = window;
        if self.needs_times() && !trace.is_timed() {
            bail!(UsageError(format!("{named}: {LACK}, which {from}, {until} and {phase} need: {HOW}")));
        }
        if let Some((at, ends)) = self.from.zip(trace.run_time()).filter(|(at, ends)| at >= ends) {
            bail!(UsageError(format!("{from} {at}: the run ends after {ends:.6} s")));
        }
        let of = (&*trace.sections, &*trace.sites, &*trace.numbers);
        trace.chosen = Chosen::find((&self.functions, &self.sites, self.phase), of, trace.zero.unwrap_or(0))?;
        Ok(())
    }
}

/// What a trace lacks.
pub(crate) const LACK: &str = "has no exact times of all ranks";

/// What to do then.
pub(crate) const HOW: &str = "convert the trace as it was recorded, or merge it with st-merge --keep-columns";
