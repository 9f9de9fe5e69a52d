//! Sections of another stream, which are not decoded.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use super::{InForce, OBJECTS, Of, SITES, TABLES, Writer};
use crate::column::{self, Owner};
use crate::derived::{self, Derived};
use crate::error::{Error, ErrorKind};
use crate::expansion::ASKED_EACH;
use crate::frame::StoredFrame;
use crate::kind::FrameKind;
use crate::packer::{ASKED_COLUMN, ASKED_EVENT, Work, level_of};
use crate::reader::Reader;
use crate::sketches::encode_sketches;
use crate::stored::Stored;
use st_model::columns::Chunk;
use st_model::num::Exact as _;

/// Bytes of a section's exact times, as stored, with which its sketches may not be needed; there is no need to look at more.
const HELD: usize = 1 << 24;
/// A section with so many bytes for one of its sketches is not worth decoding.
const WORTH: usize = 64;

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

impl<W: Write> Writer<W> {
    /// Copies all remaining sections of a stream, frame by frame, without decoding them but where sketches may follow from exact times. Frames are compressed anew only if
    /// the levels differ; tables equal to those in force are left out. Returns the number of sections.
    ///
    /// # Errors
    ///
    /// If the stream cannot be read, or the copy not written.
    pub fn copy<R: Read>(&mut self, from: &mut Reader<R>) -> Result<u64, CopyError> {
        let level = from.level();
        self.table = None;
        // Those at the stream's beginning, which are known before its first section.
        self.names(from.names())?;
        let (mut sections, mut held) = (0, 0);
        while let Some(frame) = from.next_raw()? {
            match frame.kind()? {
                Some(FrameKind::Sites | FrameKind::Objects) => {}
                Some(kind)
                    if kind.holds_times()
                        && level_of(FrameKind::Column, level) != self.level(FrameKind::Column) =>
                {
                    self.hold(from, kind, &frame, &mut held)?;
                    let (owner, chunks, _) = frame.chunks(kind)?;
                    chunks.into_iter().try_for_each(|c| self.timed(owner, Cow::Owned(c)))?;
                }
                Some(kind) if kind.holds_times() || kind == FrameKind::Clock => {
                    self.hold(from, kind, &frame, &mut held)?;
                    if let Some((owner, chunks)) = self.unpaid(kind, &frame)? {
                        chunks.into_iter().try_for_each(|c| self.timed(owner, Cow::Owned(c)))?;
                        // Those of the thread that follow may be copied again.
                        self.settle()?;
                        continue;
                    }
                    let work = self.recoded(frame, kind, level)?;
                    self.add(true, Of::Other, work)?;
                }
                Some(FrameKind::Section) => {
                    self.settle()?;
                    let Some(stored) = from.stored(frame)? else { break };
                    let (sites, objects) = from.tables().map_err(|kind| stored.frame.fault(kind))?;
                    let (sites, objects) = (sites.clone(), objects.clone());
                    self.names(from.names())?;
                    self.copied_table(SITES, sites, level)?;
                    self.copied_table(OBJECTS, objects, level)?;
                    self.copied_section(stored, level)?;
                    (sections, held) = (sections + 1, 0);
                }
                // An optional frame of a newer version that belongs to no section says nothing about the copy.
                _ => {}
            }
        }
        Ok(sections)
    }

    /// Exact times that ask a reader for more than this stream may, beside what it has: each of many streams may ask for as much.
    fn unpaid(&mut self, kind: FrameKind, frame: &StoredFrame) -> Result<Option<(Owner, Vec<Chunk>)>, Error> {
        let each = match kind {
            FrameKind::Times | FrameKind::Spans => ASKED_EVENT,
            FrameKind::Column if frame.has_coded_times() => ASKED_COLUMN,
            _ => return Ok(None),
        };
        let invalid = |source| frame.fault(ErrorKind::Payload { frame: kind, source });
        let events = column::decode_head(&mut &frame.stored[..]).map_err(invalid)?.1.events;
        if !self.plans.beyond(u64::from(events).saturating_mul(each)) {
            return Ok(None);
        }
        let (owner, chunks, asked) = frame.chunks(kind)?;
        let paid = frame.stored.len().to_u64().saturating_mul(ASKED_EACH);
        Ok((asked > paid).then_some((owner, chunks)))
    }

    /// Keeps exact times with which the sketches of the section that comes may not be needed, unless there are too many.
    fn hold<R: Read>(
        &self,
        from: &mut Reader<R>,
        kind: FrameKind,
        frame: &StoredFrame,
        held: &mut usize,
    ) -> Result<(), Error> {
        if !self.options.derives() || *held > HELD {
            return Ok(());
        }
        *held += frame.stored.len();
        if *held > HELD {
            from.forget_times();
            return Ok(());
        }
        from.hold(kind, frame.clone())
    }

    /// Copies the frames of a section, but for sketches that follow from its times.
    fn copied_section(&mut self, stored: Stored, level: u8) -> Result<(), CopyError> {
        let derives = self.options.derives();
        // A recorder's stream has another level.
        let mut made = (derives && level != self.options.level).then(|| made(&stored)).flatten();
        let derived = match &mut made {
            Some((_, derived)) => derived.take(),
            None => derives.then(|| derived(&stored)).flatten(),
        };
        let mut derived = derived.and_then(|derived| derived.within(&self.derived));
        let work = self.recoded(stored.frame, FrameKind::Section, level)?;
        self.add(true, Of::Opening(stored.opening.ranks), work)?;
        for part in stored.parts {
            let kind = part.kind()?;
            if let Some((sketches, _)) = made.take_if(|_| kind == Some(FrameKind::Derived)) {
                let work = self.planned(FrameKind::Sketch, sketches);
                self.part(Some(FrameKind::Sketch), work, &mut derived)?;
                continue;
            }
            let work = match kind {
                Some(kind) => self.recoded(part, kind, level)?,
                // Of a newer version.
                None => Work::Done(part),
            };
            self.part(kind, work, &mut derived)?;
        }
        Ok(())
    }

    /// The frame as this stream's level would have it, from one of another level.
    fn recoded(&mut self, frame: StoredFrame, kind: FrameKind, level: u8) -> Result<Work, Error> {
        if level_of(kind, level) == self.level(kind) {
            return Ok(Work::Done(frame));
        }
        let payload = frame.payload(kind)?.into_owned();
        Ok(self.planned(kind, payload))
    }

    /// Puts a table in force from a stream of a level.
    fn copied_table(&mut self, table: usize, frame: StoredFrame, level: u8) -> Result<(), CopyError> {
        if matches!(&self.tables[table], Some(InForce::Copied(before)) if before.same(&frame)) {
            return Ok(());
        }
        let kind = TABLES[table];
        let payload = frame.payload(kind)?;
        let same = match &self.tables[table] {
            Some(InForce::Payload(before)) => **before == *payload,
            Some(InForce::Copied(before)) => before.payload(kind).is_ok_and(|before| before == payload),
            None => false,
        };
        if same {
            return Ok(());
        }
        self.tables[table] = Some(InForce::Copied(frame.clone()));
        let work = self.recoded(frame, kind, level)?;
        Ok(self.add(false, Of::Table(table), work)?)
    }
}

/// The payload of the sketches that a section's recorder has left out, and what stands for them: they count among what the stream has of
/// these, and tell what it would take without exact times. Nothing if it cannot be decoded, or its times are too many to be kept.
fn made(stored: &Stored) -> Option<(Vec<u8>, Option<Derived>)> {
    let part = stored.parts.iter().find(|part| matches!(part.kind(), Ok(Some(FrameKind::Derived))))?;
    let payload = part.payload(FrameKind::Derived).ok()?.into_owned();
    let section = stored.section().ok().filter(|_| stored.has_times())?;
    let (kind, sketches) = encode_sketches(&section);
    (kind == FrameKind::Sketch).then(|| (sketches, Some(derived::again(&section, payload))))
}

/// What stands for a section's sketches, if it can be decoded and they follow from its times.
fn derived(stored: &Stored) -> Option<Derived> {
    let sketches = stored.parts.iter().find(|part| matches!(part.kind(), Ok(Some(FrameKind::Sketch))))?;
    let worth = stored.has_times() && stored.bytes() / WORTH <= sketches.stored.len();
    worth.then(|| derived::encode(&stored.section().ok()?)).flatten()
}
