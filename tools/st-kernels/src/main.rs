//! `st-kernels`: MPI mini-programs, for real or on paper.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A rank is many small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    st_kernels::main()
}
