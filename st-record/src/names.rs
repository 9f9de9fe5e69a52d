//! Names of call sites: looked up when the job has ended, outside of its ranks, and stored in its trace.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use st_cli::Input;
use st_cli::options::Steps;
use st_model::names::Names;
use st_model::sites::SiteTable;
use st_stream::{ReadOptions, call_sites};
use st_symbols::Resolver;

/// Looking names up ends after this long, with those that are found by then.
pub const LIMIT: Duration = Duration::from_secs(20);

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The names, those that the streams had before among them.
    pub names: Names,
    /// What could not be named, as sentences.
    pub missing: Vec<String>,
}

/// The call sites of all streams, with the names that these have.
///
/// # Errors
///
/// If a stream is damaged.
pub fn sites(streams: &[PathBuf]) -> Result<SiteTable> {
    let mut all = SiteTable::new();
    for path in streams {
        let from = Input::open(path, &Steps::ANY)?;
        all.unite(&call_sites(from, ReadOptions::default()).with_context(|| path.display().to_string())?);
    }
    Ok(all)
}

/// Looks up the names of call sites within a time limit. It is done in a thread, which is left alone when its time is up:
/// whatever a program's debug information is, recording ends.
#[must_use]
pub fn look_up(sites: &SiteTable, directories: Vec<PathBuf>, started: SystemTime, limit: Duration) -> Found {
    let mut found = Found { names: sites.names().clone(), missing: Vec::new() };
    let (to, from) = channel();
    let (table, deadline) = (sites.clone(), Instant::now() + limit);
    let looks_up = move || {
        let mut resolver = Resolver::with(directories).recorded_at(started);
        // Nobody receives any more when the time is up.
        resolver.look_up(&table, |address, locations| drop(to.send(Ok((address, locations)))));
        resolver.missing().into_iter().for_each(|why| drop(to.send(Err(why))));
    };
    let Ok(thread) = thread::Builder::new().spawn(looks_up) else {
        found.missing.push("no thread can be started: call sites have no names".into());
        return found;
    };
    loop {
        match from.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok((address, locations))) => found.names.replace(address, locations),
            Ok(Err(why)) => found.missing.push(why),
            Err(RecvTimeoutError::Timeout) => {
                let seconds = limit.as_secs();
                found.missing.push(format!("names of call sites: not all were found within {seconds} s"));
                return found;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if thread.join().is_err() {
        found.missing.push("names of call sites: debug information that cannot be read".into());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_model::sites::{Frame, Module};

    #[test]
    fn names_of_this_program_are_found_or_the_time_is_up() {
        let mut sites = SiteTable::new();
        let path = std::env::current_exe().unwrap().display().to_string();
        let module = sites.module(Module { path: path.clone(), build_id: "00".into() });
        sites.stack(vec![Frame { module, offset: 64 }]);
        let found = look_up(&sites, Vec::new(), SystemTime::now(), LIMIT);
        assert!(found.names.is_empty());
        assert!(found.missing[0].starts_with(&format!("{path}: is another build")), "{:?}", found.missing);
        let late = look_up(&sites, Vec::new(), SystemTime::now(), Duration::ZERO);
        assert!(late.missing[0].contains("within 0 s"), "{:?}", late.missing);
    }
}
