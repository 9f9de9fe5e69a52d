//! One rank from `MPI_Init` to `MPI_Finalize`.
#![expect(unsafe_code, reason = "calls MPI")]

mod job;
mod readiness;
mod timed;

use st_model::calls::names;
use st_model::num::saturate;
use std::collections::HashMap;
use std::io;
use std::ptr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use st_cli::{Launch, Status};
use st_match::lookahead::LookAhead;
use st_model::calls::words::found_nothing;
use st_model::calls::{CallTable, Kind};
use st_model::section::Section;
use st_replay::TOOL;
use st_replay::args::Args;
use st_replay::dynamic;
use st_replay::outcome::Times;
use st_replay::pace::Pace;
use st_replay::places::described;
use st_replay::progress::Progress;
use st_replay::supported::{is_of_tools, is_wide, name_of};
use st_replay::threads::{Threads, Uses};
use st_replay::unstarted::Unstarted;
use st_replay::watchdog::{Stalled, Watchdog};
use st_replay::whatif::WhatIf;

use crate::replay::buffers::Memory;
use crate::replay::call::mpi;
use crate::replay::clock::Clock;
use crate::replay::constants::Constants;
use crate::replay::files;
use crate::replay::handlers::handlers;
use crate::replay::handles::Handles;
use crate::replay::objects::{Files, Infos, Own, Windows};
use crate::replay::optional;
use crate::replay::pause::{MadeAt, Pause};
use crate::replay::rank_threads::RankThreads;
use crate::replay::requests::Requests;
use crate::replay::sampled_messages::Others;
use crate::replay::state::{Handler, Replay};
use job::{Action, Job};
pub(crate) use job::{Assignment, Stops};
use readiness::all_ready;
use timed::{Call, Run};

/// What a rank found in the trace.
pub(crate) enum Prepared {
    /// Its calls; and on rank 0, if the replay stops before its end, where.
    Ready(Box<Section>, Stops),
    /// Nothing to replay; another rank says why.
    Nothing,
}

/// Replays a rank, or, if any rank of the job is not ready, ends the job in order.
pub(crate) fn run(args: &Args, assignment: Assignment, prepared: Result<Prepared>) -> Result<Status> {
    let rank = assignment.rank;
    let mut stops = None;
    let section = match prepared {
        Ok(Prepared::Ready(section, found)) => {
            stops = found;
            Ok(Some(section))
        }
        Ok(Prepared::Nothing) => Ok(None),
        Err(error) => Err(error),
    };
    let starts = |s: &Option<Box<Section>>| s.as_ref().map(|s| begins_with_init(s, rank)).transpose();
    let section = section.and_then(|s| match starts(&s)? {
        Some(false) => bail!("rank {rank} does not begin with MPI_Init: its calls cannot be replayed"),
        _ => Ok(s),
    });
    match section {
        Ok(Some(section)) => {
            let played = play(args, assignment, &section, stops);
            if let Err(error) = played {
                let error = error.context(format!("rank {rank}"));
                if !is_running()? {
                    return Err(error);
                }
                fail(error);
            }
            files::remove();
            played
        }
        other => {
            let pause = Pause::find();
            let _hidden = pause.hide();
            mpi!(MPI_Init(ptr::null_mut(), ptr::null_mut()))?;
            all_ready(false)?;
            mpi!(MPI_Finalize())?;
            other.map(|_| Status::Ok)
        }
    }
}

/// The first call of a rank, for traces that do not begin at the beginning.
fn begins_with_init(section: &Section, rank: u32) -> Result<bool> {
    let Some(mut calls) = section.project(0, rank) else { return Ok(false) };
    let first = calls.next_call(&mut Vec::new())?;
    let symbol = first.and_then(|sym| section.symbols.get(sym as usize));
    let name = symbol.map(|s| s.call.to_string()).unwrap_or_default();
    Ok(matches!(name.as_str(), names::MPI_Init | names::MPI_Init_thread))
}

/// Whether the rank is between `MPI_Init` and `MPI_Finalize`.
fn is_running() -> Result<bool> {
    let _hidden = Pause::find().hide();
    let (mut begun, mut ended) = (0, 0);
    mpi!(MPI_Initialized(&raw mut begun))?;
    mpi!(MPI_Finalized(&raw mut ended))?;
    Ok(begun != 0 && ended == 0)
}

/// Says what is wrong and ends the job at once: the other ranks may wait for this one for ever.
fn fail(error: anyhow::Error) -> ! {
    st_cli::report(TOOL, Err(error));
    files::remove();
    let _hidden = Pause::find().hide();
    let world = Constants::load().comm_world;
    // It does not return; if it does all the same, ending this rank ends the job.
    let _ = mpi!(MPI_Abort(world, 1));
    std::process::abort()
}

fn actions(section: &Section, args: &Args) -> Result<Vec<Action>> {
    let handlers: HashMap<&str, Handler> = handlers();
    let action = |symbol: &st_model::section::Symbol| {
        let row = CallTable::builtin().get(symbol.call);
        let handler = row.and_then(|row| handlers.get(row.base()));
        match (row, handler) {
            (row, _) if symbol.error != 0 && !row.is_some_and(files::settles) => Ok(Action::Skip),
            (Some(row), _) if row.kind == Kind::Abort => Ok(Action::Abort),
            (Some(row), Some(handler))
                if (args.io.is_some() || !row.properties.files) && optional::exists(row.base()) =>
            {
                Ok(Action::Make(*handler, row))
            }
            _ if is_of_tools(symbol, &section.tables) => Ok(Action::Skip),
            (row, _) if args.skip_unsupported => Ok(row.map_or(Action::Skip, Action::LeaveOut)),
            _ => bail!("{} cannot be replayed", name_of(symbol, &section.tables)),
        }
    };
    section.symbols.iter().map(action).collect()
}

/// Interprets the rank's calls, those of each thread on a thread.
fn play(args: &Args, assignment: Assignment, section: &Section, stops: Stops) -> Result<Status> {
    let rank = assignment.rank;
    // Rank 0 has said that threads are left out, or they would not be.
    let plan = Threads::of(section, rank)?.unwrap_or_else(|| Threads { uses: vec![Uses::default()] });
    let threads = Arc::new(RankThreads::new(plan));
    let job =
        Job { args, assignment, section, actions: actions(section, args)?, threads: Arc::clone(&threads) };
    let handles = Handles::new(section, rank, Constants::load(), Pause::find(), &threads);
    std::thread::scope(|scope| {
        for thread in 1..threads.len() {
            if section.threads[thread].ranks.contains(rank) {
                let (job, handles) = (&job, handles.on_thread(thread));
                scope.spawn(move || job.play_further(thread, handles));
            } else {
                threads.ended(thread);
            }
        }
        let played = job.play_thread(0, handles, stops);
        match played {
            Err(error) if threads.len() > 1 && is_running()? => fail(error.context(format!("rank {rank}"))),
            played => {
                threads.cancel();
                played
            }
        }
    })
}

impl Job<'_> {
    /// Plays a thread other than the first, once it may begin.
    fn play_further(&self, thread: usize, handles: Handles<'_>) {
        if self.threads.wait_for_start(thread)
            && let Err(error) = self.play_thread(thread, handles, None)
        {
            fail(error.context(format!("rank {}, thread {thread}", self.assignment.rank)));
        }
        self.threads.ended(thread);
    }

    /// From the end of `MPI_Init` to a thread's first call, as far as exact times say it, ns.
    fn delay(&self, thread: usize) -> u64 {
        let first = |t: usize| self.section.threads.get(t)?.column(self.assignment.rank)?.times().next();
        match (first(0), first(thread)) {
            (Some((_, begun)), Some((enter, _))) if thread > 0 => saturate(enter.saturating_sub(begun)),
            _ => 0,
        }
    }

    /// The first thread of the first process tells how far it has come, if that is wanted.
    fn progress(&self, thread: usize) -> Result<Progress> {
        if !self.args.progress || self.assignment.process > 0 || thread > 0 {
            return Ok(Progress::default());
        }
        let calls = self.section.project(thread, self.assignment.rank).context("no calls")?.remaining()?;
        Ok(Progress::new(calls, io::stderr()))
    }

    /// What a thread's calls are made with.
    fn replay<'a>(&'a self, thread: usize, handles: Handles<'a>) -> Result<Replay<'a>> {
        let (section, rank) = (self.section, self.assignment.rank);
        Ok(Replay {
            k: Constants::load(),
            pause: Pause::find(),
            made_at: MadeAt::find(),
            threaded: self.threads.len() > 1,
            handles,
            requests: Requests::default(),
            memory: Memory::default(),
            index: 0,
            ahead: LookAhead::new(section, thread, rank).context("no calls")?,
            statuses: Vec::new(),
            array: Vec::new(),
            places: Vec::new(),
            attached: Vec::new(),
            own: Own::default(),
            infos: Infos::default(),
            windows: Windows::new(if thread == 0 { dynamic::used(section, rank)? } else { HashMap::new() }),
            files: Files::default(),
        })
    }

    fn play_thread(&self, thread: usize, handles: Handles<'_>, stops: Stops) -> Result<Status> {
        let (section, rank, threads) = (self.section, self.assignment.rank, self.threads.len());
        let mut calls = section.project(thread, rank).context("no calls")?;
        let mut replay = self.replay(thread, handles)?;
        let what_if = WhatIf::new(section, self.args);
        let others = Others::new();
        let mut run = Run {
            job: self,
            thread,
            others: &others,
            exchange: None,
            stops,
            stop: None,
            watchdog: watchdog(self.args, rank, section),
            progress: self.progress(thread)?,
            spared: 0,
            pace: Pace::new(section, thread, rank)?,
            clock: Clock::new(self.args.compute, Launch::on_this_node().map(|n| n * threads.max(1))),
            skipped: self.delay(thread),
            ranks: 0,
            times: Times::default(),
            began: (thread > 0).then(Instant::now),
            finalized: false,
        };
        let (mut words, mut unstarted) = (Vec::new(), Unstarted::default());
        loop {
            let index = calls.index();
            if run.stop.as_ref().is_some_and(|stop| index >= stop.calls) {
                run.end_here(&mut replay, index)?;
                break;
            }
            let Some(sym) = calls.next_call(&mut words)? else { break };
            let step = run.pace.step(sym);
            if let Some(exchange) = &mut run.exchange {
                exchange.before(&mut replay, sym, &mut words, step)?;
            }
            what_if.scale(sym, &mut words);
            run.spared += i128::from(step.gap) - i128::from(what_if.wait(sym, step.gap));
            match self.actions.get(sym as usize) {
                Some(Action::Make(_, row)) if self.args.skip_unsupported && is_wide(row, &words) => {
                    unstarted.leave_out(row, &words);
                    run.pass(&mut replay, step)?;
                }
                Some(Action::Make(handler, row))
                    if !found_nothing(row, &words) && unstarted.keep(row, &mut words) =>
                {
                    replay.index = index;
                    let call = Call { row, handler: *handler, words: &words, sym, index };
                    let made = run.make(&mut replay, call, step);
                    run.watchdog.leave();
                    if !made.with_context(|| format!("call {index}: {}", row.name))? {
                        return Ok(Status::Ok);
                    }
                }
                Some(Action::Abort) => {
                    bail!("the program called MPI_Abort here (call {index}): the replay ends")
                }
                other => {
                    if let Some(Action::LeaveOut(row)) = other {
                        unstarted.leave_out(row, &words);
                    }
                    run.pass(&mut replay, step)?;
                }
            }
            self.threads.reached(thread, index + 1);
        }
        if thread == 0 && !run.finalized {
            bail!("the trace ends before MPI_Finalize: the replay ends");
        }
        Ok(Status::Ok)
    }
}

/// Ends the job when a call of this rank does not end.
fn watchdog(args: &Args, rank: u32, section: &Section) -> Watchdog {
    let (sites, symbols) = (section.sites.clone(), args.symbols.clone());
    let names: Vec<_> = section.symbols.iter().map(|s| (name_of(s, &section.tables), s.site)).collect();
    Watchdog::new(args.watchdog, move |stalled| {
        let Stalled { sym, index, since } = stalled;
        // Looked up when it is needed.
        let (sites, _) = symbols.named([&sites]);
        let place = |(name, site): &(String, u32)| described(name, *site, &sites);
        let what = names.get(sym as usize).map_or_else(|| "the end of the replay".into(), place);
        let seconds = since.as_secs();
        let error = anyhow!("rank {rank}: no progress for {seconds} s in call {index}: {what}");
        st_cli::report(TOOL, Err(error));
        // Other ranks may have something to say, too.
        thread::sleep(Duration::from_secs(2));
        // SAFETY: ends the process at once. MPI may not be called while another thread is inside.
        unsafe { libc::_exit(1) }
    })
}
