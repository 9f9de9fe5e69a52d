//! The program st-view.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    st_tool::report("st-view", st_view::run(&st_view::args::Args::parse()))
}
