//! Two traces: what their programs did, and how long that took.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use st_cli::options::{StreamIn, Talk};
use st_cli::{
    Amount, InvalidStream, Output, Screen, Status, Symbols, UsageError, counted, is_same_file, wrapped,
};
use st_model::calls::CallTable;
use st_model::calls::words::Words;
use st_model::event::Event;
use st_model::header::Header;
use st_model::num::Exact as _;
use st_model::ranklist::RankList;
use st_model::section::Section;
use st_model::sites::CallSites;
use st_model::steps::{Budget, Exceeded};
use st_stream::json::{self, line};

use crate::args::DiffArgs;
use crate::changes::{Changes, Common, How, Run, changes};
use crate::diff::{Difference, Report, diff, unlike as unlike_ranks};
use crate::normal::NormalCall;
use crate::table::{Cell, Column, Format, Table, grouped};
use crate::times::Times;
use crate::unlike::{Unlike, unlike};
use crate::{calls, input};

/// A trace that is compared.
struct Compared<'a> {
    path: &'a Path,
    header: Header,
    sections: Vec<Section>,
    sites: CallSites,
}

/// How traces are read.
pub(crate) struct Reading<'a> {
    pub(crate) symbols: &'a Symbols,
    pub(crate) input: &'a StreamIn,
    pub(crate) talk: &'a Talk,
}

impl<'a> Compared<'a> {
    fn read(path: &'a PathBuf, how: &Reading<'_>) -> Result<Self> {
        let (whole, sections) = input::sections(std::slice::from_ref(path), how.input, how.talk)?;
        let tables = sections.iter().map(|s| &s.sites);
        let sites = how.symbols.call_sites((input::NAME, how.talk), tables);
        Ok(Self { path, header: whole.header, sections, sites })
    }

    /// Pays for going through the calls of some ranks.
    fn spend(&self, budget: &Budget, ranks: &RankList) -> Result<()> {
        let spent = budget.spend_all(&self.sections, Some(ranks), 1);
        spent.with_context(|| self.path.display().to_string())
    }

    fn times(&self, budget: &Budget) -> Result<Option<Times>> {
        Times::of(&self.sections, budget).with_context(|| self.path.display().to_string())
    }

    fn timed(&self, budget: &Budget) -> Result<Timed> {
        let name = self.path.display().to_string();
        Timed::of(name, &self.header, &self.sections, self.sites.clone(), budget)
    }
}

/// The times of a trace, and what people call it.
pub(crate) struct Timed {
    name: String,
    /// The run's identity; empty if it is not known.
    job: String,
    pub(crate) command: String,
    pub(crate) run: Run,
}

impl Timed {
    /// Of a trace with a name.
    ///
    /// # Errors
    ///
    /// If it holds no times, or they take more steps than are allowed.
    pub(crate) fn of(
        name: String,
        header: &Header,
        sections: &[Section],
        sites: CallSites,
        budget: &Budget,
    ) -> Result<Self> {
        let times = Times::of(sections, budget).with_context(|| name.clone())?;
        let Some(times) = times else { bail!("{name}: no times") };
        Ok(Self { name, job: header.run.clone(), command: header.command(), run: (times, sites) })
    }

    /// The same of a trace that is yet to be read.
    ///
    /// # Errors
    ///
    /// The same, and if it cannot be read.
    pub(crate) fn read(path: &PathBuf, how: &Reading<'_>, budget: &Budget) -> Result<Self> {
        Compared::read(path, how)?.timed(budget)
    }
}

/// How the times of two traces differ; with more runs of the first one's program, in order.
///
/// # Errors
///
/// If these have other ranks, are of another program or one run twice, or the traces have no call site in common.
pub(crate) fn judged([a, b]: [&Timed; 2], bases: Vec<Timed>, how: How, talk: &Talk) -> Result<Changes> {
    for (i, base) in bases.iter().enumerate() {
        once(base, [a, b].into_iter().chain(bases.iter().take(i)))?;
        if base.run.0.ranks != a.run.0.ranks {
            let (base, first) = (&base.name, &a.name);
            bail!(InvalidStream(format!(
                "{base}: has other ranks than {first}, of whose program it is to be another run"
            )));
        }
        alike([a, base], true, talk)?;
    }
    alike([a, b], false, talk)?;
    let bases: Vec<Run> = bases.into_iter().map(|base| base.run).collect();
    Ok(changes([&a.run, &b.run], &bases, how))
}

/// Refuses a run that is among the others: it is no further one, whatever its trace is called.
fn once<'a>(base: &Timed, mut others: impl Iterator<Item = &'a Timed>) -> Result<()> {
    let is_same = |other: &&Timed| match (&*base.job, &*other.job) {
        ("", _) | (_, "") => is_same_file(Path::new(&base.name), Path::new(&other.name)),
        (one, other) => one == other,
    };
    match others.find(is_same) {
        None => Ok(()),
        Some(Timed { name, .. }) => bail!(UsageError(format!(
            "--base {}: is of the same run as {name}; it is to be another run of the first program",
            base.name
        ))),
    }
}

/// Says what is compared where commands differ, and refuses what has nothing in common; `again`: the second is to be another run
/// of the first one's program.
fn alike([a, b]: [&Timed; 2], again: bool, talk: &Talk) -> Result<()> {
    let unknown = "or the names of their call sites are not known (--symbols DIR)";
    let (name, first) = (&b.name, &a.name);
    let of = format!("it is of {}, not {}", b.command, a.command);
    match Common::of([&a.run, &b.run]) {
        Common::Nothing => bail!(InvalidStream(format!(
            "{name}: has no call site in common with {first}: {of}, {unknown}"
        ))),
        Common::Names if again => bail!(InvalidStream(format!(
            "{name}: is no other run of the program of {first}: {of}, and no call site of both is in a file of one name"
        ))),
        Common::Names => talk.warn(
            input::NAME,
            format_args!(
                "{name} may be of another program than {first}: {of}, and no call site of both is in a file of one name; \
                 what has functions of one name is compared"
            ),
        ),
        Common::Little => talk.warn(
            input::NAME,
            format_args!(
                "{name}: most of its time or of that of {first} is at call sites of one trace only: these are other programs ({of}), {unknown}"
            ),
        ),
        Common::Most => said_of_commands([(first, &a.command), (name, &b.command)], again, talk),
    }
    Ok(())
}

/// Says what ran, where that is not the same.
fn said_of_commands([a, b]: [(&str, &str); 2], again: bool, talk: &Talk) {
    if a.1 == b.1 {
        return;
    }
    let text = format!("{} is of {}, {} of {}", a.0, a.1, b.0, b.1);
    if again { talk.warn(input::NAME, text) } else { talk.note(input::NAME, text) }
}

/// `st-stat diff`.
pub(crate) fn compare(args: &DiffArgs) -> Result<Status> {
    let how = Reading { symbols: &args.symbols, input: &args.input, talk: &args.talk };
    let both = [Compared::read(&args.a, &how)?, Compared::read(&args.b, &how)?];
    let budget = args.input.steps.budget();
    if args.time { compare_times(&both, &how, &budget, args) } else { compare_calls(&both, &budget, args) }
}

fn compare_calls(both: &[Compared<'_>; 2], budget: &Budget, args: &DiffArgs) -> Result<Status> {
    let [a, b] = both;
    let sites = both.each_ref().map(|trace| trace.sites.clone());
    // What is left to compare of jobs with other numbers of ranks is what they call from where.
    let named = (args.sites || a.header.world != b.header.world).then_some(&sites);
    a.sections.iter().chain(&b.sections).try_for_each(|section| budget.spend_ranks(section))?;
    let ranks = unlike_ranks(&a.sections, &b.sections, named)?;
    both.iter().try_for_each(|trace| trace.spend(budget, &ranks))?;
    let [first, second] = both.each_ref().map(|t| (t.path.display().to_string(), t.header.command()));
    said_of_commands([(&first.0, &first.1), (&second.0, &second.1)], false, &args.talk);
    if a.sections.iter().chain(&b.sections).any(|s| s.histograms().next().is_some()) {
        args.talk.warn(input::NAME, "parameters are histograms: what calls have of these is drawn");
    }
    let ranks = a.sections.iter().map(|s| s.ranks.len()).sum();
    let progress = args.talk.progress(input::NAME, "comparing", Amount::Things("ranks", ranks));
    let report = diff(&a.sections, &b.sections, named, &|n| progress.advance(n))?;
    drop(progress);
    let mut out = Output::text(&args.output.output)?;
    let traces = [(&a.sections[..], &sites[0]), (&b.sections[..], &sites[1])];
    let screen = Screen::of(&out);
    if args.format == Format::Text {
        let times = in_short(both, budget)?;
        write_report(&report, traces, args.limit, screen, &times, &mut out)?;
    } else {
        table(&report, traces).write(args.format, screen, &mut out)?;
    }
    out.commit()?;
    Ok(if report.same() { Status::Ok } else { Status::Difference })
}

/// How the times differ, or why that is not known, in a few lines.
fn in_short(both: &[Compared<'_>; 2], budget: &Budget) -> Result<Vec<String>> {
    let times = both.each_ref().map(|trace| trace.times(budget));
    let [a, b] = match times {
        [Err(why), _] | [_, Err(why)] if why.is::<Exceeded>() => {
            return Ok(vec![format!("not compared: times: {why:#}")]);
        }
        [a, b] => [a?, b?],
    };
    let (Some(a), Some(b)) = (a, b) else {
        return Ok(vec!["not compared: times, which not both traces hold".into()]);
    };
    let [a, b] = [(a, both[0].sites.clone()), (b, both[1].sites.clone())];
    let found = changes([&a, &b], &[], How::default());
    // --time refuses what has nothing in common, as a program and its replay.
    let more = if Common::of([&a, &b]) == Common::Nothing { ", none in both" } else { " (--time)" };
    Ok(vec![
        format!("times: {}", found.runs()),
        format!("call sites, before and in their calls: {}{more}", found.counts()),
    ])
}

fn compare_times(
    both: &[Compared<'_>; 2],
    how: &Reading<'_>,
    budget: &Budget,
    args: &DiffArgs,
) -> Result<Status> {
    let [a, b] = [both[0].timed(budget)?, both[1].timed(budget)?];
    let bases = args.base.iter().map(|path| Timed::read(path, how, budget)).collect::<Result<Vec<_>>>()?;
    let found = judged([&a, &b], bases, How { weak: args.weak, threshold: args.threshold }, &args.talk)?;
    if let Some(whole) = found.whole().filter(|_| args.format != Format::Text) {
        args.talk.note(input::NAME, whole);
    }
    let mut out = Output::text(&args.output.output)?;
    let screen = Screen::of(&out);
    write_changes(&found, [&a.run.1, &b.run.1], args, screen, &mut out)?;
    out.commit()?;
    Ok(if found.beyond() { Status::Difference } else { Status::Ok })
}

fn write_changes(
    found: &Changes,
    sites: [&CallSites; 2],
    args: &DiffArgs,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let text = args.format == Format::Text;
    let mut table = found.table(sites, text, args.all);
    if !text {
        return table.write(args.format, screen, out);
    }
    screen.sentence(&found.runs(), out)?;
    if let Some(whole) = found.whole() {
        screen.sentence(&whole, out)?;
    }
    if let Some(alone) = found.alone(sites[0]) {
        screen.sentence(&alone, out)?;
    }
    screen.sentence(&format!("call sites, before and in their calls: {}", found.counts()), out)?;
    let rest = table.rows.len().saturating_sub(args.limit);
    table.rows.truncate(args.limit);
    if table.rows.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    table.write(args.format, screen, out)?;
    if rest > 0 {
        writeln!(out, "… and {rest} more (--limit)")?;
    }
    Ok(())
}

fn write_report(
    r: &Report,
    traces: [(&[Section], &CallSites); 2],
    limit: usize,
    screen: Screen,
    times: &[String],
    out: &mut dyn Write,
) -> io::Result<()> {
    if let Some([a, b]) = r.worlds {
        let text = format!(
            "jobs of {a} and {b} ranks: compared is which functions are called from which call sites; partners, counts and other \
             parameters may follow from the number of ranks"
        );
        screen.sentence(&text, out)?;
    }
    for u in &r.unmatched {
        screen.sentence(&u.to_string(), out)?;
    }
    for (label, how) in &objects(r, traces) {
        screen.sentence(&format!("{label} is another object: {how}"), out)?;
    }
    for (d, n) in r.first.iter().take(limit) {
        writeln!(
            out,
            "{} at this call site, first on rank {}{}:",
            counted(*n, "difference"),
            d.rank,
            thread_of(d)
        )?;
        let [a, b] = first_calls(d, traces).map(|call| call.unwrap_or_else(|| "(no call)".into()));
        let same = renamed(d, traces).into_iter().next().filter(|_| a == b);
        let b = same.map_or(b, |o| format!("(the same of the other {})", o.label));
        for (sign, call) in [("  - ", a), ("  + ", b)] {
            for line in wrapped(call.split(' '), screen.width, [sign, "      "]) {
                writeln!(out, "{line}")?;
            }
        }
    }
    if r.first.len() > limit {
        writeln!(out, "… and {} more call sites (--limit)", r.first.len() - limit)?;
    }
    let verdict = if r.same() { "no difference" } else { "the traces differ" };
    writeln!(out, "{verdict}: {} equal, {} different", counted(r.equal, "call"), grouped(r.different))?;
    let left_out = [
        (r.polls, "unsuccessful tests and probes, whose number is chance"),
        (r.failed, "calls that returned an error"),
    ];
    for ((a, b), what) in left_out.into_iter().filter(|((a, b), _)| a + b > 0) {
        writeln!(out, "not compared: {what}: {} and {}", grouped(a), grouped(b))?;
    }
    let lines = times.iter().flat_map(|line| wrapped(line.split(' '), screen.width, ["", "  "]));
    lines.into_iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// What differs, for programs.
fn table(r: &Report, traces: [(&[Section], &CallSites); 2]) -> Table {
    let columns = vec![
        Column::left("what", "what"),
        Column::right("calls", "calls", 0),
        Column::right("rank", "rank", 0),
        Column::right("thread", "thread", 0),
        Column::left("first", "first"),
        Column::left("second", "second"),
    ];
    let text = |text: Option<String>| text.map_or_else(Cell::none, Cell::text);
    let row = |what: &str, calls: Option<u64>, [first, second]: [Option<String>; 2]| {
        let calls = calls.map_or_else(Cell::none, Cell::count);
        vec![Cell::text(what), calls, Cell::none(), Cell::none(), text(first), text(second)]
    };
    let mut rows: Vec<Vec<Cell>> = [("equal", r.equal), ("different", r.different)]
        .map(|(what, n)| row(what, Some(n), [None, None]))
        .into();
    rows.extend(r.unmatched.iter().map(|what| row("missing", None, [Some(what.clone()), None])));
    rows.extend(
        objects(r, traces).into_iter().map(|(label, how)| row("object", None, [Some(label), Some(how)])),
    );
    for (d, n) in &r.first {
        let mut site = row("call site", Some(*n), first_calls(d, traces));
        site[2] = Cell::count(d.rank.into());
        site[3] = Cell::count(d.thread.to_u64());
        rows.push(site);
    }
    Table { columns, rows, total: None }
}

/// Objects that calls have in the place of one another, and how they differ: each stands once for all calls that are unlike by it.
fn objects(r: &Report, traces: [(&[Section], &CallSites); 2]) -> BTreeMap<String, String> {
    let all = r.first.iter().filter(|_| r.worlds.is_none()).flat_map(|(d, _)| renamed(d, traces));
    all.map(|o| (o.label, o.how)).collect()
}

/// The first calls of both traces that differ at a call site, of those that there are.
fn first_calls(d: &Difference, traces: [(&[Section], &CallSites); 2]) -> [Option<String>; 2] {
    [(&d.a, traces[0]), (&d.b, traces[1])]
        .map(|(call, (sections, sites))| call.as_ref().map(|c| shown(c, sections, sites, d.rank, d.thread)))
}

fn thread_of(d: &Difference) -> String {
    if d.thread == 0 { String::new() } else { format!(" thread {}", d.thread) }
}

/// Objects that the calls of a difference have in the place of one another.
fn renamed(d: &Difference, traces: [(&[Section], &CallSites); 2]) -> Vec<Unlike> {
    let [a, b] = traces.map(|(sections, _)| section_of(sections, d.rank));
    let calls = a.zip(d.a.as_ref()).zip(b.zip(d.b.as_ref()));
    calls.map_or_else(Vec::new, |(a, b)| unlike([a, b], d.rank))
}

fn section_of(sections: &[Section], rank: u32) -> Option<&Section> {
    sections.iter().find(|s| s.ranks.contains(rank))
}

/// A call for people, with its position.
fn shown(call: &NormalCall, sections: &[Section], sites: &CallSites, rank: u32, thread: usize) -> String {
    let Some(section) = section_of(sections, rank) else { return String::new() };
    let site = section.symbols.get(call.sym as usize).and_then(|s| calls::site_of(section, s, sites));
    let slots =
        section.symbols.get(call.sym as usize).map_or(&[][..], |s| CallTable::builtin().slots(s.call));
    let words = Words::of(call.words.clone(), slots);
    let event = Event::apart(section, rank, call.sym, &words).map(|event| event.at(thread, call.index));
    event.map_or_else(String::new, |event| line(&json::call(&event, site.unwrap_or(u32::MAX)), sites))
}
