//! Calls that the program leaves by `longjmp`: out of an error handler, through the MPI library and the wrapper, which are not told.
//! The thread's next call finds that the wrapper's frame is no longer on the stack.

use crate::call::Call;
use crate::closed;
use crate::inside::Inside;
use crate::local::{Local, with};
use crate::state::{NESTED, RECORDING};
use st_unwind::{Registers, Unwinder};
use std::ptr;
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
    /// With the thread whose stack it knows, and how often modules had been closed when it was used last.
    static UNWINDER: Mutex<Option<(usize, u64, Unwinder)>> = Mutex::new(None);
    let (thread, closed) = (ptr::from_ref(local).addr(), closed::times());
    let mut last = UNWINDER.lock().unwrap_or_else(PoisonError::into_inner);
    let mut own = match last.take() {
        Some((of, before, mut own)) => {
            if before != closed {
                own.follow_loader();
            }
            // To ask for a thread's stack may take longer than all that a call inside of another one does.
            if of == thread { own } else { own.of_this_thread() }
        }
        None => Unwinder::new(Arc::default()),
    };
    // SAFETY: the wrapper has captured them, and waits for us.
    let has_left = unsafe { own.has_left(registers, local.stack_pointer.get()) };
    *last = Some((thread, closed, own));
    has_left
}
