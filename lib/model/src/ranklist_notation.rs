//! The papers' notation of sets of ranks: `<dim start iters stride {iters stride}>`, outermost dimension first.
//!
//! `<2 5 2 4 2 1>` is {5, 6, 9, 10}, `<1 7 1 0>` is {7}; a set that is no nested box is a union `<…>+<…>`, the empty set
//! is `<>`. Any form is read; printing is canonical.
//!
//! Source: A (elastic data elements, ranklists), as made exact in `algorithms.md` §4 (`box`, `cover`).

use crate::num::narrow;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

use crate::ranklist::RankList;
use crate::ranks::Run;

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

/// Parts of a set that are named to people.
const NAMED: usize = 8;

/// The set for people: `0-3, 8`; of many parts the first ones.
#[must_use]
pub fn plain(set: &RankList) -> String {
    let mut spans: Vec<RangeInclusive<i64>> = Vec::new();
    for run in set.runs().iter() {
        let rank = |i: u64| run.start + run.step * narrow::<i64>(i);
        let whole = (run.step == 1).then(|| run.start..=rank(run.n - 1));
        let each = (0..if whole.is_some() { 0 } else { run.n }).map(|i| rank(i)..=rank(i));
        for span in whole.into_iter().chain(each.take(NAMED + 2)) {
            match spans.last_mut() {
                Some(last) if last.end() + 1 == *span.start() => *last = *last.start()..=*span.end(),
                _ => spans.push(span),
            }
        }
        if spans.len() > NAMED + 1 {
            break;
        }
    }
    let told = |span: RangeInclusive<i64>| match span.end() - span.start() {
        2.. => vec![format!("{}-{}", span.start(), span.end())],
        _ => span.map(|rank| rank.to_string()).collect(),
    };
    let mut parts: Vec<String> = spans.into_iter().flat_map(told).collect();
    if parts.len() > NAMED {
        parts.truncate(NAMED);
        parts.push("…".into());
    }
    parts.join(", ")
}

/// Reads a set; `None` if the text is not one, or more than 65,536 ranks in several dimensions.
#[must_use]
pub fn parse(text: &str) -> Option<RankList> {
    if text == "<>" {
        return Some(RankList::default());
    }
    let boxes = text.split('+').map(parse_box).collect::<Option<Vec<_>>>()?;
    // Ascending runs, however long, are taken as they are.
    let runs = boxes.iter().map(as_run).collect::<Option<Vec<_>>>();
    if let Some(set) = runs.and_then(RankList::from_runs) {
        return Some(set);
    }
    let mut ranks = Vec::new();
    for b in &boxes {
        expand(b, &mut ranks)?;
    }
    Some(ranks.into_iter().collect())
}

/// Sets in the notation as serde writes and reads them.
pub(crate) mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::ranklist::RankList;

    pub(crate) fn serialize<S: Serializer>(set: &RankList, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::print(set))
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<RankList, D::Error> {
        let text = String::deserialize(from)?;
        super::parse(&text).ok_or_else(|| D::Error::custom("not a ranklist"))
    }
}

/// Reads a set as people write it: `3`, `0-3,8`, or a ranklist.
///
/// # Errors
///
/// If it is none of these; the message says why.
pub fn parse_any(text: &str) -> Result<RankList, String> {
    if text.starts_with('<') {
        return parse(text).ok_or_else(|| {
            format!("{text} is not a ranklist, as <1 7 1 0> is of rank 7 and <1 0 4 1> of 0 to 3")
        });
    }
    let number = |n: &str| n.parse::<u32>().map_err(|_| format!("{n} is not a rank"));
    let mut all = RankList::default();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(format!("{part} runs backwards"));
        }
        let n = u64::from(last - first) + 1;
        let run = Run { start: first.into(), step: i64::from(n > 1), n };
        let run = RankList::from_runs([run]).ok_or_else(|| format!("{part} is not a range of ranks"))?;
        all = all.union(&run);
    }
    Ok(all)
}

fn parse_box(text: &str) -> Option<Descriptor> {
    let words = text.strip_prefix('<')?.strip_suffix('>')?.split(' ');
    let words = words.map(|w| w.parse().ok()).collect::<Option<Vec<u32>>>()?;
    let (&[dim, start], rest) = words.split_first_chunk::<2>()?;
    let dims: Vec<(u32, u32)> = rest.chunks_exact(2).map(|p| (p[0], p[1])).collect();
    let sound = dims.iter().all(|(n, stride)| *n == 1 || (*n > 1 && *stride > 0));
    (rest.len().is_multiple_of(2) && u32::try_from(dims.len()) == Ok(dim) && dim > 0 && sound)
        .then_some(Descriptor { start, dims })
}

fn as_run(b: &Descriptor) -> Option<Run> {
    let &[(n, stride)] = &b.dims[..] else { return None };
    let step = if n == 1 { 0 } else { stride.into() };
    let last = u64::from(b.start) + u64::from(stride) * u64::from(n - 1);
    (n == 1 || last < u32::MAX.into()).then_some(Run { start: b.start.into(), step, n: n.into() })
}

/// Appends the ranks of a box.
fn expand(b: &Descriptor, to: &mut Vec<u32>) -> Option<()> {
    let total = b.dims.iter().try_fold(1u64, |t, (n, _)| t.checked_mul((*n).into()))?;
    if total.saturating_add(u64::try_from(to.len()).ok()?) > SEARCH_LIMIT {
        return None;
    }
    let mut ranks = vec![b.start];
    for (n, stride) in &b.dims {
        let mut inner = Vec::with_capacity(ranks.len());
        for r in ranks {
            for i in 0..*n {
                inner.push(i.checked_mul(*stride)?.checked_add(r)?);
            }
        }
        ranks = inner;
    }
    to.append(&mut ranks);
    Some(())
}

fn cover_set(set: &RankList) -> Vec<Descriptor> {
    if set.len() <= SEARCH_LIMIT {
        return cover(&set.iter().collect::<Vec<_>>());
    }
    let one = |r: &Run| Descriptor { start: narrow(r.start), dims: vec![(narrow(r.n), narrow(r.step))] };
    set.runs().iter().map(one).collect()
}

/// The set as one box, if it is one. `s` ascends strictly and is not empty.
fn boxed(s: &[u32]) -> Option<Descriptor> {
    let (&start, rest) = s.split_first()?;
    let Some(second) = rest.first() else { return Some(Descriptor { start, dims: Vec::new() }) };
    let step = second - start;
    let k = progression(s, step);
    if k == s.len() {
        return Some(Descriptor { start, dims: vec![(u32::try_from(k).ok()?, step)] });
    }
    for m in (2..=k).rev().filter(|m| s.len().is_multiple_of(*m)) {
        if s.chunks(m).all(|block| progression(block, step) == m) {
            let starts: Vec<u32> = s.iter().step_by(m).copied().collect();
            if let Some(mut outer) = boxed(&starts) {
                outer.dims.push((u32::try_from(m).ok()?, step));
                return Some(outer);
            }
        }
    }
    None
}

/// Length of the longest prefix that ascends by `step`.
fn progression(s: &[u32], step: u32) -> usize {
    1 + s.windows(2).take_while(|w| w[1] - w[0] == step).count()
}

/// Boxes whose union is the set: exact, and small but not always least.
fn cover(s: &[u32]) -> Vec<Descriptor> {
    if let Some(one) = boxed(s) {
        return vec![one];
    }
    let pieces = |fixed: Option<u32>| {
        let (mut out, mut rest) = (Vec::new(), s);
        while let [first, tail @ ..] = rest {
            let step = fixed.or_else(|| tail.first().map(|t| t - first)).unwrap_or(1);
            let n = progression(rest, step);
            out.push((*first, narrow(n), if n == 1 { 0 } else { step }));
            rest = &rest[n..];
        }
        out
    };
    let any = grouped(pieces(None));
    let runs = pieces(Some(1));
    // Runs of two and more on average, so that each level halves the work.
    let by_runs = (runs.len() * 2 <= s.len()).then(|| grouped(runs));
    let cost = |d: &[Descriptor]| d.iter().map(|d| 2 + 2 * d.dims.len().max(1)).sum::<usize>();
    match by_runs {
        Some(r) if cost(&r) < cost(&any) => r,
        _ => any,
    }
}

/// Covers progressions (start, length, step): those of equal length and step by the cover of their starts.
fn grouped(pieces: Vec<(u32, u32, u32)>) -> Vec<Descriptor> {
    let mut groups: Vec<((u32, u32), Vec<u32>)> = Vec::new();
    for (start, n, step) in pieces {
        match groups.iter_mut().find(|(key, _)| *key == (n, step)) {
            Some((_, starts)) => starts.push(start),
            None => groups.push(((n, step), vec![start])),
        }
    }
    let mut out = Vec::new();
    for ((n, step), starts) in groups {
        for mut d in cover(&starts) {
            if n > 1 {
                d.dims.push((n, step));
            }
            out.push(d);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_papers_examples() {
        for (ranks, text) in [
            (vec![5, 6, 9, 10], "<2 5 2 4 2 1>"),
            ((0..16).collect(), "<1 0 16 1>"),
            (vec![7], "<1 7 1 0>"),
            (vec![], "<>"),
            (vec![0, 1, 2, 4, 5, 6, 8, 9, 10, 15], "<2 0 3 4 3 1>+<1 15 1 0>"),
        ] {
            let set: RankList = ranks.into_iter().collect();
            assert_eq!(print(&set), text);
            assert_eq!(parse(text), Some(set));
        }
        assert_eq!(parse("<2 0 4 4 4 1>"), Some(RankList::first(16)));
    }

    #[test]
    fn a_million_ranks_are_one_descriptor() {
        assert_eq!(print(&RankList::first(1_000_000)), "<1 0 1000000 1>");
        assert_eq!(parse("<1 0 1000000 1>"), Some(RankList::first(1_000_000)));
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for text in [
            "",
            "<",
            "<1 0>",
            "<2 0 4 1>",
            "<1 0 0 1>",
            "<1 4294967295 2 1>",
            "<0 1>",
            "<1 0 2 0>",
            "1 0 1 0",
            "<3 0 9999 1 9999 1 9999 1>",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_set_comes_back(v in proptest::collection::vec(0u32..200, 0..80)) {
            let set: RankList = v.into_iter().collect();
            prop_assert_eq!(parse(&print(&set)), Some(set));
        }

        #[test]
        fn nested_boxes_are_one_descriptor(start in 0u32..9, a in 1u32..5, b in 1u32..5, c in 1u32..4) {
            let ranks = (0..a).flat_map(|i| (0..b).flat_map(move |j| (0..c).map(move |k| start + 1000 * i + 50 * j + 3 * k)));
            prop_assert_eq!(cover(&ranks.collect::<Vec<_>>()).len(), 1);
        }
    }

    #[test]
    fn ranks_are_lists_ranges_or_ranklists() {
        let set = |v: &[u32]| v.iter().copied().collect::<RankList>();
        assert_eq!(plain(&set(&[0, 1, 2, 3, 8, 12, 13])), "0-3, 8, 12, 13");
        assert_eq!(plain(&set(&[1, 9, 10, 11, 12, 13, 21])), "1, 9-13, 21");
        assert_eq!(plain(&(0..99).map(|r| 2 * r).collect()), "0, 2, 4, 6, 8, 10, 12, 14, …");
        assert_eq!(parse_any("3"), Ok(set(&[3])));
        assert_eq!(parse_any("0-3,8"), Ok(set(&[0, 1, 2, 3, 8])));
        assert_eq!(parse_any("<2 5 2 4 2 1>"), Ok(set(&[5, 6, 9, 10])));
        assert!(parse_any("3-1").is_err() && parse_any("x").is_err() && parse_any("").is_err());
    }
}
