//! Payloads of SECTION, LANES, SUMS, ENDED: what a section holds beside tables and structure.

use super::blocks::{self, Blocks};
use super::bytes::{
    finish, get_i64, get_id, get_len, get_ranks, get_u8, get_u32, get_u64, put_i64, put_id, put_ranks,
    put_u64, put_usize,
};
use super::error::{DecodeError, Field as _};
use super::hosts;
use st_model::ints::Sealed;
use st_model::lanes::LaneSum;
use st_model::ranklist::RankList;
use st_model::section::{Ended, RankSums, Section, Sym};

/// Ranks of a section are below this: work and memory go by their number, which a few bytes can state.
const MOST_RANKS: u32 = 1 << 24;

/// The fields of SECTION.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) ranks: RankList,
    /// Number of frames that follow and belong to the section.
    pub(crate) parts: usize,
    pub(crate) hosts: Vec<(String, RankList)>,
    /// Ranks per thread.
    pub(crate) threads: Vec<RankList>,
}

impl Opening {
    pub(crate) fn of(section: &Section, parts: usize) -> Self {
        Self {
            ranks: section.ranks.clone(),
            parts,
            hosts: section.hosts.clone(),
            threads: section.threads.iter().map(|t| t.ranks.clone()).collect(),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_usize(&mut out, self.parts);
        put_ranks(&mut out, &self.ranks);
        hosts::put(&mut out, &self.hosts, &self.threads, &self.ranks);
        out
    }

    pub(crate) fn decode(mut src: &[u8]) -> Result<Self, DecodeError> {
        let src = &mut src;
        let parts =
            usize::try_from(get_u64(src).field("parts")?).map_err(|_| DecodeError::Integer).field("parts")?;
        let ranks = get_ranks(src).field("ranks")?;
        if ranks.highest().is_some_and(|rank| rank >= MOST_RANKS) {
            return Err(DecodeError::Invalid("ranks above 16,777,215")).field("ranks");
        }
        let (hosts, threads) = hosts::get(src, &ranks)?;
        finish(src)?;
        Ok(Self { ranks, parts, hosts, threads })
    }
}

/// Per thread: calls, voided lanes as bits, the lanes' hashes.
pub(crate) fn encode_lanes(section: &Section) -> Vec<u8> {
    let mut out = Vec::new();
    for t in &section.threads {
        put_u64(&mut out, t.lanes.calls);
        out.push(t.lanes.voided);
        t.lanes.hash.iter().for_each(|h| put_id(&mut out, *h));
    }
    out
}

pub(crate) fn decode_lanes(mut src: &[u8], threads: usize) -> Result<Vec<LaneSum>, DecodeError> {
    let mut out = Vec::new();
    for i in 0..threads {
        out.push(get_lanes(&mut src).nth("thread", i)?);
    }
    finish(src)?;
    Ok(out)
}

fn get_lanes(src: &mut &[u8]) -> Result<LaneSum, DecodeError> {
    let calls = get_u64(src).field("calls")?;
    let mut lanes = LaneSum { calls, voided: get_u8(src).field("voided")?, ..LaneSum::default() };
    for (i, h) in lanes.hash.iter_mut().enumerate() {
        *h = get_id(src).nth("lane", i)?;
    }
    Ok(lanes)
}

/// Columns: symbols (per thread their number, then each), heads and values of their two streams.
pub(crate) fn encode_sums(section: &Section) -> Vec<u8> {
    let mut b = Blocks::<3>::new();
    for t in &section.threads {
        put_usize(&mut b.0[0], t.sums.len());
        for s in &t.sums {
            put_u64(&mut b.0[0], s.sym.into());
            let [_, head, value] = &mut b.0;
            s.compute.encode(head, value);
            s.comm.encode(head, value);
        }
    }
    let mut out = Vec::new();
    b.put(&mut out);
    out
}

pub(crate) fn decode_sums(
    mut src: &[u8],
    threads: usize,
    symbols: usize,
) -> Result<Vec<Vec<RankSums>>, DecodeError> {
    let mut b: [&[u8]; 3] = blocks::get(&mut src)?;
    finish(src)?;
    let mut out = Vec::new();
    for i in 0..threads {
        let n = get_len(&mut b[0]).nth("thread", i)?;
        let mut sums = Vec::with_capacity(n);
        for k in 0..n {
            sums.push(get_sums(&mut b, symbols).nth("sum", k).nth("thread", i)?);
        }
        out.push(sums);
    }
    blocks::finish(&b)?;
    Ok(out)
}

fn get_sums(b: &mut [&[u8]; 3], symbols: usize) -> Result<RankSums, DecodeError> {
    let sym = super::bytes::get_index(&mut b[0], symbols).field("symbol")?;
    let [_, head, value] = b;
    let compute = Sealed::decode(head, value).map_err(DecodeError::from).field("compute")?;
    let comm = Sealed::decode(head, value).map_err(DecodeError::from).field("communicate")?;
    Ok(RankSums { sym, compute, comm })
}

/// Per thread that ended early: rank (as its distance from the one before), thread, calls, symbols of the last call and of
/// the one it was in (each + 1, 0 for none), time of entering that.
pub(crate) fn encode_ended(section: &Section) -> Vec<u8> {
    let mut out = Vec::new();
    put_usize(&mut out, section.ended.len());
    let mut before = 0;
    for e in &section.ended {
        put_u64(&mut out, u64::from(e.rank.wrapping_sub(before)));
        before = e.rank;
        put_u64(&mut out, e.thread.into());
        put_u64(&mut out, e.calls);
        put_u64(&mut out, u64::from(e.last.wrapping_add(1)));
        put_u64(&mut out, u64::from(e.inside.wrapping_add(1)));
        put_i64(&mut out, e.entered);
    }
    out
}

/// The threads that ended early, of a section with these threads' ranks and that many symbols.
pub(crate) fn decode_ended(
    mut src: &[u8],
    threads: &[RankList],
    symbols: usize,
) -> Result<Vec<Ended>, DecodeError> {
    let src = &mut src;
    let mut out: Vec<Ended> = Vec::new();
    for i in 0..get_len(src).field("number")? {
        let before = out.last().map_or(0, |e| e.rank);
        let ended = get_ended(src, before, threads, symbols).nth("thread", i)?;
        if out.last().is_some_and(|e| (e.rank, e.thread) >= (ended.rank, ended.thread)) {
            return Err(DecodeError::Invalid("not ascending")).nth("thread", i);
        }
        out.push(ended);
    }
    finish(src)?;
    Ok(out)
}

fn get_ended(
    src: &mut &[u8],
    before: u32,
    threads: &[RankList],
    symbols: usize,
) -> Result<Ended, DecodeError> {
    let rank = before.wrapping_add(get_u32(src).field("rank")?);
    let thread = super::bytes::get_index(src, threads.len()).field("thread")?;
    if !threads[thread as usize].contains(rank) {
        return Err(DecodeError::Invalid("a rank without this thread"));
    }
    let calls = get_u64(src).field("calls")?;
    let symbol = |src: &mut &[u8]| -> Result<Sym, DecodeError> {
        Ok(super::bytes::get_index(src, symbols + 1)?.wrapping_sub(1))
    };
    let last = symbol(src).field("last call")?;
    let inside = symbol(src).field("open call")?;
    Ok(Ended { rank, thread, calls, last, inside, entered: get_i64(src).field("time")? })
}
