//! Counts that are taken for equal although they differ a little.
//!
//! Within a cluster, ranks that are equal in all but counts are compared by the average of each parameter that is a count.
//! In ascending order each rank joins the first group whose *founder*, the lowest in it, it differs from by no more than the
//! tolerance in every parameter, or founds one; so neither drift nor the order of ranks matters. All ranks of a group then
//! have the counts of its lowest rank.
//!
//! Source: Bahmani, Mueller 2014, section 5, where counts within 5 % are equal and the average is kept; the founder rule
//! is our own.

use st_model::num::narrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use st_model::calls::{CallTable, Meaning};
use st_model::groups::{refine, tells_apart};
use st_model::ranklist::RankList;
use st_model::section::{Elastic, Partition, Section};

use crate::cluster::rank_view::View;
use crate::cluster::signature::total;

/// How much counts may differ: in millionths of the larger one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tolerance(u32);

impl Tolerance {
    /// So many millionths, at most a million.
    #[must_use]
    pub const fn from_millionths(n: u32) -> Self {
        Self(if n < 1_000_000 { n } else { 1_000_000 })
    }

    /// In millionths.
    #[must_use]
    pub fn millionths(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Tolerance {
    /// As it is read: `0.01%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:04}", self.0 / 10_000, self.0 % 10_000);
        write!(f, "{}%", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Not a tolerance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a percentage from 0% to 100%")]
pub struct NoTolerance;

impl FromStr for Tolerance {
    type Err = NoTolerance;
    fn from_str(text: &str) -> Result<Self, NoTolerance> {
        let number = text.strip_suffix('%').ok_or(NoTolerance)?;
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || part.len() > 4 || !digits(whole) || !digits(part) {
            return Err(NoTolerance);
        }
        let parts = format!("{part:0<4}").parse::<u32>().or(Err(NoTolerance))?;
        let all = whole.parse::<u32>().ok().and_then(|w| w.checked_mul(10_000)?.checked_add(parts));
        all.filter(|n| *n <= 1_000_000).map(Self).ok_or(NoTolerance)
    }
}

/// An average of counts, exactly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Average {
    pub(crate) sum: u64,
    pub(crate) n: u64,
}

impl Average {
    fn scaled(self, other: Self) -> (u128, u128) {
        (u128::from(self.sum) * u128::from(other.n.max(1)), u128::from(other.sum) * u128::from(self.n.max(1)))
    }
}

impl Ord for Average {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let (a, b) = self.scaled(*other);
        a.cmp(&b).then(self.n.cmp(&other.n))
    }
}

impl PartialOrd for Average {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Tolerance {
    /// Whether two averages differ by no more than the tolerance allows of the larger one.
    pub(crate) fn covers(self, a: Average, b: Average) -> bool {
        let (a, b) = a.scaled(b);
        let allowed =
            a.max(b) / 1_000_000 * u128::from(self.0) + a.max(b) % 1_000_000 * u128::from(self.0) / 1_000_000;
        a.abs_diff(b) <= allowed
    }
    /// The founder of each of a list of vectors, by index.
    pub(crate) fn founders(self, vectors: &[Vec<Average>]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..vectors.len()).collect();
        order.sort_by(|a, b| vectors[*a].cmp(&vectors[*b]).then(a.cmp(b)));
        let mut founders: Vec<usize> = Vec::new();
        let mut out = vec![0; vectors.len()];
        for at in order {
            let near = |f: &&usize| {
                let (a, b) = (&vectors[**f], &vectors[at]);
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.covers(*a, *b))
            };
            out[at] = founders.iter().find(near).copied().unwrap_or_else(|| {
                founders.push(at);
                at
            });
        }
        out
    }
}

/// Where a slot with counts is: thread, symbol, slot.
type SlotIndex = (usize, usize, usize);

/// Unites the ranks of a section whose counts are near each other, and voids the lanes of counts that are replaced.
pub(crate) fn united(section: &mut Section, tolerance: Tolerance, asked: bool) {
    let places = places(section);
    // Ranks by the classes they are in: of all that is no count, and of counts.
    let differing: Vec<SlotIndex> =
        places.iter().copied().filter(|p| values(section, *p).is_some_and(|e| e.streams.len() > 1)).collect();
    if differing.is_empty() {
        return;
    }
    let counted: BTreeSet<u32> =
        differing.iter().filter_map(|p| Some(values(section, *p)?.partition)).collect();
    let others: BTreeSet<u32> = all_partitions(section, &differing, asked).into_iter().collect();
    let rest = refine(&section.ranks, chosen(section, &others));
    let mut together: Vec<RankList> = Vec::new();
    for group in rest {
        let parts = refine(&group, chosen(section, &counted));
        let heads: Vec<u32> = parts.iter().filter_map(RankList::lowest).collect();
        let vectors: Vec<Vec<Average>> =
            heads.iter().map(|r| differing.iter().map(|p| average(section, *p, *r)).collect()).collect();
        let mut joined: BTreeMap<usize, RankList> = BTreeMap::new();
        for (part, founder) in parts.iter().zip(tolerance.founders(&vectors)) {
            joined.entry(founder).or_default().extend(part);
        }
        together.extend(joined.into_values());
    }
    together.sort_by_key(RankList::lowest);
    for place in differing {
        replace(section, place, &together);
    }
}

/// Partitions by number.
fn chosen<'a>(section: &'a Section, numbers: &'a BTreeSet<u32>) -> impl Iterator<Item = &'a Partition> {
    numbers.iter().filter_map(|n| section.partitions.get(usize::try_from(*n).ok()?))
}

/// Slots that are counts.
fn places(section: &Section) -> Vec<SlotIndex> {
    let mut out = Vec::new();
    for (t, thread) in section.threads.iter().enumerate() {
        for (s, (symbol, streams)) in section.symbols.iter().zip(&thread.params).enumerate() {
            let slots = CallTable::builtin().slots(symbol.call).iter().zip(streams).enumerate();
            out.extend(slots.filter(|(_, (slot, _))| slot.meaning == Meaning::Count).map(|(i, _)| (t, s, i)));
        }
    }
    out
}

fn values(section: &Section, (t, s, i): SlotIndex) -> Option<&Elastic> {
    Some(&section.threads.get(t)?.params.get(s)?.get(i)?.values)
}

/// Partitions of all streams but these, and those that tell no ranks apart.
fn all_partitions(section: &Section, but: &[SlotIndex], asked: bool) -> Vec<u32> {
    let mut out = Vec::new();
    for (t, thread) in section.threads.iter().enumerate() {
        out.extend(thread.counts.iter().map(|c| c.partition));
        let params = section.symbols.iter().zip(&thread.params).enumerate();
        for (s, (_, streams)) in params.filter(|(_, (symbol, _))| tells_apart(symbol.call, asked)) {
            for (i, slot) in streams.iter().enumerate() {
                out.extend(slot.lens.as_ref().map(|l| l.partition));
                if !but.contains(&(t, s, i)) {
                    out.push(slot.values.partition);
                }
            }
        }
    }
    out
}

fn average(section: &Section, (t, s, i): SlotIndex, rank: u32) -> Average {
    let view = View { section, rank };
    let Some(thread) = section.threads.get(t) else { return Average { sum: 0, n: 0 } };
    let executions = view.executions(thread).get(s).copied().unwrap_or(0);
    let Some(slot) = thread.params.get(s).and_then(|p| p.get(i)) else { return Average { sum: 0, n: 0 } };
    let n = slot.lens.as_ref().map_or(executions, |l| total(view.stream(l), executions));
    Average { sum: total(view.stream(&slot.values), n), n }
}

/// Gives each group the values of its lowest rank.
fn replace(section: &mut Section, (t, s, i): SlotIndex, groups: &[RankList]) {
    let Some(elastic) = values(section, (t, s, i)).cloned() else { return };
    let mut classes: Vec<(usize, RankList)> = Vec::new();
    let Some(partition) = section.partitions.get(elastic.partition as usize).cloned() else { return };
    let mut changed = false;
    for group in groups {
        let Some(class) = group.lowest().and_then(|r| partition.class_of(r)) else { continue };
        changed |= !group.difference(&partition.classes[class]).is_empty();
        match classes.iter_mut().find(|(c, _)| *c == class) {
            Some((_, ranks)) => ranks.extend(group),
            None => classes.push((class, group.clone())),
        }
    }
    if !changed {
        return;
    }
    classes.sort_by_key(|(_, ranks)| ranks.lowest());
    let streams = classes.iter().filter_map(|(c, _)| elastic.streams.get(*c).cloned()).collect();
    let classes: Vec<RankList> = classes.into_iter().map(|(_, ranks)| ranks).collect();
    let new = Partition { classes };
    let at = section.partitions.iter().position(|p| *p == new).unwrap_or_else(|| {
        section.partitions.push(new);
        section.partitions.len() - 1
    });
    let lane = section.symbols.get(s).and_then(|y| Some(CallTable::builtin().slots(y.call).get(i)?.lane));
    if let Some(thread) = section.threads.get_mut(t) {
        thread.lanes.voided |= lane.map_or(0, |lane| 1 << lane as u8);
        if let Some(slot) = thread.params.get_mut(s).and_then(|p| p.get_mut(i)) {
            slot.values = Elastic { partition: narrow(at), streams, ..elastic };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counts: &[u64]) -> Vec<Vec<Average>> {
        counts.iter().map(|c| vec![Average { sum: *c, n: 1 }]).collect()
    }

    #[test]
    fn founders_are_the_lowest_and_nothing_drifts() {
        let five: Tolerance = "5%".parse().unwrap_or(Tolerance(0));
        assert_eq!(five, Tolerance(50_000));
        // 9526 and 9500 are equal to the paper.
        assert_eq!(five.founders(&of(&[9526, 9500])), [1, 1]);
        // Each differs from the next by 5 %, but the third not from the founder.
        assert_eq!(five.founders(&of(&[100, 105, 110])), [0, 0, 2]);
        assert_eq!(five.founders(&of(&[110, 105, 100])), [0, 2, 2]);
        assert_eq!(five.founders(&of(&[0, 0, 1])), [0, 0, 2]);
    }

    #[test]
    fn tolerances_are_percentages() {
        assert_eq!("0.5%".parse(), Ok(Tolerance(5_000)));
        for text in ["0%", "0.01%", "5%", "100%", "12.3456%"] {
            assert_eq!(text.parse::<Tolerance>().map(|t| t.to_string()), Ok(text.to_owned()));
        }
        for text in ["5", "101%", "-1%", "%", "1.00001%", "x%"] {
            assert_eq!(text.parse::<Tolerance>(), Err(NoTolerance), "{text}");
        }
    }
}
