//! Primitive fields: integers, strings, rank sets. Every `get` mirrors the `put` above it.

use super::error::{DecodeError, Field as _};
use st_model::num::{Exact, saturate};
use st_model::ranklist::RankList;
use st_model::ranks::Run;
use st_model::varint;

/// Ranks lie below this.
const RANK_LIMIT: i64 = (1 << 32) - 1;

/// 7 bits per byte, lowest first.
pub fn put_u64(out: &mut Vec<u8>, v: u64) {
    varint::put_u64(out, v);
}

/// 7 bits per byte, lowest first.
///
/// # Errors
///
/// If the bytes end or the number does not fit.
pub fn get_u64(src: &mut &[u8]) -> Result<u64, DecodeError> {
    Ok(varint::get_u64(src)?)
}

/// Signed: zigzag, then 7 bits per byte.
pub fn put_i64(out: &mut Vec<u8>, v: i64) {
    varint::put_i64(out, v);
}

/// Signed: zigzag, then 7 bits per byte.
///
/// # Errors
///
/// If the bytes end or the number does not fit.
pub fn get_i64(src: &mut &[u8]) -> Result<i64, DecodeError> {
    Ok(varint::get_i64(src)?)
}

/// As [`put_u64`].
pub fn put_usize(out: &mut Vec<u8>, v: usize) {
    put_u64(out, v.to_u64());
}

/// A number of things that follow, each taking at least one byte: never more than bytes are left.
///
/// # Errors
///
/// If there are more.
pub fn get_len(src: &mut &[u8]) -> Result<usize, DecodeError> {
    let n = get_u64(src)?;
    match usize::try_from(n) {
        Ok(n) if n <= src.len() => Ok(n),
        _ => Err(DecodeError::End),
    }
}

/// As [`get_u64`].
///
/// # Errors
///
/// If it does not fit into 32 bits.
pub fn get_u32(src: &mut &[u8]) -> Result<u32, DecodeError> {
    u32::try_from(get_u64(src)?).map_err(|_| DecodeError::Integer)
}

/// As [`get_u64`].
///
/// # Errors
///
/// If it does not fit into 16 bits.
pub fn get_u16(src: &mut &[u8]) -> Result<u16, DecodeError> {
    u16::try_from(get_u64(src)?).map_err(|_| DecodeError::Integer)
}

/// An index into something of `len` elements.
///
/// # Errors
///
/// If there are no more than that.
pub fn get_index(src: &mut &[u8], len: usize) -> Result<u32, DecodeError> {
    let index = get_u64(src)?;
    match u32::try_from(index) {
        Ok(i) if usize::try_from(i).is_ok_and(|i| i < len) => Ok(i),
        _ => Err(DecodeError::Index { index, len: len.to_u64() }),
    }
}

/// 7 bits per byte, lowest first, as the 64-bit form.
pub(crate) fn put_u128(out: &mut Vec<u8>, mut v: u128) {
    if let Ok(short) = u64::try_from(v) {
        return put_u64(out, short);
    }
    while v >= 0x80 {
        out.push(v.to_le_bytes()[0] | 0x80);
        v >>= 7;
    }
    out.push(v.to_le_bytes()[0]);
}

pub(crate) fn get_u128(src: &mut &[u8]) -> Result<u128, DecodeError> {
    let mut v = 0u128;
    for shift in (0..128).step_by(7) {
        let b = get_u8(src)?;
        let low = u128::from(b & 0x7F);
        if low << shift >> shift != low {
            return Err(DecodeError::Integer);
        }
        v |= low << shift;
        if b < 0x80 {
            return Ok(v);
        }
    }
    Err(DecodeError::Integer)
}

/// One byte.
///
/// # Errors
///
/// If there is none.
pub fn get_u8(src: &mut &[u8]) -> Result<u8, DecodeError> {
    let (&b, rest) = src.split_first().ok_or(DecodeError::End)?;
    *src = rest;
    Ok(b)
}

/// A 128-bit identity or hash: 16 bytes, little endian.
pub fn put_id(out: &mut Vec<u8>, id: u128) {
    out.extend_from_slice(&id.to_le_bytes());
}

/// A 128-bit identity or hash.
///
/// # Errors
///
/// If the bytes end.
pub fn get_id(src: &mut &[u8]) -> Result<u128, DecodeError> {
    let (bytes, rest) = src.split_first_chunk::<16>().ok_or(DecodeError::End)?;
    *src = rest;
    Ok(u128::from_le_bytes(*bytes))
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_usize(out, bytes.len());
    out.extend_from_slice(bytes);
}

pub(crate) fn get_bytes<'a>(src: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let n = get_len(src)?;
    let (bytes, rest) = src.split_at(n);
    *src = rest;
    Ok(bytes)
}

/// Its length and its bytes.
pub fn put_str(out: &mut Vec<u8>, s: &str) {
    put_bytes(out, s.as_bytes());
}

/// Its length and its bytes.
///
/// # Errors
///
/// If the bytes end or are not UTF-8.
pub fn get_str(src: &mut &[u8]) -> Result<String, DecodeError> {
    let bytes = get_bytes(src)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| DecodeError::Text)
}

/// The payload must be used up.
pub(crate) fn finish(src: &[u8]) -> Result<(), DecodeError> {
    if src.is_empty() { Ok(()) } else { Err(DecodeError::Rest(src.len())) }
}

/// Number of runs; per run the distance of its first rank from the last rank before it (from -1 for the first), less
/// one; the number of its ranks less one; and, if there are several, their step less one.
pub(crate) fn put_ranks(out: &mut Vec<u8>, ranks: &RankList) {
    put_usize(out, ranks.runs().len());
    let mut next = 0;
    for r in ranks.runs().iter() {
        let more = r.n.saturating_sub(1);
        put_u64(out, r.start.wrapping_sub(next).unsigned_abs());
        put_u64(out, more);
        if more > 0 {
            put_u64(out, r.step.unsigned_abs().saturating_sub(1));
        }
        next = last(r).wrapping_add(1);
    }
}

pub(crate) fn get_ranks(src: &mut &[u8]) -> Result<RankList, DecodeError> {
    let n = get_len(src)?;
    let mut runs = Vec::with_capacity(n);
    let mut next = 0;
    for i in 0..n {
        let run = get_run(src, next).nth("run", i)?;
        next = last(&run) + 1;
        runs.push(run);
    }
    RankList::from_runs(runs).ok_or(DecodeError::Invalid("ranks are not ascending"))
}

fn get_run(src: &mut &[u8], next: i64) -> Result<Run, DecodeError> {
    let start = small(get_u64(src)?)? + next;
    let more = get_u64(src)?;
    let step = if more > 0 { small(get_u64(src)?)? + 1 } else { 0 };
    checked(Run { start, step, n: more.checked_add(1).ok_or(DecodeError::Integer)? })
}

fn small(v: u64) -> Result<i64, DecodeError> {
    i64::try_from(v).ok().filter(|v| *v < RANK_LIMIT).ok_or(DecodeError::Integer)
}

/// A run all of whose ranks are ranks.
pub(crate) fn checked(r: Run) -> Result<Run, DecodeError> {
    let limit = i128::from(RANK_LIMIT);
    let end = i128::from(r.start) + i128::from(r.step) * (i128::from(r.n) - 1);
    let inside = |v: i128| (0..limit).contains(&v);
    if r.n == 0 || (r.n > 1 && r.step == 0) || !inside(i128::from(r.start)) || !inside(end) {
        return Err(DecodeError::Invalid("not ranks"));
    }
    Ok(r)
}

/// Last rank of a run.
pub(crate) fn last(r: &Run) -> i64 {
    r.start.wrapping_add(r.step.wrapping_mul(saturate(r.n.saturating_sub(1))))
}
