//! Which addresses are stack that may be read.

use std::ops::Range;

/// Bytes of a saved register.
const WORD: u64 = 8;

/// The stack of a thread, and stacks of other kinds (alternate signal stacks, coroutines) met on it.
#[derive(Debug)]
pub(crate) struct Stacks {
    /// Addresses of the thread's own stack.
    own: Range<u64>,
    /// Readable mappings that other stacks were found in, latest last.
    others: Vec<Range<u64>>,
}

/// Other stacks remembered per thread; more are looked up again.
const MAX_OTHERS: usize = 16;

impl Stacks {
    /// The calling thread's.
    pub(crate) fn of_this_thread() -> Self {
        Self { own: own_stack().unwrap_or_default(), others: Vec::new() }
    }
    /// The readable part of the thread's own stack above a live stack pointer.
    #[inline(always)]
    pub(crate) fn own_window(&self, stack_pointer: u64) -> Option<Window> {
        window(&self.own, stack_pointer)
    }
    /// The readable part of any stack above a live stack pointer, from the kernel's list of mappings if need be.
    #[cold]
    pub(crate) fn any_window(&mut self, stack_pointer: u64) -> Option<Window> {
        if let Some(found) = self.own_window(stack_pointer) {
            return Some(found);
        }
        // A mapping may have gone since; the stack pointer is live, so a mapping that holds it is not stale unless
        // a smaller one took its place, and then the frames on it still lie within the smaller one.
        if let Some(found) = self.others.iter().rev().find_map(|range| window(range, stack_pointer)) {
            return Some(found);
        }
        let range = mapping_of(stack_pointer)?;
        let found = window(&range, stack_pointer);
        if self.others.len() == MAX_OTHERS {
            self.others.remove(0);
        }
        self.others.push(range);
        found
    }
}

/// Stack slots that may be read: words from a live stack pointer up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    low: u64,
    /// Distance from `low` to the last whole word.
    span: u64,
}

impl Window {
    /// Whether a word lies at this offset from the window's beginning.
    #[inline(always)]
    pub(crate) fn holds(&self, offset: u64) -> bool {
        offset <= self.span
    }

    /// The word in a slot, if the slot is aligned and in the window.
    #[inline(always)]
    pub(crate) fn read(&self, slot: u64) -> Option<u64> {
        if slot.wrapping_sub(self.low) > self.span || !slot.is_multiple_of(WORD) {
            return None;
        }
        // SAFETY: the slot is an aligned word between a live stack pointer and the end of its stack.
        Some(unsafe { read_word(slot) })
    }
}

/// The same number: addresses have 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "usize has 64 bits")]
#[inline(always)]
pub(crate) const fn word(n: u64) -> usize {
    const { assert!(usize::BITS == u64::BITS) };
    n as usize
}

/// Reads a word of memory.
///
/// # Safety
///
/// The address must be aligned and readable.
#[inline(always)]
pub(crate) unsafe fn read_word(address: u64) -> u64 {
    // SAFETY: the caller vouches for the address. Volatile, because the slot belongs to somebody else's frame.
    unsafe { std::ptr::with_exposed_provenance::<u64>(word(address)).read_volatile() }
}

#[inline(always)]
fn window(range: &Range<u64>, stack_pointer: u64) -> Option<Window> {
    let room = range.end.checked_sub(stack_pointer)?;
    (range.start <= stack_pointer && room >= WORD && stack_pointer.is_multiple_of(WORD))
        .then(|| Window { low: stack_pointer, span: room - WORD })
}

/// Bounds of the calling thread's stack as the thread library knows them.
fn own_stack() -> Option<Range<u64>> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the attributes are initialised by the call, used only if it succeeded, and destroyed once.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let (mut low, mut size) = (std::ptr::null_mut(), 0);
        let status = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        let low = low.addr() as u64;
        (status == 0).then(|| low..low.saturating_add(size as u64))
    }
}

/// The readable mapping that an address lies in, from `/proc/self/maps`.
fn mapping_of(address: u64) -> Option<Range<u64>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
        (range.contains(&address) && rest.starts_with('r')).then_some(range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_begin_at_the_stack_pointer_and_end_with_the_stack() {
        let word = 77_u64;
        let here = (&raw const word).expose_provenance() as u64;
        let mut stacks = Stacks::of_this_thread();
        let own = stacks.own_window(here).expect("a local variable is on the stack");
        assert_eq!(own.read(here), Some(77));
        assert_eq!(own.read(here - 8), None);
        assert_eq!(own.read(here + 1), None);
        let end = stacks.own.end;
        assert!(own.read(end - 8).is_some());
        assert_eq!(own.read(end), None);
        assert!(stacks.own_window(end).is_none());
        let boxed = Box::new([5_u64, 6]);
        let heap = (&raw const boxed[0]).expose_provenance() as u64;
        assert!(stacks.own_window(heap).is_none());
        let other = stacks.any_window(heap).expect("the heap is mapped");
        assert_eq!((other.read(heap), other.read(heap + 8)), (Some(5), Some(6)));
        assert!(stacks.any_window(8).is_none());
    }
}
