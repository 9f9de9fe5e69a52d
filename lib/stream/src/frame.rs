//! Frames: the units that a stream is written, checked, skipped and copied in.
//!
//! `kind (u8) | flags (u8) | length (varint) | CRC-32C (u32, little endian) | payload`. The checksum is over kind,
//! flags, length and payload as stored.

use st_model::num::Exact;
use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, Read, Seek, SeekFrom, Write};

use zstd::stream::raw::{Decoder, InBuffer, Operation as _, OutBuffer};

use super::column::Owner;
use super::error::{DecodeError, Error, ErrorKind};
use super::kind::{FrameKind, REQUIRED};
use super::{column, lzma, series, times};
use st_model::columns::Chunk;
use st_model::varint;

/// Flag: the payload is one zstd frame.
pub(crate) const ZSTD: u8 = 1;
/// Flag: the payload is compressed with LZMA ([`super::lzma`]).
pub(crate) const LZMA: u8 = 4;

/// Flag: the times of the payload, a COLUMN's, are coded by [`super::times`].
pub(crate) const TIMES: u8 = 8;

/// A payload is compressed in one way.
const CODED: u8 = ZSTD | LZMA | TIMES;

/// An expanded payload may have this many bytes, or [`MAX_RATIO`] times its stored size, whichever is larger. Writers
/// store uncompressed what would exceed it.
pub(crate) const MAX_EXPANDED: usize = 64 << 20;
/// See [`MAX_EXPANDED`].
pub(crate) const MAX_RATIO: usize = 4096;
/// That ratio is for payloads that expand to no more than this.
const MAX_BY_RATIO: usize = 1 << 30;
/// What longer ones may expand to.
const USUAL_RATIO: usize = 64;

/// Header and provenance of a stream have at most so many bytes together, expanded: JSON of empty lists takes some fifty times as
/// much in memory.
pub(crate) const MAX_TEXT: u64 = 8 << 20;

/// A frame as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredFrame {
    pub(crate) number: u8,
    pub(crate) flags: u8,
    pub(crate) stored: Vec<u8>,
    /// Byte offset in the stream it was read from.
    pub(crate) offset: u64,
    /// Position in the stream it was read from.
    pub(crate) index: u64,
}

impl StoredFrame {
    /// One with this payload as it is.
    pub(crate) fn stored(kind: FrameKind, payload: Vec<u8>) -> Self {
        Self { number: kind.number(), flags: kind.flags(), stored: payload, offset: 0, index: 0 }
    }

    /// Whether both frames hold the same, as stored.
    pub(crate) fn same(&self, other: &Self) -> bool {
        (self.number, self.flags, &self.stored) == (other.number, other.flags, &other.stored)
    }

    fn head(&self) -> Vec<u8> {
        let mut head = vec![self.number, self.flags];
        varint::put_u64(&mut head, self.stored.len().to_u64());
        head
    }

    /// Its number of bytes.
    pub(crate) fn bytes(&self) -> u64 {
        // The checksum has four.
        (self.head().len() + 4 + self.stored.len()).to_u64()
    }

    /// Writes the frame; returns its number of bytes.
    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<u64> {
        let mut head = self.head();
        let crc = crc32c::crc32c_append(crc32c::crc32c(&head), &self.stored);
        head.extend_from_slice(&crc.to_le_bytes());
        to.write_all(&head)?;
        to.write_all(&self.stored)?;
        Ok((head.len() + self.stored.len()).to_u64())
    }

    pub(crate) fn fault(&self, kind: ErrorKind) -> Error {
        Error::new(self.offset, Some(self.index), kind)
    }

    /// The frame's kind; `None` for one that may be skipped.
    pub(crate) fn kind(&self) -> Result<Option<FrameKind>, Error> {
        match FrameKind::from_number(self.number) {
            None if self.flags & REQUIRED != 0 => Err(self.fault(ErrorKind::UnknownKind(self.number))),
            None => Ok(None),
            Some(frame)
                if self.flags & !(CODED | REQUIRED) != 0
                    || (self.flags & CODED).count_ones() > 1
                    || (self.flags & TIMES != 0 && frame != FrameKind::Column) =>
            {
                Err(self.fault(ErrorKind::UnknownFlags { frame, flags: self.flags }))
            }
            known => Ok(known),
        }
    }

    /// The payload, expanded.
    pub(crate) fn payload(&self, frame: FrameKind) -> Result<Cow<'_, [u8]>, Error> {
        Ok(self.asked_payload(frame)?.0)
    }

    /// The payload, expanded, and how many bits were coded by their chances.
    pub(crate) fn asked_payload(&self, frame: FrameKind) -> Result<(Cow<'_, [u8]>, u64), Error> {
        let limit = limit(self.stored.len());
        let out = match self.flags & CODED {
            0 => return Ok((Cow::Borrowed(&self.stored), 0)),
            LZMA => lzma::expand(&self.stored, limit).map(|out| (out, 0)),
            TIMES => times::expand(&self.stored, limit),
            _ => expand(&self.stored, limit).map(|out| (out, 0)),
        };
        let (out, asked) = out.map_err(|source| self.fault(ErrorKind::Decompress { frame, source }))?;
        if out.len() > limit {
            return Err(self.fault(ErrorKind::TooLarge(frame)));
        }
        Ok((Cow::Owned(out), asked))
    }

    /// Whether the times of a COLUMN are coded, and what comes before them is as it is.
    pub(crate) fn has_coded_times(&self) -> bool {
        self.flags & CODED == TIMES
    }

    /// Exact times, whichever way they are stored, whose they are, and how many bits were coded by their chances.
    pub(crate) fn chunks(&self, kind: FrameKind) -> Result<(Owner, Vec<Chunk>, u64), Error> {
        if kind.joins_times() {
            return self.decode(kind, |payload| series::decode(kind, payload));
        }
        let (payload, asked) = self.asked_payload(kind)?;
        let invalid = |source| self.fault(ErrorKind::Payload { frame: kind, source });
        let (owner, chunk) = column::decode(&payload).map_err(invalid)?;
        Ok((owner, vec![chunk], asked))
    }

    /// The frame with its payload as it is before compression.
    pub(crate) fn expanded(mut self, kind: FrameKind) -> Result<Self, Error> {
        if self.flags & CODED != 0 {
            self.stored = self.payload(kind)?.into_owned();
            self.flags &= !CODED;
        }
        Ok(self)
    }

    /// Decodes the payload, naming the frame in a fault.
    pub(crate) fn decode<T>(
        &self,
        frame: FrameKind,
        decode: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<T, Error> {
        let payload = self.payload(frame)?;
        decode(&payload).map_err(|source| self.fault(ErrorKind::Payload { frame, source }))
    }
}

thread_local! {
    /// Setting up a decompressor takes longer than a rank's payload.
    static EXPANDER: RefCell<Option<Decoder<'static>>> = const { RefCell::new(None) };
}

/// The content of one zstd frame, as far as it is not longer than `limit` by more than a byte.
fn expand(packed: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    EXPANDER.with_borrow_mut(|kept| {
        let mut decoder = match kept.take() {
            Some(decoder) => decoder,
            None => Decoder::new()?,
        };
        decoder.reinit()?;
        let mut out = Vec::new();
        let mut from = InBuffer::around(packed);
        loop {
            let filled = out.len();
            out.reserve(4 * packed.len().clamp(1 << 10, 1 << 20));
            let mut to = OutBuffer::around_pos(&mut out, filled);
            let hint = decoder.run(&mut from, &mut to)?;
            let written = to.pos();
            if hint == 0 || written > limit {
                out.truncate(written.min(limit.saturating_add(1)));
                *kept = Some(decoder);
                return Ok(out);
            }
            if written == filled && from.pos == packed.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    })
}

pub(super) fn limit(stored: usize) -> usize {
    let much = stored.saturating_mul(MAX_RATIO).min(MAX_BY_RATIO);
    MAX_EXPANDED.max(much).max(stored.saturating_mul(USUAL_RATIO))
}

/// Bytes that a frame may promise to have.
const BUFFER: usize = 1 << 14;

/// Reads frames one after the other.
#[derive(Debug)]
pub(crate) struct FrameReader<R> {
    from: R,
    offset: u64,
    index: u64,
    /// Whether frames have been passed over, so that `index` counts no longer.
    pub(crate) moved: bool,
}

impl<R: Seek> FrameReader<R> {
    /// Goes to a frame.
    pub(crate) fn go(&mut self, offset: u64) -> Result<(), Error> {
        self.moved = true;
        self.offset = offset;
        self.from.seek(SeekFrom::Start(offset)).map_err(|e| self.fault(ErrorKind::Read(e)))?;
        Ok(())
    }
}

impl<R> FrameReader<R> {
    pub(crate) fn new(from: R, offset: u64, index: u64) -> Self {
        Self { from, offset, index, moved: false }
    }
    pub(crate) fn get_mut(&mut self) -> &mut R {
        &mut self.from
    }
    pub(crate) fn fault(&self, kind: ErrorKind) -> Error {
        Error::new(self.offset, Some(self.index), kind)
    }
}

impl<R: Read> FrameReader<R> {
    fn exact(&mut self, buf: &mut [u8]) -> Result<(), Error> {
        self.from.read_exact(buf).map_err(|e| {
            let early = e.kind() == io::ErrorKind::UnexpectedEof;
            self.fault(if early { ErrorKind::Truncated } else { ErrorKind::Read(e) })
        })
    }

    /// The next frame. A stream has no legal end before its end frame, so the end of the input is an error.
    pub(crate) fn next(&mut self) -> Result<StoredFrame, Error> {
        let mut head = Vec::with_capacity(8);
        head.resize(2, 0);
        self.exact(&mut head)?;
        let mut len = 0u64;
        for shift in (0..).step_by(7) {
            let mut byte = [0];
            self.exact(&mut byte)?;
            head.push(byte[0]);
            // Five bytes of seven bits: a frame is below 32 GiB.
            if shift > 28 {
                return Err(self.fault(ErrorKind::Checksum));
            }
            len |= u64::from(byte[0] & 0x7F) << shift;
            if byte[0] < 0x80 {
                break;
            }
        }
        let mut crc = [0; 4];
        self.exact(&mut crc)?;
        // The buffer grows with what is there, not with what the length promises, from what a rank's frame has.
        let mut stored = Vec::with_capacity(len.to_usize().min(BUFFER));
        (&mut self.from).take(len).read_to_end(&mut stored).map_err(|e| self.fault(ErrorKind::Read(e)))?;
        if stored.len().to_u64() < len {
            return Err(self.fault(ErrorKind::Truncated));
        }
        if crc32c::crc32c_append(crc32c::crc32c(&head), &stored) != u32::from_le_bytes(crc) {
            return Err(self.fault(ErrorKind::Checksum));
        }
        let frame =
            StoredFrame { number: head[0], flags: head[1], stored, offset: self.offset, index: self.index };
        self.offset += (head.len() + 4).to_u64() + len;
        self.index += 1;
        Ok(frame)
    }

    /// The input must end here.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        let mut byte = [0];
        match self.from.read(&mut byte) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.fault(ErrorKind::Trailing)),
            Err(e) => Err(self.fault(ErrorKind::Read(e))),
        }
    }
}
