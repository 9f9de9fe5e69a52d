//! Integer streams as text, by way of their coded form: what `st-stream.5` says about streams, once more.

use st_model::num::Exact;
use std::fmt::Write as _;

use st_model::ints::Sealed;
use st_model::varint::{self, DecodeError, get_i64, get_u64};

/// For ever.
const OPEN: u64 = u64::MAX;

/// A stream taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts {
    values: Vec<i64>,
    /// (element, step, further values)
    runs: Vec<(usize, i64, u64)>,
    /// (after so many elements, that many back, number of values)
    copies: Vec<(usize, u64, u64)>,
}

/// The stream in the notation of the module.
#[must_use]
pub fn print(stream: &Sealed) -> String {
    let (mut head, mut vals) = (Vec::new(), Vec::new());
    stream.encode(&mut head, &mut vals);
    match head.first() {
        Some(0) => "-".into(),
        Some(1) => get_i64(&mut &vals[..]).unwrap_or(0).to_string(),
        _ => take_apart(&mut &head[..], &mut &vals[..]).map_or_else(|_| "?".into(), |p| p.print()),
    }
}

fn number(n: u64) -> String {
    if n == OPEN { "*".into() } else { n.to_string() }
}

fn parse_number(text: &str) -> Option<u64> {
    if text == "*" { Some(OPEN) } else { text.parse().ok().filter(|n| *n != OPEN) }
}

fn take_apart(head: &mut &[u8], vals: &mut &[u8]) -> Result<Parts, DecodeError> {
    let shape = get_u64(head)?.wrapping_sub(2);
    let n = usize::try_from(shape >> 3).map_err(|_| DecodeError::Length)?;
    let mut p = Parts::default();
    let mut at = 0usize;
    for _ in 0..if shape & 1 == 1 { get_u64(head)? } else { 0 } {
        at = at.saturating_add(get_u64(head)?.to_usize());
        let back = get_u64(head)?;
        p.copies.push((at, back, if at == n { OPEN } else { get_u64(head)? }));
    }
    let open_copy = p.copies.last().is_some_and(|c| c.0 == n);
    let mut next = 0usize;
    for _ in 0..if shape & 2 == 2 { get_u64(head)? } else { 0 } {
        let at = next.saturating_add(get_u64(head)?.to_usize());
        next = at.saturating_add(1);
        p.runs.push((at, 0, if next < n || open_copy { get_u64(head)? } else { OPEN }));
    }
    let mut last = 0i64;
    for _ in 0..n {
        let v = last.wrapping_add(get_i64(vals)?);
        p.values.push(v);
        last = if shape & 4 == 4 { v } else { 0 };
    }
    for run in &mut p.runs {
        run.1 = get_i64(vals)?;
    }
    Ok(p)
}

impl Parts {
    fn print(&self) -> String {
        let mut out = String::from("[");
        let (mut runs, mut copies) = (self.runs.iter().peekable(), self.copies.iter().peekable());
        for i in 0..=self.values.len() {
            while let Some((_, back, n)) = copies.next_if(|c| c.0 == i) {
                let _ = write!(out, "<{back}x{}> ", number(*n));
            }
            if let Some(v) = self.values.get(i) {
                let _ = write!(out, "{v}");
                if let Some((_, step, more)) = runs.next_if(|r| r.0 == i) {
                    let _ = write!(out, ":{step}:{}", number(*more));
                }
                out.push(' ');
            }
        }
        let kept = out.trim_end().len();
        out.truncate(kept);
        out.push(']');
        out
    }

    fn parse(text: &str) -> Option<Self> {
        let mut p = Self::default();
        for word in text.strip_prefix('[')?.strip_suffix(']')?.split(' ') {
            if let Some(copy) = word.strip_prefix('<').and_then(|w| w.strip_suffix('>')) {
                let (back, n) = copy.split_once('x')?;
                p.copies.push((p.values.len(), back.parse().ok()?, parse_number(n)?));
                continue;
            }
            let mut fields = word.split(':');
            p.values.push(fields.next()?.parse().ok()?);
            if let Some(step) = fields.next() {
                p.runs.push((p.values.len() - 1, step.parse().ok()?, parse_number(fields.next()?)?));
            }
            if fields.next().is_some() {
                return None;
            }
        }
        Some(p)
    }

    /// The coded form, without differences: whether they are used is for [`Sealed::encode`] to say.
    fn put_together(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let (mut head, mut vals) = (Vec::new(), Vec::new());
        let n = self.values.len();
        let flags = u64::from(!self.runs.is_empty()) << 1 | u64::from(!self.copies.is_empty());
        varint::put_u64(&mut head, 2 + (n.to_u64() << 3 | flags));
        if !self.copies.is_empty() {
            varint::put_u64(&mut head, self.copies.len().to_u64());
        }
        let mut last = 0;
        for (at, back, number) in &self.copies {
            varint::put_u64(&mut head, (at - last).to_u64());
            varint::put_u64(&mut head, *back);
            last = *at;
            open_at_end(*number, *at == n, &mut head)?;
        }
        let open_copy = self.copies.last().is_some_and(|c| c.0 == n);
        if !self.runs.is_empty() {
            varint::put_u64(&mut head, self.runs.len().to_u64());
        }
        let mut next = 0;
        for (at, _, more) in &self.runs {
            varint::put_u64(&mut head, (at - next).to_u64());
            next = at + 1;
            open_at_end(*more, next == n && !open_copy, &mut head)?;
        }
        self.values.iter().for_each(|v| varint::put_i64(&mut vals, *v));
        self.runs.iter().for_each(|r| varint::put_i64(&mut vals, r.1));
        Some((head, vals))
    }
}

/// A number stands everywhere but at the end, where it is open.
fn open_at_end(number: u64, end: bool, head: &mut Vec<u8>) -> Option<()> {
    if !end {
        varint::put_u64(head, number);
    }
    (end == (number == OPEN)).then_some(())
}

/// Reads what [`print`] wrote.
pub(super) fn parse(text: &str) -> Option<Sealed> {
    if text == "-" {
        return Some(Sealed::zero().clone());
    }
    if !text.starts_with('[') {
        return text.parse().ok().map(Sealed::from_constant);
    }
    let (head, vals) = Parts::parse(text)?.put_together()?;
    let (mut head, mut vals) = (&head[..], &vals[..]);
    Sealed::decode(&mut head, &mut vals).ok().filter(|_| head.is_empty() && vals.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use st_model::ints::Ints;

    fn stream(values: &[i64]) -> Sealed {
        let mut ints = Ints::new();
        values.iter().for_each(|v| ints.push(*v));
        ints.seal()
    }

    #[test]
    fn streams_read_well() {
        assert_eq!(print(Sealed::zero()), "-");
        assert_eq!(print(&stream(&[5, 5, 5])), "5");
        assert_eq!(print(&stream(&[0, 1, 2, 3, 4, 5, 6, 7])), "[0:1:*]");
        assert_eq!(print(&stream(&[3, 1, 4])), "[3 1 4]");
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        for text in [
            "",
            "x",
            "[",
            "[]",
            "[1:2]",
            "[1:2:3:4]",
            "[1:2:*] ",
            "[1:1:* 2]",
            "[<1x*>]",
            "[1 <2x*>]",
            "[1 <1x5>]",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_stream_comes_back(
            period in prop::collection::vec(-3i64..6, 1..9),
            times in 1usize..6,
            tail in prop::collection::vec(any::<i64>(), 0..4),
            slope in -2i64..3,
        ) {
            let mut values: Vec<i64> = period.iter().copied().cycle().take(period.len() * times).collect();
            values.extend(&tail);
            values.extend((0..6).map(|i| 100 + i * slope));
            values.extend(&period);
            let s = stream(&values);
            prop_assert_eq!(parse(&print(&s)), Some(s));
        }
    }
}
