//! The program st-merge.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    st_tool::report("st-merge", st_merge::run(&st_merge::args::Args::parse()))
}
