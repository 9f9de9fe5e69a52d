//! What is kept of programs by chance says what their exact times say, but for how sums are spread over many ranks.

use std::collections::BTreeMap;

use crate::simulator::{Machine, planted, programs, run};
use proptest::prelude::*;
use st_explain::{
    Activity, Analysis, Delays, Doing, Explains, Finding, Kept, Matter, WaitKind, analyse_causes,
};
use st_model::explanation::ELSEWHERE;
use st_model::section::Section;
use st_stream::{Trace, WriteOptions};

/// Parts of ranks that are kept are right to this share, and what rounding takes of short ones, ns.
const RIGHT: f64 = 0.045;
const ROUNDED: f64 = 16.0;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= RIGHT * a.max(b) + ROUNDED
}

#[expect(clippy::cast_precision_loss, reason = "a test's times are short")]
fn float(ns: u64) -> f64 {
    ns as f64
}

fn both(sections: &[Section]) -> (Analysis, Kept) {
    let live = analyse_causes(sections, &|_| ()).unwrap();
    let kept = Kept::of(&live.kept());
    (live, kept)
}

/// Function and call site of a place, the same in both.
fn place(of: &dyn Explains, number: u32) -> String {
    format!("{:?}", of.places().get(number))
}

/// A finding without how its cost is spread over ranks.
fn what(of: &dyn Explains, f: &Finding) -> (Matter, String, Option<String>, u64, u64, u64) {
    let culprit = matches!(f.matter, Matter::Wait(_)).then(|| f.culprits.first()).flatten();
    let culprit = culprit.map(|(at, _)| place(of, at.place));
    (f.matter, place(of, f.place), culprit, f.cost, f.count, f.bytes)
}

fn sorted(of: &dyn Explains, findings: &[Finding]) -> Vec<(Matter, String, Option<String>, u64, u64, u64)> {
    let mut all: Vec<_> = findings.iter().map(|f| what(of, f)).collect();
    all.sort();
    all
}

/// Waits by kind, place and what else tells them apart: how many and how long.
fn sums<K: Ord>(all: impl Iterator<Item = (K, st_explain::Sum)>) -> BTreeMap<K, (u64, u64, u64)> {
    let mut found: BTreeMap<K, (u64, u64, u64)> = BTreeMap::new();
    for (key, sum) in all {
        let of = found.entry(key).or_default();
        *of = (of.0 + sum.count, of.1 + sum.ns, of.2.max(sum.longest));
    }
    found
}

fn by_activity(of: &dyn Explains, delays: &Delays) -> BTreeMap<(String, Activity), [f64; 4]> {
    let mut all: BTreeMap<_, [f64; 4]> = BTreeMap::new();
    for (Doing { at, what }, c) in &delays.costs {
        let sums = all.entry((place(of, at.place), *what)).or_default();
        let costs = [c.short_term, c.long_term, c.direct, c.indirect];
        sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
    }
    all
}

proptest! {
    #[test]
    fn findings_and_sums_are_those_of_the_exact_times(program in programs()) {
        let (sections, ..) = run(program).finish();
        let (live, kept) = both(&sections);
        let time = Explains::time(&live);
        prop_assert_eq!(kept.time(), time);
        prop_assert_eq!(kept.efficiency(), live.efficiency());
        prop_assert_eq!(kept.unmatched(), live.unmatched);
        let mut findings = live.findings();
        findings.retain(|f| f.cost > time / 1000 || f.matter == Matter::LeakedRequests);
        let (found, rest): (Vec<_>, Vec<_>) = kept.findings().into_iter().partition(|f| f.parts == 1);
        prop_assert_eq!(sorted(&kept, &found), sorted(&live, &findings));
        let costs = |all: &[Finding]| all.iter().map(|f| f.cost).collect::<Vec<_>>();
        prop_assert_eq!(costs(&found), costs(&findings));
        // Short waits are told of together, but none is lost.
        let waits = |all: &[Finding]| all.iter().filter(|f| matches!(f.matter, Matter::Wait(_))).map(|f| f.cost).sum::<u64>();
        let placed = waits(&found) + waits(&rest);
        prop_assert!((waits(&live.findings())..=live.waits.total().ns).contains(&placed), "{}", placed);
        let sites = |of: &dyn Explains| {
            sums(of.waits().victims.iter().map(|((kind, at), s)| ((*kind, place(of, at.place)), *s)))
        };
        prop_assert_eq!(sites(&kept), sites(&live));
        let kinds = |of: &dyn Explains| sums(of.waits().culprits.iter().map(|((kind, ..), s)| (*kind, *s)));
        prop_assert_eq!(kinds(&kept), kinds(&live));
    }

    #[test]
    fn ranks_are_right_where_there_are_few(program in programs()) {
        let (sections, ..) = run(program).finish();
        let (live, kept) = both(&sections);
        for f in kept.findings().into_iter().filter(|f| f.parts == 1) {
            let is_same = |l: &&Finding| what(&live, l) == what(&kept, &f);
            let findings = live.findings();
            let mut same = findings.iter().filter(is_same);
            // Of those that cost 1 % of the run all ranks are told apart.
            let (Some(live), None) = (same.next(), same.next()) else { continue };
            if f.cost * 100 < Explains::time(&kept) {
                continue;
            }
            let who = |f: &Finding| f.victims.iter().map(|(rank, _)| *rank).collect::<Vec<_>>();
            prop_assert_eq!(who(&f), who(live));
            let ranks = |f: &Finding| f.culprits.iter().map(|(at, ns)| (at.rank, *ns)).collect::<BTreeMap<_, _>>();
            let (a, b) = (ranks(&f), ranks(live));
            for rank in a.keys().chain(b.keys()) {
                let part = |of: &BTreeMap<u32, u64>| of.get(rank).copied().map_or(0.0, float);
                prop_assert!(near(part(&a), part(&b)), "{:?} {:?}", a, b);
            }
        }
    }

    #[test]
    fn delays_add_up_and_causes_are_the_same(program in programs()) {
        let (sections, ..) = run(program).finish();
        let (live, kept) = both(&sections);
        let findings = kept.findings();
        let (a, b) = (Explains::delays(&live, &findings), kept.delays(&findings));
        prop_assert!((a.waits - b.waits).abs() < 1.0);
        let (live_costs, mut kept_costs) = (by_activity(&live, &a), by_activity(&kept, &b));
        kept_costs.retain(|(place, _), _| place != &format!("{:?}", None::<()>));
        for (what, costs) in &kept_costs {
            for (x, y) in live_costs[what].iter().zip(costs) {
                prop_assert!((x - y).abs() <= 2.0, "{:?}: {:?} {:?}", what, live_costs[what], costs);
            }
        }
        let all = |d: &Delays| d.costs.values().map(st_explain::Cost::caused).sum::<f64>();
        prop_assert!((all(&a) - all(&b)).abs() <= 1.0 + float(u64::try_from(a.costs.len()).unwrap()));
    }
}

/// The activity that most is due to, and its part.
fn cause(of: &dyn Explains, all: &[(Doing, f64)]) -> Option<((String, Activity), f64)> {
    let mut activities: BTreeMap<(String, Activity), f64> = BTreeMap::new();
    for (Doing { at, what }, ns) in all.iter().filter(|(d, _)| d.at.place != ELSEWHERE) {
        *activities.entry((place(of, at.place), *what)).or_default() += ns;
    }
    activities.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))
}

#[test]
fn a_late_rank_and_what_it_does_are_still_known() {
    let fault = |m: &mut Machine| {
        for _ in 0..20 {
            m.compute(2, 5_000_000);
            m.collective(st_model::calls::names::MPI_Barrier, 0, 3);
        }
    };
    let (sections, ..) = planted(8, fault).finish();
    let (live, kept) = both(&sections);
    let (first, exact) = (&kept.findings()[0], &live.findings()[0]);
    assert_eq!(first.matter, Matter::Wait(WaitKind::Barrier));
    assert_eq!((first.cost, first.culprits[0].0.rank), (exact.cost, 2));
    assert_eq!(first.victims.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [0, 1, 3, 4, 5, 6, 7]);
    let of = |x: &dyn Explains, f: &Finding| cause(x, &x.delays(std::slice::from_ref(f)).causes[0]).unwrap();
    let ((at, ns), (exact_at, exact_ns)) = (of(&kept, first), of(&live, exact));
    assert_eq!((at.1, &at), (Activity::Computation, &exact_at));
    assert!(near(ns, exact_ns), "{ns} {exact_ns}");
}

/// Ranks that compute for times without any order, and one much longer, before operations at five sites: bytes of what is
/// kept, and the rank that the first finding blames most.
fn noisy(ranks: usize) -> (usize, u32) {
    let fault = |m: &mut Machine| {
        let mut state = 1u64;
        for round in 0..20 {
            for me in 0..ranks {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                m.compute(me, i64::try_from(state >> 44).unwrap());
            }
            m.compute(7, 5_000_000);
            m.collective(st_model::calls::names::MPI_Allreduce, 0, round % 5);
        }
    };
    let (sections, ..) = planted(ranks, fault).finish();
    let explanation = analyse_causes(&sections, &|_| ()).unwrap().kept();
    let first = Kept::of(&explanation).findings()[0].culprits[0].0.rank;
    let trace = Trace { explanation: Some(explanation), ..Trace::default() };
    let mut bytes = Vec::new();
    st_stream::write(&trace, &mut bytes, WriteOptions::FILE).unwrap();
    (bytes.len(), first)
}

#[test]
fn bytes_do_not_grow_with_ranks() {
    let ((few, first), (many, of_many)) = (noisy(16), noisy(256));
    assert_eq!((first, of_many), (7, 7));
    assert!(many < few * 11 / 10 && many < 2000, "{few} {many}");
}
