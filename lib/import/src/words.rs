//! A call's parameters as words, by its row in the call table.

use std::collections::HashMap;

use serde_json::{Map, Value};
use st_model::calls::words::{find, found_nothing};
use st_model::calls::{Meaning, Object, Row, Slot, names};
use st_model::num::narrow;
use st_model::values::{ANY_SOURCE, CANCELLED, NONE, NULL, PROC_NULL};
use st_stream::json::plain;
use st_stream::json::read::{Read, value};

use crate::amounts::{self, Amounts, BYTES};
use crate::escaped::escaped;
use crate::left::Left;
use crate::numbers::Numbers;
use crate::partners;
use crate::predefined::{BITWISE, BYTE, SUM};
use crate::shape::{Field, Shape};

/// What a source says of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    pub(crate) parameters: &'a Map<String, Value>,
    /// It may lack what a call must have.
    pub(crate) partial: bool,
    /// The call has failed: its parameters may be wrong.
    pub(crate) failed: bool,
}

/// Puts a call's words together. What the source does not tell is counted, or refused where nothing can stand for it.
///
/// # Errors
///
/// With what is wrong.
pub(crate) fn words(
    shape: &Shape,
    given: Given<'_>,
    numbers: &mut impl Numbers,
    left: &mut Left,
    out: &mut Vec<i64>,
) -> Result<(), String> {
    let (row, Given { parameters: given, partial, failed }) = (shape.row, given);
    out.clear();
    let bytes = amounts::told(row, given, failed)?;
    let amounts = Amounts { shape, given, bytes, lenient: partial || failed };
    amounts.lists()?;
    let (requests, done, lacks) = (Vec::new(), true, false);
    let mut making = Making { row, given, partial, failed, bytes, numbers, left, requests, done, lacks };
    let mut slots = row.slots.iter().zip(&shape.fields);
    while let Some((slot, field)) = slots.next() {
        let put = if slot.meaning == Meaning::Position {
            // Source, tag and bytes of the completed requests are in it.
            let of: Vec<&Slot> = slots.by_ref().take(3).map(|(slot, _)| slot).collect();
            making.completed(&of, out)
        } else if slot.list {
            making.list(slot, field, out)
        } else {
            making.one(slot, field).map(|word| out.push(word))
        };
        put.map_err(|what| format!("{}: {what}", field.key))?;
    }
    if making.lacks {
        let what = format!("partners, communicators or requests of {} (null ones stand for them)", row.name);
        making.left.add(&what, 1);
    }
    let Making { numbers, left, .. } = making;
    amounts.settle(numbers, left, out)?;
    if !failed {
        partners::check(shape, out, numbers)?;
    }
    if !failed && !partial {
        partners::tags(shape, out)?;
    }
    from_any(row, out, left);
    // What hints are follows from the calls before; the value of an attribute is one of the run.
    let asks = [names::MPI_Comm_get_attr, names::MPI_Attr_get].contains(&&*row.name);
    let takes_hints = row.slots.iter().any(|slot| slot.meaning == Meaning::Info);
    let known = |key: &str| match key {
        BYTES => amounts::has_bytes(shape),
        "hints" => takes_hints,
        "attribute" if asks => true,
        _ => shape.knows(key),
    };
    for key in given.keys().filter(|key| !known(key)) {
        left.add(&format!("field {} of {}, which has none", escaped(key), row.name), 1);
    }
    Ok(())
}

/// Counts a receive from any rank that does not say from which it was.
fn from_any(row: &Row, words: &[i64], left: &mut Left) {
    let one = |name: &str| find(row, words, |slot| !slot.list && slot.name == name).first().copied();
    let is_any = one("source") == Some(ANY_SOURCE) && one("rsource") == Some(NONE);
    if is_any && one(BYTES) != Some(CANCELLED) && !found_nothing(row, words) {
        left.add(FROM_ANY, 1);
    }
}

/// Bytes that recorders have of a probe that has found nothing, which lines leave out.
const NOTHING: i64 = -1;

struct Making<'a, N> {
    row: &'static Row,
    given: &'a Map<String, Value>,
    numbers: &'a mut N,
    left: &'a mut Left,
    /// Those that the call waits for.
    requests: Vec<i64>,
    /// A test has succeeded.
    done: bool,
    /// What is not told may be null.
    partial: bool,
    failed: bool,
    /// What the call is said to move.
    bytes: Option<i64>,
    /// Something is.
    lacks: bool,
}

impl<N: Numbers> Making<'_, N> {
    fn list(&mut self, slot: &Slot, field: &Field, out: &mut Vec<i64>) -> Result<(), String> {
        let waits = slot.meaning == Meaning::Request;
        // What waits for one request may say so.
        let one =
            |given: &Map<String, Value>| given.get("request").filter(|_| waits).cloned().map(|v| vec![v]);
        let single;
        let all: &[Value] = match self.given.get(&field.key) {
            Some(Value::Array(all)) => all,
            Some(_) => return Err("no list".into()),
            None => {
                single = one(self.given);
                match &single {
                    Some(single) => single,
                    None if waits && self.partial => {
                        self.lacks = true;
                        &[]
                    }
                    None if waits => return Err("is missing".into()),
                    None => &[],
                }
            }
        };
        out.push(narrow(all.len()));
        let first = out.len();
        for v in all {
            let word = self.word(slot, field, v)?;
            out.push(word);
        }
        if waits {
            self.requests = out.get(first..).unwrap_or(&[]).to_vec();
        }
        Ok(())
    }

    fn one(&mut self, slot: &Slot, field: &Field) -> Result<i64, String> {
        let given = self.given;
        if slot.name == BYTES && !self.done && self.bytes.is_none() {
            return Ok(NOTHING);
        }
        let word = match given.get(&field.key) {
            Some(v) => self.word(slot, field, v)?,
            None => self.missing(slot, field)?,
        };
        let of_requests = field.length_of.as_deref() == Some("requests");
        if let Some(length) = self.length(field).filter(|_| of_requests && !self.failed && !self.partial)
            && word != length
        {
            return Err(format!("{word}, but requests has {length}"));
        }
        if slot.meaning == Meaning::Flag && slot.name == "flag" {
            self.done = word != 0;
        }
        Ok(word)
    }

    fn word(&mut self, slot: &Slot, field: &Field, v: &Value) -> Result<i64, String> {
        if v.is_number() && matches!(slot.meaning, Meaning::Ref(_)) {
            // A number of the trace that it comes from, which says no more of it.
            self.left.add("objects of which no more than a number is known (null handles stand for them)", 1);
        }
        self.no_code(slot, v)?;
        let negative = |word: i64| word < 0 && v.is_number() && amounts::counts(slot, field) && !self.failed;
        match value(self.row, slot, v) {
            Some(Read::Word(word)) if negative(word) => Err(format!("{word} is below 0")),
            Some(Read::Word(number)) if slot.meaning == Meaning::Request && v.is_number() => {
                self.numbers.numbered_request(number, field)?;
                Ok(number)
            }
            Some(Read::Word(word)) => Ok(word),
            Some(Read::Label(object, name)) => self.numbers.object(object, slot, name),
            Some(Read::Request(name)) => {
                let number = self.numbers.request(name, field.makes_request())?;
                if number == NULL {
                    self.left.add("requests that no call has made (null requests stand for them)", 1);
                }
                Ok(number)
            }
            None => Err(format!("{v} cannot be one")),
        }
    }

    /// Refuses numbers that mean something else: below 0 stand codes of st's, which have names, and tags are ints.
    fn no_code(&self, slot: &Slot, v: &Value) -> Result<(), String> {
        let Some(word) = v.as_i64().filter(|_| !self.partial) else { return Ok(()) };
        // What is undefined may be any number.
        let undefined = self.failed || self.given.get("flag") == Some(&Value::Bool(false));
        match slot.meaning {
            Meaning::Rank | Meaning::Tag if !plain(slot, word).is_number() => {
                Err(format!("{word} is none: what is no number has a name, as MPI_PROC_NULL or MPI_ANY_TAG"))
            }
            Meaning::Tag if word > i32::MAX.into() => Err(format!("{word} is above {}", i32::MAX)),
            Meaning::Tag if word < 0 && slot.name != "rtag" && !slot.list && !undefined => {
                Err(format!("{word} is below 0"))
            }
            _ => Ok(()),
        }
    }

    /// What stands for a value that is not told.
    fn missing(&mut self, slot: &Slot, field: &Field) -> Result<i64, String> {
        let null = match slot.meaning {
            Meaning::Ref(Object::Comm) if field.role == "comm" => Some(NULL),
            // MPI is asked about one that is there.
            Meaning::Rank if field.role == "peer" => Some(0),
            Meaning::Rank if slot.name != "rsource" && field.role != "outpeer" => Some(PROC_NULL),
            Meaning::Request => Some(NULL),
            _ => None,
        };
        if let Some(null) = null.filter(|_| self.partial) {
            self.lacks = true;
            return Ok(null);
        }
        let word = match slot.meaning {
            Meaning::Ref(Object::Comm) if field.role == "comm" => 0,
            Meaning::Ref(Object::Type) if !slot.is_made() => self.numbers.object(Object::Type, slot, BYTE)?,
            Meaning::Ref(Object::Op) if field.role == "op" => {
                // Bytes can be combined bit by bit alone.
                let of_bytes = self.given.get("type").is_none_or(|kind| kind == BYTE);
                let stands = if of_bytes { BITWISE } else { SUM };
                self.left.add(&format!("operations of reductions ({stands} stands for them)"), 1);
                self.numbers.object(Object::Op, slot, stands)?
            }
            Meaning::Ref(_) | Meaning::Info => NULL,
            Meaning::Count if slot.name == "bytes" => self.bytes.unwrap_or(NONE),
            Meaning::Count => self.bytes.unwrap_or(0),
            Meaning::Tag if slot.name == "rtag" => NONE,
            Meaning::Tag => 0,
            Meaning::Rank if slot.name == "rsource" || field.role == "outpeer" => NONE,
            Meaning::Rank | Meaning::Request => return Err("is missing".into()),
            Meaning::Flag => (slot.name == "flag").into(),
            Meaning::Times => 1,
            // A level that says nothing: 0 would say that recording was paused from there on.
            Meaning::Int if slot.name == "level" => 2,
            Meaning::Int => self.length(field).unwrap_or(0),
            Meaning::Position => return Err("is missing".into()),
        };
        Ok(word)
    }

    /// How long the list is whose length a field says.
    fn length(&self, field: &Field) -> Option<i64> {
        match self.given.get(field.length_of.as_ref()?) {
            Some(Value::Array(all)) => Some(narrow(all.len())),
            None if self.given.contains_key("request") => Some(1),
            _ => None,
        }
    }

    /// What a call completes: positions, sources, tags and bytes.
    fn completed(&mut self, of: &[&Slot], out: &mut Vec<i64>) -> Result<(), String> {
        let given = self.given;
        let all = match given.get("completed") {
            Some(Value::Array(all)) => all,
            Some(_) => return Err("no list".into()),
            None => {
                self.all_completed(out);
                return Ok(());
            }
        };
        // A request may be named more than once only if it is null.
        let mut places: HashMap<i64, Vec<usize>> = HashMap::new();
        for (place, request) in self.requests.iter().enumerate().rev() {
            places.entry(*request).or_default().push(place);
        }
        let mut lists: [Vec<i64>; 4] = Default::default();
        for one in all {
            let one = one.as_object().ok_or("no list of objects")?;
            let request = match one.get("request") {
                None | Some(Value::Null) => NULL,
                Some(Value::String(name)) => self.numbers.request(name, false)?,
                Some(v) => v.as_i64().ok_or("request: neither number nor text")?,
            };
            let place = places.get_mut(&request).and_then(Vec::pop);
            lists[0].push(narrow(place.ok_or("a request that the call does not wait for")?));
            for (slot, list) in of.iter().zip(&mut lists[1..]) {
                let number = one.get(&slot.name).map_or(Ok(()), |v| self.no_code(slot, v));
                number.map_err(|what| format!("{}: {what}", slot.name))?;
                let word = match one.get(&slot.name).map(|v| value(self.row, slot, v)) {
                    None => NONE,
                    Some(Some(Read::Word(word)))
                        if word >= 0
                            || !one.get(&slot.name).is_some_and(Value::is_number)
                            || slot.name != BYTES =>
                    {
                        word
                    }
                    Some(_) => return Err(format!("{}: cannot be one", slot.name)),
                };
                list.push(word);
            }
            let last = |list: &Vec<i64>| list.last().copied();
            self.told_from(request, last(&lists[1]), last(&lists[3]));
        }
        put(&lists, out);
        Ok(())
    }

    /// Counts a receive from any rank that does not say from which it was.
    fn told_from(&mut self, request: i64, source: Option<i64>, bytes: Option<i64>) {
        if self.numbers.is_from_any(request) && source == Some(NONE) && bytes != Some(CANCELLED) {
            self.left.add(FROM_ANY, 1);
        }
    }

    /// Where it is not told, all requests are complete, unless a test failed; of calls that complete one, the first.
    fn all_completed(&mut self, out: &mut Vec<i64>) {
        let active = self.requests.iter().enumerate().filter(|(_, request)| self.done && **request != NULL);
        let mut active: Vec<(i64, i64)> = active.map(|(place, request)| (narrow(place), *request)).collect();
        let (any, some) = (ANY.contains(&self.row.base()), SOME.contains(&self.row.base()));
        if any && active.len() > 1 {
            active.truncate(1);
            self.left
                .add(&format!("which request {} completed (the first that is pending)", self.row.name), 1);
        } else if some && active.len() > 1 {
            self.left.add(&format!("which requests {} completed (all that are pending)", self.row.name), 1);
        }
        for (_, request) in &active {
            self.told_from(*request, Some(NONE), None);
        }
        let none = vec![NONE; active.len()];
        let places = active.into_iter().map(|(place, _)| place).collect();
        put(&[places, none.clone(), none.clone(), none], out);
    }
}

/// Calls that complete one of their requests.
const ANY: [&str; 2] = [names::MPI_Waitany, names::MPI_Testany];
/// Calls that complete some of them.
const SOME: [&str; 2] = [names::MPI_Waitsome, names::MPI_Testsome];

/// What is counted of receives from any rank.
const FROM_ANY: &str = "sources of what was received from any rank";

/// Lists, each behind its length.
fn put(lists: &[Vec<i64>; 4], out: &mut Vec<i64>) {
    for list in lists {
        out.push(narrow(list.len()));
        out.extend(list);
    }
}
