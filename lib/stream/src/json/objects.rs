//! What calls name and where ranks are, as lines before the calls.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use st_model::calls::Object;
use st_model::columns::Comparison;
use st_model::objects::{Comm, Group, Name, Named, Op, SharedObject, Type};
use st_model::ranklist::RankList;
use st_model::section::{Entry, Section};

use super::tables::{self, Described};

/// Objects of one kind by name, with the ranks that have them: of an intercommunicator each group has its own.
type Known<T> = BTreeMap<Name, Vec<(Named<T>, RankList)>>;

/// The objects of a trace, each once, and nodes and clocks of its ranks.
#[derive(Debug, Default)]
pub struct Objects {
    comms: Known<Comm>,
    groups: Known<Group>,
    types: Known<Type>,
    ops: Known<Op>,
    wins: Known<SharedObject>,
    files: Known<SharedObject>,
    hosts: BTreeMap<String, RankList>,
    clocks: BTreeMap<u32, Comparison>,
}

impl Objects {
    /// Adds what a section names.
    pub fn add(&mut self, section: &Section) {
        let tables = &section.tables;
        add(&mut self.comms, &tables.comms);
        add(&mut self.groups, &tables.groups);
        add(&mut self.types, &tables.types);
        add(&mut self.ops, &tables.ops);
        add(&mut self.wins, &tables.wins);
        add(&mut self.files, &tables.files);
        for (host, ranks) in &section.hosts {
            self.hosts.entry(host.clone()).or_default().extend(ranks);
        }
        for (rank, column) in section.threads.iter().flat_map(|thread| &thread.columns) {
            if !column.clock.is_empty() {
                self.clocks.insert(*rank, column.clock.clone());
            }
        }
    }

    /// A line for each; times count from a zero.
    pub fn lines(&self, zero: i64) -> impl Iterator<Item = Map<String, Value>> {
        let hosts = self.hosts.iter().map(|(host, ranks)| tables::host(host, ranks));
        let clocks = self.clocks.iter().map(move |(rank, clock)| tables::clock(*rank, clock, zero));
        let first = lines(Object::Comm, &self.comms).chain(lines(Object::Group, &self.groups));
        let second = lines(Object::Type, &self.types).chain(lines(Object::Op, &self.ops));
        let third = lines(Object::Win, &self.wins).chain(lines(Object::File, &self.files));
        hosts.chain(clocks).chain(first).chain(second).chain(third)
    }
}

fn add<T: Clone + PartialEq>(to: &mut Known<T>, from: &[Entry<T>]) {
    for (ranks, object) in from.iter().flat_map(|entry| &entry.of) {
        let known = to.entry(object.name).or_default();
        match known.iter_mut().find(|(other, _)| other == object) {
            Some((_, of)) => of.extend(ranks),
            None => known.push((object.clone(), ranks.clone())),
        }
    }
}

fn lines<T: Described>(object: Object, of: &Known<T>) -> impl Iterator<Item = Map<String, Value>> {
    let key = tables::key(object).unwrap_or_default();
    of.values().flatten().map(move |(named, ranks)| tables::object(key, named, ranks))
}
