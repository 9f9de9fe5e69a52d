//! Calls of the tools' interface where nothing is recorded: before `MPI_Init` and after `MPI_Finalize`, where it may be called, too. They
//! are forwarded as they come, and counted.

use crate::real::UNKNOWN;
use crate::state::RECORDING;
use st_stream::directory::OUTSIDE;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often each function without a row was called there.
static CALLS: [AtomicU64; UNKNOWN.len()] = [const { AtomicU64::new(0) }; UNKNOWN.len()];

/// A call of the `i`-th function without a row has returned, and is not recorded.
pub(crate) fn count(i: usize) {
    // Inside of another call, or while recording is paused, it is one of many that are not.
    if !RECORDING.load(Ordering::Relaxed)
        && let Some(calls) = CALLS.get(i)
    {
        calls.fetch_add(1, Ordering::Relaxed);
    }
}

/// Forgets them: a child's are not its parent's.
pub(crate) fn forget() {
    CALLS.iter().for_each(|calls| calls.store(0, Ordering::Relaxed));
}

/// What a launcher is told of them, `outside_MPI_T_init_thread=1 outside_...`; `None` if there were none.
pub(crate) fn note() -> Option<String> {
    let mut line = String::new();
    for (name, calls) in UNKNOWN.iter().zip(&CALLS) {
        let calls = calls.load(Ordering::Relaxed);
        if calls > 0 {
            let space = if line.is_empty() { "" } else { " " };
            let _ = write!(line, "{space}{OUTSIDE}{name}={calls}");
        }
    }
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_where_nothing_is_recorded_are_counted_by_name() {
        assert_eq!(note(), None);
        let i = UNKNOWN.iter().position(|n| *n == "MPI_T_init_thread").unwrap();
        (0..3).for_each(|_| count(i));
        assert_eq!(note().as_deref(), Some("outside_MPI_T_init_thread=3"));
        forget();
        assert_eq!(note(), None);
    }
}
