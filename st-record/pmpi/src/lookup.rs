//! `dlsym` and `dlopen`, as the program calls them. Our symbols are before all others, also where the program looks for an MPI by asking for a
//! function's name: it must not find one where there is none, and what it finds in a library that it has opened must be recorded.
//!
//! SAFETY, for the whole module: what is not about names of MPI goes on to the dynamic linker's own function, with the program's
//! return address in its place, by which that knows its caller.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use crate::deep;
use crate::dl::{function, next, real};
use crate::jumps;
use crate::library::library;
use crate::loaded_files::containing;
use crate::weak::{is_of_mpi, withdraw};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the program gets: an address; or it goes on to the dynamic linker's function, if that is not 0.
#[repr(C)]
struct Answer {
    address: *const c_void,
    then: usize,
}

/// The program's `dlsym`.
#[cfg(not(test))]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlsym() {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "mov rdx, [rsp + 16]",
        "sub rsp, 8",
        "call {answer}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rdx, rdx",
        "jz 2f",
        "jmp rdx",
        "2:",
        "ret",
        answer = sym answer,
    )
}

/// The program's `dlopen`.
#[cfg(not(test))]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlopen() {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "mov edi, esi",
        "call {opening}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "ret",
        opening = sym opening,
    )
}

/// The dynamic linker's function, to which the program's question goes on: it opens a file.
#[cfg_attr(test, expect(dead_code, reason = "a test's own process keeps its dlopen"))]
extern "C" fn opening(flags: c_int) -> usize {
    static REAL: AtomicUsize = AtomicUsize::new(0);
    deep::settle();
    if flags & libc::RTLD_DEEPBIND != 0 {
        deep::opening(ours);
        // What comes after it is led to us before any call of MPI's goes on.
        jumps::renew();
    }
    if REAL.load(Ordering::Relaxed) == 0 {
        REAL.store(next(c"dlopen").expose_provenance(), Ordering::Relaxed);
    }
    REAL.load(Ordering::Relaxed)
}

/// What we have by a name, with that name.
fn ours(name: &CStr) -> Option<(&'static CStr, *const c_void)> {
    #[cfg(not(test))]
    match name.to_bytes() {
        b"dlsym" => return Some((c"dlsym", dlsym as *const c_void)),
        b"dlopen" => return Some((c"dlopen", dlopen as *const c_void)),
        b"dlclose" => return Some((c"dlclose", crate::closed::dlclose as *const c_void)),
        _ => {}
    }
    jumps::named(name)
}

/// The answer to the program's question, asked by code at `caller`.
#[cfg_attr(test, expect(dead_code, reason = "a test's own process keeps its dlsym"))]
extern "C" fn answer(handle: *mut c_void, name: *const c_char, caller: usize) -> Answer {
    let on = Answer { address: null(), then: function() };
    if handle == libc::RTLD_NEXT || name.is_null() {
        return on;
    }
    let name = unsafe { CStr::from_ptr(name) };
    let of_mpi = is_of_mpi(name);
    deep::settle();
    // A sanitizer's runtime asks everybody for the functions that it stands before, and is not ready to be called: nothing is done then.
    if of_mpi || handle != libc::RTLD_DEFAULT {
        withdraw();
    }
    if !of_mpi {
        return on;
    }
    let ours = jumps::symbol(name);
    let theirs = if ours.is_null() { null() } else { unsafe { real(handle, name) } };
    if theirs.is_null() {
        return on;
    }
    let next = next(name);
    if theirs == ours {
        let local = || containing(std::ptr::without_provenance(caller)).map(|o| o.symbol_in_scope(name));
        let there = !next.is_null()
            || (handle == libc::RTLD_DEFAULT && local().is_some_and(|address| !address.is_null()));
        if there {
            return Answer { address: ours, then: 0 };
        }
        // Without us it would not be found. This is not found either, and `dlerror` says so.
        unsafe { real(libc::RTLD_NEXT, name) };
        return Answer { address: null(), then: 0 };
    }
    // What stands in front of an MPI must come by it.
    let recorded = (next.is_null() || next == theirs) && library().is_some_and(|l| l.holds(theirs));
    Answer { address: if recorded { ours } else { theirs }, then: 0 }
}
