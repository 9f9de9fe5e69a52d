//! Payloads of COLUMN and CLOCK: exact times of consecutive events of one rank's thread; comparisons of its clock.

use super::bytes::{
    finish, get_bytes, get_i64, get_len, get_u32, get_u64, put_bytes, put_i64, put_u64, put_usize,
};
use super::error::{DecodeError, Field as _};
use st_model::columns::{Chunk, Comparison, Offset};

/// Rank and thread that a chunk belongs to.
pub(crate) type Owner = (u32, u32);

pub(crate) fn encode(owner: Owner, chunk: &Chunk) -> Vec<u8> {
    let mut out = encode_head(owner, chunk);
    out.reserve(chunk.gaps.len() + chunk.durations.len() + 5);
    put_bytes(&mut out, &chunk.gaps);
    out.extend_from_slice(&chunk.durations);
    out
}

/// Everything before the times.
pub(super) fn encode_head(owner: Owner, chunk: &Chunk) -> Vec<u8> {
    let mut out = Vec::with_capacity(40);
    put_u64(&mut out, owner.0.into());
    put_u64(&mut out, owner.1.into());
    put_u64(&mut out, chunk.first);
    put_i64(&mut out, chunk.base);
    put_u64(&mut out, chunk.events.into());
    put_u64(&mut out, chunk.unit.into());
    out
}

/// The chunk without its gaps and durations.
pub(super) fn without_times(chunk: &Chunk) -> Chunk {
    Chunk { gaps: Vec::new(), durations: Vec::new(), ..*chunk }
}

/// Rank and thread only.
pub(crate) fn decode_owner(src: &mut &[u8]) -> Result<Owner, DecodeError> {
    Ok((get_u32(src).field("rank")?, get_u32(src).field("thread")?))
}

/// Everything before the times: whose they are, and a chunk without them.
pub(super) fn decode_head(src: &mut &[u8]) -> Result<(Owner, Chunk), DecodeError> {
    let owner = decode_owner(src)?;
    let first = get_u64(src).field("first event")?;
    let base = get_i64(src).field("base")?;
    let events = get_u32(src).field("events")?;
    let unit = get_u32(src).field("unit")?;
    if unit == 0 {
        return Err(DecodeError::Integer).field("unit");
    }
    Ok((owner, Chunk { first, base, events, unit, gaps: Vec::new(), durations: Vec::new() }))
}

pub(crate) fn decode(mut src: &[u8]) -> Result<(Owner, Chunk), DecodeError> {
    let src = &mut src;
    let (owner, head) = decode_head(src)?;
    let gaps = get_bytes(src).field("gaps")?.to_vec();
    let durations = src.to_vec();
    check(&gaps, head.events).field("gaps")?;
    check(&durations, head.events).field("durations")?;
    Ok((owner, Chunk { gaps, durations, ..head }))
}

/// The bytes are exactly that many integers.
fn check(mut bytes: &[u8], events: u32) -> Result<(), DecodeError> {
    for _ in 0..events {
        get_i64(&mut bytes)?;
    }
    finish(bytes)
}

/// Rank, shortest times, number of comparisons; per comparison the time since the one before, the offset less that of the
/// one before, the error.
pub(crate) fn encode_clock(rank: u32, clock: &Comparison) -> Vec<u8> {
    let mut out = Vec::new();
    put_u64(&mut out, rank.into());
    put_i64(&mut out, clock.near);
    put_i64(&mut out, clock.far);
    put_usize(&mut out, clock.points.len());
    let mut before = Offset::default();
    for p in &clock.points {
        put_i64(&mut out, p.local.wrapping_sub(before.local));
        put_i64(&mut out, p.offset.wrapping_sub(before.offset));
        put_i64(&mut out, p.error);
        before = *p;
    }
    out
}

/// Rank only.
pub(crate) fn decode_clock_owner(src: &mut &[u8]) -> Result<u32, DecodeError> {
    get_u32(src).field("rank")
}

pub(crate) fn decode_clock(mut src: &[u8]) -> Result<(u32, Comparison), DecodeError> {
    let src = &mut src;
    let rank = decode_clock_owner(src)?;
    let near = get_i64(src).field("shortest time within the node")?;
    let far = get_i64(src).field("shortest time between nodes")?;
    let n = get_len(src).field("comparisons")?;
    let mut points = Vec::with_capacity(n.min(1 << 16));
    let mut before = Offset::default();
    for i in 0..n {
        let local = before.local.wrapping_add(get_i64(src).nth("comparison", i)?);
        let offset = before.offset.wrapping_add(get_i64(src).nth("comparison", i)?);
        before = Offset { local, offset, error: get_i64(src).nth("comparison", i)? };
        points.push(before);
    }
    finish(src)?;
    Ok((rank, Comparison { points, near, far }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chunks_come_back(owner: (u32, u32), first: u64, base: i64, unit in 1u32.., v: Vec<(i64, i64)>) {
            let mut chunk = Chunk { first, base, events: 0, unit, gaps: Vec::new(), durations: Vec::new() };
            for (gap, duration) in v {
                chunk.events += 1;
                put_i64(&mut chunk.gaps, gap);
                put_i64(&mut chunk.durations, duration);
            }
            prop_assert_eq!(decode(&encode(owner, &chunk)).unwrap(), (owner, chunk));
        }

        #[test]
        fn comparisons_come_back(rank: u32, near: i64, far: i64, v: Vec<(i64, i64, i64)>) {
            let points = v.into_iter().map(|(local, offset, error)| Offset { local, offset, error }).collect();
            let clock = Comparison { points, near, far };
            prop_assert_eq!(decode_clock(&encode_clock(rank, &clock)).unwrap(), (rank, clock));
        }
    }
}
