//! Begin and end of a recording.

use crate::ffi::{Handle, MPI_Comm, constants as k};
use crate::generated::real;
use crate::local::LOCAL;
use crate::message::say;
use crate::output::Output;
use crate::settings::Settings;
use crate::state::{PAUSED, RECORDING, STATE, State};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

/// World rank, for messages; `u32::MAX` while unknown.
static RANK: AtomicU32 = AtomicU32::new(u32::MAX);

/// Called when `MPI_Init` is entered: makes the state if an output is named.
pub(crate) fn before_init() {
    if RECORDING.load(Ordering::Relaxed) || STATE.lock(is_owner()).is_some() {
        return;
    }
    match Settings::read() {
        Ok(None) => {}
        Ok(Some(settings)) => {
            // Our panics are reported by `give_up`; the default hook would print a second time, and more.
            std::panic::set_hook(Box::new(|_| {}));
            let state = catch_unwind(|| Box::new(State::new(settings)));
            let Ok(state) = state else { return give_up("internal error") };
            *STATE.lock(is_owner()) = Some(state);
            STATE.begin_bias();
            LOCAL.with(|l| l.owner.set(true));
            // SAFETY: the handler only stores a flag.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
            RECORDING.store(true, Ordering::Relaxed);
        }
        Err(e) => give_up(&e),
    }
}

fn is_owner() -> bool {
    LOCAL.with(|l| l.owner.get())
}

/// Children made by fork record nothing.
extern "C" fn in_child() {
    RECORDING.store(false, Ordering::Relaxed);
}

/// Called when `MPI_Init` has returned: learns the world and opens the output.
pub(crate) fn after_init(result: i64) {
    if result != 0 {
        RECORDING.store(false, Ordering::Relaxed);
        return;
    }
    let begun = catch_unwind(|| {
        let mut state = STATE.lock(is_owner());
        let Some(state) = state.as_deref_mut() else { return Ok(()) };
        begin(state)
    });
    match begun {
        Ok(Ok(())) => {}
        Ok(Err(e)) => give_up(&e),
        Err(_) => give_up("internal error"),
    }
}

fn begin(state: &mut State) -> Result<(), String> {
    let world = MPI_Comm::from_raw(k::st_MPI_COMM_WORLD);
    let (mut rank, mut size): (c_int, c_int) = (0, 0);
    // SAFETY: MPI is initialised; results go to variables.
    unsafe {
        real::MPI_Comm_rank(world, &raw mut rank);
        real::MPI_Comm_size(world, &raw mut size);
    }
    let rank = u32::try_from(rank).map_err(|e| format!("rank: {e}"))?;
    RANK.store(rank, Ordering::Relaxed);
    state.rank = rank;
    state.recorder.set_rank(rank);
    state.types.start();
    state.comms.start(&mut state.recorder);
    let size = u32::try_from(size).unwrap_or(0);
    let (output, journal) = Output::create(state, rank, size)?;
    state.output = Some(output);
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

/// Ends the recording and writes the rest of the stream; `early` says that the program has not come to its end.
pub(crate) fn close(early: bool) {
    if !RECORDING.swap(false, Ordering::Relaxed) {
        return;
    }
    let closed = catch_unwind(AssertUnwindSafe(|| {
        let Some(mut held) = STATE.lock_at_exit(is_owner()) else {
            return Err("ended by a signal handler".into());
        };
        let Some(mut state) = held.take() else { return Ok(()) };
        drop(held);
        if state.pid != std::process::id() {
            // A child that was made behind our back must not write what the parent will write.
            std::mem::forget(state);
            return Ok(());
        }
        (0..state.threads.len()).for_each(|t| state.flush(t));
        for (thread, chunk) in state.recorder.flush_columns() {
            state.write(thread, chunk);
        }
        match state.output.take() {
            Some(output) => output.finish(*state, early),
            None => Ok(()),
        }
    }));
    match closed {
        Ok(Ok(())) => {}
        Ok(Err(e)) => complain(&e),
        Err(_) => complain("internal error"),
    }
}

/// Ends the recording without a result.
pub(crate) fn give_up(why: &str) {
    RECORDING.store(false, Ordering::Relaxed);
    complain(why);
}

fn complain(why: &str) {
    warn(&format!("{why}; recording stops, the program goes on"));
}

/// Says something of this rank.
pub(crate) fn warn(what: &str) {
    let rank = match RANK.load(Ordering::Relaxed) {
        u32::MAX => String::new(),
        r => format!("rank {r}: "),
    };
    say(&format!("{rank}{what}"));
}

/// A program that ends without `MPI_Finalize` still leaves its trace. (Not if it is killed: nothing of ours runs then.)
extern "C" fn at_exit() {
    close(true);
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
