//! Time keeping around the calls of a thread, and what a rank's times were in the end.
#![expect(unsafe_code, reason = "calls MPI")]

use st_model::calls::names;
use st_model::num::saturate;
use std::ffi::c_int;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use st_cli::engine;
use st_model::calls::{CallTable, Kind, Row};
use st_model::section::Sym;
use st_replay::TOOL;
use st_replay::cut::Stop;
use st_replay::outcome::{ReplayTimes, Times};
use st_replay::pace::{EventTimes, Pace};
use st_replay::progress::Progress;
use st_replay::watchdog::Watchdog;
use st_replay::words::Words;

use super::job::{Job, Stops};
use super::readiness::all_ready;
use crate::replay::call::mpi;
use crate::replay::clock::Clock;
use crate::replay::files;
use crate::replay::handlers::handlers;
use crate::replay::sampled_messages::{Exchange, Others};
use crate::replay::state::{Handler, Replay};
use crate::replay::stop;

/// The times of all ranks, on rank 0.
fn gather(r: &Replay<'_>, mine: Times, ranks: usize) -> Result<ReplayTimes> {
    let k = &r.k;
    let mut all = vec![Times::default(); ranks];
    let n = c_int::try_from(size_of::<Times>())?;
    let (from, to) = ((&raw const mine).cast(), all.as_mut_ptr().cast());
    mpi!(MPI_Gather(from, n, k.byte, to, n, k.byte, 0, k.comm_world))?;
    Ok(ReplayTimes { ranks: all })
}

/// A duration as ranks hand it over.
fn nanos(time: Duration) -> u64 {
    saturate(time.as_nanos())
}

/// Time keeping around the calls of a thread.
pub(super) struct Run<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) thread: usize,
    pub(super) others: &'a Others,
    /// Messages that are drawn, if they are.
    pub(super) exchange: Option<Exchange<'a>>,
    pub(super) stops: Stops,
    pub(super) stop: Option<Stop>,
    pub(super) watchdog: Watchdog,
    pub(super) progress: Progress,
    /// How much less than recorded is to be waited before the next call, ns; what if.
    pub(super) spared: i128,
    pub(super) pace: Pace<'a>,
    pub(super) clock: Clock,
    /// Time of events that are not replayed, since the last one that was, ns.
    pub(super) skipped: u64,
    /// Number of ranks.
    pub(super) ranks: usize,
    /// Since `MPI_Init`.
    pub(super) times: Times,
    pub(super) began: Option<Instant>,
    pub(super) finalized: bool,
}

/// A call that is to be made.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) row: &'a Row,
    pub(super) handler: Handler,
    pub(super) words: &'a [i64],
    /// Its symbol, and its number on the thread.
    pub(super) sym: Sym,
    pub(super) index: u64,
}

impl Run<'_> {
    /// Waits as the program did, and makes a call. `false` if the job is not to go on.
    pub(super) fn make(&mut self, r: &mut Replay<'_>, call: Call<'_>, step: EventTimes) -> Result<bool> {
        let Call { row, handler, words, sym, index } = call;
        self.progress.reach(index);
        let gap = std::mem::take(&mut self.skipped).saturating_add(step.gap);
        let init = row.name.starts_with(names::MPI_Init) && self.began.is_none();
        if !init {
            self.times.recorded = self.times.recorded.saturating_add(gap);
            let spared = std::mem::take(&mut self.spared);
            self.clock.wait(saturate(i128::from(gap) - spared));
        }
        let threads = &self.job.threads;
        threads.wait_for_last_use(self.thread, row, words);
        let finalize = row.kind == Kind::Finalize;
        if finalize {
            threads.wait_for_end(self.thread);
        }
        self.watchdog.enter(sym, index, step.duration);
        if let Some(exchange) = &mut self.exchange {
            exchange.send(r)?;
            if finalize {
                exchange.finish(r)?;
            }
        }
        let outcome = if finalize { Some(self.end(r)?) } else { None };
        let start = Instant::now();
        handler(r, &mut Words::new(words))?;
        if init {
            self.begin(r)?;
            let _hidden = r.pause.hide();
            if !all_ready(true)? {
                mpi!(MPI_Finalize())?;
                return Ok(false);
            }
            if let Some(parent) = &self.job.args.io {
                files::prepare(parent, self.job.assignment.process, r.pause)?;
            }
            self.sit(r)?;
            if self.job.args.stop_after.is_some() {
                let stop = stop::share(r, self.stops.as_ref())?;
                self.progress.ends_after(stop.calls);
                self.stop = Some(stop);
            }
            self.exchange =
                Exchange::begin(r, self.job.args, self.job.assignment.rank, self.job.section, self.others)?;
            self.began = Some(Instant::now());
            threads.start();
        } else {
            self.times.recorded = self.times.recorded.saturating_add(step.duration);
            if row.properties.fold {
                self.clock.fill(start, step.duration);
            }
        }
        self.clock.call_ended(start, if init { nanos(start.elapsed()) } else { step.duration });
        if !init && !row.properties.fold {
            self.times.recorded_mpi += step.duration;
            self.times.replayed_mpi += nanos(self.clock.last_call() - start);
        }
        if let Some(outcome) = outcome {
            self.finalized = true;
            self.progress = Progress::default();
            self.say(&outcome)?;
        }
        Ok(true)
    }

    /// Makes no call. The time that it took is kept: polls are made while waiting or computing.
    pub(super) fn pass(&mut self, r: &mut Replay<'_>, step: EventTimes) -> Result<()> {
        self.skipped += step.gap.saturating_add(step.duration);
        self.times.recorded_mpi += step.duration;
        self.exchange.as_mut().map_or(Ok(()), |exchange| exchange.send(r))
    }

    /// Ends the replay in order, before the trace does.
    pub(super) fn end_here(&mut self, r: &mut Replay<'_>, index: u64) -> Result<()> {
        let left = self.stop.take().map(|stop| stop.left).unwrap_or_default();
        self.watchdog.enter(u32::MAX, index, 0);
        stop::finish(r, &left)?;
        let row = CallTable::builtin().by_name(names::MPI_Finalize).context("no MPI_Finalize")?;
        let handler = *handlers().get(names::MPI_Finalize).context("no MPI_Finalize")?;
        self.make(r, Call { row, handler, words: &[], sym: Sym::MAX, index }, EventTimes::default())?;
        self.watchdog.leave();
        Ok(())
    }

    /// Takes its place in the world of the trace's ranks.
    fn sit(&self, r: &mut Replay<'_>) -> Result<()> {
        if self.job.assignment.moved {
            let _hidden = r.pause.hide();
            let mut world = r.k.comm_null;
            let key = c_int::try_from(self.job.assignment.rank)?;
            mpi!(MPI_Comm_split(r.k.comm_world, 0, key, &raw mut world))?;
            r.k.comm_world = world;
            r.handles.set_world(world);
        }
        Ok(())
    }

    /// Right after `MPI_Init`: the job must be the one that was recorded.
    fn begin(&mut self, r: &Replay<'_>) -> Result<()> {
        let _hidden = r.pause.hide();
        let (mut size, mut rank) = (0, 0);
        mpi!(MPI_Comm_size(r.k.comm_world, &raw mut size))?;
        mpi!(MPI_Comm_rank(r.k.comm_world, &raw mut rank))?;
        engine::check_world(crate::MPI, size)?;
        if u32::try_from(rank) != Ok(self.job.assignment.process) {
            bail!("the launcher says rank {}, MPI says {rank}", self.job.assignment.process);
        }
        self.ranks = usize::try_from(size)?;
        Ok(())
    }

    /// Right before `MPI_Finalize`.
    fn end(&self, r: &Replay<'_>) -> Result<ReplayTimes> {
        let replayed = self.began.map_or(0, |b| nanos(b.elapsed()));
        let _hidden = r.pause.hide();
        files::all_done(r.pause)?;
        let (late, late_waits) = self.clock.lateness();
        let mut mine = Times { replayed, late_waits, late: nanos(late), ..self.times };
        let timed = self.job.section.threads.first().is_some_and(Pace::is_known);
        if !timed {
            (mine.recorded, mine.recorded_mpi) = (0, 0);
        }
        gather(r, mine, self.ranks)
    }

    fn say(&self, outcome: &ReplayTimes) -> Result<()> {
        if self.job.assignment.rank != 0 {
            return Ok(());
        }
        let args = self.job.args;
        if args.prints() {
            let text = match (args.csv, args.json) {
                (true, _) => outcome.csv(),
                (_, true) => outcome.json(),
                _ => outcome.table(),
            };
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
        args.talk.note(TOOL, outcome.summary());
        Ok(())
    }
}
