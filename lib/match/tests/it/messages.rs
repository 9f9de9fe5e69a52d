//! Messages in the order of time: what is paired is what a slow library delivers, whatever receives name and however late
//! they complete.

use std::collections::VecDeque;

use proptest::prelude::*;
use st_match::communication::UNKNOWN_TAG;
use st_match::fifo::{Channels, Numbered};
use st_match::messages::Messages;
use st_match::{Channel, UNKNOWN};
use st_model::event::Completed;

const RANKS: u32 = 3;

#[derive(Clone, Debug)]
enum Step {
    Send {
        from: u32,
        to: u32,
        tag: i64,
    },
    Post {
        me: u32,
        source: Option<u32>,
        tag: Option<i64>,
    },
    /// One of the receives that have a message completes.
    Complete(usize),
    /// One of those that have none is cancelled.
    Cancel(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let (rank, tag) = (|| 0..RANKS, || 0..2_i64);
    prop_oneof![
        4 => (rank(), rank(), tag()).prop_map(|(from, to, tag)| Step::Send { from, to, tag }),
        4 => (rank(), prop::option::of(rank()), prop::option::of(tag()))
            .prop_map(|(me, source, tag)| Step::Post { me, source, tag }),
        2 => (0..64_usize).prop_map(Step::Complete),
        1 => (0..64_usize).prop_map(Step::Cancel),
    ]
}

/// A receive: what it names, the message that it has, and whether anything more is to come of it.
struct Posted {
    me: u32,
    source: Option<u32>,
    tag: Option<i64>,
    message: Option<usize>,
    over: bool,
}

/// A library that delivers each message at once, to the first receive that takes it, as the standard says (MPI 4.1, section
/// 3.5), beside what is found by [`Messages`]. Both number messages and receives as they come.
#[derive(Default)]
struct Library {
    messages: Vec<(u32, u32, i64)>,
    arrived: Vec<usize>,
    receives: Vec<Posted>,
    found: Messages<usize, usize>,
    /// Numbers of receives in what is found.
    numbers: Vec<u32>,
}

impl Library {
    fn takes(&self, receive: usize, message: usize) -> bool {
        let (p, (from, to, tag)) = (&self.receives[receive], self.messages[message]);
        p.message.is_none()
            && !p.over
            && p.me == to
            && p.source.is_none_or(|s| s == from)
            && p.tag.is_none_or(|t| t == tag)
    }

    fn send(&mut self, from: u32, to: u32, tag: i64) {
        let message = self.messages.len();
        self.messages.push((from, to, tag));
        match (0..self.receives.len()).find(|r| self.takes(*r, message)) {
            Some(first) => self.receives[first].message = Some(message),
            None => self.arrived.push(message),
        }
        self.found.send(from, Channel { group: 0, side: 0, from, to, tag }, message);
    }

    fn post(&mut self, me: u32, source: Option<u32>, tag: Option<i64>) {
        let receive = self.receives.len();
        self.receives.push(Posted { me, source, tag, message: None, over: false });
        if let Some(first) = self.arrived.iter().position(|m| self.takes(receive, *m)) {
            self.receives[receive].message = Some(self.arrived.remove(first));
        }
        let (from, tag) = (source.unwrap_or(UNKNOWN), tag.unwrap_or(UNKNOWN_TAG));
        let number = self.found.post(me, Channel { group: 0, side: 0, from, to: me, tag }, receive);
        self.numbers.push(number);
    }

    /// The k-th of those receives that have a message, or have none, and that something is still to come of.
    fn open(&self, has: bool, k: usize) -> Option<usize> {
        let open = |r: &&usize| !self.receives[**r].over && self.receives[**r].message.is_some() == has;
        let all: Vec<usize> = (0..self.receives.len()).collect();
        let open: Vec<usize> = all.iter().filter(open).copied().collect();
        open.get(k % open.len().max(1)).copied()
    }

    fn complete(&mut self, k: usize) -> bool {
        let Some(receive) = self.open(true, k) else { return false };
        let p = &mut self.receives[receive];
        p.over = true;
        let (from, _, tag) = self.messages[p.message.unwrap()];
        let got = Completed { source: Some(from), tag: Some(tag), ..Completed::default() };
        self.found.settle(self.numbers[receive], &got);
        true
    }

    fn cancel(&mut self, k: usize) {
        if let Some(receive) = self.open(false, k) {
            self.receives[receive].over = true;
            assert_eq!(self.found.withdraw(self.numbers[receive]), Some(receive));
        }
    }
}

proptest! {
    #[test]
    fn what_is_delivered_is_paired(steps in prop::collection::vec(step(), 0..60)) {
        let mut library = Library::default();
        for step in steps {
            match step {
                Step::Send { from, to, tag } => library.send(from, to, tag),
                Step::Post { me, source, tag } => library.post(me, source, tag),
                Step::Complete(k) => drop(library.complete(k)),
                Step::Cancel(k) => library.cancel(k),
            }
        }
        while library.complete(1) {}
        let mut found = Vec::new();
        while let Some((send, receive)) = library.found.next_met() {
            let (of_send, met, of_receive) = library.found.met_by_send(send).unwrap();
            prop_assert_eq!(met, receive);
            found.push((*of_receive, *of_send));
        }
        found.sort_unstable();
        let delivered = library.receives.iter().enumerate().filter_map(|(r, p)| Some((r, p.message?)));
        prop_assert_eq!(found, delivered.collect::<Vec<_>>());
        prop_assert_eq!(library.found.unmatched()[0], library.arrived.len() as u64);
        prop_assert_eq!(library.found.unordered(), 0);
    }
}

#[test]
fn a_probe_is_of_the_receive_that_takes_what_it_found() {
    let mut messages: Messages<(), ()> = Messages::default();
    let through = |from, tag| Channel { group: 0, side: 0, from, to: 1, tag };
    assert_eq!(messages.probe(5, through(0, 7), 10), None);
    assert_eq!(messages.probed(5, &through(0, 8)), None);
    assert_eq!(messages.probed(4, &through(0, 7)), None);
    assert_eq!(messages.probed(5, &through(UNKNOWN, 7)), Some(10));
    assert_eq!(messages.probed(5, &through(0, 7)), None);
    // One that nothing was received after.
    assert_eq!(
        [messages.probe(5, through(0, 7), 11), messages.probe(5, through(2, 7), 12)],
        [None, Some(11)]
    );
}

/// An end of an operation.
#[derive(PartialEq, Debug)]
struct Of(u64, char);

impl Numbered for Of {
    fn operation(&self) -> u64 {
        self.0
    }
}

const CHANNEL: Channel = Channel { group: 0, side: 0, from: 0, to: 1, tag: 0 };

#[test]
fn ends_meet_within_their_operation_only() {
    let mut channels = Channels::default();
    for (operation, name) in [(1, 'a'), (2, 'b'), (4, 'c')] {
        assert_eq!(channels.enter(CHANNEL, false, 0, Of(operation, name)), None);
    }
    assert_eq!(channels.enter(CHANNEL, true, 1, Of(2, 'x')), Some(Of(2, 'b')));
    assert_eq!(channels.lost(), [1, 0]);
    assert_eq!(channels.enter(CHANNEL, true, 1, Of(3, 'y')), None);
    assert_eq!(channels.lost(), [1, 1]);
    assert_eq!(channels.enter(CHANNEL, true, 1, Of(4, 'z')), Some(Of(4, 'c')));
    assert_eq!(channels.waiting().count(), 0);
}

#[test]
fn nothing_meets_where_two_threads_use_one_end() {
    let mut channels = Channels::default();
    assert_eq!(channels.enter(CHANNEL, true, 1, Of(0, 'a')), None);
    assert_eq!(channels.enter(CHANNEL, true, 1, Of(0, 'b')), None);
    assert_eq!(channels.enter(CHANNEL, false, 0, Of(0, 'x')), Some(Of(0, 'a')));
    // The receive that waits, and the one that comes.
    assert_eq!(channels.enter(CHANNEL, true, 2, Of(0, 'c')), None);
    assert_eq!(channels.unordered(), 2);
    assert_eq!(channels.enter(CHANNEL, false, 0, Of(0, 'y')), None);
    assert_eq!((channels.unordered(), channels.waiting().count()), (2, 0));
    assert!(channels.is_unordered(&CHANNEL));
}

/// Ends that are equal but for how many they are.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Equal(u8, u64);

impl Numbered for Equal {
    fn take_in(&mut self, next: &Self) -> bool {
        self.1 += if self.0 == next.0 { next.1 } else { 0 };
        self.0 == next.0
    }

    fn first_of_several(&mut self) -> Option<Self> {
        self.1 = self.1.checked_sub(1).filter(|left| *left > 0)?;
        Some(Self(self.0, 1))
    }
}

proptest! {
    /// Ends that stand for several meet as if each stood for itself, and a send that was none is the last.
    #[test]
    fn equal_ends_wait_together_and_meet_one_by_one(steps in proptest::collection::vec((0..3_u8, 0..3_u8), 0..60)) {
        let mut channels = Channels::default();
        let (mut waiting, mut receives, mut met) = (VecDeque::new(), false, 0);
        for (what, kind) in steps {
            if kind == 2 {
                let expected = if receives { None } else { waiting.pop_back() };
                prop_assert_eq!(channels.unsend(&CHANNEL), expected.map(|what| Equal(what, 1)));
                continue;
            }
            let receive = kind == 1;
            let expected = if waiting.is_empty() || receives == receive {
                receives = receive;
                waiting.push_back(what);
                None
            } else {
                met += 1;
                waiting.pop_front()
            };
            prop_assert_eq!(channels.enter(CHANNEL, receive, 0, Equal(what, 1)), expected.map(|what| Equal(what, 1)));
        }
        let left: u64 = channels.waiting().flat_map(|(_, _, ends)| ends.map(|e| e.1)).sum();
        prop_assert_eq!(left, waiting.len() as u64);
        prop_assert_eq!(channels.met_in(&CHANNEL).unwrap_or_default(), met);
    }
}

#[test]
fn receives_behind_one_that_never_completes_cost_the_same_each() {
    let mut messages: Messages<(), ()> = Messages::default();
    let through = |from, tag| Channel { group: 0, side: 0, from, to: 1, tag };
    messages.post(0, through(UNKNOWN, UNKNOWN_TAG), ());
    let begin = std::time::Instant::now();
    // Each is told a source as late as the first: a pass over all that are held would take minutes.
    for i in 0..200_000_u32 {
        let receive = messages.post(0, through(if i % 2 == 0 { 0 } else { UNKNOWN }, 3), ());
        messages.settle(receive, &Completed { source: Some(0), tag: Some(3), ..Completed::default() });
        messages.send(1, through(0, 3), ());
    }
    assert!(begin.elapsed().as_secs() < 10);
    assert_eq!((messages.unmatched(), messages.unsure()), ([200_000, 0], 200_000));
    assert_eq!(messages.left().filter(|left| left.is_held && left.has_channel).count(), 200_000);
}

#[test]
fn wildcards_that_complete_one_after_the_other_cost_the_same_each() {
    let n = 100_000_u32;
    let orders: [fn(u32, u32) -> u32; 3] = [|i, _| i, |i, n| n - 1 - i, |i, n| (i * 7 + 3) % n];
    // A pass over all that are held for each that completes would take many minutes, however busy the machine is.
    let begin = std::time::Instant::now();
    for (order, tags) in orders.into_iter().flat_map(|order| [(order, 1), (order, 5), (order, n)]) {
        let mut messages: Messages<u32, u32> = Messages::default();
        let through = |from, tag| Channel { group: 0, side: 0, from, to: 1, tag };
        let tag = |i: u32| i64::from(i % tags);
        let receives: Vec<u32> = (0..n).map(|i| messages.post(0, through(UNKNOWN, tag(i)), i)).collect();
        let named: Vec<u32> = (0..n).map(|i| messages.post(0, through(0, tag(i)), n + i)).collect();
        (0..2 * n).for_each(|i| {
            messages.send(1, through(0, tag(i % n)), i);
        });
        for i in 0..n {
            let (i, got) = (order(i, n), |tag| Completed { source: Some(0), tag, ..Completed::default() });
            messages.settle(receives[i as usize], &got(Some(tag(i))));
        }
        let met = std::iter::from_fn(|| messages.next_met()).collect::<Vec<_>>();
        assert_eq!(met.len(), 2 * n as usize);
        for receive in receives.iter().chain(&named) {
            let (posted, _, _, sent) = messages.met_by_receive(*receive).unwrap();
            assert_eq!(posted, sent);
        }
    }
    assert!(begin.elapsed().as_secs() < 90, "{:?}", begin.elapsed());
}
