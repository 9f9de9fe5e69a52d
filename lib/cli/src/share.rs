//! Which process of a job reads which sections of a trace.
//!
//! Each has a number of inputs one after the other; if there are fewer inputs than processes, of their sections. Places
//! of sections are those that they have where one process reads all.

use st_model::num::Exact;
use std::ffi::OsStr;
use std::io::{BufReader, Seek};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use st_model::explanation::Explanation;
use st_model::section::Section;
use st_model::varint;
use st_stream::{ReadOptions, Reader, SectionOffsets, Trace, WriteOptions, frame_sizes};

use crate::options::StreamIn;
use crate::roll::Roll;
use crate::traces::Whole;
use crate::transport::{self, Gone, Transport};
use crate::{Input, InvalidStream, UsageError, expand, reads};

/// What a process has of the inputs.
#[derive(Debug)]
pub struct Share {
    inputs: Vec<(PathBuf, Range<usize>)>,
    /// Place of its first section.
    first: u64,
    /// Sections of all processes.
    all: u64,
    /// What the first input says of the run.
    whole: Whole,
}

/// An input and where its sections are, if it has an index.
struct Opened {
    reader: Reader<BufReader<std::fs::File>>,
    places: Option<Vec<SectionOffsets>>,
    sections: usize,
}

impl Opened {
    fn new(path: &Path, how: &StreamIn) -> Result<Self> {
        let name = || path.display().to_string();
        let mut file = Input::open(path, &how.steps)?.seekable(None)?;
        let options = ReadOptions { partial: how.partial };
        let again = file.try_clone().with_context(name)?;
        let mut reader = Reader::new(BufReader::new(again), options).with_context(name)?;
        let places = reader.index().with_context(name)?;
        let sections = if let Some(places) = &places {
            places.len()
        } else {
            file.rewind().with_context(name)?;
            let frames = frame_sizes(BufReader::new(&file), options).with_context(name)?;
            frames.iter().filter(|f| f.kind == "SECTION").count()
        };
        // Both handles have one place in the file.
        file.rewind().with_context(name)?;
        let reader =
            Reader::new(BufReader::new(file), options).with_context(name)?.within(&how.steps.budget());
        Ok(Self { reader, places, sections })
    }
}

impl Share {
    /// Finds out what this process has; on all processes at once. `unit` sections, or a multiple of it, go together if there
    /// are enough of them.
    ///
    /// # Errors
    ///
    /// If standard input is among the inputs, or one cannot be read or is of another run: on all processes.
    pub fn of(job: &mut dyn Transport, paths: &[PathBuf], how: &StreamIn, unit: u64) -> Result<Self> {
        let (me, n) = (job.rank(), job.size());
        let paths = named(job, paths)?;
        let unit = unit.to_usize().max(1);
        let files = paths.len() >= n;
        let mine = if files { part(paths.len(), me, n, unit) } else { 0..paths.len() };
        let opened: Result<Vec<Opened>> = paths[mine.clone()].iter().map(|p| Opened::new(p, how)).collect();
        let opened = transport::agree(job, opened)?;
        let facts = |o: &Opened| Whole {
            header: o.reader.header().clone(),
            provenance: o.reader.provenance().to_vec(),
            level: o.reader.level(),
            ..Whole::default()
        };
        let mut whole = opened.first().map(facts).unwrap_or_default();
        let mut roll = Roll::default();
        let begun = paths[mine.clone()].iter().zip(&opened);
        let begun = begun.map(|(path, o)| roll.stream(&named_as(path), o.reader.header()));
        let begun = begun.collect::<Result<()>>();
        transport::agree(job, begun)?;
        Roll::of_all(job, &roll)?.name_programs(&mut whole.header);
        let sections: usize = opened.iter().map(|o| o.sections).sum();
        let mut counts = vec![sections];
        if files {
            let mut bytes = Vec::new();
            varint::put_u64(&mut bytes, sections.to_u64());
            let all = transport::all(job, &bytes)?;
            let count = |b: &Vec<u8>| varint::get_u64(&mut b.as_slice()).map_err(|_| Gone);
            let all = all.iter().map(count).collect::<Result<Vec<u64>, Gone>>()?;
            counts = all.into_iter().map(|n| n.to_usize()).collect();
        }
        let total: usize = counts.iter().sum();
        let (first, of_mine) = if files {
            (counts[..me].iter().sum(), 0..sections)
        } else {
            let of_mine = part(total, me, n, unit);
            (of_mine.start, of_mine)
        };
        let mut before = 0;
        let mut inputs = Vec::new();
        for (path, o) in paths[mine].iter().zip(&opened) {
            let of = before..before + o.sections;
            before = of.end;
            let range = of_mine.start.clamp(of.start, of.end)..of_mine.end.clamp(of.start, of.end);
            if !range.is_empty() || files {
                inputs.push((path.clone(), range.start - of.start..range.end - of.start));
            }
        }
        Ok(Self { inputs, first: first.to_u64(), all: total.to_u64(), whole })
    }

    /// What the first input of this process says of the run; of all inputs on the first process.
    pub fn whole(&self) -> &Whole {
        &self.whole
    }

    /// Hands each section of this process with its place to `take`. Returns what all processes know of the whole then, and
    /// whether sections of other processes follow. On all processes at once.
    ///
    /// # Errors
    ///
    /// If one cannot be read, if the streams hold a rank twice, or as `take`: on all processes.
    pub fn each_section(
        &self,
        job: &mut dyn Transport,
        how: &StreamIn,
        take: impl FnMut(u64, Section) -> Result<()>,
    ) -> Result<(Whole, bool)> {
        let (mut roll, mut whole) = (Roll::default(), self.whole.clone());
        let read = self.read(&mut roll, &mut whole, how, take);
        let (complete, more) = transport::agree(job, read)?;
        let all = transport::all(job, &[u8::from(complete)])?;
        let complete = all.iter().all(|c| *c == [1]);
        let roll = Roll::of_all(job, &roll)?;
        let (ranks, doubt) = (roll.ranks().clone(), roll.doubt().to_owned());
        let explained = explained(job, whole.explanation.take())?;
        explained.iter().for_each(|e| whole.explained(Some(e)));
        Ok((Whole { complete, ranks, doubt, ..whole }.of_all(), more))
    }

    fn read(
        &self,
        roll: &mut Roll,
        whole: &mut Whole,
        how: &StreamIn,
        mut take: impl FnMut(u64, Section) -> Result<()>,
    ) -> Result<(bool, bool)> {
        let (mut place, mut complete) = (self.first, true);
        for (path, sections) in &self.inputs {
            let named = named_as(path);
            let name = || named.to_string();
            let Opened { mut reader, places, sections: all } = Opened::new(path, how)?;
            roll.stream(&named, reader.header())?;
            let mut skip = sections.start;
            if let Some(to) = places.as_ref().and_then(|p| p.get(sections.start)).filter(|_| skip > 0) {
                reader.seek(to).with_context(name)?;
                skip = 0;
            }
            for _ in 0..skip {
                reader.next_section().with_context(name)?;
            }
            for _ in sections.clone() {
                let section = reader.next_section().with_context(name)?;
                let changed = || InvalidStream("has changed while it was read".into());
                let section = section.ok_or_else(changed).with_context(name)?;
                roll.section(&named, &section.ranks)?;
                take(place, section).with_context(name)?;
                place += 1;
            }
            if sections.end == all {
                // Reads to the end of the stream.
                reader.next_section().with_context(name)?;
                whole.explained(reader.explanation());
                complete &= reader.is_complete();
            }
        }
        Ok((complete, place < self.all))
    }
}

/// What is kept of wait states in the streams that processes have read to their ends.
fn explained(job: &mut dyn Transport, mine: Option<Explanation>) -> Result<Vec<Explanation>> {
    let mut bytes = Vec::new();
    if mine.is_some() {
        st_stream::write(&Trace { explanation: mine, ..Trace::default() }, &mut bytes, WriteOptions::PIPE)?;
    }
    let mut all = Vec::new();
    for theirs in transport::all(job, &bytes)?.iter().filter(|bytes| !bytes.is_empty()) {
        all.extend(st_stream::read(theirs.as_slice(), ReadOptions::default())?.explanation);
    }
    Ok(all)
}

fn named_as(path: &Path) -> Arc<str> {
    path.display().to_string().into()
}

/// The inputs, listed by one process, for directories may change.
fn named(job: &mut dyn Transport, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let piped = paths.is_empty() || paths.iter().any(|p| p.as_os_str() == "-");
    let listed = if piped {
        let why = "inside a job, name the inputs: standard input reaches one process only";
        Err(UsageError(why.into()).into())
    } else if job.rank() == 0 {
        expand(paths)
    } else {
        Ok(Vec::new())
    };
    let listed = transport::agree(job, listed)?;
    let mine: Vec<&[u8]> = listed.iter().map(|p| p.as_os_str().as_bytes()).collect();
    let told = transport::tell(job, mine.join(&0))?;
    let all: Vec<PathBuf> = told.split(|b| *b == 0).map(|p| OsStr::from_bytes(p).into()).collect();
    // The process that writes may read others of them.
    let read = all.iter().try_for_each(|path| reads(path));
    transport::agree(job, read.map_err(anyhow::Error::from))?;
    Ok(all)
}

/// The `me`-th of `n` parts of so many things, in whole units if there are enough.
fn part(things: usize, me: usize, n: usize, unit: usize) -> Range<usize> {
    let units = things.div_ceil(unit);
    if units < n {
        return things * me / n..things * (me + 1) / n;
    }
    let bound = |p: usize| (units * p / n * unit).min(things);
    bound(me)..bound(me + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_and_of_whole_units_where_there_are_enough() {
        for things in [0, 1, 5, 40, 64, 100] {
            for n in 1..7 {
                let parts: Vec<_> = (0..n).map(|me| part(things, me, n, 8)).collect();
                assert!(parts[0].start == 0 && parts[n - 1].end == things);
                assert!(parts.windows(2).all(|w| w[0].end == w[1].start));
                let whole = parts[..n - 1].iter().all(|p| p.end % 8 == 0);
                assert!(whole || things < 8 * n, "{things} {n} {parts:?}");
            }
        }
    }
}
