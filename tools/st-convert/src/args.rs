//! The command line.

use std::path::PathBuf;

use clap::{Parser, builder::PossibleValuesParser};
use st_cli::Symbols;
use st_cli::options::{StreamIn, Talk};
use st_cli::quantity::seconds;
use st_explain::PhasesBy;
use st_model::ranklist::RankList;
use st_model::ranklist_notation;

use crate::formats;
use crate::import;
use crate::input::Input;
use crate::level::Level;
use crate::selection::{Called, Selection};

/// Write a trace in the format of another tool, or read one
///
/// Reads streams (files, directories of streams, or standard input) and writes what Perfetto, Vampir, Scalasca, pandas, a
/// network simulator and others read (--list). It says first how much that will be, and then what the format has no place for. Where the
/// output is to be a stream (a name that ends in .st), it reads what others have written, and says what that did not tell.
#[derive(Parser, Clone, Debug)]
#[command(name = "st-convert", version, after_long_help = AFTER)]
pub struct Args {
    /// Streams, or directories of streams; - or nothing is standard input. Together they are one trace; in extrap each is a run. With --to
    /// st: what another tool has written
    #[arg(value_name = "STREAM")]
    pub inputs: Vec<PathBuf>,
    /// The format [default: by the ending of the output's name]
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(formats::names().into_iter().chain([import::ST])))]
    pub to: Option<String>,
    /// With --to st: the format of the input [default: by what is in it]
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(import::names()), help_heading = "Input")]
    pub read_as: Option<String>,
    /// List the formats: their names, endings and readers
    #[arg(long, exclusive = true)]
    pub list: bool,
    /// Write to FILE or, where a format is several files, into the new directory FILE
    #[arg(short, long, value_name = "FILE", required_unless_present = "list", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Only these ranks, as 3 or 0-3,8 or <1 0 4 2>
    #[arg(long, visible_alias = "rank", value_name = "RANKS", value_parser = ranklist_notation::parse_any)]
    pub ranks: Option<RankList>,
    /// Only calls that end after this time, from when the first rank entered MPI_Init: seconds, or with a unit (1.5, 250ms)
    #[arg(long, value_name = "T", value_parser = seconds)]
    pub from: Option<f64>,
    /// Only calls that begin before this time
    #[arg(long, value_name = "T", value_parser = seconds)]
    pub until: Option<f64>,
    /// Only calls of this function or call site (MPI_Send, main.c:12, a function of the program, a number); several times: of any of them
    #[arg(long, value_name = "SITE")]
    pub sites: Vec<String>,
    /// Only calls from an MPI_Pcontrol of this level to the rank's next MPI_Pcontrol, or to the end
    #[arg(long, value_name = "LEVEL", allow_negative_numbers = true)]
    pub phase: Option<i64>,
    /// How much is written [default: calls; in extrap and cube, which hold sums, summary]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub level: Option<Level>,
    /// With --level phases: what the run is cut into [default: loop]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub by: Option<PhasesBy>,
    /// Write also all wait states (csv, parquet, arrow), or their sums (extrap, cube, --level phases and summary), which takes a second pass over all calls
    #[arg(long)]
    pub waits: bool,
    /// Write nothing if the format cannot hold all that is there: exit status 4
    #[arg(long, help_heading = "Output")]
    pub strict: bool,
    /// Refuse to write more than N files: otf2 has two for each thread, simgrid one
    #[arg(long, value_name = "N", default_value_t = 20_000, help_heading = "Output")]
    pub max_files: u64,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// How inputs are read.
    #[command(flatten)]
    pub input: StreamIn,
    /// How much is said.
    #[command(flatten)]
    pub talk: Talk,
}

impl Args {
    pub(crate) fn reads(&self) -> Input {
        Input {
            paths: self.inputs.clone(),
            stream: self.input.clone(),
            symbols: self.symbols.clone(),
            talk: self.talk.clone(),
        }
    }

    pub(crate) fn selection(&self) -> Selection {
        Selection {
            ranks: self.ranks.clone(),
            from: self.from,
            until: self.until,
            functions: Vec::new(),
            sites: self.sites.clone(),
            phase: self.phase,
            called: Called::OPTIONS,
        }
    }
}

const AFTER: &str = "\
Examples:
  st-convert app.st -o app.pftrace                 for ui.perfetto.dev and trace_processor
  st-convert app.st --ranks 0-7 --from 1 --until 2 -o part.pftrace
  st-convert app.st -o app.otf2                    for vampir app.otf2/traces.otf2
  st-convert app.st -o app.parquet; python3 -c 'import pandas; print(pandas.read_parquet(\"app.parquet/events.parquet\"))'
  st-convert app.st -o app.ti; cd app.ti; smpirun -replay trace.txt -np 4 -platform platform.xml -hostfile hosts.txt
  st-convert app.st --sites solver.c --sites MPI_Allreduce -o part.csv
  st-convert 4.st 8.st 16.st 32.st 64.st -o series.jsonl; extrap --json series.jsonl
  st-convert app.st --level phases -o app.pftrace  iterations in the place of calls: for long runs
  st-convert app.st --level summary -o app.csv     sums of each rank and call site
  st-convert app.st --waits -o app.cubex           for cube and pyCubexR
  st-view --json app.st | sed s/nodeA/nodeB/ | st-convert --to st -o changed.st
  st-convert app_trace -o app.st                   what eztrace has written
  for f in dumpi-*.bin; do dumpi2ascii -S -X $f > ${f%.bin}.txt; done; st-convert dumpi-*.txt -o app.st
  st-convert rank*.jsonl -o app.st                 what a tracer of your own has written
  st-convert --list

Times are ns since the first rank entered MPI_Init; in perfetto, otf2 and paraver, which have none below 0, since the first call if that was before. Without exact \
times (traces that were merged without --keep-columns) perfetto, chrome and otf2 cannot be written; tables have no times then, and schedules no computation.

A message is written if both calls that are its ends are written, the one that sends it and the one that completes its receive.

What is said: how many calls and about how many bytes it will be and, where that is more than who reads the format bears, which --until would be less; after \
that, what the format had no place for, by name and count: of a call's parameters, too, but not of sums (extrap, cube, --level phases and summary), which have none. With --strict nothing is written then.

--level phases: what each rank does from the begin to the end of each iteration or phase, as st-stat phases has them (--by), and of what lies between \
them, which is called so; of the thread that stands for a rank. In perfetto and chrome each is a slice of the name of its loop, in otf2 a region with the times as metrics, in csv, parquet and arrow a row of the table phases: \
rank; loop, a number in the order in which ranks come to them, the same whichever ranks are written, or none of what lies between; level of MPI_Pcontrol; iteration, from 0; function and site of its first call; begin_ns; end_ns; calls; compute_ns \
between calls, mpi_ns in calls and, with --waits, wait_ns, how much of that is waiting for others. Slices have the same as arguments. Computation before a first call is the iteration's; that before an MPI_Pcontrol is of the phase which that ends. With --from, \
--until and --phase, which chooses by the first call, phases are written as a whole; --sites is refused. It takes time by the number of calls, and memory by that of loops, but with --waits for each wait. Calls of other threads are counted as left out.

--level summary: in csv, parquet and arrow a row for each function, call site and rank in the table totals: rank; function; site; calls; time_ns; before_ns, the time between the calls and those before them on their threads; \
sent_bytes; received_bytes; with --waits wait_ns. Where times of some of these calls are not known there is neither time_ns nor before_ns; with --sites or --phase there is no before_ns. Beside it and phases stands the table sites, beside totals also ranks. Extrap and cube have nothing but this level, simgrid, goal and paraver nothing but calls.

perfetto: a process per rank (number and process id are one more than the rank), a track per thread, a slice per call with its parameters and call site as \
arguments. A message is a flow from the call that sends it to the end of the one that completes its receive (to an instant there, called message, where the next call has begun by the time that the message is known), a collective operation a flow through the \
calls of all ranks in the order in which they come. Counters: bytes of these messages in flight, and how many ranks wait (the wait states of st-stat waits).

chrome: the same as JSON, without collective operations, which are counted as left out, and counters.

csv, parquet and arrow: a directory with five tables, or six; of other levels those that are named there. events, a row per call, or per series of polls: rank; thread; call, its position on the thread; function; site; \
enter_ns; exit_ns; calls, how many it stands for; comm, number of the communicator, the same whatever part of the trace is written; dest and source, world ranks of a message's other end, and its tag, of calls that \
send, post a receive or receive; sent_bytes and received_bytes, as st-stat counts them; error, the class of one that failed. messages, a row per message \
of which both ends are there: from_rank, from_thread, sent_call, the call that sends it; to_rank, to_thread, posted_call and received_call, those that post and complete its \
receive; sent_ns, enter of the first, posted_ns, enter of the second, received_ns, exit of the third; comm; tag; bytes. Accesses to windows are no messages. \
sites: site; id; place; function, file and line of that; stack, functions innermost first, a line each. ranks: rank; host; threads; calls; time_ns between MPI_Init and MPI_Finalize and mpi_ns in MPI, of the \
whole run; sent_bytes and received_bytes of the calls that are written. comms: comm; name; members and remote, world ranks in order. With --waits also waits, \
a row per wait state of the calls that are written, by rank and in their order, whose sums are those of st-stat waits: \
rank, thread and call, that wait; kind, function and site of it; begin_ns, when it begins, with the call or \
within it; wait_ns, how long it is; for_rank, who is waited for, and for_function and for_site, what comes too late. In parquet and arrow numbers are 64-bit integers (in arrow indices 32-bit ones), and what is \
unknown is null.

otf2: a directory with the archive traces.otf2, written by OTF2's own library (Debian: libopen-trace-format2-dev), which must be there. A location per thread, regions for \
functions of MPI and, around them, those of the program that are on the stacks of call sites; computation before a call belongs to the functions that make it. Messages, requests and \
collective operations are records, and so are accesses to windows, which are complete with the next call that synchronises with their target, locks, files \
and what is read and written; neighbourhood operations are regions only. What no record has a place for (datatypes, reductions, persistent requests, communicators that calls make, …) is in attributes of the calls' regions under the names that st-view --json has, which readers show or leave out, \
and what is known of ranks, objects and call sites in strings: st-convert makes the same trace of the archive again. That is not so of a part of the calls (--from, --until, --phase, --sites), where some have no times, and of ranks whose calls differ so much that the texts in their attributes take more than 64 MB: what records lack is lost then, and counted. With --ranks communicators have no other members. An intercommunicator is one of all members, the first group's before the second's: OTF2's module for Python cannot read \
others. Pipit takes positions in communicators for ranks of the world; the frame of to_pipit, in Python, has those. There are two files for each thread: threads that make none of the calls are left out but for a rank's first. Who reads it may hold a file open for each, as otf2-print does, which ulimit -n must allow, with 256 kB of memory each; --max-files bounds how many are written: choose --ranks, such as one of each cluster (st-stat clusters).

paraver: the records FILE.prv and beside it the names of their numbers, FILE.pcf, and of threads, FILE.row. A call is a state and, at its enter and exit, \
events with its function and call site under the numbers that Extrae gives their types; collective operations have bytes and communicator, a message is a communication, from the enter of the \
call that sends it, and from that of the one that posts its receive, to the exit of the one that completes that. Records are sorted in temporary files (TMPDIR).

simgrid and goal: what each rank computes, sends, receives and waits for. Computation is the time between calls, and that of calls that concern nobody else; one flop is 1 ns. Communicators \
and tags have numbers of their own. Collective operations are messages: barriers by dissemination, broadcasts and reductions by binomial trees (for all: to the first rank and \
back), gathers and scatters rank by rank at the root, allgathers in a ring, exchanges pair by pair, scans in a chain; between two groups, what all get goes by the first rank of each, a tree has the root and the other group, allgathers \
and exchanges go pair by pair; operations of neighbourhoods, and those that only begin, send every message to its receiver at once. Ranks that stop early are counted: a simulation may wait for what they would send. The latency and bandwidth of platform.xml are those of the trace's own messages, where it tells them; what calls take themselves is not in a simulation, and how much shorter than the run it may be is said: by what the rank that computes longest is in MPI. Ranks that call MPI in several threads are refused, and so are --from, --until, --phase and --sites: messages that cross the border of what is written would have one end.

extrap: lines of JSON, each the value of a metric for a call path of a run: {\"params\": {\"p\": ranks}, \"callpath\": \"app->solve->MPI_Send\", \"metric\": …, \
\"value\": …}. Each input is a run by itself; Extra-P wants five numbers of ranks, and takes runs on equally many as repetitions. Streams of one run that are given one by one are refused; programs of different names and runs that are all on equally many ranks are said. A call path is the program, the functions on the stack of \
a call site (their place, where they are not known) and the function of MPI. Values are those of a rank, the mean of all: visits; time, in seconds, in calls of MPI or, of functions of the \
program, between calls, before those that they make (wrappers of MPI aside); bytes_sent and bytes_received, as st-stat counts them; with --waits wait, how much of the time is waiting for others. time_longest is that of \
the rank in which it is longest. With --sites or --phase there is no time between calls.

cube: an archive of the same sums for each rank, which is a location, below its node: time, visits, bytes_sent and bytes_received. All are exclusive: of a call path without \
those that it calls. With --waits each kind of wait state is a part of the time.

st: a stream like any other, made of what others have written, whose format its content tells, or --read-as. Times may begin anywhere. What the source does not tell is counted at the end; \
MPI_Init and MPI_Finalize, where they are missing, stand before the first call of a rank that needs them and at its last time. --ranks, --from, --until, --sites, --phase, --waits, --level, --by, --symbols and --partial are refused: convert first.

json (read): lines of JSON, of one or more files in turn, the calls of each thread in their order, one after the other. A call has rank, call (the function), enter and exit (ns, whole numbers; none has them, or all of a rank up to some \
call), thread (any number; 0), site (the number of a line before, or a text as \"solve.c:12\", callers behind \" < \"), error (class of one that failed) and the function's parameters under the names that st-view --json prints: \
\
{\"rank\":0,\"call\":\"MPI_Isend\",\"dest\":1,\"tag\":7,\"bytes\":800,\"request\":\"r1\",\"enter\":1000,\"exit\":1500}, \
where ranks are those in comm. What may be left out: comm (MPI_COMM_WORLD), tag (0), count (as many elements of the type as have the bytes; with neither 0, counted), type (MPI_BYTE), op (MPI_BOR of bytes, else MPI_SUM; counted), flag (true), \
completed (all requests that the call names; of MPI_Waitany and MPI_Testany the first that is pending, counted), what a call only returns (the source of what was received from any rank is counted). What names a partner or request may not. \
Unless the call has an error, these are refused: amounts below 0, bytes that are not the count's or no whole number of the type's elements (of a receive: more than the count's), bytes where each partner has a count of its own, and \
ranks that are not in comm. The caller must be a member of comm. The name of a request that is under way cannot begin another. A request is a number, the lowest one that is free, or a text, which gets that number; a call that waits for one may have request in the place of requests. Predefined types and \
operations are known by their names; other objects are described in a line before: {\"comm\":\"row\",\"members\":[0,2]} by world ranks in order, each once (remote: those of the other group), {\"group\":…,\"members\":…}, {\"type\":\"cell\",\"size\":24}, {\"op\":…}, {\"win\":…,\"members\":…}, \
{\"file\":…,\"members\":…}; with ranks, where only these have it. st-replay makes only objects that calls of the trace have made. Number of ranks: \"world\" in a first line {\"header\":{\"world\":4,\"program\":\"app\"}}, which says that ranks are \
there from MPI_Init on, else one more than the highest rank that calls. Where a thread stopped of a rank that did not come to its end says a line behind its calls: {\"ended\":3,\"thread\":0,\"inside\":\"MPI_Recv\",\"site\":\"a.c:7\",\"entered\":2000}, where ended is the rank and inside the call that it was in, if any. Other lines are those of st-view --json. Functions that st does not know are kept by name, if that begins with MPI, without parameters; control characters in names and call sites are refused; other fields are left out and counted.

otf2 (read): an archive, by its directory or its file NAME.otf2, read through OTF2's own library (as above). One that st-convert has made of all calls is the trace that it was. Of others the group of the locations that communicate tells the ranks; other locations of their processes are threads. Regions that are \
called as functions of MPI are calls, other regions around them the call site. Bytes of records are elements of MPI_BYTE; where a record has only the sum over all partners, each gets as much. A call of which no record tells the \
partner or request has null ones; one of which none tells the communicator has MPI_COMM_WORLD or, where it makes one, what all of the rank's are made of, if the archive tells that. Of requests that MPI_Waitany, MPI_Waitsome and tests name those that they complete are kept. The program's name is that of the archive, but in those of st-convert. Starts of persistent requests become MPI_Isend and MPI_Irecv, receives of probed messages MPI_Recv and MPI_Irecv; requests whose end no record tells end with the next call that waits, as in all archives of EZTrace, which do not tell either what non-blocking receives got.

dumpi (read): what dumpi2ascii prints, a file for each rank, which is the last number in the file's name. Datatypes that MPI does not define have the sizes that dumpi2ascii -X adds at the end, else they are MPI_BYTE. \
Communicators are the world, the caller alone and duplicates of these: members of others are not in it, and calls on them have a null one.

Exit status: 0 done, 1 failed, 2 usage, 3 invalid or truncated stream, 4 --strict, and the format cannot hold all, or the source does not tell all.";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn an_output_is_needed_but_for_the_list() {
        assert!(Args::try_parse_from(["st-convert", "a.st"]).is_err());
        assert!(Args::try_parse_from(["st-convert", "--list"]).is_ok());
        assert!(Args::try_parse_from(["st-convert", "a.st", "-o", "a.json", "--from", "-1"]).is_err());
    }
}
