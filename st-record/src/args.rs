//! The command line.

use crate::size::parse_size;
use clap::{Parser, ValueEnum};
use st_tool::options::Talk;
use std::ffi::OsString;
use std::path::PathBuf;

/// Record the MPI calls of a program that is not changed, not even relinked
///
/// Outside of mpirun, starts the job and leaves one file; inside (mpirun -n 4 st-record -o run -- ./app), starts one
/// rank and leaves one stream per rank in a directory. The program's output and exit status are its own.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "st-record",
    version,
    after_help = "Examples:\n  st-record -- mpirun -n 4 ./app\n  mpirun -n 4 st-record -o run -- ./app\n\n\
        Exit status: the program's own; 125 if st-record fails before it starts, 127 if it is not found."
)]
pub struct Args {
    /// Where the trace goes: a file, which is replaced, or inside mpirun a directory (default: from the program's
    /// name and the number of ranks)
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// What is kept of the times: exact ones beside sketches (distributions per event and predecessor), sketches, or nothing
    #[arg(long, value_enum, default_value_t, value_name = "WHAT", help_heading = "Recording")]
    pub time: Time,
    /// After this much per rank exact times stop, and sketches go on
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_size, help_heading = "Recording")]
    pub time_budget: u64,
    /// Frames kept per call site, innermost first
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=64),
          help_heading = "Recording")]
    pub stack_depth: u32,
    /// Do not compare the ranks' clocks in MPI_Init and MPI_Finalize (needed if only some ranks of a job are recorded)
    #[arg(long, help_heading = "Recording")]
    pub no_sync: bool,
    /// Talk.
    #[command(flatten)]
    pub talk: Talk,
    /// The command that starts the job, or inside mpirun the program
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What is kept of the times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Time {
    /// Exact times and sketches
    #[default]
    Columns,
    /// Sketches
    Sketch,
    /// Nothing
    None,
}

impl Args {
    /// The options as the recorder's environment variables, without `ST_OUTPUT`.
    #[must_use]
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let time = match self.time {
            Time::Columns => "columns",
            Time::Sketch => "sketch",
            Time::None => "none",
        };
        vec![
            ("ST_TIME", time.into()),
            ("ST_TIME_BUDGET", self.time_budget.to_string().into()),
            ("ST_STACK_DEPTH", self.stack_depth.to_string().into()),
            ("ST_SYNC", if self.no_sync { "0" } else { "1" }.into()),
            ("ST_QUIET", if self.talk.quiet { "1" } else { "0" }.into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn options_after_the_command_are_its_own() {
        Args::command().debug_assert();
        let a = Args::parse_from(["st-record", "-o", "x.st", "--", "mpirun", "-n", "4", "./a", "-o", "y"]);
        assert_eq!(a.command, ["mpirun", "-n", "4", "./a", "-o", "y"].map(OsString::from));
        let b = Args::parse_from(["st-record", "mpirun", "-n", "4", "./a", "-q"]);
        assert_eq!((b.command.len(), b.talk.quiet, b.time_budget), (5, false, 256 << 20));
        assert!(Args::try_parse_from(["st-record"]).is_err());
        assert!(Args::try_parse_from(["st-record", "--ouptut", "x.st", "./a"]).is_err());
        assert!(Args::try_parse_from(["st-record", "--time", "exact", "x"]).is_err());
    }
}
