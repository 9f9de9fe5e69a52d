//! The slots through which streams hand each other times.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use st_match::graph::{Graph, Links, Shape};

/// Nothing here yet.
pub(super) const EMPTY: i64 = i64::MIN;
/// Nothing will come: no limit. Times are larger.
pub(super) const FREE: i64 = i64::MIN + (1 << 40);

/// A stream waits here.
fn waiting(stream: u32) -> i64 {
    EMPTY + 1 + i64::from(stream)
}

/// One slot per message, then those of the collective operations.
#[derive(Debug)]
pub(super) struct Exchange {
    slots: Vec<AtomicI64>,
    /// Per operation: senders that have not entered.
    pub(super) missing: Vec<AtomicU32>,
    messages: usize,
    prefixes: bool,
}

impl Exchange {
    pub(super) fn new(graph: &Graph) -> Self {
        let n = graph.senders.len() + graph.slots;
        Self {
            slots: (0..n).map(|_| AtomicI64::new(EMPTY)).collect(),
            missing: graph.instances.iter().map(|_| AtomicU32::new(0)).collect(),
            messages: graph.senders.len(),
            prefixes: graph.instances.iter().any(|i| i.shape == Shape::Prefix),
        }
    }

    /// Empties all slots, and sets up who is waited for.
    pub(super) fn reset(&self, graph: &Graph, links: &Links) {
        self.slots.iter().for_each(|s| s.store(EMPTY, Ordering::Relaxed));
        for (m, i) in self.missing.iter().zip(&graph.instances) {
            m.store(i.senders, Ordering::Relaxed);
        }
        if !self.prefixes {
            return;
        }
        // In a prefix operation those who do not send must not be waited for.
        for i in graph.instances.iter().filter(|i| i.shape == Shape::Prefix) {
            for p in i.sender_positions(&graph.groups[i.group as usize]) {
                self.slots[self.messages + i.sender_slot(p)].store(FREE, Ordering::Relaxed);
            }
        }
        for (stream, ops) in graph.streams.iter().zip(&graph.ops) {
            let mut positions = st_match::graph::Positions::new(graph, stream.rank);
            for op in ops {
                if let st_match::graph::GraphStep::Enter(i) = op.step()
                    && graph.instances[i].shape == Shape::Prefix
                {
                    self.slots[self.messages + positions.sender(i)].store(EMPTY, Ordering::Relaxed);
                }
            }
        }
        // Those who send from other processes: as receivers they are empty already.
        for place in links.places.iter().flatten().map(|p| *p as usize).filter(|p| *p >= self.messages) {
            let slot = place - self.messages;
            let i = graph.instances.partition_point(|i| i.first as usize <= slot).saturating_sub(1);
            if graph.instances[i].shape == Shape::Prefix {
                self.slots[place].store(EMPTY, Ordering::Relaxed);
            }
        }
    }

    /// Slot of a collective operation's member.
    pub(super) fn member(&self, slot: usize) -> usize {
        self.messages + slot
    }
    pub(super) fn get(&self, slot: usize) -> i64 {
        self.slots[slot].load(Ordering::Acquire)
    }
    pub(super) fn set(&self, slot: usize, value: i64) {
        self.slots[slot].store(value, Ordering::Release);
    }
    /// Delivers a value; returns the stream that waits for it.
    pub(super) fn deliver(&self, slot: usize, value: i64) -> Option<u32> {
        let old = self.slots[slot].swap(value, Ordering::AcqRel);
        if old == EMPTY || old >= FREE { None } else { u32::try_from(old - EMPTY - 1).ok() }
    }
    /// The value, or `None` after noting that the stream waits for it.
    pub(super) fn take(&self, slot: usize, stream: u32) -> Option<i64> {
        let v = self.get(slot);
        if v >= FREE {
            return Some(v);
        }
        let old = self.slots[slot].compare_exchange(v, waiting(stream), Ordering::AcqRel, Ordering::Acquire);
        old.err()
    }
    /// Whether a value is there.
    pub(super) fn known(value: i64) -> Option<i64> {
        (value > FREE).then_some(value)
    }
}
