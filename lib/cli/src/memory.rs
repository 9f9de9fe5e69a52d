//! Allocators of programs: where memory ends Rust's own runtime ends a process by SIGABRT.
#![expect(unsafe_code, reason = "is an allocator, and asks the system before the runtime starts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CStr, c_char};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::temporary;

/// An allocator for programs: where there is no memory left, the program says so and ends with status 1, and leaves no
/// unfinished output behind.
#[derive(Debug)]
pub struct Memory<A> {
    /// Name of the program; asks for no memory.
    pub tool: fn() -> &'static str,
    /// Where the memory is from.
    pub from: A,
}

impl<A> Memory<A> {
    fn checked(&self, memory: *mut u8, wanted: usize) -> *mut u8 {
        if memory.is_null() {
            self.end(wanted);
        }
        memory
    }

    /// Asks for no memory.
    #[cold]
    fn end(&self, wanted: usize) -> ! {
        static ENDING: AtomicBool = AtomicBool::new(false);
        while ENDING.swap(true, Ordering::Relaxed) {
            // Another thread is ending the process.
            std::thread::park();
        }
        let tool = (self.tool)();
        let _ = writeln!(
            std::io::stderr(),
            "{tool}: out of memory: no {wanted} bytes more; is an input damaged?"
        );
        temporary::remove();
        std::process::exit(1)
    }
}

// SAFETY: all memory is the inner allocator's, and goes back to it as it came.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Memory<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the inner allocator asks for.
        self.checked(unsafe { self.from.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        self.checked(unsafe { self.from.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        self.checked(unsafe { self.from.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { self.from.dealloc(memory, layout) }
    }
}

/// An allocator for a file that is several programs, one by the name that it is started under: some take their memory from `theirs`,
/// the others and what is started under another name from the system.
#[derive(Debug)]
pub struct ByName<A> {
    names: &'static [&'static str],
    theirs: A,
    /// Nothing yet, that the program is none of those named, or that it is one.
    found: AtomicU8,
}

const UNKNOWN: u8 = 0;
const OTHER: u8 = 1;
const NAMED: u8 = 2;

unsafe extern "C" {
    /// The C library's, set before anything of the program runs: memory is asked for before `main`.
    static program_invocation_short_name: *const c_char;
}

impl<A> ByName<A> {
    /// Programs of these names have their memory from `theirs`.
    pub const fn new(names: &'static [&'static str], theirs: A) -> Self {
        Self { names, theirs, found: AtomicU8::new(UNKNOWN) }
    }

    fn is_named(&self) -> bool {
        match self.found.load(Ordering::Relaxed) {
            UNKNOWN => self.look(),
            found => found == NAMED,
        }
    }

    #[cold]
    fn look(&self) -> bool {
        // SAFETY: a string that lives as long as the process, and that only the program itself could change.
        let name = unsafe { CStr::from_ptr(program_invocation_short_name) };
        let named = self.names.iter().any(|n| n.as_bytes() == name.to_bytes());
        // Threads that look at the same time find the same.
        self.found.store(if named { NAMED } else { OTHER }, Ordering::Relaxed);
        named
    }
}

// SAFETY: the name does not change, so all memory goes back to the allocator that it came from, as it came.
unsafe impl<A: GlobalAlloc> GlobalAlloc for ByName<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the allocators ask for.
        unsafe { if self.is_named() { self.theirs.alloc(layout) } else { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            if self.is_named() { self.theirs.alloc_zeroed(layout) } else { System.alloc_zeroed(layout) }
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            if self.is_named() {
                self.theirs.realloc(memory, layout, size)
            } else {
                System.realloc(memory, layout, size)
            }
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe {
            if self.is_named() { self.theirs.dealloc(memory, layout) } else { System.dealloc(memory, layout) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Counts what it is asked for.
    struct Counting(Cell<usize>);

    // SAFETY: the system's allocator.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            self.0.set(self.0.get() + 1);
            // SAFETY: the caller's promises.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
            // SAFETY: the caller's promises.
            unsafe { System.dealloc(memory, layout) }
        }
    }

    fn asked_of_theirs(names: &'static [&'static str]) -> usize {
        let memory = ByName::new(names, Counting(Cell::new(0)));
        let layout = Layout::new::<u64>();
        // SAFETY: what is allocated is freed, once.
        unsafe { memory.dealloc(memory.alloc(layout), layout) };
        memory.theirs.0.get()
    }

    #[test]
    fn only_programs_that_are_named_have_memory_of_their_own() {
        let own = std::env::args().next().unwrap();
        let own = own.rsplit('/').next().unwrap().to_owned().leak();
        assert_eq!(asked_of_theirs(vec!["st-merge", &*own].leak()), 1);
        assert_eq!(asked_of_theirs(&["st-merge"]), 0);
    }
}
