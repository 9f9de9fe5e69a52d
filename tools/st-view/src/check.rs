//! The proof: decoded calls against the hashes taken while recording.

use std::io::Write;

use anyhow::{Context, Result};
use st_cli::{Amount, Output, Screen, Status, counted, grouped, wrapped};
use st_model::calls::LANES;
use st_model::check::{ThreadCheck, Verdict, check_telling};
use st_model::ranklist::RankList;
use st_model::section::Section;

use crate::args::Args;
use crate::input::each;
use crate::tree::ranks;

/// What the lanes prove, in their order.
const NAMES: [&str; LANES] = ["calls", "sites", "endpoints", "counts", "tags", "rest"];

/// A section of fewer calls is checked in less than a second: how far that is need not be shown.
const MANY: u64 = 1 << 20;

/// Prints what threads are found to be, in a line if there is room: those that follow each other, and of which the same is proved,
/// together.
pub(crate) fn print(args: &Args, out: &mut Output) -> Result<Status> {
    let (mut passed, mut threads) = (true, 0u64);
    let budget = args.input.steps.budget();
    let width = Screen::of(out).width;
    let mut alike: Option<Alike> = None;
    each(args, |_, section| {
        if budget.spend_reading(&section).is_err() {
            return Ok(());
        }
        let calls = section.threads.iter().map(|t| t.lanes.calls).fold(0u64, u64::saturating_add);
        let amount = Amount::Things("calls", calls);
        let progress = (calls >= MANY).then(|| args.talk.progress("st-view", "checking", amount));
        let tell = |n| progress.iter().for_each(|p| p.advance(n));
        for c in check_telling(&section, tell).context("decoding")? {
            passed &= c.passed();
            threads += 1;
            let next = Alike::of(&section, &c);
            if let Some(before) = alike.as_mut().filter(|before| before.takes(&next)) {
                before.add(next);
            } else if let Some(before) = alike.replace(next) {
                before.print(width, out)?;
            }
        }
        Ok(())
    })?;
    budget.check()?;
    alike.map_or(Ok(()), |last| last.print(width, out))?;
    args.talk.detail("st-view", format_args!("{threads} threads checked"));
    Ok(if passed { Status::Ok } else { Status::Difference })
}

/// Threads of which the same is found.
struct Alike {
    ranks: RankList,
    /// How many there are, and the index of the first.
    threads: u64,
    first: usize,
    /// Calls recorded.
    calls: u64,
    /// They are as they were recorded, so that no more needs to be said of one.
    same: bool,
    /// What is said of each.
    differs: String,
    verdicts: String,
}

impl Alike {
    fn of(section: &Section, c: &ThreadCheck) -> Self {
        let thread = section.threads.get(c.thread);
        let (recorded, decoded) = c.calls;
        let mut differs = String::new();
        if recorded != decoded {
            differs = format!(" recorded, {} decoded: DIFFERS", grouped(decoded));
        }
        let columns = thread.into_iter().flat_map(|t| &t.columns);
        if let Some(unit) = columns.map(|(_, column)| column.unit()).max().filter(|unit| *unit > 1) {
            differs.push_str(&format!(", times rounded to {unit} ns"));
        }
        let verdict = |(name, verdict): (&&str, Verdict)| match verdict {
            Verdict::Proved => format!("{name} ok"),
            Verdict::Voided => format!("{name} voided"),
            Verdict::Differs => format!("{name} DIFFERS"),
        };
        let verdicts = NAMES.iter().zip(c.lanes).map(verdict).collect::<Vec<_>>().join(", ");
        let of = thread.map_or_else(RankList::default, |t| t.ranks.clone());
        Self { ranks: of, threads: 1, first: c.thread, calls: recorded, same: c.passed(), differs, verdicts }
    }

    /// Whether the next thread is said with these.
    fn takes(&self, next: &Self) -> bool {
        self.same && next.same && (&self.differs, &self.verdicts) == (&next.differs, &next.verdicts)
    }

    fn add(&mut self, next: Self) {
        // The next thread of a rank adds no rank, and to look for it would take time by the number of ranks.
        if next.ranks.len() > 1 || next.ranks.highest() != self.ranks.highest() {
            self.ranks.extend(&next.ranks);
        }
        self.threads += 1;
        self.calls = self.calls.saturating_add(next.calls);
    }

    fn print(&self, width: usize, out: &mut Output) -> Result<()> {
        let of = ranks(&self.ranks);
        let who = match self.threads {
            1 => format!("{of} thread {}", self.first),
            n => format!("{} of {of}", counted(n, "thread")),
        };
        let head = format!("{who}: {}{}", counted(self.calls, "call"), self.differs);
        let whole = format!("{head}, {}", self.verdicts);
        let lines = if whole.chars().count() <= width {
            vec![whole]
        } else {
            let texts = [(&head, ""), (&self.verdicts, "  ")].into_iter();
            texts.flat_map(|(text, indent)| wrapped(text.split(' '), width, [indent, "  "])).collect()
        };
        Ok(lines.iter().try_for_each(|line| writeln!(out, "{line}"))?)
    }
}
