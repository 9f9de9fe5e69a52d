//! The program st-merge.

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

/// A rank is many small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    st_tool::report("st-merge", st_merge::run(&st_merge::args::Args::parse()))
}
