//! What each frame of a stream takes.

use st_model::num::Exact;
use std::io::Read;

use super::error::{Error, ErrorKind, check_first};
use super::expansion::Expansion;
use super::frame::FrameReader;
use super::kind::FrameKind;
use super::options::WriteOptions;
use super::packer::{Packer, Plans, level_of};
use super::reader::ReadOptions;
use super::series::{self, Joined};
use super::version::MAGIC;
use super::{column, structure};
use st_model::columns::Column;
use st_model::section::Section;

/// Size of one frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameSize {
    /// Name of its kind; the number of a kind that this version does not know.
    pub kind: String,
    /// Payload as stored, bytes.
    pub stored: u64,
    /// Payload expanded, bytes.
    pub expanded: u64,
}

/// Bytes that a section's structure (the frame STRUCT) takes in a file.
#[must_use]
pub fn structure_size(section: &Section) -> usize {
    let payload = structure::encode(section);
    let expanded = payload.len();
    let level = level_of(FrameKind::Struct, WriteOptions::FILE.level);
    let plan = Plans::default().next(FrameKind::Struct, expanded, level);
    let packed = Packer::default().frame(FrameKind::Struct, payload, plan);
    packed.map_or(expanded, |frame| frame.stored.len())
}

/// Bytes that the exact times of a thread take in a file, beyond its first MiB of them, and what they take before compression. None where
/// there are none.
#[must_use]
pub fn times_size(column: &Column) -> Option<(u64, u64)> {
    let mut joined = Joined::default();
    let mut parts: Vec<_> = column.chunks.iter().flat_map(|c| joined.push((0, 0), c.clone())).collect();
    parts.extend(joined.take());
    let payloads: Option<Vec<_>> =
        parts.iter().map(|(owner, chunks)| Some(series::encode(*owner, chunks)?.0)).collect();
    let stored: usize = payloads?.iter().map(Vec::len).sum();
    let raw: usize = column.chunks.iter().map(|c| column::encode((0, 0), c).len()).sum();
    (stored > 0).then(|| (stored.to_u64(), raw.to_u64()))
}

/// The sizes of a stream's frames, in order.
///
/// # Errors
///
/// If it is no stream, or damaged, or truncated and [`ReadOptions::partial`] is not set; with it, those that are whole are given.
pub fn frame_sizes(mut from: impl Read, options: ReadOptions) -> Result<Vec<FrameSize>, Error> {
    let mut preamble = Vec::new();
    let want = (MAGIC.len() + 3).to_u64();
    let start = |kind| Error::new(0, None, kind);
    (&mut from).take(want).read_to_end(&mut preamble).map_err(|e| start(ErrorKind::Read(e)))?;
    check_first(&preamble).map_err(start)?;
    let mut frames = FrameReader::new(from, want, 0);
    let (mut out, times) = (Vec::new(), Expansion::default());
    loop {
        let frame = match frames.next() {
            Err(e) if e.is_truncated() && options.partial => return Ok(out),
            other => other?,
        };
        let kind = frame.kind()?;
        let stored = frame.stored.len().to_u64();
        let (expanded, asked) = match kind {
            Some(k) if k.joins_times() => frame.decode(k, |payload| series::expanded(k, payload))?,
            Some(k) => frame.asked_payload(k).map(|(payload, asked)| (payload.len().to_u64(), asked))?,
            None => (stored, 0),
        };
        if let Some(k) = kind.filter(|_| asked > 0) {
            times.read(stored);
            if !times.asks(asked) {
                return Err(frame.fault(ErrorKind::TooLarge(k)));
            }
        }
        let name = kind.map_or_else(|| format!("kind {}", frame.number), |k| k.to_string());
        out.push(FrameSize { kind: name, stored, expanded });
        if kind == Some(FrameKind::End) {
            return Ok(out);
        }
    }
}
