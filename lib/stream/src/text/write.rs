//! Writing the text form. [`super::parse`] mirrors each function here.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::{DEEPEST, flat, ints};
use crate::text::words::{call_name, quote};
use crate::{CURRENT, Trace};
use st_model::calls::{CallTable, Slot};
use st_model::columns::Column;
use st_model::names::Names;
use st_model::objects::{Comm, Group, Named, Op, SharedObject, Text, Type};
use st_model::ranklist::RankList;
use st_model::ranklist_notation::print as ranks;
use st_model::ranks::RankSeq;
use st_model::section::{ANY_SYM, Elastic, Ended, Entry, Form, NO_SYM, PathSketch, Section, Sym, Thread};
use st_model::sketch::histogram::Bin;
use st_model::sketch::{Shape, Sketch};
use st_model::slow::{How, Slow};
use st_model::tree::Item;
use st_model::varint;

/// Pairs of times on a line.
const TIMES: usize = 12;

/// Writes the text form.
///
/// # Errors
///
/// If it cannot be written.
pub fn write(trace: &Trace, mut to: impl Write) -> io::Result<()> {
    let to = &mut to;
    writeln!(to, "st {CURRENT} level {}", trace.level)?;
    writeln!(to, "header {}", serde_json::to_string(&trace.header)?)?;
    for step in &trace.provenance {
        writeln!(to, "step {}", serde_json::to_string(step)?)?;
    }
    let mut all = Names::default();
    trace.sections.iter().for_each(|s| all.extend(s.sites.names()));
    names(&all, to)?;
    let mut lists = flat::Lists::default();
    trace.sections.iter().try_for_each(|s| section(s, &mut lists, to))?;
    if let Some(explanation) = &trace.explanation {
        writeln!(to, "waits {}", serde_json::to_string(explanation)?)?;
    }
    writeln!(to, "{}", if trace.complete { "end" } else { "truncated" })
}

/// `address 0123456789abcdef+0x11d3 "exchange" "/src/stencil.c" 120 -`: function, file, line and displacement, of each of the
/// functions at that address.
fn names(all: &Names, to: &mut impl Write) -> io::Result<()> {
    let text = |t: &Option<std::sync::Arc<str>>| t.as_deref().map_or_else(|| "-".into(), quote);
    for ((key, offset), locations) in all.iter() {
        write!(to, "address {key:016x}+{offset:#x}")?;
        for l in locations {
            let line = l.line.map_or_else(|| "-".into(), |line| line.to_string());
            let displacement = l.displacement.map_or_else(|| "-".into(), |d| d.to_string());
            write!(to, " {} {} {line} {displacement}", text(&l.function), text(&l.file))?;
        }
        writeln!(to)?;
    }
    Ok(())
}

fn section(s: &Section, lists: &mut flat::Lists, to: &mut impl Write) -> io::Result<()> {
    writeln!(to, "section {}", ranks(&s.ranks))?;
    for (host, on) in &s.hosts {
        writeln!(to, " host {} {}", quote(host), ranks(on))?;
    }
    sites(s, to)?;
    table(&s.tables.comms, "comm", comm, to)?;
    table(&s.tables.groups, "group", group, to)?;
    table(&s.tables.types, "type", datatype, to)?;
    table(&s.tables.ops, "op", op, to)?;
    table(&s.tables.wins, "win", shared, to)?;
    table(&s.tables.files, "file", shared, to)?;
    table(&s.tables.texts, "text", text, to)?;
    for (id, name) in &s.tables.names {
        writeln!(to, " name {} {}", id.0, quote(name))?;
    }
    for symbol in &s.symbols {
        writeln!(to, " symbol {} site {} error {}", call_name(s, symbol.call), symbol.site, symbol.error)?;
    }
    for p in &s.partitions {
        let classes: Vec<_> = p.classes.iter().map(ranks).collect();
        writeln!(to, " partition {}", classes.join(" | "))?;
    }
    s.ended.iter().try_for_each(|e| ended(e, to))?;
    s.threads.iter().try_for_each(|t| thread(s, t, lists, to))
}

/// `ended 2 thread 0 calls 151 last s4 inside s5 entered 12345`.
fn ended(e: &Ended, to: &mut impl Write) -> io::Result<()> {
    let symbol = |s: Sym| if s == NO_SYM { "-".to_owned() } else { format!("s{s}") };
    let (last, inside) = (symbol(e.last), symbol(e.inside));
    writeln!(
        to,
        " ended {} thread {} calls {} last {last} inside {inside} entered {}",
        e.rank, e.thread, e.calls, e.entered
    )
}

fn sites(s: &Section, to: &mut impl Write) -> io::Result<()> {
    for m in s.sites.modules() {
        writeln!(to, " module {} {}", quote(&m.path), quote(&m.build_id))?;
    }
    for site in s.sites.sites() {
        write!(to, " site {:032x}", site.id)?;
        for f in &site.frames {
            write!(to, " {}+{:#x}", f.module, f.offset)?;
        }
        if !site.label.is_empty() {
            write!(to, " {}", quote(&site.label))?;
        }
        writeln!(to)?;
    }
    Ok(())
}

fn table<T>(
    table: &[Entry<T>],
    word: &str,
    content: fn(&T) -> String,
    to: &mut impl Write,
) -> io::Result<()> {
    for e in table {
        writeln!(to, " {word} {:032x}", e.family)?;
        for (on, Named { name, copy, content: c }) in &e.of {
            writeln!(to, "  on {} {name:032x} {copy} {}", ranks(on), content(c))?;
        }
    }
    Ok(())
}

/// Runs of ranks in their order: `[0:1:4 9]` is 0, 1, 2, 3, 9.
fn sequence(s: &RankSeq) -> String {
    let run = |r: &st_model::ranks::Run| {
        if r.n == 1 { r.start.to_string() } else { format!("{}:{}:{}", r.start, r.step, r.n) }
    };
    format!("[{}]", s.runs().iter().map(run).collect::<Vec<_>>().join(" "))
}

fn comm(c: &Comm) -> String {
    format!("{} {:x} {} {}", quote(&c.kind), c.parent, sequence(&c.members), sequence(&c.remote))
}

fn group(g: &Group) -> String {
    sequence(&g.members)
}

fn datatype(t: &Type) -> String {
    let list = |v: Vec<String>| format!("[{}]", v.join(" "));
    let words = list(t.words.iter().map(i64::to_string).collect());
    let parts = list(t.parts.iter().map(|p| format!("{p:x}")).collect());
    format!("{} {words} {parts} {} {} {}", quote(&t.kind), t.size, t.lb, t.extent)
}

fn op(o: &Op) -> String {
    format!("{} {}", quote(&o.kind), o.commutes)
}

fn shared(j: &SharedObject) -> String {
    format!("{} {:x} {}", quote(&j.kind), j.comm, sequence(&j.members))
}

fn text(t: &Text) -> String {
    quote(&t.0)
}

fn thread(s: &Section, t: &Thread, lists: &mut flat::Lists, to: &mut impl Write) -> io::Result<()> {
    writeln!(to, " thread {}", ranks(&t.ranks))?;
    write!(to, "  lanes {} {}", t.lanes.calls, t.lanes.voided)?;
    t.lanes.hash.iter().try_for_each(|h| write!(to, " {h:032x}"))?;
    writeln!(to)?;
    tree(s, t, to)?;
    for line in lists.leaves(s, t) {
        writeln!(to, "# {line}")?;
    }
    // Parameters of all symbols, but for a last one the lists of those without are seen by their absence.
    writeln!(to, "  symbols {}", t.params.len())?;
    for (i, streams) in t.params.iter().enumerate().filter(|(_, p)| !p.is_empty()) {
        let Some(symbol) = s.symbols.get(i) else { break };
        writeln!(to, "  of s{i} {}", call_name(s, symbol.call))?;
        let slots: &[Slot] = CallTable::builtin().slots(symbol.call);
        for (slot, streams) in slots.iter().zip(streams) {
            if let Some(lens) = &streams.lens {
                writeln!(to, "   #{} {}", slot.name, elastic(s, lens))?;
            }
            writeln!(to, "   {} {}", slot.name, elastic(s, &streams.values))?;
        }
    }
    for p in &t.sketches {
        writeln!(to, "  {}", path(p))?;
    }
    for sum in &t.sums {
        writeln!(to, "  sums s{} {} {}", sum.sym, ints::print(&sum.compute), ints::print(&sum.comm))?;
    }
    t.slow.iter().try_for_each(|s| slow(s, to))?;
    t.columns.iter().try_for_each(|(rank, c)| column(*rank, c, to))
}

fn tree(s: &Section, t: &Thread, to: &mut impl Write) -> io::Result<()> {
    let mut ends = Vec::new();
    for (i, (item, counts)) in t.tree.items().iter().zip(&t.counts).enumerate() {
        while ends.last() == Some(&i) {
            ends.pop();
        }
        let depth = ends.len();
        let mut line = " ".repeat(2 * depth.min(DEEPEST));
        if depth > DEEPEST {
            let _ = write!(line, "^{depth} ");
        }
        match *item {
            Item::Body { below } => {
                line.push_str("loop");
                ends.push(i + 1 + below as usize);
            }
            Item::Leaf { sym } => {
                let call = s.symbols.get(sym as usize).map(|symbol| call_name(s, symbol.call));
                let _ = write!(line, "s{sym} {}", call.unwrap_or_default());
            }
        }
        writeln!(to, "  {line} {}", elastic(s, counts))?;
    }
    Ok(())
}

/// `P3~relative stream @<ranks> | stream @<ranks>`.
fn elastic(s: &Section, e: &Elastic) -> String {
    let mut out = format!("P{}", e.partition);
    if e.form != Form::Absolute {
        let _ = write!(out, "~{}", e.form);
    }
    let none = RankList::default();
    let classes = s.partitions.get(e.partition as usize).map_or(&[][..], |p| &p.classes);
    for (i, stream) in e.streams.iter().enumerate() {
        let bar = if i == 0 { "" } else { " |" };
        let _ = write!(out, "{bar} {} @{}", ints::print(stream), ranks(classes.get(i).unwrap_or(&none)));
    }
    out
}

fn path(p: &PathSketch) -> String {
    let pred = match p.pred {
        NO_SYM => "-".to_owned(),
        ANY_SYM => "*".to_owned(),
        pred => format!("s{pred}"),
    };
    format!("time s{} after {pred} compute {} communicate {}", p.sym, sketch(&p.compute), sketch(&p.comm))
}

/// `sum squares min/rank max/rank [bucket:number …]`, or for bins `[low-high:number/sum/squares …]`, or `[=number]`, or for
/// durations at fixed ranks `[~number deviation bucket … +position …]`.
fn sketch(s: &Sketch) -> String {
    let bin = |b: &Bin| format!("{}-{}:{}/{}/{}", b.low, b.high, b.count, b.sum, b.squares);
    let buckets: Vec<_> = match s.shape() {
        Shape::Buckets => s.buckets().map(|(b, n)| format!("{b}:{n}")).collect(),
        Shape::Bins(_) => s.bins().iter().map(bin).collect(),
        Shape::Totals => vec![format!("={}", s.count)],
        Shape::Quantiles => quantiles(s),
    };
    format!("{} {} {}/{} {}/{} [{}]", s.sum, s.squares, s.min.0, s.min.1, s.max.0, s.max.1, buckets.join(" "))
}

fn quantiles(s: &Sketch) -> Vec<String> {
    let Some(kept) = s.quantiles() else { return Vec::new() };
    let head = [format!("~{}", s.count), kept.deviation().to_string()];
    let more = kept.more().iter().map(|at| format!("+{at}"));
    head.into_iter().chain(kept.buckets().iter().map(u16::to_string)).chain(more).collect()
}

/// `slow s3 steps 4 limits [1000000] number 4 [1 5*]`, or `slow s3 chance -64`.
fn slow(s: &Slow, to: &mut impl Write) -> io::Result<()> {
    match &s.how {
        How::Chance(share) => writeln!(to, "  slow s{} chance {share}", s.sym),
        How::Steps(of) => {
            let limits: Vec<_> = of.limits.iter().map(u64::to_string).collect();
            let (limits, slow) = (limits.join(","), ints::print(&of.slow));
            writeln!(to, "  slow s{} steps {} limits {limits} number {} {slow}", s.sym, of.steps, of.number)
        }
    }
}

fn column(rank: u32, c: &Column, to: &mut impl Write) -> io::Result<()> {
    writeln!(to, "  column {rank}")?;
    if !c.clock.is_empty() {
        let points: Vec<_> =
            c.clock.points.iter().map(|p| format!(" {}/{}/{}", p.local, p.offset, p.error)).collect();
        writeln!(to, "   clock {} {}{}", c.clock.near, c.clock.far, points.concat())?;
    }
    for chunk in &c.chunks {
        let unit = if chunk.unit == 1 { String::new() } else { format!(" {}", chunk.unit) };
        writeln!(to, "   chunk {} {} {}{unit}", chunk.first, chunk.base, chunk.events)?;
        let (mut gaps, mut durations) = (&chunk.gaps[..], &chunk.durations[..]);
        let mut pairs = Vec::new();
        while let (Ok(gap), Ok(duration)) = (varint::get_i64(&mut gaps), varint::get_i64(&mut durations)) {
            pairs.push(format!("{gap}/{duration}"));
        }
        for line in pairs.chunks(TIMES) {
            writeln!(to, "    {}", line.join(" "))?;
        }
    }
    Ok(())
}
