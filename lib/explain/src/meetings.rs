//! When two threads synchronised last.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap};
use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;

use crate::timeline::Timeline;

/// Operations in which all wait for all: when, and among whom.
#[derive(Default, Debug)]
pub(crate) struct Meetings {
    /// Of each set of threads: its number.
    sets: HashMap<(u64, usize), u32, FixedState>,
    /// When each of them met.
    times: Vec<Vec<i64>>,
    /// The sets that each thread is in.
    of: HashMap<u32, Vec<u32>, FixedState>,
}

/// Sets that are known of a thread at most: of others, only who waited for whom is.
const SETS: usize = 64;

impl Meetings {
    /// Threads meet.
    pub(crate) fn meet(&mut self, at: i64, threads: &[u32]) {
        let hash = FixedState::default();
        let key = threads.iter().fold(0u64, |sum, t| sum.wrapping_add(hash.hash_one(t)));
        let Self { sets, times, of } = self;
        let set = *sets.entry((key, threads.len())).or_insert_with(|| {
            let number = st_model::num::narrow(times.len());
            times.push(Vec::new());
            for thread in threads {
                let sets = of.entry(*thread).or_default();
                sets.extend((sets.len() < SETS).then_some(number));
            }
            number
        });
        times[set as usize].push(at);
    }

    /// When two threads met last before a time.
    fn last(&self, [a, b]: [u32; 2], before: i64) -> Option<i64> {
        let theirs = self.of.get(&b)?;
        let both = self.of.get(&a)?.iter().filter(|set| theirs.contains(set));
        let last = |set: &u32| {
            let times = &self.times[*set as usize];
            times[..times.partition_point(|t| *t < before)].last().copied()
        };
        both.filter_map(last).max()
    }

    /// Tells each wait when the two threads synchronised last before it: when one had waited for the other, or both took
    /// part in an operation in which all wait for all; else both begin.
    ///
    /// *Cost:* O(waits · (log threads + sets of the thread)).
    pub(crate) fn settle(&mut self, timelines: &mut [Timeline]) {
        self.times.iter_mut().for_each(|times| times.sort_unstable());
        let mut pairs: HashMap<[u32; 2], i64, FixedState> = HashMap::default();
        let next = |(thread, line): (u32, &Timeline)| Some(Reverse((line.waits.first()?.until, thread, 0)));
        let mut queue: BinaryHeap<_> = (0u32..).zip(&*timelines).filter_map(next).collect();
        while let Some(mut first) = queue.peek_mut() {
            let Reverse((until, thread, i)) = *first;
            let line = &timelines[thread as usize];
            let wait = &line.waits[i];
            let pair = [thread.min(wait.by), thread.max(wait.by)];
            let begin = line.begin().max(timelines[wait.by as usize].begin());
            let met = self.last(pair, until).into_iter().chain(pairs.insert(pair, until));
            let since = met.max().map_or(begin, |met| met.max(begin).min(wait.enter));
            match line.waits.get(i + 1) {
                Some(next) => *first = Reverse((next.until, thread, i + 1)),
                None => drop(PeekMut::pop(first)),
            }
            timelines[thread as usize].waits[i].since = since;
        }
    }
}
