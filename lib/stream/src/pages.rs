//! Numbers as the crate pco compresses them: its header, what tells of their distribution, and one page.
//!
//! Builds without the feature `pco` neither write nor read it.

#[cfg(feature = "pco")]
use pco::wrapped::{FileCompressor, FileDecompressor};
#[cfg(feature = "pco")]
use pco::{ChunkConfig, DeltaSpec, ModeSpec, PagingSpec};
#[cfg(feature = "pco")]
use st_model::num::Exact;

use super::error::DecodeError;

/// Whether numbers can be compressed.
pub(super) const AVAILABLE: bool = cfg!(feature = "pco");
/// More tries more tables, and finds hardly better ones.
#[cfg(feature = "pco")]
const LEVEL: usize = 10;
/// What the first byte after the header says, in four bits each: numbers as they are, none less another. Times have shown nothing
/// that others gain from, and what is not read cannot be damaged.
#[cfg(feature = "pco")]
const PLAIN: u8 = 0;
#[cfg(feature = "pco")]
const BAD: DecodeError = DecodeError::Invalid("not numbers as pco writes them");

/// The numbers compressed, if that can be done.
#[cfg(feature = "pco")]
pub(super) fn compress(numbers: &[i64]) -> Option<Vec<u8>> {
    let config = ChunkConfig::default()
        .with_compression_level(LEVEL)
        .with_mode_spec(ModeSpec::Classic)
        .with_delta_spec(DeltaSpec::NoOp)
        .with_paging_spec(PagingSpec::Exact(vec![numbers.len()]));
    let file = FileCompressor::default();
    let mut chunk = file.chunk_compressor(numbers, &config).ok()?;
    let out = file.write_header(Vec::new()).ok()?;
    let from = out.len();
    let out = chunk.write_meta(out).ok()?;
    let plain = out.get(from) == Some(&PLAIN);
    chunk.write_page(0, out).ok().filter(|_| plain)
}

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
pub(super) fn compress(_: &[i64]) -> Option<Vec<u8>> {
    None
}

#[cfg(not(feature = "pco"))]
pub(super) fn expand(_: &[u8], _: u32) -> Result<Vec<i64>, DecodeError> {
    Err(DecodeError::Invalid("compressed with pco, which was left out when these programs were built"))
}
