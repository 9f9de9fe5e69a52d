//! Calls as JSON objects and as lines for people, by the call table.
//!
//! Keys are the names of the row's slots; values are what the words mean ([`st_model::values`]): special values by their MPI
//! names, null handles and what is not known as `null`, flags as `true` and `false`, objects by their labels. The four
//! lists of a completion become one list of objects.

mod ended;
mod objects;
pub mod read;
mod sites;
pub mod tables;

pub use ended::ended;
pub use objects::Objects;
pub use sites::{read_site, site};

use serde_json::{Map, Value, json};

use st_model::calls::words::found_nothing;
use st_model::calls::{CallTable, Meaning, Row, Slot, names};
use st_model::event::{Arg, Event, SENT};
use st_model::form::SPECIAL;
use st_model::frequencies::Frequencies;
use st_model::section::{Codes, Form, Section, SlotStreams, Sym};
use st_model::sites::CallSites;
use st_model::values;

use crate::amount::{TIMES, scaled};

/// A call as an object: `rank`, `thread`, `i`, `call`, `site` (as printed), `enter` and `exit` (if known), the row's slots, `bytes`
/// of a send, and `error` if the call failed. A slot whose name is taken has a 2 after it.
#[must_use]
pub fn call(event: &Event<'_>, site: u32) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("rank".into(), event.rank.into());
    out.insert("thread".into(), event.thread.into());
    out.insert("i".into(), event.index.into());
    out.insert(
        "call".into(),
        event.name().map_or_else(|| event.symbol.call.to_string(), str::to_owned).into(),
    );
    out.insert("site".into(), site.into());
    if let Some((enter, exit)) = event.times {
        out.insert("enter".into(), enter.into());
        out.insert("exit".into(), exit.into());
    }
    if let Some(row) = event.row {
        parameters(&mut out, row, event);
    }
    if event.symbol.error != 0 {
        let name = values::error_class(event.symbol.error);
        out.insert("error".into(), name.map_or_else(|| event.symbol.error.into(), Value::from));
    }
    out
}

fn parameters(out: &mut Map<String, Value>, row: &Row, event: &Event<'_>) {
    let nothing = found_nothing(row, &event.words().words);
    let mut slots = (0..).zip(&row.slots);
    while let Some((i, slot)) = slots.next() {
        if slot.meaning == Meaning::Position {
            put(out, &slot.name, completions(row, i, event));
            // Source, tag and bytes of the completed requests are in it.
            slots.by_ref().take(3).for_each(drop);
            out.extend(none_active(row, event).map(|of| (of.to_owned(), "MPI_UNDEFINED".into())));
            continue;
        }
        let role = role(row, slot);
        let each = |w: &i64| value(slot, role, *w, event);
        let v = if slot.list {
            event.words().list(i).iter().map(each).collect()
        } else if nothing && slot.name == "bytes" {
            // What a probe that has found nothing leaves in its status is no number of bytes.
            Value::Null
        } else {
            event.words().get(i).as_ref().map_or(Value::Null, each)
        };
        put(out, &slot.name, v);
    }
    // Other rows say themselves how many bytes there were.
    if row.slot("dest").is_some()
        && row.slot("bytes").is_none()
        && let Some(bytes) = event.bytes(SENT)
    {
        out.insert("bytes".into(), bytes.into());
    }
}

/// The parameter that is `MPI_UNDEFINED` where a call has completed nothing since none of its requests was active: of one that waits for
/// some that is always so, of one that tests some it is known where all are null, of one that tests any its flag says it.
fn none_active(row: &Row, event: &Event<'_>) -> Option<&'static str> {
    let none = event.completed().next().is_none() && event.symbol.error == 0;
    let all_null = || event.requests().iter().all(|request| *request == values::NULL);
    match row.base() {
        _ if !none => None,
        names::MPI_Waitsome => Some(OUTCOUNT),
        names::MPI_Testsome if all_null() => Some(OUTCOUNT),
        names::MPI_Waitany => Some(INDEX),
        names::MPI_Testany if event.arg("flag") == Some(Arg::One(1)) => Some(INDEX),
        _ => None,
    }
}

/// What says that no request was active.
pub const OUTCOUNT: &str = "outcount";
/// The same of calls that complete one.
pub const INDEX: &str = "index";

/// Adds a field; a name that is taken gets a 2: `rank2` of `MPI_Comm_rank`, the new `request2` of `MPI_Imrecv`.
fn put(out: &mut Map<String, Value>, name: &str, v: Value) {
    let taken = out.contains_key(name);
    out.insert(if taken { format!("{name}2") } else { name.to_owned() }, v);
}

/// What a call completes: the slots from its list of positions on.
fn completions(row: &Row, at: u8, event: &Event<'_>) -> Value {
    let words = event.words();
    let one = |(k, position): (usize, &i64)| {
        let request = usize::try_from(*position).ok().and_then(|p| event.requests().get(p)).copied();
        let mut object = Map::new();
        object.insert("request".into(), request.map_or(Value::Null, Value::from));
        for (i, slot) in (0..).zip(&row.slots).skip(usize::from(at) + 1).take(3) {
            let word = words.list(i).get(k);
            object.insert(slot.name.clone(), word.map_or(Value::Null, |w| plain(slot, *w)));
        }
        Value::Object(object)
    };
    words.list(at).iter().enumerate().map(one).collect()
}

/// A word whose meaning needs neither table nor role.
#[must_use]
pub fn plain(slot: &Slot, word: i64) -> Value {
    match (slot.meaning, word) {
        (Meaning::Rank, values::PROC_NULL) => "MPI_PROC_NULL".into(),
        (Meaning::Rank, values::ANY_SOURCE) => "MPI_ANY_SOURCE".into(),
        (Meaning::Rank, values::ROOT) => "MPI_ROOT".into(),
        (Meaning::Tag, values::ANY_TAG) => "MPI_ANY_TAG".into(),
        (Meaning::Rank | Meaning::Tag, values::NONE) => Value::Null,
        (Meaning::Count, values::NONE) if slot.name == "bytes" => Value::Null,
        (Meaning::Count, values::CANCELLED) if slot.name == "bytes" => "cancelled".into(),
        (Meaning::Flag, 0) => false.into(),
        (Meaning::Flag, 1) => true.into(),
        (Meaning::Request | Meaning::Info, values::NULL) => Value::Null,
        (Meaning::Info, values::INFO_ENV) => "MPI_INFO_ENV".into(),
        (_, v) => v.into(),
    }
}

/// A word whose meaning needs no table.
#[must_use]
pub fn word(row: &Row, slot: &Slot, word: i64) -> Value {
    by_role(slot, role(row, slot), word)
}

fn by_role(slot: &Slot, role: &str, word: i64) -> Value {
    match slot.meaning {
        Meaning::Int | Meaning::Count => named(role, word).unwrap_or_else(|| plain(slot, word)),
        _ => plain(slot, word),
    }
}

fn role<'a>(row: &'a Row, slot: &Slot) -> &'a str {
    row.params.iter().find(|p| p.name == slot.name).map_or("", |p| p.role.as_str())
}

fn value(slot: &Slot, role: &str, word: i64, event: &Event<'_>) -> Value {
    match slot.meaning {
        Meaning::Ref(_) if word == values::NULL => Value::Null,
        Meaning::Ref(object) => {
            let label = event.section().tables.label(object, word, event.rank);
            label.map_or_else(|| word.into(), Value::from)
        }
        _ => by_role(slot, role, word),
    }
}

/// What values of a role are called.
enum Names {
    /// The n-th is n.
    List(&'static [&'static str]),
    /// The n-th is the n-th bit.
    Bits(&'static [&'static str]),
    /// The n-th is n below [`values::FIRST_NAMED`].
    CountedDown(&'static [&'static str]),
    /// Error classes.
    Errors,
    /// One value alone.
    One(i64, &'static str),
    None,
}

/// The names of a role's values.
fn names_of(role: &str) -> Names {
    match role {
        "outcompare" => Names::List(&values::COMPARE),
        "arrayorder" => Names::List(&values::ORDER),
        "distribs" => Names::List(&values::DISTRIBUTE),
        "splittype" => Names::List(&values::SPLIT_TYPE),
        "outtopo" => Names::List(&values::TOPOLOGY),
        "typeclass" => Names::List(&values::TYPE_CLASS),
        "locktype" => Names::List(&values::LOCK_TYPE),
        "whence" => Names::List(&values::WHENCE),
        "outcombiner" => Names::List(&values::COMBINERS),
        "assert" => Names::Bits(&values::ASSERT),
        "amode" | "outamode" => Names::Bits(&values::AMODE),
        "keyval" | "newkeyval" | "freekeyval" => Names::CountedDown(&values::KEYVALS),
        "errhandler" | "newerrhandler" | "freeerrhandler" => Names::CountedDown(&values::ERRHANDLERS),
        "session" | "newsession" | "freesession" => Names::CountedDown(&[]),
        "error" | "outerror" | "errorclass" | "outerrorclass" => Names::Errors,
        "dargs" => Names::One(values::DFLT_DARG, "MPI_DISTRIBUTE_DFLT_DARG"),
        "weights" => Names::One(values::UNWEIGHTED, "MPI_UNWEIGHTED"),
        "color" | "int" | "outint" | "outints" | "outcount64" | "threadlevel" | "outthreadlevel" => {
            Names::One(values::UNDEFINED, "MPI_UNDEFINED")
        }
        _ => Names::None,
    }
}

/// A word that its role gives a name to.
fn named(role: &str, word: i64) -> Option<Value> {
    let at = |names: &[&str], i: i64| names.get(usize::try_from(i).ok()?).map(|n| Value::from(*n));
    match (names_of(role), word) {
        (Names::List(_), values::NONE) => Some(Value::Null),
        (Names::List(_), values::UNDEFINED) => Some("MPI_UNDEFINED".into()),
        (Names::List(names), _) => at(names, word),
        (Names::Bits(names), _) => bits(names, word),
        (Names::CountedDown(_), values::NULL) => Some(Value::Null),
        (Names::CountedDown(names), _) => at(names, values::FIRST_NAMED.checked_sub(word)?),
        (Names::Errors, 0) => Some("MPI_SUCCESS".into()),
        (Names::Errors, _) => u32::try_from(word).ok().and_then(values::error_class).map(Value::from),
        (Names::One(one, name), _) => (one == word).then(|| name.into()),
        (Names::None, _) => None,
    }
}

/// The names of the bits that are set, with `|` between them; what has no name in hexadecimal. `None` for none.
fn bits(names: &[&str], word: i64) -> Option<Value> {
    let set = |i: usize| word >> i & 1 == 1;
    let mut parts: Vec<String> =
        names.iter().enumerate().filter(|(i, _)| set(*i)).map(|(_, n)| (*n).to_owned()).collect();
    let foreign = word >> values::FOREIGN_BITS;
    match word {
        values::NONE => return Some(Value::Null),
        0 => return None,
        _ if foreign != 0 => parts.push(format!("{foreign:#x}")),
        _ => {}
    }
    Some(parts.join("|").into())
}

/// A parameter that is a histogram as an object: `histogram` (its name), `call`, `site` (as printed), `codes` (absolute, or
/// relative to the caller), and `values`, each with how often it was. `None` if it is none.
#[must_use]
pub fn histogram(
    section: &Section,
    sym: Sym,
    slot: usize,
    streams: &SlotStreams,
    site: u32,
) -> Option<Map<String, Value>> {
    let Form::Histogram(codes) = streams.values.form else { return None };
    let row = CallTable::builtin().get(section.symbols.get(sym as usize)?.call)?;
    let slot = row.slots.get(slot)?;
    let special = |code: i64| codes != Codes::Absolute && code < -(SPECIAL / 2);
    let name = |code: i64| match code {
        _ if special(code) => word(row, slot, code.wrapping_add(SPECIAL)),
        _ if codes == Codes::Absolute => word(row, slot, code),
        _ => code.into(),
    };
    let all = streams.values.streams.iter().filter_map(Frequencies::from_stream);
    let values: Vec<Value> =
        all.flat_map(|f| f.iter().map(|(code, n)| json!([name(code), n])).collect::<Vec<_>>()).collect();
    let mut out = Map::new();
    out.insert("histogram".into(), slot.name.clone().into());
    out.insert("call".into(), row.name.clone().into());
    out.insert("site".into(), site.into());
    out.insert("codes".into(), codes.name().into());
    out.insert("values".into(), values.into());
    Some(out)
}

/// An object of [`call`] as a line for people:
/// `rank 3 #12 MPI_Send count=10 type=MPI_INT dest=4 tag=7 comm=MPI_COMM_WORLD bytes=40  [site 5, exchange halo.c:12] at 5 ns for 12.3 µs`.
#[must_use]
pub fn line(call: &Map<String, Value>, sites: &CallSites) -> String {
    let text = |key: &str| call.get(key).map(bare).unwrap_or_default();
    let mut out = format!("rank {}", text("rank"));
    if call.get("thread").and_then(Value::as_u64).is_some_and(|t| t > 0) {
        out.push_str(&format!(".{}", text("thread")));
    }
    out.push_str(&format!(" #{} {}", text("i"), text("call")));
    for (key, v) in call {
        let left_out = match key.as_str() {
            "rank" | "thread" | "i" | "call" | "site" | "enter" | "exit" => true,
            // Of calls that name whom they receive from.
            "rsource" | "rtag" => v.is_null(),
            _ => false,
        };
        if !left_out {
            // The caller's rank stands before the call.
            let name = if key == "rank2" { "rank" } else { key };
            out.push_str(&format!(" {name}={}", bare(v)));
        }
    }
    let site = call.get("site").and_then(Value::as_u64).and_then(|site| u32::try_from(site).ok());
    out.push_str(&format!("  [{}]", sites.describe(site.unwrap_or(u32::MAX))));
    let time = |key: &str| call.get(key).and_then(Value::as_i64);
    if let (Some(enter), Some(exit)) = (time("enter"), time("exit")) {
        out.push_str(&format!(" at {} for {}", duration(enter), duration(exit.saturating_sub(enter))));
    }
    out
}

/// A value without the quotes of JSON; `null` is `-`.
#[must_use]
pub fn bare(v: &Value) -> String {
    match v {
        Value::String(s) => s.clone(),
        Value::Null => "-".into(),
        Value::Array(a) => format!("[{}]", a.iter().map(bare).collect::<Vec<_>>().join(",")),
        Value::Object(o) => {
            let fields = o.iter().map(|(k, v)| format!("{k}={}", bare(v)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

/// A duration in ns with three digits: `950 ns`, `12.3 µs`, `4.05 ms`, `17.2 s`.
#[must_use]
pub fn duration(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", scaled(ns.unsigned_abs(), &TIMES, |n| n.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_234, "1.23 µs"),
            (45_678_901, "45.7 ms"),
            (1_234_500_000_000, "1235 s"),
            (-2_000_000_000, "-2.00 s"),
        ];
        cases.iter().for_each(|(ns, text)| assert_eq!(duration(*ns), *text));
    }
}
