//! What programs leave behind: programs by chance that keep book themselves, and planted leaks of every kind.

use std::collections::BTreeMap;

use crate::common::{Rank, printed, rows, untimed};
use st_explain::analyse;
use st_match::leaks::{Leaks, What};
use st_model::calls::names;
use st_model::objects::Comm;
use st_model::ranks::RankSeq;
use st_model::section::{Ended, NO_SYM, Section};
use st_model::sites::SiteTable;
use st_model::steps::Budget;
use st_model::values::NONE;
use st_reduce::merge::merge;

/// A generator of numbers: the same for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

fn int(n: usize) -> i64 {
    i64::try_from(n).unwrap()
}

/// What is left, by kind, label of the place, and rank.
type Left = BTreeMap<(What, &'static str, u32), u64>;

const PLACES: [&str; 3] = ["here", "there", "elsewhere"];

/// A rank that makes, completes and frees by chance, and what it leaves.
fn by_chance(seed: u64, rank: u32, steps: usize) -> (Section, Left) {
    let (mut r, mut chance) = (Rank::new(rank, 2), Chance(seed));
    // By number: kind, place, whether it is active.
    let mut requests: Vec<Option<(What, &str, bool)>> = Vec::new();
    let mut objects: Vec<(What, usize, &str)> = Vec::new();
    let [mut comms, mut types] = [2, 2];
    for _ in 0..steps {
        let place = PLACES[chance.below(3)];
        let free = requests.iter().position(Option::is_none).unwrap_or(requests.len());
        let some: Vec<usize> = (0..requests.len()).filter(|i| requests[*i].is_some()).collect();
        match chance.below(7) {
            0 => {
                r.call(names::MPI_Irecv, place, &[1, 0, 1, 0, 0, int(free)], (0, 0));
                requests.resize(requests.len().max(free + 1), None);
                requests[free] = Some((What::Request, place, true));
            }
            1 => {
                r.call(names::MPI_Send_init, place, &[1, 0, 1, 0, 0, int(free)], (0, 0));
                requests.resize(requests.len().max(free + 1), None);
                requests[free] = Some((What::Persistent, place, false));
            }
            2 | 3 if !some.is_empty() => {
                let which = some[chance.below(some.len())];
                let (what, made, active) = requests[which].unwrap();
                if what == What::Persistent && !active {
                    r.call(names::MPI_Start, place, &[int(which)], (0, 0));
                    // What is under way counts for the call that started it.
                    requests[which] = Some((what, made, true));
                } else if chance.below(4) == 0 {
                    r.call(names::MPI_Request_free, place, &[int(which)], (0, 0));
                    requests[which] = None;
                } else {
                    let got = if what == What::Persistent { [NONE; 3] } else { [1, 0, 1] };
                    let words = [1, 1, int(which), 1, 0, 1, got[0], 1, got[1], 1, got[2]];
                    r.call(names::MPI_Waitall, place, &words, (0, 0));
                    requests[which] = (what == What::Persistent).then_some((what, made, false));
                }
            }
            4 => {
                objects.push((What::Comm, comms, place));
                r.call(names::MPI_Comm_dup, place, &[0, int(comms)], (0, 0));
                comms += 1;
            }
            5 => {
                objects.push((What::Type, types, place));
                r.call(names::MPI_Type_contiguous, place, &[3, 0, int(types)], (0, 0));
                types += 1;
            }
            _ if !objects.is_empty() => {
                let at = chance.below(objects.len());
                let (what, index, _) = objects.swap_remove(at);
                let name = if what == What::Comm { names::MPI_Comm_free } else { names::MPI_Type_free };
                r.call(name, place, &[int(index)], (0, 0));
            }
            _ => {}
        }
    }
    let mut left = Left::new();
    for (what, place, active) in requests.into_iter().flatten() {
        // Those that are started again and again are looked at below.
        let what = if active { What::Request } else { what };
        *left.entry((what, place, rank)).or_default() += 1;
    }
    for (what, _, place) in objects {
        *left.entry((what, place, rank)).or_default() += 1;
    }
    (r.finish("host"), left)
}

fn found(sections: &[Section]) -> Left {
    let leaks = Leaks::of(sections, &Budget::default()).unwrap();
    let mut all = Left::new();
    for ((what, _, site), ranks) in leaks.left {
        let place = PLACES.iter().find(|p| Some(SiteTable::label_id(p)) == site).unwrap();
        ranks.into_iter().for_each(|(rank, n)| *all.entry((what, *place, rank)).or_default() += n);
    }
    all
}

/// Without places of what is under way: of persistent requests it counts where they were started.
fn coarse(left: &Left) -> BTreeMap<(What, u32), u64> {
    let mut all = BTreeMap::new();
    left.iter().for_each(|((what, _, rank), n)| *all.entry((*what, *rank)).or_insert(0) += n);
    all
}

/// Objects that are left by place and rank, as those find them who go through the calls in the order of time.
fn found_in_time(sections: &[Section]) -> BTreeMap<(&'static str, u32), u64> {
    let analysis = analyse(sections, &|_| ()).unwrap();
    let mut all = BTreeMap::new();
    for (at, totals) in analysis.totals.iter().filter(|(_, totals)| totals.unfreed > 0) {
        let site = analysis.places.get(at.place).unwrap().site;
        let place = PLACES.iter().find(|p| Some(SiteTable::label_id(p)) == site).unwrap();
        *all.entry((*place, at.rank)).or_insert(0) += totals.unfreed;
    }
    all
}

#[test]
fn what_is_left_is_what_was_made_and_never_ended() {
    for seed in 0..60 {
        let (a, mut left) = by_chance(seed, 0, 150);
        let (b, more) = by_chance(seed * 31 + 7, 1, 150);
        left.extend(more);
        let sections = [a, b];
        let found_now = found(&sections);
        assert_eq!(coarse(&found_now), coarse(&left), "{seed}");
        for (key, n) in left.iter().filter(|((what, ..), _)| *what != What::Request) {
            assert_eq!(found_now.get(key), Some(n), "{seed} {key:?}");
        }
        let mut objects = BTreeMap::new();
        for ((_, place, rank), n) in
            left.iter().filter(|((what, ..), _)| matches!(what, What::Comm | What::Type))
        {
            *objects.entry((*place, *rank)).or_insert(0) += n;
        }
        assert_eq!(found_in_time(&sections), objects, "{seed}");
        let merged = merge(sections.to_vec(), false).unwrap();
        assert_eq!(found(&[merged]), found_now, "{seed} merged");
    }
}

#[test]
fn long_loops_of_objects_cost_what_short_ones_do() {
    let mut r = Rank::new(0, 1);
    for _ in 0..100_000 {
        r.call(names::MPI_Type_contiguous, "here", &[3, 0, 2], (0, 0));
        r.call(names::MPI_Type_free, "there", &[2], (0, 0));
    }
    r.call(names::MPI_Type_contiguous, "elsewhere", &[3, 0, 2], (0, 0));
    let section = r.finish("host");
    let leaks = Leaks::of(&[section], &Budget::new(100)).unwrap();
    assert_eq!(leaks.left.values().map(|ranks| ranks[&0]).collect::<Vec<_>>(), [1]);
}

/// Two ranks; the first leaves something of each kind.
fn planted() -> Vec<Section> {
    let [mut a, mut b] = [0, 1].map(|rank| Rank::new(rank, 2));
    let first: [(&str, &str, &[i64]); 9] = [
        (names::MPI_Irecv, "posted", &[1, 0, 1, 5, 0, 0]),
        (names::MPI_Isend, "sent", &[1, 0, 1, 6, 0, 1]),
        (names::MPI_Recv_init, "made", &[1, 0, 1, 5, 0, 2]),
        (names::MPI_Send, "lost", &[1, 0, 1, 7, 0]),
        (names::MPI_Send, "lost", &[1, 0, 1, 7, 0]),
        (names::MPI_Comm_dup, "dup", &[0, 2]),
        (names::MPI_Comm_group, "group", &[0, 0]),
        (names::MPI_Type_contiguous, "type", &[2, 0, 2]),
        (names::MPI_File_open, "open", &[0, -1, 0, -1, 0]),
    ];
    a.call(names::MPI_Init, "main", &[], (0, 10));
    b.call(names::MPI_Init, "main", &[], (0, 10));
    for (t, (name, place, words)) in (1..).zip(first) {
        a.call(name, place, words, (100 * t, 100 * t + 10));
    }
    b.call(names::MPI_Recv, "receive", &[1, 0, 0, 6, 0, NONE, NONE, 1], (200, 300));
    for rank in [&mut a, &mut b] {
        rank.call(names::MPI_Finalize, "main", &[], (5000, 5010));
    }
    vec![a.finish("host"), b.finish("host")]
}

#[test]
fn receives_whose_requests_are_freed_are_left_if_nothing_is_sent_to_them() {
    let [mut a, mut b] = [0, 1].map(|rank| Rank::new(rank, 2));
    for (t, (tag, place)) in (0..).zip([(5, "met"), (6, "freed"), (6, "freed")]) {
        a.call(names::MPI_Irecv, place, &[1, 0, 1, tag, 0, 0], (20 * t, 20 * t + 5));
        a.call(names::MPI_Request_free, "main", &[0], (20 * t + 6, 20 * t + 9));
    }
    b.call(names::MPI_Send, "send", &[1, 0, 0, 5, 0], (0, 10));
    let csv = printed(vec![a.finish("host"), b.finish("host")], &["leaks", "--format", "csv"]);
    let found: Vec<_> = rows(&csv)
        .iter()
        .map(|row| ["left", "function", "number", "place"].map(|c| row[c].clone()))
        .collect();
    assert_eq!(found, [["freed receive", "MPI_Irecv", "2", "freed"]], "{csv}");
}

#[test]
fn planted_leaks_are_named_with_their_places() {
    let csv = printed(planted(), &["leaks", "--format", "csv"]);
    let found: Vec<_> = rows(&csv)
        .into_iter()
        .map(|row| {
            [&row["left"], &row["function"], &row["number"], &row["ranklist"], &row["place"]]
                .map(Clone::clone)
                .join(" ")
        })
        .collect();
    // Most first, then by kind.
    let expected = [
        "unmatched send MPI_Send 2 <1 0 1 0> lost",
        "active request MPI_Isend 1 <1 0 1 0> sent",
        "active request MPI_Irecv 1 <1 0 1 0> posted",
        "persistent request MPI_Recv_init 1 <1 0 1 0> made",
        "communicator MPI_Comm_dup 1 <1 0 1 0> dup",
        "group MPI_Comm_group 1 <1 0 1 0> group",
        "datatype MPI_Type_contiguous 1 <1 0 1 0> type",
        "file MPI_File_open 1 <1 0 1 0> open",
    ];
    assert_eq!(found, expected, "{csv}");
    let text = printed(planted(), &["leaks"]);
    assert!(text.contains("  rank 0 ") && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // It takes no times, and `why` says the same of what is in its calls.
    assert_eq!(printed(untimed(planted()), &["leaks", "--format", "csv"]), csv);
    let why = printed(planted(), &["why", "--all"]);
    for function in ["MPI_Isend", "MPI_Irecv"] {
        let said = format!("leak: 1 request of rank 0 is never completed\n        at {function} (");
        assert!(why.contains(&said), "{why}");
    }
    for (what, function) in
        [("communicator", "MPI_Comm_dup"), ("group", "MPI_Comm_group"), ("datatype", "MPI_Type_contiguous")]
    {
        let said = format!("leak: 1 {what} of rank 0 is never freed\n        at {function} (");
        assert!(why.contains(&said), "{why}");
    }
    assert_eq!(why.matches("leak: ").count(), 6, "{why}");
    // What is made once need not be told.
    assert_eq!(printed(planted(), &["why"]).matches("leak: ").count(), 2);
}

/// As many are received as are sent, and every request completes.
#[test]
fn a_message_with_another_tag_is_left() {
    let ranks = [0, 1].map(|me| {
        let mut r = Rank::new(me, 2);
        for tag in [7, 7, 7 + int(usize::from(me == 0))] {
            match me {
                0 => r.call(names::MPI_Send, "here", &[1, 0, 1, tag, 0], (0, 0)),
                _ => r.call(names::MPI_Recv, "there", &[1, 0, 0, tag, 0, NONE, NONE, 1], (0, 0)),
            }
        }
        r.finish("host")
    });
    let mut leaks = Leaks::of(&ranks, &Budget::default()).unwrap();
    leaks.add_unmatched(&ranks, &Budget::default()).unwrap();
    let left = leaks.left.into_iter().map(|((what, ..), of)| (what, of)).collect::<Vec<_>>();
    assert_eq!(left, [(What::Send, [(0, 1)].into()), (What::Receive, [(1, 1)].into())]);
}

#[test]
fn ranks_that_ended_early_leave_nothing() {
    let mut sections = planted();
    let ended = Ended { rank: 0, thread: 0, calls: 11, last: 0, inside: NO_SYM, entered: 0 };
    sections[0].ended.push(ended);
    assert!(printed(sections.clone(), &["leaks"]).starts_with("nothing is left"));
    assert!(!printed(sections, &["why", "--all"]).contains("leak: "));
}

#[test]
fn a_message_that_was_found_and_never_received_is_left() {
    let mut r = Rank::new(0, 2);
    // source tag comm message rsource rtag bytes
    r.call(names::MPI_Mprobe, "here", &[1, 0, 0, 0, NONE, NONE, 4], (0, 10));
    r.call(names::MPI_Mprobe, "there", &[1, 0, 0, 1, NONE, NONE, 4], (20, 30));
    // count type message rsource rtag bytes
    r.call(names::MPI_Mrecv, "here", &[4, 0, 0, NONE, NONE, 4], (40, 50));
    assert_eq!(found(&[r.finish("host")]), Left::from([((What::Message, "there", 0), 1)]));
}

/// A rank that makes requests and a type and sends, pauses recording, goes on, and makes another request.
fn pausing() -> Vec<Section> {
    let mut r = Rank::new(0, 1);
    r.call(names::MPI_Init, "main", &[], (0, 10));
    r.call(names::MPI_Irecv, "here", &[1, 0, 0, 5, 0, 0], (20, 30));
    r.call(names::MPI_Recv_init, "here", &[1, 0, 0, 5, 0, 1], (40, 50));
    r.call(names::MPI_Type_contiguous, "there", &[2, 0, 2], (60, 70));
    r.call(names::MPI_Send, "there", &[1, 0, 0, 7, 0], (80, 90));
    for level in [0, 1] {
        r.call(names::MPI_Pcontrol, "main", &[level], (100 + 100 * level, 110 + 100 * level));
    }
    r.call(names::MPI_Irecv, "elsewhere", &[1, 0, 0, 5, 0, 0], (220, 230));
    r.call(names::MPI_Finalize, "main", &[], (5000, 5010));
    vec![r.finish("host")]
}

#[test]
fn what_may_have_ended_while_recording_was_paused_is_not_told() {
    let sections = pausing();
    assert_eq!(found(&sections), Left::from([((What::Request, "elsewhere", 0), 1)]));
    assert_eq!(Leaks::of(&sections, &Budget::default()).unwrap().paused, 1);
    assert_eq!(found_in_time(&sections), BTreeMap::new());
    assert_eq!(rows(&printed(sections.clone(), &["leaks", "--format", "csv"])).len(), 1);
    assert_eq!(printed(sections, &["why", "--all"]).matches("leak: ").count(), 1);
}

#[test]
fn persistent_collectives_are_started_again_and_leave_nothing() {
    for comm in [0, 1] {
        let mut r = Rank::new(0, 2);
        let (members, remote) = (RankSeq::first(1), RankSeq::default());
        let alone = Comm { kind: "MPI_COMM_SELF".into(), parent: 0, members, remote };
        r.recorder.objects.comms.predefined(alone);
        r.call(names::MPI_Barrier_init, "here", &[comm, 0], (0, 10));
        for _ in 0..3 {
            r.call(names::MPI_Start, "there", &[0], (0, 0));
            r.call(names::MPI_Waitall, "there", &[1, 1, 0, 1, 0, 1, NONE, 1, NONE, 1, NONE], (0, 0));
        }
        let leaks = Leaks::of(&[r.finish("host")], &Budget::default()).unwrap();
        assert_eq!(leaks.elsewhere, 0);
        assert_eq!(leaks.left.into_keys().map(|(what, ..)| what).collect::<Vec<_>>(), [What::Persistent]);
    }
}

#[test]
fn messages_of_other_jobs_are_counted_and_not_listed() {
    let mut r = Rank::new(0, 1);
    let [members, mut remote] = [RankSeq::first(1), RankSeq::default()];
    [1, 2].into_iter().for_each(|spawned| remote.push(spawned));
    let content = Comm { kind: names::MPI_Comm_spawn.into(), parent: 1, members, remote };
    let comm = r.recorder.objects.comms.predefined(content);
    for tag in [3, 4] {
        r.call(names::MPI_Send, "there", &[1, 0, 1, tag, comm], (0, 0));
    }
    r.call(names::MPI_Recv, "there", &[1, 0, 0, 3, comm, NONE, NONE, 1], (0, 0));
    r.call(names::MPI_Send, "here", &[1, 0, 0, 3, 0], (0, 0));
    let mut leaks = Leaks::default();
    leaks.add_unmatched(&[r.finish("host")], &Budget::default()).unwrap();
    assert_eq!(leaks.outside, 3);
    let left: Vec<_> =
        leaks.left.into_iter().map(|((what, _, site), ranks)| (what, site, ranks[&0])).collect();
    assert_eq!(left, [(What::Send, Some(SiteTable::label_id("here")), 1)]);
}
