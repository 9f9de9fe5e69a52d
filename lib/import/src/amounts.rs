//! How much a call moves: its counts, against the bytes that are told.

use serde_json::{Map, Value};
use st_model::calls::words::find;
use st_model::calls::{Kind, Meaning, Object, Row, Slot};
use st_model::num::narrow;

use crate::left::Left;
use crate::numbers::Numbers;
use crate::shape::{Field, Shape};

/// The field that says how many bytes a call moves.
pub(crate) const BYTES: &str = "bytes";

/// The bytes that a call is said to move, if a number is.
///
/// # Errors
///
/// If they are no number of bytes.
pub(crate) fn told(row: &Row, given: &Map<String, Value>, failed: bool) -> Result<Option<i64>, String> {
    match given.get(BYTES) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(_)) if row.slot(BYTES).is_some() => Ok(None),
        Some(value) => {
            // A probe that has found nothing says of how many bytes that was, too.
            let nothing = given.get("flag") == Some(&Value::Bool(false));
            let bytes = value.as_i64().filter(|bytes| *bytes >= 0 || failed || nothing);
            bytes.map(Some).ok_or_else(|| format!("{BYTES}: {value} is no whole number from 0 on"))
        }
    }
}

/// Whether a field is a number of elements, not a displacement.
pub(crate) fn counts(slot: &Slot, field: &Field) -> bool {
    slot.meaning == Meaning::Count
        && matches!(field.role, "count" | "counts" | "origincount" | "rootcount" | "rootcounts")
}

/// The same of one that every caller must have.
fn is_needed(slot: &Slot, field: &Field) -> bool {
    counts(slot, field) && !field.role.starts_with("root")
}

/// Whether the bytes of a call say what it moves.
pub(crate) fn has_bytes(shape: &Shape) -> bool {
    shape
        .row
        .slots
        .iter()
        .zip(&shape.fields)
        .any(|(slot, field)| !slot.list && (slot.name == BYTES || counts(slot, field)))
}

/// A call whose amounts are looked at.
pub(crate) struct Amounts<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) given: &'a Map<String, Value>,
    pub(crate) bytes: Option<i64>,
    /// What the source says need not fit together.
    pub(crate) lenient: bool,
}

impl Amounts<'_> {
    /// Puts the elements in the place of bytes where only these are told, and holds counts against bytes where both are.
    ///
    /// # Errors
    ///
    /// If they contradict each other.
    pub(crate) fn settle(
        &self,
        numbers: &impl Numbers,
        left: &mut Left,
        words: &mut [i64],
    ) -> Result<(), String> {
        let (mut at, mut lacks) = (0, false);
        let only_room = self.shape.row.slot(BYTES).is_some();
        // Of a call that sends and receives, the bytes are those received: the last count.
        let last = self
            .shape
            .row
            .slots
            .iter()
            .rposition(|slot| slot.meaning == Meaning::Count && slot.name != BYTES);
        let sent = self.sent();
        let inplace = self.given.get("inplace") == Some(&Value::Bool(true));
        for (i, (slot, field)) in self.shape.row.slots.iter().zip(&self.shape.fields).enumerate() {
            let Some(&word) = words.get(at) else { break };
            let own = at;
            at += if slot.list { usize::try_from(word).map_err(|e| e.to_string())? + 1 } else { 1 };
            if !counts(slot, field) {
                continue;
            }
            let is_told = self.given.contains_key(&field.key);
            lacks |= !is_told && !inplace && is_needed(slot, field) && (slot.list || self.bytes.is_none());
            let Some(bytes) = self.bytes.filter(|_| !slot.list) else { continue };
            let size =
                self.size_after(i, words, numbers).map(|size| size.saturating_mul(self.partitions(words)));
            if !is_told {
                let Some(elements) = elements(bytes, size) else {
                    return Err(format!(
                        "{BYTES}: {bytes} are no whole number of elements of {}",
                        named(size)
                    ));
                };
                if let Some(count) = words.get_mut(own) {
                    *count = elements;
                }
            } else if let Some(size) = size.filter(|_| !self.lenient && !field.role.starts_with("root")) {
                let room = size.checked_mul(word);
                let fits = if only_room {
                    Some(i) != last || room.is_none_or(|room| bytes <= room)
                } else if sent.is_some_and(|sent| sent != i) {
                    true
                } else {
                    room == Some(bytes)
                };
                if !fits {
                    return Err(format!(
                        "{BYTES}: {bytes}, but {} is {word} elements of {}",
                        field.key,
                        named(Some(size))
                    ));
                }
            }
        }
        if lacks {
            left.add(&format!("amounts of {} (0 stands for them)", self.shape.row.name), 1);
        }
        Ok(())
    }

    /// The count that the bytes are about of a call that begins to send and to receive, and does not say what it has received: the first.
    fn sent(&self) -> Option<usize> {
        let row = self.shape.row;
        let both = row.slot(BYTES).is_none() && row.kind == Kind::SendReceive;
        row.slots.iter().position(|slot| slot.meaning == Meaning::Count).filter(|_| both)
    }

    /// Of how many parts, each of so many elements, a message is made.
    fn partitions(&self, words: &[i64]) -> i64 {
        match find(self.shape.row, words, |slot| slot.name == "partitions") {
            [parts] if *parts > 0 => *parts,
            _ => 1,
        }
    }

    /// Bytes of an element of the first datatype behind a slot.
    fn size_after(&self, slot: usize, words: &[i64], numbers: &impl Numbers) -> Option<i64> {
        let mut all = st_model::calls::words::each(&self.shape.row.slots, words).skip(slot);
        let (_, own) = all.find(|(slot, _)| slot.meaning == Meaning::Ref(Object::Type) && !slot.list)?;
        numbers.size(*own.first()?)
    }

    /// Refuses bytes where each partner has a count of its own.
    ///
    /// # Errors
    ///
    /// With the counts that must be told.
    pub(crate) fn lists(&self) -> Result<(), String> {
        if self.bytes.is_none() || has_bytes(self.shape) {
            return Ok(());
        }
        let fields = self.shape.row.slots.iter().zip(&self.shape.fields);
        let lists: Vec<&str> = fields
            .filter(|(slot, field)| slot.list && counts(slot, field))
            .map(|(_, f)| f.key.as_str())
            .collect();
        if lists.is_empty() || lists.iter().all(|list| self.given.contains_key(*list)) {
            return Ok(());
        }
        Err(format!("{BYTES}: each partner has a count of its own: {}", lists.join(", ")))
    }
}

fn elements(bytes: i64, size: Option<i64>) -> Option<i64> {
    match size {
        None => Some(bytes),
        Some(0) => (bytes == 0).then_some(0),
        // The size is untrusted: the least number divided by -1 is none.
        Some(size) => (bytes.checked_rem(size)? == 0).then(|| narrow(bytes / size)),
    }
}

fn named(size: Option<i64>) -> String {
    size.map_or_else(|| "its type".into(), |size| format!("{size} bytes"))
}
