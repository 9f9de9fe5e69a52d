//! Signatures: what a rank did, in 128 bits, whatever loops it was compressed into.
//!
//! `H(xy) = H(x)·B^|y| + H(y)` over the digests of events (or values), modulo the prime 2^127 - 1: order matters, the
//! signature of a concatenation follows from those of its parts, and that of a loop from that of its body by repeated
//! squaring. Two sequences of up to n events that differ have equal signatures with odds of about n / 2^127, for
//! the digests of different events are independent of each other.
//!
//! Source: Bahmani, Mueller 2014, section 3.1, where a signature is the exclusive or of sequence numbers times stack
//! signatures; what that confuses is in [`crate::cluster::paper`].

use st_model::calls::CallId;
use st_model::ints::{Chain, Cursor, Sealed};
use st_model::lanes::Digest;
use st_model::num::saturate;
use st_model::proof::call_word;
use st_model::section::{Elastic, Section, Thread};
use st_model::tree::{FlatTree, Item};

/// The modulus.
const P: u128 = (1 << 127) - 1;
/// The base: any large number.
const B: u128 = 0x2545_F491_4F6C_DD1D_9E37_79B9_7F4A_7C15;

/// Signature of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Signature {
    hash: u128,
    /// The base to the power of the length.
    power: u128,
}

impl Signature {
    /// Of a sequence of one thing, which these words tell from others.
    #[must_use]
    pub fn of(words: &[u64]) -> Self {
        let mut digest = Digest::new();
        words.iter().for_each(|w| digest.word(*w));
        Self { hash: digest.value() % P, power: B % P }
    }
    /// Of a sequence of one value.
    #[must_use]
    pub fn of_value(value: i64) -> Self {
        Self::of(&[value.cast_unsigned()])
    }
    /// Of the first `len` values of a stream.
    #[must_use]
    pub fn of_stream(values: &Sealed, len: u64) -> Self {
        values.product(len, Self::of_value)
    }
    /// The signature in bits. Sequences of different lengths that it does not tell apart are as rare as others.
    #[must_use]
    pub fn value(self) -> u128 {
        self.hash
    }
}

impl Chain for Signature {
    fn empty() -> Self {
        Self { hash: 0, power: 1 }
    }
    fn then(self, next: Self) -> Self {
        Self { hash: sum(product(self.hash, next.power), next.hash), power: product(self.power, next.power) }
    }
}

fn sum(a: u128, b: u128) -> u128 {
    // Both are below 2^127.
    let s = a + b;
    if s >= P { s - P } else { s }
}

/// Product modulo P by halves: 2^127 is 1.
fn product(a: u128, b: u128) -> u128 {
    const LOW: u128 = (1 << 64) - 1;
    let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let reduced = |x: u128| sum(x >> 127, x & P);
    let middle = a1 * b0 + a0 * b1;
    // 2^128 is 2; the middle times 2^64 is its upper part times 2^127 and its lower 63 bits times 2^64.
    let upper = sum(reduced(2 * a1 * b1), reduced(middle >> 63));
    let lower = sum(reduced((middle & (LOW >> 1)) << 64), reduced(a0 * b0));
    sum(upper, lower)
}

/// Sum of counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Total(pub(crate) u64);

impl Chain for Total {
    fn empty() -> Self {
        Self(0)
    }
    fn then(self, next: Self) -> Self {
        Self(self.0.saturating_add(next.0))
    }
    fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

/// Sum of the first `len` counts.
pub(crate) fn total(counts: &Sealed, len: u64) -> u64 {
    counts.product(len, |v| Total(saturate(v))).0
}

/// The call-path signature of a rank: which functions it called from where, with which outcome, how often and in which
/// order, on each of its threads.
#[must_use]
pub fn call_path(section: &Section, rank: u32) -> Signature {
    let threads = section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank));
    threads.fold(Signature::empty(), |all, (i, t)| {
        let calls = calls(section, t, rank);
        let [low, high] = halves(calls.value());
        all.then(Signature::of(&[i as u64, low, high]))
    })
}

/// The signature of a thread's calls. *Cost:* O(nodes of the tree) times O(log of counts), and the visits of nodes whose
/// counts change from visit to visit.
#[must_use]
pub fn calls(section: &Section, thread: &Thread, rank: u32) -> Signature {
    let digests: Vec<Signature> =
        section.symbols.iter().map(|s| event(section, s.call, s.site, s.error)).collect();
    let stream = |e: &Elastic| e.of_rank(&section.partitions, rank).clone();
    let counts: Vec<Sealed> = thread.counts.iter().map(stream).collect();
    of_tree(&thread.tree, &counts, |sym| digests.get(sym as usize).copied().unwrap_or(Signature::empty()))
}

fn event(section: &Section, call: CallId, site: u32, error: u32) -> Signature {
    let name = section.tables.names.get(&call).map(String::as_str);
    let [low, high] = halves(section.sites.get(site).map_or(0, |s| s.id));
    Signature::of(&[call_word(call, name), error.into(), low, high])
}

#[expect(clippy::cast_possible_truncation, reason = "takes a hash in halves")]
pub(crate) fn halves(hash: u128) -> [u64; 2] {
    [hash as u64, (hash >> 64) as u64]
}

/// A body in execution whose iterations differ.
struct OpenLoop {
    first: usize,
    end: usize,
    /// Iterations still to begin.
    left: u64,
    /// What came before it in the body around it.
    before: Signature,
}

/// The signature of what a tree executes. `counts` are its nodes' counts.
#[must_use]
pub fn of_tree(tree: &FlatTree, counts: &[Sealed], leaf: impl Fn(u32) -> Signature) -> Signature {
    let items = tree.items();
    // Of one execution of a node, and of one visit, where they are always the same.
    let (mut once, mut visit) = (vec![None; items.len()], vec![None; items.len()]);
    for at in (0..items.len()).rev() {
        once[at] = match items[at] {
            Item::Leaf { sym } => Some(leaf(sym)),
            Item::Body { .. } => {
                let mut all = Some(Signature::empty());
                let mut child = at + 1;
                while child < tree.end_of(at) {
                    all = all.zip(visit[child]).map(|(a, b): (Signature, Signature)| a.then(b));
                    child = tree.end_of(child);
                }
                all
            }
        };
        let count = counts.get(at).and_then(Sealed::constant);
        visit[at] = once[at].zip(count).map(|(s, n)| s.times(saturate(n)));
    }
    let mut cursors: Vec<Cursor<'_>> = counts.iter().map(Sealed::cursor).collect();
    let mut frames: Vec<OpenLoop> = Vec::new();
    let (mut at, mut end, mut all) = (0, items.len(), Signature::empty());
    loop {
        if at >= end {
            let Some(frame) = frames.last_mut() else { return all };
            if frame.left > 0 {
                frame.left -= 1;
                at = frame.first;
            } else {
                all = frame.before.then(all);
                (at, end) = (end, frame.end);
                frames.pop();
            }
            continue;
        }
        let after = tree.end_of(at).min(end);
        if let Some(signature) = visit[at] {
            all = all.then(signature);
            at = after;
            continue;
        }
        let count = saturate(cursors.get_mut(at).map_or(0, Cursor::next));
        if let Some(signature) = once[at] {
            all = all.then(signature.times(count));
            at = after;
        } else if count == 0 {
            at = after;
        } else {
            frames.push(OpenLoop { first: at + 1, end, left: count - 1, before: all });
            (at, end, all) = (at + 1, after, Signature::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use st_capture::fold::{DEFAULT_WINDOW, Fold, Folder, Likeness};

    fn of(values: &[u32]) -> Signature {
        values.iter().fold(Signature::empty(), |all, v| all.then(Signature::of(&[u64::from(*v)])))
    }

    #[test]
    fn multiplication_is_that_of_the_field() {
        // (P - 1)² is 1, and distributivity holds for awkward numbers.
        assert_eq!(product(P - 1, P - 1), 1);
        let awkward = [0, 1, 2, P - 1, P - 2, 1 << 126, (1 << 64) - 1, 1 << 64, B % P];
        for a in awkward {
            assert_eq!(product(a, 1), a);
            for b in awkward {
                assert_eq!(product(a, b), product(b, a));
                for c in awkward {
                    assert_eq!(product(a, sum(b, c)), sum(product(a, b), product(a, c)));
                    assert_eq!(product(product(a, b), c), product(a, product(b, c)));
                }
            }
        }
    }

    #[test]
    fn all_short_sequences_differ() {
        // The published signature tells 14,692 of these apart at best.
        let mut seen = std::collections::HashSet::new();
        let mut level = vec![Vec::new()];
        for _ in 0..=8 {
            level.iter().for_each(|s| assert!(seen.insert(of(s).value()), "{s:?}"));
            level = level.iter().flat_map(|s| (0..4).map(move |c| [&s[..], &[c]].concat())).collect();
        }
        assert_eq!(seen.len(), 87_381);
    }

    proptest! {
        #[test]
        fn compression_does_not_matter(
            parts in proptest::collection::vec((proptest::collection::vec(0u32..4, 1..5), 1usize..6), 0..6),
            outer in 1usize..4,
        ) {
            let once: Vec<u32> = parts.iter().flat_map(|(p, n)| p.repeat(*n)).collect();
            let all = once.repeat(outer);
            for fold in [Fold::Exact, Fold::None, Fold::Approx(Likeness::default())] {
                let mut folder = Folder::by(fold, DEFAULT_WINDOW);
                all.iter().for_each(|&v| folder.push(v));
                let (tree, counts) = folder.finish().flatten();
                let got = of_tree(&tree, &counts, |sym| Signature::of(&[u64::from(sym)]));
                prop_assert_eq!(got, of(&all));
            }
        }
    }
}
