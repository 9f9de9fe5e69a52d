//! Begin and end of a recording.

use crate::attributes;
use crate::clock::processor_time;
use crate::constants as k;
use crate::ffi::{Handle, Handles};
use crate::jobs::directory;
use crate::local;
use crate::memory;
use crate::merge;
use crate::message::{is_first, note_down, note_failure, set_rank, warn};
use crate::muster;
use crate::note;
use crate::output::{Output, Owner, Written, clear};
use crate::outside;
use crate::real;
use crate::run;
use crate::settings::Settings;
use crate::state::{PAUSED, RECORDING, STATE, State};
use crate::sync::Able;
use st_stream::directory::WITHOUT;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

/// A recording has ended: sessions after `MPI_Finalize` do not begin another, which would replace its stream.
static ENDED: AtomicBool = AtomicBool::new(false);

/// It could not begin, and others do not know yet.
static MISSED: AtomicBool = AtomicBool::new(false);

/// A session has found that this rank is not to be recorded: later ones need not look. `MPI_Init` does, which others wait for.
static LEFT_OUT: AtomicBool = AtomicBool::new(false);

/// What is done once for the process.
static FIRST: Once = Once::new();

/// Where this job's ranks record, once that is known.
static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();

/// Called when `MPI_Session_init` is entered.
pub(crate) fn before_session() {
    if !LEFT_OUT.load(Ordering::Relaxed) {
        before(processor_time());
    }
}

/// Called when `MPI_Init` is entered.
pub(crate) fn before_init() {
    let since = processor_time();
    let _ = catch_unwind(crate::sync::before);
    before(since);
}

/// Called when `MPI_Init` is entered, or a session begins: makes the state if an output is named. What that costs began at `since`.
fn before(since: i64) {
    if ENDED.load(Ordering::Relaxed) || RECORDING.load(Ordering::Relaxed) || STATE.lock(is_owner()).is_some()
    {
        return;
    }
    match Settings::read() {
        Ok(None) => {}
        Ok(Some(settings)) => {
            // Our panics are reported by `give_up`; the default hook would print a second time, and more.
            std::panic::set_hook(Box::new(|_| {}));
            let state = catch_unwind(|| Box::new(State::new(settings)));
            let Ok(mut state) = state else { return give_up_early("internal error") };
            // It may not return.
            if is_first() {
                note_down(&state.settings.output, "init=1");
            }
            state.cost.add(processor_time() - since);
            let mut held = STATE.lock(is_owner());
            if held.is_some() {
                // Another thread's session has come in between.
                return;
            }
            // A state before this one knew the thread by a number that this one does not.
            local::with(|l| l.thread.set(0));
            *held = Some(state);
            FIRST.call_once(|| {
                // One thread, and while it holds the lock, so that no other is inside.
                STATE.begin_bias();
                local::with(|l| l.owner.set(true));
                // SAFETY: the handlers only take and release a lock and store a flag.
                unsafe {
                    libc::pthread_atfork(Some(memory::before_fork), Some(memory::after_fork), Some(in_child))
                };
            });
            drop(held);
            RECORDING.store(true, Ordering::Relaxed);
        }
        Err(e) => give_up_early(&e),
    }
}

/// Ends the recording before it has begun.
fn give_up_early(why: &str) {
    MISSED.store(true, Ordering::Relaxed);
    give_up(why);
}

/// Called when `MPI_Init` has returned and is not recorded: a rank that could not begin does its part of what all ranks do
/// together, for which the others wait.
pub(crate) fn missed_init(result: i64) {
    if result == 0 && MISSED.swap(false, Ordering::Relaxed) {
        let _ = catch_unwind(|| {
            crate::sync::split();
            crate::sync::agree(Able::default());
        });
    }
}

fn is_owner() -> bool {
    local::with(|l| l.owner.get())
}

/// Children made by fork record nothing.
extern "C" fn in_child() {
    memory::after_fork();
    outside::forget();
    RECORDING.store(false, Ordering::Relaxed);
}

/// Called when `MPI_Init` has returned: learns the world and opens the output. Returns when that is done, ns on the clock that
/// has been set right.
pub(crate) fn after_init(result: i64) -> Option<i64> {
    if result != 0 {
        RECORDING.store(false, Ordering::Relaxed);
        return None;
    }
    let since = processor_time();
    // Whatever becomes of this rank's recording: the others make communicators with it, and compare their clocks.
    let split = catch_unwind(crate::sync::split);
    initialised();
    let clock = reader();
    begun(begin);
    if split.is_ok() {
        let able = Able { compares: clock.is_some(), records: RECORDING.load(Ordering::Relaxed) };
        let _ = catch_unwind(|| crate::sync::agree(able));
        let reductions = STATE.lock(is_owner()).as_deref().and_then(|s| s.settings.reductions());
        compare(clock, |clock| crate::sync::compare(clock, reductions));
    }
    if let Some(state) = STATE.lock(is_owner()).as_deref_mut() {
        state.cost.add(processor_time() - since);
        state.queued.begin();
    }
    clock.map(|clock| clock.now())
}

/// Called when `MPI_Session_init` has returned: as [`after_init`], but the world is what the launcher says; `group` asks
/// the session for the group of all. Such a recording ends with the process: other sessions may follow the last one.
pub(crate) fn after_session(result: i64, group: impl FnOnce() -> u64) -> Option<i64> {
    if result == 0 {
        initialised();
    }
    begun(|state| {
        if result != 0 || state.output.is_some() {
            return Ok(true);
        }
        state.sessions_only = true;
        let (rank, size) = crate::jobs::launched();
        state.run = run::identity(None);
        settle(state, false)?;
        if !learn(state, rank) {
            return Ok(false);
        }
        state.comms.start_without_world(rank, size, group(), &mut state.recorder);
        open(state, rank, size)?;
        Ok(true)
    });
    reader().filter(|_| result == 0).map(|clock| clock.now())
}

fn begun(begin: impl FnOnce(&mut State) -> Result<bool, String>) {
    let begun = catch_unwind(AssertUnwindSafe(|| -> Result<(), String> {
        let mut held = STATE.lock(is_owner());
        let Some(state) = held.as_deref_mut() else { return Ok(()) };
        if !begin(state)? {
            // Nothing is kept of a rank that is not to be recorded.
            LEFT_OUT.store(true, Ordering::Relaxed);
            RECORDING.store(false, Ordering::Relaxed);
            *held = None;
        }
        Ok(())
    }));
    match begun {
        Ok(Ok(())) => {}
        Ok(Err(e)) => give_up(&e),
        Err(_) => give_up("internal error"),
    }
}

/// Learns who this is; `false` if this rank is not to be recorded.
fn learn(state: &mut State, rank: u32) -> bool {
    set_rank(rank);
    if state.settings.only.as_ref().is_some_and(|(_, ranks)| !ranks.contains(rank)) {
        return false;
    }
    state.rank = rank;
    state.recorder.set_rank(rank);
    state.types.start();
    true
}

/// Begins; `false` if this rank is not to be recorded.
fn begin(state: &mut State) -> Result<bool, String> {
    state.sessions_only = false;
    // A session has begun already.
    if state.output.is_some() {
        return Ok(true);
    }
    let world = Handle::from_raw(k::MPI_COMM_WORLD());
    let (mut rank, mut size): (c_int, c_int) = (0, 0);
    let mut parent = Handle::from_raw(k::MPI_COMM_NULL());
    // SAFETY: MPI is initialised; results go to variables.
    unsafe {
        real::MPI_Comm_rank(world, &raw mut rank);
        real::MPI_Comm_size(world, &raw mut size);
        real::MPI_Comm_get_parent(Handles::of(&mut parent));
    }
    let rank = u32::try_from(rank).map_err(|e| format!("rank: {e}"))?;
    let size = u32::try_from(size).map_err(|e| format!("number of ranks: {e}"))?;
    let spawned = parent.raw() != k::MPI_COMM_NULL();
    state.run = run::identity(crate::sync::run());
    settle(state, spawned)?;
    if let Some(lacking) = muster::lacking().filter(|lacking| lacking.told_here) {
        note_down(&state.settings.output, &format!("{WITHOUT}{}", lacking.ranks));
    }
    if rank == 0 && !spawned {
        // Of a job in which no rank is to be recorded a launcher hears nothing else.
        note_down(&state.settings.output, &format!("world={size}"));
        if state.settings.jobs.is_none() || !state.run.is_empty() {
            clear(&state.settings, size);
        }
    }
    if !learn(state, rank) {
        return Ok(false);
    }
    state.comms.start(size, &mut state.recorder);
    open(state, rank, size)?;
    Ok(true)
}

/// Finds the job's directory: it is where all that follows is written, and what fails is told.
fn settle(state: &mut State, spawned: bool) -> Result<(), String> {
    state.settings.output = directory(&state.settings, &state.run, spawned)?;
    // Another session finds it settled.
    let _ = DIRECTORY.set(state.settings.output.clone());
    Ok(())
}

/// Opens the stream, and the journal beside it.
fn open(state: &mut State, rank: u32, size: u32) -> Result<(), String> {
    // Without `MPI_Init` there is no such communicator.
    let attributes = if state.sessions_only { Vec::new() } else { attributes::of_world() };
    let owner = Owner { rank, world: size, run: &state.run, attributes };
    let (output, journal) = Output::create(&state.settings, state.clock.source(), &state.recorder, &owner)?;
    state.output = Some(output);
    state.say_unknown_python();
    match journal {
        Ok(journal) => state.journal = Some(journal),
        Err(e) => warn(&format!("no journal: {e}; a rank that is killed leaves no trace")),
    }
    Ok(())
}

/// `MPI_Pcontrol`: 0 pauses, 1 resumes, other levels are the program's own. Legal before `MPI_Init`.
pub(crate) fn pcontrol(level: c_int) {
    if level == 0 || level == 1 {
        PAUSED.store(level == 0, Ordering::Relaxed);
    }
}

/// MPI is initialised: sets the clock right.
fn initialised() {
    if let Some(state) = STATE.lock(is_owner()).as_deref_mut() {
        state.clock.initialised();
    }
}

/// This rank's clock.
fn reader() -> Option<crate::clock::Reader> {
    STATE.lock(is_owner()).as_deref_mut().map(|state| state.clock.reader())
}

/// Compares clocks. Not under the lock: it takes its time.
fn compare(clock: Option<crate::clock::Reader>, how: impl FnOnce(crate::clock::Reader)) {
    // Without a clock, or after a panic, this rank has no comparison; the others do not wait for it long.
    if let Some(clock) = clock {
        let _ = catch_unwind(AssertUnwindSafe(|| how(clock)));
    }
}

/// Called when a collective operation on a communicator has been recorded that its ranks cannot leave before all have
/// entered.
pub(crate) fn passed(result: i64, comm: u64) {
    let counts = |world_only: bool| {
        if world_only {
            return comm == k::MPI_COMM_WORLD();
        }
        STATE.lock(is_owner()).as_deref_mut().is_some_and(|state| state.comms.is_of_all(comm))
    };
    let met = catch_unwind(AssertUnwindSafe(|| crate::sync::passed(result, counts, reader)));
    let Ok(Some(met)) = met else { return };
    let reduced = met.reduction.map(|number| reduce(number).unwrap_or(0));
    if let Some(state) = STATE.lock(is_owner()).as_deref_mut() {
        state.cost.add(met.own);
        if let Some(ns) = reduced {
            local::with(|local| state.leave_out(local, met.took + ns));
        }
    }
}

/// Takes part in an interim reduction. Not under the lock: it takes its time. Returns that, ns.
fn reduce(number: i64) -> Option<i64> {
    let begun = reader()?.now();
    let asked = STATE.lock(is_owner()).as_deref().and_then(|state| asked(state, number))?;
    let so_far = || {
        let state = STATE.lock(is_owner());
        state.as_deref().and_then(|s| Some(s.output.as_ref()?.so_far(&s.recorder)))
    };
    let said = catch_unwind(AssertUnwindSafe(|| merge::interim(&asked, crate::sync::ranks(), so_far)));
    if let Some(what) = said.unwrap_or_else(|_| Some("internal error; no interim reduction this time".into()))
    {
        warn(&what);
    }
    Some(asked.clock.now() - begun)
}

/// What is to be done by all ranks, if they are to merge.
fn asked(state: &State, number: i64) -> Option<merge::Asked> {
    let Settings { merge, lossy, patience, output, quiet, .. } = &state.settings;
    let (directory, clock, all) = (output.clone(), state.clock.reader(), crate::sync::all_record());
    let (patience, quiet) = (*patience, *quiet);
    merge.map(|how| merge::Asked {
        how,
        lossy: lossy.clone(),
        patience,
        directory,
        quiet,
        clock,
        all,
        number,
    })
}

/// Called when `MPI_Finalize` is entered and recorded.
pub(crate) fn finalize() {
    let since = processor_time();
    if let Some(state) = STATE.lock(is_owner()).as_deref_mut() {
        state.queued.end();
    }
    if RECORDING.load(Ordering::Relaxed) {
        compare(reader(), crate::sync::compare_last);
    }
    let asked = STATE.lock(is_owner()).as_deref().and_then(|state| asked(state, 0));
    let ranks = crate::sync::ranks();
    let told = catch_unwind(AssertUnwindSafe(|| merge::interims(asked.as_ref()?, ranks)));
    if let Ok(Some(what)) = told {
        warn(&what);
    }
    let written = close(Ending::Finalize, since);
    let Some(asked) = asked else { return };
    // Also a rank that has nothing to merge: the others are waiting for its word.
    let said = catch_unwind(AssertUnwindSafe(|| merge::run(&asked, ranks, written)));
    let said = said.unwrap_or_else(|_| Some("internal error; the ranks' streams are not merged".into()));
    if let Some(what) = said {
        warn(&what);
    }
}

/// Why a recording ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// `MPI_Finalize`.
    Finalize,
    /// `MPI_Abort`.
    Abort,
    /// The process ends.
    Exit,
}

impl Ending {
    /// Whether the program has not come to its end. One that uses sessions only, and has finalised all of them, has: there is no call
    /// that says so.
    fn is_early(self, state: &State) -> bool {
        match self {
            Self::Finalize => false,
            Self::Abort => true,
            Self::Exit => !(state.sessions_only && state.minor.sessions.is_empty()),
        }
    }
}

/// Ends the recording and writes the rest of the stream. `since` is the thread's processor time when that began, ns. Returns what was
/// written, if it could be.
pub(crate) fn close(ending: Ending, since: i64) -> Option<Written> {
    if !RECORDING.swap(false, Ordering::Relaxed) {
        return None;
    }
    ENDED.store(true, Ordering::Relaxed);
    // A signal handler that ends the process may have interrupted us: what is half done stays so, and the journal has all
    // calls. From there nothing is allocated, said or waited for, which might need what the thread itself holds.
    let mut held = match ending {
        Ending::Exit if memory::is_inside() => return None,
        Ending::Exit => STATE.lock_at_exit(is_owner())?,
        Ending::Finalize | Ending::Abort => STATE.lock(is_owner()),
    };
    let state = held.take();
    drop(held);
    let closed = catch_unwind(AssertUnwindSafe(|| {
        let Some(mut state) = state else { return Ok(None) };
        if state.pid != std::process::id() {
            // A child that was made behind our back must not write what the parent will write.
            std::mem::forget(state);
            return Ok(None);
        }
        (0..state.threads.len()).for_each(|t| state.flush(t));
        for (thread, chunk) in state.recorder.flush_columns() {
            state.write_whatever(thread, &chunk);
        }
        let clock = crate::sync::take();
        if let Some(output) = state.output.as_mut().filter(|_| !clock.is_empty()) {
            output.clock(&clock);
        }
        match state.output.take() {
            Some(output) => {
                let early = ending.is_early(&state);
                let note = note::line(&state, early);
                if state.rank == 0 && !state.settings.quiet {
                    note::tell_inside(&state.settings.output);
                }
                output.finish(state.into_rest(note, early, since)).map(Some)
            }
            None => Ok(None),
        }
    }));
    let closed = closed.unwrap_or_else(|_| Err("internal error".into()));
    closed.unwrap_or_else(|e| {
        complain(&e);
        None
    })
}

/// Called when `MPI_Abort` is entered and recorded.
pub(crate) fn abort() {
    drop(close(Ending::Abort, processor_time()));
}

/// Ends the recording without a result.
pub(crate) fn give_up(why: &str) {
    RECORDING.store(false, Ordering::Relaxed);
    complain(why);
}

/// Where the launcher is told of this process.
fn told_in() -> Option<PathBuf> {
    DIRECTORY.get().cloned().or_else(|| std::env::var_os("ST_OUTPUT").map(PathBuf::from))
}

fn complain(why: &str) {
    if let Some(directory) = told_in() {
        note_failure(&directory, why);
    }
    warn(&format!("{why}; recording stops, the program goes on"));
}

/// A program that ends without `MPI_Finalize` still leaves its trace. (Not if it is killed: nothing of ours runs then.)
extern "C" fn at_exit() {
    drop(close(Ending::Exit, processor_time()));
    // As in `close`: in a signal handler nothing may be allocated.
    if !memory::is_inside()
        && let Some((note, directory)) = outside::note().zip(told_in())
    {
        note_down(&directory, &note);
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
