//! The kernels as an MPI program, to be recorded.

use std::process::ExitCode;

fn main() -> ExitCode {
    st_engine::kernels::main()
}
