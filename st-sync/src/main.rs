//! The program st-sync.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    st_tool::report("st-sync", st_sync::run(&st_sync::args::Args::parse()))
}
