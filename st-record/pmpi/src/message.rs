//! The few lines that the recorder prints.

use crate::host::host;
use st_stream::directory::{FAILED, FAILED_PROCESS, FAILED_RANK, NOTES};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// World rank; `u32::MAX` while unknown.
static RANK: AtomicU32 = AtomicU32::new(u32::MAX);

/// Prints `st-record: text` on standard error.
pub(crate) fn say(text: &str) {
    // One write, so that lines of many ranks do not mix. A standard error that is closed, or that nobody reads any more, must not
    // stop the program.
    let line = format!("st-record: {text}\n");
    without_broken_pipe(|| std::io::stderr().write_all(line.as_bytes()));
}

/// Writes something; the signal for a pipe that nobody reads does not reach the program. Nobody can be told if writing fails.
fn without_broken_pipe(write: impl FnOnce() -> std::io::Result<()>) {
    // SAFETY: sets of signals are plain numbers, which `sigemptyset` and `pthread_sigmask` fill in.
    let [mut ours, mut before, mut pending]: [libc::sigset_t; 3] = unsafe { std::mem::zeroed() };
    // SAFETY: the sets are variables; only this thread's mask changes.
    let waits = unsafe {
        libc::sigemptyset(&raw mut ours);
        libc::sigaddset(&raw mut ours, libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const ours, &raw mut before);
        libc::sigpending(&raw mut pending);
        libc::sigismember(&raw const pending, libc::SIGPIPE) == 1
    };
    let broken = write().is_err_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe);
    // SAFETY: as above. The signal of a write goes to the thread that wrote: it is there, unless it is ignored, and nothing is
    // waited for. One that was there before is the program's.
    unsafe {
        if broken && !waits {
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::sigtimedwait(&raw const ours, std::ptr::null_mut(), &raw const at_once);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
}

/// This is the rank that [`warn`] speaks of from now on.
pub(crate) fn set_rank(rank: u32) {
    RANK.store(rank, Ordering::Relaxed);
}

/// Says something of this rank.
pub(crate) fn warn(what: &str) {
    let rank = match RANK.load(Ordering::Relaxed) {
        u32::MAX => String::new(),
        r => format!("rank {r}: "),
    };
    say(&format!("{rank}{what}"));
}

/// Tells the launcher something of this rank, if there is one.
pub(crate) fn note_down(directory: &Path, note: &str) {
    if let Ok(mut notes) = File::options().append(true).open(directory.join(NOTES)) {
        // Lines of this length are written as one piece. Nobody can be told if even this fails.
        let _ = notes.write_all(format!("{note}\n").as_bytes());
    }
}

/// Tells the launcher that what is recorded of this rank, so far as that is known, fails, and why.
pub(crate) fn note_failure(directory: &Path, why: &str) {
    let rank = match RANK.load(Ordering::Relaxed) {
        u32::MAX => String::new(),
        r => format!("{FAILED_RANK}{r} "),
    };
    let who = format!("{rank}{FAILED_PROCESS}{}@{}", std::process::id(), host());
    note_down(directory, &format!("{FAILED}{who} {why}"));
}

/// Variables in which launchers tell a process its rank.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];

/// Whether a process speaks for all ranks, before it knows its own.
pub(crate) fn is_first() -> bool {
    let rank = RANKS.iter().find_map(|name| std::env::var(name).ok());
    rank.is_none_or(|rank| rank == "0")
}

/// Tells the launcher why this process is not recorded, and says it once for all ranks.
pub(crate) fn refuse(why: &str) {
    // Nothing is asked for.
    let Some(directory) = std::env::var_os("ST_OUTPUT") else { return };
    note_failure(Path::new(&directory), why);
    if is_first() {
        say(&format!("{why}: not recorded, the program goes on"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::FromRawFd as _;

    #[test]
    fn a_pipe_that_nobody_reads_does_not_end_the_process() {
        let mut ends = [0; 2];
        // SAFETY: a handler that ends the process, as without Rust, in a child; descriptors that are open. The child ends.
        let status = unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            libc::close(ends[0]);
            let child = libc::fork();
            if child == 0 {
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                let mut pipe = File::from_raw_fd(ends[1]);
                without_broken_pipe(|| pipe.write_all(b"x"));
                libc::_exit(7);
            }
            let mut status = 0;
            libc::waitpid(child, &raw mut status, 0);
            libc::close(ends[1]);
            status
        };
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status}");
    }
}
