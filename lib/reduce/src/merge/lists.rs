//! The other layout of a merged tree: the lists of calls and loops that ranks have, side by side and not aligned.
//!
//! Ranks that execute the same nodes share a list, or each rank has its own; a list is a body that its ranks execute once
//! and others not at all. Where many ranks behave differently the master ([`super::master`]) has to say of each of its
//! nodes who executes it, and that takes more bytes than the lists do.
//!
//! The lists are read off the master: of what a rank executes nothing is lost there. What a rank never executes is left
//! out, and loops that it goes through once, as it does those that were put around its nodes only to match other ranks'
//! loops, give way to what is in them. So it does not matter in which order ranks were merged.

use st_model::num::narrow;
use std::collections::HashMap;
use std::rc::Rc;

use foldhash::fast::FixedState;
use st_model::ints::Sealed;
use st_model::ranklist::RankList;
use st_model::section::{Elastic, Form, Partition};
use st_model::tree::{FlatTree, Item};
use st_model::unite::{Classes, Partitions};

use super::master::Control;

/// Ranks times nodes of the master that are looked at to find the lists, and ranks times nodes of the lists: whoever reads
/// all ranks looks at all nodes for each of them.
const MOST: usize = 1 << 26;
/// Ranks that have a list each at most: lists take memory.
const SINGLE: u64 = 1 << 21;

/// What a node is to a rank that visits the body around it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Role {
    /// Never executed.
    Absent,
    /// A loop that is gone through once at each visit.
    Once,
    /// Anything else.
    Part,
}

impl Role {
    fn of(item: &Item, stream: &Sealed) -> Self {
        match (stream.constant(), item) {
            (Some(0), _) => Self::Absent,
            (Some(1), Item::Body { .. }) => Self::Once,
            _ => Self::Part,
        }
    }
}

/// A master, whose counts some ranks read.
struct Master<'a> {
    tree: &'a FlatTree,
    counts: &'a [Elastic],
    partitions: &'a [Partition],
    ranks: Vec<u32>,
}

/// Whether some rank may have nodes that others have not.
pub(super) fn may_differ((tree, counts): &Control) -> bool {
    let differ = |(item, e): (&Item, &Elastic)| {
        let mut roles = e.streams.iter().map(|stream| Role::of(item, stream));
        let first = roles.next();
        roles.any(|role| Some(role) != first)
    };
    tree.items().iter().zip(counts).any(differ)
}

/// A node of the master as the ranks see it, by their position.
struct Seen<'a> {
    node: usize,
    roles: Vec<Role>,
    streams: Vec<&'a Sealed>,
}

/// A list under construction: its nodes in preorder, and where bodies that are open begin in it and end in the master.
#[derive(Default)]
struct List {
    ranks: RankList,
    items: Vec<Item>,
    counts: Vec<Classes>,
    open: Vec<(usize, usize)>,
    /// The master's node that was added last.
    last: Option<usize>,
}

/// The lists of some ranks, read off their master, and how many there are: `shared` by the ranks that have the same, or one
/// for each rank. `None` if it would take too long to find them, or later to read them.
pub(super) fn lists(
    (tree, counts): &Control,
    partitions: &[Partition],
    ranks: &RankList,
    shared: bool,
    into: &mut Partitions,
) -> Option<(Control, usize)> {
    if !shared && ranks.len() > SINGLE {
        return None;
    }
    usize::try_from(ranks.len()).ok()?.checked_mul(tree.items().len()).filter(|n| *n <= MOST)?;
    let master = Master { tree, counts, partitions, ranks: ranks.iter().collect() };
    let (list_of, mut lists) = if shared { master.distinct() } else { master.single() };
    let mut nodes = 0;
    master.walk(|seen| {
        for (at, rank) in master.ranks.iter().enumerate().filter(|(at, _)| seen.roles[*at] == Role::Part) {
            let list = &mut lists[list_of[at]];
            nodes += usize::from(list.add(tree, seen.node));
            if let Some(classes) = list.counts.last_mut() {
                classes.add(seen.streams[at].clone(), *rank);
            }
        }
        nodes.saturating_mul(master.ranks.len()) <= MOST
    })?;
    lists.iter_mut().for_each(|list| list.close(usize::MAX));
    if shared {
        lists = united(lists);
    }
    let found = lists.len();
    let (mut items, mut counts) = (Vec::new(), Vec::new());
    for mut list in lists {
        if found > 1 && !list.items.is_empty() {
            items.push(Item::Body { below: u32::try_from(list.items.len()).ok()? });
            counts.push(Elastic {
                form: Form::Absolute,
                partition: into.only(list.ranks),
                streams: [Sealed::from_constant(1)].into(),
            });
        }
        items.append(&mut list.items);
        counts.extend(list.counts.into_iter().map(|classes| into.elastic(classes, Form::Absolute)));
    }
    Some(((FlatTree::new(items), counts), found))
}

/// Equal lists are one, whichever nodes of the master they consist of.
fn united(lists: Vec<List>) -> Vec<List> {
    let mut known: HashMap<Vec<Item>, usize, FixedState> = HashMap::default();
    let mut out: Vec<List> = Vec::new();
    for list in lists {
        match known.get(&list.items).and_then(|at| out.get_mut(*at)) {
            Some(first) => first.unite(&list),
            None => {
                known.insert(list.items.clone(), out.len());
                out.push(list);
            }
        }
    }
    out
}

impl<'a> Master<'a> {
    /// The list that each rank has, by the nodes that it consists of, and the lists without these, by lowest rank.
    fn distinct(&self) -> (Vec<usize>, Vec<List>) {
        let mut list_of = vec![0; self.ranks.len()];
        let mut found = 1;
        let refined = self.walk(|seen| {
            let mut known: HashMap<(usize, Role), usize, FixedState> = HashMap::default();
            for (of, role) in list_of.iter_mut().zip(&seen.roles) {
                let next = known.len();
                *of = *known.entry((*of, *role)).or_insert(next);
            }
            found = known.len();
            true
        });
        debug_assert!(refined.is_some(), "nothing stops it");
        let mut lists: Vec<List> = (0..found).map(|_| List::default()).collect();
        for (of, rank) in list_of.iter().zip(&self.ranks) {
            lists[*of].ranks.insert(*rank);
        }
        (list_of, lists)
    }

    /// A list for each rank.
    fn single(&self) -> (Vec<usize>, Vec<List>) {
        let list = |rank: &u32| List { ranks: RankList::single(*rank), ..List::default() };
        ((0..self.ranks.len()).collect(), self.ranks.iter().map(list).collect())
    }

    /// Shows the nodes in preorder, as long as they are wanted.
    fn walk(&self, mut show: impl FnMut(&Seen<'a>) -> bool) -> Option<()> {
        let all = Rc::new(vec![true; self.ranks.len()]);
        // Open bodies: where they end, and who visits them.
        let mut open: Vec<(usize, Rc<Vec<bool>>)> = Vec::new();
        for (node, (item, e)) in self.tree.items().iter().zip(self.counts).enumerate() {
            while open.last().is_some_and(|(end, _)| *end <= node) {
                open.pop();
            }
            let visitors = Rc::clone(open.last().map_or(&all, |(_, visitors)| visitors));
            let streams = self.streams(e);
            let visits = streams.iter().zip(visitors.iter());
            let role = |(stream, visits): (&&Sealed, &bool)| {
                if *visits { Role::of(item, stream) } else { Role::Absent }
            };
            let roles: Vec<Role> = visits.map(role).collect();
            if matches!(item, Item::Body { .. }) {
                let inside = roles.iter().map(|role| *role != Role::Absent).collect();
                open.push((self.tree.end_of(node), Rc::new(inside)));
            }
            if !show(&Seen { node, roles, streams }) {
                return None;
            }
        }
        Some(())
    }

    /// The stream that each rank reads.
    fn streams(&self, e: &'a Elastic) -> Vec<&'a Sealed> {
        let mut out = vec![Sealed::zero(); self.ranks.len()];
        let classes = self.partitions.get(e.partition as usize).map_or(&[][..], |p| &p.classes);
        for (stream, class) in e.streams.iter().zip(classes) {
            for rank in class.iter() {
                if let Some(at) = self.position(rank) {
                    out[at] = stream;
                }
            }
        }
        out
    }

    fn position(&self, rank: u32) -> Option<usize> {
        // Mostly they are without gaps.
        let guess = usize::try_from(rank.checked_sub(*self.ranks.first()?)?).ok()?;
        match self.ranks.get(guess) {
            Some(r) if *r == rank => Some(guess),
            _ => self.ranks.binary_search(&rank).ok(),
        }
    }
}

impl List {
    /// Adds a node of the master, if it has not been added; whether it was.
    fn add(&mut self, tree: &FlatTree, node: usize) -> bool {
        if self.last == Some(node) {
            return false;
        }
        self.close(node);
        if matches!(tree.items()[node], Item::Body { .. }) {
            self.open.push((self.items.len(), tree.end_of(node)));
        }
        self.last = Some(node);
        self.items.push(tree.items()[node]);
        self.counts.push(Classes::default());
        true
    }

    /// Adds the ranks of a list of the same nodes, and how often these are executed there.
    fn unite(&mut self, same: &Self) {
        self.ranks = self.ranks.union(&same.ranks);
        for (all, counts) in self.counts.iter_mut().zip(&same.counts) {
            counts.list().iter().for_each(|(stream, ranks)| all.add_all(stream.clone(), ranks));
        }
    }

    /// Closes bodies that end before a node of the master. Those in which nothing is executed go.
    fn close(&mut self, node: usize) {
        while let Some((at, _)) = self.open.pop_if(|(_, end)| *end <= node) {
            let below = self.items.len() - at - 1;
            if below == 0 {
                self.items.truncate(at);
                self.counts.truncate(at);
            } else {
                self.items[at] = Item::Body { below: narrow(below) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::master::{Loops, Master as Aligned};
    use super::*;
    use proptest::prelude::*;

    /// A recorded tree: its nodes, and how often each is executed at each visit.
    type Tree = Vec<(Item, i64)>;

    fn node(depth: u32) -> BoxedStrategy<Tree> {
        let leaf = (0u32..4, 1i64..4).prop_map(|(sym, n)| vec![(Item::Leaf { sym }, n)]);
        if depth == 0 {
            return leaf.boxed();
        }
        let body = (proptest::collection::vec(node(depth - 1), 1..4), 2i64..5).prop_map(|(inner, n)| {
            let inner = inner.concat();
            let below = u32::try_from(inner.len()).unwrap_or(0);
            [vec![(Item::Body { below }, n)], inner].concat()
        });
        prop_oneof![leaf, body].boxed()
    }

    fn trees() -> impl Strategy<Value = Vec<Tree>> {
        let tree = proptest::collection::vec(node(2), 0..6).prop_map(|nodes| nodes.concat());
        proptest::collection::vec(tree, 1..6)
    }

    /// The lists of ranks that were merged in some order.
    fn listed(
        trees: &[Tree],
        order: &[usize],
        loops: Loops,
        shared: bool,
    ) -> (Control, usize, Vec<Partition>) {
        let mut master = Aligned::new(loops);
        let all = RankList::first(u32::try_from(trees.len()).unwrap_or(0));
        for &at in order {
            let ranks = RankList::single(u32::try_from(at).unwrap_or(0));
            let (items, counts): (Vec<Item>, Vec<i64>) = trees[at].iter().copied().unzip();
            let count = |n: i64| Elastic {
                form: Form::Absolute,
                partition: 0,
                streams: [Sealed::from_constant(n)].into(),
            };
            let counts: Vec<Elastic> = counts.into_iter().map(count).collect();
            master.add(&FlatTree::new(items), &counts, &[Partition { classes: vec![ranks.clone()] }], &ranks);
        }
        let mut partitions = Partitions::new(all.clone());
        let control = master.finish(&all, &mut partitions);
        let mut into = Partitions::new(all.clone());
        let (lists, found) =
            lists(&control, partitions.list(), &all, shared, &mut into).expect("a small tree");
        assert!(may_differ(&control) || found == 1 || !shared);
        (lists, found, into.into_list())
    }

    proptest! {
        #[test]
        fn lists_are_the_ranks_own_trees_however_they_were_merged(
            trees in trees(),
            order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(),
            agnostic: bool,
            shared: bool,
        ) {
            let order: Vec<usize> = order.into_iter().filter(|at| *at < trees.len()).collect();
            let loops = if agnostic { Loops::Agnostic } else { Loops::Structural };
            let (lists, found, partitions) = listed(&trees, &order, loops, shared);
            let plain: Vec<usize> = (0..trees.len()).collect();
            let aligned = listed(&trees, &plain, Loops::Agnostic, shared);
            prop_assert_eq!(&aligned, &(lists.clone(), found, partitions.clone()));
            let different: HashSet<Vec<Item>> =
                trees.iter().map(|tree| tree.iter().map(|(item, _)| *item).collect()).collect();
            prop_assert_eq!(found, if shared { different.len() } else { trees.len() });
            let (tree, counts) = lists;
            for (rank, own) in (0u32..).zip(&trees) {
                let read = |e: &Elastic| {
                    let class = partitions[e.partition as usize].class_of(rank);
                    class.map_or(0, |class| e.streams[class].cursor().next())
                };
                let mut top = 0;
                let mut seen: Vec<Tree> = Vec::new();
                while top < tree.items().len() {
                    let end = tree.end_of(top);
                    let first = if found > 1 { top + 1 } else { 0 };
                    if found == 1 || read(&counts[top]) == 1 {
                        let end = if found > 1 { end } else { tree.items().len() };
                        seen.push((first..end).map(|at| (tree.items()[at], read(&counts[at]))).collect());
                    }
                    top = if found > 1 { end } else { tree.items().len() };
                }
                prop_assert_eq!(seen.concat(), own.clone());
                prop_assert!(seen.len() <= 1);
            }
        }
    }
}
