//! Variable-length integers: LEB128, signed values by zigzag.
//!
//! Every byte string in a trace is built from these functions; a decoder reads from a shrinking slice, so
//! that "how much input is left" bounds every allocation.

use crate::num::Exact;

/// Bytes of a value at most.
const LONGEST: usize = 10;

/// Why a coded value cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The input ends inside a value.
    #[error("unexpected end of input")]
    Truncated,
    /// A variable-length integer does not fit 64 bits.
    #[error("integer longer than 64 bits")]
    Overlong,
    /// A length announces more than the remaining input can hold.
    #[error("length exceeds the remaining input")]
    Length,
    /// A value is outside the range its place allows.
    #[error("value out of range")]
    Range,
}

/// Appends an unsigned value, 1 to 10 bytes.
#[inline]
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value.to_le_bytes()[0]);
    } else {
        put_long(out, value);
    }
}

/// As [`put_u64`], of what takes more than a byte.
#[inline(never)]
fn put_long(out: &mut Vec<u8>, value: u64) {
    let bits = 64 - value.leading_zeros();
    if bits > 56 {
        out.extend_from_slice(&(sevens(value & (u64::MAX >> 8)) | MORE).to_le_bytes());
        return put_u64(out, value >> 56);
    }
    let bytes = bits.div_ceil(7);
    let coded = sevens(value) | MORE >> (8 * (9 - bytes));
    // A word whole, of which what is too much is taken back: that takes fewer instructions than a loop over its bytes.
    let end = out.len() + bytes.to_usize();
    out.extend_from_slice(&coded.to_le_bytes());
    out.truncate(end);
}

/// The bit of each byte of a word that says that there are more.
const MORE: u64 = 0x8080_8080_8080_8080;

/// 56 bits, seven in each byte.
fn sevens(value: u64) -> u64 {
    let halves = (value & 0x0fff_ffff) | (value & 0x00ff_ffff_f000_0000) << 4;
    let quarters = (halves & 0x0000_3fff_0000_3fff) | (halves & 0x0fff_c000_0fff_c000) << 2;
    (quarters & 0x007f_007f_007f_007f) | (quarters & 0x3f80_3f80_3f80_3f80) << 1
}

/// Appends a signed value by zigzag, so that small magnitudes of either sign are short.
pub fn put_i64(out: &mut Vec<u8>, value: i64) {
    put_u64(out, zigzag(value));
}

/// Appends signed values, each as [`put_i64`] does. *Cost:* a fraction of its, where most values take a byte or two.
pub fn put_all(out: &mut Vec<u8>, values: impl Iterator<Item = i64>) {
    let mut part = [0; 256];
    let mut at = 0;
    for value in values {
        if at + LONGEST > part.len() {
            out.extend_from_slice(&part[..at]);
            at = 0;
        }
        let mut rest = zigzag(value);
        if rest < 1 << 14 {
            // One byte or two: no branch that chance decides.
            let two = rest >= 0x80;
            part[at] = rest.to_le_bytes()[0] & 0x7f | u8::from(two) << 7;
            part[at + 1] = (rest >> 7).to_le_bytes()[0];
            at += 1 + usize::from(two);
            continue;
        }
        while rest >= 0x80 {
            part[at] = rest.to_le_bytes()[0] | 0x80;
            at += 1;
            rest >>= 7;
        }
        part[at] = rest.to_le_bytes()[0];
        at += 1;
    }
    out.extend_from_slice(&part[..at]);
}

/// Reads an unsigned value and advances the input.
///
/// # Errors
///
/// [`DecodeError::Truncated`] at the end of the input, [`DecodeError::Overlong`] beyond 64 bits.
pub fn get_u64(input: &mut &[u8]) -> Result<u64, DecodeError> {
    let mut value = 0_u64;
    let mut shift = 0_u32;
    loop {
        let (&byte, rest) = input.split_first().ok_or(DecodeError::Truncated)?;
        *input = rest;
        let bits = u64::from(byte & 0x7f);
        if shift > 63 || (shift == 63 && bits > 1) {
            return Err(DecodeError::Overlong);
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
        shift += 7;
    }
}

/// Reads a signed value and advances the input.
///
/// # Errors
///
/// As [`get_u64`].
pub fn get_i64(input: &mut &[u8]) -> Result<i64, DecodeError> {
    let coded = get_u64(input)?;
    Ok((coded >> 1).cast_signed() ^ -(coded & 1).cast_signed())
}

/// Reads the number of items that follow, each of which takes at least one byte of `available`.
///
/// # Errors
///
/// As [`get_u64`]; [`DecodeError::Length`] if that many items cannot be present.
pub fn get_len(input: &mut &[u8], available: usize) -> Result<usize, DecodeError> {
    let coded = get_u64(input)?;
    usize::try_from(coded).ok().filter(|&n| n <= available).ok_or(DecodeError::Length)
}

/// Bytes that [`put_i64`] would write.
#[must_use]
pub fn len_i64(value: i64) -> usize {
    let bits = 64 - zigzag(value).leading_zeros();
    bits.div_ceil(7).max(1).to_usize()
}

/// A number of either sign as one without: small ones stay small.
#[must_use]
#[inline]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    proptest! {
        #[test]
        fn signed_values_survive(value in any::<i64>()) {
            let mut bytes = Vec::new();
            put_i64(&mut bytes, value);
            assert_eq!(bytes.len(), len_i64(value));
            let mut input = bytes.as_slice();
            assert_eq!(get_i64(&mut input), Ok(value));
            assert!(input.is_empty());
        }

        #[test]
        fn many_values_are_those_one_by_one(
            values in proptest::collection::vec(proptest::prop_oneof![-200..200_i64, any::<i64>()], 0..300)
        ) {
            let (mut all, mut each) = (vec![7], vec![7]);
            put_all(&mut all, values.iter().copied());
            values.iter().for_each(|value| put_i64(&mut each, *value));
            assert_eq!(all, each);
        }

        #[test]
        fn values_of_any_length_are_seven_bits_to_a_byte(value in any::<u64>(), shift in 0..64_u32) {
            let value = value >> shift;
            let (mut bytes, mut expected, mut rest) = (vec![7], vec![7], value);
            put_u64(&mut bytes, value);
            while rest >= 0x80 {
                expected.push(rest.to_le_bytes()[0] | 0x80);
                rest >>= 7;
            }
            expected.push(rest.to_le_bytes()[0]);
            assert_eq!(bytes, expected);
        }

        #[test]
        fn every_proper_prefix_is_truncated(value in any::<u64>()) {
            let mut bytes = Vec::new();
            put_u64(&mut bytes, value);
            for cut in 0..bytes.len() {
                assert_eq!(get_u64(&mut &bytes[..cut]), Err(DecodeError::Truncated));
            }
            assert_eq!(get_u64(&mut bytes.as_slice()), Ok(value));
        }
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        assert_eq!(get_u64(&mut [0xff; 11].as_slice()), Err(DecodeError::Overlong));
        let mut eleven = vec![0x80; 9];
        eleven.push(2);
        assert_eq!(get_u64(&mut eleven.as_slice()), Err(DecodeError::Overlong));
    }
}
