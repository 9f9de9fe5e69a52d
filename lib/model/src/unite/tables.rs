//! Uniting the tables of sections: sites by identity, objects by family, symbols by what they stand for.

use crate::num::{self, Exact, narrow, saturate};
use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;

use crate::calls::{CallId, FIRST_UNKNOWN, Object};
use crate::objects::{Comm, Group, Name, Named, Op, SharedObject, Text, Type};
use crate::ranklist::RankList;
use crate::section::{Entry, Section, Sym, Symbol, Tables};
use crate::sites::SiteTable;

/// The united tables under construction.
#[derive(Clone, Debug, Default)]
pub struct United {
    sites: SiteTable,
    /// The table added last, and where its sites are: most sections of a stream share theirs.
    last: (SiteTable, Vec<u32>),
    symbols: Vec<Symbol>,
    by_symbol: HashMap<Symbol, Sym, FixedState>,
    comms: Table<Comm>,
    groups: Table<Group>,
    types: Table<Type>,
    ops: Table<Op>,
    wins: Table<SharedObject>,
    files: Table<SharedObject>,
    texts: Table<Text>,
    names: BTreeMap<String, CallId>,
}

/// Where a section's symbols and objects are in the united tables.
#[derive(Clone, Debug)]
pub struct Renaming {
    /// United symbol per symbol.
    pub symbols: Vec<Sym>,
    comms: Vec<i64>,
    groups: Vec<i64>,
    types: Vec<i64>,
    ops: Vec<i64>,
    wins: Vec<i64>,
    files: Vec<i64>,
    texts: Vec<i64>,
}

impl Renaming {
    /// The united index of an object; null and unknown indices stay.
    pub fn object(&self, kind: Object, index: i64) -> i64 {
        let map = self.map(kind);
        num::at(map, index).copied().unwrap_or(index)
    }
    /// Whether all objects of a kind keep their index.
    pub fn keeps(&self, kind: Object) -> bool {
        self.map(kind).iter().enumerate().all(|(i, &m)| usize::try_from(m) == Ok(i))
    }
    fn map(&self, kind: Object) -> &[i64] {
        match kind {
            Object::Comm => &self.comms,
            Object::Group => &self.groups,
            Object::Type => &self.types,
            Object::Op => &self.ops,
            Object::Win => &self.wins,
            Object::File => &self.files,
            Object::Text => &self.texts,
        }
    }
}

impl United {
    /// Adds a section's sites and symbols, and numbers its objects, which [`United::take`] adds: who reads the section's
    /// parameters asks its tables meanwhile.
    pub fn number(&mut self, section: &Section) -> Renaming {
        if !section.sites.shares(&self.last.0) {
            let sites = section.sites.sites().iter().map(|s| self.sites.adopt(&section.sites, s)).collect();
            self.sites.add_names(section.sites.names());
            self.last = (section.sites.clone(), sites);
        }
        let symbols = section.symbols.iter().map(|s| {
            let call = self.call(s.call, &section.tables);
            let site = self.last.1.get(s.site as usize).copied().unwrap_or(s.site);
            self.symbol(Symbol { call, site, error: s.error })
        });
        Renaming {
            symbols: symbols.collect(),
            comms: self.comms.number(&section.tables.comms),
            groups: self.groups.number(&section.tables.groups),
            types: self.types.number(&section.tables.types),
            ops: self.ops.number(&section.tables.ops),
            wins: self.wins.number(&section.tables.wins),
            files: self.files.number(&section.tables.files),
            texts: self.texts.number(&section.tables.texts),
        }
    }

    /// Adds the objects of a section's tables.
    pub fn take(&mut self, tables: Tables) {
        self.comms.take(tables.comms);
        self.groups.take(tables.groups);
        self.types.take(tables.types);
        self.ops.take(tables.ops);
        self.wins.take(tables.wins);
        self.files.take(tables.files);
        self.texts.take(tables.texts);
    }

    fn call(&mut self, call: CallId, tables: &Tables) -> CallId {
        let Some(name) = tables.names.get(&call) else { return call };
        let next = FIRST_UNKNOWN + saturate::<u16>(self.names.len()).min(0xFFF);
        *self.names.entry(name.clone()).or_insert(CallId(next))
    }

    fn symbol(&mut self, symbol: Symbol) -> Sym {
        *self.by_symbol.entry(symbol).or_insert_with(|| {
            self.symbols.push(symbol);
            narrow(self.symbols.len() - 1)
        })
    }

    /// The symbols, by index.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }
    /// The sites, as symbols refer to them.
    #[must_use]
    pub fn sites(&self) -> &SiteTable {
        &self.sites
    }

    /// The tables, with symbols in the given order and sites in the order of the symbols.
    pub fn finish(self, order: &[Sym]) -> (SiteTable, Vec<Symbol>, Tables) {
        let mut sites = SiteTable::new();
        let symbols = order.iter().filter_map(|&s| self.symbols.get(s as usize)).map(|s| {
            let site = self.sites.get(s.site).map_or(s.site, |site| sites.adopt(&self.sites, site));
            Symbol { site, ..*s }
        });
        let symbols = symbols.collect();
        sites.add_names(self.sites.names());
        let tables = Tables {
            comms: self.comms.finish(),
            groups: self.groups.finish(),
            types: self.types.finish(),
            ops: self.ops.finish(),
            wins: self.wins.finish(),
            files: self.files.finish(),
            texts: self.texts.finish(),
            names: self.names.into_iter().map(|(n, id)| (id, n)).collect(),
        };
        (sites, symbols, tables)
    }
}

#[derive(Clone, Debug)]
struct Table<T> {
    entries: Vec<Entry<T>>,
    by_family: HashMap<u128, usize, FixedState>,
    /// First place in an entry by name.
    places: HashMap<u64, u32, FixedState>,
    /// The other places of an intercommunicator, whose two sides see its groups exchanged.
    others: HashMap<u64, Vec<usize>, FixedState>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        let (by_family, places, others) = (HashMap::default(), HashMap::default(), HashMap::default());
        Self { entries: Vec::new(), by_family, places, others }
    }
}

impl<T: PartialEq> Table<T> {
    /// Where each entry is.
    fn number(&mut self, entries: &[Entry<T>]) -> Vec<i64> {
        entries.iter().map(|e| narrow(self.place(e.family))).collect()
    }

    fn place(&mut self, family: u128) -> usize {
        *self.by_family.entry(family).or_insert_with(|| {
            self.entries.push(Entry { family, of: Vec::new() });
            self.entries.len() - 1
        })
    }

    fn take(&mut self, entries: Vec<Entry<T>>) {
        for entry in entries {
            let i = self.place(entry.family);
            if self.entries[i].of.is_empty() {
                // Of a million ranks there are as many: they are not copied.
                for (at, (_, object)) in entry.of.iter().enumerate() {
                    self.note(key(i, object.name), at);
                }
                self.entries[i].of = entry.of;
                continue;
            }
            for (ranks, object) in entry.of {
                self.put(i, ranks, object);
            }
        }
    }

    fn put(&mut self, i: usize, ranks: RankList, object: Named<T>) {
        let of = &mut self.entries[i].of;
        let key = key(i, object.name);
        // Names are hashes, and so are keys: what else has this one is looked up among the others.
        let first = self.places.get(&key).map(|at| at.to_usize());
        let others = first.and_then(|_| self.others.get(&key)).into_iter().flatten().copied();
        let mut places = first.into_iter().chain(others);
        match places.find(|&at| of.get(at).is_some_and(|(_, o)| *o == object)) {
            Some(at) => of[at].0.extend(&ranks),
            None => {
                of.push((ranks, object));
                let at = of.len() - 1;
                self.note(key, at);
            }
        }
    }

    /// Where another object of a key is.
    fn note(&mut self, key: u64, at: usize) {
        let new = narrow(at);
        if *self.places.entry(key).or_insert(new) != new {
            self.others.entry(key).or_default().push(at);
        }
    }

    /// The entries, the objects of each by the lowest rank that has them.
    fn finish(mut self) -> Vec<Entry<T>> {
        self.entries.iter_mut().for_each(|e| e.of.sort_by_key(|(ranks, _)| ranks.lowest()));
        self.entries
    }
}

/// Where places of a name in an entry are looked up.
#[expect(clippy::cast_possible_truncation, reason = "the low half of a hash")]
fn key(entry: usize, name: Name) -> u64 {
    (entry as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ name as u64
}
