//! The program st-stat.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    st_tool::report("st-stat", st_stat::run(&st_stat::args::Args::parse()))
}
