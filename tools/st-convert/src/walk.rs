//! All threads in the order of their times, or of their calls' positions where there are none.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use anyhow::Result;
use st_model::num::Exact as _;

use crate::exchanges::{Sequences, Shared};
use crate::format::Format;
use crate::requests::Requests;
use crate::thread::Thread;
use crate::trace::Trace;
use crate::way::Way;

/// Calls that are read before it is told.
const TOLD: u64 = 1 << 14;

/// Is told how many calls have been read; it fails if no more are wanted.
pub type Tell<'a> = &'a (dyn Fn(u64) -> Result<()> + Sync);

/// Hands the calls and messages in a window to a format.
///
/// *Cost:* O(words + calls · log threads); memory for what is under way.
///
/// # Errors
///
/// If a rank cannot be read back, or if the format cannot be written.
pub(crate) fn walk(trace: &Trace, way: Way, tell: Tell<'_>, format: &mut dyn Format) -> Result<Shared> {
    let window = &trace.window;
    // Room for a million that grows is twice as large for a while.
    let mut threads = Vec::with_capacity(trace.lanes.len());
    threads.extend((0..trace.lanes.len()).filter_map(|at| Thread::new(trace, at)));
    // Without an order of time threads come by their numbers.
    let order = |thread: &Thread<'_>| match way {
        Way::InTime => (0, thread.key()),
        Way::ByRank => (thread.rank(), thread.key()),
        Way::Played => (0, 0),
    };
    let mut next: BinaryHeap<Reverse<((u32, i64), u32)>> =
        threads.iter().zip(0u32..).map(|(thread, i)| Reverse((order(thread), i))).collect();
    let mut requests = Requests::new(trace.lanes.iter().map(|lane| lane.rank), way);
    let (mut shared, mut sequences, mut exchanges) = (Shared::new(way), Sequences::default(), Vec::new());
    let mut known = Vec::new();
    let mut untold = 0;
    while let Some(mut first) = next.peek_mut() {
        untold += 1;
        if untold == TOLD {
            tell(untold)?;
            untold = 0;
        }
        let Reverse((_, i)) = *first;
        let thread = &mut threads[i.to_usize()];
        let of = requests.of(thread.at());
        let more = thread.key() < window.until
            && thread.read(window, &mut shared, &mut sequences, of, &mut exchanges, format)?;
        if more {
            *first = Reverse((order(thread), i));
        } else {
            PeekMut::pop(first);
        }
        std::mem::swap(&mut known, &mut shared.known);
        for message in known.drain(..) {
            format.message(&message, &shared.groups)?;
        }
    }
    Ok(shared)
}
