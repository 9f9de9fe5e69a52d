//! What each thread remembers between calls.

use crate::ffi::Handles;
use std::cell::Cell;
use std::ffi::c_int;

/// A thread's state. Plain cells: there is nothing to drop when a thread or the process ends.
pub(crate) struct Local {
    /// Wrappers that the thread is inside of.
    pub(crate) depth: Cell<u32>,
    /// More than 0 while [`st_pause`] is in force.
    pub(crate) paused: Cell<u32>,
    /// It entered `MPI_Init`: the state's lock is biased towards it.
    pub(crate) owner: Cell<bool>,
    /// Index of its sequence plus 1; 0 before its first recorded call.
    pub(crate) thread: Cell<usize>,
    /// What [`st_made_at`] was told, and how much of it there is.
    made_at: Cell<*const Handles>,
    made: Cell<usize>,
}

/// Gives the calling thread's state to a function.
#[inline]
pub(crate) fn with<R>(read: impl FnOnce(&Local) -> R) -> R {
    // SAFETY: the thread's own variable lives as long as the thread, and nothing of it is ever borrowed mutably.
    read(unsafe { &*own() })
}

std::arch::global_asm!(
    ".pushsection .tbss.st_local, \"awT\", @nobits",
    ".balign {align}",
    ".hidden st_local",
    ".type st_local, @object",
    ".size st_local, {size}",
    ".globl st_local",
    "st_local:",
    ".zero {size}",
    ".popsection",
    size = const size_of::<Local>(),
    align = const align_of::<Local>(),
);

/// The calling thread's state. The library is there before the program starts, so its place relative to the thread is fixed (the
/// *initial executable* model of TLS), which Rust cannot be told: it would call a function of the dynamic linker, for 2 ns.
#[inline]
fn own() -> *const Local {
    let local: *const Local;
    // SAFETY: reads the thread pointer, which the ABI has at its own address, and the variable's offset from it. All zeros is a
    // thread that has made no call.
    unsafe {
        std::arch::asm!(
            "mov {local}, qword ptr fs:0",
            "add {local}, qword ptr [rip + st_local@GOTTPOFF]",
            local = out(reg) local,
            options(pure, readonly, nostack),
        );
    }
    local
}

/// Makes the recorder ignore (`on` = 1) or see again (`on` = 0) the MPI calls of the calling thread; nests. A
/// replayer finds this symbol by `dlsym` and brackets the calls that are its own.
#[unsafe(no_mangle)]
#[expect(unreachable_pub, reason = "exported to C")]
pub extern "C" fn st_pause(on: c_int) {
    with(|l| {
        let n = l.paused.get();
        l.paused.set(if on == 0 { n.saturating_sub(1) } else { n + 1 });
    });
}

/// Tells where the requests that the calling thread's next calls name were made: `n` addresses of variables, by position in the
/// list; 0 ends that. A replayer, which finds this symbol by `dlsym`, keeps requests elsewhere than the program that it
/// replays, and knows which is which where several share a handle.
#[unsafe(no_mangle)]
#[expect(unreachable_pub, reason = "exported to C")]
pub extern "C" fn st_made_at(places: *const Handles, n: usize) {
    with(|l| {
        l.made_at.set(places);
        l.made.set(n);
    });
}

/// Address of the variable in which the request was made that a call names at a position of its list, there kept at `place`: the same,
/// unless the thread has been told otherwise.
#[inline]
pub(crate) fn made_at(position: usize, place: usize) -> usize {
    let told = with(|l| (position < l.made.get()).then(|| l.made_at.get()));
    // SAFETY: there are as many as the thread has said.
    told.map_or(place, |places| unsafe { *places.wrapping_add(position) }.address(0))
}

/// Marks the thread as inside a wrapper until dropped, also when a C++ exception passes through. Finding a thread's
/// state may cost a function call in a preloaded library, so it is kept.
pub(crate) struct Inside {
    local: *const Local,
}

impl Inside {
    /// `None` inside another wrapper or while paused.
    #[inline]
    pub(crate) fn enter() -> Option<Self> {
        with(|l| {
            if l.depth.get() > 0 || l.paused.get() > 0 {
                return None;
            }
            l.depth.set(1);
            Some(Self { local: l })
        })
    }

    /// The same mark, for another owner.
    pub(crate) fn again(&self) -> Self {
        Self { local: self.local }
    }

    /// The thread leaves the wrapper: for owners that are not dropped.
    #[inline]
    pub(crate) fn leave(&self) {
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
