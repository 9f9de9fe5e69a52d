//! Comparing what a program says it called with what was recorded, call by call.
//!
//! Equal are lists of the same calls in the same order with the same fields and values, but for times, call sites and
//! the names of objects, which must correspond one to one: the first list introduces an object as `new:NAME`, or by a
//! name of its own (a second recording), and from then on that name stands for whatever the second list called it.

use std::collections::HashMap;

use serde_json::Value;

use crate::render::{Object, Ranks};

/// Fields that say where and when a call was, not what it was, or what follows from calls before it, or from the run.
const PLACE: [&str; 8] = ["rank", "thread", "i", "site", "enter", "exit", "hints", "attribute"];

/// Marks a call that a recording may have or not, and says who makes it: see tests/programs/README.md.
const OPTIONAL: &str = "by";

/// Sizes of predefined types in bytes, to check the `bytes` of sends, which programs do not state.
const SIZES: [(&str, i64); 20] = [
    ("MPI_BYTE", 1),
    ("MPI_CHAR", 1),
    ("MPI_CHARACTER", 1),
    ("MPI_COMPLEX", 8),
    ("MPI_DOUBLE", 8),
    ("MPI_DOUBLE_COMPLEX", 16),
    ("MPI_DOUBLE_PRECISION", 8),
    ("MPI_FLOAT", 4),
    ("MPI_INT", 4),
    ("MPI_INTEGER", 4),
    ("MPI_INTEGER8", 8),
    ("MPI_LOGICAL", 4),
    ("MPI_LONG", 8),
    ("MPI_LONG_LONG", 8),
    ("MPI_PACKED", 1),
    ("MPI_REAL", 4),
    ("MPI_SHORT", 2),
    ("MPI_UNSIGNED", 4),
    ("MPI_UNSIGNED_CHAR", 1),
    ("MPI_UNSIGNED_LONG", 8),
];

/// The kind of object that a field names, if it names one. Names are unique among objects of a kind.
fn kind(field: &str) -> Option<&'static str> {
    let field = field.trim_end_matches(|c: char| c.is_ascii_digit());
    let ends = |kind: &str| field.ends_with(kind);
    match field {
        "splittype" | "locktype" => None,
        "op" | "newop" | "freeop" => Some("op"),
        "win" | "newwin" | "freewin" => Some("win"),
        "file" | "newfile" | "freefile" => Some("file"),
        _ if ends("comm") => Some("comm"),
        _ if ends("group") => Some("group"),
        _ if ends("type") || ends("types") => Some("type"),
        _ => None,
    }
}

/// How the names of objects in two lists correspond: by kind and name.
#[derive(Debug, Default)]
struct Names {
    second: HashMap<(&'static str, String), String>,
    first: HashMap<(&'static str, String), String>,
}

impl Names {
    /// From here on `a` stands for `b`; false if another name does.
    fn bind(&mut self, kind: &'static str, a: &str, b: &str) -> bool {
        if let Some(old) = self.second.insert((kind, a.to_owned()), b.to_owned()) {
            // The name is used again, for a new object.
            self.first.remove(&(kind, old));
        }
        self.first.insert((kind, b.to_owned()), a.to_owned()).is_none_or(|other| other == a)
    }

    /// Whether `a` stands for `b`, both ways. A new name is bound, also one that another recorder gave.
    fn same(&mut self, kind: &'static str, a: &str, b: &str) -> bool {
        if let Some(name) = a.strip_prefix("new:") {
            return self.bind(kind, name, b);
        }
        let of = |names: &HashMap<_, String>, name: &str| names.get(&(kind, name.to_owned())).cloned();
        match (of(&self.second, a), of(&self.first, b)) {
            (Some(of_a), Some(of_b)) => of_a == b && of_b == a,
            // MPI's own names are the same everywhere.
            (None, None) if is_made(a) && is_made(b) => self.bind(kind, a, b),
            (None, None) => a == b,
            _ => false,
        }
    }

    /// The object is gone: its names may stand for others.
    fn free(&mut self, kind: &'static str, a: &str) {
        if let Some(b) = self.second.remove(&(kind, a.to_owned())) {
            self.first.remove(&(kind, b));
        }
    }
}

/// Whether a name is one that a recorder gave to an object that a program made: `MPI_Comm_dup-1a2b3c4d`, `group-…`.
fn is_made(name: &str) -> bool {
    let Some((_, rest)) = name.split_once('-') else { return false };
    rest.len() >= 8 && rest.bytes().take(8).all(|b| b.is_ascii_hexdigit())
}

/// For each call the index of its thread's first one: calls are numbered by thread, and those of a thread follow each other.
fn begins(calls: &[Object]) -> Vec<usize> {
    let mut from = 0;
    let thread = |i: usize| calls[i].get("thread").and_then(Value::as_u64).unwrap_or(0);
    let begins = (0..calls.len()).map(|i| {
        if i > 0 && thread(i) != thread(i - 1) {
            from = i;
        }
        from
    });
    begins.collect()
}

/// Compares one rank's list `first` (the program's own, or another recording's) with `second` (a recording's). A call
/// of the first that is marked with `by` may be missing in the second.
///
/// # Errors
///
/// The first difference, for people.
pub fn rank(first: &[Object], second: &[Object]) -> Result<(), String> {
    let mut names = Names::default();
    let mut rest = second.iter().enumerate();
    let mut next = rest.next();
    let (from, from_second) = (begins(first), begins(second));
    for (i, a) in first.iter().enumerate() {
        let Some((k, b)) = next else {
            if a.contains_key(OPTIONAL) {
                continue;
            }
            return Err(format!("call {i} was not recorded, nor any after it: {}", shown(a)));
        };
        match call(a, b, &mut names) {
            Ok(()) if position(a) + from[i] != i || position(b) + from_second[k] != k => {
                return Err(format!("call {i} is not numbered in order: {} {}", position(a), position(b)));
            }
            Ok(()) => next = rest.next(),
            Err(_) if a.contains_key(OPTIONAL) => {}
            Err(what) => {
                let before = if i > 0 { shown(&first[i - 1]) } else { "the beginning".into() };
                let (a, b) = (shown(a), shown(b));
                return Err(format!("call {i}: {what}\n  stated   {a}\n  recorded {b}\n  after    {before}"));
            }
        }
    }
    next.map_or(Ok(()), |(k, b)| {
        Err(format!("recorded call {k} was never made, nor any after it: {}", shown(b)))
    })
}

fn position(call: &Object) -> usize {
    call.get("i").and_then(Value::as_u64).and_then(|i| usize::try_from(i).ok()).unwrap_or(usize::MAX)
}

/// Compares all ranks.
///
/// # Errors
///
/// The first difference of each rank that has one.
pub fn ranks(first: &Ranks, second: &Ranks) -> Result<(), String> {
    if !first.keys().eq(second.keys()) {
        return Err(format!("ranks {:?} and {:?}", first.keys(), second.keys()));
    }
    let found: Vec<_> = first
        .iter()
        .zip(second.values())
        .filter_map(|((r, a), b)| Some(format!("rank {r}: {}", rank(a, b).err()?)))
        .collect();
    if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
}

fn shown(call: &Object) -> String {
    let mut call = call.clone();
    for place in PLACE {
        call.shift_remove(place);
    }
    Value::Object(call).to_string()
}

fn call(a: &Object, b: &Object, names: &mut Names) -> Result<(), String> {
    if a.get("rank") != b.get("rank") {
        return Err("rank differs".into());
    }
    let apart = |key: &str| PLACE.contains(&key) || key == OPTIONAL;
    for (key, value) in a.iter().filter(|(key, _)| !apart(key)) {
        let Some(other) = b.get(key) else { return Err(format!("{key} was not recorded")) };
        if !same(key, value, other, names) {
            return Err(format!("{key} differs"));
        }
    }
    for key in b.keys().filter(|key| !apart(key) && !a.contains_key(*key)) {
        if !(key == "bytes" && bytes_of_send(b)) {
            return Err(format!("{key} is no field of the call"));
        }
    }
    // The name of a freed object may be used for another.
    for (key, value) in a {
        if let (true, Some(kind), Value::String(name)) = (key.starts_with("free"), kind(key), value) {
            names.free(kind, name);
        }
    }
    Ok(())
}

fn same(key: &str, a: &Value, b: &Value, names: &mut Names) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => match kind(key) {
            Some(kind) => names.same(kind, a, b),
            None => a == b,
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(key, a, b, names))
        }
        _ => a == b,
    }
}

/// Whether `bytes` is what a send of a predefined type of known size comes to, in all its parts. (Of other types, it is not known here.)
fn bytes_of_send(call: &Object) -> bool {
    let number = |key: &str| call.get(key).and_then(Value::as_i64);
    // MPI_Isendrecv has a type of its own for what it receives.
    let of = |name, of_two| if call.contains_key(name) { name } else { of_two };
    let Some(name) = call.get(of("type", "sendtype")).and_then(Value::as_str) else { return false };
    let Some((count, bytes)) = number(of("count", "sendcount")).zip(number("bytes")) else { return false };
    let parts = number("partitions").unwrap_or(1);
    call.contains_key("dest")
        && SIZES.iter().find(|(n, _)| *n == name).is_none_or(|(_, size)| bytes == parts * count * size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn calls(list: Value) -> Vec<Object> {
        list.as_array().unwrap().iter().map(|o| o.as_object().unwrap().clone()).collect()
    }

    fn differ(a: Value, b: Value) -> String {
        rank(&calls(a), &calls(b)).expect_err("a difference")
    }

    #[test]
    fn equal_but_for_names_sites_and_times() {
        let a = json!([
            {"rank": 1, "i": 0, "call": "D", "comm": "MPI_COMM_WORLD", "newcomm": "new:x"},
            {"rank": 1, "i": 1, "call": "S", "comm": "x", "type": "MPI_INT", "count": 2, "dest": 0},
            {"rank": 1, "i": 2, "call": "F", "freecomm": "x"},
            {"rank": 1, "i": 3, "call": "B", "by": "binding"},
            {"rank": 1, "i": 4, "call": "D", "comm": "MPI_COMM_WORLD", "newcomm": "new:y"},
            {"rank": 1, "i": 5, "call": "T", "newtype": "new:y"},
            {"rank": 1, "i": 6, "call": "B", "by": "binding"}]);
        let b = json!([
            {"rank": 1, "thread": 0, "i": 0, "site": 4, "enter": 1, "exit": 2, "call": "D", "comm": "MPI_COMM_WORLD",
             "newcomm": "D-00000001"},
            {"rank": 1, "i": 1, "call": "S", "comm": "D-00000001", "type": "MPI_INT", "count": 2, "dest": 0, "bytes": 8},
            {"rank": 1, "i": 2, "call": "F", "freecomm": "D-00000001"},
            {"rank": 1, "i": 3, "call": "D", "comm": "MPI_COMM_WORLD", "newcomm": "D-00000001"},
            {"rank": 1, "i": 4, "call": "T", "newtype": "D-00000001"}]);
        rank(&calls(a), &calls(b)).unwrap();
    }

    #[test]
    fn differences_are_named() {
        let one = |field: Value| json!([{"rank": 0, "i": 0, "call": "S", "v": field}]);
        let message = differ(one(json!(1)), one(json!(2)));
        assert!(message.starts_with("call 0: v differs\n  stated   {\"call\":\"S\",\"v\":1}"), "{message}");
        for (a, b) in [
            (json!([1, 2]), json!([1])),
            (json!({"a": 1}), json!({"a": null})),
            (json!("MPI_INT"), json!("MPI_CHAR")),
            (json!("T-00000001"), json!("T-00000002")),
            (json!(false), json!(0)),
        ] {
            assert!(differ(one(a), one(b)).contains("v differs"));
        }
        assert!(differ(json!([]), one(json!(1))).contains("never made"));
        assert!(differ(one(json!(1)), json!([])).contains("not recorded"));
        assert!(
            differ(one(json!(1)), json!([{"rank": 0, "i": 0, "call": "S"}])).contains("v was not recorded")
        );
        let more = json!([{"rank": 0, "i": 0, "call": "S", "v": 1, "bytes": 3}]);
        assert!(differ(one(json!(1)), more).contains("bytes is no field"));
        let late = json!([{"rank": 0, "i": 1, "call": "S", "v": 1}]);
        assert!(differ(one(json!(1)), late).contains("not numbered in order"));
        let threads = |i| json!([{"rank": 0, "thread": 0, "i": 0, "call": "S"}, {"rank": 0, "thread": 1, "i": i, "call": "S"}]);
        rank(&calls(threads(0)), &calls(threads(0))).unwrap();
        assert!(differ(threads(0), threads(1)).contains("not numbered in order"));
    }

    #[test]
    fn bytes_of_a_send_are_checked() {
        for (count, of) in [("count", "type"), ("sendcount", "sendtype")] {
            let send = |bytes: Option<i64>| {
                let mut o = json!([{"rank": 0, "i": 0, "call": "S", count: 3, of: "MPI_INT", "dest": 1}]);
                bytes.into_iter().for_each(|b| o[0]["bytes"] = b.into());
                o
            };
            rank(&calls(send(None)), &calls(send(Some(12)))).unwrap();
            assert!(differ(send(None), send(Some(3))).contains("bytes is no field"));
        }
    }

    #[test]
    fn two_objects_are_not_one() {
        let list = |second: &str, used: &str| {
            json!([{"rank": 0, "i": 0, "newtype": "T-00000001"}, {"rank": 0, "i": 1, "newtype": second},
                {"rank": 0, "i": 2, "type": used}])
        };
        let stated = json!([{"rank": 0, "i": 0, "newtype": "new:a"}, {"rank": 0, "i": 1, "newtype": "new:b"},
            {"rank": 0, "i": 2, "type": "a"}]);
        rank(&calls(stated.clone()), &calls(list("T-00000002", "T-00000001"))).unwrap();
        assert!(differ(stated.clone(), list("T-00000001", "T-00000001")).starts_with("call 1"));
        assert!(differ(stated, list("T-00000002", "T-00000002")).starts_with("call 2"));
        // Two recordings that name their objects differently.
        let first = list("T-00000009", "T-00000001");
        rank(&calls(first.clone()), &calls(list("T-00000002", "T-00000001"))).unwrap();
        assert!(differ(first, list("T-00000002", "T-00000002")).starts_with("call 2"));
    }
}
