//! Payloads of INDEX and END: where sections lie, and that all is there.

use super::bytes::{finish, get_len, get_ranks, get_u64, put_ranks, put_u64, put_usize};
use super::error::{DecodeError, Field as _};
use st_model::ranklist::RankList;

/// Where a section lies in the stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SectionOffsets {
    /// The section's ranks.
    pub ranks: RankList,
    /// Byte offset of the SITES frame in force.
    pub sites: u64,
    /// Byte offset of the OBJECTS frame in force.
    pub objects: u64,
    /// Byte offset of the first frame that is the section's own (exact times, tables, SECTION).
    pub start: u64,
}

/// Per section: ranks, start (distance from the start before), distances back to the tables.
pub(crate) fn encode(places: &[SectionOffsets]) -> Vec<u8> {
    let mut out = Vec::new();
    put_usize(&mut out, places.len());
    let mut before = 0;
    for p in places {
        put_ranks(&mut out, &p.ranks);
        put_u64(&mut out, p.start.wrapping_sub(before));
        put_u64(&mut out, p.sites);
        put_u64(&mut out, p.objects);
        before = p.start;
    }
    out
}

pub(crate) fn decode(mut src: &[u8]) -> Result<Vec<SectionOffsets>, DecodeError> {
    let src = &mut src;
    let n = get_len(src)?;
    let mut places = Vec::with_capacity(n.min(1 << 16));
    let mut start = 0u64;
    for i in 0..n {
        let ranks = get_ranks(src).nth("section", i)?;
        start = start.wrapping_add(get_u64(src).nth("section", i)?);
        let (sites, objects) = (get_u64(src).nth("section", i)?, get_u64(src).nth("section", i)?);
        places.push(SectionOffsets { ranks, sites, objects, start });
    }
    finish(src)?;
    Ok(places)
}

/// Number of frames before the end frame; byte offset of the index, if there is one. Fixed width, so that the end frame
/// is found from the end of a file.
pub(crate) fn encode_end(frames: u32, index: Option<u64>) -> Vec<u8> {
    let mut out = frames.to_le_bytes().to_vec();
    if let Some(at) = index {
        out.extend_from_slice(&at.to_le_bytes());
    }
    out
}

pub(crate) fn decode_end(src: &[u8]) -> Result<(u32, Option<u64>), DecodeError> {
    let (frames, rest) = src.split_first_chunk::<4>().ok_or(DecodeError::End)?;
    let index = rest.first_chunk::<8>().map(|at| u64::from_le_bytes(*at));
    finish(rest.get(if index.is_some() { 8 } else { 0 }..).unwrap_or(&[])).field("end")?;
    Ok((u32::from_le_bytes(*frames), index))
}
