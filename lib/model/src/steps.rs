//! What it takes to read a section's calls back one by one, before that is tried: a few bytes can stand for any number.

use crate::calls::CallTable;
use crate::ints::Sealed;
use crate::num::saturate;
use crate::project::stream;
use crate::ranklist::RankList;
use crate::section::{Elastic, Section, Thread};
use crate::tree::Item;

/// Elements of lists that take as long as a call.
const ELEMENTS: u64 = 16;

/// Runs of equal numbers that are looked at for a rank; what lies beyond takes more than anybody waits for.
const MOST: u64 = 1 << 26;

/// What a rank's thread comes to.
struct Reckoned {
    calls: u64,
    steps: u64,
}

impl Section {
    /// Steps that reading back the calls of all ranks takes, or of those that are in `of`: a call is one, so is a turn of a
    /// loop or a node passed over, and so are sixteen elements of lists. Saturates, also where counts repeat in patterns for
    /// longer than anybody waits. *Cost:* per rank and thread O(nodes and slots) where counts are constant.
    #[must_use]
    pub fn steps(&self, of: Option<&RankList>) -> u64 {
        let (mut all, mut looks) = (0u64, MOST);
        for thread in &self.threads {
            let differs = |e: &Elastic| !e.is_of_all(&self.partitions, &thread.ranks);
            let lens = thread.params.iter().flatten().filter_map(|slot| slot.lens.as_ref());
            let alike = !thread.counts.iter().chain(lens).any(differs);
            let mut known = None;
            for rank in thread.ranks.iter().filter(|rank| of.is_none_or(|of| of.contains(*rank))) {
                // Ranks that read the same streams take the same steps.
                let steps = match known.filter(|_| alike) {
                    Some(steps) => steps,
                    None => self.reckon(thread, rank, &mut looks).steps,
                };
                known = Some(steps);
                all = all.saturating_add(steps);
                if all == u64::MAX {
                    return all;
                }
            }
        }
        all
    }

    /// Whether a rank's thread makes fewer calls than there are times. *Cost:* O(nodes + `events`).
    pub fn fewer_calls(&self, thread: &Thread, rank: u32, events: u64) -> bool {
        let mut looks = events.saturating_mul(4).saturating_add(1 << 16);
        self.reckon(thread, rank, &mut looks).calls < events
    }

    fn reckon(&self, thread: &Thread, rank: u32, looks: &mut u64) -> Reckoned {
        let classes: Vec<Option<usize>> = self.partitions.iter().map(|p| p.class_of(rank)).collect();
        let mut calls = vec![0u64; self.symbols.len()];
        // Setting up a rank takes some time even if it makes no call.
        let mut steps = ELEMENTS;
        // Ends of the bodies around a node, and how often each is gone through.
        let mut around: Vec<(usize, u64)> = Vec::new();
        for (node, (item, counts)) in thread.tree.items().iter().zip(&thread.counts).enumerate() {
            while around.last().is_some_and(|(end, _)| *end <= node) {
                around.pop();
            }
            let visits = around.last().map_or(1, |(_, turns)| *turns);
            let times = sum(stream(counts, &classes), visits, looks);
            steps = steps.saturating_add(visits).saturating_add(times);
            match item {
                Item::Body { .. } => around.push((thread.tree.end_of(node), times)),
                Item::Leaf { sym } => {
                    if let Some(all) = calls.get_mut(*sym as usize) {
                        *all = all.saturating_add(times);
                    }
                }
            }
        }
        for ((symbol, calls), slots) in self.symbols.iter().zip(&calls).zip(&thread.params) {
            let lists = CallTable::builtin().slots(symbol.call).iter().zip(slots);
            for lens in lists.filter(|(slot, _)| slot.list).filter_map(|(_, streams)| streams.lens.as_ref()) {
                steps = steps.saturating_add(sum(stream(lens, &classes), *calls, looks) / ELEMENTS);
            }
        }
        Reckoned { calls: calls.into_iter().fold(0, u64::saturating_add), steps }
    }
}

/// Sum of the first `n` numbers of a stream; those below 0 are none.
fn sum(of: &Sealed, n: u64, looks: &mut u64) -> u64 {
    let number = saturate::<u64>;
    if let Some(value) = of.constant() {
        return number(value).saturating_mul(n);
    }
    let (mut cursor, mut left, mut all) = (of.cursor(), n, 0u64);
    while left > 0 {
        if *looks == 0 {
            return u64::MAX;
        }
        *looks -= 1;
        let (value, run) = cursor.next_run(left);
        all = all.saturating_add(number(value).saturating_mul(run));
        left -= run;
    }
    all
}
