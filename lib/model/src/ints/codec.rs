//! Stored streams as bytes: shape in one byte string, values in another, so that equal shapes compress well.
//!
//! Shape: `0` empty; `1` constant; otherwise `2 + (elements << 3 | delta << 2 | has runs << 1 | has copies)`, then
//! runs (number; for each the elements since the last one, and the number of further values unless it is the open
//! tail), then copies (number; for each the elements since the last one, the distance to its start, and its length
//! unless it is the open tail). Values: the elements, plain or as differences, then the steps of the runs.

use crate::num::Exact;
use std::sync::Arc;

use super::cursor::{Copied, Run};
use super::sealed::{Coded, Form, Sealed};
use crate::varint::{self, DecodeError};

/// Values by which the shorter form is chosen: long streams are written often, as long as their program runs.
const SAMPLE: usize = 1 << 12;

impl Sealed {
    /// Appends the stream's shape to `head` and its values to `vals`.
    pub fn encode(&self, head: &mut Vec<u8>, vals: &mut Vec<u8>) {
        match &self.0 {
            Form::Empty => head.push(0),
            Form::Constant(value) => {
                head.push(1);
                varint::put_i64(vals, *value);
            }
            Form::Coded(coded) => coded.encode(head, vals),
            Form::Plain(values) => Self::elemental(values).encode(head, vals),
        }
    }

    /// Reads one stream and advances both inputs.
    ///
    /// # Errors
    ///
    /// If the bytes are not those of a stream. Memory stays within a small multiple of the input.
    pub fn decode(head: &mut &[u8], vals: &mut &[u8]) -> Result<Self, DecodeError> {
        match varint::get_u64(head)? {
            0 => Ok(Self(Form::Empty)),
            1 => Ok(Self::from_constant(varint::get_i64(vals)?)),
            shape => Coded::decode(shape - 2, head, vals).map(|coded| Self(Form::Coded(Arc::new(coded)))),
        }
    }
}

impl Coded {
    fn encode(&self, head: &mut Vec<u8>, vals: &mut Vec<u8>) {
        let deltas = self.deltas_are_shorter();
        let flags = u64::from(deltas) << 2
            | u64::from(!self.runs.is_empty()) << 1
            | u64::from(!self.copies.is_empty());
        varint::put_u64(head, 2 + (self.lits.len().to_u64() << 3 | flags));
        self.encode_copies(head);
        self.encode_runs(head);
        if deltas {
            let first = self.lits.first().copied();
            let others = self.lits.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
            varint::put_all(vals, first.into_iter().chain(others));
        } else {
            varint::put_all(vals, self.lits.iter().copied());
        }
        for run in &self.runs {
            varint::put_i64(vals, run.step);
        }
    }

    fn encode_runs(&self, head: &mut Vec<u8>) {
        if self.runs.is_empty() {
            return;
        }
        varint::put_u64(head, self.runs.len().to_u64());
        let mut next = 0;
        for run in &self.runs {
            varint::put_u64(head, (run.at - next).to_u64());
            next = run.at + 1;
            if next < self.lits.len() || self.open_copy() {
                varint::put_u64(head, run.more);
            }
        }
    }

    fn encode_copies(&self, head: &mut Vec<u8>) {
        if self.copies.is_empty() {
            return;
        }
        varint::put_u64(head, self.copies.len().to_u64());
        let mut last = 0;
        for copy in &self.copies {
            varint::put_u64(head, (copy.at - last).to_u64());
            varint::put_u64(head, (copy.at - copy.start).to_u64());
            last = copy.at;
            if copy.at < self.lits.len() {
                varint::put_u64(head, copy.n);
            }
        }
    }

    fn open_copy(&self) -> bool {
        self.copies.last().is_some_and(|copy| copy.at == self.lits.len())
    }

    fn decode(shape: u64, head: &mut &[u8], vals: &mut &[u8]) -> Result<Self, DecodeError> {
        let elements = usize::try_from(shape >> 3).map_err(|_| DecodeError::Length)?;
        if elements > vals.len() {
            return Err(DecodeError::Length);
        }
        if elements == 0 {
            return Err(DecodeError::Range);
        }
        let copies = if shape & 1 == 0 { Vec::new() } else { decode_copies(elements, head)? };
        let open_copy = copies.last().is_some_and(|copy| copy.at == elements);
        let mut runs = if shape & 2 == 0 { Vec::new() } else { decode_runs(elements, open_copy, head)? };
        let deltas = shape & 4 != 0;
        let mut lits = Vec::with_capacity(elements);
        let mut last = 0_i64;
        for _ in 0..elements {
            let value = last.wrapping_add(varint::get_i64(vals)?);
            lits.push(value);
            last = if deltas { value } else { 0 };
        }
        for run in &mut runs {
            run.step = varint::get_i64(vals)?;
        }
        Ok(Self { lits: lits.into(), runs: runs.into(), copies: copies.into() })
    }

    /// Whether differences take fewer bytes, as far as the first values tell.
    fn deltas_are_shorter(&self) -> bool {
        let lits = &self.lits[..self.lits.len().min(SAMPLE)];
        let plain: usize = lits.iter().map(|&value| varint::len_i64(value)).sum();
        let delta: usize = lits.windows(2).map(|pair| varint::len_i64(pair[1].wrapping_sub(pair[0]))).sum();
        let first = lits.first().map_or(0, |&value| varint::len_i64(value));
        delta + first < plain
    }
}

fn decode_copies(elements: usize, head: &mut &[u8]) -> Result<Vec<Copied>, DecodeError> {
    let number = varint::get_len(head, head.len())?;
    let mut copies = Vec::with_capacity(number);
    let mut last = 0;
    for _ in 0..number {
        let at = step_to(last, elements, varint::get_u64(head)?)?;
        let back = usize::try_from(varint::get_u64(head)?).map_err(|_| DecodeError::Range)?;
        let start = at.checked_sub(back).ok_or(DecodeError::Range)?;
        let n = if at == elements { u64::MAX } else { varint::get_u64(head)? };
        if at == last || back == 0 || n == 0 {
            return Err(DecodeError::Range);
        }
        copies.push(Copied { at, start, n });
        last = at;
    }
    Ok(copies)
}

fn decode_runs(elements: usize, open_copy: bool, head: &mut &[u8]) -> Result<Vec<Run>, DecodeError> {
    let number = varint::get_len(head, head.len())?;
    let mut runs = Vec::with_capacity(number);
    let mut next = 0;
    for _ in 0..number {
        let at = step_to(next, elements - 1, varint::get_u64(head)?)?;
        next = at + 1;
        let more = if next < elements || open_copy { varint::get_u64(head)? } else { u64::MAX };
        runs.push(Run { at, step: 0, more });
    }
    Ok(runs)
}

/// `from + step`, at most `limit`.
fn step_to(from: usize, limit: usize, step: u64) -> Result<usize, DecodeError> {
    let step = usize::try_from(step).map_err(|_| DecodeError::Range)?;
    from.checked_add(step).filter(|&at| at <= limit).ok_or(DecodeError::Range)
}
