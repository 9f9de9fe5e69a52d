//! Frames: the units that a stream is written, checked, skipped and copied in.
//!
//! `kind (u8) | flags (u8) | length (varint) | CRC-32C (u32, little endian) | payload`. The checksum is over kind,
//! flags, length and payload as stored.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};

use super::error::{DecodeError, Error, ErrorKind};
use crate::varint;

/// Flag: the payload is one zstd frame.
pub(crate) const ZSTD: u8 = 1;
/// Flag: a reader that does not know the kind must refuse the stream.
pub(crate) const REQUIRED: u8 = 2;

/// An expanded payload may have this many bytes, or [`MAX_RATIO`] times its stored size, whichever is larger. Writers
/// store uncompressed what would exceed it.
pub(crate) const MAX_EXPANDED: usize = 64 << 20;
/// See [`MAX_EXPANDED`].
pub(crate) const MAX_RATIO: usize = 4096;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal, $flags:expr;)*) => {
        /// What a frame holds.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Kind { $($(#[$doc])* $name = $number),* }
        impl Kind {
            pub(crate) fn from_number(n: u8) -> Option<Self> {
                match n { $($number => Some(Self::$name),)* _ => None }
            }
            pub(crate) fn number(self) -> u8 {
                match self { $(Self::$name => $number),* }
            }
            /// Flags that frames of this kind are written with, beside [`ZSTD`].
            fn flags(self) -> u8 {
                match self { $(Self::$name => $flags),* }
            }
        }
        impl fmt::Display for Kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $text),* })
            }
        }
    };
}

kinds! {
    /// The end of the stream.
    End = 0, "END", REQUIRED;
    /// [`crate::header::Header`] as JSON.
    Head = 1, "HEAD", REQUIRED;
    /// A [`crate::header::Step`] as JSON.
    Prov = 2, "PROV", 0;
    /// Modules and call sites, in force until the next such frame.
    Sites = 3, "SITES", REQUIRED;
    /// Object tables, in force until the next such frame.
    Objects = 4, "OBJECTS", REQUIRED;
    /// Beginning of a section: its ranks, hosts and threads.
    Section = 5, "SECTION", REQUIRED;
    /// Symbols, partitions, trees, counts and parameters of a section.
    Struct = 6, "STRUCT", REQUIRED;
    /// Proof lanes of a section.
    Lanes = 7, "LANES", REQUIRED;
    /// Time sketches of a section.
    Sketch = 8, "SKETCH", 0;
    /// Per-rank sums of a section.
    Sums = 9, "SUMS", 0;
    /// A chunk of exact times of a rank's thread.
    Column = 10, "COLUMN", 0;
    /// Where sections lie.
    Index = 11, "INDEX", 0;
    /// How a rank's clock was compared with that of rank 0.
    Clock = 12, "CLOCK", 0;
    /// Where the ranks of a section stopped that ended early.
    Ended = 13, "ENDED", 0;
}

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

impl Frame {
    /// A frame with this payload, compressed if that makes it smaller (`level` 0: never).
    pub(crate) fn new(kind: Kind, payload: Vec<u8>, level: i32) -> io::Result<Self> {
        let mut frame =
            Self { number: kind.number(), flags: kind.flags(), stored: payload, offset: 0, index: 0 };
        if level > 0 {
            let mut packer = zstd::bulk::Compressor::new(level)?;
            packer.include_contentsize(false)?;
            let packed = packer.compress(&frame.stored)?;
            if packed.len() < frame.stored.len() && frame.stored.len() <= limit(packed.len()) {
                frame.stored = packed;
                frame.flags |= ZSTD;
            }
        }
        Ok(frame)
    }

    /// Whether both frames hold the same, as stored.
    pub(crate) fn same(&self, other: &Self) -> bool {
        (self.number, self.flags, &self.stored) == (other.number, other.flags, &other.stored)
    }

    fn head(&self) -> Vec<u8> {
        let mut head = vec![self.number, self.flags];
        varint::put_u64(&mut head, u64::try_from(self.stored.len()).unwrap_or(u64::MAX));
        head
    }

    /// Writes the frame; returns its number of bytes.
    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<u64> {
        let mut head = self.head();
        let crc = crc32c::crc32c_append(crc32c::crc32c(&head), &self.stored);
        head.extend_from_slice(&crc.to_le_bytes());
        to.write_all(&head)?;
        to.write_all(&self.stored)?;
        Ok(u64::try_from(head.len() + self.stored.len()).unwrap_or(u64::MAX))
    }

    pub(crate) fn fault(&self, kind: ErrorKind) -> Error {
        Error::new(self.offset, Some(self.index), kind)
    }

    /// The frame's kind; `None` for one that may be skipped.
    pub(crate) fn kind(&self) -> Result<Option<Kind>, Error> {
        match Kind::from_number(self.number) {
            None if self.flags & REQUIRED != 0 => Err(self.fault(ErrorKind::UnknownKind(self.number))),
            None => Ok(None),
            Some(frame) if self.flags & !(ZSTD | REQUIRED) != 0 => {
                Err(self.fault(ErrorKind::UnknownFlags { frame, flags: self.flags }))
            }
            known => Ok(known),
        }
    }

    /// The payload, expanded.
    pub(crate) fn payload(&self, frame: Kind) -> Result<Cow<'_, [u8]>, Error> {
        if self.flags & ZSTD == 0 {
            return Ok(Cow::Borrowed(&self.stored));
        }
        let limit = limit(self.stored.len());
        let expand = || {
            let mut out = Vec::new();
            let more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
            zstd::stream::read::Decoder::with_buffer(&self.stored[..])?
                .single_frame()
                .take(more)
                .read_to_end(&mut out)?;
            Ok(out)
        };
        let out = expand().map_err(|source| self.fault(ErrorKind::Decompress { frame, source }))?;
        if out.len() > limit {
            return Err(self.fault(ErrorKind::TooLarge(frame)));
        }
        Ok(Cow::Owned(out))
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

fn limit(stored: usize) -> usize {
    MAX_EXPANDED.max(stored.saturating_mul(MAX_RATIO))
}

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
        let mut head = vec![0; 2];
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
        // The buffer grows with what is there, not with what the length promises.
        let mut stored = Vec::new();
        (&mut self.from).take(len).read_to_end(&mut stored).map_err(|e| self.fault(ErrorKind::Read(e)))?;
        if u64::try_from(stored.len()).unwrap_or(0) < len {
            return Err(self.fault(ErrorKind::Truncated));
        }
        if crc32c::crc32c_append(crc32c::crc32c(&head), &stored) != u32::from_le_bytes(crc) {
            return Err(self.fault(ErrorKind::Checksum));
        }
        let frame = Frame { number: head[0], flags: head[1], stored, offset: self.offset, index: self.index };
        self.offset += u64::try_from(head.len() + 4).unwrap_or(0) + len;
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
