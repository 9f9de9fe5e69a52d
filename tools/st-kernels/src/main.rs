//! `st-kernels`: MPI mini-programs, for real or on paper.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    st_tool::report("st-kernels", st_kernels::run(&st_kernels::Args::parse()))
}
