//! The journal: what a recorder leaves of a rank whatever ends its process.
//!
//! A file that the recorder maps and writes with plain stores: a *head* page, and *regions* that take turns. A region is
//! a checksummed snapshot of the recorder followed by a log of the calls since; when the log is full, a new snapshot goes
//! to the other region, so that one of both is whole at any moment. With logs as long as snapshots, the cost per call is
//! amortised constant. `st-stream.5` specifies the bytes.
//!
//! [`LogWriter`] and [`snapshot`] encode, [`recover`] turns the bytes of a journal into the rank's trace. Nothing here
//! maps memory or opens files.

mod log;
mod logged;
mod recover;

pub use log::{CallTimes, LogWriter};
pub use recover::{RecoverError, recover};

use st_model::num::Exact;
use std::io;

use crate::record::{Draft, RankRecorder};
use st_model::calls::CallId;
use st_model::header::{Header, Step};
use st_model::sketch::Shape;
use st_model::sketch::histogram::Binning;
use st_model::varint;
use st_stream::{Trace, WriteOptions};

/// First bytes of a journal.
pub const MAGIC: [u8; 8] = *b"\x89stj\r\n\x1a\n";
/// Version of the journal: readers refuse others, but for the one before, whose call sites share no frames. A journal is short-lived and
/// read by the release that wrote it.
pub const VERSION: u64 = 4;
/// Bytes of the head, and alignment of regions.
pub const PAGE: usize = 4096;
/// Offsets in the head of the two regions' descriptors.
pub const REGIONS: [usize; 2] = [64, 128];
/// Offset of the log's length in a descriptor: the last of its numbers, outside the checksum.
pub const LOG_LENGTH: usize = 40;
/// Offset in the head of the threads' slots.
pub const SLOTS: usize = 256;
/// Bytes of a slot: four numbers.
pub const SLOT: usize = 32;
/// Threads that have a slot. Of further ones the journal does not say which call they are in.
pub const SLOTTED: usize = (PAGE - SLOTS) / SLOT;

const COLUMNS: u64 = 1;
const SKETCHES: u64 = 2;
const TOTALS: u64 = 4;
const BINS: u64 = 8;
/// Where the flags say how many bins, and how even they are, in 16 bits each; 0 is the usual.
const BINNING: u64 = 16;

fn shape_flags(shape: Option<Shape>) -> u64 {
    match shape {
        None => 0,
        Some(Shape::Buckets | Shape::Quantiles) => SKETCHES,
        Some(Shape::Totals) => SKETCHES | TOTALS,
        Some(Shape::Bins(how)) => {
            SKETCHES | BINS | u64::from(how.bins()) << BINNING | u64::from(how.excess()) << (2 * BINNING)
        }
    }
}

fn shape_of(flags: u64) -> Option<Shape> {
    let number = |at: u64| u32::try_from(flags >> at & u64::from(u16::MAX)).ok();
    match flags & (SKETCHES | TOTALS | BINS) {
        SKETCHES => Some(Shape::Buckets),
        kept if kept == SKETCHES | TOTALS => Some(Shape::Totals),
        kept if kept == SKETCHES | BINS => {
            let how = Binning::new(number(BINNING)?, number(2 * BINNING)?);
            Some(Shape::Bins(how.unwrap_or(Binning::DEFAULT)))
        }
        _ => None,
    }
}

/// Whether these are the first bytes of a journal.
#[must_use]
pub fn is_journal(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// The generations of the two regions, as a head states them: as long as these stay, the region of the larger one is not written but
/// for its log, which only grows. Who reads a journal that is being written compares them before and after. `None` if it is shorter.
#[must_use]
pub fn generations(head: &[u8]) -> Option<[u64; 2]> {
    let number = |at: usize| Some(u64::from_le_bytes(*head.get(at..)?.first_chunk()?));
    Some([number(REGIONS[0])?, number(REGIONS[1])?])
}

/// The beginning of a head: magic and version.
#[must_use]
pub fn opening() -> [u8; 16] {
    let mut out = [0; 16];
    out[..8].copy_from_slice(&MAGIC);
    out[8..].copy_from_slice(&VERSION.to_le_bytes());
    out
}

/// What a region's descriptor states before the log's length: generation, offset, bytes of the snapshot, bytes for the log,
/// checksum over these and the snapshot.
#[must_use]
pub fn descriptor(generation: u64, offset: u64, snapshot: &[u8], log: u64) -> [u64; 5] {
    let fields = [generation, offset, snapshot.len().to_u64(), log];
    let mut crc = 0;
    for f in fields {
        crc = crc32c::crc32c_append(crc, &f.to_le_bytes());
    }
    let crc = crc32c::crc32c_append(crc, snapshot);
    [fields[0], fields[1], fields[2], fields[3], crc.into()]
}

/// A journal of one region, that holds this snapshot and log, as a file is that nobody writes to any longer.
#[must_use]
pub fn whole(snapshot: &[u8], log: &[u8]) -> Vec<u8> {
    let mut out = vec![0; PAGE];
    out[..16].copy_from_slice(&opening());
    let length = log.len().to_u64();
    let fields = descriptor(1, PAGE.to_u64(), snapshot, length);
    for (field, at) in fields.into_iter().chain([length]).zip(out[REGIONS[1]..].chunks_exact_mut(8)) {
        at.copy_from_slice(&field.to_le_bytes());
    }
    out.extend_from_slice(snapshot);
    out.extend_from_slice(log);
    out
}

/// What a thread's slot says of the call that it is in: 0 is none.
#[must_use]
pub fn inside(call: CallId, site: u32) -> u64 {
    (u64::from(site) << 16 | u64::from(call.0)) + 1
}

/// The call that this is [`inside`] of, and its site; nothing of a thread that is in none.
#[must_use]
pub fn inside_of(number: u64) -> Option<(CallId, u32)> {
    let call = number.checked_sub(1)?;
    Some((CallId(u16::try_from(call & 0xFFFF).ok()?), u32::try_from(call >> 16).ok()?))
}

/// A snapshot: which times are kept, the threads' last exits and their trees, and the rest of the rank's trace as an
/// uncompressed stream. *Cost:* O(what has been recorded), of the trees a few bytes per node.
///
/// # Errors
///
/// None that memory does not have.
pub fn snapshot(
    recorder: &RankRecorder,
    header: &Header,
    provenance: &[Step],
    host: &str,
) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let columns = if recorder.keeps_columns() { COLUMNS } else { 0 };
    varint::put_u64(&mut out, columns | shape_flags(recorder.keeps_sketches()));
    let threads = recorder.extent().threads;
    varint::put_u64(&mut out, threads.to_u64());
    (0..threads).for_each(|t| varint::put_i64(&mut out, recorder.last_exit(t)));
    let Draft { section, trees } = recorder.draft(host);
    for tree in &trees {
        varint::put_u64(&mut out, tree.bytes().len().to_u64());
        out.extend_from_slice(tree.bytes());
    }
    let trace = Trace {
        header: header.clone(),
        provenance: provenance.to_vec(),
        sections: vec![section],
        ..Trace::default()
    };
    st_stream::write(&trace, &mut out, WriteOptions { level: 0 })?;
    Ok(out)
}
