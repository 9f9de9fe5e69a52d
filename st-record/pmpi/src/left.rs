//! Calls that the program leaves by `longjmp`: out of an error handler, through the MPI library and the wrapper, which are not told.
//! The thread's next call finds that the wrapper's frame is no longer on the stack.

use crate::call::Call;
use crate::inside::Inside;
use crate::local::{Local, with};
use crate::state::{NESTED, RECORDING};
use st_unwind::{Registers, Unwinder};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The program has error handlers of its own: stacks are looked at only then.
static HANDLERS: AtomicBool = AtomicBool::new(false);

/// The program makes an error handler.
pub(crate) fn may_happen() {
    HANDLERS.store(true, Ordering::Relaxed);
}

/// A call comes that [`Inside::enter`] takes for one inside of another, or that is not recorded for other reasons: enters it all the
/// same if that other one was left. The registers are those of the wrapper that calls this.
#[cold]
pub(crate) fn enter(registers: Registers) -> Option<Inside> {
    if !RECORDING.load(Ordering::Relaxed) {
        return None;
    }
    let was_left = with(|l| {
        let is_nested = l.paused.get() == 0 && l.depth.get() > 0;
        let was_left = is_nested && HANDLERS.load(Ordering::Relaxed) && has_left(l, registers);
        if was_left {
            Call::left(Inside::left(l));
        } else {
            NESTED.fetch_add(1, Ordering::Relaxed);
        }
        was_left
    });
    if was_left { Inside::enter() } else { None }
}

/// Whether the wrapper that the thread was inside of is no longer on its stack. Not by the unwinder of the thread: the recorder may be
/// in the state, and ask the library for something that calls another of its functions.
fn has_left(local: &Local, registers: Registers) -> bool {
    static UNWINDER: Mutex<Option<Unwinder>> = Mutex::new(None);
    let mut unwinder = UNWINDER.lock().unwrap_or_else(PoisonError::into_inner);
    let mut own = unwinder.take().unwrap_or_else(|| Unwinder::new(Arc::default())).of_this_thread();
    // SAFETY: the wrapper has captured them, and waits for us.
    let has_left = unsafe { own.has_left(registers, local.stack_pointer.get()) };
    *unwinder = Some(own);
    has_left
}
