//! Compares the walker with the C runtime's unwinder (through the `backtrace` crate) on stacks of many shapes, by
//! the memo, by cached rules and by fresh call frame information.
#![expect(unsafe_code, reason = "calls C code that builds stacks, and walks them")]

use crate::native::{Library, Plain, Visitor};
use st_unwind::{Proof, SiteId, SiteInterner, Unwinder, capture_registers};
use std::ffi::{c_int, c_uint, c_void};
use std::mem::transmute;
use std::sync::{Arc, Mutex};

/// A shape of stack with a size, depth or switch.
type WithSize = unsafe extern "C-unwind" fn(c_int, Visitor, *mut c_void) -> c_int;
/// A random shape.
type Seeded = unsafe extern "C-unwind" fn(c_uint, Visitor, *mut c_void) -> c_int;

/// Ways of compiling C: without and with frame pointers, unoptimised, with vectors wider than the stack's alignment.
const FLAGS: [(&str, &[&str]); 4] = [
    ("omitted", &["-O2", "-fomit-frame-pointer"]),
    ("framed", &["-O2", "-fno-omit-frame-pointer"]),
    ("plain", &["-O0"]),
    ("vector", &["-O3", "-mavx2", "-fcf-protection=none"]),
];

/// What a visit found.
struct Visits {
    unwinder: Unwinder,
    sites: Arc<Mutex<SiteInterner>>,
    limit: usize,
    found: Vec<(SiteId, Vec<u64>)>,
    proofs: Vec<(SiteId, Proof)>,
}

impl Visits {
    fn new(limit: usize) -> Self {
        let sites = Arc::new(Mutex::new(SiteInterner::new()));
        let unwinder = Unwinder::new(Arc::clone(&sites)).with_own_frames().with_depth_limit(limit);
        Self { unwinder, sites, limit, found: Vec::new(), proofs: Vec::new() }
    }
    fn argument(&mut self) -> *mut c_void {
        (&raw mut *self).cast()
    }
}

/// Return addresses of the running frames, innermost first, by the C runtime's unwinder.
fn oracle() -> Vec<u64> {
    let mut addresses = Vec::new();
    backtrace::trace(|frame| {
        addresses.push(frame.ip().addr() as u64);
        true
    });
    addresses
}

/// Whether an address is in the C library, or in the start-up code of the program or a thread below it.
fn in_start_up(addresses: &[u64]) -> bool {
    addresses.iter().any(|&address| {
        // SAFETY: an all-zero description is valid; `dladdr` fills it or says that it did not.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let known = unsafe { libc::dladdr(address as *const c_void, &raw mut info) } != 0;
        // SAFETY: the loader's names are nul-terminated.
        known && unsafe { std::ffi::CStr::from_ptr(info.dli_fname) }.to_string_lossy().contains("libc.so")
    })
}

/// Walks by every level and compares each with the oracle.
unsafe extern "C-unwind" fn visit(argument: *mut c_void) {
    // SAFETY: the argument is the `Visits` of the test, alive and used by nobody else meanwhile.
    let visits = unsafe { &mut *argument.cast::<Visits>() };
    let registers = capture_registers();
    // SAFETY: this function has not returned.
    let start = unsafe { visits.unwinder.start_frame(registers) }.expect("a caller");
    let all = oracle();
    let first = all.iter().position(|&a| a == start.return_address).expect("the caller is on the stack");
    let expected = &all[first..];
    let mut walked = Vec::new();
    // SAFETY: this function's caller has not returned.
    unsafe { visits.unwinder.walk(start, &mut walked) };
    assert_eq!(walked, expected[..walked.len()]);
    // One that is let by leads to the next.
    for (i, address) in walked.iter().take(3).enumerate() {
        // SAFETY: this function has not returned.
        let caller = unsafe { visits.unwinder.caller(registers, |a| walked[..i].contains(&a)) };
        assert!(caller == Some(*address) || walked[..i].contains(address));
    }
    if walked.len() < visits.limit {
        let rest = &expected[walked.len()..];
        assert!(rest.len() <= 3, "{} frames were left out", rest.len());
        assert!(rest.is_empty() || in_start_up(rest));
    }
    // SAFETY: this function has not returned.
    let sites = [(); 3].map(|()| unsafe { visits.unwinder.call_site(registers) });
    assert_eq!(sites[0], sites[1]);
    assert_eq!(sites[0], sites[2]);
    let table = visits.sites.lock().unwrap();
    let frames = &table.sites()[usize::try_from(sites[0].0).unwrap()].frames;
    let offsets: Vec<u64> = walked.iter().map(|&address| offset_of(address)).collect();
    assert_eq!(frames.iter().map(|f| f.offset).collect::<Vec<_>>(), offsets);
    // SAFETY: this function has not returned.
    let proof = unsafe { visits.unwinder.proof(registers) };
    visits.proofs.extend(proof.map(|p| (sites[0], p)));
    for (site, proof) in &visits.proofs {
        // SAFETY: this function has not returned; proofs of other threads are of other stack pointers.
        if unsafe { proof.holds(&registers) } {
            assert_eq!(*site, sites[0]);
        }
    }
    visits.found.push((sites[0], walked));
}

/// Offset of an address in its module, as the loader's own look-up gives it.
fn offset_of(address: u64) -> u64 {
    // SAFETY: an all-zero description is valid; `dladdr` fills it.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    assert_ne!(unsafe { libc::dladdr(address as *const c_void, &raw mut info) }, 0);
    let base = info.dli_fbase.addr() as u64;
    // Programs that are not position-independent have offsets equal to addresses.
    if base == 0x40_0000 { address } else { address - base }
}

/// Runs a test with the library compiled in every way.
fn with_libraries(test: impl Fn(&Library)) {
    let name = std::thread::current().name().unwrap_or("main").replace("::", "_");
    for (suffix, flags) in FLAGS {
        test(&Library::build(&format!("{name}_{suffix}"), flags));
    }
}

/// The elements, how many of which the compiler does not know: a loop that it writes out calls from several places.
fn looped<T>(elements: impl Into<Vec<T>>) -> Vec<T> {
    std::hint::black_box(elements.into())
}

fn plain(library: &Library, name: &str) -> Plain {
    // SAFETY: all functions looked up by this name have this type in frames.c.
    unsafe { transmute::<*mut c_void, Plain>(library.function(name)) }
}

fn sized(library: &Library, name: &str) -> WithSize {
    // SAFETY: all functions looked up by this name have this type in frames.c.
    unsafe { transmute::<*mut c_void, WithSize>(library.function(name)) }
}

#[test]
fn nested_calls() {
    with_libraries(|library| {
        let mut visits = Visits::new(64);
        for name in looped(["frame_1", "frame_2", "frame_14", "frame_14", "frame_7"]) {
            // SAFETY: the visitor gets what it expects.
            unsafe { plain(library, name)(visit, visits.argument()) };
        }
        let depth = |i: usize| visits.found[i].1.len();
        assert_eq!(depth(1), depth(0) + 1);
        assert_eq!(depth(2), depth(0) + 13);
        assert_eq!(visits.found[2].0, visits.found[3].0, "the same path has the same site");
        assert_ne!(visits.found[2].0, visits.found[4].0);
        assert_eq!(visits.proofs.len(), 5);
    });
}

#[test]
fn recursion_up_to_and_beyond_the_limit() {
    with_libraries(|library| {
        let mut visits = Visits::new(20);
        for depth in [0, 1, 5, 18, 19, 20, 21, 500, 30_000] {
            // SAFETY: the visitor gets what it expects.
            unsafe { sized(library, "recursive")(depth, visit, visits.argument()) };
        }
        assert_eq!(visits.found[8].1.len(), 20);
        assert_eq!(visits.found[8].0, visits.found[7].0, "equal to the limit is equal");
        assert_ne!(visits.found[1].0, visits.found[2].0);
    });
}

#[test]
fn blocks_of_run_time_size_and_realigned_stacks() {
    with_libraries(|library| {
        let mut visits = Visits::new(64);
        for name in ["with_alloca", "with_array", "realigned"] {
            let before = visits.found.len();
            for bytes in looped([0, 100, 16, 100, 5000, 0]) {
                // SAFETY: the visitor gets what it expects.
                unsafe { sized(library, name)(bytes, visit, visits.argument()) };
            }
            let found = &visits.found[before..];
            assert!(found.iter().all(|f| f.0 == found[0].0), "the size of a block is no part of the site");
        }
    });
}

#[test]
fn callbacks_through_the_c_library() {
    with_libraries(|library| {
        let mut visits = Visits::new(64);
        // SAFETY: the visitor gets what it expects.
        unsafe { plain(library, "sorted")(visit, visits.argument()) };
        assert!(visits.found.len() >= 2);
        let sort = library.function("sorted") as u64;
        assert!(
            visits.found[0].1.iter().any(|&a| (sort..sort + 400).contains(&a)),
            "the caller of qsort is on the stack"
        );
    });
}

#[test]
fn signal_handlers_on_the_same_and_on_an_alternate_stack() {
    with_libraries(|library| {
        for alternate in [0, 1] {
            let mut visits = Visits::new(64);
            // SAFETY: the visitor gets what it expects.
            unsafe { sized(library, "signalled")(alternate, visit, visits.argument()) };
            let signalled = library.function("signalled") as u64;
            assert!(visits.found[0].1.iter().any(|&a| (signalled..signalled + 600).contains(&a)));
        }
    });
}

#[test]
fn coroutines_on_stacks_of_the_program() {
    with_libraries(|library| {
        let mut visits = Visits::new(64);
        for _ in 0..3 {
            // SAFETY: the visitor gets what it expects.
            unsafe { plain(library, "switched")(visit, visits.argument()) };
        }
        assert_eq!(visits.found[0].1.len(), 4, "three frames of recursion and the coroutine's function");
        assert_eq!(visits.found[0].0, visits.found[2].0);
    });
}

#[test]
fn random_paths_through_all_shapes() {
    with_libraries(|library| {
        // SAFETY: this is the type of the function in frames.c.
        let wander = unsafe { transmute::<*mut c_void, Seeded>(library.function("wander")) };
        let mut visits = Visits::new(64);
        for _ in looped([(), ()]) {
            for seed in 0..1500 {
                // SAFETY: the visitor gets what it expects.
                unsafe { wander(seed, visit, visits.argument()) };
            }
        }
        let (first, second) = visits.found.split_at(visits.found.len() / 2);
        assert_eq!(first, second);
    });
}

#[test]
fn an_unwinder_used_on_another_thread_reads_that_threads_stack() {
    with_libraries(|library| {
        let mut visits = Visits::new(64);
        // SAFETY: the visitor gets what it expects; the thread is joined inside.
        unsafe { plain(library, "threaded")(visit, visits.argument()) };
        assert_eq!(visits.found[0].1.len(), 4, "three frames and the thread's function");
    });
}

#[test]
fn an_unwinder_handed_to_another_thread_knows_that_threads_stack() {
    let library = Library::build("handed", &["-O2"]);
    let function = plain(&library, "frame_7");
    let mut visits = Visits::new(64);
    // SAFETY: the visitor gets what it expects.
    unsafe { function(visit, visits.argument()) };
    let walks = visits.unwinder.statistics().walks;
    let handed = move || {
        visits.unwinder = visits.unwinder.of_this_thread();
        // SAFETY: as above.
        unsafe { function(visit, visits.argument()) };
        visits
    };
    let visits = std::thread::spawn(handed).join().unwrap();
    // One walk, and twice what it found: the stack is taken for the thread's own.
    assert_eq!(visits.unwinder.statistics().walks, walks + 1);
}

#[test]
fn a_library_reopened_gives_the_same_sites() {
    let mut visits = Visits::new(64);
    for flags in looped([&["-O2"][..], &["-O0"][..], &["-O2"][..]]) {
        let library = Library::build("reopened", flags);
        // SAFETY: the visitor gets what it expects.
        unsafe { plain(&library, "frame_7")(visit, visits.argument()) };
        // SAFETY: the visitor gets what it expects.
        unsafe { sized(&library, "realigned")(10, visit, visits.argument()) };
    }
    assert_eq!(visits.found[0].0, visits.found[4].0);
    assert_eq!(visits.found[1].0, visits.found[5].0);
    assert_ne!(visits.found[0].0, visits.found[2].0);
}

#[test]
fn registers_that_make_no_sense_end_the_walk() {
    let mut visits = Visits::new(64);
    let good = capture_registers();
    for (rip, rsp, rbp) in [
        (0, 0, 0),
        (8, 8, 8),
        (good.rip, good.rsp + 1, 0),
        (good.rip, u64::MAX - 7, good.rbp),
        (good.rip, good.rsp & !0xfff, 1 << 63),
        (u64::MAX, good.rsp, good.rbp),
    ] {
        let registers = st_unwind::Registers { rip, rsp, rbp };
        // SAFETY: nothing is read outside of this thread's live stack, whatever the registers are.
        let site = unsafe { visits.unwinder.call_site(registers) };
        let table = visits.sites.lock().unwrap();
        assert!(table.sites()[usize::try_from(site.0).unwrap()].frames.len() <= 64);
    }
}
