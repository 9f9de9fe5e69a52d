//! Approximate call sites: stacks of calls of one function that differ in few frames are taken for one.
//!
//! The distance of two stacks is the number of positions, from the outermost frame, at which they differ, plus the
//! difference of their depths. Stacks are similar if that is below a threshold; a threshold of 1 is equality. Two frames are
//! equal, whatever the threshold, if both lie in the same given range of addresses.
//!
//! Similarity is not transitive. So some stacks are *representatives*: a stack that is similar to none of those of its function
//! becomes one, any other takes the place of the nearest, the first one recorded among equally near ones.
//!
//! *Cost:* positions are dealt into as many shares as the threshold, so two similar stacks are equal in all of at least one
//! share. Representatives are found by the hashes of their shares, and only those found are compared.
//!
//! Source: Wu, Mueller 2013, section 3.3 (approximate stack signatures, of events of one type); nearest representatives and
//! shares are our own.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::str::FromStr;

use foldhash::fast::FixedState;

use super::{Frame, SiteTable};
use crate::calls::CallId;

/// A range of addresses in a module: frames in it count as equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRange {
    /// File name of the module.
    pub module: String,
    /// First offset, and the one after the last.
    pub offsets: std::ops::Range<u64>,
}

impl FromStr for AddressRange {
    type Err = &'static str;

    /// Reads `MODULE+0xFROM-0xTO`, the last offset included.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let hex = |t: &str| u64::from_str_radix(t.strip_prefix("0x").unwrap_or(t), 16).ok();
        let parse = || {
            let (module, offsets) = text.rsplit_once('+')?;
            let (from, to) = offsets.split_once('-')?;
            let (from, to) = (hex(from)?, hex(to)?.checked_add(1)?);
            (from < to && !module.is_empty()).then(|| Self { module: module.to_owned(), offsets: from..to })
        };
        parse().ok_or("not MODULE+0xFROM-0xTO")
    }
}

/// Which call sites are taken for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Similar {
    /// Distance from which on stacks differ; 1: from one frame on.
    pub threshold: usize,
    /// Ranges of addresses in which frames do not differ.
    pub places: Vec<AddressRange>,
}

impl Default for Similar {
    /// Equal ones.
    fn default() -> Self {
        Self { threshold: 1, places: Vec::new() }
    }
}

impl Similar {
    /// Whether only equal stacks are taken for one.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.threshold <= 1 && self.places.is_empty()
    }

    /// A frame, or the first place of the ranges that it lies in.
    fn canonical(&self, table: &SiteTable, frame: Frame) -> Frame {
        let path = table.modules().get(frame.module as usize).map_or("", |m| m.path.as_str());
        let name = path.rsplit('/').next().unwrap_or(path);
        let mut offset = frame.offset;
        // Ranges that overlap are one: on to the beginning of the first of them.
        while let Some(place) = self
            .places
            .iter()
            .find(|p| p.module == name && p.offsets.contains(&offset) && p.offsets.start < offset)
        {
            offset = place.offsets.start;
        }
        Frame { offset, ..frame }
    }
}

/// Most frames of a stack, and one more: stacks that are similar from here on are all.
const ALL: usize = 65;

/// Call sites that others of their function are similar to.
#[derive(Debug, Clone, Default)]
pub struct Representatives {
    similar: Similar,
    /// In the order in which they were recorded: the site, and its frames, outermost first.
    list: Vec<(u32, Vec<Frame>)>,
    /// By function, share and the hash of the share's frames.
    by_share: HashMap<(CallId, usize, u64), Vec<usize>, FixedState>,
}

impl Representatives {
    /// None yet.
    pub fn new(similar: Similar) -> Self {
        Self { similar, ..Self::default() }
    }

    /// Whether every stack is its own.
    pub fn is_exact(&self) -> bool {
        self.similar.is_exact()
    }

    /// The site that stands for a stack of a table in calls of a function, added if there is none.
    pub fn site(&mut self, call: CallId, table: &mut SiteTable, frames: Vec<Frame>) -> u32 {
        let stack: Vec<Frame> = frames.iter().rev().map(|f| self.similar.canonical(table, *f)).collect();
        let shares = self.similar.threshold.clamp(1, ALL);
        let keys: Vec<_> = (0..shares)
            .map(|share| {
                let frames: Vec<Frame> = stack.iter().skip(share).step_by(shares).copied().collect();
                (call, share, FixedState::default().hash_one(frames))
            })
            .collect();
        let near = keys.iter().filter_map(|key| self.by_share.get(key)).flatten();
        let nearest = near.map(|at| (distance(&self.list[*at].1, &stack), *at)).min();
        if let Some((_, at)) = nearest.filter(|(distance, _)| *distance < self.similar.threshold) {
            return self.list[at].0;
        }
        let site = table.stack(frames);
        for key in keys {
            self.by_share.entry(key).or_default().push(self.list.len());
        }
        self.list.push((site, stack));
        site
    }
}

/// Positions at which two stacks differ, counted from the outermost, and the difference of their depths.
fn distance(a: &[Frame], b: &[Frame]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count() + a.len().abs_diff(b.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::Module;
    use proptest::prelude::*;

    const SEND: CallId = CallId(20);
    const RECV: CallId = CallId(24);

    fn table() -> SiteTable {
        let mut table = SiteTable::new();
        table.module(Module { path: "/opt/lib/libx.so".into(), build_id: String::new() });
        table
    }

    /// Innermost first.
    fn stack(offsets: &[u64]) -> Vec<Frame> {
        offsets.iter().map(|&offset| Frame { module: 0, offset }).collect()
    }

    #[test]
    fn distance_counts_frames_and_depth() {
        let distance = |a: &[u64], b: &[u64]| distance(&stack(a), &stack(b));
        assert_eq!(distance(&[1, 2, 3], &[1, 2, 3]), 0);
        assert_eq!(distance(&[1, 2, 3], &[1, 9, 3]), 1);
        assert_eq!(distance(&[1, 2], &[1, 2, 3]), 1);
        assert_eq!(distance(&[2, 3], &[1, 2, 3]), 3);
    }

    #[test]
    fn stacks_are_similar_within_a_function_only() {
        let sites = |threshold, places: &[&str], calls: &[(CallId, &[u64])]| -> Vec<u32> {
            let places = places.iter().map(|p| p.parse().unwrap()).collect();
            let (mut table, mut all) = (table(), Representatives::new(Similar { threshold, places }));
            calls.iter().map(|(call, frames)| all.site(*call, &mut table, stack(frames))).collect()
        };
        // BT's solve_x and solve_y: equal depth, one frame differs.
        let solve: &[(CallId, &[u64])] = &[
            (SEND, &[10, 20, 30]),
            (SEND, &[10, 21, 30]),
            (SEND, &[11, 22, 30]),
            (RECV, &[10, 20, 30]),
            (RECV, &[12, 20, 30]),
        ];
        assert_eq!(sites(2, &[], solve), [0, 0, 1, 0, 0]);
        assert_eq!(sites(3, &[], solve), [0, 0, 0, 0, 0]);
        assert_eq!(sites(1, &["libx.so+0x14-0x15"], solve), [0, 0, 1, 0, 2]);
        assert_eq!(sites(1, &["libx.so+0x15-0x16", "libx.so+0x14-0x15"], solve), [0, 0, 1, 0, 2]);
        // The first similar one of another function is none, and the nearest is not the first.
        let other: &[(CallId, &[u64])] =
            &[(SEND, &[1, 20, 30]), (RECV, &[2, 20, 30]), (RECV, &[3, 21, 31]), (RECV, &[4, 21, 30])];
        assert_eq!(sites(3, &[], other), [0, 1, 2, 1]);
        let nearest: &[(CallId, &[u64])] =
            &[(SEND, &[1, 2, 3]), (SEND, &[1, 5, 6, 7]), (SEND, &[1, 5, 6, 3])];
        assert_eq!(sites(4, &[], nearest), [0, 1, 1]);
        assert_eq!("libx.so".parse::<AddressRange>(), Err("not MODULE+0xFROM-0xTO"));
    }

    proptest! {
        /// The nearest of all representatives of the function, each of which is looked at.
        #[test]
        fn shares_miss_no_representative(
            calls in proptest::collection::vec((0u16..2, proptest::collection::vec(0u64..3, 1..7)), 1..80),
            threshold in 2usize..9,
        ) {
            let (mut table, mut all) = (table(), Representatives::new(Similar { threshold, places: Vec::new() }));
            let mut known: Vec<(u16, u32, Vec<Frame>)> = Vec::new();
            for (call, offsets) in calls {
                let outermost: Vec<Frame> = stack(&offsets).into_iter().rev().collect();
                let near = known.iter().filter(|k| k.0 == call).map(|k| (distance(&k.2, &outermost), k.1));
                let nearest = near.filter(|(d, _)| *d < threshold).min_by_key(|(d, _)| *d);
                let found = all.site(CallId(call), &mut table, stack(&offsets));
                match nearest {
                    Some((_, site)) => prop_assert_eq!(found, site),
                    None => known.push((call, found, outermost)),
                }
            }
        }
    }
}
