//! The program st-cluster.

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

/// A rank is many small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    st_tool::report("st-cluster", st_cluster::run(&st_cluster::args::Args::parse()))
}
