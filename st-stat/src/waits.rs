//! Wait states: who waits for whom, where and for how long.

use std::io::Write;

use anyhow::{Result, bail};
use st_cli::{Output, Screen, Status};
use st_explain::{At, Explains, Sum, WaitKind, analyse};
use st_model::sites::CallSites;

use crate::args::{WaitsArgs, WaitsBy};
use crate::calls::{SITE, site_cells};
use crate::explain::{Explained, added, rank_cell, several_threads, tell_of_ranks};
use crate::input;
use crate::table::{Cell, Column, Format, Table};

/// Columns of a sum, and its cells.
const SUM: [Column; 4] = [
    Column::right("wait", "wait_ns", 0),
    Column::right("share", "share_percent", 1),
    Column::right("waits", "waits", 2),
    Column::right("longest", "longest_ns", 3),
];

fn sum_cells(sum: Sum, time: u64) -> [Cell; 4] {
    [
        Cell::ns(sum.ns.into()),
        Cell::percent(sum.ns.into(), time.into()),
        Cell::count(sum.count),
        Cell::ns(sum.longest.into()),
    ]
}

/// `st-stat waits`.
pub(crate) fn waits(args: &WaitsArgs) -> Result<Status> {
    let explained = Explained::read(&args.of, analyse)?;
    let told = explained.explained()?;
    if args.by == WaitsBy::Pair && explained.kept.is_some() {
        bail!(
            "which rank waits for which is not kept without exact times: st-merge --keep-columns (--by rank and --by culprit say who waits, and for whom)"
        );
    }
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    let tables = explained.sections.iter().filter(|_| matches!(args.by, WaitsBy::Site | WaitsBy::Culprit));
    let sites = args.symbols.call_sites((input::NAME, &args.of.talk), tables.map(|s| &s.sites));
    let table = waits_table(args.by, &explained, told, &sites);
    if table.rows.is_empty() && args.of.format == Format::Text {
        writeln!(out, "no wait states")?;
    } else {
        table.write(args.of.format, screen, &mut out)?;
    }
    out.commit()?;
    if let Some(said) = several_threads(&explained.sections) {
        args.of.talk.note(input::NAME, said);
    }
    if matches!(args.by, WaitsBy::Rank | WaitsBy::Culprit) {
        tell_of_ranks(&explained, &args.of.talk);
    }
    Ok(Status::Ok)
}

/// Wait states, added up.
pub(crate) fn waits_table(
    by: WaitsBy,
    explained: &Explained,
    told: &dyn Explains,
    sites: &CallSites,
) -> Table {
    let waits = told.waits();
    let mut rows: Vec<(Vec<Cell>, Sum, Vec<Cell>)> = Vec::new();
    let kind = Column::left("kind", "kind");
    let place = |number: u32| {
        let (function, site) = explained.place(number, sites);
        (Cell::text(function), site_cells(site, sites).to_vec())
    };
    let columns = match by {
        WaitsBy::Kind => {
            let of = |k: WaitKind| (vec![Cell::text(k.name())], waits.of(k), Vec::new());
            rows.extend(WaitKind::ALL.into_iter().map(of).filter(|(_, sum, _)| sum.count > 0));
            vec![kind]
        }
        WaitsBy::Site => {
            let victims = waits.victims.iter().map(|((k, at), sum)| ((*k, at.place), *sum));
            for ((k, number), sum) in added(victims) {
                let (function, site) = place(number);
                rows.push((vec![Cell::text(k.name()), function], sum, site));
            }
            vec![kind, Column::left("function", "function")]
        }
        WaitsBy::Rank => {
            let victims = waits.victims.iter().map(|((_, at), sum)| (at.rank, *sum));
            rows.extend(added(victims).into_iter().map(|(rank, sum)| (vec![rank_cell(rank)], sum, vec![])));
            vec![Column::right("rank", "rank", 0)]
        }
        WaitsBy::Pair => {
            let of = |((a, b), sum): (&(u32, u32), &Sum)| (vec![rank_cell(*a), rank_cell(*b)], *sum, vec![]);
            rows.extend(waits.pairs.iter().map(of));
            vec![Column::right("rank", "rank", 0), Column::right("waits for", "for_rank", 0)]
        }
        WaitsBy::Culprit => {
            let culprits = waits.culprits.iter().map(|((k, _, at), sum)| ((*k, *at), *sum));
            for ((k, At { rank, place: number }), sum) in added(culprits) {
                let (function, site) = place(number);
                rows.push((vec![Cell::text(k.name()), rank_cell(rank), function], sum, site));
            }
            vec![kind, Column::right("for rank", "for_rank", 0), Column::left("function", "function")]
        }
    };
    // Equal ones in the order of what they are.
    rows.sort_by_cached_key(|(cells, sum, _)| {
        let what: Vec<_> = cells.iter().map(|c| (c.value.as_u64(), c.text.clone())).collect();
        (u64::MAX - sum.ns, what)
    });
    let site = matches!(by, WaitsBy::Site | WaitsBy::Culprit).then_some(SITE).into_iter().flatten();
    let columns = columns.into_iter().chain(SUM).chain(site).collect();
    let time = told.time();
    let cells = |(first, sum, last): (Vec<Cell>, Sum, Vec<Cell>)| {
        first.into_iter().chain(sum_cells(sum, time)).chain(last).collect()
    };
    Table { columns, rows: rows.into_iter().map(cells).collect(), total: None }
}
