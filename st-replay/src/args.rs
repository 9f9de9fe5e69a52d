//! The command line, shared by the program and its engines.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Parser;
use st_cli::Mpi;
use st_cli::Symbols;
use st_cli::options::{StreamIn, Talk};
use st_cli::quantity::{duration, seconds};

use crate::cut::Limit;
use crate::factor::Factor;
use crate::factor::Scaled;

const EXAMPLES: &str = "\
Examples:
  st-replay app.st                         as the program ran, by an mpirun that is started
  st-replay --check app.st                 whether it can be replayed to its end, without MPI
  st-replay --compute none app.st          communication only, one call after the other
  st-record -o again.st -- st-replay app.st && st-stat diff app.st again.st
                                           proves that the replay made the same calls (with --io
                                           on files of other names)
  st-merge run/ | st-replay -              the streams of a directory

Result: On standard error a line about the job: its longest rank's recorded and replayed time between MPI_Init and MPI_Finalize, the \
error of the second in percent of the first, the mean of the ranks' errors without their signs, and the share of MPI in both. On \
standard output a table of the ranks; without -q also where neither --csv nor --json is given. Inside mpirun \
the launcher writes both, and Open MPI's does not say when it cannot. Late waits are those that were over before they began: the \
replay was behind by then, mostly because calls took longer than when they were recorded, as they do where more ranks run than there \
are processors.

Columns: those of CSV and JSON are rank; recorded_s and replayed_s; error_percent, signed; recorded_mpi_s and replayed_mpi_s, the \
part of these times in MPI; late_waits, how many; late_s, how late the rank was after its last wait. What is not known is empty, or null.";

/// Replay a recorded program's communication without the program
///
/// Each rank makes the calls that it made when it was recorded, with the recorded sizes, types, tags and
/// communicators and arbitrary bytes for data, and waits between them as long as the program computed. Outcomes
/// that depended on timing (wildcards, Waitany, Test) are forced to what they were.
///
/// Outside of mpirun, starts mpirun itself with as many ranks as were recorded. Inside, joins the running job.
#[derive(Parser, Clone, Debug)]
#[command(name = "st-replay", version, after_long_help = EXAMPLES)]
pub struct Args {
    /// A trace: a file, a directory of rank streams, or - for standard input (outside of mpirun only)
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,

    /// What to do for the time that the program computed: sleep, schedule (sleep, and make up for calls that take longer or
    /// shorter than recorded), spin, none, or scale=F (sleep F times as long)
    ///
    /// With sleep, what MPI takes is what it takes here and now. With schedule, calls begin when they did, unless MPI is too
    /// slow for that: the load that the program was to network and files. It is also what keeps recorded times where more ranks
    /// ran than there were processors, and held up each other.
    #[arg(long, value_name = "HOW", default_value = "sleep", help_heading = "Replay")]
    pub compute: Compute,
    /// Only check whether the trace can be replayed to its end, without MPI: whether sends and receives match, the members
    /// of each communicator agree, and what was started is completed. Exit status 4 if not
    #[arg(long, conflicts_with = "list", help_heading = "Replay")]
    pub check: bool,
    /// Replay without that check
    #[arg(long, conflicts_with = "check", help_heading = "Replay")]
    pub unchecked: bool,
    /// The process that started this one has said what is to be known of the trace
    #[arg(long, hide = true)]
    pub said: bool,
    /// Replay MPI-IO on scratch files, in a new directory below DIR that is removed at the end
    #[arg(long, value_name = "DIR", help_heading = "Replay")]
    pub io: Option<PathBuf>,
    /// Print recorded and replayed times of each rank as comma-separated values, with a header line
    #[arg(long, conflicts_with = "json", help_heading = "Result")]
    pub csv: bool,
    /// Print recorded and replayed times of each rank as JSON, one object a rank and line
    #[arg(long, help_heading = "Result")]
    pub json: bool,
    /// List the calls that cannot be replayed, and do nothing else
    #[arg(long, help_heading = "Replay")]
    pub list: bool,
    /// Leave out calls that cannot be replayed; those of the tools' interface (MPI_T_...), which --list lists, too, always are
    #[arg(long, help_heading = "Replay")]
    pub skip_unsupported: bool,

    /// What if calls of a function (MPI_Send) or call site (main.c:12, or a function of the program) were computed before F
    /// times as long. May be given several times
    #[arg(long, value_name = "WHERE=F", help_heading = "What if")]
    pub scale: Vec<Scaled>,
    /// What if messages were F times as large: number of elements of sends, receives and collective operations
    #[arg(long, value_name = "F", help_heading = "What if")]
    pub scale_bytes: Option<Factor>,
    /// What if ranks were in other places: rank i of the trace is played by the i-th process of this list (0,2,1,3), or of a file
    #[arg(long, value_name = "LIST", help_heading = "What if")]
    pub place: Option<String>,
    /// Stop after so much recorded time (10s), or so many calls of each rank: at the last point before that at which no receive
    /// lacks its message and all have taken part in the same collective operations
    #[arg(long, value_name = "LIMIT", help_heading = "What if")]
    pub stop_after: Option<Limit>,
    /// End with status 1, naming rank and call site, when a call takes so many seconds (or 500ms, 5m) and ten times as long as it
    /// did when it was recorded; 1ms at least; 0: wait for ever
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = patience, help_heading = "Replay")]
    pub watchdog: Duration,

    /// Tell on standard error how far the first rank has come, again and again (default: if that is a terminal, and not -q)
    #[arg(long, help_heading = "Talk")]
    pub progress: bool,

    /// Replay under this MPI (default: the launcher's; outside of mpirun the recorded one, if it is installed)
    #[arg(long, value_enum, value_name = "MPI", help_heading = "Launch")]
    pub mpi: Option<Mpi>,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// Command and options that start the ranks; -n and the number of ranks are added
    #[arg(long, value_name = "COMMAND", help_heading = "Launch")]
    pub mpirun: Option<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show it as help")]
    pub input: StreamIn,
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show it as help")]
    pub talk: Talk,
}

impl Args {
    /// Whether a replay prints a result.
    #[must_use]
    pub fn prints(&self) -> bool {
        self.csv || self.json || !self.talk.quiet
    }
}

/// What happens between calls.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Compute {
    /// Sleep for the recorded time times a factor; the last part is spun, because sleeping is coarser than that.
    Sleep(f64),
    /// Sleep until the call is due, by the recorded times of the waits and calls before it.
    Schedule,
    /// Spin for the recorded time.
    Spin,
    /// Nothing.
    None,
}

impl Compute {
    /// Whether waits are slept.
    #[must_use]
    pub fn sleeps(self) -> bool {
        matches!(self, Self::Sleep(_) | Self::Schedule)
    }
}

impl FromStr for Compute {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sleep" => Ok(Self::Sleep(1.0)),
            "schedule" => Ok(Self::Schedule),
            "spin" => Ok(Self::Spin),
            "none" => Ok(Self::None),
            _ => {
                let factor = text.strip_prefix("scale=").and_then(|f| f.parse::<f64>().ok());
                match factor {
                    Some(f) if f.is_finite() && f >= 0.0 => Ok(Self::Sleep(f)),
                    _ => Err("sleep, schedule, spin, none or scale=F with F from 0 up".into()),
                }
            }
        }
    }
}

/// Shortest time for which a call is waited for: looked at are calls four times as often.
const SHORTEST: Duration = Duration::from_millis(1);

fn patience(text: &str) -> Result<Duration, String> {
    let (time, none) = (duration(text)?, seconds(text)? <= 0.0);
    if none || time >= SHORTEST { Ok(time) } else { Err("shorter than 1 ms; 0 waits for ever".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn compute_has_five_forms() {
        assert_eq!("schedule".parse(), Ok(Compute::Schedule));
        assert_eq!("scale=0.5".parse(), Ok(Compute::Sleep(0.5)));
        assert_eq!("none".parse(), Ok(Compute::None));
        assert!("scale=-1".parse::<Compute>().is_err());
        assert!("scale=inf".parse::<Compute>().is_err());
        assert!("nap".parse::<Compute>().is_err());
    }

    #[test]
    fn no_time_becomes_for_ever_since_it_is_short() {
        assert_eq!(["0", "1ms", "2"].map(patience), [0, 1, 2000].map(|ms| Ok(Duration::from_millis(ms))));
        for short in ["0.1ns", "1ns", "999us"] {
            assert!(patience(short).unwrap_err().contains("0 waits for ever"), "{short}");
        }
    }
}
