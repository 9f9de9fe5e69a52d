//! The timeline of a trace that does not tell when: each rank once, loops filled by their bodies, all times there.

use std::collections::BTreeMap;

use serde_json::Value;
use st_kernels::{Kernel, Slow};
use st_model::calls::names;
use st_model::ranklist_notation::parse_any;
use st_model::section::Section;
use st_reduce::merge::merge;

use crate::common::{Rank, kernel, printed, tried, untimed, with_slow};

fn boxes(sections: Vec<Section>, words: &[&str]) -> Vec<Value> {
    let text = printed(sections, &[&["timeline", "--format", "json"], words].concat());
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_default()
}

/// Of each row: its ranks, and how long it is.
fn rows(all: &[Value]) -> BTreeMap<u64, (Vec<u32>, u64)> {
    let mut rows: BTreeMap<u64, (Vec<u32>, u64)> = BTreeMap::new();
    let mut ends: Vec<u64> = Vec::new();
    for of in all {
        let (row, level) = (number(of, "row"), number(of, "level"));
        let known = rows.entry(row).or_insert_with(|| {
            ends.clear();
            (parse_any(&of["ranks"].as_str().unwrap().replace(' ', "")).unwrap().iter().collect(), 0)
        });
        let wide = number(of, "computation_ns") + number(of, "mpi_ns");
        while ends.len() as u64 > level {
            // What was around is full.
            assert_eq!(ends.pop(), Some(known.1), "{of}");
        }
        assert_eq!(number(of, "begin_ns"), known.1, "{of}");
        if of["what"] == "loop" { ends.push(known.1 + wide) } else { known.1 += wide }
    }
    rows
}

#[test]
fn each_rank_is_there_once_with_its_time() {
    for of in [Kernel::Stencil2d, Kernel::Wavefront, Kernel::Workers, Kernel::Amr] {
        let slow = [Slow { rank: 3, factor: 2.0 }];
        let single = untimed(with_slow(of, 12, 6, &slow));
        let merged = vec![merge(single.clone(), false).unwrap()];
        for (sections, words) in
            [(&single, &[][..]), (&merged, &[]), (&single, &["--rows", "5"]), (&merged, &["--rows", "2"])]
        {
            let all = rows(&boxes(sections.clone(), words));
            let mut ranks: Vec<u32> = all.values().flat_map(|(ranks, _)| ranks.clone()).collect();
            ranks.sort_unstable();
            assert_eq!(ranks, (0..12).collect::<Vec<_>>(), "{of:?} {words:?}");
            let told = printed(sections.clone(), &["ranks", "--format", "json"]);
            let times = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let times: BTreeMap<u64, u64> =
                times.map(|row| (number(&row, "rank"), number(&row, "time_ns"))).collect();
            for (ranks, long) in all.values() {
                let sum: u64 = ranks.iter().map(|rank| times[&u64::from(*rank)]).sum();
                let mean = sum / ranks.len() as u64;
                // The mean of each call's times is rounded down.
                assert!(
                    long.abs_diff(mean) <= 100,
                    "{of:?} {words:?}: {ranks:?} take {mean}, drawn are {long}"
                );
            }
        }
    }
}

/// Four ranks compute 1 ms before each of two barriers, rank 2 does for 3 ms; the last two make a third one.
fn program() -> Vec<Section> {
    let of = |rank: u32| {
        let mut r = Rank::new(rank, 4);
        r.call(names::MPI_Init, "main", &[], (0, 1_000_000));
        for turn in 0..if rank < 2 { 2 } else { 3 } {
            let begin = 1_000_000 + turn * 3_000_000;
            let enter = begin + if rank == 2 { 3_000_000 } else { 1_000_000 };
            r.call(names::MPI_Barrier, "step", &[0], (enter, begin + 3_000_000));
            r.call(names::MPI_Bcast, "step2", &[0], (begin + 3_000_000, begin + 3_000_000));
        }
        r.call(names::MPI_Finalize, "main", &[], (10_000_000, 11_000_000));
        r.finish("host")
    };
    untimed((0..4).map(of).collect())
}

#[test]
fn loops_are_blocks_of_what_takes_their_time() {
    let merged = || vec![merge(program(), false).unwrap()];
    let text = printed(merged(), &["timeline", "--columns", "9"]);
    let blocks: Vec<Vec<&str>> = text.split("\n\n").skip(1).map(|block| block.lines().collect()).collect();
    assert_eq!(blocks[0], ["ranks 0, 1: 9.02 ms each", "[×2══]", "··----···", "Barri Fi"], "{text}");
    assert_eq!(blocks[1], ["rank 2: 8.99 ms", "[×3═════]", "·········", "Barrier"], "{text}");
    assert_eq!(blocks[2], ["rank 3: 8.97 ms", "[×3═════]", "···------", "Barrier"], "{text}");
    assert!(text.starts_with("logical time: ") && text.contains("4 ranks in 3 rows"), "{text}");
    // All that do the same, if there are no more rows.
    let few = rows(&boxes(merged(), &["--rows", "2"]));
    assert_eq!(few.values().map(|(ranks, _)| ranks.clone()).collect::<Vec<_>>(), [[0, 1], [2, 3]]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let error = tried(program(), &["timeline", "--by", "node"]).unwrap_err();
    assert!(format!("{error:#}").contains("no exact times"), "{error:#}");
}

#[test]
fn the_picture_has_what_is_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let svg = dir.path().join("a.svg");
    let path = svg.to_str().unwrap();
    for command in [&["timeline", "--svg", path][..], &["report", "--view", "timeline", "--svg", path]] {
        printed(program(), command);
        let svg = std::fs::read_to_string(&svg).unwrap();
        assert!(svg.contains("aria-label=\"Barrier\"") && svg.contains("aria-label=\"×3\""), "{svg}");
        assert!(!svg.contains("NaN"), "{svg}");
        std::fs::remove_file(path).unwrap();
    }
}

/// A program that is no loop at all: few boxes, and nothing is lost.
#[test]
fn a_program_of_many_calls_has_few_boxes() {
    let mut rank = Rank::new(0, 1);
    rank.call(names::MPI_Init, "main", &[], (0, 10));
    for i in 0..6000 {
        let name = if i * i % 7 < 3 { names::MPI_Barrier } else { names::MPI_Bcast };
        let words = &[0; 4][..if name == names::MPI_Barrier { 1 } else { 4 }];
        rank.call(name, &format!("at {}", i * i * i % 1009), words, (20 + i * 10, 25 + i * 10));
    }
    let sections = untimed(vec![rank.finish("host")]);
    let all = boxes(sections.clone(), &[]);
    assert!(all.len() <= 4096 && all.iter().any(|of| of["what"].as_str().unwrap().contains("others")));
    assert_eq!(rows(&all)[&0].1, 60_005);
    let held = boxes(
        kernel(Kernel::Stencil1d, 4, 10).into_iter().map(|s| untimed(vec![s]).remove(0)).collect(),
        &[],
    );
    assert!(held.iter().all(|of| of["runs"].is_u64()));
}
