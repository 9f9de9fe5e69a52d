//! Payload of STRUCT: symbols, partitions, and per thread the tree, its counts and the parameter streams.
//!
//! Columns by role, in this order: symbols, partitions, trees, the shape of elastic streams (form and partition), forms,
//! then for counts, lengths of lists and each meaning of parameters a column of stream heads and one of stream values.

use std::collections::HashMap;

use super::blocks::{self, Blocks};
use super::bytes::{
    finish, get_i64, get_index, get_len, get_str, get_u16, get_u32, get_u64, put_i64, put_str, put_u64,
    put_usize,
};
use super::error::{DecodeError, Field as _};
use super::numbers::{Budget, MOST, Numbers, RUNS, Readers, get_columns, get_set, put_set};
use super::parts::Piece;
use crate::calls::{CallId, CallTable, FIRST_UNKNOWN, Lane, Meaning, Slot};
use crate::expr::Expr;
use crate::form::{Codes, Grid};
use crate::frequencies::Frequencies;
use crate::ints::Sealed;
use crate::ranklist::RankList;
use crate::section::{Elastic, Form, Partition, Section, SlotStreams, Symbol, Tables};
use crate::tree::{FlatTree, Item};

/// The parts of a section that STRUCT holds.
#[derive(Debug)]
pub(crate) struct Structure {
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) partitions: Vec<Partition>,
    pub(crate) threads: Vec<Control>,
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

const CALL: usize = 0;
const SITE: usize = 1;
const ERROR: usize = 2;
const PARTITION: usize = 3;
const NODE: usize = 4;
const BELOW: usize = 5;
const PRESENT: usize = 6;
const SHAPE: usize = 7;
const FORM: usize = 8;
/// First of the pairs (heads, values) of streams.
const STREAMS: usize = 9;
/// Streams: counts, lengths, then [`role`].
const ROLES: usize = 13;
pub(super) const COLUMNS: usize = STREAMS + 2 * ROLES;

pub(super) const COUNTS: usize = 0;
pub(super) const LENGTHS: usize = 1;

/// Column pair of a slot's values: streams of one meaning are alike.
pub(super) fn role(slot: &Slot) -> usize {
    match (slot.meaning, slot.lane) {
        (Meaning::Rank, _) => 2,
        (Meaning::Tag, _) => 3,
        (Meaning::Count, Lane::Count) => 4,
        (Meaning::Count, _) => 5,
        (Meaning::Ref(_), Lane::Count) => 6,
        (Meaning::Ref(_), _) => 7,
        (Meaning::Request | Meaning::Info, _) => 8,
        (Meaning::Position, _) => 9,
        (Meaning::Flag, _) => 10,
        (Meaning::Times, _) => 11,
        (Meaning::Int, _) => 12,
    }
}

pub(crate) fn encode(s: &Section) -> Vec<u8> {
    let mut b = Blocks::<COLUMNS>::new();
    put_symbols(&mut b, &s.symbols);
    put_partitions(&mut b, s);
    let forms = forms_of(s);
    put_usize(&mut b.0[FORM], forms.len());
    forms.iter().for_each(|f| put_form(&mut b.0[FORM], *f));
    for t in &s.threads {
        put_tree(&mut b, &t.tree);
        t.counts.iter().for_each(|c| put_elastic(&mut b, c, COUNTS, &forms));
        put_usize(&mut b.0[PRESENT], t.params.len());
        for (streams, symbol) in t.params.iter().zip(&s.symbols) {
            put_params(&mut b, streams, CallTable::builtin().slots(symbol.call), &forms);
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
    for i in 0..known.threads {
        threads.push(get_thread(&mut b, &symbols, (&partitions, &forms)).nth("thread", i)?);
    }
    blocks::finish(&b)?;
    if forms.iter().any(|f| matches!(f, Form::Histogram(_))) {
        let mut codes = Budget::new(MOST);
        for (i, t) in threads.iter().enumerate() {
            check_histograms(t, &mut codes).nth("thread", i)?;
        }
    }
    Ok(Structure { symbols, partitions, threads })
}

fn put_partitions(b: &mut Blocks<COLUMNS>, s: &Section) {
    put_usize(&mut b.0[PARTITION], s.partitions.len());
    let mut sets = Numbers::<RUNS>::new();
    for p in &s.partitions {
        put_usize(&mut b.0[PARTITION], p.classes.len());
        p.classes.iter().for_each(|c| put_set(&mut sets, 0, c, &s.ranks));
    }
    sets.finish(&mut b.0[PARTITION]);
}

/// Bytes of what is no stream.
pub(super) fn fixed_sizes(s: &Section) -> [(Piece, u64); 3] {
    let size = |put: &dyn Fn(&mut Blocks<COLUMNS>)| {
        let mut b = Blocks::<COLUMNS>::new();
        put(&mut b);
        b.len()
    };
    [
        (Piece::Symbols, size(&|b| put_symbols(b, &s.symbols))),
        (Piece::Partitions, size(&|b| put_partitions(b, s))),
        (Piece::Tree, size(&|b| s.threads.iter().for_each(|t| put_tree(b, &t.tree)))),
    ]
}

/// Sites are 0 for the lowest index not met yet, else index + 1.
fn put_symbols(b: &mut Blocks<COLUMNS>, symbols: &[Symbol]) {
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
    let len = u64::try_from(len).unwrap_or(u64::MAX);
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

/// The symbolic forms in use, in the order in which streams first have them.
pub(super) fn forms_of(s: &Section) -> Vec<Form> {
    let mut forms = Vec::new();
    for t in &s.threads {
        let params = t.params.iter().flatten().flat_map(|p| p.lens.iter().chain([&p.values]));
        for e in t.counts.iter().chain(params) {
            if e.form != Form::Absolute && !forms.contains(&e.form) {
                forms.push(e.form);
            }
        }
    }
    forms
}

/// 0 and the grid and factors; 1 and the grid and a bit per dimension that wraps, outermost highest; 2 exclusive or;
/// 3 and the text of an expression; 4 and the kind of a histogram's codes; 5 for what is predicted.
fn put_form(out: &mut Vec<u8>, form: Form) {
    let grid = |out: &mut Vec<u8>, kind, grid: Grid| {
        put_u64(out, kind);
        let (middle, inner) = grid.extents();
        put_u64(out, middle.into());
        put_u64(out, inner.into());
    };
    match form {
        Form::Affine { grid: g, factors } => {
            grid(out, 0, g);
            factors.iter().for_each(|f| put_i64(out, *f));
        }
        Form::Shift { grid: g, wrap } => {
            grid(out, 1, g);
            put_u64(out, wrap.iter().fold(0, |bits, w| bits << 1 | u64::from(*w)));
        }
        Form::Xor | Form::Absolute => put_u64(out, 2),
        Form::User(e) => {
            put_u64(out, 3);
            put_str(out, &e.to_string());
        }
        Form::Histogram(codes) => {
            put_u64(out, 4);
            put_usize(out, Codes::ALL.into_iter().position(|c| c == codes).unwrap_or(0));
        }
        Form::Predicted => put_u64(out, 5),
    }
}

fn get_form(src: &mut &[u8]) -> Result<Form, DecodeError> {
    let kind = get_u64(src)?;
    if kind == 2 {
        return Ok(Form::Xor);
    }
    if kind == 3 {
        let text = get_str(src).field("expression")?;
        let parsed = Expr::parse(&text, &HashMap::new());
        return parsed.map(Form::User).map_err(|_| DecodeError::Invalid("no expression")).field("expression");
    }
    if kind == 5 {
        return Ok(Form::Predicted);
    }
    if kind == 4 {
        let at = get_index(src, Codes::ALL.len()).field("codes")?;
        return Ok(Form::Histogram(Codes::ALL[at as usize]));
    }
    let (middle, inner) = (get_u32(src).field("grid")?, get_u32(src).field("grid")?);
    let grid = Grid::new(middle, inner).ok_or(DecodeError::Invalid("no grid of ranks")).field("grid")?;
    match kind {
        0 => {
            let mut factors = [0; 3];
            for f in &mut factors {
                *f = get_i64(src).field("factors")?;
            }
            Ok(Form::Affine { grid, factors })
        }
        1 => {
            let bits = get_index(src, 8).field("wrap")?;
            Ok(Form::Shift { grid, wrap: [bits & 4 != 0, bits & 2 != 0, bits & 1 != 0] })
        }
        _ => Err(DecodeError::Invalid("unknown form of values")),
    }
}

/// Nodes in preorder: 0 for the lowest symbol not met yet, 1 for a body (its number of nodes below apart), else the
/// symbol + 2.
fn put_tree(b: &mut Blocks<COLUMNS>, tree: &FlatTree) {
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

fn get_thread(
    b: &mut [&[u8]; COLUMNS],
    symbols: &[Symbol],
    known: (&[Partition], &[Form]),
) -> Result<Control, DecodeError> {
    let tree = get_tree(b, symbols.len())?;
    let mut counts = Vec::with_capacity(tree.items().len());
    for i in 0..tree.items().len() {
        counts.push(get_elastic(b, known, COUNTS).nth("count", i)?);
    }
    // At most one list of streams per symbol, and a symbol without slots takes no byte here.
    let n = get_index(&mut b[PRESENT], symbols.len() + 1).field("parameters")? as usize;
    let mut params = Vec::with_capacity(n);
    for (i, symbol) in symbols.iter().take(n).enumerate() {
        params.push(get_params(b, known, CallTable::builtin().slots(symbol.call)).nth("parameters", i)?);
    }
    check_params(&tree, &params, symbols)?;
    Ok(Control { tree, counts, params })
}

/// Symbols that occur in the tree have all their streams.
fn check_params(tree: &FlatTree, params: &[Vec<SlotStreams>], symbols: &[Symbol]) -> Result<(), DecodeError> {
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
            codes.take(usize::try_from(stream.cursor().next()).unwrap_or(0)).nth("symbol", i)?;
            let valid = Frequencies::from_stream(stream).ok_or(DecodeError::Invalid("no histogram"));
            valid.nth("symbol", i)?;
        }
    }
    Ok(())
}

/// Whether the symbol has streams; then per slot its lengths, if it is a list, and its values.
fn put_params(b: &mut Blocks<COLUMNS>, streams: &[SlotStreams], slots: &[Slot], forms: &[Form]) {
    if slots.is_empty() {
        return;
    }
    put_u64(&mut b.0[PRESENT], u64::from(!streams.is_empty()));
    for (s, slot) in streams.iter().zip(slots) {
        if let Some(lens) = s.lens.as_ref().filter(|_| slot.list) {
            put_elastic(b, lens, LENGTHS, forms);
        }
        put_elastic(b, &s.values, role(slot), forms);
    }
}

fn get_params(
    b: &mut [&[u8]; COLUMNS],
    known: (&[Partition], &[Form]),
    slots: &[Slot],
) -> Result<Vec<SlotStreams>, DecodeError> {
    let mut streams = Vec::new();
    if slots.is_empty() || get_index(&mut b[PRESENT], 2)? == 0 {
        return Ok(streams);
    }
    for (i, slot) in slots.iter().enumerate() {
        let lens =
            if slot.list { Some(get_elastic(b, known, LENGTHS).nth("lengths of slot", i)?) } else { None };
        let values = get_elastic(b, known, role(slot)).nth("slot", i)?;
        streams.push(SlotStreams { lens, values });
    }
    Ok(streams)
}

/// The partition, doubled, plus 1 and the number of the form if there is one; then a stream per class of the partition.
pub(super) fn put_elastic(b: &mut Blocks<COLUMNS>, e: &Elastic, role: usize, forms: &[Form]) {
    let form = forms.iter().position(|f| *f == e.form);
    put_u64(&mut b.0[SHAPE], u64::from(e.partition) << 1 | u64::from(form.is_some()));
    if let Some(form) = form {
        put_usize(&mut b.0[SHAPE], form);
    }
    for s in &e.streams {
        let (heads, values) = b.0.split_at_mut(STREAMS + 2 * role + 1);
        s.encode(&mut heads[STREAMS + 2 * role], &mut values[0]);
    }
}

fn get_elastic(
    b: &mut [&[u8]; COLUMNS],
    (partitions, forms): (&[Partition], &[Form]),
    role: usize,
) -> Result<Elastic, DecodeError> {
    let code = get_u64(&mut b[SHAPE])?;
    let form = if code & 1 == 1 {
        forms[get_index(&mut b[SHAPE], forms.len()).field("form")? as usize]
    } else {
        Form::Absolute
    };
    let (index, len) = (code >> 1, partitions.len() as u64);
    let classes = usize::try_from(index).ok().and_then(|p| partitions.get(p));
    let classes = classes.ok_or(DecodeError::Index { index, len }).field("partition")?.classes.len();
    let mut streams = Vec::new();
    for i in 0..classes {
        let (heads, values) = b.split_at_mut(STREAMS + 2 * role + 1);
        let s = Sealed::decode(&mut heads[STREAMS + 2 * role], &mut values[0]).map_err(DecodeError::from);
        streams.push(s.nth("stream of class", i)?);
    }
    let partition = u32::try_from(index).map_err(|_| DecodeError::Integer)?;
    Ok(Elastic { form, partition, streams })
}
