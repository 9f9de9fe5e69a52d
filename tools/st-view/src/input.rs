//! Reading what is shown.

use anyhow::Result;
use st_cli::{Whole, each_section, each_stored_of};
use st_model::header::{Header, Step};
use st_model::section::Section;
use st_model::sites::{CallSites, SiteTable};
use st_stream::{Stored, Trace};

use crate::args::Args;

/// A trace whose call sites are named.
pub(crate) struct Named {
    pub(crate) sites: CallSites,
    /// The run.
    pub(crate) header: Header,
    /// The programs that made the trace.
    pub(crate) provenance: Vec<Step>,
    /// Its sections, if they can be read only once.
    held: Option<Vec<Stored>>,
}

impl Named {
    /// Reads the call sites of all sections, and says what is missing. A pipe is read once, so that what comes through one has to
    /// be held.
    pub(crate) fn read(args: &Args) -> Result<Self> {
        let once = args.inputs.is_empty() || args.inputs.iter().any(|i| i.as_os_str() == "-");
        let (mut tables, mut held) = (Vec::<SiteTable>::new(), Vec::new());
        let whole =
            each_stored_of(&args.inputs, &args.input.shown("st-view", &args.talk), |_, _, stored| {
                if tables.last().is_none_or(|last| !last.shares(stored.sites())) {
                    tables.push(stored.sites().clone());
                }
                if once {
                    held.push(stored);
                }
                Ok(())
            })?;
        whole.remark("st-view", &args.talk);
        let sites = args.symbols.call_sites(("st-view", &args.talk), &tables);
        let Whole { header, provenance, .. } = whole;
        Ok(Self { sites, header, provenance, held: once.then_some(held) })
    }

    /// Hands each section to `take`.
    pub(crate) fn each(
        &self,
        args: &Args,
        mut take: impl FnMut(&Header, Section) -> Result<()>,
    ) -> Result<()> {
        match &self.held {
            Some(held) => held.iter().try_for_each(|stored| take(&self.header, stored.section()?)),
            None => each_section(&args.inputs, &args.input.shown("st-view", &args.talk), take).map(drop),
        }
    }
}

/// Reads sections one by one, and says what is missing.
pub(crate) fn each(args: &Args, take: impl FnMut(&Header, Section) -> Result<()>) -> Result<()> {
    whole(args, take).map(drop)
}

fn whole(args: &Args, take: impl FnMut(&Header, Section) -> Result<()>) -> Result<Whole> {
    let whole = each_section(&args.inputs, &args.input.shown("st-view", &args.talk), take)?;
    whole.remark("st-view", &args.talk);
    Ok(whole)
}

/// Reads all inputs as one trace.
pub(crate) fn read(args: &Args) -> Result<Trace> {
    let (mut sections, budget) = (Vec::new(), args.input.steps.budget());
    let whole = whole(args, |_, section| {
        // Structure is printed as it is; each time is a word.
        if budget.spend_times(&section).is_ok() {
            sections.push(section);
        }
        Ok(())
    })?;
    budget.check()?;
    let Whole { header, provenance, complete, level, explanation, .. } = whole;
    Ok(Trace { header, provenance, sections, explanation, complete, level })
}
