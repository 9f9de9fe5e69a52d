//! The formats, each a module with its `KIND`.

// Declared one by one, and not by a macro, for rustfmt to find them; who is not in the list is unused, which is an error.
mod arrow;
mod chrome;
mod csv;
mod cube;
mod extrap;
mod goal;
mod otf2;
mod paraver;
mod parquet;
mod perfetto;
mod simgrid;

use std::path::Path;

use crate::format::FormatKind;

/// All formats, in the order in which they are listed.
pub(crate) const ALL: &[&FormatKind] = &[
    &perfetto::KIND,
    &chrome::KIND,
    &csv::KIND,
    &parquet::KIND,
    &arrow::KIND,
    &otf2::KIND,
    &simgrid::KIND,
    &goal::KIND,
    &paraver::KIND,
    &extrap::KIND,
    &cube::KIND,
];

/// Names of all formats.
pub(crate) fn names() -> Vec<&'static str> {
    ALL.iter().map(|kind| kind.name).collect()
}

pub(crate) fn by_name(name: &str) -> Option<&'static FormatKind> {
    ALL.iter().copied().find(|kind| kind.name == name)
}

/// The format whose ending a name has.
pub(crate) fn by_ending(path: &Path) -> Option<&'static FormatKind> {
    let name = path.file_name()?.to_str()?;
    ALL.iter().copied().find(|kind| kind.endings.iter().any(|ending| name.ends_with(ending)))
}
