//! Time to find a call site of 14 frames of C compiled without frame pointers, by every level of the walker and by
//! the C runtime's unwinder.
#![expect(unsafe_code, reason = "calls C code that builds a stack, and walks it")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up fails by panicking")]

#[path = "../tests/it/native/mod.rs"]
mod native;

use divan::Bencher;
use native::{Library, Plain, Visitor};
use st_unwind::{SiteInterner, StartFrame, Unwinder, capture_registers};
use std::ffi::c_void;
use std::hint::black_box;
use std::mem::transmute;
use std::sync::{Arc, Mutex};

const FRAMES: usize = 14;

fn main() {
    divan::main();
}

fn unwinder() -> Unwinder {
    Unwinder::new(Arc::new(Mutex::new(SiteInterner::new()))).with_own_frames().with_depth_limit(FRAMES)
}

/// Measures below 14 C frames.
fn below_frames(bencher: Bencher<'_, '_>, measure: fn(Bencher<'_, '_>, StartFrame)) {
    struct Job<'a, 'b>(Option<Bencher<'a, 'b>>, fn(Bencher<'_, '_>, StartFrame));
    unsafe extern "C-unwind" fn visit(argument: *mut c_void) {
        // SAFETY: the argument is the job below, alive and used by nobody else meanwhile.
        let job = unsafe { &mut *argument.cast::<Job<'_, '_>>() };
        // SAFETY: this function has not returned.
        let start = unsafe { unwinder().start_frame(capture_registers()) }.unwrap();
        (job.1)(job.0.take().unwrap(), start);
    }
    let library = Library::build("walk", &["-O2", "-fomit-frame-pointer"]);
    // SAFETY: this is the type of the function in frames.c.
    let frames = unsafe { transmute::<*mut c_void, Plain>(library.function("frame_14")) };
    let mut job = Job(Some(bencher), measure);
    // SAFETY: the visitor gets what it expects.
    unsafe { frames(visit as Visitor, (&raw mut job).cast()) };
}

/// Measures after a first call that fills the tables.
fn warm<T>(bencher: Bencher<'_, '_>, mut call: impl FnMut() -> T) {
    black_box(call());
    bencher.bench_local(call);
}

/// The stack is one that was seen before.
#[divan::bench]
fn memo(bencher: Bencher<'_, '_>) {
    below_frames(bencher, |bencher, start| {
        let mut unwinder = unwinder();
        // SAFETY: the frame is one of the C frames above, which are waiting for this measurement.
        warm(bencher, || unsafe { unwinder.call_site_from(black_box(start)) });
    });
}

/// The same, and the frame is found from the registers by one cached rule, as in a wrapper.
#[divan::bench]
fn memo_from_registers(bencher: Bencher<'_, '_>) {
    below_frames(bencher, |bencher, _| {
        let mut unwinder = unwinder();
        let registers = capture_registers();
        // SAFETY: this function waits for the measurement.
        warm(bencher, || unsafe { unwinder.call_site(black_box(registers)) });
    });
}

/// Stepping out of one frame by a cached rule.
#[divan::bench]
fn start_frame(bencher: Bencher<'_, '_>) {
    below_frames(bencher, |bencher, _| {
        let mut unwinder = unwinder();
        let registers = capture_registers();
        // SAFETY: this function waits for the measurement.
        warm(bencher, || unsafe { unwinder.start_frame(black_box(registers)) });
    });
}

/// A walk by cached rules.
#[divan::bench]
fn rules(bencher: Bencher<'_, '_>) {
    below_frames(bencher, |bencher, start| {
        let mut unwinder = unwinder();
        let mut addresses = Vec::new();
        warm(bencher, || {
            // SAFETY: the frame is one of the C frames above, which are waiting for this measurement.
            unsafe { unwinder.walk(black_box(start), &mut addresses) };
            addresses.len()
        });
    });
}

/// A walk of a thread that knows nothing yet, with the list of modules loaded.
#[divan::bench]
fn first_call(bencher: Bencher<'_, '_>) {
    below_frames(bencher, |bencher, start| {
        // SAFETY: the frame is one of the C frames above, which are waiting for this measurement.
        bencher.with_inputs(unwinder).bench_local_refs(|u| unsafe { u.call_site_from(black_box(start)) });
    });
}

/// Making an unwinder, once per thread.
#[divan::bench]
fn new_unwinder(bencher: Bencher<'_, '_>) {
    bencher.bench_local(unwinder);
}

/// The C runtime's unwinder, stopped after as many frames.
#[divan::bench]
fn backtrace_crate(bencher: Bencher<'_, '_>) {
    below_frames(bencher, |bencher, start| {
        bencher.bench_local(|| {
            let (mut seen, mut addresses) = (false, [0_u64; FRAMES]);
            let mut count = 0;
            let each = |frame: &backtrace::Frame| {
                let address = frame.ip().addr() as u64;
                seen |= address == start.return_address;
                if let Some(place) = addresses.get_mut(count).filter(|_| seen) {
                    *place = address;
                    count += 1;
                }
                count < FRAMES
            };
            // SAFETY: nothing else walks stacks through this crate meanwhile.
            unsafe { backtrace::trace_unsynchronized(each) };
            addresses
        });
    });
}
