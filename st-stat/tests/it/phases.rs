//! Iterations over the run: a program whose times are known, with a trend, a slow iteration and a rank that is waited for.

use crate::common::{Rank, printed, rows, tried, untimed};
use st_model::calls::names;
use st_model::section::Section;

const TURNS: i64 = 200;
const RANKS: i64 = 3;

/// How long a rank computes in an iteration, ns: half as long again at the end, rank 1 longer, and once long.
fn computes(rank: i64, turn: i64) -> i64 {
    let usual = 1_000_000 + 500_000 * turn / (TURNS - 1) + if rank == 1 { 200_000 } else { 0 };
    if turn == 57 { usual + 10_000_000 } else { usual }
}

/// A second barrier takes 1 µs; iterations begin with a phase if that is asked for.
fn program(pcontrol: bool) -> Vec<Section> {
    let mut ranks: Vec<Rank> = (0..3).map(|rank| Rank::new(rank, 3)).collect();
    ranks.iter_mut().for_each(|r| r.call(names::MPI_Init, "main", &[], (0, 1000)));
    let mut now = 1000;
    for turn in 0..TURNS {
        let last = now + (0..RANKS).map(|rank| computes(rank, turn)).max().unwrap();
        for (rank, r) in (0..).zip(&mut ranks) {
            if pcontrol {
                r.call(names::MPI_Pcontrol, "phase", &[if turn % 4 == 3 { 2 } else { 1 }], (now, now));
            }
            r.call(names::MPI_Barrier, "first", &[0], (now + computes(rank, turn), last + 100));
            r.call(names::MPI_Barrier, "second", &[0], (last + 100, last + 1100));
        }
        now = last + 1100;
    }
    ranks.iter_mut().for_each(|r| r.call(names::MPI_Finalize, "main", &[], (now, now + 1000)));
    ranks.into_iter().map(|r| r.finish("host")).collect()
}

#[test]
fn each_iteration_is_what_was_made() {
    let csv = printed(program(false), &["phases", "--format", "csv"]);
    let rows = rows(&csv);
    assert_eq!(rows.len(), usize::try_from(TURNS).unwrap());
    // Times count from MPI_Init.
    let mut begin = 1000;
    for (turn, row) in (0..).zip(&rows) {
        let of = |name: &str| row[name].parse::<i64>().unwrap();
        let last = computes(1, turn);
        // Rank 1 comes last by 200 µs; the two others wait for it.
        let wait = 2 * 200_000 / 3;
        assert_eq!((of("iteration"), of("ranks"), of("begin_ns")), (turn, 3, begin), "{csv}");
        assert_eq!(of("end_ns"), begin + last + 1100);
        assert_eq!((of("time_ns"), of("longest_ns")), (last + 1100, last + 1100), "{turn}");
        assert_eq!((of("mpi_ns"), of("wait_ns")), (wait + 1100, wait), "{turn}");
        assert_eq!((of("computation_longest_ns"), of("computation_longest_rank")), (last, 1), "{turn}");
        assert_eq!((&*row["function"], &*row["place"]), (names::MPI_Barrier, "first"));
        begin += last + 1100;
    }
}

#[test]
fn text_says_how_iterations_change() {
    let text = printed(program(false), &["phases"]);
    assert!(
        text.starts_with("loop of 200 iterations, 100.0 % of the time\nfrom MPI_Barrier (site "),
        "{text}"
    );
    // From 1.2 to 1.7 ms.
    let trend = text.split_once(" % by the end").unwrap().0.rsplit(' ').next().unwrap();
    assert!((trend.parse::<f64>().unwrap() - 41.7).abs() < 1.5, "{text}");
    assert_eq!(text.matches("slow: ").count(), 1, "{text}");
    assert!(text.contains("  slow: 57 takes 11.3 ms: rank 1 computes 11.3 ms, others 11.1 ms\n"), "{text}");
    let tenth = |what| text.lines().find(|line| line.contains(what)).unwrap().to_owned();
    assert!(tenth("first tenth").contains("1.22 ms") && tenth("last tenth").contains("1.68 ms"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

/// Two ranks whose iterations take these times, ns, each ended by a barrier.
fn taking(all: &[i64]) -> Vec<Section> {
    let mut ranks: Vec<Rank> = (0..2).map(|rank| Rank::new(rank, 2)).collect();
    ranks.iter_mut().for_each(|r| r.call(names::MPI_Init, "main", &[], (0, 1000)));
    let mut now = 1000;
    for long in all {
        now += long;
        ranks.iter_mut().for_each(|r| r.call(names::MPI_Barrier, "step", &[0], (now - 100, now)));
    }
    ranks.iter_mut().for_each(|r| r.call(names::MPI_Finalize, "main", &[], (now, now + 1000)));
    ranks.into_iter().map(|r| r.finish("host")).collect()
}

/// The trend that is told of iterations that take these times.
fn trend(times: &[i64]) -> f64 {
    let text = printed(taking(times), &["phases"]);
    let trend = text.split_once(" % by the end").unwrap().0.rsplit(' ').next().unwrap();
    trend.parse().unwrap()
}

#[test]
fn growth_is_told_right_whether_it_is_linear_or_exponential() {
    let linear: Vec<i64> = (0..40).map(|n| (5 + n) * 1_000_000).collect();
    let exponential: Vec<i64> =
        std::iter::successors(Some(1_000_000), |n| Some(n * 117 / 100)).take(40).collect();
    assert!((trend(&linear) - 780.0).abs() < 1.0, "{}", trend(&linear));
    for mut times in [linear, exponential] {
        let grows = f64::from(i32::try_from(times[39] / 1000).unwrap())
            / f64::from(i32::try_from(times[0] / 1000).unwrap());
        for _ in 0..2 {
            assert!((trend(&times) / 100.0 + 1.0) / grows < 1.03, "{} {grows}", trend(&times));
            assert!((trend(&times) / 100.0 + 1.0) / grows > 0.97, "{} {grows}", trend(&times));
            // A single slow one does not change it.
            times[13] = 900_000_000;
        }
    }
}

#[test]
fn nothing_becomes_shorter_by_more_than_all_of_it() {
    // To a hundredth, evenly and by halves, and the other way round.
    let even: Vec<i64> = (1..=100).rev().map(|n| n * 10_000).collect();
    let halves: Vec<i64> = (0..20).map(|n| 1_000_000_000 >> n).collect();
    let back = halves.iter().rev().copied().collect();
    let trends = [even, halves, back].map(|times: Vec<i64>| trend(&times));
    assert!((trends[0] + 99.0).abs() < 0.1 && (-100.0..-99.9).contains(&trends[1]), "{trends:?}");
    assert!(trends[2] > 1000.0, "{trends:?}");
}

#[test]
fn a_trend_does_not_go_beyond_what_happened() {
    // Even for a half, and then growing from 2.9 to 7.9 ms.
    let times: Vec<i64> = (0..100_i64).map(|n| 2_900_000 + (n - 50).max(0) * 100_000).collect();
    let most = 100.0 * 4.9 / 2.9;
    assert!((100.0..=most + 0.1).contains(&trend(&times)), "{}", trend(&times));
}

#[test]
fn of_few_iterations_each_is_shown() {
    let text = printed(taking(&[1_000_000, 3_000_000]), &["phases"]);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("  iteration ")).collect();
    assert!(lines.len() == 2 && !text.contains("tenth"), "{text}");
    assert!(lines[0].starts_with("  iteration 0 ") && lines[0].contains("1.00 ms"), "{text}");
    assert!(lines[1].starts_with("  iteration 1 ") && lines[1].contains("3.00 ms"), "{text}");
}

#[test]
fn a_loop_that_only_some_ranks_make_names_them() {
    let ranks = (0..3).map(|rank| {
        let mut r = Rank::new(rank, 3);
        r.call(names::MPI_Init, "main", &[], (0, 1000));
        let turns = if rank == 1 { 7 } else { 5 };
        (1..=turns).for_each(|turn| r.call(names::MPI_Wtime, "step", &[], (turn * 1000, turn * 1000 + 10)));
        r.call(names::MPI_Finalize, "main", &[], (8000, 9000));
        r.finish("host")
    });
    let text = printed(ranks.collect(), &["phases"]);
    assert!(text.contains("loop of 5 iterations on ranks 0, 2, "), "{text}");
    assert!(text.contains("loop of 7 iterations on rank 1, "), "{text}");
}

#[test]
fn phases_are_those_that_the_program_names() {
    let csv = printed(program(true), &["phases", "--by", "pcontrol", "--format", "csv"]);
    let rows = rows(&csv);
    let levels = |level: &str| rows.iter().filter(|row| row["level"] == level).count();
    assert_eq!((levels("1"), levels("2"), rows.len()), (150, 50, 200), "{csv}");
    for row in &rows {
        let n = row["iteration"].parse::<i64>().unwrap();
        let turn = if row["level"] == "2" { 4 * n + 3 } else { n / 3 * 4 + n % 3 };
        assert_eq!(row["time_ns"].parse::<i64>().unwrap(), computes(1, turn) + 1100, "{n}");
    }
    let text = printed(program(true), &["phases", "--by", "pcontrol"]);
    assert!(text.contains("150 phases of level 1, ") && text.contains("50 phases of level 2, "), "{text}");
    assert_eq!(
        printed(program(false), &["phases", "--by", "pcontrol"]),
        "no loop around calls is known, and no phase\n"
    );
}

/// Level 0 is a pause.
#[test]
fn what_is_computed_before_a_phase_begins_is_of_the_one_before() {
    let mut rank = Rank::new(0, 1);
    rank.call(names::MPI_Init, "main", &[], (0, 1000));
    rank.call(names::MPI_Pcontrol, "begin", &[2], (2000, 2010));
    rank.call(names::MPI_Barrier, "first", &[0], (2020, 2100));
    rank.call(names::MPI_Pcontrol, "pause", &[0], (302_100, 302_110));
    rank.call(names::MPI_Pcontrol, "go on", &[3], (702_110, 702_120));
    rank.call(names::MPI_Barrier, "second", &[0], (702_130, 702_200));
    rank.call(names::MPI_Finalize, "main", &[], (902_200, 902_300));
    let csv = printed(vec![rank.finish("host")], &["phases", "--by", "pcontrol", "--format", "csv"]);
    let columns = ["level", "begin_ns", "end_ns", "time_ns", "mpi_ns"];
    let all: Vec<_> = rows(&csv).iter().map(|row| columns.map(|column| row[column].clone())).collect();
    let wanted = [
        ["0", "302100", "702110", "400010", "10"],
        ["2", "2000", "302100", "300100", "90"],
        ["3", "702110", "902200", "200090", "80"],
    ];
    assert_eq!(all, wanted.map(|row| row.map(str::to_owned)), "{csv}");
}

#[test]
fn without_exact_times_it_is_said_what_is_missing() {
    let said = format!("{:#}", tried(untimed(program(false)), &["phases"]).unwrap_err());
    assert!(
        said.contains("no exact times") && said.contains("--merge") && said.contains("sketches"),
        "{said}"
    );
}
