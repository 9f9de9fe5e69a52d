//! Prediction: the next symbol inside the loop in progress, without touching the tree.
//!
//! When the list ends in a body, the symbols that follow are first compared with one more iteration of it or of a
//! body on its right spine, innermost first. While they agree only a cursor moves and a *log* grows: the counts of
//! the nodes in execution order (for a body its trip count, then those of its iterations). A complete iteration is
//! committed by reading the log along the tree. Otherwise the symbols are reproduced from the log and take the slow
//! way, as if nothing had been predicted.
//!
//! Choices are made on the next symbol alone: a run before all else, then another iteration of the innermost loop,
//! then what follows it. A loop inside the iteration may run 0 times; an event may not.

use super::node::{Node, NodeKind, Sym, signed};

/// The longest log, in counts. Beyond, an inner loop is long enough to be predicted for itself.
const LONGEST: usize = 1 << 16;

/// A node of the body tree in preorder; `below` = 0 is a leaf.
#[derive(Debug, Clone, Copy)]
struct PredictedEvent {
    sym: Sym,
    below: usize,
}

/// A body inside the predicted iteration; its trip count stands at `slot` in the log.
#[derive(Debug, Clone, Copy)]
struct OpenBody {
    first: usize,
    end: usize,
    slot: usize,
}

/// What a symbol did to the prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Continuation {
    /// It continued the iteration.
    Held,
    /// It completed the iteration.
    Done,
    /// The iteration was complete without it.
    Over,
    /// It contradicts the prediction.
    Lost,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Prediction {
    /// The last node of the list in preorder, and the indices of the bodies on its right spine.
    steps: Vec<PredictedEvent>,
    spine: Vec<usize>,
    /// Spine level of the body whose iteration is in progress.
    pub(super) level: Option<usize>,
    /// The leaf that matched last.
    at: usize,
    frames: Vec<OpenBody>,
    pub(super) log: Vec<u64>,
}

impl Prediction {
    /// Lays out the node to be predicted.
    pub(super) fn prepare(&mut self, node: &Node) {
        self.steps.clear();
        self.spine.clear();
        lay_out(node, &mut self.steps);
        let mut spine = Some(node);
        while let Some(node) = spine.filter(|node| node.as_body().is_some()) {
            self.spine.push(self.steps.len() - node.size());
            spine = node.as_body().and_then(|body| body.children.last());
        }
    }

    /// Begins an iteration with a symbol, at the innermost of the first `levels` spine bodies that fits.
    pub(super) fn begin(&mut self, levels: usize, sym: Sym, n: u64) -> Continuation {
        for level in (0..levels.min(self.spine.len())).rev() {
            let first = self.spine[level] + 1;
            self.log.clear();
            self.frames.clear();
            self.frames.push(OpenBody { first, end: self.steps.len(), slot: 0 });
            if self.enter(first, self.steps.len(), sym, n) {
                self.level = Some(level);
                return self.held();
            }
        }
        self.level = None;
        Continuation::Lost
    }

    /// Continues the iteration in progress with `n` times a symbol.
    #[inline]
    pub(super) fn advance(&mut self, sym: Sym, n: u64) -> Continuation {
        if self.steps[self.at].sym == sym {
            if let Some(count) = self.log.last_mut() {
                *count += n;
            }
            return Continuation::Held;
        }
        // What is lost must not be in the log.
        if self.log.len() > LONGEST {
            return Continuation::Lost;
        }
        let next = self.at + 1;
        if let (Some(frame), Some(step)) = (self.frames.last(), self.steps.get(next))
            && next < frame.end
            && step.below == 0
        {
            if step.sym != sym {
                return Continuation::Lost;
            }
            self.log.push(n);
            self.at = next;
            return self.held();
        }
        self.cross(sym, n)
    }

    /// Crosses the beginnings and ends of bodies up to the next leaf.
    fn cross(&mut self, sym: Sym, n: u64) -> Continuation {
        let mark = self.log.len();
        let mut next = self.at + 1;
        while let Some(&frame) = self.frames.last() {
            if self.enter(next, frame.end, sym, n) {
                return self.held();
            }
            if !self.all_bodies(next, frame.end) {
                break;
            }
            if self.frames.len() == 1 {
                return Continuation::Over;
            }
            let skipped = self.log.len();
            if self.enter(frame.first, frame.end, sym, n) {
                self.log[frame.slot] += 1;
                return self.held();
            }
            self.log.truncate(skipped);
            self.frames.pop();
            next = frame.end;
        }
        self.log.truncate(mark);
        Continuation::Lost
    }

    fn held(&self) -> Continuation {
        if self.at + 1 == self.steps.len() { Continuation::Done } else { Continuation::Held }
    }

    /// Tries to reach the symbol as the first leaf executed from node `from` on, inside one list that ends at `end`.
    /// Bodies passed over are logged as 0 trips. If the list has no such leaf but only bodies, these stay logged;
    /// the caller decides.
    fn enter(&mut self, from: usize, end: usize, sym: Sym, n: u64) -> bool {
        let mut node = from;
        while node < end {
            let PredictedEvent { sym: found, below } = self.steps[node];
            if below == 0 {
                if found == sym {
                    self.log.push(n);
                    self.at = node;
                }
                return found == sym;
            }
            let (first, after, slot) = (node + 1, node + 1 + below, self.log.len());
            self.log.push(1);
            self.frames.push(OpenBody { first, end: after, slot });
            if self.enter(first, after, sym, n) {
                return true;
            }
            self.frames.pop();
            self.log.truncate(slot);
            self.log.push(0);
            node = after;
        }
        false
    }

    /// Whether the list from a node on consists of bodies only, all of which may run 0 times.
    fn all_bodies(&self, from: usize, end: usize) -> bool {
        let mut node = from;
        while node < end {
            match self.steps[node].below {
                0 => return false,
                below => node += 1 + below,
            }
        }
        true
    }

    /// Events of the iteration that was committed last.
    pub(super) fn events(&self, level: usize) -> u64 {
        let mut events = Vec::new();
        let from = self.spine.get(level).map_or(self.steps.len(), |at| at + 1);
        reproduce(&self.steps, from, self.steps.len(), &mut self.log.iter().copied(), &mut events);
        events.iter().map(|(_, n)| n).sum()
    }

    /// Gives the prediction up; returns its symbols in order.
    pub(super) fn take_back(&mut self) -> Vec<(Sym, u64)> {
        let Some(level) = self.level.take() else { return Vec::new() };
        let mut out = Vec::new();
        let mut log = self.log.iter().copied();
        reproduce(&self.steps, self.spine[level] + 1, self.steps.len(), &mut log, &mut out);
        self.log.clear();
        out
    }
}

/// Adds one iteration, read from a log, to the counts of a body's children.
pub(super) fn commit(children: &mut [Node], log: &mut impl Iterator<Item = u64>) {
    for child in children {
        let count = log.next().unwrap_or(0);
        child.next(count, |_| ());
        if let NodeKind::Body(body) = &mut child.kind {
            for _ in 0..count {
                commit(&mut body.children, log);
            }
        }
    }
}

/// Adds `n` equal iterations.
pub(super) fn commit_many(children: &mut [Node], log: &[u64], n: u64) {
    if children.iter().any(|child| child.as_body().is_some()) {
        (0..n).for_each(|_| commit(children, &mut log.iter().copied()));
        return;
    }
    for (child, count) in children.iter_mut().zip(log) {
        child.next(*count, |past| past.push_run(signed(*count), n - 1));
    }
}

/// Emits the symbols of one iteration as far as the log goes; false at its end.
fn reproduce(
    steps: &[PredictedEvent],
    from: usize,
    end: usize,
    log: &mut impl Iterator<Item = u64>,
    out: &mut Vec<(Sym, u64)>,
) -> bool {
    let mut node = from;
    while node < end {
        let Some(count) = log.next() else { return false };
        let PredictedEvent { sym, below } = steps[node];
        if below == 0 {
            out.push((sym, count));
        } else {
            for _ in 0..count {
                if !reproduce(steps, node + 1, node + 1 + below, log, out) {
                    return false;
                }
            }
        }
        node += 1 + below;
    }
    true
}

fn lay_out(node: &Node, steps: &mut Vec<PredictedEvent>) {
    let at = steps.len();
    match &node.kind {
        NodeKind::Leaf(sym) => steps.push(PredictedEvent { sym: *sym, below: 0 }),
        NodeKind::Body(body) => {
            steps.push(PredictedEvent { sym: 0, below: 0 });
            for child in &body.children {
                lay_out(child, steps);
            }
            steps[at].below = steps.len() - at - 1;
        }
    }
}
