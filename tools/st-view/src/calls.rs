//! Calls, one a line: for people, or as JSON.

use std::io::Write;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};
use st_cli::{Output, UsageError};
use st_model::event::Events;
use st_model::rank_times::begin;
use st_model::ranklist::RankList;
use st_model::ranklist_notation::plain;
use st_model::section::Section;
use st_stream::json::{self, Objects};

use crate::args::Args;
use crate::attributes;
use crate::hints::Hints;
use crate::input::Named;

/// Steps that it takes to print a call.
const PRINTED: u64 = 5;

/// Prints the calls of the selected ranks: by section, rank and thread, each in order.
pub(crate) fn print(args: &Args, out: &mut Output) -> Result<()> {
    let named = Named::read(args)?;
    let (mut objects, mut zero, mut held) = (Objects::default(), None, RankList::default());
    let budget = args.input.steps.budget();
    named.each(args, |_, section| {
        if budget.spend(&section, args.ranks.as_ref(), PRINTED).is_err() {
            return Ok(());
        }
        if args.json {
            objects.add(&section);
        }
        held.extend(&section.ranks);
        let begins = begin(&section).context("decoding")?;
        zero = zero.into_iter().chain(begins).min();
        Ok(())
    })?;
    budget.check()?;
    if let Some(asked) = &args.ranks {
        let missing = asked.difference(&held);
        let (none, have) = (plain(&missing), plain(&held));
        if missing.len() == asked.len() {
            bail!(UsageError(format!("--ranks: the trace has no rank {none}; it has {have}")));
        }
        if !missing.is_empty() {
            args.talk.warn("st-view", format_args!("--ranks: the trace has no rank {none}; it has {have}"));
        }
    }
    let zero = zero.unwrap_or(0);
    if args.json {
        // What the run is, and the tables, come first.
        let of = |key: &str, value: serde_json::Result<Value>| {
            Ok([(key.to_owned(), value?)].into_iter().collect())
        };
        let run: Result<Vec<Map<String, Value>>> =
            std::iter::once(of("header", serde_json::to_value(&named.header)))
                .chain(named.provenance.iter().map(|step| of("step", serde_json::to_value(step))))
                .collect();
        run?.iter().try_for_each(|object| line(object, out))?;
        for i in 0..named.sites.len() {
            line(&json::site(&named.sites, i), out)?;
        }
        objects.lines(zero).try_for_each(|object| line(&object, out))?;
    }
    named.each(args, |_, section| print_section(args, &section, &named, zero, out))
}

fn print_section(args: &Args, section: &Section, named: &Named, zero: i64, out: &mut Output) -> Result<()> {
    let sites = &named.sites.numbers(&section.sites)[..];
    for (sym, slot, streams) in section.histograms().filter(|_| args.json) {
        let symbol = section.symbols.get(sym as usize);
        let site = symbol.and_then(|s| sites.get(s.site as usize)).copied().unwrap_or(u32::MAX);
        let histogram = json::histogram(section, sym, slot, streams, site);
        histogram.map_or(Ok(()), |object| line(&object, out))?;
    }
    for rank in section.ranks.iter().filter(|r| args.ranks.as_ref().is_none_or(|only| only.contains(*r))) {
        for i in 0..section.threads.len() {
            calls(section, Where { thread: i, rank, named, sites, zero }, args.json, out)?;
        }
        for ended in section.ended_of(rank).iter().filter(|_| args.json) {
            line(&json::ended(ended, section, sites, zero), out)?;
        }
    }
    Ok(())
}

struct Where<'a> {
    thread: usize,
    rank: u32,
    /// Printed number of each of the section's sites.
    sites: &'a [u32],
    named: &'a Named,
    /// When the program began, by the trace's clock.
    zero: i64,
}

fn calls(section: &Section, at: Where<'_>, json: bool, out: &mut Output) -> Result<()> {
    let Some(mut events) = section.events(at.thread, at.rank).map(Events::timed) else { return Ok(()) };
    let since = |(enter, exit): (i64, i64)| (enter.saturating_sub(at.zero), exit.saturating_sub(at.zero));
    // Which of several threads was first to change an object that all may use is not known here.
    let alone = section.threads.iter().filter(|t| t.ranks.contains(at.rank)).count() < 2;
    let mut hints = alone.then(Hints::default);
    while let Some(mut event) = events.next_event().context("decoding")? {
        let site = at.sites.get(event.symbol.site as usize).copied().unwrap_or(u32::MAX);
        event.times = event.times.map(since);
        let mut call = json::call(&event, site);
        attributes::add(&mut call, &at.named.header);
        hints.iter_mut().for_each(|hints| hints.follow(&mut call));
        if json {
            line(&call, out)?;
        } else {
            writeln!(out, "{}", json::line(&call, &at.named.sites))?;
        }
    }
    Ok(())
}

fn line(object: &Map<String, Value>, out: &mut Output) -> Result<()> {
    serde_json::to_writer(&mut *out, object).map_err(std::io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}
