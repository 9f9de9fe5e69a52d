//! The closing lines.

use crate::notes::Notes;
use st_cli::counted;
use st_model::num::Exact as _;
use st_stream::TimeBytes;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// Own cost from which on what is not in it is told of, in thousandths: below it ranks are hardly held up.
const TOLD: u64 = 5;

/// What a finished job is told about.
#[derive(Debug)]
pub struct Summary<'a> {
    /// Name of the trace.
    pub file: String,
    /// Its size in bytes; what is no regular file has none.
    pub bytes: Option<u64>,
    /// What exact times have added to that.
    pub time_bytes: TimeBytes,
    /// Time that packing took.
    pub packing: Duration,
    /// What the ranks said.
    pub notes: &'a Notes,
    /// Ranks whose streams are in it.
    pub ranks: u64,
    /// Ranks of the job.
    pub world: u64,
    /// The disk of the ranks' streams has no room.
    pub full: bool,
    /// The option for which exact times that would have been recorded are not.
    pub untimed: Option<&'static str>,
    /// The end of the command, if this is its only job.
    pub ended: Option<&'a Ended>,
}

/// How the command has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its wall time.
    pub elapsed: Duration,
    /// Its status.
    pub status: ExitStatus,
}

impl Ended {
    /// What is said of several jobs.
    #[must_use]
    pub fn words(&self) -> String {
        format!(" in {}; {}", seconds(self.elapsed), ending(self.status))
    }
}

impl Summary<'_> {
    /// The line: what, where, how large, at what cost, what is missing, how it ended.
    #[must_use]
    pub fn line(&self) -> String {
        let mut s = self.what();
        if self.time_bytes.stored > 0 {
            let less = |bytes: u64| Some(self.time_bytes.without(bytes)).filter(|without| *without < bytes);
            let without = self.bytes.and_then(less).map(|without| format!("; {} without", size(without)));
            let _ = write!(s, " (exact times{})", without.unwrap_or_default());
        }
        let _ = write!(s, "; own cost {}, packing {}", self.cost(), seconds(self.packing));
        let _ = write!(s, "; {}", self.losses());
        if let Some(ended) = self.ended {
            let _ = write!(s, "; {}", ending(ended.status));
        }
        s
    }

    /// Its beginning: what, where, how large.
    #[must_use]
    pub fn what(&self) -> String {
        format!(
            "{}, {}{} → {}{}",
            counted(self.ranks, "rank"),
            counted(self.notes.calls, "call"),
            self.ended.map_or_else(String::new, |e| format!(" in {}", seconds(e.elapsed))),
            self.file,
            self.bytes.map_or_else(String::new, |bytes| format!(", {}", size(bytes)))
        )
    }

    /// What merging in `MPI_Finalize` took, if the ranks tried.
    #[must_use]
    pub fn merging(&self) -> Option<String> {
        let [sum, most, wall] = self.notes.merging?.map(Duration::from_nanos);
        Some(format!(
            "merging took {} in MPI_Finalize, and {} of processor time, {} of them on one rank",
            seconds(wall),
            seconds(sum),
            seconds(most)
        ))
    }

    /// How often ranks were reduced while they ran.
    #[must_use]
    pub fn interims(&self) -> Option<String> {
        let [made, failed, cpu] = self.notes.interims;
        let failures = if failed > 0 { format!(", {failed} that failed") } else { String::new() };
        let cpu = seconds(Duration::from_nanos(cpu));
        (made + failed > 0).then(|| format!("{made} interim reductions{failures}; {cpu} of processor time"))
    }

    /// What would have told more of a Python program.
    #[must_use]
    pub fn hint(&self, python: bool) -> Option<&'static str> {
        let native = !python && self.notes.bindings.contains("Python");
        native.then_some("the program calls MPI from Python: --python names its own lines as call sites")
    }

    /// Processor time that recording took in the ranks, and that merging and reducing there took.
    fn cost(&self) -> String {
        let n = self.notes;
        if n.told.is_empty() {
            return "unknown".into();
        }
        let mut cost = format!("{} of processor time", seconds(Duration::from_nanos(n.own_ns)));
        let permille = n.own_ns.saturating_mul(1000).checked_div(n.cpu_ns);
        match permille {
            None => {}
            Some(0) => cost.push_str(" (below 0.1 %)"),
            Some(p) => {
                // Ranks that are held up keep others waiting, which may cost many times as much: no rank can tell.
                let waits = p >= TOLD && n.told.len() > 1;
                let waits = if waits { ", without what ranks wait longer for each other" } else { "" };
                let _ = write!(cost, " ({}.{} %{waits})", p / 10, p % 10);
            }
        }
        if n.silent > 0 {
            let _ = write!(cost, " on the {} that told", counted(n.told.len().to_u64(), "rank"));
        }
        let merging = n.merging.map_or(0, |[sum, ..]| sum);
        for (what, ns) in [("merging", merging), ("interim reductions", n.interims[2])] {
            if ns > 0 {
                let _ = write!(cost, ", {what} {}", seconds(Duration::from_nanos(ns)));
            }
        }
        cost
    }

    fn losses(&self) -> String {
        let n = self.notes;
        let [world, ranks] = [self.world, self.ranks].map(|n| counted(n, "rank"));
        let mut all = Vec::new();
        let (failed, why) = (n.failed.ranks, &n.failed.why);
        // Those that could not record have said why.
        let silent = self.world.saturating_sub(self.ranks).saturating_sub(n.failed.without_stream());
        if let missing @ 1.. = silent {
            let why = match self.full {
                true => format!("no room on the disk?{}", advice(FULL)),
                false if n.without.is_empty() => "killed in MPI_Init?".into(),
                false => format!("{} ran without the recorder", n.without),
            };
            all.push(format!("{missing} of {world} left no trace ({why})"));
        }
        if failed > 0 {
            all.push(format!("recording failed on {failed} ({why}{})", advice(why)));
        }
        if n.ended > 0 {
            all.push(format!("{} of {ranks} ended early (st-stat says where)", n.ended));
        }
        if let Some(option) = self.untimed {
            all.push(format!("calls and distributions of times kept, exact times not ({option})"));
        }
        if n.folded {
            all.push("exact times folded into sketches".into());
        }
        if n.lost > 0 {
            all.push(format!("exact times of {} of {ranks} could not be written", n.lost));
        }
        if n.stopped > 0 {
            all.push(format!("exact times stopped at the budget on {} of {ranks}", n.stopped));
        }
        all.extend(most_called(&n.opaque).map(|(calls, named)| format!("{calls} by name only ({named})")));
        all.extend(
            most_called(&n.inside)
                .map(|(calls, named)| format!("{calls} inside of others not recorded ({named})")),
        );
        all.extend(
            most_called(&n.outside)
                .map(|(calls, named)| format!("{calls} before MPI_Init or after MPI_Finalize ({named})")),
        );
        if let n @ 1.. = n.unrecorded.len() {
            let functions = if n == 1 { "function" } else { "functions" };
            all.push(format!("{n} {functions} of this MPI not recorded, if called"));
        }
        if all.is_empty() { "nothing dropped".into() } else { all.join("; ") }
    }
}

/// `9 calls`, and the functions that are called most often, with how often; `None` if there are none.
fn most_called(calls: &BTreeMap<String, u64>) -> Option<(String, String)> {
    let mut by_count: Vec<_> = calls.iter().collect();
    by_count.sort_by_key(|(name, count)| (Reverse(**count), name.as_str()));
    let named: Vec<_> = by_count.iter().take(4).map(|(name, count)| format!("{name} {count}")).collect();
    let more = if by_count.len() > named.len() { ", …" } else { "" };
    (!calls.is_empty())
        .then(|| (counted(calls.values().sum(), "call"), format!("{}{more}", named.join(", "))))
}

/// What the system says where a disk is full.
pub(crate) const FULL: &str = "No space left on device";

/// What to do where a disk is full, if that is what is said.
pub(crate) fn advice(why: &str) -> &'static str {
    let full = why.contains(FULL);
    if full {
        "; -o names a file on a disk with room, and streams are beside it; --time sketch needs less"
    } else {
        ""
    }
}

/// `exit 3` or `killed by signal 9`.
fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// `1.4 s`, `120 ms`.
pub(crate) fn seconds(t: Duration) -> String {
    let ms = t.as_millis();
    let tenths = (ms + 50) / 100;
    if ms < 1000 { format!("{ms} ms") } else { format!("{}.{} s", tenths / 10, tenths % 10) }
}

/// `980 bytes`, `20 kB`, `1.2 MB`.
pub(crate) fn size(bytes: u64) -> String {
    // Rounded, halves up.
    let of = |one: u64| bytes / one + u64::from(bytes % one >= one.div_ceil(2));
    let in_tenths = |tenths: u64, unit: &str| format!("{}.{} {unit}", tenths / 10, tenths % 10);
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        _ if of(100) < 100 => in_tenths(of(100), "kB"),
        _ if of(1_000) < 1_000 => format!("{} kB", of(1_000)),
        _ if of(100_000) < 10_000 => in_tenths(of(100_000), "MB"),
        _ => in_tenths(of(100_000_000), "GB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failed::Failed;

    fn summary(notes: &Notes) -> Summary<'_> {
        let (file, packing) = ("lmp-4r.st".into(), Duration::from_millis(7));
        let (bytes, time_bytes) = (Some(150_000), TimeBytes { stored: 140_000, spared: 10_000 });
        let (ranks, world, full, untimed, ended) = (4, 4, false, None, None);
        Summary { file, bytes, time_bytes, packing, notes, ranks, world, full, untimed, ended }
    }

    #[test]
    fn the_line_says_what_is_not_kept_and_not_in_the_cost() {
        let notes =
            Notes { told: (0..4).collect(), own_ns: 500_000_000, cpu_ns: 5_500_000_000, ..Notes::default() };
        let waits = "(9.0 %, without what ranks wait longer for each other)";
        assert!(summary(&notes).line().contains(waits), "{}", summary(&notes).line());
        let little = Notes { own_ns: 20_000_000, ..notes.clone() };
        assert!(summary(&little).line().contains("(0.3 %)"), "{}", summary(&little).line());
        assert!(!summary(&Notes { told: [0].into(), ..notes.clone() }).line().contains("wait"));
        let line = Summary { untimed: Some("--reduce-every"), ..summary(&notes) }.line();
        let kept = "; calls and distributions of times kept, exact times not (--reduce-every)";
        assert!(line.ends_with(kept), "{line}");
        assert!(
            summary(&Notes { lost: 1, ..notes })
                .line()
                .ends_with("exact times of 1 of 4 ranks could not be written")
        );
    }

    #[test]
    fn a_full_disk_is_named_with_what_to_do() {
        let failed =
            Failed { ranks: 1, why: format!("/d/rank-000003.st: {FULL} (os error 28)"), ..Failed::default() };
        let notes = Notes { failed, ..Notes::default() };
        let line = Summary { ranks: 3, ..summary(&notes) }.line();
        let named = "(/d/rank-000003.st: No space left on device (os error 28); -o names a file";
        assert!(line.contains(named) && !line.contains("killed"), "{line}");
        // One has failed and left its stream, another was killed.
        let mut there = notes.clone();
        there.failed.there = 1;
        let line = Summary { ranks: 3, ..summary(&there) }.line();
        assert!(line.contains("1 of 4 ranks left no trace") && line.contains("failed on 1 (/d"), "{line}");
        let none = Notes::default();
        let line = Summary { ranks: 3, full: true, ..summary(&none) }.line();
        assert!(line.contains("1 of 4 ranks left no trace (no room on the disk?; -o names"), "{line}");
        let line = Summary { ranks: 3, ..summary(&none) }.line();
        assert!(line.contains("1 of 4 ranks left no trace (killed in MPI_Init?)"), "{line}");
        let without = Notes { without: "rank 1".into(), ..Notes::default() };
        let line = Summary { ranks: 3, ..summary(&without) }.line();
        assert!(line.contains("1 of 4 ranks left no trace (rank 1 ran without the recorder)"), "{line}");
    }

    #[test]
    fn the_line_says_what_is_where_and_what_is_missing() {
        let ended = |raw| Ended { elapsed: Duration::from_millis(1400), status: ExitStatus::from_raw(raw) };
        let mut notes = Notes {
            told: (0..4).collect(),
            calls: 33_701,
            own_ns: 133_600_000,
            cpu_ns: 5_500_000_000,
            ..Notes::default()
        };
        assert_eq!(
            Summary { ended: Some(&ended(0)), ..summary(&notes) }.line(),
            "4 ranks, 33,701 calls in 1.4 s → lmp-4r.st, 150 kB (exact times; 20 kB without); own cost 133 ms \
             of processor time (2.4 %, without what ranks wait longer for each other), packing 7 ms; nothing dropped; exit 0"
        );
        assert_eq!(
            summary(&notes).line(),
            "4 ranks, 33,701 calls → lmp-4r.st, 150 kB (exact times; 20 kB without); own cost 133 ms of processor \
             time (2.4 %, without what ranks wait longer for each other), packing 7 ms; nothing dropped"
        );
        let dear = TimeBytes { stored: 9_000, spared: 9_000 };
        let line = Summary { time_bytes: dear, ..summary(&notes) }.line();
        assert!(line.contains("150 kB (exact times); own cost"), "{line}");
        assert_eq!(ended(9).words(), " in 1.4 s; killed by signal 9");
        notes.merging = Some([42_000_000, 20_000_000, 25_000_000]);
        let merged = summary(&notes);
        assert!(
            merged.line().contains(
                "(2.4 %, without what ranks wait longer for each other), merging 42 ms, packing 7 ms"
            ),
            "{}",
            merged.line()
        );
        assert_eq!(
            merged.merging().as_deref(),
            Some(
                "merging took 25 ms in MPI_Finalize, and 42 ms of processor time, 20 ms of them on one rank"
            )
        );
        assert_eq!(merged.interims(), None);
        assert_eq!(merged.hint(false), None);
        notes.bindings = ["C".to_owned(), "Python".to_owned()].into();
        let python = summary(&notes);
        assert!(python.hint(false).is_some_and(|hint| hint.contains("--python")));
        assert_eq!(python.hint(true), None);
        notes.interims = [7, 1, 42_000_000];
        let some = summary(&notes).interims();
        assert_eq!(some.as_deref(), Some("7 interim reductions, 1 that failed; 42 ms of processor time"));
        (notes.stopped, notes.silent) = (1, 1);
        notes.failed = Failed { ranks: 2, why: "no room".into(), ..Failed::default() };
        notes.opaque = [("MPI_Put".to_owned(), 2), ("MPI_Win_fence".to_owned(), 9)].into();
        let line = Summary { ended: Some(&ended(9)), ..summary(&notes) }.line();
        assert!(line.contains("11 calls by name only (MPI_Win_fence 9, MPI_Put 2)"), "{line}");
        let outside = [("MPI_T_init_thread".to_owned(), 1)].into();
        let early = summary(&Notes { outside, ..Notes::default() }).line();
        assert!(
            early.contains("; 1 call before MPI_Init or after MPI_Finalize (MPI_T_init_thread 1)"),
            "{early}"
        );
        let inside = [("MPI_Op_free".to_owned(), 1)].into();
        let line_of_inside = summary(&Notes { inside, ..Notes::default() }).line();
        assert!(
            line_of_inside.ends_with("; 1 call inside of others not recorded (MPI_Op_free 1)"),
            "{line_of_inside}"
        );
        assert!(line.contains("(2.4 %, without what ranks wait longer for each other) on the 4 ranks that told, merging 42 ms, interim reductions 42 ms"));
        let one = Notes { told: [0].into(), ..notes.clone() };
        assert!(summary(&one).line().contains(" on the 1 rank that told"), "{}", summary(&one).line());
        assert!(line.contains("recording failed on 2 (no room)"), "{line}");
        assert!(
            line.contains("stopped at the budget on 1 of 4 ranks") && line.ends_with("killed by signal 9"),
            "{line}"
        );
        let functions = ["MPI_A".to_owned(), "MPI_B".to_owned()].into();
        let line = summary(&Notes { unrecorded: functions, ..Notes::default() }).line();
        assert!(line.ends_with("; 2 functions of this MPI not recorded, if called"), "{line}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [size(7), size(1_250), size(20_400), size(1_250_000)],
            ["7 bytes", "1.3 kB", "20 kB", "1.3 MB"]
        );
        assert_eq!(
            [size(9_949), size(9_950), size(999_500), size(999_950_000)],
            ["9.9 kB", "10 kB", "1.0 MB", "1.0 GB"]
        );
        let times = [999, 1_349, 1_350].map(|ms| seconds(Duration::from_millis(ms)));
        assert_eq!(times, ["999 ms", "1.3 s", "1.4 s"]);
    }
}
