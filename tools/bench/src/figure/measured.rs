//! What was measured: values by program, series and place on the axis.

use std::collections::BTreeMap;
use std::io::Read;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use st_model::num::float;

use crate::stats::{Estimate, estimate};

/// A row of what an experiment prints.
#[derive(Deserialize)]
struct Row {
    program: String,
    series: String,
    x: String,
    #[expect(dead_code, reason = "tells rows apart for who reads them")]
    run: String,
    value: f64,
}

/// Values of one program and series at each place.
pub(super) type Series = BTreeMap<usize, Vec<f64>>;

/// All values. Programs, series and places are in the order in which they first came, places that are numbers by number.
#[derive(Default, Debug)]
pub(super) struct Measured {
    pub(super) programs: Vec<String>,
    pub(super) series: Vec<String>,
    /// What stands at the axis.
    pub(super) places: Vec<String>,
    values: BTreeMap<(usize, usize), Series>,
}

/// The number of a name.
fn number(names: &mut Vec<String>, name: String) -> usize {
    names.iter().position(|n| *n == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

impl Measured {
    /// Adds rows.
    pub(super) fn read(&mut self, from: impl Read) -> Result<()> {
        for row in csv::Reader::from_reader(from).deserialize() {
            let row: Row = row.context("program,series,x,run,value were expected")?;
            if !row.value.is_finite() {
                bail!("{} {} {}: {} is no value", row.program, row.series, row.x, row.value);
            }
            let key = (number(&mut self.programs, row.program), number(&mut self.series, row.series));
            let place = number(&mut self.places, row.x);
            self.values.entry(key).or_default().entry(place).or_default().push(row.value);
        }
        Ok(())
    }

    /// Where places are on the axis: the numbers that they are, or else one after the other.
    pub(super) fn axis(&self) -> Vec<f64> {
        let numbers: Option<Vec<f64>> = self.places.iter().map(|p| p.parse().ok()).collect();
        numbers.unwrap_or_else(|| (0_u128..).zip(&self.places).map(|(i, _)| float(i)).collect())
    }

    /// What was measured of a program in a series, in the order of the axis: where, and what.
    pub(super) fn points(&self, program: usize, series: usize) -> Vec<(usize, Estimate)> {
        let axis = self.axis();
        let of = self.values.get(&(program, series));
        let mut points: Vec<_> =
            of.into_iter().flatten().map(|(place, values)| (*place, estimate(values))).collect();
        points.sort_by(|a, b| axis[a.0].total_cmp(&axis[b.0]));
        points
    }

    /// All values of a program in a series, of each run.
    pub(super) fn all(&self, program: usize, series: usize) -> impl Iterator<Item = f64> {
        self.values.get(&(program, series)).into_iter().flat_map(BTreeMap::values).flatten().copied()
    }

    /// The number of a series.
    pub(super) fn series_named(&self, name: &str) -> Option<usize> {
        self.series.iter().position(|s| s == name)
    }

    /// All points with their names and numbers of runs.
    fn rows(&self) -> impl Iterator<Item = ([&str; 3], usize, Estimate)> {
        let keys = (0..self.programs.len()).flat_map(|p| (0..self.series.len()).map(move |s| (p, s)));
        keys.flat_map(move |(p, s)| {
            self.points(p, s).into_iter().map(move |(place, found)| {
                let runs = self.values.get(&(p, s)).and_then(|of| of.get(&place)).map_or(0, Vec::len);
                ([&self.programs[p][..], &self.series[s], &self.places[place]], runs, found)
            })
        })
    }

    /// As CSV.
    pub(super) fn csv(&self) -> Result<String> {
        let mut out = csv::Writer::from_writer(Vec::new());
        out.write_record(["program", "series", "x", "runs", "median", "low", "high"])?;
        for ([program, series, place], runs, found) in self.rows() {
            let numbers = [found.median, found.low, found.high].map(|n| n.to_string());
            let [median, low, high] = &numbers;
            out.write_record([program, series, place, &runs.to_string(), median, low, high])?;
        }
        Ok(String::from_utf8(out.into_inner()?)?)
    }

    /// For people.
    pub(super) fn table(&self) -> String {
        let rows: Vec<Vec<String>> = self
            .rows()
            .map(|(names, runs, found)| {
                let shown = if found.low < found.high {
                    format!("{} ({}–{})", short(found.median), short(found.low), short(found.high))
                } else {
                    short(found.median)
                };
                names.into_iter().map(str::to_owned).chain([shown, format!("{runs}")]).collect()
            })
            .collect();
        let width = |i: usize| rows.iter().map(|row: &Vec<String>| row[i].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..5).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        rows.iter().map(line).collect()
    }
}

/// A number with three digits that tell something.
pub(super) fn short(n: f64) -> String {
    match n.abs() {
        a if a >= 100.0 || n.fract() == 0.0 => format!("{n:.0}"),
        a if a >= 10.0 => format!("{n:.1}"),
        a if a >= 1.0 => format!("{n:.2}"),
        _ => format!("{n:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_medians_in_the_order_of_the_axis() {
        let mut all = Measured::default();
        let rows =
            "program,series,x,run,value\na,s,64,1,3\na,s,16,1,1\na,s,64,2,5\na,s,64,3,4\nb,t,16,1,0.25\n";
        all.read(rows.as_bytes()).unwrap();
        let found: Vec<(f64, f64)> =
            all.points(0, 0).into_iter().map(|(place, e)| (all.axis()[place], e.median)).collect();
        assert_eq!(found, [(16.0, 1.0), (64.0, 4.0)]);
        assert_eq!(
            all.csv().unwrap(),
            "program,series,x,runs,median,low,high\na,s,16,1,1,1,1\na,s,64,3,4,3,5\nb,t,16,1,0.25,0.25,0.25\n"
        );
        assert_eq!(all.table(), "a  s  16  1        1\na  s  64  4 (3–5)  3\nb  t  16  0.250    1\n");
        assert!(all.read("program,series,x,run,value\na,s,1,1,nan\n".as_bytes()).is_err());
        assert!(all.read("a,b\n1,2\n".as_bytes()).is_err());
    }
}
