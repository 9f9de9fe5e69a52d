//! Showing traces: to people (structure, leaf lists, calls), to programs (JSON lines, text form), and whether they are
//! what was recorded.
//!
//! Memory: one section of the stream with its exact times; with `--text`, and from a pipe, all of them.

pub mod args;
mod attributes;
mod calls;
mod check;
mod form;
mod hints;
mod input;
mod tree;

use std::process::ExitCode;

use anyhow::Result;
use st_cli::{Output, Status, engine};

use args::Args;

/// The program, from its command line to its exit status.
#[must_use]
pub fn main() -> ExitCode {
    engine::start("st-view", run)
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
        form::text(&input::read(args)?, &mut out)?;
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
