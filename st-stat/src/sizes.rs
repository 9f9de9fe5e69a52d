//! Where the bytes of a stream go: per kind of frame, per call site, per parameter, and what made them grow.
//!
//! A compressed frame cannot be cut into pieces, so its bytes are shared out among its pieces in proportion to what they
//! take before compression: the pieces of a kind of frame add up to it.

use st_model::num::{Exact, saturate};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use st_cli::options::{StreamIn, Talk};
use st_cli::{Amount, Input, UsageError, Whole, expand};
use st_model::calls::CallTable;
use st_model::section::{Section, Sym};
use st_model::sites::CallSites;
use st_stream::{FrameKind, FrameSize, Piece, PieceSize, ReadOptions, frame_sizes, piece_sizes, read};

use crate::args::{SizesArgs, SizesBy};
use crate::calls::{SITE, function, site_cells, site_of};
use crate::input::NAME;
use crate::table::{Cell, Column, Table};

/// A stream's frames and sections.
pub(crate) struct Sizes {
    /// What the stream is called.
    pub(crate) name: String,
    /// Bytes of the whole file.
    pub(crate) file: u64,
    pub(crate) frames: Vec<FrameSize>,
    pub(crate) sections: Vec<Section>,
    /// The level of compression.
    pub(crate) level: u8,
    /// Bytes of exact times that were allowed each rank.
    pub(crate) budget: Option<u64>,
    sites: CallSites,
}

/// What a group of pieces takes.
#[derive(Clone, Copy, Default)]
struct Sum {
    /// Of STRUCT and of SKETCH, before compression.
    bytes: [u64; 2],
    streams: u64,
    classes: usize,
    stored: usize,
    symbolic: bool,
}

impl Sum {
    fn add(&mut self, p: &PieceSize) {
        self.bytes[frame_of(p.piece)] += p.bytes;
        self.streams += 1;
        self.classes = self.classes.max(p.classes);
        self.stored += p.stored;
        self.symbolic |= p.symbolic;
    }

    /// What made it grow, in a few words.
    fn cause(&self, piece: Option<Piece>) -> String {
        let many =
            |n: usize, one: &str, more: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {more}") };
        match piece {
            Some(Piece::Symbols) => "functions, call sites and error classes in use".into(),
            Some(Piece::Partitions) => "sets of ranks that differ in something".into(),
            Some(Piece::Tree) => "calls and loops in their order".into(),
            Some(Piece::Times(_)) => many(self.stored, "bucket of durations", "buckets of durations"),
            _ => {
                let values = many(self.stored, "value that nothing predicts", "values that nothing predicts");
                let form = if self.symbolic { ", functions of the rank" } else { "" };
                match (self.classes, self.stored) {
                    (0..=1, 0..=1) if self.streams == 1 => format!("constant{form}"),
                    (0..=1, _) => format!("{values}{form}"),
                    (n, _) => format!("{n} classes of ranks, {values}{form}"),
                }
            }
        }
    }
}

/// Index of the frame that a piece lies in.
fn frame_of(piece: Piece) -> usize {
    usize::from(matches!(piece, Piece::Times(_)))
}

impl Sizes {
    /// Reads a stream, and says what is missing.
    pub(crate) fn read(args: &SizesArgs) -> Result<Self> {
        let mut sizes = Self::of("sizes", &args.stream, &args.input, &args.talk)?;
        // The table of frames names no call site.
        let named = sizes.sections.iter().filter(|_| args.by != Some(SizesBy::Frame)).map(|s| &s.sites);
        sizes.sites = args.symbols.call_sites((NAME, &args.talk), named);
        Ok(sizes)
    }

    /// Reads a stream for a command, and says what is missing; no call sites.
    pub(crate) fn of(command: &str, stream: &Path, input: &StreamIn, talk: &Talk) -> Result<Self> {
        if stream.is_dir() {
            let directory = stream.display();
            let first = expand(&[stream.to_owned()])?.swap_remove(0);
            bail!(UsageError(format!(
                "{directory}: is a directory: name one stream of it, as {}, or all as one: st-merge {directory} | st-stat {command}",
                first.display()
            )));
        }
        let mut from = Input::open(stream, &input.steps)?;
        let name = from.name().to_owned();
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).with_context(|| name.clone())?;
        let how = ReadOptions { partial: input.partial };
        let progress = talk.progress(NAME, "reading", Amount::Bytes(Some(bytes.len().to_u64())));
        // What is no sound trace has no sizes.
        let trace = read(progress.of(&bytes[..]), how).with_context(|| name.clone())?;
        drop(progress);
        Whole::of_trace(&name, &trace)?.remark(NAME, talk);
        let frames = frame_sizes(&bytes[..], how).with_context(|| name.clone())?;
        let file = bytes.len().to_u64();
        let budget = trace.header.time_budget();
        let (level, sites) = (trace.level, CallSites::default());
        Ok(Self { name, file, frames, sections: trace.sections, level, budget, sites })
    }

    /// What is told of it.
    pub(crate) fn parts(&self) -> Parts<'_> {
        Parts { file: self.file, frames: &self.frames, sections: &self.sections, sites: &self.sites }
    }
}

/// What the bytes of a stream are told of.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    /// Bytes of the whole file.
    pub(crate) file: u64,
    pub(crate) frames: &'a [FrameSize],
    pub(crate) sections: &'a [Section],
    pub(crate) sites: &'a CallSites,
}

/// Bytes of a file that has been read, and those of its frames.
///
/// # Errors
///
/// If it cannot be read once more.
pub(crate) fn frames_of(stream: &Path, input: &StreamIn) -> Result<(u64, Vec<FrameSize>)> {
    let name = || stream.display().to_string();
    let bytes = std::fs::read(stream).with_context(name)?;
    let frames = frame_sizes(&bytes[..], ReadOptions { partial: input.partial }).with_context(name)?;
    Ok((bytes.len().to_u64(), frames))
}

impl Parts<'_> {
    /// One row per kind of frame, one of what lies outside of frames' contents, and the total.
    pub(crate) fn frames(&self) -> Table {
        let mut kinds: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
        let mut total = (0, 0, 0);
        let mut add = |kind, (n, stored, expanded)| {
            let row = kinds.entry(kind).or_default();
            for t in [row, &mut total] {
                t.0 += n;
                t.1 += stored;
                t.2 += expanded;
            }
        };
        self.frames.iter().for_each(|f| add(&f.kind, (1, f.stored, f.expanded)));
        let outside = self.file.saturating_sub(self.frames.iter().map(|f| f.stored).sum());
        add("(heads, checksums)", (0, outside, outside));
        let row = |(name, (n, stored, expanded)): (&str, (u64, u64, u64))| {
            vec![
                Cell::text(name),
                if n == 0 { Cell::none() } else { Cell::count(n) },
                Cell::count(stored),
                Cell::percent(stored.into(), total.1.into()),
                Cell::count(expanded),
            ]
        };
        let mut list: Vec<_> = kinds.into_iter().collect();
        list.sort_by_key(|(_, t)| std::cmp::Reverse(t.1));
        let columns = vec![
            Column::left("frame", "frame"),
            Column::right("number", "number", 0),
            Column::right("bytes", "bytes", 0),
            Column::right("share", "share_percent", 0),
            Column::right("uncompressed", "uncompressed_bytes", 0),
        ];
        Table { columns, rows: list.into_iter().map(row).collect(), total: Some(row(("total", total))) }
    }

    /// One row per function and call site, largest first.
    pub(crate) fn sites(&self) -> Result<Table> {
        let rows = self.rows(|section, piece, sites| {
            let Some(sym) = symbol_of(piece) else { return (general(piece), None) };
            (call(section, sym), site(section, sym, sites))
        })?;
        let columns = [Column::left("function", "function")].into_iter().chain(NUMBERS).chain(SITE).collect();
        let cells = |((function, site), cells): ((String, Option<u32>), Vec<Cell>)| {
            [Cell::text(function)].into_iter().chain(cells).chain(site_cells(site, self.sites)).collect()
        };
        Ok(Table { columns, rows: rows.into_iter().map(cells).collect(), total: None })
    }

    /// One row per parameter of a function at a call site, largest first.
    pub(crate) fn parameters(&self) -> Result<Table> {
        let rows = self.rows(|section, piece, sites| {
            let Some(sym) = symbol_of(piece) else { return (general(piece), String::new(), None) };
            (call(section, sym), parameter(section, piece), site(section, sym, sites))
        })?;
        let columns = [Column::left("function", "function"), Column::left("parameter", "parameter")]
            .into_iter()
            .chain(NUMBERS)
            .chain(SITE);
        let cells = |((function, parameter, site), cells): ((String, String, Option<u32>), Vec<Cell>)| {
            let names = [Cell::text(function), Cell::text(parameter)];
            names.into_iter().chain(cells).chain(site_cells(site, self.sites)).collect()
        };
        Ok(Table { columns: columns.collect(), rows: rows.into_iter().map(cells).collect(), total: None })
    }

    /// Whether the sketches of each section are not stored, since they follow from exact times: a stream has room for so many. Where
    /// some sections are not whole, of those that are taken it is not known which they are: all are as any is.
    fn derived(&self) -> Vec<bool> {
        let mut each = Vec::new();
        for frame in self.frames {
            if frame.kind == FrameKind::Section.to_string() {
                each.push(false);
            } else if let (true, Some(last)) = (frame.kind == FrameKind::Derived.to_string(), each.last_mut())
            {
                *last = true;
            }
        }
        let any = each.contains(&true);
        if each.len() == self.sections.len() { each } else { vec![any; self.sections.len()] }
    }

    /// Pieces of all sections in groups, with their bytes, share and cause.
    fn rows<K: Ord>(&self, key: impl Fn(&Section, Piece, &CallSites) -> K) -> Result<Vec<(K, Vec<Cell>)>> {
        let mut groups: BTreeMap<K, (Sum, Option<Piece>)> = BTreeMap::new();
        let mut expanded = [0_u64; 2];
        let of = |kinds: &[FrameKind]| {
            let some = self.frames.iter().filter(|f| kinds.iter().any(|kind| f.kind == kind.to_string()));
            some.map(|f| f.stored).sum::<u64>()
        };
        for (section, derived) in self.sections.iter().zip(self.derived()) {
            for p in piece_sizes(section, derived) {
                expanded[frame_of(p.piece)] += p.bytes;
                let (sum, piece) = groups.entry(key(section, p.piece, self.sites)).or_default();
                sum.add(&p);
                let alone = sum.streams == 1 || piece.is_some_and(|old| same_kind(old, p.piece));
                *piece = alone.then_some(p.piece);
            }
        }
        let sketches = [FrameKind::Sketch, FrameKind::Quantiles, FrameKind::Durations];
        let stored = [of(&[FrameKind::Struct]), of(&sketches)];
        let share = |sum: &Sum| -> u64 {
            (0..2)
                .map(|i| {
                    let part = u128::from(sum.bytes[i]) * u128::from(stored[i]);
                    saturate::<u64>((part + u128::from(expanded[i]) / 2) / u128::from(expanded[i].max(1)))
                })
                .sum()
        };
        let mut list: Vec<_> =
            groups.into_iter().map(|(k, (sum, piece))| (k, share(&sum), sum, piece)).collect();
        list.sort_by_key(|(_, bytes, sum, _)| std::cmp::Reverse((*bytes, sum.bytes)));
        let cells = |(k, bytes, sum, piece): (K, u64, Sum, Option<Piece>)| {
            let cells = vec![
                Cell::count(bytes),
                Cell::percent(bytes.into(), self.file.into()),
                Cell::count(sum.bytes.iter().sum()),
                Cell::text(sum.cause(piece)),
            ];
            (k, cells)
        };
        Ok(list.into_iter().map(cells).collect())
    }
}

const NUMBERS: [Column; 4] = [
    Column::right("bytes", "bytes", 0),
    Column::right("share", "share_percent", 1),
    Column::right("uncompressed", "uncompressed_bytes", 2),
    Column::left("because of", "cause").spare(),
];

fn same_kind(a: Piece, b: Piece) -> bool {
    std::mem::discriminant(&a) == std::mem::discriminant(&b)
}

/// The symbol that a piece belongs to.
fn symbol_of(piece: Piece) -> Option<Sym> {
    match piece {
        Piece::Count(sym) | Piece::Lengths(sym, _) | Piece::Values(sym, _) | Piece::Times(sym) => Some(sym),
        _ => None,
    }
}

/// What belongs to no call.
fn general(piece: Piece) -> String {
    match piece {
        Piece::Symbols => "(symbols)",
        Piece::Partitions => "(partitions of the ranks)",
        Piece::Loop => "(trip counts of loops)",
        _ => "(tree)",
    }
    .to_owned()
}

fn call(section: &Section, sym: Sym) -> String {
    section.symbols.get(sym as usize).map(|s| function(s.call, &section.tables)).unwrap_or_default()
}

fn site(section: &Section, sym: Sym, sites: &CallSites) -> Option<u32> {
    section.symbols.get(sym as usize).and_then(|s| site_of(section, s, sites))
}

fn parameter(section: &Section, piece: Piece) -> String {
    let slot = |sym: Sym, i: usize| {
        let symbol = section.symbols.get(sym as usize);
        let slot = symbol.and_then(|s| CallTable::builtin().slots(s.call).get(i));
        slot.map(|s| s.name.clone()).unwrap_or_default()
    };
    match piece {
        Piece::Count(_) => "(calls in a row)".into(),
        Piece::Lengths(sym, i) => format!("{} (lengths)", slot(sym, i)),
        Piece::Values(sym, i) => slot(sym, i),
        Piece::Times(_) => "(times)".into(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_section_stores_its_sketches_or_does_not() {
        use FrameKind::{Derived, Section as Opens, Sketch, Struct};

        let frame = |kind: FrameKind| FrameSize { kind: kind.to_string(), stored: 1, expanded: 1 };
        let frames: Vec<FrameSize> = [Opens, Struct, Derived, Opens, Struct, Sketch].map(frame).into();
        let of = |n: usize| {
            let (sections, sites) = (vec![Section::default(); n], CallSites::default());
            Parts { file: 6, frames: &frames, sections: &sections, sites: &sites }.derived()
        };
        assert_eq!(of(2), [true, false]);
        // One is not whole.
        assert_eq!(of(1), [true]);
    }
}
