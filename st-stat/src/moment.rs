//! Where a thread is at a time: from exact times where the trace holds them, else estimated from mean times of calls.
//!
//! *Cost:* by what is stored, not by how many calls there are: exact times are searched by chunks, and calls on the folded
//! form ([`Section::seek`]).

use anyhow::{Result, bail};
use st_model::columns::Column;
use st_model::num::{Exact as _, saturate};
use st_model::project::Error;
use st_model::rank_times::{begin, totals};
use st_model::section::{Section, Sym, Thread};
use st_model::steps::Budget;
use st_model::tree::Walk;

use crate::input::Lacking;

/// What a thread is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Its first call is still to come.
    Before,
    /// Computation before a call.
    Computation,
    /// A call.
    Call,
    /// Its last call is over.
    After,
    /// The rest of its calls has no exact times.
    Untimed,
}

/// Where a thread is.
pub(crate) struct Moment<'a> {
    pub(crate) rank: u32,
    pub(crate) thread: usize,
    pub(crate) state: State,
    /// The call that it is in or computes for, and its position.
    pub(crate) sym: Option<Sym>,
    pub(crate) index: u64,
    /// Iterations of the loops around it, outermost first, and how many these have.
    pub(crate) turns: Vec<(u64, u64)>,
    /// How long it has been in this, and how long it will still be, ns.
    pub(crate) since: u64,
    pub(crate) left: u64,
    pub(crate) exact: bool,
    /// This call and all after it.
    pub(crate) calls: Calls<'a>,
}

/// Calls of a thread from some place on, with their times from the zero of the trace.
pub(crate) struct Calls<'a> {
    rank: u32,
    walk: Option<Walk<'a>>,
    times: Times<'a>,
}

enum Times<'a> {
    None,
    Exact(Box<dyn Iterator<Item = (i64, i64)> + 'a>, i64),
    /// When the call before ended, and what calls take: computation before them, and themselves.
    Mean(u64, &'a [[u64; 2]]),
}

impl Calls<'_> {
    /// The next call, when it is entered, and when it is left.
    pub(crate) fn next_call(&mut self) -> Result<Option<(Sym, u64, u64)>, Error> {
        let (rank, Some(walk)) = (self.rank, &mut self.walk) else { return Ok(None) };
        let Some(sym) = walk.next_symbol().map_err(|source| Error::Tree { rank, source })? else {
            return Ok(None);
        };
        let times = match &mut self.times {
            Times::None => None,
            Times::Exact(times, zero) => {
                times.next().map(|(enter, exit)| (since(enter, *zero), since(exit, *zero)))
            }
            Times::Mean(last, means) => {
                let [before, inside] = means.get(sym as usize).copied().unwrap_or_default();
                let enter = last.saturating_add(before);
                *last = enter.saturating_add(inside);
                Some((enter, *last))
            }
        };
        Ok(times.map(|(enter, exit)| (sym, enter, exit)))
    }
}

fn since(time: i64, zero: i64) -> u64 {
    saturate(time.saturating_sub(zero))
}

/// What calls of a rank's thread take in the mean, by symbol: computation before them, and themselves, ns.
type Means = Vec<[u64; 2]>;

/// The times of a trace.
pub(crate) struct Clocks {
    zero: i64,
    /// All ranks have exact times.
    pub(crate) exact: bool,
    /// By section, thread and position of the rank in it, where there are none.
    means: Vec<Vec<Vec<Means>>>,
}

impl Clocks {
    pub(crate) fn of(sections: &[Section], budget: &Budget) -> Result<Self> {
        let mut all = Self { zero: i64::MAX, exact: true, means: Vec::new() };
        for section in sections {
            all.zero = all.zero.min(begin(section)?.unwrap_or(i64::MAX));
            let mut threads = Vec::new();
            for thread in &section.threads {
                let exact = thread.ranks.iter().all(|rank| column(thread, rank).is_some());
                all.exact &= exact;
                threads.push(if exact { Vec::new() } else { means(section, thread, budget)? });
            }
            all.means.push(threads);
        }
        if all.zero == i64::MAX {
            all.zero = 0;
        }
        let none = |means: &Means| means.iter().all(|m| *m == [0, 0]);
        if !all.exact && all.means.iter().flatten().flatten().all(none) {
            bail!(Lacking("the trace holds no times: record without --time none".into()));
        }
        Ok(all)
    }

    /// Where a thread is so many ns after the zero; `None` if the section does not hold it.
    pub(crate) fn moment<'a>(
        &'a self,
        number: usize,
        section: &'a Section,
        rank: u32,
        thread: usize,
        t: u64,
        most: u64,
    ) -> Result<Option<Moment<'a>>, Error> {
        let Some((of, position)) =
            section.threads.get(thread).and_then(|of| Some((of, of.ranks.position(rank)?)))
        else {
            return Ok(None);
        };
        let mut moment = match column(of, rank) {
            Some(column) => self.exactly(section, column, rank, thread, t, most)?,
            None => {
                let of_thread = self.means.get(number).and_then(|threads| threads.get(thread));
                let means = of_thread.and_then(|ranks| ranks.get(position.to_usize())).map_or(&[][..], |m| m);
                estimated(section, means, rank, thread, t, most)?
            }
        };
        // The first call is read, and then read again.
        if let Some(walk) = moment.calls.walk.clone() {
            let (mut calls, before) = (walk, moment.index);
            moment.sym = calls.next_symbol().map_err(|source| Error::Tree { rank, source })?;
            (moment.turns, moment.index) = (calls.turns().collect(), before);
        }
        Ok(Some(moment))
    }

    fn exactly<'a>(
        &self,
        section: &'a Section,
        column: &'a Column,
        rank: u32,
        thread: usize,
        t: u64,
        most: u64,
    ) -> Result<Moment<'a>, Error> {
        let time = self.zero.saturating_add(saturate(t));
        let ones = vec![1; section.symbols.len()];
        let found = column.find(time);
        let index = found.map_or(column.events(), |(index, _)| index);
        let place = section.seek(thread, rank, &ones, index.into(), most)?;
        let mut moment = nothing(rank, thread, true);
        moment.index = index;
        let Some((enter, exit)) = found.map(|(_, times)| times) else {
            moment.state = if place.is_some() { State::Untimed } else { State::After };
            return Ok(moment);
        };
        let last = match index.checked_sub(1) {
            Some(before) => column.times_from(before).next().map_or(enter, |(_, exit)| exit),
            None => enter,
        };
        let inside = enter <= time;
        moment.state = match (inside, index) {
            (true, _) => State::Call,
            (false, 0) => State::Before,
            (false, _) => State::Computation,
        };
        moment.since = if index == 0 && !inside { 0 } else { since(time, if inside { enter } else { last }) };
        moment.left = since(if inside { exit } else { enter }, time);
        let times = Times::Exact(Box::new(column.times_from(index)), self.zero);
        moment.calls = Calls { rank, walk: place.map(|found| found.walk), times };
        Ok(moment)
    }
}

fn nothing<'a>(rank: u32, thread: usize, exact: bool) -> Moment<'a> {
    let calls = Calls { rank, walk: None, times: Times::None };
    let (sym, turns) = (None, Vec::new());
    Moment { rank, thread, state: State::After, sym, index: 0, turns, since: 0, left: 0, exact, calls }
}

fn estimated<'a>(
    section: &'a Section,
    means: &'a [[u64; 2]],
    rank: u32,
    thread: usize,
    t: u64,
    most: u64,
) -> Result<Moment<'a>, Error> {
    let weights: Vec<u64> = means.iter().map(|[before, inside]| before.saturating_add(*inside)).collect();
    let mut moment = nothing(rank, thread, false);
    let Some(found) = section.seek(thread, rank, &weights, t.into(), most)? else { return Ok(moment) };
    let mut walk = found.walk.clone();
    let sym = walk.next_symbol().map_err(|source| Error::Tree { rank, source })?;
    let [before, inside] = sym.and_then(|sym| means.get(sym as usize)).copied().unwrap_or_default();
    let begun = saturate::<u64>(found.before);
    let passed = t.saturating_sub(begun);
    moment.index = found.index;
    (moment.state, moment.since, moment.left) = if passed < before {
        (State::Computation, passed, before - passed)
    } else {
        (State::Call, passed - before, (before + inside).saturating_sub(passed))
    };
    moment.calls = Calls { rank, walk: Some(found.walk), times: Times::Mean(begun, means) };
    Ok(moment)
}

fn column(thread: &Thread, rank: u32) -> Option<&Column> {
    thread.column(rank).filter(|column| column.events() > 0)
}

/// Of each rank of a thread, in their order.
fn means(section: &Section, thread: &Thread, budget: &Budget) -> Result<Vec<Means>> {
    let (ranks, symbols) = (thread.ranks.len(), section.symbols.len());
    budget.take_short(ranks.saturating_mul(symbols.to_u64()))?;
    let calls: Vec<Vec<u64>> = thread.ranks.iter().map(|rank| section.calls_of(thread, rank)).collect();
    let mut all = vec![vec![[0; 2]; symbols]; ranks.to_usize()];
    for of in totals(thread) {
        let sym = of.sym as usize;
        let both = of.compute.iter().zip(&of.comm);
        for ((means, calls), (compute, comm)) in all.iter_mut().zip(&calls).zip(both) {
            let n = u128::from(calls.get(sym).copied().unwrap_or(0).max(1));
            if let Some(mean) = means.get_mut(sym) {
                *mean = [saturate(compute / n), saturate(comm / n)];
            }
        }
    }
    Ok(all)
}
