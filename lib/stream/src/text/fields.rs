//! Words and lines of the text form that belong to nothing before them. Mirrors the functions of [`super::write`].

use std::str::FromStr;

use super::ints;
use super::words::{Words, unquote};
use st_model::calls::{CallId, CallTable, FIRST_UNKNOWN, LANES};
use st_model::columns::{Chunk, Column};
use st_model::ints::Sealed;
use st_model::lanes::LaneSum;
use st_model::names::{Location, Names};
use st_model::objects::{Comm, Group, Named, Op, SharedObject, Text, Type};
use st_model::ranklist::RankList;
use st_model::ranklist_notation::parse as ranks;
use st_model::ranks::{RankSeq, Run};
use st_model::section::{
    ANY_SYM, Elastic, Ended, Entry, Form, NO_SYM, Partition, PathSketch, RankSums, Section, Streams, Sym,
    Symbol,
};
use st_model::sites::{Frame, Module, Site};
use st_model::sketch::Sketch;
use st_model::sketch::histogram::Bin;
use st_model::sketch::quantiles::Quantiles;
use st_model::slow::{How, Slow, Steps};
use st_model::varint;

/// What a word should have been.
pub(super) type Expected = &'static str;

pub(super) type Parsed<T> = Result<T, Expected>;

pub(super) fn word<'a>(w: &mut Words<'a>, expected: Expected) -> Parsed<&'a str> {
    w.next().ok_or(expected)
}

pub(super) fn number<T: FromStr>(w: &mut Words<'_>, expected: Expected) -> Parsed<T> {
    w.next().and_then(|w| w.parse().ok()).ok_or(expected)
}

fn hex(w: &mut Words<'_>, expected: Expected) -> Parsed<u128> {
    w.next().and_then(|w| u128::from_str_radix(w, 16).ok()).ok_or(expected)
}

fn text(w: &mut Words<'_>, expected: Expected) -> Parsed<String> {
    w.next().and_then(unquote).ok_or(expected)
}

pub(super) fn set(w: &mut Words<'_>) -> Parsed<RankList> {
    w.next().and_then(ranks).ok_or("a ranklist")
}

pub(super) fn key(w: &mut Words<'_>, key: &str, expected: Expected) -> Parsed<()> {
    (w.next() == Some(key)).then_some(()).ok_or(expected)
}

/// Words in brackets, separated by spaces.
fn list<'a>(w: &mut Words<'a>, expected: Expected) -> Parsed<impl Iterator<Item = &'a str> + use<'a>> {
    let inner = w.next().and_then(|w| w.strip_prefix('[')?.strip_suffix(']')).ok_or(expected)?;
    Ok(inner.split(' ').filter(|w| !w.is_empty()))
}

pub(super) fn symbol_number(w: &mut Words<'_>) -> Parsed<Sym> {
    w.next().and_then(|w| w.strip_prefix('s')?.parse().ok()).ok_or("a symbol (s and its number)")
}

pub(super) fn json<T: serde::de::DeserializeOwned>(w: &mut Words<'_>) -> Parsed<T> {
    let value = serde_json::from_str(w.rest()).or(Err("JSON"));
    *w = Words::new("");
    value
}

/// What an address is called.
pub(super) fn address(names: &mut Names, w: &mut Words<'_>) -> Parsed<()> {
    let (key, offset) = word(w, "an address")?.split_once("+0x").ok_or("module+offset")?;
    let hex = |t: &str| u64::from_str_radix(t, 16).or(Err("module+offset"));
    let address = (hex(key)?, hex(offset)?);
    let mut locations = Vec::new();
    while let Some(function) = w.next() {
        locations.push(Location {
            function: unless_none(function, |t| unquote(t).map(Into::into)).ok_or("a function")?,
            file: unless_none(word(w, "a file")?, |t| unquote(t).map(Into::into)).ok_or("a file")?,
            line: unless_none(word(w, "a line")?, |t| t.parse().ok()).ok_or("a line")?,
            displacement: unless_none(word(w, "a distance")?, |t| t.parse().ok()).ok_or("a distance")?,
        });
    }
    names.insert(address, locations);
    Ok(())
}

/// A word, or `-` for none; nothing if it is neither.
fn unless_none<T>(word: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
    if word == "-" { Some(None) } else { read(word).map(Some) }
}

/// Pairs of times of a chunk; returns their number.
pub(super) fn times<'a>(first: &'a str, w: &mut Words<'a>, chunk: &mut Chunk) -> Parsed<u32> {
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
pub(super) fn header_line(s: &mut Section, first: &str, w: &mut Words<'_>) -> Parsed<()> {
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
        "win" => s.tables.wins.push(Entry { family: hex(w, "a family")?, of: Vec::new() }),
        "file" => s.tables.files.push(Entry { family: hex(w, "a family")?, of: Vec::new() }),
        "text" => s.tables.texts.push(Entry { family: hex(w, "a family")?, of: Vec::new() }),
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
        "ended" => s.ended.push(ended(w)?),
        _ => return Err("a line that may stand here"),
    }
    Ok(())
}

fn ended(w: &mut Words<'_>) -> Parsed<Ended> {
    let rank = number(w, "a rank")?;
    key(w, "thread", "\"thread\"")?;
    let thread = number(w, "a thread")?;
    key(w, "calls", "\"calls\"")?;
    let calls = number(w, "a number of calls")?;
    key(w, "last", "\"last\"")?;
    let last = symbol_or_none(w)?;
    key(w, "inside", "\"inside\"")?;
    let inside = symbol_or_none(w)?;
    key(w, "entered", "\"entered\"")?;
    Ok(Ended { rank, thread, calls, last, inside, entered: number(w, "a time")? })
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
pub(super) fn named_call(s: &Section, sym: Sym, w: &mut Words<'_>) -> Parsed<CallId> {
    let symbol = s.symbols.get(sym as usize).ok_or("a symbol that has been listed")?;
    let call = w.next().and_then(|name| call_id(s, name));
    call.filter(|c| *c == symbol.call).ok_or("the symbol's function")
}

/// An object, for the entry opened last.
pub(super) fn object(s: &mut Section, w: &mut Words<'_>) -> Parsed<()> {
    let (on, name, copy) = (set(w)?, hex(w, "a name")?, number(w, "a copy")?);
    let t = &mut s.tables;
    // Tables are written one after the other, so the last one that has an entry is the open one.
    if let Some(e) = t.texts.last_mut() {
        e.of.push((on, Named { name, copy, content: Text(text(w, "a text")?) }));
    } else if let Some(e) = t.files.last_mut().or(t.wins.last_mut()) {
        let (kind, comm) = (text(w, "a kind")?, hex(w, "a communicator")?);
        e.of.push((on, Named { name, copy, content: SharedObject { kind, comm, members: sequence(w)? } }));
    } else if let Some(e) = t.ops.last_mut() {
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
        let bounds = 0..i128::from(u32::MAX);
        if !bounds.contains(&start.into()) || !bounds.contains(&last) || total > u32::MAX.into() {
            return Err("ranks");
        }
        runs.push(Run { start, step, n });
    }
    Ok(RankSeq::from_runs(runs))
}

/// A line of a thread that belongs to nothing before it.
pub(super) fn thread_line(s: &mut Section, first: &str, w: &mut Words<'_>) -> Parsed<()> {
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
        "slow" => t.slow.push(slow(w)?),
        _ => {
            let rank = number(w, "a rank")?;
            if t.columns.last().is_some_and(|(last, _)| *last >= rank) {
                return Err("times by rank, ascending");
            }
            t.columns.push((rank, Column::default()));
        }
    }
    Ok(())
}

fn slow(w: &mut Words<'_>) -> Parsed<Slow> {
    let sym = symbol_number(w)?;
    let how = match word(w, "steps or chance")? {
        "chance" => How::Chance(number(w, "a share")?),
        "steps" => {
            let steps = number(w, "a number of steps")?;
            key(w, "limits", "\"limits\"")?;
            let limits = word(w, "limits")?.split(',').map(str::parse).collect::<Result<_, _>>();
            let limits = limits.or(Err("limits"))?;
            key(w, "number", "\"number\"")?;
            How::Steps(Steps { limits, steps, number: number(w, "a number of durations")?, slow: sealed(w)? })
        }
        _ => return Err("steps or chance"),
    };
    Ok(Slow { sym, how })
}

fn sealed(w: &mut Words<'_>) -> Parsed<Sealed> {
    w.next().and_then(ints::parse).ok_or("a stream of integers")
}

pub(super) fn elastic(s: &Section, w: &mut Words<'_>) -> Parsed<Elastic> {
    let head = w.next().and_then(|w| w.strip_prefix('P')).ok_or("a partition (P and its number)")?;
    let (head, form) = match head.split_once('~') {
        Some((head, form)) => (head, form.parse().or(Err("a form after ~"))?),
        None => (head, Form::Absolute),
    };
    let partition: u32 = head.parse().or(Err("a partition (P and its number)"))?;
    let classes = &s.partitions.get(partition as usize).ok_or("a partition that has been listed")?.classes;
    let mut streams = Streams::with_capacity(classes.len());
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
    let pred = symbol_none_or_any(w)?;
    key(w, "compute", "\"compute\"")?;
    let compute = sketch(w)?;
    key(w, "communicate", "\"communicate\"")?;
    Ok(PathSketch { sym, pred, compute, comm: sketch(w)? })
}

/// A symbol, `-` for none, or `*` for any.
fn symbol_none_or_any(w: &mut Words<'_>) -> Parsed<Sym> {
    let mut ahead = w.clone();
    if ahead.next() == Some("*") {
        *w = ahead;
        return Ok(ANY_SYM);
    }
    symbol_or_none(w)
}

/// A symbol, or `-` for none.
fn symbol_or_none(w: &mut Words<'_>) -> Parsed<Sym> {
    let mut ahead = w.clone();
    if ahead.next() == Some("-") {
        *w = ahead;
        return Ok(NO_SYM);
    }
    symbol_number(w)
}

fn sketch(w: &mut Words<'_>) -> Parsed<Sketch> {
    let mut totals = Sketch::default();
    totals.sum = number(w, "a sum")?;
    totals.squares = number(w, "a sum of squares")?;
    for extreme in [&mut totals.min, &mut totals.max] {
        let (ns, rank) = word(w, "ns/rank")?.split_once('/').ok_or("ns/rank")?;
        *extreme = (ns.parse().or(Err("ns/rank"))?, rank.parse().or(Err("ns/rank"))?);
    }
    let (mut buckets, mut bins) = (Vec::new(), Vec::<Bin>::new());
    let listed: Vec<_> = list(w, "buckets")?.collect();
    if let [one] = listed[..]
        && let Some(n) = one.strip_prefix('=')
    {
        totals.count = n.parse().or(Err("=number"))?;
        return Ok(Sketch::from_totals(totals));
    }
    if let [count, numbers @ ..] = &listed[..]
        && let Some(count) = count.strip_prefix('~')
    {
        totals.count = count.parse().or(Err("~number"))?;
        let (mut buckets, mut more) = (Vec::<u16>::new(), Vec::new());
        for number in numbers {
            match number.strip_prefix('+') {
                Some(at) => more.push(at.parse().or(Err("+position"))?),
                None => buckets.push(number.parse().or(Err("a bucket"))?),
            }
        }
        let kept = match buckets.split_first() {
            Some((deviation, buckets)) => {
                Quantiles::from_parts(more, buckets.to_vec(), *deviation, totals.count)
            }
            None => None,
        };
        return Ok(Sketch::from_quantiles(
            totals,
            kept.ok_or("a deviation, and a bucket for each of the fixed ranks")?,
        ));
    }
    for bucket in listed {
        if bucket.contains('-') {
            let bin = bin(bucket, bins.last()).ok_or("low-high:number/sum/squares, without gaps")?;
            totals.count = totals.count.checked_add(bin.count).ok_or("smaller numbers")?;
            bins.push(bin);
            continue;
        }
        let (b, n) = bucket.split_once(':').ok_or("bucket:number")?;
        let n: u64 = n.parse().or(Err("bucket:number"))?;
        totals.count = totals.count.checked_add(n).ok_or("smaller numbers")?;
        buckets.push((b.parse().or(Err("bucket:number"))?, n));
    }
    match (bins.is_empty(), buckets.is_empty()) {
        (true, _) => Ok(Sketch::from_parts(totals, buckets)),
        (false, true) => Ok(Sketch::from_bins(totals, bins)),
        (false, false) => Err("bins or buckets"),
    }
}

/// A bin that follows another one.
fn bin(text: &str, before: Option<&Bin>) -> Option<Bin> {
    let (edges, numbers) = text.split_once(':')?;
    let (low, high) = edges.split_once('-')?;
    let (count, sums) = numbers.split_once('/')?;
    let (sum, squares) = sums.split_once('/')?;
    let (low, high) = (low.parse().ok()?, high.parse().ok()?);
    let follows = low < high && before.is_none_or(|b| b.high == low);
    let bin =
        Bin { low, high, count: count.parse().ok()?, sum: sum.parse().ok()?, squares: squares.parse().ok()? };
    follows.then_some(bin)
}
