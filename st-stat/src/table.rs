//! One table, three forms: aligned text for people, CSV and JSON for programs.

use std::io::{self, Write};

use clap::ValueEnum;
use serde_json::{Map, Value};

/// Form of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Format {
    /// Aligned columns with units.
    #[default]
    Text,
    /// Comma-separated values with a header line; plain numbers.
    Csv,
    /// One JSON object per row and line; plain numbers.
    Json,
}

/// A value with what it looks like to people.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// For CSV and JSON.
    pub value: Value,
    /// For text.
    pub text: String,
}

impl Cell {
    /// A text.
    pub fn text(s: impl Into<String>) -> Self {
        let text = s.into();
        Self { value: Value::from(text.clone()), text }
    }
    /// A number.
    #[must_use]
    pub fn count(n: u64) -> Self {
        Self { value: Value::from(n), text: grouped(n) }
    }
    /// A number of bytes.
    #[must_use]
    pub fn bytes(n: u128) -> Self {
        let n = u64::try_from(n).unwrap_or(u64::MAX);
        Self { value: Value::from(n), text: bytes(n) }
    }
    /// A time in ns.
    #[must_use]
    pub fn ns(n: u128) -> Self {
        let n = u64::try_from(n).unwrap_or(u64::MAX);
        Self { value: Value::from(n), text: duration(n) }
    }
    /// A share of a whole in percent, to a tenth.
    #[must_use]
    pub fn percent(part: u128, whole: u128) -> Self {
        let tenths = if whole == 0 { 0 } else { (part * 2000 + whole) / (whole * 2) };
        let text = format!("{}.{}", tenths / 10, tenths % 10);
        Self { value: text.parse().map_or(Value::Null, |v: f64| Value::from(v)), text: text + " %" }
    }
    /// Nothing to say.
    #[must_use]
    pub fn none() -> Self {
        Self { value: Value::Null, text: "-".into() }
    }
}

/// Columns with names, and rows.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name of each column, and whether text in it starts at the left.
    pub columns: Vec<(&'static str, bool)>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Writes the table.
    ///
    /// # Errors
    ///
    /// If writing fails.
    pub fn write(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Text => self.write_text(out),
            Format::Csv => self.write_csv(out),
            Format::Json => self.write_json(out),
        }
    }

    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, (name, _))| {
                let cells = self.rows.iter().filter_map(|r| r.get(i)).map(|c| c.text.chars().count());
                cells.chain([name.len()]).max().unwrap_or(0)
            })
            .collect();
        let header: Vec<Cell> = self.columns.iter().map(|(name, _)| Cell::text(*name)).collect();
        for row in std::iter::once(&header).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, width), (_, left)) in row.iter().zip(&widths).zip(&self.columns) {
                let pad = " ".repeat(width.saturating_sub(cell.text.chars().count()));
                if !line.is_empty() {
                    line.push_str("  ");
                }
                if *left {
                    line.push_str(&cell.text);
                    line.push_str(&pad);
                } else {
                    line.push_str(&pad);
                    line.push_str(&cell.text);
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(self.columns.iter().map(|(name, _)| *name))?;
        for row in &self.rows {
            csv.write_record(row.iter().map(|c| match &c.value {
                Value::Null => String::new(),
                Value::String(s) => s.clone(),
                v => v.to_string(),
            }))?;
        }
        csv.flush()
    }

    fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in &self.rows {
            let fields = self.columns.iter().zip(row);
            let object: Map<String, Value> =
                fields.map(|((name, _), c)| ((*name).to_owned(), c.value.clone())).collect();
            writeln!(out, "{}", Value::Object(object))?;
        }
        Ok(())
    }
}

/// 33701 → `33,701`.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

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
    let thousandths = u64::try_from(u128::from(n % one) * 1000 / u128::from(one)).unwrap_or(0);
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
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(duration(999), "999 ns");
        assert_eq!(duration(1_234_567), "1.23 ms");
        assert_eq!(duration(61_000_000_000), "61.0 s");
        assert_eq!(bytes(150_400), "150 kB");
        assert_eq!(Cell::percent(1, 3).text, "33.3 %");
    }

    #[test]
    fn three_forms() {
        let t = Table {
            columns: vec![("call", true), ("n", false)],
            rows: vec![
                vec![Cell::text("MPI_Send"), Cell::count(1200)],
                vec![Cell::text("a,b"), Cell::none()],
            ],
        };
        let form = |f| {
            let mut out = Vec::new();
            t.write(f, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(form(Format::Text), "call          n\nMPI_Send  1,200\na,b           -\n");
        assert_eq!(form(Format::Csv), "call,n\nMPI_Send,1200\n\"a,b\",\n");
        assert_eq!(form(Format::Json), "{\"call\":\"MPI_Send\",\"n\":1200}\n{\"call\":\"a,b\",\"n\":null}\n");
    }
}
