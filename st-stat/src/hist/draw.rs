//! A distribution drawn with blocks.

use std::io::{self, Write};

use st_model::num::{Exact, saturate};
use st_model::sketch::{bucket, edges};

use crate::table::{duration, grouped};

/// Durations from and to so many ns, and how many there are.
pub(crate) type Range = (u64, u64, u64);

/// Lines of a drawing at most.
const LINES: usize = 20;

/// Characters of a line that are neither numbers nor blocks.
const BETWEEN: usize = 9;

/// An eighth of a block, two, and so on.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Draws durations within so many columns: a line for each range, or for neighbours of equal number if there are too many.
pub(super) fn draw(ranges: &[Range], width: usize, out: &mut dyn Write) -> io::Result<()> {
    let lines = lines(ranges, LINES);
    let most = lines.iter().map(|l| l.2).max().unwrap_or(0);
    let texts = lines.iter().map(|(from, to, n)| (duration(*from), duration(*to), grouped(*n)));
    let texts: Vec<_> = texts.collect();
    let widest = |of: fn(&(String, String, String)) -> &String| {
        texts.iter().map(|t| of(t).chars().count()).max().unwrap_or(0)
    };
    let [from, to, n] = [widest(|t| &t.0), widest(|t| &t.1), widest(|t| &t.2)];
    let room = width.saturating_sub(from + to + n + BETWEEN);
    for ((low, high, calls), (_, _, count)) in texts.iter().zip(&lines) {
        let line = format!("  {low:>from$} … {high:>to$}  {calls:>n$}  {}", bar(*count, most, room));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// At most so many ranges that are drawn; one for all neighbours that have none.
pub(crate) fn lines(ranges: &[Range], most: usize) -> Vec<Range> {
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return Vec::new() };
    // Bins are few, and as wide as they are.
    if ranges.len() <= most && ranges.windows(2).all(|w| w[1].0 <= w[0].1.saturating_add(1)) {
        return ranges.to_vec();
    }
    let from = usize::from(bucket(first.0));
    let positions = usize::from(bucket(last.1)) + 1 - from;
    let each = positions.div_ceil(most);
    let mut lines = vec![(u64::MAX, 0, 0); positions.div_ceil(each)];
    for (line, number) in lines.iter_mut().zip(0..) {
        let edge = |b: usize| edges(saturate(b));
        let (first_of, last_of) = (from + each * number, from + each * (number + 1) - 1);
        *line = (edge(first_of).0, edge(last_of).1.min(last.1), 0);
    }
    for (low, _, n) in ranges {
        let at = (usize::from(bucket(*low)) - from) / each;
        if let Some(line) = lines.get_mut(at) {
            line.2 += n;
        }
    }
    let gaps = lines.chunk_by(|a, b| a.2 == 0 && b.2 == 0);
    gaps.filter_map(|gap| Some((gap.first()?.0, gap.last()?.1, gap.first()?.2))).collect()
}

/// A bar whose length is to `room` as a number to the largest; of any number above 0 something is seen.
fn bar(n: u64, most: u64, room: usize) -> String {
    let eighths = u128::from(n) * u128::from(8 * room.to_u64()) / u128::from(most.max(1));
    let eighths = saturate::<usize>(eighths).max(usize::from(n > 0)).min(8 * room);
    let rest = (eighths % 8).checked_sub(1).and_then(|i| EIGHTHS.get(i));
    std::iter::repeat_n('█', eighths / 8).chain(rest.copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(ranges: &[Range], width: usize) -> String {
        let mut out = Vec::new();
        draw(ranges, width, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lengths_are_as_numbers_and_fit() {
        let said = drawn(&[(1, 1, 8), (2, 2, 4), (3, 3, 1), (4, 4, 0), (5, 5, 1_000)], 30);
        let expected = "  1 ns … 1 ns      8  ▏\n  2 ns … 2 ns      4  ▏\n  3 ns … 3 ns      1  ▏\n  4 ns … 4 ns      0\n  5 ns … 5 ns  1,000  ████████\n";
        assert_eq!(said, expected);
        assert_eq!(
            drawn(&[(1, 1, 8), (2, 2, 4), (3, 3, 1)], 24),
            "  1 ns … 1 ns  8  ██████\n  2 ns … 2 ns  4  ███\n  3 ns … 3 ns  1  ▊\n"
        );
        assert_eq!(drawn(&[], 80), "");
    }

    #[test]
    fn many_buckets_share_lines_and_gaps_are_seen() {
        let of = |ns: u64| (edges(bucket(ns)).0, edges(bucket(ns)).1, 3);
        let said = drawn(&[of(1_000), of(1_100), of(9_000_000)], 80);
        assert!(said.lines().count() <= LINES && said.lines().all(|l| l.chars().count() <= 80), "{said}");
        let numbers = said.lines().map(|l| l.chars().filter(|c| *c == '█').count() > 0).collect::<Vec<_>>();
        assert!(
            numbers[0] && numbers[numbers.len() - 1] && numbers.iter().filter(|n| **n).count() == 2,
            "{said}"
        );
    }
}
