//! What is told of a figure beside its values, in a file of JSON.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::claims::Claim;
use super::measured::Measured;

/// What a figure is about.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct About {
    pub(super) title: String,
    /// Paper and section.
    pub(super) source: String,
    /// What the paper found.
    pub(super) paper: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// A matrix is drawn: from each series to each place on the axis.
    #[serde(default)]
    pub(super) matrix: bool,
    /// Series that are in the table and in claims, but not in the picture.
    #[serde(default)]
    pub(super) told: Vec<String>,
    pub(super) claims: Vec<Claim>,
}

impl About {
    /// The series that are drawn.
    pub(super) fn drawn(&self, measured: &Measured) -> impl Iterator<Item = usize> {
        (0..measured.series.len()).filter(|s| !self.told.contains(&measured.series[*s]))
    }
}

/// An axis.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Axis {
    pub(super) name: String,
    #[serde(default)]
    pub(super) log: bool,
    /// What it is instead in panels whose names end so.
    #[serde(default)]
    of: BTreeMap<String, String>,
}

impl Axis {
    /// What it is in a panel.
    pub(super) fn of(&self, panel: &str) -> &str {
        self.of.iter().find(|(end, _)| panel.ends_with(&end[..])).map_or(&self.name, |(_, name)| name)
    }
}
