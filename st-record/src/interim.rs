//! What the ranks of `--reduce-every` had in common before the job was killed, if some of them have left nothing else.

use crate::pack::{open, rank_of};
use crate::summary::seconds;
use anyhow::{Context, Result};
use st_stream::directory::INTERIM;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// A stream of all ranks up to a reduction while they ran.
#[derive(Debug)]
pub struct Interim {
    /// The stream.
    pub path: PathBuf,
    /// Calls in it.
    pub calls: u64,
    /// Number of ranks.
    pub world: u32,
    /// Ranks that have left nothing else.
    pub missing: Vec<u32>,
    /// When it was written, after the job's start.
    pub after: Duration,
}

impl Interim {
    /// The one in a directory, if it has ranks of which there is none among the streams.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn of(directory: &Path, streams: &[PathBuf]) -> Result<Option<Self>> {
        let path = directory.join(INTERIM);
        if !path.is_file() {
            return Ok(None);
        }
        let told = || path.display().to_string();
        let mut reader = open(&path)?;
        let (world, started) = (reader.header().world, Duration::from_nanos(reader.header().started));
        let there: BTreeSet<u32> = streams.iter().filter_map(|p| rank_of(p)).collect();
        let missing: Vec<u32> = (0..world).filter(|r| !there.contains(r)).collect();
        if missing.is_empty() {
            return Ok(None);
        }
        let mut calls = 0;
        while let Some(section) = reader.next_section().with_context(told)? {
            calls += section.ended.iter().map(|e| e.calls).sum::<u64>();
        }
        let written = fs::metadata(&path).and_then(|m| m.modified()).with_context(told)?;
        let written = written.duration_since(UNIX_EPOCH).unwrap_or_default();
        let after = written.saturating_sub(started);
        Ok(Some(Self { path, calls, world, missing, after }))
    }

    /// What is to be said of it: the trace in `file` is this one.
    #[must_use]
    pub fn line(&self, file: &str) -> String {
        let who = match self.missing[..] {
            [rank] => format!("rank {rank} has"),
            [first, ..] => {
                format!("{} of {} ranks (the first: {first}) have", self.missing.len(), self.world)
            }
            [] => "no rank has".into(),
        };
        format!(
            "{who} left nothing: {file} has all ranks, up to their last reduction, {} after the start",
            seconds(self.after)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_model::header::Header;
    use st_stream::{Trace, WriteOptions, write};

    #[test]
    fn it_counts_where_a_rank_is_missing() {
        let directory = tempfile::tempdir().unwrap();
        let streams: Vec<_> = (0..12).map(|r| directory.path().join(format!("rank-{r:06}.st"))).collect();
        let of = |streams: &[PathBuf]| Interim::of(directory.path(), streams).unwrap();
        assert!(of(&[]).is_none());
        let trace = Trace { header: Header { world: 12, ..Header::default() }, ..Trace::default() };
        let file = fs::File::create(directory.path().join(INTERIM)).unwrap();
        write(&trace, file, WriteOptions::default()).unwrap();
        assert!(of(&streams).is_none());
        let found = of(&[&streams[..3], &streams[4..]].concat()).unwrap();
        assert_eq!(found.missing, [3]);
        assert!(found.line("a.st").starts_with("rank 3 has left nothing: a.st has all ranks, up to"));
        let found = of(&streams[1..2]).unwrap();
        assert!(found.line("a.st").starts_with("11 of 12 ranks (the first: 0) have left nothing"));
    }
}
