//! How the control of a merged trace is laid out: as the elastic master, or as lists side by side, whichever is smaller.

use st_trace::lanes::LaneSum;
use st_trace::ranklist::RankList;
use st_trace::section::{Section, Thread};
use st_trace::stream::structure_size;
use st_trace::unite::Partitions;

use super::lists::{lists, may_differ};
use super::master::Control;
use super::merger::{first_appearance, renumbered};

/// How control is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// In the way that takes fewer bytes
    #[default]
    Smaller,
    /// As the elastic master
    Aligned,
    /// As lists side by side, if ranks have different ones that do not take too long to read
    Lists,
}

/// What lists must save: their size alone is not quite what they add to that of a trace. Bytes, and one in so many.
const SAVED: (usize, usize) = (16, 64);

/// The threads' control laid out so, and the partitions of its counts. `masters` have theirs in `partitions`.
pub(super) fn laid_out(
    layout: Layout,
    masters: Vec<Control>,
    partitions: Partitions,
    (ranks, threads): (&RankList, &[&RankList]),
) -> (Vec<Control>, Partitions) {
    if layout == Layout::Aligned || !masters.iter().any(may_differ) {
        return (masters, partitions);
    }
    let mut others = Partitions::new(ranks.clone());
    let mut several = false;
    let found: Option<Vec<Control>> = (masters.iter().zip(threads))
        .map(|(master, ranks)| {
            let (control, found) = lists(master, partitions.list(), ranks, &mut others)?;
            several |= found > 1;
            Some(control)
        })
        .collect();
    match found.filter(|_| several) {
        Some(lists) if layout == Layout::Lists => (lists, others),
        Some(lists) if is_worth(&lists, &others, (&masters, &partitions), ranks) => (lists, others),
        _ => (masters, partitions),
    }
}

fn is_worth(
    lists: &[Control],
    others: &Partitions,
    (masters, partitions): (&[Control], &Partitions),
    ranks: &RankList,
) -> bool {
    let (bytes, part) = SAVED;
    let aligned = size(masters, partitions, ranks);
    size(lists, others, ranks) + bytes + aligned / part < aligned
}

/// Bytes that control takes in a file, without anything else.
fn size(control: &[Control], partitions: &Partitions, ranks: &RankList) -> usize {
    let (_, numbers) = first_appearance(control.iter().map(|(tree, _)| tree), 0);
    let number = |sym| numbers.get(&sym).copied().unwrap_or(sym);
    let thread = |(tree, counts): &Control| Thread {
        ranks: ranks.clone(),
        tree: renumbered(tree, number),
        counts: counts.clone(),
        params: Vec::new(),
        lanes: LaneSum::default(),
        sketches: Vec::new(),
        sums: Vec::new(),
        columns: Vec::new(),
    };
    structure_size(&Section {
        ranks: ranks.clone(),
        partitions: partitions.list().to_vec(),
        threads: control.iter().map(thread).collect(),
        ..Section::default()
    })
}
