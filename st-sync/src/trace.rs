//! The streams being corrected: reading them, their points, writing them with new ones.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use st_cli::options::StreamIn;
use st_cli::{InvalidStream, UsageError, Whole, expand, reads, transport};
use st_match::graph::{Graph, Matcher, ShareError, Stream, roll};
use st_model::anew::{self, Cuts};
use st_model::columns::{Column, ColumnWriter, Comparison, Points as ColumnPoints};
use st_model::ranklist::RankList;
use st_model::section::{NO_SYM, Section};

use crate::clc::{Moves, Points};
use crate::offsets::Map;
use crate::passes::Passes;
use crate::share::{File, Share};
use crate::team::Team;

/// Times are kept within these bounds, so that sums of a few of them fit.
const FARTHEST: i64 = 1 << 61;

/// All inputs that this process has, of the team's.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    pub(crate) share: Share,
    /// What is known of all inputs of the team.
    pub(crate) whole: Whole,
    /// Per stream of the graph: file, section, thread, column.
    places: Vec<Option<[usize; 4]>>,
    /// Threads with times that were corrected, by file, section and thread: what was left out of their sketches.
    changed: BTreeMap<[usize; 3], Cuts>,
}

/// What became of the sketches and sums of threads whose times were corrected.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sketched {
    /// Threads of ranks whose sketches were made anew from corrected times.
    pub(crate) anew: u64,
    /// Ranks some of whose sketches are as recorded, since not every call that they stand for has its exact times.
    pub(crate) kept: RankList,
}

impl Traces {
    /// Reads this process's share of the inputs.
    pub(crate) fn read(inputs: &[PathBuf], how: &StreamIn, jobs: usize, team: &mut Team<'_>) -> Result<Self> {
        let named = match (&team.job, inputs) {
            (None, _) => expand(inputs),
            (Some(_), []) => Err(no_input()),
            (Some(_), inputs) if inputs.iter().any(|i| i.as_os_str() == "-") => Err(no_input()),
            (Some(job), inputs) if job.rank() == 0 => expand(inputs),
            _ => Ok(Vec::new()),
        };
        let mut paths = team.agree(named)?;
        if let Some(job) = &mut team.job {
            // Listed by one, for directories may change.
            let mine: Vec<&[u8]> = paths.iter().map(|p| p.as_os_str().as_bytes()).collect();
            let told = transport::tell(*job, mine.join(&0))?;
            paths = told.split(|b| *b == 0).map(|p| OsStr::from_bytes(p).into()).collect();
        }
        let read = paths.iter().try_for_each(|path| reads(path));
        team.agree(read.map_err(anyhow::Error::from))?;
        let share = Share::read(&paths, how, jobs, [team.me(), team.size()]);
        let share = team.agree(share)?;
        let whole = share.whole(team)?;
        Ok(Self { share, whole, ..Self::default() })
    }

    pub(crate) fn files(&self) -> &[File] {
        &self.share.files
    }

    /// Whether any process has exact times.
    pub(crate) fn are_timed(&self, team: &mut Team<'_>) -> Result<bool> {
        let mut sections = self.files().iter().flat_map(|f| &f.sections);
        let timed = i64::from(sections.any(Section::has_times));
        Ok(team.all(&[timed])?.iter().any(|t| *t == [1]))
    }

    /// Matches the messages of all sections by a matcher that has none yet, together with the other processes of the team, whose
    /// links are known then.
    /// Tells how many more ranks it has gone through.
    pub(crate) fn graph(
        &mut self,
        mut matcher: Matcher,
        tell: &dyn Fn(u64),
        team: &mut Team<'_>,
    ) -> Result<Graph> {
        let share = &self.share;
        if let Some(job) = &mut team.job {
            let sections = share.files.iter().flat_map(|f| &f.sections);
            let rolls = transport::all(*job, &roll(sections, |rank| share.has(rank)))?;
            let shared = matcher.share(job.rank(), &rolls).map_err(invalid);
            transport::agree(*job, shared)?;
        }
        let matched = share.files.iter().try_for_each(|file| {
            let each = file.sections.iter().try_for_each(|section| {
                matcher.add(section)?;
                tell(section.ranks.len());
                anyhow::Ok(())
            });
            each.with_context(|| file.path.display().to_string())
        });
        team.agree(matched)?;
        let graph = if team.job.is_some() {
            let came = team.swap(matcher.sent())?;
            let matched = matcher.matched(&came).map_err(invalid);
            let matched = team.agree(matched)?;
            let came = team.swap(matched)?;
            let finished = matcher.finish_shared(&came).map_err(invalid);
            let (graph, links) = team.agree(finished)?;
            team.links = links;
            graph
        } else {
            matcher.finish()
        };
        self.place(&graph);
        Ok(graph)
    }

    /// Finds the columns of the graph's streams.
    fn place(&mut self, graph: &Graph) {
        // Of a rank that is there twice, one after the other.
        let mut places: HashMap<(u32, usize), VecDeque<Option<[usize; 4]>>> = HashMap::new();
        for (f, file) in self.share.files.iter().enumerate() {
            for (s, section) in file.sections.iter().enumerate() {
                for (t, thread) in section.threads.iter().enumerate() {
                    let columns: HashMap<u32, usize> =
                        thread.columns.iter().enumerate().rev().map(|(c, (rank, _))| (*rank, c)).collect();
                    for rank in thread.ranks.iter() {
                        let place = columns.get(&rank).map(|c| [f, s, t, *c]);
                        places.entry((rank, t)).or_default().push_back(place);
                    }
                }
            }
        }
        let mut place = |s: &Stream| places.get_mut(&(s.rank, s.thread as usize))?.pop_front()?;
        self.places = graph.streams.iter().map(&mut place).collect();
    }

    pub(crate) fn column(&self, stream: usize) -> Option<&Column> {
        let [f, s, t, c] = (*self.places.get(stream)?)?;
        Some(&self.share.files[f].sections[s].threads[t].columns[c].1)
    }

    /// How a rank's clock was compared.
    pub(crate) fn comparison(&self, rank: u32) -> Option<&Comparison> {
        let sections = self.files().iter().flat_map(|f| &f.sections).filter(|s| s.ranks.contains(rank));
        let columns = sections.flat_map(|s| &s.threads).flat_map(|t| &t.columns);
        columns.filter(|(r, c)| *r == rank && !c.clock.is_empty()).map(|(_, c)| &c.clock).next()
    }

    /// The points of a stream under a map. They never decrease.
    pub(crate) fn points<'a>(
        &'a self,
        stream: usize,
        n: u32,
        map: &'a Map,
    ) -> impl Iterator<Item = i64> + Send + 'a {
        let mut last = -FARTHEST;
        self.read_points(stream, n, map).map(move |t| {
            last = last.max(t);
            last
        })
    }

    /// How often the clock of a stream goes back.
    pub(crate) fn back(&self, stream: usize, n: u32) -> u64 {
        let (mut before, mut back) = (i64::MIN, 0);
        for t in self.read_points(stream, n, &Map::default()) {
            back += u64::from(t < before);
            before = t;
        }
        back
    }

    fn read_points<'a>(
        &'a self,
        stream: usize,
        n: u32,
        map: &'a Map,
    ) -> impl Iterator<Item = i64> + Send + 'a {
        let points = self.column(stream).map_or_else(ColumnPoints::default, Column::points).take(n as usize);
        let mut map = map.reader();
        points.map(move |t| map.apply(t).clamp(-FARTHEST, FARTHEST))
    }

    /// The column of a stream with its points moved under a map.
    pub(crate) fn moved(&self, stream: usize, n: u32, map: &Map, moves: Option<&Moves>) -> Option<Column> {
        let points = self.points(stream, n, map);
        let none = Moves::default();
        self.rewritten(stream, map, moves.unwrap_or(&none).apply(points))
    }

    /// Puts points in the place of a stream's times.
    pub(crate) fn replace(
        &mut self,
        stream: usize,
        points: impl Iterator<Item = i64>,
        map: &Map,
    ) -> Result<()> {
        let column = self.rewritten(stream, map, points);
        self.put(stream, column, map)
    }

    /// Puts a column in the place of a stream's, whose times were mapped and moved.
    ///
    /// # Errors
    ///
    /// If a rank cannot be read back.
    pub(crate) fn put(&mut self, stream: usize, column: Option<Column>, map: &Map) -> Result<()> {
        let place = self.places.get(stream).copied().flatten();
        let (Some([f, s, t, c]), Some(column)) = (place, column) else { return Ok(()) };
        let section = &mut self.share.files[f].sections[s];
        if let (Entry::Vacant(first), true) =
            (self.changed.entry([f, s, t]), section.threads[t].columns[c].1.chunks != column.chunks)
        {
            first.insert(anew::left_out(section, t)?);
        }
        let (rank, old) = &mut section.threads[t].columns[c];
        let ended = section.ended.iter_mut().find(|e| e.rank == *rank && e.thread as usize == t);
        if let Some(e) = ended.filter(|e| e.inside != NO_SYM) {
            // The call that it was in goes on from the last one.
            let last = |column: &Column| column.points().last();
            let moved =
                last(&column).zip(last(old)).map_or(0, |(new, old)| new.saturating_sub(map.apply(old)));
            e.entered = map.apply(e.entered).saturating_add(moved).clamp(-FARTHEST, FARTHEST);
        }
        *old = column;
        Ok(())
    }

    /// Makes the sketches and sums of threads anew whose times were corrected.
    ///
    /// # Errors
    ///
    /// If a rank cannot be read back.
    pub(crate) fn sketch_anew(&mut self, jobs: usize) -> Result<Sketched> {
        let changed: Vec<([usize; 3], Cuts)> = std::mem::take(&mut self.changed).into_iter().collect();
        let files = &self.share.files;
        let made = parallel(changed.len(), jobs, |i| {
            let ([f, s, t], cuts) = &changed[i];
            anew::sketched_anew(&files[*f].sections[*s], *t, cuts)
        });
        let mut sketched = Sketched::default();
        for (([f, s, t], _), made) in changed.into_iter().zip(made) {
            let thread = &mut self.share.files[f].sections[s].threads[t];
            match made? {
                Some((sketches, sums)) => {
                    (thread.sketches, thread.sums) = (sketches, sums);
                    sketched.anew += thread.ranks.len();
                }
                None if thread.sketches.is_empty() => {}
                None => sketched.kept = sketched.kept.union(&thread.ranks),
            }
        }
        Ok(sketched)
    }

    /// A stream's column with other points.
    fn rewritten(&self, stream: usize, map: &Map, points: impl Iterator<Item = i64>) -> Option<Column> {
        let column = self.column(stream)?;
        let start = column.chunks.first().map_or(0, |c| map.apply(c.base).clamp(-FARTHEST, FARTHEST));
        let mut points = points.peekable();
        let mut writer = ColumnWriter::new(points.peek().map_or(start, |p| start.min(*p)));
        let mut chunks = Vec::with_capacity(column.chunks.len());
        while let (Some(enter), Some(exit)) = (points.next(), points.next()) {
            chunks.extend(writer.push(enter, exit));
        }
        chunks.extend(writer.flush());
        for chunk in &mut chunks {
            chunk.gaps.shrink_to_fit();
            chunk.durations.shrink_to_fit();
        }
        Some(Column { chunks, clock: Comparison::default() })
    }
}

/// Measured points under maps, of the streams that this process has.
pub(crate) struct Mapped<'a> {
    pub(crate) traces: &'a Traces,
    pub(crate) graph: &'a Graph,
    pub(crate) maps: &'a [Arc<Map>],
    pub(crate) mine: &'a [bool],
    pub(crate) passes: &'a Passes<'a>,
}

impl Points for Mapped<'_> {
    fn of(&self, stream: usize) -> Box<dyn Iterator<Item = i64> + Send + '_> {
        if !self.mine[stream] {
            return Box::new(std::iter::empty());
        }
        let points = self.traces.points(stream, self.graph.streams[stream].points, &self.maps[stream]);
        Box::new(self.passes.of(points))
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

fn invalid(error: ShareError) -> anyhow::Error {
    InvalidStream(error.to_string()).into()
}

fn no_input() -> anyhow::Error {
    UsageError("inside a job, name the inputs: standard input reaches one process only".into()).into()
}
