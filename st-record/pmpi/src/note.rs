//! What a rank tells the launcher of itself when recording ends.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use crate::bindings;
use crate::state::{NESTED, State};

/// One line: `rank=0 calls=12 nested=0 stopped=0 ended=0 MPI_File_open=1 queued_ns=7 bindings=C`; `early` says that the program has
/// not come to its end.
pub(crate) fn line(state: &State, early: bool) -> String {
    let mut line = format!(
        "rank={} calls={} nested={} stopped={} ended={}",
        state.rank,
        state.recorder.calls(),
        NESTED.load(Ordering::Relaxed),
        u8::from(state.stopped),
        u8::from(early)
    );
    for (name, n) in state.opaque_calls() {
        let _ = write!(line, " {name}={n}");
    }
    if let Some(ns) = state.queued.total() {
        let _ = write!(line, " queued_ns={ns}");
    }
    let bindings = bindings::seen(&state.recorder.sites).into_iter().collect::<Vec<_>>().join(",");
    let _ = write!(line, " bindings={bindings}");
    line
}
