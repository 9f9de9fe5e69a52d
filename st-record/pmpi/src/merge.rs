//! Reduction inside `MPI_Finalize`: the ranks' streams become one, in a tree over the ranks.
//!
//! Every rank has written its stream by then, and keeps what the stream holds but exact times. What ranks have is
//! reduced on the way to rank 0 ([`st_reduce::tree`]: the result depends on the ranks only), which writes the merged
//! stream. Then it tells all, and only then a rank removes its own stream. Whatever goes wrong, and whoever is late for
//! longer than the time limit: the ranks' streams stay, and rank 0 says why. How ranks talk to each other is in
//! [`climb`]; [`interim`] is the same while the program runs.

mod climb;
mod interim;
mod levels;
mod post;

use crate::clock::{Reader as Clock, processor_time};
use crate::limits;
use crate::message::note_down;
use crate::muster;
use crate::output::{LEVEL, Written, close_line};
use crate::settings::How;
use crate::sync::Tree as Ranks;
use climb::{Climb, Load};
pub(crate) use interim::{interim, interims};
use levels::Levels;
use st_model::header::{Header, Step};
use st_model::num::{Exact, narrow};
use st_model::section::Section;
use st_model::varint;
use st_reduce::cluster::{Clustering, Options, Signatures};
use st_reduce::kept::Kept;
use st_reduce::lossy::Lossy;
use st_reduce::merge::Merging;
use st_reduce::tree::{Parts, Reduce, Tree};
use st_stream::directory::{INTERIM, MERGED, NOTES};
use st_stream::{ReadOptions, Reader, WriteOptions, Writer};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) how: How,
    /// Which parameters become histograms, as given and as understood.
    pub(crate) lossy: Option<(String, Lossy)>,
    /// How long ranks wait for each other, ns.
    pub(crate) patience: i64,
    /// Where the ranks' streams are.
    pub(crate) directory: PathBuf,
    pub(crate) quiet: bool,
    pub(crate) clock: Clock,
    /// All ranks are recorded.
    pub(crate) all: bool,
    /// Number of the interim reduction; 0: it is the one in `MPI_Finalize`.
    pub(crate) number: i64,
}

impl Asked {
    /// Name of the result.
    fn name(&self) -> &'static str {
        if self.number > 0 { INTERIM } else { MERGED }
    }

    fn merging(&self) -> Merging {
        let lossy = self.lossy.as_ref().map(|(_, lossy)| lossy.clone()).unwrap_or_default();
        Merging { lossy, ..Merging::default() }
    }

    /// What the result says of how it was made.
    fn step(&self) -> Step {
        let how = match self.how {
            How::Cluster => "--merge=cluster",
            How::Plain => "--merge=plain",
            How::Reference => "--merge=reference",
        };
        let every = (self.number > 0).then_some("--reduce-every");
        let histogram = self.lossy.iter().map(|(text, _)| format!("--histogram={text}"));
        let args = std::iter::once(how).chain(every).map(str::to_owned).chain(histogram).collect();
        Step { tool: "st-record".into(), version: env!("CARGO_PKG_VERSION").to_owned(), args }
    }
}

/// Merges the ranks' streams: called by all, also by one that has `written` none. Returns what is to be said of it if it
/// fails.
pub(crate) fn run(asked: &Asked, ranks: Option<Ranks>, written: Option<Written>) -> Option<String> {
    let (cpu, begun, levels) = (processor_time(), asked.clock.now(), Levels::default());
    let own = written.as_ref().map(|w| w.path.clone());
    let leads = match ranks {
        Some(ranks) => ranks.rank == 0,
        None => muster::lacking().map_or_else(
            || written.as_ref().is_some_and(|w| w.section.ranks.contains(0)),
            |lacking| lacking.told_here,
        ),
    };
    let done = match ranks {
        // Those that are not would keep the others waiting.
        Some(_) if !asked.all => Err("some ranks could not record".into()),
        Some(ranks) => climb(asked, ranks, &levels, || written.map(|w| (w.header, w.section))),
        None => Err(muster::lacking().map_or_else(
            || "there is no communicator for it (--sync makes one, if all ranks are recorded)".into(),
            |lacking| format!("{} ran without the recorder", lacking.ranks),
        )),
    };
    if let (Ok(()), Some(own)) = (&done, own) {
        // It is merged; that it stays, too, can be seen.
        let _ = fs::remove_file(own);
    }
    if leads && done.is_ok() {
        // It holds less. There is none, mostly.
        let _ = fs::remove_file(asked.directory.join(INTERIM));
    }
    let (cpu, wall) = (processor_time() - cpu, asked.clock.now() - begun);
    let rank = ranks.map_or(0, |r| r.rank);
    let by_level = levels.note();
    let note = format!("merging={rank} merge_ns={cpu} merge_wall_ns={wall} merge_levels={by_level}");
    note_down(&asked.directory, &note);
    if leads && !asked.quiet {
        close_line(&asked.directory, done.is_ok());
    }
    let why = done.err()?;
    if leads {
        return Some(format!("{why}; the ranks' streams are not merged"));
    }
    // A launcher takes what is merged. Without one, this rank would count twice.
    let alone = asked.directory.join(MERGED).exists() && !asked.directory.join(NOTES).exists();
    alone.then(|| format!("{why}; its stream stays beside {MERGED}, which holds it, too"))
}

/// Hands what ranks have to rank 0, which writes what becomes of it. What that costs here is added to `levels`.
fn climb(
    asked: &Asked,
    ranks: Ranks,
    levels: &Levels,
    own: impl FnOnce() -> Option<(Header, Section)>,
) -> Result<(), String> {
    let climb = Climb::new(ranks, asked.clock, asked.patience, asked.number);
    let by = |signatures| Clustering(Options { signatures, ..Options::default() });
    match asked.how {
        How::Cluster => reduce(&climb, levels, by(Signatures::Exact), own, asked, clustered),
        How::Reference => reduce(&climb, levels, by(Signatures::Reference), own, asked, clustered),
        How::Plain => reduce(&climb, levels, asked.merging(), own, asked, |tree, _| merged(tree)),
    }
}

fn reduce<R: Reduce<Error: Display>>(
    climb: &Climb,
    levels: &Levels,
    how: R,
    own: impl FnOnce() -> Option<(Header, Section)>,
    asked: &Asked,
    finish: fn(Tree<R>, Merging) -> Result<Section, String>,
) -> Result<(), String> {
    let own = || {
        let rank = climb.rank();
        let (header, section) = own().ok_or_else(|| format!("rank {rank} has no stream"))?;
        let mut tree = Tree::new(how);
        tree.push(narrow(rank), section).map_err(text)?;
        Ok(Gathered { headers: vec![header], tree })
    };
    climb.run(levels, own, |all: Gathered<R>, in_time| {
        let mut header = Header::of_job(all.headers).unwrap_or_default();
        let mut section = finish(all.tree, asked.merging())?;
        Kept::default().apply(&mut section, &mut header);
        write(asked, &header, &section, in_time)
    })
}

/// What a rank and those below it have.
struct Gathered<R> {
    /// Headers that differ in more than what can be joined.
    headers: Vec<Header>,
    tree: Tree<R>,
}

impl<R: Reduce<Error: Display>> Load for Gathered<R> {
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        for _ in 0..varint::get_u64(&mut bytes).map_err(text)? {
            let length = varint::get_u64(&mut bytes).map_err(text)?;
            let length = length.to_usize();
            let (header, rest) = bytes.split_at_checked(length).ok_or("a header is cut off")?;
            bytes = rest;
            let header = Reader::new(header, ReadOptions::default()).map_err(text)?.header().clone();
            match self.headers.iter_mut().find(|h| h.is_like(&header)) {
                Some(same) => same.join(&header),
                None => self.headers.push(header),
            }
        }
        self.tree.take(Parts::unpack(bytes).map_err(text)?).map_err(text)
    }

    fn pack(mut self, more_follow: bool) -> Result<Vec<u8>, String> {
        if more_follow {
            self.tree.follow().map_err(text)?;
        }
        let mut out = Vec::new();
        varint::put_u64(&mut out, self.headers.len().to_u64());
        for header in &self.headers {
            let bytes = Writer::new(Vec::new(), header, WriteOptions::PIPE).and_then(Writer::finish);
            let bytes = bytes.map_err(text)?;
            varint::put_u64(&mut out, bytes.len().to_u64());
            out.extend(bytes);
        }
        out.extend(self.tree.pack().map_err(text)?);
        Ok(out)
    }
}

/// What `st-cluster | st-merge` makes of the ranks.
fn clustered(tree: Tree<Clustering>, merging: Merging) -> Result<Section, String> {
    let how = tree.how().clone();
    let clusters = how.root(tree.finish().map_err(text)?).map_err(text)?;
    let mut tree = Tree::new(merging);
    clusters.sections.into_iter().try_for_each(|s| tree.push_next(s)).map_err(text)?;
    merged(tree)
}

/// What `st-merge` makes of sections.
fn merged(tree: Tree<Merging>) -> Result<Section, String> {
    let mut merger = tree.how().root();
    let parts = tree.finish().map_err(text)?;
    parts.into_iter().try_for_each(|s| merger.add(s)).map_err(text)?;
    Ok(merger.finish())
}

/// Writes the merged stream under a name of its own; if there still is time then, it gets the one that it is known by.
fn write(
    asked: &Asked,
    header: &Header,
    section: &Section,
    in_time: &dyn Fn() -> bool,
) -> Result<(), String> {
    let (directory, name) = (&asked.directory, asked.name());
    let stream = || {
        let mut writer = Writer::new(Vec::new(), header, WriteOptions { level: LEVEL })?;
        writer.provenance(&asked.step())?;
        writer.section(section)?;
        let bytes: Vec<u8> = writer.finish()?;
        let fits = limits::file_may_have(bytes.len().to_u64());
        if fits { Ok(bytes) } else { Err(limits::too_large()) }
    };
    let temporary = directory.join(format!(".{name}.{}.{}", std::process::id(), asked.number));
    let failed = |e: std::io::Error| format!("{name}: {e}");
    let save = |bytes: Vec<u8>| {
        let mut file = File::create(&temporary)?;
        file.write_all(&bytes)?;
        // What is to outlive the program may have to outlive the machine.
        if asked.number > 0 { file.sync_all() } else { Ok(()) }
    };
    let written = stream().and_then(save).map_err(failed).and_then(|()| {
        if asked.number == 0 && directory.join(name).exists() {
            Err(format!("{name} is of another job at the same time"))
        } else if in_time() {
            fs::rename(&temporary, directory.join(name)).map_err(failed)
        } else {
            Err("it took too long".into())
        }
    });
    if written.is_err() {
        // Nothing more can be done if even this fails.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn text(e: impl Display) -> String {
    e.to_string()
}
