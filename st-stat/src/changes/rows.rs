//! Changes as a table.

use st_model::num::Exact as _;
use st_model::sites::CallSites;

use super::{Change, Changes, ns_cell};
use crate::calls::{SITE, site_cells};
use crate::table::{Cell, Column, Table};

impl Changes {
    /// A row each. For people what tells most, and only what is found unless `all`; else all of it.
    pub(crate) fn table(&self, sites: [&CallSites; 2], text: bool, all: bool) -> Table {
        let scaled = self.ranks[0] != self.ranks[1];
        let columns = columns();
        let together = self.rows.iter().any(|r| r.together > 1);
        let wanted = |shown: Shown| match shown {
            Shown::Always => true,
            Shown::Alike => !text || !scaled,
            Shown::Scaling => !text || scaled,
            Shown::Together => !text || together,
            Shown::Never => !text,
        };
        let kept: Vec<bool> = columns.iter().map(|(_, shown)| wanted(*shown)).collect();
        let rows = self.rows.iter().filter(|r| !text || all || r.is_told());
        let row = |r: &Change| {
            let cells = self.cells(r, sites).into_iter().zip(&kept);
            cells.filter(|(_, kept)| **kept).map(|(cell, _)| cell).collect()
        };
        let columns = columns.into_iter().zip(&kept).filter(|(_, kept)| **kept).map(|((c, _), _)| c);
        Table { columns: columns.collect(), rows: rows.map(row).collect(), total: None }
    }

    fn cells(&self, r: &Change, sites: [&CallSites; 2]) -> Vec<Cell> {
        let [first, second] = r.times;
        let judged = r.judged;
        let of = |part: f64, whole: f64| (whole > 0.0).then(|| 100.0 * part / whole);
        let speedup = first.zip(second).and_then(|(a, b)| (b > 0.0).then(|| a / b));
        let efficiency = first.and(second).and_then(|b| of(r.expected, b));
        let place = match r.sites {
            [Some(site), _] => site_cells(Some(site), sites[0]),
            [None, site] => site_cells(site, sites[1]),
        };
        let events = |n: Option<u64>| n.map_or_else(Cell::none, Cell::count);
        let mut cells = vec![
            Cell::text(r.verdict.name()),
            Cell::text(if r.in_call { "in call" } else { "before" }),
            Cell::text(r.function.clone()),
            events(r.events[0]),
            events(r.events[1]),
            ns_cell(first),
            ns_cell(second),
            Cell::number(of(r.change(), r.expected), 1, " %").signed(),
            Cell::number(judged.and_then(|j| of(j.uncertainty, r.expected)), 1, " %"),
            Cell::number(of(r.change(), self.run[1]), 1, " %").signed(),
            Cell::number(judged.map(|j| j.probability), 6, ""),
            Cell::number(speedup, 2, ""),
            Cell::number(efficiency, 1, " %"),
            Cell::count(r.together.to_u64()),
        ];
        cells.extend(place);
        cells
    }
}

/// Where a column is shown to people; programs get all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Always,
    /// Where runs have as many ranks.
    Alike,
    /// Where they do not.
    Scaling,
    /// Where several call sites are taken for one.
    Together,
    Never,
}

fn columns() -> Vec<(Column, Shown)> {
    use Shown::{Alike, Always, Never, Scaling, Together};
    let mut all = vec![
        (Column::left("verdict", "verdict"), Always),
        (Column::left("time", "phase"), Always),
        (Column::left("function", "function"), Always),
        (Column::right("first calls", "first_calls", 0), Never),
        (Column::right("second calls", "second_calls", 0), Never),
        (Column::right("first", "first_ns", 0).spare(), Always),
        (Column::right("second", "second_ns", 0).spare(), Always),
        (Column::right("change", "change_percent", 0), Alike),
        (Column::right("±", "uncertainty_percent", 2), Alike),
        (Column::right("of run", "run_percent", 1), Always),
        (Column::right("chance", "probability", 0), Never),
        (Column::right("speedup", "speedup", 0), Scaling),
        (Column::right("efficiency", "efficiency_percent", 2), Scaling),
        (Column::right("sites", "sites", 0), Together),
    ];
    all.extend(SITE.map(|c| (c, Always)));
    all
}
