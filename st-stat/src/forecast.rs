//! How large the trace of a longer run of the same program will be.

use std::io::Write as _;

use anyhow::{Context as _, Result, bail};
use st_cli::options::Waits;
use st_cli::{Amount, Output, Screen, Status, UsageError, wrapped};
use st_forecast::{Bytes, Part, Recorded, Told, parts, sum};
use st_model::num::{float, rounded};

use crate::args::ForecastArgs;
use crate::input::{Lacking, NAME};
use crate::sizes::Sizes;
use crate::table::{Cell, Column, Format, Table, bytes, duration};

/// `st-stat forecast`.
pub(crate) fn forecast(args: &ForecastArgs) -> Result<Status> {
    let sizes = Sizes::of("forecast", &args.stream, &args.input, &args.talk)?;
    let trace = Recorded {
        file: sizes.file,
        frames: &sizes.frames,
        sections: &sizes.sections,
        level: sizes.level,
        budget: sizes.budget,
        waits: Waits::Auto.most(),
    };
    let ns = trace.whole();
    if ns == 0 {
        let name = &sizes.name;
        bail!(Lacking(format!("{name}: the trace holds no times: how long the run took is not known")));
    }
    let run = seconds(ns);
    if args.time < run {
        let (asked, run) = (shown(args.time), shown(run));
        bail!(UsageError(format!("--for {asked}: the trace is of a longer run, {run}")));
    }
    let progress = args.talk.progress(NAME, "recording again", Amount::Things("calls", 0));
    let tell = |told: Told| match told {
        Told::Expected(n) => progress.expect(n),
        Told::Done(n) => progress.advance(n),
    };
    let parts = parts(&trace, args.time / run, &args.input.steps.budget(), &tell);
    let parts = parts.with_context(|| sizes.name.clone())?;
    drop(progress);
    let mut out = Output::text(&args.output.output)?;
    let screen = Screen::of(&out);
    if args.format == Format::Text {
        let now: u64 = parts.iter().map(|p| p.now).sum();
        let all = sum(&parts);
        let line = format!(
            "{} of {}: in {} about {} ({} to {})",
            bytes(now),
            shown(run),
            shown(args.time),
            bytes(rounded(all.likely)),
            bytes(rounded(all.least)),
            bytes(rounded(all.most)),
        );
        wrapped(line.split(' '), screen.width, ["", ""])
            .iter()
            .try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out)?;
    }
    table(&parts).write(args.format, screen, &mut out)?;
    out.commit()?;
    Ok(Status::Ok)
}

fn shown(seconds: f64) -> String {
    duration(rounded(seconds * 1e9))
}

fn seconds(ns: u128) -> f64 {
    float(ns) / 1e9
}

fn table(parts: &[Part]) -> Table {
    let row = |name: &str, now: u64, then: Bytes, why: &str| {
        vec![
            Cell::text(name),
            Cell::bytes(now.into()),
            Cell::bytes(rounded(then.likely).into()),
            Cell::bytes(rounded(then.least).into()),
            Cell::bytes(rounded(then.most).into()),
            Cell::text(why),
        ]
    };
    let columns = vec![
        Column::left("part", "part"),
        Column::right("now", "now_bytes", 0),
        Column::right("then", "then_bytes", 0),
        Column::right("at least", "least_bytes", 1),
        Column::right("at most", "most_bytes", 1),
        Column::left("since", "cause"),
    ];
    let rows = parts.iter().map(|p| row(p.name, p.now, p.then, &p.why)).collect();
    let now = parts.iter().map(|p| p.now).sum();
    Table { columns, rows, total: Some(row("total", now, sum(parts), "")) }
}
