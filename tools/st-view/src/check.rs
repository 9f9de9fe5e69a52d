//! The proof: decoded calls against the hashes taken while recording.

use std::io::Write;

use anyhow::{Context, Result};
use st_cli::{Amount, Output, Screen, Status, counted, grouped, wrapped};
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

/// Prints what each thread of each section is found to be, in a line if there is room.
pub(crate) fn print(args: &Args, out: &mut Output) -> Result<Status> {
    let (mut passed, mut threads) = (true, 0u64);
    let budget = args.input.steps.budget();
    let width = Screen::of(out).width;
    each(args, |_, section| {
        budget.spend_reading(&section)?;
        let calls = section.threads.iter().map(|t| t.lanes.calls).fold(0u64, u64::saturating_add);
        let amount = Amount::Things("calls", calls);
        let progress = (calls >= MANY).then(|| args.talk.progress("st-view", "checking", amount));
        let tell = |n| progress.iter().for_each(|p| p.advance(n));
        for c in check_telling(&section, tell).context("decoding")? {
            passed &= c.passed();
            threads += 1;
            for line in lines(&section, &c, width) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    })?;
    args.talk.detail("st-view", format_args!("{threads} threads checked"));
    Ok(if passed { Status::Ok } else { Status::Difference })
}

fn lines(section: &Section, c: &ThreadCheck, width: usize) -> Vec<String> {
    let of = section.threads.get(c.thread).map_or_else(String::new, |t| ranks(&t.ranks));
    let (recorded, decoded) = c.calls;
    let mut head = format!("{of} thread {}: {}", c.thread, counted(recorded, "call"));
    if recorded != decoded {
        head.push_str(&format!(" recorded, {} decoded: DIFFERS", grouped(decoded)));
    }
    let columns = section.threads.get(c.thread).into_iter().flat_map(|t| &t.columns);
    if let Some(unit) = columns.map(|(_, column)| column.unit()).max().filter(|unit| *unit > 1) {
        head.push_str(&format!(", times rounded to {unit} ns"));
    }
    let verdict = |(name, verdict): (&&str, Verdict)| match verdict {
        Verdict::Proved => format!("{name} ok"),
        Verdict::Voided => format!("{name} voided"),
        Verdict::Differs => format!("{name} DIFFERS"),
    };
    let verdicts = NAMES.iter().zip(c.lanes).map(verdict).collect::<Vec<_>>().join(", ");
    let whole = format!("{head}, {verdicts}");
    if whole.chars().count() <= width {
        return vec![whole];
    }
    [(&head, ""), (&verdicts, "  ")]
        .into_iter()
        .flat_map(|(text, indent)| wrapped(text.split(' '), width, [indent, "  "]))
        .collect()
}
