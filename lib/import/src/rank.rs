//! One rank that is being imported.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_capture::record::{Options, RankRecorder};
use st_model::calls::roles::Start;
use st_model::calls::words::{each, find, found_nothing};
use st_model::calls::{CallTable, Kind, Meaning, Object, Row, names};
use st_model::columns::{Column, Comparison};
use st_model::names::Names;
use st_model::num::Exact as _;
use st_model::objects::Comm;
use st_model::ranks::RankSeq;
use st_model::section::{NO_SYM, Section, Sym};
use st_model::sites::SiteTable;
use st_model::values::ANY_SOURCE;

use crate::call::{Call, Site, Stop};
use crate::escaped::escaped;
use crate::left::Left;
use crate::objects::{Definition, Definitions, Known};
use crate::own::Own;
use crate::requests::Requests;
use crate::shape::{Shape, is_common};
use crate::words::{Given, words};

/// What all ranks have in common.
#[derive(Debug, Default)]
pub(crate) struct Common {
    pub(crate) definitions: Definitions,
    /// Call sites, and by the number that the source has for one its number there.
    pub(crate) sites: SiteTable,
    pub(crate) numbers: HashMap<u32, u32, FixedState>,
}

/// A thread.
#[derive(Debug, Default)]
struct Thread {
    column: Column,
    /// Those that the source names by thread.
    requests: Requests,
    /// When its last call was entered, and when that was left.
    last: Option<(i64, i64)>,
}

/// A rank.
#[derive(Debug)]
pub(crate) struct Rank {
    recorder: RankRecorder,
    threads: Vec<Thread>,
    /// By the number that the source has for a thread.
    numbers: HashMap<u64, usize, FixedState>,
    objects: Known,
    /// By number in the table of all ranks.
    sites: HashMap<u32, u32, FixedState>,
    texts: HashMap<String, u32, FixedState>,
    /// Requests that the source names by rank: another thread than the one that has begun one may complete it.
    requests: Requests,
    /// Calls have no times any more.
    untimed: bool,
    words: Vec<i64>,
    /// Those that begin under the number of one that nothing on their thread has completed.
    again_numbered: u64,
    /// The source has all that the rank did.
    complete: bool,
    /// `MPI_Init` is there, or need not be.
    begun: bool,
    /// It has made a call that needs `MPI_Init`, or that.
    initialised: bool,
    /// It has come back from `MPI_Finalize`.
    finalised: bool,
    /// The thread that has called that: a recorder enters it when it is called, with no time, and it may be the last that a rank does.
    finalising: Option<usize>,
    /// Its source has all that it did, but no end of MPI so far.
    endless: bool,
    /// Where threads stopped: the call that they were in, and when they entered it.
    stops: HashMap<usize, (Sym, i64), FixedState>,
    /// The thread that begins MPI.
    first: Option<usize>,
    /// Stood in for `MPI_Init`, so that `MPI_Finalize` is wanted, too.
    stands_in: bool,
}

const WORLD: &str = "MPI_COMM_WORLD";
const SELF: &str = "MPI_COMM_SELF";
/// Place of calls whose place is not told.
const UNKNOWN: &str = "unknown";

/// What is counted of requests whose names do not tell them apart.
const AGAIN: &str = "ends of requests whose names are those of later ones";

/// Times are at most so far from 0, ns: 73 years.
const FARTHEST: i64 = 1 << 61;

impl Rank {
    /// A rank of a world; `timed`: its calls have times, `complete`: its source has all that it did.
    pub(crate) fn new(rank: u32, world: u32, timed: bool, complete: bool, common: &Common) -> Self {
        let options = Options { columns: timed, sketches: timed, ..Options::default() };
        let mut new = Self {
            recorder: RankRecorder::new(rank, options),
            threads: Vec::new(),
            numbers: HashMap::default(),
            objects: Known::default(),
            sites: HashMap::default(),
            texts: HashMap::default(),
            requests: Requests::default(),
            untimed: !timed,
            words: Vec::new(),
            again_numbered: 0,
            complete,
            begun: complete,
            initialised: false,
            finalised: false,
            finalising: None,
            endless: complete,
            stops: HashMap::default(),
            first: None,
            stands_in: false,
        };
        // The first two communicators of every rank.
        for (kind, members) in [(WORLD, RankSeq::first(world)), (SELF, std::iter::once(rank).collect())] {
            let comm = Comm { kind: kind.into(), parent: 0, members, remote: RankSeq::default() };
            let told = common
                .definitions
                .find(Object::Comm, kind, rank)
                .map(|(copy, what)| (copy, what.into_owned()));
            let (copy, what) = told.unwrap_or((0, Definition::Comm(comm)));
            new.objects.enter(kind, copy, &what, None, &mut new.recorder.objects);
        }
        new
    }

    /// Enters a call, of a function that the call table has, or one that it lacks.
    ///
    /// # Errors
    ///
    /// With what is wrong.
    pub(crate) fn call(
        &mut self,
        call: &Call<'_>,
        function: Option<&Shape>,
        common: &Common,
        left: &mut Left,
    ) -> Result<(), String> {
        let (enter, exit) = self.check(call, left)?;
        let thread = self.thread(call.thread, enter);
        if self.stops.contains_key(&thread) {
            return Err(format!("thread: {} has ended in a line before", call.thread));
        }
        self.finalised |= self.finalising == Some(thread);
        self.stand_in(function.map(|shape| shape.row), thread, enter, left);
        let site = self.site(call.site, common)?;
        let id = match function {
            Some(shape) => shape.row.id,
            None => self.recorder.unknown_call(call.name),
        };
        let mut of = std::mem::take(&mut self.words);
        of.clear();
        if let Some(shape) = function {
            let row = shape.row;
            if row.kind == Kind::Finalize && !has_session(row) {
                (self.finalised, self.finalising) = (self.finalised || exit > enter, Some(thread));
            }
            self.endless &= row.kind != Kind::Finalize && !has_session(row);
            let place = self.recorder.sites.get(site).map_or(0, |site| site.id);
            let Some(own) = self.threads.get_mut(thread) else { return Ok(()) };
            let requests = if call.partial { &mut self.requests } else { &mut own.requests };
            let mut numbers = Own {
                recorder: &mut self.recorder,
                objects: &mut self.objects,
                requests: &mut *requests,
                definitions: &common.definitions,
                maker: (id, place),
                persistent: Start::of(row) == Start::Persistent,
                again: call.partial.then_some(0),
                again_numbered: 0,
                complete: self.complete,
            };
            let Call { parameters, partial, error, .. } = *call;
            let given = Given { parameters, partial, failed: error != 0 };
            words(shape, given, &mut numbers, left, &mut of)?;
            left.add(AGAIN, numbers.again.unwrap_or(0));
            self.again_numbered = self.again_numbered.saturating_add(numbers.again_numbered);
            settle(shape, &of, requests);
        } else {
            for key in call.parameters.keys().filter(|key| !is_common(key)) {
                left.add(&format!("field {} of {}, which st does not know", escaped(key), call.name), 1);
            }
        }
        let symbol = self.recorder.symbol(id, site, call.error);
        self.record(thread, symbol, &of, enter, exit);
        self.words = of;
        Ok(())
    }

    fn record(&mut self, thread: usize, symbol: Sym, words: &[i64], enter: i64, exit: i64) {
        let full = self.recorder.record(thread, symbol, words, enter, exit);
        if let Some(own) = self.threads.get_mut(thread) {
            own.column.chunks.extend(full.map(|chunk| *chunk));
            own.last = Some((enter, exit));
        }
    }

    /// The times of a call, which may be none any more: then it takes no time.
    fn check(&mut self, call: &Call<'_>, left: &mut Left) -> Result<(i64, i64), String> {
        let last = self.numbers.get(&call.thread).and_then(|at| self.threads.get(*at)?.last);
        let (Some((enter, exit)), false) = (call.times, self.untimed) else {
            if self.recorded() && !self.untimed {
                for (number, chunk) in self.recorder.stop_columns() {
                    let own = self.threads.get_mut(number.to_usize());
                    own.into_iter().for_each(|own| own.column.chunks.push(chunk.clone()));
                }
            }
            self.untimed = true;
            left.add("calls without times, or behind some of their rank that have none", 1);
            let at = last.map_or(0, |(_, exit)| exit);
            return Ok((at, at));
        };
        if enter.checked_abs().is_none_or(|t| t > FARTHEST) || exit.checked_abs().is_none_or(|t| t > FARTHEST)
        {
            return Err("enter and exit: more than 73 years from 0".into());
        }
        if exit < enter {
            return Err(format!("exit: {exit} is before enter, {enter}"));
        }
        if let Some((before, _)) = last.filter(|(before, _)| enter < *before) {
            return Err(format!(
                "enter: {enter} is before {before}, when the call before on this thread is entered: calls of a thread stand in their order"
            ));
        }
        // Other sources may have calls inside of calls.
        if let Some((_, before)) = last.filter(|(_, before)| enter < *before && !call.partial) {
            return Err(format!(
                "enter: {enter} is before {before}, when the call before on this thread is left: calls of a thread come one after the other"
            ));
        }
        Ok((enter, exit))
    }

    fn recorded(&self) -> bool {
        self.threads.iter().any(|thread| thread.last.is_some())
    }

    /// Number of a thread, which begins with its first call.
    fn thread(&mut self, number: u64, enter: i64) -> usize {
        let Self { numbers, threads, recorder, .. } = self;
        *numbers.entry(number).or_insert_with(|| {
            threads.push(Thread::default());
            recorder.open_thread(enter)
        })
    }

    /// Enters what MPI begins with, if the source does not have it, before the first call that needs it.
    fn stand_in(&mut self, row: Option<&Row>, thread: usize, enter: i64, left: &mut Left) {
        let Some(row) = row else { return };
        let begins = row.kind == Kind::Init || has_session(row);
        if !begins && row.properties.local && row.comm_slot().is_none() {
            return;
        }
        self.first = self.first.or(Some(thread));
        // Communicators may be made from a session, too.
        self.initialised |= row.kind == Kind::Init;
        if std::mem::replace(&mut self.begun, true) || begins {
            return;
        }
        (self.stands_in, self.initialised) = (true, true);
        self.environment(names::MPI_Init, thread, enter);
        left.add("MPI_Init and MPI_Finalize of ranks (they stand before the first call that needs them and at the last time)", 1);
    }

    /// A call without parameters that takes no time.
    fn environment(&mut self, name: &str, thread: usize, at: i64) {
        let Some(row) = CallTable::builtin().by_name(name) else { return };
        let site = self.recorder.sites.label(UNKNOWN);
        let symbol = self.recorder.symbol(row.id, site, 0);
        self.record(thread, symbol, &[], at, at);
    }

    fn site(&mut self, site: Site<'_>, common: &Common) -> Result<u32, String> {
        let text = match site {
            Site::Number(printed) => {
                let Some(&number) = common.numbers.get(&printed) else {
                    return Err(format!("site: {printed} is not described"));
                };
                let recorder = &mut self.recorder;
                let adopt = || {
                    let site = common.sites.get(number);
                    site.map_or(0, |site| recorder.sites.adopt(&common.sites, site))
                };
                return Ok(*self.sites.entry(number).or_insert_with(adopt));
            }
            Site::Text(text) if text.contains(char::is_control) => {
                return Err(format!("site: {text:?} has a control character"));
            }
            Site::Text(text) => text,
            Site::Unknown => UNKNOWN,
        };
        if let Some(site) = self.texts.get(text) {
            return Ok(*site);
        }
        let site = self.recorder.sites.label(text);
        self.texts.insert(text.to_owned(), site);
        Ok(site)
    }

    /// Whether the source has all that the rank did, no end of MPI, and does not say where it stopped.
    pub(crate) fn is_endless(&self) -> bool {
        self.endless && self.stops.is_empty()
    }

    /// Requests that begin under the number of one that nothing has completed; of a rank with several threads none are known, as
    /// one completes what another has begun.
    pub(crate) fn again(&self) -> u64 {
        if self.threads.len() == 1 { self.again_numbered } else { 0 }
    }

    /// Says where a thread stopped; `false` if there is no such thread.
    ///
    /// # Errors
    ///
    /// With what is wrong.
    pub(crate) fn stop(
        &mut self,
        stop: &Stop<'_>,
        row: Option<&'static Row>,
        common: &Common,
    ) -> Result<bool, String> {
        if self.finalised {
            return Err("ended: the rank has come back from MPI_Finalize in a line before".into());
        }
        if self.initialised && row.is_some_and(|row| row.kind == Kind::Init) {
            return Err("inside: MPI is initialised in a line before".into());
        }
        let Some(&thread) = self.numbers.get(&stop.thread) else { return Ok(false) };
        let mut at = (NO_SYM, 0);
        if let Some((name, site, entered)) = stop.inside {
            let last = self.threads.get(thread).and_then(|own| own.last).filter(|_| !self.untimed);
            if entered.checked_abs().is_none_or(|t| t > FARTHEST) {
                return Err("entered: more than 73 years from 0".into());
            }
            if let Some((_, exit)) = last.filter(|(_, exit)| entered < *exit) {
                return Err(format!("entered: {entered} is before {exit}, when the call before is left"));
            }
            let site = self.site(site, common)?;
            let id = row.map_or_else(|| self.recorder.unknown_call(name), |row| row.id);
            at = (self.recorder.symbol(id, site, 0), entered);
        }
        if self.stops.insert(thread, at).is_some() {
            return Err(format!("thread: {} has ended in a line before", stop.thread));
        }
        Ok(true)
    }

    /// The rank's trace.
    pub(crate) fn finish(mut self, host: &str, clock: Option<Comparison>, names: &Names) -> Section {
        // Who stopped has not come to the end of MPI.
        if self.stands_in && self.stops.is_empty() {
            let last = self.threads.iter().filter_map(|thread| thread.last).map(|(_, exit)| exit).max();
            self.environment(names::MPI_Finalize, 0, last.unwrap_or(0));
        }
        for (number, chunk) in self.recorder.flush_columns() {
            if let Some(own) = self.threads.get_mut(number.to_usize()) {
                own.column.chunks.push(chunk);
            }
        }
        let rank = self.recorder.rank();
        let mut ended = if self.stops.is_empty() { Vec::new() } else { self.recorder.ended() };
        for (thread, (inside, entered)) in &self.stops {
            if let Some(of) = ended.get_mut(*thread) {
                (of.inside, of.entered) = (*inside, *entered);
            }
        }
        let mut section = self.recorder.finish(host);
        section.ended = ended;
        section.sites.set_names(names.clone());
        let threads = self.threads;
        for (thread, own) in section.threads.iter_mut().zip(threads) {
            if own.column.events() > 0 {
                thread.columns.push((rank, own.column));
            }
        }
        in_order(&mut section, &self.numbers, self.first.unwrap_or(0));
        let first = section.threads.first_mut().and_then(|thread| thread.columns.first_mut());
        if let (Some((_, column)), Some(clock)) = (first, clock) {
            column.clock = clock;
        }
        section
    }
}

/// Numbers threads by the numbers that the source has for them, but for the one that begins MPI, which is the first, as where it is
/// recorded: lines of another may come before its.
fn in_order(section: &mut Section, numbers: &HashMap<u64, usize, FixedState>, first: usize) {
    let mut order: Vec<_> = numbers.iter().map(|(number, at)| (*at != first, *number, *at)).collect();
    order.sort_unstable();
    let mut threads: Vec<_> = std::mem::take(&mut section.threads).into_iter().map(Some).collect();
    let mut found = vec![0; threads.len()];
    for (new, (.., old)) in (0..).zip(order) {
        section.threads.extend(threads.get_mut(old).and_then(Option::take));
        found.get_mut(old).into_iter().for_each(|number| *number = new);
    }
    for ended in &mut section.ended {
        ended.thread = found.get(ended.thread.to_usize()).copied().unwrap_or(ended.thread);
    }
    section.ended.sort_unstable_by_key(|ended| (ended.rank, ended.thread));
}

/// Whether a function is of sessions, which begin and end MPI, too.
fn has_session(row: &Row) -> bool {
    row.slots.iter().any(|slot| slot.name.ends_with("session"))
}

/// Numbers of requests that are no more after a call are free again.
fn settle(shape: &Shape, words: &[i64], requests: &mut Requests) {
    let row = shape.row;
    if found_nothing(row, words) {
        return;
    }
    let mut waited: &[i64] = &[];
    let made = each(&row.slots, words).zip(&shape.fields).find(|(_, field)| field.makes_request());
    let made = made.map_or(&[][..], |((_, own), _)| own);
    for ((slot, own), field) in each(&row.slots, words).zip(&shape.fields) {
        match slot.meaning {
            Meaning::Request if slot.list => waited = own,
            Meaning::Request if field.makes_request() => {
                let source = find(row, words, |slot| !slot.list && slot.name == "source");
                own.iter().for_each(|number| requests.receives(*number, source == [ANY_SOURCE]));
            }
            Meaning::Request if field.frees_request() => {
                own.iter().filter(|number| !made.contains(number)).for_each(|number| requests.free(*number));
            }
            Meaning::Position => {
                let of = own.iter().filter_map(|place| waited.get(usize::try_from(*place).ok()?));
                of.for_each(|number| requests.complete(*number));
            }
            _ => {}
        }
    }
}
