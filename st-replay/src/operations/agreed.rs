//! What the members of a collective operation must agree on (MPI 3.1, chapter 5: type signatures of what is sent and
//! received are equal; here their bytes).

use st_match::Channel;
use st_model::calls::roles::Rule;
use st_model::calls::words::ABSENT;
use st_model::event::Event;
use st_model::section::Tables;
use st_model::values::ROOT;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::operation::{End, OperationPart};

/// What a reduction does, as a hash of its operation's name.
#[must_use]
pub(super) fn operation(event: &Event<'_>, op: i64) -> Option<u64> {
    let found = Tables::find(&event.section().tables.ops, op, event.rank);
    found.map(|o| xxh3_64(o.content.kind.as_bytes()))
}

/// Fills in root and bytes of a part; returns the pairs of operations in which each pair has a size of its own, and whether
/// they are received. `size` gives the bytes of so many elements of a type, -1 if the type is not known.
pub(super) fn agree(
    event: &Event<'_>,
    rule: Rule,
    part: &mut OperationPart,
    size: &mut impl FnMut(i64, i64) -> i64,
) -> Vec<(End, bool)> {
    let (role, words, mut pairs) = (event.role, event.words(), Vec::new());
    let at = part.at;
    let named = words.get(role.root);
    let takes_part = named.is_none_or(|n| n == ROOT || n >= 0);
    part.root = match named {
        Some(ROOT) => Some((at.side, at.me)),
        Some(n) => u32::try_from(n).ok().map(|n| (at.other(), n)),
        None => None,
    };
    let is_root = named == Some(ROOT) || !at.inter && part.root == Some((at.side, at.me));
    let inplace = words.one(role.inplace) != 0;
    let mut of = |i: usize| size(words.one(role.count[i]), words.one(role.types[i]));
    let lists = |i: usize| words.list(role.counts[i]);
    let bytes = match rule {
        _ if !takes_part => None,
        Rule::Bcast | Rule::Reduce | Rule::Allreduce | Rule::Scan => Some(of(0)),
        Rule::Gather if role.counts[1] == ABSENT => Some(of(usize::from(is_root))),
        Rule::Scatter if role.counts[0] == ABSENT => Some(of(usize::from(!is_root))),
        Rule::Allgather | Rule::Alltoall if !at.inter => Some(of(1)),
        Rule::ReduceScatter if role.counts[0] == ABSENT => Some(of(0)),
        Rule::Allgatherv if !at.inter => hash(lists(1).iter().map(|n| size(*n, words.one(role.types[1])))),
        Rule::ReduceScatter if !at.inter => hash(lists(0).iter().map(|n| size(*n, words.one(role.types[0])))),
        _ => None,
    };
    part.bytes = bytes.filter(|b| *b >= 0);
    if at.inter {
        return pairs;
    }
    let mut pair = |i: usize, peer: u32, bytes: i64| {
        let tag = i64::MIN + i64::from(part.function.0);
        let (from, to) = if i == 0 { (at.me, peer) } else { (peer, at.me) };
        let channel = Channel { group: at.group, side: 0, from, to, tag };
        pairs.push((End { channel, bytes, sym: part.sym, call: part.call }, i == 1));
    };
    match rule {
        Rule::Alltoallv => {
            let sent = usize::from(inplace);
            for (i, from) in [(0, sent), (1, 1)] {
                let each = event.own_types(from);
                for (peer, (k, n)) in (0u32..).zip(lists(from).iter().enumerate()) {
                    let t = each.get(k).copied().unwrap_or_else(|| words.one(role.types[from]));
                    pair(i, peer, size(*n, t));
                }
            }
        }
        Rule::Gather | Rule::Scatter if role.counts[usize::from(rule == Rule::Gather)] != ABSENT => {
            // What the root names is the list, what the others name is one count.
            let all = usize::from(rule == Rule::Gather);
            let Some((_, root)) = part.root else { return pairs };
            if is_root {
                for (peer, n) in (0u32..).zip(lists(all)) {
                    let own = peer == at.me;
                    if !own {
                        pair(all, peer, size(*n, words.one(role.types[all])));
                    }
                }
            } else {
                pair(1 - all, root, size(words.one(role.count[1 - all]), words.one(role.types[1 - all])));
            }
        }
        _ => {}
    }
    pairs
}

/// A hash of sizes, not negative; `None` if one is not known.
fn hash(sizes: impl Iterator<Item = i64>) -> Option<i64> {
    let mut h = Xxh3::new();
    for size in sizes {
        if size < 0 {
            return None;
        }
        h.update(&size.to_le_bytes());
    }
    i64::try_from(h.digest() >> 1).ok()
}
