//! Reading, merging, writing.

use anyhow::Result;
use st_tool::{Output, Status, each_section, step};
use st_trace::stream::Writer;

use crate::args::Args;
use crate::merge::Merger;

/// Runs the program.
///
/// # Errors
///
/// If an input cannot be read, ranks occur twice, or the output cannot be written.
pub fn run(args: &Args) -> Result<Status> {
    let mut out = Output::stream(&args.output.output)?;
    let mut merger = Merger::new(args.keep_columns);
    let mut dropped = false;
    let mut whole = each_section(&args.inputs, &args.input, |_, section| {
        dropped |= section.threads.iter().any(|t| !t.columns.is_empty());
        Ok(merger.add(section)?)
    })?;
    if !whole.complete {
        args.talk.warn("st-merge", "an input is truncated; the result holds what is whole");
    }
    if dropped && !args.keep_columns {
        args.talk.detail("st-merge", "exact times are folded into sketches (--keep-columns keeps them)");
    }
    if !args.output.no_provenance {
        whole.provenance.push(step("st-merge"));
    }
    let options = args.output.write_options(&out);
    let mut writer = Writer::new(&mut out, &whole.header, options)?;
    for s in &whole.provenance {
        writer.provenance(s)?;
    }
    writer.section(&merger.finish())?;
    writer.finish()?;
    out.commit()?;
    Ok(Status::Ok)
}
