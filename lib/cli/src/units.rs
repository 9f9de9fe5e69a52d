//! Amounts for people.

use st_model::num::narrow;

use crate::screen::grouped;

/// Three significant digits and a unit: `1.23 ms`.
#[must_use]
pub fn duration(ns: u64) -> String {
    scaled(ns, &[("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)])
}

/// Three significant digits and a unit: `150 kB`.
#[must_use]
pub fn bytes(n: u64) -> String {
    scaled(n, &[("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000)])
}

fn scaled(n: u64, units: &[(&str, u64)]) -> String {
    let (unit, one) = units.iter().rev().find(|(_, one)| n >= *one).copied().unwrap_or((units[0].0, 1));
    let whole = n / one;
    let thousandths = narrow::<u64>(u128::from(n % one) * 1000 / u128::from(one));
    match whole {
        _ if one == 1 => format!("{n} {unit}"),
        100.. => format!("{} {unit}", grouped(whole)),
        10..100 => format!("{whole}.{} {unit}", thousandths / 100),
        _ => format!("{whole}.{:02} {unit}", thousandths / 10),
    }
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
    }
}
