//! One rank that computes longer in the second run, while the others do not: its place as a whole is alike, and all wait for it elsewhere. Of
//! many ranks only sums of neighbours are known: then it is these that are named.

use st_model::num::{Exact as _, float, rounded};
use st_model::sites::CallSites;

use crate::table::{duration, ranks};

/// So many times as much as that of any other rank its change is at least.
const ALONE: f64 = 4.0;

/// Less than so many percent of its own time is no change, and less than this share of the run is not worth a word.
const LEAST_PERCENT: f64 = 5.0;
const LEAST_OF_RUN: f64 = 0.01;

/// More than so many percent say only that it was next to nothing before.
const MOST_PERCENT: f64 = 1_000.0;

/// Other ranks that show what is usual.
const OTHERS: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct Alone {
    /// The rank, or those of the group in which it is.
    ranks: Vec<u32>,
    /// How much longer it computes, ns, and in percent of a rank's time there.
    pub(super) more: f64,
    percent: f64,
    /// By how much the time of others changes at most, ns.
    others: f64,
    function: String,
    site: Option<u32>,
}

/// How long ranks compute before a place in both runs, in the mean of each group, ns.
pub(super) struct Before<'a> {
    pub(super) ranks: &'a [u32],
    /// How many of them, in their order, are in each group.
    pub(super) groups: &'a [u64],
    pub(super) times: [Vec<f64>; 2],
    pub(super) function: &'a str,
    pub(super) site: Option<u32>,
}

impl Alone {
    /// Before a place; `run`: how long the second run is, ns.
    pub(super) fn of(before: &Before<'_>, run: f64) -> Option<Self> {
        let [first, second] = &before.times;
        let sums = first.iter().zip(second).zip(before.groups);
        let mut changes: Vec<(f64, usize)> =
            sums.map(|((x, y), n)| (y - x) * float((*n).into())).zip(0..).collect();
        changes.sort_by(|(x, _), (y, _)| y.total_cmp(x));
        let (&(more, at), rest) = changes.split_first().filter(|(_, rest)| rest.len() >= OTHERS)?;
        let others = rest.iter().map(|(change, _)| change.abs()).fold(0.0, f64::max);
        let from = before.groups.get(..at)?.iter().map(|n| n.to_usize()).sum::<usize>();
        let ranks =
            before.ranks.get(from..)?.iter().take(before.groups.get(at)?.to_usize()).copied().collect();
        let usual = *first.get(at)?;
        let percent = 100.0 * more / usual.max(1.0);
        let matters = percent >= LEAST_PERCENT && more >= LEAST_OF_RUN * run && more >= ALONE * others;
        let (function, site) = (before.function.to_owned(), before.site);
        matters.then_some(Self { ranks, more, percent, others, function, site })
    }

    /// In a line.
    pub(super) fn told(&self, sites: &CallSites) -> String {
        let Self { ranks: who, more, percent, others, function, site } = self;
        let place = site.map_or_else(String::new, |site| format!(" ({})", sites.describe(site)));
        let [more, others] = [*more, *others].map(|ns| duration(rounded(ns)));
        // Of next to nothing it is no part, nor of several ranks.
        let part = match who.len() {
            1 if *percent <= MOST_PERCENT => format!(" ({percent:+.1} %)"),
            _ => String::new(),
        };
        let (compute, together, others_of) = match who.len() {
            1 => ("computes", "", "others"),
            _ => ("compute", "together ", "as many others"),
        };
        let who = ranks(who);
        format!(
            "{who} {compute} {more} {together}longer before {function}{place}{part}, where {others_of} change by {others} at most: what \
             is longer in calls may be waiting for {}",
            if together.is_empty() { "it" } else { "one of them" }
        )
    }
}
