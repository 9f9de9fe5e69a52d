//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use st_cli::options::{Asked, Keeping, StreamIn, StreamOut, Talk};
use st_reduce::cluster::{self, Options, Tolerance};
use st_reduce::options::{Forced, Known};
use st_reduce::user::Error;

const EXAMPLES: &str = "\
Examples:
  st-cluster run/ | st-merge -o app.st     a merge that sees one section per behaviour
  st-cluster run/ | st-stat clusters       which ranks behave alike, and what the others do differently
  st-cluster --signature paper --count-tolerance 5% -o c.st run/
                                           as published: counts within 5 % are equal, and other things may be
  st-cluster --let nr=8 --param MPI_Send:dest '(me % nr) * nr + me / nr' run/
                                           ranks that send to the transposed rank of 8 by 8 are alike in that";

/// Which signatures tell ranks apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Signatures {
    /// 128 bits over calls in their order, parameters in the form that makes most ranks equal; nothing is lost
    #[default]
    Exact,
    /// The 64 bits of Bahmani and Mueller 2014: the calls of a cluster's first rank and one rank's counts of messages stand for all, and the lanes in
    /// which they are not what others did are void; partners are relative modulo the number of ranks
    Paper,
    /// All calls with all parameters as they are, peers relative to the own rank (the paper's reference); nothing is lost
    Reference,
}

impl From<Signatures> for cluster::Signatures {
    fn from(which: Signatures) -> Self {
        match which {
            Signatures::Exact => Self::Exact,
            Signatures::Paper => Self::Paper,
            Signatures::Reference => Self::Reference,
        }
    }
}

/// Put ranks that behave alike into clusters
///
/// Reads the streams of ranks one at a time (files, directories of streams, or standard input) and writes one section per main
/// cluster: ranks that make the same calls from the same places in the same order. Ranks of a main cluster that also
/// have the same parameters, as functions of the rank, are a sub-cluster. Nothing is lost but the exact times of all
/// ranks but the first of each main cluster, which sketches stand for.
///
/// Below mpirun, its processes share the ranks: `mpirun -n 4 st-cluster -o c.st run` writes what st-cluster alone would.
#[derive(Parser, Clone, Debug)]
#[command(name = "st-cluster", version, after_long_help = EXAMPLES)]
pub struct Args {
    /// Streams of single ranks, or directories of streams; - or nothing is standard input
    #[arg(value_name = "STREAM")]
    pub inputs: Vec<PathBuf>,
    /// What tells ranks apart
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    pub signature: Signatures,
    /// Take counts for equal that differ by at most so much of the larger one, as 5%
    ///
    /// In ascending order each rank joins the first group whose lowest counts are that near to its own in every parameter. All
    /// ranks of a group then have the counts of its first rank, and the lanes of counts that were replaced are void.
    #[arg(long, value_name = "PERCENT")]
    pub count_tolerance: Option<Tolerance>,
    /// In which parameters ranks that differ are united.
    #[command(flatten)]
    pub forced: Forced,
    /// What tells ranks apart beside what they do.
    #[command(flatten)]
    pub asked: Asked,
    /// What the user knows of parameters.
    #[command(flatten)]
    pub known: Known,
    /// Keep exact times of all ranks, not only of the first of each main cluster
    #[arg(long)]
    pub keep_columns: bool,
    /// Write all ranks as they are; --table, which this needs, says which cluster each is in
    #[arg(long, requires = "table", conflicts_with = "keep_columns")]
    pub keep_all: bool,
    /// Write the table of clusters to FILE: a line of CSV for each sub-cluster, with the number of its main cluster, its own
    /// in that, its head (the lowest rank), the number of its ranks, and the ranks
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub table: Option<PathBuf>,
    /// Threads, 0 for one per processor; the result is the same with any number
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    pub jobs: u16,
    /// What is kept of waits.
    #[command(flatten)]
    pub keeping: Keeping,
    /// How inputs are read.
    #[command(flatten)]
    pub input: StreamIn,
    /// Where the result goes.
    #[command(flatten)]
    pub output: StreamOut,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

impl Args {
    /// Calls of which waits are told where exact times are folded, at most.
    pub(crate) fn folded(&self) -> u64 {
        if self.keep_columns || self.keep_all { 0 } else { self.keeping.waits.most() }
    }

    /// How ranks are put together.
    ///
    /// # Errors
    ///
    /// If an expression cannot be understood.
    pub(crate) fn options(&self) -> Result<Options, Error> {
        Ok(Options {
            signatures: self.signature.into(),
            tolerance: self.count_tolerance,
            keep_columns: self.keep_columns || self.folded() > 0,
            users: self.known.params()?,
            force_merge: self.forced.force_merge.clone(),
            asked: self.asked.asked,
        })
    }
    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        st_cli::options::threads(self.jobs)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn contradictions_are_usage_errors() {
        let parses = |line: &str| Args::try_parse_from(line.split_whitespace()).is_ok();
        assert!(parses("x --signature paper --count-tolerance 5% a.st"));
        for line in ["x --count-tolerance 5", "x --signature md5", "x --keep-all", "x --jobs 2000"] {
            assert!(!parses(line), "{line}");
        }
    }
}
