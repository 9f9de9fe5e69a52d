//! Approximate matches: iterations that have some events of their own.
//!
//! After a new event the end of the list is compared with what stands before it, nearest first, where an earlier node
//! ends with the same event and what follows it begins like a body, or like the nodes before it. The two are aligned by
//! their longest common subsequence: what both have is united, what only one of them has runs 0 times in the other. An
//! inner loop that runs once in an iteration, so that no body stands there, is made a body that runs once. The rules
//! are those of exact folding, with that likeness in the place of equality:
//!
//! * *Unite*: two bodies in a row become one.
//! * *Spine*: the last nodes are one more iteration of a body on the right spine of the node before them.
//! * *Fold*: the last nodes and those before them become a body that runs twice.
//!
//! Every stream keeps its order, so the tree decodes to the sequence whatever is united.
//!
//! *Cost:* an alignment takes the product of the lengths of what differs. Each event brings a fixed credit of
//! comparisons, so that the cost per event stays bounded on any input; without credit the end of the list stays as it is.
//!
//! Source: Wu, Mueller 2013, section 3.2 (rules 1 to 5 and algorithm 1 for flat lists of events with loop stacks). A tree
//! needs no delayed merges and no padding of nested loops: a body that runs 0 times consumes nothing.

mod alignment;

use st_model::num::Exact;
use std::ops::RangeInclusive;

use self::alignment::{Aligned, Key, Plan, align, keys, most_common, weigh};
use super::method::Likeness;
use super::node::{DEEPEST, Node};
use super::open::Open;
use super::outline::{Found, Outline};

/// Earlier nodes with the same last event that are tried.
const POSITIONS: usize = 16;
/// Comparisons that an event pays for, and the most that are saved up.
const CREDIT: usize = 512;
const SAVED: usize = 1 << 22;
/// Alignments of so many comparisons or more are not made before it is clear that they may be of use.
const WORTHWHILE: usize = 64;

/// Finds them, with what credit there is.
#[derive(Debug, Clone)]
pub(super) struct Matcher {
    like: Likeness,
    credit: usize,
    outline: Outline,
}

impl Matcher {
    pub(super) fn new(like: Likeness) -> Self {
        Self { like, credit: 0, outline: Outline::default() }
    }

    /// One that finds the like of it in another list, which is empty yet.
    pub(super) fn successor(&self) -> Self {
        Self::new(self.like)
    }

    /// Applies one rule to the end of the list; false if none fits.
    pub(super) fn reduce(&mut self, open: &mut Open) -> bool {
        let kept = open.take_lowest();
        self.outline.follow(open, kept);
        // Saved up, because most events need none and few need much; bounded, lest a long quiet time pay for a long halt.
        self.credit = (self.credit + CREDIT).min(SAVED);
        if self.unite(open) {
            return true;
        }
        self.search(open)
    }

    /// The other rules, nearest first.
    fn search(&mut self, open: &mut Open) -> bool {
        let end = open.end();
        let Some(mut at) = end.checked_sub(1) else { return false };
        for _ in 0..POSITIONS {
            let Some(before) = self.outline.ends_alike(at) else { return false };
            at = before;
            let leaves = self.outline.leaves(at + 1, end);
            if leaves > self.like.window {
                return false;
            }
            if self.credit == 0 {
                return false;
            }
            self.pay(open.end() - at);
            // One event alone that comes again is a count, not a loop.
            if leaves > 1 && (self.lengthen(open, at, leaves) || self.fold(open, at, leaves)) {
                return true;
            }
        }
        false
    }

    fn pay(&mut self, comparisons: usize) -> bool {
        let enough = comparisons <= self.credit;
        self.credit = self.credit.saturating_sub(comparisons);
        enough
    }

    /// What is near to a number of events.
    fn near_to(&self, leaves: usize) -> RangeInclusive<usize> {
        let percent = hundredths(self.like.length);
        let most = (leaves * 100).checked_div(percent).unwrap_or(usize::MAX);
        (leaves * percent).div_ceil(100)..=most
    }

    fn near(&self, a: usize, b: usize) -> bool {
        a.min(b) * 100 >= a.max(b) * hundredths(self.like.length)
    }

    /// Two bodies in a row.
    fn unite(&mut self, open: &mut Open) -> bool {
        let end = open.end();
        let (Some(y), Some(x)) = (open.last(), end.checked_sub(2).and_then(|at| open.at(at))) else {
            return false;
        };
        let (Some(first), Some(second)) = (x.as_body(), y.as_body()) else { return false };
        let like = Key::of(x).like(Key::of(y)) && self.near(first.leaves, second.leaves);
        if !like || first.depth + second.depth >= DEEPEST {
            return false;
        }
        let Some(plan) = self.fitting(&first.children, &second.children) else { return false };
        let (Some(y), Some(mut x)) = (open.pop(), open.pop()) else { return false };
        x.last += y.last;
        combine_bodies(&mut x, y, &plan);
        open.push(x);
        true
    }

    /// The nodes after `at` are one more iteration of a body on the right spine of that node.
    fn lengthen(&mut self, open: &mut Open, at: usize, leaves: usize) -> bool {
        let Some(node) = open.at(at) else { return false };
        let Some(head) = self.outline.head(at + 1) else { return false };
        let mut best: Option<(usize, Plan)> = None;
        let mut level = 0;
        while node.runs_to(level) {
            let Some(body) = node.spine(level).and_then(Node::as_body) else { break };
            let fits = body.children.first().is_some_and(|child| child.head() == head)
                && self.near(body.leaves, leaves);
            // The best of all levels, not the first: iterations of an inner and an outer loop can begin with the same event.
            // Not before: most nodes have no body that fits.
            if fits && node.depth() + depth(open.from(at + 1)) >= DEEPEST {
                return false;
            }
            if fits && let Some(plan) = self.fitting(&body.children, open.from(at + 1)) {
                let better = |old: &Plan| plan.common * old.union > old.common * plan.union;
                if best.as_ref().is_none_or(|(_, old)| better(old)) {
                    best = Some((level, plan));
                }
            }
            level += 1;
        }
        let Some((level, plan)) = best else { return false };
        let tail = open.pop_many(open.end() - 1 - at);
        let Some(mut node) = open.pop() else { return false };
        if let Some(lengthened) = node.spine_mut(level) {
            lengthened.last += 1;
            if let Some(body) = lengthened.as_body_mut() {
                let visits = visits(&body.children);
                let children = std::mem::take(&mut body.children);
                body.children = combine(children, visits, tail, 1, &plan);
            }
        }
        // From the inside out: a body's hash follows from its children's.
        for level in (0..=level).rev() {
            if let Some(node) = node.spine_mut(level) {
                node.rehash();
            }
        }
        open.push(node);
        true
    }

    /// The nodes after `at` are another iteration of those that end at it.
    fn fold(&mut self, open: &mut Open, at: usize, leaves: usize) -> bool {
        let near = self.near_to(leaves);
        let mut from = at + 1;
        loop {
            // Backwards to the next node that may be the first of an iteration.
            match self.outline.first_before(from, at + 1, &near, self.credit) {
                Found::First(first) => {
                    self.pay(from - first);
                    from = first;
                }
                Found::TooMany(there) => {
                    self.pay(from - there - 1);
                    return false;
                }
                Found::Nothing(there) => {
                    self.pay(from - there);
                    return false;
                }
            }
            let nodes = open.from(from);
            let (first, second) = nodes.split_at(at + 1 - from);
            if depth(first) + depth(second) + 1 >= DEEPEST {
                return false;
            }
            let Some(plan) = self.fitting(first, second) else { continue };
            let second = open.pop_many(open.end() - 1 - at);
            let first = open.pop_many(at + 1 - from);
            let mut children = combine(first, 1, second, 1, &plan);
            // A body of nothing but one body is that body, run as often as both.
            let sole = children.pop_if(|child| child.as_body().is_some() && plan.steps.len() == 1);
            let node = match sole {
                Some(mut node) => {
                    let total = node.past.iter().fold(0, |sum, n| sum + n.unsigned_abs());
                    node.last += total;
                    node.past = st_model::ints::Ints::new();
                    node
                }
                None => Node::body(children, 2),
            };
            open.push(node);
            return true;
        }
    }

    /// How two lists become one that have enough events in common.
    fn fitting(&mut self, first: &[Node], second: &[Node]) -> Option<Plan> {
        self.plan(first, second, hundredths(self.like.common))
    }

    /// How two lists become one, if they have so many of a hundred events in common; `None` also if that costs more than there is
    /// credit for.
    fn plan(&mut self, first: &[Node], second: &[Node], least: usize) -> Option<Plan> {
        if !self.pay(first.len() + second.len()) {
            return None;
        }
        let (first_runs, second_runs) = (self.runs(first, second), self.runs(second, first));
        let (x, y) = (keys(first, &first_runs), keys(second, &second_runs));
        // What is alike at both ends needs no table: mostly that is nearly all.
        let prefix = x.iter().zip(&y).take_while(|(a, b)| a.like(**b)).count();
        let (rest_x, rest_y) = (&x[prefix..], &y[prefix..]);
        let suffix = rest_x.iter().rev().zip(rest_y.iter().rev()).take_while(|(a, b)| a.like(**b)).count();
        let (middle_x, middle_y) = (&rest_x[..rest_x.len() - suffix], &rest_y[..rest_y.len() - suffix]);
        if !self.pay(middle_x.len() * middle_y.len()) {
            return None;
        }
        // Of most lists it shows without a table that they have not enough in common. It is paid for all the same: which lists are
        // tried after them is not to depend on that.
        if middle_x.len() * middle_y.len() >= WORTHWHILE {
            let ends = |keys: &[Key], others: &[Key]| -> usize {
                keys.iter().zip(others).map(|(a, b)| a.leaves.min(b.leaves)).sum()
            };
            let (tail_x, tail_y) = (&x[x.len() - suffix..], &y[y.len() - suffix..]);
            let most = ends(&x[..prefix], &y) + ends(tail_x, tail_y) + most_common(middle_x, middle_y);
            let all: usize = x.iter().chain(&y).map(|key| key.leaves).sum();
            if !enough(most, all - most, least) {
                return None;
            }
        }
        let mut steps = vec![Aligned::Both; prefix];
        align(middle_x, middle_y, &mut steps);
        steps.extend(std::iter::repeat_n(Aligned::Both, suffix));
        let (common, union) = weigh(&x, &y, &steps);
        enough(common, union, least).then_some(Plan { first_runs, second_runs, steps, common, union })
    }

    /// Runs of nodes in a list that stand where the other list has a body: its loop, run once.
    fn runs(&self, list: &[Node], other: &[Node]) -> Vec<(usize, usize)> {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        // Most nodes are no bodies, and how they begin and end is not looked at.
        let bodies = |nodes: &[Node]| -> Vec<Key> {
            nodes.iter().filter(|node| node.as_body().is_some()).map(Key::of).collect()
        };
        let theirs = bodies(other);
        let own = if theirs.is_empty() { theirs.clone() } else { bodies(list) };
        for key in theirs {
            if own.iter().any(|body| body.like(key)) {
                continue;
            }
            // Runs keep the order of the bodies that they stand for, and do not overlap.
            let from = runs.last().map_or(0, |run| run.1);
            let Some(start) = (from..list.len()).find(|&i| list[i].head() == key.head) else { continue };
            let Some(end) = (start..list.len()).find(|&i| list[i].tail() == key.tail) else { continue };
            let leaves: usize = list[start..=end].iter().map(Node::leaves).sum();
            if self.near(leaves, key.leaves) {
                runs.push((start, end + 1));
            }
        }
        runs
    }
}

/// Whether `common` is at least so many hundredths of `union`.
fn enough(common: usize, union: usize, least: usize) -> bool {
    common * 100 >= union * least
}

fn hundredths(percent: u32) -> usize {
    percent.to_usize()
}

/// Levels of bodies in a list. What is united of two lists has at most the sum of theirs.
fn depth(list: &[Node]) -> u32 {
    list.iter().map(Node::depth).max().unwrap_or(0)
}

/// How often the body around these nodes has run so far.
fn visits(children: &[Node]) -> u64 {
    children.first().map_or(0, |child| child.past.len() + 1)
}

/// Unites two lists, the first visited `before` times and then the second `after` times.
fn combine(first: Vec<Node>, before: u64, second: Vec<Node>, after: u64, plan: &Plan) -> Vec<Node> {
    let mut x = wrapped(first, &plan.first_runs).into_iter();
    let mut y = wrapped(second, &plan.second_runs).into_iter();
    let mut out = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        out.extend(match step {
            Aligned::Both => x.next().zip(y.next()).map(|(mut x, y)| {
                unite_nodes(&mut x, y);
                x
            }),
            // Whoever lacks a node visits it 0 times: the second list after the first has, the first before the second does.
            Aligned::First => x.next().map(|mut x| {
                if after > 0 {
                    x.next(0, |past| past.push_run(0, after - 1));
                }
                x
            }),
            Aligned::Second => y.next().map(|mut y| {
                let mut past = st_model::ints::Ints::new();
                past.push_run(0, before);
                past.extend_from(&y.past);
                y.past = past;
                y
            }),
        });
    }
    out
}

/// Takes over the counts of a node that is alike and was visited later.
fn unite_nodes(x: &mut Node, y: Node) {
    x.next(y.last, |past| past.extend_from(&y.past));
    if x.as_body().is_some() {
        let plan = match (x.as_body(), y.as_body()) {
            (Some(a), Some(b)) => whole_plan(&a.children, &b.children),
            _ => return,
        };
        combine_bodies(x, y, &plan);
    }
}

/// Unites what is below two bodies; their own counts are the caller's concern.
fn combine_bodies(x: &mut Node, y: Node, plan: &Plan) {
    if let (Some(body), Some(other)) = (x.as_body_mut(), y.into_body()) {
        let (before, after) = (visits(&body.children), visits(&other.children));
        let children = std::mem::take(&mut body.children);
        body.children = combine(children, before, other.children, after, plan);
    }
    x.rehash();
}

/// The plan for bodies inside what is being united: paid for by the bound on that, since nothing here is longer.
fn whole_plan(first: &[Node], second: &[Node]) -> Plan {
    let mut matcher = Matcher::new(Likeness { window: usize::MAX, length: 0, common: 0 });
    matcher.credit = usize::MAX;
    let longest =
        if first.len().saturating_mul(second.len()) <= SAVED { matcher.plan(first, second, 0) } else { None };
    longest.unwrap_or_else(|| Plan {
        first_runs: Vec::new(),
        second_runs: Vec::new(),
        steps: [vec![Aligned::First; first.len()], vec![Aligned::Second; second.len()]].concat(),
        common: 0,
        union: 0,
    })
}

/// The list with runs of nodes as bodies that ran once per visit.
fn wrapped(list: Vec<Node>, runs: &[(usize, usize)]) -> Vec<Node> {
    if runs.is_empty() {
        return list;
    }
    let mut nodes = list.into_iter();
    let (mut out, mut at) = (Vec::new(), 0);
    for &(start, end) in runs {
        out.extend(nodes.by_ref().take(start - at));
        let children: Vec<Node> = nodes.by_ref().take(end - start).collect();
        // As often as what is in it: once in each visit so far.
        let visits = visits(&children);
        let mut body = Node::body(children, 1);
        body.past.push_run(1, visits.saturating_sub(1));
        out.push(body);
        at = end;
    }
    out.extend(nodes);
    out
}
