//! How the control of a merged trace is laid out: as the elastic master, or as lists side by side, whichever is smaller.

use st_model::lanes::LaneSum;
use st_model::ranklist::RankList;
use st_model::section::{Section, Thread};
use st_model::unite::Partitions;
use st_stream::structure_size;

use super::lists::{lists, may_differ};
use super::master::Control;
use super::renumber::{first_appearance, renumbered};

/// How control is laid out. Traces always have the smaller layout; tests ask for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// In the way that takes fewer bytes.
    #[default]
    Smaller,
    /// As the elastic master.
    Aligned,
    /// As lists side by side, if ranks have different ones that do not take too long to read.
    Lists,
}

/// What lists must save: their size alone is not quite what they add to that of a trace. Bytes, and one in so many.
const SAVED: (usize, usize) = (16, 64);

/// The control of the threads, and the partitions of its counts.
type Threads = (Vec<Control>, Partitions);

/// The threads' control laid out so. `masters` is the aligned one.
pub(super) fn laid_out(layout: Layout, masters: Threads, ranks: &RankList, threads: &[&RankList]) -> Threads {
    if layout == Layout::Aligned || !masters.0.iter().any(may_differ) {
        return masters;
    }
    let Some((lists, several)) = listed(&masters, true, ranks, threads) else { return masters };
    if layout == Layout::Lists {
        return lists;
    }
    // Lists of ranks in no order cost more to share than to repeat: what repeats is hardly stored.
    let apart = several.then(|| listed(&masters, false, ranks, threads)).flatten().map(|(lists, _)| lists);
    let sized = |control: Threads| (size(&control, ranks), control);
    let smallest = [Some(lists), apart].into_iter().flatten().map(sized).min_by_key(|(size, _)| *size);
    let (bytes, part) = SAVED;
    let aligned = size(&masters, ranks);
    match smallest {
        Some((size, lists)) if size + bytes + aligned / part < aligned => lists,
        _ => masters,
    }
}

/// The threads' lists, and whether some are those of several ranks. `None` if each thread has only one list, or they take
/// too long to read.
fn listed(
    (masters, partitions): &Threads,
    shared: bool,
    ranks: &RankList,
    threads: &[&RankList],
) -> Option<(Threads, bool)> {
    let mut into = Partitions::new(ranks.clone());
    let (mut control, mut differ, mut several) = (Vec::new(), false, false);
    for (master, ranks) in masters.iter().zip(threads) {
        let (lists, found) = lists(master, partitions.list(), ranks, shared, &mut into)?;
        differ |= found > 1;
        several |= (found as u64) < ranks.len();
        control.push(lists);
    }
    differ.then_some(((control, into), several))
}

/// Bytes that control takes in a file, without anything else.
fn size((control, partitions): &Threads, ranks: &RankList) -> usize {
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
        slow: Vec::new(),
        columns: Vec::new(),
    };
    structure_size(&Section {
        ranks: ranks.clone(),
        partitions: partitions.list().to_vec(),
        threads: control.iter().map(thread).collect(),
        ..Section::default()
    })
}
