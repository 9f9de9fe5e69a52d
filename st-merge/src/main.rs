//! The program st-merge.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use st_cli::Memory;

/// A rank is many small allocations.
#[global_allocator]
static MEMORY: Memory<MiMalloc> = Memory { tool: || st_merge::NAME, from: MiMalloc };

fn main() -> ExitCode {
    st_merge::main()
}
