//! The command line of the commands about messages.

use clap::{Args as ClapArgs, ValueEnum};
use st_cli::Symbols;

use super::explain::Explaining;

const MATRIX: &str = "\
Examples:
  st-stat matrix app.st                    who talks to whom, drawn, and the heaviest pairs
  st-stat matrix --by node app.st          what goes between nodes, and within them
  st-stat matrix --format csv app.st | sort -t, -k4nr | head

A row of the drawing is a sender (of one-sided communication: the rank that reaches a window), a column a receiver. Of more than 32, \
neighbours are drawn together. Times are not needed: a merged trace will do, and a loop of a million turns costs as much as one of ten, \
unless requests are persistent, operations are those of neighbourhoods, or parameters are histograms.

Columns: those of CSV and JSON are from_rank and to_rank (or from_node and to_node, names of hosts; from_cluster and to_cluster, main clusters \
as of st-stat clusters); messages, accesses to windows among them; sent_bytes; fetched_bytes, those that the first got from the second's window. \
There is a row for each pair that talks. Rows without receiver are what the sender sends in collective operations and to files, with the number \
of such calls: sent_bytes of all rows come to those of the summary (see \"Bytes sent and received\" in st-intro(7)).";

const MESSAGES: &str = "\
Examples:
  st-stat messages app.st                  sizes and rates, by the call site that sends
  st-stat messages --format csv app.st > messages.csv

Messages are those of st-stat matrix: accesses to windows are among them, collective operations are not. Numbers and sizes need no times. \
With exact times it is said what bounds messages: a line (latency and time per byte) is fitted to those whose receivers waited, by the medians of \
sizes and of the slopes between them, within and between nodes; at a call site whose messages would spend half of their time or more in \
latency, that bounds them, and putting messages together would help. Bandwidth is told where bytes show: messages of more than 1,024 bytes take \
several times longer by them than times of equal ones differ.

Columns: those of CSV and JSON are function, that sends; messages; bytes of them all; smallest_bytes, median_bytes, ninth_decile_bytes (nine of ten \
have no more) and largest_bytes; tiny_percent, that have at most 1,024 bytes; per_rank_second, messages per second of the ranks that send them; \
fitted_ns, what one takes by the fit, and latency_percent of it; bound_by; site and place.";

const LEAKS: &str = "\
Examples:
  st-stat leaks app.st                     what the program leaves behind, and where it comes from
  st-stat leaks --format csv app.st | grep communicator

Times are not needed. Of ranks that ended early nothing is said; whether messages are received is looked at where the trace holds all \
ranks; those from and to other jobs, spawned or connected, are counted and not listed. What MPI makes itself is not listed.

Columns: those of CSV and JSON are left, what is: active request (never completed), persistent request (never freed), found message (by MPI_Mprobe, never \
received), communicator, group, datatype, reduction operation, window, file (never freed or closed), unmatched send, unmatched receive, \
freed receive (its request was freed before it completed, and nothing was sent to it); function that made, started or sent it; number; ranks, how many have some, and ranklist, which; site and place.";

/// What is left behind.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = LEAKS)]
pub struct LeaksArgs {
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}

/// Who talks to whom.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = MATRIX)]
pub struct MatrixArgs {
    /// What ranks are taken together by
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub by: RanksBy,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}

/// Messages per call site.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = MESSAGES)]
pub struct MessagesArgs {
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}

/// What ranks are taken together by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum RanksBy {
    /// Each rank by itself
    #[default]
    Rank,
    /// Ranks on the same host
    Node,
    /// Ranks that make the same calls
    Cluster,
}

impl RanksBy {
    /// One of them, in a word.
    #[must_use]
    pub fn one(self) -> &'static str {
        match self {
            Self::Rank => "rank",
            Self::Node => "node",
            Self::Cluster => "cluster",
        }
    }
}
