//! Reductions while the program runs (`ST_REDUCE_EVERY`): what all ranks have so far becomes one stream on rank 0.
//!
//! Ranks begin one where they meet anyway ([`crate::sync`]), climb the tree of the reduction in `MPI_Finalize` with its
//! time limits, and go on whatever comes of it. Nothing that a rank keeps changes by it: streams, journals and the
//! merged stream of the end are those of a run without. If all else is lost, `interim.st` has every rank's calls up to
//! then.

use super::climb::Climb;
use super::levels::Levels;
use super::{Asked, climb};
use crate::clock::processor_time;
use crate::message::note_down;
use crate::sync::{self, Tree as Ranks};
use st_model::header::Header;
use st_model::section::Section;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How often it went well, and did not, on rank 0.
static MADE: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);
/// Processor time of this rank's, ns.
static SPENT: AtomicI64 = AtomicI64::new(0);

/// Numbers of those that failed here, the last ones: late ranks may still send something for them.
static LATE: Mutex<Vec<i64>> = Mutex::new(Vec::new());
const LATE_AT_MOST: usize = 64;

/// Takes in what has come too late: an MPI may complain of messages that nobody has received.
fn discard(asked: &Asked, ranks: Ranks) {
    let late = LATE.lock().unwrap_or_else(PoisonError::into_inner);
    late.iter().for_each(|number| Climb::new(ranks, asked.clock, asked.patience, *number).discard());
}

/// Reduces what the ranks have `so_far`: called by all that have met for it. Returns what is to be said of it.
pub(crate) fn interim(
    asked: &Asked,
    ranks: Option<Ranks>,
    so_far: impl FnOnce() -> Option<(Header, Section)>,
) -> Option<String> {
    let (ranks, cpu) = (ranks?, processor_time());
    discard(asked, ranks);
    // What they cost is told as a whole.
    let done = climb(asked, ranks, &Levels::default(), so_far);
    SPENT.fetch_add(processor_time() - cpu, Ordering::Relaxed);
    sync::reduced(asked.clock);
    if done.is_err() {
        let mut late = LATE.lock().unwrap_or_else(PoisonError::into_inner);
        late.push(asked.number);
        let most = late.len().saturating_sub(LATE_AT_MOST);
        late.drain(..most);
    }
    if ranks.rank > 0 {
        return None;
    }
    let Err(why) = done else {
        MADE.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    let first = FAILED.fetch_add(1, Ordering::Relaxed) == 0;
    first.then(|| format!("{why}; no interim reduction this time, and not a word of others that fail"))
}

/// Called when the program has come to its end: tells the launcher how many there were. Returns what is to be said if
/// there were not as many as asked for.
pub(crate) fn interims(asked: &Asked, ranks: Option<Ranks>) -> Option<String> {
    discard(asked, ranks?);
    let (made, failed) = (MADE.load(Ordering::Relaxed), FAILED.load(Ordering::Relaxed));
    let spent = SPENT.load(Ordering::Relaxed);
    if spent > 0 {
        let note = format!("interim={made} interim_failed={failed} interim_ns={spent}");
        note_down(&asked.directory, &note);
    }
    let since = match sync::lacks_reductions(asked.clock)? {
        0 => "no interim reduction took place".to_owned(),
        n => format!("no interim reduction took place after the first {n}"),
    };
    Some(format!("{since}: all ranks did not wait for all, or one did not come"))
}
