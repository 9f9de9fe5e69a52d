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
use st_trace::sites::CallSites;

use crate::Named as NamedTrace;
use crate::args::Args;

/// Prints the calls of the selected ranks: by section, rank and thread, each in order.
pub(crate) fn print(args: &Args, out: &mut Output) -> Result<()> {
    let named = NamedTrace::read(args)?;
    if args.json {
        // The tables come first.
        for i in 0..named.sites.len() {
            line(&json::site(&named.sites, i), out)?;
        }
        let mut comms = Comms::new();
        named.each(args, |_, section| {
            add(&mut comms, &section);
            Ok(())
        })?;
        comms.values().try_for_each(|(comm, ranks)| line(&json::communicator(comm, ranks), out))?;
    }
    named.each(args, |_, section| print_section(args, &section, &named.sites, out))
}

/// Communicators by name, with the ranks that have them.
type Comms = BTreeMap<Name, (Named<Comm>, RankList)>;

fn add(comms: &mut Comms, section: &Section) {
    for (ranks, comm) in section.tables.comms.iter().flat_map(|e| &e.of) {
        let found = comms.entry(comm.name).or_insert_with(|| (comm.clone(), RankList::default()));
        found.1.extend(ranks);
    }
}

fn print_section(args: &Args, section: &Section, all: &CallSites, out: &mut Output) -> Result<()> {
    let sites = &all.numbers(&section.sites)[..];
    for at in section.histograms().filter(|_| args.json) {
        let symbol = section.symbols.get(at.0 as usize);
        let site = symbol.and_then(|s| sites.get(s.site as usize)).copied().unwrap_or(u32::MAX);
        json::histogram(section, site, at).map_or(Ok(()), |object| line(&object, out))?;
    }
    for rank in section.ranks.iter().filter(|r| args.ranks.as_ref().is_none_or(|only| only.contains(*r))) {
        for (i, thread) in section.threads.iter().enumerate() {
            calls(section, thread, Where { thread: i, rank, sites, all }, args.json, out)?;
        }
    }
    Ok(())
}

struct Where<'a> {
    thread: usize,
    rank: u32,
    /// Printed number of each of the section's sites.
    sites: &'a [u32],
    all: &'a CallSites,
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
            writeln!(out, "{}", json::line(&call, at.all))?;
        }
        index += 1;
    }
    Ok(())
}

fn line(object: &Map<String, Value>, out: &mut Output) -> Result<()> {
    serde_json::to_writer(&mut *out, object).map_err(std::io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}
