//! The critical path: backwards from the rank that ends last, at each wait to the thread that is waited for.
//!
//! All that lies on it makes the run longer, and nothing else does: its parts together are the run time.
//!
//! Source: Böhme, Wolf, de Supinski, Schulz, Geimer 2012 (Scalable critical-path based performance analysis), section
//! III, as in Scalasca 2.5.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::FixedState;
use st_model::num::{Exact as _, saturate};

use crate::analysis::Analysis;
use crate::timeline::{Activity, Code, Near, Sums, Timeline, code, doing};

/// An activity that lies on the critical path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OnPath {
    /// Number of the place ([`crate::Places`]).
    pub place: u32,
    /// What is done there.
    pub what: Activity,
    /// For how long on the path, ns.
    pub time: u64,
    /// Ranks that do it on the path.
    pub ranks: usize,
    /// The same time at most of each rank that it does there itself, waits left out, all ranks together, ns: what it does beside the
    /// path.
    pub impact: u64,
    /// What the ranks do there less than the path, all together, ns.
    pub headroom: u64,
}

/// For how long the path is on a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stay {
    /// The rank.
    pub rank: u32,
    /// Its beginning, ns.
    pub from: i64,
    /// Its end, ns.
    pub until: i64,
}

/// What the run time is made of.
#[derive(Clone, Default, Debug)]
pub struct Path {
    /// Where it is when: one begins where that before ends, from the beginning of the run to its end.
    pub stays: Vec<Stay>,
    /// Longest first.
    pub activities: Vec<OnPath>,
    /// Ranks on it, with how long each is, ns; ascending.
    pub ranks: Vec<(u32, u64)>,
    /// How often it goes from one thread to another.
    pub moves: u64,
}

impl Path {
    /// From its beginning to its end, ns: the run time.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.activities.iter().map(|a| a.time).sum()
    }
}

impl OnPath {
    /// How much longer it is than the ranks' mean, ns: what balance could gain at most.
    #[must_use]
    pub fn imbalance(&self, ranks: usize) -> u64 {
        self.headroom / ranks.to_u64().max(1)
    }
}

/// The way back.
struct Walk<'a> {
    timelines: &'a [Timeline],
    sums: Sums,
    /// Per rank and activity, ns.
    times: HashMap<(u32, Code), u64, FixedState>,
    moves: u64,
    /// Latest first.
    stays: Vec<Stay>,
}

impl Walk<'_> {
    /// The path is on a rank, before what was passed.
    fn stay(&mut self, stay: Stay) {
        match self.stays.last_mut() {
            Some(later) if later.rank == stay.rank => later.from = stay.from,
            _ if stay.from < stay.until => self.stays.push(stay),
            _ => {}
        }
    }

    fn charge(&mut self, rank: u32, code: Code, ns: i64) {
        *self.times.entry((rank, code)).or_default() += saturate::<u64>(ns);
    }

    /// From the end of a thread to the beginning of the run. *Cost:* O(moves · (log calls + places)).
    fn back(&mut self, mut thread: u32, begin: i64) {
        let timelines = self.timelines;
        let mut time = timelines[thread as usize].end();
        // Waits of each thread that have not been passed: each is passed once, whatever times say.
        let mut left: Vec<usize> = timelines.iter().map(|line| line.waits.len()).collect();
        let mut near = vec![Near::default(); timelines.len()];
        loop {
            let line = &timelines[thread as usize];
            let (left, near) = (&mut left[thread as usize], &mut near[thread as usize]);
            *left = line.waits[..*left].partition_point(|w| w.enter < time);
            let wait = left.checked_sub(1).map(|last| line.waits[last]);
            let from = wait.map_or(line.begin(), |w| w.until).min(time);
            line.window(from..time, 1, near, &mut self.sums);
            // Of a wait that has been passed before (clocks disagree), the call.
            let waited = std::mem::take(&mut self.sums.waited);
            let place = line.place_at(from, near).filter(|_| waited > 0);
            place.into_iter().for_each(|place| self.charge(line.rank, code(place, Activity::Call), waited));
            let Self { sums, times, .. } = self;
            for (code, ns) in sums.drain() {
                *times.entry((line.rank, code)).or_default() += saturate::<u64>(ns);
            }
            self.stay(Stay { rank: line.rank, from, until: time });
            time = from;
            let Some(wait) = wait else {
                self.stay(Stay { rank: line.rank, from: begin.min(time), until: time });
                return self.charge(line.rank, line.before(), time.saturating_sub(begin));
            };
            *left -= 1;
            self.moves += 1;
            thread = wait.by;
        }
    }
}

impl Analysis {
    /// The critical path: nothing but after [`crate::analyse_causes`].
    #[must_use]
    pub fn path(&self) -> Path {
        let sums = Sums::new(self.places.len());
        let (timelines, times) = (&self.timelines, HashMap::default());
        let mut walk = Walk { timelines, sums, times, moves: 0, stays: Vec::new() };
        let begin = self.begin();
        let first = |i: &u32| {
            let i = i.to_usize();
            i == 0 || self.timelines[i - 1].rank != self.timelines[i].rank
        };
        let threads = 0..st_model::num::narrow(self.timelines.len());
        let Some(last) = threads.filter(first).max_by_key(|i| self.timelines[*i as usize].end()) else {
            return Path::default();
        };
        walk.back(last, begin);
        let mut stays = std::mem::take(&mut walk.stays);
        stays.reverse();
        let mut ranks: HashMap<u32, u64, FixedState> = HashMap::default();
        let mut activities: HashMap<Code, (u64, BTreeSet<u32>), FixedState> = HashMap::default();
        for ((rank, code), ns) in walk.times.iter().filter(|(_, ns)| **ns > 0) {
            *ranks.entry(*rank).or_default() += ns;
            let (sum, on) = activities.entry(*code).or_default();
            *sum += ns;
            on.insert(*rank);
        }
        let mut ranks: Vec<_> = ranks.into_iter().collect();
        ranks.sort_unstable();
        let impacts = self.impacts(activities.iter().map(|(code, (ns, _))| (*code, *ns)).collect());
        let all = self.ranks.len().to_u64();
        let of = |(code, (time, on)): (Code, (u64, BTreeSet<u32>))| {
            let doing = doing(0, code);
            let impact = impacts.get(&code).copied().unwrap_or(0);
            let headroom = time.saturating_mul(all).saturating_sub(impact);
            OnPath { place: doing.at.place, what: doing.what, time, ranks: on.len(), impact, headroom }
        };
        let mut activities: Vec<OnPath> = activities.into_iter().map(of).collect();
        activities.sort_by_key(|a| (u64::MAX - a.time, a.place, a.what));
        Path { stays, activities, ranks, moves: walk.moves }
    }

    /// What ranks do of activities, each no more than the path does, all ranks together, ns.
    fn impacts(&self, path: HashMap<Code, u64, FixedState>) -> HashMap<Code, u64, FixedState> {
        let mut sums = Sums::new(self.places.len());
        let mut impacts: HashMap<Code, u64, FixedState> = HashMap::default();
        for of_rank in self.timelines.chunk_by(|a, b| a.rank == b.rank) {
            let mut all =
                |line: &Timeline| line.window(line.begin()..line.end(), 1, &mut Near::default(), &mut sums);
            of_rank.iter().for_each(&mut all);
            for (code, ns) in sums.drain() {
                let most = path.get(&code).copied().unwrap_or(0);
                *impacts.entry(code).or_default() += saturate::<u64>(ns).min(most);
            }
        }
        impacts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_wait_for_each_other_are_passed_once() {
        // As no program can run: each call ends when the other rank enters its next one.
        let line = |thread: u32| {
            let mut line = Timeline::new(thread);
            line.start(0, 0, Activity::Call);
            line.call(0, 0, 5);
            line.wait(0, 5, 1 - thread, 0);
            line.call(0, 5, 10);
            line.finish(&mut Sums::new(1));
            line
        };
        let timelines = vec![line(0), line(1)];
        let (sums, times) = (Sums::new(1), HashMap::default());
        let mut walk = Walk { timelines: &timelines, sums, times, moves: 0, stays: Vec::new() };
        walk.back(0, 0);
        assert_eq!((walk.moves, walk.times.values().sum::<u64>()), (2, 10));
        assert_eq!(walk.stays.iter().map(|s| s.until - s.from).sum::<i64>(), 10);
    }
}
