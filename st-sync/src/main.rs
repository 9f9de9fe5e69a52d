//! The program st-sync.

use std::process::ExitCode;

use st_sync::args::Args;
use st_tool::engine;

fn main() -> ExitCode {
    match engine::parse::<Args>() {
        Ok(args) => st_tool::report(st_sync::NAME, st_sync::run(&args)),
        Err(code) => code,
    }
}
