//! Names of the files that a recording leaves in its directory.

/// What all ranks became last while the program ran (`st-record --reduce-every`). Of a job that has ended it holds nothing more.
pub const INTERIM: &str = "interim.st";

/// What the ranks' streams have been merged into: all ranks are in it, whatever else is there.
pub const MERGED: &str = "merged.st";

/// Lines in which a launcher is told about each rank, where it has put this file there. Its first line is the trace's name.
pub const NOTES: &str = "notes";

/// What a rank's files begin with: `rank-000002`, for its stream `rank-000002.st`.
#[must_use]
pub fn rank(rank: u32) -> String {
    format!("rank-{rank:06}")
}
