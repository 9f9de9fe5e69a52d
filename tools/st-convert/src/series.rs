//! Whether traces that are written as a series are runs of one program on several numbers of ranks.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};
use st_cli::options::Talk;
use st_cli::{UsageError, counted};
use st_model::num::Exact as _;

use crate::NAME;
use crate::trace::Trace;

/// Refuses parts of one run, and says what makes a series of doubtful worth: other programs, ranks that are missing or not asked for, and that all
/// are on equally many ranks. Builds for each number of ranks may have names of their own.
///
/// # Errors
///
/// If two traces hold ranks of one run.
pub(crate) fn check(runs: &[(String, Trace)], name: &str, talk: &Talk) -> Result<()> {
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    for (named, trace) in runs {
        let header = &trace.whole.header;
        let other = known.insert(&header.run, named).filter(|_| !header.run.is_empty());
        if let Some(other) = other {
            bail!(UsageError(format!(
                "{named}: is of the same run as {other}, and {name} takes each input for a run: give the directory that holds all of its streams"
            )));
        }
        let world = header.world;
        let ranks = trace.lanes.chunk_by(|a, b| a.rank == b.rank).count();
        if ranks.to_u64() < world.to_u64() {
            let ranks = counted(ranks.to_u64(), "rank");
            talk.warn(NAME, format_args!("{named}: means are those of {ranks}, told as a run on {world}"));
        }
    }
    let program = |trace: &Trace| {
        let program = &trace.whole.header.program;
        Path::new(program)
            .file_name()
            .map_or_else(|| program.clone(), |name| name.to_string_lossy().into_owned())
    };
    let Some(((first, of), rest)) = runs.split_first() else { return Ok(()) };
    for (named, trace) in rest.iter().filter(|(_, trace)| program(trace) != program(of)) {
        let (program, other) = (program(trace), program(of));
        talk.warn(
            NAME,
            format_args!("{named} is of {program}, {first} of {other}: unless that is one program, their series tells nothing"),
        );
    }
    let world = of.whole.header.world;
    if rest.iter().all(|(_, trace)| trace.whole.header.world == world) {
        talk.warn(
            NAME,
            format_args!(
                "all runs are on {world} ranks: there is no series to model without runs on other numbers of ranks"
            ),
        );
    }
    Ok(())
}
