//! Reading streams, one section at a time.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

use super::column::{self, Owner};
use super::error::{DecodeError, Error, ErrorKind};
use super::frame::{Frame, FrameReader, Kind};
use super::index::{self, Place};
use super::section::{Opening, decode_ended, decode_lanes, decode_sketches, decode_sums};
use super::structure::{self, Known};
use super::version::{MAGIC, Version};
use super::{matched, objects, sites};
use crate::columns::Column;
use crate::header::{Header, Step};
use crate::section::{Section, Thread};

/// Bytes before the first frame: magic, major, minor, level.
const PREAMBLE: usize = MAGIC.len() + 3;

/// How a stream is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadOptions {
    /// Take what a truncated stream still holds instead of refusing it. Default: no.
    pub partial: bool,
}

/// Reads a stream: header and provenance at once, then section by section. Memory: one section and its exact times.
#[derive(Debug)]
pub struct Reader<R> {
    frames: FrameReader<R>,
    options: ReadOptions,
    version: Version,
    level: u8,
    header: Header,
    provenance: Vec<Step>,
    /// A frame read and not yet used.
    ahead: Option<Frame>,
    sites: Option<Frame>,
    objects: Option<Frame>,
    columns: BTreeMap<Owner, Column>,
    end: Option<End>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Complete,
    Truncated,
}

impl<R: Read> Reader<R> {
    /// Reads the beginning of a stream, up to its first section.
    ///
    /// # Errors
    ///
    /// If it is no stream, or of a version that cannot be read, or damaged, or ends before the first section may begin
    /// (also with [`ReadOptions::partial`]: without a header nothing can be said).
    pub fn new(mut from: R, options: ReadOptions) -> Result<Self, Error> {
        let start = |kind| Error::new(0, None, kind);
        let mut preamble = Vec::new();
        let want = u64::try_from(PREAMBLE).unwrap_or(0);
        (&mut from).take(want).read_to_end(&mut preamble).map_err(|e| start(ErrorKind::Read(e)))?;
        if !super::version::is_stream(&preamble) {
            return Err(start(ErrorKind::NotAStream));
        }
        let Some(&[major, minor, level]) = preamble.get(MAGIC.len()..).and_then(|v| v.first_chunk::<3>())
        else {
            return Err(start(ErrorKind::Truncated));
        };
        let version = Version { major, minor };
        version.check_readable().map_err(|e| start(e.into()))?;

        let mut frames = FrameReader::new(from, want, 0);
        let head = frames.next()?;
        if head.kind()? != Some(Kind::Head) {
            return Err(head.fault(ErrorKind::NotAStream));
        }
        let header = head.decode(Kind::Head, json)?;
        let mut reader = Self {
            frames,
            options,
            version,
            level,
            header,
            provenance: Vec::new(),
            ahead: None,
            sites: None,
            objects: None,
            columns: BTreeMap::new(),
            end: None,
        };
        reader.ahead = reader.next_raw()?;
        Ok(reader)
    }

    /// The stream's version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }
    /// The compression level that the stream was written with.
    #[must_use]
    pub fn level(&self) -> u8 {
        self.level
    }
    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }
    /// The tools that made the stream, in order.
    #[must_use]
    pub fn provenance(&self) -> &[Step] {
        &self.provenance
    }
    /// Whether the end frame has been read; false before the end and for a truncated stream.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.end == Some(End::Complete)
    }

    /// The next section; `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// If the stream is damaged, or truncated and [`ReadOptions::partial`] is not set.
    pub fn next_section(&mut self) -> Result<Option<Section>, Error> {
        while let Some(frame) = self.next_raw()? {
            match frame.kind()? {
                Some(Kind::Section) => return self.section(&frame),
                Some(Kind::Column) => {
                    let (owner, chunk) = frame.decode(Kind::Column, column::decode)?;
                    let column = self.columns.entry(owner).or_default();
                    if chunk.first != column.events() {
                        let source = DecodeError::Invalid("does not follow the chunk before it");
                        return Err(frame.fault(ErrorKind::Payload { frame: Kind::Column, source }));
                    }
                    column.chunks.push(chunk);
                }
                Some(Kind::Clock) => {
                    let (rank, clock) = frame.decode(Kind::Clock, column::decode_clock)?;
                    self.columns.entry((rank, 0)).or_default().clock = clock;
                }
                Some(kind @ (Kind::Struct | Kind::Lanes | Kind::Sketch | Kind::Sums | Kind::Ended)) => {
                    return Err(frame.fault(ErrorKind::OutOfPlace(kind)));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Times and clocks of a stream that was begun, up to its first fault or section.
    pub(crate) fn begun(mut self) -> BTreeMap<Owner, Column> {
        while let Ok(Some(frame)) = self.next_raw() {
            match frame.kind() {
                Ok(Some(Kind::Column)) => {
                    let Ok((owner, chunk)) = frame.decode(Kind::Column, column::decode) else { break };
                    let column = self.columns.entry(owner).or_default();
                    if chunk.first != column.events() {
                        break;
                    }
                    column.chunks.push(chunk);
                }
                Ok(Some(Kind::Clock)) => {
                    let Ok((rank, clock)) = frame.decode(Kind::Clock, column::decode_clock) else { break };
                    self.columns.entry((rank, 0)).or_default().clock = clock;
                }
                _ => break,
            }
        }
        self.columns
    }

    /// The next frame that is neither provenance nor the end; tables are noted as well as handed out.
    pub(crate) fn next_raw(&mut self) -> Result<Option<Frame>, Error> {
        if let Some(frame) = self.ahead.take() {
            return Ok(Some(frame));
        }
        while self.end.is_none() {
            let frame = match self.frames.next() {
                Err(e) if e.is_truncated() && self.options.partial => {
                    self.end = Some(End::Truncated);
                    break;
                }
                other => other?,
            };
            match frame.kind()? {
                Some(Kind::Prov) => self.provenance.push(frame.decode(Kind::Prov, json)?),
                Some(Kind::End) => self.ended(&frame)?,
                Some(Kind::Head) => return Err(frame.fault(ErrorKind::OutOfPlace(Kind::Head))),
                Some(Kind::Index) => {}
                kind => {
                    match kind {
                        Some(Kind::Sites) => self.sites = Some(frame.clone()),
                        Some(Kind::Objects) => self.objects = Some(frame.clone()),
                        _ => {}
                    }
                    return Ok(Some(frame));
                }
            }
        }
        Ok(None)
    }

    /// The SITES and OBJECTS frames in force.
    pub(crate) fn tables(&self) -> Result<(&Frame, &Frame), ErrorKind> {
        let sites = self.sites.as_ref().ok_or(ErrorKind::NoTable(Kind::Sites))?;
        Ok((sites, self.objects.as_ref().ok_or(ErrorKind::NoTable(Kind::Objects))?))
    }

    fn ended(&mut self, frame: &Frame) -> Result<(), Error> {
        let (stated, _) = frame.decode(Kind::End, index::decode_end)?;
        let (stated, found) = (u64::from(stated), frame.index);
        // A reader that was moved has not counted.
        if !self.frames.moved && stated != found {
            return Err(frame.fault(ErrorKind::Count { stated, found }));
        }
        self.frames.finish()?;
        self.end = Some(End::Complete);
        Ok(())
    }

    /// Reads the parts of a section and puts it together.
    fn section(&mut self, frame: &Frame) -> Result<Option<Section>, Error> {
        let opening = frame.decode(Kind::Section, Opening::decode)?;
        let (sites, objects) = self.tables().map_err(|kind| frame.fault(kind))?;
        let sites = sites.decode(Kind::Sites, sites::decode)?;
        let tables = objects.decode(Kind::Objects, |b| objects::decode(b, &opening.ranks))?;

        let (mut structure, mut lanes, mut sketches, mut sums) = (None, None, None, None);
        let mut ended = None;
        for _ in 0..opening.parts {
            let Some(part) = self.next_raw()? else { return self.cut_short() };
            match part.kind()? {
                Some(Kind::Struct) => structure = Some(part),
                Some(Kind::Lanes) => lanes = Some(part),
                Some(Kind::Sketch) => sketches = Some(part),
                Some(Kind::Sums) => sums = Some(part),
                Some(Kind::Ended) => ended = Some(part),
                Some(kind) => return Err(part.fault(ErrorKind::OutOfPlace(kind))),
                None => {}
            }
        }
        let n = opening.threads.len();
        let missing = |kind| frame.fault(ErrorKind::Missing(kind));
        let known = Known { ranks: &opening.ranks, sites: sites.sites().len(), tables: &tables, threads: n };
        let struct_frame = structure.ok_or_else(|| missing(Kind::Struct))?;
        let structure = struct_frame.decode(Kind::Struct, |b| structure::decode(b, &known))?;
        let lanes = lanes.ok_or_else(|| missing(Kind::Lanes))?.decode(Kind::Lanes, |b| decode_lanes(b, n))?;
        let symbols = structure.symbols.len();
        let sketches = match sketches {
            Some(f) => f.decode(Kind::Sketch, |b| decode_sketches(b, &opening.threads, symbols))?,
            None => vec![Vec::new(); n],
        };
        let sums = match sums {
            Some(f) => f.decode(Kind::Sums, |b| decode_sums(b, n, symbols))?,
            None => vec![Vec::new(); n],
        };
        let ended = match ended {
            Some(f) => f.decode(Kind::Ended, |b| decode_ended(b, &opening.threads, symbols))?,
            None => Vec::new(),
        };
        let controls = opening.threads.into_iter().zip(structure.threads).zip(lanes).zip(sketches).zip(sums);
        let threads = controls.zip(0..).map(|(((((ranks, c), lanes), sketches), sums), thread)| {
            let columns = self.take_columns(thread, &opening.ranks);
            Thread { ranks, tree: c.tree, counts: c.counts, params: c.params, lanes, sketches, sums, columns }
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
            return Err(struct_frame.fault(ErrorKind::Payload { frame: Kind::Struct, source }));
        }
        Ok(Some(section))
    }

    /// The stream ended within a section: nothing of it is used.
    fn cut_short(&mut self) -> Result<Option<Section>, Error> {
        if self.end == Some(End::Truncated) {
            return Ok(None);
        }
        Err(self.frames.fault(ErrorKind::OutOfPlace(Kind::End)))
    }

    fn take_columns(&mut self, thread: u32, ranks: &crate::ranklist::RankList) -> Vec<(u32, Column)> {
        let mut mine = Vec::new();
        let owners: Vec<Owner> =
            self.columns.keys().filter(|o| o.1 == thread && ranks.contains(o.0)).copied().collect();
        for owner in owners {
            mine.extend(self.columns.remove(&owner).map(|c| (owner.0, c)));
        }
        mine
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Where the stream's sections lie, from its index; `None` if it has none (one section, or a truncated stream).
    /// The reader stays where it is.
    ///
    /// # Errors
    ///
    /// If the input cannot be read, or its index is damaged.
    pub fn index(&mut self) -> Result<Option<Vec<Place>>, Error> {
        let read = |e: io::Error| Error::new(0, None, ErrorKind::Read(e));
        let from = self.frames.get_mut();
        let here = from.stream_position().map_err(read)?;
        let length = from.seek(SeekFrom::End(0)).map_err(read)?;
        let mut places = None;
        if let Some(at) = find_index(from, length).map_err(read)? {
            from.seek(SeekFrom::Start(at)).map_err(read)?;
            let frame = FrameReader::new(&mut *from, at, 0).next()?;
            if frame.kind()? == Some(Kind::Index) {
                places = Some(frame.decode(Kind::Index, index::decode)?);
            }
        }
        from.seek(SeekFrom::Start(here)).map_err(read)?;
        Ok(places)
    }

    /// Moves to a section, so that [`Reader::next_section`] reads it next.
    ///
    /// # Errors
    ///
    /// If the input cannot be read, or the frames there are not what the index says.
    pub fn seek(&mut self, place: &Place) -> Result<(), Error> {
        self.columns.clear();
        self.ahead = None;
        self.end = None;
        let sites = self.frame_at(place.sites, Kind::Sites)?;
        self.sites = Some(sites);
        let objects = self.frame_at(place.objects, Kind::Objects)?;
        self.objects = Some(objects);
        self.frames.go(place.start)
    }

    fn frame_at(&mut self, offset: u64, kind: Kind) -> Result<Frame, Error> {
        self.frames.go(offset)?;
        let frame = self.frames.next()?;
        if frame.kind()? == Some(kind) { Ok(frame) } else { Err(frame.fault(ErrorKind::OutOfPlace(kind))) }
    }
}

/// Offset of the index as the end frame of an indexed stream states it.
fn find_index(from: &mut (impl Read + Seek), length: u64) -> io::Result<Option<u64>> {
    let Some(at) = length.checked_sub(END_WITH_INDEX) else { return Ok(None) };
    from.seek(SeekFrom::Start(at))?;
    let Ok(frame) = FrameReader::new(from, at, 0).next() else { return Ok(None) };
    let end = matches!(frame.kind(), Ok(Some(Kind::End)));
    Ok(index::decode_end(&frame.stored).ok().filter(|_| end).and_then(|(_, index)| index))
}

/// Bytes of an end frame that names an index: kind, flags, length, checksum, payload.
const END_WITH_INDEX: u64 = 1 + 1 + 1 + 4 + 12;

fn json<T: serde::de::DeserializeOwned>(payload: &[u8]) -> Result<T, DecodeError> {
    serde_json::from_slice(payload).map_err(|e| DecodeError::Json(e.to_string()))
}
