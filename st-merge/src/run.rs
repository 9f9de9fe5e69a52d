//! Reading, merging, writing.

use std::ops::Range;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use st_cli::options::Waits;
use st_cli::transport::{self, Transport};
use st_cli::{Amount, Batch, Output, Share, Status, UsageError, Whole, call_sites, each_batch, engine, step};
use st_explain::{Folding, Unkept};
use st_model::header::SPENT;
use st_model::section::Section;
use st_model::unknown_order;
use st_reduce::merge::alike::LEVELS;
use st_reduce::merge::{Error, Merger, Merging};
use st_reduce::slow::keep_slow;
use st_reduce::tree::{self, Parts, RADIX, Tree};
use st_reduce::user;
use st_stream::{Stored, Writer};

use crate::args::Args;

/// Name of the program.
pub const NAME: &str = "st-merge";

/// The program, from its command line to its exit status.
#[must_use]
pub fn main() -> ExitCode {
    engine::start(NAME, run)
}

/// Does what the command line asks for; below a launcher that started several processes, becomes its engine.
///
/// # Errors
///
/// If an input cannot be read, ranks occur twice, or the output cannot be written.
pub fn run(args: &Args) -> Result<Status> {
    engine::join_others(NAME)?;
    let (how, folding) = (merging(args)?, folding(args));
    let out = Output::stream(&args.output.output)?;
    let mut all = Gathered::new(args, how.clone(), folding.clone());
    let whole = each_batch(
        &args.inputs,
        &args.input.shown(NAME, &args.talk),
        RADIX.pow(LEVELS),
        args.threads(),
        |batch| reduced(args, &how, &folding, batch),
        |part| Ok(all.take(part)?),
    )?;
    let events = folding.events();
    finish(args, all, whole, events, out)?;
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
    let mut all = Gathered::new(args, how, folding(args));
    let read = share.each_section(job, &args.input, |place, section| Ok(all.add(place, section)?));
    let (whole, more) = read?;
    let merged = if more { all.tree.follow() } else { Ok(()) };
    transport::agree(job, merged.map_err(Into::into))?;
    let mine = [u8::from(all.dropped)];
    let (rounded, events) = (all.rounded.unwrap_or(0).to_le_bytes(), all.folding.events().to_le_bytes());
    let said = transport::all(job, &[&mine[..], &rounded, &events].concat())?;
    all.dropped = said.iter().any(|s| s.first() == Some(&1));
    let rounded = said.iter().filter_map(|s| Some(u32::from_le_bytes(s.get(1..5)?.try_into().ok()?)));
    all.rounded = rounded.max().filter(|r| *r > 0);
    let events = said.iter().filter_map(|s| Some(u64::from_le_bytes(s.get(5..13)?.try_into().ok()?)));
    let events = events.fold(0, u64::saturating_add);
    let Gathered { tree, unit, dropped, rounded, kept, folding } = all;
    let root = transport::climb(
        job,
        tree,
        |tree| Ok(tree.pack()?),
        |tree, theirs| Ok(tree.take(Parts::unpack(theirs)?)?),
    );
    let done = root.and_then(|root| match root.zip(out) {
        Some((tree, out)) => {
            finish(args, Gathered { tree, unit, dropped, rounded, kept, folding }, whole, events, out)
        }
        None => Ok(()),
    });
    transport::agree(job, done)?;
    Ok(Status::Ok)
}

fn merging(args: &Args) -> Result<Merging> {
    let users = args.known.params().map_err(usage)?;
    if args.known.has_places() {
        user::find(&users, call_sites(&args.inputs, &args.input)?.as_ref()).map_err(usage)?;
    }
    Ok(Merging {
        keep_columns: args.keep_columns || args.keeping.waits.most() > 0,
        rounding: args.quantise.unwrap_or(0),
        loops: args.loops.into(),
        users,
        lossy: args.lossy(),
        watch_tags: args.drop_tags,
        budget: args.input.steps.budget(),
    })
}

fn usage(error: user::Error) -> UsageError {
    UsageError(format!("{:#}", anyhow!(error)))
}

/// What is kept of waits where exact times are folded.
fn folding(args: &Args) -> Folding {
    Folding::new(if args.keep_columns { 0 } else { args.keeping.waits.most() })
}

/// What has been read, as far as it can be merged.
struct Gathered {
    tree: Tree<Merging>,
    /// What times are to be rounded to; 0 is not at all.
    unit: u32,
    /// Whether there were exact times.
    dropped: bool,
    /// What these were rounded to before, if to something else.
    rounded: Option<u32>,
    /// Whether they are kept; else what waits are told from.
    kept: bool,
    folding: Folding,
}

impl Gathered {
    fn new(args: &Args, how: Merging, folding: Folding) -> Self {
        let unit = args.quantise.unwrap_or(0);
        let kept = args.keep_columns;
        Self { tree: Tree::new(how), unit, dropped: false, rounded: None, kept, folding }
    }

    /// Adds a section at its place.
    fn add(&mut self, place: u64, mut section: Section) -> Result<(), Error> {
        self.look(&section);
        if !self.holds() {
            section.threads.iter_mut().for_each(|thread| thread.columns.clear());
        }
        self.tree.push(place, section)
    }

    /// Whether exact times are needed: to be kept, or to be told of.
    fn holds(&self) -> bool {
        self.kept || self.folding.holds()
    }

    /// Finds out what happens to a section's times.
    fn look(&mut self, section: &Section) {
        self.folding.count(section);
        let columns = || section.threads.iter().flat_map(|t| &t.columns);
        self.dropped |= columns().next().is_some();
        let units = columns().map(|(_, c)| c.unit()).filter(|u| ![1, self.unit].contains(u));
        self.rounded = self.rounded.max(units.max());
    }

    /// Takes in what another thread made of the sections after these.
    fn take(&mut self, part: Reduced) -> Result<(), Error> {
        self.dropped |= part.dropped;
        self.rounded = self.rounded.max(part.rounded);
        self.tree.take(part.parts)
    }
}

/// What a thread makes of a batch.
struct Reduced {
    parts: Parts,
    dropped: bool,
    rounded: Option<u32>,
}

/// Merges what can be merged of a batch.
fn reduced(args: &Args, how: &Merging, folding: &Folding, batch: &Batch) -> Result<Reduced> {
    let mut all = Gathered::new(args, how.clone(), folding.clone());
    let mut from = 0;
    while from < batch.sections.len() {
        let (level, n) = tree::block(batch.place(from), batch.sections.len() - from, LEVELS);
        add_block(&mut all, batch, level, from..from + n)?;
        from += n;
    }
    if batch.more {
        let last = batch.sections.len().saturating_sub(1);
        batch.named(last, all.tree.follow())?;
    }
    let Gathered { tree, dropped, rounded, .. } = all;
    Ok(Reduced { parts: tree.into_parts(), dropped, rounded })
}

/// Adds a whole block of some level: at once if its ranks are alike, else by the blocks in it.
fn add_block(all: &mut Gathered, batch: &Batch, level: u32, block: Range<usize>) -> Result<()> {
    // A part of one level is one join of its sections anyway.
    let whole = block.end < batch.sections.len() || batch.more;
    if level > 1 && whole {
        if let Some(part) = alike(all, batch, block.clone())? {
            return batch.named(block.start, all.tree.push_block(level, batch.place(block.start), part));
        }
        let (level, n) = tree::block(batch.place(block.start), block.len(), level - 1);
        return block.step_by(n).try_for_each(|from| add_block(all, batch, level, from..from + n));
    }
    for at in block {
        let section = batch.section(at, decoder(all))?;
        all.dropped |= batch.sections[at].has_times();
        all.look(&section);
        batch.named(at, all.tree.push(batch.place(at), section))?;
    }
    Ok(())
}

/// What stands for a block whose ranks are alike; nothing if they are not.
fn alike(all: &mut Gathered, batch: &Batch, block: Range<usize>) -> Result<Option<Vec<Section>>> {
    let mut merged = all.tree.how().alike();
    for at in block {
        let section = batch.section(at, decoder(all))?;
        all.dropped |= batch.sections[at].has_times();
        all.look(&section);
        if !batch.named(at, merged.add(section))? {
            return Ok(None);
        }
    }
    Ok(Some(merged.finish()))
}

/// Exact times that nobody needs are gone once they are known to be sound.
fn decoder(all: &Gathered) -> fn(&Stored) -> Result<Section, st_stream::Error> {
    if all.holds() { Stored::section } else { Stored::section_without_times }
}

/// Merges what is left, and writes the result. Each process has counted some of the `events`.
fn finish(args: &Args, all: Gathered, mut whole: Whole, events: u64, mut out: Output) -> Result<()> {
    whole.remark(NAME, &args.talk);
    if all.dropped && !args.keep_columns {
        args.talk.detail(NAME, "exact times are folded into sketches (--keep-columns keeps them)");
    }
    let (mut merger, budget) = (all.tree.how().root(), all.tree.how().budget.clone());
    let mut sections = all.tree.finish()?;
    user::check(merger.params(), &sections).map_err(usage)?;
    let ranks = |section: &Section| section.ranks.len();
    let merging =
        args.talk.progress(NAME, "merging", Amount::Things("ranks", sections.iter().map(ranks).sum()));
    if all.dropped && !args.keep_columns {
        let explaining = args.talk.progress(NAME, "explaining", Amount::Things("calls", events));
        let (budget, tell) = (args.input.steps.budget(), |n| explaining.advance(n));
        let unkept = all.folding.keep(&mut whole.explanation, &sections, events, &budget, &tell);
        if let Some(Unkept::Spent(threads)) = unkept {
            whole.header.options.insert(SPENT.to_owned(), threads.into());
        }
        match unkept {
            Some(why) if why.is_a_choice() => args.talk.note(NAME, why),
            why => why.iter().for_each(|why| args.talk.detail(NAME, why)),
        }
        // They tell in which order ranks were slow once all ranks are together. How many they are does not depend on who has counted.
        if events > args.keeping.waits.most() {
            sections.iter_mut().flat_map(|s| &mut s.threads).for_each(|thread| thread.columns.clear());
        }
    }
    for section in sections {
        if args.drop_tags {
            // Whether messages can be told apart is found out call by call.
            budget.spend(&section, None, 1)?;
        }
        let ranks = ranks(&section);
        merger.add(section)?;
        merging.advance(ranks);
    }
    drop(merging);
    if args.drop_tags
        && let Err(why) = merger.drop_tags()
    {
        args.talk.warn(NAME, format_args!("--drop-tags: tags are needed: {why}"));
    }
    if let Some(before) = all.rounded.filter(|_| args.quantise.is_some()) {
        args.talk.warn(NAME, format_args!("times that are rounded to {before} ns already stay as they are"));
    }
    write(args, merger, &mut whole, &mut out)?;
    out.commit()
}

/// Takes exact times away, and keeps in which order they say that ranks were slow.
fn fold(section: &mut Section, args: &Args) -> Result<()> {
    // Beyond what is allowed for merging the order is not looked for.
    let may = args.input.steps.budget().spend(section, None, 1).is_ok();
    let lost = if may { keep_slow(section)? } else { Vec::new() };
    section.threads.iter_mut().for_each(|thread| thread.columns.clear());
    if let Some(most) = lost.iter().max_by(|a, b| a.part.total_cmp(&b.part)) {
        let place = section.symbols.get(most.sym as usize);
        let place = place.map(|s| format!("{} (site {})", s.call, s.site)).unwrap_or_default();
        let others = if lost.len() > 1 { format!(" and {} more", lost.len() - 1) } else { String::new() };
        args.talk.note(
            NAME,
            format_args!(
                "in which order ranks computed longer before {place}{others} is lost but for how often together: it varies by {:.0} % of \
                 their time, and a replay has it by chance (--keep-columns keeps it)",
                100.0 * most.part
            ),
        );
    } else if unknown_order::is_unknown(section) {
        args.talk.note(
            NAME,
            "in which order ranks computed longer is not known without exact times of all calls: where they were slow at the same time, or \
             in turns, a replay is too slow, or too fast",
        );
    }
    Ok(())
}

fn write(args: &Args, merger: Merger, whole: &mut Whole, out: &mut Output) -> Result<()> {
    if !args.output.no_provenance {
        whole.provenance.push(step(NAME));
    }
    let options = args.output.write_options(out);
    let finishing = args.talk.progress(NAME, "finishing", Amount::Things("parts", merger.parts()));
    let mut section = merger.finish_with(args.threads(), &|n| finishing.advance(n));
    drop(finishing);
    if !args.keep_columns {
        fold(&mut section, args)?;
    }
    let writing = args.talk.progress(NAME, "writing", Amount::Unknown);
    args.kept().apply(&mut section, &mut whole.header);
    let mut writer = Writer::new(out, &whole.header, options)?;
    writer.threads(args.threads())?;
    for s in &whole.provenance {
        writer.provenance(s)?;
    }
    writer.section(&section)?;
    if args.keeping.waits != Waits::Never {
        whole.explanation.iter().try_for_each(|e| writer.explanation(e))?;
    }
    writer.finish()?;
    drop(writing);
    Ok(())
}
