//! Who talks to whom: the folded form against a walk over all calls, and against the summary's bytes.

use std::collections::BTreeMap;

use crate::common::{Rank, each_call, kernel, printed, rows};
use clap::ValueEnum as _;
use st_capture::record::{Options, RankRecorder};
use st_kernels::Kernel;
use st_match::volume::{Flow, Flows, Graphs};
use st_model::calls::{CallTable, names};
use st_model::objects::{Comm, SharedObject, Type};
use st_model::ranks::RankSeq;
use st_model::section::Section;
use st_model::steps::Budget;
use st_reduce::merge::merge;

/// Pairs, and what goes to no one rank, by rank.
type Known = (BTreeMap<(u32, u32), (u64, u128)>, BTreeMap<u32, (u64, u128)>);

/// By going through all calls.
fn slowly(sections: &[Section]) -> Known {
    let mut all = Known::default();
    each_call(sections, |rank, _, volume| {
        let mut rest = volume.sent.bytes;
        for (to, bytes) in &volume.partners {
            let pair = all.0.entry((rank, *to)).or_default();
            (pair.0, pair.1, rest) = (pair.0 + 1, pair.1 + bytes, rest - bytes);
        }
        if rest > 0 {
            let shared = all.1.entry(rank).or_default();
            (shared.0, shared.1) = (shared.0 + 1, shared.1 + rest);
        }
    });
    all
}

fn folded(sections: &[Section], budget: &Budget) -> Flows {
    let graphs = Graphs::of(sections).unwrap();
    let mut flows = Flows::default();
    for section in sections {
        section.ranks.iter().for_each(|rank| flows.add(section, rank, &graphs, budget).unwrap());
    }
    flows
}

fn known(flows: &Flows) -> Known {
    let of = |flow: &Flow| (flow.messages, flow.sent);
    let pairs = flows.pairs.iter().map(|(key, flow)| (*key, of(flow))).collect();
    (pairs, flows.shared.iter().map(|(key, flow)| (*key, of(flow))).collect())
}

#[test]
fn flows_of_kernels_are_those_of_all_calls() {
    for k in Kernel::value_variants().iter().copied() {
        for (ranks, steps) in [(4, 7), (16, 3)] {
            let sections = kernel(k, ranks, steps);
            let slow = slowly(&sections);
            assert_eq!(known(&folded(&sections, &Budget::default())), slow, "{k:?}");
            let merged = merge(sections, false).unwrap();
            assert_eq!(known(&folded(&[merged], &Budget::default())), slow, "{k:?} merged");
        }
    }
}

#[test]
fn long_loops_cost_what_short_ones_do() {
    for k in [Kernel::Stencil2d, Kernel::Transpose, Kernel::Fft, Kernel::Wavefront] {
        let merged = merge(kernel(k, 16, 400), false).unwrap();
        assert!(merged.steps(None) > 40_000);
        let flows = folded(std::slice::from_ref(&merged), &Budget::new(8_000));
        assert_eq!(known(&flows), slowly(&[merged]), "{k:?}");
    }
}

#[test]
fn what_cannot_be_folded_is_bounded() {
    let merged = merge(kernel(Kernel::Sort, 4, 300), false).unwrap();
    let graphs = Graphs::of([&merged]).unwrap();
    let failed = Flows::default().add(&merged, 0, &graphs, &Budget::new(10)).unwrap_err();
    assert!(failed.to_string().contains("--max-steps"), "{failed}");
}

/// Sum of a column of CSV.
fn sum(csv: &str, column: &str) -> u64 {
    rows(csv).iter().map(|row| row[column].parse::<u64>().unwrap_or(0)).sum()
}

#[test]
fn bytes_are_those_of_the_summary() {
    for k in Kernel::value_variants().iter().copied() {
        let merged = merge(kernel(k, 16, 4), false).unwrap();
        let sent = sum(&printed(vec![merged.clone()], &["--format", "csv"]), "sent_bytes");
        for by in ["rank", "node", "cluster"] {
            let matrix = printed(vec![merged.clone()], &["matrix", "--format", "csv", "--by", by]);
            assert_eq!(sum(&matrix, "sent_bytes"), sent, "{k:?} by {by}\n{matrix}");
        }
    }
}

#[test]
fn text_is_drawn_within_its_width() {
    for ranks in [2, 16, 64, 100] {
        let text = printed(kernel(Kernel::Stencil2d, ranks, 4), &["matrix"]);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.lines().count() < 60 && text.contains("heaviest pairs"), "{text}");
    }
    let four = printed(kernel(Kernel::Stencil1d, 4, 5), &["matrix"]);
    for (me, row) in ["· ██· ██", "██· ██·", "· ██· ██", "██· ██·"].iter().enumerate()
    {
        assert!(four.contains(&format!("\n{me} {row}\n")), "{four}");
    }
    assert!(four.contains("8 pairs of 4 ranks"), "{four}");
    assert!(printed(kernel(Kernel::Fft, 4, 2), &["matrix"]).contains("in collective operations"));
}

#[test]
fn neighbourhoods_are_those_of_calls_before() {
    let mut r = Rank::new(0, 2);
    let (members, remote) = (RankSeq::first(2), RankSeq::default());
    r.recorder.objects.comms.predefined(Comm { kind: "line".into(), parent: 0, members, remote });
    // comm, ndims, dims, periods, reorder, newcomm: of two neighbours on a line one is not there.
    r.call(names::MPI_Cart_create, "made", &[0, 1, 1, 2, 1, 0, 0, 1], (0, 0));
    for _ in 0..10 {
        // sendcount, sendtype, recvcount, recvtype, comm
        r.call(names::MPI_Neighbor_alltoall, "exchange", &[5, 1, 5, 1, 1], (0, 0));
    }
    let flows = folded(&[r.finish("host")], &Budget::default());
    assert_eq!(flows.shared[&0], Flow { messages: 10, sent: 10 * 5 * 8, fetched: 0 });
}

/// Rank 1 of two on a node puts 2 and gets 3 doubles, and sends nothing to itself a million times.
#[test]
fn windows_count_both_ways_and_empty_messages_are_messages() {
    let mut r = RankRecorder::new(1, Options::default());
    let world = || RankSeq::first(2);
    r.objects.comms.predefined(Comm {
        kind: "world".into(),
        parent: 0,
        members: world(),
        remote: RankSeq::default(),
    });
    let double = Type { kind: "double".into(), words: vec![], parts: vec![], size: 8, lb: 0, extent: 8 };
    r.objects.types.predefined(double);
    r.objects.wins.predefined(SharedObject { kind: "win".into(), comm: 0, members: world() });
    r.open_thread(0);
    let site = r.sites.label("here");
    // origincount origintype target targetdisp targetcount targettype win; count type dest tag comm
    let calls: [(&str, &[i64], u32); 3] = [
        (names::MPI_Put, &[2, 0, 0, 0, 2, 0, 0], 1),
        (names::MPI_Get, &[3, 0, 0, 0, 3, 0, 0], 1),
        (names::MPI_Send, &[0, 0, 1, 5, 0], 1_000_000),
    ];
    for (name, words, times) in calls {
        let id = CallTable::builtin().by_name(name).unwrap().id;
        let symbol = r.symbol(id, site, 0);
        (0..times).for_each(|_| drop(r.record(0, symbol, words, 0, 0)));
    }
    let section = r.finish("host");
    let csv = printed(vec![section.clone()], &["matrix", "--format", "csv", "--max-steps", "1000"]);
    let head = "from_rank,to_rank,messages,sent_bytes,fetched_bytes\n";
    assert_eq!(csv, format!("{head}1,0,2,16,24\n1,1,1000000,0,0\n"));
    let json = printed(vec![section], &["matrix", "--format", "json", "--by", "node"]);
    let first = json.lines().next().unwrap();
    let expected =
        r#"{"from_node":"host","to_node":"host","messages":1000000,"sent_bytes":0,"fetched_bytes":0}"#;
    assert_eq!(first, expected, "{json}");
}
