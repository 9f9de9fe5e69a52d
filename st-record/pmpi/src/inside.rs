//! A thread inside a wrapper: from when a call comes until it is recorded. Calls that are timed for the recorder's own cost are timed
//! here, around all that is done for them.

use crate::clock::Reader;
use crate::local::{Local, with};
use crate::state::{RECORDING, STATE, State};
use st_unwind::stack_pointer;
use std::sync::atomic::Ordering;

/// Marks the thread as inside a wrapper until dropped, also when a C++ exception passes through. Finding a thread's
/// state may cost a function call in a preloaded library, so it is kept.
pub(crate) struct Inside {
    local: *const Local,
    /// The call is one of those that are timed.
    sampled: bool,
}

impl Inside {
    /// `None` if the call is not recorded: before and after the recording, inside another wrapper, while paused.
    #[inline]
    pub(crate) fn enter() -> Option<Self> {
        if !RECORDING.load(Ordering::Relaxed) {
            return None;
        }
        with(|l| {
            if l.depth.get() > 0 || l.paused.get() > 0 {
                return None;
            }
            l.depth.set(1);
            l.stack_pointer.set(stack_pointer());
            let left = l.timed.left.get();
            let sampled = left == 0 && arrives(l);
            if !sampled {
                l.timed.left.set(left.saturating_sub(1));
            }
            Some(Self { local: l, sampled })
        })
    }

    /// The mark of a wrapper that was left without a word.
    pub(crate) fn left(local: &Local) -> Self {
        Self { local, sampled: false }
    }

    /// The same mark, for another owner.
    pub(crate) fn again(&self) -> Self {
        Self { ..*self }
    }

    /// The program's part of the call has taken so long, ns.
    #[inline]
    pub(crate) fn took(&self, ns: i64) {
        if self.sampled {
            self.local().timed.real.set(ns);
        }
    }

    /// Makes the program's part of a call whose times are not kept.
    #[inline]
    pub(crate) fn untimed<R>(&self, clock: Reader, call: impl FnOnce() -> R) -> R {
        if !self.sampled {
            return call();
        }
        let before = clock.settled();
        let result = call();
        self.took(clock.settled() - before);
        self.local().timed.untimed.set(true);
        result
    }

    /// The thread leaves the wrapper: for owners that are not dropped.
    #[inline]
    pub(crate) fn leave(&self) {
        if self.sampled {
            leaves(self.local());
        }
        self.local().depth.set(0);
    }

    /// The thread's state.
    #[inline]
    pub(crate) fn local(&self) -> &Local {
        // SAFETY: the thread's own variable (a pointer does not go to another thread), which lives as long as the
        // thread: it has no destructor, and a wrapper does not outlive its thread.
        unsafe { &*self.local }
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        self.leave();
    }
}

/// A call has come that is to be timed: whether it is.
#[cold]
fn arrives(local: &Local) -> bool {
    let mut state = STATE.lock(local.owner.get());
    let Some(State { cost, clock, .. }) = state.as_deref_mut() else { return false };
    let timed = &local.timed;
    // A thread's first call stands for itself.
    let sample = cost.arrives(timed.distance.get().max(1), clock.reader().settled());
    let distance = cost.distance();
    timed.distance.set(distance);
    timed.left.set(distance - 1);
    timed.real.set(-1);
    timed.untimed.set(false);
    timed.sample.set(sample);
    true
}

/// It has been recorded.
#[cold]
fn leaves(local: &Local) {
    let mut state = STATE.lock(local.owner.get());
    let Some(State { cost, clock, .. }) = state.as_deref_mut() else { return };
    let (now, timed) = (clock.reader().settled(), &local.timed);
    let real = timed.real.replace(-1);
    if real >= 0 {
        // Each pair of readings adds what one takes to what is outside of it and is not the program's. Two plain ones around the program's
        // part are the recorder's work, by which a call is told its times; all others are not.
        let (plain, settled) = (clock.plain(), clock.settled());
        let extra = if timed.untimed.get() { settled + settled } else { settled - plain };
        cost.leaves(timed.sample.get(), now, real + extra);
    }
    // Calls without times do not tell when the clock is to be corrected.
    clock.tick(now);
}
