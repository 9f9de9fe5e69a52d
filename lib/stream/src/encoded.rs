//! Sections as bytes that have not been written yet: what takes time can be done in any thread.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::column::Owner;
use super::derived::{self, Derived, LeftOut};
use super::kind::FrameKind;
use super::options::WriteOptions;
use super::section::{Opening, encode_ended, encode_lanes, encode_sums};
use super::sketches::encode_sketches;
use super::{column, objects, slow, structure};
use st_model::columns::{Chunk, Comparison};
use st_model::ranklist::RankList;
use st_model::section::Section;
use st_model::sites::SiteTable;

/// A section's payloads.
#[derive(Clone, Debug)]
pub struct Encoded {
    pub(super) ranks: RankList,
    /// Exact times and comparisons of clocks.
    pub(super) times: Vec<Timed>,
    pub(super) sites: SiteTable,
    pub(super) objects: Vec<u8>,
    /// That of SECTION.
    pub(super) opening: Vec<u8>,
    /// Those that belong to it.
    pub(super) parts: Vec<(FrameKind, Vec<u8>)>,
    /// What stands in a file for the sketches among them.
    pub(super) derived: Option<Derived>,
}

/// Exact times, which are encoded as they are written, or the payload of a rank's comparisons.
#[derive(Clone, Debug)]
pub(super) enum Timed {
    Chunk(Owner, Chunk),
    Clock(Vec<u8>),
}

/// The same of a section, not encoded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Times<'a> {
    Chunk(Owner, &'a Chunk),
    Clock(u32, &'a Comparison),
}

/// Exact times of a section in the order in which they are recorded: how a rank's clock was compared is known when the last thread of
/// the rank has ended.
pub(super) fn times(section: &Section) -> Vec<Times<'_>> {
    let columns =
        || (0u32..).zip(&section.threads).flat_map(|(t, own)| own.columns.iter().map(move |c| (t, c)));
    let last: HashMap<u32, u32, FixedState> = columns().map(|(thread, (rank, _))| (*rank, thread)).collect();
    let mut clocks: HashMap<u32, &Comparison, FixedState> = HashMap::default();
    let mut all = Vec::new();
    for (thread, (rank, column)) in columns() {
        all.extend(column.chunks.iter().map(|chunk| Times::Chunk((*rank, thread), chunk)));
        if !column.clock.is_empty() {
            clocks.insert(*rank, &column.clock);
        }
        if last.get(rank) == Some(&thread) {
            all.extend(clocks.remove(rank).map(|clock| Times::Clock(*rank, clock)));
        }
    }
    all
}

impl Encoded {
    /// Encodes a section for a stream. *Memory:* as the section, its exact times included.
    #[must_use]
    pub fn of(section: &Section, options: WriteOptions) -> Self {
        let timed = |times: Times<'_>| match times {
            Times::Chunk(owner, chunk) => Timed::Chunk(owner, chunk.clone()),
            Times::Clock(rank, clock) => Timed::Clock(column::encode_clock(rank, clock)),
        };
        Self {
            times: times(section).into_iter().map(timed).collect(),
            ..Self::without_times(section, options)
        }
    }

    pub(super) fn without_times(section: &Section, options: WriteOptions) -> Self {
        let derived = options.derives().then(|| derived::encode(section)).flatten();
        Self { derived, ..Self::of_recorder(section, None) }
    }

    /// A section without exact times, and with what stands for its sketches, if these have been left out.
    pub(super) fn of_recorder(section: &Section, left_out: Option<LeftOut>) -> Self {
        let mut parts =
            vec![(FrameKind::Struct, structure::encode(section)), (FrameKind::Lanes, encode_lanes(section))];
        if let Some(left_out) = left_out {
            parts.push((FrameKind::Derived, left_out.payload()));
        } else if section.threads.iter().any(|t| !t.sketches.is_empty()) {
            parts.push(encode_sketches(section));
        }
        if section.threads.iter().any(|t| !t.sums.is_empty()) {
            parts.push((FrameKind::Sums, encode_sums(section)));
        }
        if section.threads.iter().any(|t| !t.slow.is_empty()) {
            parts.push((FrameKind::Slow, slow::encode(section)));
        }
        if !section.ended.is_empty() {
            parts.push((FrameKind::Ended, encode_ended(section)));
        }
        Self {
            ranks: section.ranks.clone(),
            times: Vec::new(),
            sites: section.sites.clone(),
            objects: objects::encode(&section.tables, &section.ranks),
            opening: Opening::of(section, parts.len()).encode(),
            parts,
            derived: None,
        }
    }
}
