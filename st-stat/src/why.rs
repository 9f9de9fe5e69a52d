//! What makes a program slow: findings, most costly first.

mod numbers;
mod rows;
mod words;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::iter::repeat;

use anyhow::{Result, bail};
use st_cli::{Output, Screen, Status, counted, wrapped};
use st_explain::{At, Explains, Finding, Matter, analyse_causes, gathered, joined};
use st_model::num::saturate;
use st_model::rank_times::{RankTime, rank_times};
use st_model::sites::CallSites;

use self::words::{MOST, Words};
use crate::args::WhyArgs;
use crate::ended;
use crate::explain::{Explained, computation, left_out, rank_rows, several_threads};
use crate::input::{self, Lacking};
use crate::table::{Cell, Format, Table, duration};
use crate::untimed::{NOTHING_KEPT, without, without_times};

/// What stands before a line that explains a finding.
const INDENT: &str = "        ";

/// What is said of findings that were kept when exact times were folded.
const KEPT: &str = "(kept when exact times were folded: costs are exact, parts of ranks to 4.5 % where few differ, else means of many; calls' own time of less than 0.1 % at a call site is not there)";

/// `st-stat why`.
pub(crate) fn why(args: &WhyArgs) -> Result<Status> {
    let explained = Explained::read(&args.of, analyse_causes)?;
    let tables = explained.sections.iter().map(|s| &s.sites);
    let sites = args.symbols.call_sites((input::NAME, &args.of.talk), tables);
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    if explained.told().is_none() && args.of.format != Format::Text {
        bail!(Lacking(without(NOTHING_KEPT, &explained.whole.header)));
    }
    write(&explained, &sites, args.all, args.of.format, screen, &mut out)?;
    out.commit()?;
    Ok(Status::Ok)
}

/// Says what makes the program slow. `all`: also what costs less than 1 % of the time.
fn write(
    explained: &Explained,
    sites: &CallSites,
    all: bool,
    format: Format,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(told) = explained.told() else {
        return without_times(&explained.whole.header, &computation(explained), out);
    };
    let time = told.time();
    let findings = findings(explained, told, all);
    let words = Words::of(explained, told, sites, &findings);
    if format != Format::Text {
        return words.table(&findings).write(format, screen, out);
    }
    let waited = told.waits().total().ns;
    let share = |ns: u64| Cell::percent(ns.into(), words.common().into()).text;
    let n = told.ranks();
    let head = format!(
        "{} in {}{}; {} of their time{} is waiting for others{}",
        duration(told.efficiency().run),
        counted(n, "rank"),
        words.processors(),
        share(waited),
        words.of_what(),
        words.had_none()
    );
    screen.sentence(&head, out)?;
    if let Some(said) = several_threads(&explained.sections) {
        screen.sentence(said, out)?;
    }
    if explained.kept.is_some() {
        screen.sentence(&screen.dim(KEPT), out)?;
        let lost =
            told.waits().culprits.iter().filter(|((_, place, _), _)| told.places().get(*place).is_none());
        let rest = lost.map(|(_, sum)| sum.ns).fold(0, u64::saturating_add);
        if rest > time / 100 {
            let lost = format!(
                "{} of their time is waiting that was too little at each call site to be kept by itself: what follows is without it",
                share(rest)
            );
            screen.sentence(&lost, out)?;
        }
    }
    let ended = ended::sentences(explained.sections.iter(), sites, &explained.running);
    for place in &ended {
        screen.sentence(&screen.bold(place), out)?;
    }
    if findings.is_empty() {
        let whole = ended.is_empty()
            && explained.whole.complete
            && left_out(told, &explained.whole.header.clock).next().is_none();
        let well = if whole { "all is well: nothing costs" } else { "nothing of what is there costs" };
        return writeln!(out, "{well} more than 1 % of the time (--all shows the rest)");
    }
    let shown = if all { findings.len() } else { findings.len().min(MOST) };
    let causes = words.causes.iter().chain(repeat(&None));
    for ((f, cause), few) in
        findings.iter().take(shown).zip(causes).zip(words.few.iter().chain(repeat(&None)))
    {
        let cost = if f.cost == 0 {
            [String::new(), String::new()]
        } else {
            [words.share(f).text, duration(f.cost)]
        };
        let cost = format!("{:>6}  {:>8}  ", cost[0], cost[1]);
        writeln!(out)?;
        for line in wrapped(words.what(f, cause.as_ref()).split(' '), screen.width, [&cost, INDENT]) {
            writeln!(out, "{}", screen.bold(&line))?;
        }
        for line in wrapped(words.at(f, cause.as_ref(), *few).split(' '), screen.width, [INDENT; 2]) {
            writeln!(out, "{line}")?;
        }
    }
    if findings.len() > shown {
        writeln!(out, "\n… and {} more (--all, --format csv)", findings.len() - shown)?;
    }
    Ok(())
}

/// What costs most, most first, waits that have one reason as one, and call sites of one function that cost less than 1 % of the time
/// each. `all`: these, too, each by itself.
pub(crate) fn findings(explained: &Explained, told: &dyn Explains, all: bool) -> Vec<Finding> {
    let time = told.time();
    let lacked = explained.queued.is_some_and(|queued| queued.ns > time / 100);
    let certain = |f: &Finding| match f.matter {
        Matter::Crowded { .. } => true,
        Matter::Queued => lacked,
        _ => f.is_leak(),
    };
    let matters = |f: &Finding| all || f.cost > time / 100 || certain(f);
    let found = machine(explained, time).into_iter().chain(paused(explained)).chain(told.findings());
    let (mut all, little): (Vec<Finding>, Vec<Finding>) =
        found.partition(|f| matters(f) || f.matter.is_reason());
    // A program of many call sites loses little at each.
    all.extend(gathered(&little, told.places()).into_iter().filter(|f| f.cost > time / 100));
    let mut all = joined(all, told);
    // More ranks than processors cost nothing where ranks sleep: what is known of that is how long they lacked one, at least.
    all.sort_by_key(|f| Reverse(f.cost));
    all
}

/// Findings, one a row.
pub(crate) fn table(
    explained: &Explained,
    told: &dyn Explains,
    sites: &CallSites,
    findings: &[Finding],
) -> Table {
    Words::of(explained, told, sites, findings).table(findings)
}

/// What is not the program's fault, or not in its calls: processors that others have. It costs what ranks surely lacked one for
/// while they computed: whoever asks again and again in a call whether a message has come is ready to run, too, and loses nothing.
/// All ranks' time is `time`.
fn machine(explained: &Explained, time: u64) -> Option<Finding> {
    let queued = explained.queued.unwrap_or_default();
    // Exact times may end early, and sums may not be there.
    let exact = rank_rows(explained).into_iter().map(|(rank, _)| rank);
    let mut in_calls: BTreeMap<u32, u128> = BTreeMap::new();
    for RankTime { rank, mpi, .. } in exact.chain(explained.sections.iter().flat_map(rank_times)) {
        let most = in_calls.entry(rank).or_default();
        *most = mpi.max(*most);
    }
    let cost = queued.ns.saturating_sub(saturate(in_calls.into_values().fold(0, u128::saturating_add)));
    if let Some((ranks, processors)) = explained.crowded {
        return Some(Finding { cost, ..Finding::of(Matter::Crowded { ranks, processors }) });
    }
    let longest = At { rank: queued.longest_rank, place: u32::MAX };
    let culprits = vec![(longest, queued.longest_ns)];
    let matters = cost > 0 || queued.ns > time / 100;
    matters.then_some(Finding { cost, culprits, ..Finding::of(Matter::Queued) })
}

/// Time that is neither computation nor waiting, for nothing of it is in the trace.
fn paused(explained: &Explained) -> Option<Finding> {
    let rows = rank_rows(explained);
    let paused = rows.iter().filter(|(rank, _)| rank.paused > 0);
    let culprits: Vec<(At, u64)> =
        paused.map(|(r, _)| (At { rank: r.rank, place: u32::MAX }, saturate(r.paused))).collect();
    let cost = culprits.iter().map(|(_, ns)| *ns).fold(0, u64::saturating_add);
    (cost > 0).then_some(Finding { cost, culprits, ..Finding::of(Matter::Paused) })
}
