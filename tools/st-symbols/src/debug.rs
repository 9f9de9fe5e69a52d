//! Where the files are that a module's names may come from.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection, ReadCache};
use st_model::sites::Module;

/// What a file says of itself.
pub(crate) struct Facts {
    /// Build-id in hexadecimal; empty if there is none.
    pub(crate) build_id: String,
    /// Whether there is line information.
    pub(crate) has_lines: bool,
    /// Whether there is a table of all symbols.
    pub(crate) has_symbols: bool,
}

/// What a file says of itself; nothing if it is no module, or no plain file: a hostile trace could name a device or a pipe.
pub(crate) fn facts(path: &Path) -> Option<Facts> {
    if !path.metadata().is_ok_and(|m| m.is_file()) {
        return None;
    }
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let mut build_id = String::new();
    for byte in file.build_id().ok()?.unwrap_or_default() {
        write!(build_id, "{byte:02x}").ok()?;
    }
    // Sections of debug files that have no content there are of size 0.
    let has = |name: &str| file.section_by_name(name).is_some_and(|s| s.size() > 0);
    let has_lines = has(".debug_info") || has(".zdebug_info");
    Some(Facts { build_id, has_lines, has_symbols: file.symbols().next().is_some() })
}

/// Files that debug information of a module may be in, the likeliest first.
///
/// Source: GDB manual, "Debugging Information in Separate Files".
pub(crate) fn candidates(module: &Module, directories: &[PathBuf]) -> Vec<PathBuf> {
    let path = Path::new(&module.path);
    let name = module.name();
    let by_id = module.build_id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty());
    let by_id = by_id.map(|(folder, rest)| format!(".build-id/{folder}/{rest}.debug"));
    let mut all = Vec::new();
    for directory in directories {
        all.extend(by_id.iter().map(|file| directory.join(file)));
        all.extend(path.strip_prefix("/").iter().map(|path| directory.join(path)));
        if !name.is_empty() {
            all.extend([directory.join(format!("{name}.debug")), directory.join(name)]);
        }
    }
    if let Some(folder) = path.parent().filter(|_| path.is_absolute()) {
        all.extend([folder.join(format!("{name}.debug")), folder.join(format!(".debug/{name}.debug"))]);
    }
    all.extend(by_id.map(|file| Path::new("/usr/lib/debug").join(file)));
    all
}
