//! What a run would take under other conditions, from a file to what is printed.

use crate::common::{Rank, printed, rows, tried, untimed};
use st_model::section::Section;

const MS: i64 = 1_000_000;

/// Ranks that compute for so many ms before each of ten barriers, at two places in turn; at the second all alike.
fn ranks(computed: &[i64]) -> Vec<Section> {
    let last = *computed.iter().max().unwrap() * MS;
    let rank = |(me, ms): (u32, &i64)| {
        let mut rank = Rank::new(me, u32::try_from(computed.len()).unwrap());
        rank.call("MPI_Init", "main", &[], (0, 1000));
        let mut now = 1000;
        for _ in 0..10 {
            rank.call("MPI_Barrier", "work app.c:7", &[0], (now + ms * MS, now + last + 1000));
            now += last + 1000;
            rank.call("MPI_Barrier", "rest app.c:9", &[0], (now + 2 * MS, now + 2 * MS + 1000));
            now += 2 * MS + 1000;
        }
        rank.call("MPI_Finalize", "main", &[], (now, now + 1000));
        rank.finish("host")
    };
    (0..).zip(computed).map(rank).collect()
}

/// Two ranks that send 40 messages to and fro, each 5 µs on its way, the call that sends it 1 µs.
fn exchange() -> Vec<Section> {
    exchange_of(40)
}

fn exchange_of(n: usize) -> Vec<Section> {
    let mut all = [0, 1].map(|me| Rank::new(me, 2));
    all.iter_mut().for_each(|rank| rank.call("MPI_Init", "main", &[], (0, 1000)));
    for i in 0..n {
        let (from, to) = (i % 2, 1 - i % 2);
        let now = 1000 + 106_000 * i64::try_from(i).unwrap();
        let words = |peer: usize| [1, 0, i64::try_from(peer).unwrap(), 0, 0];
        all[from].call("MPI_Send", "send app.c:1", &words(to), (now + 100_000, now + 101_000));
        let mut words = words(from).to_vec();
        words.extend([st_model::values::NONE; 2]);
        all[to].call("MPI_Recv", "receive app.c:2", &words, (now, now + 106_000));
    }
    let end = 1000 + i64::try_from(n).unwrap() * 106_000;
    all.iter_mut().for_each(|rank| rank.call("MPI_Finalize", "main", &[], (end, end + 1)));
    all.map(|rank| rank.finish("host")).into()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap()
}

#[test]
fn what_balance_gains_is_the_mean() {
    let said = printed(ranks(&[10, 60, 10]), &["predict", "--balance", "work"]);
    assert!(said.starts_with("620 ms recorded; 620 ms by the model, 0.0 % off\n"), "{said}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = "balanced computation before work: the run would take 287 ms instead of 620 ms (-53.8 %)";
    assert!(words.contains(sentence), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
}

#[test]
fn without_options_what_helps_most_comes_first() {
    let all = rows(&printed(ranks(&[10, 60, 10]), &["predict", "--format", "csv"]));
    let what: Vec<(&str, &str)> = all.iter().map(|r| (&*r["what"], &*r["place"])).collect();
    assert_eq!(what[..2], [("recorded", ""), ("model", "")]);
    let best = [
        ("all computation balanced", ""),
        ("balanced computation", "work app.c:7"),
        ("half the computation", "work app.c:7"),
    ];
    assert_eq!(what[2..5], best);
    let gains: Vec<f64> = all[2..].iter().map(|r| number(&r["gain_ns"])).collect();
    assert!(gains.is_sorted_by(|a, b| a >= b), "{gains:?}");
    for row in &all[1..] {
        let sum = number(&row["time_ns"]) + number(&row["gain_ns"]);
        assert!((sum - number(&all[1]["time_ns"])).abs() < 0.5, "{row:?}");
    }
    let text = printed(ranks(&[10, 60, 10]), &["predict"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("balanced computation MPI_Barrier 287 ms"), "{text}");
}

#[test]
fn all_computation_balanced_gains_what_no_place_does_alone() {
    let mut all = [0, 1].map(|me| Rank::new(me, 2));
    all.iter_mut().for_each(|rank| rank.call("MPI_Init", "main", &[], (0, 1000)));
    // What one computes longer before the first exchange the other does before the second: each is waited for in turn.
    let mut now = 1000;
    for _ in 0..10 {
        for (place, computed) in [("first", [30, 10]), ("second", [10, 30])] {
            for (rank, ms) in all.iter_mut().zip(computed) {
                rank.call("MPI_Barrier", place, &[0], (now + ms * MS, now + 30 * MS + 1000));
            }
            now += 30 * MS + 1000;
        }
    }
    all.iter_mut().for_each(|rank| rank.call("MPI_Finalize", "main", &[], (now, now + 1)));
    let all = rows(&printed(all.map(|rank| rank.finish("host")).into(), &["predict", "--format", "csv"]));
    assert_eq!((&*all[2]["what"], &*all[2]["place"]), ("all computation balanced", ""));
    let gains = [2, 3].map(|row| number(&all[row]["gain_percent"]));
    assert!(gains[0] > 33.0 && gains[0] >= gains[1] + 5.0, "{all:?}");
}

#[test]
fn several_changes_act_at_once() {
    let words = ["predict", "--format", "csv", "--balance", "work", "--speedup", "rest=2", "--ideal-network"];
    let all = rows(&printed(ranks(&[10, 60, 10]), &words));
    let times: Vec<(&str, i64)> =
        all[2..].iter().map(|r| (&*r["what"], r["time_ns"].parse().unwrap())).collect();
    let mean = 10 * (80 * MS / 3);
    let expected = [
        ("changed", mean + 10 * MS),
        ("ideal network", 620 * MS),
        ("computation 2 times as fast before rest", 610 * MS + 20_000),
        ("balanced computation before work", mean + 20 * MS + 20_000),
    ];
    assert_eq!(times, expected);
    // As the efficiencies have it.
    let efficiency = rows(&printed(ranks(&[10, 60, 10]), &["efficiency", "--format", "csv"]));
    let ideal = efficiency.iter().find(|r| r["measure"] == "on an ideal network").unwrap();
    assert_eq!(ideal["value"], all[3]["time_ns"]);
}

#[test]
fn another_network_changes_what_messages_take() {
    let all = rows(&printed(exchange(), &["predict", "--model", "--format", "csv"]));
    assert_eq!(all.len(), 1);
    let near = |key: &str, value: f64| (number(&all[0][key]) - value).abs() <= value * 0.02;
    assert!(near("latency_ns", 4000.0) && near("overhead_ns", 1000.0), "{all:?}");
    assert_eq!((&*all[0]["messages"], &*all[0]["bytes_per_second"]), ("40", ""));
    let time = |latency: &str| {
        let all = rows(&printed(exchange(), &["predict", "--latency", latency, "--format", "csv"]));
        number(&all[2]["time_ns"])
    };
    let recorded = 40.0 * 106_000.0;
    for (latency, expected) in [("0", recorded - 40.0 * 4000.0), ("14us", recorded + 40.0 * 10_000.0)] {
        assert!((time(latency) - expected).abs() < 0.001 * recorded, "{latency}: {}", time(latency));
    }
}

#[test]
fn words_of_a_network_are_proper() {
    let said = |n, words: &[&str]| {
        let text = printed(exchange_of(n), &[&["predict"], words].concat());
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let infinite = said(40, &["--bandwidth", "inf"]);
    assert!(infinite.contains("infinite bandwidth") && !infinite.contains("infinite/s"), "{infinite}");
    let one = said(1, &[]);
    assert!(one.contains("(1 message measured)") && one.contains("1 call measured"), "{one}");
    let many = said(40, &[]);
    assert!(many.contains("(40 messages measured, half of them take"), "{many}");
}

#[test]
fn what_cannot_be_predicted_is_refused() {
    let said = |sections, words: &[&str]| format!("{:#}", tried(sections, words).unwrap_err());
    let timeless = || untimed(ranks(&[10, 60, 10]));
    // Behind the name of the trace.
    let why = |words: &[&str]| tried(timeless(), words).unwrap_err().root_cause().to_string();
    assert_eq!(why(&["predict"]), why(&["path"]));
    let unknown = said(ranks(&[10, 60]), &["predict", "--speedup", "nowhere=2"]);
    assert!(unknown.contains("nowhere: the trace has no such call site or function"), "{unknown}");
    for wrong in [
        ["--speedup", "work"],
        ["--speedup", "=2"],
        ["--speedup", "work=0"],
        ["--latency", "1"],
        ["--bandwidth", "0"],
        ["--eager", "many"],
    ] {
        let words = [["predict", ""], wrong].concat();
        let words: Vec<&str> = words.into_iter().filter(|w| !w.is_empty()).collect();
        let refused = said(ranks(&[10, 60]), &words);
        assert!(refused.contains(&format!("invalid value '{}' for '{}", wrong[1], wrong[0])), "{refused}");
    }
}
