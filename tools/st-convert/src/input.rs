//! Reading the trace that is converted.

use anyhow::{Context as _, Result, bail};
use st_cli::{UsageError, each_section};
use st_match::volume::Graphs;
use st_model::rank_times::begin;
use st_model::ranklist::RankList;
use st_model::ranklist_notation::plain;

use crate::NAME;
use crate::args::Args;
use crate::trace::Trace;
use crate::window::Window;

/// Reads what the command line names, and says what is missing.
pub(crate) fn read(args: &Args) -> Result<Trace> {
    let window = Window::between(args.from, args.until)?;
    let (mut sections, mut zero) = (Vec::new(), None::<i64>);
    let budget = args.steps.budget();
    let whole = each_section(&args.inputs, &args.input.shown(NAME, &args.talk), |_, section| {
        budget.spend(&section, args.ranks.as_ref(), 1)?;
        let begins = begin(&section).context("decoding")?;
        zero = zero.into_iter().chain(begins).min();
        sections.push(section);
        Ok(())
    })?;
    whole.remark(NAME, &args.talk);
    asked_and_there(args, &whole.ranks)?;
    let sites = args.symbols.call_sites((NAME, &args.talk), sections.iter().map(|s| &s.sites));
    let numbers = sections.iter().map(|s| sites.numbers(&s.sites)).collect();
    let graphs = Graphs::of(&sections)?;
    let mut all = Trace {
        whole,
        sections,
        sites,
        numbers,
        hosts: Vec::new(),
        lanes: Vec::new(),
        zero,
        graphs,
        window,
        events: 0,
    };
    all.find_lanes(args.ranks.as_ref());
    Ok(all)
}

/// Refuses ranks of which none is there, and says which are not.
fn asked_and_there(args: &Args, held: &RankList) -> Result<()> {
    let Some(asked) = &args.ranks else { return Ok(()) };
    let missing = asked.difference(held);
    let (none, have) = (plain(&missing), plain(held));
    if missing.len() == asked.len() {
        bail!(UsageError(format!("--ranks: the trace has no rank {none}; it has {have}")));
    }
    if !missing.is_empty() {
        args.talk.warn(NAME, format_args!("--ranks: the trace has no rank {none}; it has {have}"));
    }
    Ok(())
}
