//! Per function and per call site.

use std::collections::BTreeMap;

use st_symbols::Resolver;
use st_trace::calls::CallId;
use st_trace::section::{Section, Sym, Symbol, Tables};
use st_trace::sites::{Site, SiteTable};

use crate::profile::{Profile, SymTotals};
use crate::table::{Cell, Table};

/// MPI's name of a function, also of one outside the call table.
#[must_use]
pub(crate) fn function(call: CallId, tables: &Tables) -> String {
    tables.names.get(&call).cloned().unwrap_or_else(|| call.to_string())
}

/// Where a call site is, for people: `function file:line` of the innermost frame of the program itself.
pub(crate) fn place(site: &Site, table: &SiteTable, resolver: &mut Resolver) -> String {
    if !site.label.is_empty() {
        return site.label.clone();
    }
    resolver.describe(&frames(site, table))
}

/// Frames as the resolver takes them.
fn frames<'a>(site: &Site, table: &'a SiteTable) -> Vec<st_symbols::Frame<'a>> {
    let of = |f: &st_trace::sites::Frame| {
        let m = table.modules().get(f.module as usize)?;
        Some(st_symbols::Frame { module: &m.path, build_id: &m.build_id, offset: f.offset })
    };
    site.frames.iter().filter_map(of).collect()
}

/// Totals of groups of symbols over all sections, longest total time first, then most calls.
fn grouped<K: Ord>(
    sections: &[(Section, Profile)],
    key: impl Fn(&Section, Sym, &Symbol) -> K,
) -> Vec<(K, SymTotals)> {
    let mut groups: BTreeMap<K, SymTotals> = BTreeMap::new();
    for (section, profile) in sections {
        for (s, (symbol, totals)) in (0..).zip(section.symbols.iter().zip(&profile.symbols)) {
            if totals.calls > 0 {
                groups.entry(key(section, s, symbol)).or_default().add(totals);
            }
        }
    }
    let mut list: Vec<_> = groups.into_iter().collect();
    list.sort_by_key(|(_, t)| (std::cmp::Reverse(t.time), std::cmp::Reverse(t.calls)));
    list
}

fn numbers(t: &SymTotals, whole: u128) -> [Cell; 7] {
    let timed = t.timed > 0;
    let time = |c: Cell| if timed { c } else { Cell::none() };
    [
        Cell::count(t.calls),
        time(Cell::ns(t.time)),
        time(Cell::percent(t.time, whole)),
        time(Cell::ns(t.time / u128::from(t.calls.max(1)))),
        time(Cell::ns(u128::from(t.max.0))),
        time(Cell::count(u64::from(t.max.1))),
        Cell::bytes(t.bytes),
    ]
}

const NUMBERS: [(&str, bool); 7] = [
    ("calls", false),
    ("total", false),
    ("share", false),
    ("mean", false),
    ("max", false),
    ("rank", false),
    ("bytes", false),
];

/// One row per function.
pub(crate) fn functions(sections: &[(Section, Profile)]) -> Table {
    let groups = grouped(sections, |s, _, symbol| (function(symbol.call, &s.tables), symbol.error));
    let whole = groups.iter().map(|(_, t)| t.time).sum();
    let rows = groups.iter().map(|((name, error), t)| {
        let name = if *error == 0 { name.clone() } else { format!("{name} (error {error})") };
        [Cell::text(name)].into_iter().chain(numbers(t, whole)).collect()
    });
    Table { columns: [("function", true)].into_iter().chain(NUMBERS).collect(), rows: rows.collect() }
}

/// One row per function and call site; with `stacks` the whole stack.
pub(crate) fn sites(sections: &[(Section, Profile)], stacks: bool) -> Table {
    let mut resolver = Resolver::new();
    let mut named: BTreeMap<u128, String> = BTreeMap::new();
    for (section, _) in sections {
        for site in section.sites.sites() {
            named.entry(site.id).or_insert_with(|| {
                if stacks && site.label.is_empty() {
                    resolver.stack(&frames(site, &section.sites)).join(" < ")
                } else {
                    place(site, &section.sites, &mut resolver)
                }
            });
        }
    }
    let groups = grouped(sections, |s, _, symbol| {
        (s.sites.get(symbol.site).map_or(0, |x| x.id), function(symbol.call, &s.tables), symbol.error)
    });
    let whole = groups.iter().map(|(_, t)| t.time).sum();
    let rows = groups.iter().map(|((site, name, error), t)| {
        let name = if *error == 0 { name.clone() } else { format!("{name} (error {error})") };
        let place = named.get(site).cloned().unwrap_or_default();
        [Cell::text(name)].into_iter().chain(numbers(t, whole)).chain([Cell::text(place)]).collect()
    });
    let columns = [("function", true)].into_iter().chain(NUMBERS).chain([("site", true)]).collect();
    Table { columns, rows: rows.collect() }
}
