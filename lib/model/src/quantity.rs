//! Bytes as people write them, on command lines and in the recorder's environment.

use crate::num::rounded;

/// A number and its unit.
#[must_use]
pub fn parts(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

/// How many bytes a unit is: kB, M, GB are powers of 1,000, KiB, MiB, GiB of 1,024.
#[must_use]
pub fn unit(text: &str) -> Option<f64> {
    let (prefix, binary) = match text.strip_suffix('B').unwrap_or(text).strip_suffix('i') {
        Some(prefix) => (prefix, true),
        None => (text.strip_suffix('B').unwrap_or(text), false),
    };
    let power = match prefix {
        "" if !binary => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    Some(if binary { 1024f64.powi(power) } else { 1000f64.powi(power) })
}

/// Bytes.
///
/// # Errors
///
/// If it is no whole number of them.
pub fn bytes(text: &str) -> Result<u64, String> {
    whole(text, unit).ok_or_else(|| "not a number of bytes (8192, 64kB, 64KiB, 1MB)".into())
}

/// Bytes of memory, of which a letter alone is a power of 1,024 (`64K`, `256m`, `2G`).
///
/// # Errors
///
/// If it is no whole number of them.
pub fn memory(text: &str) -> Result<u64, String> {
    let of = |letter: &str| match letter {
        "k" | "K" => unit("KiB"),
        "m" | "M" => unit("MiB"),
        "g" | "G" => unit("GiB"),
        "t" | "T" => unit("TiB"),
        other => unit(other),
    };
    whole(text, of).ok_or_else(|| "not a number of bytes (8192, 64K, 256M, 2GiB; 1MB is 1,000,000)".into())
}

/// Without a unit a whole number; with one to the nearest byte.
fn whole(text: &str, unit: impl Fn(&str) -> Option<f64>) -> Option<u64> {
    let measured = || {
        let (number, of) = parts(text).filter(|(_, of)| !of.is_empty())?;
        Some(number * unit(of)?).filter(|n| *n < 9e15).map(rounded)
    };
    text.parse().ok().or_else(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(
            (bytes("8192"), bytes("64KiB"), bytes("1MB"), bytes("0")),
            (Ok(8192), Ok(65536), Ok(1_000_000), Ok(0))
        );
        assert_eq!((bytes("18446744073709551615"), bytes("1.001kB")), (Ok(u64::MAX), Ok(1_001)));
        for wrong in ["", "M", "-1", "1.5", "1iB", "5MiBiB", "1 X", "inf", "99999999TB", "99999999999G"] {
            assert!(bytes(wrong).is_err() && memory(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn letters_alone_are_binary_where_they_mean_memory() {
        let letters = ["256", "64K", "20k", "256M", "256m", "2G", "0.5G"];
        let bytes = [256, 65_536, 20 << 10, 256 << 20, 256 << 20, 2 << 30, 1 << 29];
        assert_eq!(letters.map(memory), bytes.map(Ok));
        assert_eq!((memory("256MiB"), memory("256MB")), (Ok(256 << 20), Ok(256_000_000)));
    }
}
