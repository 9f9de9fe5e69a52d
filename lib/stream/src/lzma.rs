//! Payloads compressed with LZMA, which makes most of them smaller than zstd does.
//!
//! Number of literal context bits (the other properties are 0), length of the payload (varint), then what the range coder
//! wrote, without its first byte, which is 0, and without end marker: any container would be a tenth of a small program's
//! trace. The dictionary is as long as the payload.
//!
//! Builds without the feature `lzma` neither write nor read it.

use std::io::{self, Error, ErrorKind::InvalidData};
#[cfg(feature = "lzma")]
use std::io::{Read, Write};

#[cfg(feature = "lzma")]
use lzma_rust2::{EncodeMode, LzmaOptions, LzmaReader, LzmaWriter, MfType};

#[cfg(feature = "lzma")]
use st_model::varint;

/// Payloads are at most so long.
const LONGEST: usize = 1 << 24;
/// Streams of this level and beyond are to be as small as can be.
const SMALLEST: i32 = 19;
/// Numbers of literal context bits that are tried on payloads of up to so many bytes: columns of small numbers have little
/// context.
#[cfg(feature = "lzma")]
const CONTEXTS: [(usize, &[u8]); 3] = [(1 << 10, &[0]), (1 << 20, &[1, 0]), (LONGEST, &[1])];
/// Of longer payloads a part in the middle, so long, shows which context is better.
#[cfg(feature = "lzma")]
const PART: usize = 1 << 15;
/// More context bits are refused: they take memory.
#[cfg(feature = "lzma")]
const MOST_CONTEXT: u8 = 4;
/// The shortest dictionary.
#[cfg(feature = "lzma")]
const DICTIONARY: usize = 1 << 12;

/// The payload compressed, if streams of this level are worth it.
pub(super) fn compress(payload: &[u8], level: i32) -> Option<Vec<u8>> {
    if level < SMALLEST || payload.len() > LONGEST {
        return None;
    }
    smallest(payload)
}

#[cfg(feature = "lzma")]
fn smallest(payload: &[u8]) -> Option<Vec<u8>> {
    let (_, tried) = CONTEXTS.iter().find(|(most, _)| payload.len() <= *most)?;
    // There are other ways to store what cannot be compressed.
    let of =
        |part: &[u8]| tried.iter().filter_map(|context| packed(part, *context).ok()).min_by_key(Vec::len);
    if tried.len() < 2 || payload.len() < 2 * PART {
        return of(payload);
    }
    let from = (payload.len() - PART) / 2;
    let context = *of(&payload[from..from + PART])?.first()?;
    packed(payload, context).ok()
}

#[cfg(feature = "lzma")]
fn packed(payload: &[u8], context: u8) -> io::Result<Vec<u8>> {
    let options = LzmaOptions {
        dict_size: dictionary(payload.len())?,
        lc: context.into(),
        lp: 0,
        pb: 0,
        mode: EncodeMode::Normal,
        nice_len: LzmaOptions::NICE_LEN_MAX,
        mf: MfType::Bt4,
        depth_limit: 512,
        preset_dict: None,
    };
    let mut writer = LzmaWriter::new_no_header(Vec::new(), &options, false)?;
    writer.write_all(payload)?;
    let coded = writer.finish()?;
    let mut out = vec![context];
    varint::put_u64(&mut out, u64::try_from(payload.len()).map_err(|_| InvalidData)?);
    out.extend_from_slice(coded.strip_prefix(&[0]).ok_or(InvalidData)?);
    Ok(out)
}

/// The payload of a frame; at most `limit` bytes of it.
#[cfg(feature = "lzma")]
pub(super) fn expand(mut packed: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    let invalid = || Error::from(InvalidData);
    let (&context, rest) = packed.split_first().filter(|(c, _)| **c <= MOST_CONTEXT).ok_or_else(invalid)?;
    packed = rest;
    let len = varint::get_u64(&mut packed).map_err(|_| invalid())?;
    let all = usize::try_from(len).ok().filter(|len| *len <= limit.min(LONGEST)).ok_or_else(invalid)?;
    let coded = [0].chain(packed);
    let mut out = Vec::new();
    LzmaReader::new(coded, len, context.into(), 0, 0, dictionary(all)?, None)?.read_to_end(&mut out)?;
    if out.len() == all { Ok(out) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(feature = "lzma")]
fn dictionary(len: usize) -> io::Result<u32> {
    u32::try_from(len.max(DICTIONARY)).map_err(|_| InvalidData.into())
}

#[cfg(not(feature = "lzma"))]
fn smallest(_: &[u8]) -> Option<Vec<u8>> {
    None
}

#[cfg(not(feature = "lzma"))]
pub(super) fn expand(_: &[u8], _: usize) -> io::Result<Vec<u8>> {
    Err(Error::new(InvalidData, "compressed with LZMA, which was left out when these programs were built"))
}

#[cfg(all(test, feature = "lzma"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn payloads_come_back(payload in prop::collection::vec(0u8..9, 1..3000)) {
            let packed = compress(&payload, SMALLEST).unwrap();
            prop_assert_eq!(expand(&packed, payload.len()).unwrap(), &payload[..]);
            prop_assert!(expand(&packed, payload.len() - 1).is_err());
            prop_assert!(expand(&packed[..packed.len() / 2], payload.len()).is_err());
        }

        #[test]
        fn anything_can_be_expanded(context in 0u8..6, len in 0u64..5000, coded: Vec<u8>) {
            let mut packed = vec![context];
            varint::put_u64(&mut packed, len);
            packed.extend(coded);
            let out = expand(&packed, 4000);
            prop_assert!(out.is_err() || len <= 4000 && context <= MOST_CONTEXT);
        }
    }

    #[test]
    fn the_context_of_a_long_payload_is_what_suits_its_middle() {
        // Which byte may follow depends on the one before, or on nothing.
        let mut state = 1u64;
        let mut next = |of: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) % of
        };
        let mut of_two = 0;
        let related: Vec<u8> = (0..4 * PART)
            .map(|_| {
                of_two = if of_two >= 128 { next(8) } else { 128 + 16 * next(8) };
                u8::try_from(of_two).unwrap()
            })
            .collect();
        let alone: Vec<u8> = (0..4 * PART).map(|_| u8::try_from(next(8) * next(8)).unwrap()).collect();
        for payload in [related, alone] {
            let packed = compress(&payload, SMALLEST).unwrap();
            assert_eq!(expand(&packed, payload.len()).unwrap(), payload);
            let best = [0, 1]
                .map(|context| super::packed(&payload, context).unwrap())
                .into_iter()
                .min_by_key(Vec::len);
            assert_eq!(Some(packed.len()), best.map(|best| best.len()));
        }
    }

    #[test]
    fn streams_that_are_written_fast_have_none() {
        assert_eq!(compress(&[0; 100], SMALLEST - 1), None);
        assert!(compress(&[0; 100], SMALLEST).is_some_and(|packed| packed.len() < 20));
    }
}
