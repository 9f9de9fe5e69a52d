//! One call of a rank with what it means: what readers of a trace go through.
//!
//! [`Section::events`] gives the calls of one rank's thread in their order. An [`Event`] is lent until the next one is
//! read, so that reading allocates nothing per call; its accessors say what the call's words mean by the call table, so
//! that a reader need not look for words by their position. What one rank's requests stand for, and who meets whom, is the crate
//! `st_match`.

use crate::calls::roles::{Action, Role};
use crate::calls::words::{Words, slot};
use crate::calls::{CallTable, Meaning, Row, names};
use crate::columns::{Column, Points};
use crate::num::saturate;
use crate::objects::{Comm, Named};
use crate::project::{Error, Projection};
use crate::section::{Section, Sym, Symbol, Tables};
use crate::tree::Turn;
use crate::values::{ANY_SOURCE, ANY_TAG, CANCELLED, NONE};

/// What is sent, in [`Event::count`] and [`Event::bytes`].
pub const SENT: usize = 0;
/// What is received.
pub const RECEIVED: usize = 1;

/// What is known of a symbol without its words.
#[derive(Clone, Copy, Debug)]
struct Known {
    symbol: Symbol,
    row: Option<&'static Row>,
    role: &'static Role,
}

/// The calls of one rank and thread, in order. Memory does not depend on their number.
#[derive(Debug)]
pub struct Events<'a> {
    section: &'a Section,
    rank: u32,
    thread: usize,
    calls: Projection<'a>,
    points: Option<Points<'a>>,
    words: Words,
}

/// One call.
#[derive(Debug)]
pub struct Event<'e> {
    /// World rank that made it.
    pub rank: u32,
    /// Index of its thread in the section.
    pub thread: usize,
    /// Position on the thread, from 0.
    pub index: u64,
    /// Index of its symbol in the section.
    pub sym: Sym,
    /// Function, call site and error class.
    pub symbol: Symbol,
    /// The function's row in the call table; `None` for one that it does not list.
    pub row: Option<&'e Row>,
    /// What the function does with others, and where its words are.
    pub role: &'static Role,
    /// Enter and exit in ns, if they were asked for and are known.
    pub times: Option<(i64, i64)>,
    /// Where it is in the outermost loop around it.
    pub turn: Option<Turn>,
    section: &'e Section,
    words: &'e Words,
}

/// A parameter's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg<'e> {
    /// One value.
    One(i64),
    /// A list.
    List(&'e [i64]),
}

/// One operation that a call completes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Completed {
    /// The request, by its number on the thread; `None` for a null request.
    pub request: Option<i64>,
    /// Of a receive whose source is known: the sender in the receive's communicator.
    pub source: Option<u32>,
    /// Of a receive, its tag.
    pub tag: Option<i64>,
    /// Of a receive, read or write: bytes.
    pub bytes: Option<u64>,
    /// It was cancelled.
    pub cancelled: bool,
}

impl Known {
    fn of(symbol: &Symbol) -> Self {
        let row = CallTable::builtin().get(symbol.call);
        Self { symbol: *symbol, row, role: Role::of_call(symbol.call) }
    }
}

impl Section {
    /// The calls of a rank's thread as events, without times; `None` if the section does not hold it.
    ///
    /// *Cost:* O(symbols) here, O(words) per event.
    #[must_use]
    pub fn events(&self, thread: usize, rank: u32) -> Option<Events<'_>> {
        Some(Events {
            section: self,
            rank,
            thread,
            calls: self.project(thread, rank)?,
            points: None,
            words: Words::default(),
        })
    }
}

impl<'a> Events<'a> {
    /// The same with exact times where the trace holds them.
    #[must_use]
    pub fn timed(mut self) -> Self {
        let thread = self.section.threads.get(self.thread);
        self.points = thread.and_then(|t| t.column(self.rank)).map(Column::points);
        self
    }

    /// Position of the next event on the thread.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.calls.index()
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    ///
    /// If the section is malformed in a way that its decoder cannot see.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, Error> {
        self.next_changed(|_, _| {})
    }

    /// The next event, whose words are changed before it is looked at.
    ///
    /// # Errors
    ///
    /// As [`Events::next_event`].
    pub fn next_changed(
        &mut self,
        change: impl FnOnce(Sym, &mut Vec<i64>),
    ) -> Result<Option<Event<'_>>, Error> {
        let (index, sym, known, times) = loop {
            let index = self.calls.index();
            let Some(sym) = self.calls.next_call(&mut self.words.words)? else { return Ok(None) };
            let times = self.points.as_mut().and_then(|points| Some((points.next()?, points.next()?)));
            if let Some(symbol) = self.section.symbols.get(sym as usize) {
                break (index, sym, Known::of(symbol), times);
            }
        };
        change(sym, &mut self.words.words);
        self.words.split(known.row.map_or(&[], |row| &row.slots));
        Ok(Some(Event {
            rank: self.rank,
            thread: self.thread,
            index,
            sym,
            symbol: known.symbol,
            row: known.row,
            role: known.role,
            times,
            turn: self.calls.turn(),
            section: self.section,
            words: &self.words,
        }))
    }
}

impl<'e> Event<'e> {
    /// A call of a rank by itself, of which nothing but symbol and words is known; `None` if the section has no such symbol.
    /// It is the first of thread 0, unless [`Event::at`] says otherwise.
    #[must_use]
    pub fn apart(section: &'e Section, rank: u32, sym: Sym, words: &'e Words) -> Option<Self> {
        let Known { symbol, row, role } = Known::of(section.symbols.get(sym as usize)?);
        let (thread, index, times, turn) = (0, 0, None, None);
        Some(Self { rank, thread, index, sym, symbol, row, role, times, turn, section, words })
    }

    /// The same call at another position of its rank.
    #[must_use]
    pub fn at(self, thread: usize, index: u64) -> Self {
        Self { thread, index, ..self }
    }

    /// The level of an `MPI_Pcontrol`: 0 pauses recording on its rank, 1 goes on with it.
    #[must_use]
    pub fn pcontrol(&self) -> Option<i64> {
        match self.row.filter(|row| row.name == names::MPI_Pcontrol).and_then(|_| self.arg("level")) {
            Some(Arg::One(level)) => Some(level),
            _ => None,
        }
    }

    /// The function's name; of one that the call table does not list, as the recorder found it.
    #[must_use]
    pub fn name(&self) -> Option<&'e str> {
        let listed = self.row.map(|row| row.name.as_str());
        listed.or_else(|| self.section.tables.names.get(&self.symbol.call).map(String::as_str))
    }

    /// What it does with others; if it failed: see [`Action::after`].
    #[must_use]
    pub fn action(&self) -> Action {
        if self.symbol.error == 0 {
            return self.role.action;
        }
        match self.role.action.after(self.symbol.error) {
            // It is not known what a wildcard got.
            Action::Receive { .. } | Action::Both { .. } if self.takes_anything() => Action::Internal,
            action => action,
        }
    }

    fn takes_anything(&self) -> bool {
        self.named_source() == Some(ANY_SOURCE) || self.received_tag() == Some(ANY_TAG)
    }

    /// The section that it is of.
    #[must_use]
    pub fn section(&self) -> &'e Section {
        self.section
    }

    /// Its words by slot.
    #[must_use]
    pub fn words(&self) -> &'e Words {
        self.words
    }

    /// A parameter by its name in the call table.
    #[must_use]
    pub fn arg(&self, name: &str) -> Option<Arg<'e>> {
        let row = self.row?;
        let at = slot(row, name);
        let listed = row.slots.get(usize::from(at))?.list;
        if listed { Some(Arg::List(self.words.list(at))) } else { self.words.get(at).map(Arg::One) }
    }

    /// Index of the communicator in the rank's table.
    #[must_use]
    pub fn comm(&self) -> Option<i64> {
        self.words.get(self.role.comm)
    }

    /// The communicator.
    #[must_use]
    pub fn communicator(&self) -> Option<&'e Named<Comm>> {
        Tables::find(&self.section.tables.comms, self.comm()?, self.rank)
    }

    /// World rank of a rank in the call's communicator (of an intercommunicator: of its other group).
    #[must_use]
    pub fn world(&self, peer: u32) -> Option<u32> {
        let rank = self.communicator()?.content.peers().get(peer.into())?;
        u32::try_from(rank).ok()
    }

    /// The destination in the communicator; `None` if there is none.
    #[must_use]
    pub fn dest(&self) -> Option<u32> {
        u32::try_from(self.words.get(self.role.peer[SENT])?).ok()
    }

    /// The source in the communicator: what was named, or what came if that was a wildcard; `None` if there is none, or if
    /// only the call that completes the receive knows.
    #[must_use]
    pub fn source(&self) -> Option<u32> {
        u32::try_from(self.named_source()?).ok()
    }

    /// The same as a word: negative for a wildcard that is not resolved, and for `MPI_PROC_NULL`.
    #[must_use]
    pub fn named_source(&self) -> Option<i64> {
        self.resolved(self.role.resolved[0]).or_else(|| self.words.get(self.role.peer[RECEIVED]))
    }

    /// Tag of the message that it sends.
    #[must_use]
    pub fn sent_tag(&self) -> Option<i64> {
        self.words.get(self.role.tag[SENT])
    }

    /// Tag of the message that it receives: what was named, or what came if that was a wildcard.
    #[must_use]
    pub fn received_tag(&self) -> Option<i64> {
        self.resolved(self.role.resolved[1]).or_else(|| self.words.get(self.role.tag[RECEIVED]))
    }

    fn resolved(&self, slot: u8) -> Option<i64> {
        self.words.get(slot).filter(|v| *v != NONE)
    }

    /// Elements that it sends ([`SENT`]), or that it has room for ([`RECEIVED`]).
    #[must_use]
    pub fn count(&self, side: usize) -> Option<i64> {
        self.words.get(*self.role.count.get(side)?)
    }

    /// Of a collective operation whose blocks each have a datatype of their own: these.
    #[must_use]
    pub fn own_types(&self, side: usize) -> &'e [i64] {
        let name = if side == SENT { "sendtypes" } else { "recvtypes" };
        if let Some(Arg::List(types)) = self.arg(name) { types } else { &[] }
    }

    /// Bytes of so many elements of a datatype, by its index; `None` if it is not known.
    #[must_use]
    pub fn size(&self, count: i64, datatype: i64) -> Option<u64> {
        let found = Tables::find(&self.section.tables.types, datatype, self.rank)?;
        u64::try_from(found.content.size).ok()?.checked_mul(u64::try_from(count).ok()?)
    }

    /// Bytes of the message that it sends, or of the room that it has for one: of all its parts, if it is made of some.
    #[must_use]
    pub fn bytes(&self, side: usize) -> Option<u64> {
        let count = self.count(side)?;
        let datatype = self.words.get(*self.role.types.get(side)?)?;
        let bytes = self.size(count, datatype)?;
        match self.role.partitioned.then(|| self.arg("partitions")) {
            None => Some(bytes),
            Some(Some(Arg::One(parts))) => bytes.checked_mul(u64::try_from(parts).ok()?),
            Some(_) => None,
        }
    }

    /// Number of calls that it stands for: consecutive unsuccessful polls from one place, or reads of a clock, are one
    /// event.
    #[must_use]
    pub fn calls(&self) -> u64 {
        let series = self.row.and_then(|row| row.slots.last()).is_some_and(|s| s.meaning == Meaning::Times);
        self.words.words.last().filter(|_| series).map_or(1, |times| saturate(*times))
    }

    /// The requests that it names.
    #[must_use]
    pub fn requests(&self) -> &'e [i64] {
        self.words.list(self.role.requests)
    }

    /// The request that it makes.
    #[must_use]
    pub fn new_request(&self) -> Option<i64> {
        self.words.get(self.role.makes)
    }

    /// The operations that it completes, in the order in which it says so.
    pub fn completed(&self) -> impl Iterator<Item = Completed> + use<'e> {
        let requests = self.requests();
        let [positions, sources, tags, bytes] = self.role.completed.map(|s| self.words.list(s));
        positions.iter().enumerate().map(move |(k, position)| {
            let request = usize::try_from(*position).ok().and_then(|p| requests.get(p)).copied();
            let of = |list: &[i64]| list.get(k).copied();
            Completed {
                request: request.filter(|r| *r >= 0),
                source: of(sources).and_then(|s| u32::try_from(s).ok()),
                tag: of(tags).filter(|t| *t >= 0),
                bytes: of(bytes).and_then(|b| u64::try_from(b).ok()),
                cancelled: of(bytes) == Some(CANCELLED),
            }
        })
    }
}
