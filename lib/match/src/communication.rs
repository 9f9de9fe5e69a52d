//! What a thread does with others, call by call: the ends of messages, its parts in collective operations, and which call
//! completes which. The one place that knows what a request stands for.
//!
//! [`Communication`] takes a thread's events in order and tells a [`Listener`] what begins and what ends. Whose other
//! end is whose is then a matter of counting: see [`Channel`] and [`crate::graph`].
//!
//! *Cost:* O(words); memory for what is outstanding.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::calls::roles::{Action, Rule, Start};
use st_model::calls::words::ABSENT;
use st_model::event::{Arg, Completed, Event, RECEIVED, SENT};
use st_model::section::Sym;
use st_model::values::{ANY_TAG, PROC_NULL};

use crate::channel::{Channel, PARTITIONED, UNKNOWN};
use crate::standing::{Scope, Standing, Standings};

/// A tag that is not known yet.
pub const UNKNOWN_TAG: i64 = st_model::values::NONE;

/// One end of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// Where the rank stands in the communicator.
    pub at: Standing,
    /// Position of the other rank; [`UNKNOWN`] of a receive that has not completed.
    pub peer: u32,
    /// Tag; [`UNKNOWN_TAG`] likewise.
    pub tag: i64,
    /// A synchronous send.
    pub sync: bool,
    /// Bytes sent, or room for so many; -1 if that is not known.
    pub bytes: i64,
    /// The call that sends it, posts its receive, or made the persistent request of which it is started.
    pub sym: Sym,
    /// Position on the thread of the call that sends it or posts its receive.
    pub call: u64,
    /// Position of the call that made the persistent request of which it is started; else the same.
    pub made: u64,
}

impl End {
    /// What it goes through, if it is sent.
    #[must_use]
    pub fn sent_through(&self) -> Channel {
        let at = self.at;
        Channel { group: at.group, side: at.side, from: at.me, to: self.peer, tag: self.tag }
    }

    /// What it comes through, if it is received.
    #[must_use]
    pub fn received_through(&self) -> Channel {
        let at = self.at;
        Channel { group: at.group, side: at.other(), from: self.peer, to: at.me, tag: self.tag }
    }
}

/// Hears of what a thread does with others. Numbers are the listener's own: it is told them again when what they stand for
/// ends.
pub trait Listener {
    /// What is kept of a part in a collective operation.
    type Part: Clone;

    /// Operations of communicators with one member, which waits for nobody, are parts too.
    const ALONE: bool = false;

    /// The rank's standing in what a call names.
    fn standing(&mut self, event: &Event<'_>, scope: Scope) -> Option<Standing>;

    /// Bytes of so many elements of a type; -1 if they are not known or do not matter.
    fn bytes(&mut self, _event: &Event<'_>, _count: i64, _datatype: i64) -> i64 {
        -1
    }

    /// A message is sent; `done`: the call is also the one that completes it.
    fn send(&mut self, event: &Event<'_>, end: &End, done: bool) -> usize;

    /// The send of a message is complete.
    fn sent(&mut self, event: &Event<'_>, number: usize, end: &End, cancelled: bool);

    /// A receive is posted; `done`: the call is also the one that completes it.
    fn post(&mut self, event: &Event<'_>, end: &End, done: bool) -> usize;

    /// A message that a matched probe has found is received by this call, which has room for so many bytes.
    fn take(&mut self, _event: &Event<'_>, _number: usize, _bytes: i64) {}

    /// A receive is complete.
    fn received(&mut self, event: &Event<'_>, number: usize, got: &Completed);

    /// The request of a receive is freed while it is under way.
    fn forget(&mut self, _number: usize) {}

    /// The request of a send is.
    fn forget_send(&mut self, _number: usize) {}

    /// A persistent request that receives, made by the call at this position, is freed.
    fn release(&mut self, _made: u64) {}

    /// What this call's part in a collective operation is.
    fn part(&mut self, event: &Event<'_>, at: Standing, rule: Rule) -> Self::Part;

    /// A persistent operation is made.
    fn make(&mut self, _event: &Event<'_>, _part: &Self::Part) {}

    /// The rank takes part in a collective operation; of a persistent one: which it is of those made on its communicator,
    /// from 0, and how often it has been started before. `done`: the call is also the one that completes it.
    fn join(
        &mut self,
        event: &Event<'_>,
        part: Self::Part,
        persistent: Option<(u32, u32)>,
        done: bool,
    ) -> usize;

    /// A collective operation is complete.
    fn leave(&mut self, event: &Event<'_>, number: usize);

    /// A request is completed that nothing has started.
    fn unknown(&mut self, event: &Event<'_>);

    /// A call names a request that its thread has not made: gives up that of another thread of the rank with this number
    /// ([`Communication::give_up`]), for who has all of them at hand and in the order of their times.
    fn elsewhere(&mut self, _request: i64) -> Option<Moved<Self::Part>> {
        None
    }
}

/// A live request that goes from one thread's to another's.
#[derive(Debug)]
pub struct Moved<P>(Request<P>);

/// A live request.
#[derive(Clone, Debug)]
enum Request<P> {
    /// Something that concerns nobody else, and the call that made or started it.
    Nothing(Sym),
    /// Of a call that is left out: stays until another takes the number.
    LeftOut,
    Send(usize, End),
    /// A receive, and the call that posted or started it.
    Receive(usize, Sym),
    /// A message that was found, and the call that found it.
    Found(usize, Sym),
    Part(usize, Sym),
    /// A persistent one, with what is running, and the call that made it.
    Persistent(Box<Template<P>>, Option<Box<Request<P>>>, Sym),
}

/// What is left of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Left {
    /// It was started, or a message was found, and never completed.
    Active,
    /// It is persistent, is not active, and was never freed.
    Inactive,
}

#[derive(Clone, Debug)]
enum Template<P> {
    Nothing,
    Send(End),
    Receive(End),
    /// A part, which one of its communicator's it is, and how often it has been started.
    Part(P, u32, u32),
}

/// Numbers of requests: the lowest free ones, so they stay small in any trace that a recorder made.
const REQUESTS: usize = 1 << 24;

/// The requests of one thread of a rank, and where the rank stands.
#[derive(Debug)]
pub struct Communication<P> {
    standings: Standings,
    requests: Vec<Option<Request<P>>>,
    /// How often the program has paused recording, and how often it had when each request was made or started: one that was there
    /// before may have been completed and freed unseen.
    pauses: u64,
    since: Vec<u64>,
    /// Persistent collective operations made, per communicator.
    made: HashMap<u32, u32, FixedState>,
    /// Messages in parts made, per channel and direction.
    in_parts: HashMap<(Channel, bool), i64, FixedState>,
}

impl<P> Default for Communication<P> {
    fn default() -> Self {
        Self {
            standings: Standings::default(),
            requests: Vec::new(),
            pauses: 0,
            since: Vec::new(),
            made: HashMap::default(),
            in_parts: HashMap::default(),
        }
    }
}

impl<P: Clone> Communication<P> {
    /// The rank's standing in what a call names.
    pub fn standing(
        &mut self,
        event: &Event<'_>,
        scope: Scope,
        to: &mut impl Listener<Part = P>,
    ) -> Option<Standing> {
        self.standings.get(scope, |scope| to.standing(event, scope))
    }

    /// Whether there is a live request with this number.
    #[must_use]
    pub fn has(&self, request: i64) -> bool {
        usize::try_from(request).is_ok_and(|i| matches!(self.requests.get(i), Some(Some(_))))
    }

    /// Gives up a live request, for a call of another thread that names it.
    pub fn give_up(&mut self, request: i64) -> Option<Moved<P>> {
        self.slot(request).and_then(Option::take).map(Moved)
    }

    /// A call that is left out: what it makes is not there.
    pub fn leave_out(&mut self, event: &Event<'_>) {
        if let Some(request) = event.new_request() {
            self.set(request, Some(Request::LeftOut));
        }
    }

    /// The calls that started what has not completed.
    pub fn outstanding(&self) -> impl Iterator<Item = Sym> + '_ {
        let running = |request: &Request<P>| match request {
            Request::Send(_, end) => Some(end.sym),
            Request::Receive(_, sym) | Request::Part(_, sym) => Some(*sym),
            _ => None,
        };
        self.requests.iter().flatten().filter_map(move |request| match request {
            Request::Persistent(_, started, _) => started.as_deref().and_then(running),
            other => running(other),
        })
    }

    /// What is left of all requests, also of those that concern nobody else, and the calls that made or started them; not of those
    /// that the program may have completed while it had paused recording.
    pub fn left(&self) -> impl Iterator<Item = (Sym, Left)> + '_ {
        let active = |request: &Request<P>| match request {
            Request::Send(_, End { sym, .. })
            | Request::Nothing(sym)
            | Request::Receive(_, sym)
            | Request::Found(_, sym)
            | Request::Part(_, sym) => Some((*sym, Left::Active)),
            Request::LeftOut | Request::Persistent(..) => None,
        };
        let sure = self.requests.iter().zip(&self.since).filter(|(_, since)| **since == self.pauses);
        sure.filter_map(|(request, _)| request.as_ref()).filter_map(move |request| match request {
            Request::Persistent(_, None, sym) => Some((*sym, Left::Inactive)),
            Request::Persistent(_, Some(started), _) => active(started),
            other => active(other),
        })
    }

    /// A thread's next call.
    pub fn event(&mut self, event: &Event<'_>, to: &mut impl Listener<Part = P>) {
        let action = event.action();
        // The request of a message that was found may be the one that is made of it.
        if event.symbol.error == 0
            && !matches!(action, Action::Matched { .. })
            && let Some(request) = event.new_request()
        {
            self.set(request, Some(Request::Nothing(event.sym)));
        }
        let (request, role) = (event.words().one(event.role.request), event.role);
        match action {
            Action::Send { sync, start } => {
                let end = self.sending(event, sync, to).map(|e| self.in_parts(event, e, true));
                self.send(event, end, start, request, to);
            }
            Action::Receive { start } => {
                let end = self.receiving(event, to).map(|e| self.in_parts(event, e, false));
                self.receive(event, end, start, request, to);
            }
            Action::Both { start } => {
                let end = self.sending(event, false, to);
                self.send(event, end, Start::Blocking, request, to);
                let end = self.receiving(event, to);
                self.receive(event, end, start, request, to);
            }
            Action::Match if event.words().get(role.flag) == Some(0) => {}
            Action::Match => {
                let found =
                    self.receiving(event, to).map(|end| to.post(event, &End { bytes: -1, ..end }, false));
                self.set(
                    request,
                    Some(found.map_or(Request::Nothing(event.sym), |found| Request::Found(found, event.sym))),
                );
            }
            Action::Matched { start } => self.take(event, start, to),
            Action::Start if role.requests == ABSENT => self.start(event, request, to),
            Action::Start => event.requests().iter().for_each(|r| self.start(event, *r, to)),
            Action::Complete => event.completed().for_each(|c| self.complete(event, &c, to)),
            Action::Free => self.free(request, to),
            Action::Internal if pauses(event) => self.pauses += 1,
            Action::Collective { rule, start } => self.collective(event, rule, start, to),
            Action::Internal
            | Action::Init
            | Action::Finalize
            | Action::Creation
            | Action::Topology
            | Action::Close
            | Action::Epoch(_) => {}
        }
    }

    /// Where the rank stands in the call's communicator; the world is the first of every table.
    fn at(&mut self, event: &Event<'_>, to: &mut impl Listener<Part = P>) -> Option<Standing> {
        self.standing(event, Scope::Comm(event.comm().unwrap_or(0)), to)
    }

    fn room(event: &Event<'_>, side: usize, to: &mut impl Listener<Part = P>) -> i64 {
        let words = event.words();
        to.bytes(event, words.one(event.role.count[side]), words.one(event.role.types[side]))
    }

    /// The end of a message that a call sends; `None` without a partner.
    fn sending(&mut self, event: &Event<'_>, sync: bool, to: &mut impl Listener<Part = P>) -> Option<End> {
        let at = self.at(event, to)?;
        let peer = event.dest().filter(|p| *p < at.peers)?;
        let tag = event.sent_tag().unwrap_or(0);
        let bytes = Self::room(event, SENT, to);
        Some(End { at, peer, tag, sync, bytes, sym: event.sym, call: event.index, made: event.index })
    }

    /// The end of a receive, not known where it has wildcards.
    fn receiving(&mut self, event: &Event<'_>, to: &mut impl Listener<Part = P>) -> Option<End> {
        let at = self.at(event, to)?;
        let source = event.named_source().unwrap_or(0);
        if source == PROC_NULL {
            return None;
        }
        let peer = u32::try_from(source).unwrap_or(UNKNOWN);
        let tag = event.received_tag().map_or(0, |tag| if tag == ANY_TAG { UNKNOWN_TAG } else { tag });
        let bytes = Self::room(event, RECEIVED, to);
        Some(End { at, peer, tag, sync: false, bytes, sym: event.sym, call: event.index, made: event.index })
    }

    /// The end of a message in parts: the n-th such send that was made for a peer and tag meets the n-th receive, and
    /// nothing else (MPI 4.1, section 4.2). Parts of another number on the other side make the same message; its bytes are those of all
    /// parts.
    fn in_parts(&mut self, event: &Event<'_>, end: End, sends: bool) -> End {
        if !event.role.partitioned {
            return end;
        }
        let channel = if sends { end.sent_through() } else { end.received_through() };
        let n = self.in_parts.entry((channel, sends)).or_default();
        *n += 1;
        let bytes = match event.arg("partitions") {
            Some(Arg::One(parts)) if end.bytes >= 0 => end.bytes.saturating_mul(parts),
            _ => -1,
        };
        End { tag: end.tag.saturating_add(*n * PARTITIONED), bytes, ..end }
    }

    fn send(
        &mut self,
        event: &Event<'_>,
        end: Option<End>,
        start: Start,
        request: i64,
        to: &mut impl Listener<Part = P>,
    ) {
        if start == Start::Persistent {
            return self.keep(event, request, end.map_or(Template::Nothing, Template::Send));
        }
        let Some(end) = end else { return };
        let number = to.send(event, &end, start == Start::Blocking);
        if start == Start::Request {
            self.set(request, Some(Request::Send(number, end)));
        }
    }

    fn receive(
        &mut self,
        event: &Event<'_>,
        end: Option<End>,
        start: Start,
        request: i64,
        to: &mut impl Listener<Part = P>,
    ) {
        if start == Start::Persistent {
            return self.keep(event, request, end.map_or(Template::Nothing, Template::Receive));
        }
        let Some(end) = end else { return };
        let number = to.post(event, &end, start == Start::Blocking);
        if start == Start::Request {
            self.set(request, Some(Request::Receive(number, event.sym)));
        }
    }

    fn keep(&mut self, event: &Event<'_>, request: i64, template: Template<P>) {
        self.set(request, Some(Request::Persistent(Box::new(template), None, event.sym)));
    }

    fn take(&mut self, event: &Event<'_>, start: Start, to: &mut impl Listener<Part = P>) {
        let message = event.words().one(event.role.request);
        let taken = self.find(message, to).and_then(Option::take);
        let made = event.words().one(event.role.new_request);
        let Some(Request::Found(number, _)) = taken else {
            // What a probe of MPI_PROC_NULL finds, or a message that another thread has found.
            if start != Start::Blocking {
                self.set(made, Some(Request::Nothing(event.sym)));
            }
            return;
        };
        let room = Self::room(event, RECEIVED, to);
        to.take(event, number, room);
        if start == Start::Blocking {
            to.received(event, number, &Completed::default());
        } else {
            self.set(made, Some(Request::Receive(number, event.sym)));
        }
    }

    fn start(&mut self, event: &Event<'_>, request: i64, to: &mut impl Listener<Part = P>) {
        let Some(Some(Request::Persistent(template, running, _))) = self.find(request, to) else { return };
        let started = match &mut **template {
            Template::Nothing => Request::Nothing(event.sym),
            Template::Send(end) => {
                let end = End { call: event.index, ..*end };
                Request::Send(to.send(event, &end, false), end)
            }
            Template::Receive(end) => {
                Request::Receive(to.post(event, &End { call: event.index, ..*end }, false), event.sym)
            }
            Template::Part(part, which, starts) => {
                let number = to.join(event, part.clone(), Some((*which, *starts)), false);
                *starts += 1;
                Request::Part(number, event.sym)
            }
        };
        *running = Some(Box::new(started));
        if let Some(since) = usize::try_from(request).ok().and_then(|i| self.since.get_mut(i)) {
            *since = self.pauses;
        }
    }

    fn complete(&mut self, event: &Event<'_>, c: &Completed, to: &mut impl Listener<Part = P>) {
        let Some(request) = c.request else { return };
        let done = match self.find(request, to) {
            Some(Some(Request::LeftOut)) => return,
            // A persistent request that is not active completes at once.
            Some(Some(Request::Persistent(_, running, _))) => running.take().map(|r| *r),
            Some(slot @ Some(_)) => slot.take(),
            _ => return to.unknown(event),
        };
        match done {
            Some(Request::Send(number, end)) => to.sent(event, number, &end, c.cancelled),
            Some(Request::Receive(number, _)) => to.received(event, number, c),
            Some(Request::Part(number, _)) => to.leave(event, number),
            _ => {}
        }
    }

    fn free(&mut self, request: i64, to: &mut impl Listener<Part = P>) {
        let running = match self.find(request, to).and_then(Option::take) {
            Some(Request::Persistent(template, running, _)) => {
                if let Template::Receive(end) = *template {
                    to.release(end.made);
                }
                running.map(|r| *r)
            }
            other => other,
        };
        match running {
            Some(Request::Receive(number, _)) => to.forget(number),
            Some(Request::Send(number, _)) => to.forget_send(number),
            _ => {}
        }
    }

    fn collective<L: Listener<Part = P>>(&mut self, event: &Event<'_>, rule: Rule, start: Start, to: &mut L) {
        let request = event.words().one(event.role.new_request);
        let Some(at) = self.at(event, to).filter(|at| at.members > 1 || L::ALONE) else {
            // It is still there after each completion.
            if start == Start::Persistent {
                self.keep(event, request, Template::Nothing);
            }
            return;
        };
        let part = to.part(event, at, rule);
        match start {
            Start::Blocking => {
                to.join(event, part, None, true);
            }
            Start::Request => {
                let number = to.join(event, part, None, false);
                self.set(request, Some(Request::Part(number, event.sym)));
            }
            Start::Persistent => {
                to.make(event, &part);
                let which = self.made.entry(at.group).or_default();
                let template = Template::Part(part, *which, 0);
                *which += 1;
                self.keep(event, request, template);
            }
        }
    }

    /// A request that a call names, which another thread may have made.
    fn find(&mut self, request: i64, to: &mut impl Listener<Part = P>) -> Option<&mut Option<Request<P>>> {
        if !self.has(request)
            && let Some(Moved(moved)) = to.elsewhere(request)
        {
            self.set(request, Some(moved));
        }
        self.slot(request)
    }

    fn slot(&mut self, request: i64) -> Option<&mut Option<Request<P>>> {
        self.requests.get_mut(usize::try_from(request).ok()?)
    }

    fn set(&mut self, request: i64, to: Option<Request<P>>) {
        let Some(i) = usize::try_from(request).ok().filter(|i| *i < REQUESTS) else { return };
        if i >= self.requests.len() {
            self.requests.resize_with(i + 1, || None);
            self.since.resize(i + 1, 0);
        }
        self.requests[i] = to;
        self.since[i] = self.pauses;
    }
}

/// Whether a call pauses recording: what its rank does until it goes on is not in the trace.
#[must_use]
pub fn pauses(event: &Event<'_>) -> bool {
    event.pcontrol() == Some(0)
}
