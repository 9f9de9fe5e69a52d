//! Calls, one a line: for people, or as JSON.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context, Result};
use serde_json::{Map, Value};
use st_tool::{Output, each_section};
use st_trace::calls::CallTable;
use st_trace::json::{self, Place};
use st_trace::objects::{Comm, Name, Named};
use st_trace::ranklist::RankList;
use st_trace::section::{Section, Thread};
use st_trace::sites::SiteTable;

use crate::args::Args;
use crate::each;

/// Prints the calls of the selected ranks: by section, rank and thread, each in order.
pub(crate) fn print(args: &Args, out: &mut Output) -> Result<()> {
    if !args.json {
        // Sites are numbered as they come, and one section is held at a time.
        let mut sites = SiteTable::new();
        return each(args, |_, section| print_section(args, &section, &numbers(&mut sites, &section), out));
    }
    // The tables come first. A pipe is read once, so that what comes through one has to be held.
    let once = args.inputs.is_empty() || args.inputs.iter().any(|i| i.as_os_str() == "-");
    let (mut tables, mut held) = (Tables::default(), Vec::new());
    each(args, |_, section| {
        tables.add(&section);
        if once {
            held.push(section);
        }
        Ok(())
    })?;
    tables.print(out)?;
    let mut sites = tables.sites;
    let mut print = |section: &Section| print_section(args, section, &numbers(&mut sites, section), out);
    if once {
        return held.iter().try_for_each(print);
    }
    each_section(&args.inputs, &args.input, |_, section| print(&section)).map(drop)
}

/// Number of each of the section's sites among those of all sections.
fn numbers(sites: &mut SiteTable, section: &Section) -> Vec<u32> {
    section.sites.sites().iter().map(|site| sites.adopt(&section.sites, site)).collect()
}

/// What comes before the calls.
#[derive(Default)]
struct Tables {
    sites: SiteTable,
    /// Communicators by name, with the ranks that have them.
    comms: BTreeMap<Name, (Named<Comm>, RankList)>,
}

impl Tables {
    fn add(&mut self, section: &Section) {
        numbers(&mut self.sites, section);
        for (ranks, comm) in section.tables.comms.iter().flat_map(|e| &e.of) {
            let found = self.comms.entry(comm.name).or_insert_with(|| (comm.clone(), RankList::default()));
            found.1.extend(ranks);
        }
    }

    fn print(&self, out: &mut Output) -> Result<()> {
        for i in 0..u32::try_from(self.sites.sites().len()).unwrap_or(u32::MAX) {
            line(&json::site(&self.sites, i), out)?;
        }
        self.comms.values().try_for_each(|(comm, ranks)| line(&json::communicator(comm, ranks), out))
    }
}

fn print_section(args: &Args, section: &Section, sites: &[u32], out: &mut Output) -> Result<()> {
    for at in section.histograms().filter(|_| args.json) {
        let symbol = section.symbols.get(at.0 as usize);
        let site = symbol.and_then(|s| sites.get(s.site as usize)).copied().unwrap_or(u32::MAX);
        json::histogram(section, site, at).map_or(Ok(()), |object| line(&object, out))?;
    }
    for rank in section.ranks.iter().filter(|r| args.ranks.as_ref().is_none_or(|only| only.contains(*r))) {
        for (i, thread) in section.threads.iter().enumerate() {
            calls(section, thread, Where { thread: i, rank, sites }, args.json, out)?;
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
