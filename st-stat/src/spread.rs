//! How long the calls of each site take, and the computation before them, from the shortest to the longest.

use std::collections::BTreeMap;

use st_model::num::Exact as _;
use st_model::sites::CallSites;
use st_model::sketch::{Shape, Sketch};

use crate::calls::{SITE, site_cells};
use crate::explain::rank_cell;
use crate::hist::{Call, Found, PHASES};
use crate::table::{Cell, Column, Table};

/// Quantiles that are told, in thousandths, and the names of their columns.
const QUANTILES: [(u64, &str, &str); 5] = [
    (10, "1 %", "percent_1_ns"),
    (100, "10 %", "percent_10_ns"),
    (500, "median", "median_ns"),
    (900, "90 %", "percent_90_ns"),
    (990, "99 %", "percent_99_ns"),
];

/// What scaling adds to some of the totals that are kept as equal, ns.
const ALIKE: u128 = 1;

/// One row per call site and phase in which there is any time, those that take most in all first.
pub(crate) fn table(all: &BTreeMap<Call, Found>, sites: &CallSites) -> Table {
    let right = |title, key, goes| Column::right(title, key, goes);
    let mut columns = vec![Column::left("function", "function"), Column::left("time", "phase")];
    columns.extend([right("calls", "calls", 2), right("in all", "time_ns", 0), right("mean", "mean_ns", 1)]);
    columns.push(right("shortest", "shortest_ns", 3));
    columns.extend(QUANTILES.map(|(q, title, key)| right(title, key, if q == 500 { 0 } else { 4 })));
    columns.extend([right("longest", "longest_ns", 0), right("rank", "longest_rank", 0)].map(Column::spare));
    columns.extend([right("most of a rank", "most_ns", 5), right("which", "most_rank", 5)]);
    columns.extend([right("least of a rank", "least_ns", 6), right("which", "least_rank", 6)]);
    columns.extend(SITE);
    let mut rows = Vec::new();
    for ((name, site), found) in all {
        let durations = found.durations();
        for (phase, sketch) in durations.iter().enumerate().filter(|(_, s)| s.max.0 > 0) {
            let mut row = vec![Cell::text(name.clone()), Cell::text(PHASES[phase])];
            row.extend(times(sketch, found.means[phase]));
            row.extend(extremes(found, phase));
            row.extend(site_cells(*site, sites));
            rows.push((std::cmp::Reverse(sketch.sum), row));
        }
    }
    rows.sort_by_key(|(sum, _)| *sum);
    Table { columns, rows: rows.into_iter().map(|(_, row)| row).collect(), total: None }
}

/// Of one phase of a call site. `mean`: of some only number and sum are known.
fn times(sketch: &Sketch, mean: bool) -> Vec<Cell> {
    let spread = sketch.shape() != Shape::Totals && !mean;
    let known = |cell: Cell, is: bool| if is { cell } else { Cell::none() };
    let ns = |n: u64| Cell::ns(n.into());
    let mut cells = vec![Cell::count(sketch.count), Cell::ns(sketch.sum), ns(sketch.mean())];
    cells.push(known(ns(sketch.min.0), !mean));
    cells.extend(QUANTILES.map(|(q, ..)| known(ns(sketch.quantile(q)), spread)));
    cells.extend([known(ns(sketch.max.0), !mean), known(rank_cell(sketch.max.1), !mean)]);
    cells
}

/// The ranks that take most and least in all their calls, if there are several.
fn extremes(found: &Found, phase: usize) -> Vec<Cell> {
    let each = || found.ranks.iter().map(|(rank, sums)| (sums[phase], *rank));
    let several = found.ranks.len().to_u64() > 1;
    let ends = [each().max_by_key(|(ns, _)| *ns), each().min_by_key(|(ns, _)| *ns)];
    // Of ranks that are kept as equal none takes most.
    let alike = |ns: u128| each().filter(|(other, _)| other.abs_diff(ns) <= ALIKE).count();
    let ends = ends.map(|end| end.filter(|(ns, _)| alike(*ns) == 1));
    let cells = |end: Option<(u128, u32)>| match end.filter(|_| several) {
        Some((ns, rank)) => [Cell::ns(ns), rank_cell(rank)],
        None => [Cell::none(), Cell::none()],
    };
    ends.into_iter().flat_map(cells).collect()
}
