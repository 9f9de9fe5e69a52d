//! Writing streams.

use st_model::num::Exact;
use std::borrow::Cow;
use std::io::{self, Read, Write};

use super::column::{self, Owner};
use super::encoded::{Encoded, Timed};
use super::error::Error;
use super::frame::{Frame, MAX_TEXT, Packer, level_of};
use super::index::{self, Place};
use super::kind::Kind;
use super::names;
use super::reader::Reader;
use super::section::Opening;
use super::series::{self, Joined};
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

/// How a stream is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteOptions {
    /// Compression level of zstd, 1 to 22; 0 for none.
    pub level: u8,
}

impl WriteOptions {
    /// For files: as small as zstd makes them without its slowest levels.
    pub const FILE: Self = Self { level: 19 };
    /// For pipes: as fast as possible.
    pub const PIPE: Self = Self { level: 1 };
}

impl Default for WriteOptions {
    /// For files.
    fn default() -> Self {
        Self::FILE
    }
}

/// Writes a stream piece by piece. [`Writer::finish`] makes it a whole one; dropping never does.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    level: u8,
    /// Exact times have the lowest level.
    hurried: bool,
    packer: Packer,
    offset: u64,
    frames: u64,
    /// Bytes of frames of exact times.
    times: u64,
    /// The SITES and OBJECTS frames in force, with their offsets.
    sites: Option<(Frame, u64)>,
    objects: Option<(Frame, u64)>,
    /// Exact times that wait for those that follow.
    joined: Joined,
    /// Their payloads, where these were encoded here.
    payloads: [Vec<u8>; 2],
    /// The sites in force, where these were encoded here.
    table: Option<SiteTable>,
    /// Bytes that provenance may still have.
    text: u64,
    /// The names that have been written, and those that were looked at last.
    names: [Names; 2],
    /// Offset of the first frame of the section that is being written.
    start: Option<u64>,
    places: Vec<Place>,
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
        let offset = first.len().to_u64();
        let places = Vec::new();
        let level = options.level;
        let (packer, payloads) = (Packer::default(), [Vec::new(), Vec::new()]);
        let (sites, objects, table, start) = (None, None, None, None);
        let (hurried, frames, times) = (false, 0, 0);
        let mut writer = Self {
            to,
            level,
            hurried,
            packer,
            offset,
            frames,
            times,
            sites,
            objects,
            joined: Joined::default(),
            payloads,
            table,
            text: MAX_TEXT,
            names: Default::default(),
            start,
            places,
        };
        writer.put_text(Kind::Head, serde_json::to_vec(header)?)?;
        Ok(writer)
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
        self.put_text(Kind::Prov, serde_json::to_vec(step)?)
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
            self.put(Kind::Names, names::encode(&new))?;
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
        self.start.get_or_insert(self.offset);
        if self.packer.joins_times(self.level(Kind::Column)) {
            let complete = self.joined.push(owner, chunk.into_owned());
            return complete.iter().try_for_each(|(owner, chunks)| self.series(*owner, chunks));
        }
        self.put(Kind::Column, column::encode(owner, &chunk)).map(drop)
    }

    /// Writes the exact times that wait.
    fn settle(&mut self) -> io::Result<()> {
        self.joined.take().iter().try_for_each(|(owner, chunks)| self.series(*owner, chunks))
    }

    fn series(&mut self, owner: Owner, chunks: &[Chunk]) -> io::Result<()> {
        if let Some(payload) = series::encode(owner, chunks) {
            return self.put(Kind::Series, payload).map(drop);
        }
        chunks.iter().try_for_each(|c| self.put(Kind::Column, column::encode(owner, c)).map(drop))
    }

    /// Writes how a rank's clock was compared: any time before the rank's section.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn clock(&mut self, rank: u32, clock: &Comparison) -> io::Result<()> {
        self.start.get_or_insert(self.offset);
        self.put(Kind::Clock, column::encode_clock(rank, clock))?;
        Ok(())
    }

    /// Writes a section, its exact times first.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn section(&mut self, section: &Section) -> io::Result<()> {
        self.names(section.sites.names())?;
        for (thread, t) in (0u32..).zip(&section.threads) {
            for (rank, column) in &t.columns {
                column.chunks.iter().try_for_each(|c| self.column_chunk(*rank, thread, c))?;
                if !column.clock.is_empty() {
                    self.clock(*rank, &column.clock)?;
                }
            }
        }
        self.encoded(Encoded::without_times(section))
    }

    /// Writes a section that has been encoded already, in another thread perhaps.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn encoded(&mut self, section: Encoded) -> io::Result<()> {
        let Encoded { ranks, times, sites, objects, opening, parts } = section;
        self.names(sites.names())?;
        for timed in times {
            match timed {
                Timed::Chunk(owner, chunk) => self.timed(owner, Cow::Owned(chunk))?,
                Timed::Clock(payload) => {
                    self.start.get_or_insert(self.offset);
                    self.put(Kind::Clock, payload)?;
                }
            }
        }
        self.settle()?;
        let level = i32::from(self.level);
        // Most ranks have the tables of the rank before; these need not be compressed to be known.
        if !self.table.as_ref().is_some_and(|table| table.shares(&sites)) {
            let payload = sites::encode(&sites);
            self.table = Some(sites);
            if self.sites.is_none() || payload != self.payloads[0] {
                self.payloads[0].clone_from(&payload);
                let frame = self.packer.frame(Kind::Sites, payload, level)?;
                self.sites_in_force(frame)?;
            }
        }
        if self.objects.is_none() || objects != self.payloads[1] {
            self.payloads[1].clone_from(&objects);
            let frame = self.packer.frame(Kind::Objects, objects, level)?;
            self.objects_in_force(frame)?;
        }
        let level = self.level(Kind::Section);
        let frame = self.packer.frame(Kind::Section, opening, level)?;
        self.opening(&ranks, &frame)?;
        for (kind, payload) in parts {
            self.put(kind, payload)?;
        }
        Ok(())
    }

    /// Writes what is kept of the run's wait states: once, after the last section.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn explanation(&mut self, explanation: &Explanation) -> io::Result<()> {
        let copied = match (&self.table, &self.sites) {
            (None, Some((frame, _))) => frame.decode(Kind::Sites, sites::decode).ok(),
            _ => None,
        };
        let payload = waits::encode(explanation, self.table.as_ref().or(copied.as_ref()));
        self.put(Kind::Waits, payload)?;
        Ok(())
    }

    /// Copies all remaining sections of a stream, frame by frame, without decoding them. Frames are compressed anew only if
    /// the levels differ; tables equal to those in force are left out. Returns the number of sections.
    ///
    /// # Errors
    ///
    /// If the stream cannot be read, or the copy not written.
    pub fn copy<R: Read>(&mut self, from: &mut Reader<R>) -> Result<u64, CopyError> {
        let level = from.level();
        (self.payloads, self.table) = ([Vec::new(), Vec::new()], None);
        // Those at the stream's beginning, which are known before its first section.
        self.names(from.names())?;
        let (mut sections, mut parts) = (0, 0);
        while let Some(frame) = from.next_raw()? {
            match frame.kind()? {
                Some(Kind::Sites | Kind::Objects) => {}
                Some(kind @ (Kind::Column | Kind::Series))
                    if level_of(Kind::Column, level) != self.level(Kind::Column) =>
                {
                    let (owner, chunks) = frame.chunks(kind)?;
                    chunks.into_iter().try_for_each(|c| self.timed(owner, Cow::Owned(c)))?;
                }
                Some(kind @ (Kind::Column | Kind::Series | Kind::Clock)) => {
                    self.start.get_or_insert(self.offset);
                    let frame = self.recoded(frame, kind, level)?;
                    self.put_frame(&frame)?;
                }
                Some(Kind::Section) => {
                    self.settle()?;
                    let opening = frame.decode(Kind::Section, Opening::decode)?;
                    let (sites, objects) = from.tables().map_err(|kind| frame.fault(kind))?;
                    let (sites, objects) = (sites.clone(), objects.clone());
                    self.names(from.names())?;
                    let sites = self.recoded(sites, Kind::Sites, level)?;
                    self.sites_in_force(sites)?;
                    let objects = self.recoded(objects, Kind::Objects, level)?;
                    self.objects_in_force(objects)?;
                    let frame = self.recoded(frame, Kind::Section, level)?;
                    self.opening(&opening.ranks, &frame)?;
                    parts = opening.parts;
                    sections += 1;
                }
                Some(kind) if parts > 0 => {
                    let frame = self.recoded(frame, kind, level)?;
                    self.put_frame(&frame)?;
                    parts -= 1;
                }
                // A part of a newer version.
                None if parts > 0 => {
                    self.put_frame(&frame)?;
                    parts -= 1;
                }
                // An optional frame of a newer version that belongs to no section says nothing about the copy.
                _ => {}
            }
        }
        Ok(sections)
    }

    /// Bytes of exact times written so far: the stream would be shorter by these without them.
    #[must_use]
    pub fn time_bytes(&self) -> u64 {
        self.times
    }

    /// The frame as this stream's level would have it, from one of another level.
    fn recoded(&mut self, frame: Frame, kind: Kind, level: u8) -> Result<Frame, CopyError> {
        let mine = self.level(kind);
        if level_of(kind, level) == mine {
            return Ok(frame);
        }
        let payload = frame.payload(kind)?.into_owned();
        Ok(self.packer.frame(kind, payload, mine)?)
    }

    /// The level that frames of a kind have.
    fn level(&self, kind: Kind) -> i32 {
        let level = level_of(kind, self.level);
        if self.hurried && kind == Kind::Column { level.min(1) } else { level }
    }

    /// Flushes what the stream is written to.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.settle()?;
        self.to.flush()
    }

    /// Writes the end of the stream and hands back what it was written to, not flushed.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.settle()?;
        let mut at = None;
        if self.places.len() > 1 {
            let payload = index::encode(&self.places);
            at = Some(self.put(Kind::Index, payload)?);
        }
        let frames = u32::try_from(self.frames).map_err(io::Error::other)?;
        let end = self.packer.frame(Kind::End, index::encode_end(frames, at), 0)?;
        end.write(&mut self.to)?;
        Ok(self.to)
    }

    fn sites_in_force(&mut self, frame: Frame) -> io::Result<()> {
        if !self.sites.as_ref().is_some_and(|(f, _)| f.same(&frame)) {
            let at = self.put_frame(&frame)?;
            self.sites = Some((frame, at));
        }
        Ok(())
    }

    fn objects_in_force(&mut self, frame: Frame) -> io::Result<()> {
        if !self.objects.as_ref().is_some_and(|(f, _)| f.same(&frame)) {
            let at = self.put_frame(&frame)?;
            self.objects = Some((frame, at));
        }
        Ok(())
    }

    fn opening(&mut self, ranks: &RankList, frame: &Frame) -> io::Result<()> {
        let at = |table: &Option<(Frame, u64)>| table.as_ref().map_or(0, |(_, at)| *at);
        let (sites, objects) = (at(&self.sites), at(&self.objects));
        // Tables written for this section alone are its own frames.
        let start = self.start.take().unwrap_or(self.offset);
        self.places.push(Place { ranks: ranks.clone(), sites, objects, start });
        self.put_frame(frame)?;
        Ok(())
    }

    /// Header or provenance: no reader takes more of it.
    fn put_text(&mut self, kind: Kind, payload: Vec<u8>) -> io::Result<()> {
        let left = self.text.checked_sub(payload.len().to_u64());
        self.text = left.ok_or_else(|| {
            io::Error::other(format!("header and provenance are longer than {} MiB", MAX_TEXT >> 20))
        })?;
        self.put(kind, payload).map(drop)
    }

    /// Returns the frame's offset.
    fn put(&mut self, kind: Kind, payload: Vec<u8>) -> io::Result<u64> {
        let frame = self.packer.frame(kind, payload, self.level(kind))?;
        self.put_frame(&frame)
    }

    fn put_frame(&mut self, frame: &Frame) -> io::Result<u64> {
        let at = self.offset;
        let bytes = frame.write(&mut self.to)?;
        self.offset += bytes;
        self.frames += 1;
        if [Kind::Column, Kind::Series].map(Kind::number).contains(&frame.number) {
            self.times += bytes;
        }
        Ok(at)
    }
}

/// Why sections could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The source cannot be read.
    #[error(transparent)]
    Read(#[from] Error),
    /// The copy cannot be written.
    #[error("writing")]
    Write(#[from] io::Error),
}
