//! Reading streams, one section at a time.

use st_model::num::Exact;
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use super::column::{self, Owner};
use super::derived;
use super::error::{DecodeError, Error, ErrorKind, check_first};
use super::expansion::Expansion;
use super::frame::{FrameReader, MAX_TEXT, StoredFrame};
use super::index::{self, SectionOffsets};
use super::kind::FrameKind;
use super::names;
use super::section::Opening;
use super::sites;
use super::stored::{Stored, Times, follow};
use super::version::{MAGIC, Version};
use super::waits;
use st_model::columns::Column;
use st_model::explanation::Explanation;
use st_model::header::{Header, Step};
use st_model::names::Names;
use st_model::section::Section;
use st_model::sites::SiteTable;
use st_model::steps::Budget;

/// Bytes before the first frame: magic, major, minor, level.
const PREAMBLE: usize = MAGIC.len() + 3;

/// Times that expand to more than so many times what they take are held as they are stored until they are needed.
const HELD: u64 = 32;

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
    names: Names,
    explanation: Option<Explanation>,
    /// A frame read and not yet used.
    ahead: Option<StoredFrame>,
    sites: Option<StoredFrame>,
    objects: Option<StoredFrame>,
    /// The sites in force, and the objects' frame expanded, once a section needed them.
    known: (Option<SiteTable>, Option<Arc<StoredFrame>>),
    /// Frames of times whose section has not come yet.
    times: BTreeMap<Owner, Times>,
    /// What exact times take.
    expansion: Arc<Expansion>,
    derived: Arc<derived::Made>,
    /// Bytes that provenance may still have.
    text: u64,
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
        let want = PREAMBLE.to_u64();
        (&mut from).take(want).read_to_end(&mut preamble).map_err(|e| start(ErrorKind::Read(e)))?;
        check_first(&preamble).map_err(start)?;
        let Some(&[major, minor, level]) = preamble.get(MAGIC.len()..).and_then(|v| v.first_chunk::<3>())
        else {
            return Err(start(ErrorKind::NoHeader));
        };
        let version = Version { major, minor };
        version.check_readable().map_err(|e| start(e.into()))?;

        let mut frames = FrameReader::new(from, want, 0);
        let headless = |e: Error| if e.is_truncated() { start(ErrorKind::NoHeader) } else { e };
        let head = frames.next().map_err(headless)?;
        if head.kind()? != Some(FrameKind::Head) {
            return Err(head.fault(ErrorKind::NotAStream));
        }
        let mut text = MAX_TEXT;
        let header = decode_text(&head, FrameKind::Head, &mut text)?;
        let mut reader = Self {
            frames,
            options,
            version,
            level,
            header,
            provenance: Vec::new(),
            names: Names::default(),
            explanation: None,
            ahead: None,
            sites: None,
            objects: None,
            known: (None, None),
            times: BTreeMap::new(),
            expansion: Arc::default(),
            derived: Arc::default(),
            text,
            end: None,
        };
        reader.ahead = reader.next_raw()?;
        Ok(reader)
    }

    /// Takes of this what it takes to read what bytes have not paid for. Default: any number of steps.
    #[must_use]
    pub fn within(mut self, budget: &Budget) -> Self {
        self.derived = Arc::new(derived::Made::within(budget.clone()));
        self
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
    /// What addresses are called, as far as the stream has been read.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }
    /// What is kept of the run's wait states, once the end of the stream has been read.
    #[must_use]
    pub fn explanation(&self) -> Option<&Explanation> {
        self.explanation.as_ref()
    }
    /// Adds to what addresses are called, in the sections that are read from now on.
    pub fn add_names(&mut self, names: &Names) {
        self.names.extend(names);
        self.known.0 = None;
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
        self.next_stored()?.as_ref().map(Stored::section).transpose()
    }

    /// The next section as it is stored, to be decoded elsewhere; `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// As [`Reader::next_section`], but for what is wrong inside the section.
    pub fn next_stored(&mut self) -> Result<Option<Stored>, Error> {
        while let Some(frame) = self.next_raw()? {
            match frame.kind()? {
                Some(FrameKind::Section) => return self.stored(frame),
                Some(kind) if kind.holds_times() || kind == FrameKind::Clock => {
                    self.hold(kind, frame)?;
                }
                Some(
                    kind @ (FrameKind::Struct
                    | FrameKind::Lanes
                    | FrameKind::Sketch
                    | FrameKind::Quantiles
                    | FrameKind::Durations
                    | FrameKind::Derived
                    | FrameKind::Sums
                    | FrameKind::Slow
                    | FrameKind::Ended),
                ) => {
                    return Err(frame.fault(ErrorKind::OutOfPlace(kind)));
                }
                _ => {}
            }
        }
        // Where sections were passed over, or the stream ends early, times may be left of sections that do not come.
        if self.is_complete()
            && !self.frames.moved
            && let Some(times) = self.times.values().next()
        {
            return Err(times.fault("times of a rank and thread that no section has"));
        }
        // They must be sound, too.
        std::mem::take(&mut self.times).values().try_for_each(|times| times.column().map(drop))?;
        Ok(None)
    }

    /// Keeps a frame of times until its section comes.
    pub(super) fn hold(&mut self, kind: FrameKind, frame: StoredFrame) -> Result<(), Error> {
        let (frame, owner) = self.owned(kind, frame)?;
        let of = &self.expansion;
        self.times.entry(owner).or_insert_with(|| Times::new(of)).push(kind, frame);
        Ok(())
    }

    /// Takes no notice of the times that are kept.
    pub(super) fn forget_times(&mut self) {
        self.times.clear();
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> impl Iterator<Item = &Times> {
        self.times.values()
    }

    /// A frame of times, and whose it is. It stays as it is stored if it would take much more memory otherwise.
    fn owned(&mut self, kind: FrameKind, frame: StoredFrame) -> Result<(StoredFrame, Owner), Error> {
        let invalid = |source| frame.fault(ErrorKind::Payload { frame: kind, source });
        let stored = frame.stored.len().to_u64();
        self.expansion.read(stored);
        // What these expand to is known when they are.
        if kind.joins_times() || frame.has_coded_times() {
            let payload = if kind.joins_times() { frame.payload(kind)? } else { (&frame.stored).into() };
            let owner = column::decode_owner(&mut &payload[..]).map_err(invalid)?;
            return Ok((frame, owner));
        }
        let payload = frame.payload(kind)?;
        let mut of = &payload[..];
        let owner = match kind {
            FrameKind::Clock => column::decode_clock_owner(&mut of).map(|rank| (rank, 0)),
            _ => column::decode_owner(&mut of),
        };
        let (owner, expanded) = (owner.map_err(invalid)?, payload.len().to_u64());
        if !self.expansion.holds(expanded) {
            return Err(frame.fault(ErrorKind::TooLarge(kind)));
        }
        let kept = if expanded > stored.saturating_mul(HELD) { frame } else { frame.expanded(kind)? };
        Ok((kept, owner))
    }

    /// Times and clocks of a stream that was begun, up to its first fault or section.
    pub fn begun(mut self) -> BTreeMap<Owner, Column> {
        let mut columns: BTreeMap<Owner, Column> = BTreeMap::new();
        while let Ok(Some(frame)) = self.next_raw() {
            match frame.kind() {
                Ok(Some(kind)) if kind.holds_times() => {
                    let Ok((owner, chunks, asked)) = frame.chunks(kind) else { break };
                    let bytes = chunks.iter().map(|c| (c.gaps.len() + c.durations.len()).to_u64()).sum();
                    self.expansion.read(frame.stored.len().to_u64());
                    if !(self.expansion.holds(bytes) && self.expansion.asks(asked)) {
                        break;
                    }
                    let column = columns.entry(owner).or_default();
                    if !follow(column, &chunks) {
                        break;
                    }
                    column.chunks.extend(chunks);
                }
                Ok(Some(FrameKind::Clock)) => {
                    let Ok((rank, clock)) = frame.decode(FrameKind::Clock, column::decode_clock) else {
                        break;
                    };
                    columns.entry((rank, 0)).or_default().clock = clock;
                }
                _ => break,
            }
        }
        columns
    }

    /// The next frame that is neither provenance nor the end; tables are noted as well as handed out.
    pub(crate) fn next_raw(&mut self) -> Result<Option<StoredFrame>, Error> {
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
                Some(FrameKind::Prov) => {
                    self.provenance.push(decode_text(&frame, FrameKind::Prov, &mut self.text)?);
                }
                Some(FrameKind::Names) => self.add_names(&frame.decode(FrameKind::Names, names::decode)?),
                Some(FrameKind::Waits) => self.explained(&frame)?,
                Some(FrameKind::End) => self.ended(&frame)?,
                Some(FrameKind::Head) => return Err(frame.fault(ErrorKind::OutOfPlace(FrameKind::Head))),
                Some(FrameKind::Index) => {}
                kind => {
                    match kind {
                        Some(FrameKind::Sites) => (self.sites, self.known.0) = (Some(frame.clone()), None),
                        Some(FrameKind::Objects) => {
                            (self.objects, self.known.1) = (Some(frame.clone()), None)
                        }
                        _ => {}
                    }
                    return Ok(Some(frame));
                }
            }
        }
        Ok(None)
    }

    /// The SITES and OBJECTS frames in force.
    pub(crate) fn tables(&self) -> Result<(&StoredFrame, &StoredFrame), ErrorKind> {
        let sites = self.sites.as_ref().ok_or(ErrorKind::NoTable(FrameKind::Sites))?;
        Ok((sites, self.objects.as_ref().ok_or(ErrorKind::NoTable(FrameKind::Objects))?))
    }

    /// The last of several counts.
    fn explained(&mut self, frame: &StoredFrame) -> Result<(), Error> {
        let sites = self.sites.as_ref().map(|f| f.decode(FrameKind::Sites, sites::decode)).transpose()?;
        self.explanation = Some(frame.decode(FrameKind::Waits, |b| waits::decode(b, sites.as_ref()))?);
        Ok(())
    }

    fn ended(&mut self, frame: &StoredFrame) -> Result<(), Error> {
        let (stated, _) = frame.decode(FrameKind::End, index::decode_end)?;
        let (stated, found) = (u64::from(stated), frame.index);
        // A reader that was moved has not counted.
        if !self.frames.moved && stated != found {
            return Err(frame.fault(ErrorKind::Count { stated, found }));
        }
        self.frames.finish()?;
        self.end = Some(End::Complete);
        Ok(())
    }

    /// Reads the parts of a section; `None` if a truncated stream ends within them.
    pub(super) fn stored(&mut self, frame: StoredFrame) -> Result<Option<Stored>, Error> {
        let opening = frame.decode(FrameKind::Section, Opening::decode)?;
        let (sites, objects) = self.tables().map_err(|kind| frame.fault(kind))?;
        let sites = match &self.known.0 {
            Some(known) => known.clone(),
            None => {
                let mut sites = sites.decode(FrameKind::Sites, sites::decode)?;
                sites.add_names(&self.names);
                sites
            }
        };
        let objects = match &self.known.1 {
            Some(known) => Arc::clone(known),
            None => Arc::new(objects.clone().expanded(FrameKind::Objects)?),
        };
        self.known = (Some(sites.clone()), Some(Arc::clone(&objects)));
        let mut parts = Vec::with_capacity(opening.parts.min(8));
        for _ in 0..opening.parts {
            let Some(part) = self.next_raw()? else { return self.cut_short() };
            parts.push(part);
        }
        let times = self.take_times(&opening);
        let derived = derived::Share::of(&self.derived, &self.expansion);
        Ok(Some(Stored { frame, opening, sites, objects, parts, times, derived }))
    }

    /// The stream ended within a section: nothing of it is used.
    fn cut_short(&mut self) -> Result<Option<Stored>, Error> {
        if self.end == Some(End::Truncated) {
            return Ok(None);
        }
        Err(self.frames.fault(ErrorKind::OutOfPlace(FrameKind::End)))
    }

    /// The times of a section's ranks, in order.
    fn take_times(&mut self, opening: &Opening) -> Vec<(Owner, Times)> {
        let mine = |(rank, thread): &Owner| {
            let ranks = usize::try_from(*thread).ok().and_then(|t| opening.threads.get(t));
            ranks.is_some_and(|ranks| ranks.contains(*rank))
        };
        if self.times.keys().all(mine) {
            return std::mem::take(&mut self.times).into_iter().collect();
        }
        let owners: Vec<Owner> = self.times.keys().copied().filter(mine).collect();
        owners.into_iter().filter_map(|owner| Some((owner, self.times.remove(&owner)?))).collect()
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Where the stream's sections lie, from its index; `None` if it has none (one section, or a truncated stream).
    /// The reader stays where it is.
    ///
    /// # Errors
    ///
    /// If the input cannot be read, or its index is damaged.
    pub fn index(&mut self) -> Result<Option<Vec<SectionOffsets>>, Error> {
        let read = |e: io::Error| Error::new(0, None, ErrorKind::Read(e));
        let from = self.frames.get_mut();
        let here = from.stream_position().map_err(read)?;
        let length = from.seek(SeekFrom::End(0)).map_err(read)?;
        let mut places = None;
        if let Some(at) = find_index(from, length).map_err(read)? {
            from.seek(SeekFrom::Start(at)).map_err(read)?;
            let frame = FrameReader::new(&mut *from, at, 0).next()?;
            if frame.kind()? == Some(FrameKind::Index) {
                places = Some(frame.decode(FrameKind::Index, index::decode)?);
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
    pub fn seek(&mut self, place: &SectionOffsets) -> Result<(), Error> {
        self.times.clear();
        self.ahead = None;
        self.end = None;
        let sites = self.frame_at(place.sites, FrameKind::Sites)?;
        self.sites = Some(sites);
        let objects = self.frame_at(place.objects, FrameKind::Objects)?;
        self.objects = Some(objects);
        self.known = (None, None);
        self.frames.go(place.start)
    }

    fn frame_at(&mut self, offset: u64, kind: FrameKind) -> Result<StoredFrame, Error> {
        self.frames.go(offset)?;
        let frame = self.frames.next()?;
        if frame.kind()? == Some(kind) { Ok(frame) } else { Err(frame.fault(ErrorKind::OutOfPlace(kind))) }
    }
}

/// The call sites of all sections of a stream, with their names; nothing else is decoded.
///
/// # Errors
///
/// If the stream is damaged, or truncated and [`ReadOptions::partial`] is not set.
pub fn call_sites(from: impl Read, options: ReadOptions) -> Result<SiteTable, Error> {
    let mut reader = Reader::new(from, options)?;
    let mut all = SiteTable::new();
    while let Some(frame) = reader.next_raw()? {
        if frame.kind()? == Some(FrameKind::Sites) {
            all.unite(&frame.decode(FrameKind::Sites, sites::decode)?);
        }
    }
    all.add_names(reader.names());
    Ok(all)
}

/// Offset of the index as the end frame of an indexed stream states it.
fn find_index(from: &mut (impl Read + Seek), length: u64) -> io::Result<Option<u64>> {
    let Some(at) = length.checked_sub(END_WITH_INDEX) else { return Ok(None) };
    from.seek(SeekFrom::Start(at))?;
    let Ok(frame) = FrameReader::new(from, at, 0).next() else { return Ok(None) };
    let end = matches!(frame.kind(), Ok(Some(FrameKind::End)));
    Ok(index::decode_end(&frame.stored).ok().filter(|_| end).and_then(|(_, index)| index))
}

/// Bytes of an end frame that names an index: kind, flags, length, checksum, payload.
const END_WITH_INDEX: u64 = 1 + 1 + 1 + 4 + 12;

/// A payload of JSON; `left`: bytes that it and those after it may have.
fn decode_text<T: serde::de::DeserializeOwned>(
    frame: &StoredFrame,
    kind: FrameKind,
    left: &mut u64,
) -> Result<T, Error> {
    let payload = frame.payload(kind)?;
    *left = left.checked_sub(payload.len().to_u64()).ok_or_else(|| frame.fault(ErrorKind::TooLarge(kind)))?;
    serde_json::from_slice(&payload).map_err(|e| {
        let source = DecodeError::Json(e.to_string());
        frame.fault(ErrorKind::Payload { frame: kind, source })
    })
}
