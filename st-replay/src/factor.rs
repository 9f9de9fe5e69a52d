//! Factors as people write them, exact.

use st_model::num::saturate;
use std::str::FromStr;

/// A number from 0 up with at most nine decimals, as `0.5` or `2`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Factor {
    numerator: u64,
    denominator: u64,
}

impl Factor {
    /// One: leaves everything as it is.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// Whether it is one.
    #[must_use]
    pub fn is_one(self) -> bool {
        self.numerator == self.denominator
    }

    /// Whether it is larger than one.
    #[must_use]
    pub fn enlarges(self) -> bool {
        self.numerator > self.denominator
    }

    /// `n` times the factor, rounded down; the largest number there is if that is too large.
    #[must_use]
    pub fn down(self, n: i64) -> i64 {
        let product = i128::from(n) * i128::from(self.numerator);
        saturate(product.div_euclid(self.denominator.into()))
    }

    /// `n` times the factor, rounded up.
    #[must_use]
    pub fn up(self, n: i64) -> i64 {
        let product = i128::from(n) * i128::from(self.numerator) + i128::from(self.denominator) - 1;
        saturate(product.div_euclid(self.denominator.into()))
    }

    /// A time of `ns` times the factor.
    #[must_use]
    pub fn time(self, ns: u64) -> u64 {
        let product = u128::from(ns) * u128::from(self.numerator) / u128::from(self.denominator);
        saturate(product)
    }
}

impl FromStr for Factor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a factor is a number from 0 to 1000000 with at most nine decimals".to_owned();
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || whole.len() + decimals.len() == 0 {
            return Err(wrong());
        }
        let places = u32::try_from(decimals.len()).ok().filter(|n| *n <= 9).ok_or_else(wrong)?;
        let denominator = 10u64.pow(places);
        let part = |s: &str| if s.is_empty() { Ok(0) } else { s.parse::<u64>().map_err(|_| wrong()) };
        let whole = Some(part(whole)?).filter(|n| *n <= 1_000_000).ok_or_else(wrong)?;
        Ok(Self { numerator: whole * denominator + part(decimals)?, denominator })
    }
}

/// A function or call site, and a factor for the time before its calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scaled {
    /// `MPI_Send`, `main.c:12`, a function of the program, or a label.
    pub what: String,
    /// The factor.
    pub factor: Factor,
}

impl FromStr for Scaled {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (what, factor) = text.rsplit_once('=').ok_or("a function or call site, =, and a factor")?;
        if what.is_empty() {
            return Err("no function or call site".into());
        }
        Ok(Self { what: what.to_owned(), factor: factor.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_exact() {
        let f: Factor = "0.3".parse().unwrap();
        assert_eq!((f.down(10), f.up(10), f.down(9), f.up(9), f.down(0), f.up(0)), (3, 3, 2, 3, 0, 0));
        assert_eq!("2".parse::<Factor>().unwrap().down(i64::MAX), i64::MAX);
        assert_eq!(".5".parse::<Factor>().unwrap().time(3), 1);
        assert!("1.000".parse::<Factor>().unwrap().is_one());
        assert!("1.001".parse::<Factor>().unwrap().enlarges());
    }

    #[test]
    fn what_is_no_factor_is_refused() {
        for text in ["", ".", "-1", "1e3", "0.1234567890", "1000001", "nan", "99999999999999999999"] {
            assert!(text.parse::<Factor>().is_err(), "{text}");
        }
    }
}
