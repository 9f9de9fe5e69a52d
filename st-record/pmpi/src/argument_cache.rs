//! The loop in progress, known by what the program passes to MPI and gets from it.
//!
//! To turn handles into numbers, keep book of requests and write words down is most of the work that a call makes. Where a
//! round of a loop makes the same calls with the same arguments as the round before, all of that comes out as before. So
//! the rounds' *steps* are learned: of each call its arguments, its outcome and its words. As long as calls come as
//! learned they are only compared; counts, tags and ranks that differ are put into the words, and handles of requests
//! may be others each time, as long as the program gives back what it was given.
//!
//! What makes this exact: all of a step's calls are such that their words depend on arguments, on the tables of handles, on
//! the outstanding requests, and on what they bring (answers, statuses), which is read each time. A call that always repeats is one only
//! where it is made once, as it has been for long. No step changes the tables. The requests are those of the round before, because
//! a round counts as learned only if it completes all requests that it makes and no others. While the steps are followed
//! the book of requests stays as it was when the round began; before anything else happens, it is made up for
//! ([`ArgumentCache::make_up`]).

mod learn;
mod stacks;

pub(crate) use learn::Seen;

use crate::constants as k;
use crate::ffi::{Handles, Status};
use crate::journal::Mark;
use crate::local::made_at;
use crate::polls::Repeat;
use crate::requests::{Key, RequestKind, Requests};
use crate::statuses::{bytes, is_cancelled, nth, source_and_tag, write_status};
use crate::thread::{Event, Thread};
use st_model::calls::CallId;
use st_model::num::{Exact, saturate};
use st_model::section::Sym;
use st_model::values::NONE;
use st_unwind::{Proof, Registers};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether there is a loop that is followed: what wrappers ask first.
pub(crate) static FOLLOWING: AtomicBool = AtomicBool::new(false);

/// Arguments of a step at most; calls with more are not learned.
const ARGUMENTS: usize = 12;
/// Longest pause between attempts to learn, in calls.
const LONGEST_PAUSE: u32 = 1 << 16;
/// Longest round.
const LONGEST: usize = 1024;

/// What a call is passed.
pub(crate) enum Inputs<'a> {
    /// Something else: the call is never a step.
    Unknown,
    /// Integers and handles. Some are a word as they are, unless negative: at which place of the call's words.
    Scalars { values: &'a [i64], places: &'static [Option<u16>] },
    /// Requests to wait for.
    Requests { first: Handles, n: i64 },
}

/// Where a call leaves what it brings.
#[derive(Clone, Copy)]
pub(crate) enum Outs {
    Nothing,
    Request(Handles),
    /// A receive's status, and the place of its words.
    Status {
        status: *const Status,
        at: usize,
        wildcard: bool,
    },
    /// Statuses of the requests that were waited for.
    Completed(*const Status),
    /// The first `n` of these words, at this place and after it.
    Words {
        from: usize,
        words: [i64; 2],
        n: usize,
    },
}

/// A call that has come out as learned.
pub(crate) struct ExpectedCall<'a> {
    pub(crate) sym: Sym,
    pub(crate) words: &'a [i64],
    /// Positions at which they differ from those of the round before.
    pub(crate) changed: &'a [u16],
}

/// A call of the round.
struct CachedCall {
    call: u16,
    site: u32,
    /// The stack that it is expected by, and others that it has come by, of which the next one has not for longest.
    stack: Stack,
    others: Vec<Stack>,
    next: usize,
    mark: Mark,
    sym: Sym,
    values: [i64; ARGUMENTS],
    /// Words of the call before it is made, with defaults for what it brings; and after it.
    before: Vec<i64>,
    words: Vec<i64>,
    /// Positions of the words that the call being made has changed; those from 65,535 on are that one, where no recorder
    /// takes changes.
    changed: Vec<u16>,
    effect: Effect,
}

/// A stack: the unwinder's number of it, and what proves it.
type Stack = (u32, Proof);

/// What a step does to requests, by their indices among those of the round.
pub(crate) enum Effect {
    None,
    Makes(usize),
    /// Waits for these ([`NULL`]: a null request), named at an address.
    Completes {
        requests: Box<[usize]>,
        first: usize,
        /// Each is where it was made, which tells those apart that share a handle.
        in_place: bool,
    },
}

/// No request.
const NULL: usize = usize::MAX;

/// A request that a step makes.
struct Made {
    handle: u64,
    place: usize,
    kind: RequestKind,
    /// Its entry in the book, as far as that is made up for.
    key: Key,
}

/// What is known of the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing; so many calls are let pass.
    Idle(u32),
    /// The steps so far of a round of this number.
    Learning(u64),
    /// All steps; the next call is expected to be that of `at`.
    Following,
}

/// The loop.
pub(crate) struct ArgumentCache {
    phase: Phase,
    steps: Vec<CachedCall>,
    /// The requests that a round makes.
    made: Vec<Made>,
    /// The step that comes next.
    at: usize,
    /// While learning: how often that was begun anew.
    restarts: usize,
    /// While learning: requests made and not completed.
    open: Vec<usize>,
    /// While learning: words before the call.
    before: Vec<i64>,
    /// Calls that have been followed.
    followed: u64,
    /// Calls to let pass after the next failure.
    pause: u32,
}

impl Default for ArgumentCache {
    fn default() -> Self {
        Self {
            phase: Phase::Idle(0),
            steps: Vec::new(),
            made: Vec::new(),
            at: 0,
            restarts: 0,
            open: Vec::new(),
            before: Vec::new(),
            followed: 0,
            pause: 1,
        }
    }
}

impl ArgumentCache {
    /// Whether the call is the next step: its mark and call site. Words of arguments that differ are changed.
    ///
    /// # Safety
    ///
    /// The registers are those of a running function.
    #[inline(always)]
    pub(crate) unsafe fn expects(
        &mut self,
        call: u16,
        registers: &Registers,
        inputs: &Inputs<'_>,
    ) -> Option<(Mark, u32)> {
        if self.phase != Phase::Following {
            return None;
        }
        let step = self.steps.get_mut(self.at).filter(|s| s.call == call)?;
        // SAFETY: the caller's promise. On another thread the stack pointer is another.
        if !unsafe { step.stack.1.holds(registers) } {
            return None;
        }
        let same = match *inputs {
            Inputs::Unknown => false,
            Inputs::Scalars { values, places } => {
                let differ = step.values.iter().zip(values).fold(0, |bits, (a, b)| bits | (a ^ b));
                differ == 0 || step.change(values, places)
            }
            // SAFETY: the program's array of `n` requests, which the call reads too.
            Inputs::Requests { first, n } => unsafe { step.waits(&self.made, first, n) },
        };
        same.then_some((step.mark, step.site))
    }

    /// Whether the next step, which has been made without error, came out as learned. Words that may differ are changed.
    #[inline]
    pub(crate) fn comes_out(&mut self, outs: Outs) -> bool {
        if self.phase != Phase::Following {
            return false;
        }
        let Some(step) = self.steps.get_mut(self.at) else { return false };
        match (outs, &step.effect) {
            (Outs::Nothing, _) => true,
            (Outs::Request(place), Effect::Makes(request)) => {
                let Some(made) = self.made.get_mut(*request) else { return false };
                // SAFETY: the call has written it.
                made.handle = unsafe { place.get(0) };
                made.place = place.address(0);
                made.handle != k::MPI_REQUEST_NULL()
            }
            (Outs::Status { status, at, wildcard }, _) => {
                let mut words = [NONE; 3];
                // SAFETY: the call has written it.
                unsafe { write_status(&mut words, status, wildcard) };
                step.replace(at, &words);
                true
            }
            (Outs::Completed(statuses), Effect::Completes { .. }) => {
                // SAFETY: the call has written them.
                unsafe { step.completed(&self.made, statuses) }
            }
            (Outs::Words { from, words, n }, _) => {
                step.replace(from, &words[..n]);
                true
            }
            _ => false,
        }
    }

    /// Call site of the next step.
    #[inline]
    pub(crate) fn site(&self) -> u32 {
        self.steps.get(self.at).map_or(0, |s| s.site)
    }

    /// The next step as an event.
    #[inline]
    pub(crate) fn event(&self) -> Option<ExpectedCall<'_>> {
        let step = self.steps.get(self.at)?;
        Some(ExpectedCall { sym: step.sym, words: &step.words, changed: &step.changed })
    }

    /// The next step as a call that is being made, if the loop is being followed.
    pub(crate) fn begun(&self) -> Option<Event> {
        let step = self.steps.get(self.at).filter(|_| self.is_followed())?;
        let (call, site, repeat) = (CallId(step.call), step.site, Repeat::Never);
        Some(Event { call, site, repeat, error: 0, opaque: false, always: false, enter: 0, exit: 0 })
    }

    /// The next step has been recorded.
    #[inline]
    pub(crate) fn advance(&mut self) {
        if let Some(step) = self.steps.get_mut(self.at) {
            step.changed.clear();
            step.turn();
        }
        self.at += 1;
        self.followed += 1;
        if self.at == self.steps.len() {
            self.at = 0;
        }
    }

    /// Whether the loop is being followed.
    #[inline]
    pub(crate) fn is_followed(&self) -> bool {
        self.phase == Phase::Following
    }

    /// Makes up for what has not been entered in the book of requests, and follows the loop no longer.
    #[cold]
    pub(crate) fn make_up(&mut self, requests: &mut Requests, threads: &mut [Thread]) {
        // A loop that went on for long is worth another attempt.
        if self.followed > 8 * self.steps.len().to_u64() {
            self.pause = 1;
        }
        self.fail();
        let Some(Thread { numbers, .. }) = threads.first_mut() else { return };
        for step in &self.steps[..self.at] {
            match &step.effect {
                Effect::None => {}
                Effect::Makes(i) => {
                    let m = &mut self.made[*i];
                    m.key = requests.add(numbers, 0, m.handle, m.place, m.kind);
                }
                Effect::Completes { requests: of, .. } => {
                    for m in of.iter().filter_map(|i| self.made.get(*i)) {
                        numbers.give(requests.remove(m.key).1);
                    }
                }
            }
        }
    }

    /// The call that is being made was expected to be the next step and did not come out so (or another thread has begun to
    /// call): the inputs that were not read are the step's. The loop is not followed any longer.
    #[cold]
    pub(crate) fn read_inputs(&self, thread: &mut Thread) {
        let Some(step) = self.steps.get(self.at) else { return };
        thread.words.extend_from_slice(&step.before);
        if let Effect::Completes { requests: of, first, .. } = &step.effect {
            thread.owes_lists = true;
            thread.listed_at = *first;
            thread.listed.extend(of.iter().map(|i| self.made.get(*i).map(|m| m.key)));
        }
    }

    /// What was learned did not come again, or cannot be learned: lets calls pass, the more the more often that happens.
    pub(crate) fn fail(&mut self) {
        FOLLOWING.store(false, Ordering::Relaxed);
        self.phase = Phase::Idle(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

impl CachedCall {
    /// Takes arguments that differ, if the call's words show them as they are.
    #[inline(never)]
    fn change(&mut self, values: &[i64], places: &[Option<u16>]) -> bool {
        for (i, (new, place)) in values.iter().zip(places).enumerate() {
            let old = std::mem::replace(&mut self.values[i], *new);
            if old != *new {
                let shown = |at: &usize| old >= 0 && *new >= 0 && self.before.get(*at) == Some(&old);
                let Some(at) = place.map(usize::from).filter(shown) else { return false };
                self.before[at] = *new;
                self.replace(at, &[*new]);
            }
        }
        true
    }

    /// Whether `n` requests are those that are waited for.
    ///
    /// # Safety
    ///
    /// There are so many.
    #[inline]
    unsafe fn waits(&mut self, all: &[Made], first: Handles, n: i64) -> bool {
        let Effect::Completes { requests, first: address, in_place } = &mut self.effect else { return false };
        *address = first.address(0);
        usize::try_from(n).is_ok_and(|n| n == requests.len())
            && requests.iter().enumerate().all(|(i, request)| {
                // SAFETY: the caller's promise.
                let handle = unsafe { first.get(i) };
                all.get(*request).map_or(handle == k::MPI_REQUEST_NULL(), |m| {
                    m.handle == handle && (!*in_place || m.place == made_at(i, first.address(i)))
                })
            })
    }

    /// Puts words in their place.
    #[inline]
    fn replace(&mut self, at: usize, words: &[i64]) {
        for (at, new) in (at..).zip(words) {
            let old = &mut self.words[at];
            if *old != *new {
                *old = *new;
                self.changed.push(saturate(at));
            }
        }
    }

    /// Whether all requests that were waited for came out as learned. Takes what their statuses say.
    ///
    /// # Safety
    ///
    /// There is a status for each, and both they and the requests have been written.
    unsafe fn completed(&mut self, all: &[Made], statuses: *const Status) -> bool {
        let Effect::Completes { requests, first, .. } = &self.effect else { return false };
        let first = Handles::at(*first);
        // Behind the requests are four lists of one length: positions, sources, tags, sizes.
        let mut at = self.before.len();
        let length = (self.words.len() - at) / 4;
        for (i, request) in requests.iter().enumerate() {
            let Some(made) = all.get(*request) else { continue };
            at += 1;
            // SAFETY: the caller's promise.
            if unsafe { first.get(i) } != k::MPI_REQUEST_NULL() {
                return false;
            }
            if made.kind.receive {
                // SAFETY: the caller's promise.
                let new = unsafe {
                    let status = nth(statuses, i);
                    if is_cancelled(status) {
                        return false;
                    }
                    let [source, tag] = source_and_tag(status);
                    [source, tag, bytes(status)]
                };
                for (list, new) in (1..).zip(new) {
                    let at = at + list * length;
                    if self.words[at] != new {
                        self.words[at] = new;
                        self.changed.push(saturate(at));
                    }
                }
            }
        }
        self.changed.sort_unstable();
        true
    }
}
