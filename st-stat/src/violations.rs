//! Messages that arrive before they can have been sent.

use anyhow::{Result, bail};
use st_cli::options::Steps;
use st_cli::{Amount, each_section};
use st_match::graph::{Barriers, Latency, Matcher, Survey, Tally, survey};
use st_model::columns::Column;
use st_model::num::Exact as _;
use st_model::section::Section;
use st_model::steps::Budget;

use crate::args::ViolationsArgs;
use crate::input::{Lacking, NAME};
use crate::table::{self, Cell, Table};
use crate::untimed::{NO_TIMES, without};

/// Matches the messages of a trace, section by section, and keeps its exact times.
#[derive(Debug)]
struct Reading {
    matcher: Matcher,
    /// In the order of the matcher's streams.
    times: Vec<Vec<i64>>,
    unit: u32,
}

impl Reading {
    fn within(budget: &Budget) -> Self {
        Self { matcher: Matcher::within(Barriers::default(), budget.clone()), times: Vec::new(), unit: 1 }
    }

    /// Told is how many times have been looked at: each is twice.
    fn survey(self, latency: Latency, tell: &dyn Fn(u64)) -> Result<(Survey, Vec<String>)> {
        let Self { matcher, times, unit } = self;
        if unit > 1 {
            bail!(Lacking(format!("times are rounded to {unit} ns: that makes violations, and hides some")));
        }
        let graph = matcher.finish();
        let issues = graph.issues.counts().map(|(what, n)| format!("{n} {what}: left out"));
        let survey = survey(
            &graph,
            |s| {
                tell(times[s].len().to_u64());
                times[s].iter().copied()
            },
            latency,
        );
        Ok((survey, issues.chain(graph.issues.examples.iter().map(ToString::to_string)).collect()))
    }

    fn add(&mut self, section: &Section) -> Result<()> {
        self.matcher.add(section)?;
        for rank in section.ranks.iter() {
            for thread in section.threads.iter().filter(|t| t.ranks.contains(rank)) {
                let column = thread.column(rank);
                self.unit = self.unit.max(column.map_or(1, Column::unit));
                self.times
                    .push(column.into_iter().flat_map(Column::times).flat_map(|(a, b)| [a, b]).collect());
            }
        }
        Ok(())
    }
}

/// Surveys a trace: what was found, and what could not be matched, in words.
pub(crate) fn find(args: &ViolationsArgs) -> Result<(Survey, Vec<String>)> {
    // Until one has times, none is read: there may be any number of calls.
    let (mut timed, mut untimed, budget) = (false, Vec::new(), args.of.input.steps.budget());
    let mut reading = Reading::within(&budget);
    let whole = each_section(&args.of.inputs, &args.of.input.shown(NAME, &args.of.talk), |_, section| {
        if section.histograms().next().is_some() {
            bail!("parameters are histograms (st-merge --histogram): messages cannot be matched");
        }
        timed |= section.has_times();
        untimed.push(section);
        let mut add = |section: Section| {
            // Messages are kept, and looked at again.
            let spent = budget.spend(&section, None, 2);
            if spent.is_ok() { reading.add(&section) } else { Ok(()) }
        };
        if timed { untimed.drain(..).try_for_each(&mut add) } else { Ok(()) }
    })?;
    budget.check()?;
    whole.remark(NAME, &args.of.talk);
    if !timed {
        bail!(Lacking(without(NO_TIMES, &whole.header)));
    }
    let latency = Latency { near: args.lmin_intra.unwrap_or(0), far: args.lmin_inter.unwrap_or(0) };
    let times = 2 * reading.times.iter().map(|t| t.len().to_u64()).sum::<u64>();
    let matching = args.of.talk.progress(NAME, "matching", Amount::Things("times", times));
    let found = reading.survey(latency, &|n| matching.advance(n))?;
    drop(matching);
    Ok(found)
}

/// The same of sections with exact times.
///
/// # Errors
///
/// If it takes more steps than are allowed, or times are too coarse.
pub(crate) fn survey_of(sections: &[Section], steps: &Steps) -> Result<Survey> {
    let budget = steps.budget();
    let mut reading = Reading::within(&budget);
    budget.spend_all(sections, None, 2)?;
    sections.iter().try_for_each(|section| reading.add(section))?;
    Ok(reading.survey(Latency { near: 0, far: 0 }, &|_| ())?.0)
}

/// Totals per kind of message.
pub(crate) fn totals(survey: &Survey) -> Table {
    let columns = vec![
        table::Column::left("messages", "messages"),
        table::Column::right("all", "all", 0),
        table::Column::right("reversed", "reversed", 0),
        table::Column::right("violated", "violated", 0),
        table::Column::right("mean error", "mean_error_ns", 0).spare(),
        table::Column::right("largest error", "largest_error_ns", 0),
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
    Table { columns, rows, total: None }
}

/// Pairs of ranks with violated messages, most first.
pub(crate) fn pairs(survey: &Survey) -> Table {
    let columns = vec![
        table::Column::right("from", "from_rank", 0),
        table::Column::right("to", "to_rank", 0),
        table::Column::right("reversed", "reversed", 0),
        table::Column::right("violated", "violated", 0),
        table::Column::right("largest error", "largest_error_ns", 0),
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
    Table { columns, rows: pairs.into_iter().map(row).collect(), total: None }
}
