//! Times, bytes and rates as people write them.

/// A number and its unit.
fn parts(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

/// A time in ns.
pub(super) fn time(text: &str) -> Result<f64, String> {
    let wrong = || format!("{text}: a time from 0 up, with its unit (500ns, 1.5us, 2ms, 1s)");
    let (number, unit) = parts(text).ok_or_else(wrong)?;
    let one = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "" if number == 0.0 => 1.0,
        _ => return Err(wrong()),
    };
    Ok(number * one)
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
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let whole = parts(text).and_then(|(number, of)| Some(number * unit(of)?));
    let whole = whole.filter(|n| n.fract() == 0.0 && *n < 9e15);
    whole
        .map(st_model::num::rounded)
        .ok_or_else(|| format!("{text}: a number of bytes (8192, 64kB, 64KiB, 1MB)"))
}

/// Bytes per second, above 0; `inf` is a bandwidth without end.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    if text == "inf" {
        return Ok(f64::INFINITY);
    }
    let number = parts(text.strip_suffix("/s").unwrap_or(text));
    let rate = number.and_then(|(number, of)| Some(number * unit(of)?)).filter(|rate| *rate > 0.0);
    rate.ok_or_else(|| format!("{text}: bytes per second above 0 (12.5GB/s, 800MB/s, inf)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(a: Result<f64, String>, b: f64) -> bool {
        a.is_ok_and(|a| (a - b).abs() <= b * 1e-12)
    }

    #[test]
    fn quantities_have_units() {
        assert!(
            is(time("1.5us"), 1500.0) && is(time("2 ms"), 2e6) && is(time("0"), 0.0) && is(time("1s"), 1e9)
        );
        assert!(is(rate("12.5GB/s"), 12.5e9) && is(rate("1KiB"), 1024.0) && is(rate("800M"), 8e8));
        assert_eq!(rate("inf"), Ok(f64::INFINITY));
        assert_eq!(
            (bytes("8192"), bytes("64KiB"), bytes("1MB"), bytes("0")),
            (Ok(8192), Ok(65536), Ok(1_000_000), Ok(0))
        );
        for wrong in ["", "1", "-1us", "us", "1m", "1e3ns", "nan", "1.2.3s"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "-1", "1.5", "1iB", "1 X", "inf", "99999999TB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "0", "0GB/s", "-1", "1 GB/h", "nan"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
