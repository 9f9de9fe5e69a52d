//! What a rank tells the launcher of itself when recording ends.

use st_model::header::INSIDE;
use st_stream::directory::NOTES;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::bindings;
use crate::message::say;
use crate::nested;
use crate::state::{NESTED, State};

/// One line: `rank=0 calls=12 nested=0 stopped=0 ended=0 MPI_File_open=1 queued_ns=7 inside=MPI_Comm_free:2 bindings=C`; `early` says that the program has
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
    let inside = inside(':');
    if !inside.is_empty() {
        let _ = write!(line, " {INSIDE}={}", inside.join(","));
    }
    let bindings = bindings::seen(&state.recorder.sites).into_iter().collect::<Vec<_>>().join(",");
    let _ = write!(line, " bindings={bindings}");
    line
}

/// The calls that were made inside of others, by function.
fn inside(between: char) -> Vec<String> {
    nested::counted().iter().map(|(name, n)| format!("{name}{between}{n}")).collect()
}

/// Tells the user of these, if there is no launcher to do it.
pub(crate) fn tell_inside(directory: &Path) {
    let inside = inside(' ');
    if !inside.is_empty() && !directory.join(NOTES).exists() {
        say(&format!("calls of rank 0 inside of others are not recorded: {}", inside.join(", ")));
    }
}
