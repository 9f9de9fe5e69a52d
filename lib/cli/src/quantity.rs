//! Times, bytes and rates as people write them.

use std::ops::RangeInclusive;

use st_model::num::rounded;

use crate::screen::grouped;

/// A number and its unit.
fn parts(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

/// Units of time, in seconds.
const TIMES: [(&str, f64); 9] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("h", 3_600.0),
    ("d", 86_400.0),
];

/// A time of so many seconds: a number of them, or of another unit behind it.
///
/// # Errors
///
/// If it is none, or not within the bounds.
pub fn within(text: &str, bounds: RangeInclusive<f64>) -> Result<f64, String> {
    let wrong =
        || "not a time: a number of seconds, or with ns, us, ms, s, m, h or d (0.25, 250ms, 10m)".to_owned();
    let seconds = match text.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let (number, unit) = parts(text).ok_or_else(wrong)?;
            number * TIMES.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1
        }
    };
    match (*bounds.start(), *bounds.end()) {
        _ if bounds.contains(&seconds) && seconds.is_finite() => Ok(seconds),
        (least, most) if most.is_finite() && !seconds.is_nan() => {
            Err(format!("not from {least} to {} seconds", grouped(rounded(most))))
        }
        _ => Err(wrong()),
    }
}

/// A time from 0 up, in seconds.
///
/// # Errors
///
/// If the text is none.
pub fn seconds(text: &str) -> Result<f64, String> {
    within(text, 0.0..=f64::INFINITY)
}

/// A time from 0 up, in ns, whose unit nobody must guess: it is written behind it.
///
/// # Errors
///
/// If it is none, or has no unit.
pub fn nanoseconds(text: &str) -> Result<f64, String> {
    let has_unit = text == "0" || text.parse::<f64>().is_err();
    let time = seconds(text).ok().filter(|_| has_unit);
    time.map(|s| s * 1e9).ok_or_else(|| "not a time from 0 up with its unit (500ns, 1.5us, 2ms, 1s)".into())
}

/// How many bytes a unit is.
fn unit(text: &str) -> Option<f64> {
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
    let whole = parts(text).and_then(|(number, of)| Some(number * unit(of)?));
    let whole = whole.filter(|n| n.fract() == 0.0 && *n < 9e15);
    whole.map(rounded).ok_or_else(|| "not a number of bytes (8192, 64kB, 64KiB, 1MB)".into())
}

/// Bytes per second, above 0; `inf` is a bandwidth without end.
///
/// # Errors
///
/// If it is none.
pub fn rate(text: &str) -> Result<f64, String> {
    if text == "inf" {
        return Ok(f64::INFINITY);
    }
    let number = parts(text.strip_suffix("/s").unwrap_or(text));
    let rate = number.and_then(|(number, of)| Some(number * unit(of)?)).filter(|rate| *rate > 0.0);
    rate.ok_or_else(|| "not bytes per second above 0 (12.5GB/s, 800MB/s, inf)".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(a: Result<f64, String>, b: f64) -> bool {
        a.is_ok_and(|a| (a - b).abs() <= b * 1e-12)
    }

    #[test]
    fn times_have_units() {
        let right = [
            ("90", 90.0),
            ("1.5s", 1.5),
            ("2 ms", 2e-3),
            ("1e-3", 1e-3),
            ("10us", 1e-5),
            ("2m", 120.0),
            ("0.5d", 43_200.0),
        ];
        for (text, expected) in right {
            assert!(is(seconds(text), expected), "{text}: {:?}", seconds(text));
        }
        assert!(is(nanoseconds("1.5us"), 1500.0) && is(nanoseconds("0"), 0.0) && is(nanoseconds("1s"), 1e9));
        for wrong in ["", "h", "-1", "-1h", "nan", "inf", "1y", "1e3ns", "1.2.3s", "us"] {
            assert!(seconds(wrong).is_err() && nanoseconds(wrong).is_err(), "{wrong}");
        }
        assert!(nanoseconds("1").is_err());
        assert_eq!(within("2d", 1.0..=86_400.0).unwrap_err(), "not from 1 to 86,400 seconds");
        assert_eq!(within("1m", 1e-6..=60.0), Ok(60.0));
    }

    #[test]
    fn bytes_have_units() {
        assert!(is(rate("12.5GB/s"), 12.5e9) && is(rate("1KiB"), 1024.0) && is(rate("800M"), 8e8));
        assert_eq!(rate("inf"), Ok(f64::INFINITY));
        assert_eq!(
            (bytes("8192"), bytes("64KiB"), bytes("1MB"), bytes("0")),
            (Ok(8192), Ok(65536), Ok(1_000_000), Ok(0))
        );
        for wrong in ["", "-1", "1.5", "1iB", "1 X", "inf", "99999999TB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "0", "0GB/s", "-1", "1 GB/h", "nan"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
