//! What ranks do at a time and between two, against a look at all calls.

use std::collections::BTreeMap;

use crate::common::{Rank, kernel, printed, rows, tried, untimed};
use st_kernels::Kernel;
use st_model::calls::names;
use st_model::section::Section;
use st_reduce::merge::merge;

/// All calls of each rank's first thread: function, enter and exit from the first rank's `MPI_Init`.
fn all(sections: &[Section]) -> Vec<Vec<(String, i64, i64)>> {
    let of = |s: &Section| {
        let mut events = s.events(0, s.ranks.lowest().unwrap()).unwrap().timed();
        let mut all = Vec::new();
        while let Some(event) = events.next_event().unwrap() {
            let (enter, exit) = event.times.unwrap();
            all.push((event.name().unwrap().to_owned(), enter, exit));
        }
        all
    };
    let mut ranks: Vec<Vec<_>> = sections.iter().map(of).collect();
    let zero = ranks.iter().map(|calls| calls[0].1).min().unwrap();
    ranks.iter_mut().flatten().for_each(|call| (call.1, call.2) = (call.1 - zero, call.2 - zero));
    ranks
}

fn seconds(ns: i64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

#[test]
fn each_rank_is_where_its_calls_say() {
    for k in [Kernel::Stencil2d, Kernel::Wavefront, Kernel::Ocean] {
        let sections = kernel(k, 4, 7);
        let calls = all(&sections);
        let end = calls.iter().map(|c| c.last().unwrap().2).max().unwrap();
        for i in 0..25 {
            let t = end * i / 23;
            let csv = printed(sections.clone(), &["at", "--format", "csv", &seconds(t)]);
            let rows = rows(&csv);
            assert_eq!(rows.iter().filter(|row| row["thread"] == "0").count(), 4, "{csv}");
            for row in rows.iter().filter(|row| row["thread"] == "0") {
                let calls = &calls[row["rank"].parse::<usize>().unwrap()];
                let at = calls.iter().position(|(_, _, exit)| *exit > t);
                let state = match at.map(|at| (calls[at].1 <= t, at)) {
                    None => "ended",
                    Some((true, _)) => "call",
                    Some((false, 0)) => "not begun",
                    Some(_) => "computation",
                };
                assert_eq!(row["state"], state, "{k:?} {t} {csv}");
                let Some(at) = at else { continue };
                let (name, enter, exit) = &calls[at];
                let (since, left) = match state {
                    "call" => (t - enter, exit - t),
                    "computation" => (t - calls[at - 1].2, enter - t),
                    _ => (0, enter - t),
                };
                let expected =
                    [name.clone(), at.to_string(), since.to_string(), left.to_string(), "true".into()];
                let found = ["function", "call", "since_ns", "left_ns", "exact"].map(|c| row[c].clone());
                assert_eq!(found, expected, "{k:?} {t}");
            }
        }
    }
}

#[test]
fn windows_hold_the_parts_of_calls_in_them() {
    let sections = kernel(Kernel::Stencil2d, 4, 7);
    let calls = all(&sections);
    let end = calls.iter().map(|c| c.last().unwrap().2).max().unwrap();
    for (from, to) in [(0, end * 2), (end / 3, end / 2), (end / 5, end / 5 + 1000)] {
        let mut expected: BTreeMap<String, (u64, i64)> = BTreeMap::new();
        let mut ranks: BTreeMap<(String, String), i64> = BTreeMap::new();
        for (rank, calls) in calls.iter().enumerate() {
            let mut last = None;
            for (name, enter, exit) in calls {
                let gap = last.map_or(0, |last: i64| enter.min(&to) - from.max(last));
                if gap > 0 {
                    expected.entry("(computation)".into()).or_default().1 += gap;
                    *ranks.entry((rank.to_string(), "computation".into())).or_default() += gap;
                }
                if *exit > from && *enter < to {
                    let inside = exit.min(&to) - enter.max(&from);
                    let entry = expected.entry(name.clone()).or_default();
                    *entry = (entry.0 + 1, entry.1 + inside);
                    *ranks.entry((rank.to_string(), "MPI".into())).or_default() += inside;
                }
                last = Some(*exit);
            }
        }
        let command = |by: &'static str| {
            let (from, to) = (seconds(from), seconds(to));
            printed(sections.clone(), &["between", "--by", by, "--format", "csv", &from, &to])
        };
        let mut found: BTreeMap<String, (u64, i64)> = BTreeMap::new();
        for row in rows(&command("site")) {
            let entry = found.entry(row["function"].clone()).or_default();
            *entry = (
                entry.0 + row["calls"].parse::<u64>().unwrap(),
                entry.1 + row["time_ns"].parse::<i64>().unwrap(),
            );
        }
        assert_eq!(found, expected, "{from} {to}");
        let found: BTreeMap<_, _> = rows(&command("rank"))
            .iter()
            .map(|row| ((row["rank"].clone(), row["state"].clone()), row["time_ns"].parse().unwrap()))
            .collect();
        assert_eq!(found, ranks, "{from} {to}");
    }
}

/// A thousand iterations of 1 ms computation and a barrier of 1 ms.
fn regular() -> Vec<Section> {
    let rank = |rank| {
        let mut r = Rank::new(rank, 2);
        r.call(names::MPI_Init, "main", &[], (0, 1_000_000));
        for i in 0..1000 {
            let at = 1_000_000 + 2_000_000 * i;
            r.call(names::MPI_Barrier, "work", &[0], (at + 1_000_000, at + 2_000_000));
        }
        r.call(names::MPI_Finalize, "main", &[], (2_001_000_000, 2_002_000_000));
        r.finish("host")
    };
    vec![rank(0), rank(1)]
}

#[test]
fn text_puts_ranks_together_and_names_the_iteration() {
    let text = printed(regular(), &["at", "1.2335"]);
    assert!(text.starts_with("1.23 s after the first rank's MPI_Init (exact times)\n"), "{text}");
    let row = text.lines().find(|line| line.starts_with("ranks 0, 1")).unwrap();
    // The 617th iteration began half a millisecond before.
    assert!(
        row.contains("computation  MPI_Barrier") && row.contains("616/1000") && row.ends_with("work"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let text = printed(regular(), &["between", "0.1", "0.2"]);
    assert!(text.contains("MPI_Barrier") && text.contains("(computation)"), "{text}");
}

#[test]
fn without_exact_times_it_is_estimated_and_said_so() {
    for sections in [untimed(regular()), vec![merge(untimed(regular()), false).unwrap()]] {
        let csv = printed(sections.clone(), &["at", "--format", "csv", "1.2345"]);
        for row in rows(&csv) {
            assert_eq!((&*row["function"], &*row["exact"]), (names::MPI_Barrier, "false"), "{csv}");
            let iteration = row["iteration"].split('/').next().unwrap().parse::<i64>().unwrap();
            // Sums of several ranks are known to 1 %.
            assert!((iteration - 616).abs() <= 10, "{csv}");
        }
        let csv = printed(sections, &["between", "--format", "csv", "0.5", "0.7"]);
        let barrier = rows(&csv).into_iter().find(|row| row["function"] == names::MPI_Barrier).unwrap();
        let ns = barrier["time_ns"].parse::<i64>().unwrap();
        assert!((ns - 200_000_000).abs() < 8_000_000, "{csv}");
    }
    assert!(printed(untimed(regular()), &["at", "1"]).contains("(estimated)"));
}

#[test]
fn nonsense_is_refused() {
    for command in [&["between", "2", "1"][..], &["between", "5000", "6000"], &["at", "-1"], &["at", "soon"]]
    {
        assert!(tried(regular(), command).is_err(), "{command:?}");
    }
}

#[test]
fn too_many_ranks_are_refused() {
    for words in [&["at", "0"][..], &["between", "0", "1"]] {
        assert!(tried(kernel(Kernel::Stencil2d, 4, 3), words).is_ok());
        let few = [words, &["--max-steps", "255"]].concat();
        let refused = format!("{:#}", tried(kernel(Kernel::Stencil2d, 4, 3), &few).unwrap_err());
        // 64 for each rank.
        assert!(refused.contains("it takes 256 steps or more"), "{refused}");
    }
}

#[test]
fn text_tells_threads_apart() {
    let mut r = Rank::new(0, 1);
    let other = r.recorder.open_thread(1);
    r.call(names::MPI_Init_thread, "main", &[3, 3], (0, 100));
    let site = r.recorder.sites.label("worker");
    let id = st_model::calls::CallTable::builtin().by_name(names::MPI_Barrier).unwrap().id;
    let symbol = r.recorder.symbol(id, site, 0);
    r.recorder.record(other, symbol, &[0], 200, 5_000_000_000);
    r.call(names::MPI_Finalize, "main", &[], (9_000_000_000, 9_000_000_100));
    let text = printed(untimed(vec![r.finish("host")]), &["at", "2"]);
    let row =
        |thread| text.lines().find(|line| line.starts_with(&format!("rank 0  {thread:>6}  "))).unwrap_or("");
    assert!(row(0).contains("MPI_Finalize") && row(1).contains("MPI_Barrier"), "{text}");
}
