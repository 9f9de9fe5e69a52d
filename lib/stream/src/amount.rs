//! Amounts for people: three significant digits and a unit.

use st_model::num::narrow;

/// A name, and what one of it is.
pub type Unit = (&'static str, u64);

/// Units of times in ns.
pub const TIMES: [Unit; 4] = [("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// How many of a unit so many are, rounded, halves up.
fn rounded(n: u64, per_one: u64, one: u64) -> u64 {
    narrow((u128::from(n) * u128::from(per_one) * 2 + u128::from(one)) / (2 * u128::from(one)))
}

/// In the first unit in which it has three digits once it is rounded: those of the last one may be more, and are written as `many` says.
#[must_use]
pub fn scaled(n: u64, units: &[Unit], many: impl Fn(u64) -> String) -> String {
    let Some(((smallest, _), more)) = units.split_first() else { return n.to_string() };
    if n < 1000 {
        return format!("{n} {smallest}");
    }
    for (unit, one) in more {
        let [hundredths, tenths, whole] = [100, 10, 1].map(|per_one| rounded(n, per_one, *one));
        match (hundredths, tenths, whole) {
            (..1000, ..) => return format!("{}.{:02} {unit}", hundredths / 100, hundredths % 100),
            (_, ..1000, _) => return format!("{}.{} {unit}", tenths / 10, tenths % 10),
            (.., ..1000) => return format!("{whole} {unit}"),
            _ => {}
        }
    }
    let (unit, one) = units.last().copied().unwrap_or(("", 1));
    format!("{} {unit}", many(rounded(n, 1, one)))
}
