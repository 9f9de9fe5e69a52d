//! A slow rank among a thousand, planted on paper, is what `why` names first.

use std::collections::BTreeMap;

use crate::common::{Rank, printed, rows, with_slow};
use st_kernels::{Kernel, Slow};
use st_model::section::Section;
use st_model::values::NONE;

const RANKS: u32 = 1024;

fn stencil(slow: &[Slow]) -> Vec<Section> {
    with_slow(Kernel::Stencil2d, RANKS, 10, slow)
}

#[test]
fn a_slow_rank_is_found_among_a_thousand() {
    let all = stencil(&[Slow { rank: 700, factor: 3.0 }]);
    let found = rows(&printed(all, &["why", "--format", "csv"]));
    let waits = |kind: &str| found.iter().find(|row| row["kind"] == kind).unwrap();
    // Ten steps of 5 ms each, at which it takes 10 ms longer: its four neighbours wait in the next exchange, and all others
    // for these, a step farther each time; who has not waited yet does so at the reduction.
    for kind in ["late sender", "wait at NxN"] {
        let row = waits(kind);
        let due = row["cause_percent"].parse::<f64>().unwrap();
        assert_eq!(row["cause"], "computation", "{row:?}");
        assert_eq!(row["cause_ranks"], "700", "{row:?}");
        assert!(due > 75.0, "{row:?}");
    }
    let cost = |row: &std::collections::BTreeMap<String, String>| row["cost_ns"].parse::<u64>().unwrap();
    let whole = cost(waits("late sender")) + cost(waits("wait at NxN"));
    // Of what it computes after the last exchange nobody but the root of the reduction at the end hears.
    let planted = 100_000_000 * u64::from(RANKS - 1);
    assert!(whole.abs_diff(planted) * 20 < planted, "{whole} of {planted}");
}

#[test]
fn who_runs_one_after_another_is_not_said_to_compute_longer() {
    let mut all: Vec<Rank> = (0..4).map(|rank| Rank::new(rank, 4)).collect();
    all.iter_mut().for_each(|rank| rank.call("MPI_Init", "main", &[], (0, 1000)));
    let (mut now, mut free) = (1000, [1000; 4]);
    for _ in 0..10 {
        for me in 0..4 {
            // It receives the token, computes, and sends it on.
            let [before, next] = [(me + 3) % 4, (me + 1) % 4].map(|r| i64::try_from(r).unwrap());
            if now > 1000 {
                let words = [1, 0, before, 0, 0, NONE, NONE, 1];
                all[me].call("MPI_Recv", "token", &words, (free[me], now + 100));
            }
            now += 5_000_000;
            all[me].call("MPI_Send", "token", &[1, 0, next, 0, 0], (now, now + 100));
            free[me] = now + 100;
        }
    }
    all.iter_mut().for_each(|rank| rank.call("MPI_Finalize", "main", &[], (now + 200, now + 300)));
    let text = printed(all.into_iter().map(|rank| rank.finish("host")).collect(), &["why"]);
    assert!(text.contains("serialised: ranks 0-3 run one after another"), "{text}");
    assert!(!text.contains("longer"), "{text}");
}

#[test]
fn the_same_rank_of_each_communicator_is_no_imbalance_that_moves() {
    let all = with_slow(Kernel::Fft, 16, 40, &[Slow { rank: 5, factor: 1.5 }]);
    let found = rows(&printed(all, &["why", "--format", "csv"]));
    // Ranks wait in theirs for those that have waited for rank 5 in another one.
    assert_eq!(
        [&found[0]["kind"], &found[0]["ranks"], &found[0]["cause_ranks"]],
        ["slow rank", "5", "5"],
        "{found:?}"
    );
    assert!(!found.iter().any(|row| row["what"].contains("moves")), "{found:?}");
}

#[test]
fn an_imbalance_moves_where_each_rank_is_last_in_turn() {
    let mut all: Vec<Rank> = (0..4).map(|rank| Rank::new(rank, 4)).collect();
    all.iter_mut().for_each(|rank| rank.call("MPI_Init", "main", &[], (0, 1000)));
    let mut now = 1000;
    for turn in 0..40 {
        for (rank, me) in all.iter_mut().zip(0..) {
            let computed = if me == turn % 4 { 1_000_000 } else { 200_000 };
            rank.call("MPI_Barrier", "step", &[0], (now + computed, now + 1_001_000));
        }
        now += 1_001_000;
    }
    all.iter_mut().for_each(|rank| rank.call("MPI_Finalize", "main", &[], (now, now + 1)));
    let text = printed(all.into_iter().map(|rank| rank.finish("host")).collect(), &["why"]);
    assert!(text.contains("imbalance that moves: 4 ranks come last, now one, now another"), "{text}");
}

#[test]
fn one_rank_that_holds_up_whoever_comes_last_is_named() {
    let mut all: Vec<Rank> = (0..4).map(|rank| Rank::new(rank, 4)).collect();
    all.iter_mut().for_each(|rank| rank.call("MPI_Init", "main", &[], (0, 1000)));
    let mut now = 1000;
    for turn in 0..30 {
        // Rank 2 computes, and sends one of the others what that needs, which then is the last.
        let to = [0, 1, 3][turn % 3];
        let sent = now + 1_000_000;
        all[2].call("MPI_Send", "data", &[1, 0, to, 0, 0], (sent, sent + 100));
        let words = [1, 0, 2, 0, 0, NONE, NONE, 1];
        all[usize::try_from(to).unwrap()].call("MPI_Recv", "data", &words, (now + 100, sent + 500));
        for (rank, me) in all.iter_mut().zip(0..) {
            let enter = if me == to {
                sent + 900
            } else if me == 2 {
                sent + 300
            } else {
                now + 100
            };
            rank.call("MPI_Barrier", "step", &[0], (enter, sent + 1000));
        }
        now = sent + 1000;
    }
    all.iter_mut().for_each(|rank| rank.call("MPI_Finalize", "main", &[], (now, now + 1)));
    let text = printed(all.into_iter().map(|rank| rank.finish("host")).collect(), &["why"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "imbalance: ranks 0, 1, 3 wait for rank 2, which holds up whoever comes last";
    assert!(text.contains(told) && !text.contains("moves"), "{text}");
}

#[test]
fn nobody_waits_long_where_none_is_slow() {
    let found = rows(&printed(stencil(&[Slow { rank: 700, factor: 1.0 }]), &["why", "--format", "csv"]));
    assert!(!found.iter().any(|row| row["kind"] == "slow rank"), "{found:?}");
    // Times on paper are spread by some percent, and who is longest in a step is waited for.
    let waits = ["late sender", "wait at NxN"];
    for row in found.iter().filter(|row| waits.contains(&row["kind"].as_str())) {
        assert!(row["share_percent"].parse::<f64>().unwrap() < 5.0, "{row:?}");
    }
}

#[test]
fn what_many_call_sites_lose_is_told_of_together() {
    let all = with_slow(Kernel::Transpose, 16, 20, &[Slow { rank: 3, factor: 1.5 }]);
    let shares = |options: &[&str]| {
        let mut sums = BTreeMap::<(String, String), (f64, u64)>::new();
        for row in rows(&printed(all.clone(), options)) {
            let function = row["where"].split(' ').next().unwrap_or_default().to_owned();
            let (share, sites) = sums.entry((row["kind"].clone(), function)).or_default();
            *share += row["share_percent"].parse::<f64>().unwrap_or_default();
            *sites = (*sites).max(row["sites"].parse::<u64>().unwrap());
        }
        sums
    };
    let (shown, each) = (shares(&["why", "--format", "csv"]), shares(&["why", "--all", "--format", "csv"]));
    for (of, (share, _)) in &each {
        let told = shown.get(of).map_or(0.0, |(share, _)| *share);
        // Nothing twice, and what is left out of a function is less than 1 % (of shares that are rounded).
        assert!(told < share + 0.1 && told > share - 1.2, "{of:?}: {told} of {share} %");
    }
    let sites = |of: &BTreeMap<_, (f64, u64)>| of.values().map(|(_, sites)| *sites).max();
    assert!(sites(&shown) > Some(1), "{shown:?}");
    assert_eq!(sites(&each), Some(1));
}

#[test]
fn what_calls_of_a_finding_move_is_what_they_send_and_receive() {
    let of = |rank: u32| {
        let mut r = Rank::new(rank, 2);
        r.call("MPI_Init", "main", &[], (0, 1000));
        r.call("MPI_Allreduce", "sum", &[0, 125_000, 1, 0, 0], (1000, 5_001_000));
        r.call("MPI_Finalize", "main", &[], (5_002_000, 5_003_000));
        r.finish("host")
    };
    let made = vec![of(0), of(1)];
    let calls = rows(&printed(made.clone(), &["calls", "--format", "csv", "--functions"]));
    let row = calls.iter().find(|row| row["function"] == "MPI_Allreduce").unwrap();
    assert_eq!(["sent_bytes", "received_bytes"].map(|column| row[column].as_str()), ["2000000"; 2]);
    let text = printed(made, &["why"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("bandwidth: 2 calls of ranks 0, 1 send and receive 4.00 MB together"), "{text}");
}
