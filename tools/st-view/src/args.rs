//! The command line.

use std::path::PathBuf;

use clap::{ArgGroup, Parser};
use st_cli::Symbols;
use st_cli::options::{StreamIn, Talk, TextOut};
use st_model::ranklist::RankList;
use st_model::ranklist_notation;

/// Show a trace: its structure, its calls, its text form
///
/// Reads streams (files, directories of streams, or standard input) of any stage. Without an option it prints each
/// section's tree: functions with their call sites, how often they run, and their parameters, in lines as wide as the
/// terminal (80 characters where it goes to a file or another program; COLUMNS says otherwise).
#[derive(Parser, Clone, Debug)]
#[command(name = "st-view", version, after_long_help = AFTER)]
#[command(group = ArgGroup::new("form"), group = ArgGroup::new("calls-form").multiple(true))]
pub struct Args {
    /// Streams, or directories of streams; - or nothing is standard input
    #[arg(value_name = "STREAM")]
    pub inputs: Vec<PathBuf>,
    /// Print the papers' leaf list: per event its ranks and the loops (members,iterations) that begin at it
    #[arg(long, group = "form")]
    pub flat: bool,
    /// Print one call a line
    #[arg(long, groups = ["form", "calls-form"])]
    pub calls: bool,
    /// Print one JSON object a line: call sites, communicators, then calls
    #[arg(long, groups = ["form", "calls-form"])]
    pub json: bool,
    /// Print the text form, which holds everything and reads back
    #[arg(long, group = "form")]
    pub text: bool,
    /// Read the text form and write the stream that it came from, byte by byte, but for the order of exact times where a rank has several
    /// threads of more than 16,384 calls
    #[arg(long, group = "form")]
    pub from_text: bool,
    /// Decode all calls and compare with the hashes taken while recording: exit status 4 if a lane differs
    #[arg(long, group = "form")]
    pub check: bool,
    /// With --calls or --json: only these ranks, as 3 or 0-3,8 or <1 0 4 2>
    #[arg(long, visible_alias = "rank", value_name = "RANKS", requires = "calls-form", conflicts_with_all = ["flat", "text", "from_text", "check"], value_parser = ranklist_notation::parse_any)]
    pub ranks: Option<RankList>,
    /// With --from-text: compression of the frames, 0 (none) to 22 (smallest) [default: that of the text]
    #[arg(long, value_name = "N", requires = "from_text", conflicts_with_all = ["flat", "calls", "json", "text", "check"], value_parser = clap::value_parser!(u8).range(0..=22))]
    pub level: Option<u8>,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// How inputs are read.
    #[command(flatten)]
    pub input: StreamIn,
    /// Where the result goes.
    #[command(flatten)]
    pub output: TextOut,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

const AFTER: &str = "\
Examples:
  st-view app.st                           the program as loops and calls
  st-view --calls --ranks 0-3 app.st       what ranks 0 to 3 did, call by call
  st-view --check app.st                   proves that nothing was lost
  st-view --json app.st | jq -c 'select(.call == \"MPI_Send\")'
  st-view --text app.st > app.txt; st-view --from-text app.txt -o same.st

The tree: a node is a loop or a call, with how often it runs. Parameters that are the same for several ranks as functions of \
their own rank stand as such: me+1, (me-1) mod size, me^4 (exclusive or), 7-me, me/8 and me%8 (row and column of a grid with 8 columns); \
me+(-1,0) in 8 columns, wrapping, is in the row before and the same column. A list of values is, of a call that stands at several \
places, that of all of them together, else that of the loop's iterations; of lists, \
8 of {0,1} are eight values that are each 0 or 1, [7] is one that is 7, none is an empty list; \"a on ranks 0-3 | b on rank 4\" is what differs between ranks; expected is what follows from the \
calls before, as the requests of a wait.

Times: --calls and --json count them from when the first rank entered MPI_Init. What was before is negative.

JSON lines: an object with \"header\" (what is known of the run), one with \"step\" for each program that has made the trace, objects with \"site\", \"place\" and \
\"frames\" or \"label\" (call sites by number), objects with \"host\" and \"ranks\" (nodes), objects with \"clock\" (a rank) and how its clock was compared, then what calls name: objects \
with \"comm\", \"group\", \"type\", \"op\", \"win\" or \"file\", the ranks that have them, and what they are made of, communicators and groups with \
\"members\" (world ranks in order), then, if a lossy option made histograms of parameters, objects with \
\"histogram\" (name), call, site, codes and values (each with its frequency; what calls have of these is drawn), then \
one object per call: rank, thread, i (position on the thread, from 0), call, \
site, enter and exit (ns since the first rank entered MPI_Init, if the trace holds exact times), then the parameters under the names of the call table; \
one whose name is taken by then has a 2 after it (rank2 is what MPI_Comm_rank found, which --calls calls rank). \
rsource and rtag are whom a receive that names no sender or tag got, and null of others, where --calls leaves them out. Peers \
are ranks in comm. Displacements are an empty list where blocks lie side by side, as their counts have them. Special values are strings (\"MPI_PROC_NULL\", \"MPI_ANY_SOURCE\", \"MPI_ANY_TAG\", \"MPI_UNDEFINED\"), \
null handles and unknown values null, flags true or false, objects their names. completed is a list of {request, source, \
tag, bytes}, empty where nothing was completed; where that is since no request was active, outcount (MPI_Waitsome, MPI_Testsome) or index (MPI_Waitany, MPI_Testany) is \"MPI_UNDEFINED\", of a test of some as far as all are null; bytes is what a call has received or, if it receives nothing itself, what it sends, \
if the size of its type is known; error is the error class of a call that failed; hints, of a call that is given an info object, is what that holds, as far as the program itself has filled it, on ranks of one thread, and attribute, of a call that asks MPI_COMM_WORLD for an attribute that is the same on all ranks, is that; times is the number of calls of a series of polls. Behind the calls of a rank that did not come to its end stands an object for each of its threads with \
\"ended\" (the rank) and thread and, if it was in a call, inside (the function), site and entered. \
st-convert makes a trace of such lines again, and says what others must write.

Exit status: 0 done, 1 failed, 2 usage, 3 invalid or truncated stream, 4 --check found a difference.";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn forms_exclude_each_other() {
        assert!(Args::try_parse_from(["st-view", "--text", "--json"]).is_err());
        assert!(Args::try_parse_from(["st-view", "--rank", "3"]).is_err());
        assert!(Args::try_parse_from(["st-view", "--json", "--rank", "3"]).is_ok());
        // clap drops a requirement that conflicts with what is given: conflicts are stated.
        assert!(Args::try_parse_from(["st-view", "--text", "--level", "3"]).is_err());
        assert!(Args::try_parse_from(["st-view", "--text", "--rank", "3"]).is_err());
    }
}
