//! A library as the recorder's: its functions find out where a program called them from. The test
//! `in_a_library` loads it into a C program.
#![expect(unsafe_code, reason = "a C interface")]

use st_unwind::{SiteInterner, Unwinder, capture_registers};
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::{Arc, LazyLock, Mutex};

static SITES: LazyLock<Arc<Mutex<SiteInterner>>> = LazyLock::new(Arc::default);

thread_local! {
    // A pointer without a destructor, because handlers of `atexit` run after the destructors of the main thread.
    static UNWINDER: Cell<*mut Unwinder> = const { Cell::new(std::ptr::null_mut()) };
}

#[cold]
fn first_unwinder() -> *mut Unwinder {
    let unwinder = Box::into_raw(Box::new(Unwinder::new(Arc::clone(&SITES))));
    UNWINDER.set(unwinder);
    unwinder
}

/// As in the recorder, a few of our own frames lie between the entry and the place where registers are captured.
#[inline(never)]
fn site() -> u32 {
    let registers = capture_registers();
    let mut unwinder = UNWINDER.get();
    if unwinder.is_null() {
        unwinder = first_unwinder();
    }
    // SAFETY: this function has not returned; the unwinder is this thread's, and nothing interrupts its use here.
    unsafe { (*unwinder).call_site(registers) }.0
}

/// Number of the call site of this call.
#[unsafe(no_mangle)]
extern "C-unwind" fn probe_site() -> u32 {
    std::hint::black_box(site())
}

/// Number of frames of a call site, with the offsets of as many as there is room for.
///
/// # Safety
///
/// `offsets` must have room for `room` numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn probe_frames(site: u32, offsets: *mut u64, room: c_int) -> c_int {
    let Ok(table) = SITES.lock() else { return -1 };
    let Some(site) = usize::try_from(site).ok().and_then(|i| table.sites().get(i)) else { return -1 };
    for (i, frame) in (0..usize::try_from(room).unwrap_or(0)).zip(site.frames.iter()) {
        // SAFETY: there is room for this many.
        unsafe { offsets.add(i).write(frame.offset) };
    }
    c_int::try_from(site.frames.len()).unwrap_or(-1)
}

/// Index of the module of a frame, or -1.
#[unsafe(no_mangle)]
extern "C" fn probe_module(site: u32, frame: u32) -> c_int {
    let Ok(table) = SITES.lock() else { return -1 };
    let module = || {
        let site = table.sites().get(usize::try_from(site).ok()?)?;
        c_int::try_from(site.frames.get(usize::try_from(frame).ok()?)?.module).ok()
    };
    module().unwrap_or(-1)
}
