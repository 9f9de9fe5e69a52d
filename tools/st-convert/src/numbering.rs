//! Numbers of communicators, windows and files that tables of a trace have in common, whatever part of it they are of.

use std::collections::BTreeMap;
use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::num::narrow;
use st_model::objects::{Content, Name, Named};
use st_model::section::{Entry, Section};

/// The number of each, by its name: the same however ranks are distributed over sections.
#[derive(Debug, Default)]
pub(crate) struct Numbering(HashMap<Name, u32, FixedState>);

/// What comes first: the world, other communicators, windows, files, and then what each rank has of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    World,
    Comm,
    Win,
    File,
    Own,
}

impl Numbering {
    /// Numbers all that the ranks of these sections know. *Cost:* O(n log n) in what they know.
    pub(crate) fn of(sections: &[Section]) -> Self {
        let mut all: BTreeMap<(Class, String, Option<i64>, Name), ()> = BTreeMap::new();
        for section in sections {
            let tables = &section.tables;
            for comm in objects(&tables.comms) {
                let label = comm.label();
                let class = match comm.content.kind.as_str() {
                    "MPI_COMM_WORLD" => Class::World,
                    "MPI_COMM_SELF" => Class::Own,
                    _ => Class::Comm,
                };
                all.insert((class, label, comm.content.members.get(0), comm.name), ());
            }
            for (class, table) in [(Class::Win, &tables.wins), (Class::File, &tables.files)] {
                for object in objects(table) {
                    all.insert((class, object.label(), object.content.members.get(0), object.name), ());
                }
            }
        }
        Self(all.into_keys().zip(0usize..).map(|((.., name), n)| (name, narrow(n))).collect())
    }

    /// Number of one; `None` of one that no rank knows.
    pub(crate) fn number(&self, name: Name) -> Option<u32> {
        self.0.get(&name).copied()
    }
}

fn objects<T: Content>(table: &[Entry<T>]) -> impl Iterator<Item = &Named<T>> {
    table.iter().flat_map(|entry| &entry.of).map(|(_, object)| object)
}
