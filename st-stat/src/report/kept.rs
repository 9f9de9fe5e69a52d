//! What the trace itself is: where its bytes go, which tools made it, and how far its clocks agree.

use std::path::Path;

use anyhow::Result;
use st_cli::Whole;
use st_model::section::Section;
use st_model::sites::CallSites;

use super::data::{Clocks, Columns, Kept};
use super::room::Room;
use super::told::unless_too_long;
use crate::args::ReportArgs;
use crate::explain::Explained;
use crate::input::Lacking;
use crate::sizes::{Parts, frames_of};
use crate::table::{Cell, Column, Table};
use crate::violations;

/// What corrects clocks.
const CORRECTS: &str = "st-sync";

/// Tables of what is kept.
pub(super) struct Holding {
    tools: Vec<String>,
    /// By frame, call site and parameter.
    sizes: Option<[Table; 3]>,
    no_sizes: Option<String>,
    corrected: bool,
    /// Messages that arrive before they were sent, in all and by pair of ranks; why these are not known.
    violations: Option<[Table; 2]>,
    no_violations: Option<String>,
    offsets: Table,
}

/// Why sizes cannot be told of what is read, if they cannot.
fn no_sizes(inputs: &[std::path::PathBuf]) -> Option<String> {
    let one = matches!(inputs, [one] if one != Path::new("-") && one.is_file());
    (!one).then(|| {
        "Bytes are told of a trace in one file: st-merge makes it, st-stat sizes tells them of each."
            .to_owned()
    })
}

/// A tool with its arguments.
fn tools(whole: &Whole) -> Vec<String> {
    let line = |step: &st_model::header::Step| {
        let words = std::iter::once(&step.tool).chain(&step.args).map(String::as_str);
        format!("{} (version {})", words.collect::<Vec<_>>().join(" "), step.version)
    };
    whole.provenance.iter().map(line).collect()
}

/// Comparisons of clocks with that of rank 0, a row each.
fn offsets(sections: &[Section]) -> Table {
    let signed = |ns: i64| {
        let text = crate::table::duration(ns.unsigned_abs());
        Cell::shown(ns.into(), if ns < 0 { format!("-{text}") } else { text })
    };
    let columns = vec![
        Column::right("rank", "rank", 0),
        Column::right("at", "local_ns", 0),
        Column::right("offset", "offset_ns", 0),
        Column::right("error at most", "error_ns", 0),
    ];
    let of = sections.iter().flat_map(|s| &s.threads).flat_map(|t| &t.columns);
    let mut rows: Vec<(u32, Vec<Cell>)> = Vec::new();
    for (rank, column) in of {
        let points = column.clock.points.iter();
        rows.extend(points.map(|p| {
            (*rank, vec![Cell::count((*rank).into()), signed(p.local), signed(p.offset), signed(p.error)])
        }));
    }
    rows.sort_by_key(|(rank, _)| *rank);
    Table { columns, rows: rows.into_iter().map(|(_, row)| row).collect(), total: None }
}

/// Messages that arrive before they were sent, in all and by pair of ranks; or why they are not known.
fn compared(args: &ReportArgs, explained: &Explained) -> Result<(Option<[Table; 2]>, Option<String>)> {
    if explained.analysis.is_none() && explained.too_long.is_none() {
        return Ok((
            None,
            Some("the trace holds no exact times that messages could be compared with".into()),
        ));
    }
    let mut lacks = Vec::new();
    let found = match violations::survey_of(&explained.sections, &args.input.steps) {
        Err(e) if e.is::<Lacking>() => return Ok((None, Some(e.to_string()))),
        found => unless_too_long(found, "violations are not shown", &mut lacks)?,
    };
    Ok((found.map(|found| [violations::totals(&found), violations::pairs(&found)]), lacks.pop()))
}

impl Holding {
    /// Of a trace that has been read.
    ///
    /// # Errors
    ///
    /// If its file cannot be read once more, or its messages not be matched.
    pub(super) fn of(args: &ReportArgs, explained: &Explained, sites: &CallSites) -> Result<Self> {
        let (sections, whole) = (&explained.sections, &explained.whole);
        let why = no_sizes(&args.inputs);
        let sizes = match args.inputs.first().filter(|_| why.is_none()) {
            Some(path) => {
                let (file, frames) = frames_of(path, &args.input)?;
                let parts = Parts { file, frames: &frames, sections, sites };
                Some([parts.frames(), parts.sites()?, parts.parameters()?])
            }
            None => None,
        };
        let (violations, no_violations) = compared(args, explained)?;
        Ok(Self {
            tools: tools(whole),
            sizes,
            no_sizes: why,
            corrected: whole.provenance.iter().any(|step| step.tool == CORRECTS),
            violations,
            no_violations,
            offsets: offsets(sections),
        })
    }

    /// What fits into the room.
    pub(super) fn shown(&self, room: Room) -> Kept {
        let held = |table: &Table| Columns::of(table, room.sites, room.texts);
        let table = |i: usize| self.sizes.as_ref().and_then(|all| all.get(i)).map(held);
        let violation = |i: usize| self.violations.as_ref().and_then(|all| all.get(i)).map(held);
        Kept {
            tools: self
                .tools
                .iter()
                .take(room.sites)
                .map(|line| line.chars().take(room.texts).collect())
                .collect(),
            frames: table(0),
            sites: table(1),
            parameters: table(2),
            no_sizes: self.no_sizes.clone(),
            clocks: Clocks {
                corrected: self.corrected,
                violations: violation(0),
                pairs: violation(1).filter(|pairs| pairs.rows > 0),
                no_violations: self.no_violations.clone(),
                offsets: Some(&self.offsets).filter(|all| !all.rows.is_empty()).map(held),
            },
        }
    }
}
