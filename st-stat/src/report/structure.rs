//! What a program does, as loops and calls.

use std::collections::HashMap;

use st_model::num::saturate;
use st_model::ranklist::RankList;
use st_model::ranklist_notation::plain;
use st_model::section::{NO_SYM, Section, Sym, Thread};
use st_model::sites::CallSites;

use super::data::{Structure, Symbol};
use super::room::Room;
use crate::logical::shape::{Shape, shape};
use crate::profile::Profile;

/// Characters that numbers of ranks may take.
const NAMED: usize = 200;

/// Times of a call: how many, in it and before it, ns.
type Times = (u64, u128, u128);

/// Loops of each thread, those of ranks that do the same as often once, and those of most ranks first; until there is no more room.
pub(super) fn all(sections: &[(Section, Profile)], sites: &CallSites, room: Room) -> Vec<Structure> {
    let mut known: HashMap<Shape, (Vec<u32>, Vec<Times>)> = HashMap::new();
    for (section, _) in sections {
        for (number, thread) in section.threads.iter().enumerate().filter(|(_, t)| !t.ranks.is_empty()) {
            let rank = thread.ranks.lowest().unwrap_or_default();
            let (shape, symbols) = shape(section, sites, number, thread, rank);
            let (ranks, times) =
                known.entry(shape).or_insert_with(|| (Vec::new(), vec![(0, 0, 0); symbols.len()]));
            ranks.extend(thread.ranks.iter());
            times.iter_mut().zip(symbols).for_each(|(sum, sym)| add(sum, thread, sym));
        }
    }
    let mut known: Vec<_> = known.into_iter().collect();
    for (_, (ranks, _)) in &mut known {
        ranks.sort_unstable();
    }
    known.sort_by_key(|(shape, (ranks, _))| {
        (std::cmp::Reverse(ranks.len()), shape.thread, ranks.first().copied())
    });
    let (mut left, mut all) = (room.nodes, Vec::new());
    for (shape, (ranks, times)) in known {
        if left == 0 {
            break;
        }
        let one = shown(&shape, &ranks, &times, sites, left);
        left = left.saturating_sub(one.depth.len());
        all.push(one);
    }
    all
}

fn add((count, inside, before): &mut Times, thread: &Thread, sym: Sym) {
    for sketch in thread.sketches.iter().filter(|s| s.sym == sym) {
        *count += sketch.comm.count;
        *inside += sketch.comm.sum;
        // A thread's first call follows none.
        *before += if sketch.pred == NO_SYM { 0 } else { sketch.compute.sum };
    }
}

fn shown(shape: &Shape, ranks: &[u32], times: &[Times], sites: &CallSites, most: usize) -> Structure {
    let list: RankList = ranks.iter().copied().collect();
    let mut named: String = plain(&list).chars().take(NAMED).collect();
    if named.chars().count() == NAMED {
        named.push('…');
    }
    let nodes = &shape.nodes[..shape.nodes.len().min(most)];
    let call = |((function, site), (count, inside, before)): (&(String, Option<u32>), &Times)| {
        let mean = |sum: u128| (*count > 0).then(|| saturate(sum / u128::from(*count).max(1)));
        Symbol {
            function: function.clone(),
            site: *site,
            place: site.map_or_else(String::new, |site| sites.place(site).to_owned()),
            mean_ns: mean(*inside),
            before_ns: mean(*before),
        }
    };
    Structure {
        ranks: named,
        thread: shape.thread,
        rank: ranks.first().copied().unwrap_or_default(),
        depth: nodes.iter().map(|node| node.depth).collect(),
        runs: nodes.iter().map(|node| node.runs).collect(),
        call: nodes.iter().map(|node| node.call).collect(),
        calls: shape.calls.iter().zip(times).map(call).collect(),
        more: shape.nodes.len() - nodes.len(),
    }
}
