//! Writing the result: one stream, or a directory with a file per input.

use st_model::num::{Exact as _, narrow};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use st_cli::{Finished, Output, Whole, transport};
use st_match::graph::Graph;
use st_model::section::Section;
use st_model::varint;
use st_stream::{ReadOptions, Reader, WriteOptions, Writer};

use crate::args::Args;
use crate::clc::Moves;
use crate::offsets::Map;
use crate::share::Unit;
use crate::team::Team;
use crate::trace::{Sketched, Traces, parallel};

/// Where the result goes.
#[derive(Debug)]
pub(crate) enum To {
    /// One stream, opened before the work: a terminal is refused then. Only the first process writes it.
    Single(Option<Output>),
    Directory(PathBuf),
}

impl To {
    /// Opens the one output, or makes the directory.
    pub(crate) fn open(args: &Args, first: bool) -> Result<Self> {
        let to = &args.output.output;
        if to.is_dir() || to.as_os_str().as_encoded_bytes().ends_with(b"/") {
            std::fs::create_dir_all(to).with_context(|| format!("{}: cannot create", to.display()))?;
            return Ok(Self::Directory(to.clone()));
        }
        Ok(Self::Single(first.then(|| Output::stream(to)).transpose()?))
    }
}

/// The counterpart of an input in a directory.
fn target(directory: &Path, input: &Path) -> PathBuf {
    directory.join(input.file_name().unwrap_or_else(|| "trace.st".as_ref()))
}

/// How this process's streams are corrected.
#[derive(Clone, Copy)]
pub(crate) struct Corrected<'a> {
    pub(crate) maps: &'a [Arc<Map>],
    /// Beyond the maps; empty if nothing was.
    pub(crate) moves: &'a [Moves],
}

impl Corrected<'_> {
    /// Puts corrected times in the place of those that were read, and makes sketches of them; what became of these is that of the
    /// whole team on the first process. Tells of how many more threads it has
    /// corrected the times.
    pub(crate) fn enter(
        self,
        traces: &mut Traces,
        graph: &Graph,
        jobs: usize,
        tell: &dyn Fn(u64),
        team: &mut Team<'_>,
    ) -> Result<Sketched> {
        let Self { maps, moves } = self;
        let mine: Vec<usize> = (0..graph.streams.len()).filter(|s| team.has(*s)).collect();
        // A few at a time: there is no room for all columns twice.
        let mut put = Ok(());
        for some in mine.chunks(jobs) {
            let moved = parallel(some.len(), jobs, |i| {
                let s = some[i];
                traces.moved(s, graph.streams[s].points, &maps[s], moves.get(s))
            });
            tell(some.len().to_u64());
            put =
                put.and(some.iter().zip(moved).try_for_each(|(s, column)| traces.put(*s, column, &maps[*s])));
        }
        team.agree(put)?;
        let ranks = traces.share.unit == Unit::Rank;
        let collected = if ranks { collect(traces, graph, maps, team) } else { Ok(()) };
        team.agree(collected)?;
        // Where ranks are shared out the first process has all of them now.
        let sketched =
            if ranks && team.me() > 0 { Ok(Sketched::default()) } else { traces.sketch_anew(jobs) };
        let Sketched { anew, kept } = team.agree(sketched)?;
        let mine: Vec<i64> = std::iter::once(anew.cast_signed()).chain(kept.iter().map(i64::from)).collect();
        let mut all = Sketched::default();
        for words in team.all(&mine)? {
            let mut words = words.iter();
            all.anew += words.next().map_or(0, |n| n.cast_unsigned());
            all.kept = all.kept.union(&words.filter_map(|r| u32::try_from(*r).ok()).collect());
        }
        Ok(all)
    }
}

/// Writes the result. No file has its name yet.
pub(crate) fn write(args: &Args, to: To, traces: &Traces, team: &mut Team<'_>) -> Result<Vec<Finished>> {
    let written = match (to, traces.share.unit) {
        (To::Single(out), unit) => {
            let sections: Vec<&Section> = traces.files().iter().flat_map(|f| &f.sections).collect();
            let whole = traces.files().first().map(|f| f.whole.clone()).unwrap_or_default();
            one(args, out, &whole, &sections, unit, team).map(|done| done.into_iter().collect())
        }
        (To::Directory(directory), Unit::File) => {
            let each = |file: &crate::share::File| {
                let out = Output::stream(&target(&directory, &file.path))?;
                let sections: Vec<&Section> = file.sections.iter().collect();
                one(args, Some(out), &file.whole, &sections, Unit::Rank, &mut Team::alone())
            };
            traces.files().iter().map(each).filter_map(Result::transpose).collect()
        }
        (To::Directory(directory), unit) => {
            let each = |file: &crate::share::File| {
                let out =
                    (team.me() == 0).then(|| Output::stream(&target(&directory, &file.path))).transpose();
                let out = team.agree(out)?;
                one(args, out, &file.whole, &file.sections.iter().collect::<Vec<_>>(), unit, team)
            };
            traces.files().iter().map(each).filter_map(Result::transpose).collect()
        }
    };
    team.agree(written)
}

/// Writes sections as one stream, each process's after those of the process before, unless the first has them all.
fn one(
    args: &Args,
    out: Option<Output>,
    whole: &Whole,
    sections: &[&Section],
    unit: Unit,
    team: &mut Team<'_>,
) -> Result<Option<Finished>> {
    let options = |out: &Output| args.output.write_options(out);
    let level = out.as_ref().map_or(0, |out| i64::from(options(out).level));
    let level = team.all(&[level])?.first().and_then(|l| l.first()).map_or(0, |l| narrow(*l));
    let mut bytes = Vec::new();
    if team.me() > 0 && unit != Unit::Rank {
        let mut writer = Writer::new(&mut bytes, &whole.header, WriteOptions { level })?;
        sections.iter().try_for_each(|s| writer.section(s))?;
        writer.finish()?;
    }
    let mut out = out;
    let written = {
        let mut writer = match &mut out {
            Some(out) => Some(Writer::new(out, &whole.header, WriteOptions { level })?),
            None => None,
        };
        writer.iter_mut().try_for_each(|writer| writer.threads(args.jobs.into()))?;
        let mut take = |process: usize, bytes: Vec<u8>| -> Result<()> {
            let Some(writer) = &mut writer else { return Ok(()) };
            if process == 0 {
                whole.provenance.iter().try_for_each(|step| writer.provenance(step))?;
                sections.iter().try_for_each(|s| writer.section(s))?;
            } else if !bytes.is_empty() {
                writer.copy(&mut Reader::new(bytes.as_slice(), ReadOptions::default())?)?;
            }
            Ok(())
        };
        let taken = match &mut team.job {
            Some(job) => transport::gather(*job, bytes, take),
            None => take(0, bytes),
        };
        taken.and_then(|()| Ok(writer.map(Writer::finish).transpose().map(drop)?))
    };
    written?;
    out.map(Output::finish).transpose()
}

/// Brings the times of all processes to the first, which has all sections.
fn collect(traces: &mut Traces, graph: &Graph, maps: &[Arc<Map>], team: &mut Team<'_>) -> Result<()> {
    let mut bytes = Vec::new();
    if team.me() > 0 {
        for s in (0..graph.streams.len()).filter(|s| team.has(*s)) {
            let mut last = 0i64;
            for t in traces.points(s, graph.streams[s].points, &Map::default()) {
                varint::put_i64(&mut bytes, t.wrapping_sub(last));
                last = t;
            }
        }
    }
    let owners = team.links.owners.clone();
    let Some(job) = &mut team.job else { return Ok(()) };
    transport::gather(*job, bytes, |process, bytes| {
        let mut src = bytes.as_slice();
        let theirs = owners.iter().enumerate().filter(|(_, p)| process > 0 && **p as usize == process);
        for (s, _) in theirs {
            let (mut last, mut points) = (0i64, Vec::new());
            for _ in 0..graph.streams[s].points {
                last = last.wrapping_add(varint::get_i64(&mut src)?);
                points.push(last);
            }
            traces.replace(s, points.into_iter(), &maps[s])?;
        }
        Ok(())
    })
}
