//! Reading, clustering, writing.

use std::process::ExitCode;
use std::sync::mpsc::sync_channel;
use std::thread;

use anyhow::{Result, anyhow};
use st_cli::options::Waits;
use st_cli::transport::{self, Transport};
use st_cli::{
    Amount, Batch, Finished, Output, Share, Status, UsageError, Whole, call_sites, each_batch,
    each_section_of, engine, step,
};
use st_explain::Folding;
use st_model::calls::Lane;
use st_model::num::Exact as _;
use st_model::section::Section;
use st_reduce::cluster::{Clustering, Clusters, Error, Signatures, alone, keep_lowest};
use st_reduce::tree::{self, Parts, RADIX, Tree};
use st_reduce::user;
use st_stream::{ReadOptions, Reader, Stored, WriteOptions, Writer};

use crate::args::Args;
use crate::table;

/// Name of the program.
pub const NAME: &str = "st-cluster";

/// Levels of the tree that a thread takes at once.
const LEVELS: u32 = 3;

/// Sections that are decoded before they are looked at, where all are kept.
const AHEAD: usize = 64;

/// The program, from its command line to its exit status.
#[must_use]
pub fn main() -> ExitCode {
    engine::start(NAME, run)
}

/// Does what the command line asks for; below a launcher that started several processes, becomes its engine.
///
/// # Errors
///
/// If an input cannot be read, holds several ranks in one section, ranks occur twice, or an output cannot be written.
pub fn run(args: &Args) -> Result<Status> {
    engine::join_others(NAME)?;
    let (how, folding) = (clustering(args)?, Folding::new(args.folded()));
    let out = Output::stream(&args.output.output)?;
    let table_out = args.table.as_deref().map(Output::text).transpose()?;
    let mut all = Gathered::new(args, how.clone(), folding.clone());
    let (whole, writer) = if args.keep_all {
        let (mut pending, mut written) = (Some(out), None);
        let mut add = |whole: &Whole, section: Section| -> Result<()> {
            if let Some(out) = pending.take() {
                written = Some(begin(args, whole, out)?);
            }
            written.iter_mut().try_for_each(|w| w.section(&section))?;
            Ok(all.add(None, section)?)
        };
        let whole = if args.threads() > 1 { read_ahead(args, &mut add)? } else { read(args, &mut add)? };
        let writer = match (written, pending) {
            (Some(writer), _) => writer,
            (None, Some(out)) => begin(args, &whole, out)?,
            (None, None) => return Err(anyhow!("writing has failed before")),
        };
        (whole, writer)
    } else {
        let whole = each_batch(
            &args.inputs,
            &args.input.shown(NAME, &args.talk),
            RADIX.pow(LEVELS),
            args.threads(),
            |batch| reduced(args, &how, &folding, batch),
            |part| Ok(all.take(part)?),
        )?;
        let writer = begin(args, &whole, out)?;
        (whole, writer)
    };
    let events = folding.events();
    finish(args, all, whole, events, writer, table_out)?;
    Ok(Status::Ok)
}

/// What a thread makes of a batch.
struct Reduced {
    parts: Parts,
    dropped: bool,
}

/// Puts what can be put into clusters of a batch.
fn reduced(args: &Args, how: &Clustering, folding: &Folding, batch: &Batch) -> Result<Reduced> {
    let mut all = Gathered::new(args, how.clone(), folding.clone());
    let mut from = 0;
    while from < batch.sections.len() {
        let (level, n) = tree::block(batch.place(from), batch.sections.len() - from, LEVELS);
        let block = from..from + n;
        from = block.end;
        let whole = block.end < batch.sections.len() || batch.more;
        // Ranks that are alike are found one by one as well as level by level.
        let mut at_once = all.tree.how().block().filter(|_| level > 0 && whole);
        for at in block.clone() {
            let section = batch.section(at, Stored::section)?;
            all.dropped |= batch.sections[at].has_times();
            all.folding.count(&section);
            all.hold();
            let added = match &mut at_once {
                Some(clusterer) => {
                    if !all.tree.how().0.keep_columns {
                        clusterer.drop_columns();
                    }
                    clusterer.add(section)
                }
                None => alone(&section).and_then(|_| all.tree.push(batch.place(at), section)),
            };
            batch.named(at, added)?;
        }
        if let Some(clusterer) = at_once {
            let parts = clusterer.finish_parts();
            batch.named(block.start, all.tree.push_block(level, batch.place(block.start), parts))?;
        }
    }
    if batch.more {
        batch.named(from.saturating_sub(1), all.tree.follow())?;
    }
    Ok(Reduced { parts: all.tree.into_parts(), dropped: all.dropped })
}

/// Runs the program as one process of a job: each reads some of the ranks and puts them into clusters, and the first one has
/// the rest. What comes out is that of one process.
///
/// # Errors
///
/// As [`run`], and if standard input is to be read; on all processes if on one.
pub fn run_in(args: &Args, job: &mut dyn Transport) -> Result<Status> {
    let first = job.rank() == 0;
    let how = transport::agree(job, clustering(args))?;
    let open = || -> Result<_> {
        let out = Output::stream(&args.output.output)?;
        let level = args.output.write_options(&out).level;
        Ok((out, args.table.as_deref().map(Output::text).transpose()?, level))
    };
    let out = transport::agree(job, first.then(open).transpose())?;
    let level = transport::tell(job, out.as_ref().map(|o| vec![o.2]).unwrap_or_default())?;
    let share = Share::of(job, &args.inputs, &args.input, RADIX)?;
    let options = WriteOptions { level: level.first().copied().unwrap_or(WriteOptions::PIPE.level) };
    let mut copies = Writer::new(Vec::new(), &share.whole().header, options)?;
    let mut all = Gathered::new(args, how, Folding::new(args.folded()));
    let read = share.each_section(job, &args.input, |place, section| {
        if args.keep_all {
            copies.section(&section)?;
        }
        Ok(all.add(Some(place), section)?)
    });
    let (whole, more) = read?;
    let clustered = if more { all.tree.follow() } else { Ok(()) };
    transport::agree(job, clustered.map_err(Into::into))?;
    let (mine, counted) = ([u8::from(all.dropped)], all.folding.events().to_le_bytes());
    let said = transport::all(job, &[&mine[..], &counted].concat())?;
    let dropped = said.iter().any(|s| s.first() == Some(&1));
    let events = said.iter().filter_map(|s| Some(u64::from_le_bytes(s.get(1..9)?.try_into().ok()?)));
    let events = events.fold(0, u64::saturating_add);
    let Gathered { tree, folding, kept, .. } = all;
    let root = transport::climb(
        job,
        tree,
        |tree| Ok(tree.pack()?),
        |tree, theirs| Ok(tree.take(Parts::unpack(theirs)?)?),
    );
    let root = transport::agree(job, root)?;
    let (mut writer, table) = match out {
        Some((out, table, _)) => (Some(begin(args, &whole, out)?), table),
        None => (None, None),
    };
    let copied = transport::gather(job, copies.finish()?, |_, bytes| {
        if let Some(writer) = writer.as_mut().filter(|_| args.keep_all) {
            writer.copy(&mut Reader::new(bytes.as_slice(), ReadOptions::default())?)?;
        }
        Ok(())
    });
    let done = copied.and_then(|()| match root.zip(writer) {
        Some((tree, writer)) => {
            finish(args, Gathered { tree, dropped, kept, folding }, whole, events, writer, table)
        }
        None => Ok(()),
    });
    transport::agree(job, done)?;
    Ok(Status::Ok)
}

fn clustering(args: &Args) -> Result<Clustering> {
    let options = args.options().map_err(usage)?;
    if args.known.has_places() {
        user::find(&options.users, call_sites(&args.inputs, &args.input)?.as_ref()).map_err(usage)?;
    }
    Ok(Clustering(options))
}

fn usage(error: user::Error) -> UsageError {
    UsageError(format!("{:#}", anyhow!(error)))
}

/// What has been read, as far as it can be put into clusters.
struct Gathered {
    tree: Tree<Clustering>,
    /// Whether there were exact times.
    dropped: bool,
    /// Whether those of all ranks are kept.
    kept: bool,
    /// Those that waits are told from.
    folding: Folding,
}

impl Gathered {
    fn new(args: &Args, how: Clustering, folding: Folding) -> Self {
        Self { tree: Tree::new(how), dropped: false, kept: args.keep_columns, folding }
    }

    /// Holds exact times no more, of these sections or of those that follow, once there are too many to tell of waits.
    fn hold(&mut self) {
        self.tree.how_mut().0.keep_columns = self.kept || self.folding.holds();
    }

    /// Takes in what another thread made of the sections after these.
    fn take(&mut self, part: Reduced) -> Result<(), Error> {
        self.dropped |= part.dropped;
        self.hold();
        self.tree.take(part.parts)
    }

    /// Adds a section, whose place is that of the next if it is not known.
    fn add(&mut self, place: Option<u64>, section: Section) -> Result<(), Error> {
        // Said here, where the name of the stream is known.
        alone(&section)?;
        self.dropped |= section.threads.iter().any(|t| !t.columns.is_empty());
        self.folding.count(&section);
        self.hold();
        match place {
            Some(place) => self.tree.push(place, section),
            None => self.tree.push_next(section),
        }
    }
}

fn begin(args: &Args, whole: &Whole, out: Output) -> Result<Writer<Output>> {
    let options = args.output.write_options(&out);
    let mut writer = Writer::new(out, &whole.header, options)?;
    writer.threads(args.threads())?;
    for s in &whole.provenance {
        writer.provenance(s)?;
    }
    if !args.output.no_provenance {
        writer.provenance(&step(NAME))?;
    }
    Ok(writer)
}

/// Puts what is left into clusters, and writes the result. Each process has counted some of the `events`.
fn finish(
    args: &Args,
    all: Gathered,
    mut whole: Whole,
    events: u64,
    mut writer: Writer<Output>,
    table_out: Option<Output>,
) -> Result<()> {
    whole.remark(NAME, &args.talk);
    let how = all.tree.how().clone();
    let (sections, budget) = (all.tree.finish()?, args.input.steps.budget());
    if how.0.signatures == Signatures::Paper {
        // Each call is looked at, not only the loops.
        budget.spend_all(&sections, None, 1)?;
    }
    if all.dropped && args.folded() > 0 {
        let explaining = args.talk.progress(NAME, "explaining", Amount::Things("calls", events));
        let (budget, tell) = (args.input.steps.budget(), |n| explaining.advance(n));
        let unkept = all.folding.keep(&mut whole.explanation, &sections, events, &budget, &tell);
        match unkept {
            Some(why) if why.is_a_choice() => args.talk.note(NAME, why),
            why => why.iter().for_each(|why| args.talk.detail(NAME, why)),
        }
    }
    user::check(&how.0.users, &sections).map_err(usage)?;
    let ranks = Amount::Things("ranks", sections.iter().map(|s| s.ranks.len()).sum());
    let clustering = args.talk.progress(NAME, "clustering", ranks);
    let clusterer = how.gathered(sections, &|n| clustering.advance(n))?;
    drop(clustering);
    let describing = args.talk.progress(NAME, "describing", ranks);
    let mut clusters = clusterer.finish_telling(&|n| describing.advance(n));
    drop(describing);
    if args.folded() > 0 {
        for section in &mut clusters.sections {
            keep_lowest(section.threads.iter_mut().map(|t| &mut t.columns));
        }
    }
    report(args, &clusters, all.dropped);
    if !args.keep_all {
        let all = Amount::Things("clusters", clusters.sections.len().to_u64());
        let writing = args.talk.progress(NAME, "writing", all);
        for section in &clusters.sections {
            writer.section(section)?;
            writing.advance(1);
        }
    }
    if args.keeping.waits != Waits::Never {
        whole.explanation.iter().try_for_each(|e| writer.explanation(e))?;
    }
    let tabled = |mut to: Output| {
        table::write(&clusters.table, &mut to)?;
        to.finish()
    };
    let tabled = table_out.map(tabled).transpose()?;
    writer.finish()?.finish()?.commit()?;
    tabled.map_or(Ok(()), Finished::commit)
}

fn report(args: &Args, clusters: &Clusters, dropped: bool) {
    args.talk.detail(NAME, table::count(&clusters.table));
    if args.keep_all {
        return;
    }
    if dropped && !args.keep_columns {
        args.talk.detail(
            NAME,
            "exact times of all ranks but the first of each main cluster are folded into sketches (--keep-columns keeps them)",
        );
    }
    let void = clusters.sections.iter().flat_map(|s| &s.threads).fold(0, |bits, t| bits | t.lanes.voided);
    let names = [
        (Lane::Call, "calls"),
        (Lane::Site, "sites"),
        (Lane::Endpoint, "endpoints"),
        (Lane::Count, "counts"),
        (Lane::Tag, "tags"),
        (Lane::Rest, "rest"),
    ];
    let lost: Vec<&str> =
        names.iter().filter(|(lane, _)| void >> (*lane as u8) & 1 == 1).map(|(_, name)| *name).collect();
    if !lost.is_empty() {
        args.talk.note(NAME, format_args!("ranks are not exactly as recorded in: {}", lost.join(", ")));
    }
}

fn read(args: &Args, add: &mut impl FnMut(&Whole, Section) -> Result<()>) -> Result<Whole> {
    each_section_of(&args.inputs, &args.input.shown(NAME, &args.talk), |whole, section| {
        alone(&section)?;
        add(whole, section)
    })
}

/// Decodes sections in one thread while they are looked at in another, in the same order.
fn read_ahead(args: &Args, add: &mut impl FnMut(&Whole, Section) -> Result<()>) -> Result<Whole> {
    let (to, from) = sync_channel::<(Option<Box<Whole>>, Section)>(AHEAD);
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut begun = false;
            each_section_of(&args.inputs, &args.input.shown(NAME, &args.talk), |whole, section| {
                // Said here, where the name of the stream is known.
                alone(&section)?;
                let first = (!std::mem::replace(&mut begun, true)).then(|| Box::new(whole.clone()));
                to.send((first, section)).map_err(|_| anyhow!("clustering has stopped"))
            })
        });
        let mut known = Box::<Whole>::default();
        let added = from.into_iter().try_for_each(|(whole, section)| {
            if let Some(first) = whole {
                known = first;
            }
            add(&known, section)
        });
        let whole = reader.join().map_err(|_| anyhow!("the reading thread failed"))?;
        added?;
        whole
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use st_kernels::{Kernel, Options, paper};
    use st_stream::Trace;

    use super::*;

    #[test]
    fn exact_times_are_held_only_where_waits_can_be_told_of_all() {
        let options = Options { steps: Some(2), ..Options::default() };
        let sections = paper::sections(Kernel::Stencil2d, &options, 64).map(Result::unwrap).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        st_stream::write(&Trace { sections, ..Trace::default() }, &file, WriteOptions::PIPE).unwrap();
        let args = Args::try_parse_from(["st-cluster".as_ref(), file.path()]).unwrap();
        let (how, most) = (clustering(&args).unwrap(), RADIX.pow(LEVELS));
        let held = |calls| {
            let folding = Folding::new(calls);
            let mut all = Gathered::new(&args, how.clone(), folding.clone());
            let work = |batch: &Batch| reduced(&args, &how, &folding, batch);
            let read = each_batch(&args.inputs, &args.input, most, 1, work, |part| Ok(all.take(part)?));
            drop(read.unwrap());
            let sections = all.tree.finish().unwrap();
            sections.iter().flat_map(|s| &s.threads).map(|t| t.columns.len()).sum::<usize>()
        };
        // Of each part that is not joined yet there are those of one rank.
        assert_eq!([held(u64::MAX), held(1)], [64, 4]);
    }
}
