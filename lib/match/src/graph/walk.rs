//! One pass over the calls of a thread: its ends of messages, and its parts in collective operations, as points in time.

use super::Issues;
use super::barriers::Barriers;
use super::collective::Part;
use super::epochs::Epochs;
use super::topology::Topologies;
use crate::channel::{Channel, UNKNOWN};
use crate::communication::{self, Communication, Listener, UNKNOWN_TAG};
use crate::standing::{Scope, Standing};
use st_model::calls::roles::{Action, Rule, Start};
use st_model::event::{Completed, Event};
use st_model::project::Error;
use st_model::section::Section;

/// One end of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct End {
    pub(super) channel: Channel,
    /// The enter of a send, the exit of the completion of a receive; [`NEVER`] if there was none.
    pub(super) point: u32,
    /// The exit of the completion of a send, the enter of the call that posted a receive.
    pub(super) other: u32,
    /// A synchronous send.
    pub(super) sync: bool,
}

/// A point that has not come.
pub(super) const NEVER: u32 = u32::MAX;

impl End {
    /// Whether its other end can be found.
    pub(super) fn is_known(&self) -> bool {
        let Channel { from, to, tag, .. } = self.channel;
        from != UNKNOWN && to != UNKNOWN && tag != UNKNOWN_TAG
    }
}

/// What a thread has to do with others.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// In the order of the calls.
    pub(super) sends: Vec<End>,
    /// In the order in which they were posted.
    pub(super) receives: Vec<End>,
    /// The enters of the calls that posted receives whose requests were freed before they completed.
    pub(super) freed: Vec<u32>,
    pub(super) parts: Vec<Part>,
    pub(super) issues: Issues,
}

/// Finds a rank's standing in what a call names.
type Stand<'a> = dyn FnMut(Scope) -> Option<Standing> + 'a;

/// The points of one thread.
pub(super) struct Walker<'a> {
    pub(super) barriers: Barriers,
    pub(super) stand: &'a mut Stand<'a>,
    topologies: Topologies,
    pub(super) epochs: Epochs,
    pub(super) enter: u32,
    pub(super) exit: u32,
    pub(super) out: Walked,
}

impl Listener for Walker<'_> {
    type Part = Part;

    fn standing(&mut self, _: &Event<'_>, scope: Scope) -> Option<Standing> {
        (self.stand)(scope)
    }

    fn send(&mut self, _: &Event<'_>, end: &communication::End, done: bool) -> usize {
        let other = if done { self.exit } else { NEVER };
        let channel = end.sent_through();
        self.out.sends.push(End { channel, point: self.enter, other, sync: end.sync });
        self.out.sends.len() - 1
    }

    fn sent(&mut self, _: &Event<'_>, number: usize, _: &communication::End, cancelled: bool) {
        let end = &mut self.out.sends[number];
        end.other = self.exit;
        if cancelled {
            end.channel.to = UNKNOWN;
            self.out.issues.cancelled += 1;
        }
    }

    fn post(&mut self, _: &Event<'_>, end: &communication::End, done: bool) -> usize {
        let point = if done { self.exit } else { NEVER };
        let channel = end.received_through();
        self.out.receives.push(End { channel, point, other: self.enter, sync: false });
        self.out.receives.len() - 1
    }

    fn received(&mut self, _: &Event<'_>, number: usize, got: &Completed) {
        let end = &mut self.out.receives[number];
        end.point = self.exit;
        if got.cancelled {
            end.channel.from = UNKNOWN;
            self.out.issues.cancelled += 1;
        } else {
            end.channel.settle(got);
        }
    }

    fn forget(&mut self, number: usize) {
        self.out.freed.push(self.out.receives[number].other);
    }

    fn part(&mut self, event: &Event<'_>, at: Standing, rule: Rule) -> Part {
        let part = Part::of(event, at, rule, &self.topologies);
        part.unwrap_or_else(|| {
            // It still counts in the order of the communicator's operations.
            self.out.issues.neighbours += 1;
            Part::internal(at, rule)
        })
    }

    fn join(&mut self, _: &Event<'_>, part: Part, persistent: Option<(u32, u32)>, done: bool) -> usize {
        let exit = if done { self.exit } else { NEVER };
        self.out.parts.push(Part { enter: self.enter, exit, persistent, ..part });
        self.out.parts.len() - 1
    }

    fn leave(&mut self, _: &Event<'_>, number: usize) {
        self.out.parts[number].exit = self.exit;
    }

    fn unknown(&mut self, _: &Event<'_>) {
        self.out.issues.requests += 1;
    }
}

impl<'a> Walker<'a> {
    /// Walks a rank's thread. `stand` finds a rank's standing in a communicator, window or file of its tables.
    pub(super) fn walk(
        section: &'a Section,
        thread: usize,
        rank: u32,
        barriers: Barriers,
        stand: &'a mut Stand<'a>,
    ) -> Result<Walked, Error> {
        let mut walker = Self {
            barriers,
            stand,
            topologies: Topologies::default(),
            epochs: Epochs::default(),
            enter: 0,
            exit: 0,
            out: Walked::default(),
        };
        let Some(mut events) = section.events(thread, rank) else { return Ok(walker.out) };
        let mut communication = Communication::default();
        while let Some(event) = events.next_event()? {
            // Points beyond that have no number: nothing is known of what comes after them.
            let Some(enter) = u32::try_from(event.index).ok().and_then(|i| i.checked_mul(2)) else { break };
            let Some(exit) = enter.checked_add(1).filter(|exit| *exit < NEVER - 4) else { break };
            (walker.enter, walker.exit) = (enter, exit);
            communication.event(&event, &mut walker);
            walker.rest(&event, &mut communication);
        }
        let never = |ends: &[End]| ends.iter().filter(|e| e.point == NEVER).count() as u64;
        let Walked { receives, parts, issues, .. } = &mut walker.out;
        issues.incomplete += never(receives) + parts.iter().filter(|p| p.exit == NEVER).count() as u64;
        Ok(walker.out)
    }

    /// What is neither message nor collective operation, and yet synchronises.
    fn rest(&mut self, event: &Event<'_>, communication: &mut Communication<Part>) {
        let barriers = self.barriers;
        let comm = Scope::Comm(event.comm().unwrap_or(0));
        match event.action() {
            Action::Epoch(epoch) => self.epoch(event, epoch),
            Action::Close if barriers.creation => {
                let at = (self.stand)(Scope::File(event.words().one(event.role.file)));
                self.barrier(at);
            }
            Action::Init if barriers.init => self.barrier_on(event, comm, communication),
            Action::Finalize if barriers.finalize => self.barrier_on(event, comm, communication),
            Action::Creation | Action::Topology => {
                if barriers.creation {
                    self.barrier_on(event, comm, communication);
                }
                self.learn(event);
            }
            IDUP => self.learn(event),
            _ => {}
        }
    }

    fn barrier_on(&mut self, event: &Event<'_>, scope: Scope, communication: &mut Communication<Part>) {
        let at = communication.standing(event, scope, self);
        self.barrier(at);
    }

    pub(super) fn barrier(&mut self, at: Option<Standing>) {
        let Some(at) = at.filter(|at| at.members > 1) else { return };
        let part = Part::internal(at, Rule::Barrier);
        self.out.parts.push(Part { sends: true, receives: true, enter: self.enter, exit: self.exit, ..part });
    }

    fn learn(&mut self, event: &Event<'_>) {
        self.topologies.learn_of(event, |new| (self.stand)(Scope::Comm(new)));
    }
}

/// A communicator that is there when a request completes.
const IDUP: Action = Action::Collective { rule: Rule::Barrier, start: Start::Request };
