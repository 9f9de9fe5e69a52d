//! Streams that follow from the life of requests are stored as differences, and read back.

use crate::common::recorder;
use proptest::prelude::*;
use st_model::calls::CallTable;
use st_model::check::check;
use st_model::ints::Ints;
use st_model::section::{Elastic, Form, Section};
use st_model::steps::Budget;
use st_model::tree::Item;
use st_reduce::merge::{Error, Merging, merge};

const RANKS: u32 = 4;
const NULL: i64 = -1;
const NONE: i64 = -9;

/// A rank's calls.
type Calls = Vec<(&'static str, Vec<i64>)>;

fn record(rank: u32, calls: &Calls) -> Section {
    let (mut r, ..) = recorder(rank, RANKS);
    for (name, words) in calls {
        let site = r.sites.label(name);
        let sym = r.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
        r.record(0, sym, words, 0, 0);
    }
    r.finish("host")
}

fn calls(s: &Section, rank: u32) -> Vec<(u16, Vec<i64>)> {
    let calls = s.project(0, rank).unwrap().map(Result::unwrap);
    calls.map(|c| (s.symbols[c.sym as usize].call.0, c.words)).collect()
}

/// Merges, checks, merges again in two parts, and returns the function and slot of the parameters that are predicted.
fn merged(ranks: &[Calls]) -> Vec<(&'static str, &'static str)> {
    let sections: Vec<Section> = (0..).zip(ranks).map(|(r, c)| record(r, c)).collect();
    let once = merge(sections.clone(), false).unwrap();
    let half = |part: &[Section]| merge(part.to_vec(), false).unwrap();
    let (a, b) = sections.split_at(sections.len() / 2);
    let twice = merge([half(a), half(b)], false).unwrap();
    for merged in [&once, &twice] {
        for (rank, s) in (0..).zip(&sections) {
            assert_eq!(calls(merged, rank), calls(s, rank));
        }
        assert!(check(merged).unwrap().iter().all(st_model::check::ThreadCheck::passed));
    }
    let table = CallTable::builtin();
    let slots = once.symbols.iter().zip(&once.threads[0].params).flat_map(|(symbol, params)| {
        let row = table.get(symbol.call).unwrap();
        let predicted = |s: &st_model::section::SlotStreams| s.values.form == Form::Predicted;
        let pairs = row.slots.iter().zip(params).filter(move |(_, p)| predicted(p));
        pairs.map(|(slot, _)| (row.name.as_str(), slot.name.as_str()))
    });
    slots.collect()
}

/// Four lists of a completion: positions, and for each source, tag and bytes.
fn completed(list: &[[i64; 4]]) -> Vec<i64> {
    let n = i64::try_from(list.len()).unwrap();
    (0..4).flat_map(|field| std::iter::once(n).chain(list.iter().map(move |c| c[field]))).collect()
}

/// Any sequence of calls on requests, sensible or not.
fn anything() -> impl Strategy<Value = Calls> {
    let word = || -2i64..6;
    let list = || prop::collection::vec(word(), 0..5);
    let with_length = |v: Vec<i64>| {
        let n = i64::try_from(v.len()).unwrap();
        std::iter::once(n).chain(v)
    };
    let done = prop::collection::vec([word(), word(), word(), word()], 0..4);
    let call = prop_oneof![
        ("MPI_Irecv|MPI_Isend|MPI_Recv_init|MPI_Send_init", word(), word(), word()).prop_map(
            |(name, peer, tag, r)| {
                let known = ["MPI_Irecv", "MPI_Isend", "MPI_Recv_init", "MPI_Send_init"];
                (known.into_iter().find(|k| *k == name).unwrap(), vec![3, 0, peer, tag, 0, r])
            }
        ),
        (any::<bool>(), word())
            .prop_map(|(start, r)| (if start { "MPI_Start" } else { "MPI_Request_free" }, vec![r])),
        list().prop_map(move |v| ("MPI_Startall", std::iter::once(2).chain(with_length(v)).collect())),
        (list(), done.clone()).prop_map(move |(v, c)| {
            ("MPI_Waitsome", std::iter::once(4).chain(with_length(v)).chain(completed(&c)).collect())
        }),
        (word(), done).prop_map(|(r, c)| ("MPI_Wait", [1, r].into_iter().chain(completed(&c)).collect())),
        (word(), word(), word()).prop_map(|(s, t, b)| ("MPI_Recv", vec![2, 0, s, t, 0, s, t, b])),
        (word(), word()).prop_map(|(m, b)| ("MPI_Mrecv", vec![2, 0, m, 1, 2, b])),
        (word(), word()).prop_map(|(m, r)| ("MPI_Imrecv", vec![2, 0, m, r])),
    ];
    prop::collection::vec(call, 0..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn whatever_is_expected_the_calls_come_back(ranks in prop::collection::vec(anything(), 4)) {
        merged(&ranks);
    }
}

/// A sequence without rule.
fn noise(seed: i64, n: i64) -> i64 {
    (seed * 7919 + n * n * 104_729 + n * 31) % 1009
}

/// Receives and sends of a changing number, completed one by one in any order.
fn in_any_order(me: i64) -> Calls {
    let mut out = Calls::new();
    for step in 0..40 {
        let n = 2 + noise(me, step) % 3;
        let receive =
            |k: i64| (noise(me, 100 * step + k) % 4, noise(step, k), 1 + noise(me + 1, step + k) % 9);
        for k in 0..n {
            let (source, tag, count) = receive(k);
            out.push(("MPI_Irecv", vec![count, 0, source, tag, 0, k]));
        }
        out.push(("MPI_Isend", vec![5, 0, 1, 2, 0, n]));
        let mut open: Vec<i64> = (0..n).collect();
        while open.iter().any(|r| *r != NULL) {
            let at = usize::try_from(noise(step, open.iter().sum::<i64>() + 9) % n).unwrap();
            let at = (at..).map(|at| at % open.len()).find(|at| open[*at] != NULL).unwrap();
            let (source, tag, count) = receive(open[at]);
            let found = [i64::try_from(at).unwrap(), source, tag, 4 * count];
            let words = [n, n].into_iter().chain(open.iter().copied()).chain(completed(&[found]));
            out.push(("MPI_Waitany", words.collect()));
            open[at] = NULL;
        }
        out.push(("MPI_Wait", [1, n].into_iter().chain(completed(&[[0, NONE, NONE, NONE]])).collect()));
    }
    out
}

#[test]
fn what_requests_determine_costs_nothing() {
    let predicted = merged(&(0..4).map(in_any_order).collect::<Vec<_>>());
    for slot in ["requests", "source", "tag", "bytes"] {
        assert!(predicted.contains(&("MPI_Waitany", slot)), "{slot}: {predicted:?}");
    }
    assert!(predicted.contains(&("MPI_Irecv", "request")) || predicted.contains(&("MPI_Isend", "request")));
}

/// As if each of its calls of one leaf were made 2^32 times; its lanes still say otherwise.
fn swollen(mut section: Section) -> Section {
    let thread = &mut section.threads[0];
    let mut many = Ints::new();
    many.push(1 << 32);
    let leaf = thread.tree.items().iter().rposition(|item| matches!(item, Item::Leaf { .. })).unwrap();
    thread.counts[leaf] =
        Elastic { streams: [many.seal()].into_iter().collect(), ..thread.counts[leaf].clone() };
    section
}

#[test]
fn calls_are_counted_before_they_are_gone_through_whatever_lanes_say() {
    let sections = |ranks: std::ops::Range<u32>| ranks.map(|r| record(r, &in_any_order(r.into())));
    let is_predicted =
        |s: &Section| s.threads[0].params.iter().flatten().any(|p| p.values.form == Form::Predicted);
    let once = merge(sections(0..4), false).unwrap();
    assert!(is_predicted(&once));
    assert!(!is_predicted(&merge(sections(0..4).map(swollen), false).unwrap()));
    let budget = Budget::new(1_000_000);
    let mut merger = Merging { budget, ..Merging::default() }.root();
    let refused = merger.add(swollen(once)).and_then(|()| merger.add(record(4, &in_any_order(4))));
    assert!(matches!(refused, Err(Error::Steps(_))), "{refused:?}");
}
