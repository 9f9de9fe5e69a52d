//! What `st-kernels` becomes inside an MPI job.

mod buffers;
mod communicator;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use st_cli::{Status, UsageError, counted, engine};
use st_kernels::{Args, Kernel, Options, Outcome};

use crate::MPI;

/// Runs the program: one rank of a kernel.
#[must_use]
pub fn main() -> ExitCode {
    engine::start("st-kernels", |args: &Args| {
        if args.paper.paper {
            bail!(UsageError("--paper is for st-kernels, which needs no engine".into()));
        }
        run(args.kernel, &args.options)
    })
}

fn run(kernel: Kernel, options: &Options) -> Result<Status> {
    let accept = |ranks| -> Result<()> {
        engine::check_world(MPI, ranks)?;
        kernel.check(ranks, options).map_err(|unfit| UsageError(unfit.to_string()))?;
        Ok(())
    };
    let world = communicator::Real::world();
    let Outcome { rank, ranks, checksum } = st_kernels::execute(&world, kernel, options, accept)?;
    if rank == 0 {
        let name = kernel.name();
        writeln!(
            std::io::stdout(),
            "{name}: {}, checksum {checksum:016x}",
            counted(ranks.unsigned_abs().into(), "rank")
        )
        .context("standard output")?;
    }
    Ok(Status::Ok)
}
