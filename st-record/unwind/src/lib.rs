//! Call sites of MPI calls: a stack walker that runs inside a preloaded library on every MPI call.
//!
//! A call site is the stack of return addresses from the caller of the MPI wrapper up to `main`. General
//! unwinders need microseconds for it; an MPI call may need less than a tenth of one. Three levels make it cheap,
//! each falling back on the next:
//!
//! 1. **Memo** (`memo`): the sites seen from one (return address, stack pointer), each with the list of stack
//!    slots that led to it and what they held. All slots are read again on every call, so a hit is exact: by
//!    induction over the frames, equal slots give equal rules, and equal rules give the same slots.
//! 2. **Rules** (`rules`): how to step out of a frame, per return address, in the two or three forms that
//!    compilers emit (stack or frame pointer plus a constant, and the saved argument pointer of a realigned frame).
//! 3. **CFI** (`cfi`): the call frame information of the module (`.eh_frame` through its search table), from which
//!    rules are compiled and rare forms (signal frames, general expressions) evaluated.
//!
//! ```
//! use st_unwind::{SiteId, SiteInterner, Unwinder, capture_registers};
//! use std::sync::{Arc, Mutex};
//!
//! // once per process, once per thread
//! let sites = Arc::new(Mutex::new(SiteInterner::new()));
//! let mut unwinder = Unwinder::new(Arc::clone(&sites));
//! # let mut unwinder = unwinder.with_own_frames(); // this example is not in a preloaded library
//! // in every wrapper: the registers are captured in the frame that is alive during the walk
//! let registers = capture_registers();
//! // SAFETY: this frame, in which the registers were captured, has not returned.
//! let site: SiteId = unsafe { unwinder.call_site(registers) };
//!
//! // at the end
//! let sites = sites.lock().unwrap();
//! let innermost = sites.sites()[0].frames[0];
//! assert_eq!(sites.modules()[0].path, std::env::current_exe()?.to_str().unwrap());
//! # assert_eq!((site, innermost.module), (SiteId(0), 0));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! What it deliberately does not do: it never guesses (a frame without CFI ends the walk), tracks no registers but
//! the stack and frame pointers, links no unwinding library (libunwind exports the exception-handling entry points
//! and would take over the program's), resolves no names (readers do, with `st-symbols`), and takes no lock while
//! the memo or the thread's own table of sites answers.
//!
//! *Limits:* x86-64 Linux with glibc's `dl_iterate_phdr`. Code unloaded by `dlclose` and replaced by other code at
//! the same addresses is noticed at the first address not seen before, not earlier.
#![expect(unsafe_code, reason = "reads stack slots and the loader's mapped tables")]

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("st-unwind knows the registers and loader of x86-64 Linux only");

mod cfi;
mod exits;
mod frame;
mod memo;
mod modules;
mod proof;
mod python;
mod rules;
mod sites;
mod stack;
mod unwinder;

pub use frame::{Registers, StartFrame, capture_registers, stack_pointer};
pub use proof::Proof;
pub use python::{Python, PythonFrame, PythonPlace, UnknownPython};
pub use sites::{ModuleRecord, SiteFrame, SiteId, SiteInterner, SiteRecord};
pub use unwinder::{DEPTH_LIMIT, Statistics, Unwinder};
