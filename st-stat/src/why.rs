//! Findings in words.

use std::io::{self, Write};

use anyhow::{Result, bail};
use st_cli::{Output, Screen, Status};
use st_explain::{Analysis, Finding, Kind, Matter};
use st_model::num::Exact as _;
use st_model::sites::CallSites;

use crate::args::WhyArgs;
use crate::calls::site_cells;
use crate::explain::{Explained, NO_TIMES, computation};
use crate::input;
use crate::table::{Cell, Column, Format, Table, duration, grouped};

/// Findings that people are shown at most.
const MOST: usize = 20;

/// `st-stat why`.
pub(crate) fn why(args: &WhyArgs) -> Result<Status> {
    let explained = Explained::read(&args.of)?;
    let tables = explained.sections.iter().map(|s| &s.sites);
    let sites = args.symbols.call_sites((input::NAME, &args.of.talk), tables);
    let mut out = Output::text(&args.of.output.output)?;
    let screen = Screen::of(&out);
    if explained.analysis.is_none() && args.of.format != Format::Text {
        bail!("{NO_TIMES}");
    }
    write(&explained, &sites, (args.all, args.of.format), screen, &mut out)?;
    out.commit()?;
    Ok(Status::Ok)
}

/// Says what makes the program slow. `all`: also what costs less than 1 % of the time.
fn write(
    explained: &Explained,
    sites: &CallSites,
    (all, format): (bool, Format),
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(analysis) = &explained.analysis else { return without_times(explained, out) };
    let time = analysis.time();
    let matters = |f: &Finding| all || f.cost > time / 100 || f.matter == Matter::LeakedRequests;
    let findings: Vec<Finding> = analysis.findings().into_iter().filter(matters).collect();
    let words = Words { explained, analysis, sites, time };
    if format != Format::Text {
        return words.table(&findings).write(format, screen, out);
    }
    let waited = analysis.waits.total().ns;
    let share = |ns: u64| Cell::percent(ns.into(), time.into()).text;
    let n = analysis.ranks.len().to_u64();
    writeln!(
        out,
        "{} in {} ranks; {} of their time is waiting for others",
        duration(analysis.run()),
        grouped(n),
        share(waited)
    )?;
    if findings.is_empty() {
        return writeln!(out, "all is well: nothing costs more than 1 % of the time (--all shows the rest)");
    }
    for f in findings.iter().take(MOST) {
        let head = format!("{:>6}  {:>8}  {}", share(f.cost), duration(f.cost), words.what(f));
        writeln!(out, "\n{}", screen.bold(&head))?;
        writeln!(out, "        {}", words.at(f))?;
    }
    if findings.len() > MOST {
        writeln!(out, "\n… and {} more (--format csv)", findings.len() - MOST)?;
    }
    Ok(())
}

/// What per-rank sums tell.
fn without_times(explained: &Explained, out: &mut dyn Write) -> io::Result<()> {
    let ranks = computation(explained);
    writeln!(out, "The trace holds no exact times: who waits for whom cannot be told.")?;
    writeln!(out, "(st-record without --merge keeps them, st-merge with --keep-columns.)")?;
    let sum: u64 = ranks.iter().map(|(_, _, computed)| computed).sum();
    let mean = sum / ranks.len().to_u64().max(1);
    let Some((rank, whole, most)) = ranks.iter().copied().max_by_key(|r| r.2) else { return Ok(()) };
    if whole == 0 {
        return writeln!(out, "It holds no times at all.");
    }
    let share = Cell::percent((most - mean.min(most)).into(), whole.into()).text;
    let more = duration(most.saturating_sub(mean));
    if most.saturating_sub(mean) > whole / 100 {
        writeln!(out, "\nimbalance: rank {rank} computes {more} longer than the mean, {share} of its time")
    } else {
        writeln!(out, "\nranks compute equally long (rank {rank} longest, {more} above the mean)")
    }
}

struct Words<'a> {
    explained: &'a Explained,
    analysis: &'a Analysis,
    sites: &'a CallSites,
    time: u64,
}

impl Words<'_> {
    /// Function and place.
    fn place(&self, number: u32) -> String {
        let (function, site) = self.explained.place(number, self.sites);
        match site {
            Some(site) => format!("{function} ({})", self.sites.describe(site)),
            None => function,
        }
    }

    /// Whom a finding blames: the ranks that three quarters of its cost are due to.
    fn culprits(f: &Finding) -> Vec<u32> {
        let mut due = 0;
        let mut ranks = Vec::new();
        for (at, ns) in &f.culprits {
            ranks.push(at.rank);
            due += ns;
            if due * 4 >= f.cost * 3 && *ns > 0 {
                break;
            }
        }
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    fn what(&self, f: &Finding) -> String {
        let culprits = Self::culprits(f);
        let who = ranks(&culprits);
        let victims: Vec<u32> = f.victims.iter().copied().filter(|v| !culprits.contains(v)).collect();
        let waiting = if victims.is_empty() { ranks(&f.victims) } else { ranks(&victims) };
        let waits = if waiting.starts_with("ranks") { "wait" } else { "waits" };
        // One after the other comes last: that is no rank's fault.
        let moves = culprits.len() > 3 && culprits.len() * 4 > self.analysis.ranks.len();
        match f.matter {
            Matter::Wait(Kind::LateSender) => format!("late sender: {waiting} {waits} for messages of {who}"),
            Matter::Wait(Kind::WrongOrderSame | Kind::WrongOrderOther) => {
                format!("wrong order: {waiting} {waits} for {who} while older messages are there")
            }
            Matter::Wait(Kind::LateReceiver) => {
                format!("late receiver: {waiting} {waits} until {who} receives")
            }
            Matter::Wait(Kind::LateBroadcast) => {
                format!("late root: {waiting} {waits} for the data of {who}")
            }
            Matter::Wait(Kind::EarlyReduce) => format!("early root: {waiting} {waits} for {who}"),
            Matter::Wait(Kind::EarlyScan) => format!("serialised: {waiting} {waits} for {who} before"),
            Matter::Wait(Kind::Barrier | Kind::AllToAll) if moves => {
                format!(
                    "imbalance that moves: {} ranks are the last in turn",
                    grouped(culprits.len().to_u64())
                )
            }
            Matter::Wait(Kind::Barrier | Kind::AllToAll) => {
                format!("imbalance: {waiting} {waits} for {who}")
            }
            Matter::Polling => {
                format!("polling: {} tests of {who} complete nothing", grouped(f.count))
            }
            Matter::TinyMessages => {
                let n = grouped(f.count);
                format!("latency: {n} messages of at most 1,024 bytes, sent by {who}")
            }
            Matter::LeakedRequests => {
                format!("leak: {} requests of {who} are never completed", grouped(f.count))
            }
            Matter::SlowRank => format!("slow rank: {who} computes longer than the others, wherever it does"),
        }
    }

    /// Where, why, and how sure.
    fn at(&self, f: &Finding) -> String {
        let mut text = format!("at {}", self.place(f.place));
        if let Some((first, _)) = f.culprits.first().filter(|(at, _)| at.place != f.place) {
            text = format!("{text}, for {}", self.place(first.place));
        }
        let share = Cell::percent;
        if let Some(e) =
            f.excess.filter(|e| e.ns > self.time / 1000 / self.analysis.ranks.len().to_u64().max(1))
        {
            let (rank, ns) = (e.at.rank, duration(e.ns));
            let before = if e.at.place == f.place { "it".to_owned() } else { self.place(e.at.place) };
            text = format!("{text}; rank {rank} computes {ns} more than the others before {before}");
        }
        if let (Matter::Wait(_), Some((at, ns))) = (f.matter, f.culprits.first())
            && *ns < f.cost
        {
            text = format!("{text}; {} for rank {}", share((*ns).into(), f.cost.into()).text, at.rank);
        }
        format!("{text} ({})", self.sure(f))
    }

    fn sure(&self, f: &Finding) -> &'static str {
        let waits = &self.analysis.waits;
        match f.matter {
            Matter::Wait(_) if waits.violations * 100 > waits.total().count => {
                "unsure: clocks disagree, st-sync"
            }
            Matter::Wait(_) | Matter::Polling => "measured",
            Matter::LeakedRequests => "certain",
            Matter::TinyMessages => "upper bound: the calls' own time",
            Matter::SlowRank => "likely",
        }
    }

    fn table(&self, findings: &[Finding]) -> Table {
        let columns = vec![
            Column::left("kind", "kind"),
            Column::right("cost", "cost_ns", 0),
            Column::right("share", "share_percent", 0),
            Column::left("ranks", "ranks"),
            Column::right("victims", "victims", 0),
            Column::left("what", "what"),
            Column::tail("place", "place"),
            Column::tail("where", "where"),
            Column::left("sure", "sure"),
        ];
        let row = |f: &Finding| {
            let kind = match f.matter {
                Matter::Wait(kind) => kind.name(),
                Matter::Polling => "polling",
                Matter::TinyMessages => "tiny messages",
                Matter::LeakedRequests => "leaked requests",
                Matter::SlowRank => "slow rank",
            };
            let culprit = f.excess.map(|e| e.at.place).or(f.culprits.first().map(|(at, _)| at.place));
            let numbers: Vec<String> = Self::culprits(f).iter().map(u32::to_string).collect();
            let site = |number: u32| {
                let (function, site) = self.explained.place(number, self.sites);
                let [_, place] = site_cells(site, self.sites);
                Cell::text(format!("{function} {}", if site.is_some() { &place.text } else { "" }).trim_end())
            };
            vec![
                Cell::text(kind),
                Cell::ns(f.cost.into()),
                Cell::percent(f.cost.into(), self.time.into()),
                Cell::text(numbers.join(" ")),
                Cell::count(f.victims.len().to_u64()),
                Cell::text(self.what(f)),
                culprit.map_or_else(Cell::none, site),
                site(f.place),
                Cell::text(self.sure(f)),
            ]
        };
        Table { columns, rows: findings.iter().map(row).collect(), total: None }
    }
}

/// `rank 3`, `ranks 0, 2`, `ranks 1, 2, 3 and 5 more`.
pub(crate) fn ranks(all: &[u32]) -> String {
    let shown: Vec<String> = all.iter().take(3).map(u32::to_string).collect();
    match all.len() {
        1 => format!("rank {}", shown.concat()),
        0..=3 => format!("ranks {}", shown.join(", ")),
        n => format!("ranks {} and {} more", shown.join(", "), n - 3),
    }
}
