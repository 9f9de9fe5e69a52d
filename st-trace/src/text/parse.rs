//! Reading the text form. Each function here mirrors one of [`super::write`].

use std::io::{self, BufRead};
use std::str::FromStr;

use super::ints;
use super::words::{Words, unquote};
use crate::calls::{CallId, CallTable, FIRST_UNKNOWN, LANES, Slot};
use crate::columns::{Chunk, Column};
use crate::ints::Sealed;
use crate::lanes::LaneSum;
use crate::objects::{Comm, Group, Named, Op, Type};
use crate::ranklist::RankList;
use crate::ranklist_notation::parse as ranks;
use crate::ranks::{RankSeq, Run};
use crate::section::{
    Elastic, Entry, Form, NO_SYM, Partition, PathSketch, RankSums, Section, SlotStreams, Sym, Symbol, Thread,
};
use crate::sites::{Frame, Module, Site};
use crate::sketch::Sketch;
use crate::stream::{self, ReadOptions, Trace, Version, WriteOptions};
use crate::tree::{FlatTree, Item};
use crate::varint;

/// Why a text is not a trace: the line, and what was expected there.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TextError {
    line: usize,
    what: String,
    #[source]
    source: Option<io::Error>,
}

impl TextError {
    /// The line, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }
    /// Whether the input could not be read at all.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.source.is_some()
    }
}

/// What a word should have been.
type Expected = &'static str;

type Parsed<T> = Result<T, Expected>;

/// Reads a trace from its text form.
///
/// # Errors
///
/// With the line of the first fault, or without one if the whole is not consistent in a way that no single line shows.
pub fn parse(from: impl BufRead) -> Result<Trace, TextError> {
    let mut parser = Parser::default();
    let mut line = 0;
    for text in from.lines() {
        line += 1;
        let text = text.map_err(|e| TextError { line, what: "reading".into(), source: Some(e) })?;
        let inner = text.trim_start_matches(' ');
        if inner.is_empty() || text.starts_with('#') {
            continue;
        }
        parser.line(text.len() - inner.len(), inner).map_err(|expected| {
            let found: String = inner.chars().take(60).collect();
            TextError { line, what: format!("expected {expected}: {found}"), source: None }
        })?;
    }
    let fault = |what: &str| TextError { line, what: what.into(), source: None };
    if !parser.ended {
        return Err(fault("the text ends without \"end\""));
    }
    consistent(&parser.trace).map_err(|e| fault(&e.to_string()))?;
    Ok(parser.trace)
}

/// Checks what the stream's reader checks.
fn consistent(trace: &Trace) -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    stream::write(trace, &mut bytes, WriteOptions { level: 0 })?;
    let back = stream::read(&bytes[..], ReadOptions::default())?;
    if back.sections != trace.sections {
        return Err("the sections contradict themselves".into());
    }
    Ok(())
}

#[derive(Default)]
struct Parser {
    trace: Trace,
    begun: bool,
    ended: bool,
    /// Nodes of the open tree, and its open bodies.
    items: Vec<Item>,
    bodies: Vec<usize>,
    /// Slots that still have to come, of the symbol that was named last; reversed.
    slots: Vec<&'static Slot>,
    /// Number of pairs of times that still have to come.
    times: u32,
    /// The symbol that slots belong to, and the lengths of its next slot if that is a list.
    current: usize,
    lens: Option<Elastic>,
}

fn word<'a>(w: &mut Words<'a>, expected: Expected) -> Parsed<&'a str> {
    w.next().ok_or(expected)
}

fn number<T: FromStr>(w: &mut Words<'_>, expected: Expected) -> Parsed<T> {
    w.next().and_then(|w| w.parse().ok()).ok_or(expected)
}

fn hex(w: &mut Words<'_>, expected: Expected) -> Parsed<u128> {
    w.next().and_then(|w| u128::from_str_radix(w, 16).ok()).ok_or(expected)
}

fn text(w: &mut Words<'_>, expected: Expected) -> Parsed<String> {
    w.next().and_then(unquote).ok_or(expected)
}

fn set(w: &mut Words<'_>) -> Parsed<RankList> {
    w.next().and_then(ranks).ok_or("a ranklist")
}

fn key(w: &mut Words<'_>, key: &str, expected: Expected) -> Parsed<()> {
    (w.next() == Some(key)).then_some(()).ok_or(expected)
}

/// Words in brackets, separated by spaces.
fn list<'a>(w: &mut Words<'a>, expected: Expected) -> Parsed<impl Iterator<Item = &'a str> + use<'a>> {
    let inner = w.next().and_then(|w| w.strip_prefix('[')?.strip_suffix(']')).ok_or(expected)?;
    Ok(inner.split(' ').filter(|w| !w.is_empty()))
}

fn symbol_number(w: &mut Words<'_>) -> Parsed<Sym> {
    w.next().and_then(|w| w.strip_prefix('s')?.parse().ok()).ok_or("a symbol (s and its number)")
}

impl Parser {
    fn line(&mut self, indent: usize, line: &str) -> Parsed<()> {
        let mut w = Words::new(line);
        let first = word(&mut w, "a word")?;
        if self.ended {
            return Err("nothing after the end");
        }
        if !self.begun {
            key(&mut Words::new(line), "st", "\"st\" and a version")?;
            return self.preamble(&mut w);
        }
        if indent == 0 {
            self.outer(first, &mut w)?;
        } else {
            self.inner(indent, first, line, &mut w)?;
        }
        if w.next().is_some() { Err("no more words") } else { Ok(()) }
    }

    fn preamble(&mut self, w: &mut Words<'_>) -> Parsed<()> {
        let version = word(w, "a version")?;
        let (major, minor) = version.split_once('.').ok_or("a version")?;
        let version = Version {
            major: major.parse().or(Err("a version"))?,
            minor: minor.parse().or(Err("a version"))?,
        };
        version.check_readable().or(Err("a version that this st reads"))?;
        key(w, "level", "\"level\"")?;
        self.trace.level = number(w, "a level")?;
        self.begun = true;
        Ok(())
    }

    fn outer(&mut self, first: &str, w: &mut Words<'_>) -> Parsed<()> {
        match first {
            "header" => self.trace.header = json(w)?,
            "step" => self.trace.provenance.push(json(w)?),
            "section" => {
                let section = Section { ranks: set(w)?, ..Section::default() };
                self.trace.sections.push(section);
            }
            "end" => self.ended = true,
            "truncated" => {
                self.ended = true;
                self.trace.complete = false;
            }
            _ => return Err("header, step, section or end"),
        }
        Ok(())
    }

    fn inner<'a>(&mut self, indent: usize, first: &'a str, line: &'a str, w: &mut Words<'a>) -> Parsed<()> {
        if self.times > 0 {
            let column = self.section()?.threads.last_mut().and_then(|t| t.columns.last_mut());
            let chunk = column.and_then(|(_, c)| c.chunks.last_mut()).ok_or("a chunk")?;
            let pairs = times(first, w, chunk)?;
            self.times = self.times.checked_sub(pairs).ok_or("no more times than events")?;
            return Ok(());
        }
        if !self.slots.is_empty() && indent == 3 {
            return self.slot(first, w);
        }
        let is_symbol =
            |f: &str| f.strip_prefix('s').is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
        match (indent, first) {
            (1, "thread") => self.open_thread(set(w)?),
            (1, _) => header_line(self.section()?, first, w),
            (2, "on") => object(self.section()?, w),
            (2, "symbols") => self.close_tree(w),
            (2, "of") => self.of(w),
            (2, "lanes" | "time" | "sums" | "column") => thread_line(self.section()?, first, w),
            (3, "chunk") => self.chunk(w),
            (2.., f) if f == "loop" || f.starts_with('^') || is_symbol(f) => self.node(indent, line, w),
            _ => Err("a line that may stand here"),
        }
    }

    fn section(&mut self) -> Parsed<&mut Section> {
        self.trace.sections.last_mut().ok_or("a section first")
    }

    fn open_thread(&mut self, ranks: RankList) -> Parsed<()> {
        self.items.clear();
        self.bodies.clear();
        let thread = Thread {
            ranks,
            tree: FlatTree::default(),
            counts: Vec::new(),
            params: Vec::new(),
            lanes: LaneSum::default(),
            sketches: Vec::new(),
            sums: Vec::new(),
            columns: Vec::new(),
        };
        self.section()?.threads.push(thread);
        Ok(())
    }

    /// A node of the tree; its depth is its indentation, or the number after `^`.
    fn node<'a>(&mut self, indent: usize, line: &'a str, w: &mut Words<'a>) -> Parsed<()> {
        let mut words = Words::new(line);
        let mut first = word(&mut words, "a node")?;
        let mut depth = (indent - 2) / 2;
        if let Some(stated) = first.strip_prefix('^') {
            depth = stated.parse().or(Err("a depth"))?;
            first = word(&mut words, "a node")?;
        }
        if depth > self.bodies.len() {
            return Err("a node inside a loop");
        }
        self.close_bodies(depth)?;
        let item = if first == "loop" {
            self.bodies.push(self.items.len());
            Item::Body { below: 0 }
        } else {
            let sym = symbol_number(&mut Words::new(first))?;
            named_call(self.section()?, sym, &mut words)?;
            Item::Leaf { sym }
        };
        let counts = elastic(self.section()?, &mut words)?;
        self.items.push(item);
        *w = words;
        self.section()?.threads.last_mut().ok_or("a thread first")?.counts.push(counts);
        Ok(())
    }

    /// Ends open bodies until `depth` are left.
    fn close_bodies(&mut self, depth: usize) -> Parsed<()> {
        while self.bodies.len() > depth {
            let Some(at) = self.bodies.pop() else { break };
            let nodes = self.items.len() - at - 1;
            match self.items.get_mut(at) {
                Some(Item::Body { below }) if nodes > 0 => {
                    *below = u32::try_from(nodes).or(Err("a smaller tree"))?
                }
                _ => return Err("nodes inside the loop before"),
            }
        }
        Ok(())
    }

    fn close_tree(&mut self, w: &mut Words<'_>) -> Parsed<()> {
        self.close_bodies(0)?;
        let tree = FlatTree::new(std::mem::take(&mut self.items));
        let section = self.section()?;
        let symbols = section.symbols.len();
        let thread = section.threads.last_mut().ok_or("a thread first")?;
        thread.tree = tree;
        let n: usize = number(w, "a number of symbols")?;
        if n > symbols {
            return Err("at most the number of symbols");
        }
        thread.params = vec![Vec::new(); n];
        Ok(())
    }

    fn of(&mut self, w: &mut Words<'_>) -> Parsed<()> {
        let sym = symbol_number(w)?;
        let section = self.section()?;
        let call = named_call(section, sym, w)?;
        let params = section.threads.last_mut().and_then(|t| t.params.get_mut(sym as usize));
        if params.is_none_or(|p| !p.is_empty()) {
            return Err("parameters of each symbol once");
        }
        self.slots = CallTable::builtin().slots(call).iter().rev().collect();
        self.current = sym as usize;
        Ok(())
    }

    fn slot(&mut self, first: &str, w: &mut Words<'_>) -> Parsed<()> {
        let slot = *self.slots.last().ok_or("no more slots")?;
        let stream = elastic(self.section()?, w)?;
        let at = self.current;
        let lens = std::mem::take(&mut self.lens);
        if first.strip_prefix('#') == Some(&slot.name) && slot.list && lens.is_none() {
            self.lens = Some(stream);
            return Ok(());
        }
        if first != slot.name || lens.is_some() != slot.list {
            return Err("the next slot of the function, lengths of a list first");
        }
        self.slots.pop();
        let thread = self.section()?.threads.last_mut().ok_or("a thread first")?;
        thread.params.get_mut(at).ok_or("a symbol first")?.push(SlotStreams { lens, values: stream });
        Ok(())
    }

    fn chunk(&mut self, w: &mut Words<'_>) -> Parsed<()> {
        let (first, base) = (number(w, "the first event")?, number(w, "a time")?);
        let chunk =
            Chunk { first, base, events: number(w, "a number of events")?, gaps: vec![], durations: vec![] };
        self.times = chunk.events;
        let column = self.section()?.threads.last_mut().and_then(|t| t.columns.last_mut());
        column.ok_or("a column first")?.1.chunks.push(chunk);
        Ok(())
    }
}

fn json<T: serde::de::DeserializeOwned>(w: &mut Words<'_>) -> Parsed<T> {
    let value = serde_json::from_str(w.rest()).or(Err("JSON"));
    *w = Words::new("");
    value
}

/// Pairs of times of a chunk; returns their number.
fn times<'a>(first: &'a str, w: &mut Words<'a>, chunk: &mut Chunk) -> Parsed<u32> {
    let mut n = 0;
    for pair in std::iter::once(first).chain(w) {
        let (gap, duration) = pair.split_once('/').ok_or("gap/duration")?;
        varint::put_i64(&mut chunk.gaps, gap.parse().or(Err("gap/duration"))?);
        varint::put_i64(&mut chunk.durations, duration.parse().or(Err("gap/duration"))?);
        n += 1;
    }
    Ok(n)
}

/// A line of a section before its threads.
fn header_line(s: &mut Section, first: &str, w: &mut Words<'_>) -> Parsed<()> {
    match first {
        "host" => s.hosts.push((text(w, "a host")?, set(w)?)),
        "module" => {
            let n = s.sites.modules().len();
            let module = Module { path: text(w, "a path")?, build_id: text(w, "a build-id")? };
            if s.sites.module(module) as usize != n {
                return Err("each module once");
            }
        }
        "site" => site(s, w)?,
        "comm" => s.tables.comms.push(Entry { family: hex(w, "a family")?, of: Vec::new() }),
        "group" => s.tables.groups.push(Entry { family: hex(w, "a family")?, of: Vec::new() }),
        "type" => s.tables.types.push(Entry { family: hex(w, "a family")?, of: Vec::new() }),
        "op" => s.tables.ops.push(Entry { family: hex(w, "a family")?, of: Vec::new() }),
        "name" => {
            s.tables.names.insert(CallId(number(w, "a function's number")?), text(w, "a name")?);
        }
        "symbol" => {
            let call = call_id(s, word(w, "a function")?).ok_or("a function")?;
            key(w, "site", "\"site\"")?;
            let site = number(w, "a site")?;
            key(w, "error", "\"error\"")?;
            s.symbols.push(Symbol { call, site, error: number(w, "an error class")? });
        }
        "partition" => {
            let mut classes = Vec::new();
            while let Some(class) = w.next() {
                classes.push(ranks(class).ok_or("a ranklist")?);
                if w.clone().next().is_some() {
                    key(w, "|", "\"|\"")?;
                }
            }
            s.partitions.push(Partition { classes });
        }
        _ => return Err("a line that may stand here"),
    }
    Ok(())
}

fn site(s: &mut Section, w: &mut Words<'_>) -> Parsed<()> {
    let id = hex(w, "an identity")?;
    let (mut frames, mut label) = (Vec::new(), String::new());
    for word in w {
        if word.starts_with('"') {
            label = unquote(word).ok_or("a label")?;
            continue;
        }
        let (module, offset) = word.split_once("+0x").ok_or("module+offset")?;
        let offset = u64::from_str_radix(offset, 16).or(Err("module+offset"))?;
        frames.push(Frame { module: module.parse().or(Err("module+offset"))?, offset });
    }
    let n = s.sites.sites().len();
    if s.sites.insert(Site { id, frames, label }) as usize != n {
        return Err("each site once");
    }
    Ok(())
}

/// A function by its name in the call table, or by number and name.
fn call_id(s: &Section, text: &str) -> Option<CallId> {
    let Some((number, name)) = text.split_once('/') else {
        return CallTable::builtin().by_name(text).map(|row| row.id);
    };
    let id = CallId(number.parse().ok().filter(|n| *n >= FIRST_UNKNOWN)?);
    (s.tables.names.get(&id) == Some(&unquote(name)?)).then_some(id)
}

/// The function that a symbol is said to be, and is.
fn named_call(s: &Section, sym: Sym, w: &mut Words<'_>) -> Parsed<CallId> {
    let symbol = s.symbols.get(sym as usize).ok_or("a symbol that has been listed")?;
    let call = w.next().and_then(|name| call_id(s, name));
    call.filter(|c| *c == symbol.call).ok_or("the symbol's function")
}

/// An object, for the entry opened last.
fn object(s: &mut Section, w: &mut Words<'_>) -> Parsed<()> {
    let (on, name, copy) = (set(w)?, hex(w, "a name")?, number(w, "a copy")?);
    let t = &mut s.tables;
    // Tables are written one after the other, so the last one that has an entry is the open one.
    if let Some(e) = t.ops.last_mut() {
        let kind = text(w, "a kind")?;
        e.of.push((on, Named { name, copy, content: Op { kind, commutes: number(w, "true or false")? } }));
    } else if let Some(e) = t.types.last_mut() {
        e.of.push((on, Named { name, copy, content: datatype(w)? }));
    } else if let Some(e) = t.groups.last_mut() {
        e.of.push((on, Named { name, copy, content: Group { members: sequence(w)? } }));
    } else if let Some(e) = t.comms.last_mut() {
        let (kind, parent) = (text(w, "a kind")?, hex(w, "a parent")?);
        let content = Comm { kind, parent, members: sequence(w)?, remote: sequence(w)? };
        e.of.push((on, Named { name, copy, content }));
    } else {
        return Err("an entry first");
    }
    Ok(())
}

fn datatype(w: &mut Words<'_>) -> Parsed<Type> {
    let kind = text(w, "a kind")?;
    let words = list(w, "words")?.map(|v| v.parse().or(Err("a word"))).collect::<Parsed<_>>()?;
    let parts =
        list(w, "parts")?.map(|v| u128::from_str_radix(v, 16).or(Err("a name"))).collect::<Parsed<_>>()?;
    Ok(Type {
        kind,
        words,
        parts,
        size: number(w, "a size")?,
        lb: number(w, "a bound")?,
        extent: number(w, "an extent")?,
    })
}

fn sequence(w: &mut Words<'_>) -> Parsed<RankSeq> {
    let mut runs = Vec::new();
    let mut total = 0u64;
    for run in list(w, "a sequence of ranks")? {
        let fields = run.split(':').map(|f| f.parse().ok()).collect::<Option<Vec<i64>>>();
        let (start, step, n) = match fields.as_deref() {
            Some(&[start]) => (start, 0, 1),
            Some(&[start, step, n]) if step != 0 && n > 1 => (start, step, n),
            _ => return Err("start:step:number"),
        };
        let last = i128::from(start) + i128::from(step) * i128::from(n - 1);
        let n = u64::try_from(n).or(Err("start:step:number"))?;
        total = total.saturating_add(n);
        let bounds = 0..1i128 << 32;
        if !bounds.contains(&start.into()) || !bounds.contains(&last) || total > 1 << 32 {
            return Err("ranks");
        }
        runs.push(Run { start, step, n });
    }
    Ok(RankSeq::from_runs(runs))
}

/// A line of a thread that belongs to nothing before it.
fn thread_line(s: &mut Section, first: &str, w: &mut Words<'_>) -> Parsed<()> {
    let t = s.threads.last_mut().ok_or("a thread first")?;
    match first {
        "lanes" => {
            let (calls, voided) = (number(w, "a number of calls")?, number(w, "voided lanes")?);
            t.lanes = LaneSum { calls, voided, hash: [0; LANES] };
            for h in &mut t.lanes.hash {
                *h = hex(w, "a hash")?;
            }
        }
        "time" => t.sketches.push(path(w)?),
        "sums" => t.sums.push(RankSums { sym: symbol_number(w)?, compute: sealed(w)?, comm: sealed(w)? }),
        _ => t.columns.push((number(w, "a rank")?, Column::default())),
    }
    Ok(())
}

fn sealed(w: &mut Words<'_>) -> Parsed<Sealed> {
    w.next().and_then(ints::parse).ok_or("a stream of integers")
}

fn elastic(s: &Section, w: &mut Words<'_>) -> Parsed<Elastic> {
    let head = w.next().and_then(|w| w.strip_prefix('P')).ok_or("a partition (P and its number)")?;
    let form = if head.ends_with('~') { Form::Relative } else { Form::Absolute };
    let partition: u32 = head.trim_end_matches('~').parse().or(Err("a partition (P and its number)"))?;
    let classes = &s.partitions.get(partition as usize).ok_or("a partition that has been listed")?.classes;
    let mut streams = Vec::with_capacity(classes.len());
    for (i, class) in classes.iter().enumerate() {
        if i > 0 {
            key(w, "|", "\"|\" and the next class")?;
        }
        streams.push(sealed(w)?);
        let on = w.next().and_then(|w| ranks(w.strip_prefix('@')?)).ok_or("@ and a ranklist")?;
        if on != *class {
            return Err("the ranks of the partition's class");
        }
    }
    Ok(Elastic { form, partition, streams })
}

fn path(w: &mut Words<'_>) -> Parsed<PathSketch> {
    let sym = symbol_number(w)?;
    key(w, "after", "\"after\"")?;
    let mut ahead = w.clone();
    let pred = if ahead.next() == Some("-") {
        *w = ahead;
        NO_SYM
    } else {
        symbol_number(w)?
    };
    key(w, "compute", "\"compute\"")?;
    let compute = sketch(w)?;
    key(w, "communicate", "\"communicate\"")?;
    Ok(PathSketch { sym, pred, compute, comm: sketch(w)? })
}

fn sketch(w: &mut Words<'_>) -> Parsed<Sketch> {
    let mut totals = Sketch::default();
    totals.sum = number(w, "a sum")?;
    totals.squares = number(w, "a sum of squares")?;
    for extreme in [&mut totals.min, &mut totals.max] {
        let (ns, rank) = word(w, "ns/rank")?.split_once('/').ok_or("ns/rank")?;
        *extreme = (ns.parse().or(Err("ns/rank"))?, rank.parse().or(Err("ns/rank"))?);
    }
    let mut buckets = Vec::new();
    for bucket in list(w, "buckets")? {
        let (b, n) = bucket.split_once(':').ok_or("bucket:number")?;
        let n: u64 = n.parse().or(Err("bucket:number"))?;
        totals.count = totals.count.checked_add(n).ok_or("smaller numbers")?;
        buckets.push((b.parse().or(Err("bucket:number"))?, n));
    }
    Ok(Sketch::from_parts(totals, buckets))
}
