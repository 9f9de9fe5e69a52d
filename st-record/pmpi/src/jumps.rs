//! The exported symbols. Each is a jump: at first to [`enter`], which finds the MPI that the program has loaded, and from then on to
//! the wrapper that records the call; or, if it is of no family that is known, past the recorder to the library itself. No argument is
//! touched on the way, whatever its type.
//!
//! SAFETY, for the whole module: the assembly keeps what a call may pass in registers, and leaves to where the symbol leads.

use crate::deep;
use crate::generated::{EXPORTED, M};
use crate::library::{self, Mode};
use crate::real;
use crate::weak;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Where the symbols lead.
static JUMPS: [AtomicPtr<c_void>; M] = [const { AtomicPtr::new(unresolved as *const () as *mut c_void) }; M];

#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    clippy::allow_attributes,
    missing_docs,
    non_snake_case,
    unreachable_pub,
    reason = "generated for all functions alike: names are the standard's"
)]
mod exports {
    use super::JUMPS;
    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}

/// First stop of a symbol: finds where it leads, with the symbol's number in `r11`, and goes there. Nothing of this kind has arguments in
/// vector registers but `MPI_Pcontrol`, which may have any.
#[unsafe(naked)]
unsafe extern "C-unwind" fn unresolved() {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push rax",
        "sub rsp, 128",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "mov edi, r11d",
        "mov rsi, [rsp + 128 + 56]",
        "call {enter}",
        "mov r11, rax",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "add rsp, 128",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp r11",
        enter = sym enter,
    )
}

/// Where the `i`-th symbol leads, called from code at `caller`.
extern "C" fn enter(i: usize, caller: usize) -> *const c_void {
    let name = name(i);
    let mode = library::mode();
    weak::withdraw();
    deep::settle();
    let (to, lasting) = match &mode {
        Mode::Record => (wrapper(i), true),
        Mode::Pass => (std::ptr::null(), true),
        // Each caller has its own.
        Mode::Unknown => (std::ptr::null(), false),
    };
    let to = if to.is_null() { library::find_for(name, caller) } else { to };
    if to.is_null() {
        library::lacking(name, caller);
    }
    if lasting {
        JUMPS[i].store(to.cast_mut(), Ordering::Relaxed);
    }
    to
}

/// Every symbol's next call comes by [`enter`] again.
pub(crate) fn renew() {
    JUMPS.iter().for_each(|jump| jump.store(unresolved as *const () as *mut c_void, Ordering::Relaxed));
}

/// The mark by which a recorder is known among the files that a process has loaded.
#[unsafe(no_mangle)]
#[expect(unreachable_pub, reason = "exported to C")]
pub extern "C" fn st_recorder() {}

/// What records the `i`-th symbol's calls; null if the library lacks the function.
fn wrapper(i: usize) -> *const c_void {
    if real::has(EXPORTED[i].slot) { EXPORTED[i].wrapper as *const c_void } else { std::ptr::null() }
}

/// The name of the `i`-th symbol.
fn name(i: usize) -> &'static CStr {
    real::name(EXPORTED[i].slot)
}

/// The symbol of this name; null if there is none.
pub(crate) fn symbol(name: &CStr) -> *const c_void {
    named(name).map_or(std::ptr::null(), |(_, symbol)| symbol)
}

/// The same, with the name as we have it.
pub(crate) fn named(name: &CStr) -> Option<(&'static CStr, *const c_void)> {
    let number = (0..M).find(|i| self::name(*i) == name)?;
    Some((self::name(number), exports::SYMBOLS[number] as *const c_void))
}
