//! What is left at the end of a trace: requests that nothing completes or frees, objects that nothing frees, and messages
//! of which one end is not there.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use st_model::calls::roles::{Role, Rule};
use st_model::calls::words::{ABSENT, slot};
use st_model::calls::{CallId, CallTable, Kind, Meaning, Object, Row, names};
use st_model::event::{Completed, Event};
use st_model::folded::SymbolCalls;
use st_model::num::{Exact as _, narrow, saturate};
use st_model::project::Error;
use st_model::ranklist::RankList;
use st_model::section::{Section, Sym};
use st_model::steps::Budget;

use crate::Unknown;
use crate::balance;
use crate::communication::{Communication, End, Left, Listener};
use crate::graph::{Barriers, Matcher, OpenEnd};
use crate::standing::{Scope, Standing};

/// What is left.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum What {
    /// A request that was started and never completed.
    Request,
    /// A persistent request that was never freed, and is not active.
    Persistent,
    /// A message that was found and taken out of the queue, and never received.
    Message,
    /// A communicator that was never freed.
    Comm,
    /// A group.
    Group,
    /// A datatype.
    Type,
    /// A reduction operation.
    Op,
    /// A window.
    Win,
    /// A file that was never closed.
    File,
    /// A message that nobody receives.
    Send,
    /// A receive that completed, and whose message nobody in the trace sent.
    Receive,
    /// A receive whose request was freed before it completed, and to which nobody sent a message.
    Freed,
}

impl What {
    /// What it is called; more than one have an s behind.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "active request",
            Self::Persistent => "persistent request",
            Self::Message => "found message",
            Self::Comm => "communicator",
            Self::Group => "group",
            Self::Type => "datatype",
            Self::Op => "reduction operation",
            Self::Win => "window",
            Self::File => "file",
            Self::Send => "unmatched send",
            Self::Receive => "unmatched receive",
            Self::Freed => "freed receive",
        }
    }
}

/// A function, where it is called from ([`st_model::sites::Site`]), and what is left of its calls.
pub type LeakOrigin = (What, CallId, Option<u128>);

/// What is left in a trace.
#[derive(Clone, Debug, Default)]
pub struct Leaks {
    /// How many are left on each rank.
    pub left: BTreeMap<LeakOrigin, BTreeMap<u32, u64>>,
    /// Ranks that did not come to their end, of which nothing is said.
    pub early: u64,
    /// Ranks that paused recording (`MPI_Pcontrol`), of which only requests are told that they made after that.
    pub paused: u64,
    /// Completions of requests that another thread started: these seem never to complete.
    pub elsewhere: u64,
    /// Sends to processes of other jobs and receives from these, whose other ends are not in the trace.
    pub outside: u64,
}

/// Whether all threads of a rank came to the end of their program: of what others leave behind nothing is to be said.
#[must_use]
pub fn came_to_its_end(section: &Section, rank: u32) -> bool {
    section.ended_of(rank).is_empty()
}

/// The calls that made requests which nothing completed or freed, with what is left of these, when a thread has ended.
pub fn requests<P: Clone>(
    section: &Section,
    communication: &Communication<P>,
) -> impl Iterator<Item = (Sym, What)> {
    communication.left().map(|(sym, left)| {
        let kind = row(section, sym).map(|row| row.kind);
        let what = match left {
            Left::Inactive => What::Persistent,
            Left::Active if kind == Some(Kind::MatchedProbe) => What::Message,
            Left::Active => What::Request,
        };
        (sym, what)
    })
}

fn row(section: &Section, sym: Sym) -> Option<&'static Row> {
    section.symbols.get(sym as usize).and_then(|s| CallTable::builtin().get(s.call))
}

impl Leaks {
    /// Looks for requests and objects. *Cost:* for objects by what is stored; for requests by the calls of ranks that make
    /// some, where not as many complete: it is their order that tells which does.
    ///
    /// # Errors
    ///
    /// If a rank cannot be read back, or if that takes more than the budget allows.
    pub fn of(sections: &[Section], budget: &Budget) -> Result<Self, Unknown> {
        let mut all = Self::default();
        budget.spend_rows(sections)?;
        let (mut done, ranks) = (0, sections.iter().map(|section| section.ranks.len()).sum());
        for section in sections {
            for rank in section.ranks.iter() {
                done += 1;
                if !came_to_its_end(section, rank) {
                    all.early += 1;
                    continue;
                }
                if paused(section, rank, budget)? {
                    all.paused += 1;
                } else {
                    all.objects(section, rank, budget)?;
                }
                all.requests(section, rank, budget).map_err(|why| why.of_part(done, ranks))?;
            }
        }
        Ok(all)
    }

    /// Looks for messages of which one end is not there, if the trace holds all ranks. *Cost:* by what is stored where as many
    /// are received as are sent and no receive is open to several; else by the calls.
    ///
    /// # Errors
    ///
    /// As [`Leaks::of`].
    pub fn add_unmatched(&mut self, sections: &[Section], budget: &Budget) -> Result<(), Unknown> {
        if balance::meet_all(sections, &Budget::new(budget.left())) {
            return Ok(());
        }
        let mut matcher = Matcher::within(Barriers::default(), budget.clone());
        budget.spend_all(sections, None, 2)?;
        sections.iter().try_for_each(|section| matcher.add(section))?;
        let mut ends: HashMap<(u32, u32), Vec<(u64, What)>, FixedState> = HashMap::default();
        for OpenEnd { call, receives, freed, outside } in matcher.open_ends() {
            if outside {
                self.outside += 1;
                continue;
            }
            let what = match (receives, freed) {
                (_, true) => What::Freed,
                (true, _) => What::Receive,
                _ => What::Send,
            };
            ends.entry((call.rank, call.thread)).or_default().push((call.index, what));
        }
        for section in sections {
            for rank in section.ranks.iter().filter(|rank| came_to_its_end(section, *rank)) {
                for thread in 0..section.threads.len() {
                    let Some(ends) = ends.remove(&(rank, narrow(thread))) else { continue };
                    self.find(section, thread, rank, ends)?;
                }
            }
        }
        Ok(())
    }

    /// Calls of a symbol by a rank have left so many behind.
    fn enter(&mut self, section: &Section, rank: u32, sym: Sym, what: What, n: u64) {
        let Some(symbol) = section.symbols.get(sym as usize).filter(|_| n > 0) else { return };
        let site = section.sites.get(symbol.site).map(|site| site.id);
        *self.left.entry((what, symbol.call, site)).or_default().entry(rank).or_default() += n;
    }

    fn requests(&mut self, section: &Section, rank: u32, budget: &Budget) -> Result<(), Unknown> {
        let made = |(sym, calls): (Sym, u64)| calls > 0 && row(section, sym).is_some_and(makes_request);
        let mut threads = section.threads.iter().filter(|t| t.ranks.contains(rank));
        if !threads.any(|t| (0..).zip(section.calls_of(t, rank)).any(made)) {
            return Ok(());
        }
        if balance::completes_all(section, rank) {
            return Ok(());
        }
        budget.spend(section, Some(&RankList::single(rank)), 1)?;
        for thread in 0..section.threads.len() {
            let Some(mut events) = section.events(thread, rank) else { continue };
            let (mut communication, mut alone) = (Communication::default(), Alone::default());
            while let Some(event) = events.next_event()? {
                communication.event(&event, &mut alone);
            }
            self.elsewhere += alone.unknown;
            requests(section, &communication).for_each(|(sym, what)| self.enter(section, rank, sym, what, 1));
        }
        Ok(())
    }

    /// What was made less what was freed: an index of a table stands for one object at a time.
    fn objects(&mut self, section: &Section, rank: u32, budget: &Budget) -> Result<(), Unknown> {
        let mut made: BTreeMap<(What, i64), Vec<(Sym, u64)>> = BTreeMap::new();
        let mut freed: HashMap<(What, i64), u64, FixedState> = HashMap::default();
        for (thread, t) in section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank)) {
            budget.take_short(t.tree.items().len().to_u64())?;
            for (sym, calls) in (0..).zip(section.calls_of(t, rank)).filter(|(_, calls)| *calls > 0) {
                let ok = section.symbols.get(sym as usize).is_some_and(|s| s.error == 0);
                for (slot, what, makes) in row(section, sym).filter(|_| ok).into_iter().flat_map(objects) {
                    let mut enter = |index: i64, times: u64| match makes {
                        _ if index < 0 => {}
                        true => made.entry((what, index)).or_default().push((sym, times)),
                        false => *freed.entry((what, index)).or_default() += times,
                    };
                    let calls = SymbolCalls { rank, thread, sym, calls };
                    each_value(section, calls, slot, budget, &mut enter)?;
                }
            }
        }
        for (key, makers) in made {
            let all: u64 = makers.iter().map(|(_, n)| n).sum();
            let mut left = all.saturating_sub(freed.get(&key).copied().unwrap_or(0));
            for (sym, n) in makers.into_iter().rev() {
                self.enter(section, rank, sym, key.0, n.min(left));
                left -= n.min(left);
            }
        }
        Ok(())
    }

    /// Enters calls of a thread by their positions.
    fn find(
        &mut self,
        section: &Section,
        thread: usize,
        rank: u32,
        mut ends: Vec<(u64, What)>,
    ) -> Result<(), Error> {
        ends.sort_unstable();
        let mut ends = ends.into_iter().peekable();
        let Some(mut walk) = section.symbols_of(thread, rank) else { return Ok(()) };
        let mut at = 0;
        while ends.peek().is_some() {
            let run = walk.next_run().map_err(|source| Error::Tree { rank, source })?;
            let Some((sym, n)) = run else { return Ok(()) };
            at += saturate::<u64>(n);
            while let Some((_, what)) = ends.next_if(|(index, _)| *index < at) {
                self.enter(section, rank, sym, what, 1);
            }
        }
        Ok(())
    }
}

/// Whether calls of a function make something that another is to complete: a request, or a message that is found.
fn makes_request(row: &Row) -> bool {
    Role::of_call(row.id).makes != ABSENT || row.kind == Kind::MatchedProbe
}

/// Slots of objects that a function makes (`true`) or frees. What MPI itself has is not to be freed.
pub(crate) fn objects(row: &'static Row) -> impl Iterator<Item = (u8, What, bool)> {
    let predefined = matches!(row.kind, Kind::TypeLookup | Kind::Parent);
    row.slots.iter().enumerate().filter_map(move |(i, slot)| {
        let what = match slot.meaning {
            Meaning::Ref(Object::Comm) => What::Comm,
            Meaning::Ref(Object::Group) => What::Group,
            Meaning::Ref(Object::Type) => What::Type,
            Meaning::Ref(Object::Op) => What::Op,
            Meaning::Ref(Object::Win) => What::Win,
            Meaning::Ref(Object::File) => What::File,
            _ => return None,
        };
        let known = !slot.list && !predefined && (slot.is_made() || slot.is_freed());
        known.then(|| (narrow(i), what, slot.is_made()))
    })
}

/// The kind of objects that a function makes.
#[must_use]
pub fn made_by(call: CallId) -> Option<What> {
    let row = CallTable::builtin().get(call)?;
    objects(row).find(|(.., makes)| *makes).map(|(_, what, _)| what)
}

/// Whether a rank has paused recording.
fn paused(section: &Section, rank: u32, budget: &Budget) -> Result<bool, Unknown> {
    let mut paused = false;
    for (thread, t) in section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank)) {
        for (sym, calls) in (0..).zip(section.calls_of(t, rank)).filter(|(_, calls)| *calls > 0) {
            if let Some(row) = row(section, sym).filter(|row| row.name == names::MPI_Pcontrol) {
                let calls = SymbolCalls { rank, thread, sym, calls };
                each_value(section, calls, slot(row, "level"), budget, &mut |level, _| paused |= level == 0)?;
            }
        }
    }
    Ok(paused)
}

/// The values of a slot of a symbol's calls, each with how often it comes.
fn each_value(
    section: &Section,
    calls: SymbolCalls,
    slot: u8,
    budget: &Budget,
    tell: &mut impl FnMut(i64, u64),
) -> Result<(), Unknown> {
    if let Some(mut folded) = section.folded(calls, |i| i == usize::from(slot)) {
        while let Some((event, times)) = folded.next_call()? {
            budget.take(1)?;
            tell(event.words().one(slot), times);
        }
        return Ok(());
    }
    budget.spend(section, Some(&RankList::single(calls.rank)), 1)?;
    let Some(mut events) = section.events(calls.thread, calls.rank) else { return Ok(()) };
    while let Some(event) = events.next_event()? {
        if event.sym == calls.sym {
            tell(event.words().one(slot), 1);
        }
    }
    Ok(())
}

/// Follows requests without regard to whom they concern.
#[derive(Default)]
struct Alone {
    unknown: u64,
}

impl Listener for Alone {
    type Part = ();

    fn standing(&mut self, _: &Event<'_>, _: Scope) -> Option<Standing> {
        None
    }
    fn send(&mut self, _: &Event<'_>, _: &End, _: bool) -> usize {
        0
    }
    fn sent(&mut self, _: &Event<'_>, _: usize, _: &End, _: bool) {}
    fn post(&mut self, _: &Event<'_>, _: &End, _: bool) -> usize {
        0
    }
    fn received(&mut self, _: &Event<'_>, _: usize, _: &Completed) {}
    fn part(&mut self, _: &Event<'_>, _: Standing, _: Rule) {}
    fn join(&mut self, _: &Event<'_>, (): (), _: Option<(u32, u32)>, _: bool) -> usize {
        0
    }
    fn leave(&mut self, _: &Event<'_>, _: usize) {}
    fn unknown(&mut self, _: &Event<'_>) {
        self.unknown += 1;
    }
}
