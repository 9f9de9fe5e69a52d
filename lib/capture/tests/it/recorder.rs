//! What is recorded can be read back, and is proved by its lanes.

use crate::sections::{Plan, Planned, recorded};
use proptest::prelude::*;
use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::section::Sym;

/// The calls of both threads, as they were recorded.
type Calls = [Vec<(Sym, Vec<i64>)>; 2];

fn there_and_back(plan: &Plan) -> Result<(), TestCaseError> {
    let begin = |_: &mut _| Calls::default();
    let (r, calls) = plan.record(3, begin, |calls, _, thread, event| calls[thread].push((event.0, event.1)));
    let section = r.finish("node");
    prop_assert!(st_model::check::check(&section).unwrap().iter().all(st_model::check::ThreadCheck::passed));
    let mut words = Vec::new();
    for (thread, calls) in calls.iter().enumerate() {
        let mut projection = section.project(thread, 3).unwrap();
        prop_assert_eq!(section.project(thread, 3).unwrap().remaining().unwrap(), calls.len() as u64);
        for (sym, recorded) in calls {
            prop_assert_eq!(projection.next_call(&mut words).unwrap(), Some(*sym));
            prop_assert_eq!(&words, recorded);
        }
        prop_assert_eq!(projection.next_call(&mut words).unwrap(), None);
    }
    Ok(())
}

/// Loops, one after the other, of a few kinds of calls with any parameters, of which some change from one iteration to
/// the next.
fn looped() -> impl Strategy<Value = Plan> {
    let part = (recorded(), 1i64..12, any::<prop::sample::Index>(), 1i64..4, (0usize..12, 1i64..4));
    prop::collection::vec(part, 1..5).prop_map(|parts| {
        let mut calls = Vec::new();
        for (Plan(body), times, which, period, (most, turns)) in parts {
            let mut body = body[..body.len().min(most)].to_vec();
            // One call site with other words at each of its places in the loop.
            for (at, n) in body.iter_mut().zip(0..) {
                at.words[0] = at.words[0].wrapping_add(n % turns);
            }
            for i in 0..times {
                let first = calls.len();
                calls.extend_from_slice(&body);
                if !body.is_empty() {
                    let at: &mut Planned = &mut calls[first + which.index(body.len())];
                    let last = at.words.len() - 1;
                    at.words[last] = at.words[last].wrapping_add(i / period);
                }
            }
        }
        Plan(calls)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_calls_are_read_back(plan in recorded()) {
        there_and_back(&plan)?;
    }

    #[test]
    fn loops_whose_words_change_are_read_back(plan in looped()) {
        there_and_back(&plan)?;
    }
}

/// A loop over neighbours within one of time steps, each from one call site: the time step is a round, so its calls cost no more
/// than those of a loop without another in it.
#[test]
fn a_loop_with_a_loop_in_it_is_one_round() {
    let mut r = RankRecorder::new(0, Options::default());
    let thread = r.open_thread(0);
    let [send, wait] = ["MPI_Send", "MPI_Barrier"].map(|name| {
        let row = CallTable::builtin().by_name(name).unwrap();
        (r.symbol(row.id, 0, 0), vec![0; row.slots.len()])
    });
    let dest = 3;
    let mut calls = Vec::new();
    for step in 0..100 {
        for neighbour in 0..4 {
            let (sym, mut words) = send.clone();
            words[dest] = neighbour + step / 50;
            calls.push((sym, words));
        }
        calls.push(wait.clone());
    }
    for (i, (sym, words)) in calls.iter().enumerate() {
        r.record(thread, *sym, words, 0, 0);
        if i >= 20 {
            assert_eq!(r.round(thread).map(|(length, _)| length), Some(5), "after {i} calls");
        }
    }
    let section = r.finish("node");
    let mut words = Vec::new();
    let mut projection = section.project(thread, 0).unwrap();
    for (sym, recorded) in &calls {
        assert_eq!(projection.next_call(&mut words).unwrap(), Some(*sym));
        assert_eq!(&words, recorded);
    }
}

/// Time that is left out, within a round and outside of one, is in no sketch, and nothing else changes by it.
#[test]
fn time_that_is_left_out_is_as_if_it_had_not_gone_by() {
    let recorded = |left_out: i64| {
        let mut r = RankRecorder::new(0, Options { columns: false, ..Options::default() });
        let thread = r.open_thread(0);
        let symbols = ["MPI_Send", "MPI_Recv", "MPI_Barrier"].map(|name| {
            let row = CallTable::builtin().by_name(name).unwrap();
            (r.symbol(row.id, 0, 0), vec![0; row.slots.len()])
        });
        let (mut now, mut snapshots) = (0, Vec::new());
        for i in 0..300_i64 {
            // Loops of two, then of three.
            let (sym, words) = &symbols[usize::try_from(i % if i < 120 { 2 } else { 3 }).unwrap()];
            r.record(thread, *sym, words, now + 10 + i % 7, now + 30);
            now += 40;
            if [3, 50, 119, 200, 299].contains(&i) {
                assert!(r.leave_out(thread, left_out).is_none());
                now += left_out;
                snapshots.push(r.snapshot("node"));
                assert_eq!(r.last_exit(thread), now - 10);
            }
        }
        (snapshots, r.finish("node"))
    };
    assert_eq!(recorded(0), recorded(1_000_000));
}

#[test]
fn functions_outside_the_table_keep_their_names() {
    let mut r = RankRecorder::new(0, Options::default());
    // In the order of their first calls, which is not that of any list.
    let ids = ["MPI_Zeta", "MPI_Alpha", "MPI_Zeta", "MPIX_Mu"].map(|name| (name, r.unknown_call(name)));
    for (name, id) in ids {
        assert_eq!(r.unknown_name(id), Some(name));
    }
    let send = CallTable::builtin().by_name("MPI_Send").unwrap().id;
    assert_eq!(r.unknown_name(send), None);
}
