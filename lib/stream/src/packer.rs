//! Which compression a payload gets, and frames made by it. The first is decided in the order of the stream, the second can be done
//! in any thread.

use std::io;

use super::column::{self, Owner};
use super::expansion::{ASKED, ASKED_EACH};
use super::frame::{LZMA, StoredFrame, TIMES, ZSTD, limit};
use super::kind::FrameKind;
use super::{lzma, series, times};
use st_model::columns::Chunk;
use st_model::num::Exact as _;

/// In streams of this level, which are for pipes, payloads of up to so many bytes are not worth compressing.
pub(crate) const PIPE: i32 = 1;
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
/// From this level on [`super::times`] is tried on so many bytes of them, and the others are put together ([`super::spans`]): that
/// takes less time, and less room where there are many.
const SMALLEST: i32 = 19;
const TIMES_BYTES: usize = 1 << 20;
/// Bits that are coded by their chances at most: of an event in SPANS, eight ways in each of two trees, as of one in TIMES, a
/// question for each of 31 levels; of one in a COLUMN, whose
/// numbers have five or eleven for their length and up to 63 digits; of a byte of that before it is coded, which has seven of these.
pub(crate) const ASKED_EVENT: u64 = 2 * 32;
pub(crate) const ASKED_COLUMN: u64 = 2 * (5 + 6 + 63);
const ASKED_BYTE: u64 = 16;
/// What is written asks for so many whatever it takes, and beyond that for no more than what it takes pays for. A reader takes twice
/// as many: this counts at most.
const UNPAID: u64 = ASKED / 2;

/// The level that frames of a kind have in a stream of a level.
pub(crate) fn level_of(kind: FrameKind, level: u8) -> i32 {
    match i32::from(level) {
        // These are compressed already.
        _ if kind.joins_times() => 0,
        level if kind != FrameKind::Column => level,
        level if level < SMALLEST => level.min(TIMES_LEVEL),
        _ => SMALLEST,
    }
}

/// How a payload is compressed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    level: i32,
    /// LZMA is tried.
    lzma: bool,
    /// Exact times are coded.
    coded: bool,
    /// Exact times are coded only where that asks for no more bits than each stream of these bytes may.
    bounded: bool,
}

/// What the plans of a stream's payloads depend on, beside themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plans {
    /// Frames that LZMA was tried on.
    tried: u32,
    /// Bytes of exact times that were coded.
    times: usize,
    /// Bits that coded times may ask a reader for, at most.
    asked: u64,
}

impl Plans {
    /// That of the stream's next payload, of so many bytes; at level 0 it is stored as it is.
    pub(crate) fn next(&mut self, kind: FrameKind, length: usize, level: i32) -> Plan {
        let coded = kind == FrameKind::Column && self.codes_times(level);
        if coded {
            self.times += length;
            self.asked = self.asked.saturating_add(length.to_u64().saturating_mul(ASKED_BYTE));
        }
        let lzma = kind != FrameKind::Column && level > 0 && self.tried < FRAMES;
        self.tried += u32::from(lzma);
        Plan { level, lzma, coded, bounded: false }
    }

    /// That of so many events that are put together.
    pub(crate) fn series(&mut self, events: u64, level: i32) -> Plan {
        let bounded = self.beyond(events.saturating_mul(ASKED_EVENT));
        Plan { bounded, ..self.next(FrameKind::Column, 0, level) }
    }

    /// Whether frames that ask for so many bits at most are only for who has paid for these in bytes. If not, they count.
    pub(crate) fn beyond(&mut self, bits: u64) -> bool {
        let all = self.asked.saturating_add(bits);
        if all <= UNPAID {
            self.asked = all;
        }
        all > UNPAID
    }

    /// Whether exact times at this level are compressed many together: from [`SMALLEST`] on what is not coded.
    pub(crate) fn joins_times(&self, level: i32) -> bool {
        level >= SMALLEST && !self.codes_times(level)
    }

    /// Whether they are coded.
    fn codes_times(&self, level: i32) -> bool {
        level >= SMALLEST && self.times <= TIMES_BYTES && self.asked <= UNPAID
    }
}

/// What becomes frames.
pub(crate) enum Work {
    /// A payload.
    Payload(FrameKind, Vec<u8>, Plan),
    /// Exact times that are compressed many together; with the plan of a COLUMN each where they cannot be.
    Series(Owner, Vec<Chunk>, Plan),
    /// A frame that is there.
    Done(StoredFrame),
    /// A payload of [`FrameKind::Derived`], and what would become the sketches that it stands for.
    Derived(Vec<u8>, Box<Work>),
}

/// Frames, and the bytes of others that they spare.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) frames: Vec<StoredFrame>,
    pub(crate) spared: u64,
}

/// Makes frames. It keeps its compressor: setting one up takes longer than compressing a rank's payload.
#[derive(Default)]
pub(crate) struct Packer {
    compressor: Option<(i32, zstd::bulk::Compressor<'static>)>,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").field("level", &self.compressor.as_ref().map(|c| c.0)).finish()
    }
}

impl Packer {
    /// The frames.
    pub(crate) fn make(&mut self, work: Work) -> io::Result<Made> {
        let frames = match work {
            Work::Payload(kind, payload, plan) => vec![self.frame(kind, payload, plan)?],
            Work::Done(frame) => vec![frame],
            Work::Derived(payload, of) => {
                let frame = StoredFrame::stored(FrameKind::Derived, payload);
                // Compressed only to know what a stream without exact times would take.
                let others: u64 = self.make(*of)?.frames.iter().map(StoredFrame::bytes).sum();
                return Ok(Made { spared: others.saturating_sub(frame.bytes()), frames: vec![frame] });
            }
            Work::Series(owner, chunks, plan) => {
                let column = |c| self.frame(FrameKind::Column, column::encode(owner, c), plan);
                let most = |payload: &Vec<u8>| payload.len().to_u64().saturating_mul(ASKED_EACH);
                let within = |(payload, asked): &(Vec<u8>, u64)| !plan.bounded || *asked <= most(payload);
                match series::encode(owner, &chunks).filter(within) {
                    Some((payload, _)) => vec![StoredFrame::stored(FrameKind::Spans, payload)],
                    None => chunks.iter().map(column).collect::<io::Result<_>>()?,
                }
            }
        };
        Ok(Made { frames, spared: 0 })
    }

    /// A frame with this payload, compressed if that makes it smaller.
    pub(crate) fn frame(&mut self, kind: FrameKind, payload: Vec<u8>, plan: Plan) -> io::Result<StoredFrame> {
        let mut frame = StoredFrame::stored(kind, payload);
        let column = kind == FrameKind::Column;
        let (flag, other) = match column {
            true => (TIMES, Self::times(&frame.stored, plan)),
            false => (LZMA, self.other(&frame.stored, plan)?),
        };
        let level = match plan.level {
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

    /// The payload compressed with LZMA. That takes its time: of a long payload a part shows whether it is worth it.
    fn other(&mut self, payload: &[u8], plan: Plan) -> io::Result<Option<Vec<u8>>> {
        let level = plan.level;
        if !plan.lzma {
            return Ok(None);
        }
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
    fn times(payload: &[u8], plan: Plan) -> Option<Vec<u8>> {
        let packed = plan.coded.then(|| times::compress(payload)).flatten();
        packed.filter(|packed| payload.len() <= limit(packed.len()))
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
        let plan = Plans::default().next(FrameKind::Clock, payload.len(), level);
        let frame = Packer::default().frame(FrameKind::Clock, payload.to_vec(), plan).unwrap();
        assert_eq!(&*frame.payload(FrameKind::Clock).unwrap(), payload);
        frame.stored
    }

    fn zstd(payload: &[u8], level: i32) -> Vec<u8> {
        Packer::default().at(level).unwrap().compress(payload).unwrap()
    }

    #[test]
    fn times_that_have_not_paid_for_what_they_ask_are_coded_only_where_a_stream_has_few() {
        // Eight gaps and eight durations in turn take next to nothing.
        let mut writer = st_model::columns::ColumnWriter::resume(0, 0);
        let mut at = 0;
        let mut chunks = Vec::new();
        for n in 0..1 << 15 {
            let enter = at + 1 + 100 * (n % 8);
            at = enter + 7 + 50 * (n % 8);
            chunks.extend(writer.push(enter, at));
        }
        chunks.extend(writer.flush());
        let kind = |asked: u64| {
            let mut plans = Plans { asked, times: 2 * TIMES_BYTES, ..Plans::default() };
            let plan = plans.series(1 << 15, SMALLEST);
            let made = Packer::default().make(Work::Series((0, 0), chunks.clone(), plan)).unwrap();
            (made.frames[0].kind().unwrap(), plans.asked)
        };
        let most = ASKED_EVENT << 15;
        assert_eq!(kind(UNPAID - most), (Some(FrameKind::Spans), UNPAID));
        assert_eq!(kind(UNPAID - most + 1), (Some(FrameKind::Column), UNPAID - most + 1));
    }

    #[test]
    fn long_payloads_are_compressed_at_a_lower_level_unless_a_higher_one_is_wanted() {
        let (short, long) = (payload(LONG + 8), payload(HUGE + 8));
        assert_eq!(stored(&short, SMALLEST), zstd(&short, SMALLEST));
        assert_eq!(stored(&long, SMALLEST), zstd(&long, HUGE_LEVEL));
    }
}
