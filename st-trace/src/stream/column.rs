//! Payload of COLUMN: exact times of consecutive events of one rank's thread.

use super::bytes::{get_bytes, get_i64, get_u32, get_u64, put_bytes, put_i64, put_u64};
use super::error::{DecodeError, Field as _};
use crate::columns::Chunk;

/// Rank and thread that a chunk belongs to.
pub(crate) type Owner = (u32, u32);

pub(crate) fn encode(owner: Owner, chunk: &Chunk) -> Vec<u8> {
    let mut out = Vec::with_capacity(chunk.gaps.len() + chunk.durations.len() + 40);
    put_u64(&mut out, owner.0.into());
    put_u64(&mut out, owner.1.into());
    put_u64(&mut out, chunk.first);
    put_i64(&mut out, chunk.base);
    put_u64(&mut out, chunk.events.into());
    put_bytes(&mut out, &chunk.gaps);
    out.extend_from_slice(&chunk.durations);
    out
}

/// Rank and thread only.
pub(crate) fn decode_owner(src: &mut &[u8]) -> Result<Owner, DecodeError> {
    Ok((get_u32(src).field("rank")?, get_u32(src).field("thread")?))
}

pub(crate) fn decode(mut src: &[u8]) -> Result<(Owner, Chunk), DecodeError> {
    let src = &mut src;
    let owner = decode_owner(src)?;
    let first = get_u64(src).field("first event")?;
    let base = get_i64(src).field("base")?;
    let events = get_u32(src).field("events")?;
    let gaps = get_bytes(src).field("gaps")?.to_vec();
    let durations = src.to_vec();
    check(&gaps, events).field("gaps")?;
    check(&durations, events).field("durations")?;
    Ok((owner, Chunk { first, base, events, gaps, durations }))
}

/// The bytes are exactly that many integers.
fn check(mut bytes: &[u8], events: u32) -> Result<(), DecodeError> {
    for _ in 0..events {
        get_i64(&mut bytes)?;
    }
    super::bytes::finish(bytes)
}
