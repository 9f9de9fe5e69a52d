//! The lock around the recorder's state. `make loom` tries the orders in which its threads' steps can come.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence};
use std::time::Duration;

/// A lock held for tens of nanoseconds and hardly ever contended; it does not poison and does not allocate.
///
/// It is biased towards one thread, the *owner*: as long as no other thread has asked for it, the owner takes it
/// with plain stores and loads, which is what most programs pay. The first other thread ends the bias for ever: it
/// announces that, makes every running thread pass a memory barrier (`membarrier`), so that the owner has either
/// seen the announcement or is seen inside, and waits for it to leave. From then on all take the same spin lock.
pub(crate) struct Lock<T> {
    /// The owner is inside by its bias. Only the owner writes it.
    owner_inside: AtomicBool,
    /// The bias has ended (or never began).
    shared: AtomicBool,
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through the guard only, and one guard exists at a time: by `held`, or, while the bias
// lasts, because there is one owner and `end_bias` waits for it.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            owner_inside: AtomicBool::new(false),
            shared: AtomicBool::new(true),
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Begins the bias, if the kernel can end it again. By a thread that holds the lock, or before any other uses it; at most one
    /// thread passes `owner` as true from then on.
    pub(crate) fn begin_bias(&self) {
        if membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) {
            self.shared.store(false, Ordering::Release);
        }
    }

    /// Takes the lock. `owner`: the caller is the thread that began the bias.
    #[inline]
    pub(crate) fn lock(&self, owner: bool) -> Guard<'_, T> {
        if owner {
            self.owner_inside.store(true, Ordering::Relaxed);
            // The processor may still swap the store and the load; the barrier in `end_bias` is for that.
            compiler_fence(Ordering::SeqCst);
            if !self.shared.load(Ordering::Acquire) {
                return Guard { lock: self, biased: true };
            }
            self.owner_inside.store(false, Ordering::Release);
        }
        if self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait();
        }
        if !self.shared.load(Ordering::Acquire) {
            self.end_bias();
        }
        Guard { lock: self, biased: false }
    }

    /// As [`Lock::lock`], but gives up if the caller itself seems to hold the lock: a signal handler that ends the process.
    pub(crate) fn lock_at_exit(&self, owner: bool) -> Option<Guard<'_, T>> {
        if owner && self.owner_inside.load(Ordering::Relaxed) {
            return None;
        }
        let free = || !self.held.load(Ordering::Relaxed);
        (0..1000)
            .any(|_| {
                free() || {
                    std::thread::sleep(Duration::from_millis(1));
                    false
                }
            })
            .then(|| self.lock(owner))
    }

    /// Releases what a guard holds that was forgotten.
    ///
    /// # Safety
    ///
    /// There is such a guard, and it was not taken by the bias.
    pub(crate) unsafe fn release(&self) {
        self.held.store(false, Ordering::Release);
    }

    #[cold]
    fn wait(&self) {
        spin_until(|| {
            self.held.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
        });
    }

    /// Called by a thread that is not the owner and holds `held`.
    #[cold]
    fn end_bias(&self) {
        self.shared.store(true, Ordering::SeqCst);
        // It cannot fail: it was registered. Should it all the same, the slow barrier does the same for all processes.
        if !membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
            membarrier(libc::MEMBARRIER_CMD_GLOBAL);
        }
        spin_until(|| !self.owner_inside.load(Ordering::Acquire));
    }
}

fn spin_until(done: impl Fn() -> bool) {
    let mut spins = 0;
    while !done() {
        spins += 1;
        if spins % 64 == 0 {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// The system call; whether it succeeded.
fn membarrier(command: c_int) -> bool {
    // SAFETY: takes two integers beside the command, and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) >= 0 }
}

/// Access to the value.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// Taken by the owner's bias.
    biased: bool,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock, and is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        let mark = if self.biased { &self.lock.owner_inside } else { &self.lock.held };
        mark.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_turns() {
        static SUM: Lock<u64> = Lock::new(0);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| (0..10_000).for_each(|_| *SUM.lock(false) += 1));
            }
        });
        assert_eq!(*SUM.lock(false), 40_000);
    }

    #[test]
    fn the_owner_gives_way_to_others() {
        for delay in 0..200 {
            let sum = Lock::new(0_u64);
            sum.begin_bias();
            std::thread::scope(|s| {
                let others = || {
                    (0..delay * 10).for_each(|_| std::hint::spin_loop());
                    (0..500).for_each(|_| *sum.lock(false) += 1);
                };
                s.spawn(others);
                s.spawn(others);
                (0..5_000).for_each(|_| *sum.lock(true) += 1);
            });
            assert_eq!(*sum.lock(true), 6_000);
        }
    }
}
