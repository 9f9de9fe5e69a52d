//! What the ranks, and st-record itself, write in a job's directory about the recording.

use crate::failed::Failed;
use crate::levels::Levels;
use anyhow::{Context, Result};
use st_cli::recording;
use st_model::header::{INSIDE, Queued, UNRECORDED};
use st_stream::directory::{FAILED, NOTES, OUTSIDE, WITHOUT};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// What the ranks said, summed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Notes {
    /// Ranks that said how they ended.
    pub told: BTreeSet<u32>,
    /// Ranks of which only what they left tells.
    pub silent: u64,
    /// Ranks of the job, as its first one says.
    pub world: Option<u32>,
    /// `MPI_Init` was called.
    pub began: bool,
    /// Ranks that could not record, or not to their end.
    pub failed: Failed,
    /// Ranks without the recorder, as others call them: `ranks 1-3`; empty if that is not known of any.
    pub without: String,
    /// Calls recorded.
    pub calls: u64,
    /// Processor time of the recorder's own work, and of the ranks in all, ns.
    pub own_ns: u64,
    /// See there.
    pub cpu_ns: u64,
    /// How long ranks had no processor.
    pub queued: Option<Queued>,
    /// Bytes of exact times that ranks wrote.
    pub time_bytes: u64,
    /// Ranks whose exact times stopped at the budget.
    pub stopped: u64,
    /// Ranks whose exact times could not be written.
    pub lost: u64,
    /// Ranks whose loops are those that exact folding finds, and those with approximate ones, as they say.
    pub chosen: [u64; 2],
    /// Ranks that ended early: killed, aborted, or without MPI_Finalize.
    pub ended: u64,
    /// Calls recorded by name only.
    pub opaque: BTreeMap<String, u64>,
    /// Calls of the tools' interface where nothing is recorded: before MPI_Init, after MPI_Finalize.
    pub outside: BTreeMap<String, u64>,
    /// Functions of the MPI that the recorder does not have.
    pub unrecorded: BTreeSet<String>,
    /// Calls that the program has made inside of others, by function.
    pub inside: BTreeMap<String, u64>,
    /// Language bindings that calls came through.
    pub bindings: BTreeSet<String>,
    /// What merging in MPI_Finalize took: processor time of all ranks, the most that one took, and the longest time until one was
    /// through, ns.
    pub merging: Option<[u64; 3]>,
    /// The same of each level of the tree that ranks form: of their own calls, of each level from the lowest, of the result.
    pub levels: Levels,
    /// The ranks have merged their streams.
    pub merged: bool,
    /// They had exact times, which sketches stand for now.
    pub folded: bool,
    /// Reductions while they ran, those that failed, and processor time of all ranks for them, ns.
    pub interims: [u64; 3],
}

/// Room kept for the notes, bytes: a rank that finds the disk full can still say so.
const ROOM: u64 = 16 << 10;

/// Makes the file of notes in a directory: the name that the trace will have, and this process.
///
/// # Errors
///
/// If it cannot be written.
pub fn begin(directory: &Path, name: &str) -> io::Result<()> {
    let mut notes = File::create(directory.join(NOTES))?;
    // Not every file system can.
    let _ = rustix::fs::fallocate(&notes, rustix::fs::FallocateFlags::KEEP_SIZE, 0, ROOM);
    notes.write_all(recording::head(name).as_bytes())
}

impl Notes {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(NOTES);
        let text = fs::read_to_string(&path).with_context(|| format!("{}: reading", path.display()))?;
        Ok(Self::parse(&text))
    }

    pub(crate) fn parse(text: &str) -> Self {
        let mut notes = Self::default();
        for line in text.lines().skip(1) {
            if let Some(said) = line.strip_prefix(FAILED) {
                notes.failed.add(said);
                continue;
            }
            if let Some(ranks) = line.strip_prefix(WITHOUT) {
                ranks.clone_into(&mut notes.without);
                continue;
            }
            let mut rank = None;
            for (name, value) in line.split_whitespace().filter_map(|w| w.split_once('=')) {
                let named = value.split(',').filter(|b| !b.is_empty()).map(str::to_owned);
                match name {
                    "bindings" => notes.bindings.extend(named),
                    UNRECORDED => notes.unrecorded.extend(named),
                    INSIDE => {
                        for (name, n) in value.split(',').filter_map(|call| call.split_once(':')) {
                            *notes.inside.entry(name.to_owned()).or_default() += n.parse().unwrap_or(0);
                        }
                    }
                    "merge_levels" => notes.levels.add(value),
                    _ => {}
                }
                let value: u64 = value.parse().unwrap_or(0);
                match name {
                    "calls" => notes.calls += value,
                    "rank" => {
                        rank = u32::try_from(value).ok();
                        notes.told.extend(rank);
                    }
                    "queued_ns" => rank
                        .into_iter()
                        .for_each(|rank| notes.queued.get_or_insert_default().add(rank, value)),
                    "approximate" => notes.chosen[usize::from(value > 0)] += 1,
                    "world" => notes.world = u32::try_from(value).ok(),
                    "init" => notes.began = true,
                    "own_ns" => notes.own_ns += value,
                    "cpu_ns" => notes.cpu_ns += value,
                    "time_bytes" => notes.time_bytes += value,
                    "stopped" => notes.stopped += value,
                    "lost" => notes.lost += value,
                    "ended" => notes.ended += value,
                    "interim" => notes.interims[0] += value,
                    "interim_failed" => notes.interims[1] += value,
                    "interim_ns" => notes.interims[2] += value,
                    "merge_ns" => {
                        let [sum, most, _] = notes.merging.get_or_insert_default();
                        (*sum, *most) = (*sum + value, value.max(*most));
                    }
                    "merge_wall_ns" => {
                        let [.., wall] = notes.merging.get_or_insert_default();
                        *wall = value.max(*wall);
                    }
                    _ if name.starts_with("MPI") => {
                        *notes.opaque.entry(name.to_owned()).or_default() += value
                    }
                    _ => {
                        if let Some(name) = name.strip_prefix(OUTSIDE) {
                            *notes.outside.entry(name.to_owned()).or_default() += value;
                        }
                    }
                }
            }
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_summed() {
        let n = Notes::parse(
            "out.st\nrank=0 calls=5 own_ns=7 queued_ns=30 time_bytes=3 stopped=0 MPI_File_open=1 inside=MPI_Op_free:2 approximate=0\n\
             rank=1 calls=6 queued_ns=40 own_ns=1 cpu_ns=50 time_bytes=4 approximate=1 stopped=1 MPI_File_open=2 MPI_Put=9 inside=MPI_Op_free:3,MPI_Wtime:1 bindings=C,C++\n\
             world=3\nwithout ranks 1-3, 8\noutside_MPI_T_init_thread=2 outside_MPI_T_finalize=1\noutside_MPI_T_finalize=1\nfailed process=7@a a=1 file: no room\nfailed process=7@a it again\nfailed process=7@b another\nfailed rank=2 process=7@b it\nfailed rank=3 it\nfailed rank=3 process=9@a again\n\
             interim=3 interim_failed=1 interim_ns=9\ninterim_ns=8\nmerging=1 merge_ns=20 merge_wall_ns=40 merge_levels=5/0,6/70\nmerging=0 merge_ns=30 merge_wall_ns=35 merge_levels=4/0,7/0,9/0\n",
        );
        assert_eq!((n.calls, n.own_ns, n.cpu_ns, n.time_bytes, n.stopped), (11, 8, 50, 7, 1));
        assert_eq!((n.told, n.world), ([0, 1].into(), Some(3)));
        assert_eq!((n.failed.ranks, &*n.failed.why), (3, "a=1 file: no room"));
        assert_eq!(n.chosen, [1, 1]);
        assert_eq!((n.merging, n.interims), (Some([50, 30, 40]), [3, 1, 17]));
        assert_eq!((n.levels.lines().count(), &*n.without), (3, "ranks 1-3, 8"));
        assert_eq!(n.queued, Some(Queued { ns: 70, ranks: 2, longest_ns: 40, longest_rank: 1 }));
        assert_eq!(n.bindings, BTreeSet::from(["C".into(), "C++".into()]));
        assert_eq!(n.inside, BTreeMap::from([("MPI_Op_free".into(), 5), ("MPI_Wtime".into(), 1)]));
        assert_eq!(n.opaque, BTreeMap::from([("MPI_File_open".into(), 3), ("MPI_Put".into(), 9)]));
        let outside = [("MPI_T_finalize".into(), 2), ("MPI_T_init_thread".into(), 2)];
        assert_eq!(n.outside, BTreeMap::from(outside));
    }
}
