//! JSON lines: those of `st-view --json`, and what others write like them.
//!
//! A line is an object, and what it is says a key that it has: `call` a call, `site` a call site, `comm`, `group`, `type`, `op`,
//! `win` and `file` an object, `header` what is known of the run, `step` a program that has made it, `host` a node, `clock` how a
//! rank's clock was compared, `ended` where a thread of a rank stopped that did not come to its end. The page of st-convert has the fields.

use std::io::{BufRead, Read as _};

use serde_json::{Map, Value};
use st_model::calls::Object;
use st_model::header::{Header, Step};
use st_model::num::Exact as _;
use st_model::objects::Type;
use st_model::ranklist::RankList;
use st_stream::json::read::error_class;
use st_stream::json::tables::{self, Described};

use crate::call::{Call, Site, Stop};
use crate::error::Error;
use crate::escaped::control;
use crate::importer::Importer;
use crate::objects::Definition;

/// Bytes of a line at most: the members of the world of two million ranks.
const LINE: usize = 1 << 26;

/// What some editors put before a text in UTF-8.
pub const MARK: &[u8] = b"\xef\xbb\xbf";

/// Ranks of a job at most, where only its calls say how many there are.
const RANKS: u32 = 1 << 24;

/// What lines have been read.
#[derive(Debug)]
pub struct Lines {
    /// What is known of the run.
    pub header: Header,
    /// The programs that have made it.
    pub steps: Vec<Step>,
    /// Its calls.
    pub importer: Importer,
    /// A line has said what is known of the run.
    told: bool,
}

/// A line as an object.
type Line = Map<String, Value>;

/// Hands over the lines with their numbers, from 1, until told that it is enough.
fn each(mut from: impl BufRead, mut take: impl FnMut(&Line) -> Result<bool, String>) -> Result<(), Error> {
    let mut bytes = Vec::new();
    for number in 1u64.. {
        bytes.clear();
        let most = LINE.to_u64();
        if from.by_ref().take(most).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() == LINE && bytes.last() != Some(&b'\n') {
            return Err(Error::Line(number, format!("longer than {} MB", LINE >> 20)));
        }
        let own = bytes.strip_prefix(MARK).filter(|_| number == 1).unwrap_or(&bytes);
        if own.trim_ascii().is_empty() {
            continue;
        }
        let line = serde_json::from_slice(own).map_err(|e| {
            // Each line is a text of its own.
            let text = e.to_string();
            let what = text.rsplit_once(" at line").map_or(text.as_str(), |(what, _)| what);
            Error::Line(number, format!("column {}: {what}", e.column()))
        })?;
        if !take(&line).map_err(|what| Error::Line(number, what))? {
            break;
        }
    }
    Ok(())
}

/// How many ranks a job has, as far as its lines tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Census {
    told: Option<u32>,
    highest: Option<u32>,
}

impl Census {
    /// Counts the ranks of lines, up to where they say how many there are (`world` in a header, or the members of `MPI_COMM_WORLD`).
    ///
    /// # Errors
    ///
    /// If lines cannot be read.
    pub fn add(&mut self, from: impl BufRead) -> Result<(), Error> {
        if self.told.is_some() {
            return Ok(());
        }
        each(from, |line| {
            self.told = told_world(line);
            if line.contains_key("call") && !line.contains_key("histogram") {
                self.highest = self.highest.max(Some(rank(line)?));
            }
            Ok(self.told.is_none())
        })
    }

    /// The ranks of the job: what its lines say, or one more than the highest rank that calls.
    ///
    /// # Errors
    ///
    /// If there is no call, or one of a rank so high that it must be said.
    pub fn world(&self) -> Result<u32, Error> {
        match (self.told, self.highest) {
            (Some(world), _) => Ok(world),
            (None, Some(rank)) if rank < RANKS => Ok(rank + 1),
            (None, Some(rank)) => Err(Error::Nothing(format!(
                "rank {rank}: a job of more than {RANKS} ranks must say so before: {{\"header\": {{\"world\": N}}}}"
            ))),
            (None, None) => Err(Error::Nothing("there is no call in it".into())),
        }
    }
}

fn told_world(line: &Line) -> Option<u32> {
    let of_header = line.get("header").and_then(|header| header.get("world")?.as_u64());
    let is_world =
        !line.contains_key("call") && line.get("comm").is_some_and(|comm| comm == "MPI_COMM_WORLD");
    let members = line.get("members").filter(|_| is_world).and_then(Value::as_array);
    let world = of_header.or(members.map(|members| members.len().to_u64()));
    world.and_then(|world| u32::try_from(world).ok()).filter(|world| *world > 0)
}

impl Lines {
    /// None yet, of a job of so many ranks ([`Census::world`]).
    #[must_use]
    pub fn of(world: u32) -> Self {
        let header = Header { world, ..Header::default() };
        Self { header, steps: Vec::new(), importer: Importer::new(world, false), told: false }
    }

    /// Reads lines.
    ///
    /// # Errors
    ///
    /// With the line and what is wrong in it.
    pub fn read(&mut self, from: impl BufRead) -> Result<(), Error> {
        let world = self.header.world;
        each(from, |line| self.line(line, world).map(|()| true))
    }

    fn line(&mut self, line: &Line, world: u32) -> Result<(), String> {
        let to = &mut self.importer;
        let has = |key: &str| line.contains_key(key);
        let label = |key: &str| line.get(key).and_then(Value::as_str).ok_or(format!("{key}: no text"));
        if has("histogram") {
            to.leave("distributions of parameters (calls have drawn values)", 1);
        } else if let Some(name) = line.get("call") {
            return call(line, name, to);
        } else if let Some(rank) = line.get("ended") {
            return stop(line, rank, to);
        } else if let Some(of) = line.get("header") {
            let mut header: Header =
                serde_json::from_value(of.clone()).map_err(|e| format!("header: {e}"))?;
            let complete = header.world == world;
            header.world = world;
            // Each of several files may have it.
            if !to.is_empty() && (!self.told || self.header != header) {
                return Err("header: behind calls".into());
            }
            if complete {
                to.complete();
            }
            (self.header, self.told) = (header, true);
        } else if let Some(step) = line.get("step") {
            self.steps.push(serde_json::from_value(step.clone()).map_err(|e| format!("step: {e}"))?);
        } else if has("site") {
            to.site(line)?;
        } else if let Some(object) = OBJECTS.into_iter().find(|o| tables::key(*o).is_some_and(has)) {
            plain(line)?;
            define(object, line, world, to)?;
        } else if has("host") {
            plain(line)?;
            to.host(label("host")?, ranks(line)?);
        } else if has("clock") {
            let (rank, clock) = tables::read_clock(line)?;
            to.clock(rank, clock);
        } else {
            return Err("neither a call (\"call\") nor anything else that st-convert knows".into());
        }
        Ok(())
    }
}

/// Refuses names with control characters, which a terminal would obey.
fn plain(line: &Line) -> Result<(), String> {
    match control(line.values()) {
        Some(text) => Err(format!("{text:?} has a control character")),
        None => Ok(()),
    }
}

const OBJECTS: [Object; 6] =
    [Object::Comm, Object::Group, Object::Type, Object::Op, Object::Win, Object::File];

fn define(object: Object, line: &Line, world: u32, to: &mut Importer) -> Result<(), String> {
    for key in ["members", "remote"].into_iter().filter(|key| line.contains_key(*key)) {
        are_members(&tables::ranks(line, key)?, world, line.contains_key("kind"))
            .map_err(|e| format!("{key}: {e}"))?;
    }
    let key = tables::key(object).unwrap_or_default();
    let name = line.get(key).and_then(Value::as_str).ok_or_else(|| format!("{key}: no text"))?;
    let (what, copy, ranks) = match object {
        Object::Comm => read_as(Definition::Comm, name, line)?,
        Object::Group => read_as(Definition::Group, name, line)?,
        Object::Type => read_as(Definition::Type, name, line)?,
        Object::Op => read_as(Definition::Op, name, line)?,
        Object::Win => read_as(Definition::Win, name, line)?,
        Object::File => read_as(Definition::File, name, line)?,
        Object::Text => return Ok(()),
    };
    if let Definition::Type(Type { size, .. }) = &what
        && *size < 0
    {
        return Err(format!("size: {size} is below 0"));
    }
    to.define(name, ranks, copy, what);
    Ok(())
}

/// Checks that members are ranks of the world, each once. A recorder numbers processes of other jobs on from its last rank.
fn are_members(all: &[u32], world: u32, recorded: bool) -> Result<(), String> {
    let mut next = world;
    for rank in all.iter().filter(|rank| **rank >= world) {
        if !recorded || *rank != next {
            return Err(format!("{rank} is none of {world} ranks"));
        }
        next = next.saturating_add(1);
    }
    let mut sorted = all.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(format!("{} is there twice", twice[0])),
        None => Ok(()),
    }
}

/// An object of a name, which copy it is, and on which ranks.
fn read_as<T: Described>(
    make: impl FnOnce(T) -> Definition,
    name: &str,
    line: &Line,
) -> Result<(Definition, u32, Option<RankList>), String> {
    let (what, copy, ranks) = tables::read(name, line)?;
    Ok((make(what), copy, ranks))
}

fn rank(line: &Line) -> Result<u32, String> {
    let rank = line.get("rank").ok_or("rank is missing")?;
    number(rank).ok_or_else(|| format!("rank: {rank} is none"))
}

fn ranks(line: &Line) -> Result<Vec<u32>, String> {
    tables::ranks(line, "ranks")
}

fn call(line: &Line, name: &Value, to: &mut Importer) -> Result<(), String> {
    let name = name.as_str().ok_or("call: no name of a function")?;
    let time = |key: &str| time(line, key);
    let times = match (time("enter")?, time("exit")?) {
        (Some(enter), Some(exit)) => Some((enter, exit)),
        (None, None) => None,
        (Some(_), None) => return Err("exit is missing".into()),
        (None, Some(_)) => return Err("enter is missing".into()),
    };
    let thread = thread(line)?;
    let site = site(line)?;
    let error = line.get("error").map_or(Some(0), error_class).ok_or("error: no class of errors")?;
    to.call(&Call { rank: rank(line)?, thread, name, site, error, times, parameters: line, partial: false })
}

/// Where a thread stopped.
fn stop(line: &Line, rank: &Value, to: &mut Importer) -> Result<(), String> {
    let rank = number(rank).ok_or_else(|| format!("ended: {rank} is no rank"))?;
    let inside = match line.get("inside") {
        None | Some(Value::Null) => {
            let told =
                ["site", "entered"].into_iter().find(|key| line.get(*key).is_some_and(|v| !v.is_null()));
            if let Some(key) = told {
                return Err(format!("{key}: of no call: inside is missing"));
            }
            None
        }
        Some(name) => {
            let name = name.as_str().ok_or("inside: no name of a function")?;
            Some((name, site(line)?, time(line, "entered")?.ok_or("entered is missing")?))
        }
    };
    to.stop(&Stop { rank, thread: thread(line)?, inside })
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

fn time(line: &Line, key: &str) -> Result<Option<i64>, String> {
    match line.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            value.as_i64().map(Some).ok_or_else(|| format!("{key}: {value} is no whole number of ns"))
        }
    }
}

fn thread(line: &Line) -> Result<u64, String> {
    line.get("thread").map_or(Ok(0), |thread| thread.as_u64().ok_or_else(|| "thread: no number".into()))
}

fn site(line: &Line) -> Result<Site<'_>, String> {
    Ok(match line.get("site") {
        None | Some(Value::Null) => Site::Unknown,
        Some(Value::String(text)) => Site::Text(text),
        Some(value) => match number(value) {
            // What has no call site is printed so.
            Some(u32::MAX) => Site::Unknown,
            Some(number) => Site::Number(number),
            None => return Err("site: neither number nor text".into()),
        },
    })
}
