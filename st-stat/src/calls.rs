//! Per function and per call site.

use std::collections::BTreeMap;

use st_cli::UsageError;
use st_model::calls::{CallId, CallTable, Kind};
use st_model::section::{Section, Sym, Symbol, Tables};
use st_model::sites::CallSites;
use st_model::values::error_class;

use crate::profile::{Profile, SymTotals};
use crate::table::{Cell, Column, Table};

/// MPI's name of a function, also of one outside the call table.
#[must_use]
pub(crate) fn function(call: CallId, tables: &Tables) -> String {
    tables.names.get(&call).cloned().unwrap_or_else(|| call.to_string())
}

/// The name that a word is like, as clap finds options.
pub(crate) fn like(word: &str, names: impl IntoIterator<Item = String>) -> Option<String> {
    // All functions are alike in that.
    let bare = |name: &str| name.strip_prefix("MPI_").unwrap_or(name).to_owned();
    let alike = |name: &String| strsim::jaro(&bare(word), &bare(name));
    names.into_iter().max_by(|a, b| alike(a).total_cmp(&alike(b))).filter(|name| alike(name) > 0.7)
}

/// Says that a trace has no call site or function of a text, and which function that is like.
pub(crate) fn unknown<'a>(text: &str, sections: impl IntoIterator<Item = &'a Section>) -> UsageError {
    let of = |section: &'a Section| section.symbols.iter().map(|s| function(s.call, &section.tables));
    let meant = like(text, sections.into_iter().flat_map(of));
    let meant = meant.map_or_else(String::new, |name| format!("; {name} is one"));
    UsageError(format!(
        "{text}: the trace has no such call site or function (st-stat calls lists them{meant})"
    ))
}

/// Number of a symbol's call site among those of the whole trace.
pub(crate) fn site_of(section: &Section, symbol: &Symbol, sites: &CallSites) -> Option<u32> {
    sites.number(section.sites.get(symbol.site)?.id)
}

/// A function and where it is called from, in a sentence: `MPI_Send (site 3, exchange stencil.c:120)`.
pub(crate) fn called(section: &Section, symbol: &Symbol, sites: &CallSites) -> String {
    at(&function(symbol.call, &section.tables), site_of(section, symbol, sites), sites)
}

/// The same of a function and the number of a call site.
pub(crate) fn at(function: &str, site: Option<u32>, sites: &CallSites) -> String {
    match site {
        Some(site) => format!("{function} ({})", sites.describe(site)),
        None => function.to_owned(),
    }
}

/// Columns of a call site, and its cells: number and place.
pub(crate) const SITE: [Column; 2] = [Column::right("site", "site", 0), Column::tail("place", "place")];

/// See [`SITE`].
pub(crate) fn site_cells(site: Option<u32>, sites: &CallSites) -> [Cell; 2] {
    match site {
        Some(site) => {
            let brief = sites.apart(site).map(|place| format!("{place} …"));
            [Cell::count(site.into()), Cell { brief, ..Cell::text(sites.place(site)) }]
        }
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

/// Numbers of a group; `whole` is the time of all groups between `MPI_Init` and `MPI_Finalize`, which have no share.
fn numbers(t: &SymTotals, call: CallId, whole: u128) -> [Cell; 9] {
    let timed = t.timed > 0;
    let time = |c: Cell| if timed { c } else { Cell::none() };
    [
        Cell::count(t.calls),
        time(Cell::ns(t.time)),
        time(if is_start_up(call) { Cell::none() } else { Cell::percent(t.time, whole) }),
        Cell::bytes(t.bytes[0]),
        Cell::bytes(t.bytes[1]),
        time(Cell::ns(t.time / u128::from(t.calls.max(1)))),
        t.max.map_or_else(Cell::none, |(ns, _)| Cell::ns(ns.into())),
        t.max.map_or_else(Cell::none, |(_, rank)| Cell::count(rank.into())),
        time(Cell::ns(t.before)),
    ]
}

const NUMBERS: [Column; 9] = [
    Column::right("calls", "calls", 0),
    Column::right("time", "time_ns", 0),
    Column::right("share", "share_percent", 1),
    Column::right("sent", "sent_bytes", 2),
    Column::right("received", "received_bytes", 3),
    Column::right("mean", "mean_ns", 4),
    Column::right("longest", "longest_ns", 5),
    Column::right("on rank", "longest_rank", 6),
    Column::right("before", "before_ns", 7),
];

/// Whether a function begins or ends MPI: its time is that of the launcher and of the slowest to come, not of the program.
pub(crate) fn is_start_up(call: CallId) -> bool {
    let row = CallTable::builtin().get(call);
    row.is_some_and(|row| matches!(row.kind, Kind::Init | Kind::Finalize))
}

/// One row per function.
pub(crate) fn functions(sections: &[(Section, Profile)]) -> Table {
    let groups =
        grouped(sections, |s, _, symbol| (function(symbol.call, &s.tables), symbol.error, symbol.call));
    let whole = whole(&groups, |(_, _, call)| *call);
    let rows = groups.iter().map(|((name, error, call), t)| {
        [Cell::text(named(name, *error))].into_iter().chain(numbers(t, *call, whole)).collect()
    });
    let columns = [Column::left("function", "function")].into_iter().chain(NUMBERS).collect();
    Table { columns, rows: rows.collect(), total: None }
}

/// A function, with its error class if its calls failed.
pub(crate) fn named(function: &str, error: u32) -> String {
    match (error, error_class(error)) {
        (0, _) => function.to_owned(),
        (_, Some(class)) => format!("{function} ({class})"),
        (_, None) => format!("{function} (error {error})"),
    }
}

/// Time of all groups but those that begin or end MPI.
fn whole<K>(groups: &[(K, SymTotals)], call: impl Fn(&K) -> CallId) -> u128 {
    groups.iter().filter(|(key, _)| !is_start_up(call(key))).map(|(_, t)| t.time).sum()
}

/// One row per function and call site; with `stacks` the whole stack.
pub(crate) fn sites(sections: &[(Section, Profile)], stacks: bool, sites: &CallSites) -> Table {
    let groups = grouped(sections, |s, _, symbol| {
        (site_of(s, symbol, sites), function(symbol.call, &s.tables), symbol.error, symbol.call)
    });
    let whole = whole(&groups, |(.., call)| *call);
    let rows = groups.iter().map(|((site, name, error, call), t)| {
        let [number, mut place] = site_cells(*site, sites);
        if let Some(site) = site.filter(|_| stacks) {
            place = Cell::text(sites.stack(site).join(" < "));
        }
        let name = [Cell::text(named(name, *error))].into_iter();
        name.chain(numbers(t, *call, whole)).chain([number, place]).collect()
    });
    // A stack begins with the innermost frame, which says most.
    let [number, place] = SITE;
    let place = if stacks { Column::head(place.title, place.key) } else { place };
    let columns =
        [Column::left("function", "function")].into_iter().chain(NUMBERS).chain([number, place]).collect();
    Table { columns, rows: rows.collect(), total: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_failed_has_its_error_class_named() {
        let names = [0, 42, 999].map(|error| named("MPI_File_open", error));
        assert_eq!(
            names,
            ["MPI_File_open", "MPI_File_open (MPI_ERR_NO_SUCH_FILE)", "MPI_File_open (error 999)"]
        );
    }
}
