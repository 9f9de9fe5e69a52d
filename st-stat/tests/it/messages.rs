//! Messages per call site: sizes against a list of all, and a planted network.

use std::collections::BTreeMap;

use crate::common::{Rank, each_call, kernel, printed, rows, untimed};
use st_kernels::Kernel;
use st_model::calls::names;
use st_model::section::Section;
use st_model::values::NONE;
use st_reduce::merge::merge;

/// Sizes of all messages, by the function that sends them.
fn slowly(sections: &[Section]) -> BTreeMap<String, Vec<u128>> {
    let mut all: BTreeMap<String, Vec<u128>> = BTreeMap::new();
    each_call(sections, |_, event, volume| {
        let sizes = volume.partners.iter().map(|(_, bytes)| *bytes);
        all.entry(event.name().unwrap().to_owned()).or_default().extend(sizes);
    });
    all.retain(|_, sizes| !sizes.is_empty());
    all.values_mut().for_each(|sizes| sizes.sort_unstable());
    all
}

#[test]
fn sizes_are_those_of_all_messages() {
    // Each function that sends has one call site here.
    for k in [Kernel::Stencil1d, Kernel::Transpose, Kernel::Halo, Kernel::Amr] {
        let merged = merge(kernel(k, 16, 6), false).unwrap();
        let (slow, csv) =
            (slowly(std::slice::from_ref(&merged)), printed(vec![merged], &["messages", "--format", "csv"]));
        let mut found: BTreeMap<String, [u128; 6]> = BTreeMap::new();
        for row in rows(&csv) {
            let of = |name: &str| row[name].parse::<u128>().unwrap();
            let sum = found.entry(row["function"].clone()).or_insert([0, 0, u128::MAX, 0, 0, 0]);
            let [smallest, largest] = ["smallest_bytes", "largest_bytes"].map(of);
            *sum = [
                sum[0] + of("messages"),
                sum[1] + of("bytes"),
                sum[2].min(smallest),
                sum[3].max(largest),
                of("median_bytes"),
                of("ninth_decile_bytes"),
            ];
            assert!(row["bound_by"].is_empty(), "{csv}");
        }
        assert_eq!(found.len(), slow.len(), "{csv}");
        for (name, sizes) in &slow {
            let n = sizes.len();
            let all = found[name];
            assert_eq!(all[..4], [n as u128, sizes.iter().sum(), sizes[0], sizes[n - 1]], "{k:?} {csv}");
            if rows(&csv).iter().filter(|row| row["function"] == *name).count() == 1 {
                assert_eq!(
                    all[4..],
                    [sizes[n.div_ceil(2) - 1], sizes[(9 * n).div_ceil(10) - 1]],
                    "{k:?} {csv}"
                );
            }
        }
    }
}

/// Two ranks on hosts: messages of 8 to 200,000 bytes take 2 µs and half a ns per byte, those of which somebody is late or
/// something is wrong longer.
fn network(hosts: [&str; 2]) -> Vec<Section> {
    let bytes = |i: i64| if i % 2 == 0 { 8 + 8 * (i % 5) } else { 50_000 * (1 + i % 4) };
    exchange(hosts, &|i| (bytes(i), bytes(i) / 2 + if i % 11 == 0 { 70_000 } else { 0 }))
}

/// The same with messages of these bytes, which take so many ns more than 2 µs.
fn exchange(hosts: [&str; 2], message: &dyn Fn(i64) -> (i64, i64)) -> Vec<Section> {
    let [mut from, mut to] = [0, 1].map(|rank| Rank::new(rank, 2));
    for rank in [&mut from, &mut to] {
        rank.call(names::MPI_Init, "main", &[], (0, 1000));
    }
    let mut now = 1000;
    for i in 0..400_i64 {
        let (bytes, more) = message(i);
        let place = if bytes < 50_000 { "small" } else { "large" };
        let (posted, sent) =
            if i % 5 < 3 { (now + 90_000, now + 5_000) } else { (now + 1_000, now + 20_000) };
        let takes = 2_000 + more;
        from.call(names::MPI_Send, place, &[bytes, 0, 1, 0, 0], (sent, sent + 500));
        let exit = posted.max(sent) + if posted > sent { 300 } else { takes };
        to.call(names::MPI_Recv, place, &[bytes, 0, 0, 0, 0, NONE, NONE, bytes], (posted, exit));
        now = exit + 100_000;
    }
    for rank in [&mut from, &mut to] {
        rank.call(names::MPI_Finalize, "main", &[], (now, now + 1000));
    }
    vec![from.finish(hosts[0]), to.finish(hosts[1])]
}

#[test]
fn latency_and_bandwidth_are_found() {
    for hosts in [["a", "a"], ["a", "b"]] {
        let csv = printed(network(hosts), &["messages", "--format", "csv"]);
        let rows = rows(&csv);
        let [small, large] = [false, true].map(|large| {
            let is = |row: &&BTreeMap<String, String>| (row["median_bytes"].len() > 4) == large;
            rows.iter().find(is).unwrap()
        });
        assert_eq!((&*large["bound_by"], &*small["bound_by"]), ("bandwidth", "latency"), "{csv}");
        let ns = |row: &BTreeMap<String, String>| row["fitted_ns"].parse::<f64>().unwrap();
        // Means of 50,000 to 200,000, and of 8 to 40 bytes.
        assert!((ns(large) / (2_000.0 + 150_000.0 / 2.0) - 1.0).abs() < 0.05, "{csv}");
        assert!((ns(small) / 2_012.0 - 1.0).abs() < 0.05, "{csv}");
        assert_eq!((&*small["tiny_percent"], &*large["tiny_percent"]), ("100.0", "0.0"), "{csv}");
        let text = printed(network(hosts), &["messages"]);
        let way = if hosts[0] == hosts[1] { "within nodes: 2.0" } else { "between nodes: 2.0" };
        assert!(text.contains(way) && text.contains("200 messages (50.0 %)"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

#[test]
fn messages_whose_bytes_do_not_show_are_bound_by_nothing() {
    // Short ones, which take longer by their bytes; and larger ones, which take longer by chance.
    let short = |i: i64| (8 + 8 * (i % 90), 20 * (8 + 8 * (i % 90)));
    let chance = |i: i64| (1000 * (1 + i % 4), (i * 7_919 % 41) * 500 + 100 * (i % 4));
    for message in [&short as &dyn Fn(i64) -> (i64, i64), &chance] {
        let sections = exchange(["a", "a"], message);
        let text = printed(sections.clone(), &["messages"]);
        assert!(text.contains("what bytes take does not show"), "{text}");
        let csv = printed(sections, &["messages", "--format", "csv"]);
        assert!(
            rows(&csv).iter().all(|row| row["bound_by"].is_empty() && !row["fitted_ns"].is_empty()),
            "{csv}"
        );
    }
}

#[test]
fn without_times_nothing_is_fitted() {
    let text = printed(untimed(network(["a", "b"])), &["messages"]);
    assert!(text.ends_with("without exact times latency and bandwidth cannot be told apart\n"), "{text}");
    let json = printed(untimed(network(["a", "b"])), &["messages", "--format", "json"]);
    assert!(json.lines().all(|line| line.contains("\"bound_by\":null,\"site\":")), "{json}");
    assert_eq!(printed(vec![Rank::new(0, 1).finish("a")], &["messages"]), "no messages\n");
}
