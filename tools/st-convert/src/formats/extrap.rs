//! Series of runs for Extra-P, as JSON lines: a line for each run, call path and metric.
//!
//! Source: Extra-P 4.2, `docs/file-formats.md`. Values are those of one rank, the mean of all; that of the longest rank is a
//! metric of its own. Runs on equally many ranks are repetitions to Extra-P.

use std::io::Write as _;
use std::path::Path;

use anyhow::Result;
use serde_json::json;
use st_cli::Output;
use st_model::num::{Exact as _, float, narrow};

use crate::format::{Call, Format, FormatKind, Summary};
use crate::level::Level;
use crate::losses::Losses;
use crate::profile::{Profile, Sums};
use crate::trace::Trace;

pub(crate) const KIND: FormatKind = FormatKind {
    name: "extrap",
    endings: &[".jsonl"],
    about: "sums per call path of a series of runs, an input each, for Extra-P",
    needs_times: true,
    by_rank: true,
    levels: &[Level::Summary],
    whole_only: false,
    has_waits: true,
    lacks: &[],
    is_series: true,
    files_each: 0,
    bytes: 0,
    bears: u64::MAX,
    open,
};

struct Series {
    out: Output,
    profile: Profile,
    ranks: u32,
    waits: bool,
}

fn open<'a>(target: &Path, trace: &'a Trace) -> Result<Box<dyn Format + 'a>> {
    Ok(Box::new(Series {
        out: Output::text(target)?,
        profile: Profile::new(trace),
        ranks: trace.whole.header.world,
        waits: trace.waits,
    }))
}

impl Series {
    fn line(&mut self, path: &str, metric: &str, value: f64) -> Result<()> {
        let line = json!({"params": {"p": self.ranks}, "callpath": path, "metric": metric, "value": value});
        Ok(writeln!(self.out, "{line}")?)
    }
}

impl Format for Series {
    fn next_run(&mut self, trace: &Trace) {
        (self.profile, self.ranks) = (Profile::new(trace), trace.whole.header.world);
    }

    fn call(&mut self, call: &Call<'_>) -> Result<()> {
        self.profile.add(call);
        Ok(())
    }

    fn finish(&mut self, _: &Summary<'_>) -> Result<Losses> {
        let losses = self.profile.finish()?;
        let mut names: Vec<String> = Vec::new();
        for number in 0..self.profile.paths().len() {
            let path = &self.profile.paths()[number];
            // What it has between functions, C++ has in their names, too.
            let function = path.function.replace("->", "→");
            let caller = path.caller.and_then(|caller| names.get(caller.to_usize()));
            let name = caller.map_or_else(|| function.clone(), |caller| format!("{caller}->{function}"));
            let is_mpi = path.is_mpi;
            let all: Vec<Sums> =
                self.profile.ranks.iter().map(|rank| self.profile.of(narrow(number), *rank)).collect();
            let mean = |of: fn(&Sums) -> u64| {
                let sum: u128 = all.iter().map(|sums| u128::from(of(sums))).sum();
                float(sum) / float(all.len().to_u64().into())
            };
            let longest = all.iter().map(|sums| sums.ns).max().unwrap_or(0);
            self.line(&name, "time", mean(|sums| sums.ns) / 1e9)?;
            self.line(&name, "time_longest", float(longest.into()) / 1e9)?;
            if is_mpi {
                self.line(&name, "visits", mean(|sums| sums.visits))?;
                self.line(&name, "bytes_sent", mean(|sums| sums.sent))?;
                self.line(&name, "bytes_received", mean(|sums| sums.received))?;
            }
            if is_mpi && self.waits {
                self.line(&name, "wait", mean(|sums| sums.waits) / 1e9)?;
            }
            names.push(name);
        }
        Ok(losses)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.out.commit()
    }
}
