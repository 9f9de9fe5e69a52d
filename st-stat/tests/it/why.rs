//! What `why` prints of findings, and how many.

use crate::common::{Rank, printed, rows};
use st_model::section::Section;

/// Ranks on two hosts that compute before barriers at so many sites, each so many times: how long, by step, rank and site, us.
fn barriers(ranks: u32, steps: u64, sites: u64, us: impl Fn(u64, u32, u64) -> i64) -> Vec<Section> {
    let mut all: Vec<Rank> = (0..ranks).map(|rank| Rank::new(rank, ranks)).collect();
    let mut now = 1000;
    all.iter_mut().for_each(|rank| rank.call("MPI_Init", "main", &[], (0, 1000)));
    for step in 0..steps {
        for site in 0..sites {
            let enters: Vec<i64> = (0..ranks).map(|me| now + 1000 * us(step, me, site)).collect();
            now = enters.iter().max().unwrap() + 1000;
            let label = format!("f app.c:{site}");
            for (rank, enter) in all.iter_mut().zip(enters) {
                rank.call("MPI_Barrier", &label, &[0], (enter, now));
            }
        }
    }
    all.iter_mut().for_each(|rank| rank.call("MPI_Finalize", "main", &[], (now, now + 100)));
    (0..).zip(all).map(|(n, rank)| rank.finish(if n < ranks / 2 { "a" } else { "b" })).collect()
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn all_findings_are_told_where_all_are_asked_for() {
    // Each site has another rank that is late.
    let sections =
        || barriers(4, 10, 30, |_, rank, site| if site % 4 == u64::from(rank) { 2000 } else { 1000 });
    let told = |text: &str| text.matches("imbalance: ").count();
    let few = printed(sections(), &["why"]);
    assert!(told(&few) == 20 && few.ends_with("… and 10 more (--all, --format csv)\n"), "{few}");
    let all = printed(sections(), &["why", "--all"]);
    assert!(told(&all) == 30 && !all.contains(" more (--"), "{all}");
}

#[test]
fn noise_is_told_once_and_as_that() {
    let late = [(3, 0), (31, 2), (40, 3), (77, 1), (90, 2)];
    let sections =
        || barriers(4, 100, 1, |step, rank, _| if late.contains(&(step, rank)) { 21_000 } else { 1000 });
    let text = words(&printed(sections(), &["why"]));
    let expected = "noise: 5 computations of 4 ranks, now of one, now of another, take much longer than usual, and the others wait";
    assert!(
        text.contains(expected) && text.contains("20.0 ms longer than usual in the mean, of 100 operations"),
        "{text}"
    );
    assert!(!text.contains("imbalance"), "{text}");
    let kinds: Vec<String> = rows(&printed(sections(), &["why", "--format", "csv"]))
        .iter()
        .map(|row| row["kind"].clone())
        .collect();
    assert_eq!(kinds, ["noise"]);
}

#[test]
fn a_slow_node_is_named() {
    let sections =
        |slow: fn(u32) -> bool| barriers(8, 10, 4, move |_, rank, _| if slow(rank) { 1200 } else { 1000 });
    let node = sections(|rank| rank > 3);
    let text = words(&printed(node.clone(), &["why"]));
    let expected = "slow node: ranks 0-3 wait for ranks 4-7, all of b, which compute longer wherever they do";
    assert!(text.contains(expected), "{text}");
    assert_eq!(rows(&printed(node, &["why", "--format", "csv"]))[0]["kind"], "slow node");
    let text = words(&printed(sections(|rank| rank == 5), &["why"]));
    assert!(text.contains("slow rank: ranks 0-4, 6, 7 wait for rank 5"), "{text}");
}
