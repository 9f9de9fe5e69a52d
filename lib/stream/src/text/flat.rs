//! The papers' flat notation: the leaves of a tree in order, each with the loops that begin at it.
//!
//! `0 1 Isend (2,5)[0](3,6)[1]`: ranks, event, and per enclosing loop that begins here `(members, iterations)` with the
//! ranks it holds for; outermost loop first. Members are the leaves of the loop that the ranks execute; iterations are the
//! counts, one per visit of the loop; a loop that a rank executes once is none of its loops. An event whose own counts are
//! not all 1 adds `(1, counts)`.
//!
//! Source: C, figures 1 and 5; `algorithms.md` §3.1 (reading), §3.4 ("Printing flat").

use st_model::num::{Exact, saturate};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::binary_heap::{BinaryHeap, PeekMut};

use st_model::ints::Sealed;
use st_model::ranklist::RankList;
use st_model::ranklist_notation;
use st_model::section::{Elastic, Partition, Section, Thread};
use st_model::tree::Item;

use super::words::call_name;

/// Values of a vector that are looked at, and runs of it that are printed.
const LOOKED_AT: u64 = 1 << 20;
const PRINTED: usize = 24;
/// Nodes times classes of ranks that are printed, ranks times partitions and values that are looked at: bounds on the work
/// for one list.
const NODES: u64 = 1 << 20;
const RANKS: u64 = 1 << 24;
const VALUES: u64 = 1 << 26;
/// Lists of all of which a stream may have as much: a few bytes can stand for any number of them.
const LISTS: u64 = 8;

/// What the lists of a stream may still take.
#[derive(Clone, Debug)]
pub struct Lists {
    nodes: u64,
    ranks: u64,
    values: u64,
}

impl Default for Lists {
    fn default() -> Self {
        Self { nodes: NODES * LISTS, ranks: RANKS * LISTS, values: VALUES * LISTS }
    }
}

/// Takes what one list needs, if that is within its limit and within what is left.
fn take(left: &mut u64, most: u64, needed: u64) -> bool {
    let after = left.checked_sub(needed).filter(|_| needed <= most);
    *left = after.unwrap_or(*left);
    after.is_some()
}

/// One node as one class of ranks sees it.
struct Seen {
    /// Executions; 0 if absent.
    total: u64,
    /// Whether all its counts are 1.
    ones: bool,
    /// Its value vector, printed.
    vector: String,
}

impl Lists {
    /// The leaf list of a thread, a line per leaf: `<ranks> s3 MPI_Send (2,5)@<1 0 1 0>(3,6)@<1 1 1 0>`.
    ///
    /// Vectors write five and more equal values as `value*number`. *Cost:* O(nodes · classes of ranks), and by rank where ranks
    /// differ; a list that would be too long, or is one of too many long ones, is one line that says so.
    #[must_use]
    pub fn leaves(&mut self, section: &Section, thread: &Thread) -> Vec<String> {
        let left_out = |what: &str| vec![format!("leaf list left out: too many {what}")];
        let partitions = partitions(section, thread);
        let members = |p: &Partition| p.classes.iter().fold(0u64, |sum, c| sum.saturating_add(c.len()));
        let looked_up = partitions.iter().map(|(_, p)| members(p).max(thread.ranks.len()));
        let looked_up = looked_up.fold(0, u64::saturating_add);
        if !take(&mut self.ranks, RANKS, looked_up) {
            return left_out("ranks");
        }
        let classes = classes(&partitions, thread);
        // What all ranks are one class of is stored.
        let nodes = thread.tree.items().len().saturating_mul(classes.len());
        let more = if classes.len() > 1 { nodes.to_u64() } else { 0 };
        if nodes.to_u64() > NODES || !take(&mut self.nodes, NODES, more) {
            return left_out("nodes and classes of ranks");
        }
        let mut budget = VALUES.min(self.values);
        let before = budget;
        let mut views: Vec<Vec<Seen>> = Vec::with_capacity(classes.len());
        let places = partitions.iter().enumerate().map(|(at, (number, _))| (*number, at)).collect();
        for class in &classes {
            views.push(view(section, thread, &places, class, &mut budget));
            if budget == 0 {
                break;
            }
        }
        self.values -= before - budget;
        if budget == 0 {
            return left_out("counts");
        }
        printed(section, thread, &classes, &views)
    }
}

/// The lines of a list.
fn printed(section: &Section, thread: &Thread, classes: &[Class], views: &[Vec<Seen>]) -> Vec<String> {
    let mut lines = Vec::new();
    // First nodes of bodies stand for the loops that begin at their first leaf.
    let mut pending = Vec::new();
    for (i, item) in thread.tree.items().iter().enumerate() {
        let Item::Leaf { sym } = *item else {
            pending.push(i);
            continue;
        };
        let those = classes.iter().zip(views).filter(|(_, view)| view.get(i).is_some_and(|n| n.total > 0));
        let here = joined(&those.map(|(class, _)| &class.ranks).collect::<Vec<_>>());
        let call = section.symbols.get(sym as usize).map(|s| call_name(section, s.call)).unwrap_or_default();
        let mut line = format!("{} s{sym} {call}", ranklist_notation::print(&here));
        let loops: Vec<usize> = pending.drain(..).chain([i]).collect();
        for (value, ranks) in pairs(thread, &loops, classes, views) {
            line.push_str(if line.ends_with(')') || line.ends_with('>') { "" } else { " " });
            line.push_str(&value);
            if ranks != here {
                line.push('@');
                line.push_str(&ranklist_notation::print(&ranks));
            }
        }
        lines.push(line);
    }
    lines
}

/// The partitions of a thread's nodes that tell its ranks apart, with their numbers.
fn partitions<'a>(section: &'a Section, thread: &Thread) -> Vec<(u32, &'a Partition)> {
    let mut used: Vec<u32> = thread.counts.iter().map(|c| c.partition).collect();
    used.sort_unstable();
    used.dedup();
    let all = used.iter().filter_map(|p| Some((*p, section.partitions.get(*p as usize)?)));
    all.filter(|(_, partition)| !matches!(&partition.classes[..], [one] if *one == thread.ranks)).collect()
}

/// Ranks that are in the same class of every partition.
struct Class {
    ranks: RankList,
    /// Its number in each partition that tells ranks apart.
    of: Vec<Option<usize>>,
}

impl Class {
    /// The stream that they read; `places`: of partitions among those that tell ranks apart.
    fn stream<'a>(&self, section: &Section, places: &HashMap<u32, usize>, counts: &'a Elastic) -> &'a Sealed {
        let number = match places.get(&counts.partition) {
            Some(at) => self.of.get(*at).copied().flatten(),
            // All of its ranks are one class.
            None => section.partitions.get(counts.partition as usize).map(|_| 0),
        };
        number.and_then(|class| counts.streams.get(class)).unwrap_or(Sealed::zero())
    }
}

fn classes(partitions: &[(u32, &Partition)], thread: &Thread) -> Vec<Class> {
    if partitions.is_empty() {
        return thread
            .ranks
            .lowest()
            .map(|_| Class { ranks: thread.ranks.clone(), of: Vec::new() })
            .into_iter()
            .collect();
    }
    let mut walks: Vec<_> = partitions.iter().map(|(_, partition)| Walk::new(partition)).collect();
    let mut members: Vec<(Vec<Option<usize>>, Vec<u32>)> = Vec::new();
    let mut by_key: HashMap<Vec<Option<usize>>, usize> = HashMap::new();
    for rank in thread.ranks.iter() {
        let key: Vec<_> = walks.iter_mut().map(|walk| walk.class_of(rank)).collect();
        let at = *by_key.entry(key).or_insert_with_key(|key| {
            members.push((key.clone(), Vec::new()));
            members.len() - 1
        });
        members[at].1.push(rank);
    }
    members.into_iter().map(|(of, ranks)| Class { ranks: ranks.into_iter().collect(), of }).collect()
}

/// The classes of a partition by ascending rank: to look for each rank in each class takes as many steps as there are of both.
struct Walk<'a> {
    /// The lowest rank of each class that is left, and the others.
    next: BinaryHeap<Reverse<(u32, usize)>>,
    left: Vec<Box<dyn Iterator<Item = u32> + 'a>>,
}

impl<'a> Walk<'a> {
    fn new(partition: &'a Partition) -> Self {
        let mut left: Vec<Box<dyn Iterator<Item = u32>>> = Vec::with_capacity(partition.classes.len());
        partition.classes.iter().for_each(|class| left.push(Box::new(class.iter())));
        let next =
            left.iter_mut().enumerate().filter_map(|(class, ranks)| Some(Reverse((ranks.next()?, class))));
        Self { next: next.collect(), left }
    }

    /// The class of a rank that is above those that were asked for before.
    fn class_of(&mut self, rank: u32) -> Option<usize> {
        while let Some(mut top) = self.next.peek_mut() {
            let Reverse((lowest, class)) = *top;
            if lowest >= rank {
                return (lowest == rank).then_some(class);
            }
            match self.left[class].next() {
                Some(following) => top.0.0 = following,
                None => drop(PeekMut::pop(top)),
            }
        }
        None
    }
}

/// The tree as one class of ranks sees it.
fn view(
    section: &Section,
    thread: &Thread,
    places: &HashMap<u32, usize>,
    class: &Class,
    budget: &mut u64,
) -> Vec<Seen> {
    let mut out: Vec<Seen> = Vec::new();
    // Open bodies: where they end, and how often they run.
    let mut open: Vec<(usize, u64)> = Vec::new();
    for (i, (item, counts)) in thread.tree.items().iter().zip(&thread.counts).enumerate() {
        while open.last().is_some_and(|(end, _)| *end == i) {
            open.pop();
        }
        let visits = open.last().map_or(1, |(_, total)| *total);
        let seen = vector(class.stream(section, places, counts), visits, budget);
        if let Item::Body { below } = *item {
            open.push((i + 1 + below as usize, seen.total));
        }
        out.push(seen);
    }
    out
}

/// The first values of a stream, and their sum; `budget` falls by the number looked at.
fn vector(stream: &Sealed, visits: u64, budget: &mut u64) -> Seen {
    if let Some(v) = stream.constant() {
        let total = saturate::<u64>(v).saturating_mul(visits);
        return Seen { total, ones: v == 1, vector: runs_of(&[(v, visits)]) };
    }
    let mut cursor = stream.cursor();
    let (mut total, mut runs) = (0u64, Vec::<(i64, u64)>::new());
    let looked_at = visits.min(LOOKED_AT).min(*budget);
    *budget -= looked_at;
    for _ in 0..looked_at {
        let v = cursor.next();
        total = total.saturating_add(saturate(v));
        match runs.last_mut() {
            Some((last, n)) if *last == v => *n += 1,
            _ => runs.push((v, 1)),
        }
    }
    let mut vector = runs_of(runs.get(..PRINTED).unwrap_or(&runs));
    if runs.len() > PRINTED || visits > LOOKED_AT {
        vector.push_str(" …");
    }
    Seen { total, ones: runs.iter().all(|(v, _)| *v == 1), vector }
}

fn runs_of(runs: &[(i64, u64)]) -> String {
    let mut words = Vec::new();
    for (v, n) in runs {
        match *n {
            0..5 => (0..*n).for_each(|_| words.push(v.to_string())),
            n => words.push(format!("{v}*{n}")),
        }
    }
    words.join(" ")
}

/// `(members, iterations)` of nested nodes with the ranks each holds for, of the ranks that execute them more than once: all
/// ranks' outermost ones first, then what they have within these.
fn pairs(
    thread: &Thread,
    nodes: &[usize],
    classes: &[Class],
    views: &[Vec<Seen>],
) -> Vec<(String, RankList)> {
    let items = thread.tree.items();
    let stack = |view: &Vec<Seen>| -> Vec<String> {
        let leaf = |i: &usize| {
            matches!(items.get(*i), Some(Item::Leaf { .. })) && view.get(*i).is_some_and(|n| n.total > 0)
        };
        let loops = nodes.iter().filter_map(|&node| {
            let seen = view.get(node).filter(|n| n.total > 0 && !n.ones)?;
            let below = match items.get(node) {
                Some(Item::Body { below }) => node + 1..node + 1 + *below as usize,
                _ => node..node + 1,
            };
            Some(format!("({},{})", below.filter(leaf).count(), seen.vector))
        });
        loops.collect()
    };
    let stacks: Vec<Vec<String>> = views.iter().map(stack).collect();
    let mut out: Vec<(String, RankList)> = Vec::new();
    for level in 0..stacks.iter().map(Vec::len).max().unwrap_or(0) {
        let mut alike: Vec<(&String, Vec<&RankList>)> = Vec::new();
        let mut places: HashMap<&String, usize> = HashMap::new();
        for (Class { ranks, .. }, stack) in classes.iter().zip(&stacks) {
            let Some(value) = stack.get(level) else { continue };
            let at = *places.entry(value).or_insert(alike.len());
            match alike.get_mut(at) {
                Some((_, all)) => all.push(ranks),
                None => alike.push((value, vec![ranks])),
            }
        }
        out.extend(alike.into_iter().map(|(value, all)| (value.clone(), joined(&all))));
    }
    out
}

/// The ranks of all these sets, two and two of them at a time: one after the other would look at the first ones again and again.
fn joined(sets: &[&RankList]) -> RankList {
    match *sets {
        [] => RankList::default(),
        [one] => one.clone(),
        _ => {
            let (low, high) = sets.split_at(sets.len() / 2);
            let mut all = joined(low);
            all.extend(&joined(high));
            all
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_model::form::Form;
    use st_model::tree::FlatTree;

    /// Threads of one call, of so many ranks, which are these classes.
    fn section(classes: Vec<RankList>, ranks: u32, threads: usize) -> Section {
        let streams = classes.iter().map(|_| Sealed::from(vec![1])).collect();
        let thread = Thread {
            ranks: RankList::first(ranks),
            tree: FlatTree::new(vec![Item::Leaf { sym: 0 }]),
            counts: vec![Elastic { form: Form::Absolute, partition: 0, streams }],
            ..Thread::default()
        };
        let partitions = vec![Partition { classes }];
        Section {
            ranks: thread.ranks.clone(),
            threads: vec![thread; threads],
            partitions,
            ..Section::default()
        }
    }

    #[test]
    fn lists_of_a_stream_take_so_much_in_all() {
        let out = |lists: &mut Lists, section: &Section| {
            let all = section.threads.iter().flat_map(|thread| lists.leaves(section, thread));
            all.filter(|line| line.contains("left out: too many ranks")).count()
        };
        let apart = section(vec![RankList::single(0), RankList::single(1), RankList::single(2)], 3, 4);
        assert_eq!(out(&mut Lists::default(), &apart), 0);
        let few = Lists { ranks: 7, ..Lists::default() };
        assert_eq!(out(&mut few.clone(), &apart), 2);
        // Ranks that are alike are not looked up one by one.
        let alike = section(vec![RankList::first(u32::MAX)], u32::MAX, 1000);
        assert_eq!(out(&mut few.clone(), &alike), 0);
    }

    /// Looking for each rank in each class takes minutes.
    #[test]
    fn many_classes_take_time_by_their_number() {
        let n = 100_000;
        let classes: Vec<_> = (0..n).map(|rank| RankList::single(n - 1 - rank)).collect();
        let mut apart = section(classes, n, 1);
        let streams = (0..n).map(|class| Sealed::from(vec![1 + i64::from(class % 7)])).collect();
        apart.threads[0].counts[0].streams = streams;
        let from = std::time::Instant::now();
        let lines = Lists::default().leaves(&apart, &apart.threads[0]);
        assert!(from.elapsed().as_secs() < 20, "{:?}", from.elapsed());
        // The highest rank has the first count, and so has every seventh below it.
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].matches("(1,").count(), 6, "{}", lines[0]);
        assert!(lines[0].contains("(1,2)@<"), "{}", lines[0]);
    }
}
