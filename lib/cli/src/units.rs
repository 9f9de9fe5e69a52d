//! Amounts for people.

use st_stream::amount::{TIMES, Unit, scaled};

use crate::screen::grouped;

const BYTES: [Unit; 5] =
    [("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000)];

/// Three significant digits, rounded, and a unit: `1.23 ms`.
#[must_use]
pub fn duration(ns: u64) -> String {
    scaled(ns, &TIMES, grouped)
}

/// Three significant digits, rounded, and a unit: `150 kB`.
#[must_use]
pub fn bytes(n: u64) -> String {
    scaled(n, &BYTES, grouped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(duration(999), "999 ns");
        assert_eq!(duration(1_234_567), "1.23 ms");
        assert_eq!(duration(61_000_000_000), "61.0 s");
        assert_eq!(bytes(150_400), "150 kB");
        // They are rounded, also over to the next digit and unit.
        let all = [12_896, 1_005, 9_994, 9_995, 99_949, 99_950, 999_499, 999_500, 999_950];
        let shown = all.map(bytes);
        let expected =
            ["12.9", "1.01", "9.99", "10.0", "99.9", "100", "999", "1.00", "1.00"].map(str::to_owned);
        assert_eq!(shown.each_ref().map(|s| s.split(' ').next().unwrap().to_owned()), expected);
        assert_eq!((&*shown[6], &*shown[7]), ("999 kB", "1.00 MB"));
        assert_eq!([duration(999_499_999_999), duration(999_500_000_000)], ["999 s", "1,000 s"]);
        assert_eq!(duration(u64::MAX), "18,446,744,074 s");
    }

    #[test]
    fn what_is_shown_is_off_by_half_of_its_last_digit_at_most() {
        let around = |n: u64| (0..3).map(move |k| n.saturating_add(k).saturating_sub(1));
        let tens = (0..20).map(|power| 10u64.pow(power));
        let edges = tens.flat_map(|ten| [1, 5, 995, 9_995, 1_000].map(|n| ten.saturating_mul(n)));
        // Numbers of any length, by chance.
        let next =
            |n: &u64| Some(n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        let random = std::iter::successors(Some(1), next).take(20_000).enumerate();
        let random = random.map(|(i, n)| n >> (i % 64));
        for n in edges.flat_map(around).chain(random) {
            for (units, text) in [(&TIMES[..], duration(n)), (&BYTES[..], bytes(n))] {
                let (number, unit) = text.split_once(' ').unwrap();
                let one = units.iter().find(|(name, _)| *name == unit).unwrap().1;
                let digits = number.replace([',', '.'], "").parse::<i128>().unwrap();
                let decimals = number.split_once('.').map_or(0, |(_, after)| after.len());
                // In the unit's part that the last digit is, twice as large: halves are whole.
                let scale = 2 * 10i128.pow(u32::try_from(decimals).unwrap());
                let off = i128::from(n) * scale - 2 * digits * i128::from(one);
                let one = i128::from(one);
                assert!((-one..one).contains(&off), "{n}: {text}");
                assert!(
                    n < 1000 || number.contains(',') || number.replace('.', "").len() == 3,
                    "{n}: {text}"
                );
            }
        }
    }
}
