//! Sections of another stream, which are not decoded.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use super::{InForce, OBJECTS, Of, SITES, TABLES, Writer};
use crate::error::Error;
use crate::frame::StoredFrame;
use crate::kind::FrameKind;
use crate::packer::{Work, level_of};
use crate::reader::Reader;
use crate::section::Opening;

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
    /// Copies all remaining sections of a stream, frame by frame, without decoding them. Frames are compressed anew only if
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
        let (mut sections, mut parts) = (0, 0);
        while let Some(frame) = from.next_raw()? {
            match frame.kind()? {
                Some(FrameKind::Sites | FrameKind::Objects) => {}
                Some(kind @ (FrameKind::Column | FrameKind::Series))
                    if level_of(FrameKind::Column, level) != self.level(FrameKind::Column) =>
                {
                    let (owner, chunks) = frame.chunks(kind)?;
                    chunks.into_iter().try_for_each(|c| self.timed(owner, Cow::Owned(c)))?;
                }
                Some(kind @ (FrameKind::Column | FrameKind::Series | FrameKind::Clock)) => {
                    let work = self.recoded(frame, kind, level)?;
                    self.add(true, Of::Other, work)?;
                }
                Some(FrameKind::Section) => {
                    self.settle()?;
                    let opening = frame.decode(FrameKind::Section, Opening::decode)?;
                    let (sites, objects) = from.tables().map_err(|kind| frame.fault(kind))?;
                    let (sites, objects) = (sites.clone(), objects.clone());
                    self.names(from.names())?;
                    self.copied_table(SITES, sites, level)?;
                    self.copied_table(OBJECTS, objects, level)?;
                    let work = self.recoded(frame, FrameKind::Section, level)?;
                    self.add(true, Of::Opening(opening.ranks), work)?;
                    parts = opening.parts;
                    sections += 1;
                }
                Some(kind) if parts > 0 => {
                    let work = self.recoded(frame, kind, level)?;
                    self.add(false, Of::Other, work)?;
                    parts -= 1;
                }
                // A part of a newer version.
                None if parts > 0 => {
                    self.add(false, Of::Other, Work::Done(frame))?;
                    parts -= 1;
                }
                // An optional frame of a newer version that belongs to no section says nothing about the copy.
                _ => {}
            }
        }
        Ok(sections)
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
