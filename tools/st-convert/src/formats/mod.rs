//! The formats, each a module with its `KIND`.

use std::path::Path;

use crate::format::FormatKind;

/// One name a format: that of its module.
macro_rules! formats {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*
        /// All formats.
        pub(crate) const ALL: &[&FormatKind] = &[$(&$module::KIND),*];
    };
}

formats! {
    perfetto,
    chrome,
    csv,
    parquet,
    otf2,
    simgrid,
    goal,
    paraver,
    extrap,
    cube,
}

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
