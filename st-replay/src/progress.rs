//! How far a replay has come, on one line that is written again and again.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::TOOL;

/// How often the line is written.
const PERIOD: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
struct Stand {
    reached: AtomicU64,
    calls: AtomicU64,
    over: AtomicBool,
}

/// Tells how far one thread of one rank has come until it is dropped; made by [`Default`] it is silent.
#[derive(Debug, Default)]
pub struct Progress {
    stand: Arc<Stand>,
    teller: Option<JoinHandle<()>>,
}

impl Progress {
    /// Of so many calls, told by another thread. Without that thread the replay goes on untold.
    pub fn new(calls: u64, mut out: impl Write + Send + 'static) -> Self {
        let stand = Arc::new(Stand { calls: AtomicU64::new(calls), ..Stand::default() });
        let (told, start) = (Arc::clone(&stand), Instant::now());
        let tell = move || {
            let mut width = 0;
            while !told.over.load(Ordering::Acquire) {
                thread::park_timeout(PERIOD);
                let (reached, calls) =
                    (told.reached.load(Ordering::Relaxed), told.calls.load(Ordering::Relaxed));
                let line = line(reached, calls, start.elapsed());
                // Blanks hide what is left of a longer one.
                let _ = write!(out, "\r{line:width$}");
                let _ = out.flush();
                width = line.len();
            }
            let _ = write!(out, "\r{:width$}\r", "");
            let _ = out.flush();
        };
        let teller = thread::Builder::new().name("progress".into()).spawn(tell).ok();
        Self { stand, teller }
    }

    /// The replay ends after so many calls already.
    pub fn ends_after(&self, calls: u64) {
        self.stand.calls.fetch_min(calls, Ordering::Relaxed);
    }

    /// So many calls have been made.
    pub fn reach(&self, calls: u64) {
        self.stand.reached.store(calls, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stand.over.store(true, Ordering::Release);
        if let Some(teller) = self.teller.take() {
            teller.thread().unpark();
            // It ends by itself; what it says does not matter any more.
            let _ = teller.join();
        }
    }
}

fn line(reached: u64, calls: u64, since: Duration) -> String {
    let percent = (u128::from(reached) * 100).checked_div(calls.into()).unwrap_or(100).min(100);
    format!("{TOOL}: {percent} %, call {reached} of {calls}, {} s", since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Clone, Default)]
    struct Said(Arc<Mutex<Vec<u8>>>);

    impl Write for Said {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_was_reached_is_said_and_wiped_out() {
        let said = Said::default();
        let progress = Progress::new(400, said.clone());
        progress.ends_after(200);
        progress.reach(50);
        thread::sleep(PERIOD + PERIOD / 2);
        drop(progress);
        let text = String::from_utf8(said.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("\rst-replay: 25 %, call 50 of 200, 0 s"), "{text:?}");
        assert!(text.ends_with(" \r"), "{text:?}");
    }

    #[test]
    fn lines_say_hundredths() {
        assert_eq!(line(0, 0, Duration::ZERO), "st-replay: 100 %, call 0 of 0, 0 s");
        assert_eq!(
            line(u64::MAX, 7, Duration::from_secs(61)),
            format!("st-replay: 100 %, call {} of 7, 61 s", u64::MAX)
        );
    }
}
