//! The command line of the predictions.

use std::str::FromStr;

use clap::Args as ClapArgs;
use st_cli::Symbols;
use st_cli::quantity::{bytes, nanoseconds, rate};

use super::explain::Explaining;

const PREDICT: &str = "\
Examples:
  st-stat predict app.st                   what would help? The sites that matter most, and the network
  st-stat predict --speedup solve=2 app.st
                                           if what is computed before calls in solve were twice as fast
  st-stat predict --balance foo.c:88 app.st
                                           if all ranks computed equally long before the call there
  st-stat predict --latency 1us --bandwidth 25GB/s app.st
                                           on another network
  st-stat predict --ideal-network --balance foo.c:88 app.st
                                           both at once
  st-stat predict --model --format csv app.st
                                           the network that was recorded on

The model: Each rank has a clock. It computes as recorded, and each call takes as long as it waits, by the model, and what it took beyond that when it was \
recorded. A message of n bytes reaches its receiver o + L + n\u{b7}G after the call that sends it begins: overhead, latency, and the inverse of the bandwidth (LogGP; the gap \
between messages is left out, and so is contention). With more bytes than the eager limit it leaves when its receive is posted, and a call that completes \
its send lasts until it has left. A collective operation takes a member ⌈log₂ members⌉\u{b7}(L + 2\u{b7}o) + n\u{b7}G from when the last of those that it waits for has come (a root, all, or those \
before it: as for wait states), n being what it gives and takes, times a factor that is fitted. Tests and probes that find nothing are waiting. Files, \
one-sided access and MPI itself take what they took. A call that completes a message or an operation and \
ended soon after another rank's call that completes it began, 0.1 ms or more beyond what the model \
explains, waits for that one, too.

The network: L, o, G, the eager limit and the factor are fitted to the trace's own messages within and between nodes: those that a receiver waited for, calls that \
send at most 1 KiB, blocking sends whose receive is posted late, calls seen to wait for the other end of a message, and blocking collective operations. How far the run time by the model is \
off the recorded one is always said, with a warning from 10 % on. Gains are by the model: what would be taken with and without the change.

Changes: --latency, --bandwidth and --overhead are those between nodes, or within the node if there is only one (the overhead is one for both). Several changes act at once, and are shown one by one, too. \
A SITE is a function (MPI_Allreduce) or a call site (foo.c:88, or a function of the program); computation is that before its calls, as in st-stat \
delays. --balance gives all ranks that make an n-th call there the mean of what they compute before it. \
--speedup SITE=2 is what st-replay --scale SITE=0.5 replays; st-replay has no other network and no balance. The ideal network is that of st-stat efficiency.

Limits: What meets what is as recorded: which message a wildcard takes, who polls how often for what, how work is shared out. An eager limit below \
that of the recorded machine holds up a sender only from the call on that it was in when the receive was posted: it may take longer than said. \
Threads beside the first begin when they began. Exact times are needed (st-record without --merge).

Columns: those of CSV and JSON are what: recorded; model; all changes together (changed); single ones; without options also ideal network, half the latency, \
twice the bandwidth, all computation balanced, and for the eight sites with most computation half of it, and balanced; function; time_ns of the run; gain_ns and gain_percent against the model; error_percent, of the model; site and place. With --model: link; latency_ns; \
overhead_ns; bytes_per_second, null if what bytes take does not show; eager_bytes; collective, the factor; messages, eager_calls, overhead_calls and operations that were \
measured; lower_quartile and upper_quartile of what messages take by what the model says.";

/// A function or call site, and how many times as fast.
#[derive(Clone, PartialEq, Debug)]
pub struct Faster {
    /// The function or call site.
    pub site: String,
    /// How many times.
    pub times: f64,
}

impl FromStr for Faster {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a function or call site, =, and how many times as fast (foo.c:88=2)".to_owned();
        let (site, times) = text.rsplit_once('=').filter(|(site, _)| !site.is_empty()).ok_or_else(wrong)?;
        let times = times.parse().ok().filter(|t: &f64| t.is_finite() && (1e-6..=1e6).contains(t));
        let times = times.ok_or("how many times as fast is a number from 0.000001 to 1000000")?;
        Ok(Self { site: site.to_owned(), times })
    }
}

/// Predictions.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_long_help = PREDICT)]
pub struct PredictArgs {
    /// What if a message without data took so long (1.5us)
    #[arg(long, value_name = "TIME", value_parser = nanoseconds, help_heading = "What if")]
    pub latency: Option<f64>,
    /// What if so many bytes went per second (12.5GB/s, inf)
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "What if")]
    pub bandwidth: Option<f64>,
    /// What if sending or receiving a message kept a rank for so long (300ns)
    #[arg(long, value_name = "TIME", value_parser = nanoseconds, help_heading = "What if")]
    pub overhead: Option<f64>,
    /// What if only messages of more bytes waited for their receive (64KiB)
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "What if")]
    pub eager: Option<u64>,
    /// What if computation before the calls of a function or call site were so many times as fast. May be given several times
    #[arg(long, value_name = "SITE=TIMES", help_heading = "What if")]
    pub speedup: Vec<Faster>,
    /// What if all ranks computed equally long before the calls of a function or call site. May be given several times
    #[arg(long, value_name = "SITE", help_heading = "What if")]
    pub balance: Vec<String>,
    /// What if the network took nothing, and neither did MPI but for waiting
    #[arg(long, conflicts_with_all = ["latency", "bandwidth", "overhead"], help_heading = "What if")]
    pub ideal_network: bool,
    /// Say only what the network is by the trace's own messages
    #[arg(long, conflicts_with_all = ["latency", "bandwidth", "overhead", "eager", "speedup", "balance", "ideal_network"])]
    pub model: bool,
    /// Names of call sites.
    #[command(flatten)]
    pub symbols: Symbols,
    /// What is read, and how the answer is written.
    #[command(flatten)]
    pub of: Explaining,
}
