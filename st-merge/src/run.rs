//! Reading, merging, writing.

use std::sync::mpsc::sync_channel;
use std::thread;

use anyhow::{Result, anyhow};
use st_reduce::merge::{Error, Merger, Merging};
use st_reduce::tree::{Parts, RADIX, Tree};
use st_tool::transport::{self, Transport};
use st_tool::{Output, Share, Status, UsageError, Whole, each_section, engine, step};
use st_trace::ranklist::RankList;
use st_trace::section::Section;
use st_trace::stream::Writer;

use crate::args::Args;

/// Name of the program.
pub const NAME: &str = "st-merge";

/// File name of the engine: the program in jobs of several processes.
const ENGINE: &str = "st-merge-engine";

/// Sections that are decoded before they can be merged.
const AHEAD: usize = 16;

/// Runs the program; below a launcher that started several processes, becomes its engine.
///
/// # Errors
///
/// If an input cannot be read, ranks occur twice, or the output cannot be written.
pub fn run(args: &Args) -> Result<Status> {
    engine::join_others(ENGINE)?;
    let how = merging(args)?;
    let out = Output::stream(&args.output.output)?;
    let mut all = Gathered::new(args, how);
    let mut add = |section: Section| all.add(None, section);
    let whole = if args.threads() > 1 { read_ahead(args, &mut add)? } else { read(args, &mut add)? };
    finish(args, all, whole, out)?;
    Ok(Status::Ok)
}

/// Runs the program as one process of a job: each reads some of the sections and merges what it can, and the first one has
/// the rest. What comes out is that of one process.
///
/// # Errors
///
/// As [`run`], and if standard input is to be read; on all processes if on one.
pub fn run_in(args: &Args, job: &mut dyn Transport) -> Result<Status> {
    let first = job.rank() == 0;
    let out = (|| Ok((merging(args)?, first.then(|| Output::stream(&args.output.output)).transpose()?)))();
    let (how, out) = transport::agree(job, out)?;
    let share = Share::of(job, &args.inputs, &args.input, RADIX)?;
    let mut all = Gathered::new(args, how);
    let read = share.each_section(&args.input, |place, section| Ok(all.add(Some(place), section)?));
    let (complete, more) = transport::agree(job, read)?;
    let merged = if more { all.tree.follow() } else { Ok(()) };
    transport::agree(job, merged.map_err(Into::into))?;
    let mut whole = share.whole().clone();
    let mine = [u8::from(complete), u8::from(all.dropped)];
    let said = transport::all(job, &[&mine[..], &all.rounded.unwrap_or(0).to_le_bytes()].concat())?;
    whole.complete = said.iter().all(|s| s.first() == Some(&1));
    all.dropped = said.iter().any(|s| s.get(1) == Some(&1));
    let rounded = said.iter().filter_map(|s| Some(u32::from_le_bytes(s.get(2..6)?.try_into().ok()?)));
    all.rounded = rounded.max().filter(|r| *r > 0);
    let Gathered { tree, unit, ranks, dropped, rounded } = all;
    let root = transport::climb(
        job,
        tree,
        |tree| Ok(tree.pack()?),
        |tree, theirs| Ok(tree.take(Parts::unpack(theirs)?)?),
    );
    let done = root.and_then(|root| match root.zip(out) {
        Some((tree, out)) => finish(args, Gathered { tree, unit, ranks, dropped, rounded }, whole, out),
        None => Ok(()),
    });
    transport::agree(job, done)?;
    Ok(Status::Ok)
}

fn merging(args: &Args) -> Result<Merging> {
    Ok(Merging {
        keep_columns: args.keep_columns,
        rounding: args.quantise.unwrap_or(0),
        loops: args.loops.into(),
        users: args.params().map_err(|e| UsageError(format!("{:#}", anyhow!(e))))?,
        lossy: args.lossy(),
        watch_tags: args.drop_tags,
    })
}

/// What has been read, as far as it can be merged.
struct Gathered {
    tree: Tree<Merging>,
    /// What times are to be rounded to; 0 is not at all.
    unit: u32,
    ranks: RankList,
    /// Whether there were exact times.
    dropped: bool,
    /// What these were rounded to before, if to something else.
    rounded: Option<u32>,
}

impl Gathered {
    fn new(args: &Args, how: Merging) -> Self {
        let unit = args.quantise.unwrap_or(0);
        Self { tree: Tree::new(how), unit, ranks: RankList::default(), dropped: false, rounded: None }
    }

    /// Adds a section, whose place is that of the next if it is not known.
    fn add(&mut self, place: Option<u64>, section: Section) -> Result<(), Error> {
        // Said here, where the name of the stream is known.
        if let Some(twice) = section.ranks.iter().find(|&r| self.ranks.contains(r)) {
            return Err(Error::Duplicate(twice));
        }
        self.ranks.extend(&section.ranks);
        let columns = || section.threads.iter().flat_map(|t| &t.columns);
        self.dropped |= columns().next().is_some();
        let units = columns().map(|(_, c)| c.unit()).filter(|u| ![1, self.unit].contains(u));
        self.rounded = self.rounded.max(units.max());
        match place {
            Some(place) => self.tree.push(place, section),
            None => self.tree.push_next(section),
        }
    }
}

/// Merges what is left, and writes the result.
fn finish(args: &Args, all: Gathered, mut whole: Whole, mut out: Output) -> Result<()> {
    if !whole.complete {
        args.talk.warn(NAME, "an input is truncated; the result holds what is whole");
    }
    if all.dropped && !args.keep_columns {
        args.talk.detail(NAME, "exact times are folded into sketches (--keep-columns keeps them)");
    }
    let mut merger = all.tree.how().root();
    all.tree.finish()?.into_iter().try_for_each(|section| merger.add(section))?;
    if args.drop_tags
        && let Err(why) = merger.drop_tags()
    {
        args.talk.warn(NAME, format_args!("--drop-tags: tags are needed: {why}"));
    }
    if let Some(before) = all.rounded.filter(|_| args.quantise.is_some()) {
        args.talk.warn(NAME, format_args!("times that are rounded to {before} ns already stay as they are"));
    }
    for p in merger.params().iter().filter(|p| !p.met()) {
        args.talk.warn(NAME, format_args!("--param {p}: there are no such calls"));
    }
    write(args, merger, &mut whole, &mut out)?;
    out.commit()
}

fn write(args: &Args, merger: Merger, whole: &mut Whole, out: &mut Output) -> Result<()> {
    if !args.output.no_provenance {
        whole.provenance.push(step(NAME));
    }
    let options = args.output.write_options(out);
    let mut writer = Writer::new(out, &whole.header, options)?;
    for s in &whole.provenance {
        writer.provenance(s)?;
    }
    writer.section(&merger.finish_with(args.threads()))?;
    writer.finish()?;
    Ok(())
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
