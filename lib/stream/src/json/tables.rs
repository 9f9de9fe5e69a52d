//! Lines that say what names in calls stand for: objects, each written and read side by side.
//!
//! A line has the object's label under the key of its kind, the ranks that have it, and what it is made of. Names of other
//! objects (a communicator's parent, a datatype's parts) are hexadecimal.

use serde_json::{Map, Value};

use st_model::calls::Object;
use st_model::columns::{Comparison, Offset};
use st_model::objects::{Comm, Content, Group, Name, Named, Op, SharedObject, Type};
use st_model::ranklist::RankList;
use st_model::ranks::RankSeq;

/// An object that has a line.
pub trait Described: Content + Sized {
    /// Writes what it is made of.
    fn write(&self, to: &mut Map<String, Value>);

    /// Reads the same; what is not there is as simple as can be, so that a label and members suffice.
    ///
    /// # Errors
    ///
    /// With what is wrong.
    fn read(label: &str, from: &Map<String, Value>) -> Result<Self, String>;
}

/// Key of the lines of a kind of object; `None` of texts, which are their own labels.
#[must_use]
pub fn key(object: Object) -> Option<&'static str> {
    Some(match object {
        Object::Comm => "comm",
        Object::Group => "group",
        Object::Type => "type",
        Object::Op => "op",
        Object::Win => "win",
        Object::File => "file",
        Object::Text => return None,
    })
}

/// An object as a line.
#[must_use]
pub fn object<T: Described>(key: &str, named: &Named<T>, ranks: &RankList) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert(key.into(), named.label().into());
    out.insert("ranks".into(), ranks.iter().map(Value::from).collect());
    named.content.write(&mut out);
    if named.copy > 0 {
        out.insert("copy".into(), named.copy.into());
    }
    out
}

/// What [`object`] has written: the object, its copy, and the ranks that have it, if not all.
///
/// # Errors
///
/// With what is wrong.
pub fn read<T: Described>(
    label: &str,
    line: &Map<String, Value>,
) -> Result<(T, u32, Option<RankList>), String> {
    let ranks = line.contains_key("ranks").then(|| ranks(line, "ranks")).transpose()?;
    let copy = number(line, "copy")?.unwrap_or(0);
    let copy = u32::try_from(copy).map_err(|_| "copy: no number of a copy")?;
    Ok((T::read(label, line)?, copy, ranks.map(|ranks| ranks.into_iter().collect())))
}

/// A node as a line: `host`, and the ranks that are there.
#[must_use]
pub fn host(name: &str, ranks: &RankList) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("host".into(), name.into());
    out.insert("ranks".into(), ranks.iter().map(Value::from).collect());
    out
}

/// How a rank's clock was compared, as a line: `clock` (the rank), `points` (each when, by a clock that shows 0 at `zero`, what to
/// add to have that of rank 0, and by how much that may be wrong), and `near` and `far`, all in ns.
#[must_use]
pub fn clock(rank: u32, clock: &Comparison, zero: i64) -> Map<String, Value> {
    let point = |p: &Offset| Value::from(vec![p.local.saturating_sub(zero), p.offset, p.error]);
    let mut out = Map::new();
    out.insert("clock".into(), rank.into());
    out.insert("points".into(), clock.points.iter().map(point).collect());
    out.insert("near".into(), clock.near.into());
    out.insert("far".into(), clock.far.into());
    out
}

/// What [`clock`] has written: the rank and the comparison.
///
/// # Errors
///
/// With what is wrong.
pub fn read_clock(line: &Map<String, Value>) -> Result<(u32, Comparison), String> {
    let rank = number(line, "clock")?.and_then(|rank| u32::try_from(rank).ok()).ok_or("clock: no rank")?;
    let no = "points: no list of [local, offset, error]";
    let point = |point: &Value| {
        let at = |i: usize| point.get(i).and_then(Value::as_i64).ok_or(no);
        Ok(Offset { local: at(0)?, offset: at(1)?, error: at(2)? })
    };
    let points = list(line, "points")?.iter().map(point).collect::<Result<_, &str>>()?;
    let time = |key: &str| number(line, key).map(|n| n.unwrap_or(0));
    Ok((rank, Comparison { points, near: time("near")?, far: time("far")? }))
}

impl Described for Comm {
    fn write(&self, to: &mut Map<String, Value>) {
        put_members(to, "members", &self.members);
        if !self.remote.is_empty() {
            put_members(to, "remote", &self.remote);
        }
        to.insert("kind".into(), self.kind.clone().into());
        put_name(to, "parent", self.parent);
    }
    fn read(label: &str, from: &Map<String, Value>) -> Result<Self, String> {
        let remote = if from.contains_key("remote") { members(from, "remote")? } else { RankSeq::default() };
        let (kind, parent) = (kind(label, from)?, name(from, "parent")?);
        Ok(Self { kind, parent, members: members(from, "members")?, remote })
    }
}

impl Described for Group {
    fn write(&self, to: &mut Map<String, Value>) {
        put_members(to, "members", &self.members);
    }
    fn read(_label: &str, from: &Map<String, Value>) -> Result<Self, String> {
        Ok(Self { members: members(from, "members")? })
    }
}

impl Described for Type {
    fn write(&self, to: &mut Map<String, Value>) {
        to.insert("kind".into(), self.kind.clone().into());
        for (key, value) in [("size", self.size), ("lb", self.lb), ("extent", self.extent)] {
            to.insert(key.into(), value.into());
        }
        if !self.words.is_empty() {
            to.insert("words".into(), self.words.iter().copied().collect());
        }
        if !self.parts.is_empty() {
            to.insert("parts".into(), self.parts.iter().map(|part| hex(*part)).collect());
        }
    }
    fn read(label: &str, from: &Map<String, Value>) -> Result<Self, String> {
        let size = number(from, "size")?.ok_or("size: bytes of data in one element")?;
        let number = |key: &str, or: i64| number(from, key).map(|n| n.unwrap_or(or));
        let no = || "words: no list of numbers".to_owned();
        let words =
            list(from, "words")?.iter().map(|v| v.as_i64().ok_or_else(no)).collect::<Result<_, _>>()?;
        let parts = list(from, "parts")?.iter().map(|v| of_hex(v, "parts")).collect::<Result<_, _>>()?;
        let (kind, lb, extent) = (kind(label, from)?, number("lb", 0)?, number("extent", size)?);
        Ok(Self { kind, words, parts, size, lb, extent })
    }
}

impl Described for Op {
    fn write(&self, to: &mut Map<String, Value>) {
        to.insert("kind".into(), self.kind.clone().into());
        to.insert("commutes".into(), self.commutes.into());
    }
    fn read(label: &str, from: &Map<String, Value>) -> Result<Self, String> {
        let commutes = match from.get("commutes") {
            None => true,
            Some(value) => value.as_bool().ok_or("commutes: neither true nor false")?,
        };
        Ok(Self { kind: kind(label, from)?, commutes })
    }
}

impl Described for SharedObject {
    fn write(&self, to: &mut Map<String, Value>) {
        put_members(to, "members", &self.members);
        to.insert("kind".into(), self.kind.clone().into());
        put_name(to, "parent", self.comm);
    }
    fn read(label: &str, from: &Map<String, Value>) -> Result<Self, String> {
        let (kind, comm) = (kind(label, from)?, name(from, "parent")?);
        Ok(Self { kind, comm, members: members(from, "members")? })
    }
}

fn kind(label: &str, from: &Map<String, Value>) -> Result<String, String> {
    match from.get("kind") {
        None => Ok(label.to_owned()),
        Some(Value::String(kind)) => Ok(kind.clone()),
        Some(_) => Err("kind: no text".into()),
    }
}

fn hex(name: Name) -> Value {
    format!("{name:032x}").into()
}

fn of_hex(value: &Value, key: &str) -> Result<Name, String> {
    let digits = value.as_str().filter(|text| text.chars().all(|c| c.is_ascii_hexdigit()));
    let name = digits.and_then(|digits| Name::from_str_radix(digits, 16).ok());
    name.ok_or_else(|| format!("{key}: no name of at most 32 hexadecimal digits"))
}

fn put_name(to: &mut Map<String, Value>, key: &str, name: Name) {
    if name != 0 {
        to.insert(key.into(), hex(name));
    }
}

fn name(from: &Map<String, Value>, key: &str) -> Result<Name, String> {
    from.get(key).map_or(Ok(0), |value| of_hex(value, key))
}

fn put_members(to: &mut Map<String, Value>, key: &str, members: &RankSeq) {
    to.insert(key.into(), members.iter().map(Value::from).collect());
}

fn members(from: &Map<String, Value>, key: &str) -> Result<RankSeq, String> {
    ranks(from, key).map(|ranks| ranks.into_iter().collect())
}

/// A list of ranks of the world, which must be there.
///
/// # Errors
///
/// If it is not, or is none.
pub fn ranks(from: &Map<String, Value>, key: &str) -> Result<Vec<u32>, String> {
    let no = || format!("{key}: no list of ranks of the world");
    let all = from.get(key).and_then(Value::as_array).ok_or_else(no)?;
    all.iter().map(|v| v.as_u64().and_then(|rank| u32::try_from(rank).ok()).ok_or_else(no)).collect()
}

fn list<'a>(from: &'a Map<String, Value>, key: &str) -> Result<&'a [Value], String> {
    match from.get(key) {
        None => Ok(&[]),
        Some(Value::Array(all)) => Ok(all),
        Some(_) => Err(format!("{key}: no list")),
    }
}

/// A whole number that need not be there.
fn number(from: &Map<String, Value>, key: &str) -> Result<Option<i64>, String> {
    match from.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| format!("{key}: no whole number of 64 bits")),
    }
}
