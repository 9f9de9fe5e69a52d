//! What begins with one record and ends with another.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::otf2::Record;

/// By request, in the order in which they begin: the record of its completion.
pub(super) type Completions = Vec<Option<Record>>;

/// What begins with one record and ends with another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Id {
    Request(u64),
    /// An operation on a file that is open.
    Operation(u32, u64),
    /// An access to a window.
    Access(u32, u64),
}

/// The request of a record that begins one, or something that may have one.
pub(super) fn begun(record: &Record) -> Option<Id> {
    match record {
        Record::Isend(_, id) | Record::IrecvRequest(id) | Record::CollectiveRequest(id) => {
            Some(Id::Request(*id))
        }
        Record::OperationBegin { handle, id, .. } => Some(Id::Operation(*handle, *id)),
        Record::Put(access) | Record::Get(access) | Record::Atomic(access, _) => {
            Some(Id::Access(access.win, access.id))
        }
        _ => None,
    }
}

/// The request of a record that completes one.
pub(super) fn ended(record: &Record) -> Option<Id> {
    match record {
        Record::IsendComplete(id)
        | Record::Irecv(_, id)
        | Record::Cancelled(id)
        | Record::CollectiveComplete(_, id) => Some(Id::Request(*id)),
        Record::OperationComplete(handle, _, id) => Some(Id::Operation(*handle, *id)),
        Record::AccessLocal(win, id) | Record::AccessComplete(win, id) => Some(Id::Access(*win, *id)),
        _ => None,
    }
}

/// Finds how the requests of a rank end.
#[derive(Debug, Default)]
pub(super) struct Survey {
    open: HashMap<Id, usize, FixedState>,
    pub(super) completions: Completions,
    /// Something ends that was not begun before, in what was read.
    pub(super) is_begun_elsewhere: bool,
}

impl Survey {
    /// Another thread is read, which does not complete what those before have begun.
    pub(super) fn next_thread(&mut self) {
        self.open.clear();
    }

    pub(super) fn record(&mut self, record: &Record) {
        if let Some(id) = begun(record) {
            self.open.insert(id, self.completions.len());
            self.completions.push(None);
        } else if let Some(id) = ended(record) {
            match self.open.remove(&id) {
                Some(at) => self.completions[at] = Some(*record),
                None => self.is_begun_elsewhere = true,
            }
        }
    }
}
