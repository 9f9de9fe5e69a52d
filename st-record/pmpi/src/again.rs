//! A call that always repeats (`MPI_Wtime`), made once more from where the last one came from: its series grows by one.
//!
//! Nothing is read, and no call site looked up: the stack is proved to be that of the series.

use crate::call::guarded;
use crate::clock::Reader;
use crate::cost::{CallPath, Sample};
use crate::local::Inside;
use crate::state::{PAUSED, RECORDING, STATE, State};
use st_unwind::Registers;
use std::sync::atomic::Ordering;

/// A series has come so often in a row before its stack is worth remembering: most are short.
const WORTHWHILE: i64 = 4;

/// Such a call, that is being made.
pub(crate) struct Again {
    thread: usize,
    clock: Reader,
    /// If it is one of those that are timed: that, and when the real call begins.
    sample: Option<(Sample, i64)>,
    inside: Inside,
}

impl Again {
    /// `None` if the call is another one, or not recorded at all.
    ///
    /// # Safety
    ///
    /// Called by the function that captured the registers.
    #[inline]
    pub(crate) unsafe fn begin(call: u16, registers: &Registers) -> Option<Self> {
        if !RECORDING.load(Ordering::Relaxed) || PAUSED.load(Ordering::Relaxed) {
            return None;
        }
        let inside = Inside::enter()?;
        let thread = inside.local().thread.get().checked_sub(1)?;
        let mut begun = None;
        guarded(|| {
            let mut state = STATE.lock(inside.local().owner.get());
            let Some(state) = state.as_deref_mut() else { return false };
            // SAFETY: the caller's promise; a thread's stack is remembered by itself.
            if unsafe { state.repeats(thread, call, registers) } {
                let clock = state.clock.reader();
                let sample = state.cost.arrives(CallPath::Expected, || clock.now());
                begun = Some((clock, sample));
            }
            true
        });
        let (clock, sample) = begun?;
        Some(Self { thread, clock, sample: sample.map(|sample| (sample, clock.now())), inside })
    }

    /// Records the call, which has returned.
    #[inline]
    pub(crate) fn finish(self) {
        let exit = self.clock.now();
        guarded(|| {
            let mut state = STATE.lock(self.inside.local().owner.get());
            let Some(state) = state.as_deref_mut() else { return false };
            state.clock.tick(exit);
            state.repeat(self.thread, exit);
            if let Some((sample, enter)) = self.sample {
                state.cost.leaves(sample, state.clock.now(), exit - enter);
            }
            true
        });
    }
}

impl State {
    /// Whether a call from there is one more of the thread's series.
    ///
    /// # Safety
    ///
    /// The function in which the registers were captured must not have returned, and must run on the thread.
    #[inline]
    unsafe fn repeats(&self, thread: usize, call: u16, registers: &Registers) -> bool {
        // SAFETY: the caller's promise; a thread's series has its own stack.
        self.threads.get(thread).is_some_and(|t| unsafe { t.series.is_from(call, registers) })
    }

    /// Takes one more call of the thread's series, which has ended at `exit`.
    #[inline]
    fn repeat(&mut self, thread: usize, exit: i64) {
        let Some(t) = self.threads.get_mut(thread) else { return };
        if let Some(times) = t.series.again(exit)
            && let Some(journal) = &self.journal
        {
            journal.grown(t.index, times, exit);
        }
    }

    /// Remembers the stack of a series of a call that always repeats, and that has just been made again.
    ///
    /// # Safety
    ///
    /// As [`State::repeats`].
    #[inline]
    pub(crate) unsafe fn remember_series(&mut self, thread: usize, call: u16, registers: Registers) {
        let Some(t) = self.threads.get_mut(thread) else { return };
        // What proves a native call site says nothing of an interpreter's frames.
        if t.series.times() == Some(WORTHWHILE) && !self.settings.python {
            // SAFETY: the caller's promise.
            t.series.remember(call, unsafe { t.unwinder.proof(registers) });
        }
    }
}
