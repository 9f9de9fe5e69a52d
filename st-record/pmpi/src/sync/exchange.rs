//! One comparison in one tree: what parents and children send each other.
//!
//! SAFETY, for the whole module: as in [`crate::sync`].
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use super::tree::Tree;
use crate::clock::Reader;
use crate::constants as k;
use crate::ffi::{Handle, Handles};
use crate::real;
use crate::statuses::StatusBuffer;
use st_model::columns::Offset;
use st_model::num::narrow;
use std::ffi::c_int;
use std::thread::sleep;
use std::time::Duration;

/// Exchanges per child, of which the fastest counts; and more, if none was this fast (ns): then the ranks share
/// processors, and one of them slept.
const ROUNDS: usize = 10;
const FAST: i64 = 20_000;

/// Polls before another process may have the processor.
const SPINS: u32 = 1_000;

/// What is sent: a kind, and what belongs to it.
type Message = [i64; 6];

/// Kinds of messages: the child shall read its clock, or has; a result; there is none; not now.
const PING: i64 = 0;
const RESULT: i64 = 1;
const NOTHING: i64 = 2;
const SKIP: i64 = 3;

/// What a rank has learned from its parent, and passes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Turn {
    /// Its comparison; none if clocks are not compared this time.
    pub(super) own: Option<Offset>,
    /// Before which collective operation the ranks meet again ([`super::NEXT`]).
    pub(super) next: i64,
    /// Number of the interim reduction that they make now; 0: none.
    pub(super) reduction: i64,
}

/// One comparison in one tree.
pub(super) struct Exchange {
    pub(super) tree: Tree,
    pub(super) clock: Reader,
    /// When to give up, ns.
    pub(super) until: i64,
    /// Time for one child, ns, after which one exchange must do.
    pub(super) slice: i64,
    pub(super) tag: c_int,
    /// Between nodes.
    pub(super) far: bool,
}

/// What an exchange that took so long says of a clock that is so far off if there and back took alike: offset and error, ns.
/// Ranks on one node read one clock, unless the exchange proves that they do not. If it does not, though they do not, that
/// clock may be as far off as the exchange allows.
fn found(middle: i64, took: i64, far: bool) -> (i64, i64) {
    let half = (took + 1) / 2;
    if !far && middle.abs() <= took / 2 { (0, half + middle.abs()) } else { (middle, half) }
}

impl Exchange {
    /// Takes the rank's turn from its parent, unless it has one, and gives its children theirs. The fastest exchange is
    /// kept; the last result says whether all children were reached.
    pub(super) fn run(&self, turn: Option<Turn>, fastest: &mut i64) -> (Option<Turn>, bool) {
        let Tree { rank, size, .. } = self.tree;
        let turn = if rank > 0 { self.follow(rank ^ highest_bit(rank)) } else { turn };
        let mut bit = if rank > 0 { highest_bit(rank) << 1 } else { 1 };
        while rank | bit < size && bit > 0 {
            if !self.lead(rank | bit, turn, fastest) {
                // The time is up: the other children find out by themselves.
                return (turn, false);
            }
            bit <<= 1;
        }
        (turn, true)
    }

    /// The parent's side: false if the time is up.
    fn lead(&self, child: c_int, turn: Option<Turn>, fastest: &mut i64) -> bool {
        let Some(turn) = turn else { return self.send(child, [NOTHING, 0, 0, 0, 0, 0]) };
        let Turn { next, reduction, .. } = turn;
        let Some(own) = turn.own else { return self.send(child, [SKIP, 0, 0, 0, next, reduction]) };
        let mut best: Option<(i64, i64, i64)> = None;
        let begun = self.clock.now();
        for round in 0.. {
            let sent = self.clock.now();
            let fast = best.is_some_and(|(took, ..)| took < FAST);
            if best.is_some() && (sent - begun > self.slice || (round >= ROUNDS && fast)) {
                break;
            }
            if !self.send(child, [PING, 0, 0, 0, 0, 0]) {
                return false;
            }
            let Some(answer) = self.receive(child) else { return false };
            let took = self.clock.now() - sent;
            if best.is_none_or(|(b, ..)| took < b) {
                best = Some((took, sent, answer[1]));
            }
        }
        let Some((took, sent, theirs)) = best else { return false };
        *fastest = took.min(*fastest);
        let (offset, error) = found(sent + took / 2 - theirs, took, self.far);
        self.send(child, [RESULT, theirs, own.offset + offset, own.error + error, next, reduction])
    }

    /// The child's side.
    fn follow(&self, parent: c_int) -> Option<Turn> {
        loop {
            match self.receive(parent)? {
                [PING, ..] => {
                    if !self.send(parent, [PING, self.clock.now(), 0, 0, 0, 0]) {
                        return None;
                    }
                }
                [RESULT, local, offset, error, next, reduction] => {
                    return Some(Turn { own: Some(Offset { local, offset, error }), next, reduction });
                }
                [SKIP, .., next, reduction] => return Some(Turn { own: None, next, reduction }),
                _ => return None,
            }
        }
    }

    fn send(&self, to: c_int, message: Message) -> bool {
        let buffer = Box::into_raw(Box::new(message));
        let mut request = Handle::from_raw(k::MPI_REQUEST_NULL());
        let comm = Handle::from_raw(self.tree.comm);
        let begun = unsafe {
            real::MPI_Isend(buffer.cast(), bytes(), byte(), to, self.tag, comm, Handles::of(&mut request))
        };
        let sent = begun == 0 && completes(&mut request, self.clock, self.until, spins());
        if sent {
            drop(unsafe { Box::from_raw(buffer) });
        }
        sent
    }

    fn receive(&self, from: c_int) -> Option<Message> {
        let buffer = Box::into_raw(Box::new(Message::default()));
        let mut request = Handle::from_raw(k::MPI_REQUEST_NULL());
        let comm = Handle::from_raw(self.tree.comm);
        let begun = unsafe {
            real::MPI_Irecv(buffer.cast(), bytes(), byte(), from, self.tag, comm, Handles::of(&mut request))
        };
        if begun == 0 && completes(&mut request, self.clock, self.until, spins()) {
            return Some(*unsafe { Box::from_raw(buffer) });
        }
        if begun == 0 && request.raw() != k::MPI_REQUEST_NULL() {
            unsafe {
                real::MPI_Cancel(Handles::of(&mut request));
                real::MPI_Request_free(Handles::of(&mut request));
            }
        }
        None
    }
}

/// Whether an operation completes in time; a pause follows each look that finds it under way.
pub(crate) fn completes(request: &mut Handle, clock: Reader, until: i64, mut pause: impl FnMut()) -> bool {
    loop {
        let mut flag = 0;
        let mut status = StatusBuffer::default();
        if unsafe { real::MPI_Test(Handles::of(request), &raw mut flag, status.as_mut()) } != 0 {
            return false;
        }
        if flag != 0 {
            return true;
        }
        if clock.now() > until {
            return false;
        }
        pause();
    }
}

/// No pause, mostly: the other rank may need this processor.
pub(super) fn spins() -> impl FnMut() {
    let mut polls = 0_u32;
    move || {
        polls += 1;
        if polls.is_multiple_of(SPINS) {
            unsafe { libc::sched_yield() };
        }
    }
}

/// Polls before a rank sleeps between them, and how long it sleeps at first and at last.
const POLLS: u32 = 100;
const SHORT_NAP: Duration = Duration::from_micros(20);
const LONG_NAP: Duration = Duration::from_millis(1);

/// Pauses where ranks may be long in coming: they have work to do, on this processor perhaps.
pub(crate) fn naps() -> impl FnMut() {
    let (mut polls, mut nap) = (0, SHORT_NAP);
    move || {
        if polls < POLLS {
            polls += 1;
            unsafe { libc::sched_yield() };
        } else {
            sleep(nap);
            nap = LONG_NAP.min(nap * 2);
        }
    }
}

fn bytes() -> c_int {
    narrow(size_of::<Message>())
}

pub(crate) fn byte() -> Handle {
    Handle::from_raw(k::MPI_BYTE())
}

fn highest_bit(n: c_int) -> c_int {
    1 << (31 - n.leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_as_far_as_its_error_says_if_it_is_taken_for_the_same_one_too() {
        for (middle, took) in [(0, 0), (0, 7), (3, 7), (-3, 7), (4, 7), (-40, 7), (5, 10)] {
            for far in [false, true] {
                let (offset, error) = found(middle, took, far);
                // There and back may have taken anything.
                for truth in [middle - took / 2, middle, middle + took / 2] {
                    assert!((truth - offset).abs() <= error, "{truth}: {offset} \u{b1} {error}");
                }
            }
        }
        assert_eq!([found(3, 7, false).0, found(4, 7, false).0, found(3, 7, true).0], [0, 4, 3]);
    }
}
