//! Numbers as the crate pco compresses them: its header, what tells of their distribution, and one page.
//!
//! It is read, and no longer written. Builds without the feature `pco` do not read it.

#[cfg(feature = "pco")]
use pco::wrapped::FileDecompressor;
#[cfg(feature = "pco")]
use st_model::num::Exact;

use super::error::DecodeError;

/// What the first byte after the header says, in four bits each: numbers as they are, none less another. Times have shown nothing
/// that others gain from, and what is not read cannot be damaged.
#[cfg(feature = "pco")]
const PLAIN: u8 = 0;
#[cfg(feature = "pco")]
const BAD: DecodeError = DecodeError::Invalid("not numbers as pco writes them");

/// So many numbers. *Memory:* 8 bytes for each, before it is known whether they are there.
#[cfg(feature = "pco")]
pub(super) fn expand(src: &[u8], n: u32) -> Result<Vec<i64>, DecodeError> {
    let (file, src) = FileDecompressor::new(src).map_err(|_| BAD)?;
    if src.first() != Some(&PLAIN) {
        return Err(BAD);
    }
    let (mut chunk, src) = file.chunk_decompressor::<i64, _>(src).map_err(|_| BAD)?;
    let mut numbers = vec![0; n.to_usize()];
    let mut page = chunk.page_decompressor(src, numbers.len()).map_err(|_| BAD)?;
    let progress = page.read(&mut numbers).map_err(|_| BAD)?;
    let rest = page.into_src();
    let whole = progress.finished && progress.n_processed == numbers.len() && rest.is_empty();
    if whole { Ok(numbers) } else { Err(BAD) }
}

#[cfg(not(feature = "pco"))]
pub(super) fn expand(_: &[u8], _: u32) -> Result<Vec<i64>, DecodeError> {
    Err(DecodeError::Invalid("compressed with pco, which was left out when these programs were built"))
}
