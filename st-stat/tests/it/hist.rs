//! Distributions, from a file to what is drawn.

use std::path::PathBuf;

use clap::Parser;
use st_capture::record::{Options, RankRecorder};
use st_cli::{Status, UsageError};
use st_model::calls::{CallTable, names};
use st_model::columns::Column;
use st_model::header::Header;
use st_model::section::Section;
use st_model::sketch::{Shape, bucket};
use st_reduce::kept::Kept;
use st_reduce::merge::merge;
use st_stat::args::Args;
use st_stream::{Trace, WriteOptions};

/// A rank whose barriers at one site come 20 µs after a send and 5 µs after each other; that after a send takes 2 µs and 40 ns more per
/// rank, the other one 1 ms.
fn rank(rank: u32, shape: Shape) -> Section {
    let mut r = RankRecorder::new(rank, Options { shape, ..Options::default() });
    r.open_thread(0);
    let id = |name| CallTable::builtin().by_name(name).unwrap().id;
    let [main, step, other] = ["main", "step app.c:7", "step app.c:9"].map(|label| r.sites.label(label));
    let [init, end] = [names::MPI_Init, names::MPI_Finalize].map(|name| r.symbol(id(name), main, 0));
    let [send, barrier] = [(names::MPI_Send, other), (names::MPI_Barrier, step)]
        .map(|(name, site)| r.symbol(id(name), site, 0));
    r.record(0, init, &[], 0, 1_000);
    let mut now = 1_000;
    let mut call = |r: &mut RankRecorder, sym, words: &[i64], before: i64, took: i64| {
        r.record(0, sym, words, now + before, now + before + took);
        now += before + took;
    };
    for i in 0..60 {
        call(&mut r, send, &[1, 0, 1, 7, 0], 100, 500);
        call(&mut r, barrier, &[0], 20_000 + i, 2_000 + 40 * i64::from(rank));
        call(&mut r, barrier, &[0], 5_000, 1_000_000);
    }
    call(&mut r, end, &[], 0, 1_000);
    r.finish("host")
}

/// What `st-stat hist` says of four ranks.
fn said(site: &str, shape: Shape, options: &[&str]) -> anyhow::Result<String> {
    run(&[&["hist", site], options].concat(), shape)
}

/// What a command says of them: options behind its own arguments.
fn run(command: &[&str], shape: Shape) -> anyhow::Result<String> {
    run_of((0..4).map(|r| rank(r, shape)).collect(), command)
}

fn run_of(sections: Vec<Section>, command: &[&str]) -> anyhow::Result<String> {
    let dir = tempfile::tempdir()?;
    let [path, out]: [PathBuf; 2] = ["app.st", "out"].map(|n| dir.path().join(n));
    let header = Header { world: 4, program: "app".into(), ..Header::default() };
    let trace = Trace { header, sections, level: 0, ..Trace::default() };
    st_stream::write(&trace, std::fs::File::create(&path)?, WriteOptions { level: 0 })?;
    let paths = [path.to_str().unwrap(), "-q", "-o", out.to_str().unwrap()];
    let words = ["st-stat"].iter().chain(command).chain(&paths);
    assert_eq!(st_stat::run(&Args::try_parse_from(words)?)?, Status::Ok);
    Ok(std::fs::read_to_string(&out)?)
}

#[test]
fn the_drawing_has_quantiles_extreme_ranks_modes_and_paths() {
    let text = said("step app.c:7", Shape::Buckets, &[]).unwrap();
    let expected = "\
MPI_Barrier (site 1, step app.c:7): 480 calls

computation before: 6.01 ms in all, mean 12.5 µs
  1 % 5.00 µs, 10 % 5.00 µs, median 5.00 µs, 90 % 20.1 µs, 99 % 20.1 µs
  shortest 5.00 µs (rank 0), longest 20.1 µs (rank 0)
  in all calls of a rank: least 1.50 ms (rank 0), most 1.50 ms (rank 3)
  2 modes: 50.0 % around 4.97 µs, 50.0 % around 20.1 µs
  4.92 µs … 5.33 µs  240  ██████████████████████████████████████████████████████
  5.33 µs … 19.2 µs    0
  19.2 µs … 20.1 µs  240  ██████████████████████████████████████████████████████

in call: 240 ms in all, mean 501 µs
  1 % 2.02 µs, 10 % 2.02 µs, median 2.10 µs, 90 % 995 µs, 99 % 995 µs
  shortest 2.00 µs (rank 0), longest 1.00 ms (rank 0)
  in all calls of a rank: least 60.1 ms (rank 0), most 60.1 ms (rank 3)
  2 modes: 50.0 % around 2.06 µs, 50.0 % around 995 µs
  2.00 µs … 2.75 µs  240  ██████████████████████████████████████████████████████
  2.75 µs …  874 µs    0
   874 µs … 1.00 ms  240  ██████████████████████████████████████████████████████

calls  mean before  in call  after (--paths: apart)
  240      5.00 µs  1.00 ms  MPI_Barrier (site 1, step app.c:7)
  240      20.0 µs  2.06 µs  MPI_Send (site 2, step app.c:9)
";
    assert_eq!(text, expected);
    assert!(text.lines().all(|l| l.chars().count() <= 80));
}

#[test]
fn a_site_is_found_by_all_that_is_printed_of_it() {
    let text = said("1", Shape::Buckets, &[]).unwrap();
    for name in ["site 1", "site 1, step app.c:7", "step app.c:7", names::MPI_Barrier] {
        assert_eq!(said(name, Shape::Buckets, &[]).unwrap(), text, "{name}");
    }
    let both = said("step", Shape::Buckets, &[]).unwrap();
    assert!(both.starts_with("MPI_Barrier (site 1, ") && both.contains("\n\nMPI_Send (site 2, "), "{both}");
    for nothing in ["3", "st", "app.c:70", "MPI_Recv"] {
        let refused = said(nothing, Shape::Buckets, &[]).unwrap_err();
        assert!(refused.is::<UsageError>() && refused.to_string().starts_with(nothing), "{refused:#}");
        assert!(!refused.to_string().contains(" is one"), "{refused:#}");
    }
    let refused = said("MPI_Bar", Shape::Buckets, &[]).unwrap_err();
    assert!(refused.to_string().ends_with("(st-stat calls lists them; MPI_Barrier is one)"), "{refused:#}");
}

#[test]
fn paths_are_told_apart() {
    let text = said("1", Shape::Buckets, &["--paths"]).unwrap();
    let [a, b] = [
        "\nafter MPI_Barrier (site 1, step app.c:7): 240 calls\n",
        "\nafter MPI_Send (site 2, step app.c:9): 240 calls\n",
    ]
    .map(|head| text.find(head).unwrap());
    assert!(a < b && !text.contains("modes"), "{text}");
    assert!(text[..b].contains("median 1.00 ms") && !text[b..].contains("1.00 ms"), "{text}");
}

#[test]
fn buckets_are_there_for_programs() {
    let csv = said("1", Shape::Buckets, &["--format", "csv", "--paths"]).unwrap();
    let head = "function,site,place,phase,after_function,after_site,after_place,from_ns,to_ns,calls,share_percent,cumulative_percent";
    assert_eq!(csv.lines().next(), Some(head));
    let row = |start: &str| {
        csv.lines()
            .find_map(|l| l.strip_prefix(start))
            .unwrap_or_else(|| panic!("{start} in {csv}"))
            .split(',')
            .map(|n| n.parse::<f64>().unwrap())
            .collect::<Vec<_>>()
    };
    let slow = row("MPI_Barrier,1,step app.c:7,in call,MPI_Barrier,1,step app.c:7,");
    assert!(slow[0] <= 1e6 && 1e6 <= slow[1] && slow[1] < 1.03 * slow[0], "{slow:?}");
    assert_eq!(slow[2..], [240.0, 100.0, 100.0]);
    let first = row("MPI_Barrier,1,step app.c:7,in call,MPI_Send,2,step app.c:9,");
    assert_eq!(first[2..], [60.0, 25.0, 25.0]);
    let json = said("1", Shape::Buckets, &["--format", "json"]).unwrap();
    let rows: Vec<serde_json::Value> = json.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let calls = |phase: &str| {
        rows.iter().filter(|r| r["phase"] == phase).map(|r| r["calls"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((calls("before"), calls("in call")), (480, 480));
    assert!(
        rows.iter().all(|r| r["after_function"].is_null()
            && bucket(r["from_ns"].as_u64().unwrap()) == bucket(r["to_ns"].as_u64().unwrap())),
        "{json}"
    );
}

#[test]
fn what_tells_no_paths_apart_says_so() {
    let one_path = |sections: Vec<Section>, columns: bool, buckets: bool| {
        let mut merged = merge(sections, columns).unwrap();
        let kept = Kept { one_path: true, buckets, ..Kept::default() };
        kept.apply(&mut merged, &mut Header::default());
        vec![merged]
    };
    let ranks = || (0..4).map(|r| rank(r, Shape::Buckets)).collect();
    let told = |words: &[&str]| {
        run_of(one_path(ranks(), false, true), &[&["hist", "MPI_Barrier"], words].concat()).unwrap()
    };
    // What all paths have together is the same.
    let all = said("MPI_Barrier", Shape::Buckets, &[]).unwrap();
    let drawn = |text: &str| text.lines().filter(|l| l.contains('█')).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((drawn(&told(&[])), drawn(&all).is_empty()), (drawn(&all), false));
    let apart = told(&["--paths"]);
    assert!(apart.contains("\nafter any call (st-merge --sketch-paths): 480 calls\n"), "{apart}");
    let csv = told(&["--paths", "--format", "csv"]);
    assert!(csv.contains(",step app.c:7,in call,any,,,") && !csv.contains("MPI_Send"), "{csv}");
    // Exact times tell what is kept in part only, of the same calls.
    let hist = ["hist", "MPI_Barrier", "--paths"];
    let exact = run_of(one_path(vec![timed(0), timed(1)], true, false), &hist).unwrap();
    assert_eq!(exact, run_of(one_path(vec![timed(0), timed(1)], false, true), &hist).unwrap());
    let summary = run_of(one_path(ranks(), false, true), &[]).unwrap();
    assert!(summary.contains("whatever call came before"), "{summary}");
    let summary = run(&[], Shape::Buckets).unwrap();
    assert!(!summary.contains("whatever call came before"), "{summary}");
}

#[test]
fn of_fewer_bins_and_of_totals_there_is_less_to_say() {
    let bins = said("1", Shape::BINS, &[]).unwrap();
    assert!(bins.contains("median") && bins.contains('█') && !bins.contains("modes"), "{bins}");
    let totals = said("1", Shape::Totals, &[]).unwrap();
    assert!(totals.contains("number, sum and extremes only") && !totals.contains('█'), "{totals}");
    let csv = said("1", Shape::Totals, &["--format", "csv"]).unwrap();
    assert!(csv.ends_with(",in call,,,,2000,1000000,480,100.0,100.0\n"), "{csv}");
}

#[test]
fn all_sites_have_a_row_with_quantiles_and_extreme_ranks() {
    let csv = run(&["calls", "--spread", "--format", "csv"], Shape::Buckets).unwrap();
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let rows: Vec<std::collections::BTreeMap<String, String>> =
        reader.deserialize().map(Result::unwrap).collect();
    let of = |phase: &str| {
        rows.iter().find(|row| row["place"] == "step app.c:7" && row["phase"] == phase).unwrap()
    };
    let told = |row: &std::collections::BTreeMap<String, String>| {
        [
            "calls",
            "time_ns",
            "mean_ns",
            "shortest_ns",
            "longest_ns",
            "most_ns",
            "most_rank",
            "least_ns",
            "least_rank",
        ]
        .map(|key| row[key].parse::<u64>().unwrap())
    };
    // Of each rank 60 of 2 µs and 40 ns per rank, and 60 of 1 ms.
    let rank = |rank: u64| 60 * (2_000 + 40 * rank) + 60 * 1_000_000;
    let all: u64 = (0..4).map(rank).sum();
    assert_eq!(told(of("in call")), [480, all, all / 480, 2_000, 1_000_000, rank(3), 3, rank(0), 0]);
    let near = |key: &str, ns: u64| of("in call")[key].parse::<u64>().unwrap().abs_diff(ns) * 100 <= ns;
    assert!(near("percent_10_ns", 2_000) && near("percent_90_ns", 1_000_000), "{csv}");
    assert_eq!(of("before")["calls"], "480");
    // All ranks take equally long before it.
    assert_eq!(of("before")["most_rank"], "");
    // Those that take most come first; where there are only totals no quantile is made up.
    assert_eq!((&*rows[0]["place"], &*rows[0]["phase"]), ("step app.c:7", "in call"));
    let csv = run(&["calls", "--spread", "--format", "csv"], Shape::Totals).unwrap();
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let rows: Vec<std::collections::BTreeMap<String, String>> =
        reader.deserialize().map(Result::unwrap).collect();
    assert!(rows.iter().all(|row| row["median_ns"].is_empty() && !row["longest_ns"].is_empty()), "{csv}");
}

/// A rank of barriers whose durations are all different, with exact times.
fn timed(rank: u32) -> Section {
    let mut r = RankRecorder::new(rank, Options::default());
    r.open_thread(0);
    let id = CallTable::builtin().by_name(names::MPI_Barrier).unwrap().id;
    let site = r.sites.label("step app.c:7");
    let barrier = r.symbol(id, site, 0);
    let (mut now, mut chunks) = (0, Vec::new());
    for i in 0..2_000 {
        let enter = now + 10_007 + 3 * i;
        now = enter + 20_011 + 7 * i + i64::from(rank);
        chunks.extend(r.record(0, barrier, &[0], enter, now).map(|c| *c));
    }
    chunks.extend(r.flush_columns().into_iter().map(|(_, c)| c));
    let mut section = r.finish("host");
    section.threads[0].columns = vec![(rank, Column { chunks, ..Column::default() })];
    section
}

#[test]
fn merged_exact_times_tell_exact_extremes() {
    let told = |sections: Vec<Section>, command: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let [path, out]: [PathBuf; 2] = ["app.st", "out"].map(|n| dir.path().join(n));
        let header = Header { world: 2, program: "app".into(), ..Header::default() };
        let trace = Trace { header, sections, level: 0, ..Trace::default() };
        st_stream::write(&trace, std::fs::File::create(&path).unwrap(), WriteOptions { level: 0 }).unwrap();
        let paths = [path.to_str().unwrap(), "-q", "-o", out.to_str().unwrap()];
        let words = ["st-stat"].iter().chain(command).chain(&paths);
        assert_eq!(st_stat::run(&Args::try_parse_from(words).unwrap()).unwrap(), Status::Ok);
        std::fs::read_to_string(&out).unwrap()
    };
    let merged = |columns: bool| {
        let mut merged = merge([timed(0), timed(1)], columns).unwrap();
        Kept::default().apply(&mut merged, &mut Header::default());
        assert!(merged.threads[0].sketches.iter().any(|s| s.comm.shape() == Shape::Quantiles));
        vec![merged]
    };
    for command in [
        &["calls", "--format", "csv"][..],
        &["calls", "--spread", "--format", "csv"],
        &["hist", "MPI_Barrier"],
    ] {
        let recorded = told(vec![timed(0), timed(1)], command);
        let with = told(merged(true), command);
        let without = told(merged(false), command);
        // Also what each rank takes in all, where ranks differ by a millionth.
        assert_eq!(with, recorded, "{command:?}");
        assert_ne!(without, recorded, "{command:?}");
    } // In the summary, too: which rank takes longest.
    let longest = |sections| {
        let all = told(sections, &["--format", "json"]);
        let facts: serde_json::Value = serde_json::from_str(all.trim()).unwrap();
        ["rank_time_mean_ns", "rank_time_longest_ns", "rank_time_longest_rank"].map(|key| facts[key].clone())
    };
    let recorded = longest(vec![timed(0), timed(1)]);
    assert_eq!(recorded[2], 1);
    assert_eq!(longest(merged(true)), recorded);
    assert_ne!(longest(merged(false)), recorded);
}
