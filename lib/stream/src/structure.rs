//! Payload of STRUCT: symbols, partitions, and per thread the tree, its counts and the parameter streams.
//!
//! Columns by role, in this order: symbols, partitions, trees, the shape of elastic streams (form and partition), forms,
//! then for counts, lengths of lists and each meaning of parameters a column of stream heads and one of stream values.

use super::blocks::{self, Blocks};
use super::bytes::{finish, get_index, get_len, get_u16, get_u32, get_u64, put_u64, put_usize};
use super::elastic::{Stored, Written, get_params, get_stored, put_elastic, put_params};
use super::error::{DecodeError, Field as _};
use super::forms::{forms_of, get_form, put_form};
use super::matched;
use super::numbers::{Budget, MOST, Numbers, RUNS, Readers, get_columns, get_set, put_set};
use super::struct_columns::{BELOW, CALL, COLUMNS, COUNTS, ERROR, FORM, NODE, PARTITION, PRESENT, SITE};
use super::transposed::{self, Exchange, Left};
use st_model::calls::{CallId, CallTable, FIRST_UNKNOWN};
use st_model::frequencies::Frequencies;
use st_model::ints::Sealed;
use st_model::num::{Exact, saturate};
use st_model::ranklist::RankList;
use st_model::section::{Elastic, Form, Partition, Section, SlotStreams, Symbol, Tables, Thread};
use st_model::tree::{FlatTree, Item};

/// The parts of a section that STRUCT holds.
#[derive(Debug)]
pub(crate) struct Structure {
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) partitions: Vec<Partition>,
    pub(crate) threads: Vec<Control>,
    /// Streams of the first thread that follow from sends, and have not been made yet.
    pub(crate) matched: Vec<matched::At>,
}

/// The parts of a thread that STRUCT holds.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) tree: FlatTree,
    pub(crate) counts: Vec<Elastic>,
    pub(crate) params: Vec<Vec<SlotStreams>>,
}

/// What a decoder checks against.
pub(crate) struct Known<'a> {
    pub(crate) ranks: &'a RankList,
    pub(crate) sites: usize,
    pub(crate) tables: &'a Tables,
    pub(crate) threads: usize,
}

pub(crate) fn encode(s: &Section) -> Vec<u8> {
    let mut b = Blocks::<COLUMNS>::new();
    put_symbols(&mut b, &s.symbols);
    put_partitions(&mut b, s);
    let forms = forms_of(s);
    put_usize(&mut b.0[FORM], forms.len());
    forms.iter().for_each(|f| put_form(&mut b.0[FORM], *f));
    let (mut left, mut written) = (Left::all(), Written::new(&forms));
    let matched = matched::follows(s);
    for t in &s.threads {
        put_tree(&mut b, &t.tree);
        t.counts.iter().for_each(|c| put_elastic(&mut b, c, COUNTS, &mut written));
        put_usize(&mut b.0[PRESENT], t.params.len());
        for (sym, (streams, symbol)) in t.params.iter().zip(&s.symbols).enumerate() {
            let made = slot_made(s, t, sym, &matched, &mut left);
            put_params(&mut b, streams, CallTable::builtin().slots(symbol.call), made, &mut written);
        }
    }
    let mut out = Vec::new();
    b.put(&mut out);
    out
}

pub(crate) fn decode(mut src: &[u8], known: &Known<'_>) -> Result<Structure, DecodeError> {
    let mut b: [&[u8]; COLUMNS] = blocks::get(&mut src)?;
    finish(src)?;
    let symbols = get_symbols(&mut b, known)?;
    let partitions = get_partitions(&mut b[PARTITION], known.ranks).field("partitions")?;
    let mut forms = Vec::new();
    for i in 0..get_len(&mut b[FORM]).field("forms")? {
        forms.push(get_form(&mut b[FORM]).nth("form", i)?);
    }
    let mut threads = Vec::new();
    let mut left = Left::all();
    let mut known_streams = Stored::new(&partitions, &forms);
    let mut matched = Vec::new();
    for i in 0..known.threads {
        let got = get_thread(&mut b, &symbols, &mut known_streams);
        let (mut t, made) = got.nth("thread", i)?;
        let (made, later) = made.into_iter().partition(|sym| transposed::slots(&symbols[*sym]).is_some());
        if i == 0 {
            let later: Vec<usize> = later;
            matched =
                later.into_iter().filter_map(|sym| Some((sym, matched::slot(&symbols[sym])?))).collect();
        } else if !later.is_empty() {
            return Err(DecodeError::Invalid("counts of receives by threads")).nth("thread", i);
        }
        let made: Vec<usize> = made;
        for sym in made {
            let of = Exchange {
                ranks: known.ranks,
                symbols: &symbols,
                partitions: &partitions,
                tables: known.tables,
                tree: &t.tree,
                counts: &t.counts,
                params: &t.params,
            };
            let (at, streams) = receive_counts(of, sym, &mut left).nth("symbol", sym).nth("thread", i)?;
            t.params[sym][at].values.streams = streams.into();
        }
        threads.push(t);
    }
    blocks::finish(&b)?;
    if forms.iter().any(|f| matches!(f, Form::Histogram(_))) {
        let mut codes = Budget::new(MOST);
        for (i, t) in threads.iter().enumerate() {
            check_histograms(t, &mut codes).nth("thread", i)?;
        }
    }
    Ok(Structure { symbols, partitions, threads, matched })
}

/// The slot of a symbol whose values are not written, since they follow from others.
pub(super) fn slot_made(
    s: &Section,
    t: &Thread,
    sym: usize,
    matched: &[matched::At],
    left: &mut Left,
) -> Option<usize> {
    let follows = transposed::follows(exchange(s, t), sym, left);
    let received = s.symbols.get(sym).and_then(transposed::slots).filter(|_| follows).map(|[_, at, _]| at);
    received.or_else(|| matched.iter().find(|at| at.0 == sym).map(|at| at.1))
}

/// What a thread's exchanges are seen by.
pub(super) fn exchange<'a>(s: &'a Section, t: &'a Thread) -> Exchange<'a> {
    Exchange {
        ranks: &s.ranks,
        symbols: &s.symbols,
        partitions: &s.partitions,
        tables: &s.tables,
        tree: &t.tree,
        counts: &t.counts,
        params: &t.params,
    }
}

/// The receive counts of a symbol, made again: their slot, and a stream per class.
fn receive_counts(
    of: Exchange<'_>,
    sym: usize,
    left: &mut Left,
) -> Result<(usize, Vec<Sealed>), DecodeError> {
    let made = transposed::slots(&of.symbols[sym]).and_then(|[_, at, _]| {
        let stored = of.params.get(sym)?.get(at)?;
        Some((at, transposed::streams(of, sym, stored.values.partition, left)?))
    });
    made.ok_or(DecodeError::Invalid("counts that do not follow"))
}

pub(super) fn put_partitions(b: &mut Blocks<COLUMNS>, s: &Section) {
    put_usize(&mut b.0[PARTITION], s.partitions.len());
    let mut sets = Numbers::<RUNS>::new();
    for p in &s.partitions {
        put_usize(&mut b.0[PARTITION], p.classes.len());
        p.classes.iter().for_each(|c| put_set(&mut sets, 0, c, &s.ranks));
    }
    sets.finish(&mut b.0[PARTITION]);
}

/// Sites are 0 for the lowest index not met yet, else index + 1.
pub(super) fn put_symbols(b: &mut Blocks<COLUMNS>, symbols: &[Symbol]) {
    put_usize(&mut b.0[CALL], symbols.len());
    let mut next = 0;
    for s in symbols {
        put_u64(&mut b.0[CALL], s.call.0.into());
        put_next(&mut b.0[SITE], s.site, &mut next, 1);
        put_u64(&mut b.0[ERROR], s.error.into());
    }
}

fn get_symbols(b: &mut [&[u8]; COLUMNS], known: &Known<'_>) -> Result<Vec<Symbol>, DecodeError> {
    let n = get_len(&mut b[CALL]).field("symbols")?;
    let mut next = 0;
    let mut symbols = Vec::with_capacity(n);
    for i in 0..n {
        symbols.push(get_symbol(b, known, &mut next).nth("symbol", i)?);
    }
    Ok(symbols)
}

fn get_symbol(b: &mut [&[u8]; COLUMNS], known: &Known<'_>, next: &mut u32) -> Result<Symbol, DecodeError> {
    let call = CallId(get_u16(&mut b[CALL]).field("function")?);
    let named = if call.0 >= FIRST_UNKNOWN {
        known.tables.names.contains_key(&call)
    } else {
        CallTable::builtin().get(call).is_some()
    };
    if !named {
        return Err(DecodeError::Call(call.0)).field("function");
    }
    let code = get_u64(&mut b[SITE]).field("site")?;
    let site = from_next(code, next, known.sites, 1).field("site")?;
    Ok(Symbol { call, site, error: get_u32(&mut b[ERROR]).field("error")? })
}

/// The lowest number not met yet is 0, any other is itself + `offset`.
fn put_next(out: &mut Vec<u8>, v: u32, next: &mut u32, offset: u64) {
    put_u64(out, if v == *next { 0 } else { u64::from(v) + offset });
    *next = (*next).max(v.saturating_add(1));
}

fn from_next(code: u64, next: &mut u32, len: usize, offset: u64) -> Result<u32, DecodeError> {
    let index = if code == 0 { u64::from(*next) } else { code - offset };
    let len = len.to_u64();
    let v = u32::try_from(index).ok().filter(|_| index < len).ok_or(DecodeError::Index { index, len })?;
    *next = (*next).max(v.saturating_add(1));
    Ok(v)
}

/// The number of classes of each, then the sets.
fn get_partitions(src: &mut &[u8], all: &RankList) -> Result<Vec<Partition>, DecodeError> {
    let (mut numbers, mut things) = (Vec::new(), Budget::new(MOST));
    for i in 0..get_len(src)? {
        let n = usize::try_from(get_u64(src)?).map_err(|_| DecodeError::Integer).nth("partition", i)?;
        things.take(n).nth("partition", i)?;
        numbers.push(n);
    }
    let columns = get_columns::<RUNS>(src)?;
    let (mut sets, mut runs) = (Readers::new(&columns), Budget::new(MOST));
    let mut partitions = Vec::new();
    for (i, n) in numbers.into_iter().enumerate() {
        let mut classes = Vec::new();
        for k in 0..n {
            classes.push(get_set(&mut sets, 0, all, &mut runs).nth("class", k).nth("partition", i)?);
        }
        partitions.push(Partition { classes });
    }
    Ok(partitions)
}

/// Nodes in preorder: 0 for the lowest symbol not met yet, 1 for a body (its number of nodes below apart), else the
/// symbol + 2.
pub(super) fn put_tree(b: &mut Blocks<COLUMNS>, tree: &FlatTree) {
    put_usize(&mut b.0[NODE], tree.items().len());
    let mut next = 0;
    for item in tree.items() {
        match *item {
            Item::Leaf { sym } => put_next(&mut b.0[NODE], sym, &mut next, 2),
            Item::Body { below } => {
                put_u64(&mut b.0[NODE], 1);
                put_u64(&mut b.0[BELOW], below.into());
            }
        }
    }
}

fn get_tree(b: &mut [&[u8]; COLUMNS], symbols: usize) -> Result<FlatTree, DecodeError> {
    let n = get_len(&mut b[NODE]).field("nodes")?;
    let mut items = Vec::with_capacity(n);
    let mut next = 0;
    // Where the open bodies end.
    let mut ends = vec![n];
    for i in 0..n {
        while ends.last() == Some(&i) {
            ends.pop();
        }
        let code = get_u64(&mut b[NODE]).nth("node", i)?;
        if code == 1 {
            let room = ends.last().map_or(0, |end| end - i);
            let below = get_index(&mut b[BELOW], room).nth("node", i)?;
            if below == 0 {
                return Err(DecodeError::Invalid("a body without nodes")).nth("node", i);
            }
            ends.push(i + 1 + below as usize);
            items.push(Item::Body { below });
        } else {
            items.push(Item::Leaf { sym: from_next(code, &mut next, symbols, 2).nth("node", i)? });
        }
    }
    Ok(FlatTree::new(items))
}

fn get_thread<'a>(
    b: &mut [&'a [u8]; COLUMNS],
    symbols: &[Symbol],
    known: &mut Stored<'a, '_>,
) -> Result<(Control, Vec<usize>), DecodeError> {
    let tree = get_tree(b, symbols.len())?;
    let mut counts = Vec::with_capacity(tree.items().len());
    for i in 0..tree.items().len() {
        let count = get_stored(b, known, COUNTS).nth("count", i)?;
        if count.streams.iter().any(Sealed::any_negative) {
            return Err(DecodeError::Invalid("a count below zero")).nth("count", i);
        }
        counts.push(count);
    }
    // At most one list of streams per symbol, and a symbol without slots takes no byte here.
    let n = get_index(&mut b[PRESENT], symbols.len() + 1).field("parameters")? as usize;
    let (mut params, mut made) = (Vec::with_capacity(n), Vec::new());
    for (i, symbol) in symbols.iter().take(n).enumerate() {
        let got = get_params(b, known, CallTable::builtin().slots(symbol.call)).nth("parameters", i)?;
        if let Some(slot) = got.1 {
            let received = transposed::slots(symbol).map(|slots| slots[1]).or_else(|| matched::slot(symbol));
            let follows = received == Some(slot);
            made.push(Some(i).filter(|_| follows).ok_or(DecodeError::Invalid("counts of no receive"))?);
        }
        params.push(got.0);
    }
    check_params(&tree, &params, symbols)?;
    Ok((Control { tree, counts, params }, made))
}

/// Symbols that occur in the tree have all their streams.
///
/// # Errors
///
/// If one has not.
pub fn check_params(
    tree: &FlatTree,
    params: &[Vec<SlotStreams>],
    symbols: &[Symbol],
) -> Result<(), DecodeError> {
    for item in tree.items() {
        if let Item::Leaf { sym } = *item {
            let i = sym as usize;
            let slots = symbols.get(i).map_or(0, |s| CallTable::builtin().slots(s.call).len());
            if params.get(i).map_or(0, Vec::len) != slots {
                return Err(DecodeError::Invalid("a symbol of the tree has no parameters")).nth("symbol", i);
            }
        }
    }
    Ok(())
}

/// Only values of parameters are histograms, and their streams are such.
fn check_histograms(t: &Control, codes: &mut Budget) -> Result<(), DecodeError> {
    let drawn = |e: &Elastic| matches!(e.form, Form::Histogram(_));
    let lens = t.params.iter().flatten().filter_map(|s| s.lens.as_ref());
    if t.counts.iter().chain(lens).any(drawn) {
        return Err(DecodeError::Invalid("a histogram of counts or lengths"));
    }
    for (i, slots) in t.params.iter().enumerate() {
        for stream in slots.iter().filter(|s| drawn(&s.values)).flat_map(|s| &s.values.streams) {
            codes.take(saturate(stream.cursor().next())).nth("symbol", i)?;
            let valid = Frequencies::from_stream(stream).ok_or(DecodeError::Invalid("no histogram"));
            valid.nth("symbol", i)?;
        }
    }
    Ok(())
}
