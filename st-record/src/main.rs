//! The program st-record.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match st_record::stand_in_words() {
        Some(words) => st_record::stand_in(&words),
        None => st_record::run(&st_record::args::Args::parse()),
    }
}
