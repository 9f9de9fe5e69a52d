//! What a replay comes to: recorded and replayed time of each rank, and how far they are apart.
//!
//! Source of the measures: Wu, Mueller 2011 and Bahmani, Mueller 2014 (mean absolute percentage error), Ratn et al. 2008 (signed
//! error of the total).

use std::fmt::Write as _;

/// Times of one rank between the end of `MPI_Init` and the start of `MPI_Finalize`, ns, in the order in which ranks hand
/// them over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Times {
    /// As recorded: all times between calls and in them.
    pub recorded: u64,
    /// As replayed.
    pub replayed: u64,
    /// Recorded time in MPI.
    pub recorded_mpi: u64,
    /// Replayed time in MPI.
    pub replayed_mpi: u64,
    /// Number of waits that were over before they began.
    pub late_waits: u64,
    /// How late the rank was after its last wait.
    pub late: u64,
}

/// Ranks that the table for people shows at most.
const SHOWN: usize = 16;

/// Signed error of the replayed time, percent; nothing if there is no recorded time.
fn error(t: &Times) -> Option<f64> {
    let (recorded, replayed) = (seconds(t.recorded), seconds(t.replayed));
    (t.recorded > 0).then(|| 100.0 * (replayed - recorded) / recorded)
}

#[expect(clippy::cast_precision_loss, reason = "durations for people and statistics")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn percent(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { 100.0 * seconds(part) / seconds(of) }
}

/// Times of all ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayTimes {
    /// By rank.
    pub ranks: Vec<Times>,
}

impl ReplayTimes {
    /// The longest times of all ranks; the sums of their times in MPI and late waits.
    #[must_use]
    pub fn total(&self) -> Times {
        let max = |of: fn(&Times) -> u64| self.ranks.iter().map(of).max().unwrap_or(0);
        let sum = |of: fn(&Times) -> u64| self.ranks.iter().map(of).fold(0, u64::saturating_add);
        Times {
            recorded: max(|t| t.recorded),
            replayed: max(|t| t.replayed),
            recorded_mpi: sum(|t| t.recorded_mpi),
            replayed_mpi: sum(|t| t.replayed_mpi),
            late_waits: sum(|t| t.late_waits),
            late: max(|t| t.late),
        }
    }

    /// Mean over the ranks of the error's absolute value, percent.
    #[must_use]
    pub fn mape(&self) -> Option<f64> {
        let errors: Vec<f64> = self.ranks.iter().filter_map(error).map(f64::abs).collect();
        let n = u32::try_from(errors.len()).ok().filter(|&n| n > 0)?;
        Some(errors.iter().sum::<f64>() / f64::from(n))
    }

    /// One line: times, error, shares of MPI.
    #[must_use]
    pub fn summary(&self) -> String {
        let total = self.total();
        let (Some(error), Some(mape)) = (error(&total), self.mape()) else {
            let replayed = seconds(total.replayed);
            return format!("replayed in {replayed:.3} s; no recorded times to compare with");
        };
        let sum = |of: fn(&Times) -> u64| self.ranks.iter().map(of).fold(0, u64::saturating_add);
        format!(
            "recorded {:.3} s, replayed {:.3} s, error {error:+.1} %, mean of ranks {mape:.1} %; in MPI {:.0} % and {:.0} %",
            seconds(total.recorded),
            seconds(total.replayed),
            percent(total.recorded_mpi, sum(|t| t.recorded)),
            percent(total.replayed_mpi, sum(|t| t.replayed)),
        )
    }

    /// A table for people, of the first ranks if there are many.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = format!(
            "{:>5} {:>12} {:>12} {:>8} {:>14} {:>14} {:>10}\n",
            "rank", "recorded s", "replayed s", "error %", "recorded MPI %", "replayed MPI %", "late waits"
        );
        for (rank, t) in self.ranks.iter().take(SHOWN).enumerate() {
            let error = error(t).map_or_else(|| "-".into(), |e| format!("{e:+.1}"));
            let shares = (percent(t.recorded_mpi, t.recorded), percent(t.replayed_mpi, t.replayed));
            let (recorded, replayed) = (seconds(t.recorded), seconds(t.replayed));
            // Writing to a string does not fail.
            let _ = writeln!(
                out,
                "{rank:>5} {recorded:>12.3} {replayed:>12.3} {error:>8} {:>14.1} {:>14.1} {:>10}",
                shares.0, shares.1, t.late_waits
            );
        }
        if let Some(more) = self.ranks.len().checked_sub(SHOWN).filter(|n| *n > 0) {
            let _ = writeln!(out, "and {more} more ranks: --csv and --json have all");
        }
        out
    }

    /// Comma-separated values: a header, and a line per rank.
    #[must_use]
    pub fn csv(&self) -> String {
        let names = fields(0, &Times::default()).map(|(name, _)| name.to_owned());
        let rows = self.by_rank().map(|fields| fields.map(|(_, value)| value));
        std::iter::once(names).chain(rows).map(|row| row.join(",") + "\n").collect()
    }

    /// A JSON object per rank and line.
    #[must_use]
    pub fn json(&self) -> String {
        let field = |(name, value): (_, String)| {
            format!("\"{name}\":{}", if value.is_empty() { "null" } else { &value })
        };
        self.by_rank().map(|fields| format!("{{{}}}\n", fields.map(field).join(","))).collect()
    }

    fn by_rank(&self) -> impl Iterator<Item = [(&'static str, String); COLUMNS]> {
        self.ranks.iter().enumerate().map(|(rank, t)| fields(rank, t))
    }
}

/// Columns of CSV and JSON.
const COLUMNS: usize = 8;

/// Names and values of a rank's line, empty if not known.
fn fields(rank: usize, t: &Times) -> [(&'static str, String); COLUMNS] {
    let s = |ns| format!("{:.9}", seconds(ns));
    [
        ("rank", rank.to_string()),
        ("recorded_s", s(t.recorded)),
        ("replayed_s", s(t.replayed)),
        ("error_percent", error(t).map_or_else(String::new, |e| format!("{e:.3}"))),
        ("recorded_mpi_s", s(t.recorded_mpi)),
        ("replayed_mpi_s", s(t.replayed_mpi)),
        ("late_waits", t.late_waits.to_string()),
        ("late_s", s(t.late)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> ReplayTimes {
        let second = 1_000_000_000;
        let rank = |recorded, replayed| Times {
            recorded,
            replayed,
            recorded_mpi: second,
            replayed_mpi: second / 2,
            late_waits: 3,
            late: 5,
        };
        ReplayTimes { ranks: vec![rank(2 * second, second * 21 / 10), rank(4 * second, second * 38 / 10)] }
    }

    #[test]
    fn the_total_is_the_longest_rank_and_errors_are_averaged_by_size() {
        let o = outcome();
        assert_eq!((o.total().recorded, o.total().replayed), (4_000_000_000, 3_800_000_000));
        assert!((o.mape().unwrap() - 5.0).abs() < 1e-9);
        assert_eq!(
            o.summary(),
            "recorded 4.000 s, replayed 3.800 s, error -5.0 %, mean of ranks 5.0 %; in MPI 33 % and 17 %"
        );
    }

    #[test]
    fn csv_and_json_have_a_line_for_each_rank_and_no_other() {
        let csv = outcome().csv();
        let columns: Vec<usize> = csv.lines().map(|l| l.split(',').count()).collect();
        assert_eq!(columns, [8; 3]);
        assert!(csv.starts_with("rank,recorded_s,replayed_s,error_percent,recorded_mpi_s,"), "{csv}");
        assert!(
            csv.ends_with("\n1,4.000000000,3.800000000,-5.000,1.000000000,0.500000000,3,0.000000005\n"),
            "{csv}"
        );
        let json = outcome().json();
        let first =
            "{\"rank\":0,\"recorded_s\":2.000000000,\"replayed_s\":2.100000000,\"error_percent\":5.000,";
        assert!(json.starts_with(first), "{json}");
        assert_eq!(json.lines().count(), 2);
    }

    #[test]
    fn without_recorded_times_nothing_is_compared() {
        let o = ReplayTimes { ranks: vec![Times { replayed: 1_000_000, ..Times::default() }] };
        assert_eq!(o.summary(), "replayed in 0.001 s; no recorded times to compare with");
        assert!(o.json().contains("\"error_percent\":null"));
        assert!(o.table().contains(" - "));
    }
}
