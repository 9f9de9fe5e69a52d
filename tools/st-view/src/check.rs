//! The proof: decoded calls against the hashes taken while recording.

use std::io::Write;

use anyhow::{Context, Result};
use st_cli::{Amount, Output, Status, counted, grouped};
use st_model::calls::LANES;
use st_model::check::{ThreadCheck, Verdict, check_telling};
use st_model::section::Section;

use crate::args::Args;
use crate::input::each;
use crate::tree::ranks;

/// What the lanes prove, in their order.
const NAMES: [&str; LANES] = ["calls", "sites", "endpoints", "counts", "tags", "rest"];

/// A section of fewer calls is checked in less than a second: how far that is need not be shown.
const MANY: u64 = 1 << 20;

/// Prints a line per thread of each section.
pub(crate) fn print(args: &Args, out: &mut Output) -> Result<Status> {
    let (mut passed, mut threads) = (true, 0u64);
    let budget = args.steps.budget();
    each(args, |_, section| {
        budget.spend(&section, None, 1)?;
        let calls = section.threads.iter().map(|t| t.lanes.calls).fold(0u64, u64::saturating_add);
        let amount = Amount::Things("calls", calls);
        let progress = (calls >= MANY).then(|| args.talk.progress("st-view", "checking", amount));
        let tell = |n| progress.iter().for_each(|p| p.advance(n));
        for c in check_telling(&section, tell).context("decoding")? {
            passed &= c.passed();
            threads += 1;
            writeln!(out, "{}", line(&section, &c))?;
        }
        Ok(())
    })?;
    args.talk.detail("st-view", format_args!("{threads} threads checked"));
    Ok(if passed { Status::Ok } else { Status::Difference })
}

fn line(section: &Section, c: &ThreadCheck) -> String {
    let of = section.threads.get(c.thread).map_or_else(String::new, |t| ranks(&t.ranks));
    let (recorded, decoded) = c.calls;
    let mut text = format!("{of} thread {}: {}", c.thread, counted(recorded, "call"));
    if recorded != decoded {
        text.push_str(&format!(" recorded, {} decoded: DIFFERS", grouped(decoded)));
    }
    for (name, verdict) in NAMES.iter().zip(c.lanes) {
        let verdict = match verdict {
            Verdict::Proved => "ok",
            Verdict::Voided => "voided",
            Verdict::Differs => "DIFFERS",
        };
        text.push_str(&format!(", {name} {verdict}"));
    }
    let columns = section.threads.get(c.thread).into_iter().flat_map(|t| &t.columns);
    if let Some(unit) = columns.map(|(_, column)| column.unit()).max().filter(|unit| *unit > 1) {
        text.push_str(&format!(", times rounded to {unit} ns"));
    }
    text
}
