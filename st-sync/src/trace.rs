//! The streams being corrected: reading them, their points, writing them with new ones.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use st_tool::options::StreamIn;
use st_tool::{InvalidStream, Output, Whole, each_section, expand};
use st_trace::columns::{Column, ColumnWriter, Comparison};
use st_trace::graph::{Barriers, Graph, Matcher};
use st_trace::section::Section;

use crate::offsets::Map;

/// Times are kept within these bounds, so that sums of a few of them fit.
const FARTHEST: i64 = 1 << 61;

/// One input.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) whole: Whole,
    pub(crate) sections: Vec<Section>,
}

/// All inputs.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    pub(crate) files: Vec<File>,
    /// Per stream of the graph: file, section, thread, column.
    places: Vec<Option<[usize; 4]>>,
}

impl Traces {
    pub(crate) fn read(inputs: &[PathBuf], how: &StreamIn) -> Result<Self> {
        let mut files: Vec<File> = Vec::new();
        for path in expand(inputs)? {
            let mut sections = Vec::new();
            let whole = each_section(std::slice::from_ref(&path), how, |_, section| {
                sections.push(section);
                Ok(())
            })?;
            if let Some(first) = files.first()
                && (first.whole.header.world, &first.whole.header.mpi)
                    != (whole.header.world, &whole.header.mpi)
            {
                let of = path.display();
                bail!(InvalidStream(format!("{of}: of another run than the streams before it")));
            }
            files.push(File { path, whole, sections });
        }
        Ok(Self { files, places: Vec::new() })
    }

    /// Matches the messages of all sections.
    pub(crate) fn graph(&mut self, barriers: Barriers) -> Result<Graph> {
        let mut matcher = Matcher::new(barriers);
        for (f, file) in self.files.iter().enumerate() {
            for (s, section) in file.sections.iter().enumerate() {
                matcher.add(section).with_context(|| file.path.display().to_string())?;
                for rank in section.ranks.iter() {
                    for (t, thread) in
                        section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank))
                    {
                        let column = thread.columns.iter().position(|(r, _)| *r == rank);
                        self.places.push(column.map(|c| [f, s, t, c]));
                    }
                }
            }
        }
        Ok(matcher.finish())
    }

    pub(crate) fn column(&self, stream: usize) -> Option<&Column> {
        let [f, s, t, c] = (*self.places.get(stream)?)?;
        Some(&self.files[f].sections[s].threads[t].columns[c].1)
    }

    /// How a rank's clock was compared.
    pub(crate) fn comparison(&self, rank: u32) -> Option<&Comparison> {
        let sections = self.files.iter().flat_map(|f| &f.sections).filter(|s| s.ranks.contains(rank));
        let columns = sections.flat_map(|s| &s.threads).flat_map(|t| &t.columns);
        columns.filter(|(r, c)| *r == rank && !c.clock.is_empty()).map(|(_, c)| &c.clock).next()
    }

    /// The points of a stream under a map, and how often its clock went back. They never decrease.
    pub(crate) fn points(&self, stream: usize, n: u32, map: &Map) -> (Vec<i64>, u64) {
        let mut points = Vec::with_capacity(n as usize);
        let (mut last, mut before, mut back) = (-FARTHEST, i64::MIN, 0);
        let times = self.column(stream).into_iter().flat_map(Column::times);
        for t in times.flat_map(|(enter, exit)| [enter, exit]).take(n as usize) {
            let t = map.apply(t).clamp(-FARTHEST, FARTHEST);
            back += u64::from(t < before);
            before = t;
            last = last.max(t);
            points.push(last);
        }
        (points, back)
    }

    /// Puts points in the place of a stream's times.
    pub(crate) fn replace(&mut self, stream: usize, points: &[i64], map: &Map) {
        let Some([f, s, t, c]) = self.places.get(stream).copied().flatten() else { return };
        let (_, column) = &mut self.files[f].sections[s].threads[t].columns[c];
        let start = column.chunks.first().map_or(0, |c| map.apply(c.base).clamp(-FARTHEST, FARTHEST));
        let mut writer = ColumnWriter::new(points.first().map_or(start, |p| start.min(*p)));
        let mut chunks = Vec::with_capacity(column.chunks.len());
        for pair in points.as_chunks::<2>().0 {
            chunks.extend(writer.push(pair[0], pair[1]));
        }
        chunks.extend(writer.flush());
        *column = Column { chunks, clock: Comparison::default() };
    }
}

/// Calls `make` for 0 to n - 1 on several threads, and returns what it made in order.
pub(crate) fn parallel<T: Send>(n: usize, jobs: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(n)));
    let work = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= n {
                return;
            }
            let made = make(i);
            done.lock().unwrap_or_else(|e| e.into_inner()).push((i, made));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.min(n) {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(|e| e.into_inner());
    done.sort_unstable_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, made)| made).collect()
}

/// Where results go: one stream, or a directory with a file per input.
pub(crate) fn target(output: &Path, input: &Path) -> Option<PathBuf> {
    let directory = output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/");
    directory.then(|| output.join(input.file_name().unwrap_or_else(|| "trace.st".as_ref())))
}

/// Writes sections of one run as one stream.
pub(crate) fn write<'a>(
    mut out: Output,
    whole: &Whole,
    sections: impl Iterator<Item = &'a Section>,
    options: st_trace::stream::WriteOptions,
) -> Result<()> {
    let mut writer = st_trace::stream::Writer::new(&mut out, &whole.header, options)?;
    for step in &whole.provenance {
        writer.provenance(step)?;
    }
    for section in sections {
        writer.section(section)?;
    }
    writer.finish()?;
    out.commit()
}
