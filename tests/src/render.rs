//! Lists of calls as JSON objects: printed by `st-view`, written by programs, rendered through a call table.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use st_model::calls::CallTable;
use st_model::calls::words::Words;
use st_model::event::Event;
use st_model::project::Call;
use st_model::section::Section;
use st_stream::json;
use st_stream::{ReadOptions, read};

use crate::Failure;
use crate::process::Run;

/// A call.
pub type Object = Map<String, Value>;
/// The calls of each rank, in order.
pub type Ranks = BTreeMap<u32, Vec<Object>>;

/// The fields of a JSON object in order; one whose name was there before gets a 2, as in `st-view --json`.
struct Fields(Object);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Object::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    let taken = fields.contains_key(&name);
                    fields.insert(if taken { format!("{name}2") } else { name }, value);
                }
                Ok(Fields(fields))
            }
        }
        input.deserialize_map(Visit)
    }
}

fn objects(text: &str, from: &str) -> Result<Vec<Object>, Failure> {
    let parse = |(n, line): (usize, &str)| {
        let fields = serde_json::from_str(line).map(|Fields(o)| o);
        fields.map_err(|e| format!("{from}:{}: {e}: {line}", n + 1))
    };
    text.lines().enumerate().map(parse).collect()
}

fn rank_of(object: &Object) -> Result<u32, Failure> {
    let rank = object.get("rank").and_then(Value::as_u64).and_then(|r| u32::try_from(r).ok());
    rank.ok_or_else(|| format!("no rank in {object:?}"))
}

/// What `st-view --json` prints: the calls of the first thread of each rank.
///
/// # Errors
///
/// If the program fails or prints what is not JSON lines.
pub fn viewed(trace: &Path) -> Result<Ranks, Failure> {
    let text = Run::st("st-view", ["--json".as_ref(), trace.as_os_str()])?.go()?.ok()?.text();
    let mut ranks = Ranks::new();
    for object in objects(&text, "st-view --json")? {
        // Call sites and communicators come first.
        if object.contains_key("call") {
            ranks.entry(rank_of(&object)?).or_default().push(object);
        }
    }
    Ok(ranks)
}

/// What the programs' own lists say: files `PREFIX.<rank>.jsonl`.
///
/// # Errors
///
/// If a rank has written none, or not JSON lines.
pub fn stated(prefix: &Path, ranks: u32) -> Result<Ranks, Failure> {
    let one = |rank: u32| {
        let path = PathBuf::from(format!("{}.{rank}.jsonl", prefix.display()));
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{name}: {e}"))?;
        Ok((rank, objects(&text, &name)?))
    };
    (0..ranks).map(one).collect()
}

/// The calls of one rank, decoded but not printed.
#[derive(Debug)]
pub struct Decoded {
    /// World rank.
    pub rank: u32,
    /// Index of its section.
    pub section: usize,
    /// The calls of its first thread.
    pub calls: Vec<Call>,
}

/// A trace read through the library.
#[derive(Debug)]
pub struct Trace {
    /// Sections.
    pub sections: Vec<Section>,
    /// Ranks, in order.
    pub ranks: Vec<Decoded>,
}

impl Trace {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it is no complete trace.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let told = |e: String| format!("{}: {e}", path.display());
        let file = File::open(path).map_err(|e| told(e.to_string()))?;
        let trace = read(BufReader::new(file), ReadOptions::default()).map_err(|e| told(format!("{e:?}")))?;
        let mut ranks = Vec::new();
        for (section, s) in trace.sections.iter().enumerate() {
            for rank in s.ranks.iter() {
                let calls = s.project(0, rank).ok_or_else(|| told(format!("no calls of rank {rank}")))?;
                let calls = calls.collect::<Result<_, _>>().map_err(|e| told(format!("{e:?}")))?;
                ranks.push(Decoded { rank, section, calls });
            }
        }
        ranks.sort_by_key(|r| r.rank);
        Ok(Self { sections: trace.sections, ranks })
    }

    /// A call as an object, through a table.
    #[must_use]
    pub fn render(&self, table: &CallTable, of: &Decoded, index: usize) -> Object {
        let (section, call) = (&self.sections[of.section], &of.calls[index]);
        let symbol = section.symbols[call.sym as usize];
        let row = table.get(symbol.call);
        let words = Words::of(call.words.clone(), row.map_or(&[][..], |row| &row.slots));
        let Some(mut event) = Event::apart(section, of.rank, call.sym, &words) else {
            return Object::new();
        };
        (event.index, event.row) = (u64::try_from(index).unwrap_or(u64::MAX), row);
        json::call(&event, symbol.site)
    }
}
