//! Values of a call's parameters, read back: what [`super::call`] writes.

use serde_json::Value;

use st_model::calls::{Meaning, Object, Row, Slot};
use st_model::values;

use super::{Names, names_of, role};

/// What a value says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read<'v> {
    /// A word.
    Word(i64),
    /// An object, by its label.
    Label(Object, &'v str),
    /// A request by a name that is no number.
    Request(&'v str),
}

/// The names under which a row's slots are printed, in their order: one that is taken by then has a 2 after it.
#[must_use]
pub fn keys(row: &Row) -> Vec<String> {
    // What is printed before the parameters.
    let mut taken: Vec<String> =
        ["rank", "thread", "i", "call", "site", "enter", "exit"].map(str::to_owned).into();
    let first = taken.len();
    for slot in &row.slots {
        let name = if taken.contains(&slot.name) { format!("{}2", slot.name) } else { slot.name.clone() };
        taken.push(name);
    }
    taken.split_off(first)
}

/// What one value of a slot says; `None` if it is none that the slot can have.
#[must_use]
pub fn value<'v>(row: &Row, slot: &Slot, value: &'v Value) -> Option<Read<'v>> {
    match value {
        Value::Null => null(row, slot).map(Read::Word),
        Value::Bool(flag) => (slot.meaning == Meaning::Flag).then(|| Read::Word((*flag).into())),
        Value::Number(number) => {
            let word = number.as_i64()?;
            let known = slot.meaning != Meaning::Times || word >= 1;
            // An index means nothing outside of the trace that it is of.
            let named = matches!(slot.meaning, Meaning::Ref(_));
            known.then_some(Read::Word(if named { values::NULL } else { word }))
        }
        Value::String(name) => named(row, slot, name),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// What null stands for.
fn null(row: &Row, slot: &Slot) -> Option<i64> {
    match slot.meaning {
        Meaning::Ref(_) | Meaning::Request | Meaning::Info => Some(values::NULL),
        Meaning::Rank | Meaning::Tag | Meaning::Count => Some(values::NONE),
        Meaning::Int if matches!(names_of(role(row, slot)), Names::CountedDown(_)) => Some(values::NULL),
        Meaning::Int => Some(values::NONE),
        Meaning::Flag | Meaning::Position | Meaning::Times => None,
    }
}

fn named<'v>(row: &Row, slot: &Slot, name: &'v str) -> Option<Read<'v>> {
    let word = match (slot.meaning, name) {
        (Meaning::Ref(object), _) => return Some(Read::Label(object, name)),
        (Meaning::Rank, "MPI_PROC_NULL") => values::PROC_NULL,
        (Meaning::Rank, "MPI_ANY_SOURCE") => values::ANY_SOURCE,
        (Meaning::Rank, "MPI_ROOT") => values::ROOT,
        (Meaning::Tag, "MPI_ANY_TAG") => values::ANY_TAG,
        (Meaning::Count, "cancelled") if slot.name == "bytes" => values::CANCELLED,
        (Meaning::Info, "MPI_INFO_ENV") => values::INFO_ENV,
        (Meaning::Request, _) => return Some(Read::Request(name)),
        (Meaning::Int | Meaning::Count, _) => of_role(role(row, slot), name)?,
        _ => return None,
    };
    Some(Read::Word(word))
}

/// The word that a role's name stands for.
fn of_role(role: &str, name: &str) -> Option<i64> {
    let at = |names: &[&str]| names.iter().position(|n| *n == name).and_then(|i| i64::try_from(i).ok());
    let word = match names_of(role) {
        Names::List(names) => at(names),
        Names::Bits(names) => return bits(names, name),
        Names::CountedDown(names) => at(names).map(|i| values::FIRST_NAMED - i),
        Names::Errors if name == "MPI_SUCCESS" => Some(0),
        Names::Errors => at(&values::ERROR_CLASSES).map(|i| i + 1),
        Names::One(word, of) => (of == name).then_some(word),
        Names::None => None,
    };
    // Lists may lack a value, too.
    word.or_else(|| (name == UNDEFINED).then_some(values::UNDEFINED))
}

/// What is undefined is called.
const UNDEFINED: &str = "MPI_UNDEFINED";

/// The sum of constants with `|` between them.
fn bits(names: &[&str], name: &str) -> Option<i64> {
    let mut word = 0;
    for part in name.split('|') {
        let bit = names.iter().position(|n| *n == part).map(|i| 1i64.checked_shl(u32::try_from(i).ok()?));
        word |= match (bit, part.strip_prefix("0x")) {
            (Some(bit), _) => bit?,
            (None, Some(digits)) => i64::from(u32::from_str_radix(digits, 16).ok()?) << values::FOREIGN_BITS,
            (None, None) => return None,
        };
    }
    Some(word)
}

/// An error class by its name or number; `None` if it is neither. 0 is success.
#[must_use]
pub fn error_class(value: &Value) -> Option<u32> {
    match value {
        Value::Null => Some(0),
        Value::String(name) => u32::try_from(of_role("errorclass", name)?).ok(),
        _ => value.as_u64().and_then(|class| u32::try_from(class).ok()),
    }
}
