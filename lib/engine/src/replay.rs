//! The part of st-replay that calls MPI: one rank of a replay.
//!
//! Every rank opens the trace itself, reads its own part, and interprets it call by call without expanding it. A call is
//! made again as itself; modules hold the calls by family. `unsafe` is confined to the modules that face MPI, the
//! recorder's pause entry and the kernel.

mod arguments;
mod attributes;
mod bookkeeping;
mod buffers;
mod call;
mod clock;
mod collective;
mod comm;
mod completion;
mod constants;
mod environment;
mod files;
mod group;
mod handlers;
mod handles;
mod info;
mod neighbor;
mod objects;
mod optional;
mod p2p;
mod partitioned;
mod pause;
mod persistent;
mod play;
mod probe;
mod queries;
mod rank_threads;
mod requests;
mod rma;
mod sampled_messages;
mod state;
mod stop;
mod texts;
mod topology;
mod types;
mod window;

use std::collections::HashSet;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use st_cli::{Launch, Status, UsageError, engine};
use st_replay::args::Args;
use st_replay::preflight::Preflight;
use st_replay::supported::Where;
use st_replay::whatif::placement;
use st_replay::{TOOL, launch, load};

pub use crate::replay::optional::exists;
use crate::replay::play::{Assignment, Prepared};

/// Runs the program: one rank of a replay.
#[must_use]
pub fn main() -> ExitCode {
    engine::start(TOOL, run)
}

fn run(args: &Args) -> Result<Status> {
    let job = Launch::current().context("this is one rank of a replay: start st-replay instead")?;
    let places = placement(args, job.size)?;
    let plays = places.iter().flatten().position(|process| *process == job.rank);
    let rank = plays.map_or(Ok(job.rank), u32::try_from)?;
    let assignment = Assignment { process: job.rank, rank, moved: places.is_some() };
    play::run(args, assignment, prepare(args, Launch { rank, ..job }))
}

/// Functions that a replay would call, and this MPI does not have.
fn lacking() -> HashSet<String> {
    let functions = handlers::handlers();
    functions.into_keys().filter(|name| !exists(name)).map(str::to_owned).collect()
}

/// Reads what this rank needs. Rank 0 looks at the whole trace, and speaks for all.
fn prepare(args: &Args, job: Launch) -> Result<Prepared> {
    let rank = job.rank;
    if rank == 0 {
        let (preflight, whole) = launch::survey(&args.trace, args, lacking())?;
        if !args.said {
            launch::remark(&preflight, &whole, args);
        }
        let header = whole.header;
        let world = preflight.world(&header);
        if job.size != world {
            let trace = args.trace.display();
            bail!(UsageError(format!("{trace} has {world} ranks: start {world}, not {}", job.size)));
        }
        launch::check(&preflight, &header, args)?;
    }
    let stops = if rank == 0 { launch::stops(&args.trace, args, lacking())? } else { None };
    match load::of_rank(&args.trace, &args.input, rank) {
        Ok(section) => {
            let here = Where { files: args.io.is_some(), lacking: lacking() };
            let mut mine = Preflight::new(here, args.scale_bytes);
            mine.see(&section)?;
            // Rank 0 has refused the trace.
            let refused = rank != 0 && !args.skip_unsupported && !mine.unsupported().is_empty();
            Ok(if refused { Prepared::Nothing } else { Prepared::Ready(Box::new(section), stops) })
        }
        // Rank 0 has seen the same trace and says what is wrong with it.
        Err(_) if rank != 0 => Ok(Prepared::Nothing),
        Err(error) => Err(error),
    }
}
