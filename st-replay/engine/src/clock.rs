//! Waiting as long as the program computed.
#![expect(unsafe_code, reason = "sets the kernel's timer slack")]

use std::thread::sleep;
use std::time::{Duration, Instant};

use st_replay::args::Compute;

/// A sleep is planned to end this long before its target; the rest is spun.
const SPUN: Duration = Duration::from_micros(50);

/// Waits between calls, and keeps account of lateness.
#[derive(Debug)]
pub(crate) struct Clock {
    compute: Compute,
    /// End of the call before.
    last: Instant,
    /// Waited too long so far, to be taken off the waits to come.
    late: Duration,
    /// Number of waits that were over before they began.
    late_waits: u64,
}

impl Clock {
    /// A clock that starts now.
    pub(crate) fn new(compute: Compute) -> Self {
        if matches!(compute, Compute::Sleep(_)) {
            // Sleeps may by default end 50 µs late; with a slack of 1 ns the kernel aims at the time asked for.
            // SAFETY: an option of this thread with an integer argument; no memory is passed.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        }
        Self { compute, last: Instant::now(), late: Duration::ZERO, late_waits: 0 }
    }

    /// Waits until `ns` after the end of the last call, less what earlier waits overran.
    pub(crate) fn wait(&mut self, ns: u64) {
        let time = match self.compute {
            Compute::None => return,
            Compute::Spin => Duration::from_nanos(ns),
            Compute::Sleep(factor) => {
                Duration::try_from_secs_f64(Duration::from_nanos(ns).as_secs_f64() * factor)
                    .unwrap_or(Duration::MAX)
            }
        };
        let Some(target) = self.last.checked_add(time) else { return };
        let Some(goal) = target.checked_sub(self.late) else { return };
        self.late_waits += u64::from(ns > 0 && Instant::now() > goal);
        if matches!(self.compute, Compute::Sleep(_)) {
            let ahead = goal.saturating_duration_since(Instant::now());
            if ahead > SPUN {
                sleep(ahead - SPUN);
            }
        }
        while Instant::now() < goal {
            std::hint::spin_loop();
        }
        self.late = Instant::now().saturating_duration_since(target.checked_sub(self.late).unwrap_or(target));
    }

    /// Notes that a call has ended.
    pub(crate) fn call_ended(&mut self) {
        self.last = Instant::now();
    }

    /// When the last call ended.
    pub(crate) fn last_call(&self) -> Instant {
        self.last
    }

    /// How late the last wait ended, and how many were over before they began.
    pub(crate) fn lateness(&self) -> (Duration, u64) {
        (self.late, self.late_waits)
    }

    /// Waits until `ns` after `start`: for events whose recorded time was not spent in MPI, as a series of
    /// `MPI_Wtime`.
    pub(crate) fn fill(&mut self, start: Instant, ns: u64) {
        let last = std::mem::replace(&mut self.last, start);
        let late = std::mem::take(&mut self.late);
        self.wait(ns);
        (self.last, self.late) = (last, late);
    }
}
