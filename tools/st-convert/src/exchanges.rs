//! What a call does with others, as formats want to know it.

use std::collections::HashMap;
use std::rc::Rc;

use foldhash::fast::FixedState;
use slab::Slab;
use st_match::PARTITIONED;
use st_match::communication::{End, Listener, Moved};
use st_match::messages::{Left, Messages};
use st_match::standing::{Scope, Standing};
use st_match::volume::Volumes;
use st_model::calls::roles::{Action, Rule, Start};
use st_model::event::{Arg, Completed, Event};
use st_model::num::{Exact as _, narrow, saturate};
use st_model::section::Section;

use crate::amounts::Amounts;
use crate::groups::Groups;
use crate::losses::Losses;
use crate::matters::Said;
use crate::message::{Message, Moment};
use crate::requests::{Found, Made, Others};
use crate::way::Way;

/// One end of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Side {
    /// Of a send its message's number, of a receive its own.
    pub(crate) id: u64,
    /// The other rank of the world; `None` of a wildcard that is not resolved.
    pub(crate) peer: Option<u32>,
    /// `None` likewise.
    pub(crate) tag: Option<i64>,
    /// Bytes sent, or room for so many; 0 if that is not known.
    pub(crate) bytes: u64,
    /// Number of the communicator.
    pub(crate) group: u32,
}

/// A part in a collective operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ExchangePart {
    /// Equal for all that take part in one operation, and for no other one.
    pub(crate) operation: u64,
    /// Number of this part.
    pub(crate) id: u64,
    pub(crate) group: u32,
    /// The rank's side of an intercommunicator, else 0, and its position in that.
    pub(crate) side: u8,
    pub(crate) me: usize,
    pub(crate) rule: Rule,
    /// The rank is the communicator's only member.
    pub(crate) alone: bool,
    /// The root as the call names it, if it names one.
    pub(crate) root: Option<i64>,
    /// Its blocks, for formats that are played.
    pub(crate) amounts: Option<Rc<Amounts>>,
}

/// What a call does with others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Exchange {
    /// It sends a message; `done`: it also completes that.
    Send { side: Side, done: bool },
    /// It completes the send of a message.
    Sent { id: u64 },
    /// It posts a receive; `done`: it also completes that, as is said next.
    Post { side: Side, done: bool },
    /// It completes a receive, which is now all known.
    Received {
        side: Side,
        /// The call has also posted it.
        at_once: bool,
    },
    /// It finds that a send or receive was cancelled.
    Cancelled { id: u64, send: bool },
    /// It takes part in a collective operation; `done`: it also completes its part.
    Join { part: ExchangePart, done: bool },
    /// It completes its part in a collective operation.
    Left { part: ExchangePart },
}

/// A send under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    id: u64,
    bytes: i64,
    by: Moment,
    chosen: bool,
}

/// A receive under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    side: Side,
    by: Moment,
    received: Option<Moment>,
    group_side: u8,
    chosen: bool,
}

/// A request that a call names and another thread of the rank has made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MovedRequest {
    pub(crate) number: i64,
    /// The thread that made it, by number in [`crate::trace::Trace::lanes`].
    pub(crate) by: u32,
}

/// What all threads share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) groups: Groups,
    messages: Messages<Sent, Posted>,
    /// Receives under way whose other ends are not looked for.
    alone: Slab<Posted>,
    sends: u64,
    receives: u64,
    parts: u64,
    /// Parts in collective operations that are under way.
    open: Slab<ExchangePart>,
    /// Of the call that is being read.
    pub(crate) moved: Vec<MovedRequest>,
    /// Messages both ends of which have become known.
    pub(crate) known: Vec<Message>,
    pub(crate) losses: Losses,
    /// What the calls that are written have said.
    pub(crate) said: Said,
    /// Messages one end of which is chosen.
    cut: u64,
    way: Way,
}

/// A call that is being read.
pub(crate) struct Reading<'s, 'a> {
    pub(crate) shared: &'s mut Shared,
    pub(crate) section: &'a Section,
    pub(crate) volumes: &'s Volumes<'a>,
    pub(crate) others: Others<'s>,
    pub(crate) sequences: &'s mut Sequences,
    pub(crate) exchanges: &'s mut Vec<Exchange>,
    pub(crate) by: Moment,
    /// Bytes that it receives, as st-stat counts them.
    pub(crate) bytes: u64,
    /// The call is written.
    pub(crate) chosen: bool,
}

/// How many collective operations a rank has taken part in, by communicator.
pub(crate) type Sequences = HashMap<(u32, u32), u32, FixedState>;

/// Where the number of an operation has that of its communicator.
const GROUP: u32 = 40;

impl Shared {
    pub(crate) fn new(way: Way) -> Self {
        Self { way, ..Self::default() }
    }

    /// Both ends of messages are looked for.
    fn matching(&self) -> bool {
        self.way == Way::InTime
    }

    /// What is known of a receive under way.
    fn posted(&mut self, receive: usize) -> Option<&mut Posted> {
        if self.matching() { self.messages.posted(narrow(receive)) } else { self.alone.get_mut(receive) }
    }

    /// Nothing more comes of a receive under way, unless it has met its send.
    fn withdraw(&mut self, receive: usize) {
        if self.matching() {
            self.messages.withdraw(narrow(receive));
        } else {
            self.alone.try_remove(receive);
        }
    }

    /// Tells of messages that have met.
    fn meet(&mut self) {
        while let Some((send, receive)) = self.messages.next_met() {
            self.complete(send, receive);
        }
    }

    /// A message of which both ends may be known.
    fn complete(&mut self, send: u32, receive: u32) {
        let (Some(sent), Some(posted)) =
            (self.messages.sent(send).copied(), self.messages.posted(receive).copied())
        else {
            return;
        };
        let Some(received) = posted.received else { return };
        self.messages.forget(send, receive);
        if !(sent.chosen && posted.chosen) {
            self.cut += u64::from(sent.chosen || posted.chosen);
            return;
        }
        let bytes = u64::try_from(sent.bytes).ok();
        self.known.push(Message {
            id: sent.id,
            sent: sent.by,
            posted: posted.by,
            received,
            group: posted.side.group,
            tag: posted.side.tag.unwrap_or_default(),
            bytes: bytes.unwrap_or(posted.side.bytes),
        });
    }

    /// Messages that are not drawn, as losses of who draws messages; `cut`: calls that come later have not been read.
    pub(crate) fn undrawn(&self, cut: bool) -> Losses {
        let mut losses = Losses::default();
        if !self.matching() {
            return losses;
        }
        let ([sends, receives], unsure) = (self.messages.unmatched(), self.messages.unsure());
        losses.add("sends whose receive is not there", sends.saturating_sub(unsure));
        losses.add("sends whose receive is not known: one with a wildcard has not completed", unsure);
        losses.add("receives whose send is not there", receives);
        losses.add("messages whose order is not known", self.messages.unordered());
        losses.add(ONE_END, self.cut);
        for Left { what, sent, is_held, has_channel } in self.messages.left() {
            let lost = match sent {
                Some(sent) if !(sent.chosen || what.chosen) => continue,
                Some(_) if cut => ONE_END,
                Some(_) => "messages whose receive is not seen to complete",
                None if is_held && has_channel => {
                    "receives whose send is not known: one with a wildcard has not completed"
                }
                None if is_held && what.received.is_some() => "receives whose source or tag is not known",
                None => continue,
            };
            losses.add(lost, 1);
        }
        losses
    }
}

/// What messages are called of which a call is outside.
const ONE_END: &str = "messages with one end outside of what is chosen";

impl Reading<'_, '_> {
    fn side(&self, end: &End, id: u64) -> Side {
        let peer = self.shared.groups.world(end.at.group, end.at.other(), end.peer);
        Side { id, peer, tag: tag(end.tag), bytes: saturate(end.bytes), group: end.at.group }
    }
}

/// What is said of requests with a number that several other threads have under way.
const UNSURE: &str =
    "requests of which it is not known which other thread made them (one of several is taken)";

/// A tag as programs know it.
fn tag(tag: i64) -> Option<i64> {
    // Those of messages in parts have a number added.
    (tag >= 0).then_some(tag % PARTITIONED)
}

impl Listener for Reading<'_, '_> {
    type Part = Made;
    const ALONE: bool = true;

    fn standing(&mut self, event: &Event<'_>, scope: Scope) -> Option<Standing> {
        self.shared.groups.standing(self.section, event.rank, scope)
    }

    fn bytes(&mut self, _: &Event<'_>, count: i64, datatype: i64) -> i64 {
        self.volumes.size_of(datatype).map_or(-1, |size| size.saturating_mul(count))
    }

    fn send(&mut self, _: &Event<'_>, end: &End, done: bool) -> usize {
        let id = self.shared.sends;
        self.shared.sends += 1;
        let side = self.side(end, id);
        self.exchanges.push(Exchange::Send { side, done });
        if self.shared.matching() {
            let sent = Sent { id, bytes: end.bytes, by: self.by, chosen: self.chosen };
            self.shared.messages.send(self.by.at, end.sent_through(), sent);
            self.shared.meet();
        }
        id.to_usize()
    }

    fn sent(&mut self, _: &Event<'_>, number: usize, _: &End, cancelled: bool) {
        let id = number.to_u64();
        self.exchanges.push(if cancelled {
            Exchange::Cancelled { id, send: true }
        } else {
            Exchange::Sent { id }
        });
    }

    fn post(&mut self, event: &Event<'_>, end: &End, done: bool) -> usize {
        let id = self.shared.receives;
        self.shared.receives += 1;
        let side = self.side(end, id);
        // What a probe finds, who takes it posts.
        if event.action() != Action::Match {
            self.exchanges.push(Exchange::Post { side, done });
        }
        let group_side = end.at.other();
        let mut posted = Posted { side, by: self.by, received: None, group_side, chosen: self.chosen };
        if done {
            posted.received = Some(self.by);
            // Of what its status does not tell its room is known.
            let is_told = matches!(event.arg("bytes"), Some(Arg::One(0..)));
            posted.side.bytes = if is_told { self.bytes } else { posted.side.bytes };
        }
        let receive = if self.shared.matching() {
            self.shared.messages.post(self.by.at, end.received_through(), posted).to_usize()
        } else if done {
            0
        } else {
            self.shared.alone.insert(posted)
        };
        if done {
            self.exchanges.push(Exchange::Received { side: posted.side, at_once: true });
        }
        self.shared.meet();
        receive
    }

    fn take(&mut self, event: &Event<'_>, number: usize, bytes: i64) {
        let Some(posted) = self.shared.posted(number) else { return };
        let side = Side { bytes: saturate(bytes), ..posted.side };
        let done = event.action() == Action::Matched { start: Start::Blocking };
        self.exchanges.push(Exchange::Post { side, done });
    }

    fn received(&mut self, event: &Event<'_>, number: usize, got: &Completed) {
        let Some(mut posted) = self.shared.posted(number).copied() else { return };
        if got.cancelled {
            let id = posted.side.id;
            self.exchanges.push(Exchange::Cancelled { id, send: false });
            self.shared.withdraw(number);
            return;
        }
        (posted.received, posted.chosen) = (Some(self.by), self.chosen);
        if let Some(from) = got.source {
            posted.side.peer = self.shared.groups.world(posted.side.group, posted.group_side, from);
        }
        posted.side.tag = got.tag.or(posted.side.tag);
        let matched = matches!(event.action(), Action::Matched { .. });
        posted.side.bytes = got.bytes.unwrap_or(if matched { self.bytes } else { posted.side.bytes });
        self.exchanges.push(Exchange::Received { side: posted.side, at_once: matched });
        if !self.shared.matching() {
            self.shared.withdraw(number);
            return;
        }
        let receive: u32 = narrow(number);
        let kept = self.shared.messages.posted(receive);
        kept.into_iter().for_each(|kept| *kept = posted);
        self.shared.messages.settle(receive, got);
        self.shared.meet();
        let met = self.shared.messages.met_by_receive(receive).map(|(_, _, send, _)| send);
        met.into_iter().for_each(|send| self.shared.complete(send, receive));
    }

    fn part(&mut self, event: &Event<'_>, at: Standing, rule: Rule) -> Made {
        let played = self.shared.way == Way::Played;
        let amounts = played.then(|| Rc::new(Amounts::of(event, rule, self.volumes)));
        Made { at, rule, root: event.words().get(event.role.root), amounts }
    }

    fn join(&mut self, event: &Event<'_>, made: Made, persistent: Option<(u32, u32)>, done: bool) -> usize {
        let Made { at, rule, root, amounts } = made;
        let group = u64::from(at.group) << GROUP;
        let operation = match persistent {
            Some((made, start)) => {
                1 << 62 | group | (u64::from(made) & 0xffff) << 24 | u64::from(start) & 0xff_ffff
            }
            None => {
                let n = self.sequences.entry((event.rank, at.group)).or_default();
                *n = n.wrapping_add(1);
                group | u64::from(*n)
            }
        };
        let id = self.shared.parts;
        self.shared.parts += 1;
        let (side, me, alone) = (at.side, at.me.to_usize(), at.members == 1);
        let part = ExchangePart { operation, id, group: at.group, side, me, rule, alone, root, amounts };
        self.exchanges.push(Exchange::Join { part: part.clone(), done });
        if done { 0 } else { self.shared.open.insert(part) }
    }

    fn leave(&mut self, _: &Event<'_>, number: usize) {
        let left = self.shared.open.try_remove(number);
        self.exchanges.extend(left.map(|part| Exchange::Left { part }));
    }

    fn elsewhere(&mut self, number: i64) -> Option<Moved<Made>> {
        let Found { request, by, is_unsure } = self.others.take(number)?;
        self.shared.moved.push(MovedRequest { number, by });
        self.shared.losses.add(UNSURE, is_unsure.into());
        Some(request)
    }

    fn unknown(&mut self, _: &Event<'_>) {
        self.shared.losses.add("completions of requests that nothing has made", 1);
    }
}
