//! Objects that are called the same in two traces, and are not.

use st_cli::counted;
use st_model::calls::{CallTable, Meaning, Object};
use st_model::objects::SharedObject;
use st_model::proof::by_slot;
use st_model::section::{Entry, Section, Tables};

use crate::normal::NormalCall;

/// An object of the first trace beside one of the second, of the same label.
pub(crate) struct Unlike {
    /// What both are called.
    pub(crate) label: String,
    /// What is different.
    pub(crate) how: String,
}

/// The objects in which two calls of a function on a rank differ although they are called the same.
pub(crate) fn unlike([a, b]: [(&Section, &NormalCall); 2], rank: u32) -> Vec<Unlike> {
    let call = |(section, call): (&Section, &NormalCall)| {
        section.symbols.get(call.sym as usize).map(|s| (s.call, s.error))
    };
    let Some((function, _)) = call(a).filter(|f| call(b) == Some(*f)) else { return Vec::new() };
    let slots = CallTable::builtin().slots(function);
    let both = by_slot(slots, &a.1.words).zip(by_slot(slots, &b.1.words));
    let mut found = Vec::new();
    for (slot, (mine, theirs)) in slots.iter().zip(both) {
        let Meaning::Ref(object) = slot.meaning else { continue };
        for (x, y) in mine.iter().zip(theirs) {
            let (s, t) = (&a.0.tables, &b.0.tables);
            let labels = (s.label(object, *x, rank), t.label(object, *y, rank));
            if let (Some(label), Some(other)) = labels
                && label == other
                && s.word_of(object, *x, rank) != t.word_of(object, *y, rank)
            {
                let sizes = [(s, *x), (t, *y)].map(|(tables, index)| members(tables, object, index, rank));
                found.push(Unlike { label, how: how(sizes) });
            }
        }
    }
    found
}

fn how(sizes: [Option<u64>; 2]) -> String {
    match sizes {
        [Some(a), Some(b)] if a != b => {
            format!("of {} in the first trace and of {b} in the second", counted(a, "rank"))
        }
        [Some(_), Some(_)] => "of other ranks, or made otherwise, in the second trace".into(),
        _ => "made otherwise in the second trace".into(),
    }
}

/// Number of ranks that an object has, if it has any.
fn members(tables: &Tables, object: Object, index: i64, rank: u32) -> Option<u64> {
    let shared =
        |table: &[Entry<SharedObject>]| Tables::find(table, index, rank).map(|o| o.content.members.len());
    match object {
        Object::Comm => {
            let comm = &Tables::find(&tables.comms, index, rank)?.content;
            Some(comm.members.len() + comm.remote.len())
        }
        Object::Group => Tables::find(&tables.groups, index, rank).map(|g| g.content.members.len()),
        Object::Win => shared(&tables.wins),
        Object::File => shared(&tables.files),
        Object::Type | Object::Op | Object::Text => None,
    }
}
