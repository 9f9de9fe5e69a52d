//! Showing traces: to people (structure, leaf lists, calls), to programs (JSON lines, text form), and whether they are
//! what was recorded.
//!
//! Memory: one section of the stream with its exact times; with `--text`, and from a pipe, all of them.

pub mod args;
mod calls;
mod check;
mod form;
mod tree;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use st_tool::{Output, Status, Whole, each_section, each_stored_of};
use st_trace::header::Header;
use st_trace::section::Section;
use st_trace::sites::{CallSites, SiteTable};
use st_trace::stream::{Stored, Trace};

use args::Args;

/// The program, from its command line to its exit status.
#[must_use]
pub fn main() -> ExitCode {
    st_tool::report("st-view", run(&Args::parse()))
}

/// Does what the command line asks for.
///
/// # Errors
///
/// If an input cannot be read or the output cannot be written.
pub fn run(args: &Args) -> Result<Status> {
    if args.from_text {
        return form::from_text(args).map(|()| Status::Ok);
    }
    let mut out = Output::text(&args.output.output)?;
    let mut status = Status::Ok;
    if args.text {
        form::text(&read(args)?, &mut out)?;
    } else if args.json || args.calls {
        calls::print(args, &mut out)?;
    } else if args.check {
        status = check::print(args, &mut out)?;
    } else {
        tree::print(args, &mut out)?;
    }
    out.commit()?;
    Ok(status)
}

/// A trace whose call sites are named.
struct Named {
    sites: CallSites,
    /// The run, and its sections, if they can be read only once.
    held: Option<(Header, Vec<Stored>)>,
}

impl Named {
    /// Reads the call sites of all sections, and says what is missing. A pipe is read once, so that what comes through one has to
    /// be held.
    fn read(args: &Args) -> Result<Self> {
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
        Ok(Self { sites, held: once.then_some((whole.header, held)) })
    }

    /// Hands each section to `take`.
    fn each(&self, args: &Args, mut take: impl FnMut(&Header, Section) -> Result<()>) -> Result<()> {
        match &self.held {
            Some((header, held)) => held.iter().try_for_each(|stored| take(header, stored.section()?)),
            None => each_section(&args.inputs, &args.input.shown("st-view", &args.talk), take).map(drop),
        }
    }
}

/// Reads sections one by one, and says what is missing.
fn each(args: &Args, take: impl FnMut(&Header, Section) -> Result<()>) -> Result<()> {
    whole(args, take).map(drop)
}

fn whole(args: &Args, take: impl FnMut(&Header, Section) -> Result<()>) -> Result<Whole> {
    let whole = each_section(&args.inputs, &args.input.shown("st-view", &args.talk), take)?;
    whole.remark("st-view", &args.talk);
    Ok(whole)
}

/// Reads all inputs as one trace.
fn read(args: &Args) -> Result<Trace> {
    let (mut sections, mut budget) = (Vec::new(), args.steps.budget());
    let whole = whole(args, |_, section| {
        // Structure is printed as it is; each time is a word.
        budget.spend_times(&section)?;
        sections.push(section);
        Ok(())
    })?;
    let Whole { header, provenance, complete, level, .. } = whole;
    Ok(Trace { header, provenance, sections, complete, level })
}
