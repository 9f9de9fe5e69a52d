//! Waits at collective operations for ranks that compute longer than they usually do, now one, now another, in few of many operations: what
//! others do on a machine makes such, and what a program does every so many steps.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use st_model::num::{Exact as _, saturate};

use crate::analysis::Analysis;
use crate::findings::{Finding, Noise};
use crate::matter::Matter;
use crate::timeline::{Near, Timeline};
use crate::waits::{At, WaitKind};

/// A computation is much longer than usual if it takes more than so many times the median of its rank before calls of its place, which is
/// known after so many: twice as long is no spread of equal work.
const LONG: u64 = 2;
const KNOWN: usize = 20;

/// They are rare, where they are at most one part in so many of the operations, and of those of their rank before calls of a place.
const RARE: u64 = 10;

/// Fewer have no order, and where the time from one to the next never differs by one part in so many they are the program's own doing.
const LEAST: usize = 3;
const REGULAR: usize = 10;

/// What a computation is longer and what is waited for it at most differ by no more than a part in four: else those who wait compute longer
/// then, too. As much of a finding's cost is due to such, at least.
const DUE: u64 = 3;

/// The most that is due to one rank, in parts of three: more is its own fault.
const OF_ONE: u64 = 2;

/// Calls before the late one that are looked at.
const BACK: usize = 4096;

/// Who is late for an operation, and when it comes.
type Late = (u32, i64);

/// Waits for one that is late, together, and when the first of those that wait has synchronised with it last.
#[derive(Clone, Copy, Debug)]
struct Waited {
    ns: u64,
    longest: u64,
    since: i64,
}

/// A computation that is much longer than usual: the number of the call after it, and how much longer it is, ns.
type Longer = (usize, u64);

fn long(from: i64, to: i64) -> u64 {
    saturate(to.saturating_sub(from))
}

/// Median of a thread's computation before each place, where it is known and long ones are rare, ns. *Cost:* O(calls).
fn usual(line: &Timeline) -> HashMap<u32, u64, FixedState> {
    let mut all: HashMap<u32, Vec<u64>, FixedState> = HashMap::default();
    let mut last = line.begin();
    for call in line.calls().iter() {
        all.entry(call.place).or_default().push(long(last, call.enter));
        last = call.exit;
    }
    all.retain(|_, each| each.len() >= KNOWN);
    let median = |mut each: Vec<u64>| {
        let n = each.len();
        let (_, median, above) = each.select_nth_unstable(n / 2);
        let long = above.iter().filter(|ns| **ns > median.saturating_mul(LONG)).count();
        (long.to_u64().saturating_mul(RARE) <= n.to_u64()).then_some(*median)
    };
    all.into_iter().filter_map(|(place, each)| Some((place, median(each)?))).collect()
}

/// What a thread that is late has computed longer than usual since a time, if that is most of what others wait.
fn longer(
    line: &Timeline,
    usual: &HashMap<u32, u64, FixedState>,
    until: i64,
    waited: &Waited,
) -> Option<Longer> {
    let last = line.call_at(until, line.calls().len());
    let first = line.call_at(waited.since, last).max(last.saturating_sub(BACK));
    let mut before = first.checked_sub(1).and_then(|i| line.calls().get(i)).map_or(line.begin(), |c| c.exit);
    let mut most = None::<u64>;
    for call in line.calls().from(first).take(last + 1 - first) {
        let (ns, usual) = (long(before, call.enter), usual.get(&call.place));
        if let Some(usual) = usual.filter(|usual| ns > usual.saturating_mul(LONG)) {
            most = most.max(Some(ns - usual));
        }
        before = call.exit;
    }
    let covers = |a: u64, b: u64| a.saturating_mul(4) >= b.saturating_mul(DUE);
    most.filter(|more| covers(*more, waited.longest) && covers(waited.longest, *more))
        .map(|more| (last, more))
}

/// Which calls of their place calls of a thread are, which are asked for in their order. Other calls between them do not count: there may be
/// another number of them in each step.
#[derive(Default)]
struct Nth {
    thread: Option<u32>,
    counted: usize,
    nth: usize,
}

impl Nth {
    fn of(&mut self, thread: u32, line: &Timeline, call: usize) -> usize {
        if self.thread != Some(thread) {
            *self = Self { thread: Some(thread), ..Self::default() };
        }
        let place = line.calls().get(call).map(|c| c.place);
        let fresh = line.calls().from(self.counted).take((call + 1).saturating_sub(self.counted));
        self.nth += fresh.filter(|c| Some(c.place) == place).count();
        self.counted = self.counted.max(call + 1);
        self.nth
    }
}

/// Whether there is as long from each to the next.
fn are_regular(mut operations: Vec<usize>) -> bool {
    operations.sort_unstable();
    let gaps = || operations.windows(2).map(|pair| pair[1] - pair[0]);
    let (least, most) = (gaps().min().unwrap_or(0), gaps().max().unwrap_or(0));
    most - least <= most / REGULAR
}

impl Analysis {
    /// Which waits at collective operations are due to noise: in few of many operations, for several ranks. *Cost:* O(calls · log calls) of
    /// those who are late.
    pub(crate) fn find_noise(&self, findings: &mut [Finding]) {
        let least = self.time() / 100;
        let may_be = |f: &Finding| {
            let all = matches!(f.matter, Matter::Wait(WaitKind::Barrier | WaitKind::AllToAll));
            all && f.cost > least && f.culprits.len() > 1
        };
        let mut numbers: HashMap<(u32, u32), usize, FixedState> = HashMap::default();
        for (i, f) in findings.iter().enumerate().filter(|(_, f)| may_be(f)) {
            f.between().into_iter().for_each(|between| {
                numbers.insert(between, i);
            });
        }
        if numbers.is_empty() || self.timelines.is_empty() {
            return;
        }
        let mut usuals: BTreeMap<u32, HashMap<u32, u64, FixedState>> = BTreeMap::new();
        for (number, late) in self.late(&numbers) {
            let f = &mut findings[number];
            let (mut times, mut operations, mut ranks) = (0_u64, Vec::new(), BTreeMap::<u32, u64>::new());
            let mut nth = Nth::default();
            for ((by, until), waited) in late {
                let line = &self.timelines[by.to_usize()];
                let usual = usuals.entry(by).or_insert_with(|| usual(line));
                if let Some((call, more)) = longer(line, usual, until, &waited) {
                    times = times.saturating_add(more);
                    operations.push(nth.of(by, line, call));
                    *ranks.entry(line.rank).or_default() += waited.ns;
                }
            }
            let due = ranks.values().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
            let most = ranks.values().copied().max().unwrap_or_default();
            let n = operations.len();
            let made = |rank| self.totals.get(&At { rank, place: f.place }).map_or(0, |t| t.calls);
            let of = ranks.keys().map(|rank| made(*rank)).max().unwrap_or_default();
            let is_rare = n >= LEAST && n.to_u64().saturating_mul(RARE) <= of;
            let moves = most.saturating_mul(3) <= due.saturating_mul(OF_ONE);
            let is_due = due.saturating_mul(4) >= f.cost.saturating_mul(DUE);
            if is_rare && moves && is_due && !are_regular(operations) {
                let (times, ns) = (n.to_u64(), times / n.to_u64().max(1));
                f.noise = Some(Noise { times, ranks: ranks.len().to_u64(), ns, of });
            }
        }
    }

    /// Who is late for which operations of findings, by number, and how long others wait for it.
    fn late(
        &self,
        numbers: &HashMap<(u32, u32), usize, FixedState>,
    ) -> BTreeMap<usize, BTreeMap<Late, Waited>> {
        let mut all: BTreeMap<usize, BTreeMap<Late, Waited>> = BTreeMap::new();
        for line in &self.timelines {
            let mut near = Near::default();
            for wait in &line.waits {
                let place = line.place_at(wait.enter, &mut near).unwrap_or(u32::MAX);
                let Some(number) = numbers.get(&(place, wait.place)) else { continue };
                let ns = long(wait.enter, wait.until);
                let fresh = Waited { ns: 0, longest: 0, since: wait.since };
                let late = all.entry(*number).or_default().entry((wait.by, wait.until)).or_insert(fresh);
                late.ns = late.ns.saturating_add(ns);
                late.longest = late.longest.max(ns);
                late.since = late.since.min(wait.since);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::are_regular;

    #[test]
    fn what_comes_every_so_many_calls_is_regular() {
        assert!(are_regular(vec![300, 100, 201, 401]));
        assert!(!are_regular(vec![300, 100, 150, 401]));
    }
}
