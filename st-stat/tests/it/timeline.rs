//! The timeline in text: what it draws of a program whose times are known.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Rank, printed, rows, tried, with_slow};
use st_kernels::{Kernel, Slow};
use st_model::calls::names;
use st_model::section::Section;
use st_reduce::merge::merge;

/// Four ranks compute for 1 ms before a barrier, rank 2 for 3 ms; and once more. MPI_Init takes 1 ms, the barrier itself nothing.
fn program() -> Vec<Section> {
    let mut ranks: Vec<Rank> = (0..4).map(|rank| Rank::new(rank, 4)).collect();
    ranks.iter_mut().for_each(|r| r.call(names::MPI_Init, "main", &[], (0, 1_000_000)));
    for turn in 0..2 {
        let begin = 1_000_000 + turn * 3_000_000;
        for (rank, r) in (0..).zip(&mut ranks) {
            let enter = begin + if rank == 2 { 3_000_000 } else { 1_000_000 };
            r.call(names::MPI_Barrier, "step", &[0], (enter, begin + 3_000_000));
        }
    }
    ranks.iter_mut().for_each(|r| r.call(names::MPI_Finalize, "main", &[], (7_000_000, 8_000_000)));
    ranks.into_iter().map(|r| r.finish("host")).collect()
}

#[test]
fn waits_are_drawn_where_they_are() {
    let text = printed(program(), &["timeline", "--columns", "6"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "a row is a rank, a column 1.00 ms");
    assert_eq!(&lines[2..6], ["   0 ·CC·CC", "   1 ·CC·CC", "   2 ······", "   3 ·CC·CC"], "{text}");
    assert!(lines[6].ends_with("waits: c collective (capital: half of the time or more)"), "{text}");
}

#[test]
fn neighbours_share_rows_and_nothing_is_lost() {
    let csv = rows(&printed(program(), &["timeline", "--rows", "2", "--columns", "3", "--format", "csv"]));
    assert_eq!(csv.len(), 6);
    let sum = |key: &str| csv.iter().map(|row| row[key].parse::<u64>().unwrap()).sum::<u64>();
    let ranks = rows(&printed(program(), &["ranks", "--format", "csv"]));
    let of_ranks = |key: &str| ranks.iter().map(|row| row[key].parse::<u64>().unwrap()).sum::<u64>();
    for key in ["computation_ns", "mpi_ns"] {
        assert_eq!(sum(key), of_ranks(key), "{key}");
    }
    assert_eq!(sum("collective_ns"), of_ranks("wait_ns"));
    assert_eq!(sum("collective_ns"), 12_000_000);
    assert_eq!((&*csv[3]["first_rank"], &*csv[3]["last_rank"]), ("2", "3"));
    // Times begin with MPI_Init.
    assert_eq!(csv[0]["begin_ns"], "1000000");
}

#[test]
fn ranks_of_a_node_or_a_cluster_share_a_row() {
    let ranks = || with_slow(Kernel::Wavefront, 9, 3, &[Slow { rank: 1, factor: 2.0 }]);
    let all = rows(&printed(ranks(), &["ranks", "--format", "csv"]));
    let told = |words: &[&str]| {
        rows(&printed(ranks(), &[&["timeline", "--columns", "2", "--format", "csv"], words].concat()))
    };
    let sum = |rows: &[BTreeMap<String, String>]| {
        rows.iter().map(|row| row["computation_ns"].parse::<u64>().unwrap()).sum::<u64>()
    };
    let clusters: BTreeSet<String> = rows(&printed(ranks(), &["clusters", "--format", "csv"]))
        .into_iter()
        .map(|row| row["main"].clone())
        .collect();
    let by_cluster = told(&["--by", "cluster"]);
    assert_eq!(by_cluster.iter().map(|row| row["first_cluster"].clone()).collect::<BTreeSet<_>>(), clusters);
    let by_node = told(&["--by", "node"]);
    let section = &ranks()[8];
    assert!(by_node.iter().any(|row| row["first_node"] == section.hosts[0].0), "{by_node:?}");
    assert_eq!([sum(&by_cluster), sum(&by_node)], [sum(&all); 2]);
    // Of more than there are rows, neighbours share one.
    let few = told(&["--by", "cluster", "--rows", "2"]);
    let last = clusters.len() - 1;
    assert_eq!((&*few.last().unwrap()["last_cluster"], sum(&few)), (&*last.to_string(), sum(&all)));
    let text = printed(program(), &["timeline", "--by", "node", "--columns", "6"]);
    assert!(text.starts_with("a row is a node, a column 1.00 ms\n"), "{text}");
    // Three of four ranks wait in all but the first columns of both turns.
    assert_eq!(text.lines().nth(2), Some("host ·CC·CC"), "{text}");
    let dir = tempfile::tempdir().unwrap();
    let svg = dir.path().join("a.svg");
    printed(program(), &["timeline", "--by", "node", "--svg", svg.to_str().unwrap()]);
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.contains("aria-label=\"host\"") && svg.contains("aria-label=\"node\""), "{svg}");
}

#[test]
fn ranks_that_have_been_put_together_are_all_there() {
    let ranks = || with_slow(Kernel::Wavefront, 9, 3, &[Slow { rank: 1, factor: 2.0 }]);
    let told = |sections| printed(sections, &["timeline", "--format", "csv"]);
    let [mut even, mut odd] = [Vec::new(), Vec::new()];
    for section in ranks() {
        if section.ranks.lowest().unwrap().is_multiple_of(2) { even.push(section) } else { odd.push(section) }
    }
    let clusters = [even, odd].map(|of| merge(of, true).unwrap());
    assert_eq!(told(clusters.to_vec()), told(ranks()));
}

#[test]
fn a_part_of_the_time_is_shown_by_itself() {
    let window = |of: &str, words: &[&str]| {
        tried(program(), &[&["timeline", "--columns", "3", "--window", of], words].concat())
    };
    let text = window("0.001..0.004", &[]).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        (lines[0], lines[2], lines[4]),
        ("a row is a rank, a column 1.00 ms", "   0 ·CC", "   2 ···"),
        "{text}"
    );
    let csv = rows(&window("0.002..0.004", &["--format", "csv"]).unwrap());
    assert_eq!(csv[0]["begin_ns"], "2000000");
    let waits: u64 = csv.iter().map(|row| row["collective_ns"].parse::<u64>().unwrap()).sum();
    assert_eq!(waits, 6_000_000);
    let error = window("1..2", &[]).unwrap_err();
    assert!(format!("{error:#}").starts_with("--window: the run is from 0.001"), "{error:#}");
}

#[test]
fn times_above_are_whole_and_tell_columns_apart() {
    let times = |columns: &str, window: &[&str]| {
        let text = printed(program(), &[&["timeline", "--columns", columns], window].concat());
        let line = text.lines().nth(1).unwrap().trim_start().strip_prefix("rank ").unwrap().to_owned();
        line.split("  ").map(str::trim).filter(|time| !time.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        times("64", &["--window", "0.003..0.00301"]),
        ["0.003000 s", "0.003003 s", "0.003005 s", "0.003008 s"]
    );
    // One that there is no room for is left out.
    assert_eq!(times("16", &[]), ["1.00 ms"]);
    assert_eq!(times("20", &[]), ["1.00 ms"]);
    assert_eq!(times("24", &[]).len(), 2);
}

#[test]
fn a_picture_is_not_called_like_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("other.st");
    std::fs::write(&trace, "somebody's").unwrap();
    for command in
        ["timeline --svg", "report --view waits --svg", "report --view waits --png", "clusters --draw"]
    {
        let words: Vec<&str> = command.split(' ').chain(trace.to_str()).collect();
        let error = tried(program(), &words).unwrap_err();
        assert!(format!("{error:#}").contains(".st is the ending of traces"), "{command}: {error:#}");
        assert_eq!(std::fs::read(&trace).unwrap(), b"somebody's", "{command}");
    }
}

#[test]
fn it_fits_the_screen() {
    let text = printed(program(), &["timeline"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn the_picture_has_the_width_of_a_column_and_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let picture = |name: &str| {
        let path = dir.path().join(name);
        printed(program(), &["timeline", "--svg", path.to_str().unwrap()]);
        std::fs::read_to_string(path).unwrap()
    };
    let svg = picture("a.svg");
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
    assert!(svg.contains("width=\"240.94pt\"") && svg.contains("aria-label=\"collective\""), "{svg}");
    assert!(!svg.contains("aria-label=\"late sender\"") && !svg.contains("NaN"), "{svg}");
    // Three ranks wait for two thirds of 240 columns; a shape each.
    let waits = svg.lines().find(|line| line.contains("#e69f00")).unwrap().matches('M').count();
    assert!((3 * 158..=3 * 164).contains(&waits), "{waits}");
    assert_eq!(svg, picture("b.svg"));
}
