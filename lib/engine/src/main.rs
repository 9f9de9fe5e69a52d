//! What a program becomes inside an MPI job: the one that it is started as ([`st_cli::engine`]).

use std::env;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;
use st_cli::transport::Transport;
use st_cli::{ByName, Output, Status, UsageError, engine};
use st_engine::{job, replay};
use st_sync::team::Team;

/// Where a rank is many small allocations; a replay has next to MPI's own memory only what it needs.
#[global_allocator]
static MEMORY: ByName<MiMalloc> = ByName::new(&[st_cluster::NAME, st_merge::NAME], MiMalloc);

fn main() -> ExitCode {
    let name = env::args_os().next().unwrap_or_default();
    match name.to_string_lossy().as_ref() {
        st_cluster::NAME => stage(st_cluster::NAME, st_cluster::run_in),
        st_merge::NAME => stage(st_merge::NAME, st_merge::run_in),
        st_replay::TOOL => replay::main(),
        st_sync::NAME => stage(st_sync::NAME, |args, job| st_sync::run_in(args, &mut Team::of(job))),
        _ if env::args_os().nth(1).is_some_and(|option| option == engine::LACKING) => {
            st_cli::report(engine::ENGINE, lacking())
        }
        _ => st_cli::report(engine::ENGINE, Err(UsageError(usage()).into())),
    }
}

/// A stage as one of several processes.
fn stage<A: Parser>(
    tool: &'static str,
    work: impl FnOnce(&A, &mut dyn Transport) -> anyhow::Result<Status>,
) -> ExitCode {
    match engine::parse::<A>(tool) {
        Ok(args) => job::run(tool, |job| work(&args, job)),
        Err(code) => code,
    }
}

/// Says which of the functions that are named this MPI does not have.
fn lacking() -> anyhow::Result<Status> {
    let mut out = Output::text(Path::new("-"))?;
    env::args().skip(2).filter(|name| !replay::exists(name)).try_for_each(|name| writeln!(out, "{name}"))?;
    out.commit()?;
    Ok(Status::Ok)
}

fn usage() -> String {
    let programs = [st_cluster::NAME, st_merge::NAME, st_replay::TOOL, st_sync::NAME].join(", ");
    format!("this is what {programs} become inside an MPI job: start one of them instead")
}
