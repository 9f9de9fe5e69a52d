//! Payloads of SPANS, TIMES and SERIES: exact times of many consecutive events of one rank's thread, in the coding of [`spans`]. Those
//! of TIMES, in that of [`placed`], and of SERIES, in which gaps and durations are each one page of the crate pco, are no longer written.
//!
//! Tables are worth it for many numbers, so that [`Joined`] puts chunks together. They come apart again when they are read.

use st_model::columns::{CHUNK_EVENTS, Chunk};
use st_model::num::{Exact, narrow};
use st_model::varint;

use super::bytes::{finish, get_bytes};
use super::column::{self, Owner};
use super::error::{DecodeError, Field as _};
use super::kind::FrameKind;
use super::pages;
use super::placed::{self, Numbers};
use super::spans;

/// Events of a frame at most: a reader sets aside 16 bytes for each before it knows whether they are there.
pub(super) const MOST: u32 = 1 << 18;
/// Events that are put together: more shrink no further, by what was measured (`cargo bench -p st-stream`).
const JOINED: u32 = 1 << 17;
/// Threads whose chunks are put together at the same time.
const OWNERS: usize = 8;

/// Chunks that wait for those that follow them.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// By thread; that which got a chunk last is last.
    waiting: Vec<(Owner, Vec<Chunk>)>,
}

impl Joined {
    /// Adds a chunk; returns what has become complete by that.
    pub(super) fn push(&mut self, owner: Owner, chunk: Chunk) -> Vec<(Owner, Vec<Chunk>)> {
        let at = self.waiting.iter().position(|(of, _)| *of == owner);
        let mut before = at.map_or_else(Vec::new, |at| self.waiting.remove(at).1);
        let mut out = Vec::new();
        let events: u32 = before.iter().map(|c| c.events).sum();
        let follows = before.last().is_none_or(|last| follows(last, &chunk));
        if !follows || chunk.events > JOINED - events.min(JOINED) {
            out.push((owner, std::mem::take(&mut before)));
        }
        before.push(chunk);
        self.waiting.push((owner, before));
        if self.waiting.len() > OWNERS {
            out.push(self.waiting.remove(0));
        }
        out.retain(|(_, chunks)| !chunks.is_empty());
        out
    }

    /// All that waits.
    pub(super) fn take(&mut self) -> Vec<(Owner, Vec<Chunk>)> {
        std::mem::take(&mut self.waiting)
    }
}

/// Whether chunks that are put together come apart at the same place.
fn follows(last: &Chunk, next: &Chunk) -> bool {
    last.events == CHUNK_EVENTS
        && last.unit == next.unit
        && last.first.checked_add(last.events.into()) == Some(next.first)
}

/// Consecutive chunks of a thread. Nothing if what was read from that would not be the same, byte for byte, or if they cannot be
/// compressed in this way. How many bits were coded by their chances.
pub(super) fn encode(owner: Owner, chunks: &[Chunk]) -> Option<(Vec<u8>, u64)> {
    let first = chunks.first()?;
    let numbers = numbers(chunks)?;
    let events = u32::try_from(numbers.gaps.len()).ok().filter(|n| *n <= MOST)?;
    let mut out = column::encode_head(owner, &Chunk { events, ..column::without_times(first) });
    let (packed, asked) = spans::compress(&numbers)?;
    out.extend(packed);
    Some((out, asked))
}

/// The numbers of chunks, if they follow each other.
fn numbers(chunks: &[Chunk]) -> Option<Numbers> {
    let Numbers { mut gaps, mut durations } = Numbers::default();
    let mut exit = chunks.first()?.base;
    for chunk in chunks {
        if chunk.base != exit || !(1..=CHUNK_EVENTS).contains(&chunk.events) {
            return None;
        }
        let from = gaps.len();
        for (numbers, bytes) in [(&mut gaps, &chunk.gaps), (&mut durations, &chunk.durations)] {
            shortest(bytes, chunk.events, numbers)?;
        }
        exit = after(exit, &gaps[from..], &durations[from..], chunk.unit);
    }
    Some(Numbers { gaps, durations })
}

/// The numbers of a chunk's bytes, if these are as long as needed.
fn shortest(mut bytes: &[u8], events: u32, out: &mut Vec<i64>) -> Option<()> {
    let long = bytes.len();
    let from = out.len();
    for _ in 0..events {
        out.push(varint::get_i64(&mut bytes).ok()?);
    }
    let needed: usize = out[from..].iter().map(|n| varint::len_i64(*n)).sum();
    (bytes.is_empty() && needed == long).then_some(())
}

/// When the last of some events ends.
fn after(base: i64, gaps: &[i64], durations: &[i64], unit: u32) -> i64 {
    let sum = gaps.iter().chain(durations).fold(0i64, |sum, n| sum.wrapping_add(*n));
    base.wrapping_add(sum.wrapping_mul(unit.into()))
}

/// Whose times they are, the chunks that were put together, and how many bits were coded by their chances.
pub(super) fn decode(kind: FrameKind, mut src: &[u8]) -> Result<(Owner, Vec<Chunk>, u64), DecodeError> {
    let src = &mut src;
    let (owner, head) = column::decode_head(src)?;
    if head.events > MOST || head.events == 0 {
        return Err(DecodeError::Integer).field("events");
    }
    let (Numbers { gaps, durations }, asked) = match kind {
        FrameKind::Series => (pages(src, head.events)?, 0),
        FrameKind::Times => placed::expand(std::mem::take(src), head.events)?,
        _ => spans::expand(std::mem::take(src), head.events)?,
    };
    finish(src)?;
    let (mut first, mut base) = (head.first, head.base);
    let most = CHUNK_EVENTS.to_usize();
    let chunks = gaps.chunks(most).zip(durations.chunks(most)).map(|(gaps, durations)| {
        let events = narrow::<u32>(gaps.len());
        let mut chunk = Chunk { first, base, events, ..column::without_times(&head) };
        varint::put_all(&mut chunk.gaps, gaps.iter().copied());
        varint::put_all(&mut chunk.durations, durations.iter().copied());
        first = first.wrapping_add(events.into());
        base = after(base, gaps, durations, head.unit);
        chunk
    });
    Ok((owner, chunks.collect(), asked))
}

/// The numbers of so many events in SERIES.
fn pages(src: &mut &[u8], events: u32) -> Result<Numbers, DecodeError> {
    let gaps = pages::expand(get_bytes(src).field("gaps")?, events).field("gaps")?;
    Ok(Numbers { gaps, durations: pages::expand(std::mem::take(src), events).field("durations")? })
}

/// Bytes that the times would take in COLUMN frames, and how many bits were coded by their chances.
pub(super) fn expanded(kind: FrameKind, src: &[u8]) -> Result<(u64, u64), DecodeError> {
    let (owner, chunks, asked) = decode(kind, src)?;
    Ok((chunks.iter().map(|chunk| column::encode(owner, chunk).len().to_u64()).sum(), asked))
}

#[cfg(test)]
mod tests {
    use super::super::bytes::put_bytes;
    use super::*;
    use proptest::prelude::*;
    use st_model::columns::ColumnWriter;

    /// The kinds of frames that can be read.
    const KINDS: &[FrameKind] = &[
        FrameKind::Spans,
        FrameKind::Times,
        #[cfg(feature = "pco")]
        FrameKind::Series,
    ];

    /// Consecutive chunks in a frame of a kind.
    fn encoded(kind: FrameKind, owner: Owner, chunks: &[Chunk]) -> Vec<u8> {
        if kind == FrameKind::Spans {
            return encode(owner, chunks).unwrap().0;
        }
        let numbers = numbers(chunks).unwrap();
        let head = Chunk { events: narrow(numbers.gaps.len()), ..column::without_times(&chunks[0]) };
        let mut out = column::encode_head(owner, &head);
        if kind == FrameKind::Times {
            out.extend(placed::compress(&numbers).unwrap().0);
            return out;
        }
        put_bytes(&mut out, &page(&numbers.gaps));
        out.extend(page(&numbers.durations));
        out
    }

    /// Numbers as versions 1.4 to 1.6 have written them.
    #[cfg(feature = "pco")]
    fn page(numbers: &[i64]) -> Vec<u8> {
        use pco::{ChunkConfig, DeltaSpec, ModeSpec, PagingSpec, wrapped::FileCompressor};
        let config = ChunkConfig::default()
            .with_compression_level(10)
            .with_mode_spec(ModeSpec::Classic)
            .with_delta_spec(DeltaSpec::NoOp)
            .with_paging_spec(PagingSpec::Exact(vec![numbers.len()]));
        let file = FileCompressor::default();
        let mut chunk = file.chunk_compressor(numbers, &config).unwrap();
        let out = chunk.write_meta(file.write_header(Vec::new()).unwrap()).unwrap();
        chunk.write_page(0, out).unwrap()
    }

    #[cfg(not(feature = "pco"))]
    fn page(_: &[i64]) -> Vec<u8> {
        Vec::new()
    }

    /// A thread's chunks: so many full ones, and some events more.
    fn chunks(full: u32, more: &[(i64, i64)], unit: u32) -> Vec<Chunk> {
        let mut writer = ColumnWriter::resume(7, -40);
        let mut at = -40i64;
        let usual = (0..full * CHUNK_EVENTS).map(|i| (i64::from(i % 900), 40 + i64::from(i % 7)));
        let mut out = Vec::new();
        for (gap, duration) in usual.chain(more.iter().copied()) {
            let enter = at.wrapping_add(gap);
            at = enter.wrapping_add(duration);
            out.extend(writer.push(enter, at));
        }
        out.extend(writer.flush());
        // What they count is another unit: bases are other times by that.
        let start = out.first().map_or(0, |c| c.base);
        for chunk in &mut out {
            chunk.base = start.wrapping_add(chunk.base.wrapping_sub(start).wrapping_mul(unit.into()));
            chunk.unit = unit;
        }
        out
    }

    fn number() -> impl Strategy<Value = i64> {
        prop_oneof![Just(0i64), -3i64..3, 900i64..1_100, 1_000_000i64..2_000_000, any::<i64>()]
    }

    fn more(most: usize) -> impl Strategy<Value = Vec<(i64, i64)>> {
        prop::collection::vec((number(), number()), 1..most)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn chunks_come_back(full in 0u32..3, more in more(300), unit in prop_oneof![Just(1u32), 1u32..]) {
            let chunks = chunks(full, &more, unit);
            let flat: usize = chunks.iter().map(|c| column::encode((3, 1), c).len()).sum();
            for kind in KINDS {
                let payload = encoded(*kind, (3, 1), &chunks);
                let (owner, read, _) = decode(*kind, &payload).unwrap();
                prop_assert_eq!((owner, read), ((3, 1), chunks.clone()));
                prop_assert_eq!(expanded(*kind, &payload).unwrap().0, flat.to_u64());
                for cut in [payload.len() - 1, payload.len() / 2] {
                    prop_assert!(decode(*kind, &payload[..cut]).is_err());
                }
                prop_assert!(decode(*kind, &[&payload[..], &[0]].concat()).is_err());
            }
        }

        #[test]
        fn damage_is_refused_or_read_in_full(
            more in more(300), at in any::<prop::sample::Index>(), xor in 1u8.., at_the_head: bool,
        ) {
            for kind in KINDS {
                let mut payload = encoded(*kind, (0, 0), &chunks(0, &more, 1));
                let within = if at_the_head { payload.len().min(40) } else { payload.len() };
                let at = at.index(within);
                payload[at] ^= xor;
                if let Ok((_, chunks, _)) = decode(*kind, &payload) {
                    prop_assert!(chunks.iter().all(|c| c.times().count() == c.events.to_usize()));
                }
            }
        }

        #[test]
        fn any_bytes_are_refused_or_read(events in 1u32..=MOST, bytes: Vec<u8>, plain: bool) {
            let mut payload = column::encode_head((0, 0), &Chunk { events, ..column::without_times(&chunks(0, &[(1, 2)], 1)[0]) });
            put_bytes(&mut payload, &bytes);
            // pco's version, and the way that is read.
            payload.extend(if plain { &[4, 1, 0][..] } else { &[] });
            payload.extend(&bytes);
            KINDS.iter().for_each(|kind| _ = decode(*kind, &payload).is_ok());
        }
    }

    #[test]
    fn more_events_than_a_frame_has_are_refused_before_they_are_read() {
        // Equal numbers take no bytes, however many they are.
        let chunk = chunks(0, &[(1, 2); 9], 1).remove(0);
        for kind in KINDS {
            let payload = encoded(*kind, (0, 0), std::slice::from_ref(&chunk));
            let head = column::encode_head((0, 0), &chunk).len();
            let with = |events: u32| {
                let mut other =
                    column::encode_head((0, 0), &Chunk { events, ..column::without_times(&chunk) });
                other.extend(&payload[head..]);
                decode(*kind, &other)
            };
            for events in [0, MOST + 1, u32::MAX] {
                let told = with(events).unwrap_err().to_string();
                assert!(told.starts_with("events"), "{events}: {told}");
            }
            let most = with(MOST).unwrap().1;
            assert_eq!(most.iter().map(|c| c.events).sum::<u32>(), MOST);
        }
    }

    #[cfg(feature = "pco")]
    #[test]
    fn other_ways_of_pco_are_refused() {
        use pco::{ChunkConfig, DeltaSpec, ModeSpec, wrapped::FileCompressor};
        let numbers: Vec<i64> = (0..2_000).map(|i| i * i).collect();
        let multiples: Vec<i64> = (0..2_000).map(|i| 1_000 * (i * i % 997)).collect();
        let deltas = ChunkConfig::default()
            .with_mode_spec(ModeSpec::Classic)
            .with_delta_spec(DeltaSpec::TryConsecutive(2));
        let lookback =
            ChunkConfig::default().with_mode_spec(ModeSpec::Classic).with_delta_spec(DeltaSpec::TryLookback);
        let mult = ChunkConfig::default()
            .with_mode_spec(ModeSpec::TryIntMult(1_000))
            .with_delta_spec(DeltaSpec::NoOp);
        let dict = ChunkConfig::default().with_mode_spec(ModeSpec::TryDict).with_delta_spec(DeltaSpec::NoOp);
        let mut refused = 0;
        for (numbers, config) in
            [(&numbers, deltas), (&numbers, lookback), (&multiples, mult), (&multiples, dict)]
        {
            let file = FileCompressor::default();
            let mut chunk = file.chunk_compressor(numbers, &config).unwrap();
            let out = chunk.write_meta(file.write_header(Vec::new()).unwrap()).unwrap();
            let out = chunk.write_page(0, out).unwrap();
            refused += usize::from(super::super::pages::expand(&out, 2_000).is_err());
        }
        assert_eq!(refused, 4);
    }

    #[test]
    fn what_would_not_come_back_is_left_alone() {
        let good = chunks(1, &[(5, 7); 3], 1);
        assert!(encode((0, 0), &good).is_some());
        let with = |change: &dyn Fn(&mut Vec<Chunk>)| {
            let mut chunks = good.clone();
            change(&mut chunks);
            encode((0, 0), &chunks)
        };
        assert_eq!(with(&|c| c[1].base += 1), None);
        assert_eq!(with(&|c| c[1].events -= 1), None);
        assert_eq!(with(&|c| c.clear()), None);
        // A longer integer than needed.
        assert_eq!(
            with(&|c| {
                *c[1].gaps.last_mut().unwrap() |= 0x80;
                c[1].gaps.push(0);
            }),
            None
        );
    }

    #[test]
    fn chunks_that_follow_each_other_are_put_together() {
        let all = chunks(9, &[(5, 7); 3], 1);
        let mut joined = Joined::default();
        let mut out = Vec::new();
        // Two threads in turn.
        for chunk in &all {
            out.extend(joined.push((0, 0), chunk.clone()));
            out.extend(joined.push((0, 1), chunk.clone()));
        }
        out.extend(joined.take());
        let lengths: Vec<_> = out.iter().map(|(owner, chunks)| (owner.1, chunks.len())).collect();
        assert_eq!(lengths, [(0, 8), (1, 8), (0, 2), (1, 2)]);
        let one: Vec<Chunk> =
            out.into_iter().filter(|(owner, _)| owner.1 == 0).flat_map(|(_, c)| c).collect();
        assert_eq!(one, all);
        // Nothing follows a chunk that is not full, or is not the one before it.
        let after_short = Chunk { first: all[9].first + 3, ..all[6].clone() };
        for (one, next) in [(&all[9], &after_short), (&all[7], &all[6])] {
            let mut joined = Joined::default();
            assert_eq!(joined.push((0, 0), one.clone()), []);
            assert_eq!(joined.push((0, 0), next.clone()).len(), 1);
        }
    }

    #[test]
    fn few_threads_wait_at_a_time() {
        let chunk = chunks(1, &[], 1).remove(0);
        let mut joined = Joined::default();
        let early: Vec<_> = (0..20)
            .flat_map(|rank| joined.push((rank, 0), chunk.clone()))
            .map(|(owner, _)| owner.0)
            .collect();
        assert_eq!(early, (0..12).collect::<Vec<_>>());
        assert_eq!(joined.take().len(), OWNERS);
    }
}
