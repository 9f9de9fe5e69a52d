//! What is recorded can be read back, and is proved by its lanes.
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

mod sections;

use proptest::prelude::*;
use sections::{Plan, Planned, recorded};
use st_trace::section::Sym;

/// The calls of both threads, as they were recorded.
type Calls = [Vec<(Sym, Vec<i64>)>; 2];

fn there_and_back(plan: &Plan) -> Result<(), TestCaseError> {
    let begin = |_: &mut _| Calls::default();
    let (r, calls) = plan.record(3, begin, |calls, _, thread, event| calls[thread].push((event.0, event.1)));
    let section = r.finish("node");
    prop_assert!(st_trace::check::check(&section).unwrap().iter().all(st_trace::check::ThreadCheck::passed));
    let mut words = Vec::new();
    for (thread, calls) in calls.iter().enumerate() {
        let mut projection = section.project(thread, 3).unwrap();
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
    let part = (recorded(), 1i64..12, any::<prop::sample::Index>(), 1i64..4, 0usize..12);
    prop::collection::vec(part, 1..5).prop_map(|parts| {
        let mut calls = Vec::new();
        for (Plan(body), times, which, period, most) in parts {
            let body = &body[..body.len().min(most)];
            for i in 0..times {
                let first = calls.len();
                calls.extend_from_slice(body);
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
