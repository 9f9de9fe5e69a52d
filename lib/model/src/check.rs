//! The proof of losslessness: decode every rank and compare its lanes with those taken while recording.

use crate::calls::{CallTable, LANES, Lane};
use crate::lanes::{LaneSum, Lanes};
use crate::num::narrow;
use crate::project::Error;
use crate::proof::{Proof, call_word};
use crate::section::Section;

/// What became of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Decoded calls hash to what was recorded.
    Proved,
    /// A lossy option has voided the lane, as the trace says.
    Voided,
    /// Decoded calls are not what was recorded.
    Differs,
}

/// Result for one thread of a section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadCheck {
    /// Thread index.
    pub thread: usize,
    /// Calls recorded and calls decoded.
    pub calls: (u64, u64),
    /// Per lane.
    pub lanes: [Verdict; LANES],
}

impl ThreadCheck {
    /// Whether nothing differs.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.calls.0 == self.calls.1 && !self.lanes.contains(&Verdict::Differs)
    }
}

/// Decodes all ranks of a section and compares. *Cost:* O(calls).
///
/// # Errors
///
/// If a rank cannot be read back.
pub fn check(section: &Section) -> Result<Vec<ThreadCheck>, Error> {
    check_telling(section, |_| ())
}

/// As [`check`], telling after each rank how many calls it made.
///
/// # Errors
///
/// As [`check`].
pub fn check_telling(section: &Section, mut tell: impl FnMut(u64)) -> Result<Vec<ThreadCheck>, Error> {
    let mut out = Vec::new();
    for (i, t) in section.threads.iter().enumerate() {
        let mut sum = LaneSum::default();
        for rank in t.ranks.iter() {
            let lanes = rank_lanes(section, i, rank)?;
            tell(lanes.calls);
            sum.merge(&lanes.keyed(rank, narrow(i)));
        }
        let all = [Lane::Call, Lane::Site, Lane::Endpoint, Lane::Count, Lane::Tag, Lane::Rest];
        let lanes = all.map(|lane| {
            if t.lanes.is_voided(lane) {
                Verdict::Voided
            } else if t.lanes.hash[lane as usize] == sum.hash[lane as usize] {
                Verdict::Proved
            } else {
                Verdict::Differs
            }
        });
        out.push(ThreadCheck { thread: i, calls: (t.lanes.calls, sum.calls), lanes });
    }
    Ok(out)
}

/// The lanes of one rank's thread, from its decoded calls; empty if the section does not hold it.
///
/// # Errors
///
/// If it cannot be read back.
pub fn rank_lanes(section: &Section, thread: usize, rank: u32) -> Result<Lanes, Error> {
    let mut lanes = Lanes::new();
    let Some(mut calls) = section.project(thread, rank) else { return Ok(lanes) };
    let table = CallTable::builtin();
    let tables = &section.tables;
    let mut words = Vec::new();
    while let Some(sym) = calls.next_call(&mut words)? {
        let s = section.symbols[sym as usize];
        let proof = Proof {
            call: call_word(s.call, tables.names.get(&s.call).map(String::as_str)),
            error: s.error,
            site: section.sites.get(s.site).map_or(0, |s| s.id),
            slots: table.slots(s.call),
            words: &words,
        };
        proof.enter(&mut lanes, |object, i| tables.word_of(object, i, rank));
    }
    Ok(lanes)
}
