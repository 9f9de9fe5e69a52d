//! What Rust's own runtime makes of a process and we do not want: a closed standard output that takes everything, and an end by
//! SIGABRT where memory ends.
#![expect(unsafe_code, reason = "asks the system before the runtime starts, and is an allocator")]

use std::alloc::{GlobalAlloc, Layout};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::output::remove_temporary;

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Called by the loader before `main`: the runtime opens `/dev/null` in the place of descriptors that are closed.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: asking for a descriptor's flags changes nothing, whether or not it is open.
    let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } < 0;
    CLOSED.store(closed, Ordering::Relaxed);
}

/// Whether standard output was closed when the program started.
pub(crate) fn stdout_is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

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
        remove_temporary();
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
