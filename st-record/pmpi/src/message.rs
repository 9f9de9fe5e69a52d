//! The few lines that the recorder prints.

use crate::output::host;
use st_stream::directory::{FAILED, FAILED_PROCESS, FAILED_RANK, NOTES};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// World rank; `u32::MAX` while unknown.
static RANK: AtomicU32 = AtomicU32::new(u32::MAX);

/// Prints `st-record: text` on standard error.
pub(crate) fn say(text: &str) {
    // One write, so that lines of many ranks do not mix. A closed standard error must not stop the program.
    let _ = std::io::stderr().write_all(format!("st-record: {text}\n").as_bytes());
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
