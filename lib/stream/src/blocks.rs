//! Role columns: values of one role lie together, so that the compressor sees like beside like.

use super::bytes::{get_bytes, put_bytes};
use super::error::DecodeError;
use st_model::num::Exact;

/// Bytes that most columns of a recorded rank have at most.
const BYTES: usize = 64;

/// `N` columns being written.
#[derive(Debug)]
pub(crate) struct Blocks<const N: usize>(pub(crate) [Vec<u8>; N]);

impl<const N: usize> Blocks<N> {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| Vec::with_capacity(BYTES)))
    }
    /// Bytes in all columns.
    pub(crate) fn len(&self) -> u64 {
        self.0.iter().map(|b| b.len().to_u64()).sum()
    }
    /// Each column as its length and its bytes.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        self.put_first(N, out);
    }
    /// The same of so many columns.
    pub(crate) fn put_first(&self, n: usize, out: &mut Vec<u8>) {
        self.0.iter().take(n).for_each(|b| put_bytes(out, b));
    }
}

/// The columns that [`Blocks::put`] wrote.
pub(crate) fn get<'a, const N: usize>(src: &mut &'a [u8]) -> Result<[&'a [u8]; N], DecodeError> {
    let mut out = [&[][..]; N];
    for b in &mut out {
        *b = get_bytes(src)?;
    }
    Ok(out)
}

/// All columns must be used up.
pub(crate) fn finish<const N: usize>(blocks: &[&[u8]; N]) -> Result<(), DecodeError> {
    blocks.iter().try_for_each(|b| super::bytes::finish(b))
}
