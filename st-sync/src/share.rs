//! Which process reads what.
//!
//! Each has a number of inputs one after the other; if there are fewer inputs than processes, of their sections; if there
//! are fewer of these, too, of the sections' ranks, and then each reads everything.

use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use st_cli::options::StreamIn;
use st_cli::{Batch, Input, Roll, Whole, each_batch};
use st_model::ranklist::RankList;
use st_model::section::Section;
use st_stream::{ReadOptions, Reader, SectionOffsets, Stored};

use crate::team::Team;

/// What the processes share out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Unit {
    /// Whole inputs. One process has all of them.
    #[default]
    File,
    /// Sections of inputs.
    Section,
    /// Ranks: every process has read all sections.
    Rank,
}

/// One input.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) whole: Whole,
    pub(crate) sections: Vec<Section>,
}

/// What a process has read.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Its inputs; all of them if sections or ranks are shared out.
    pub(crate) files: Vec<File>,
    pub(crate) unit: Unit,
    /// Its ranks, if these are shared out.
    pub(crate) ranks: RankList,
}

impl Share {
    /// Whether a rank of the sections read is this process's.
    pub(crate) fn has(&self, rank: u32) -> bool {
        self.unit != Unit::Rank || self.ranks.contains(rank)
    }

    /// Reads what the `me`-th of `n` processes has of the inputs, with so many threads for those that it has all of.
    ///
    /// # Errors
    ///
    /// If one cannot be read.
    pub(crate) fn read(paths: &[PathBuf], how: &StreamIn, jobs: usize, [me, n]: [usize; 2]) -> Result<Self> {
        if paths.len() >= n {
            let files = paths[part(paths.len(), me, n)].iter().map(|path| whole(path, how, jobs));
            return Ok(Self { files: files.collect::<Result<_>>()?, ..Self::default() });
        }
        let opened: Vec<Opened> = paths.iter().map(|path| Opened::new(path, how)).collect::<Result<_>>()?;
        let sections = opened.iter().map(|o| o.places.as_ref().map_or(1, Vec::len)).sum::<usize>();
        if sections >= n {
            let mine = part(sections, me, n);
            let mut before = 0;
            let mut files = Vec::new();
            for o in opened {
                let of = before..before + o.places.as_ref().map_or(1, Vec::len);
                before = of.end;
                let mine = mine.start.clamp(of.start, of.end)..mine.end.clamp(of.start, of.end);
                files.push(o.read(how, jobs, mine.start - of.start..mine.end - of.start)?);
            }
            return Ok(Self { files, unit: Unit::Section, ..Self::default() });
        }
        let mut files: Vec<File> = paths.iter().map(|path| whole(path, how, jobs)).collect::<Result<_>>()?;
        let all: Vec<u32> = files.iter().flat_map(|f| &f.sections).flat_map(|s| s.ranks.iter()).collect();
        let ranks: RankList = all[part(all.len(), me, n)].iter().copied().collect();
        // The first process writes: it keeps all.
        if me > 0 {
            let threads = files.iter_mut().flat_map(|f| &mut f.sections).flat_map(|s| &mut s.threads);
            threads.for_each(|t| t.columns.retain(|(rank, _)| ranks.contains(*rank)));
        }
        Ok(Self { files, unit: Unit::Rank, ranks })
    }
}

impl Share {
    /// What all processes know of the whole: whether all streams had their ends, and the ranks. The rest is that of the first
    /// input of this process.
    ///
    /// # Errors
    ///
    /// If streams are of different runs or hold a rank twice: on all processes.
    pub(crate) fn whole(&self, team: &mut Team<'_>) -> Result<Whole> {
        let mut roll = Roll::default();
        // Where ranks are shared out, every process has read all.
        let mine = if self.unit == Unit::Rank && team.me() > 0 { &[][..] } else { &self.files[..] };
        let called = mine.iter().try_for_each(|file| {
            let name = file.path.display().to_string().into();
            roll.stream(&name, &file.whole.header)?;
            file.sections.iter().try_for_each(|section| roll.section(&name, &section.ranks))
        });
        team.agree(called)?;
        let complete = self.files.iter().all(|file| file.whole.complete);
        let complete = team.all(&[i64::from(complete)])?.iter().all(|c| *c == [1]);
        if let Some(job) = &mut team.job {
            roll = Roll::of_all(*job, &roll)?;
        }
        let mut whole = self.files.first().map(|file| file.whole.clone()).unwrap_or_default();
        roll.name_programs(&mut whole.header);
        Ok(Whole { complete, ranks: roll.ranks().clone(), doubt: roll.doubt().to_owned(), ..whole })
    }
}

/// The `me`-th of `n` parts of so many things.
fn part(things: usize, me: usize, n: usize) -> Range<usize> {
    things * me / n..things * (me + 1) / n
}

fn whole(path: &Path, how: &StreamIn, jobs: usize) -> Result<File> {
    let mut sections = Vec::new();
    // One at a time: their exact times take longest.
    let decode = |batch: &Batch| -> Result<Vec<Section>> {
        (0..batch.sections.len()).map(|at| batch.section(at, Stored::section)).collect()
    };
    let whole = each_batch(&[path.to_owned()], how, 1, jobs, decode, |some| {
        sections.extend(some);
        Ok(())
    })?;
    Ok(File { path: path.to_owned(), whole, sections })
}

/// An input of which some sections are read.
struct Opened {
    path: PathBuf,
    reader: Reader<BufReader<std::fs::File>>,
    /// Where its sections are; `None` if there is one, or if that is not known.
    places: Option<Vec<SectionOffsets>>,
}

impl Opened {
    fn new(path: &Path, how: &StreamIn) -> Result<Self> {
        let name = || path.display().to_string();
        let file = Input::open(path, &how.steps)?.seekable(None)?;
        let options = ReadOptions { partial: how.partial };
        let mut reader = Reader::new(BufReader::new(file), options).with_context(name)?;
        let places = reader.index().with_context(name)?;
        Ok(Self { path: path.to_owned(), reader, places })
    }

    /// The sections with these numbers.
    fn read(mut self, how: &StreamIn, jobs: usize, mine: Range<usize>) -> Result<File> {
        let Some(places) = &self.places else {
            let mut file = whole(&self.path, how, jobs)?;
            // Every process knows the input, one has its sections.
            if mine.is_empty() {
                file.sections.clear();
            }
            return Ok(file);
        };
        let name = || self.path.display().to_string();
        let mut sections: Vec<Section> = Vec::new();
        if let Some(first) = places.get(mine.start).filter(|_| !mine.is_empty()) {
            self.reader.seek(first).with_context(name)?;
            for _ in mine {
                sections.extend(self.reader.next_section().with_context(name)?);
            }
        }
        let whole = Whole {
            header: self.reader.header().clone(),
            provenance: self.reader.provenance().to_vec(),
            // An index is found from the end of the stream.
            complete: true,
            level: self.reader.level(),
            ..Whole::default()
        };
        Ok(File { path: self.path, whole, sections })
    }
}
