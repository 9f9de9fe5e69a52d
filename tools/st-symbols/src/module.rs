//! Debug information and symbols of one module.

use crate::Location;
use addr2line::Loader;
use object::{Object, ObjectSymbol, SymbolKind};
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

/// An opened module.
pub(crate) struct Module {
    /// Where it was found.
    path: PathBuf,
    /// Line information; from the separate debug file if there is one. Absent if it cannot be read.
    lines: Option<Loader>,
    /// By address; read when the first address without line information is asked for.
    symbols: Option<Vec<Symbol>>,
}

/// A function of the symbol table.
struct Symbol {
    start: u64,
    end: u64,
    name: String,
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Module {
    /// Opens the module at a path, unless it is another build.
    pub(crate) fn open(path: &str, build_id: &str) -> Option<Self> {
        let path = PathBuf::from(path);
        // Not a device or a pipe, which a hostile trace could name.
        if !path.is_absolute() || !path.metadata().is_ok_and(|m| m.is_file()) {
            return None;
        }
        let found = build_id_of(&path)?;
        if !build_id.is_empty() && found != build_id {
            return None;
        }
        let separate = debug_file(&found).filter(|file| file.is_file());
        let lines = separate.and_then(|file| Loader::new(file).ok()).or_else(|| Loader::new(&path).ok());
        Some(Self { path, lines, symbols: None })
    }
    /// Where a return address is; empty if nothing is known of it.
    pub(crate) fn locations(&mut self, module: &str, offset: u64) -> Vec<Location> {
        let probe = offset.saturating_sub(1);
        let mut locations = self.by_lines(module, offset, probe).unwrap_or_default();
        if locations.iter().any(|l| l.file.is_some() && l.function.is_some()) {
            return locations;
        }
        let Some(symbol) = self.symbol(probe) else { return locations };
        let (name, displacement) = (symbol.name.clone(), offset - symbol.start);
        let mut last = locations.pop().unwrap_or_else(|| Location {
            module: module.to_owned(),
            offset,
            function: None,
            displacement: None,
            file: None,
            line: None,
        });
        if last.function.is_none() {
            last.function = Some(name);
        }
        if last.file.is_none() {
            last.displacement = Some(displacement);
        }
        locations.push(last);
        locations
    }
    fn by_lines(&self, module: &str, offset: u64, probe: u64) -> Option<Vec<Location>> {
        let mut frames = self.lines.as_ref()?.find_frames(probe).ok()?;
        let mut locations = Vec::new();
        while let Some(frame) = frames.next().ok()? {
            let function = frame.function.and_then(|name| Some(name.demangle().ok()?.into_owned()));
            let place = frame.location;
            let file = place.as_ref().and_then(|p| p.file).map(str::to_owned);
            let line = place.and_then(|p| p.line).filter(|&line| line > 0);
            locations.push(Location {
                module: module.to_owned(),
                offset,
                function,
                displacement: None,
                file,
                line,
            });
        }
        Some(locations)
    }
    /// The function of the symbol table that contains an address.
    fn symbol(&mut self, address: u64) -> Option<&Symbol> {
        let symbols = self.symbols.get_or_insert_with(|| read_symbols(&self.path).unwrap_or_default());
        let i = symbols.partition_point(|s| s.start <= address).checked_sub(1)?;
        symbols.get(i).filter(|s| address < s.end)
    }
}

/// Functions of the symbol table, or of the dynamic one in a stripped file.
fn read_symbols(path: &Path) -> Option<Vec<Symbol>> {
    let data = std::fs::read(path).ok()?;
    let file = object::File::parse(&*data).ok()?;
    let function = |symbol: object::Symbol<'_, '_>| {
        let name = symbol.name().ok().filter(|name| !name.is_empty() && symbol.kind() == SymbolKind::Text)?;
        let name = addr2line::demangle_auto(name.into(), None).into_owned();
        let start = symbol.address();
        symbol.is_definition().then(|| Symbol { start, end: start.saturating_add(symbol.size()), name })
    };
    let mut symbols: Vec<Symbol> = file.symbols().filter_map(function).collect();
    if symbols.is_empty() {
        symbols = file.dynamic_symbols().filter_map(function).collect();
    }
    // Of names for one address (weak, versioned, local), the first in the alphabet, on every machine.
    symbols.sort_by(|a, b| (a.start, &a.name).cmp(&(b.start, &b.name)));
    symbols.dedup_by_key(|s| s.start);
    // A symbol written in assembly may have no size: it reaches to the next one.
    for i in 1..symbols.len() {
        let next = symbols.get(i).map_or(0, |s| s.start);
        if let Some(symbol) = symbols.get_mut(i - 1).filter(|s| s.end == s.start) {
            symbol.end = next;
        }
    }
    Some(symbols)
}

/// Build-id of a file in hexadecimal, empty if it has none; nothing if the file is no module.
fn build_id_of(path: &Path) -> Option<String> {
    let cache = object::ReadCache::new(std::fs::File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let mut hex = String::new();
    for byte in file.build_id().ok()?.unwrap_or_default() {
        write!(hex, "{byte:02x}").ok()?;
    }
    Some(hex)
}

/// Where distributions keep the debug information of a build.
///
/// Source: GDB manual, "Debugging Information in Separate Files".
fn debug_file(build_id: &str) -> Option<PathBuf> {
    let (folder, name) = build_id.split_at_checked(2).filter(|(_, name)| !name.is_empty())?;
    Some(PathBuf::from(format!("/usr/lib/debug/.build-id/{folder}/{name}.debug")))
}
