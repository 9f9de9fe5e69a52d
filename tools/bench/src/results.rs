//! Files of results: one for each group, CSV with a line of facts in front.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::stats::Estimate;

/// Where and when a group was measured.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub(crate) struct About {
    /// Day, as 2026-11-23.
    pub date: String,
    /// Commit, with a plus if the tree was not as committed.
    pub commit: String,
    /// Processor and system.
    pub machine: String,
    /// Compiler and MPIs.
    pub software: String,
    /// Least and largest load (processes that want a processor, mean of a minute) while it was measured.
    pub load: (f64, f64),
}

/// What was measured of a case.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub(crate) struct Row {
    /// The case.
    pub case: String,
    /// What of it, with its unit.
    pub measure: String,
    /// Median of the runs.
    pub median: f64,
    /// Ends of the interval of the median (95 %).
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Least value.
    pub least: f64,
    /// Largest value.
    pub most: f64,
    /// Number of runs.
    pub runs: usize,
}

impl Row {
    /// A row of all values that were measured.
    pub(crate) fn new(case: &str, measure: &str, values: &[f64]) -> Self {
        let Estimate { median, low, high } = crate::stats::estimate(values);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (case, measure) = (case.to_owned(), measure.to_owned());
        Self { case, measure, median, low, high, least, most, runs: values.len() }
    }
}

/// A file of results.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// Facts.
    pub about: About,
    /// Rows by case and measure.
    pub rows: BTreeMap<(String, String), Row>,
}

/// Where the results of a group are.
pub(crate) fn path(root: &Path, group: &str) -> PathBuf {
    root.join("benchmarks").join(format!("{group}.csv"))
}

impl Results {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it is not there, or is not one of results.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        let text = fs::read_to_string(path).with_context(|| format!("{name}: cannot read"))?;
        let Some((about, rows)) = text.strip_prefix("# ").and_then(|t| t.split_once('\n')) else {
            bail!("{name}: the first line is not # and facts as JSON");
        };
        let about = serde_json::from_str(about).with_context(|| format!("{name}: the facts in line 1"))?;
        let mut out = Self { about, rows: BTreeMap::new() };
        for row in csv::Reader::from_reader(rows.as_bytes()).deserialize() {
            let row: Row = row.with_context(|| format!("{name}: a row"))?;
            out.rows.insert((row.case.clone(), row.measure.clone()), row);
        }
        Ok(out)
    }

    /// Writes a file.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let mut rows = csv::Writer::from_writer(Vec::new());
        for row in self.rows.values() {
            rows.serialize(row)?;
        }
        let mut text = format!("# {}\n", serde_json::to_string(&self.about)?).into_bytes();
        text.extend(rows.into_inner()?);
        fs::write(path, text).with_context(|| format!("{}: cannot write", path.display()))
    }
}
