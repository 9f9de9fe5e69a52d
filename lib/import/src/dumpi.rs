//! What `dumpi2ascii` prints of DUMPI's files, one for each rank: a line when a function is entered, a line for each parameter, and a
//! line when it returns.
//!
//! Source: sst-dumpi, `dumpi/bin/dumpi2ascii-defs.h`.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Read as _};

use foldhash::fast::FixedState;
use serde_json::{Map, Value};
use st_model::calls::{CallTable, Kind, Meaning, Object, Row, Slot, names};
use st_model::num::Exact as _;
use st_model::objects::{Comm, Type};
use st_model::ranks::RankSeq;

use crate::call::{Call, Site};
use crate::error::Error;
use crate::importer::Importer;
use crate::objects::Definition;
use crate::predefined::predefined;

/// Bytes of a line at most.
const LINE: u64 = 1 << 26;

const ENTERING: &str = " entering at walltime ";
const RETURNING: &str = " returning at walltime ";
const WORLD: &str = "MPI_COMM_WORLD";
const SELF: &str = "MPI_COMM_SELF";
const IGNORED: &str = "<IGNORED>";

/// Whether text that begins so is of this kind.
#[must_use]
pub fn is_dumpi(begin: &str) -> bool {
    begin.lines().any(|line| when(line, ENTERING).is_some())
}

/// Hands over lines with their numbers, from 1.
fn each(mut from: impl BufRead, mut take: impl FnMut(u64, &str) -> Result<(), String>) -> Result<(), Error> {
    let mut bytes = Vec::new();
    for number in 1u64.. {
        bytes.clear();
        if from.by_ref().take(LINE).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len().to_u64() == LINE && bytes.last() != Some(&b'\n') {
            return Err(Error::Line(number, format!("longer than {} MB", LINE >> 20)));
        }
        let line = String::from_utf8_lossy(&bytes);
        take(number, line.trim_end()).map_err(|what| Error::Line(number, what))?;
    }
    Ok(())
}

/// Function, time in ns and thread of a line that says when one is entered or returns.
fn when<'a>(line: &'a str, verb: &str) -> Option<(&'a str, i64, u64)> {
    let (name, rest) = line.split_once(verb)?;
    let (wall, rest) = rest.split_once(',')?;
    let thread = rest.trim_end_matches('.').rsplit(' ').next()?.parse().ok()?;
    let (whole, part) = wall.split_once('.').unwrap_or((wall, ""));
    if part.len() > 9 || !part.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let ns: i64 = format!("{part:0<9}").parse().ok()?;
    let whole: i64 = whole.trim().parse().ok().filter(|s: &i64| *s >= 0)?;
    Some((name, whole.checked_mul(1_000_000_000)?.checked_add(ns)?, thread))
}

/// A parameter: its name, and what stands behind the sign of equality.
fn parameter(line: &str) -> Option<(&str, &str)> {
    let (left, value) = line.split_once('=')?;
    let name = left.split_whitespace().nth(1)?;
    Some((name.split('[').next().unwrap_or(name), value))
}

/// The value and, in brackets behind it, its name.
fn named(value: &str) -> (Option<i64>, &str) {
    let (number, name) = value.split_once(" (").unwrap_or((value, ""));
    (number.trim().parse().ok(), name.trim_end_matches(')'))
}

/// A list of integers in brackets, or one alone; `None` of what is not there.
fn integers(value: &str) -> Option<Vec<i64>> {
    let inner = value.trim().strip_prefix('[').map_or(value, |rest| rest.trim_end_matches(']'));
    if inner.trim().is_empty() {
        return Some(Vec::new());
    }
    inner.split(',').map(|n| n.trim().parse().ok()).collect()
}

/// What came, by status: bytes, source, tag, and whether it was cancelled.
fn statuses(value: &str) -> Vec<[i64; 4]> {
    let field = |status: &str, name: &str| -> i64 {
        let found = status.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
        found.and_then(|n| n.parse().ok()).unwrap_or(0)
    };
    let all = value.split('{').skip(1).filter_map(|status| status.split('}').next());
    all.map(|s| ["bytes", "source", "tag", "cancelled"].map(|name| field(s, name))).collect()
}

/// Reads a rank's calls, of a job of so many ranks.
///
/// # Errors
///
/// With the line and what is wrong in it.
pub fn read(
    from: impl BufRead,
    sizes: &Sizes,
    rank: u32,
    world: u32,
    to: &mut Importer,
) -> Result<(), Error> {
    let mut reading = Reading {
        rank,
        world,
        to,
        sizes,
        inside: None,
        receives: HashSet::default(),
        comms: HashMap::default(),
        duplicates: HashMap::default(),
    };
    each(from, |_, line| reading.line(line))?;
    if let Some(inside) = &reading.inside {
        reading.to.leave(&format!("calls of {} that do not return", inside.name), 1);
    }
    Ok(())
}

/// Bytes of datatypes by number, as far as the end of a file has them.
#[derive(Clone, Debug, Default)]
pub struct Sizes(HashMap<i64, i64, FixedState>);

impl Sizes {
    /// Finds them: `Datatype 32 (…) has size 24`.
    ///
    /// # Errors
    ///
    /// If the text cannot be read.
    pub fn of(from: impl BufRead) -> Result<Self, Error> {
        let mut sizes = Self::default();
        each(from, |_, line| {
            let told = line.strip_prefix("Datatype ").and_then(|rest| {
                let number = rest.split(' ').next()?.parse::<i64>().ok()?;
                let size = rest.rsplit_once(" has size ")?.1.parse::<i64>().ok()?;
                (size >= 0).then_some((number, size))
            });
            sizes.0.extend(told);
            Ok(())
        })?;
        Ok(sizes)
    }
}

/// A call that has been entered.
#[derive(Debug)]
struct Inside {
    name: String,
    enter: i64,
    given: Vec<(String, String)>,
}

struct Reading<'a> {
    rank: u32,
    world: u32,
    to: &'a mut Importer,
    sizes: &'a Sizes,
    inside: Option<Inside>,
    /// Requests of receives.
    receives: HashSet<i64, FixedState>,
    /// Communicators of which the members are known: duplicates of the first two, by number.
    comms: HashMap<i64, String, FixedState>,
    /// How many have been made of each, by name.
    duplicates: HashMap<String, u64, FixedState>,
}

impl Reading<'_> {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some((name, enter, _)) = when(line, ENTERING) {
            if let Some(before) = &self.inside {
                return Err(format!("{name} is entered before {} returns", before.name));
            }
            self.inside = Some(Inside { name: name.to_owned(), enter, given: Vec::new() });
            return Ok(());
        }
        if let Some((name, exit, thread)) = when(line, RETURNING) {
            let inside = self.inside.take().filter(|inside| inside.name == name);
            let inside = inside.ok_or_else(|| format!("{name} returns without being entered"))?;
            return self.call(&inside, exit, thread);
        }
        if line.contains(ENTERING) || line.contains(RETURNING) {
            return Err("walltime or thread: no number".into());
        }
        // What is outside of calls is about the file.
        if let (Some(inside), Some((name, value))) = (&mut self.inside, parameter(line)) {
            inside.given.push((name.to_owned(), value.to_owned()));
        }
        Ok(())
    }

    fn call(&mut self, inside: &Inside, exit: i64, thread: u64) -> Result<(), String> {
        let mut parameters = Map::new();
        if let Some(row) = CallTable::builtin().by_name(&inside.name) {
            for (name, value) in &inside.given {
                if value != IGNORED {
                    self.add(row, name, value, &mut parameters);
                }
            }
            self.complete(row, inside, &mut parameters);
            self.forget(inside);
            self.duplicate(row, inside, &mut parameters);
        }
        let times = Some((inside.enter, exit));
        self.to.call(&Call {
            rank: self.rank,
            thread,
            name: &inside.name,
            site: Site::Unknown,
            error: 0,
            times,
            parameters: &parameters,
            partial: true,
        })
    }

    /// Adds a parameter under its name in the call table, if it has one.
    fn add(&mut self, row: &Row, name: &str, value: &str, to: &mut Map<String, Value>) {
        let key = match name {
            "datatype" | "oldtype" => "type",
            "oldcomm" => "comm",
            _ => name,
        };
        if name == "status" {
            return received(row, value, to);
        }
        let Some(slot) = row.slot(key).and_then(|at| row.slots.get(at)).filter(|slot| !slot.is_made()) else {
            return;
        };
        if let Some(value) = self.value(row, slot, value) {
            to.insert(key.to_owned(), value);
        }
    }

    fn value(&mut self, row: &Row, slot: &Slot, value: &str) -> Option<Value> {
        if slot.list && slot.meaning != Meaning::Request {
            return match slot.meaning {
                Meaning::Int | Meaning::Count | Meaning::Flag => Some(integers(value)?.into()),
                _ => None,
            };
        }
        let (number, name) = named(value);
        match slot.meaning {
            Meaning::Rank if number? < 0 && name.is_empty() => Some("MPI_PROC_NULL".into()),
            Meaning::Rank | Meaning::Tag if name.starts_with("MPI_") => Some(name.into()),
            Meaning::Int | Meaning::Count | Meaning::Tag | Meaning::Rank => Some(number?.into()),
            Meaning::Flag => Some((number? != 0).into()),
            Meaning::Ref(Object::Comm) => self.communicator(number?, name),
            Meaning::Ref(Object::Type) => Some(self.datatype(number?, name)),
            Meaning::Ref(Object::Op) => predefined(Object::Op, name).map(|_| name.into()),
            Meaning::Request => {
                let all = integers(value)?;
                if slot.list {
                    return Some(all.into_iter().map(request).collect());
                }
                let one = *all.first()?;
                if row.kind == Kind::Receive {
                    self.receives.insert(one);
                } else if row.params.iter().any(|p| p.role == "newrequest") {
                    self.receives.remove(&one);
                }
                Some(request(one))
            }
            _ => None,
        }
    }

    fn communicator(&mut self, number: i64, name: &str) -> Option<Value> {
        if name == WORLD || name == SELF {
            return Some(name.into());
        }
        let known = self.comms.get(&number).cloned();
        if known.is_none() {
            self.to.leave("calls on communicators whose members are not told", 1);
        }
        known.map(Value::from)
    }

    /// A datatype by its name or, if its size is known, by its number.
    fn datatype(&mut self, number: i64, name: &str) -> Value {
        if predefined(Object::Type, name).is_some() {
            return name.into();
        }
        let Some(size) = self.sizes.0.get(&number).copied() else {
            self.to.leave("datatypes whose sizes are not told (MPI_BYTE stands for them)", 1);
            return crate::predefined::BYTE.into();
        };
        let kind = format!("datatype {number}");
        let (words, parts) = (Vec::new(), Vec::new());
        let what = Type { kind: kind.clone(), words, parts, size, lb: 0, extent: size };
        let ranks = Some(std::iter::once(self.rank).collect());
        self.to.define(&kind, ranks, 0, Definition::Type(what));
        kind.into()
    }

    /// The number of a communicator that is freed, or is made otherwise than those that are known, stands for another one.
    fn forget(&mut self, inside: &Inside) {
        let frees = [names::MPI_Comm_free, names::MPI_Comm_disconnect].contains(&inside.name.as_str());
        for (name, value) in &inside.given {
            let made = name.starts_with("newcomm")
                || name.starts_with("newintercomm")
                || name == "comm_cart"
                || name == "comm_graph";
            if (made || (frees && name == "comm"))
                && let Some(number) = named(value).0
            {
                self.comms.remove(&number);
            }
        }
    }

    /// A duplicate has the members of what it is made of: all ranks count them alike.
    fn duplicate(&mut self, row: &Row, inside: &Inside, to: &mut Map<String, Value>) {
        if row.kind != Kind::Duplicate {
            return;
        }
        let made = inside.given.iter().find(|(name, _)| name == "newcomm").and_then(|(_, v)| named(v).0);
        let of = to.get("comm").and_then(Value::as_str).map(str::to_owned);
        let (Some(made), Some(of)) = (made, of) else { return };
        let count = self.duplicates.entry(of.clone()).or_insert(0);
        *count = count.saturating_add(1);
        let name = format!("duplicate {count} of {of}");
        let members = if of.ends_with(SELF) {
            std::iter::once(self.rank).collect()
        } else {
            RankSeq::first(self.world)
        };
        let what = Comm { kind: name.clone(), parent: 0, members, remote: RankSeq::default() };
        self.to.define(&name, Some(std::iter::once(self.rank).collect()), 0, Definition::Comm(what));
        to.insert("newcomm".into(), name.clone().into());
        self.comms.insert(made, name);
    }

    /// What a call completes.
    fn complete(&mut self, row: &Row, inside: &Inside, to: &mut Map<String, Value>) {
        if row.kind != Kind::Complete {
            return;
        }
        let given =
            |wanted: &str| inside.given.iter().find(|(name, _)| name == wanted).map(|(_, v)| v.as_str());
        let requests = given("requests").or_else(|| given("request")).and_then(integers).unwrap_or_default();
        to.remove("request");
        to.insert("requests".into(), requests.iter().copied().map(request).collect());
        let all = || (0..).take(requests.len()).collect::<Vec<i64>>();
        let places = match (given("flag").map(|v| named(v).0), given("indices"), given("index")) {
            (Some(Some(0)), _, _) => Vec::new(),
            (_, Some(indices), _) => integers(indices).unwrap_or_default(),
            (_, None, Some(index)) => named(index).0.into_iter().collect(),
            (_, None, None) if given("outcount").is_some() => Vec::new(),
            (_, None, None) => all(),
        };
        let got = given("statuses").or_else(|| given("status")).map(statuses).unwrap_or_default();
        let mut completed = Vec::new();
        for (i, place) in places.into_iter().enumerate() {
            let Some(own) = usize::try_from(place).ok().and_then(|at| requests.get(at)).filter(|r| **r > 0)
            else {
                continue;
            };
            let mut one = Map::new();
            one.insert("request".into(), request(*own));
            if let Some([bytes, source, tag, cancelled]) = got.get(i).filter(|_| self.receives.contains(own))
            {
                if *cancelled != 0 {
                    one.insert("bytes".into(), "cancelled".into());
                } else if *source >= 0 {
                    let told = [("source", *source), ("tag", *tag), ("bytes", *bytes)];
                    one.extend(told.map(|(key, n)| (key.to_owned(), Value::from(n))));
                }
            }
            completed.push(Value::Object(one));
        }
        to.insert("completed".into(), completed.into());
    }
}

/// A request by its number; those that are none are null.
fn request(number: i64) -> Value {
    if number > 0 { number.to_string().into() } else { Value::Null }
}

/// What a receive or probe got.
fn received(row: &Row, value: &str, to: &mut Map<String, Value>) {
    let (Some([bytes, source, tag, _]), true) =
        (statuses(value).first().copied(), row.slot("rsource").is_some())
    else {
        return;
    };
    to.insert("bytes".into(), bytes.into());
    let any = |to: &Map<String, Value>, key: &str| to.get(key).is_some_and(Value::is_string);
    let tagged = if row.slot("recvtag").is_some() { "recvtag" } else { "tag" };
    if source >= 0 && (any(to, "source") || any(to, tagged)) {
        to.insert("rsource".into(), source.into());
        to.insert("rtag".into(), tag.into());
    }
}

/// The rank that the name of a rank's file ends with: `dumpi-2013.09.26.10.55.53-0003.txt`.
#[must_use]
pub fn rank_of(name: &str) -> Option<u32> {
    let end = name.rfind(|c: char| c.is_ascii_digit())?;
    let upto = name.get(..=end)?;
    let begin = upto.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    upto.get(begin..)?.parse().ok()
}
