//! What a program does, as loops and calls.

use st_model::num::{Exact as _, saturate};
use st_model::ranklist_notation::plain;
use st_model::section::{Section, Thread};
use st_model::sites::CallSites;
use st_model::tree::Item;

use super::data::{Structure, Symbol};
use super::room::Room;
use crate::calls::{function, site_of};
use crate::profile::Profile;

/// Texts of so many ranks' numbers at most.
const NAMED: usize = 200;

/// That of each thread, those that most ranks have first, until there is no more room.
pub(super) fn all(sections: &[(Section, Profile)], sites: &CallSites, room: Room) -> Vec<Structure> {
    let threads = sections.iter().flat_map(|(s, _)| (0..).zip(&s.threads).map(move |(i, t)| (s, i, t)));
    let mut threads: Vec<_> = threads.filter(|(_, _, t)| !t.ranks.is_empty()).collect();
    threads.sort_by_key(|(_, i, t)| (std::cmp::Reverse(t.ranks.len()), *i, t.ranks.lowest()));
    let (mut left, mut all) = (room.nodes, Vec::new());
    for (section, number, thread) in threads {
        if left == 0 {
            break;
        }
        let one = of((section, sites), number, thread, left);
        left = left.saturating_sub(one.depth.len());
        all.push(one);
    }
    all
}

fn of((section, sites): (&Section, &CallSites), number: usize, thread: &Thread, most: usize) -> Structure {
    let rank = thread.ranks.lowest().unwrap_or_default();
    let runs = section.runs_of(thread, rank);
    let mut text: String = plain(&thread.ranks).chars().take(NAMED).collect();
    if text.chars().count() == NAMED {
        text.push('…');
    }
    let mut out = Structure {
        ranks: text,
        thread: number,
        rank,
        depth: Vec::new(),
        runs: Vec::new(),
        call: Vec::new(),
        calls: Vec::new(),
        more: 0,
    };
    let mut numbers = vec![None; section.symbols.len()];
    let mut ends: Vec<usize> = Vec::new();
    for (node, (item, runs)) in thread.tree.items().iter().zip(runs).enumerate() {
        while ends.last().is_some_and(|end| *end <= node) {
            ends.pop();
        }
        if out.depth.len() == most {
            out.more += 1;
            continue;
        }
        out.depth.push(ends.len());
        out.runs.push(runs);
        out.call.push(match item {
            Item::Body { .. } => {
                ends.push(thread.tree.end_of(node));
                None
            }
            Item::Leaf { sym } => numbers.get_mut(sym.to_usize()).map(|known| {
                *known.get_or_insert_with(|| {
                    out.calls.extend(symbol(section, thread, *sym, sites));
                    out.calls.len() - 1
                })
            }),
        });
    }
    out
}

/// What a symbol stands for, and how long its calls take in the mean.
fn symbol(section: &Section, thread: &Thread, sym: u32, sites: &CallSites) -> Option<Symbol> {
    let of = section.symbols.get(sym.to_usize())?;
    let site = site_of(section, of, sites);
    let (mut count, mut inside, mut before) = (0u64, 0u128, 0u128);
    for sketch in thread.sketches.iter().filter(|s| s.sym == sym) {
        count += sketch.comm.count;
        inside += sketch.comm.sum;
        before += if sketch.pred == st_model::section::NO_SYM { 0 } else { sketch.compute.sum };
    }
    let mean = |sum: u128| (count > 0).then(|| saturate(sum / u128::from(count.max(1))));
    Some(Symbol {
        function: function(of.call, &section.tables),
        site,
        place: site.map_or_else(String::new, |site| sites.place(site).to_owned()),
        mean_ns: mean(inside),
        before_ns: mean(before),
    })
}
