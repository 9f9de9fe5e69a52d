//! How much a page holds of what grows with a run.

use crate::levels::Most;
use crate::logical;

/// Rows, cells and calls at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Room {
    /// Ranks with a row each; of more, neighbours share one.
    pub(super) ranks: usize,
    /// Call sites.
    pub(super) sites: usize,
    /// Pairs of ranks.
    pub(super) pairs: usize,
    /// Groups on a side of the matrix.
    pub(super) side: usize,
    /// Rows of the timeline.
    pub(super) rows: usize,
    /// Cells of the timeline: rows times columns.
    pub(super) cells: usize,
    /// Single calls of all windows.
    pub(super) calls: usize,
    /// Messages of a window.
    pub(super) messages: usize,
    /// Ranks on the critical path, one after the other.
    pub(super) stays: usize,
    /// Nodes of loops.
    pub(super) nodes: usize,
    /// Iterations and phases, in tables and in bands.
    pub(super) turns: usize,
    /// Characters of a text.
    pub(super) texts: usize,
    /// How often it has been halved.
    pub(super) step: u32,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            ranks: 1 << 16,
            sites: 4096,
            pairs: 1 << 13,
            side: 128,
            rows: 256,
            cells: 1 << 17,
            calls: 1 << 18,
            messages: 1 << 16,
            stays: 1 << 16,
            nodes: 4096,
            turns: 4096,
            texts: 1 << 20,
            step: 0,
        }
    }
}

/// How often room is halved: with the least of it a page has some hundred kB.
const STEPS: u32 = 8;

impl Room {
    /// Of the timeline.
    pub(super) fn levels(self) -> Most {
        Most { rows: self.rows, columns: 4096, cells: self.cells, window: None }
    }

    /// Of loops and calls in logical time.
    pub(super) fn logical(self) -> logical::Most {
        logical::Most { rows: (self.rows / 4).clamp(8, 64), boxes: self.nodes }
    }

    /// Half of it, unless that would be nothing.
    pub(super) fn smaller(self) -> Option<Self> {
        let half = |n: usize| n.div_ceil(2);
        (self.step < STEPS).then(|| Self {
            ranks: half(self.ranks),
            sites: half(self.sites),
            pairs: half(self.pairs),
            side: half(self.side).max(16),
            rows: half(self.rows).max(32),
            cells: half(self.cells),
            calls: half(self.calls),
            messages: half(self.messages),
            stays: half(self.stays),
            nodes: half(self.nodes),
            turns: half(self.turns).max(64),
            texts: (self.texts / 4).max(200),
            step: self.step + 1,
        })
    }
}
