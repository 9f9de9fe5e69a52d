//! Sections as bytes that have not been written yet: what takes time can be done in any thread.

use super::column::Owner;
use super::derived::{self, Derived};
use super::kind::FrameKind;
use super::options::WriteOptions;
use super::section::{Opening, encode_ended, encode_lanes, encode_sums};
use super::sketches::encode_sketches;
use super::{column, objects, structure};
use st_model::columns::Chunk;
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

impl Encoded {
    /// Encodes a section for a stream. *Memory:* as the section, its exact times included.
    #[must_use]
    pub fn of(section: &Section, options: WriteOptions) -> Self {
        let mut times = Vec::new();
        for (thread, t) in (0u32..).zip(&section.threads) {
            for (rank, of) in &t.columns {
                times.extend(of.chunks.iter().map(|c| Timed::Chunk((*rank, thread), c.clone())));
                if !of.clock.is_empty() {
                    times.push(Timed::Clock(column::encode_clock(*rank, &of.clock)));
                }
            }
        }
        Self { times, ..Self::without_times(section, options) }
    }

    pub(super) fn without_times(section: &Section, options: WriteOptions) -> Self {
        let mut parts =
            vec![(FrameKind::Struct, structure::encode(section)), (FrameKind::Lanes, encode_lanes(section))];
        if section.threads.iter().any(|t| !t.sketches.is_empty()) {
            parts.push(encode_sketches(section));
        }
        if section.threads.iter().any(|t| !t.sums.is_empty()) {
            parts.push((FrameKind::Sums, encode_sums(section)));
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
            derived: options.derives().then(|| derived::encode(section)).flatten(),
        }
    }
}
