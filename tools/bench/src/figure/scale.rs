//! Axes of pictures.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, Ranged, ValueFormatter};
use plotters::prelude::{DrawingArea, SVGBackend};
use st_model::num::float;

use super::measured::short;

/// Where something is drawn.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// An axis from one value to another, by their logarithms if wanted.
#[derive(Clone)]
pub(super) struct Scale {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) log: bool,
    /// Names of places that are no numbers.
    pub(super) names: Vec<String>,
}

impl Scale {
    /// Around values.
    pub(super) fn around(values: impl Iterator<Item = f64> + Clone, log: bool, names: Vec<String>) -> Self {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        let log = log && low > 0.0;
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let (from, to) = if log {
            (low / 1.3, high * 1.3)
        } else {
            let room = ((high - low) * 0.05).max(0.5_f64.min(high.abs() * 0.1).max(1e-9));
            (if low >= 0.0 { (low - room).max(0.0) } else { low - room }, high + room)
        };
        Self { from, to, log, names }
    }

    fn share(&self, value: f64) -> f64 {
        if self.log {
            (value.max(self.from).ln() - self.from.ln()) / (self.to.ln() - self.from.ln())
        } else {
            (value - self.from) / (self.to - self.from)
        }
    }
}

impl Ranged for Scale {
    type FormatOption = plotters::coord::ranged1d::NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let at = f64::from(limit.0) + self.share(*value) * f64::from(limit.1 - limit.0);
        #[expect(clippy::cast_possible_truncation, reason = "pixels")]
        let pixel = at.round() as i32;
        pixel
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if !self.names.is_empty() {
            return (0_u128..).zip(&self.names).map(|(i, _)| float(i)).collect();
        }
        if !self.log {
            let linear: plotters::coord::types::RangedCoordf64 = (self.from..self.to).into();
            return linear.key_points(hint);
        }
        // Powers of two where there is room for them, else of larger numbers.
        let powers = |base: f64| -> Vec<f64> {
            let first = (self.from.ln() / base.ln()).ceil();
            let all = std::iter::successors(Some(first), |n| Some(n + 1.0)).map(|n| base.powf(n));
            all.take_while(|v| *v <= self.to).take(60).collect()
        };
        [2.0, 4.0, 10.0, 100.0]
            .into_iter()
            .map(powers)
            .find(|v| v.len() <= hint.max_num_points().min(10))
            .unwrap_or_default()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.from..self.to
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(value: &f64) -> String {
        short(*value)
    }

    fn format_ext(&self, value: &f64) -> String {
        let named = (0_u32..).zip(&self.names).find(|(i, _)| f64::from(*i).total_cmp(value).is_eq());
        named.map_or_else(|| short(*value), |(_, name)| name.clone())
    }
}
