//! What it takes to read a section's calls back one by one, before that is tried: a few bytes can stand for any number.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::calls::CallTable;
use crate::ints::{Cursor, Sealed, Together};
use crate::num::{Exact, saturate};
use crate::project::stream;
use crate::ranklist::RankList;
use crate::section::{Elastic, Section, SlotStreams, Sym, Thread};
use crate::tree::Item;

/// Elements of lists that take as long as a call.
const ELEMENTS: u64 = 16;

/// Parts of a step. Where calls are only gone through, a turn of a loop or a node passed over is one of these, and a call with few
/// parameters, or none, two: a loop of MPI_Wtime and MPI_Comm_rank takes 140 ns a turn, which are 7.
const PARTS: u64 = 8;
const BARE: u64 = 2;
/// So many parameters, none of them a list.
const FEW: usize = 2;

/// Steps for which a row about a rank stands: it takes as much memory as time, 1 kB where it becomes a table.
const ROW: u64 = 64;

/// Rows that stand for a thread whose calls wait for those of others.
const UNDER_WAY: u64 = 2;

/// Numbers that are looked at beyond those that are stored, what repeats once; what lies beyond takes more than anybody waits
/// for.
const MOST: u64 = 1 << 24;

/// Steps that take about a second.
const A_SECOND: u64 = 5_000_000;

/// Steps that may be made, by all threads that have a copy of this. The default is any number.
#[derive(Clone, Debug)]
pub struct Budget {
    most: u64,
    counted: Arc<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    used: AtomicU64,
    /// What may be used beyond `most`, since those who read it have paid for it in bytes.
    more: AtomicU64,
}

/// More steps would be made than are allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("to go through it takes {}: --max-steps allows {most}; to do it, say --max-steps {}", self.takes(), self.enough())]
pub struct Exceeded {
    most: u64,
    used: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(u64::MAX)
    }
}

impl Budget {
    /// So many steps.
    #[must_use]
    pub fn new(most: u64) -> Self {
        Self { most, counted: Arc::default() }
    }

    /// Takes what going `times` times through the calls of a section takes, or through those of some ranks.
    ///
    /// # Errors
    ///
    /// If that is more than is left.
    pub fn spend(&self, section: &Section, of: Option<&RankList>, times: u64) -> Result<(), Exceeded> {
        self.take(section.steps(of).saturating_mul(times))
    }

    /// The same of all sections of a trace: if it is refused, by what all of them take.
    ///
    /// # Errors
    ///
    /// If that is more than is left.
    pub fn spend_all(&self, sections: &[Section], of: Option<&RankList>, times: u64) -> Result<(), Exceeded> {
        let steps = sections.iter().map(|section| section.steps(of).saturating_mul(times));
        self.take(steps.fold(0, u64::saturating_add))
    }

    /// Takes what going through the calls of a section once takes where nothing is kept or written of each: less than a step for
    /// those with few parameters.
    ///
    /// # Errors
    ///
    /// If that is more than is left.
    pub fn spend_reading(&self, section: &Section) -> Result<(), Exceeded> {
        self.take(section.summed(None, |reckoned| reckoned.reading))
    }

    /// Takes what going through the exact times of a section takes: one for each.
    ///
    /// # Errors
    ///
    /// If that is more than is left.
    pub fn spend_times(&self, section: &Section) -> Result<(), Exceeded> {
        let columns = section.threads.iter().flat_map(|t| &t.columns);
        self.take(columns.fold(0, |sum, (_, column)| sum.saturating_add(column.events())))
    }

    /// Takes what looking up each rank of a section in each of its partitions takes.
    ///
    /// # Errors
    ///
    /// If that is more than is left.
    pub fn spend_ranks(&self, section: &Section) -> Result<(), Exceeded> {
        let partitions = section.partitions.len().to_u64().saturating_add(1);
        self.take_short(section.ranks.len().saturating_mul(partitions))
    }

    /// Takes what a row about each rank of a trace takes.
    ///
    /// # Errors
    ///
    /// If that is more than is left.
    pub fn spend_rows(&self, sections: &[Section]) -> Result<(), Exceeded> {
        let ranks = sections.iter().fold(0u64, |sum, section| sum.saturating_add(section.ranks.len()));
        self.take(ranks.saturating_mul(ROW))
    }

    /// Takes what having each thread of a section under way at once takes, or each of those of some ranks.
    ///
    /// # Errors
    ///
    /// If that is more than is left.
    pub fn spend_threads(&self, section: &Section, of: Option<&RankList>) -> Result<(), Exceeded> {
        // The shorter list is gone through: a few bytes may name all ranks that there can be.
        let common =
            |few: &RankList, many: &RankList| few.iter().filter(|rank| many.contains(*rank)).count().to_u64();
        let wanted = |ranks: &RankList| match of {
            Some(of) if of.len() < ranks.len() => common(of, ranks),
            Some(of) => common(ranks, of),
            None => ranks.len(),
        };
        let threads =
            section.threads.iter().fold(0u64, |sum, thread| sum.saturating_add(wanted(&thread.ranks)));
        self.take(threads.saturating_mul(UNDER_WAY * ROW))
    }

    /// Takes so many short steps, as one element of a list is.
    ///
    /// # Errors
    ///
    /// If that is more than is left.
    pub fn take_short(&self, steps: u64) -> Result<(), Exceeded> {
        self.take(steps / ELEMENTS)
    }

    /// Takes so many steps.
    ///
    /// # Errors
    ///
    /// If that is more than is left.
    pub fn take(&self, steps: u64) -> Result<(), Exceeded> {
        let used = add(&self.counted.used, steps);
        let most = self.most.saturating_add(self.counted.more.load(Ordering::Relaxed));
        if used <= most { Ok(()) } else { Err(Exceeded { most: self.most, used }) }
    }

    /// For who counts what all sections take before it refuses: whether that is allowed. What comes after too many is counted, too, and
    /// needs not be kept.
    ///
    /// # Errors
    ///
    /// If more has been taken than there was.
    pub fn check(&self) -> Result<(), Exceeded> {
        self.take(0)
    }

    /// Steps that may still be made.
    #[must_use]
    pub fn left(&self) -> u64 {
        let [more, used] = [&self.counted.more, &self.counted.used].map(|n| n.load(Ordering::Relaxed));
        self.most.saturating_add(more).saturating_sub(used)
    }

    /// Gives back steps that stood for memory which is free again.
    pub fn give_back(&self, steps: u64) {
        let less = |used: u64| Some(used.saturating_sub(steps));
        // It is never refused.
        let _ = self.counted.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Allows so many more.
    pub fn allow(&self, steps: u64) {
        add(&self.counted.more, steps);
    }
}

/// Adds to a number that saturates; the sum.
fn add(to: &AtomicU64, n: u64) -> u64 {
    let sum = |before: u64| before.saturating_add(n);
    let order = Ordering::Relaxed;
    to.fetch_update(order, order, |before| Some(sum(before))).map_or_else(sum, sum)
}

impl Exceeded {
    fn takes(&self) -> String {
        let used = self.used;
        match used / A_SECOND {
            _ if used == u64::MAX => "more steps than can be made".to_owned(),
            s if s < 120 => format!("{used} steps or more, some {s} s"),
            s if s < 7_200 => format!("{used} steps or more, some {} min", s / 60),
            s => format!("{used} steps or more, some {} h", s / 3_600),
        }
    }

    /// A round number for what is counted and as much again: no command takes more for what comes after it has counted calls.
    fn enough(&self) -> u64 {
        let round = (1..20)
            .flat_map(|digits| [1, 2, 5].map(|n: u64| n.saturating_mul(10_u64.saturating_pow(digits))));
        round.into_iter().find(|n| *n / 2 >= self.used).unwrap_or(u64::MAX)
    }

    /// What all of a trace would take, where a part of it has been gone through: `done` of `all` ranks, the last of them in part.
    #[must_use]
    pub fn of_part(self, done: u64, all: u64) -> Self {
        let used = u128::from(self.used) * u128::from(all.max(1)) / u128::from(done.max(1));
        Self { used: saturate::<u64>(used).max(self.used), ..self }
    }
}

/// Numbers that may still be looked at to find how often nodes of many ranks run.
#[derive(Clone, Copy, Debug)]
pub struct Looks(u64);

impl Default for Looks {
    fn default() -> Self {
        Self(MOST)
    }
}

/// What a rank's thread comes to.
struct Reckoned {
    /// By symbol.
    calls: Vec<u64>,
    /// By node.
    runs: Vec<u64>,
    /// Of loops, and nodes passed over.
    turns: u64,
    steps: u64,
    /// Steps where calls are only gone through.
    reading: u64,
}

impl Section {
    /// Steps that reading back the calls of all ranks takes, or of those that are in `of`: a call is one, so is a turn of a
    /// loop or a node passed over, and so are sixteen elements of lists. Saturates, also where counts follow no pattern for
    /// longer than anybody waits. *Cost:* per rank and thread O(nodes and slots) where counts are constant.
    #[must_use]
    pub fn steps(&self, of: Option<&RankList>) -> u64 {
        self.summed(of, |reckoned| reckoned.steps)
    }

    /// What all ranks' threads come to, or those of some ranks.
    fn summed(&self, of: Option<&RankList>, what: impl Fn(&Reckoned) -> u64) -> u64 {
        let (mut all, mut looks) = (0u64, MOST);
        for thread in &self.threads {
            let differs = |e: &Elastic| !e.is_of_all(&self.partitions, &thread.ranks);
            let lens = thread.params.iter().flatten().filter_map(|slot| slot.lens.as_ref());
            let alike = !thread.counts.iter().chain(lens).any(differs);
            let mut known = None;
            let (ranks, of) = match of {
                Some(of) if of.len() < thread.ranks.len() => (of, Some(&thread.ranks)),
                of => (&thread.ranks, of),
            };
            for rank in ranks.iter().filter(|rank| of.is_none_or(|of| of.contains(*rank))) {
                // Ranks that read the same streams take the same steps.
                let steps = match known.filter(|_| alike) {
                    Some(steps) => steps,
                    None => what(&self.reckon(thread, rank, &mut looks)),
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
        let mut looks = looks_for(events);
        self.reckon(thread, rank, &mut looks).all() < events
    }

    /// How many calls of each symbol a rank's thread makes; `u64::MAX` where counts follow no pattern for longer than anybody
    /// waits. *Cost:* that of what the counts store.
    #[must_use]
    pub fn calls_of(&self, thread: &Thread, rank: u32) -> Vec<u64> {
        let mut looks = MOST;
        self.reckon(thread, rank, &mut looks).calls
    }

    /// How many elements the lists of a slot have in all calls of a symbol that a rank's thread makes so often, if it has any;
    /// `u64::MAX` where lengths follow no pattern for longer than anybody waits.
    #[must_use]
    pub fn elements_of(&self, thread: &Thread, rank: u32, (sym, slot): (Sym, u8), calls: u64) -> u64 {
        let classes: Vec<Option<usize>> = self.partitions.iter().map(|p| p.class_of(rank)).collect();
        let streams = thread.params.get(sym as usize).and_then(|slots| slots.get(usize::from(slot)));
        let lens = streams.and_then(|streams| streams.lens.as_ref());
        let mut looks = MOST;
        lens.map_or(0, |lens| sum(stream(lens, &classes), calls, &mut looks))
    }

    /// How often each node of a thread's tree runs on a rank in all, in the order of the nodes; `u64::MAX` where counts follow no
    /// pattern for longer than anybody waits.
    #[must_use]
    pub fn runs_of(&self, thread: &Thread, rank: u32, looks: &mut Looks) -> Vec<u64> {
        self.reckon(thread, rank, &mut looks.0).runs
    }

    /// Calls, turns of loops and nodes passed over as one goes through a rank's thread; `u64::MAX` where counts follow no pattern for
    /// much longer than `events`. *Cost:* O(nodes + `events`).
    #[must_use]
    pub fn turns(&self, thread: &Thread, rank: u32, events: u64) -> u64 {
        let mut looks = looks_for(events);
        self.reckon(thread, rank, &mut looks).turns
    }

    fn reckon(&self, thread: &Thread, rank: u32, looks: &mut u64) -> Reckoned {
        let classes: Vec<Option<usize>> = self.partitions.iter().map(|p| p.class_of(rank)).collect();
        let (mut calls, mut runs) = (vec![0u64; self.symbols.len()], Vec::new());
        // Setting up a rank takes some time even if it makes no call.
        let (mut steps, mut parts) = (ELEMENTS, 0u64);
        // Ends of the bodies around a node, and how often each is gone through.
        let mut around: Vec<(usize, u64)> = Vec::new();
        for (node, (item, counts)) in thread.tree.items().iter().zip(&thread.counts).enumerate() {
            while around.last().is_some_and(|(end, _)| *end <= node) {
                around.pop();
            }
            let visits = around.last().map_or(1, |(_, turns)| *turns);
            let times = sum(stream(counts, &classes), visits, looks);
            steps = steps.saturating_add(visits).saturating_add(times);
            runs.push(times);
            parts = parts.saturating_add(visits);
            match item {
                Item::Body { .. } => {
                    parts = parts.saturating_add(times);
                    around.push((thread.tree.end_of(node), times));
                }
                Item::Leaf { sym } => {
                    let few = |slots: &Vec<SlotStreams>| {
                        slots.len() <= FEW && slots.iter().all(|s| s.lens.is_none())
                    };
                    let bare = thread.params.get(*sym as usize).is_none_or(few);
                    let each = if bare { BARE } else { PARTS };
                    parts = parts.saturating_add(times.saturating_mul(each));
                    if let Some(all) = calls.get_mut(*sym as usize) {
                        *all = all.saturating_add(times);
                    }
                }
            }
        }
        let turns = steps;
        let mut elements = ELEMENTS;
        for ((symbol, calls), slots) in self.symbols.iter().zip(&calls).zip(&thread.params) {
            let lists = CallTable::builtin().slots(symbol.call).iter().zip(slots);
            for lens in lists.filter(|(slot, _)| slot.list).filter_map(|(_, streams)| streams.lens.as_ref()) {
                elements = elements.saturating_add(sum(stream(lens, &classes), *calls, looks) / ELEMENTS);
            }
        }
        steps = steps.saturating_add(elements - ELEMENTS);
        // What takes longer than anybody waits does so in parts, too.
        let reading = if steps == u64::MAX { steps } else { elements.saturating_add(parts / PARTS) };
        Reckoned { calls, runs, turns, steps, reading }
    }
}

impl Reckoned {
    fn all(&self) -> u64 {
        self.calls.iter().copied().fold(0, u64::saturating_add)
    }
}

/// Numbers that are looked at where so many events are known of.
fn looks_for(events: u64) -> u64 {
    events.saturating_mul(4).saturating_add(1 << 16)
}

/// Sum of the first `n` numbers of a stream; those below 0 are none.
fn sum(of: &Sealed, n: u64, looks: &mut u64) -> u64 {
    let number = saturate::<u64>;
    if let Some(value) = of.constant() {
        return number(value).saturating_mul(n);
    }
    let (mut turns, mut all) = (Together::new(vec![of.cursor()], n), 0u64);
    // Numbers that are stored have been paid for with memory.
    let mut stored = of.heap_words();
    while let Some(times) = turns.next_turn() {
        match stored.checked_sub(1) {
            Some(left) => stored = left,
            None if *looks == 0 => return u64::MAX,
            None => *looks -= 1,
        }
        let value = turns.cursors().first_mut().map_or(0, Cursor::next);
        all = all.saturating_add(number(value).saturating_mul(times));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_under_way_are_paid_for_by_those_who_are_asked_for() {
        let thread = Thread { ranks: RankList::first(1000), ..Thread::default() };
        let section = Section { threads: vec![thread.clone(), thread], ..Section::default() };
        let of =
            |most: u64, asked: Option<&RankList>| Budget::new(most).spend_threads(&section, asked).is_ok();
        assert!(of(2000 * 128, None) && !of(2000 * 128 - 1, None));
        let some = RankList::first(3);
        assert!(of(6 * 128, Some(&some)) && !of(6 * 128 - 1, Some(&some)));
    }

    #[test]
    fn a_budget_is_shared_and_says_what_would_do() {
        let budget = Budget::new(100);
        let other = budget.clone();
        assert_eq!(budget.take(60), Ok(()));
        assert_eq!(other.take_short(16 * 40), Ok(()));
        assert_eq!(budget.left(), 0);
        other.allow(7);
        assert_eq!(budget.left(), 7);
        assert_eq!(budget.take(7), Ok(()));
        let error = budget.take(4_000_000 * 60).map_err(|e| e.to_string());
        let said =
            "240000107 steps or more, some 48 s: --max-steps allows 100; to do it, say --max-steps 500000000";
        assert_eq!(error, Err(format!("to go through it takes {said}")));
        // Too much stays too much, whatever comes after it.
        assert!(budget.take(0).is_err() && budget.check().is_err());
        assert!(Budget::new(0).check().is_ok());
        let of_all = Exceeded { most: 100, used: 110 }.of_part(2, 100).to_string();
        assert!(of_all.contains("takes 5500 steps") && of_all.ends_with("say --max-steps 20000"), "{of_all}");
        assert!(other.take(u64::MAX).is_err_and(|e| e.to_string().contains("more steps than can be made")));
        assert_eq!(Budget::default().take(u64::MAX), Ok(()));
    }
}
