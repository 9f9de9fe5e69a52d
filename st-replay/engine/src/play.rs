//! One rank from `MPI_Init` to `MPI_Finalize`.
#![expect(unsafe_code, reason = "calls MPI")]

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_int;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use mpi::ffi;
use st_replay::TOOL;
use st_replay::args::Args;
use st_replay::cut::Stop;
use st_replay::lookahead::LookAhead;
use st_replay::pace::{Pace, Step};
use st_replay::places::describe;
use st_replay::preflight::name_of;
use st_replay::watchdog::{Stalled, Watchdog};
use st_replay::whatif::WhatIf;
use st_replay::words::{Words, failed_poll};
use st_symbols::Resolver;
use st_tool::{Status, engine};
use st_trace::calls::{CallTable, Row};
use st_trace::section::Section;

use crate::bookkeeping;
use crate::buffers::Memory;
use crate::call::mpi;
use crate::clock::Clock;
use crate::constants::{Constants, predefined_type};
use crate::handles::Handles;
use crate::info::Infos;
use crate::pause::Pause;
use crate::probable::{Exchange, Others};
use crate::replay::{Handler, Replay, handlers};
use crate::requests::Requests;
use crate::stop;

/// What a rank found in the trace.
pub(crate) enum Prepared {
    /// Its calls; and on rank 0, if the replay stops before its end, where.
    Ready(Box<Section>, Stops),
    /// Nothing to replay; another rank says why.
    Nothing,
}

/// Where each rank stops.
type Stops = Option<BTreeMap<u32, Stop>>;

/// Who plays whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    /// Rank of the process.
    pub(crate) process: u32,
    /// Rank of the trace.
    pub(crate) rank: u32,
    /// Whether these may differ.
    pub(crate) moved: bool,
}

/// What a symbol's calls come to.
#[derive(Clone, Copy)]
enum Action {
    /// They failed, or cannot be replayed and are left out.
    Skip,
    Make(Handler, &'static Row),
    Abort,
}

/// Replays a rank, or, if any rank of the job is not ready, ends the job in order.
pub(crate) fn run(args: &Args, seat: Seat, prepared: Result<Prepared>) -> Result<Status> {
    let rank = seat.rank;
    let mut stops = None;
    let section = match prepared {
        Ok(Prepared::Ready(section, found)) => {
            stops = found;
            Ok(Some(section))
        }
        Ok(Prepared::Nothing) => Ok(None),
        Err(error) => Err(error),
    };
    let starts = |s: &Option<Box<Section>>| s.as_ref().map(|s| crate::begins_with_init(s, rank)).transpose();
    let section = section.and_then(|s| match starts(&s)? {
        Some(false) => bail!("rank {rank} does not begin with MPI_Init: its calls cannot be replayed"),
        _ => Ok(s),
    });
    match section {
        Ok(Some(section)) => {
            let played = play(args, seat, &section, stops);
            if let Err(error) = played {
                let error = error.context(format!("rank {rank}"));
                if !is_running()? {
                    return Err(error);
                }
                // The other ranks may wait for this one for ever.
                st_tool::report(TOOL, Err(error));
                abort();
            }
            played
        }
        other => {
            let pause = Pause::find();
            let _hidden = pause.hide();
            mpi!(MPI_Init(ptr::null_mut(), ptr::null_mut()))?;
            agree(false)?;
            mpi!(MPI_Finalize())?;
            other.map(|_| Status::Ok)
        }
    }
}

/// Whether the rank is between `MPI_Init` and `MPI_Finalize`.
fn is_running() -> Result<bool> {
    let _hidden = Pause::find().hide();
    let (mut begun, mut ended) = (0, 0);
    mpi!(MPI_Initialized(&raw mut begun))?;
    mpi!(MPI_Finalized(&raw mut ended))?;
    Ok(begun != 0 && ended == 0)
}

/// Ends the job at once.
fn abort() -> ! {
    let _hidden = Pause::find().hide();
    let world = Constants::load().comm_world;
    // It does not return; if it does all the same, ending this rank ends the job.
    let _ = mpi!(MPI_Abort(world, 1));
    std::process::abort()
}

/// Whether all ranks are ready.
fn agree(ready: bool) -> Result<bool> {
    let world = Constants::load().comm_world;
    let int = predefined("MPI_INT")?;
    let mine = c_int::from(ready);
    let mut all: c_int = 0;
    mpi!(MPI_Allreduce((&raw const mine).cast(), (&raw mut all).cast(), 1, int, op("MPI_MIN")?, world))?;
    Ok(all != 0)
}

fn predefined(name: &str) -> Result<ffi::MPI_Datatype> {
    predefined_type(name, Constants::load().type_null).with_context(|| format!("this MPI has no {name}"))
}

fn op(name: &str) -> Result<ffi::MPI_Op> {
    let null = Constants::load().op_null;
    crate::constants::predefined_op(name, null).with_context(|| format!("this MPI has no {name}"))
}

/// Recorded and replayed time between the end of `MPI_Init` and the start of `MPI_Finalize`, ns.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Times {
    recorded: u64,
    replayed: u64,
}

/// The longest of all ranks, on rank 0.
fn longest(mine: Times) -> Result<Times> {
    let world = Constants::load().comm_world;
    let mut all = Times::default();
    let (from, to) = ((&raw const mine).cast(), (&raw mut all).cast());
    mpi!(MPI_Reduce(from, to, 2, predefined("MPI_UINT64_T")?, op("MPI_MAX")?, 0, world))?;
    Ok(all)
}

fn actions(section: &Section, args: &Args) -> Result<Vec<Action>> {
    let handlers: HashMap<&str, Handler> = handlers();
    let action = |symbol: &st_trace::section::Symbol| {
        let row = CallTable::builtin().get(symbol.call);
        let handler = row.and_then(|row| handlers.get(row.base()));
        match (row, handler) {
            _ if symbol.error != 0 => Ok(Action::Skip),
            (Some(row), _) if row.name == "MPI_Abort" => Ok(Action::Abort),
            (Some(row), Some(handler)) => Ok(Action::Make(*handler, row)),
            _ if args.skip_unsupported => Ok(Action::Skip),
            _ => bail!("{} cannot be replayed", name_of(symbol, &section.tables)),
        }
    };
    section.symbols.iter().map(action).collect()
}

/// Interprets the rank's calls.
fn play(args: &Args, seat: Seat, section: &Section, stops: Stops) -> Result<Status> {
    let rank = seat.rank;
    let mut calls = section.project(0, rank).context("no calls")?;
    let ahead = LookAhead::new(section, section.project(0, rank).context("no calls")?);
    let thread = section.threads.first().context("no thread")?;
    let actions = actions(section, args)?;
    let (k, pause) = (Constants::load(), Pause::find());
    let mut replay = Replay {
        k,
        pause,
        handles: Handles::new(section, rank, k, pause),
        requests: Requests::default(),
        memory: Memory::default(),
        ahead,
        statuses: Vec::new(),
        array: Vec::new(),
        attached: Vec::new(),
        own: bookkeeping::Own::default(),
        infos: Infos::default(),
    };
    let what_if = WhatIf::new(section, args);
    let others = Others::new();
    let mut run = Run {
        args,
        seat,
        section,
        others: &others,
        exchange: None,
        stops,
        stop: None,
        watchdog: watchdog(args, rank, section),
        spared: 0,
        pace: Pace::new(section, 0, rank)?,
        timed: Pace::is_known(thread),
        clock: Clock::new(args.compute),
        skipped: 0,
        recorded: 0,
        began: None,
        finalized: false,
    };
    let mut words = Vec::new();
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
        match actions.get(sym as usize) {
            Some(Action::Make(handler, row)) if !failed_poll(row, &words) => {
                run.watchdog.enter(sym, index, step.duration);
                let made = run.make(&mut replay, *handler, row, &words, step);
                run.watchdog.leave();
                if !made.with_context(|| format!("call {index}: {}", row.name))? {
                    return Ok(Status::Ok);
                }
            }
            Some(Action::Abort) => bail!("the program called MPI_Abort here (call {index}): the replay ends"),
            // The time it took is kept: polls are made while waiting or computing.
            _ => {
                run.skipped += step.gap.saturating_add(step.duration);
                if let Some(exchange) = &mut run.exchange {
                    exchange.send(&mut replay)?;
                }
            }
        }
    }
    if !run.finalized {
        bail!("the trace ends before MPI_Finalize: the replay ends");
    }
    Ok(Status::Ok)
}

/// Ends the job when a call of this rank does not end.
fn watchdog(args: &Args, rank: u32, section: &Section) -> Watchdog {
    let sites = section.sites.clone();
    let names: Vec<_> = section.symbols.iter().map(|s| (name_of(s, &section.tables), s.site)).collect();
    Watchdog::new(Duration::from_secs(args.watchdog), move |stalled| {
        let Stalled { sym, index, since } = stalled;
        let place = |(name, site): &(String, u32)| match describe(&sites, *site, &mut Resolver::new()) {
            site if site.is_empty() => name.clone(),
            site => format!("{name} ({site})"),
        };
        let what = names.get(sym as usize).map_or_else(|| "the end of the replay".into(), place);
        let seconds = since.as_secs();
        let error = anyhow!("rank {rank}: no progress for {seconds} s in call {index}: {what}");
        st_tool::report(TOOL, Err(error));
        // Other ranks may have something to say, too.
        thread::sleep(Duration::from_secs(2));
        // SAFETY: ends the process at once. MPI may not be called while another thread is inside.
        unsafe { libc::_exit(1) }
    })
}

/// Time keeping around the calls of a rank.
struct Run<'a> {
    args: &'a Args,
    seat: Seat,
    section: &'a Section,
    others: &'a Others,
    /// Messages that are drawn, if they are.
    exchange: Option<Exchange<'a>>,
    stops: Stops,
    stop: Option<Stop>,
    watchdog: Watchdog,
    /// How much less than recorded is to be waited before the next call, ns; what if.
    spared: i128,
    pace: Pace<'a>,
    timed: bool,
    clock: Clock,
    /// Time of events that are not replayed, since the last one that was, ns.
    skipped: u64,
    /// Recorded time since `MPI_Init`, ns.
    recorded: u64,
    began: Option<Instant>,
    finalized: bool,
}

impl Run<'_> {
    /// Waits as the program did, and makes a call. `false` if the job is not to go on.
    fn make(
        &mut self,
        r: &mut Replay<'_>,
        handler: Handler,
        row: &Row,
        words: &[i64],
        step: Step,
    ) -> Result<bool> {
        let gap = std::mem::take(&mut self.skipped).saturating_add(step.gap);
        let init = row.name.starts_with("MPI_Init") && self.began.is_none();
        if !init {
            self.recorded = self.recorded.saturating_add(gap);
            let spared = std::mem::take(&mut self.spared);
            self.clock.wait(u64::try_from((i128::from(gap) - spared).max(0)).unwrap_or(u64::MAX));
        }
        let finalize = row.name == "MPI_Finalize";
        if let Some(exchange) = &mut self.exchange {
            exchange.send(r)?;
            if finalize {
                exchange.finish(r)?;
            }
        }
        let times = if finalize { Some(self.end(r)?) } else { None };
        let start = Instant::now();
        handler(r, &mut Words::new(words))?;
        if init {
            self.begin(r)?;
            let _hidden = r.pause.hide();
            if !agree(true)? {
                mpi!(MPI_Finalize())?;
                return Ok(false);
            }
            self.sit(r)?;
            if self.args.stop_after.is_some() {
                self.stop = Some(stop::share(r, self.stops.as_ref())?);
            }
            self.exchange = Exchange::begin(r, self.args, self.seat.rank, self.section, self.others)?;
            self.began = Some(Instant::now());
        } else {
            self.recorded = self.recorded.saturating_add(step.duration);
            if row.properties.fold {
                self.clock.fill(start, step.duration);
            }
        }
        self.clock.call_ended();
        if let Some(times) = times {
            self.finalized = true;
            self.say(times);
        }
        Ok(true)
    }

    /// Ends the replay in order, before the trace does.
    fn end_here(&mut self, r: &mut Replay<'_>, index: u64) -> Result<()> {
        let left = self.stop.take().map(|stop| stop.left).unwrap_or_default();
        self.watchdog.enter(u32::MAX, index, 0);
        stop::finish(r, &left)?;
        let row = CallTable::builtin().by_name("MPI_Finalize").context("no MPI_Finalize")?;
        let handler = *handlers().get("MPI_Finalize").context("no MPI_Finalize")?;
        self.make(r, handler, row, &[], Step::default())?;
        self.watchdog.leave();
        Ok(())
    }

    /// Takes the seat in the world of the trace's ranks.
    fn sit(&self, r: &mut Replay<'_>) -> Result<()> {
        if self.seat.moved {
            let _hidden = r.pause.hide();
            let mut world = r.k.comm_null;
            let key = c_int::try_from(self.seat.rank)?;
            mpi!(MPI_Comm_split(r.k.comm_world, 0, key, &raw mut world))?;
            r.k.comm_world = world;
            r.handles.set_world(world);
        }
        Ok(())
    }

    /// Right after `MPI_Init`: the job must be the one that was recorded.
    fn begin(&self, r: &Replay<'_>) -> Result<()> {
        let _hidden = r.pause.hide();
        let (mut size, mut rank) = (0, 0);
        mpi!(MPI_Comm_size(r.k.comm_world, &raw mut size))?;
        mpi!(MPI_Comm_rank(r.k.comm_world, &raw mut rank))?;
        engine::check_world(crate::MPI, size)?;
        if u32::try_from(rank) != Ok(self.seat.process) {
            bail!("the launcher says rank {}, MPI says {rank}", self.seat.process);
        }
        Ok(())
    }

    /// Right before `MPI_Finalize`.
    fn end(&self, r: &Replay<'_>) -> Result<Times> {
        let replayed = self.began.map_or(0, |b| u64::try_from(b.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let _hidden = r.pause.hide();
        longest(Times { recorded: self.recorded, replayed })
    }

    #[expect(clippy::cast_precision_loss, reason = "durations for people")]
    fn say(&self, times: Times) {
        if self.seat.process != 0 {
            return;
        }
        let seconds = |ns: u64| ns as f64 / 1e9;
        let replayed = seconds(times.replayed);
        if !self.timed || times.recorded == 0 {
            self.args
                .talk
                .note(TOOL, format_args!("replayed in {replayed:.3} s; no recorded times to compare with"));
            return;
        }
        let recorded = seconds(times.recorded);
        let error = 100.0 * (replayed - recorded) / recorded;
        self.args.talk.note(
            TOOL,
            format_args!("recorded {recorded:.3} s, replayed {replayed:.3} s, error {error:+.1} %"),
        );
    }
}
