//! Why a stream cannot be read: where, what, and nested by field.

use std::{fmt, io};

use super::kind::FrameKind;
use super::version::{VersionError, begins};
use st_model::varint;

/// Why a stream cannot be read.
///
/// Prints as `frame 5 at byte 120: STRUCT: symbol 3: site: 9 is not below 4`.
#[derive(Debug)]
pub struct Error {
    offset: u64,
    frame: Option<u64>,
    kind: ErrorKind,
}

/// What is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input cannot be read.
    #[error("reading")]
    Read(#[source] io::Error),
    /// There is nothing to read.
    #[error(
        "empty (0 bytes), where a trace was expected: st-record makes one; in a pipe, the program before this one says why it wrote nothing"
    )]
    Empty,
    /// The input does not begin as a stream does.
    #[error("not an st stream (wrong first bytes)")]
    NotAStream,
    /// The stream is of a version that cannot be read.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The stream ends without its end frame.
    #[error("truncated: the stream ends without its end frame; --partial uses what is whole")]
    Truncated,
    /// The stream ends before all of its header is there.
    #[error("truncated: the stream ends before its header does, and nothing can be told of it")]
    NoHeader,
    /// Stored and computed checksum differ.
    #[error("checksum does not match: the stream is damaged")]
    Checksum,
    /// A frame of this kind must be understood, and is not.
    #[error("required frame of unknown kind {0}: a newer st is needed")]
    UnknownKind(u8),
    /// A frame has flags that this version does not know.
    #[error("{frame}: unknown flags {flags:#04x}: a newer st is needed")]
    UnknownFlags {
        /// The frame's kind.
        frame: FrameKind,
        /// The flags.
        flags: u8,
    },
    /// A frame stands where its kind may not stand.
    #[error("{0} frame out of place")]
    OutOfPlace(FrameKind),
    /// A section stands where no table of this kind is in force.
    #[error("SECTION frame without {0} frame before it")]
    NoTable(FrameKind),
    /// A section lacks a frame of this kind.
    #[error("section without {0} frame")]
    Missing(FrameKind),
    /// The payload does not decompress.
    #[error("{frame}: decompressing")]
    Decompress {
        /// The frame's kind.
        frame: FrameKind,
        /// The decompressor's reason.
        #[source]
        source: io::Error,
    },
    /// The payload would be larger than a writer makes one.
    #[error("{0}: the payload expands beyond the limit")]
    TooLarge(FrameKind),
    /// The payload does not decode.
    #[error("{frame}")]
    Payload {
        /// The frame's kind.
        frame: FrameKind,
        /// What does not decode, by field.
        #[source]
        source: DecodeError,
    },
    /// The end frame states another number of frames than there are.
    #[error("the end frame counts {stated} frames, there are {found}")]
    Count {
        /// Number in the end frame.
        stated: u64,
        /// Number read.
        found: u64,
    },
    /// Bytes follow the end frame.
    #[error("bytes after the end frame")]
    Trailing,
}

/// What is wrong within a payload.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A fault inside a field.
    #[error("{field}")]
    In {
        /// The field.
        field: &'static str,
        /// The fault.
        #[source]
        source: Box<DecodeError>,
    },
    /// A fault inside an element of a list.
    #[error("{field} {index}")]
    Nth {
        /// What the list holds.
        field: &'static str,
        /// Position of the element.
        index: usize,
        /// The fault.
        #[source]
        source: Box<DecodeError>,
    },
    /// The payload ends within the field.
    #[error("unexpected end of payload")]
    End,
    /// Bytes are left over.
    #[error("{0} bytes too many")]
    Rest(usize),
    /// A variable-length integer is too long.
    #[error("integer does not fit")]
    Integer,
    /// A string is not UTF-8.
    #[error("not UTF-8")]
    Text,
    /// JSON that cannot be read.
    #[error("JSON: {0}")]
    Json(String),
    /// An index is not below the size of what it refers to.
    #[error("{index} is not below {len}")]
    Index {
        /// The index.
        index: u64,
        /// The size.
        len: u64,
    },
    /// Something else that cannot be.
    #[error("{0}")]
    Invalid(&'static str),
    /// A function number that neither the call table nor the stream names.
    #[error("function {0} is unknown: a newer st is needed")]
    Call(u16),
    /// It would take too long to go through it.
    #[error(transparent)]
    Steps(#[from] st_model::steps::Exceeded),
}

impl From<varint::DecodeError> for DecodeError {
    fn from(e: varint::DecodeError) -> Self {
        match e {
            varint::DecodeError::Truncated | varint::DecodeError::Length => Self::End,
            varint::DecodeError::Overlong => Self::Integer,
            varint::DecodeError::Range => Self::Invalid("value out of range"),
        }
    }
}

/// Adds the field to a fault.
pub(crate) trait Field<T> {
    /// The fault was in this field.
    fn field(self, field: &'static str) -> Result<T, DecodeError>;
    /// The fault was in this element.
    fn nth(self, field: &'static str, index: usize) -> Result<T, DecodeError>;
}

impl<T> Field<T> for Result<T, DecodeError> {
    fn field(self, field: &'static str) -> Self {
        self.map_err(|e| DecodeError::In { field, source: Box::new(e) })
    }
    fn nth(self, field: &'static str, index: usize) -> Self {
        self.map_err(|e| DecodeError::Nth { field, index, source: Box::new(e) })
    }
}

impl Error {
    pub(crate) fn new(offset: u64, frame: Option<u64>, kind: ErrorKind) -> Self {
        Self { offset, frame, kind }
    }
    /// Byte offset of the frame (or of the stream's start) that is at fault.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }
    /// Position of the frame at fault.
    #[must_use]
    pub fn frame(&self) -> Option<u64> {
        self.frame
    }
    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }
    /// Whether the stream merely ends too early.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        matches!(self.kind, ErrorKind::Truncated | ErrorKind::NoHeader)
    }
    /// Whether the input could not be read at all, which says nothing about the stream.
    #[must_use]
    pub fn is_read(&self) -> bool {
        matches!(self.kind, ErrorKind::Read(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(frame) = self.frame {
            write!(f, "frame {frame} at byte {}: ", self.offset)?;
        }
        write!(f, "{}", self.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.kind)
    }
}

/// Fails if there are no bytes, or they are not the beginning of a stream, as far as they go.
pub(super) fn check_first(first: &[u8]) -> Result<(), ErrorKind> {
    match first {
        [] => Err(ErrorKind::Empty),
        _ if begins(first) => Ok(()),
        _ => Err(ErrorKind::NotAStream),
    }
}
