//! A trace whose tables are asked for one by one: what programs that are no command use of this crate.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, anyhow, bail};
use st_cli::options::Steps;
use st_cli::{UsageError, Whole};
use st_model::num::Exact as _;
use st_model::sites::CallSites;

use crate::NAME;
use crate::format::{Call, Format, Summary};
use crate::input::{Input, count};
use crate::losses::Losses;
use crate::selection::{HOW, LACK, Selection};
use crate::tables::{Sink, Tables};
use crate::trace::{Lane, Trace};
use crate::walk::{Tell, walk};
use crate::way::Way;

/// A trace in memory, as it is stored: its calls are read anew for each question.
#[derive(Debug)]
pub struct Source {
    trace: Trace,
    named: String,
}

/// Parts that a question has for each thread that works on it: ranks differ in how long they take.
const PARTS: usize = 8;

impl Source {
    /// Reads a trace.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is none.
    pub fn open(input: &Input) -> Result<Self> {
        Ok(Self { trace: input.read(NAME, None, None)?, named: input.named() })
    }

    /// What its streams say of the run as a whole.
    pub fn whole(&self) -> &Whole {
        &self.trace.whole
    }

    /// Its call sites.
    #[must_use]
    pub fn sites(&self) -> &CallSites {
        &self.trace.sites
    }

    /// Calls of all threads, a series of polls being one.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.trace.events
    }

    /// Whether exact times of all calls are there.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.trace.is_timed()
    }

    fn select(&self, selection: &Selection, steps: &Steps) -> Result<Trace> {
        let ranks = selection.ranks.as_ref();
        if let Some(missing) = selection.missing(&self.trace.whole.ranks)? {
            bail!(UsageError(missing));
        }
        let budget = steps.budget();
        // What is too much is told of all of them.
        self.trace.sections.iter().for_each(|section| _ = count(&budget, section, ranks));
        budget.check()?;
        let wanted = |lane: &&Lane| ranks.is_none_or(|ranks| ranks.contains(lane.rank));
        let mut trace = self.trace.of_lanes(self.trace.lanes.iter().filter(wanted).copied().collect());
        selection.narrow(&self.named, &mut trace)?;
        Ok(trace)
    }

    /// Calls, by rank, thread and position: one of the sinks that `make` makes after the other, each with the tables of call sites, ranks
    /// and communicators left out. All processors work on it.
    ///
    /// # Errors
    ///
    /// If nothing is there of what is selected, if a rank cannot be read back, or if `tell` fails.
    pub fn events<S: Sink + Send>(
        &self,
        selection: &Selection,
        steps: &Steps,
        make: impl Fn() -> S + Sync,
        tell: Tell<'_>,
    ) -> Result<Vec<S>> {
        let parts = parts(&self.select(selection, steps)?);
        let all = self.about(in_parts(&parts, |part| {
            let mut apart = Apart { trace: part, make: &make, threads: Vec::new() };
            walk(part, Way::ByRank, tell, &mut apart)?;
            let mut sinks: Vec<S> = apart.threads.into_iter().flatten().map(|tables| tables.sink).collect();
            sinks.iter_mut().try_for_each(Sink::finish)?;
            Ok(sinks)
        }))?;
        Ok(all.into_iter().flatten().collect())
    }

    /// The tables of ranks and communicators into a sink, which take going through all calls that are selected.
    ///
    /// # Errors
    ///
    /// As [`Source::events`].
    pub fn sums<S: Sink + Send>(
        &self,
        selection: &Selection,
        steps: &Steps,
        make: impl Fn() -> S + Sync,
        tell: Tell<'_>,
    ) -> Result<S> {
        let trace = self.select(selection, steps)?;
        let parts = parts(&trace);
        let mut all = Tables::new(make(), &trace);
        let read = self.about(in_parts(&parts, |part| {
            let mut tables = Tables::new(make(), part);
            walk(part, Way::ByRank, tell, &mut tables)?;
            Ok(tables)
        }))?;
        for part in read {
            all.join(part);
        }
        all.sum_up()?;
        all.sink.finish()?;
        Ok(all.sink)
    }

    /// Messages both ends of which are selected, in the order in which they become known.
    ///
    /// # Errors
    ///
    /// As [`Source::events`].
    pub fn messages<S: Sink>(
        &self,
        selection: &Selection,
        steps: &Steps,
        sink: S,
        tell: Tell<'_>,
    ) -> Result<S> {
        let trace = self.select(selection, steps)?;
        let mut tables = Tables::new(sink, &trace);
        self.about(walk(&trace, Way::InTime, tell, &mut tables))?;
        tables.sink.finish()?;
        Ok(tables.sink)
    }

    /// Wait states of the calls that are selected into a sink, by rank and in the order of their calls.
    ///
    /// # Errors
    ///
    /// If the trace has no exact times; as [`Source::events`].
    pub fn waits<S: Sink>(&self, selection: &Selection, steps: &Steps, sink: S, tell: Tell<'_>) -> Result<S> {
        let trace = self.select(selection, steps)?;
        if !trace.is_timed() {
            bail!(UsageError(format!("{}: {LACK}, which waits need: {HOW}", self.named)));
        }
        let mut tables = Tables::new(sink, &trace);
        self.about(tables.waits(tell))?;
        tables.sink.finish()?;
        Ok(tables.sink)
    }

    /// The table of call sites into a sink.
    ///
    /// # Errors
    ///
    /// If the sink fails.
    pub fn call_sites<S: Sink>(&self, sink: S) -> Result<S> {
        let mut tables = Tables::new(sink, &self.trace);
        tables.sites()?;
        tables.sink.finish()?;
        Ok(tables.sink)
    }

    /// Names the trace in what is wrong with it.
    fn about<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|e| if e.is::<st_model::project::Error>() { e.context(self.named.clone()) } else { e })
    }
}

/// Tables of each thread: a rank's threads are read in the order of their times, since one may complete or start what another has made,
/// and wanted one after the other.
struct Apart<'a, 'm, S, M> {
    trace: &'a Trace,
    make: &'m M,
    /// Of those that have made calls.
    threads: Vec<Option<Tables<'a, S>>>,
}

impl<S: Sink, M: Fn() -> S> Format for Apart<'_, '_, S, M> {
    fn call(&mut self, call: &Call<'_>) -> Result<()> {
        let at = call.at.to_usize();
        if at >= self.threads.len() {
            self.threads.resize_with(at + 1, || None);
        }
        self.threads[at].get_or_insert_with(|| Tables::new((self.make)(), self.trace)).call(call)
    }

    fn finish(&mut self, _: &Summary<'_>) -> Result<Losses> {
        Ok(Losses::default())
    }

    fn commit(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// What is read of each part of a trace, in their order. All processors work on it.
fn in_parts<'a, T: Send>(parts: &'a [Trace], read: impl Fn(&'a Trace) -> Result<T> + Sync) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, T)>> {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(at) else { return Ok(done) };
            // Where one fails, nothing of the others is wanted.
            let part = read(part).inspect_err(|_| next.store(parts.len(), Ordering::Relaxed))?;
            done.push((at, part));
        }
    };
    let workers = workers().min(parts.len());
    let mut all = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| anyhow!("a thread that reads ranks ended"))??);
        }
        anyhow::Ok(all)
    })?;
    all.sort_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, part)| part).collect())
}

fn workers() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Cuts a trace between ranks into parts of about as many calls.
fn parts(trace: &Trace) -> Vec<Trace> {
    let each = trace.events / workers().saturating_mul(PARTS).to_u64().max(1);
    let (mut parts, mut part, mut calls) = (Vec::new(), Vec::new(), 0u64);
    for rank in trace.lanes.chunk_by(|a, b| a.rank == b.rank) {
        part.extend_from_slice(rank);
        calls = rank.iter().fold(calls, |sum, lane| sum.saturating_add(lane.calls));
        if calls > each {
            parts.push(trace.of_lanes(std::mem::take(&mut part)));
            calls = 0;
        }
    }
    if !part.is_empty() {
        parts.push(trace.of_lanes(part));
    }
    parts
}
