//! A thread that is read, several calls at a time.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use foldhash::fast::FixedState;
use st_match::communication::{Communication, pauses};
use st_match::graph::{Epochs, Part, Topologies};
use st_match::leaks::{What, came_to_its_end, requests};
use st_match::standing::Standing;
use st_match::unfreed;
use st_match::volume::{Graphs, Volumes};
use st_model::calls::{Kind, names};
use st_model::columns::Points;
use st_model::event::{Event, Events};
use st_model::lead::Lead;
use st_model::num::{narrow, saturate};
use st_model::paused;
use st_model::project::Error;
use st_model::section::{Section, Sym};

use crate::ahead::{Ahead, Coming, Deed};
use crate::analysis::{PlaceTotals, RankTotals};
use crate::pending_calls::Visit;
use crate::predict::Does;
use crate::reading::{Groups, Reading, finds_nothing, says_its_bytes, synchronise};
use crate::timeline::{Activity, Timeline};

/// What is found of a section before its threads are read.
pub(crate) struct Known<'a> {
    pub(crate) section: &'a Section,
    /// Number of the place of each symbol.
    pub(crate) places: Rc<[u32]>,
    /// Number of the node of each rank, where it is known.
    pub(crate) nodes: HashMap<u32, u32, FixedState>,
}

/// One thread being read.
pub(crate) struct Cursor<'a> {
    events: Events<'a>,
    points: Points<'a>,
    over: bool,
    /// Why there are no more calls, if there are more: said when their turn comes.
    failed: Option<Error>,
    /// Its exact times end before it does.
    pub(crate) untimed: bool,
    account: Account<'a>,
}

/// What is known of a thread as far as it has been read.
struct Account<'a> {
    section: &'a Section,
    places: Rc<[u32]>,
    communication: Communication<(Part, Standing)>,
    topologies: Topologies,
    epochs: Epochs,
    volumes: Volumes<'a>,
    buffered: VecDeque<usize>,
    totals: Vec<PlaceTotals>,
    times: RankTotals,
    /// When MPI begins and ends on other threads, if this one stands for its rank; and the event that ends it.
    span: Option<(i64, i64)>,
    finalize: Sym,
    begun: bool,
    ended: bool,
    last: i64,
    /// The place of the call that has paused recording, if it is paused.
    pause: Option<u32>,
}

/// What a thread has come to.
pub(crate) struct Come {
    pub(crate) times: RankTotals,
    /// By place.
    pub(crate) totals: Vec<(u32, PlaceTotals)>,
}

/// What all threads that are read know, and what is known of one of them.
pub(crate) struct Context<'s> {
    pub(crate) groups: &'s mut Groups,
    /// What it does when, if that is kept.
    pub(crate) line: Option<&'s mut Timeline>,
}

/// A call with its times.
struct Timed<'e> {
    event: Event<'e>,
    enter: i64,
    exit: i64,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(known: &Known<'a>, thread: usize, rank: u32, graphs: &'a Graphs) -> Option<Self> {
        let section = known.section;
        let column = section.threads.get(thread)?.column(rank)?;
        let account = Account {
            section,
            places: Rc::clone(&known.places),
            communication: Communication::default(),
            topologies: Topologies::default(),
            epochs: Epochs::default(),
            volumes: Volumes::new(section, rank, graphs),
            buffered: VecDeque::new(),
            totals: vec![PlaceTotals::default(); section.symbols.len()],
            times: RankTotals { rank, ..RankTotals::default() },
            span: None,
            finalize: 0,
            begun: false,
            ended: false,
            last: 0,
            pause: None,
        };
        let (events, points) = (section.events(thread, rank)?, column.points());
        Some(Self { events, points, over: false, failed: None, untimed: false, account })
    }

    /// The thread stands for its rank, whose first thread does not make `MPI_Finalize`.
    pub(crate) fn leads(mut self, lead: &Lead) -> Self {
        self.account.span = lead.span;
        self.account.finalize = lead.finalize;
        self
    }

    /// Its rank, if that did not come to its end, or its times did not.
    pub(crate) fn early(&self) -> Option<u32> {
        let rank = self.account.times.rank;
        (self.untimed || !came_to_its_end(self.account.section, rank)).then_some(rank)
    }

    /// It is over.
    pub(crate) fn finish(self) -> Come {
        let whole = self.early().is_none();
        let Account { section, places, communication, mut totals, times, .. } = self.account;
        let left = requests(section, &communication);
        for (sym, _) in left.filter(|(_, what)| whole && *what == What::Request) {
            totals[sym as usize].leaked += 1;
        }
        let all = places.iter().copied().zip(totals).filter(|(_, t)| t.calls > 0 || t.before > 0);
        Come { times, totals: all.collect() }
    }
}

impl Cursor<'_> {
    /// Reads the next calls of the thread, which has a number; none if there are no more.
    ///
    /// # Errors
    ///
    /// If there are more, and they cannot be read.
    pub(crate) fn read_ahead(
        &mut self,
        number: u32,
        mut context: Context<'_>,
        ahead: &mut Ahead,
    ) -> Result<(), Error> {
        ahead.shrink();
        while !ahead.is_full() && !self.over {
            match self.read(number, &mut context, ahead) {
                Ok(more) => self.over = !more,
                Err(error) => (self.over, self.failed) = (true, Some(error)),
            }
        }
        match self.failed.take_if(|_| ahead.is_empty()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Reads the next call; `false` if there is none.
    fn read(&mut self, number: u32, context: &mut Context<'_>, ahead: &mut Ahead) -> Result<bool, Error> {
        let Some(enter) = self.points.next() else {
            self.untimed = self.account.begun && self.events.next_event()?.is_some();
            self.account.end(self.untimed, context);
            return Ok(false);
        };
        let exit = self.points.next().unwrap_or(enter);
        let Some(event) = self.events.next_event()? else { return Ok(false) };
        self.account.call(number, &Timed { event, enter, exit }, context, ahead);
        Ok(true)
    }
}

impl Account<'_> {
    /// The next call of a thread, which has a number.
    fn call(&mut self, number: u32, timed: &Timed<'_>, context: &mut Context<'_>, ahead: &mut Ahead) {
        let Timed { event, enter, exit } = timed;
        let place = self.places.get(event.sym as usize).copied().unwrap_or(u32::MAX);
        let poll = event.row.is_some_and(|row| row.properties.poll);
        let mut visit = Visit {
            thread: number,
            place,
            enter: *enter,
            exit: *exit,
            waits: !poll,
            orders: orders(event),
            call: event.index,
            bytes: 0,
        };
        let init = event.row.is_some_and(|row| row.kind == Kind::Init);
        let entered = self.span.map_or(*enter, |(begin, _)| begin);
        let begins = (init || !self.begun).then_some(if init { *exit } else { entered });
        if let Some(begin) = begins {
            (self.begun, self.last) = (true, if init { *enter } else { entered });
            self.times.begin = begin;
            let what = if init { Activity::Call } else { Activity::Computation };
            context.line.iter_mut().for_each(|line| line.start(self.times.begin, place, what));
        }
        if init {
            (self.last, self.times.end) = (*exit, *exit);
            ahead.call(Coming { visit, begins, does: None, deeds: 0 });
            return;
        }
        let finds_nothing = poll && finds_nothing(event);
        let finalize = event.row.is_some_and(|row| row.kind == Kind::Finalize);
        let does = match (finalize, finds_nothing) {
            _ if self.ended => None,
            (true, _) => Some(Does::End),
            (_, true) => Some(Does::Poll),
            _ => Some(Does::Work),
        };
        let (since, pause) = (self.last, self.pause);
        self.pause = paused::after(event, pause.is_some()).then(|| pause.unwrap_or(place));
        self.time(timed, pause.is_some(), finds_nothing, finalize);
        if let Some(line) = context.line.as_mut().filter(|_| does.is_some()) {
            // What is done while recording is paused is no computation: it is taken for a part of the call that paused it.
            if let Some(by) = pause.filter(|_| since < *enter) {
                line.call(by, since, *enter);
            }
            // The end of a run is the beginning of the last call.
            line.call(place, *enter, if finalize { *enter } else { *exit });
        }
        let before = ahead.deeds();
        visit.bytes = self.act(event, &visit, context.groups, ahead);
        let deeds = narrow(ahead.deeds() - before);
        ahead.call(Coming { visit, begins, does, deeds });
    }

    /// There are no more calls with times. A thread that stands for its rank and does not make `MPI_Finalize` computes until that.
    fn end(&mut self, untimed: bool, context: &mut Context<'_>) {
        let Some((_, end)) = self.span.filter(|_| self.begun && !self.ended && !untimed) else { return };
        let before = saturate::<u64>(end.saturating_sub(self.last));
        let sym = self.finalize as usize;
        let place = self.places.get(sym).copied().unwrap_or(u32::MAX);
        context.line.iter_mut().for_each(|line| line.call(place, end, end));
        self.totals[sym].before = self.totals[sym].before.saturating_add(before);
        (self.ended, self.times.end) = (true, end);
    }

    /// Adds up its time; recording was paused before it or not.
    fn time(&mut self, timed: &Timed<'_>, paused: bool, finds_nothing: bool, finalize: bool) {
        let Timed { event, enter, exit } = timed;
        let before: u64 = saturate(enter.saturating_sub(self.last));
        let [gap, paused] = if paused { [0, before] } else { [before, 0] };
        let inside: u64 = saturate(exit.saturating_sub(*enter));
        self.last = *exit;
        let totals = &mut self.totals[event.sym as usize];
        totals.calls = totals.calls.saturating_add(event.calls());
        totals.before = totals.before.saturating_add(gap);
        self.times.paused = self.times.paused.saturating_add(if self.ended { 0 } else { paused });
        if finalize {
            (self.ended, self.times.end) = (true, *enter);
        } else if !self.ended {
            self.times.end = *exit;
            self.times.mpi = self.times.mpi.saturating_add(inside);
        }
        // The run ends where it begins.
        if !finalize {
            totals.time = totals.time.saturating_add(inside);
        }
        if finds_nothing {
            totals.failed_tests = totals.failed_tests.saturating_add(event.calls());
            totals.polling = totals.polling.saturating_add(inside);
        }
    }

    /// Puts down what it does with others; returns how many bytes it moves, as far as its own words say so.
    fn act(&mut self, event: &Event<'_>, visit: &Visit, groups: &mut Groups, ahead: &mut Ahead) -> u64 {
        let measured = says_its_bytes(event.action());
        let volume = measured.then(|| self.volumes.next_event(event));
        let bytes = volume.map_or(0, |v| saturate(v.sent.bytes.saturating_add(v.received.bytes)));
        let (section, topologies, volumes) = (self.section, &mut self.topologies, &mut self.volumes);
        let (buffered, times) = (&mut self.buffered, [visit.enter, visit.exit]);
        let waits = visit.waits;
        let mut reading =
            Reading { groups, section, topologies, volumes, ahead, waits, times, measured, bytes, buffered };
        self.communication.event(event, &mut reading);
        reading.detach(event);
        synchronise(event, &mut self.communication, &mut self.epochs, &mut reading);
        let totals = &mut self.totals[event.sym as usize];
        totals.bytes = totals.bytes.saturating_add(reading.bytes);
        if pauses(event) {
            ahead.deed(Deed::Pause);
        }
        unfreed::of_call(event).for_each(|object| ahead.deed(Deed::Object(object)));
        bytes
    }
}

/// Whether a call completes all the requests that it names: what comes first of several is not waited for before the others.
fn orders(event: &Event<'_>) -> bool {
    let takes_what_comes = |base: &str| base == names::MPI_Waitany || base == names::MPI_Waitsome;
    if event.row.is_some_and(|row| takes_what_comes(row.base())) {
        return false;
    }
    let requests = event.requests();
    requests.len() < 2 || requests.iter().filter(|r| **r >= 0).count() <= event.completed().count()
}
