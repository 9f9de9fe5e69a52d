//! Payload of OBJECTS: communicators, groups, datatypes, operations, and names of functions outside the call table.
//!
//! Everything that follows from the section's ranks is written as "the section's ranks", so that ranks which made the
//! same objects have equal payloads; it is decoded for each section that it is in force for.

use std::collections::{BTreeMap, HashMap};

use super::bytes::{
    finish, get_bytes, get_i64, get_id, get_len, get_ranks, get_seq, get_str, get_u8, get_u16, get_u32,
    get_u64, put_bytes, put_i64, put_id, put_ranks, put_seq, put_str, put_u64, put_usize,
};
use super::error::{DecodeError, Field as _};
use crate::calls::{CallId, FIRST_UNKNOWN};
use crate::objects::{
    Comm, Content, Group, Name, Named, Op, Registered, Type, family_of_predefined, name_of,
};
use crate::ranklist::RankList;
use crate::ranks::RankSeq;
use crate::section::{Entry, Tables};

/// What an encoder or decoder knows while it is in a table.
pub(crate) struct Context<'a> {
    /// The section's ranks.
    ranks: &'a RankList,
    /// The same as a sequence.
    sequence: RankSeq,
    /// Names met so far in the table, in order, with the first position of each.
    names: Vec<Name>,
    positions: HashMap<Name, usize>,
}

impl<'a> Context<'a> {
    fn new(ranks: &'a RankList) -> Self {
        let sequence = RankSeq::from_runs(ranks.runs().iter().copied());
        Self { ranks, sequence, names: Vec::new(), positions: HashMap::new() }
    }
    fn next_table(&mut self) {
        self.names.clear();
        self.positions.clear();
    }
    fn met(&mut self, name: Name) {
        self.positions.entry(name).or_insert(self.names.len());
        self.names.push(name);
    }
}

/// Fields of a kind of object.
pub(crate) trait Codec: Content + Sized {
    fn put(&self, out: &mut Vec<u8>, context: &Context<'_>);
    fn get(src: &mut &[u8], context: &Context<'_>) -> Result<Self, DecodeError>;
}

pub(crate) fn encode(tables: &Tables, ranks: &RankList) -> Vec<u8> {
    let mut out = Vec::new();
    let mut context = Context::new(ranks);
    put_table(&mut out, &tables.comms, &mut context);
    put_table(&mut out, &tables.groups, &mut context);
    put_table(&mut out, &tables.types, &mut context);
    put_table(&mut out, &tables.ops, &mut context);
    put_usize(&mut out, tables.names.len());
    for (id, name) in &tables.names {
        put_u64(&mut out, id.0.into());
        put_str(&mut out, name);
    }
    out
}

pub(crate) fn decode(mut src: &[u8], ranks: &RankList) -> Result<Tables, DecodeError> {
    let src = &mut src;
    let mut context = Context::new(ranks);
    let tables = Tables {
        comms: get_table(src, &mut context).field("communicators")?,
        groups: get_table(src, &mut context).field("groups")?,
        types: get_table(src, &mut context).field("datatypes")?,
        ops: get_table(src, &mut context).field("operations")?,
        names: get_names(src).field("function names")?,
    };
    finish(src)?;
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

fn put_table<T: Codec>(out: &mut Vec<u8>, table: &[Entry<T>], context: &mut Context<'_>) {
    context.next_table();
    put_usize(out, table.len());
    for e in table {
        let predefined = e.of.first().is_some_and(|(_, o)| e.family == family_of_predefined(o.name));
        put_u64(out, u64::from(predefined));
        if !predefined {
            put_id(out, e.family);
        }
        put_usize(out, e.of.len());
        for (ranks, object) in &e.of {
            put_set(out, ranks, context);
            put_named(out, object, context);
            context.met(object.name);
        }
    }
}

fn get_table<T: Codec>(src: &mut &[u8], context: &mut Context<'_>) -> Result<Vec<Entry<T>>, DecodeError> {
    context.next_table();
    let n = get_len(src)?;
    (0..n).map(|i| get_entry(src, context).nth("entry", i)).collect()
}

fn get_entry<T: Codec>(src: &mut &[u8], context: &mut Context<'_>) -> Result<Entry<T>, DecodeError> {
    let family = match get_u8(src)? {
        0 => Some(get_id(src).field("family")?),
        1 => None,
        _ => return Err(DecodeError::Invalid("unknown form of family")),
    };
    let mut of = Vec::new();
    for i in 0..get_len(src)? {
        let ranks = get_set(src, context).nth("object", i)?;
        let object: Named<T> = get_named(src, context).nth("object", i)?;
        context.met(object.name);
        of.push((ranks, object));
    }
    let family = match (family, of.first()) {
        (Some(family), _) => family,
        (None, Some((_, o))) => family_of_predefined(o.name),
        (None, None) => return Err(DecodeError::Invalid("a predefined object that is none")),
    };
    Ok(Entry { family, of })
}

/// An object of one rank by itself: family and object.
pub(crate) fn put_object<T: Codec>(out: &mut Vec<u8>, object: &Registered<T>, rank: u32) {
    put_id(out, object.family);
    put_named(out, &object.object, &Context::new(&RankList::single(rank)));
}

pub(crate) fn get_object<T: Codec>(src: &mut &[u8], rank: u32) -> Result<(u128, Named<T>), DecodeError> {
    let family = get_id(src).field("family")?;
    Ok((family, get_named(src, &Context::new(&RankList::single(rank)))?))
}

/// 1 for the section's ranks, else 0 and the set.
pub(crate) fn put_set_of(out: &mut Vec<u8>, ranks: &RankList, all: &RankList) {
    put_u64(out, u64::from(ranks == all));
    if ranks != all {
        put_ranks(out, ranks);
    }
}

pub(crate) fn get_set_of(src: &mut &[u8], all: &RankList) -> Result<RankList, DecodeError> {
    match get_u8(src)? {
        0 => get_ranks(src),
        1 => Ok(all.clone()),
        _ => Err(DecodeError::Invalid("unknown form of ranks")),
    }
}

fn put_set(out: &mut Vec<u8>, ranks: &RankList, context: &Context<'_>) {
    put_set_of(out, ranks, context.ranks);
}

fn get_set(src: &mut &[u8], context: &Context<'_>) -> Result<RankList, DecodeError> {
    get_set_of(src, context.ranks)
}

/// The copy, doubled, plus 1 if the name does not follow from content and copy and is given.
fn put_named<T: Codec>(out: &mut Vec<u8>, object: &Named<T>, context: &Context<'_>) {
    let follows = object.name == name_of(object.content.digest(), object.copy);
    put_u64(out, u64::from(object.copy) << 1 | u64::from(!follows));
    if !follows {
        put_id(out, object.name);
    }
    object.content.put(out, context);
}

fn get_named<T: Codec>(src: &mut &[u8], context: &Context<'_>) -> Result<Named<T>, DecodeError> {
    let head = get_u64(src).field("copy")?;
    let copy = u32::try_from(head >> 1).map_err(|_| DecodeError::Integer).field("copy")?;
    let given = if head & 1 == 1 { Some(get_id(src).field("name")?) } else { None };
    let content = T::get(src, context)?;
    let name = given.unwrap_or_else(|| name_of(content.digest(), copy));
    Ok(Named { name, copy, content })
}

/// 0 for no object, 1 and the name, or 2 + the name's position in the table.
fn put_reference(out: &mut Vec<u8>, name: Name, context: &Context<'_>) {
    match context.positions.get(&name) {
        _ if name == 0 => put_u64(out, 0),
        Some(&at) => put_usize(out, at + 2),
        None => {
            put_u64(out, 1);
            put_id(out, name);
        }
    }
}

fn get_reference(src: &mut &[u8], context: &Context<'_>) -> Result<Name, DecodeError> {
    match get_u64(src)? {
        0 => Ok(0),
        1 => get_id(src),
        at => {
            let found = usize::try_from(at - 2).ok().and_then(|at| context.names.get(at));
            found.copied().ok_or(DecodeError::Index { index: at - 2, len: context.names.len() as u64 })
        }
    }
}

/// 1 for the section's ranks in ascending order, else 0 and the sequence.
fn put_members(out: &mut Vec<u8>, members: &RankSeq, context: &Context<'_>) {
    put_u64(out, u64::from(*members == context.sequence));
    if *members != context.sequence {
        put_seq(out, members);
    }
}

fn get_members(src: &mut &[u8], context: &Context<'_>) -> Result<RankSeq, DecodeError> {
    match get_u8(src)? {
        0 => get_seq(src),
        1 => Ok(context.sequence.clone()),
        _ => Err(DecodeError::Invalid("unknown form of members")),
    }
}

impl Codec for Comm {
    fn put(&self, out: &mut Vec<u8>, context: &Context<'_>) {
        put_str(out, &self.kind);
        put_reference(out, self.parent, context);
        put_members(out, &self.members, context);
        put_seq(out, &self.remote);
    }
    fn get(src: &mut &[u8], context: &Context<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            kind: get_str(src).field("kind")?,
            parent: get_reference(src, context).field("parent")?,
            members: get_members(src, context).field("members")?,
            remote: get_seq(src).field("remote group")?,
        })
    }
}

impl Codec for Group {
    fn put(&self, out: &mut Vec<u8>, context: &Context<'_>) {
        put_members(out, &self.members, context);
    }
    fn get(src: &mut &[u8], context: &Context<'_>) -> Result<Self, DecodeError> {
        Ok(Self { members: get_members(src, context).field("members")? })
    }
}

impl Codec for Type {
    fn put(&self, out: &mut Vec<u8>, context: &Context<'_>) {
        put_str(out, &self.kind);
        let mut words = Vec::new();
        self.words.iter().for_each(|w| put_i64(&mut words, *w));
        put_bytes(out, &words);
        put_usize(out, self.parts.len());
        self.parts.iter().for_each(|p| put_reference(out, *p, context));
        put_i64(out, self.size);
        put_i64(out, self.lb);
        put_i64(out, self.extent);
    }
    fn get(src: &mut &[u8], context: &Context<'_>) -> Result<Self, DecodeError> {
        let kind = get_str(src).field("kind")?;
        let mut bytes = get_bytes(src).field("words")?;
        let mut words = Vec::new();
        while !bytes.is_empty() {
            words.push(get_i64(&mut bytes).field("words")?);
        }
        let mut parts = Vec::new();
        for i in 0..get_len(src).field("parts")? {
            parts.push(get_reference(src, context).nth("part", i)?);
        }
        Ok(Self {
            kind,
            words,
            parts,
            size: get_i64(src).field("size")?,
            lb: get_i64(src).field("lower bound")?,
            extent: get_i64(src).field("extent")?,
        })
    }
}

impl Codec for Op {
    fn put(&self, out: &mut Vec<u8>, _: &Context<'_>) {
        put_str(out, &self.kind);
        put_u64(out, u64::from(self.commutes));
    }
    fn get(src: &mut &[u8], _: &Context<'_>) -> Result<Self, DecodeError> {
        let kind = get_str(src).field("kind")?;
        match get_u32(src).field("commutes")? {
            0 => Ok(Self { kind, commutes: false }),
            1 => Ok(Self { kind, commutes: true }),
            _ => Err(DecodeError::Invalid("neither true nor false")).field("commutes"),
        }
    }
}
