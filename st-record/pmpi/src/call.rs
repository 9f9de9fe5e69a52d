//! One call on its way through a wrapper.

use crate::argument_cache::{FOLLOWING, Inputs, Outs};
use crate::call_encoder::CallEncoder;
use crate::clock::Reader;
use crate::inside::Inside;
use crate::journal::Mark;
use crate::life;
use crate::memory;
use crate::normal;
use crate::polls::Repeat;
use crate::state::{STATE, State};
use crate::thread::Event;
use st_model::calls::CallId;
use st_unwind::{Registers, capture_registers};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

/// A call that is being recorded. Dropped also when a C++ exception passes through.
pub(crate) struct Call {
    id: u16,
    registers: Registers,
    clock: Option<Reader>,
    event: Event,
    inside: Inside,
    mark: Mark,
    /// It was taken for what the loop in progress makes next: its inputs were not read.
    late: bool,
    /// Has been recorded, or could not be.
    done: bool,
}

impl Call {
    #[inline]
    pub(crate) fn begin(inside: Inside, id: u16, repeat: Repeat, opaque: bool, registers: Registers) -> Self {
        let event =
            Event { call: CallId(id), site: 0, error: 0, repeat, opaque, always: false, enter: 0, exit: 0 };
        Self { id, registers, clock: None, event, inside, mark: Mark::NONE, late: false, done: false }
    }

    /// Reads the inputs.
    ///
    /// # Safety
    ///
    /// Called by the function that captured the registers.
    #[inline]
    pub(crate) unsafe fn prepare(&mut self, read: impl FnOnce(&mut CallEncoder<'_>)) {
        let ok = guarded(|| {
            let mut state = STATE.lock(self.inside.local().owner.get());
            let Some(state) = state.as_deref_mut() else { return false };
            let thread = state.thread(self.inside.local());
            state.settle_cache();
            self.event.call = state.call_id(self.id);
            // SAFETY: the caller's promise.
            self.event.site = unsafe { state.site(thread, self.event.call, self.registers) };
            state.threads[thread].begin();
            state.requests.begin();
            read(&mut CallEncoder::new(state, thread, self.event.call, self.event.site));
            if self.event.repeat.keeps_times() {
                self.mark = state.mark(thread, self.event.call, self.event.site);
            }
            state.threads[thread].begun = Some(self.event);
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
        if !self.event.repeat.keeps_times() {
            return self.inside.untimed(clock, call);
        }
        self.event.enter = clock.now();
        self.mark.enter(self.event.enter);
        let result = call();
        self.event.exit = clock.now();
        self.inside.took(self.event.exit - self.event.enter);
        // Before the call is recorded: a call may be missing from the journal, but none is there twice.
        self.mark.leave();
        result
    }

    /// Reads the outputs if the call succeeded, and records.
    #[inline]
    pub(crate) fn finish(
        &mut self,
        result: i64,
        inputs: &Inputs<'_>,
        outs: Outs,
        read: impl FnOnce(&mut CallEncoder<'_>),
    ) {
        if self.clock.is_none() {
            return;
        }
        self.done = true;
        guarded(|| {
            let mut state = STATE.lock(self.inside.local().owner.get());
            let Some(state) = state.as_deref_mut() else { return false };
            state.clock.tick(self.event.exit);
            let thread = state.thread(self.inside.local());
            state.threads[thread].begun = None;
            if !self.event.repeat.keeps_times() {
                let at = state.threads[thread].exit;
                (self.event.enter, self.event.exit) = (at, at);
            }
            self.write_down(state, thread, result, (inputs, outs), read);
            true
        });
        if memory::has_run_out() {
            life::give_up("no memory left");
        }
    }

    /// Reads the outputs, of a call that failed those that it has all the same, and records.
    #[inline]
    fn write_down(
        &mut self,
        state: &mut State,
        thread: usize,
        result: i64,
        (inputs, outs): (&Inputs<'_>, Outs),
        read: impl FnOnce(&mut CallEncoder<'_>),
    ) {
        if self.late {
            state.prepare_late(thread);
        }
        let learns = !self.late && state.learns(thread, inputs);
        let mut encoder = CallEncoder::new(state, thread, self.event.call, self.event.site);
        if result == 0 {
            read(&mut encoder);
        } else {
            self.event.error = normal::class_of(result);
            encoder.failed(self.event.error, read);
        }
        encoder.settle();
        let recorded = state.commit(thread, self.event);
        if self.event.repeat == Repeat::Always {
            // SAFETY: the wrapper that captured the registers calls this.
            unsafe { state.remember_series(thread, self.id, self.registers) };
        }
        if learns && result == 0 && recorded {
            // SAFETY: the wrapper that captured the registers calls this.
            unsafe { state.learn(self.id, self.registers, &self.event, inputs, outs) };
        } else if learns {
            state.cache.fail();
        }
    }

    /// Records the call although the program has paused recording.
    pub(crate) fn always(&mut self) {
        self.event.always = true;
    }

    /// The recorder has had work to do together with the other ranks since the call has returned, and is done at this time on a
    /// clock that was set right since: for the program the call ends there.
    pub(crate) fn ends(&mut self, at: Option<i64>) {
        self.event.exit = at.unwrap_or(self.event.exit).max(self.event.enter);
    }

    /// The call in whose wrapper the thread was, which the program has left by `longjmp`: it has failed, and ended as it began for all
    /// that is known.
    #[cold]
    pub(crate) fn left(inside: Inside) {
        let mut left = None;
        guarded(|| {
            let mut state = STATE.lock(inside.local().owner.get());
            let Some(state) = state.as_deref_mut() else { return false };
            let thread = state.thread(inside.local());
            let begun = state.threads[thread].begun.take();
            let late = begun.is_none();
            // A loop is followed on the first thread only.
            let Some(mut event) = begun.or_else(|| state.cache.begun().filter(|_| thread == 0)) else {
                return true;
            };
            let mark = state.mark(thread, event.call, event.site);
            event.enter = mark.entered().unwrap_or(state.threads[thread].exit);
            event.exit = event.enter;
            left = Some((event, mark, state.clock.reader(), late));
            true
        });
        let Some((event, mark, clock, late)) = left else { return };
        mark.leave();
        let registers = capture_registers();
        let (id, clock) = (event.call.0, Some(clock));
        let mut call = Self { id, registers, clock, event, inside, mark, late, done: false };
        call.finish(i64::from(normal::unknown_error()), &Inputs::Unknown, Outs::Nothing, |_| {});
    }

    /// A call whose end is not waited for: it ends as it begins.
    pub(crate) fn last(&mut self) {
        if let Some(c) = self.clock {
            self.event.enter = c.now();
            self.event.exit = self.event.enter;
        }
        self.finish(0, &Inputs::Unknown, Outs::Nothing, |_| {});
        // Afterwards not even the clock may be asked: `MPI_Wtime` is not allowed after `MPI_Finalize`.
        self.clock = None;
    }
}

/// A call that is taken for what the loop in progress makes next.
pub(crate) struct Expected {
    id: u16,
    repeat: Repeat,
    registers: Registers,
    clock: Reader,
    mark: Mark,
    enter: i64,
    exit: i64,
    inside: Inside,
}

impl Expected {
    /// The thread as it was if the call is another one. `read` prepares what the outcome needs.
    ///
    /// # Safety
    ///
    /// Called by the function that captured the registers.
    #[inline]
    pub(crate) unsafe fn begin(
        inside: Inside,
        id: u16,
        repeat: Repeat,
        registers: Registers,
        inputs: &Inputs<'_>,
        read: impl FnOnce(&mut CallEncoder<'_>),
    ) -> Result<Self, Inside> {
        if !FOLLOWING.load(Ordering::Relaxed) {
            return Err(inside);
        }
        let mut begun = None;
        guarded(|| {
            let mut state = STATE.lock(inside.local().owner.get());
            let Some(state) = state.as_deref_mut() else { return false };
            let clock = state.clock.reader();
            // SAFETY: the caller's promise; on another thread's stack the registers are others.
            let expected = unsafe { state.cache.expects(id, &registers, inputs) }.or_else(|| {
                let State { cache, threads, known_sites, .. } = state;
                // SAFETY: as above. By value: the address of the registers is to be known to nobody, so that they need not be in memory.
                unsafe { cache.expects_otherwise(id, registers, inputs, threads.first_mut(), known_sites) }
            });
            let Some((mark, site)) = expected else { return true };
            // A loop is followed on the first thread only.
            read(&mut CallEncoder::new(state, 0, CallId(id), site));
            begun = Some((clock, mark));
            true
        });
        match begun {
            Some((clock, mark)) => Ok(Self { id, repeat, registers, clock, mark, enter: 0, exit: 0, inside }),
            None => Err(inside),
        }
    }

    /// Makes the real call.
    #[inline]
    pub(crate) fn real<R>(&mut self, call: impl FnOnce() -> R) -> R {
        if !self.repeat.keeps_times() {
            return self.inside.untimed(self.clock, call);
        }
        self.enter = self.clock.now();
        self.mark.enter(self.enter);
        let result = call();
        self.exit = self.clock.now();
        self.inside.took(self.exit - self.enter);
        self.mark.leave();
        result
    }

    /// Records the call if it came out as expected; else it is still to be finished.
    #[inline]
    pub(crate) fn finish(self, result: i64, outs: Outs) -> Option<Call> {
        // Dropped only when an exception passes through.
        let this = ManuallyDrop::new(self);
        let mut recorded = false;
        guarded(|| {
            let mut state = STATE.lock(this.inside.local().owner.get());
            let Some(state) = state.as_deref_mut() else { return false };
            state.clock.tick(this.exit);
            recorded = result == 0 && state.cache.comes_out(outs);
            if recorded {
                state.commit_expected(this.repeat.keeps_times().then_some((this.enter, this.exit)));
            }
            true
        });
        if !recorded {
            return Some(this.call());
        }
        this.inside.leave();
        if memory::has_run_out() {
            life::give_up("no memory left");
        }
        None
    }

    /// The call, to be finished as any other.
    #[cold]
    fn call(&self) -> Call {
        let site = STATE.lock(self.inside.local().owner.get()).as_deref().map_or(0, |s| s.cache.site());
        let event = Event {
            call: CallId(self.id),
            site,
            error: 0,
            repeat: self.repeat,
            opaque: false,
            always: false,
            enter: self.enter,
            exit: self.exit,
        };
        Call {
            id: self.id,
            registers: self.registers,
            clock: Some(self.clock),
            event,
            inside: self.inside.again(),
            mark: self.mark,
            late: true,
            done: false,
        }
    }
}

impl Drop for Expected {
    /// An exception passes through, and through the call.
    #[cold]
    fn drop(&mut self) {
        drop(self.call());
    }
}

impl Drop for Call {
    /// An exception that the program's error handler has thrown passes through: the call has failed and returns no code.
    #[inline]
    fn drop(&mut self) {
        if let Some(clock) = self.clock.filter(|_| !self.done) {
            self.mark.leave();
            self.event.exit = clock.now();
            self.finish(i64::from(normal::unknown_error()), &Inputs::Unknown, Outs::Nothing, |_| {});
        }
    }
}

/// Runs our own code: a panic in it must not reach the program.
#[inline]
pub(crate) fn guarded(f: impl FnOnce() -> bool) -> bool {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| {
        life::give_up("internal error");
        false
    })
}
