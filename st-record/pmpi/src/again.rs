//! A call that always repeats (`MPI_Wtime`), made once more from where the last one came from: its series grows by one.
//!
//! Nothing is read, and no call site looked up: the stack is proved to be that of the series.

use crate::call::guarded;
use crate::clock::Reader;
use crate::inside::Inside;
use crate::polls::Repeat;
use crate::state::{PAUSED, STATE, State};
use st_unwind::Registers;
use std::sync::atomic::Ordering;

/// A series has come so often in a row before its stack is worth remembering: most are short.
const WORTHWHILE: i64 = 4;

/// Such a call, that is being made.
pub(crate) struct Again {
    thread: usize,
    clock: Reader,
    inside: Inside,
}

impl Again {
    /// The thread as it was if the call is another one.
    ///
    /// # Safety
    ///
    /// Called by the function that captured the registers.
    #[inline]
    pub(crate) unsafe fn begin(inside: Inside, call: u16, registers: &Registers) -> Result<Self, Inside> {
        let mut begun = None;
        let thread = inside.local().thread.get();
        if thread > 0 && !PAUSED.load(Ordering::Relaxed) {
            guarded(|| {
                let mut state = STATE.lock(inside.local().owner.get());
                let Some(state) = state.as_deref_mut() else { return false };
                // SAFETY: the caller's promise; a thread's stack is remembered by itself.
                if unsafe { state.repeats(thread - 1, call, registers) } {
                    begun = Some(state.clock.reader());
                }
                true
            });
        }
        match begun {
            Some(clock) => Ok(Self { thread: thread - 1, clock, inside }),
            None => Err(inside),
        }
    }

    /// Makes the real call.
    #[inline]
    pub(crate) fn real<R>(&self, call: impl FnOnce() -> R) -> R {
        self.inside.untimed(self.clock, call)
    }

    /// Records the call, which has returned.
    #[inline]
    pub(crate) fn finish(self) {
        let exit = Repeat::Always.keeps_times().then(|| self.clock.now());
        guarded(|| {
            let mut state = STATE.lock(self.inside.local().owner.get());
            let Some(state) = state.as_deref_mut() else { return false };
            exit.into_iter().for_each(|exit| state.clock.tick(exit));
            state.repeat(self.thread, exit);
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
        !self.has_closed()
            && self.threads.get(thread).is_some_and(|t| unsafe { t.series.is_from(call, registers) })
    }

    /// Takes one more call of the thread's series, which has ended at `exit`, if its times are kept.
    #[inline]
    fn repeat(&mut self, thread: usize, exit: Option<i64>) {
        let Some(t) = self.threads.get_mut(thread) else { return };
        let exit = exit.unwrap_or(t.exit);
        t.exit = exit;
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
            t.series.remember(call, t.unwinder.as_ref().and_then(|u| unsafe { u.proof(registers) }));
        }
    }
}
