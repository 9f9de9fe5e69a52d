//! Showing traces: to people (structure, leaf lists, calls), to programs (JSON lines, text form), and whether they are
//! what was recorded.
//!
//! Memory: one section of the stream with its exact times; with `--text`, and with `--json` from a pipe, all of them.

pub mod args;
mod calls;
mod check;
mod form;
mod tree;

use anyhow::Result;
use st_tool::{Output, Status, Whole, each_section};
use st_trace::header::Header;
use st_trace::section::Section;
use st_trace::stream::Trace;

use args::Args;

/// Runs the program.
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

/// Reads sections one by one, and says what is missing.
fn each(args: &Args, take: impl FnMut(&Header, Section) -> Result<()>) -> Result<()> {
    whole(args, take).map(drop)
}

fn whole(args: &Args, take: impl FnMut(&Header, Section) -> Result<()>) -> Result<Whole> {
    let whole = each_section(&args.inputs, &args.input, take)?;
    whole.remark("st-view", &args.talk);
    Ok(whole)
}

/// Reads all inputs as one trace.
fn read(args: &Args) -> Result<Trace> {
    let mut sections = Vec::new();
    let whole = whole(args, |_, section| {
        sections.push(section);
        Ok(())
    })?;
    let Whole { header, provenance, complete, level, .. } = whole;
    Ok(Trace { header, provenance, sections, complete, level })
}
