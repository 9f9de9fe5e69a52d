//! Time in calls that is no waiting: for whom is not known, or for nobody.

use st_model::calls::roles::{Action, Role};
use st_model::calls::{CallId, CallTable, Meaning, Object, Row};

use crate::analysis::PlaceTotals;
use crate::matter::Matter;

/// Bytes of a call whose time is latency, and of a message that takes no longer than that, at most.
pub const SHORT: u64 = 1024;
/// Bytes of a call whose time is that of its data, at least.
pub const LONG: u64 = 32 << 10;

/// Time of a call that may be latency, at most: 100 µs, ns.
const LATENCY: u64 = 100_000;

/// What the calls at a place spend their own time on, so many ns.
pub(crate) fn matter(call: CallId, totals: &PlaceTotals, own: u64) -> Matter {
    let Some(row) = CallTable::builtin().get(call) else { return Matter::Inside };
    let mean = totals.bytes / totals.calls.max(1);
    if row.properties.files {
        Matter::Files
    } else if one_sided(row) {
        Matter::OneSided
    } else if mean >= LONG {
        Matter::Bandwidth
    } else if mean <= SHORT && own / totals.calls.max(1) <= LATENCY && carries_messages(call) {
        Matter::Latency
    } else {
        Matter::Inside
    }
}

fn carries_messages(call: CallId) -> bool {
    let action = Role::of_call(call).action;
    matches!(
        action,
        Action::Send { .. }
            | Action::Receive { .. }
            | Action::Both { .. }
            | Action::Matched { .. }
            | Action::Complete
    )
}

/// Reaches another's window, or waits until it has, or until it may: all that names a window, but what has a part on both
/// sides.
fn one_sided(row: &Row) -> bool {
    let both = matches!(Role::of_call(row.id).action, Action::Epoch(_) | Action::Creation)
        && !matches!(row.kind, st_model::calls::Kind::WinLock);
    !both && row.slots.iter().any(|s| s.meaning == Meaning::Ref(Object::Win))
}
