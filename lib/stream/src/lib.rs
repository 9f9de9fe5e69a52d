//! The framed, versioned stream: one format for per-rank traces, packed sets and merged traces.
//!
//! `st-stream.5` is the specification; encoder and decoder of each payload lie side by side in one module and mirror
//! it field by field: [`frame`](self) (frames and checksums), `sites`, `objects`, `section`, `structure`, `column`,
//! `index`. A length is never believed before it is checked against what is there; indices into symbols, sites,
//! partitions, classes and slots are checked here, so that the rest of the library may rely on them.
//!
//! ```
//! use st_model::header::Header;
//! let trace = st_stream::Trace { header: Header { world: 4, ..Header::default() }, ..st_stream::Trace::default() };
//! let mut bytes = Vec::new();
//! st_stream::write(&trace, &mut bytes, st_stream::WriteOptions::PIPE)?;
//! let back = st_stream::read(&bytes[..], st_stream::ReadOptions::default())?;
//! assert_eq!(back.header.world, 4);
//! let cut = &bytes[..bytes.len() - 1];
//! assert!(st_stream::read(cut, st_stream::ReadOptions::default()).unwrap_err().is_truncated());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A program that reads traces goes through the sections of a [`Reader`], and through the calls of each
//! ([`Section::events`]); `lib/match/examples` has four to copy.

pub mod amount;
mod blocks;
pub mod bytes;
mod column;
mod derived;
pub mod directory;
mod elastic;
mod encoded;
mod error;
mod expansion;
mod forms;
mod frame;
mod hosts;
mod index;
pub mod json;
mod kind;
mod lzma;
mod matched;
mod mixing;
mod names;
mod numbers;
pub mod objects;
mod options;
mod packer;
mod pages;
mod parts;
mod placed;
mod queue;
mod reader;
mod section;
mod series;
pub mod sites;
mod sizes;
mod sketches;
mod slow;
mod spans;
mod stored;
mod struct_columns;
mod structure;
pub mod text;
mod times;
mod transposed;
mod version;
mod waits;
mod writer;

use std::io::{self, Read, Write};

pub use derived::{LeftOut, Sketched, most_calls};
pub use encoded::Encoded;
pub use error::{DecodeError, Error, ErrorKind};
pub use index::SectionOffsets;
pub use kind::FrameKind;
pub use options::WriteOptions;
pub use parts::{Piece, PieceSize, piece_sizes};
pub use reader::{ReadOptions, Reader, call_sites};
pub use sizes::{FrameSize, frame_sizes, structure_size, times_size};
pub use stored::Stored;
pub use structure::check_params;
pub use version::{CURRENT, MAGIC, Version, VersionError};
pub use writer::{CopyError, TimeBytes, Writer};

use st_model::explanation::Explanation;
use st_model::header::{Header, Step};
use st_model::section::Section;

/// A whole stream in memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// Facts of the run.
    pub header: Header,
    /// The tools that made it, in order.
    pub provenance: Vec<Step>,
    /// What its ranks did: one section per set of ranks with a shared structure.
    pub sections: Vec<Section>,
    /// What is kept of its wait states.
    pub explanation: Option<Explanation>,
    /// Whether its end frame was there.
    pub complete: bool,
    /// The compression level that it was written with.
    pub level: u8,
}

impl Default for Trace {
    /// Complete and empty.
    fn default() -> Self {
        Self {
            header: Header::default(),
            provenance: Vec::new(),
            sections: Vec::new(),
            explanation: None,
            complete: true,
            level: WriteOptions::default().level,
        }
    }
}

/// Reads a whole stream.
///
/// # Errors
///
/// If it is no stream, cannot be read, is damaged, or is truncated and [`ReadOptions::partial`] is not set.
pub fn read(from: impl Read, options: ReadOptions) -> Result<Trace, Error> {
    let mut reader = Reader::new(from, options)?;
    let mut sections = Vec::new();
    while let Some(section) = reader.next_section()? {
        sections.push(section);
    }
    Ok(Trace {
        header: reader.header().clone(),
        provenance: reader.provenance().to_vec(),
        sections,
        explanation: reader.explanation().cloned(),
        complete: reader.is_complete(),
        level: reader.level(),
    })
}

/// Writes a whole stream.
///
/// # Errors
///
/// If it cannot be written.
pub fn write(trace: &Trace, to: impl Write, options: WriteOptions) -> io::Result<()> {
    let mut writer = Writer::new(to, &trace.header, options)?;
    trace.provenance.iter().try_for_each(|s| writer.provenance(s))?;
    trace.sections.iter().try_for_each(|s| writer.section(s))?;
    trace.explanation.iter().try_for_each(|e| writer.explanation(e))?;
    writer.finish()?.flush()
}
