//! Option groups. A program flattens (`#[command(flatten)]`) the groups it honours, and no others.

use crate::{Output, Progress};
use clap::{Args, ValueEnum};
use st_trace::stream::WriteOptions;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread::available_parallelism;

/// When to do something that suits people more than programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum When {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How much is said on standard error. Errors are always printed.
#[derive(Args, Clone, Debug, Default)]
pub struct Talk {
    /// Say nothing but errors
    #[arg(short, long, help_heading = "Talk")]
    pub quiet: bool,
    /// Say more about what is done
    #[arg(short, long, conflicts_with = "quiet", help_heading = "Talk")]
    pub verbose: bool,
}

impl Talk {
    /// Prints `tool: message` on standard error, unless quiet.
    pub fn note(&self, tool: &str, message: impl fmt::Display) {
        if !self.quiet {
            say(tool, message);
        }
    }

    /// Prints `tool: message` on standard error if more talk was asked for.
    pub fn detail(&self, tool: &str, message: impl fmt::Display) {
        if self.verbose {
            say(tool, message);
        }
    }

    /// Prints `tool: warning: message` on standard error, unless quiet.
    pub fn warn(&self, tool: &str, message: impl fmt::Display) {
        self.note(tool, format_args!("warning: {message}"));
    }
}

fn say(tool: &str, message: impl fmt::Display) {
    // A closed standard error must not stop the work.
    let _ = writeln!(io::stderr().lock(), "{tool}: {message}");
}

/// Progress on standard error, for programs that may work long.
#[derive(Args, Clone, Debug, Default)]
pub struct ProgressOption {
    /// Show progress on standard error
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", help_heading = "Talk")]
    pub progress: When,
}

impl ProgressOption {
    /// A progress line that ends at `total`, hidden if it is not wanted.
    #[must_use]
    pub fn start(&self, tool: &str, what: &str, total: u64) -> Progress {
        let visible = match self.progress {
            When::Auto => io::stderr().is_terminal(),
            When::Always => true,
            When::Never => false,
        };
        Progress::new(tool, what, total, visible)
    }
}

/// Colour in text on standard output.
#[derive(Args, Clone, Debug, Default)]
pub struct ColorOption {
    /// Colour the text
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", help_heading = "Talk")]
    pub color: When,
}

impl ColorOption {
    /// Whether text on standard output is to be coloured. `auto` respects `NO_COLOR` and `TERM=dumb`.
    #[must_use]
    pub fn on_stdout(&self) -> bool {
        let refused = || {
            std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
                || std::env::var_os("TERM").is_some_and(|v| v == "dumb")
        };
        match self.color {
            When::Auto => io::stdout().is_terminal() && !refused(),
            When::Always => true,
            When::Never => false,
        }
    }
}

/// How streams are read.
#[derive(Args, Clone, Debug, Default)]
pub struct StreamIn {
    /// Use what a truncated input still holds
    #[arg(long, help_heading = "Input")]
    pub partial: bool,
}

/// Where text goes.
#[derive(Args, Clone, Debug)]
pub struct TextOut {
    /// Write to FILE, replacing it when complete; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-", help_heading = "Output")]
    pub output: PathBuf,
}

/// Where a stream goes, and how it is written.
#[derive(Args, Clone, Debug)]
pub struct StreamOut {
    /// Write to FILE, replacing it when complete; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-", help_heading = "Output")]
    pub output: PathBuf,
    /// Do not append this program to the trace's provenance
    #[arg(long, help_heading = "Output")]
    pub no_provenance: bool,
    /// Compression of the frames: 0 (none) to 22 (smallest) [default: 19 for a file, 1 for a pipe]
    #[arg(long, value_name = "N", help_heading = "Output",
          value_parser = clap::value_parser!(u8).range(0..=22))]
    pub level: Option<u8>,
}

impl StreamOut {
    /// How frames are written to the output that was opened.
    #[must_use]
    pub fn write_options(&self, output: &Output) -> WriteOptions {
        let usual = if output.is_stdout() { WriteOptions::PIPE } else { WriteOptions::FILE };
        self.level.map_or(usual, |level| WriteOptions { level })
    }
}

/// How many threads work.
#[derive(Args, Clone, Debug, Default)]
pub struct Jobs {
    /// Use N threads (default: one per processor)
    #[arg(short, long, value_name = "N", help_heading = "Work")]
    pub jobs: Option<NonZeroUsize>,
}

impl Jobs {
    /// The number of threads to use.
    #[must_use]
    pub fn count(&self) -> NonZeroUsize {
        self.jobs.or_else(|| available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    /// About all
    #[derive(Parser)]
    struct All {
        #[command(flatten)]
        talk: Talk,
        #[command(flatten)]
        progress: ProgressOption,
        #[command(flatten)]
        color: ColorOption,
        #[command(flatten)]
        input: StreamIn,
        #[command(flatten)]
        output: StreamOut,
        #[command(flatten)]
        jobs: Jobs,
    }

    #[test]
    fn the_groups_fit_together() {
        All::command().debug_assert();
        assert_eq!(All::command().get_about().unwrap().to_string(), "About all");
        let all = All::parse_from(["x", "-q", "-j3", "-o", "a.st", "--level", "0", "--progress", "always"]);
        assert!(all.talk.quiet && !all.talk.verbose && !all.input.partial && !all.output.no_provenance);
        assert_eq!((all.jobs.count().get(), all.output.level), (3, Some(0)));
        assert_eq!(all.output.output, PathBuf::from("a.st"));
        assert_eq!((all.progress.progress, all.color.color), (When::Always, When::Auto));
        assert!(!ColorOption { color: When::Never }.on_stdout());
    }

    #[test]
    fn contradictions_are_usage_errors() {
        assert!(All::try_parse_from(["x", "-q", "-v"]).is_err());
        assert!(All::try_parse_from(["x", "-j0"]).is_err());
        assert!(All::try_parse_from(["x", "--level", "23"]).is_err());
    }
}
