//! `st-kernels`: MPI mini-programs, for real or on paper.

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

/// A rank is many small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    st_tool::report("st-kernels", st_kernels::run(&st_kernels::Args::parse()))
}
