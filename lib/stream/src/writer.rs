//! Writing streams.

mod copying;

use st_model::num::Exact;
use std::borrow::Cow;
use std::io::{self, Write};

use super::column::{self, Owner};
use super::derived::{self, LeftOut};
use super::encoded::{Encoded, Timed, Times, times};
use super::frame::{MAX_TEXT, StoredFrame};
use super::index::{self, SectionOffsets};
use super::kind::FrameKind;
use super::names;
use super::options::WriteOptions;
use super::packer::{Made, Plans, Work, level_of};
use super::queue::Queue;
use super::series::Joined;
use super::sites;
use super::version::{CURRENT, MAGIC};
use super::waits;
use st_model::columns::{Chunk, Comparison};
use st_model::explanation::Explanation;
use st_model::header::{Header, Step};
use st_model::names::Names;
use st_model::ranklist::RankList;
use st_model::section::Section;
use st_model::sites::SiteTable;

pub use copying::CopyError;

/// What exact times add to a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeBytes {
    /// Bytes of their frames.
    pub stored: u64,
    /// Bytes that sketches would take which follow from them, but for those that a stream copied at its level had not stored either.
    pub spared: u64,
}

impl TimeBytes {
    /// Bytes that a stream of so many would have without exact times.
    #[must_use]
    pub fn without(self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.stored).saturating_add(self.spared)
    }
}

/// Writes a stream piece by piece. [`Writer::finish`] makes it a whole one; dropping never does.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    options: WriteOptions,
    /// Exact times have the lowest level.
    hurried: bool,
    plans: Plans,
    /// Frames that are being made, in order.
    queue: Queue<Role>,
    /// Exact times that wait for those that follow.
    joined: Joined,
    /// SITES and OBJECTS in force.
    tables: [Option<InForce>; 2],
    /// The sites in force, where these were encoded here.
    table: Option<SiteTable>,
    /// The section that is being written has frames.
    begun: bool,
    written: Written,
    /// Bytes that provenance may still have.
    text: u64,
    derived: derived::Made,
    /// The names that have been written, and those that were looked at last.
    names: [Names; 2],
}

/// What is known of frames once they are written.
#[derive(Debug, Default)]
struct Written {
    offset: u64,
    frames: u64,
    times: TimeBytes,
    /// Offsets of the SITES and OBJECTS frames in force, and of the first frame of the section that is being written.
    tables: [u64; 2],
    start: u64,
    places: Vec<SectionOffsets>,
}

impl Written {
    fn add(&mut self, role: Role, to: &mut impl Write, made: &Made) -> io::Result<()> {
        match role.of {
            Of::Table(table) => self.tables[table] = self.offset,
            Of::Opening(_) | Of::Other => {}
        }
        if role.begins {
            self.start = self.offset;
        }
        if let Of::Opening(ranks) = role.of {
            let [sites, objects] = self.tables;
            self.places.push(SectionOffsets { ranks, sites, objects, start: self.start });
        }
        self.times.spared += made.spared;
        for frame in &made.frames {
            let bytes = frame.write(to)?;
            self.offset += bytes;
            self.frames += 1;
            if TIMES.map(FrameKind::number).contains(&frame.number) {
                self.times.stored += bytes;
            }
        }
        Ok(())
    }
}

/// What a frame is to its stream.
#[derive(Debug)]
struct Role {
    /// It is the first of a section.
    begins: bool,
    of: Of,
}

#[derive(Debug)]
enum Of {
    /// [`SITES`] or [`OBJECTS`].
    Table(usize),
    /// A section with these ranks.
    Opening(RankList),
    Other,
}

const SITES: usize = 0;
const OBJECTS: usize = 1;
const TIMES: [FrameKind; 4] = [FrameKind::Column, FrameKind::Series, FrameKind::Times, FrameKind::Spans];
const TABLES: [FrameKind; 2] = [FrameKind::Sites, FrameKind::Objects];

/// A table as it was encoded here, or as it was copied.
#[derive(Debug)]
enum InForce {
    Payload(Vec<u8>),
    Copied(StoredFrame),
}

impl<W: Write> Writer<W> {
    /// Begins a stream.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn new(mut to: W, header: &Header, options: WriteOptions) -> io::Result<Self> {
        let mut first = MAGIC.to_vec();
        first.extend_from_slice(&[CURRENT.major, CURRENT.minor, options.level]);
        to.write_all(&first)?;
        let mut writer = Self {
            to,
            options,
            hurried: false,
            plans: Plans::default(),
            queue: Queue::new(),
            joined: Joined::default(),
            tables: [None, None],
            table: None,
            begun: false,
            written: Written { offset: first.len().to_u64(), ..Written::default() },
            text: MAX_TEXT,
            derived: derived::Made::default(),
            names: Default::default(),
        };
        writer.put_text(FrameKind::Head, serde_json::to_vec(header)?)?;
        Ok(writer)
    }

    /// Has frames compressed by so many threads from now on, where that is more than one. The stream is the same, byte for byte.
    ///
    /// *Memory:* some frames per thread, as they are before compression.
    ///
    /// # Errors
    ///
    /// If threads cannot be started.
    pub fn threads(&mut self, threads: usize) -> io::Result<()> {
        if threads > 1 { self.queue.start(threads) } else { Ok(()) }
    }

    /// Compresses exact times at the lowest level from now on: for a program that waits while they are written. The stream is longer
    /// by 1 to 6 %.
    pub fn hurry(&mut self) {
        self.hurried = true;
    }

    /// Appends a tool to the provenance. Before the first section.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn provenance(&mut self, step: &Step) -> io::Result<()> {
        self.put_text(FrameKind::Prov, serde_json::to_vec(step)?)
    }

    /// Writes what addresses are called, as far as the stream does not say it yet. Sections do so with what their tables say.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn names(&mut self, names: &Names) -> io::Result<()> {
        let [written, last] = &mut self.names;
        if last.shares(names) {
            return Ok(());
        }
        last.clone_from(names);
        let new = names.without(written);
        written.extend(&new);
        if !new.is_empty() {
            self.put(FrameKind::Names, names::encode(&new))?;
        }
        Ok(())
    }

    /// Writes exact times of a rank's thread: any time before the rank's section, in the order of events.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn column_chunk(&mut self, rank: u32, thread: u32, chunk: &Chunk) -> io::Result<()> {
        self.timed((rank, thread), Cow::Borrowed(chunk))
    }

    fn timed(&mut self, owner: Owner, chunk: Cow<'_, Chunk>) -> io::Result<()> {
        if self.plans.joins_times(self.level(FrameKind::Column)) {
            let complete = self.joined.push(owner, chunk.into_owned());
            return complete.into_iter().try_for_each(|(owner, chunks)| self.series(owner, chunks));
        }
        self.own(FrameKind::Column, column::encode(owner, &chunk))
    }

    /// Writes the exact times that wait.
    fn settle(&mut self) -> io::Result<()> {
        self.joined.take().into_iter().try_for_each(|(owner, chunks)| self.series(owner, chunks))
    }

    fn series(&mut self, owner: Owner, chunks: Vec<Chunk>) -> io::Result<()> {
        let events = chunks.iter().map(|c| u64::from(c.events)).sum();
        let plan = self.plans.series(events, self.level(FrameKind::Column));
        self.add(true, Of::Other, Work::Series(owner, chunks, plan))
    }

    /// Writes a frame that belongs to the section that comes.
    fn own(&mut self, kind: FrameKind, payload: Vec<u8>) -> io::Result<()> {
        let work = self.planned(kind, payload);
        self.add(true, Of::Other, work)
    }

    /// Writes how a rank's clock was compared: any time before the rank's section.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn clock(&mut self, rank: u32, clock: &Comparison) -> io::Result<()> {
        self.own(FrameKind::Clock, column::encode_clock(rank, clock))
    }

    /// Writes a section, its exact times first.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn section(&mut self, section: &Section) -> io::Result<()> {
        self.names(section.sites.names())?;
        for times in times(section) {
            match times {
                Times::Chunk((rank, thread), chunk) => self.column_chunk(rank, thread, chunk)?,
                Times::Clock(rank, clock) => self.clock(rank, clock)?,
            }
        }
        self.encoded(Encoded::without_times(section, self.options))
    }

    /// Writes a recorder's section, whose exact times are written; `left_out` stands for its sketches, if it has none.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn recorded(&mut self, section: &Section, left_out: Option<LeftOut>) -> io::Result<()> {
        self.names(section.sites.names())?;
        self.encoded(Encoded::of_recorder(section, left_out))
    }

    /// Writes a section that has been encoded already, in another thread perhaps.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn encoded(&mut self, section: Encoded) -> io::Result<()> {
        let Encoded { ranks, times, sites, objects, opening, parts, derived } = section;
        let mut derived = derived.and_then(|derived| derived.within(&self.derived));
        self.names(sites.names())?;
        for timed in times {
            match timed {
                Timed::Chunk(owner, chunk) => self.timed(owner, Cow::Owned(chunk))?,
                Timed::Clock(payload) => self.own(FrameKind::Clock, payload)?,
            }
        }
        self.settle()?;
        // Most ranks have the tables of the rank before; these need not be compressed to be known.
        if !self.table.as_ref().is_some_and(|table| table.shares(&sites)) {
            let payload = sites::encode(&sites);
            self.table = Some(sites);
            self.encoded_table(SITES, payload)?;
        }
        self.encoded_table(OBJECTS, objects)?;
        let opening = self.planned(FrameKind::Section, opening);
        self.add(true, Of::Opening(ranks), opening)?;
        parts.into_iter().try_for_each(|(kind, payload)| {
            let work = self.planned(kind, payload);
            self.part(Some(kind), work, &mut derived)
        })
    }

    /// Writes what is kept of the run's wait states: once, after the last section.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn explanation(&mut self, explanation: &Explanation) -> io::Result<()> {
        let copied = match (&self.table, &self.tables[SITES]) {
            (None, Some(InForce::Copied(frame))) => frame.decode(FrameKind::Sites, sites::decode).ok(),
            (None, Some(InForce::Payload(payload))) => sites::decode(payload).ok(),
            _ => None,
        };
        let payload = waits::encode(explanation, self.table.as_ref().or(copied.as_ref()));
        self.put(FrameKind::Waits, payload)
    }

    /// Writes what is being made, and returns what exact times have added to the stream so far.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn time_bytes(&mut self) -> io::Result<TimeBytes> {
        self.drain()?;
        Ok(self.written.times)
    }

    /// The level that frames of a kind have.
    fn level(&self, kind: FrameKind) -> i32 {
        let level = level_of(kind, self.options.level);
        if self.hurried && kind == FrameKind::Column { level.min(1) } else { level }
    }

    /// Flushes what the stream is written to.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.drain()?;
        self.to.flush()
    }

    /// Writes the end of the stream and hands back what it was written to, not flushed.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.drain()?;
        let mut at = None;
        if self.written.places.len() > 1 {
            at = Some(self.written.offset);
            self.put(FrameKind::Index, index::encode(&self.written.places))?;
            self.drain()?;
        }
        let frames = u32::try_from(self.written.frames).map_err(io::Error::other)?;
        StoredFrame::stored(FrameKind::End, index::encode_end(frames, at)).write(&mut self.to)?;
        Ok(self.to)
    }

    /// Adds a part of a section, or what stands for it if it is the sketches.
    fn part(&mut self, kind: Option<FrameKind>, work: Work, derived: &mut Option<Vec<u8>>) -> io::Result<()> {
        let work = match derived.take_if(|_| kind == Some(FrameKind::Sketch)) {
            Some(payload) => Work::Derived(payload, Box::new(work)),
            None => work,
        };
        self.add(false, Of::Other, work)
    }

    /// Puts a table in force that was encoded here.
    fn encoded_table(&mut self, table: usize, payload: Vec<u8>) -> io::Result<()> {
        let same = match &self.tables[table] {
            Some(InForce::Payload(before)) => *before == payload,
            Some(InForce::Copied(frame)) => {
                frame.payload(TABLES[table]).is_ok_and(|before| *before == payload)
            }
            None => false,
        };
        if same {
            return Ok(());
        }
        self.tables[table] = Some(InForce::Payload(payload.clone()));
        let work = self.planned(TABLES[table], payload);
        self.add(false, Of::Table(table), work)
    }

    /// Header or provenance: no reader takes more of it.
    fn put_text(&mut self, kind: FrameKind, payload: Vec<u8>) -> io::Result<()> {
        let left = self.text.checked_sub(payload.len().to_u64());
        self.text = left.ok_or_else(|| {
            io::Error::other(format!("header and provenance are longer than {} MiB", MAX_TEXT >> 20))
        })?;
        self.put(kind, payload)
    }

    fn put(&mut self, kind: FrameKind, payload: Vec<u8>) -> io::Result<()> {
        let work = self.planned(kind, payload);
        self.add(false, Of::Other, work)
    }

    fn planned(&mut self, kind: FrameKind, payload: Vec<u8>) -> Work {
        let plan = self.plans.next(kind, payload.len(), self.level(kind));
        Work::Payload(kind, payload, plan)
    }

    /// Adds a frame, which may be the first of its section.
    fn add(&mut self, own: bool, of: Of, work: Work) -> io::Result<()> {
        let begins = own && !self.begun;
        self.begun = match of {
            Of::Opening(_) => false,
            _ => self.begun || own,
        };
        if let Some((role, made)) = self.queue.push(Role { begins, of }, work)? {
            self.written.add(role, &mut self.to, &made)?;
        }
        Ok(())
    }

    /// Writes all that was added.
    fn drain(&mut self) -> io::Result<()> {
        self.settle()?;
        while let Some((role, made)) = self.queue.next()? {
            self.written.add(role, &mut self.to, &made)?;
        }
        Ok(())
    }
}
