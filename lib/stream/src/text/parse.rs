//! Reading the text form. Each function here mirrors one of [`super::write`].

use std::error::Error;
use std::io::{self, BufRead};

use super::fields::{
    Parsed, address, elastic, header_line, json, key, named_call, number, object, set, symbol_number,
    thread_line, times, word,
};
use super::words::Words;
use crate::{ReadOptions, Trace, Version, WriteOptions};
use st_model::calls::{CallTable, Slot};
use st_model::columns::{Chunk, Comparison, Offset};
use st_model::lanes::LaneSum;
use st_model::names::Names;
use st_model::ranklist::RankList;
use st_model::section::{Elastic, Section, SlotStreams, Thread};
use st_model::tree::{FlatTree, Item};

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

/// Reads a trace from its text form.
///
/// # Errors
///
/// With the line of the first fault, or without one if the whole is not consistent in a way that no single line shows.
pub fn parse(from: impl BufRead) -> Result<Trace, TextError> {
    let mut parser = Parser::default();
    let mut line = 0;
    for bytes in from.split(b'\n') {
        line += 1;
        let bytes = bytes.map_err(|e| TextError { line, what: "reading".into(), source: Some(e) })?;
        let text = std::str::from_utf8(&bytes).map_err(|_| TextError {
            line,
            what: "expected text in UTF-8".into(),
            source: None,
        })?;
        let text = text.strip_suffix('\r').unwrap_or(text);
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
    if line == 0 {
        let what = "expected the text of a trace, as st-view --text writes it: there are 0 bytes".into();
        return Err(TextError { line: 1, what, source: None });
    }
    if !parser.ended {
        return Err(fault("the text ends without \"end\""));
    }
    consistent(&parser.trace)
        .map_err(|e| fault(&format!("the lines before do not agree: {}", chain(&*e))))?;
    Ok(parser.trace)
}

/// Checks what the stream's reader checks.
fn consistent(trace: &Trace) -> Result<(), Box<dyn Error>> {
    let mut bytes = Vec::new();
    crate::write(trace, &mut bytes, WriteOptions { level: 0 })?;
    let back = crate::read(&bytes[..], ReadOptions::default())?;
    if back.explanation != trace.explanation {
        return Err("what is kept of wait states contradicts itself".into());
    }
    if back.sections != trace.sections {
        return Err("the sections contradict themselves".into());
    }
    Ok(())
}

/// An error with its causes.
fn chain(error: &(dyn Error + 'static)) -> String {
    let all = std::iter::successors(Some(error), |error| (*error).source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[derive(Default)]
struct Parser {
    trace: Trace,
    names: Names,
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
            "address" => address(&mut self.names, w)?,
            "step" => self.trace.provenance.push(json(w)?),
            "section" => {
                let mut section = Section { ranks: set(w)?, ..Section::default() };
                section.sites.add_names(&self.names);
                self.trace.sections.push(section);
            }
            "waits" => self.trace.explanation = Some(json(w)?),
            "end" => self.ended = true,
            "truncated" => {
                self.ended = true;
                self.trace.complete = false;
            }
            _ => return Err("header, step, address, section, waits or end"),
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
            (2, "lanes" | "time" | "sums" | "slow" | "column") => thread_line(self.section()?, first, w),
            (3, "chunk") => self.chunk(w),
            (3, "clock") => self.clock(w),
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
            slow: Vec::new(),
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

    fn clock(&mut self, w: &mut Words<'_>) -> Parsed<()> {
        let (near, far) = (number(w, "a shortest time")?, number(w, "a shortest time")?);
        let mut points = Vec::new();
        for word in w.by_ref() {
            let mut parts = word.split('/').map(|p| p.parse().or(Err("local/offset/error")));
            let mut next = || parts.next().unwrap_or(Err("local/offset/error"));
            points.push(Offset { local: next()?, offset: next()?, error: next()? });
        }
        let column = self.section()?.threads.last_mut().and_then(|t| t.columns.last_mut());
        column.ok_or("a column first")?.1.clock = Comparison { points, near, far };
        Ok(())
    }

    fn chunk(&mut self, w: &mut Words<'_>) -> Parsed<()> {
        let (first, base) = (number(w, "the first event")?, number(w, "a time")?);
        let events = number(w, "a number of events")?;
        let unit = w.next().map_or(Ok(1), str::parse).ok().filter(|&unit| unit > 0).ok_or("a unit in ns")?;
        let chunk = Chunk { first, base, events, unit, gaps: vec![], durations: vec![] };
        self.times = chunk.events;
        let column = self.section()?.threads.last_mut().and_then(|t| t.columns.last_mut());
        column.ok_or("a column first")?.1.chunks.push(chunk);
        Ok(())
    }
}
