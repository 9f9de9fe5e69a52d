//! Messages that arrive before they can have been sent.

use anyhow::{Result, bail};
use st_tool::each_section;
use st_trace::columns::Column;
use st_trace::graph::{Barriers, Latency, Matcher, Survey, Tally, survey};

use crate::args::ViolationsArgs;
use crate::table::{Cell, Table};

/// Surveys a trace: what was found, and what could not be matched, in words.
pub(crate) fn find(args: &ViolationsArgs) -> Result<(Survey, Vec<String>)> {
    let mut matcher = Matcher::new(Barriers::default());
    let mut times: Vec<Vec<i64>> = Vec::new();
    let mut unit = 1;
    each_section(&args.inputs, &args.input, |_, section| {
        if section.histograms().next().is_some() {
            bail!("parameters are histograms (st-merge --histogram): messages cannot be matched");
        }
        matcher.add(&section)?;
        // In the order of the matcher's streams.
        for rank in section.ranks.iter() {
            for thread in section.threads.iter().filter(|t| t.ranks.contains(rank)) {
                let column = thread.columns.iter().find(|(r, _)| *r == rank).map(|(_, c)| c);
                unit = unit.max(column.map_or(1, Column::unit));
                times.push(column.into_iter().flat_map(Column::times).flat_map(|(a, b)| [a, b]).collect());
            }
        }
        Ok(())
    })?;
    if times.iter().all(Vec::is_empty) {
        bail!("the trace holds no exact times: record with --time columns");
    }
    if unit > 1 {
        bail!("times are rounded to {unit} ns: that makes violations, and hides some");
    }
    let graph = matcher.finish();
    let latency = Latency { near: args.lmin_intra, far: args.lmin_inter };
    let issues = graph.issues.counts().map(|(what, n)| format!("{n} {what}: left out"));
    Ok((
        survey(&graph, |s| times[s].iter().copied(), latency),
        issues.chain(graph.issues.examples.iter().map(ToString::to_string)).collect(),
    ))
}

/// Totals per kind of message.
pub(crate) fn totals(survey: &Survey) -> Table {
    let columns = vec![
        ("messages", true),
        ("all", false),
        ("reversed", false),
        ("violated", false),
        ("mean error", false),
        ("largest error", false),
    ];
    let row = |name: &str, t: &Tally, errors: bool| {
        let error = |ns: u128| if errors { Cell::ns(ns) } else { Cell::none() };
        let largest = u128::from(t.largest.unsigned_abs());
        let (all, reversed, violated) = (t.messages, t.reversed, t.violated);
        vec![
            Cell::text(name),
            Cell::count(all),
            Cell::count(reversed),
            Cell::count(violated),
            error(t.mean_error()),
            error(largest),
        ]
    };
    let rows = vec![
        row("point to point", &survey.messages, true),
        row("collective", &survey.collective, true),
        row("collective, each pair", &survey.pairs, false),
    ];
    Table { columns, rows }
}

/// Pairs of ranks with violated messages, most first.
pub(crate) fn pairs(survey: &Survey) -> Table {
    let columns = vec![
        ("from", false),
        ("to", false),
        ("reversed", false),
        ("violated", false),
        ("largest error", false),
    ];
    let mut pairs: Vec<_> = survey.ranks.iter().collect();
    pairs.sort_by_key(|(ranks, t)| (u64::MAX - t.violated, **ranks));
    let row = |((from, to), t): (&(u32, u32), &Tally)| {
        vec![
            Cell::count((*from).into()),
            Cell::count((*to).into()),
            Cell::count(t.reversed),
            Cell::count(t.violated),
            Cell::ns(u128::from(t.largest.unsigned_abs())),
        ]
    };
    Table { columns, rows: pairs.into_iter().map(row).collect() }
}
