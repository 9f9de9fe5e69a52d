//! What each thread remembers between calls.

use crate::cost::Sample;
use crate::ffi::Handles;
use std::cell::Cell;
use std::ffi::c_int;

/// A thread's state. Plain cells: there is nothing to drop when a thread or the process ends.
pub(crate) struct Local {
    /// Wrappers that the thread is inside of, and the stack pointer in the outermost one.
    pub(crate) depth: Cell<u32>,
    pub(crate) stack_pointer: Cell<u64>,
    /// More than 0 while [`st_pause`] is in force.
    pub(crate) paused: Cell<u32>,
    /// It entered `MPI_Init`: the state's lock is biased towards it.
    pub(crate) owner: Cell<bool>,
    /// Index of its sequence plus 1; 0 before its first recorded call.
    pub(crate) thread: Cell<usize>,
    /// It is within the recorder's heap, or about to enter it; and it holds that for a fork.
    pub(crate) in_heap: Cell<bool>,
    pub(crate) forking: Cell<bool>,
    /// It looks up who has made a call inside of another one.
    pub(crate) in_known: Cell<bool>,
    /// The recorder's own cost, by calls that are timed.
    pub(crate) timed: Timed,
    /// What [`st_made_at`] was told, and how much of it there is.
    made_at: Cell<*const Handles>,
    made: Cell<usize>,
}

/// Which of a thread's calls are timed for the recorder's own cost, and the one that is being made.
pub(crate) struct Timed {
    /// Calls from the last one that was timed to the next, and those that come before that.
    pub(crate) distance: Cell<u32>,
    pub(crate) left: Cell<u32>,
    pub(crate) sample: Cell<Sample>,
    /// What the program's part of it took, ns; nothing if less than 0.
    pub(crate) real: Cell<i64>,
    /// Its times are not kept: the clock is read around that part only because it is timed.
    pub(crate) untimed: Cell<bool>,
}

impl Timed {
    /// Calls since the last one that was timed.
    pub(crate) fn since(&self) -> u32 {
        self.distance.get().saturating_sub(1).saturating_sub(self.left.get())
    }
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
