//! Large operations that other calls complete: where data move only inside calls, who computes between beginning and end keeps others
//! waiting in the calls that complete theirs.

use slab::Slab;
use st_model::num::{Exact as _, narrow};

use crate::pending_calls::{CallNumber, Cause, Certainty, Ledger, Reason};
use crate::waits::WaitKind;

/// An operation whose members are not all complete.
#[derive(Debug)]
struct Joint {
    /// Members that have not said which call completes them.
    left: u32,
    /// Calls that complete others, held until then.
    calls: Vec<CallNumber>,
}

/// All such operations.
#[derive(Default, Debug)]
pub(crate) struct Joints {
    all: Slab<Joint>,
}

impl Joints {
    /// An operation of so many begins.
    pub(crate) fn begin(&mut self, of: u32) -> u32 {
        narrow(self.all.insert(Joint { left: of, calls: Vec::new() }))
    }

    /// A member is complete by a call, or moves so little that nobody waits for that.
    pub(crate) fn complete(&mut self, id: u32, call: Option<CallNumber>, ledger: &mut Ledger) {
        let Some(joint) = self.all.get_mut(id.to_usize()) else { return };
        joint.left = joint.left.saturating_sub(1);
        if let Some(call) = call {
            // As if it still sent something: what it receives is known.
            ledger.expect(call, true);
            joint.calls.push(call);
        }
        if joint.left == 0 {
            settle(&self.all.remove(id.to_usize()), ledger);
        }
    }

    /// No more calls come.
    pub(crate) fn end(&mut self, ledger: &mut Ledger) {
        self.all.drain().for_each(|joint| settle(&joint, ledger));
    }
}

/// Each call may have waited for the last of the others that was entered before it ended.
fn settle(joint: &Joint, ledger: &mut Ledger) {
    let visits = joint.calls.iter().filter_map(|call| ledger.visit(*call).copied());
    // Who tests for it again and again has been in MPI before the test that finds it complete.
    let mut order: Vec<_> = visits.filter(|visit| visit.waits).collect();
    order.sort_by_key(|visit| visit.enter);
    for call in &joint.calls {
        let Some(exit) = ledger.visit(*call).map(|visit| visit.exit) else { continue };
        let last = order[..order.partition_point(|other| other.enter <= exit)].last();
        let reason = |cause| Reason { certainty: Certainty::Seen, ..Reason::of(WaitKind::AllToAll, cause) };
        ledger.give(*call, true, last.map(|last| reason(Cause::of(last))));
    }
}
