//! The call table: its rows by number and by name.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use super::{CallId, Row, Slot, TABLE, parse};

/// Why a table text is not a call table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("call table: line {line}: {what}")]
pub struct TableError {
    line: usize,
    what: String,
}

/// The table: rows by number and by name.
#[derive(Clone, Debug, Default)]
pub struct CallTable {
    rows: Vec<Row>,
    /// Where the row of each number is.
    by_id: Vec<Option<usize>>,
    by_name: HashMap<String, usize>,
}

impl CallTable {
    /// The built-in table.
    ///
    /// # Panics
    ///
    /// Never in a tested build: a unit test parses the same text.
    #[must_use]
    #[expect(clippy::expect_used, reason = "the embedded table is tested to parse")]
    pub fn builtin() -> &'static Self {
        static BUILTIN: OnceLock<CallTable> = OnceLock::new();
        BUILTIN.get_or_init(|| Self::parse(TABLE).expect("the embedded call table parses"))
    }

    /// Reads a table text.
    ///
    /// # Errors
    ///
    /// With the line of the first fault: an unknown role or property, a length that names no parameter, a
    /// number or name used twice, a row like one that is not there or like another such row.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        let mut table = Self::default();
        let mut alike = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let row = parse::row(line).map_err(|what| TableError { line: i + 1, what })?;
            let at = table.rows.len();
            let number = usize::from(row.id.0);
            if table.by_id.len() <= number {
                table.by_id.resize(number + 1, None);
            }
            if table.by_id[number].replace(at).is_some()
                || table.by_name.insert(row.name.clone(), at).is_some()
            {
                return Err(TableError { line: i + 1, what: format!("{} is listed twice", row.name) });
            }
            if row.like.is_some() {
                alike.push((i + 1, at));
            }
            table.rows.push(row);
        }
        for (line, at) in alike {
            table.resolve(at).map_err(|what| TableError { line, what })?;
        }
        Ok(table)
    }

    /// Gives a row the roles of the one that it is like.
    fn resolve(&mut self, at: usize) -> Result<(), String> {
        let name = self.rows[at].base();
        let base = self.by_name(name).ok_or_else(|| format!("{name} is not listed"))?;
        if base.like.is_some() {
            return Err(format!("{name} is like another itself"));
        }
        let (params, slots) = (base.params.clone(), base.slots.clone());
        let (kind, properties, base_id) = (base.kind, base.properties, base.id);
        let row = &mut self.rows[at];
        (row.params, row.slots, row.kind, row.properties) = (params, slots, kind, properties);
        row.base_id = base_id;
        Ok(())
    }

    /// All rows, in table order.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
    /// The row of a number; `None` for an unknown function.
    #[must_use]
    pub fn get(&self, id: CallId) -> Option<&Row> {
        self.by_id.get(usize::from(id.0)).copied().flatten().map(|i| &self.rows[i])
    }
    /// The row of a function by its MPI name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Row> {
        self.by_name.get(name).map(|&i| &self.rows[i])
    }
    /// Slots of a call; none for a function outside the table.
    #[must_use]
    pub fn slots(&self, id: CallId) -> &[Slot] {
        self.get(id).map_or(&[], |r| &r.slots)
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match CallTable::builtin().get(*self) {
            Some(row) => f.write_str(&row.name),
            None => write!(f, "call {}", self.0),
        }
    }
}
