//! One call on its way through a wrapper.

use crate::clock::Reader;
use crate::generated::real;
use crate::journal::Mark;
use crate::life;
use crate::local::Inside;
use crate::memory;
use crate::normal;
use crate::polls::Repeat;
use crate::scribe::Scribe;
use crate::state::{Event, NESTED, RECORDING, STATE};
use st_trace::calls::CallId;
use st_unwind::Registers;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

/// A call that is being recorded. Dropped also when a C++ exception passes through.
pub(crate) struct Call {
    id: u16,
    registers: Registers,
    clock: Option<Reader>,
    event: Event,
    /// When the wrapper was entered, if this call measures our own cost.
    arrived: Option<i64>,
    inside: Inside,
    mark: Mark,
    /// Has been recorded, or could not be.
    done: bool,
}

impl Call {
    /// `None` if the call is not recorded.
    #[inline]
    pub(crate) fn begin(id: u16, repeat: Repeat, opaque: bool, registers: Registers) -> Option<Self> {
        if !RECORDING.load(Ordering::Relaxed) {
            return None;
        }
        let Some(inside) = Inside::enter() else {
            NESTED.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let event =
            Event { call: CallId(id), site: 0, error: 0, repeat, opaque, always: false, enter: 0, exit: 0 };
        let mark = Mark::NONE;
        Some(Self { id, registers, clock: None, event, arrived: None, inside, mark, done: false })
    }

    /// Reads the inputs.
    ///
    /// # Safety
    ///
    /// Called by the function that captured the registers.
    #[inline]
    pub(crate) unsafe fn prepare(&mut self, read: impl FnOnce(&mut Scribe<'_>)) {
        let ok = guarded(|| {
            let mut state = STATE.lock(self.inside.local().owner.get());
            let Some(state) = state.as_deref_mut() else { return false };
            self.arrived = state.samples().then(|| state.clock.now());
            let thread = state.thread(self.inside.local());
            self.event.call = state.call_id(self.id);
            // SAFETY: the caller's promise.
            self.event.site = unsafe { state.site(thread, self.registers) };
            state.threads[thread].begin();
            state.requests.begin();
            read(&mut Scribe::new(state, thread, self.event.call, self.event.site));
            self.mark = state.mark(thread, self.event.call, self.event.site);
            self.clock = Some(state.clock.reader());
            true
        });
        if !ok {
            self.clock = None;
        }
    }

    /// Makes the real call.
    #[inline]
    pub(crate) fn real<R>(&mut self, call: impl FnOnce() -> R) -> R {
        let Some(clock) = self.clock else { return call() };
        self.event.enter = clock.now();
        self.mark.enter(self.event.enter);
        let result = call();
        self.event.exit = clock.now();
        // Before the call is recorded: a call may be missing from the journal, but none is there twice.
        self.mark.leave();
        result
    }

    /// Reads the outputs if the call succeeded, and records.
    #[inline]
    pub(crate) fn finish(&mut self, result: i64, read: impl FnOnce(&mut Scribe<'_>)) {
        if self.clock.is_none() {
            return;
        }
        self.done = true;
        guarded(|| {
            let mut state = STATE.lock(self.inside.local().owner.get());
            let Some(state) = state.as_deref_mut() else { return false };
            state.clock.tick(self.event.exit);
            let thread = state.thread(self.inside.local());
            let mut scribe = Scribe::new(state, thread, self.event.call, self.event.site);
            if result == 0 {
                read(&mut scribe);
            } else {
                self.event.error = error_class(result);
                scribe.failed_completion();
            }
            scribe.settle();
            state.commit(thread, self.event);
            if let Some(arrived) = self.arrived {
                let spent = state.clock.now() - arrived;
                state.add_cost(spent - (self.event.exit - self.event.enter));
            }
            true
        });
        if memory::has_run_out() {
            life::give_up("no memory left");
        }
    }

    /// Records the call although the program has paused recording.
    pub(crate) fn always(&mut self) {
        self.event.always = true;
    }

    /// The clock was set right by this much, ns, since the call has returned.
    pub(crate) fn set_right(&mut self, by: i64) {
        self.event.exit = (self.event.exit + by).max(self.event.enter);
    }

    /// A call whose end is not waited for: it ends as it begins.
    pub(crate) fn last(&mut self) {
        if let Some(c) = self.clock {
            self.event.enter = c.now();
            self.event.exit = self.event.enter;
        }
        self.finish(0, |_| {});
        // Afterwards not even the clock may be asked: `MPI_Wtime` is not allowed after `MPI_Finalize`.
        self.clock = None;
    }
}

impl Drop for Call {
    /// An exception that the program's error handler has thrown passes through: the call has failed and returns no code.
    #[inline]
    fn drop(&mut self) {
        if let Some(clock) = self.clock.filter(|_| !self.done) {
            self.event.exit = clock.now();
            self.finish(i64::from(normal::unknown_error()), |_| {});
        }
    }
}

/// Error class of a code, numbered as [`st_trace::values::ERROR_CLASSES`].
pub(crate) fn error_class(code: i64) -> u32 {
    let mut class: c_int = 0;
    if let Ok(code) = c_int::try_from(code) {
        // SAFETY: `class` is a valid place for the answer.
        unsafe { real::MPI_Error_class(code, &raw mut class) };
    }
    normal::error_class(class)
}

/// Runs our own code: a panic in it must not reach the program.
#[inline]
fn guarded(f: impl FnOnce() -> bool) -> bool {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| {
        life::give_up("internal error");
        false
    })
}
