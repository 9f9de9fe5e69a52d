//! Debug information and symbols of one module.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use addr2line::Loader;
use object::{Object, ObjectSymbol, ReadCache, SymbolKind};
use st_model::names::Location;
use st_model::sites::Module;

use crate::debug::{Facts, candidates, facts};

/// Why a module's names cannot be looked up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Missing {
    /// No file is there.
    Absent,
    /// What is there is another build: its build-id, empty if it has none.
    OtherBuild(String),
    /// The module has no build-id, and the file may have changed since.
    Unmarked,
    /// What is there cannot be read as a module.
    Unreadable,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("is not there"),
            Self::OtherBuild(found) if found.is_empty() => {
                f.write_str("is another build than the recorded one (without build-id)")
            }
            Self::OtherBuild(found) => write!(f, "is another build than the recorded one (build-id {found})"),
            Self::Unmarked => f.write_str("has no build-id, and may be another build than the recorded one"),
            Self::Unreadable => f.write_str("cannot be read as a program or library"),
        }
    }
}

/// An opened module.
pub(crate) struct Opened {
    /// Where its symbols are.
    symbols_in: PathBuf,
    /// Line information. Absent if there is none, or none that can be read.
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

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("symbols_in", &self.symbols_in).finish_non_exhaustive()
    }
}

impl Opened {
    /// Finds a module's files: the module itself, if it is the same build, and those with its debug information.
    pub(crate) fn find(
        module: &Module,
        directories: &[PathBuf],
        recorded: Option<SystemTime>,
    ) -> Result<Self, Missing> {
        let own = own_file(module, recorded);
        // Of debug files without build-id only those are believed that the user has named, for modules that have none either.
        let named = |path: &Path| directories.iter().any(|d| path.starts_with(d));
        let is_same = |path: &Path, found: &Facts| {
            found.build_id == module.build_id && (!found.build_id.is_empty() || named(path))
        };
        let separate = candidates(module, directories).into_iter();
        let separate =
            separate.filter_map(|path| facts(&path).filter(|f| is_same(&path, f)).map(|f| (path, f)));
        let mut files: Vec<(PathBuf, Facts)> = separate.collect();
        let missing = match own {
            Ok(facts) => {
                files.push((PathBuf::from(&module.path), facts));
                Missing::Absent
            }
            Err(missing) => missing,
        };
        let lines = files.iter().filter(|(_, f)| f.has_lines).find_map(|(path, _)| Loader::new(path).ok());
        let symbols = files.iter().find(|(_, f)| f.has_symbols).or(files.last());
        let symbols_in = symbols.map(|(path, _)| path.clone()).ok_or(missing)?;
        Ok(Self { symbols_in, lines, symbols: None })
    }

    /// Where a return address is; empty if nothing is known of it.
    pub(crate) fn locations(&mut self, offset: u64) -> Vec<Location> {
        let probe = offset.saturating_sub(1);
        let mut locations = self.by_lines(probe).unwrap_or_default();
        if locations.iter().any(|l| l.file.is_some() && l.function.is_some()) {
            return locations;
        }
        let Some(symbol) = self.symbol(probe) else { return locations };
        let (name, displacement) = (symbol.name.as_str().into(), offset - symbol.start);
        let mut last = locations.pop().unwrap_or_default();
        last.function.get_or_insert(name);
        if last.file.is_none() {
            last.displacement = Some(displacement);
        }
        locations.push(last);
        locations
    }

    fn by_lines(&self, probe: u64) -> Option<Vec<Location>> {
        let mut frames = self.lines.as_ref()?.find_frames(probe).ok()?;
        let mut locations = Vec::new();
        while let Some(frame) = frames.next().ok()? {
            let place = frame.location.as_ref();
            locations.push(Location {
                function: frame.function.and_then(|name| Some(name.demangle().ok()?.as_ref().into())),
                displacement: None,
                file: place.and_then(|p| p.file).map(Into::into),
                line: place.and_then(|p| p.line).filter(|&line| line > 0),
            });
        }
        Some(locations)
    }

    /// The function of the symbol table that contains an address, or the nearest before it.
    fn symbol(&mut self, address: u64) -> Option<&Symbol> {
        let symbols = self.symbols.get_or_insert_with(|| read_symbols(&self.symbols_in).unwrap_or_default());
        let i = symbols.partition_point(|s| s.start <= address).checked_sub(1)?;
        symbols.get(i).filter(|s| address < s.end)
    }
}

/// The facts of the file at the module's path, if it is the module.
fn own_file(module: &Module, recorded: Option<SystemTime>) -> Result<Facts, Missing> {
    let path = Path::new(&module.path);
    if !path.is_absolute() || !path.exists() {
        return Err(Missing::Absent);
    }
    let found = facts(path).ok_or(Missing::Unreadable)?;
    if found.build_id != module.build_id {
        return Err(Missing::OtherBuild(found.build_id));
    }
    let changed = path.metadata().and_then(|m| m.modified()).ok();
    let unchanged = recorded.zip(changed).is_some_and(|(recorded, changed)| changed <= recorded);
    if found.build_id.is_empty() && !unchanged { Err(Missing::Unmarked) } else { Ok(found) }
}

/// How far a function of a stripped file reaches beyond its end, bytes: one that cannot be linked to may follow it. Some
/// programs leave a function or two to be linked to, which are no name for all that comes after them.
const NEAR: u64 = 16 << 10;

/// Functions of the symbol table, or of the dynamic one in a stripped file, by address. Where the table has not all, a function
/// reaches to the next one that it has, within its section and no further than [`NEAR`].
fn read_symbols(path: &Path) -> Option<Vec<Symbol>> {
    let cache = ReadCache::new(std::fs::File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let mut found = Vec::new();
    let stripped = file.symbols().next().is_none();
    let all: Box<dyn Iterator<Item = object::Symbol<'_, '_, _>>> =
        if stripped { Box::new(file.dynamic_symbols()) } else { Box::new(file.symbols()) };
    for symbol in all.filter(|s| s.kind() == SymbolKind::Text && s.is_definition()) {
        let Some(name) = symbol.name().ok().filter(|name| !name.is_empty()) else { continue };
        let name = addr2line::demangle_auto(name.into(), None).into_owned();
        let start = symbol.address();
        let section = symbol.section_index().and_then(|i| file.section_by_index(i).ok());
        let section_end = section.map_or(start, |s| {
            use object::ObjectSection as _;
            s.address().saturating_add(s.size())
        });
        let size = symbol.size();
        found.push((Symbol { start, end: start.saturating_add(size), name }, section_end));
    }
    // Of names for one address (weak, versioned, local), the first in the alphabet, on every machine.
    found.sort_by(|(a, _), (b, _)| (a.start, &a.name).cmp(&(b.start, &b.name)));
    found.dedup_by_key(|(s, _)| s.start);
    let ends: Vec<u64> = found.iter().skip(1).map(|(s, _)| s.start).chain([u64::MAX]).collect();
    // A symbol written in assembly may have no size: it reaches to the next one.
    let reach = |((mut s, section_end), next): ((Symbol, u64), u64)| {
        if s.end == s.start {
            s.end = s.end.max(next.min(section_end));
        } else if stripped {
            s.end = s.end.max(next.min(section_end).min(s.end.saturating_add(NEAR)));
        }
        s
    };
    Some(found.into_iter().zip(ends).map(reach).collect())
}
