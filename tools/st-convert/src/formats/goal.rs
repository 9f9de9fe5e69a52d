//! GOAL, the schedules of LogGOPSim and ATLAHS: operations of each rank, and which must end before others begin.
//!
//! Source: Hoefler, Siebert, Lumsdaine 2009, Group Operation Assembly Language; times are in ns.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use foldhash::fast::FixedState;
use st_cli::Output;
use st_model::num::Exact as _;

use crate::format::{Call, Format, FormatKind, Summary};
use crate::level::Level;
use crate::losses::Losses;
use crate::script::{LACKS, Op, Script};
use crate::trace::Trace;

pub(crate) const KIND: FormatKind = FormatKind {
    name: "goal",
    endings: &[".goal"],
    about: "a schedule in GOAL: LogGOPSim, ATLAHS",
    needs_times: false,
    by_rank: true,
    levels: &[Level::Calls],
    whole_only: true,
    has_waits: false,
    lacks: LACKS,
    is_series: false,
    files_each: 0,
    bytes: 100,
    bears: 20_000_000_000,
    open,
};

/// Operations that are waited for by name; of more, the next ones wait for one that waits for all: else each of those that go on
/// would name all that have ended since the last one that did not.
const NAMED: usize = 4;

/// The rank that is being written.
#[derive(Default)]
struct Schedule {
    label: u64,
    /// What must end before the next operation begins.
    before: Vec<u64>,
    /// Labels of what has begun, by its number.
    begun: HashMap<u64, u64, FixedState>,
}

struct Goal {
    out: Option<Output>,
    script: Script,
    rank: Option<(usize, Schedule)>,
}

fn open<'a>(target: &Path, trace: &'a Trace) -> Result<Box<dyn Format + 'a>> {
    let script = Script::new(trace, KIND.name)?;
    let mut out = Output::text(target)?;
    writeln!(out, "num_ranks {}", script.ranks().len())?;
    Ok(Box::new(Goal { out: Some(out), script, rank: None }))
}

impl Schedule {
    fn write(&mut self, out: &mut impl Write, op: Op) -> Result<()> {
        let (text, goes_on, id) = match op {
            Op::Compute(ns) => (format!("calc {ns}"), false, None),
            Op::Send(e) => (format!("send {}b to {} tag {}", e.bytes, e.peer, e.tag), false, None),
            Op::Receive(e) => (format!("recv {}b from {} tag {}", e.bytes, e.peer, e.tag), false, None),
            Op::Isend(e, id) => (format!("send {}b to {} tag {}", e.bytes, e.peer, e.tag), true, Some(id)),
            Op::Ireceive(e, id) => {
                (format!("recv {}b from {} tag {}", e.bytes, e.peer, e.tag), true, Some(id))
            }
            Op::Wait(_, id, _) => {
                self.before.extend(self.begun.remove(&id));
                return Ok(());
            }
        };
        if goes_on && self.before.len() > NAMED {
            let all = self.line(out, "calc 0")?;
            self.before = vec![all];
        }
        let label = self.line(out, &text)?;
        if goes_on {
            self.begun.extend(id.map(|id| (id, label)));
        } else {
            self.before = vec![label];
        }
        Ok(())
    }

    /// Writes an operation behind what must end before; its label.
    fn line(&mut self, out: &mut impl Write, text: &str) -> Result<u64> {
        self.label += 1;
        let label = self.label;
        writeln!(out, "l{label}: {text}")?;
        self.before.iter().try_for_each(|before| writeln!(out, "l{label} requires l{before}"))?;
        Ok(label)
    }
}

impl Goal {
    fn end_rank(&mut self) -> Result<()> {
        let (Some((_, mut schedule)), Some(out)) = (self.rank.take(), &mut self.out) else { return Ok(()) };
        self.script.end(|op| schedule.write(out, op))?;
        writeln!(out, "}}")?;
        Ok(())
    }
}

impl Format for Goal {
    fn call(&mut self, call: &Call<'_>) -> Result<()> {
        let me = call.at.to_usize();
        if self.rank.as_ref().is_none_or(|(rank, _)| *rank != me) {
            self.end_rank()?;
            self.out.iter_mut().try_for_each(|out| writeln!(out, "\nrank {me} {{"))?;
            self.rank = Some((me, Schedule::default()));
        }
        let (Some((_, schedule)), Some(out)) = (&mut self.rank, &mut self.out) else { return Ok(()) };
        self.script.call(call, |op| schedule.write(out, op))
    }

    fn finish(&mut self, _: &Summary<'_>) -> Result<Losses> {
        self.end_rank()?;
        Ok(std::mem::take(&mut self.script.losses))
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.out.map_or(Ok(()), Output::commit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::End;

    #[test]
    fn what_has_ended_is_named_once_however_many_calls_go_on() {
        let (mut schedule, mut out) = (Schedule::default(), Vec::new());
        let (turns, end) = (1000, End { peer: 1, bytes: 8, tag: 0 });
        for id in 0..turns {
            schedule.write(&mut out, Op::Isend(end, id)).unwrap();
            schedule.write(&mut out, Op::Wait(end, id, false)).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().filter(|line| line.contains("send")).count(), 1000);
        assert!(text.lines().count() < 10 * 1000, "{} lines", text.lines().count());
        // Nothing is forgotten: what begins last waits, by way of others, for what began first.
        let mut first = vec!["l1"];
        for line in text.lines() {
            if let Some((label, needed)) = line.split_once(" requires ")
                && first.contains(&needed)
            {
                first.push(label);
            }
        }
        let last = text.lines().next_back().and_then(|line| line.split([' ', ':']).next());
        assert_eq!(first.last().copied(), last);
    }
}
