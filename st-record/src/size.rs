//! Sizes on the command line and in the environment.

/// Bytes in `256`, `64K`, `256M`, `256MiB` or `2G` (powers of 1,024; small letters will do).
///
/// # Errors
///
/// If it is none of these, or more than fits.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.strip_suffix("iB").unwrap_or(unit) {
        "" if unit.is_empty() => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        _ => return Err(format!("{text} is not a size; write 64K, 256M or 2G")),
    };
    let n: u64 = number.parse().map_err(|_| format!("{text} is not a size"))?;
    n.checked_mul(1 << shift).ok_or_else(|| format!("{text} is too much"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("256"), Ok(256));
        assert_eq!(parse_size("64K"), Ok(65_536));
        assert_eq!(parse_size("20k"), Ok(20 << 10));
        assert_eq!((parse_size("256MiB"), parse_size("256m")), (Ok(256 << 20), Ok(256 << 20)));
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        for bad in ["", "M", "1T", "1 M", "iB", "5iB", "5MiBiB", "99999999999G"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
