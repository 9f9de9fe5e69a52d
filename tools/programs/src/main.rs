//! All programs in one file, which is the one that it is started as: most of what is in them is the same.
//!
//! `make install` installs it under each program's name.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use mimalloc::MiMalloc;
use st_cli::{ByName, Memory, UsageError};

type Main = fn() -> ExitCode;

const PROGRAMS: [(&str, Main); 8] = [
    ("st-cluster", st_cluster::main),
    ("st-kernels", st_kernels::main),
    ("st-merge", st_merge::main),
    ("st-record", st_record::main),
    ("st-replay", st_replay::main),
    ("st-stat", st_stat::main),
    ("st-sync", st_sync::main),
    ("st-view", st_view::main),
];

/// That of each program alone: in some, a rank is many small allocations.
#[global_allocator]
static MEMORY: Memory<ByName<MiMalloc>> =
    Memory { tool: name, from: ByName::new(&["st-cluster", "st-kernels", "st-merge"], MiMalloc) };

/// Name of the program that this is.
static NAME: OnceLock<&str> = OnceLock::new();

fn name() -> &'static str {
    NAME.get().copied().unwrap_or(env!("CARGO_PKG_NAME"))
}

fn main() -> ExitCode {
    // The word that it is started with; where that is another (a launcher in whose place st-record stands, a user's own link),
    // the file's name.
    let word = env::args_os().next();
    let file = env::current_exe().ok().map(OsString::from);
    match [word, file].into_iter().flatten().find_map(|path| called(Path::new(&path))) {
        Some((program, main)) => {
            NAME.get_or_init(|| program);
            main()
        }
        None => st_cli::report(name(), Err(UsageError(usage()).into())),
    }
}

fn called(path: &Path) -> Option<(&'static str, Main)> {
    let name = path.file_name()?;
    PROGRAMS.into_iter().find(|(program, _)| name == *program)
}

fn usage() -> String {
    let names: Vec<_> = PROGRAMS.iter().map(|(name, _)| *name).collect();
    format!("this is {} in one: start it under one of these names", names.join(", "))
}
