//! Whether the ranks that a call names are in its communicator or window.

use st_model::calls::words::each;
use st_model::calls::{Meaning, Object};
use st_model::values::{ANY_SOURCE, ANY_TAG, NONE, PROC_NULL, ROOT};
use st_stream::json::plain;

use crate::numbers::Numbers;
use crate::shape::Shape;

/// Checks the ranks in a call's words.
///
/// # Errors
///
/// With the first that cannot be.
pub(crate) fn check(shape: &Shape, words: &[i64], numbers: &impl Numbers) -> Result<(), String> {
    let row = shape.row;
    let mut before = None;
    let of = |(slot, own): (&st_model::calls::Slot, &[i64])| match slot.meaning {
        Meaning::Ref(object @ (Object::Comm | Object::Win)) if !slot.is_made() => {
            own.first().map(|number| (object, *number))
        }
        _ => None,
    };
    let first = each(&row.slots, words).find_map(of);
    for ((slot, own), field) in each(&row.slots, words).zip(&shape.fields) {
        before = of((slot, own)).or(before);
        if slot.meaning != Meaning::Rank {
            continue;
        }
        let special: &[i64] = match (field.role, slot.name.as_str()) {
            ("dest" | "target", _) => &[PROC_NULL],
            ("source", _) => &[PROC_NULL, ANY_SOURCE],
            ("root", _) => &[PROC_NULL, ROOT],
            // Only the leader's is looked at by MPI.
            ("peer", _) if !row.properties.asks => continue,
            ("peer", _) => &[],
            ("leader" | "outpeer", _) | ("", "rsource" | "source") => &[PROC_NULL, ANY_SOURCE, ROOT, NONE],
            _ => continue,
        };
        let Some((object, number)) = before.or(first).or(Some((Object::Comm, 0))) else { continue };
        let Some(reach) = numbers.reach(object, number, field.role == "outpeer") else { continue };
        let outside = |rank: &&i64| {
            !special.contains(rank) && u64::try_from(**rank).ok().is_none_or(|rank| rank >= reach)
        };
        if let Some(wrong) = own.iter().find(outside) {
            let what = if object == Object::Win { "window" } else { "communicator" };
            return Err(format!(
                "{}: {} is none of {reach} ranks of the {what}",
                field.key,
                plain(slot, *wrong)
            ));
        }
    }
    Ok(())
}

/// Refuses messages that are sent with any tag.
///
/// # Errors
///
/// If one is.
pub(crate) fn tags(shape: &Shape, words: &[i64]) -> Result<(), String> {
    let sends = shape.row.slot("dest").is_some();
    for ((slot, own), field) in each(&shape.row.slots, words).zip(&shape.fields) {
        let of_send = slot.meaning == Meaning::Tag && matches!(slot.name.as_str(), "tag" | "sendtag");
        if sends && of_send && own == [ANY_TAG] {
            return Err(format!("{}: nothing is sent with MPI_ANY_TAG", field.key));
        }
    }
    Ok(())
}
