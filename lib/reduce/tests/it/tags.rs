//! Tags are left out where they tell no messages apart, and nowhere else.

use crate::common::recorder;
use st_model::calls::CallTable;
use st_model::check::{Verdict, check};
use st_model::section::Section;
use st_reduce::merge::{Error, Merger};

const RANKS: u32 = 8;
const ANY_SOURCE: i64 = -2;
const ANY_TAG: i64 = -1;

/// What a rank does in a step: function and words.
type Step<'a> = &'a dyn Fn(i64, i64) -> Vec<(&'static str, Vec<i64>)>;

/// Ranks that do ten steps each; `step` is given the rank and the number of the step.
fn ranks(step: Step<'_>) -> Vec<Section> {
    let of = |rank: u32| {
        let (mut r, ..) = recorder(rank, RANKS);
        r.sites.label("here");
        for n in 0..10 {
            for (name, words) in step(rank.into(), n) {
                let sym = r.symbol(CallTable::builtin().by_name(name).unwrap().id, 0, 0);
                r.record(0, sym, &words, 0, 0);
            }
        }
        r.finish("host")
    };
    (0..RANKS).map(of).collect()
}

fn send(dest: i64, tag: i64) -> (&'static str, Vec<i64>) {
    ("MPI_Send", vec![1, 0, dest, tag, 0])
}

/// A receive, and where it came from by which tag, as far as it did not say so.
fn receive(source: i64, tag: i64, resolved: (i64, i64)) -> (&'static str, Vec<i64>) {
    let none = |named: bool, v| if named { -9 } else { v };
    let (from, by) = (none(source >= 0, resolved.0), none(tag >= 0, resolved.1));
    ("MPI_Recv", vec![1, 0, source, tag, 0, from, by, 4])
}

fn merged(sections: &[Section], drop: bool) -> (Section, Result<(), String>) {
    let mut m = Merger::new(false).watching_tags(drop);
    sections.iter().for_each(|s| m.add(s.clone()).unwrap());
    let dropped = if drop { m.drop_tags() } else { Ok(()) };
    (m.finish(), dropped)
}

fn calls(s: &Section, rank: u32) -> Vec<Vec<i64>> {
    s.project(0, rank).unwrap().map(|c| c.unwrap().words).collect()
}

fn right(me: i64) -> i64 {
    (me + 1) % i64::from(RANKS)
}

fn left(me: i64) -> i64 {
    (me + i64::from(RANKS) - 1) % i64::from(RANKS)
}

/// Each rank sends by a tag of its own that follows no rule.
fn noise(from: i64) -> i64 {
    5 + from * from * 37 % 101
}

#[test]
fn one_tag_per_channel_is_none() {
    let steps: Step<'_> = &|me, n| {
        let by = noise(left(me));
        let wild = if n % 2 == 0 { ANY_TAG } else { by };
        // Sent, received, sent to nobody; received by a request, whose completion says source and tag, too.
        vec![
            send(right(me), noise(me)),
            receive(left(me), wild, (left(me), by)),
            send(-1, 3 + n),
            ("MPI_Irecv", vec![1, 0, left(me), by, 0, 0]),
            ("MPI_Wait", vec![1, 0, 1, 0, 1, left(me), 1, by, 1, 4]),
        ]
    };
    let sections = ranks(steps);
    let (whole, _) = merged(&sections, false);
    let (without, dropped) = merged(&sections, true);
    assert_eq!(dropped, Ok(()));
    for rank in 0..RANKS {
        let kept = calls(&whole, rank);
        assert_eq!(kept, calls(&sections[rank as usize], rank));
        // By the number of words: MPI_Send, MPI_Recv, MPI_Irecv, MPI_Wait.
        let blank = |mut words: Vec<i64>| {
            let tags: &[usize] = match words.len() {
                8 => &[3, 6],
                10 => &[7],
                _ => &[3],
            };
            tags.iter().for_each(|&at| words[at] = words[at].min(0));
            words
        };
        let expected: Vec<_> = kept.into_iter().map(blank).collect();
        assert_eq!(calls(&without, rank), expected);
    }
    let verdicts = check(&without).unwrap()[0].lanes;
    let voided = |v: &&Verdict| **v == Verdict::Voided;
    assert_eq!((verdicts[4], verdicts.iter().filter(voided).count()), (Verdict::Voided, 1));
    assert!(check(&without).unwrap()[0].passed());
    // All ranks are alike without tags.
    let streams =
        |s: &Section| s.threads[0].params.iter().flatten().map(|p| p.values.streams.len()).sum::<usize>();
    assert!(streams(&without) < streams(&whole), "{} {}", streams(&without), streams(&whole));
}

#[test]
fn tags_that_tell_messages_apart_stay() {
    let cases: [(&str, Step<'_>); 4] = [
        ("0 sends to 1 by 7 and 8", &|me, n| vec![send(right(me), 7 + n % 2)]),
        // Nobody sends by 8, and a receive that never gets a message must go on not to.
        ("7 sends to 0 by 8 and 7", &|me, _| {
            vec![send(right(me), 7), receive(left(me), 8, (0, 0)), receive(left(me), 7, (0, 0))]
        }),
        ("0 receives from any source by 7 and 8", &|_, n| vec![receive(ANY_SOURCE, 7 + n % 2, (1, 0))]),
        ("1 receives from any source by 7, and 0 sends to it by 0", &|me, _| match me {
            1 => vec![receive(ANY_SOURCE, 7, (2, 0))],
            _ => vec![send(1, me)],
        }),
    ];
    for (why, steps) in cases {
        let sections = ranks(steps);
        let (kept, dropped) = merged(&sections, true);
        assert!(dropped.as_ref().is_err_and(|e| e.contains(why)), "{why}: {dropped:?}");
        assert_eq!(kept, merged(&sections, false).0);
        assert!(check(&kept).unwrap()[0].lanes.iter().all(|v| *v == Verdict::Proved));
    }
}

#[test]
fn receives_from_any_source_by_the_only_tag_need_none() {
    let (_, dropped) = merged(
        &ranks(&|me, _| match me {
            0 => (1..8).map(|from| receive(ANY_SOURCE, 7, (from, 0))).collect(),
            _ => vec![send(0, 7)],
        }),
        true,
    );
    assert_eq!(dropped, Ok(()));
}

#[test]
fn a_bridge_between_groups_has_messages_of_its_own() {
    let (_, dropped) = merged(&ranks(&|_, _| vec![("MPI_Intercomm_create", vec![1, 0, 0, 1, 5, -1])]), true);
    assert!(dropped.is_err_and(|e| e.contains("MPI_Intercomm_create")));
}

#[test]
fn tags_are_left_out_everywhere_or_nowhere() {
    let sections = ranks(&|me, _| vec![send(right(me), 7), receive(left(me), 7, (0, 0))]);
    let (half, dropped) = merged(&sections[..4], true);
    assert_eq!(dropped, Ok(()));
    let mut m = Merger::new(false);
    m.add(half).unwrap();
    assert_eq!(m.add(sections[5].clone()), Err(Error::Tags));
}
