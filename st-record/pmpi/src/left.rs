//! Calls that the program leaves by `longjmp`: out of an error handler, through the MPI library and the wrapper, which are not told.
//! The thread's next call finds that the wrapper's frame is no longer on the stack.

use crate::call::Call;
use crate::inside::Inside;
use crate::local::with;
use crate::nested;
use crate::state::{NESTED, PAUSED, RECORDING};
use st_unwind::Registers;
use std::sync::atomic::{AtomicBool, Ordering};

/// The program has error handlers of its own: stacks are looked at only then.
static HANDLERS: AtomicBool = AtomicBool::new(false);

/// The program makes an error handler.
pub(crate) fn may_happen() {
    HANDLERS.store(true, Ordering::Relaxed);
}

/// A call of this function comes that [`Inside::enter`] takes for one inside of another, or that is not recorded for other reasons: enters it
/// all the same if that other one was left, and counts it if it was not. The registers are those of the wrapper that calls this.
#[cold]
pub(crate) fn enter(function: u16, registers: Registers) -> Option<Inside> {
    if !RECORDING.load(Ordering::Relaxed) {
        return None;
    }
    let was_left = with(|l| {
        let is_nested = l.paused.get() == 0 && l.depth.get() > 0;
        // SAFETY: the wrapper has captured the registers, and waits for us.
        let was_left =
            is_nested && HANDLERS.load(Ordering::Relaxed) && unsafe { nested::has_left(l, registers) };
        if was_left {
            Call::left(Inside::left(l));
            return true;
        }
        NESTED.fetch_add(1, Ordering::Relaxed);
        if is_nested && !PAUSED.load(Ordering::Relaxed) {
            // SAFETY: as above.
            unsafe { nested::count(l, function, registers) };
        }
        false
    });
    if was_left { Inside::enter() } else { None }
}
