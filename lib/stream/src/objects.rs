//! Payload of OBJECTS: communicators, windows, files, groups, datatypes, operations, texts, and names of functions outside
//! the call table.
//!
//! Everything that follows from the section's ranks is written as "the section's ranks", so that ranks which made the
//! same objects have equal payloads; it is decoded for each section that it is in force for.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;

use super::bytes::{
    finish, get_bytes, get_id, get_len, get_str, get_u8, get_u16, put_bytes, put_id, put_str, put_u64,
    put_usize,
};
use super::error::{DecodeError, Field as _};
use super::numbers::{self, Budget, MOST, Numbers, RUNS, Readers};
use st_model::calls::{CallId, FIRST_UNKNOWN};
use st_model::ints::Sealed;
use st_model::objects::{
    Comm, Content, Group, Name, Named, Op, Registered, SharedObject, Text, Type, family_of_predefined,
    name_of,
};
use st_model::ranklist::RankList;
use st_model::ranks::RankSeq;
use st_model::section::{Entry, Tables};

/// Objects of each entry.
const OF: usize = 0;
/// Which ranks have an object: a set.
const SET: usize = 1;
/// Number of the copy, doubled, plus 1 if the name is given.
const COPY: usize = SET + RUNS;
/// Kinds: 0 for one not met yet, else 1 + its place among those met.
const KIND: usize = COPY + 1;
/// References to other objects of the table.
const REFERENCE: usize = KIND + 1;
/// Members of communicators, windows, files and groups: sequences.
const MEMBERS: usize = REFERENCE + 1;
/// Lengths of lists.
const LENGTH: usize = MEMBERS + RUNS;
/// Integers that make a datatype, sizes and extents; whether operations commute.
const WORD: usize = LENGTH + 1;
const COLUMNS: usize = WORD + 1;

/// What an encoder or decoder knows while it is in a table.
#[derive(Debug)]
struct Context<'a> {
    /// The section's ranks.
    ranks: &'a RankList,
    /// The same as a sequence.
    sequence: RankSeq,
    /// Names that references may be to, in order, with the first position of each.
    names: Vec<Name>,
    positions: HashMap<Name, usize, FixedState>,
    /// Kinds met so far.
    kinds: Vec<String>,
}

impl<'a> Context<'a> {
    fn new(ranks: &'a RankList) -> Self {
        let (names, positions, kinds) = (Vec::new(), HashMap::default(), Vec::new());
        Self { ranks, sequence: sequence_of(ranks), names, positions, kinds }
    }
    fn next_table<T: Codec>(&mut self) {
        if T::OWN_NAMES {
            self.names.clear();
            self.positions.clear();
        }
    }
    fn met<T: Codec>(&mut self, name: Name) {
        if T::OWN_NAMES {
            self.positions.entry(name).or_insert(self.names.len());
            self.names.push(name);
        }
    }
}

fn sequence_of(ranks: &RankList) -> RankSeq {
    RankSeq::from_runs(ranks.runs().iter().copied())
}

/// What is written: names, kinds and families byte by byte, numbers in columns.
#[derive(Debug)]
pub struct Out<'a> {
    bytes: Vec<u8>,
    numbers: Numbers<COLUMNS>,
    context: Context<'a>,
}

/// What is read.
#[derive(Debug)]
pub struct In<'a, 'b> {
    bytes: &'b [u8],
    numbers: Readers<'b, COLUMNS>,
    context: Context<'a>,
    things: Budget,
    runs: Budget,
}

impl<'a, 'b> In<'a, 'b> {
    fn new(bytes: &'b [u8], columns: &'b [Sealed; COLUMNS], ranks: &'a RankList) -> Self {
        let (things, runs) = (Budget::new(MOST), Budget::new(MOST));
        Self { bytes, numbers: Readers::new(columns), context: Context::new(ranks), things, runs }
    }
}

/// Fields of a kind of object that these ranks have.
pub trait Codec: Content + Sized {
    /// References are to objects of the same table met before; otherwise to those of the table before it.
    const OWN_NAMES: bool = true;
    /// Writes what these ranks have.
    fn put(&self, out: &mut Out<'_>, on: &RankList);
    /// Reads it back.
    ///
    /// # Errors
    ///
    /// If it is malformed.
    fn get(src: &mut In<'_, '_>, on: &RankList) -> Result<Self, DecodeError>;
}

pub(crate) fn encode(tables: &Tables, ranks: &RankList) -> Vec<u8> {
    let mut out = Out { bytes: Vec::new(), numbers: Numbers::new(), context: Context::new(ranks) };
    put_table(&mut out, &tables.comms);
    put_table(&mut out, &tables.wins);
    put_table(&mut out, &tables.files);
    put_table(&mut out, &tables.groups);
    put_table(&mut out, &tables.types);
    put_table(&mut out, &tables.ops);
    put_table(&mut out, &tables.texts);
    put_usize(&mut out.bytes, tables.names.len());
    for (id, name) in &tables.names {
        put_u64(&mut out.bytes, id.0.into());
        put_str(&mut out.bytes, name);
    }
    let mut payload = Vec::new();
    put_bytes(&mut payload, &out.bytes);
    out.numbers.finish(&mut payload);
    payload
}

pub(crate) fn decode(mut src: &[u8], ranks: &RankList) -> Result<Tables, DecodeError> {
    let bytes = get_bytes(&mut src)?;
    let columns = numbers::get_columns(&mut src)?;
    finish(src)?;
    let mut src = In::new(bytes, &columns, ranks);
    let tables = Tables {
        comms: get_table(&mut src).field("communicators")?,
        wins: get_table(&mut src).field("windows")?,
        files: get_table(&mut src).field("files")?,
        groups: get_table(&mut src).field("groups")?,
        types: get_table(&mut src).field("datatypes")?,
        ops: get_table(&mut src).field("operations")?,
        texts: get_table(&mut src).field("texts")?,
        names: get_names(&mut src.bytes).field("function names")?,
    };
    finish(src.bytes)?;
    Ok(tables)
}

fn get_names(src: &mut &[u8]) -> Result<BTreeMap<CallId, String>, DecodeError> {
    let mut names = BTreeMap::new();
    for _ in 0..get_len(src)? {
        let id = get_u16(src)?;
        if id < FIRST_UNKNOWN {
            return Err(DecodeError::Invalid("names a function of the call table"));
        }
        names.insert(CallId(id), get_str(src)?);
    }
    Ok(names)
}

fn put_table<T: Codec>(out: &mut Out<'_>, table: &[Entry<T>]) {
    out.context.next_table::<T>();
    put_usize(&mut out.bytes, table.len());
    for e in table {
        let predefined = e.of.first().is_some_and(|(_, o)| e.family == family_of_predefined(&o.content));
        put_u64(&mut out.bytes, u64::from(predefined));
        if !predefined {
            put_id(&mut out.bytes, e.family);
        }
        out.numbers.put_len(OF, e.of.len());
        for (ranks, object) in &e.of {
            numbers::put_set(&mut out.numbers, SET, ranks, out.context.ranks);
            put_named(out, object, ranks);
            out.context.met::<T>(object.name);
        }
    }
}

fn get_table<T: Codec>(src: &mut In<'_, '_>) -> Result<Vec<Entry<T>>, DecodeError> {
    src.context.next_table::<T>();
    let n = get_len(&mut src.bytes)?;
    (0..n).map(|i| get_entry(src).nth("entry", i)).collect()
}

fn get_entry<T: Codec>(src: &mut In<'_, '_>) -> Result<Entry<T>, DecodeError> {
    let family = match get_u8(&mut src.bytes)? {
        0 => Some(get_id(&mut src.bytes).field("family")?),
        1 => None,
        _ => return Err(DecodeError::Invalid("unknown form of family")),
    };
    let n = src.numbers.get_len(OF, &mut src.things)?;
    // A vector that grows holds itself twice; what a stream only claims is not taken at once.
    let mut of = Vec::with_capacity(n.min(1 << 20));
    for i in 0..n {
        let ranks = numbers::get_set(&mut src.numbers, SET, src.context.ranks, &mut src.runs);
        let (ranks, all) = (ranks.nth("object", i)?, src.context.ranks);
        // Others may be any number, and are gone through one by one.
        if ranks.len() > all.len() || ranks.highest() > all.highest() {
            return Err(DecodeError::Invalid("an object of ranks that are not the section's"))
                .nth("object", i);
        }
        let object: Named<T> = get_named(src, &ranks).nth("object", i)?;
        src.context.met::<T>(object.name);
        of.push((ranks, object));
    }
    let family = match (family, of.first()) {
        (Some(family), _) => family,
        (None, Some((_, o))) => family_of_predefined(&o.content),
        (None, None) => return Err(DecodeError::Invalid("a predefined object that is none")),
    };
    Ok(Entry { family, of })
}

/// An object of one rank by itself: family and object.
pub fn put_object<T: Codec>(out: &mut Vec<u8>, object: &Registered<T>, rank: u32) {
    put_id(out, object.family);
    let ranks = RankList::single(rank);
    let mut parts = Out { bytes: Vec::new(), numbers: Numbers::new(), context: Context::new(&ranks) };
    put_named(&mut parts, &object.object, &ranks);
    put_bytes(out, &parts.bytes);
    parts.numbers.finish(out);
}

/// Reads what [`put_object`] has written.
///
/// # Errors
///
/// If it is malformed.
pub fn get_object<T: Codec>(src: &mut &[u8], rank: u32) -> Result<(u128, Named<T>), DecodeError> {
    let family = get_id(src).field("family")?;
    let bytes = get_bytes(src)?;
    let columns = numbers::get_columns(src)?;
    let ranks = RankList::single(rank);
    let mut parts = In::new(bytes, &columns, &ranks);
    let object = get_named(&mut parts, &ranks)?;
    finish(parts.bytes)?;
    Ok((family, object))
}

fn put_named<T: Codec>(out: &mut Out<'_>, object: &Named<T>, on: &RankList) {
    let follows = object.name == name_of(object.content.digest(), object.copy);
    out.numbers.put(COPY, i64::from(object.copy) << 1 | i64::from(!follows));
    if !follows {
        put_id(&mut out.bytes, object.name);
    }
    object.content.put(out, on);
}

fn get_named<T: Codec>(src: &mut In<'_, '_>, on: &RankList) -> Result<Named<T>, DecodeError> {
    let head = src.numbers.get(COPY);
    let copy = u32::try_from(head >> 1).map_err(|_| DecodeError::Integer).field("copy")?;
    let given = if head & 1 == 1 { Some(get_id(&mut src.bytes).field("name")?) } else { None };
    let content = T::get(src, on)?;
    let name = given.unwrap_or_else(|| name_of(content.digest(), copy));
    Ok(Named { name, copy, content })
}

fn put_kind(out: &mut Out<'_>, kind: &str) {
    let met = out.context.kinds.iter().position(|k| k == kind);
    out.numbers.put_len(KIND, met.map_or(0, |at| at + 1));
    if met.is_none() {
        put_str(&mut out.bytes, kind);
        out.context.kinds.push(kind.to_owned());
    }
}

fn get_kind(src: &mut In<'_, '_>) -> Result<String, DecodeError> {
    let code = usize::try_from(src.numbers.get(KIND)).map_err(|_| DecodeError::Integer)?;
    let Some(at) = code.checked_sub(1) else {
        let kind = get_str(&mut src.bytes)?;
        src.context.kinds.push(kind.clone());
        return Ok(kind);
    };
    let kind = src.context.kinds.get(at).ok_or(DecodeError::Invalid("a kind not met yet"))?;
    // Kinds are names of functions and types; a long one must not come a million times.
    src.things.take(kind.len() / 64)?;
    Ok(kind.clone())
}

/// 0 for no object, 1 and the name, or 2 + the name's position in the table.
fn put_reference(out: &mut Out<'_>, name: Name) {
    let code = match out.context.positions.get(&name) {
        _ if name == 0 => 0,
        Some(&at) => at + 2,
        None => {
            put_id(&mut out.bytes, name);
            1
        }
    };
    out.numbers.put_len(REFERENCE, code);
}

fn get_reference(src: &mut In<'_, '_>) -> Result<Name, DecodeError> {
    match src.numbers.get(REFERENCE) {
        0 => Ok(0),
        1 => get_id(&mut src.bytes),
        at => {
            let names = &src.context.names;
            let found = usize::try_from(at).ok().and_then(|at| names.get(at.checked_sub(2)?));
            found.copied().ok_or(DecodeError::Invalid("an object not met yet"))
        }
    }
}

/// 0 for the section's ranks in ascending order, 1 for the ranks that have the object, else a sequence of as many runs
/// less 2.
fn put_members(out: &mut Out<'_>, members: &RankSeq, on: &RankList) {
    if *members == out.context.sequence {
        out.numbers.put(MEMBERS, 0);
    } else if *members.runs() == *on.runs() {
        out.numbers.put(MEMBERS, 1);
    } else {
        numbers::put_seq(&mut out.numbers, MEMBERS, members, 2);
    }
}

fn get_members(src: &mut In<'_, '_>, on: &RankList) -> Result<RankSeq, DecodeError> {
    match src.numbers.get_len(MEMBERS, &mut src.runs)? {
        0 => Ok(src.context.sequence.clone()),
        1 => Ok(sequence_of(on)),
        runs => numbers::get_seq(&mut src.numbers, MEMBERS, runs - 2),
    }
}

impl Codec for Comm {
    fn put(&self, out: &mut Out<'_>, on: &RankList) {
        put_kind(out, &self.kind);
        put_reference(out, self.parent);
        put_members(out, &self.members, on);
        numbers::put_seq(&mut out.numbers, MEMBERS, &self.remote, 0);
    }
    fn get(src: &mut In<'_, '_>, on: &RankList) -> Result<Self, DecodeError> {
        let kind = get_kind(src).field("kind")?;
        let parent = get_reference(src).field("parent")?;
        let members = get_members(src, on).field("members")?;
        let runs = src.numbers.get_len(MEMBERS, &mut src.runs).field("remote group")?;
        let remote = numbers::get_seq(&mut src.numbers, MEMBERS, runs).field("remote group")?;
        Ok(Self { kind, parent, members, remote })
    }
}

impl Codec for Group {
    fn put(&self, out: &mut Out<'_>, on: &RankList) {
        put_members(out, &self.members, on);
    }
    fn get(src: &mut In<'_, '_>, on: &RankList) -> Result<Self, DecodeError> {
        Ok(Self { members: get_members(src, on).field("members")? })
    }
}

impl Codec for Type {
    fn put(&self, out: &mut Out<'_>, _: &RankList) {
        put_kind(out, &self.kind);
        out.numbers.put_len(LENGTH, self.words.len());
        self.words.iter().for_each(|w| out.numbers.put(WORD, *w));
        out.numbers.put_len(LENGTH, self.parts.len());
        self.parts.iter().for_each(|p| put_reference(out, *p));
        [self.size, self.lb, self.extent].into_iter().for_each(|w| out.numbers.put(WORD, w));
    }
    fn get(src: &mut In<'_, '_>, _: &RankList) -> Result<Self, DecodeError> {
        let kind = get_kind(src).field("kind")?;
        let n = src.numbers.get_len(LENGTH, &mut src.things).field("words")?;
        let words = (0..n).map(|_| src.numbers.get(WORD)).collect();
        let mut parts = Vec::new();
        for i in 0..src.numbers.get_len(LENGTH, &mut src.things).field("parts")? {
            parts.push(get_reference(src).nth("part", i)?);
        }
        let [size, lb, extent] = [0; 3].map(|_: i32| src.numbers.get(WORD));
        Ok(Self { kind, words, parts, size, lb, extent })
    }
}

impl Codec for Op {
    fn put(&self, out: &mut Out<'_>, _: &RankList) {
        put_kind(out, &self.kind);
        out.numbers.put(WORD, i64::from(self.commutes));
    }
    fn get(src: &mut In<'_, '_>, _: &RankList) -> Result<Self, DecodeError> {
        let kind = get_kind(src).field("kind")?;
        match src.numbers.get(WORD) {
            0 => Ok(Self { kind, commutes: false }),
            1 => Ok(Self { kind, commutes: true }),
            _ => Err(DecodeError::Invalid("neither true nor false")).field("commutes"),
        }
    }
}

impl Codec for SharedObject {
    const OWN_NAMES: bool = false;
    fn put(&self, out: &mut Out<'_>, on: &RankList) {
        put_kind(out, &self.kind);
        put_reference(out, self.comm);
        put_members(out, &self.members, on);
    }
    fn get(src: &mut In<'_, '_>, on: &RankList) -> Result<Self, DecodeError> {
        let kind = get_kind(src).field("kind")?;
        let comm = get_reference(src).field("communicator")?;
        Ok(Self { kind, comm, members: get_members(src, on).field("members")? })
    }
}

impl Codec for Text {
    fn put(&self, out: &mut Out<'_>, _: &RankList) {
        put_str(&mut out.bytes, &self.0);
    }
    fn get(src: &mut In<'_, '_>, _: &RankList) -> Result<Self, DecodeError> {
        get_str(&mut src.bytes).map(Self)
    }
}
