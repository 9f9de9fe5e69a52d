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
use super::kind::{Kind, REQUIRED};
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
pub(crate) struct Frame {
    pub(crate) number: u8,
    pub(crate) flags: u8,
    pub(crate) stored: Vec<u8>,
    /// Byte offset in the stream it was read from.
    pub(crate) offset: u64,
    /// Position in the stream it was read from.
    pub(crate) index: u64,
}

/// In streams of this level, which are for pipes, payloads of up to so many bytes are not worth compressing.
const PIPE: i32 = 1;
const SMALL: usize = 4096;

/// Of payloads longer than this a part is compressed with LZMA first, and all of it if that saves one byte in so many
/// against zstd.
const LONG: usize = 1 << 20;
const PART: usize = 1 << 17;
const GAIN: usize = 32;
/// So many frames of a stream are tried: setting a compressor up takes a millisecond or so, and what many ranks have in common
/// is stored once by merging them.
const FRAMES: u32 = 4096;

/// Payloads longer than this, such as what is known of a million ranks' clocks, are compressed by zstd at this level, unless
/// that of the stream is higher than [`SMALLEST`]: beyond it they shrink by a twentieth in five times the time.
const HUGE: usize = 1 << 22;
const HUGE_LEVEL: i32 = 9;

/// Exact times are compressed by zstd at this level at most: they hardly shrink further by it.
const TIMES_LEVEL: i32 = 3;
/// From this level on [`super::times`] is tried on them, which takes a µs or so per event, to write and to read; of longer
/// streams only on so many bytes, unless the level is higher.
const SMALLEST: i32 = 19;
const TIMES_BYTES: usize = 1 << 20;

/// The level that frames of a kind have in a stream of a level.
pub(crate) fn level_of(kind: Kind, level: u8) -> i32 {
    match i32::from(level) {
        // These are compressed already.
        _ if kind == Kind::Series => 0,
        level if kind != Kind::Column => level,
        level if level < SMALLEST => level.min(TIMES_LEVEL),
        level => level.min(SMALLEST + 1),
    }
}

/// Makes frames. It keeps its compressor: setting one up takes longer than compressing a rank's payload.
#[derive(Default)]
pub(crate) struct Packer {
    compressor: Option<(i32, zstd::bulk::Compressor<'static>)>,
    /// Frames that LZMA was tried on.
    tried: u32,
    /// Bytes of exact times that were coded.
    times: usize,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").field("level", &self.compressor.as_ref().map(|c| c.0)).finish()
    }
}

impl Packer {
    /// A frame with this payload, compressed if that makes it smaller (`level` 0: never).
    pub(crate) fn frame(&mut self, kind: Kind, payload: Vec<u8>, level: i32) -> io::Result<Frame> {
        let mut frame =
            Frame { number: kind.number(), flags: kind.flags(), stored: payload, offset: 0, index: 0 };
        let column = kind == Kind::Column;
        let (flag, other) = match column {
            true => (TIMES, self.times(&frame.stored, level)),
            false => (LZMA, self.other(&frame.stored, level)?),
        };
        let level = match level {
            level if column => level.min(TIMES_LEVEL),
            SMALLEST if frame.stored.len() > HUGE => HUGE_LEVEL,
            level => level,
        };
        // Of a long payload a part has shown that LZMA is better; if all of it is no smaller by that, zstd has its turn.
        let smaller = other.as_ref().is_some_and(|packed| packed.len() < frame.stored.len());
        let decided = !column && frame.stored.len() > LONG && smaller;
        if !decided && (level > PIPE || (level > 0 && frame.stored.len() > SMALL)) {
            let packed = self.at(level)?.compress(&frame.stored)?;
            if packed.len() < frame.stored.len() && frame.stored.len() <= limit(packed.len()) {
                frame.stored = packed;
                frame.flags |= ZSTD;
            }
        }
        if let Some(packed) = other.filter(|packed| packed.len() < frame.stored.len()) {
            frame.stored = packed;
            frame.flags = kind.flags() | flag;
        }
        Ok(frame)
    }

    /// Whether exact times at this level are compressed as numbers, many together: from [`SMALLEST`] on what is not coded.
    pub(crate) fn joins_times(&self, level: i32) -> bool {
        series::AVAILABLE && level >= SMALLEST && !self.codes_times(level)
    }

    /// Whether they are coded.
    fn codes_times(&self, level: i32) -> bool {
        level > SMALLEST || level == SMALLEST && self.times <= TIMES_BYTES
    }

    /// The payload compressed with LZMA. That takes its time: of a long payload a part shows whether it is worth it.
    fn other(&mut self, payload: &[u8], level: i32) -> io::Result<Option<Vec<u8>>> {
        if self.tried >= FRAMES || level == 0 {
            return Ok(None);
        }
        self.tried += 1;
        if payload.len() > LONG {
            let part = &payload[..PART];
            let Some(packed) = lzma::compress(part, level) else { return Ok(None) };
            if packed.len() + packed.len() / GAIN > self.at(level)?.compress(part)?.len() {
                return Ok(None);
            }
        }
        Ok(lzma::compress(payload, level))
    }

    /// The times of a COLUMN coded.
    fn times(&mut self, payload: &[u8], level: i32) -> Option<Vec<u8>> {
        if !self.codes_times(level) {
            return None;
        }
        self.times += payload.len();
        times::compress(payload).filter(|packed| payload.len() <= limit(packed.len()))
    }

    fn at(&mut self, level: i32) -> io::Result<&mut zstd::bulk::Compressor<'static>> {
        let compressor = match self.compressor.take() {
            Some((l, compressor)) if l == level => compressor,
            Some((_, mut compressor)) => {
                compressor.set_compression_level(level)?;
                compressor
            }
            None => {
                let mut compressor = zstd::bulk::Compressor::new(level)?;
                compressor.include_contentsize(false)?;
                compressor
            }
        };
        Ok(&mut self.compressor.insert((level, compressor)).1)
    }
}

impl Frame {
    /// Whether both frames hold the same, as stored.
    pub(crate) fn same(&self, other: &Self) -> bool {
        (self.number, self.flags, &self.stored) == (other.number, other.flags, &other.stored)
    }

    fn head(&self) -> Vec<u8> {
        let mut head = vec![self.number, self.flags];
        varint::put_u64(&mut head, self.stored.len().to_u64());
        head
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
    pub(crate) fn kind(&self) -> Result<Option<Kind>, Error> {
        match Kind::from_number(self.number) {
            None if self.flags & REQUIRED != 0 => Err(self.fault(ErrorKind::UnknownKind(self.number))),
            None => Ok(None),
            Some(frame)
                if self.flags & !(CODED | REQUIRED) != 0
                    || (self.flags & CODED).count_ones() > 1
                    || (self.flags & TIMES != 0 && frame != Kind::Column) =>
            {
                Err(self.fault(ErrorKind::UnknownFlags { frame, flags: self.flags }))
            }
            known => Ok(known),
        }
    }

    /// The payload, expanded.
    pub(crate) fn payload(&self, frame: Kind) -> Result<Cow<'_, [u8]>, Error> {
        let limit = limit(self.stored.len());
        let out = match self.flags & CODED {
            0 => return Ok(Cow::Borrowed(&self.stored)),
            LZMA => lzma::expand(&self.stored, limit),
            TIMES => times::expand(&self.stored, limit),
            _ => expand(&self.stored, limit),
        };
        let out = out.map_err(|source| self.fault(ErrorKind::Decompress { frame, source }))?;
        if out.len() > limit {
            return Err(self.fault(ErrorKind::TooLarge(frame)));
        }
        Ok(Cow::Owned(out))
    }

    /// Whether the times of a COLUMN are coded, and what comes before them is as it is.
    pub(crate) fn has_coded_times(&self) -> bool {
        self.flags & CODED == TIMES
    }

    /// Exact times, whichever way they are stored, and whose they are.
    pub(crate) fn chunks(&self, kind: Kind) -> Result<(Owner, Vec<Chunk>), Error> {
        if kind == Kind::Series {
            return self.decode(kind, series::decode);
        }
        let (owner, chunk) = self.decode(kind, column::decode)?;
        Ok((owner, vec![chunk]))
    }

    /// The frame with its payload as it is before compression.
    pub(crate) fn expanded(mut self, kind: Kind) -> Result<Self, Error> {
        if self.flags & CODED != 0 {
            self.stored = self.payload(kind)?.into_owned();
            self.flags &= !CODED;
        }
        Ok(self)
    }

    /// Decodes the payload, naming the frame in a fault.
    pub(crate) fn decode<T>(
        &self,
        frame: Kind,
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

fn limit(stored: usize) -> usize {
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
    pub(crate) fn next(&mut self) -> Result<Frame, Error> {
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
        let frame = Frame { number: head[0], flags: head[1], stored, offset: self.offset, index: self.index };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes without structure, as many as LZMA is tried on first, and then words of which some are repeated.
    fn payload(length: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            let word = if bytes.len() < PART { next() << 31 ^ next() } else { next() % 50_000 };
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn stored(payload: &[u8], level: i32) -> Vec<u8> {
        let frame = Packer::default().frame(Kind::Clock, payload.to_vec(), level).unwrap();
        assert_eq!(&*frame.payload(Kind::Clock).unwrap(), payload);
        frame.stored
    }

    fn zstd(payload: &[u8], level: i32) -> Vec<u8> {
        Packer::default().at(level).unwrap().compress(payload).unwrap()
    }

    #[test]
    fn long_payloads_are_compressed_at_a_lower_level_unless_a_higher_one_is_wanted() {
        let (short, long) = (payload(LONG + 8), payload(HUGE + 8));
        assert_eq!(stored(&short, SMALLEST), zstd(&short, SMALLEST));
        assert_eq!(stored(&long, SMALLEST), zstd(&long, HUGE_LEVEL));
    }
}
