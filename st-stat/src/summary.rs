//! The summary: what the program did, at a glance.

use std::io::{self, Write};

use st_trace::calls::Lane;
use st_trace::header::Header;
use st_trace::section::{Elastic, Section};
use st_trace::sites::CallSites;
use st_trace::sketch::{Shape, representative};
use st_trace::tree::{FlatTree, Item};

use crate::calls::function;
use crate::ended;
use crate::profile::Profile;
use crate::table::{Cell, Table, bytes, duration, grouped};

/// Facts of a trace: name, value, in order.
pub(crate) fn facts(
    header: &Header,
    complete: bool,
    size: Option<u64>,
    sections: &[(Section, Profile)],
    sites: &CallSites,
) -> Table {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut fact = |name: &str, value: Cell| rows.push(vec![Cell::text(name), value]);
    let calls: u64 = sections.iter().map(|(_, p)| p.calls()).sum();
    let ranks: u64 = sections.iter().map(|(s, _)| s.ranks.len()).sum();

    let command: Vec<&str> =
        std::iter::once(&header.program).chain(&header.args).map(String::as_str).collect();
    fact("program", Cell::text(command.join(" ")));
    fact("mpi", Cell::text(format!("{} {}", header.mpi.flavour, header.mpi.version).trim().to_owned()));
    fact("ranks", ranks_cell(ranks, header.world));
    fact("hosts", hosts(sections));
    if !complete {
        fact("complete", Cell::text("no: the stream is truncated; this is what is whole"));
    }
    fact("calls", Cell::count(calls));
    for place in ended::places(sections, sites) {
        fact("ended early", Cell::text(place));
    }
    let times = Times::of(sections);
    if times.timed {
        fact(
            "time per rank",
            Cell::text(format!(
                "{} (mean), {} (longest: rank {})",
                duration(times.mean()),
                duration(times.longest.0),
                times.longest.1
            )),
        );
        fact(
            "in MPI",
            Cell::text(format!("{} of it", Cell::percent(times.comm, times.comm + times.compute).text)),
        );
    }
    let sent: u128 = sections.iter().map(|(_, p)| p.sent).sum();
    fact("sent point to point", Cell::bytes(sent));
    let degrees: Vec<u64> =
        sections.iter().flat_map(|(_, p)| &p.ranks).map(|r| r.neighbours.len() as u64).collect();
    fact("send partners", spread(&degrees));
    fact("structure", Cell::text(structure(sections)));
    let failed: u64 = failed_calls(sections);
    if failed > 0 {
        fact("failed calls", Cell::count(failed));
    }
    let opaque: Vec<String> = opaque_calls(sections);
    if !opaque.is_empty() {
        fact("by name only", Cell::text(opaque.join(", ")));
    }
    if let Some(size) = size {
        let per = |n: u64| if calls == 0 { 0.0 } else { to_f64(n) / to_f64(calls) };
        fact("file", Cell::text(format!("{}, {:.3} bytes per call", bytes(size), per(size))));
    }
    fact("times", Cell::text(time_payload(sections)));
    let lost = lost(sections);
    if !lost.is_empty() {
        fact("left out", Cell::text(lost.join(", ")));
    }
    let histograms: usize = sections.iter().map(|(s, _)| s.histograms().count()).sum();
    if histograms > 0 {
        let text = format!("of {histograms} parameters; totals are exact, what single ranks send is drawn");
        fact("histograms", Cell::text(text));
    }
    Table { columns: vec![("fact", true), ("value", true)], rows }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn to_f64(n: u64) -> f64 {
    n as f64
}

fn ranks_cell(held: u64, world: u32) -> Cell {
    if held == u64::from(world) { Cell::count(held) } else { Cell::text(format!("{held} of {world}")) }
}

fn hosts(sections: &[(Section, Profile)]) -> Cell {
    let mut names: Vec<&str> = sections.iter().flat_map(|(s, _)| &s.hosts).map(|(h, _)| h.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() > 4 { Cell::count(names.len() as u64) } else { Cell::text(names.join(", ")) }
}

fn spread(values: &[u64]) -> Cell {
    let (Some(min), Some(max)) = (values.iter().min(), values.iter().max()) else { return Cell::none() };
    Cell::text(if min == max { format!("{min} per rank") } else { format!("{min} to {max} per rank") })
}

/// Times over all ranks.
#[derive(Default)]
struct Times {
    timed: bool,
    compute: u128,
    comm: u128,
    ranks: u64,
    longest: (u64, u32),
}

impl Times {
    fn of(sections: &[(Section, Profile)]) -> Self {
        let mut t = Self::default();
        for (section, _) in sections {
            for thread in &section.threads {
                let mut here = 0;
                for s in &thread.sketches {
                    t.timed = true;
                    t.compute += s.compute.sum;
                    t.comm += s.comm.sum;
                    here += s.compute.sum + s.comm.sum;
                }
                if let (1, Some(rank)) = (thread.ranks.len(), thread.ranks.lowest()) {
                    t.longest = t.longest.max((u64::try_from(here).unwrap_or(u64::MAX), rank));
                }
                let mut sums = vec![0u64; usize::try_from(thread.ranks.len()).unwrap_or(0)];
                for s in &thread.sums {
                    let (mut a, mut b) = (s.compute.cursor(), s.comm.cursor());
                    let bucket = |v: i64| representative(u16::try_from(v).unwrap_or(0));
                    sums.iter_mut().for_each(|x| *x += bucket(a.next()) + bucket(b.next()));
                }
                let longest = sums.into_iter().zip(thread.ranks.iter()).max().unwrap_or_default();
                t.longest = t.longest.max(longest);
            }
            t.ranks += section.ranks.len();
        }
        t
    }
    fn mean(&self) -> u64 {
        u64::try_from((self.compute + self.comm) / u128::from(self.ranks.max(1))).unwrap_or(u64::MAX)
    }
}

/// Loops found: nodes, depth.
fn structure(sections: &[(Section, Profile)]) -> String {
    let trees = || sections.iter().flat_map(|(s, _)| &s.threads).map(|t| &t.tree);
    let nodes: usize = trees().map(|t| t.items().len()).sum();
    let threads = sections.iter().flat_map(|(s, _)| &s.threads);
    let bodies = threads.flat_map(|t| t.tree.items().iter().zip(&t.counts));
    let loops = bodies.filter(|(item, counts)| matches!(item, Item::Body { .. }) && repeats(counts)).count();
    let depth = trees().map(depth).max().unwrap_or(0);
    let symbols: usize = sections.iter().map(|(s, _)| s.symbols.len()).sum();
    format!(
        "{} call sites, {} loops, nested {depth} deep, {} nodes in {} section(s)",
        grouped(symbols as u64),
        grouped(loops as u64),
        grouped(nodes as u64),
        sections.len()
    )
}

/// Whether some rank executes a node more than once at a visit.
fn repeats(counts: &Elastic) -> bool {
    counts.streams.iter().any(|stream| !matches!(stream.constant(), Some(0 | 1)))
}

fn depth(tree: &FlatTree) -> usize {
    let mut open: Vec<usize> = Vec::new();
    let mut deepest = 0;
    for (at, item) in tree.items().iter().enumerate() {
        while open.last().is_some_and(|&end| at >= end) {
            open.pop();
        }
        if let Item::Body { below } = item {
            open.push(at + 1 + *below as usize);
            deepest = deepest.max(open.len());
        }
    }
    deepest
}

fn failed_calls(sections: &[(Section, Profile)]) -> u64 {
    let of = |(s, p): &(Section, Profile)| -> u64 {
        s.symbols.iter().zip(&p.symbols).filter(|(s, _)| s.error != 0).map(|(_, t)| t.calls).sum()
    };
    sections.iter().map(of).sum()
}

/// What lossy options have changed, by their lanes.
fn lost(sections: &[(Section, Profile)]) -> Vec<&'static str> {
    let names = [
        (Lane::Call, "calls"),
        (Lane::Site, "differences between call sites"),
        (Lane::Endpoint, "endpoints"),
        (Lane::Count, "counts"),
        (Lane::Tag, "tags"),
        (Lane::Rest, "other parameters"),
    ];
    let voided =
        |lane: &Lane| sections.iter().flat_map(|(s, _)| &s.threads).any(|t| t.lanes.is_voided(*lane));
    names.into_iter().filter(|(lane, _)| voided(lane)).map(|(_, name)| name).collect()
}

/// Functions recorded by name only, with their counts.
fn opaque_calls(sections: &[(Section, Profile)]) -> Vec<String> {
    let table = st_trace::calls::CallTable::builtin();
    let mut counts: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for (s, p) in sections {
        for (symbol, totals) in s.symbols.iter().zip(&p.symbols) {
            if totals.calls > 0 && table.get(symbol.call).is_none_or(|r| r.properties.opaque) {
                *counts.entry(function(symbol.call, &s.tables)).or_default() += totals.calls;
            }
        }
    }
    counts.into_iter().map(|(name, n)| format!("{name} ({})", grouped(n))).collect()
}

fn time_payload(sections: &[(Section, Profile)]) -> String {
    let threads = || sections.iter().flat_map(|(s, _)| &s.threads);
    // A phase that never was has no shape of its own.
    let paths =
        || threads().flat_map(|t| &t.sketches).flat_map(|s| [&s.compute, &s.comm]).filter(|s| s.count > 0);
    let names = [
        (Shape::Buckets, "sketches (1 %)"),
        (Shape::Bins, "histograms of few bins"),
        (Shape::Totals, "number, sum, squares and extremes"),
    ];
    let kept = names.into_iter().filter(|(shape, _)| paths().any(|s| s.shape() == *shape));
    let kept: Vec<&str> = kept.map(|(_, name)| name).collect();
    // Without exact times a column still holds comparisons of clocks.
    let columns = threads().flat_map(|t| &t.columns).filter(|(_, column)| column.events() > 0);
    let times = columns.map(|(_, column)| column.unit()).max().map(|unit| match unit {
        1 => "exact times of every call".into(),
        _ => format!("times of every call, rounded to {unit} ns"),
    });
    match (times, kept.is_empty()) {
        (Some(times), false) => format!("{times}, and {}", kept.join(", ")),
        (Some(times), true) => times,
        (None, false) => format!("{}, no exact times", kept.join(", ")),
        (None, true) => "none".into(),
    }
}

/// The facts as lines `name: value`, for people.
pub(crate) fn write_text(facts: &Table, out: &mut dyn Write) -> io::Result<()> {
    for row in &facts.rows {
        if let [name, value] = &row[..] {
            writeln!(out, "{:<20} {}", name.text, value.text)?;
        }
    }
    Ok(())
}
