//! Reading, merging, writing.

use std::sync::mpsc::sync_channel;
use std::thread;

use anyhow::{Result, anyhow};
use st_reduce::merge::{Error, Merger};
use st_tool::{Output, Status, UsageError, Whole, each_section, step};
use st_trace::ranklist::RankList;
use st_trace::section::Section;
use st_trace::stream::Writer;

use crate::args::Args;

/// Sections that are decoded before they can be merged.
const AHEAD: usize = 16;

/// Runs the program.
///
/// # Errors
///
/// If a launcher started several processes, an input cannot be read, ranks occur twice, or the output cannot be written.
pub fn run(args: &Args) -> Result<Status> {
    st_tool::engine::be_alone("st-merge")?;
    let params = args.params().map_err(|e| UsageError(format!("{:#}", anyhow!(e))))?;
    let mut out = Output::stream(&args.output.output)?;
    let unit = args.quantise.unwrap_or(0);
    let mut merger = Merger::new(args.keep_columns)
        .watching_tags(args.drop_tags)
        .rounding(unit)
        .losing(args.lossy())
        .loops(args.loops.into())
        .with(params);
    let (mut dropped, mut rounded) = (false, None);
    let mut add = |section: Section| -> Result<(), Error> {
        let columns = || section.threads.iter().flat_map(|t| &t.columns);
        dropped |= columns().next().is_some();
        rounded = rounded.max(columns().map(|(_, c)| c.unit()).filter(|u| ![1, unit].contains(u)).max());
        merger.add(section)
    };
    let mut whole = if args.threads() > 1 { read_ahead(args, &mut add)? } else { read(args, &mut add)? };
    if !whole.complete {
        args.talk.warn("st-merge", "an input is truncated; the result holds what is whole");
    }
    if dropped && !args.keep_columns {
        args.talk.detail("st-merge", "exact times are folded into sketches (--keep-columns keeps them)");
    }
    if args.drop_tags
        && let Err(why) = merger.drop_tags()
    {
        args.talk.warn("st-merge", format_args!("--drop-tags: tags are needed: {why}"));
    }
    if let Some(before) = rounded.filter(|_| args.quantise.is_some()) {
        args.talk
            .warn("st-merge", format_args!("times that are rounded to {before} ns already stay as they are"));
    }
    for p in merger.params().iter().filter(|p| !p.met()) {
        args.talk.warn("st-merge", format_args!("--param {p}: there are no such calls"));
    }
    if !args.output.no_provenance {
        whole.provenance.push(step("st-merge"));
    }
    let options = args.output.write_options(&out);
    let mut writer = Writer::new(&mut out, &whole.header, options)?;
    for s in &whole.provenance {
        writer.provenance(s)?;
    }
    writer.section(&merger.finish_with(args.threads()))?;
    writer.finish()?;
    out.commit()?;
    Ok(Status::Ok)
}

fn read(args: &Args, add: &mut impl FnMut(Section) -> Result<(), Error>) -> Result<Whole> {
    each_section(&args.inputs, &args.input, |_, section| Ok(add(section)?))
}

/// Decodes sections in one thread while they are merged in another, in the same order.
fn read_ahead(args: &Args, add: &mut impl FnMut(Section) -> Result<(), Error>) -> Result<Whole> {
    let (to, from) = sync_channel::<Section>(AHEAD);
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            // Said here, where the name of the stream is known.
            let mut seen = RankList::default();
            each_section(&args.inputs, &args.input, |_, section| {
                if let Some(twice) = section.ranks.iter().find(|&r| seen.contains(r)) {
                    return Err(Error::Duplicate(twice).into());
                }
                seen.extend(&section.ranks);
                to.send(section).map_err(|_| anyhow!("merging has stopped"))
            })
        });
        let merged = from.into_iter().try_for_each(add);
        let whole = reader.join().map_err(|_| anyhow!("the reading thread failed"))?;
        merged?;
        whole
    })
}
