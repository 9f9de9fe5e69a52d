//! Ranks that do the same in two traces, as what is stored of them says: nobody needs to go through their calls.
//!
//! These are ranks whose trees, counts and parameters are stored in the same way, with the same objects, as in two runs of one program.
//! What is stored otherwise may be the same, too, which the calls tell.

use std::collections::HashMap;

use st_model::calls::words::found_nothing;
use st_model::calls::{CallTable, Meaning, Row};
use st_model::folded::SymbolCalls;
use st_model::num::Exact as _;
use st_model::project::Error;
use st_model::section::{Elastic, Section, Sym, Thread};

use crate::normal::{SiteKeys, times};

/// Different calls of a symbol that are looked at: beyond that, going through all of them is paid for.
const TURNS: usize = 1 << 16;

/// What the calls of a thread come to in normal form, which has them all, if both traces have the same.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Sums {
    pub(super) equal: u64,
    pub(super) failed: u64,
    pub(super) polls: u64,
}

/// Which classes of partitions a rank is in, in either trace.
type Classes = [Vec<Option<usize>>; 2];

/// What is known of ranks.
pub(super) struct Same<'a> {
    sections: [&'a [Section]; 2],
    sites: [Option<&'a SiteKeys>; 2],
    /// By sections: whether they have the same symbols and objects.
    alike: HashMap<[usize; 2], bool>,
    /// By sections, thread and classes: what ranks of these come to, if they do the same.
    known: HashMap<([usize; 2], usize, Classes), Option<Sums>>,
}

impl<'a> Same<'a> {
    pub(super) fn new(sections: [&'a [Section]; 2], sites: [Option<&'a SiteKeys>; 2]) -> Self {
        Self { sections, sites, alike: HashMap::new(), known: HashMap::new() }
    }

    /// What a rank's thread comes to in sections of either trace, by number, if it is known to do the same. *Cost:* by what is stored, once
    /// for all ranks that read the same streams.
    ///
    /// # Errors
    ///
    /// If a list cannot be read back.
    pub(super) fn of(&mut self, of: [usize; 2], thread: usize, rank: u32) -> Result<Option<Sums>, Error> {
        let ([Some(a), Some(b)], sites) = (self.sections(of), self.sites) else { return Ok(None) };
        if !*self.alike.entry(of).or_insert_with(|| alike([a, b], sites)) {
            return Ok(None);
        }
        let threads = [a, b].map(|section| section.threads.get(thread).filter(|t| t.ranks.contains(rank)));
        let [Some(x), Some(y)] = threads else { return Ok(None) };
        let classes = [a, b].map(|s| s.partitions.iter().map(|p| p.class_of(rank)).collect());
        let key = (of, thread, classes);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let found = if same([x, y], &key.2) { sums(a, thread, rank)? } else { None };
        self.known.insert(key, found);
        Ok(found)
    }

    fn sections(&self, of: [usize; 2]) -> [Option<&'a Section>; 2] {
        [self.sections[0].get(of[0]), self.sections[1].get(of[1])]
    }
}

/// Whether sections have the same symbols, at the same call sites if these count, and the same objects.
fn alike([a, b]: [&Section; 2], sites: [Option<&SiteKeys>; 2]) -> bool {
    let symbols = |section: &Section, keys: Option<&SiteKeys>| -> Vec<_> {
        let key = |site| {
            let id = section.sites.get(site).map_or(0, |site| site.id);
            keys.map(|keys| keys.get(&id).copied().unwrap_or(id))
        };
        section.symbols.iter().map(|symbol| (symbol.call, symbol.error, key(symbol.site))).collect()
    };
    symbols(a, sites[0]) == symbols(b, sites[1]) && a.tables == b.tables
}

/// Whether ranks of these classes read the same of both threads.
fn same([a, b]: [&Thread; 2], [of_a, of_b]: &Classes) -> bool {
    let elastic = |x: &Elastic, y: &Elastic| {
        let of = |elastic: &'_ Elastic, classes: &[Option<usize>]| {
            let class = classes.get(elastic.partition.to_usize()).copied().flatten();
            class.and_then(|class| elastic.streams.get(class).cloned())
        };
        x.form == y.form && of(x, of_a) == of(y, of_b)
    };
    let all =
        |x: &[Elastic], y: &[Elastic]| x.len() == y.len() && x.iter().zip(y).all(|(x, y)| elastic(x, y));
    a.tree == b.tree
        && all(&a.counts, &b.counts)
        && a.params.len() == b.params.len()
        && a.params.iter().zip(&b.params).all(|(x, y)| {
            let lens = |x: &Option<Elastic>, y: &Option<Elastic>| match (x, y) {
                (Some(x), Some(y)) => elastic(x, y),
                (x, y) => x.is_none() && y.is_none(),
            };
            let slots = x.iter().zip(y);
            x.len() == y.len()
                && slots.into_iter().all(|(x, y)| lens(&x.lens, &y.lens) && elastic(&x.values, &y.values))
        })
}

/// What a thread's calls come to; `None` if that is not known without going through them.
fn sums(section: &Section, number: usize, rank: u32) -> Result<Option<Sums>, Error> {
    let Some(thread) = section.threads.get(number) else { return Ok(None) };
    let mut all = Sums::default();
    for (sym, calls) in (0..).zip(section.calls_of(thread, rank)).filter(|(_, calls)| *calls > 0) {
        if calls == u64::MAX {
            return Ok(None);
        }
        let Some(symbol) = section.symbols.get(Sym::to_usize(sym)) else { return Ok(None) };
        let row = CallTable::builtin().get(symbol.call).filter(|row| decides(row).next().is_some());
        let Some(row) = row else {
            let into = if symbol.error != 0 { &mut all.failed } else { &mut all.equal };
            *into = into.saturating_add(calls);
            continue;
        };
        let of = SymbolCalls { rank, thread: number, sym, calls };
        let Some(mut read) = section.folded(of, |slot| decides(row).any(|at| at == slot)) else {
            return Ok(None);
        };
        let mut left = TURNS;
        while let Some((event, turns)) = read.next_call()? {
            let Some(less) = left.checked_sub(1) else { return Ok(None) };
            left = less;
            let words = &event.words().words;
            let made = times(&row.slots, words).saturating_mul(turns);
            let into = match symbol.error {
                0 if found_nothing(row, words) => &mut all.polls,
                0 => &mut all.equal,
                _ => &mut all.failed,
            };
            *into = into.saturating_add(made);
        }
    }
    Ok(Some(all))
}

/// Slots that say how many calls an event is, or whether it has found anything.
fn decides(row: &Row) -> impl Iterator<Item = usize> {
    let meant = |slot: &st_model::calls::Slot| match slot.meaning {
        Meaning::Times => true,
        Meaning::Flag | Meaning::Position => row.properties.poll,
        _ => false,
    };
    row.slots.iter().enumerate().filter(move |(_, slot)| meant(slot)).map(|(at, _)| at)
}
