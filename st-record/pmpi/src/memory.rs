//! The recorder's memory: a heap of its own, and a reserve for when the system has no more for it.
//!
//! The heap is not the program's `malloc`: what a recorder keeps would come to lie between what the program allocates, and
//! there are limits that count the pages which the program's memory is on. Open MPI, for one, attaches memory to a dynamic
//! window by the page, at most 64 of them. (The few blocks that zstd works in are the program's `malloc` all the same.)
//!
//! Rust ends a process that has no memory. The program may well go on without it: so the recorder lives on its reserve
//! for a moment, and stops. (A request that even the reserve cannot serve ends the process; it would have to be for as
//! much as all that was recorded of a very irregular program.)

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

use dlmalloc::Dlmalloc;

use crate::local;
use crate::lock::Lock;

/// Bytes of the reserve: addresses, and no memory until they are used.
const RESERVE: usize = 16 << 20;

/// From so many bytes on a block has pages of its own: it grows without being copied, and leaves no hole.
const LARGE: usize = 128 << 10;

/// What pages are aligned to, at least.
const PAGE: usize = 4096;

#[global_allocator]
static MEMORY: Memory = Memory;

static HEAP: Lock<Dlmalloc> = Lock::new(Dlmalloc::new());
static POOL: Pool = Pool(UnsafeCell::new([0; RESERVE]));
/// Bytes of the reserve in use; none is given back.
static USED: AtomicUsize = AtomicUsize::new(0);
/// The reserve was used, and nobody has been told.
static LOW: AtomicBool = AtomicBool::new(false);

#[repr(align(64))]
struct Pool(UnsafeCell<[u8; RESERVE]>);

// SAFETY: only addresses are taken here; each part is handed out once.
unsafe impl Sync for Pool {}

impl Pool {
    fn start(&self) -> *mut u8 {
        self.0.get().cast()
    }

    fn holds(&self, p: *mut u8) -> bool {
        (p.addr()).wrapping_sub(self.start().addr()) < RESERVE
    }

    /// A part that nobody has had, so all its bytes are 0; null if there is none.
    #[cold]
    fn part(&self, layout: Layout) -> *mut u8 {
        LOW.store(true, Ordering::Relaxed);
        let end = |used: usize| {
            let at = used.checked_next_multiple_of(layout.align())?;
            at.checked_add(layout.size()).filter(|end| *end <= RESERVE)
        };
        match USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end) {
            // SAFETY: within the pool, since the part ends within it. The pool is aligned to 64 bytes, which is more than
            // is ever asked for.
            Ok(used) => unsafe { self.start().add(used.next_multiple_of(layout.align())) },
            Err(_) => std::ptr::null_mut(),
        }
    }
}

/// Does something in the heap. A signal handler that interrupts it can tell ([`is_inside`]).
#[inline]
fn with_heap<R>(work: impl FnOnce(&mut Dlmalloc) -> R) -> R {
    local::with(|l| {
        l.in_heap.set(true);
        // For a handler of this thread: no earlier, and no later.
        compiler_fence(Ordering::SeqCst);
        let done = work(&mut HEAP.lock(false));
        compiler_fence(Ordering::SeqCst);
        l.in_heap.set(false);
        done
    })
}

/// Whether the calling thread is within the heap: a signal handler that has interrupted it there would wait for itself.
pub(crate) fn is_inside() -> bool {
    local::with(|l| l.in_heap.get())
}

/// Whether a block has pages of its own.
#[inline]
fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= PAGE
}

/// Pages, all bytes 0; null if there are none.
fn map(size: usize) -> *mut u8 {
    let (mode, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: new pages, anywhere.
    pages(unsafe { libc::mmap(std::ptr::null_mut(), size, mode, kind, -1, 0) })
}

/// What the system says of pages: where they are; null if there are none.
fn pages(at: *mut libc::c_void) -> *mut u8 {
    if at == libc::MAP_FAILED { std::ptr::null_mut() } else { at.cast() }
}

/// A block in another size; null if it cannot be had without a new one.
///
/// # Safety
///
/// As for [`GlobalAlloc::realloc`]; `wanted` is the layout of the new size.
#[inline]
unsafe fn resize(p: *mut u8, layout: Layout, wanted: Layout) -> *mut u8 {
    if is_large(layout) != is_large(wanted) {
        return std::ptr::null_mut();
    }
    if !is_large(layout) {
        // SAFETY: it came from the heap.
        return with_heap(|heap| unsafe { heap.realloc(p, layout.size(), layout.align(), wanted.size()) });
    }
    // SAFETY: the pages of the block, which nobody else has.
    let at = unsafe { libc::mremap(p.cast(), layout.size(), wanted.size(), libc::MREMAP_MAYMOVE) };
    pages(at)
}

struct Memory;

// SAFETY: all is passed on to the system or to an allocator, except parts of the reserve, which are handed out once.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let p = if is_large(layout) {
            map(layout.size())
        } else {
            // SAFETY: the caller's promise.
            with_heap(|heap| unsafe { heap.malloc(layout.size(), layout.align()) })
        };
        if p.is_null() { POOL.part(layout) } else { p }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let p = if is_large(layout) {
            map(layout.size())
        } else {
            // SAFETY: the caller's promise.
            with_heap(|heap| unsafe { heap.calloc(layout.size(), layout.align()) })
        };
        if p.is_null() { POOL.part(layout) } else { p }
    }

    #[inline]
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        if POOL.holds(p) {
            return;
        }
        if is_large(layout) {
            // SAFETY: the block's own pages.
            unsafe { libc::munmap(p.cast(), layout.size()) };
        } else {
            // SAFETY: it came from there.
            with_heap(|heap| unsafe { heap.free(p, layout.size(), layout.align()) });
        }
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise: the size does not overflow when rounded up to the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if !POOL.holds(p) {
            // SAFETY: it is not the reserve's, so it came from where its layout says.
            let new = unsafe { resize(p, layout, wanted) };
            if !new.is_null() {
                return new;
            }
        }
        // SAFETY: the caller's promise: the size is not 0.
        let new = unsafe { self.alloc(wanted) };
        if !new.is_null() {
            // SAFETY: both are at least this long, and different.
            unsafe { new.copy_from_nonoverlapping(p, layout.size().min(size)) };
            // SAFETY: nobody uses it any longer.
            unsafe { self.dealloc(p, layout) };
        }
        new
    }
}

/// Before a fork: no other thread is within the heap, and none enters it. The thread itself may be, which is then a signal
/// handler's fork.
pub(crate) extern "C" fn before_fork() {
    local::with(|l| {
        if !l.in_heap.replace(true) {
            compiler_fence(Ordering::SeqCst);
            std::mem::forget(HEAP.lock(false));
            l.forking.set(true);
        }
    });
}

/// After a fork, in the parent and in the child: what [`before_fork`] held is free.
pub(crate) extern "C" fn after_fork() {
    local::with(|l| {
        if l.forking.replace(false) {
            // SAFETY: the thread that forked took it, and in the child it is the only one.
            unsafe { HEAP.release() };
            compiler_fence(Ordering::SeqCst);
            l.in_heap.set(false);
        }
    });
}

/// Whether the program's memory has run out; says it once.
#[inline]
pub(crate) fn has_run_out() -> bool {
    LOW.load(Ordering::Relaxed) && LOW.swap(false, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_serves_what_nobody_else_can() {
        let layout = Layout::from_size_align(1000, 32).unwrap();
        let p = POOL.part(layout);
        assert!(POOL.holds(p) && p.addr().is_multiple_of(32) && has_run_out() && !has_run_out());
        // SAFETY: a part of 1000 bytes, grown to twice as many and given back.
        unsafe {
            p.add(999).write(7);
            let q = MEMORY.realloc(p, layout, 2000);
            assert!(!POOL.holds(q) && q.add(999).read() == 7);
            MEMORY.dealloc(q, Layout::from_size_align(2000, 32).unwrap());
        }
        assert!(POOL.part(Layout::from_size_align(RESERVE, 1).unwrap()).is_null() && has_run_out());
    }

    #[test]
    fn blocks_keep_what_they_hold_from_small_to_large_and_back() {
        let sizes = [1000, LARGE - 1, LARGE, 10 * LARGE + 1, LARGE + 1, 2000, 5 * LARGE, 100];
        let of = |size| Layout::from_size_align(size, 16).unwrap();
        // SAFETY: each layout is that of the block at the time.
        unsafe {
            let mut p = MEMORY.alloc_zeroed(of(64));
            p.add(63).write(7);
            for (before, size) in std::iter::once(64).chain(sizes).zip(sizes) {
                p = MEMORY.realloc(p, of(before), size);
                assert!(!p.is_null() && p.addr().is_multiple_of(16));
                assert_eq!([p.read(), p.add(63).read()], [0, 7]);
                p.add(size - 1).write(1);
            }
            MEMORY.dealloc(p, of(100));
        }
    }

    #[test]
    fn a_handler_that_interrupts_the_heap_can_tell_and_can_fork() {
        assert!(!is_inside());
        with_heap(|_| {
            before_fork();
            after_fork();
            assert!(is_inside());
        });
        before_fork();
        assert!(is_inside());
        after_fork();
        assert!(!is_inside());
    }

    #[test]
    fn a_child_made_while_others_allocate_can_allocate() {
        let done = AtomicBool::new(false);
        let allocate = || drop(std::hint::black_box(vec![1_u8; 100]));
        // SAFETY: the handlers only take and release a lock. The child does no more than to allocate, and ends.
        let child = || unsafe {
            let mut status = 1;
            match libc::fork() {
                0 => {
                    libc::alarm(10);
                    allocate();
                    libc::_exit(0)
                }
                child => libc::waitpid(child, &raw mut status, 0),
            };
            status
        };
        // SAFETY: as above.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
        let statuses: Vec<i32> = std::thread::scope(|s| {
            s.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    allocate();
                }
            });
            let statuses = (0..200).map(|_| child()).collect();
            done.store(true, Ordering::Relaxed);
            statuses
        });
        assert_eq!(statuses, [0; 200]);
    }
}
