//! Sections as they are stored: read, and not decoded yet, which any thread can do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::column::{self, Owner};
use super::error::{DecodeError, Error, ErrorKind};
use super::expansion::Expansion;
use super::frame::StoredFrame;
use super::kind::FrameKind;
use super::section::{Opening, decode_ended, decode_lanes, decode_sums};
use super::sketches::decode_sketches;
use super::structure::{self, Known};
use super::{derived, matched, objects, slow};
use st_model::columns::{Chunk, Column};
use st_model::num::Exact as _;
use st_model::ranklist::RankList;
use st_model::section::{Section, Thread};
use st_model::sites::SiteTable;

/// A section's frames, with checksums checked. Memory: theirs.
#[derive(Clone, Debug)]
pub struct Stored {
    /// That which begins the section.
    pub(super) frame: StoredFrame,
    pub(super) opening: Opening,
    pub(super) sites: SiteTable,
    pub(super) objects: Arc<StoredFrame>,
    pub(super) parts: Vec<StoredFrame>,
    /// By rank and thread.
    pub(super) times: Vec<(Owner, Times)>,
    pub(super) derived: derived::Share,
}

/// The frames of a rank's thread with its exact times, in order.
#[derive(Clone, Debug)]
pub(super) struct Times {
    frames: Vec<(FrameKind, StoredFrame)>,
    of: Arc<Expansion>,
    /// What they expand to has been counted.
    counted: Arc<AtomicBool>,
}

impl Times {
    pub(super) fn new(of: &Arc<Expansion>) -> Self {
        Self { frames: Vec::new(), of: Arc::clone(of), counted: Arc::default() }
    }

    pub(super) fn push(&mut self, kind: FrameKind, frame: StoredFrame) {
        self.frames.push((kind, frame));
    }

    /// What is wrong with them as a whole.
    pub(super) fn fault(&self, why: &'static str) -> Error {
        let fault = |(kind, frame): &(FrameKind, StoredFrame)| {
            frame.fault(ErrorKind::Payload { frame: *kind, source: DecodeError::Invalid(why) })
        };
        self.frames.first().map_or_else(|| Error::new(0, None, ErrorKind::Missing(FrameKind::Column)), fault)
    }

    /// The times.
    pub(super) fn column(&self) -> Result<Column, Error> {
        let mut column = Column::default();
        let count = !self.counted.load(Ordering::Relaxed);
        for (kind, frame) in &self.frames {
            let kind = *kind;
            if kind == FrameKind::Clock {
                column.clock = frame.decode(kind, column::decode_clock)?.1;
                continue;
            }
            let (_, chunks, asked) = frame.chunks(kind)?;
            // Of others it is known before they are expanded, and has been counted by who has read them.
            let coded = kind.joins_times() || frame.has_coded_times();
            let bytes = chunks.iter().map(|chunk| (chunk.gaps.len() + chunk.durations.len()).to_u64()).sum();
            if coded && count && !(self.of.holds(bytes) && self.of.asks(asked)) {
                return Err(frame.fault(ErrorKind::TooLarge(kind)));
            }
            if !follow(&column, &chunks) {
                let source = DecodeError::Invalid("does not follow the chunk before it");
                return Err(frame.fault(ErrorKind::Payload { frame: kind, source }));
            }
            if column.chunks.is_empty() {
                // Of many ranks that have one each: nothing is set aside for more.
                column.chunks = chunks;
            } else {
                column.chunks.extend(chunks);
            }
        }
        // What is refused is refused again.
        self.counted.store(true, Ordering::Relaxed);
        Ok(column)
    }
}

/// Whether these are the times that come next.
pub(super) fn follow(column: &Column, chunks: &[Chunk]) -> bool {
    chunks.first().is_none_or(|chunk| chunk.first == column.events())
}

impl Stored {
    /// The section's ranks.
    #[must_use]
    pub fn ranks(&self) -> &RankList {
        &self.opening.ranks
    }

    /// Its call sites.
    #[must_use]
    pub fn sites(&self) -> &SiteTable {
        &self.sites
    }

    /// Whether there are exact times, or comparisons of clocks.
    #[must_use]
    pub fn has_times(&self) -> bool {
        !self.times.is_empty()
    }

    /// Bytes of its frames, those of tables apart.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let times = self.times.iter().flat_map(|(_, times)| &times.frames).map(|(_, frame)| frame);
        self.parts.iter().chain(times).map(|frame| frame.stored.len()).sum()
    }

    /// The section.
    ///
    /// # Errors
    ///
    /// If it is damaged.
    pub fn section(&self) -> Result<Section, Error> {
        let mut columns: BTreeMap<u32, Vec<(u32, Column)>> = BTreeMap::new();
        for ((rank, thread), times) in &self.times {
            columns.entry(*thread).or_default().push((*rank, times.column()?));
        }
        let section = self.with(columns)?;
        for ((rank, thread), times) in &self.times {
            let thread = section.threads.get(*thread as usize);
            let events = thread.and_then(|t| Some((t, t.column(*rank)?.events())));
            if events.is_some_and(|(thread, events)| section.fewer_calls(thread, *rank, events)) {
                return Err(times.fault("times of more calls than the thread makes"));
            }
        }
        Ok(section)
    }

    /// The section without exact times, which must be sound all the same.
    ///
    /// # Errors
    ///
    /// As [`Stored::section`].
    pub fn section_without_times(&self) -> Result<Section, Error> {
        let mut section = self.section()?;
        section.threads.iter_mut().for_each(|thread| thread.columns.clear());
        Ok(section)
    }

    /// The section with these times by thread.
    fn with(&self, mut columns: BTreeMap<u32, Vec<(u32, Column)>>) -> Result<Section, Error> {
        let Self { frame, sites, objects, parts, .. } = self;
        let (opening, sites) = (self.opening.clone(), sites.clone());
        let tables = objects.decode(FrameKind::Objects, |b| objects::decode(b, &opening.ranks))?;
        let [mut structure, mut lanes, mut sketches, mut derived, mut sums, mut slowness, mut ended] =
            [const { None }; 7];
        for part in parts {
            let place = match part.kind()? {
                Some(FrameKind::Struct) => &mut structure,
                Some(FrameKind::Lanes) => &mut lanes,
                Some(FrameKind::Sketch | FrameKind::Quantiles | FrameKind::Durations) => &mut sketches,
                Some(FrameKind::Derived) => &mut derived,
                Some(FrameKind::Sums) => &mut sums,
                Some(FrameKind::Slow) => &mut slowness,
                Some(FrameKind::Ended) => &mut ended,
                Some(kind) => return Err(part.fault(ErrorKind::OutOfPlace(kind))),
                None => continue,
            };
            *place = Some(part);
        }
        let n = opening.threads.len();
        let missing = |kind| frame.fault(ErrorKind::Missing(kind));
        let known = Known { ranks: &opening.ranks, sites: sites.sites().len(), tables: &tables, threads: n };
        let struct_frame = structure.ok_or_else(|| missing(FrameKind::Struct))?;
        let structure = struct_frame.decode(FrameKind::Struct, |b| structure::decode(b, &known))?;
        let lanes = lanes
            .ok_or_else(|| missing(FrameKind::Lanes))?
            .decode(FrameKind::Lanes, |b| decode_lanes(b, n))?;
        let symbols = structure.symbols.len();
        let sketches = match sketches {
            Some(f) => {
                let kind = f.kind()?.unwrap_or(FrameKind::Sketch);
                f.decode(kind, |b| decode_sketches(kind, b, &opening.threads, symbols))?
            }
            None => vec![Vec::new(); n],
        };
        let sums = match sums {
            Some(f) => f.decode(FrameKind::Sums, |b| decode_sums(b, n, symbols))?,
            None => vec![Vec::new(); n],
        };
        let slow = match slowness {
            Some(f) => f.decode(FrameKind::Slow, |b| slow::decode(b, &opening.threads, symbols))?,
            None => vec![Vec::new(); n],
        };
        let ended = match ended {
            Some(f) => f.decode(FrameKind::Ended, |b| decode_ended(b, &opening.threads, symbols))?,
            None => Vec::new(),
        };
        let controls = opening
            .threads
            .into_iter()
            .zip(structure.threads)
            .zip(lanes)
            .zip(sketches)
            .zip(sums.into_iter().zip(slow));
        let threads = controls.zip(0..).map(|(((((ranks, c), lanes), sketches), (sums, slow)), thread)| {
            let columns = columns.remove(&thread).unwrap_or_default();
            let structure::Control { tree, counts, params } = c;
            Thread { ranks, tree, counts, params, lanes, sketches, sums, slow, columns }
        });
        let mut section = Section {
            threads: threads.collect(),
            ranks: opening.ranks,
            hosts: opening.hosts,
            sites,
            tables,
            symbols: structure.symbols,
            partitions: structure.partitions,
            ended,
        };
        if !structure.matched.is_empty() && matched::make(&mut section, &structure.matched).is_none() {
            let source = DecodeError::Invalid("counts that do not follow");
            return Err(struct_frame.fault(ErrorKind::Payload { frame: FrameKind::Struct, source }));
        }
        if let Some(frame) = derived {
            let made = frame.decode(FrameKind::Derived, |b| derived::decode(&section, &self.derived, b))?;
            section.threads.iter_mut().zip(made).for_each(|(thread, sketches)| thread.sketches = sketches);
        }
        Ok(section)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expansion::MEMORY;

    /// Times of so many events in a TIMES frame, of a stream whose times have expanded to so much before.
    fn times(events: u32, before: u64) -> Times {
        let frame = series((0, 0), events);
        let of = Arc::new(Expansion::default());
        of.read(frame.stored.len().to_u64());
        assert!(of.holds(before));
        let mut times = Times::new(&of);
        times.push(FrameKind::Spans, frame);
        times
    }

    /// A gap and a duration of an event are a byte each.
    fn series(owner: Owner, events: u32) -> StoredFrame {
        let mut writer = st_model::columns::ColumnWriter::resume(0, 0);
        let mut chunks: Vec<Chunk> =
            (1..=i64::from(events)).filter_map(|n| writer.push(10 * n, 10 * n + 1)).collect();
        chunks.extend(writer.flush());
        StoredFrame::stored(FrameKind::Spans, crate::series::encode(owner, &chunks).unwrap().0)
    }

    #[test]
    fn times_may_expand_to_what_they_take_and_no_further() {
        // They count once however often they are asked for.
        let room = MEMORY - 2 * 1000;
        let exact = times(1000, room);
        assert!((0..3).all(|_| exact.column().unwrap().events() == 1000));
        let more = times(1001, room);
        for _ in 0..2 {
            let told = more.column().unwrap_err();
            assert!(matches!(told.kind(), ErrorKind::TooLarge(FrameKind::Spans)), "{told}");
        }
    }

    #[test]
    fn times_ask_for_what_they_have_paid_for_and_no_further() {
        let exact = times(1000, 0);
        let frame = &exact.frames[0].1;
        let asked = frame.chunks(FrameKind::Spans).unwrap().2;
        let room = crate::expansion::may_ask(frame.stored.len().to_u64()) - asked;
        assert!(exact.of.asks(room) && exact.column().is_ok());
        let more = times(1000, 0);
        assert!(more.of.asks(room + 1));
        let told = more.column().unwrap_err();
        assert!(matches!(told.kind(), ErrorKind::TooLarge(FrameKind::Spans)), "{told}");
    }

    #[test]
    fn times_of_all_ranks_of_a_stream_count_together() {
        let header = st_model::header::Header::default();
        let stream = crate::Writer::new(Vec::new(), &header, crate::WriteOptions::default())
            .unwrap()
            .finish()
            .unwrap();
        let mut reader = crate::Reader::new(&stream[..], crate::ReadOptions::default()).unwrap();
        for rank in 0..3 {
            reader.hold(FrameKind::Spans, series((rank, 0), 1000)).unwrap();
        }
        let held: Vec<&Times> = reader.held().collect();
        assert!(held[0].of.holds(MEMORY - 2 * 2 * 1000));
        assert!(held[0].of.stored() > 0);
        assert!(held[0].column().is_ok() && held[1].column().is_ok() && held[2].column().is_err());
    }
}
