//! The threads of a rank: how far each is, and the start and the end of all.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use st_model::calls::Row;
use st_replay::threads::{Threads, freed};

/// Position of a thread that makes no more calls.
const ENDED: u64 = u64::MAX;

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const CANCELLED: u8 = 2;

/// The threads of a rank.
#[derive(Debug)]
pub(crate) struct RankThreads {
    /// Position of the call that each thread makes next or is in.
    at: Vec<AtomicU64>,
    state: AtomicU8,
    plan: Threads,
}

impl RankThreads {
    /// All threads at their beginning.
    pub(crate) fn new(plan: Threads) -> Self {
        let at = plan.uses.iter().map(|_| AtomicU64::new(0)).collect();
        Self { at, state: AtomicU8::new(WAITING), plan }
    }

    /// Number of threads.
    pub(crate) fn len(&self) -> usize {
        self.at.len()
    }

    /// MPI is there: further threads may begin.
    pub(crate) fn start(&self) {
        self.state.store(RUNNING, Ordering::Release);
    }

    /// Nothing begins any more.
    pub(crate) fn cancel(&self) {
        self.state.store(CANCELLED, Ordering::Release);
    }

    /// Waits until a further thread may make its first call: once MPI is there and the thread before has begun, so that
    /// threads get the numbers that they had. `false` if it is not to begin at all.
    pub(crate) fn wait_for_start(&self, me: usize) -> bool {
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state == CANCELLED {
                return false;
            }
            let before = me.checked_sub(1).and_then(|t| self.at.get(t));
            if state == RUNNING && before.is_none_or(|at| at.load(Ordering::Acquire) > 0) {
                return true;
            }
            std::thread::yield_now();
        }
    }

    /// A thread has made the call before this position.
    pub(crate) fn reached(&self, me: usize, at: u64) {
        if let Some(mine) = self.at.get(me) {
            mine.store(at, Ordering::Release);
        }
    }

    /// A thread makes no more calls.
    pub(crate) fn ended(&self, me: usize) {
        self.reached(me, ENDED);
    }

    fn wait_for(&self, thread: usize, at: u64) {
        while self.at.get(thread).is_some_and(|a| a.load(Ordering::Acquire) < at) {
            std::thread::yield_now();
        }
    }

    /// Waits until all other threads have ended.
    pub(crate) fn wait_for_end(&self, me: usize) {
        (0..self.len()).filter(|t| *t != me).for_each(|t| self.wait_for(t, ENDED));
    }

    /// Waits until no other thread will use what a call frees.
    pub(crate) fn wait_for_last_use(&self, me: usize, row: &Row, words: &[i64]) {
        if self.len() < 2 {
            return;
        }
        if let Some(item) = freed(row, words) {
            self.plan.before_free(me, item).into_iter().for_each(|(thread, at)| self.wait_for(thread, at));
        }
    }

    /// Whether other threads may still make something that a thread waits for.
    pub(crate) fn others_go_on(&self, me: usize) -> bool {
        let goes_on = |at: &AtomicU64| at.load(Ordering::Acquire) < ENDED;
        self.at.iter().enumerate().any(|(t, at)| t != me && goes_on(at))
    }
}
