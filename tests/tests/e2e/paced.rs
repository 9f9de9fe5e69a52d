//! How long replays take.

use std::ffi::OsString;
use std::path::Path;

use st_model::values::PROC_NULL;
use st_tests::jobs::Job;
use st_tests::workplace::Workplace;
use st_tests::{Failure, place};

use crate::handmade::{Call, as_histograms, two_ranks};
use crate::stages::under_each;

/// Seconds of a replay: recorded and replayed, of the rank that takes longest.
fn seconds(here: &Workplace, how: &str, trace: &Path) -> Result<(f64, f64), Failure> {
    let words: [OsString; 7] = [
        place::program("st-replay")?.into(),
        "-q".into(),
        "--progress".into(),
        "--csv".into(),
        "--compute".into(),
        how.into(),
        trace.into(),
    ];
    let outcome = here.job.run(words)?.ok()?;
    if !outcome.stderr.contains(" %, call ") {
        return Err(format!("nothing about progress: {outcome}"));
    }
    let said = outcome.text();
    let mut lines = said.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap_or_default();
    let ranks: Vec<_> = lines.collect();
    let longest = |name: &str| {
        let at = head.iter().position(|h| *h == name)?;
        ranks.iter().filter_map(|rank| rank.get(at)?.parse::<f64>().ok()).reduce(f64::max)
    };
    longest("recorded_s").zip(longest("replayed_s")).ok_or_else(|| format!("no times: {said}"))
}

/// Barriers of 20 ms, every 25 ms.
fn slow_barriers(_: i64) -> Vec<Call> {
    let ms = 1_000_000;
    let barriers = (1..=40).map(|n| ("MPI_Barrier", vec![0], n * 25 * ms, (n * 25 + 20) * ms));
    let end = 41 * 25 * ms;
    let ends = |name, at| (name, vec![], at, at);
    std::iter::once(ends("MPI_Init", 0)).chain(barriers).chain([ends("MPI_Finalize", end)]).collect()
}

#[test]
fn replays_on_schedule_make_up_for_calls_that_are_faster() {
    under_each(|job| {
        let here = Workplace::new(Job { ranks: 2, ..job })?;
        let trace = here.path("schedule.st");
        two_ranks(&trace, job.mpi, slow_barriers);
        let (recorded, replayed) = seconds(&here, "schedule", &trace)?;
        // Times are known to one in a hundred; on a busy machine a replay may end late, but not early.
        if !(1.0..1.1).contains(&recorded) || replayed < recorded * 0.97 || replayed > recorded * 1.5 {
            return Err(format!("on schedule: {replayed} s for {recorded}"));
        }
        let (_, freely) = seconds(&here, "none", &trace)?;
        if freely > recorded * 0.5 {
            return Err(format!("the barriers themselves took {freely} s"));
        }
        Ok(())
    });
}

/// Wu and Mueller 2013, figure 6: one rank waits for a message while it computes, the other sends it and computes. Each
/// a second. The message is short: Open MPI sends longer ones only when their receiver is in it, too.
fn at_the_same_time(other: i64) -> Vec<Call> {
    let (ms, word) = (1_000_000, |name, words, at| (name, words, at, at));
    let calls = match other {
        1 => [
            word("MPI_Irecv", vec![1, 0, 1, 7, 0, 0], 0),
            word("MPI_Wait", vec![1, 0, 1, 0, 1, 1, 1, 7, 1, 4], 1000 * ms),
        ],
        _ => [
            word("MPI_Send", vec![1, 0, 0, 7, 0], 0),
            word("MPI_Send", vec![1, 0, PROC_NULL, 7, 0], 1000 * ms),
        ],
    };
    let first =
        [word("MPI_Init", vec![], 0), word("MPI_Barrier", vec![0], 0), word("MPI_Barrier", vec![0], 0)];
    first.into_iter().chain(calls).chain([word("MPI_Finalize", vec![], 1000 * ms)]).collect()
}

#[test]
fn ranks_that_compute_at_the_same_time_do_so_again() {
    under_each(|job| {
        let here = Workplace::new(Job { ranks: 2, ..job })?;
        let (trace, drawn) = (here.path("both.st"), here.path("drawn.st"));
        two_ranks(&trace, job.mpi, at_the_same_time);
        as_histograms(&trace, &drawn)?;
        for trace in [&trace, &drawn] {
            let (_, replayed) = seconds(&here, "sleep", trace)?;
            if !(0.98..1.8).contains(&replayed) {
                return Err(format!("{}: {replayed} s", trace.display()));
            }
        }
        Ok(())
    });
}
