//! Epochs of one-sided communication in which both sides take part: fences, and post, start, complete, wait.
//!
//! A post lets the origins' epochs begin: it comes before each of them completes. Completing comes before the target's
//! wait. A fence that ends an epoch is a barrier of the window's group, and so is freeing the window. What the calls in
//! between put and get, and the epochs of locks, concern one side only (MPI 3.1, section 11.5): a lock that is not shared
//! waits for another's epoch, but no stream says for whose. These epochs are counted.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::calls::roles::Epoch;
use st_model::event::Event;
use st_model::section::Tables;

use crate::standing::Standing;

/// Bits of a fence's assertions ([`st_model::values::ASSERT`]): no operation before it, none after it.
const NO_PRECEDE: i64 = 1 << 3;
const NO_SUCCEED: i64 = 1 << 4;

/// What a call does to the epochs of both sides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Turn {
    /// A fence; whether it ends an epoch. One that ends none need not wait for anybody (some libraries do not), and still
    /// counts in the order of the window's fences.
    Fence(bool),
    /// The end of the window.
    Free,
    /// Lets the epochs of these positions begin.
    Post(Vec<u32>),
    /// Begins an epoch that these positions have to post.
    Start(Vec<u32>),
    /// Ends an epoch that these positions had to post: each is heard of, and each is told.
    Complete(Vec<u32>),
    /// Hears of the completions of these positions.
    Wait(Vec<u32>),
}

/// A window on one thread.
#[derive(Debug, Default)]
struct Window {
    at: Option<Standing>,
    /// The last fence has begun an epoch.
    fenced: bool,
    /// Positions of the ranks to which it is exposed, and of those that the current epoch accesses.
    exposed: Vec<u32>,
    accessed: Vec<u32>,
}

/// The epochs of one thread's windows.
#[derive(Debug, Default)]
pub struct Epochs(HashMap<i64, Window, FixedState>);

impl Epochs {
    /// What a call turns, and where the rank stands in the window; `None` if that is not known, and of what concerns one
    /// side only. `stand` finds the rank's standing in a window of its tables.
    pub fn turn(
        &mut self,
        event: &Event<'_>,
        epoch: Epoch,
        stand: impl FnOnce(i64) -> Option<Standing>,
    ) -> Option<(Standing, Turn)> {
        let (role, words) = (event.role, event.words());
        let index = words.one(role.win);
        if epoch == Epoch::Free {
            let at = self.0.remove(&index).map_or_else(|| stand(index), |window| window.at);
            return Some((at?, Turn::Free));
        }
        let window = self.0.entry(index).or_insert_with(|| Window { at: stand(index), ..Window::default() });
        let at = window.at?;
        let turn = match epoch {
            Epoch::Fence => Turn::Fence(window.fence(words.one(role.assert))),
            Epoch::Post => {
                window.exposed = positions(event, index, words.one(role.group));
                Turn::Post(window.exposed.clone())
            }
            Epoch::Start => {
                window.accessed = positions(event, index, words.one(role.group));
                Turn::Start(window.accessed.clone())
            }
            Epoch::Complete => Turn::Complete(std::mem::take(&mut window.accessed)),
            // A failed test ends nothing.
            Epoch::Wait if words.get(role.flag) == Some(0) => return None,
            Epoch::Wait => Turn::Wait(std::mem::take(&mut window.exposed)),
            Epoch::Lock | Epoch::Free => return None,
        };
        Some((at, turn))
    }
}

impl Window {
    /// Whether a fence with these assertions ends an epoch.
    fn fence(&mut self, assert: i64) -> bool {
        let ends = self.fenced && assert & NO_PRECEDE == 0;
        self.fenced = assert & NO_SUCCEED == 0;
        ends
    }
}

/// Positions in a window of a group's members.
fn positions(event: &Event<'_>, window: i64, group: i64) -> Vec<u32> {
    let tables = &event.section().tables;
    let group = Tables::find(&tables.groups, group, event.rank).map(|g| &g.content.members);
    let members = Tables::find(&tables.wins, window, event.rank).map(|w| &w.content.members);
    let (Some(group), Some(members)) = (group, members) else { return Vec::new() };
    let position = |rank| u32::try_from(members.position(rank)?).ok();
    group.iter().filter_map(position).collect()
}
