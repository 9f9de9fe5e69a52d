//! The recorder's memory: the program's `malloc`, and a reserve for when that has none left.
//!
//! Rust ends a process that has no memory. The program may well go on without it: so the recorder lives on its reserve
//! for a moment, and stops. (A request that even the reserve cannot serve ends the process; it would have to be for as
//! much as all that was recorded of a very irregular program.)

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of the reserve: addresses, and no memory until they are used.
const RESERVE: usize = 16 << 20;

#[global_allocator]
static MEMORY: Memory = Memory;

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

struct Memory;

// SAFETY: all is passed on to the system's allocator, except parts of the reserve, which are handed out once.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let p = unsafe { System.alloc(layout) };
        if p.is_null() { POOL.part(layout) } else { p }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let p = unsafe { System.alloc_zeroed(layout) };
        if p.is_null() { POOL.part(layout) } else { p }
    }

    #[inline]
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        if !POOL.holds(p) {
            // SAFETY: it came from there.
            unsafe { System.dealloc(p, layout) };
        }
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !POOL.holds(p) {
            // SAFETY: it came from there.
            let new = unsafe { System.realloc(p, layout, size) };
            if !new.is_null() {
                return new;
            }
        }
        // SAFETY: the caller's promise: the size does not overflow when rounded up to the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
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
}
