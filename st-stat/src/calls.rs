//! Per function and per call site.

use std::collections::BTreeMap;

use st_trace::calls::CallId;
use st_trace::section::{Section, Sym, Symbol, Tables};
use st_trace::sites::CallSites;

use crate::profile::{Profile, SymTotals};
use crate::table::{Cell, Table};

/// MPI's name of a function, also of one outside the call table.
#[must_use]
pub(crate) fn function(call: CallId, tables: &Tables) -> String {
    tables.names.get(&call).cloned().unwrap_or_else(|| call.to_string())
}

/// Number of a symbol's call site among those of the whole trace.
pub(crate) fn site_of(section: &Section, symbol: &Symbol, sites: &CallSites) -> Option<u32> {
    sites.number(section.sites.get(symbol.site)?.id)
}

/// A function and where it is called from, in a sentence: `MPI_Send (site 3, exchange stencil.c:120)`.
pub(crate) fn called(section: &Section, symbol: &Symbol, sites: &CallSites) -> String {
    let name = function(symbol.call, &section.tables);
    match site_of(section, symbol, sites) {
        Some(site) => format!("{name} ({})", sites.describe(site)),
        None => name,
    }
}

/// Columns of a call site, and its cells: number and place.
pub(crate) const SITE: [(&str, bool); 2] = [("site", false), ("place", true)];

/// See [`SITE`].
pub(crate) fn site_cells(site: Option<u32>, sites: &CallSites) -> [Cell; 2] {
    match site {
        Some(site) => [Cell::count(site.into()), Cell::text(sites.place(site))],
        None => [Cell::none(), Cell::none()],
    }
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
pub(crate) fn sites(sections: &[(Section, Profile)], stacks: bool, sites: &CallSites) -> Table {
    let groups = grouped(sections, |s, _, symbol| {
        (site_of(s, symbol, sites), function(symbol.call, &s.tables), symbol.error)
    });
    let whole = groups.iter().map(|(_, t)| t.time).sum();
    let rows = groups.iter().map(|((site, name, error), t)| {
        let name = if *error == 0 { name.clone() } else { format!("{name} (error {error})") };
        let [number, mut place] = site_cells(*site, sites);
        if let Some(site) = site.filter(|_| stacks) {
            place = Cell::text(sites.stack(site).join(" < "));
        }
        [Cell::text(name)].into_iter().chain(numbers(t, whole)).chain([number, place]).collect()
    });
    let columns = [("function", true)].into_iter().chain(NUMBERS).chain(SITE).collect();
    Table { columns, rows: rows.collect() }
}
