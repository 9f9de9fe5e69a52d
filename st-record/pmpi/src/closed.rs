//! Modules that the program closes: another one may be loaded where one was, and what is known of stacks by their addresses would tell
//! its calls as those of the first.

use crate::argument_cache::FOLLOWING;
use crate::dl::next;
use crate::state::State;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicU64, Ordering};

/// See [`times`].
static CLOSED: AtomicU64 = AtomicU64::new(0);

/// The program's `dlclose`.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, expect(dead_code, reason = "a test's own process keeps its dlclose"))]
pub(crate) unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_void) -> c_int;
    let real = next(c"dlclose");
    if real.is_null() {
        return -1;
    }
    // SAFETY: the next definition of the function, which gets what the program has passed.
    let result = unsafe { transmute::<*const c_void, Function>(real)(handle) };
    CLOSED.fetch_add(1, Ordering::Release);
    // The loop in progress is known by its stacks; the next call looks its own up.
    FOLLOWING.store(false, Ordering::Relaxed);
    result
}

/// How often something may have been closed.
pub(crate) fn times() -> u64 {
    CLOSED.load(Ordering::Acquire)
}

impl State {
    /// Whether modules may have been closed since stacks were looked up last.
    #[inline]
    pub(crate) fn has_closed(&self) -> bool {
        self.closed != times()
    }

    /// Forgets what is known of modules that are gone.
    #[cold]
    pub(crate) fn forget_closed(&mut self) {
        self.closed = times();
        for thread in &mut self.threads {
            thread.series.forget();
            thread.unwinder.iter_mut().for_each(st_unwind::Unwinder::follow_loader);
        }
        self.spare.iter_mut().for_each(st_unwind::Unwinder::follow_loader);
    }
}
