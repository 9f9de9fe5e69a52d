//! First form: plain values, without prediction or folding.
use crate::varint::{self, DecodeError};
/// Stream.
#[derive(Clone, Debug, Default)]
pub struct Ints {
    v: Vec<i64>,
}
impl Ints {
    /// New.
    pub fn new() -> Self {
        Self::default()
    }
    /// Push.
    pub fn push(&mut self, x: i64) {
        self.v.push(x)
    }
    /// Push run.
    pub fn push_run(&mut self, x: i64, n: u64) {
        for _ in 0..n {
            self.v.push(x)
        }
    }
    /// Len.
    pub fn len(&self) -> u64 {
        self.v.len() as u64
    }
    /// Seal.
    pub fn seal(&self) -> Sealed {
        let mut v = self.v.clone();
        while v.len() > 1 && v[v.len() - 1] == v[v.len() - 2] {
            v.pop();
        }
        Sealed { v }
    }
}
/// Sealed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sealed {
    v: Vec<i64>,
}
static ZERO: Sealed = Sealed { v: Vec::new() };
impl Sealed {
    /// Zero.
    pub fn zero() -> &'static Self {
        &ZERO
    }
    /// Constant.
    pub fn from_constant(x: i64) -> Self {
        Self { v: vec![x] }
    }
    /// Constant?
    pub fn constant(&self) -> Option<i64> {
        match self.v[..] {
            [] => Some(0),
            [x] => Some(x),
            _ => None,
        }
    }
    /// Cursor.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { v: &self.v, i: 0 }
    }
    /// Map.
    pub fn map(&self, f: impl Fn(i64) -> i64) -> Self {
        let mut i = Ints::new();
        self.v.iter().for_each(|&x| i.push(f(x)));
        i.seal()
    }
    /// Words.
    pub fn heap_words(&self) -> usize {
        self.v.len()
    }
    /// At most n distinct values.
    pub fn distinct(&self, n: usize) -> Option<Vec<i64>> {
        let s: std::collections::BTreeSet<i64> = self.v.iter().copied().collect();
        (s.len() <= n).then(|| s.into_iter().collect())
    }
    /// Encode.
    pub fn encode(&self, head: &mut Vec<u8>, vals: &mut Vec<u8>) {
        varint::put_u64(head, self.v.len() as u64);
        self.v.iter().for_each(|&x| varint::put_i64(vals, x));
    }
    /// Decode.
    pub fn decode(head: &mut &[u8], vals: &mut &[u8]) -> Result<Self, DecodeError> {
        let n = varint::get_u64(head)?;
        if n > vals.len() as u64 {
            return Err(DecodeError::Length);
        }
        Ok(Self { v: (0..n).map(|_| varint::get_i64(vals)).collect::<Result<_, _>>()? })
    }
}
impl From<Vec<i64>> for Sealed {
    fn from(v: Vec<i64>) -> Self {
        Ints { v }.seal()
    }
}
/// Cursor.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    v: &'a [i64],
    i: usize,
}
impl Cursor<'_> {
    /// Next.
    pub fn next(&mut self) -> i64 {
        let x = self.v.get(self.i.min(self.v.len().wrapping_sub(1))).copied().unwrap_or(0);
        self.i += 1;
        x
    }
}
