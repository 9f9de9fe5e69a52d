//! Calls, one a line: for people, or as JSON.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context, Result};
use serde_json::{Map, Value};
use st_tool::Output;
use st_trace::calls::CallTable;
use st_trace::json::{self, Place};
use st_trace::objects::{Comm, Name, Named};
use st_trace::ranklist::RankList;
use st_trace::section::{Section, Thread};
use st_trace::sites::SiteTable;
use st_trace::stream::Trace;

use crate::args::Args;

/// Prints the calls of the selected ranks: by section, rank and thread, each in order.
pub(crate) fn print(args: &Args, trace: &Trace, out: &mut Output) -> Result<()> {
    // One numbering of sites for all sections.
    let mut sites = SiteTable::new();
    let numbers: Vec<Vec<u32>> = trace
        .sections
        .iter()
        .map(|s| s.sites.sites().iter().map(|site| sites.adopt(&s.sites, site)).collect())
        .collect();
    if args.json {
        for i in 0..u32::try_from(sites.sites().len()).unwrap_or(u32::MAX) {
            line(&json::site(&sites, i), out)?;
        }
        for (comm, ranks) in communicators(trace).into_values() {
            line(&json::communicator(comm, &ranks), out)?;
        }
    }
    for (section, numbers) in trace.sections.iter().zip(&numbers) {
        for rank in section.ranks.iter().filter(|r| args.ranks.as_ref().is_none_or(|only| only.contains(*r)))
        {
            for (i, thread) in section.threads.iter().enumerate() {
                calls(section, thread, Where { thread: i, rank, sites: numbers }, args.json, out)?;
            }
        }
    }
    Ok(())
}

struct Where<'a> {
    thread: usize,
    rank: u32,
    /// Printed number of each of the section's sites.
    sites: &'a [u32],
}

fn calls(section: &Section, thread: &Thread, at: Where<'_>, json: bool, out: &mut Output) -> Result<()> {
    let Some(mut projection) = section.project(at.thread, at.rank) else { return Ok(()) };
    let column = thread.columns.iter().find(|(rank, _)| *rank == at.rank);
    let mut times = column.into_iter().flat_map(|(_, c)| c.times());
    let mut words = Vec::new();
    let mut index = 0;
    while let Some(sym) = projection.next_call(&mut words).context("decoding")? {
        let symbol = section.symbols.get(sym as usize);
        let site = symbol.and_then(|s| at.sites.get(s.site as usize)).copied().unwrap_or(u32::MAX);
        let place = Place { rank: at.rank, thread: at.thread, index, site, times: times.next() };
        let call = json::call(CallTable::builtin(), section, place, sym, &words);
        if json {
            line(&call, out)?;
        } else {
            writeln!(out, "{}", json::line(&call))?;
        }
        index += 1;
    }
    Ok(())
}

fn line(object: &Map<String, Value>, out: &mut Output) -> Result<()> {
    serde_json::to_writer(&mut *out, object).map_err(std::io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// All communicators by name, with the ranks that have them.
fn communicators(trace: &Trace) -> BTreeMap<Name, (&Named<Comm>, RankList)> {
    let mut all: BTreeMap<Name, (&Named<Comm>, RankList)> = BTreeMap::new();
    for entry in trace.sections.iter().flat_map(|s| &s.tables.comms) {
        for (ranks, comm) in &entry.of {
            let found = all.entry(comm.name).or_insert_with(|| (comm, RankList::default()));
            found.1.extend(ranks);
        }
    }
    all
}
