//! Host names: a pattern per kind of name and the numbers in it, so that `node0` to `node9999` take no space per node.

use super::bytes::{get_str, get_u64, put_str, put_usize};
use super::error::{DecodeError, Field as _};
use super::numbers::{self, Budget, MOST, Numbers, RUNS, Readers};
use st_model::ranklist::RankList;

/// Which pattern a name has, the numbers in it; then the columns of sets.
const PATTERN: usize = 0;
const NUMBER: usize = 1;
const SET: usize = 2;
const COLUMNS: usize = SET + RUNS;

/// Bytes of names that a section may have.
const TEXT: usize = 1 << 26;
/// Digits of a number that is told apart from the text around it.
const DIGITS: usize = 18;

/// A name taken apart: text, and after each piece but the last a number without leading zeros.
fn apart(name: &str) -> (Vec<String>, Vec<i64>) {
    let (mut pieces, mut numbers) = (vec![String::new()], Vec::new());
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let zeros = rest.bytes().take_while(|b| *b == b'0').count().min(digits.saturating_sub(1));
        let number = rest.get(zeros..digits).filter(|n| (1..=DIGITS).contains(&n.len()));
        let (text, end) = match number.and_then(|n| n.parse().ok()) {
            Some(n) => {
                numbers.push(n);
                (zeros, digits)
            }
            None => {
                let other = rest.bytes().skip(digits).take_while(|b| !b.is_ascii_digit()).count();
                (digits + other, digits + other)
            }
        };
        let piece = rest.get(..text).unwrap_or_default();
        if let Some(last) = pieces.last_mut() {
            last.push_str(piece);
        }
        if end > text {
            pieces.push(String::new());
        }
        rest = rest.get(end..).unwrap_or_default();
    }
    (pieces, numbers)
}

/// A list of patterns (each a list of pieces), the number of hosts, and columns.
pub(crate) fn put(out: &mut Vec<u8>, hosts: &[(String, RankList)], threads: &[RankList], all: &RankList) {
    let mut patterns: Vec<Vec<String>> = Vec::new();
    let mut n = Numbers::<COLUMNS>::new();
    for (name, ranks) in hosts {
        let (pieces, numbers) = apart(name);
        let at = patterns.iter().position(|p| *p == pieces).unwrap_or_else(|| {
            patterns.push(pieces);
            patterns.len() - 1
        });
        n.put_len(PATTERN, at);
        numbers.into_iter().for_each(|v| n.put(NUMBER, v));
        numbers::put_set(&mut n, SET, ranks, all);
    }
    threads.iter().for_each(|ranks| numbers::put_set(&mut n, SET, ranks, all));
    put_usize(out, patterns.len());
    for p in &patterns {
        put_usize(out, p.len());
        p.iter().for_each(|piece| put_str(out, piece));
    }
    put_usize(out, hosts.len());
    put_usize(out, threads.len());
    n.finish(out);
}

type Hosts = Vec<(String, RankList)>;

pub(crate) fn get(src: &mut &[u8], all: &RankList) -> Result<(Hosts, Vec<RankList>), DecodeError> {
    let mut patterns = Vec::new();
    for i in 0..super::bytes::get_len(src).field("host patterns")? {
        let mut pieces = Vec::new();
        for _ in 0..super::bytes::get_len(src).nth("pattern", i)? {
            pieces.push(get_str(src).nth("pattern", i)?);
        }
        patterns.push(pieces);
    }
    let mut things = Budget::new(MOST);
    let mut number = |src: &mut &[u8]| -> Result<usize, DecodeError> {
        let n = usize::try_from(get_u64(src)?).map_err(|_| DecodeError::Integer)?;
        things.take(n)?;
        Ok(n)
    };
    let (hosts, threads) = (number(src).field("hosts")?, number(src).field("threads")?);
    let columns = numbers::get_columns::<COLUMNS>(src)?;
    let mut n = Readers::new(&columns);
    let (mut text, mut runs) = (Budget::new(TEXT), Budget::new(MOST));
    let mut list = Vec::new();
    for i in 0..hosts {
        let at = usize::try_from(n.get(PATTERN)).ok().and_then(|at| patterns.get(at));
        let mut name = String::new();
        for (k, piece) in at.ok_or(DecodeError::Invalid("no such pattern")).nth("host", i)?.iter().enumerate()
        {
            if k > 0 {
                name.push_str(&n.get(NUMBER).to_string());
            }
            name.push_str(piece);
        }
        text.take(name.len()).nth("host", i)?;
        list.push((name, numbers::get_set(&mut n, SET, all, &mut runs).nth("host", i)?));
    }
    let mut sets = Vec::new();
    for i in 0..threads {
        sets.push(numbers::get_set(&mut n, SET, all, &mut runs).nth("thread", i)?);
    }
    Ok((list, sets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_come_back(names in proptest::collection::vec("[a0-9.é-]{0,24}", 0..6)) {
            let all = RankList::first(8);
            let hosts: Hosts = names.into_iter().map(|n| (n, RankList::single(3))).collect();
            let mut out = Vec::new();
            let of_threads = vec![all.clone(), RankList::single(2)];
            put(&mut out, &hosts, &of_threads, &all);
            let (back, threads) = get(&mut &out[..], &all).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(back, hosts);
            prop_assert_eq!(threads, of_threads);
        }
    }

    #[test]
    fn thousands_of_nodes_are_a_pattern() {
        let node = |i: u32| (format!("nid{:05}.cluster", i + 10_000), (i * 8..i * 8 + 8).collect());
        let hosts: Hosts = (0..4096).map(node).collect();
        let mut out = Vec::new();
        put(&mut out, &hosts, &[], &RankList::first(32768));
        assert!(out.len() < 64, "{}", out.len());
    }
}
