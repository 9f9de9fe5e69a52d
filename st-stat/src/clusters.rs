//! Which ranks behave alike, and what the others do differently.
//!
//! Ranks with equal structure are a main cluster, those of them with equal parameters a sub-cluster, as the trace stores them
//! once st-cluster or a merge has put ranks together; what is not yet, is put into clusters as st-cluster does it. Each is described by the first call in which its
//! lowest rank differs from that of the cluster before it.
//!
//! Source: Bahmani, Mueller 2014: main and sub-clusters, and the space per process of its table 6.

use st_model::num::Exact;
use std::collections::HashMap;

use anyhow::Result;
use st_model::calls::{CallTable, Meaning, Slot};
use st_model::groups::{groups, tells_apart};
use st_model::header::Step;
use st_model::ints::Sealed;
use st_model::project::{Projection, base_word};
use st_model::proof::by_slot;
use st_model::ranklist::RankList;
use st_model::ranklist_notation::{plain, print};
use st_model::section::{Elastic, Section, Sym};
use st_model::sites::CallSites;
use st_model::tree::Item;
use st_reduce::cluster::{Clustering, Options};
use st_reduce::tree::Tree;
use st_stream::json::{bare, word};
use st_stream::{Trace, WriteOptions};

use crate::calls::{called, function};
use crate::table::{Cell, Column, Table};

/// Calls that are compared before two ranks are taken for alike.
const MOST: u64 = 1 << 24;
/// Bytes that a rank is known by: signatures of its call path and its parameters, and a ranklist as the paper has it.
const SIGNATURE: u64 = 16 + 16 + 10;

/// Ranks with equal calls and parameters.
#[derive(Debug)]
pub(crate) struct Sub<'a> {
    section: &'a Section,
    pub(crate) ranks: RankList,
}

/// Ranks with equal calls.
#[derive(Debug, Default)]
pub(crate) struct Main<'a> {
    pub(crate) subs: Vec<Sub<'a>>,
}

/// What two ranks with equal call paths have in common: nodes of the trees, and their counts.
type Structure = (Vec<(u64, u128)>, Vec<Sealed>);

/// Whether a trace was put into clusters by what ranks asked of their own place, too.
pub(crate) fn by_asked(steps: &[Step]) -> bool {
    steps.iter().any(|s| s.tool == "st-cluster" && s.args.iter().any(|a| a == "--asked"))
}

/// The sections as clusters: those of single ranks, which nobody has put into any yet, as st-cluster would do it; told is how many
/// of them are done.
///
/// # Errors
///
/// If ranks occur twice.
pub(crate) fn found(mut sections: Vec<Section>, asked: bool, tell: &dyn Fn(u64)) -> Result<Vec<Section>> {
    if sections.len() < 2 || sections.iter().any(|s| s.ranks.len() != 1) {
        return Ok(sections);
    }
    // Times tell no ranks apart.
    sections.iter_mut().flat_map(|s| &mut s.threads).for_each(|thread| thread.columns.clear());
    let how = Clustering(Options { asked, ..Options::default() });
    let mut tree = Tree::new(how.clone());
    for section in sections {
        tree.push_next(section)?;
        tell(1);
    }
    Ok(how.root(tree.finish()?)?.sections)
}

/// The main clusters, by lowest rank. `asked` as in [`groups`].
pub(crate) fn mains(sections: &[Section], asked: bool) -> Vec<Main<'_>> {
    let mut out: Vec<Main<'_>> = Vec::new();
    let mut known: HashMap<Structure, usize> = HashMap::new();
    for section in sections {
        for group in groups(section, asked) {
            let Some(head) = group.ranks.lowest() else { continue };
            let at = *known.entry(structure(section, head)).or_insert_with(|| {
                out.push(Main::default());
                out.len() - 1
            });
            out[at].subs.extend(group.subs.into_iter().map(|ranks| Sub { section, ranks }));
        }
    }
    out.iter_mut().for_each(|m| m.subs.sort_by_key(|s| s.ranks.lowest()));
    out.sort_by_key(|m| m.subs.first().and_then(|s| s.ranks.lowest()));
    out
}

fn structure(section: &Section, rank: u32) -> Structure {
    let (mut nodes, mut counts) = (Vec::new(), Vec::new());
    for t in section.threads.iter().filter(|t| t.ranks.contains(rank)) {
        nodes.push((u64::MAX, 0));
        for (item, count) in t.tree.items().iter().zip(&t.counts) {
            nodes.push(match item {
                Item::Leaf { sym } => identity(section, *sym),
                Item::Body { below } => (u64::from(*below) | 1 << 48, 0),
            });
            counts.push(count.of_rank(&section.partitions, rank).clone());
        }
    }
    (nodes, counts)
}

/// What a symbol is in any section.
pub(crate) fn identity(section: &Section, sym: Sym) -> (u64, u128) {
    let Some(s) = section.symbols.get(sym as usize) else { return (0, 0) };
    let site = section.sites.get(s.site).map_or(0, |s| s.id);
    (u64::from(s.call.0) | u64::from(s.error) << 16, site)
}

/// A line per sub-cluster. `asked` as in [`groups`].
pub(crate) fn table(mains: &[Main<'_>], asked: bool, sites: &CallSites) -> Result<Table> {
    let columns = vec![
        Column::right("main", "main", 0),
        Column::right("sub", "sub", 0),
        Column::left("", "letter"),
        Column::right("head", "head_rank", 1),
        Column::right("size", "ranks", 0),
        Column::right("share", "share_percent", 2),
        Column::left("ranks", "ranklist"),
        Column::head("unlike the one before", "unlike_before"),
    ];
    let total: u64 = mains.iter().flat_map(|m| &m.subs).map(|s| s.ranks.len()).sum();
    let mut rows = Vec::new();
    let mut before: Option<&Sub<'_>> = None;
    for (i, main) in mains.iter().enumerate() {
        for (k, sub) in main.subs.iter().enumerate() {
            let unlike = match before {
                None => Cell::none(),
                // Main clusters differ in calls, whatever their parameters.
                Some(b) => {
                    let [text, brief] = difference(sub, b, (k > 0).then_some(asked), sites)?;
                    Cell { brief: Some(brief), ..Cell::text(text) }
                }
            };
            let number = |n: usize| Cell::count(n.to_u64());
            rows.push(vec![
                number(i),
                number(k),
                Cell::text(letters(rows.len())),
                Cell::count(sub.ranks.lowest().unwrap_or(0).into()),
                Cell::count(sub.ranks.len()),
                Cell::percent(sub.ranks.len().into(), total.into()),
                Cell::shown(print(&sub.ranks).into(), plain(&sub.ranks)),
                unlike,
            ]);
            before = Some(sub);
        }
        // The next main cluster is compared with this one's first ranks.
        before = main.subs.first();
    }
    Ok(Table { columns, rows, total: None })
}

/// What a sub-cluster is called: a letter or digit, `AA` and so on where these do not suffice.
pub(crate) fn letters(n: usize) -> String {
    let capital = |n: usize| ('A'..='Z').nth(n % 26);
    let single = ('A'..='Z').chain('a'..='z').chain('0'..='9');
    let count = single.clone().count();
    if let Some(one) = single.into_iter().nth(n) {
        return one.to_string();
    }
    // Numbers whose digits are the capitals, from the first with two of these on.
    let digits = std::iter::successors(Some(n - count + 26), |left| (left / 26).checked_sub(1));
    let reversed: Vec<char> = digits.filter_map(capital).collect();
    reversed.into_iter().rev().collect()
}

/// The first call in which the lowest ranks of two clusters differ. `words`: whether parameters are compared, and whether what
/// ranks asked of their own place is. With places and without.
fn difference(
    mine: &Sub<'_>,
    theirs: &Sub<'_>,
    words: Option<bool>,
    sites: &CallSites,
) -> Result<[String; 2]> {
    let (Some(a), Some(b)) = (mine.ranks.lowest(), theirs.ranks.lowest()) else {
        return Ok(Default::default());
    };
    let threads = mine.section.threads.len().max(theirs.section.threads.len());
    let mut left = MOST;
    for thread in 0..threads {
        let calls = (mine.section.project(thread, a), theirs.section.project(thread, b));
        let (Some(x), Some(y)) = calls else { return Ok([(); 2].map(|()| format!("thread {thread}"))) };
        let sides = [(mine.section, a), (theirs.section, b)];
        let mut pair = Pair { sides, words, left: &mut left };
        if let Some(text) = pair.first(x, y, sites)? {
            return Ok(text);
        }
    }
    let what = if left == 0 { "nothing in the first calls" } else { "the order in which values come" };
    Ok([what; 2].map(str::to_owned))
}

/// What is said of two calls, with their places and, where there is little room, by their functions, or the call sites of one.
fn both(at: u64, mine: &Named, theirs: &Named) -> [String; 2] {
    let say = |a: &str, b: &str| format!("call {at}: {a}, not {b}");
    let brief = match (mine.site, theirs.site) {
        _ if mine.function != theirs.function => say(&mine.function, &theirs.function),
        (Some(a), Some(b)) => say(&format!("{} site {a}", mine.function), &b.to_string()),
        _ => say(&mine.placed, &theirs.placed),
    };
    [say(&mine.placed, &theirs.placed), brief]
}

/// What a call is called.
struct Named {
    /// With the place that it is called from.
    placed: String,
    function: String,
    site: Option<u32>,
}

/// Two ranks that are compared.
struct Pair<'a, 'b> {
    sides: [(&'a Section, u32); 2],
    /// Whether parameters are compared, and whether what ranks asked of their own place is.
    words: Option<bool>,
    left: &'b mut u64,
}

impl Pair<'_, '_> {
    fn first(
        &mut self,
        mut x: Projection<'_>,
        mut y: Projection<'_>,
        sites: &CallSites,
    ) -> Result<Option<[String; 2]>> {
        let (mut v, mut w) = (Vec::new(), Vec::new());
        while *self.left > 0 {
            *self.left -= 1;
            let at = x.index() + 1;
            let calls = [x.next_call(&mut v)?, y.next_call(&mut w)?];
            let [Some(a), Some(b)] = calls else {
                let end = || Named { placed: "the end".into(), function: "the end".into(), site: None };
                let name = |k: usize| calls[k].map_or_else(end, |s| self.name(k, s, sites));
                let differ = || both(at, &name(0), &name(1));
                return Ok(calls.iter().any(Option::is_some).then(differ));
            };
            if identity(self.sides[0].0, a) != identity(self.sides[1].0, b) {
                return Ok(Some(both(at, &self.name(0, a, sites), &self.name(1, b, sites))));
            }
            if self.words.is_some_and(|asked| self.tells_apart(a, asked))
                && let Some((slot, mine, theirs)) = self.first_word((a, &v), (b, &w))
            {
                let Named { placed, function, .. } = self.name(0, a, sites);
                let differ = format!("{slot} {mine}, not {theirs}");
                // Its end is what is cut off where even this has no room.
                return Ok(Some([format!("{placed}: {differ}"), format!("{differ}: {function}")]));
            }
        }
        Ok(None)
    }

    fn tells_apart(&self, sym: Sym, asked: bool) -> bool {
        self.sides[0].0.symbols.get(sym as usize).is_some_and(|s| tells_apart(s.call, asked))
    }

    /// What the calls of a symbol are called.
    fn name(&self, side: usize, sym: Sym, sites: &CallSites) -> Named {
        let section = self.sides[side].0;
        let Some(s) = section.symbols.get(sym as usize) else {
            return Named { placed: String::new(), function: String::new(), site: None };
        };
        let site = section.sites.get(s.site).and_then(|site| sites.number(site.id));
        Named { placed: called(section, s, sites), function: function(s.call, &section.tables), site }
    }

    /// The first slot in which two calls of the same kind differ, and what either has there.
    fn first_word(&self, a: (Sym, &[i64]), b: (Sym, &[i64])) -> Option<(String, String, String)> {
        let call = self.sides[0].0.symbols.get(a.0 as usize)?.call;
        let slots = CallTable::builtin().slots(call);
        let both = by_slot(slots, a.1).zip(by_slot(slots, b.1));
        for ((i, slot), (mine, theirs)) in slots.iter().enumerate().zip(both) {
            if slot.meaning == Meaning::Times || !self.apart((a.0, b.0), i) {
                continue;
            }
            let shown = |side: usize, words: &[i64], all: &[i64]| {
                let texts = words.iter().map(|w| self.shown(side, call, slot, slots, *w, all));
                texts.collect::<Vec<_>>().join(" ")
            };
            let (x, y) = (shown(0, mine, a.1), shown(1, theirs, b.1));
            if x != y {
                return Some((slot.name.clone(), x, y));
            }
        }
        None
    }

    /// Whether a slot is stored differently for the two ranks.
    fn apart(&self, syms: (Sym, Sym), slot: usize) -> bool {
        let [(section, a), (other, b)] = self.sides;
        if !std::ptr::eq(section, other) {
            return true;
        }
        let apart = |e: &Elastic| {
            let p = section.partitions.get(e.partition as usize);
            p.is_some_and(|p| p.class_of(a) != p.class_of(b))
        };
        let of = |sym: Sym| section.threads.iter().filter_map(move |t| t.params.get(sym as usize)?.get(slot));
        of(syms.0).chain(of(syms.1)).any(|s| s.lens.as_ref().is_some_and(apart) || apart(&s.values))
    }

    /// A word for people: peers relative to the own rank, objects by name.
    fn shown(
        &self,
        side: usize,
        call: st_model::calls::CallId,
        slot: &Slot,
        slots: &[Slot],
        w: i64,
        all: &[i64],
    ) -> String {
        let (section, rank) = self.sides[side];
        if slot.meaning == Meaning::Rank && w >= 0 {
            let me = section.own(base_word(slots, all), rank).unwrap_or_default().me;
            return format!("me{:+}", w - me);
        }
        if let Meaning::Ref(object) = slot.meaning {
            return section.tables.label(object, w, rank).unwrap_or_else(|| "null".into());
        }
        CallTable::builtin().get(call).map_or_else(|| w.to_string(), |row| bare(&word(row, slot, w)))
    }
}

/// Space per process of clustering and of none, in the form of the paper's table 6.
pub(crate) fn space(mains: &[Main<'_>], sections: &[Section]) -> Result<Table> {
    let ranks: u64 = mains.iter().flat_map(|m| &m.subs).map(|s| s.ranks.len()).sum();
    let subs: u64 = mains.iter().map(|m| m.subs.len().to_u64()).sum();
    let main = mains.len().to_u64();
    let mut bytes = 0u64;
    for s in sections {
        let alone = representative(s);
        let mut out = Vec::new();
        let trace = Trace { sections: vec![alone], ..Trace::default() };
        st_stream::write(&trace, &mut out, WriteOptions { level: 0 })?;
        bytes += out.len().to_u64();
    }
    let many = sections.len().to_u64().max(1);
    let [p, t, s, n] = [ranks, bytes / many, SIGNATURE, main + subs].map(u128::from);
    let ours = (p * s + t * u128::from(main.saturating_sub(1)) + s * n * p.saturating_sub(1)) / p.max(1);
    let none = t * p.saturating_sub(1) / p.max(1);
    let columns = vec![
        Column::right("ranks", "ranks", 0),
        Column::right("trace", "trace_bytes", 0),
        Column::right("signature", "signature_bytes", 0),
        Column::right("main", "main", 0),
        Column::right("sub", "sub", 0),
        Column::right("clustered", "clustered_bytes", 0),
        Column::right("not", "unclustered_bytes", 0),
    ];
    let row = vec![
        Cell::count(ranks),
        Cell::bytes(t),
        Cell::bytes(s),
        Cell::count(main),
        Cell::count(subs),
        Cell::bytes(ours),
        Cell::bytes(none),
    ];
    Ok(Table { columns, rows: vec![row], total: None })
}

/// What one rank of a section would hold in memory: without exact times and what is kept per rank.
fn representative(section: &Section) -> Section {
    let mut out = section.clone();
    for t in &mut out.threads {
        t.columns.clear();
        t.sums.clear();
    }
    out
}
