//! A replay that no longer gets on ends, and says where it stands.
//!
//! A thread beside the replaying one looks every second whether that has been in one and the same call for longer than
//! the limit, and than ten times as long as the call took when it was recorded: a call may have to wait for other ranks
//! as long as it did then.

use st_model::num::{narrow, saturate};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How many times a recorded duration is waited for.
const PATIENCE: u64 = 10;
/// Time between two looks, at most.
const LOOK: Duration = Duration::from_secs(1);

/// Where the replay stands. Written by the replaying thread, read by the other.
#[derive(Debug, Default)]
struct Stand {
    /// 2 · position of the call + 1 while the call is made.
    inside: AtomicU64,
    /// Its symbol.
    sym: AtomicU64,
    /// When it may at the latest end, ns since the start.
    until: AtomicU64,
}

/// A call that does not end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stalled {
    /// Its symbol.
    pub sym: u32,
    /// Its position on the rank.
    pub index: u64,
    /// How long it has taken so far.
    pub since: Duration,
}

/// Watches one replaying thread.
#[derive(Debug)]
pub struct Watchdog {
    stand: Arc<Stand>,
    start: Instant,
    limit: u64,
}

impl Watchdog {
    /// Starts to watch; `stalled` is called once, from another thread, if a call does not end. A limit of zero watches
    /// nothing.
    pub fn new(limit: Duration, stalled: impl FnOnce(Stalled) + Send + 'static) -> Self {
        let stand = Arc::new(Stand::default());
        let start = Instant::now();
        let dog = Self { stand: Arc::clone(&stand), start, limit: nanos(limit) };
        if !limit.is_zero() {
            let watched = Arc::downgrade(&stand);
            drop(stand);
            let builder = thread::Builder::new().name("watchdog".into());
            // Without the thread the replay goes on unwatched.
            let _ = builder.spawn(move || {
                while let Some(stand) = watched.upgrade() {
                    if let Some(call) = overdue(&stand, nanos(start.elapsed()), nanos(limit)) {
                        return stalled(call);
                    }
                    drop(stand);
                    thread::sleep(LOOK.min(limit / 4));
                }
            });
        }
        dog
    }

    /// A call begins that took so many ns when it was recorded.
    pub fn enter(&self, sym: u32, index: u64, recorded: u64) {
        if self.limit > 0 {
            let allowed = self.limit.max(recorded.saturating_mul(PATIENCE));
            let until = nanos(self.start.elapsed()).saturating_add(allowed);
            self.stand.sym.store(sym.into(), Ordering::Relaxed);
            self.stand.until.store(until, Ordering::Relaxed);
            self.stand.inside.store(2 * index + 1, Ordering::Release);
        }
    }

    /// It has ended.
    pub fn leave(&self) {
        self.stand.inside.store(0, Ordering::Release);
    }
}

fn nanos(time: Duration) -> u64 {
    saturate(time.as_nanos())
}

fn overdue(stand: &Stand, now: u64, limit: u64) -> Option<Stalled> {
    let inside = stand.inside.load(Ordering::Acquire);
    let until = stand.until.load(Ordering::Relaxed);
    if inside == 0 || now < until {
        return None;
    }
    let sym = narrow(stand.sym.load(Ordering::Relaxed));
    // What was read belongs together if the call is still the same.
    if stand.inside.load(Ordering::Acquire) != inside {
        return None;
    }
    Some(Stalled { sym, index: inside / 2, since: Duration::from_nanos(now - until + limit) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn watched(limit: u64) -> (Watchdog, mpsc::Receiver<Stalled>) {
        let (said, heard) = mpsc::channel();
        let dog = Watchdog::new(Duration::from_millis(limit), move |s| said.send(s).unwrap_or(()));
        (dog, heard)
    }

    #[test]
    fn a_call_that_does_not_end_is_named() {
        let (dog, heard) = watched(40);
        dog.enter(3, 0, 0);
        dog.leave();
        dog.enter(7, 12, 0);
        let stalled = heard.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!((stalled.sym, stalled.index), (7, 12));
        assert!(stalled.since >= Duration::from_millis(40));
    }

    #[test]
    fn calls_that_end_and_calls_that_took_long_are_left_alone() {
        let (dog, heard) = watched(40);
        dog.enter(1, 0, 3_600_000_000_000);
        assert!(heard.recv_timeout(Duration::from_millis(200)).is_err());
        dog.leave();
        assert!(heard.recv_timeout(Duration::from_millis(100)).is_err());
        drop(dog);
        assert!(heard.recv_timeout(Duration::from_secs(20)) == Err(mpsc::RecvTimeoutError::Disconnected));
        let (dog, heard) = watched(0);
        dog.enter(1, 0, 0);
        assert!(heard.recv_timeout(Duration::from_millis(100)).is_err());
    }
}
