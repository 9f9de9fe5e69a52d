//! The papers' notation of sets of ranks: `<dim start iters stride {iters stride}>`, outermost dimension first.
//!
//! `<2 5 2 4 2 1>` is {5, 6, 9, 10}, `<1 7 1 0>` is {7}; a set that is no nested box is a union `<…>+<…>`, the empty set
//! is `<>`. Any form is read; printing is canonical.
//!
//! Source: A (elastic data elements, ranklists), as made exact in `algorithms.md` §4 (`box`, `cover`).

use std::fmt::Write as _;

use crate::ranklist::RankList;

/// Sets of more ranks than this print their runs as they are, without a search for boxes.
const SEARCH_LIMIT: u64 = 1 << 16;

/// A nested box: start, and (iterations, stride) per dimension, outermost first.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Descriptor {
    start: u32,
    dims: Vec<(u32, u32)>,
}

/// The set in the papers' notation.
#[must_use]
pub fn print(set: &RankList) -> String {
    if set.is_empty() {
        return "<>".into();
    }
    let mut text = String::new();
    for d in cover_set(set) {
        if !text.is_empty() {
            text.push('+');
        }
        let _ = write!(text, "<{} {}", d.dims.len().max(1), d.start);
        if d.dims.is_empty() {
            text.push_str(" 1 0");
        }
        for (iters, stride) in d.dims {
            let _ = write!(text, " {iters} {stride}");
        }
        text.push('>');
    }
    text
}

/// Reads a set; `None` if the text is not one, or has more than 2^32 ranks.
#[must_use]
pub fn parse(text: &str) -> Option<RankList> {
    if text == "<>" {
        return Some(RankList::default());
    }
    let mut set = RankList::default();
    for part in text.split('+') {
        set = set.union(&parse_box(part.strip_prefix('<')?.strip_suffix('>')?)?);
    }
    Some(set)
}

fn parse_box(text: &str) -> Option<RankList> {
    let words = text.split(' ').map(|w| w.parse().ok()).collect::<Option<Vec<u32>>>()?;
    let (&[dim, start], dims) = words.split_first_chunk::<2>()?;
    let pairs: Vec<(u32, u32)> = dims.chunks_exact(2).map(|p| (p[0], p[1])).collect();
    if dims.len() % 2 != 0 || u32::try_from(pairs.len()) != Ok(dim) || dim == 0 {
        return None;
    }
    // One dimension is a run, whatever its length.
    if let [(n, step)] = pairs[..] {
        let run = crate::ranks::Run { start: start.into(), step: step.into(), n: n.into() };
        let last = u64::from(start) + u64::from(step) * u64::from(n.checked_sub(1)?);
        return (n == 1 || step > 0).then_some(())?.and_run(run, last);
    }
    let total = pairs.iter().try_fold(1u64, |t, (n, _)| t.checked_mul((*n).into()).filter(|t| *t <= SEARCH_LIMIT))?;
    let mut ranks = Vec::with_capacity(usize::try_from(total).ok()?);
    ranks.push(u64::from(start));
    for (n, stride) in pairs {
        let outer = std::mem::take(&mut ranks);
        for r in outer {
            ranks.extend((0..u64::from(n)).map(|i| r + i * u64::from(stride)));
        }
    }
    ranks.into_iter().map(|r| u32::try_from(r).ok()).collect::<Option<RankList>>()
}
