//! Messages under way, for who reads all threads in the order of time.
//!
//! Receives meet in the order in which they are posted. One with wildcards has no channel until it completes: those that are
//! posted after it on its thread, and that could take its message, are held back until then. [`Messages`] keeps for each end
//! what its user wants to know of it, from when it is sent or posted until the user lets go of both ends.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use foldhash::fast::FixedState;
use slab::Slab;
use st_model::event::Completed;
use st_model::num::{Exact as _, narrow};

use crate::channel::{Channel, UNKNOWN};
use crate::communication::UNKNOWN_TAG;
use crate::fifo::{Channels, Numbered};

/// An end by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Number(u32);

impl Numbered for Number {}

/// No end, or none yet.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Sent<S> {
    what: S,
    receive: u32,
}

#[derive(Debug)]
struct Posted<R> {
    what: R,
    channel: Channel,
    thread: u32,
    send: u32,
    /// It stands in its channel.
    entered: bool,
    /// Ascending in the order in which receives are posted.
    turn: u64,
}

/// Receives that could take the same messages as they name neither source nor tag, or one of both.
#[derive(Clone, Default, Debug)]
struct Wild {
    /// Turns of those that have no channel.
    turns: BTreeSet<u64>,
    /// Receives that wait for the first of these, by turn.
    behind: BTreeMap<u64, u32>,
}

/// What has to be known of a thread.
#[derive(Clone, Default, Debug)]
struct Thread {
    /// By what they say where messages come through.
    wild: HashMap<Channel, Wild, FixedState>,
    /// Where the message comes through that the last probe found, until it is received; and what the user calls the probe.
    probe: Option<(Channel, u64)>,
}

/// All messages under way. Sends and receives have numbers, which are used again once [`Messages::forget`] has let go of them;
/// threads have numbers that the user gives, from 0 without gaps.
#[derive(Debug)]
pub struct Messages<S, R> {
    sends: Slab<Sent<S>>,
    receives: Slab<Posted<R>>,
    channels: Channels<Number>,
    threads: Vec<Thread>,
    met: VecDeque<(u32, u32)>,
    posted: u64,
}

/// A receive that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Left<'a, S, R> {
    /// What is known of it.
    pub what: &'a R,
    /// What is known of the send that it has met.
    pub sent: Option<&'a S>,
    /// It is held back: it has no channel, or stands behind one that has none.
    pub is_held: bool,
    /// It is known where its message comes through.
    pub has_channel: bool,
}

impl<S, R> Default for Messages<S, R> {
    fn default() -> Self {
        Self {
            sends: Slab::new(),
            receives: Slab::new(),
            channels: Channels::default(),
            threads: Vec::new(),
            met: VecDeque::new(),
            posted: 0,
        }
    }
}

impl Channel {
    fn is_known(&self) -> bool {
        self.from != UNKNOWN && self.tag != UNKNOWN_TAG
    }

    /// What receives say that could take what comes through this, but do not name it.
    fn wildcards(&self) -> [Self; 3] {
        let any_source = Self { from: UNKNOWN, ..*self };
        [any_source, Self { tag: UNKNOWN_TAG, ..*self }, Self { tag: UNKNOWN_TAG, ..any_source }]
    }

    /// Whether a receive through this could take a message that is for a receive through the other.
    fn may_take(&self, other: &Self) -> bool {
        let Self { group, side, from, to, tag } = *self;
        let alike = |mine, theirs| mine == theirs || mine == UNKNOWN || theirs == UNKNOWN;
        (group, side, to) == (other.group, other.side, other.to)
            && alike(from, other.from)
            && (tag == other.tag || tag == UNKNOWN_TAG || other.tag == UNKNOWN_TAG)
    }
}

impl<S, R> Messages<S, R> {
    fn thread(&mut self, thread: u32) -> &mut Thread {
        let at = thread.to_usize();
        if at >= self.threads.len() {
            self.threads.resize(at + 1, Thread::default());
        }
        &mut self.threads[at]
    }

    /// A thread sends a message through a channel. Returns its number; see [`Messages::next_met`].
    pub fn send(&mut self, thread: u32, channel: Channel, what: S) -> u32 {
        let send = narrow(self.sends.insert(Sent { what, receive: NONE }));
        if let Some(Number(receive)) = self.channels.enter(channel, false, thread, Number(send)) {
            self.pair(send, receive);
        }
        send
    }

    /// A thread posts a receive; its channel may have wildcards. Returns its number; see [`Messages::next_met`].
    pub fn post(&mut self, thread: u32, channel: Channel, what: R) -> u32 {
        let turn = self.posted;
        self.posted += 1;
        let receive =
            narrow(self.receives.insert(Posted { what, channel, thread, send: NONE, entered: false, turn }));
        let of = self.thread(thread);
        if channel.is_known() {
            self.place(receive);
        } else {
            of.wild.entry(channel).or_default().turns.insert(turn);
        }
        receive
    }

    /// A receive completes, which tells where its message has come through.
    pub fn settle(&mut self, receive: u32, got: &Completed) {
        let Some(posted) = self.receives.get_mut(receive.to_usize()).filter(|p| !p.entered) else { return };
        let (thread, turn, before) = (posted.thread, posted.turn, posted.channel);
        posted.channel.settle(got);
        let channel = posted.channel;
        if before.is_known() || before == channel {
            return;
        }
        // It comes before those that it lets go of.
        if channel.is_known() {
            self.place(receive);
        } else {
            self.thread(thread).wild.entry(channel).or_default().turns.insert(turn);
        }
        self.release(thread, &before, turn);
    }

    /// A receive is cancelled: it takes no message. Returns what is known of it, unless it has met one before.
    pub fn withdraw(&mut self, receive: u32) -> Option<R> {
        let at = receive.to_usize();
        let Posted { channel, thread, entered, turn, .. } =
            *self.receives.get(at).filter(|p| p.send == NONE)?;
        let taken = self.receives.try_remove(at).map(|posted| posted.what);
        if entered {
            self.channels.withdraw(&channel, |waiting| *waiting == Number(receive));
        } else if !channel.is_known() {
            self.release(thread, &channel, turn);
        }
        taken
    }

    /// The next send and receive that have met, each pair once, in the order in which they meet.
    pub fn next_met(&mut self) -> Option<(u32, u32)> {
        self.met.pop_front()
    }

    /// Whether something waits in a channel.
    #[must_use]
    pub fn is_used(&self, channel: &Channel) -> bool {
        self.channels.is_used(channel)
    }

    /// Whether a send has met its receive.
    #[must_use]
    pub fn has_sent(&self, send: u32) -> bool {
        self.sends.get(send.to_usize()).is_some_and(|s| s.receive != NONE)
    }

    /// Whether a receive has met its send.
    #[must_use]
    pub fn has_posted(&self, receive: u32) -> bool {
        self.receives.get(receive.to_usize()).is_some_and(|r| r.send != NONE)
    }

    /// What is known of a send.
    pub fn sent(&mut self, send: u32) -> Option<&mut S> {
        self.sends.get_mut(send.to_usize()).map(|s| &mut s.what)
    }

    /// What is known of a receive.
    pub fn posted(&mut self, receive: u32) -> Option<&mut R> {
        self.receives.get_mut(receive.to_usize()).map(|r| &mut r.what)
    }

    /// What is known of a send, and the receive that it has met.
    pub fn met_by_send(&mut self, send: u32) -> Option<(&mut S, u32, &mut R)> {
        let sent = self.sends.get_mut(send.to_usize())?;
        let posted = self.receives.get_mut(sent.receive.to_usize())?;
        Some((&mut sent.what, sent.receive, &mut posted.what))
    }

    /// What is known of a receive, where its message came through, and the send that it has met.
    pub fn met_by_receive(&mut self, receive: u32) -> Option<(&mut R, &Channel, u32, &mut S)> {
        let posted = self.receives.get_mut(receive.to_usize())?;
        let sent = self.sends.get_mut(posted.send.to_usize())?;
        Some((&mut posted.what, &posted.channel, posted.send, &mut sent.what))
    }

    /// Nothing more is asked of a send and a receive that have met.
    pub fn forget(&mut self, send: u32, receive: u32) {
        self.sends.try_remove(send.to_usize());
        self.receives.try_remove(receive.to_usize());
    }

    /// A probe of a thread has found a message. Returns the probe before it, if nothing has received what that found.
    pub fn probe(&mut self, thread: u32, channel: Channel, probe: u64) -> Option<u64> {
        self.thread(thread).probe.replace((channel, probe)).map(|(_, before)| before)
    }

    /// The probe that found what a receive through a channel takes, if it is posted now.
    pub fn probed(&mut self, thread: u32, channel: &Channel) -> Option<u64> {
        let probe = &mut self.threads.get_mut(thread.to_usize())?.probe;
        probe.take_if(|(found, _)| channel.may_take(found)).map(|(_, probe)| probe)
    }

    /// Ends that have not met their other ends, as far as their channels are known: sends and receives.
    #[must_use]
    pub fn unmatched(&self) -> [u64; 2] {
        let mut found = [0; 2];
        for (_, receives, waiting) in self.channels.waiting() {
            found[usize::from(receives)] += waiting.count() as u64;
        }
        found
    }

    /// Receives that nothing has let go of.
    pub fn left(&self) -> impl Iterator<Item = Left<'_, S, R>> {
        self.receives.iter().map(|(_, posted)| Left {
            what: &posted.what,
            sent: self.sends.get(posted.send.to_usize()).map(|sent| &sent.what),
            is_held: !posted.entered,
            has_channel: posted.channel.is_known(),
        })
    }

    /// Of the sends that have met no receive, those which one could take that is held back: nobody knows which.
    #[must_use]
    pub fn unsure(&self) -> u64 {
        let held = self.receives.iter().filter(|(_, p)| !p.entered).map(|(_, p)| p.channel);
        let held: HashSet<_, FixedState> = held.map(|c| (c.group, c.side, c.to)).collect();
        let waiting = self.channels.waiting().filter(|(_, receives, _)| !receives);
        let of_held = waiting.filter(|(c, ..)| held.contains(&(c.group, c.side, c.to)));
        of_held.map(|(.., sends)| sends.count().to_u64()).sum()
    }

    /// Messages whose order is not known: several threads of a rank use their channel.
    #[must_use]
    pub fn unordered(&self) -> u64 {
        self.channels.unordered()
    }

    /// What the receives say that stand before a turn of a thread, have no channel yet, and could take what comes through another.
    ///
    /// Of those with channels nothing has to be asked: one with this channel that is held is behind such a receive, and so is
    /// what comes after it.
    fn stands_behind(&self, thread: u32, channel: &Channel, turn: u64) -> Option<Channel> {
        let wild = &self.threads.get(thread.to_usize())?.wild;
        let said = if wild.is_empty() { &[][..] } else { &channel.wildcards() };
        let is_before = |said: &&Channel| {
            wild.get(*said).and_then(|of| of.turns.first()).is_some_and(|first| *first < turn)
        };
        said.iter().find(is_before).copied()
    }

    /// Enters a receive whose channel is known, or holds it behind those that could take its message.
    fn place(&mut self, receive: u32) {
        let posted = self.receives.get(receive.to_usize());
        let Some((thread, channel, turn)) = posted.map(|p| (p.thread, p.channel, p.turn)) else { return };
        match self.stands_behind(thread, &channel, turn) {
            Some(said) => {
                self.thread(thread).wild.entry(said).or_default().behind.insert(turn, receive);
            }
            None => self.enter(receive),
        }
    }

    /// More is known of the receive of a turn, that has said this, or it is gone: enters receives that no other before them could stand in
    /// for. *Cost:* a search for each receive that it has held; each is held by three such at most, one after the other.
    fn release(&mut self, thread: u32, said: &Channel, turn: u64) {
        let mut free = Vec::new();
        if let Some(of) = self.thread(thread).wild.get_mut(said) {
            of.turns.remove(&turn);
            let first = of.turns.first().copied().unwrap_or(u64::MAX);
            while let Some(entry) = of.behind.first_entry().filter(|entry| *entry.key() < first) {
                free.push(entry.remove_entry());
            }
            if of.turns.is_empty() {
                self.thread(thread).wild.remove(said);
            }
        }
        for (turn, receive) in free {
            // It may have been cancelled, and its number be another's.
            if self.receives.get(receive.to_usize()).is_some_and(|p| p.turn == turn) {
                self.place(receive);
            }
        }
    }

    fn enter(&mut self, receive: u32) {
        let Some(posted) = self.receives.get_mut(receive.to_usize()) else { return };
        posted.entered = true;
        if let Some(Number(send)) = self.channels.enter(posted.channel, true, posted.thread, Number(receive))
        {
            self.pair(send, receive);
        }
    }

    fn pair(&mut self, send: u32, receive: u32) {
        if let (Some(s), Some(r)) =
            (self.sends.get_mut(send.to_usize()), self.receives.get_mut(receive.to_usize()))
        {
            (s.receive, r.send) = (receive, send);
            self.met.push_back((send, receive));
        }
    }
}
