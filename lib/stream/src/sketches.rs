//! Payload of SKETCH, QUANTILES and DURATIONS: a section's time sketches.

use super::blocks::{self, Blocks};
use super::bytes::{
    finish, get_i64, get_len, get_u16, get_u32, get_u64, get_u128, put_i64, put_u64, put_u128, put_usize,
};
use super::error::{DecodeError, Field as _};
use super::kind::FrameKind;
use st_model::ranklist::RankList;
use st_model::section::{ANY_SYM, NO_SYM, PathSketch, Predecessors, Section, Sym};
use st_model::sketch::histogram::Bin;
use st_model::sketch::quantiles::Quantiles;
use st_model::sketch::{Shape, Sketch, bucket};

const PATH: usize = 0;
const TOTAL: usize = 1;
const EXTREME: usize = 2;
const RANK: usize = 3;
const BUCKET: usize = 4;
const NUMBER: usize = 5;
const KNOT: usize = 6;
const DEVIATION: usize = 7;
const MORE: usize = 8;
const SKETCH_COLUMNS: usize = 9;
/// Those that SKETCH has.
const FIRST_COLUMNS: usize = 6;

/// Columns: paths (per thread their number; per path the symbol's distance from the one before, the predecessor + 1
/// or 0), totals (sum, sum of squares), extremes (shortest; longest less shortest), their ranks, buckets (number of
/// them, distances between them), numbers in the buckets; where durations at fixed ranks are kept their buckets (distances
/// between them, the first from that of the mean), that of the deviation (its distance from that of the mean), and further
/// positions (their number, distances between them). Of threads that tell no paths apart, the path is 0 for the first event and 1
/// for any other.
pub(crate) fn encode_sketches(section: &Section) -> (FrameKind, Vec<u8>) {
    let mut b = Blocks::<SKETCH_COLUMNS>::new();
    let any = section.threads.iter().any(|t| Predecessors::of(&t.sketches) == Predecessors::Any);
    for t in &section.threads {
        put_usize(&mut b.0[PATH], t.sketches.len());
        let mut before = 0;
        for p in &t.sketches {
            put_u64(&mut b.0[PATH], u64::from(p.sym.wrapping_sub(before)));
            put_u64(&mut b.0[PATH], pred_code(p.pred, any));
            before = p.sym;
            put_sketch(&mut b, &p.compute, &t.ranks);
            put_sketch(&mut b, &p.comm, &t.ranks);
        }
    }
    let mut sketches = section.threads.iter().flat_map(|t| &t.sketches).flat_map(|p| [&p.compute, &p.comm]);
    let mut out = Vec::new();
    if any || sketches.any(|s| s.quantiles().is_some()) {
        b.put(&mut out);
        return (if any { FrameKind::Durations } else { FrameKind::Quantiles }, out);
    }
    b.put_first(FIRST_COLUMNS, &mut out);
    (FrameKind::Sketch, out)
}

/// A predecessor by its number + 1, 0 for none; where some path has any, 1 stands for that, and other numbers are one higher.
fn pred_code(pred: Sym, any: bool) -> u64 {
    match pred {
        NO_SYM => 0,
        ANY_SYM => 1,
        pred => u64::from(pred) + 1 + u64::from(any),
    }
}

/// What such a number stands for; there must be so many symbols.
fn pred_of(code: u32, any: bool, symbols: usize) -> Result<Sym, DecodeError> {
    match (code, any) {
        (0, _) => Ok(NO_SYM),
        (1, true) => Ok(ANY_SYM),
        _ => known(code - 1 - u32::from(any), symbols),
    }
}

fn known(sym: Sym, symbols: usize) -> Result<Sym, DecodeError> {
    if (sym as usize) < symbols {
        Ok(sym)
    } else {
        Err(DecodeError::Index { index: sym.into(), len: symbols as u64 })
    }
}

/// Sketches per thread, whose ranks are given.
pub(crate) fn decode_sketches(
    kind: FrameKind,
    mut src: &[u8],
    threads: &[RankList],
    symbols: usize,
) -> Result<Vec<Vec<PathSketch>>, DecodeError> {
    let mut b = [&[][..]; SKETCH_COLUMNS];
    if matches!(kind, FrameKind::Quantiles | FrameKind::Durations) {
        b = blocks::get(&mut src)?;
    } else {
        b[..FIRST_COLUMNS].copy_from_slice(&blocks::get::<FIRST_COLUMNS>(&mut src)?);
    }
    finish(src)?;
    let mut out = Vec::new();
    for (i, ranks) in threads.iter().enumerate() {
        let n = get_len(&mut b[PATH]).nth("thread", i)?;
        let mut sketches = Vec::with_capacity(n);
        let mut before = 0;
        for k in 0..n {
            let sketch = get_path(&mut b, before, ranks, symbols, kind == FrameKind::Durations)
                .nth("path", k)
                .nth("thread", i)?;
            before = sketch.sym;
            sketches.push(sketch);
        }
        out.push(sketches);
    }
    blocks::finish(&b)?;
    Ok(out)
}

fn get_path(
    b: &mut [&[u8]; SKETCH_COLUMNS],
    before: Sym,
    ranks: &RankList,
    symbols: usize,
    any: bool,
) -> Result<PathSketch, DecodeError> {
    let sym = known(before.wrapping_add(get_u32(&mut b[PATH])?), symbols)?;
    let pred = pred_of(get_u32(&mut b[PATH])?, any, symbols)?;
    let compute = get_sketch(b, ranks).field("compute")?;
    let comm = get_sketch(b, ranks).field("communicate")?;
    Ok(PathSketch { sym, pred, compute, comm })
}

/// Bytes of a path's sketches.
pub(super) fn path_size(p: &PathSketch, ranks: &RankList) -> u64 {
    let mut b = Blocks::<SKETCH_COLUMNS>::new();
    put_sketch(&mut b, &p.compute, ranks);
    put_sketch(&mut b, &p.comm, ranks);
    // The path itself is two small numbers.
    b.len() + 2
}

fn put_sketch(b: &mut Blocks<SKETCH_COLUMNS>, s: &Sketch, ranks: &RankList) {
    put_u128(&mut b.0[TOTAL], s.sum);
    if let Some(kept) = s.quantiles() {
        return put_quantiles(b, s, kept, ranks);
    }
    put_u128(&mut b.0[TOTAL], s.squares);
    put_u64(&mut b.0[EXTREME], s.min.0);
    put_u64(&mut b.0[EXTREME], s.max.0.wrapping_sub(s.min.0));
    put_member(&mut b.0[RANK], s.min.1, ranks);
    put_member(&mut b.0[RANK], s.max.1, ranks);
    match s.shape() {
        Shape::Buckets => put_buckets(b, s.kept_buckets()),
        Shape::Totals => {
            put_u64(&mut b.0[BUCKET], 1);
            put_u64(&mut b.0[NUMBER], s.count);
        }
        Shape::Bins(_) => put_bins(b, s.bins()),
        Shape::Quantiles => {}
    }
}

fn put_buckets(b: &mut Blocks<SKETCH_COLUMNS>, buckets: &[(u16, u64)]) {
    put_usize(&mut b.0[BUCKET], buckets.len() << 2);
    let mut before = 0;
    for (bucket, number) in buckets {
        put_u64(&mut b.0[BUCKET], u64::from(bucket - before));
        before = *bucket;
        put_u64(&mut b.0[NUMBER], *number);
    }
}

/// Number of durations and their deviation; of several that are not all in the mean's bucket the ranks of the shortest and the
/// longest, and buckets.
fn put_quantiles(b: &mut Blocks<SKETCH_COLUMNS>, s: &Sketch, kept: &Quantiles, ranks: &RankList) {
    put_u64(&mut b.0[NUMBER], s.count);
    let mean = bucket(s.mean());
    let first = ranks.lowest().unwrap_or_default();
    put_i64(&mut b.0[DEVIATION], i64::from(kept.deviation()) - i64::from(mean));
    if kept.buckets() == [mean] && [s.min.1, s.max.1] == [first; 2] {
        return put_u64(&mut b.0[BUCKET], 3);
    }
    put_usize(&mut b.0[BUCKET], kept.buckets().len() << 2 | 3);
    put_member(&mut b.0[RANK], s.min.1, ranks);
    put_member(&mut b.0[RANK], s.max.1, ranks);
    let mut before = i64::from(mean);
    for at in kept.buckets() {
        put_i64(&mut b.0[KNOT], i64::from(*at) - before);
        before = (*at).into();
    }
    put_usize(&mut b.0[MORE], kept.more().len());
    let mut before = 0;
    for at in kept.more() {
        put_u64(&mut b.0[MORE], at - before);
        before = *at;
    }
}

fn get_quantiles(
    b: &mut [&[u8]; SKETCH_COLUMNS],
    n: usize,
    sum: u128,
    ranks: &RankList,
) -> Result<Sketch, DecodeError> {
    let mut totals = Sketch::default();
    (totals.sum, totals.count) = (sum, get_u64(&mut b[NUMBER]).field("number")?);
    let mean = bucket(totals.mean());
    let invalid = DecodeError::Invalid("durations that are not at fixed ranks");
    let first = ranks.lowest().unwrap_or_default();
    (totals.min.1, totals.max.1) = (first, first);
    let beside = |src: &mut &[u8], before: u16| {
        let at = i64::from(before).checked_add(get_i64(src)?);
        at.and_then(|at| u16::try_from(at).ok()).ok_or(DecodeError::Integer)
    };
    let deviation = beside(&mut b[DEVIATION], mean).field("deviation")?;
    let (mut buckets, mut more) = (vec![mean], Vec::new());
    if n > 0 {
        totals.min.1 = get_member(&mut b[RANK], ranks).field("rank of the minimum")?;
        totals.max.1 = get_member(&mut b[RANK], ranks).field("rank of the maximum")?;
        let mut before = mean;
        buckets.clear();
        for i in 0..n {
            before = beside(&mut b[KNOT], before).nth("bucket", i)?;
            buckets.push(before);
        }
        let mut before = 0u64;
        for i in 0..get_len(&mut b[MORE]).field("positions")? {
            let at = before.checked_add(get_u64(&mut b[MORE])?);
            before = at.ok_or(DecodeError::Integer).nth("position", i)?;
            more.push(before);
        }
    }
    let kept = Quantiles::from_parts(more, buckets, deviation, totals.count).ok_or(invalid)?;
    Ok(Sketch::from_quantiles(totals, kept))
}

/// The first bin's lower edge, then the bins' widths; numbers; sums and sums of squares.
fn put_bins(b: &mut Blocks<SKETCH_COLUMNS>, bins: &[Bin]) {
    put_usize(&mut b.0[BUCKET], bins.len() << 2 | 2);
    put_u64(&mut b.0[BUCKET], bins.first().map_or(0, |bin| bin.low));
    for bin in bins {
        put_u64(&mut b.0[BUCKET], bin.high.saturating_sub(bin.low));
        put_u64(&mut b.0[NUMBER], bin.count);
        put_u128(&mut b.0[TOTAL], bin.sum);
        put_u128(&mut b.0[TOTAL], bin.squares);
    }
}

fn get_bins(b: &mut [&[u8]; SKETCH_COLUMNS], n: usize) -> Result<(Vec<Bin>, u64), DecodeError> {
    let mut low = get_u64(&mut b[BUCKET]).field("first bin")?;
    let (mut bins, mut all) = (Vec::with_capacity(n), 0_u64);
    for i in 0..n {
        let width = get_u64(&mut b[BUCKET]).nth("bin", i)?;
        let high = low.checked_add(width).filter(|_| width > 0).ok_or(DecodeError::Integer).nth("bin", i)?;
        let count = get_u64(&mut b[NUMBER]).nth("bin", i)?;
        all = all.checked_add(count).ok_or(DecodeError::Integer).nth("bin", i)?;
        let (sum, squares) = (get_u128(&mut b[TOTAL]).nth("bin", i)?, get_u128(&mut b[TOTAL]).nth("bin", i)?);
        bins.push(Bin { low, high, count, sum, squares });
        low = high;
    }
    Ok((bins, all))
}

fn get_sketch(b: &mut [&[u8]; SKETCH_COLUMNS], ranks: &RankList) -> Result<Sketch, DecodeError> {
    let sum = get_u128(&mut b[TOTAL]).field("sum")?;
    let code = get_u64(&mut b[BUCKET]).field("buckets")?;
    let most = if code & 3 == 3 { b[KNOT].len() } else { b[BUCKET].len() };
    let n = usize::try_from(code >> 2).ok().filter(|n| *n <= most);
    let n = n.ok_or(DecodeError::End).field("buckets")?;
    if code & 3 == 3 {
        return get_quantiles(b, n, sum, ranks);
    }
    let squares = get_u128(&mut b[TOTAL]).field("sum of squares")?;
    let min = get_u64(&mut b[EXTREME]).field("minimum")?;
    let max = min.wrapping_add(get_u64(&mut b[EXTREME]).field("maximum")?);
    let low = get_member(&mut b[RANK], ranks).field("rank of the minimum")?;
    let high = get_member(&mut b[RANK], ranks).field("rank of the maximum")?;
    let mut totals = Sketch::default();
    (totals.sum, totals.squares) = (sum, squares);
    (totals.min, totals.max) = ((min, low), (max, high));
    match code & 3 {
        0 => {}
        1 if n == 0 => {
            totals.count = get_u64(&mut b[NUMBER]).field("number")?;
            return Ok(Sketch::from_totals(totals));
        }
        2 if n > 0 => {
            let bins = get_bins(b, n)?;
            totals.count = bins.1;
            return Ok(Sketch::from_bins(totals, bins.0));
        }
        _ => return Err(DecodeError::Invalid("unknown shape of a sketch")),
    }
    let mut buckets = Vec::new();
    let (mut before, mut count) = (0u16, 0u64);
    for i in 0..n {
        let step = get_u16(&mut b[BUCKET]).nth("bucket", i)?;
        let at = before.checked_add(step).filter(|_| i == 0 || step > 0);
        before = at.ok_or(DecodeError::Invalid("not ascending")).nth("bucket", i)?;
        let number = get_u64(&mut b[NUMBER]).nth("bucket", i)?;
        count = count.checked_add(number).ok_or(DecodeError::Integer).nth("bucket", i)?;
        buckets.push((before, number));
    }
    totals.count = count;
    Ok(Sketch::from_parts(totals, buckets))
}

/// 1 + the rank's position in the set, or 0 and the rank.
fn put_member(out: &mut Vec<u8>, rank: u32, ranks: &RankList) {
    match ranks.position(rank) {
        Some(at) => put_u64(out, at + 1),
        None => {
            put_u64(out, 0);
            put_u64(out, rank.into());
        }
    }
}

fn get_member(src: &mut &[u8], ranks: &RankList) -> Result<u32, DecodeError> {
    let code = get_u64(src)?;
    if code == 0 {
        return get_u32(src);
    }
    ranks.nth(code - 1).ok_or(DecodeError::Index { index: code - 1, len: ranks.len() })
}
