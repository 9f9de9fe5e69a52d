//! Approximate call sites: stacks that differ in few frames are taken for one.
//!
//! The distance of two stacks is the number of positions, from the outermost frame, at which they differ, plus the
//! difference of their depths. Stacks are similar if that is below a threshold; a threshold of 1 is equality. Two frames are
//! equal, whatever the threshold, if both lie in the same given range of addresses.
//!
//! Source: Wu, Mueller 2013, section 3.4 (approximate signatures). Similarity is not transitive: a stack takes the place of
//! the first one recorded that it is similar to.

use std::str::FromStr;

use super::{Frame, Site, SiteTable};

/// A range of addresses in a module: frames in it count as equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// File name of the module.
    pub module: String,
    /// First offset, and the one after the last.
    pub offsets: std::ops::Range<u64>,
}

impl FromStr for Place {
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
    pub places: Vec<Place>,
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

    /// The first stack of a table that is similar to one.
    #[must_use]
    pub fn first(&self, table: &SiteTable, frames: &[Frame]) -> Option<u32> {
        let stack = |site: &Site| site.frames.len() == frames.len() || self.threshold > 1;
        let similar = |site: &Site| {
            !site.frames.is_empty()
                && stack(site)
                && self.distance(table, &site.frames, frames) < self.threshold
        };
        table.sites().iter().position(similar).and_then(|at| u32::try_from(at).ok())
    }

    /// Frames at which two stacks of a table differ, counted from the outermost, and the difference of their depths.
    #[must_use]
    pub fn distance(&self, table: &SiteTable, a: &[Frame], b: &[Frame]) -> usize {
        let differ = |(a, b): &(&Frame, &Frame)| a != b && !self.same_place(table, **a, **b);
        a.iter().rev().zip(b.iter().rev()).filter(differ).count() + a.len().abs_diff(b.len())
    }

    fn same_place(&self, table: &SiteTable, a: Frame, b: Frame) -> bool {
        let path = table.modules().get(a.module as usize).map_or("", |m| m.path.as_str());
        let name = path.rsplit('/').next().unwrap_or(path);
        let holds =
            |p: &Place| p.module == name && p.offsets.contains(&a.offset) && p.offsets.contains(&b.offset);
        a.module == b.module && self.places.iter().any(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::Module;

    #[test]
    fn distance_counts_frames_and_depth() {
        let mut table = SiteTable::new();
        let module = table.module(Module { path: "/opt/lib/libx.so".into(), build_id: String::new() });
        let stack = |offsets: &[u64]| -> Vec<Frame> {
            offsets.iter().map(|&offset| Frame { module, offset }).collect()
        };
        let exact = Similar::default();
        assert_eq!(exact.distance(&table, &stack(&[1, 2, 3]), &stack(&[1, 2, 3])), 0);
        assert_eq!(exact.distance(&table, &stack(&[1, 2, 3]), &stack(&[1, 9, 3])), 1);
        assert_eq!(exact.distance(&table, &stack(&[2, 3]), &stack(&[1, 2, 3])), 1);
        // BT's solve_x and solve_y: equal depth, one frame differs.
        table.stack(stack(&[10, 20, 30]));
        assert_eq!(exact.first(&table, &stack(&[10, 21, 30])), None);
        let two = Similar { threshold: 2, places: Vec::new() };
        assert_eq!(two.first(&table, &stack(&[10, 21, 30])), Some(0));
        assert_eq!(two.first(&table, &stack(&[11, 21, 30])), None);
        let places = vec!["libx.so+0x14-0x15".parse().unwrap()];
        let ranged = Similar { threshold: 1, places };
        assert_eq!(ranged.first(&table, &stack(&[10, 21, 30])), Some(0));
        assert_eq!(ranged.first(&table, &stack(&[10, 22, 30])), None);
        assert_eq!("libx.so".parse::<Place>(), Err("not MODULE+0xFROM-0xTO"));
    }
}
