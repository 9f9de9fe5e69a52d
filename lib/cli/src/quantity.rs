//! Times, bytes and rates as people write them.

use std::ops::RangeInclusive;
use std::time::Duration;

use st_model::num::{rounded, saturate};
pub use st_model::quantity::{bytes, memory};
use st_model::quantity::{parts, unit};

use crate::screen::grouped;

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

/// A time of less than some 18 minutes in whole ns: a number of these, or of the unit behind it.
///
/// # Errors
///
/// If it is none.
pub fn in_nanoseconds(text: &str) -> Result<i64, String> {
    let whole = text.parse().ok().or_else(|| nanoseconds(text).ok().map(|ns| saturate(rounded(ns))));
    let wrong =
        || "not a time from 0 to 1,099 s: a number of ns, or with its unit (500, 1.5us, 2ms)".to_owned();
    whole.filter(|ns| (0..1 << 40).contains(ns)).ok_or_else(wrong)
}

/// A time from 0 up: a number of seconds, or of another unit behind it.
///
/// # Errors
///
/// If it is none.
pub fn duration(text: &str) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds(text)?).map_err(|_| "too long".into())
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
    fn a_number_without_a_unit_is_of_what_it_always_was() {
        assert_eq!(
            ["500", "1.5us", "2 ms", "0"].map(in_nanoseconds),
            [Ok(500), Ok(1500), Ok(2_000_000), Ok(0)]
        );
        for wrong in ["", "-1", "1.5", "1e3", "1h", "1099511627776", "ns"] {
            assert!(in_nanoseconds(wrong).is_err(), "{wrong}");
        }
        let times = ["300", "5m", "250ms"].map(|text| duration(text).map(|time| time.as_millis()));
        assert_eq!(times, [Ok(300_000), Ok(300_000), Ok(250)]);
        assert!(duration("1e300").is_err() && duration("soon").is_err());
    }

    #[test]
    fn rates_have_units() {
        assert!(is(rate("12.5GB/s"), 12.5e9) && is(rate("1KiB"), 1024.0) && is(rate("800M"), 8e8));
        assert_eq!(rate("inf"), Ok(f64::INFINITY));
        for wrong in ["", "0", "0GB/s", "-1", "1 GB/h", "nan"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
