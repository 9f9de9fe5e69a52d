//! One table, three forms: aligned text for people, CSV and JSON for programs.

use st_model::num::saturate;
use st_model::ranklist::RankList;
use st_model::ranklist_notation::plain;
use std::io::{self, Write};

use clap::ValueEnum;
use serde_json::{Map, Value};
use st_cli::{Screen, wrapped};
pub use st_cli::{bytes, duration, grouped};

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
    /// The same behind a line that has the columns, for the Python package: whether each is of numbers, under its name.
    #[value(hide = true)]
    Typed,
}

/// A value with what it looks like to people.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// For CSV and JSON.
    pub value: Value,
    /// For text.
    pub text: String,
    /// For text without room for all of it.
    pub brief: Option<String>,
}

impl Cell {
    /// A text.
    pub fn text(s: impl Into<String>) -> Self {
        let text = s.into();
        Self { value: Value::from(text.clone()), text, brief: None }
    }
    /// A value that people see as a text.
    pub fn shown(value: Value, text: impl Into<String>) -> Self {
        Self { value, ..Self::text(text) }
    }
    /// A number.
    #[must_use]
    pub fn count(n: u64) -> Self {
        Self::shown(n.into(), grouped(n))
    }
    /// A number of bytes.
    #[must_use]
    pub fn bytes(n: u128) -> Self {
        let n = saturate::<u64>(n);
        Self::shown(n.into(), bytes(n))
    }
    /// A time in ns.
    #[must_use]
    pub fn ns(n: u128) -> Self {
        let n = saturate::<u64>(n);
        Self::shown(n.into(), duration(n))
    }
    /// A share of a whole in percent, to a tenth.
    #[must_use]
    pub fn percent(part: u128, whole: u128) -> Self {
        let tenths = if whole == 0 { 0 } else { (part * 2000 + whole) / (whole * 2) };
        let text = format!("{}.{}", tenths / 10, tenths % 10);
        Self::shown(text.parse().map_or(Value::Null, |v: f64| v.into()), text + " %")
    }
    /// A number with so many decimals, and its unit.
    #[must_use]
    pub fn number(value: Option<f64>, decimals: usize, unit: &str) -> Self {
        let Some(value) = value else { return Self::none() };
        let mut text = format!("{value:.decimals$}");
        if text.bytes().all(|b| b"-0.".contains(&b)) {
            text = text.replace('-', "");
        }
        Self::shown(text.parse::<f64>().map_or(Value::Null, Value::from), text + unit)
    }
    /// The same with a sign for people also where it is above 0.
    #[must_use]
    pub fn signed(self) -> Self {
        let above = self.value.as_f64().is_some_and(|v| v > 0.0);
        Self { text: if above { format!("+{}", self.text) } else { self.text }, ..self }
    }
    /// Nothing to say.
    #[must_use]
    pub fn none() -> Self {
        Self::shown(Value::Null, "-")
    }
}

/// A column of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// Over it, for people.
    pub title: &'static str,
    /// Its name in CSV and JSON, which ends with the unit of its numbers.
    pub key: &'static str,
    /// Where it stands and what becomes of it where there is little room.
    pub fit: Fit,
    /// Whether it goes where nothing else makes the table fit.
    pub spare: bool,
}

/// Where what is in a column stands, and what becomes of the column where a table is too wide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// On the left; is cut short after all others.
    Left,
    /// On the left; is cut short first, at its end.
    Head,
    /// On the left; is cut short first, at its beginning.
    Tail,
    /// On the right; goes in turn, that with the highest number first; 0 stays.
    Right(u8),
}

impl Column {
    /// Texts.
    #[must_use]
    pub const fn left(title: &'static str, key: &'static str) -> Self {
        Self { title, key, fit: Fit::Left, spare: false }
    }
    /// Texts whose ends say most.
    #[must_use]
    pub const fn tail(title: &'static str, key: &'static str) -> Self {
        Self { title, key, fit: Fit::Tail, spare: false }
    }
    /// Texts whose beginnings say most.
    #[must_use]
    pub const fn head(title: &'static str, key: &'static str) -> Self {
        Self { title, key, fit: Fit::Head, spare: false }
    }
    /// Numbers. Columns with high numbers in `goes` go first where there is no room; with 0 the column stays.
    #[must_use]
    pub const fn right(title: &'static str, key: &'static str, goes: u8) -> Self {
        Self { title, key, fit: Fit::Right(goes), spare: false }
    }
    /// The same, but it goes where nothing else makes the table fit; of several the last goes first.
    #[must_use]
    pub const fn spare(self) -> Self {
        Self { spare: true, ..self }
    }
    /// Whether it is cut short first.
    fn is_long(&self) -> bool {
        matches!(self.fit, Fit::Head | Fit::Tail)
    }
}

/// Columns with names, and rows.
#[derive(Clone, Debug)]
pub struct Table {
    /// What the columns are.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
    /// What they come to, for people: other forms have one kind of rows.
    pub total: Option<Vec<Cell>>,
}

/// Fewest characters that a column is cut short to: four of them and two numbers fit into 80.
const LEAST: usize = 15;

/// Fewest of one whose end says most, where nothing else makes a table fit: a line's number is still there.
const END: usize = 10;

impl Table {
    /// Writes the table; as text, to fit the screen.
    ///
    /// # Errors
    ///
    /// If writing fails.
    pub fn write(&self, format: Format, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Text => self.write_text(screen, out),
            Format::Csv => self.write_csv(out),
            Format::Json => self.write_json(out),
            Format::Typed => {
                let numbers = |column: &Column| Value::from(matches!(column.fit, Fit::Right(_)));
                let types: Map<String, Value> =
                    self.columns.iter().map(|column| (column.key.to_owned(), numbers(column))).collect();
                writeln!(out, "{}", Value::Object(types))?;
                self.write_json(out)
            }
        }
    }

    fn write_text(&self, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        let widths = self.widths(screen.width);
        let header: Vec<Cell> = self.columns.iter().map(|c| Cell::text(c.title)).collect();
        for (i, row) in std::iter::once(&header).chain(self.shown()).enumerate() {
            let mut line = String::new();
            for ((cell, width), column) in row.iter().zip(&widths).zip(&self.columns) {
                let Some(width) = *width else { continue };
                if !line.is_empty() {
                    line.push_str("  ");
                }
                let brief = cell.brief.as_ref().filter(|_| cell.text.chars().count() > width);
                let text = shortened(brief.unwrap_or(&cell.text), width, column.fit == Fit::Tail);
                match column.fit {
                    Fit::Right(_) => line.push_str(&format!("{text:>width$}")),
                    _ => line.push_str(&format!("{text:<width$}")),
                }
            }
            let line = line.trim_end();
            writeln!(out, "{}", if i == 0 { screen.bold(line) } else { line.to_owned() })?;
        }
        let gone: Vec<_> = self.columns.iter().zip(&widths).filter(|(_, w)| w.is_none()).collect();
        if !gone.is_empty() {
            let names: Vec<_> = gone.iter().map(|(c, _)| c.title).collect();
            let hint = format!("(no room for: {}; COLUMNS=200 or --format csv shows all)", names.join(", "));
            for line in wrapped(hint.split(' '), screen.width, ["", " "]) {
                writeln!(out, "{}", screen.dim(&line))?;
            }
        }
        Ok(())
    }

    fn shown(&self) -> impl Iterator<Item = &Vec<Cell>> {
        self.rows.iter().chain(&self.total)
    }

    /// Width of each column, `None` of those that go.
    fn widths(&self, room: usize) -> Vec<Option<usize>> {
        let natural = |(i, c): (usize, &Column)| {
            let cells = self.shown().filter_map(|r| r.get(i)).map(|c| c.text.chars().count());
            Some(cells.chain([c.title.chars().count()]).max().unwrap_or(0))
        };
        let mut widths: Vec<Option<usize>> = self.columns.iter().enumerate().map(natural).collect();
        let excess = |widths: &[Option<usize>]| {
            let (n, sum) = widths.iter().flatten().fold((0usize, 0), |(n, sum), w| (n + 1, sum + w + 2));
            if n == 0 { 0 } else { (sum - 2).saturating_sub(room) }
        };
        // What stands first says what a row is of: it is cut short last.
        let cut = |widths: &mut Vec<Option<usize>>, long: bool, least: usize| {
            let texts = self.columns.iter().enumerate().filter(|(_, c)| !matches!(c.fit, Fit::Right(_)));
            for (i, column) in texts.filter(|(_, c)| c.is_long() == long).rev() {
                let excess = excess(widths);
                if let Some(w) = &mut widths[i] {
                    let least = least.max(column.title.chars().count()).min(*w);
                    *w = (*w).saturating_sub(excess).max(least);
                }
            }
        };
        cut(&mut widths, true, 2 * LEAST);
        let mut going: Vec<(u8, usize)> = Vec::new();
        for (i, column) in self.columns.iter().enumerate() {
            if let Fit::Right(goes @ 1..) = column.fit {
                going.push((goes, i));
            }
        }
        going.sort_unstable();
        while excess(&widths) > 0
            && let Some((_, i)) = going.pop()
        {
            widths[i] = None;
        }
        // What is free again belongs to what was cut short before.
        cut(&mut widths, false, LEAST);
        cut(&mut widths, true, LEAST);
        cut(&mut widths, true, END);
        for (i, _) in self.columns.iter().enumerate().filter(|(_, c)| c.spare).rev() {
            if excess(&widths) > 0 {
                widths[i] = None;
            }
        }
        self.grow(&mut widths, room);
        widths
    }

    /// Gives room that is left to texts that were cut short first.
    fn grow(&self, widths: &mut [Option<usize>], room: usize) {
        for (i, _) in self.columns.iter().enumerate().filter(|(_, c)| c.is_long()) {
            let taken: usize = widths.iter().flatten().map(|w| w + 2).sum::<usize>().saturating_sub(2);
            let longest = self.shown().filter_map(|r| r.get(i)).map(|c| c.text.chars().count()).max();
            if let (Some(w), Some(longest)) = (&mut widths[i], longest) {
                *w = (*w + room.saturating_sub(taken)).min(longest.max(*w));
            }
        }
    }

    fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(Vec::new());
        csv.write_record(self.columns.iter().map(|c| c.key))?;
        for row in &self.rows {
            csv.write_record(row.iter().map(|c| match &c.value {
                Value::Null => String::new(),
                Value::String(s) => s.clone(),
                v => v.to_string(),
            }))?;
        }
        // Its errors would hide the kind and the cause of those of `out`.
        out.write_all(&csv.into_inner().map_err(csv::IntoInnerError::into_error)?)
    }

    fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in &self.rows {
            let fields = self.columns.iter().zip(row);
            let object: Map<String, Value> =
                fields.map(|(column, c)| (column.key.to_owned(), c.value.clone())).collect();
            writeln!(out, "{}", Value::Object(object))?;
        }
        Ok(())
    }
}

/// As much of a text as there is room for: its end, or its beginning.
fn shortened(text: &str, width: usize, tail: bool) -> String {
    let n = text.chars().count();
    if n <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    if tail {
        let end: String = text.chars().skip(n - kept).collect();
        return format!("…{end}");
    }
    let beginning: String = text.chars().take(kept).collect();
    format!("{beginning}…")
}

/// `rank 3`, `ranks 0, 2`, `ranks 0-3, 8`.
pub(crate) fn ranks(all: &[u32]) -> String {
    named(&all.iter().copied().collect())
}

/// The same.
pub(crate) fn named(ranks: &RankList) -> String {
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, plain(ranks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_percentage() {
        assert_eq!(Cell::percent(1, 3).text, "33.3 %");
    }

    fn table() -> Table {
        Table {
            columns: vec![
                Column::left("call", "function"),
                Column::right("n", "calls", 0),
                Column::right("longest", "max_ns", 1),
                Column::tail("site", "site"),
            ],
            rows: vec![
                vec![Cell::text("MPI_Send"), Cell::count(1200), Cell::ns(1500), Cell::text("main a.c:1")],
                vec![Cell::text("a,b"), Cell::none(), Cell::none(), Cell::text("")],
            ],
            total: None,
        }
    }

    fn form(t: &Table, format: Format, width: usize) -> String {
        let mut out = Vec::new();
        t.write(format, Screen { width, colour: false }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn three_forms() {
        let text = "call          n  longest  site\nMPI_Send  1,200  1.50 µs  main a.c:1\na,b           -        -\n";
        assert_eq!(form(&table(), Format::Text, 80), text);
        let csv = "function,calls,max_ns,site\nMPI_Send,1200,1500,main a.c:1\n\"a,b\",,,\n";
        assert_eq!(form(&table(), Format::Csv, 10), csv);
        let json = "{\"function\":\"MPI_Send\",\"calls\":1200,\"max_ns\":1500,\"site\":\"main a.c:1\"}";
        assert_eq!(form(&table(), Format::Json, 10).lines().next(), Some(json));
        let typed = form(&table(), Format::Typed, 10);
        let types = r#"{"function":false,"calls":true,"max_ns":true,"site":false}"#;
        assert_eq!(typed.lines().take(2).collect::<Vec<_>>(), [types, json]);
    }

    #[test]
    fn what_a_row_is_of_is_cut_short_after_what_is_said_of_it() {
        let columns = vec![Column::left("part", "part"), Column::left("since", "cause")];
        let row =
            ["call sites, objects, heads", "the program's, and what comes with exact times"].map(Cell::text);
        let t = Table { columns, rows: vec![row.to_vec()], total: None };
        let text = form(&t, Format::Text, 60);
        assert!(text.contains("call sites, objects, heads  the program's, and what comes "), "{text}");
    }

    #[test]
    fn a_narrow_screen_gets_the_ends_of_places_and_fewer_numbers() {
        let mut t = table();
        t.rows[0][3] = Cell::text("a_long_function_of_the_program src/with/a/long/path/main.c:17");
        for width in 30..120 {
            let text = form(&t, Format::Text, width);
            let longest = text.lines().map(|l| l.chars().count()).max();
            assert!(longest <= Some(width.max(33)), "{width}: {text}");
            assert!(text.contains("main.c:17"), "{width}: {text}");
            assert_eq!(text.contains("1.50 µs"), !text.contains("no room for: longest"), "{text}");
        }
        assert!(form(&t, Format::Text, 40).contains("no room for: longest"));
        assert!(form(&t, Format::Text, 120).contains("a_long_function"));
        t.rows[0][3].brief = Some("main.c:17 …".into());
        assert!(form(&t, Format::Text, 60).contains("  main.c:17 …\n"));
        assert!(!form(&t, Format::Text, 120).contains('…'));
    }

    #[test]
    fn what_is_spare_goes_where_nothing_else_helps() {
        let mut t = table();
        t.columns[1] = t.columns[1].spare();
        assert!(form(&t, Format::Text, 33).contains("call          n  site"));
        let text = form(&t, Format::Text, 25);
        assert!(
            text.contains("call      site\nMPI_Send  main a.c:1\n")
                && text.contains("no room for: n, longest"),
            "{text}"
        );
    }

    #[test]
    fn four_long_texts_and_two_numbers_fit_into_80_columns() {
        let columns = vec![
            Column::left("function", "function"),
            Column::left("parameter", "parameter"),
            Column::right("bytes", "bytes", 0),
            Column::left("because of", "cause"),
            Column::right("site", "site", 0),
            Column::tail("place", "place"),
        ];
        let long = || Cell::text("a text that is longer than its column");
        let row = vec![long(), long(), Cell::count(7229), long(), Cell::count(9999), long()];
        let text = form(&Table { columns, rows: vec![row], total: None }, Format::Text, 80);
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    }
}
