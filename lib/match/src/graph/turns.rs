//! What the turns of a window's epochs are in a graph: messages and barriers.

use st_model::calls::roles::{Epoch, Rule};
use st_model::event::Event;

use super::collective::Part;
use super::epochs::Turn;
use super::tags::{COMPLETED, POSTED};
use super::walk::{End, Walker};
use crate::channel::Channel;
use crate::standing::{Scope, Standing};

impl Walker<'_> {
    /// A call that begins or ends an epoch.
    pub(super) fn epoch(&mut self, event: &Event<'_>, epoch: Epoch) {
        self.out.issues.locks += u64::from(epoch == Epoch::Lock);
        let Self { epochs, stand, .. } = self;
        match epochs.turn(event, epoch, |index| stand(Scope::Win(index))) {
            Some((at, Turn::Fence(ends))) if ends && self.barriers.fence => self.barrier(Some(at)),
            Some((at, Turn::Fence(_))) => {
                let part = Part::internal(at, Rule::Barrier);
                self.out.parts.push(Part { enter: self.enter, exit: self.exit, ..part });
            }
            Some((at, Turn::Free)) if self.barriers.creation => self.barrier(Some(at)),
            Some((at, Turn::Post(origins))) => self.tell(at, &origins, POSTED),
            Some((at, Turn::Complete(targets))) => {
                self.hear(at, &targets, POSTED);
                self.tell(at, &targets, COMPLETED);
            }
            Some((at, Turn::Wait(origins))) => self.hear(at, &origins, COMPLETED),
            Some((_, Turn::Free | Turn::Start(_))) | None => {}
        }
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
