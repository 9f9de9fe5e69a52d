//! The n-th send of a channel meets its n-th receive (MPI 4.1, section 3.5): the one place where ends of messages are paired.
//!
//! [`Channels`] takes ends whose channel is known, those of a rank in the order in which they are sent and posted. In what
//! order ranks come does not matter: [`crate::graph`] enters one rank after the other, when it has read each to its end, and
//! [`crate::messages`] all of them in the order of time, as long as channels of receives become known.
//!
//! *Cost:* expected O(1) per end; memory for ends that wait, and by channels.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;

use crate::channel::Channel;

/// What is told apart within a channel.
pub trait Numbered {
    /// Which operation the end is of, ascending on each rank, if only ends of the same one meet; 0 of messages.
    fn operation(&self) -> u64 {
        0
    }

    /// Takes in the end that comes after it, if one can stand for both while they wait.
    fn take_in(&mut self, _next: &Self) -> bool {
        false
    }

    /// The first of the ends that it stands for, if there are several; it stands for one less then.
    fn first_of_several(&mut self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// Ends that wait, the first of them in place: most channels have no more.
#[derive(Debug)]
#[expect(clippy::box_collection, reason = "there are many queues, and few have a rest")]
struct Queue<E> {
    first: Option<E>,
    rest: Option<Box<VecDeque<E>>>,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Self { first: None, rest: None }
    }
}

/// Room for so many ends is kept when all have met: more would be that of all that have ever waited.
const KEPT: usize = 4;

impl<E: Numbered> Queue<E> {
    fn push(&mut self, end: E) {
        let Some(last) = self.last() else {
            self.first = Some(end);
            return;
        };
        if !last.take_in(&end) {
            self.rest.get_or_insert_default().push_back(end);
        }
    }

    fn last(&mut self) -> Option<&mut E> {
        self.rest.as_mut().and_then(|rest| rest.back_mut()).or(self.first.as_mut())
    }

    /// Takes out the last end.
    fn pop_last(&mut self) -> Option<E> {
        // Those that one end stands for are equal: the first of them is the last, too.
        self.last()?
            .first_of_several()
            .or_else(|| self.rest.as_mut().and_then(|rest| rest.pop_back()))
            .or_else(|| self.first.take())
    }

    fn pop(&mut self) -> Option<E> {
        if let Some(one) = self.first.as_mut()?.first_of_several() {
            return Some(one);
        }
        let taken = self.first.take();
        if let Some(rest) = &mut self.rest {
            self.first = rest.pop_front();
            if self.first.is_none() && rest.capacity() > KEPT {
                self.rest = None;
            }
        }
        taken
    }

    /// Takes out the first that a function names.
    fn remove(&mut self, named: impl Fn(&E) -> bool) {
        if self.first.as_ref().is_some_and(&named) {
            self.pop();
        } else if let Some(rest) = &mut self.rest
            && let Some(at) = rest.iter().position(named)
        {
            rest.remove(at);
        }
    }
}

impl<E> Queue<E> {
    fn iter(&self) -> impl Iterator<Item = &E> {
        self.first.iter().chain(self.rest.iter().flat_map(|rest| rest.iter()))
    }
}

/// A thread that uses none of the ends.
const NOBODY: u32 = u32::MAX;

/// One channel.
#[derive(Debug)]
struct Traffic<E> {
    waiting: Queue<E>,
    /// Pairs that have met.
    met: u64,
    /// Threads that send and receive.
    users: [u32; 2],
    /// The ends that wait are receives.
    receives: bool,
    /// Several threads use one end.
    unordered: bool,
}

impl<E> Default for Traffic<E> {
    fn default() -> Self {
        Self { waiting: Queue::default(), met: 0, users: [NOBODY; 2], receives: false, unordered: false }
    }
}

impl<E> Traffic<E> {
    /// Nothing meets from now on. Returns how many receives have waited.
    fn confuse(&mut self) -> u64 {
        self.unordered = true;
        let dropped = std::mem::take(&mut self.waiting);
        if self.receives { dropped.iter().count() as u64 } else { 0 }
    }

    /// As [`Traffic::confuse`], if another thread has used the end before.
    fn claim(&mut self, receives: bool, user: u32) -> u64 {
        let known = &mut self.users[usize::from(receives)];
        if *known == NOBODY {
            *known = user;
        }
        if *known == user || self.unordered { 0 } else { self.confuse() }
    }
}

/// Ends of messages, by channel.
#[derive(Debug)]
pub struct Channels<E> {
    all: HashMap<Channel, Traffic<E>, FixedState>,
    unordered: u64,
    lost: [u64; 2],
}

impl<E> Default for Channels<E> {
    fn default() -> Self {
        Self { all: HashMap::default(), unordered: 0, lost: [0; 2] }
    }
}

impl<E: Numbered> Channels<E> {
    /// An end comes that a thread (`user`, by any number of its own) sends or receives through. Returns the one that it
    /// meets; `None` if it waits, or if its other end cannot be found.
    pub fn enter(&mut self, channel: Channel, receives: bool, user: u32, end: E) -> Option<E> {
        let traffic = self.all.entry(channel).or_default();
        self.unordered += traffic.claim(receives, user);
        if traffic.unordered {
            // Counted once per message: at the receiving end.
            self.unordered += u64::from(receives);
            return None;
        }
        if traffic.waiting.first.is_none() || traffic.receives == receives {
            traffic.receives = receives;
            traffic.waiting.push(end);
            return None;
        }
        while traffic.waiting.first.as_ref().is_some_and(|w| w.operation() <= end.operation()) {
            let found = traffic.waiting.pop().filter(|w| w.operation() == end.operation());
            if found.is_some() {
                traffic.met += 1;
                return found;
            }
            self.lost[usize::from(!receives)] += 1;
        }
        self.lost[usize::from(receives)] += 1;
        None
    }

    /// Says beforehand that a thread uses an end: nothing is paired of a channel an end of which two threads use, for the
    /// order between them is not known.
    pub fn claim(&mut self, channel: Channel, receives: bool, user: u32) {
        self.unordered += self.all.entry(channel).or_default().claim(receives, user);
    }

    /// Says that nothing of a channel can be paired.
    pub fn confuse(&mut self, channel: Channel) {
        self.unordered += self.all.entry(channel).or_default().confuse();
    }

    /// Whether nothing of a channel can be paired.
    #[must_use]
    pub fn is_unordered(&self, channel: &Channel) -> bool {
        self.all.get(channel).is_some_and(|t| t.unordered)
    }

    /// Whether something waits in a channel.
    #[must_use]
    pub fn is_used(&self, channel: &Channel) -> bool {
        self.all.get(channel).is_some_and(|t| t.waiting.first.is_some())
    }

    /// The receive that a function names no longer waits: it was cancelled.
    pub fn withdraw(&mut self, channel: &Channel, named: impl Fn(&E) -> bool) {
        let traffic = self.all.get_mut(channel).filter(|t| t.receives);
        traffic.into_iter().for_each(|t| t.waiting.remove(&named));
    }

    /// The last send of a channel was none. Returns it if it waits; if it has met a receive, nobody knows which one waits again.
    pub fn unsend(&mut self, channel: &Channel) -> Option<E> {
        self.all.get_mut(channel).filter(|t| !t.receives)?.waiting.pop_last()
    }

    /// Ends that wait, by channel, and whether they are receives; in no particular order of channels.
    pub fn waiting(&self) -> impl Iterator<Item = (&Channel, bool, impl Iterator<Item = &E>)> {
        let some = self.all.iter().filter(|(_, t)| t.waiting.first.is_some());
        some.map(|(channel, t)| (channel, t.receives, t.waiting.iter()))
    }

    /// All channels, and how many messages have met in each; in no particular order.
    pub fn met(&self) -> impl Iterator<Item = (&Channel, u64)> {
        self.all.iter().map(|(channel, t)| (channel, t.met))
    }

    /// How many messages have met in a channel; `None` if nothing has come through it.
    #[must_use]
    pub fn met_in(&self, channel: &Channel) -> Option<u64> {
        self.all.get(channel).map(|t| t.met)
    }

    /// Messages of which the order is not known.
    #[must_use]
    pub fn unordered(&self) -> u64 {
        self.unordered
    }

    /// Sends, and receives, whose operation has no other end.
    #[must_use]
    pub fn lost(&self) -> [u64; 2] {
        self.lost
    }
}
