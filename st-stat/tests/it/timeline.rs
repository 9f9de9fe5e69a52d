//! The timeline in text: what it draws of a program whose times are known.

use crate::common::{Rank, printed, rows, tried, untimed};
use st_model::calls::names;
use st_model::section::Section;

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
fn it_fits_the_screen_and_needs_times() {
    let text = printed(program(), &["timeline"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let error = tried(untimed(program()), &["timeline"]).unwrap_err();
    assert!(format!("{error:#}").contains("no exact times"), "{error:#}");
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
