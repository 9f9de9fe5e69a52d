//! Uniting the tables of sections: sites by identity, objects by family, symbols by what they stand for.

use std::collections::{BTreeMap, HashMap};

use st_trace::calls::{CallId, FIRST_UNKNOWN, Object};
use st_trace::objects::{Comm, Group, Joint, Name, Op, Text, Type};
use st_trace::section::{Entry, Section, Sym, Symbol, Tables};
use st_trace::sites::SiteTable;

/// The united tables under construction.
#[derive(Debug, Default)]
pub(crate) struct United {
    sites: SiteTable,
    symbols: Vec<Symbol>,
    by_symbol: HashMap<Symbol, Sym>,
    comms: Table<Comm>,
    groups: Table<Group>,
    types: Table<Type>,
    ops: Table<Op>,
    wins: Table<Joint>,
    files: Table<Joint>,
    texts: Table<Text>,
    names: BTreeMap<String, CallId>,
}

/// Where a section's symbols and objects are in the united tables.
#[derive(Debug)]
pub(crate) struct Renaming {
    /// United symbol per symbol.
    pub(crate) symbols: Vec<Sym>,
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
    pub(crate) fn object(&self, kind: Object, index: i64) -> i64 {
        let map = self.map(kind);
        usize::try_from(index).ok().and_then(|i| map.get(i)).copied().unwrap_or(index)
    }
    /// Whether all objects of a kind keep their index.
    pub(crate) fn keeps(&self, kind: Object) -> bool {
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
    /// Adds a section's tables.
    pub(crate) fn add(&mut self, section: &Section) -> Renaming {
        let sites: Vec<u32> =
            section.sites.sites().iter().map(|s| self.sites.adopt(&section.sites, s)).collect();
        let symbols = section.symbols.iter().map(|s| {
            let call = self.call(s.call, &section.tables);
            let site = sites.get(s.site as usize).copied().unwrap_or(s.site);
            self.symbol(Symbol { call, site, error: s.error })
        });
        Renaming {
            symbols: symbols.collect(),
            comms: self.comms.add(&section.tables.comms),
            groups: self.groups.add(&section.tables.groups),
            types: self.types.add(&section.tables.types),
            ops: self.ops.add(&section.tables.ops),
            wins: self.wins.add(&section.tables.wins),
            files: self.files.add(&section.tables.files),
            texts: self.texts.add(&section.tables.texts),
        }
    }

    fn call(&mut self, call: CallId, tables: &Tables) -> CallId {
        let Some(name) = tables.names.get(&call) else { return call };
        let next = FIRST_UNKNOWN + u16::try_from(self.names.len()).unwrap_or(0xFFF).min(0xFFF);
        *self.names.entry(name.clone()).or_insert(CallId(next))
    }

    fn symbol(&mut self, symbol: Symbol) -> Sym {
        *self.by_symbol.entry(symbol).or_insert_with(|| {
            self.symbols.push(symbol);
            Sym::try_from(self.symbols.len() - 1).unwrap_or(Sym::MAX - 1)
        })
    }

    /// The symbols, by index.
    pub(crate) fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The tables, with symbols in the given order and sites in the order of the symbols.
    pub(crate) fn finish(self, order: &[Sym]) -> (SiteTable, Vec<Symbol>, Tables) {
        let mut sites = SiteTable::new();
        let symbols = order.iter().filter_map(|&s| self.symbols.get(s as usize)).map(|s| {
            let site = self.sites.get(s.site).map_or(s.site, |site| sites.adopt(&self.sites, site));
            Symbol { site, ..*s }
        });
        let symbols = symbols.collect();
        let tables = Tables {
            comms: self.comms.entries,
            groups: self.groups.entries,
            types: self.types.entries,
            ops: self.ops.entries,
            wins: self.wins.entries,
            files: self.files.entries,
            texts: self.texts.entries,
            names: self.names.into_iter().map(|(n, id)| (id, n)).collect(),
        };
        (sites, symbols, tables)
    }
}

#[derive(Debug)]
struct Table<T> {
    entries: Vec<Entry<T>>,
    by_family: HashMap<u128, usize>,
    /// Places in an entry by name: more than one for an intercommunicator, whose two sides see its groups exchanged.
    choices: HashMap<(usize, Name), Vec<usize>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), by_family: HashMap::new(), choices: HashMap::new() }
    }
}

impl<T: Clone + PartialEq> Table<T> {
    fn add(&mut self, entries: &[Entry<T>]) -> Vec<i64> {
        let united = entries.iter().map(|e| {
            let i = *self.by_family.entry(e.family).or_insert_with(|| {
                self.entries.push(Entry { family: e.family, of: Vec::new() });
                self.entries.len() - 1
            });
            for (ranks, object) in &e.of {
                let of = &mut self.entries[i].of;
                let places = self.choices.entry((i, object.name)).or_default();
                match places.iter().find(|&&at| of[at].1 == *object) {
                    Some(&at) => of[at].0.extend(ranks),
                    None => {
                        places.push(of.len());
                        of.push((ranks.clone(), object.clone()));
                    }
                }
            }
            i64::try_from(i).unwrap_or(i64::MAX)
        });
        united.collect()
    }
}
