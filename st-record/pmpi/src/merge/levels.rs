//! What merging costs this rank, by level of the tree: processor time, and bytes that it hands on.

use crate::clock::processor_time;
use std::cell::RefCell;
use std::fmt::Write;

/// Level 0 is what a rank makes of its own calls, level n what those that have 2^(n-1) ranks pack for their parents and these
/// take in, and the one after the last what rank 0 makes of the whole.
#[derive(Debug, Default)]
pub(super) struct Levels(RefCell<Vec<Level>>);

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// Processor time, ns.
    cpu: i64,
    /// Bytes handed on.
    bytes: usize,
}

impl Levels {
    /// Does work of a level. Work does not contain work of another level.
    pub(super) fn spend<T>(&self, level: u32, work: impl FnOnce() -> T) -> T {
        let begun = processor_time();
        let done = work();
        self.at(level, |of| of.cpu += processor_time() - begun);
        done
    }

    /// Bytes are handed on to a level.
    pub(super) fn hand_on(&self, level: u32, bytes: usize) {
        self.at(level, |of| of.bytes += bytes);
    }

    fn at(&self, level: u32, act: impl FnOnce(&mut Level)) {
        let (mut levels, level) = (self.0.borrow_mut(), level as usize);
        if levels.len() <= level {
            levels.resize(level + 1, Level::default());
        }
        act(&mut levels[level]);
    }

    /// For the launcher: nanoseconds and bytes of each level.
    pub(super) fn note(&self) -> String {
        self.0.borrow().iter().enumerate().fold(String::new(), |mut note, (i, level)| {
            // Writing to a text cannot fail.
            let _ = write!(note, "{}{}/{}", if i > 0 { "," } else { "" }, level.cpu.max(0), level.bytes);
            note
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_has_its_time_and_its_bytes() {
        let levels = Levels::default();
        let busy = || {
            let begun = processor_time();
            while processor_time() == begun {}
        };
        levels.spend(0, busy);
        levels.spend(2, busy);
        levels.hand_on(2, 70);
        levels.hand_on(2, 7);
        let note = levels.note();
        let told: Vec<(u64, u64)> = note
            .split(',')
            .filter_map(|level| level.split_once('/'))
            .filter_map(|(ns, bytes)| Some((ns.parse().ok()?, bytes.parse().ok()?)))
            .collect();
        assert_eq!(told.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), [0, 0, 77], "{note}");
        assert!(told[0].0 > 0 && told[1].0 == 0 && told[2].0 > 0, "{note}");
    }
}
