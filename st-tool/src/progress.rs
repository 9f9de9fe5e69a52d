//! A progress line on standard error.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Shortest time between two drawings.
const PERIOD: Duration = Duration::from_millis(100);

/// A line `tool: what: done of total` that rewrites itself, or nothing at all.
///
/// Shared between threads: [`Progress::add`] is an addition and, at most every 100 ms, a short line.
#[derive(Debug)]
pub struct Progress {
    label: String,
    total: u64,
    done: AtomicU64,
    drawn: Option<Mutex<Drawn>>,
}

#[derive(Debug)]
struct Drawn {
    last: Instant,
    width: usize,
    terminal: bool,
}

impl Progress {
    pub(crate) fn new(tool: &str, what: &str, total: u64, visible: bool) -> Self {
        let drawn = Drawn { last: Instant::now(), width: 0, terminal: io::stderr().is_terminal() };
        let drawn = visible.then(|| Mutex::new(drawn));
        Self { label: format!("{tool}: {what}"), total, done: AtomicU64::new(0), drawn }
    }

    /// Counts `amount` more as done.
    pub fn add(&self, amount: u64) {
        let done = self.done.fetch_add(amount, Ordering::Relaxed) + amount;
        let Some(drawn) = &self.drawn else { return };
        // Another thread is drawing: its line will do.
        let Ok(mut drawn) = drawn.try_lock() else { return };
        if drawn.last.elapsed() >= PERIOD {
            let line = format!("{}: {done} of {}", self.label, self.total);
            drawn.last = Instant::now();
            // A line that cannot be shown is no reason to stop working.
            let _ = drawn.show(&line);
        }
    }
}

impl Drawn {
    fn show(&mut self, line: &str) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        if !self.terminal {
            return writeln!(stderr, "{line}");
        }
        write!(stderr, "\r{line:<width$}", width = self.width)?;
        self.width = line.chars().count();
        stderr.flush()
    }
}

impl Drop for Progress {
    /// Wipes the line, so that the next message stands alone.
    fn drop(&mut self) {
        if let Some(Ok(drawn)) = self.drawn.as_mut().map(Mutex::get_mut)
            && drawn.terminal
            && drawn.width > 0
        {
            let _ = write!(io::stderr().lock(), "\r{:width$}\r", "", width = drawn.width);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_add_up_and_nothing_is_drawn_when_hidden() {
        let progress = Progress::new("st-merge", "ranks", 10, false);
        progress.add(3);
        progress.add(4);
        assert_eq!(progress.done.load(Ordering::Relaxed), 7);
        assert!(progress.drawn.is_none());
    }
}
