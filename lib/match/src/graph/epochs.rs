//! Epochs of one-sided communication in which both sides take part: fences, and post, start, complete, wait.
//!
//! A post lets the origins' epochs begin: it comes before each of them completes. Completing comes before the target's
//! wait. A fence that ends an epoch is a barrier of the window's group, and so is freeing the window. What the calls in
//! between put and get, and the epochs of locks, concern one side only (MPI 3.1, section 11.5): a lock that is not shared
//! waits for another's epoch, but no stream says for whose. These epochs are counted.

use super::collective::Part;
use super::tags::{COMPLETED, POSTED};
use super::walk::{End, Walker, Window};
use crate::channel::Channel;
use crate::standing::Standing;
use st_model::calls::roles::{Epoch, Role, Rule};
use st_model::calls::words::Words;
use st_model::section::Tables;

/// Bits of a fence's assertions ([`st_model::values::ASSERT`]): no operation before it, none after it.
const NO_PRECEDE: i64 = 1 << 3;
const NO_SUCCEED: i64 = 1 << 4;

/// Whether a fence with these assertions ends an epoch; `fenced`: whether the fence before it has begun one, which becomes
/// whether this one does.
pub fn ends_epoch(assert: i64, fenced: &mut bool) -> bool {
    let ends = *fenced && assert & NO_PRECEDE == 0;
    *fenced = assert & NO_SUCCEED == 0;
    ends
}

impl Walker<'_> {
    /// A call that begins or ends an epoch.
    pub(super) fn epoch(&mut self, role: &Role, epoch: Epoch, words: &Words) {
        if epoch == Epoch::Lock {
            self.out.issues.locks += 1;
            return;
        }
        let index = words.one(role.win);
        let known = self.windows.remove(&index);
        let mut window =
            known.unwrap_or_else(|| Window { at: self.stand_in_window(index), ..Window::default() });
        if let Some(at) = window.at {
            match epoch {
                Epoch::Fence => self.fence(words.one(role.assert), at, &mut window.fenced),
                Epoch::Post => {
                    window.exposed = self.positions(index, words.one(role.group));
                    self.tell(at, &window.exposed, POSTED);
                }
                Epoch::Start => window.accessed = self.positions(index, words.one(role.group)),
                Epoch::Complete => {
                    let targets = std::mem::take(&mut window.accessed);
                    self.hear(at, &targets, POSTED);
                    self.tell(at, &targets, COMPLETED);
                }
                Epoch::Lock => {}
                Epoch::Free => {
                    if self.barriers.creation {
                        self.barrier(Some(at));
                    }
                    return;
                }
                // A failed test ends nothing.
                Epoch::Wait if words.get(role.flag) == Some(0) => {}
                Epoch::Wait => {
                    let origins = std::mem::take(&mut window.exposed);
                    self.hear(at, &origins, COMPLETED);
                }
            }
        }
        self.windows.insert(index, window);
    }

    /// A fence that ends no epoch need not wait for anybody (some libraries do not).
    fn fence(&mut self, assert: i64, at: Standing, fenced: &mut bool) {
        if ends_epoch(assert, fenced) && self.barriers.fence {
            self.barrier(Some(at));
        } else {
            // It still counts in the order of the window's fences.
            let part = Part::internal(at, Rule::Barrier);
            self.out.parts.push(Part { enter: self.enter, exit: self.exit, ..part });
        }
    }

    /// Positions in a window of a group's members.
    fn positions(&self, window: i64, group: i64) -> Vec<u32> {
        let tables = &self.section.tables;
        let group = Tables::find(&tables.groups, group, self.rank).map(|g| &g.content.members);
        let members = Tables::find(&tables.wins, window, self.rank).map(|w| &w.content.members);
        let (Some(group), Some(members)) = (group, members) else { return Vec::new() };
        let position = |rank| u32::try_from(members.position(rank)?).ok();
        group.iter().filter_map(position).collect()
    }

    fn tell(&mut self, at: Standing, peers: &[u32], tag: i64) {
        let end = |&to: &u32| {
            let channel = Channel { group: at.group, side: at.side, from: at.me, to, tag };
            End { channel, point: self.enter, other: self.exit, sync: false }
        };
        self.out.sends.extend(peers.iter().map(end));
    }

    fn hear(&mut self, at: Standing, peers: &[u32], tag: i64) {
        let end = |&from: &u32| {
            let channel = Channel { group: at.group, side: at.other(), from, to: at.me, tag };
            End { channel, point: self.exit, other: self.enter, sync: false }
        };
        self.out.receives.extend(peers.iter().map(end));
    }
}
