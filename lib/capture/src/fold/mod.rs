//! Exact online folding of a symbol sequence into a count-stream tree.
//!
//! The *open list* is a list of nodes, each visited once. A symbol is appended, then the end of the list is reduced
//! as long as a rule applies:
//!
//! 1. *Run*: the event executed last is the same: its count grows. Two bodies of equal shape in a row become one.
//! 2. *Spine*: the nodes after a body are one more iteration of it, or of a body on its right spine (its last child,
//!    and so on): their counts are appended there. Found by one lookup: for each such body the hash is kept that the
//!    list will have when exactly one more iteration has been appended.
//! 3. *Tail wrap*: they are one more iteration of the last children (up to 64) of such a body: these become a body
//!    that has run once per iteration so far, then as 2.
//! 4. *Fold*: the last nodes equal those before them: a body that runs twice. Tried at up to 16 previous positions of
//!    the last shape, and at earlier ends of the same 12 and 96 shapes.
//!
//! Equal means equal shape: structure without counts. Hashes find, comparison decides; each step keeps the order in
//! which every stream is consumed, so the tree decodes to the sequence whatever rules fire. Before all that, whole
//! iterations of the loop in progress are predicted (`predict`), and there an inner loop may also run 0 times or once
//! without its body standing in the list. Where each call site has its own symbol and inner loops repeat, prediction
//! changes cost only (tested); elsewhere it finds smaller trees, or with shared symbols other ones.
//!
//! *Cost:* a few nanoseconds per predicted symbol, otherwise a few table lookups, amortised; memory in proportion to
//! the structure, in the worst case a window of nodes, those inside bodies counted, and a few bytes per symbol beyond it
//! (`packed`).
//!
//! [`Fold::Approx`] folds a second time beside that, with approximate matches (`approx`), which pay where calls inside a loop
//! are made or not by chance and cost bytes elsewhere; [`Fold::None`] keeps the sequence as it is. At the end
//! [`Folded::smallest`] tries approximate matches on what exact folding left, and the bare sequence, and takes the smallest.
//!
//! Source: Wu, Mueller 2013, section 3.2, whose delayed merges step 2 replaces.

mod approx;
mod method;
mod node;
mod open;
mod outline;
mod packed;
mod predict;
mod recent;
mod smallest;

use approx::Matcher;
pub use method::{Fold, Likeness, NoFold};
use node::Node;
pub use node::{DEEPEST, Sym};
use open::{Expected, Open};
pub use packed::Packed;
use predict::{Continuation, Prediction, commit, commit_many};
pub use smallest::Chosen;
use st_model::ints::Sealed;
use st_model::num::Exact;
use st_model::tree::FlatTree;

/// Nodes that stay open by default, those inside loops included. A period of more than half of them no longer folds.
pub const DEFAULT_WINDOW: usize = 131_072;

/// Folds a symbol sequence while it arrives.
#[derive(Debug, Clone)]
pub struct Folder {
    window: usize,
    /// Finds approximate matches, if these are wanted.
    matcher: Option<Matcher>,
    /// Folds the same sequence another way: the smaller of the two trees is kept.
    beside: Option<Box<Self>>,
    /// The last event and how often it came, if nothing is folded.
    flat: Option<Option<(Sym, u64)>>,
    open: Open,
    frozen: Packed,
    prediction: Prediction,
    /// Position of the node that `prediction` has laid out, as long as that node stands.
    laid_out: Option<usize>,
    /// Whether the prediction in progress began while another one was taken back.
    second: bool,
    /// First position whose node may be predicted.
    predict_from: usize,
    /// The level of the body of which a predicted iteration was complete with the last symbol.
    complete: Option<usize>,
}

impl Folder {
    /// A folder that keeps `window` nodes open, see [`DEFAULT_WINDOW`].
    #[must_use]
    pub fn new(window: usize) -> Self {
        Self {
            window,
            matcher: None,
            beside: None,
            flat: None,
            open: Open::new(),
            frozen: Packed::default(),
            prediction: Prediction::default(),
            laid_out: None,
            second: false,
            predict_from: 0,
            complete: None,
        }
    }

    /// A folder that finds loops in a given way.
    #[must_use]
    pub fn by(fold: Fold, window: usize) -> Self {
        let exact = Self::new(window);
        match fold {
            Fold::None => Self { flat: Some(None), ..exact },
            Fold::Exact => exact,
            Fold::Approx(like) => Self { beside: Some(Box::new(Self::approximate(like, window))), ..exact },
        }
    }

    /// A folder with approximate matches, whatever their tree's size.
    #[must_use]
    pub fn approximate(like: Likeness, window: usize) -> Self {
        Self { matcher: Some(Matcher::new(like)), ..Self::new(window) }
    }

    /// A folder that takes the slow way only: the reference for tests and benchmarks of prediction.
    #[must_use]
    pub fn without_prediction(window: usize) -> Self {
        Self { predict_from: usize::MAX, ..Self::new(window) }
    }

    /// Appends a symbol.
    #[inline]
    pub fn push(&mut self, sym: Sym) {
        self.push_n(sym, 1);
    }

    /// Appends a symbol `n` times; the tree is that of `n` single pushes.
    #[inline]
    pub fn push_n(&mut self, sym: Sym, n: u64) {
        if n > 0 {
            if let Some(beside) = &mut self.beside {
                beside.push_n(sym, n);
            }
            match &mut self.flat {
                None => self.feed(sym, n, self.predict_from),
                Some(Some((last, times))) if *last == sym => *times += n,
                Some(last) => {
                    if let Some((sym, n)) = last.replace((sym, n)) {
                        self.frozen.leaf(sym, n);
                    }
                }
            }
        }
    }

    /// Appends the symbols of a round `n` times; the tree is that of single pushes. *Cost:* that of two rounds and, if a round
    /// is an iteration of a loop without inner ones, O(1) for each symbol.
    pub fn push_rounds(&mut self, round: &[Sym], n: u64) {
        // Apart: which rounds need not be pushed is another matter in each.
        let mut beside = self.beside.take();
        if let Some(beside) = &mut beside {
            beside.push_rounds(round, n);
        }
        self.push_rounds_alone(round, n);
        self.beside = beside;
    }

    fn push_rounds_alone(&mut self, round: &[Sym], n: u64) {
        let symbols = round.len().to_u64();
        // The round may begin anywhere in what has been found to be an iteration: the place where that ends, and what it was.
        let mut before = None;
        for left in (0..n).rev() {
            for (at, sym) in round.iter().enumerate() {
                self.push(*sym);
                let whole =
                    self.complete.filter(|level| left > 0 && self.prediction.events(*level) == symbols);
                let Some(level) = whole else { continue };
                let now = (at, level, self.prediction.log.clone());
                if before.as_ref() == Some(&now) {
                    // All that a further round does is to add to counts.
                    self.add_iterations(left);
                    round[at + 1..].iter().for_each(|sym| self.push(*sym));
                    return;
                }
                before = Some(now);
            }
        }
    }

    /// The tree of the whole sequence.
    #[must_use]
    pub fn finish(mut self) -> Folded {
        for (sym, n) in self.prediction.take_back() {
            self.feed(sym, n, usize::MAX);
        }
        if let Some((sym, n)) = self.flat.flatten() {
            self.frozen.leaf(sym, n);
        }
        let beside = self.beside.map(|beside| Box::new(beside.finish()));
        Folded { frozen: self.frozen, open: self.open, beside }
    }

    /// A folder like this one that goes on where this one's tree ends: with what waits to be entered into it. It has nothing
    /// beside it.
    #[must_use]
    pub fn successor(&self) -> Self {
        let mut next = Self {
            matcher: self.matcher.as_ref().map(Matcher::successor),
            flat: self.flat,
            predict_from: self.predict_from,
            ..Self::new(self.window)
        };
        self.prediction.clone().take_back().into_iter().for_each(|(sym, n)| next.push_n(sym, n));
        next
    }

    /// This folder's tree, and that of its [successor](Folder::successor) after it. *Cost:* O(nodes), a few ns each, and less of
    /// those beyond the window.
    #[must_use]
    pub fn packed(&self, successor: Self) -> Packed {
        let mut all = self.frozen.clone();
        all.extend(self.open.from(0).iter());
        let Folded { frozen, open, .. } = successor.finish();
        all.append(&frozen);
        all.extend(open.from(0).iter());
        all
    }

    /// Memory behind the folder, in words of 8 bytes. *Cost:* O(nodes).
    #[must_use]
    pub fn heap_words(&self) -> usize {
        let beside = self.beside.as_ref().map_or(0, |beside| beside.heap_words());
        self.open.heap_words() + self.frozen.heap_words() + beside
    }

    fn feed(&mut self, sym: Sym, n: u64, predict_from: usize) {
        self.complete = None;
        while self.prediction.level.is_some() {
            match self.prediction.advance(sym, n) {
                Continuation::Held => return,
                Continuation::Done => {
                    self.complete = self.prediction.level;
                    self.commit();
                    return;
                }
                Continuation::Over => self.commit(),
                Continuation::Lost => self.take_back(),
            }
        }
        if let Some(leaf) = self.open.last_mut().and_then(Node::last_leaf)
            && leaf.is(sym)
        {
            leaf.last += n;
            return;
        }
        if self.open.end() > predict_from && self.predict(sym, n) {
            self.second = predict_from > self.predict_from;
            return;
        }
        self.open.push(Node::leaf(sym, n));
        self.reduce();
        if self.open.nodes() > 2 * self.window.max(1) && self.open.len() > 1 {
            self.frozen.extend(self.open.freeze(self.window.max(1)));
        }
    }

    /// Tries to begin another iteration of the last node, or inside it.
    fn predict(&mut self, sym: Sym, n: u64) -> bool {
        let Some(last) = self.open.last() else { return false };
        let levels = last.live_levels(sym);
        if levels == 0 {
            return false;
        }
        let position = self.open.end() - 1;
        if self.laid_out != Some(position) || self.open.fell_to() <= position {
            self.prediction.prepare(last);
            self.laid_out = Some(position);
            self.open.mark();
        }
        match self.prediction.begin(levels, sym, n) {
            Continuation::Lost | Continuation::Over => return false,
            Continuation::Held => {}
            Continuation::Done => {
                self.complete = self.prediction.level;
                self.commit();
            }
        }
        true
    }

    /// Adds the predicted iteration to the tree.
    fn commit(&mut self) {
        let Some(level) = self.prediction.level.take() else { return };
        let Some(node) = self.open.last_mut().and_then(|last| last.spine_mut(level)) else { return };
        node.last += 1;
        if let Some(body) = node.as_body_mut() {
            commit(&mut body.children, &mut self.prediction.log.iter().copied());
        }
    }

    /// Adds further iterations like the one that the last symbol has completed.
    fn add_iterations(&mut self, n: u64) {
        let Some(level) = self.complete else { return };
        let Some(node) = self.open.last_mut().and_then(|last| last.spine_mut(level)) else { return };
        node.last += n;
        if let Some(body) = node.as_body_mut() {
            commit_many(&mut body.children, &self.prediction.log, n);
        }
    }

    /// Lets the symbols of a failed prediction take the slow way. Nodes that arise from them may be predicted, once:
    /// so a symbol is handled three times at most.
    fn take_back(&mut self) {
        let from = if self.second { usize::MAX } else { self.open.end() };
        for (sym, n) in self.prediction.take_back() {
            self.feed(sym, n, from);
        }
    }

    fn reduce(&mut self) {
        self.reduce_exactly();
        if let Some(mut matcher) = self.matcher.take() {
            while matcher.reduce(&mut self.open) {
                self.reduce_exactly();
            }
            self.matcher = Some(matcher);
        }
    }

    fn reduce_exactly(&mut self) {
        loop {
            if self.unite() {
                return;
            }
            match self.open.continued() {
                Some(found) if found.suffix == 0 && self.lengthen(found.at, found.level.to_usize()) => return,
                Some(Expected { at, level, suffix })
                    if suffix > 0 && self.wrap(at, level.to_usize(), suffix.to_usize()) => {}
                _ => {
                    if !self.fold() {
                        return;
                    }
                }
            }
        }
    }

    /// Rule 1 for bodies: equal shapes in a row become one body that runs as often as both.
    fn unite(&mut self) -> bool {
        let end = self.open.end();
        let (Some(last), Some(before)) =
            (self.open.last(), end.checked_sub(2).and_then(|at| self.open.at(at)))
        else {
            return false;
        };
        if !before.same_shape(last) {
            return false;
        }
        if let Some(last) = self.open.pop()
            && let Some(before) = self.open.last_mut()
        {
            before.last += last.last;
            before.absorb_below(last);
        }
        true
    }

    /// Rule 2.
    fn lengthen(&mut self, at: usize, level: usize) -> bool {
        let n = self.open.end() - 1 - at;
        let fits = self
            .open
            .at(at)
            .filter(|node| node.runs_to(level))
            .and_then(|node| node.spine(level))
            .is_some_and(|node| {
                node.as_body()
                    .is_some_and(|body| body.children.len() == n && self.open.ends_with(&body.children))
            });
        if !fits {
            return false;
        }
        let tail = self.open.pop_many(n);
        if let Some(node) = self.open.last_mut().and_then(|last| last.spine_mut(level)) {
            node.last += 1;
            if let Some(body) = node.as_body_mut() {
                body.children.iter_mut().zip(tail).for_each(|(child, later)| child.absorb(later));
            }
        }
        true
    }

    /// Rule 3.
    fn wrap(&mut self, at: usize, level: usize, n: usize) -> bool {
        let fits = self.open.end() - 1 - at == n
            && self.open.at(at).filter(|node| node.depth() < DEEPEST && node.runs_to(level + 1)).is_some_and(
                |node| {
                    node.spine(level).and_then(Node::as_body).is_some_and(|body| {
                        let start = body.children.len().checked_sub(n);
                        start.is_some_and(|start| start > 0 && self.open.ends_with(&body.children[start..]))
                    })
                },
            );
        if !fits {
            return false;
        }
        let tail = self.open.pop_many(n);
        let Some(mut node) = self.open.pop() else { return false };
        if let Some(body) = node.spine_mut(level).and_then(Node::as_body_mut) {
            let children = body.children.split_off(body.children.len() - n);
            let visits = children.first().map_or(0, |child| child.past.len());
            let mut wrapped = Node::body(children, 2);
            wrapped.past.push_run(1, visits);
            if let Some(body) = wrapped.as_body_mut() {
                body.children.iter_mut().zip(tail).for_each(|(child, later)| child.absorb(later));
            }
            body.children.push(wrapped);
        }
        for level in (0..=level).rev() {
            if let Some(node) = node.spine_mut(level) {
                node.rehash();
            }
        }
        self.open.push(node);
        true
    }

    /// Rule 4.
    fn fold(&mut self) -> bool {
        let Some(n) = self.open.repeat() else { return false };
        let deep = (self.open.end() - n..self.open.end())
            .filter_map(|at| self.open.at(at))
            .any(|node| node.depth() >= DEEPEST);
        if deep {
            return false;
        }
        let second = self.open.pop_many(n);
        let mut first = self.open.pop_many(n);
        first.iter_mut().zip(second).for_each(|(node, later)| node.absorb(later));
        self.open.push(Node::body(first, 2));
        true
    }
}

/// A folded sequence.
#[derive(Debug, Clone)]
pub struct Folded {
    frozen: Packed,
    open: Open,
    /// The same sequence folded another way.
    beside: Option<Box<Self>>,
}

impl Folded {
    /// The tree's shape, and the count stream of each node by number.
    #[must_use]
    pub fn flatten(self) -> (FlatTree, Vec<Sealed>) {
        self.laid_out()
    }

    /// As [`Folded::flatten`], of a sequence that goes on to be folded.
    fn laid_out(&self) -> (FlatTree, Vec<Sealed>) {
        let (mut items, mut counts) = (Vec::new(), Vec::new());
        self.frozen.nodes_in_order().for_each(|node| node.write(&mut items, &mut counts));
        self.open.from(0).iter().for_each(|node| node.write(&mut items, &mut counts));
        (FlatTree::new(items), counts)
    }
}
