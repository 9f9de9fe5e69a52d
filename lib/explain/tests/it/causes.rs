//! Delays and the critical path of programs by chance, against slow and obvious ways to find them; and planted faults.

use std::collections::BTreeMap;

use crate::simulator::{History, Interval, Machine, programs, run, site};
use proptest::prelude::*;
use st_explain::{Activity, Analysis, Cost, Doing, Finding, Matter, WaitKind, analyse_causes};
use st_model::calls::{CallTable, names};
use st_model::section::Section;
use st_model::varint::put_i64;

/// Function and site, and what a rank does there.
type What = (&'static str, u32, Activity);

/// When the machine's ranks leave `MPI_Init`.
const BEGIN: i64 = 640;

#[expect(clippy::cast_precision_loss, reason = "a test's times are short")]
fn float(ns: i64) -> f64 {
    ns as f64
}

fn overlap(a: (i64, i64), b: (i64, i64)) -> i64 {
    (a.1.min(b.1) - a.0.max(b.0)).max(0)
}

/// The same questions, answered by looking at everything each time.
struct Slow {
    history: History,
    /// What each wait is due to, once that has been asked.
    known: Vec<Option<BTreeMap<(u32, What), f64>>>,
    own: BTreeMap<(u32, What), Cost>,
}

impl Slow {
    fn new(history: History) -> Self {
        let known = vec![None; history.waits.len()];
        Self { history, known, own: BTreeMap::new() }
    }

    /// All that a rank does, interval by interval.
    fn does(&self, rank: u32) -> Vec<(What, i64, i64)> {
        let mut all = Vec::new();
        let mut last = BEGIN;
        for call in self.history.calls.iter().filter(|c| c.rank == rank && c.place.0 != names::MPI_Init) {
            let (name, site) = call.place;
            all.push(((name, site, Activity::Computation), last, call.enter));
            if name != names::MPI_Finalize {
                all.push(((name, site, Activity::Call), call.enter, call.exit));
            }
            last = call.exit;
        }
        all
    }

    /// How long a rank does what from one time to another, without waits.
    fn times(&self, rank: u32, window: (i64, i64)) -> BTreeMap<What, i64> {
        let mut all = BTreeMap::new();
        for (what, from, to) in self.does(rank) {
            let waits = self.history.waits.iter().filter(|w| w.rank == rank);
            let part = (from.max(window.0), to.min(window.1));
            let waited: i64 = waits.map(|w| overlap(part, (w.enter, w.until))).sum();
            *all.entry(what).or_default() += overlap((from, to), window) - waited;
        }
        all
    }

    fn since(&self, wait: &Interval) -> i64 {
        let mut pair = [wait.rank, wait.by];
        pair.sort_unstable();
        let of_pair = |w: &&Interval| pair == [w.rank.min(w.by), w.rank.max(w.by)];
        let waits = self.history.waits.iter().filter(of_pair).map(|w| w.until);
        let met = waits.chain(self.history.meetings.iter().copied()).filter(|t| *t < wait.until);
        met.max().unwrap_or(BEGIN)
    }

    /// The site of the call that a rank is in.
    fn call_at(&self, rank: u32, time: i64) -> What {
        let calls = self.history.calls.iter().filter(|c| c.rank == rank && c.enter <= time);
        let call = calls.max_by_key(|c| c.enter).unwrap();
        (call.place.0, call.place.1, Activity::Call)
    }

    /// What a wait is due to, ns.
    fn due_to(&mut self, i: usize) -> BTreeMap<(u32, What), f64> {
        if let Some(known) = &self.known[i] {
            return known.clone();
        }
        let wait = self.history.waits[i];
        let since = self.since(&wait);
        let mine = self.times(wait.rank, (since, wait.enter));
        let mut longer = self.times(wait.by, (since, wait.until));
        longer.iter_mut().for_each(|(what, ns)| *ns -= mine.get(what).copied().unwrap_or(0));
        longer.retain(|_, ns| *ns > 0);
        let window = (since, wait.until);
        let theirs = |(j, w): (usize, &Interval)| {
            let part = if w.rank == wait.by { overlap((w.enter, w.until), window) } else { 0 };
            (part > 0).then(|| (j, float(part), float(w.until - w.enter)))
        };
        let waits: Vec<(usize, f64, f64)> =
            self.history.waits.iter().enumerate().filter_map(theirs).collect();
        let ns = float(wait.until - wait.enter);
        let direct: f64 = longer.values().map(|ns| float(*ns)).sum();
        // What both wait makes none of them late.
        let waited = self.history.waits.iter().filter(|w| w.rank == wait.rank);
        let mine: i64 = waited.map(|w| overlap((w.enter, w.until), (since, wait.enter))).sum();
        let all: f64 = waits.iter().map(|w| w.1).sum();
        let indirect = (all - float(mine)).max(0.0);
        let k = ns / (direct + indirect);
        assert!(k <= 1.0 + 1e-9, "{wait:?}: both begin at the same time");
        let mut due: BTreeMap<(u32, What), f64> = BTreeMap::new();
        for (what, ns) in longer {
            *due.entry((wait.by, what)).or_default() += k * float(ns);
            self.own.entry((wait.by, what)).or_default().short_term += k * float(ns);
        }
        for (j, part, whole) in waits {
            for (who, ns) in self.due_to(j) {
                *due.entry(who).or_default() += k * ns * part / whole * indirect / all;
            }
        }
        let here = self.own.entry((wait.rank, self.call_at(wait.rank, wait.enter))).or_default();
        here.direct += k * direct;
        here.indirect += k * indirect;
        self.known[i] = Some(due.clone());
        due
    }

    fn costs(mut self) -> BTreeMap<(u32, What), Cost> {
        for i in 0..self.history.waits.len() {
            for (who, ns) in self.due_to(i) {
                self.own.entry(who).or_default().long_term += ns;
            }
        }
        self.own.values_mut().for_each(|cost| cost.long_term -= cost.short_term);
        self.own
    }

    /// Time on the critical path: goes back from one point in time to the one before, and looks who waits.
    fn path(&self) -> BTreeMap<(u32, What), i64> {
        let ends = self.history.calls.iter().filter(|c| c.place.0 == names::MPI_Finalize);
        let last = ends.max_by_key(|c| c.enter).unwrap();
        let (mut rank, mut time) = (last.rank, last.enter);
        let calls = self.history.calls.iter().flat_map(|c| [c.enter, c.exit]);
        let mut points: Vec<i64> =
            calls.chain(self.history.waits.iter().flat_map(|w| [w.enter, w.until])).collect();
        points.sort_unstable();
        points.dedup();
        let mut path = BTreeMap::new();
        points.retain(|p| (BEGIN..time).contains(p));
        for point in points.into_iter().rev() {
            while let Some(wait) =
                self.history.waits.iter().find(|w| (w.rank, w.until) == (rank, time) && w.enter <= point)
            {
                rank = wait.by;
            }
            let doing = |(_, from, to): &&(What, i64, i64)| *from <= point && time <= *to;
            let all = self.does(rank);
            *path.entry((rank, all.iter().find(doing).unwrap().0)).or_default() += time - point;
            time = point;
        }
        path
    }
}

fn what(analysis: &Analysis, doing: &Doing) -> What {
    let place = analysis.places.get(doing.at.place).unwrap();
    let name = CallTable::builtin().get(place.call).unwrap().name.as_str();
    (name, site(analysis, doing.at.place), doing.what)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-3 + 1e-9 * a.abs().max(b.abs())
}

/// Compares what is found with the slow way, and what has to be the same with what it has to be the same as.
fn check(sections: &[Section], history: History) -> Analysis {
    let analysis = analyse_causes(sections, &|_| ()).unwrap();
    let delays = analysis.delays(&[]);
    let waited: u64 = analysis.waits.victims.values().map(|s| s.ns).sum();
    let caused: f64 = delays.costs.values().map(Cost::caused).sum();
    let split: f64 = delays.costs.values().map(|c| c.direct + c.indirect).sum();
    let waited = float(i64::try_from(waited).unwrap());
    assert!(
        near(caused, waited) && near(split, waited) && near(waited - delays.unexplained(), waited),
        "{delays:?}"
    );
    let slow = Slow::new(history);
    check_path(&analysis, &slow);
    let mut expected = slow.costs();
    for (doing, cost) in &delays.costs {
        let other = expected.remove(&(doing.at.rank, what(&analysis, doing))).unwrap_or_default();
        assert!(near(cost.short_term, other.short_term), "{doing:?} {cost:?} {other:?}");
        assert!(near(cost.long_term, other.long_term), "{doing:?} {cost:?} {other:?}");
        assert!(near(cost.direct, other.direct), "{doing:?} {cost:?} {other:?}");
        assert!(near(cost.indirect, other.indirect), "{doing:?} {cost:?} {other:?}");
    }
    assert!(expected.values().all(|c| near(c.caused() + c.direct + c.indirect, 0.0)), "{expected:?}");
    analysis
}

fn check_path(analysis: &Analysis, slow: &Slow) {
    let path = analysis.path();
    assert_eq!(path.time(), analysis.run());
    assert_eq!(path.ranks.iter().map(|(_, ns)| ns).sum::<u64>(), path.time());
    // Where it is when says the same.
    let mut stays: BTreeMap<u32, u64> = BTreeMap::new();
    for stay in &path.stays {
        *stays.entry(stay.rank).or_default() += stay.until.abs_diff(stay.from);
    }
    assert_eq!(stays.into_iter().collect::<Vec<_>>(), path.ranks);
    assert!(path.stays.windows(2).all(|two| two[0].until == two[1].from && two[0].rank != two[1].rank));
    assert_eq!(path.stays.first().map(|stay| stay.from), Some(analysis.begin()));
    let mut ranks: BTreeMap<u32, i64> = BTreeMap::new();
    let mut places: BTreeMap<What, (i64, usize)> = BTreeMap::new();
    for ((rank, what), ns) in slow.path().into_iter().filter(|(_, ns)| *ns > 0) {
        *ranks.entry(rank).or_default() += ns;
        let (sum, on) = places.entry(what).or_default();
        (*sum, *on) = (*sum + ns, *on + 1);
    }
    let found = path.ranks.iter().map(|(rank, ns)| (*rank, i64::try_from(*ns).unwrap()));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), ranks);
    let all: Vec<BTreeMap<What, i64>> =
        (0..analysis.ranks.len()).map(|r| slow.times(u32::try_from(r).unwrap(), (0, i64::MAX))).collect();
    for on in &path.activities {
        let doing = Doing { at: st_explain::At { rank: 0, place: on.place }, what: on.what };
        let what = what(analysis, &doing);
        let time = i64::try_from(on.time).unwrap();
        assert_eq!(places.remove(&what), Some((time, on.ranks)), "{what:?}");
        let impact: i64 = all.iter().map(|t| t.get(&what).copied().unwrap_or(0).min(time)).sum();
        assert_eq!(i64::try_from(on.impact).unwrap(), impact, "{what:?}");
        assert_eq!(on.impact + on.headroom, on.time * u64::try_from(all.len()).unwrap());
    }
    assert!(places.is_empty(), "{places:?}");
}

proptest! {
    #[test]
    fn delays_and_path_are_those_of_a_slow_look(program in programs()) {
        let (sections, _, history) = run(program).finish();
        check(&sections, history);
    }
}

proptest! {
    /// Clocks that disagree, and times that no program has: nothing is found that is not there.
    #[test]
    fn times_of_any_kind_have_an_end(
        program in programs(),
        wide: bool,
        times in proptest::collection::vec(any::<i64>(), 1..50),
    ) {
        let (mut sections, ..) = run(program).finish();
        let mut times = times.into_iter().cycle();
        for chunk in sections.iter_mut().flat_map(|s| &mut s.threads[0].columns).flat_map(|(_, c)| &mut c.chunks) {
            for bytes in [&mut chunk.gaps, &mut chunk.durations] {
                bytes.clear();
                let ns = |t: i64| if wide { t } else { t % 5000 - 1000 };
                (0..chunk.events).for_each(|_| put_i64(bytes, ns(times.next().unwrap())));
            }
        }
        let analysis = analyse_causes(&sections, &|_| ()).unwrap();
        let delays = analysis.delays(&[]);
        let caused: f64 = delays.costs.values().map(Cost::caused).sum();
        prop_assert!(caused <= delays.waits * (1.0 + 1e-9) + 1e-6, "{} > {}", caused, delays.waits);
        prop_assert!(delays.costs.values().all(|c| c.short_term >= 0.0 && c.long_term >= 0.0));
        prop_assert!(delays.costs.values().all(|c| c.direct >= 0.0 && c.indirect >= 0.0));
        let path = analysis.path();
        prop_assert_eq!(path.ranks.iter().map(|(_, ns)| u128::from(*ns)).sum::<u128>(), u128::from(path.time()));
    }
}

/// What most of the first finding of a planted fault is due to, and how long, in ms; and the ms that it costs.
fn first_cause(machine: Machine) -> ((u32, What), f64, f64) {
    let (sections, _, history) = machine.finish();
    let analysis = check(&sections, history);
    let first = &analysis.findings()[..1];
    let (doing, ns) = analysis.delays(first).causes[0][0];
    let cost = float(i64::try_from(first[0].cost).unwrap());
    ((doing.at.rank, what(&analysis, &doing)), ns / 1e6, cost / 1e6)
}

const EAGER: (bool, [bool; 2]) = (false, [false; 2]);

fn within_a_twentieth(ns: f64, of: f64) {
    assert!((ns - of).abs() < of / 20.0, "{ns} is not {of}");
}

#[test]
fn a_chain_of_late_senders_leads_to_the_rank_that_is_late() {
    let chain = |m: &mut Machine| {
        m.compute(2, 50_000_000);
        m.message((2, 1), EAGER, false, [1, 2]);
        m.message((1, 0), EAGER, false, [3, 4]);
        m.collective(names::MPI_Barrier, 0, 5);
    };
    let (cause, ns, cost) = first_cause(crate::simulator::planted(3, chain));
    assert_eq!(cause, (2, (names::MPI_Send, 1, Activity::Computation)));
    within_a_twentieth(ns, 1000.0);
    within_a_twentieth(cost, 1000.0);

    let (sections, ..) = crate::simulator::planted(3, chain).finish();
    let analysis = analyse_causes(&sections, &|_| ()).unwrap();
    let costs = analysis.delays(&[]).costs;
    let of = |rank, at: u32, activity| {
        let is = |doing: &Doing| {
            doing.at.rank == rank && site(&analysis, doing.at.place) == at && doing.what == activity
        };
        costs.iter().filter(|(doing, _)| is(doing)).map(|(_, cost)| *cost).next().unwrap()
    };
    // Rank 1 waits for rank 2, and rank 0 for rank 1 since that waits.
    let late = of(2, 1, Activity::Computation);
    within_a_twentieth(late.short_term, 1e9);
    within_a_twentieth(late.long_term, 1e9);
    within_a_twentieth(of(1, 2, Activity::Call).direct, 1e9);
    within_a_twentieth(of(0, 4, Activity::Call).indirect, 1e9);
    let path = analysis.path();
    let most = path.activities[0];
    assert_eq!((site(&analysis, most.place), most.what), (1, Activity::Computation));
    within_a_twentieth(float(i64::try_from(most.time).unwrap()), 51e6 * 20.0);
    // The others compute as long as usual there: not at all.
    assert!(most.impact * 20 < most.time * 21 && most.ranks == 1, "{most:?}");
}

#[test]
fn few_calls_in_which_most_is_waited_are_told_of() {
    let few = |late: fn(usize) -> bool| {
        let mut machine = Machine::new(3);
        for step in 0..200 {
            (0..3).for_each(|me| machine.compute(me, 1_000_000));
            if late(step) {
                machine.compute(1, 100_000_000);
            }
            machine.collective(names::MPI_Barrier, 0, 3);
        }
        let (sections, ..) = machine.finish();
        let analysis = analyse_causes(&sections, &|_| ()).unwrap();
        let waits = |f: &Finding| f.matter == Matter::Wait(WaitKind::Barrier);
        let found = analysis.findings().into_iter().find(waits).unwrap();
        analysis.delays(&[found]).few[0]
    };
    // Two ranks wait, twice each.
    let found = few(|step| step % 100 == 50).unwrap();
    assert_eq!((found.waits, found.calls), (4, 400));
    within_a_twentieth(float(i64::try_from(found.ns).unwrap()), 4e8);
    assert_eq!(few(|_| true), None);
}

#[test]
fn imbalance_before_a_barrier_is_the_slow_ranks_computation() {
    let imbalance = |m: &mut Machine| {
        m.compute(1, 50_000_000);
        m.collective(names::MPI_Barrier, 0, 3);
    };
    let (cause, ns, cost) = first_cause(crate::simulator::planted(4, imbalance));
    assert_eq!(cause, (1, (names::MPI_Barrier, 3, Activity::Computation)));
    within_a_twentieth(ns, 3000.0);
    within_a_twentieth(cost, 3000.0);
}

#[test]
fn who_is_late_for_a_reduction_holds_up_its_root() {
    // The root has long since heard of rank 1 when rank 0 comes; then all wait for the root.
    let late = |m: &mut Machine| {
        m.compute(0, 50_000_000);
        m.collective(names::MPI_Reduce, 2, 3);
        m.collective(names::MPI_Barrier, 0, 4);
    };
    let (cause, ns, cost) = first_cause(crate::simulator::planted(3, late));
    assert_eq!(cause, (0, (names::MPI_Reduce, 3, Activity::Computation)));
    within_a_twentieth(ns, 1000.0);
    within_a_twentieth(cost, 1000.0);
}

#[test]
fn what_both_wait_makes_none_of_them_late() {
    // Ranks 0 and 2 wait for rank 1 five times, and then rank 0 is late for both.
    let late = |m: &mut Machine| {
        for _ in 0..5 {
            m.compute(1, 20_000_000);
            m.message((1, 0), EAGER, false, [1, 2]);
            m.message((1, 2), EAGER, false, [1, 2]);
        }
        m.compute(0, 50_000_000);
        m.collective(names::MPI_Barrier, 0, 4);
    };
    let (sections, _, history) = crate::simulator::planted(3, late).finish();
    let analysis = check(&sections, history);
    let barrier = |f: &Finding| f.matter == Matter::Wait(WaitKind::Barrier);
    let findings: Vec<Finding> = analysis.findings().into_iter().filter(barrier).collect();
    let (doing, ns) = analysis.delays(&findings[..1]).causes[0][0];
    let late = (names::MPI_Barrier, 4, Activity::Computation);
    assert_eq!((doing.at.rank, what(&analysis, &doing)), (0, late));
    within_a_twentieth(ns, 2e9);
}

#[test]
fn computation_far_before_the_wait_is_found_where_it_is() {
    // Rank 1 is late for the barrier since it computes before a message to itself and another rank.
    let far = |m: &mut Machine| {
        m.compute(1, 50_000_000);
        m.message((1, 2), (false, [false, true]), false, [1, 2]);
        m.compute(1, 1_000_000);
        m.wait(2, 4, |_| true);
        m.collective(names::MPI_Barrier, 0, 3);
    };
    let (cause, ns, _) = first_cause(crate::simulator::planted(4, far));
    assert_eq!(cause, (1, (names::MPI_Send, 1, Activity::Computation)));
    assert!(ns > 950.0, "{ns}");
}
