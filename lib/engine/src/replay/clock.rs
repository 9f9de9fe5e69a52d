//! Waiting as long as the program computed.
#![expect(unsafe_code, reason = "sets the kernel's timer slack")]

use st_model::num::saturate;
use std::thread::sleep;
use std::time::{Duration, Instant};

use st_replay::args::Compute;

/// A sleep is planned to end at least this long before its target; the rest is spun.
const SPUN: Duration = Duration::from_micros(50);
/// And at most this long, if sleeps tend to end late and nobody else needs the processor.
const MOST: Duration = Duration::from_millis(2);

/// Waits between calls, and keeps account of lateness.
#[derive(Debug)]
pub(crate) struct Clock {
    compute: Compute,
    /// End of the call before.
    last: Instant,
    /// How long before its target the next sleep is planned to end, at most [`Clock::most`].
    margin: Duration,
    most: Duration,
    /// Waited too long so far, to be taken off the waits to come, ns; on schedule, also what calls took longer or shorter.
    late: i64,
    /// Number of waits that were over before they began.
    late_waits: u64,
}

impl Clock {
    /// A clock that starts now. `crowd` is how many threads run on this node, if that is known.
    pub(crate) fn new(compute: Compute, crowd: Option<usize>) -> Self {
        if compute.sleeps() {
            // Sleeps may by default end 50 µs late; with a slack of 1 ns the kernel aims at the time asked for.
            // SAFETY: an option of this thread with an integer argument; no memory is passed.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        }
        // Not those of this process: each rank may be bound to one.
        // SAFETY: asks for a number.
        let processors = usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) });
        let room = processors.is_ok_and(|n| crowd.is_some_and(|crowd| crowd <= n));
        let most = if room { MOST } else { SPUN };
        Self { compute, last: Instant::now(), margin: SPUN, most, late: 0, late_waits: 0 }
    }

    /// Waits until `ns` after the end of the last call, less what earlier waits overran.
    pub(crate) fn wait(&mut self, ns: u64) {
        let time = match self.compute {
            Compute::None => return,
            Compute::Spin | Compute::Schedule => saturate(ns),
            Compute::Sleep(factor) => {
                let time = Duration::try_from_secs_f64(Duration::from_nanos(ns).as_secs_f64() * factor);
                signed(time.unwrap_or(Duration::MAX))
            }
        };
        let left = time.saturating_sub(self.late);
        let goal = self.last.checked_add(Duration::from_nanos(saturate(left)));
        let Some(goal) = goal else { return };
        self.late_waits += u64::from(ns > 0 && (left < 0 || Instant::now() > goal));
        if self.compute.sleeps() {
            self.sleep(goal);
        }
        while Instant::now() < goal {
            std::hint::spin_loop();
        }
        self.late = signed(self.last.elapsed()).saturating_sub(left);
    }

    /// Sleeps until shortly before the goal. The margin follows how late sleeps end: about one of seventeen ends after its
    /// goal, since it grows by a half then and shrinks by a fortieth else.
    fn sleep(&mut self, goal: Instant) {
        let ahead = goal.saturating_duration_since(Instant::now());
        let slept = ahead > self.margin;
        if slept {
            sleep(ahead - self.margin);
        }
        let late = slept && Instant::now() > goal;
        let margin = if late { self.margin * 3 / 2 } else { self.margin - self.margin / 40 };
        self.margin = margin.clamp(SPUN, self.most);
    }

    /// Notes that a call has ended that began at `start` and took `ns` when it was recorded.
    pub(crate) fn call_ended(&mut self, start: Instant, ns: u64) {
        self.last = Instant::now();
        if self.compute == Compute::Schedule {
            let took = signed(self.last - start);
            self.late = self.late.saturating_add(took).saturating_sub_unsigned(ns);
        }
    }

    /// When the last call ended.
    pub(crate) fn last_call(&self) -> Instant {
        self.last
    }

    /// How late the last wait ended, and how many were over before they began.
    pub(crate) fn lateness(&self) -> (Duration, u64) {
        (Duration::from_nanos(saturate(self.late)), self.late_waits)
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

fn signed(time: Duration) -> i64 {
    saturate(time.as_nanos())
}
