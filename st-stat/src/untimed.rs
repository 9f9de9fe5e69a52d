//! What is said of traces without exact times.

use std::collections::BTreeSet;
use std::io::{self, Write};

use st_cli::{counted, grouped};
use st_model::header::{Header, SPENT};
use st_model::num::Exact as _;
use st_model::section::{Section, Thread};

use crate::table::{self, Cell, duration};

/// What to do where who waits for whom cannot be told.
pub(crate) const NO_TIMES: &str = "the trace holds no exact times: record without --merge (or st-merge --keep-columns), with --time columns";

/// The same, where what has been kept of them would do.
pub(crate) const NOTHING_KEPT: &str = "the trace holds no exact times, and nothing that was kept of waits: record without --merge, with --time columns (st-merge keeps what they tell, without --waits never)";

/// Why exact times that were recorded are not there, if the trace says so.
fn spent(header: &Header) -> Option<String> {
    let bytes = header.time_budget();
    let threads = header.options.get(SPENT).and_then(|v| v.as_u64());
    let Some(threads) = threads else {
        return (bytes == Some(0)).then(|| "recorded with --time-budget 0".to_owned());
    };
    let budget = bytes.map_or_else(String::new, |n| format!(" of {} per rank", table::bytes(n)));
    Some(format!(
        "those of {} ended early, since st-record's --time-budget{budget} was spent, and merging has folded what there was: record with a \
         larger --time-budget",
        counted(threads, "thread")
    ))
}

/// Why exact times are not there, and what to do, if the trace says so.
pub(crate) fn why(header: &Header) -> Option<String> {
    unrecorded(header).or_else(|| spent(header))
}

/// What is said where exact times are not there.
pub(crate) fn without(otherwise: &str, header: &Header) -> String {
    why(header).map_or_else(|| otherwise.to_owned(), |why| format!("the trace holds no exact times: {why}"))
}

/// What is said where only some ranks have exact times, by which all that follows is told.
pub(crate) fn partly(sections: &[Section]) -> Option<String> {
    let threads = || sections.iter().flat_map(|s| &s.threads);
    // Of most traces the numbers say it.
    if threads().all(|t| t.columns.len().to_u64() >= t.ranks.len()) {
        return None;
    }
    let of_thread = |t: &Thread| {
        let timed: BTreeSet<u32> = t.columns.iter().map(|(rank, _)| *rank).collect();
        t.ranks.iter().filter(|rank| !timed.contains(rank)).collect::<Vec<_>>()
    };
    let untimed: BTreeSet<u32> = threads().flat_map(of_thread).collect();
    let (untimed, all) = (untimed.len().to_u64(), sections.iter().map(|s| s.ranks.len()).sum());
    Some(format!(
        "exact times of {} of {} are not in the trace: nothing is told of when these did what, nor of how others waited for them \
         (--keep-columns of st-cluster and st-merge keeps them)",
        grouped(untimed),
        counted(all, "rank")
    ))
}

/// Why no exact times were recorded, and what to do, if the trace says so.
fn unrecorded(header: &Header) -> Option<String> {
    let kept = header.options.get("time")?.as_str().filter(|kept| *kept != "columns")?;
    // Interim reductions leave sketches, whatever is asked for.
    let reduced = if kept == "sketch" { ", without --reduce-every" } else { "" };
    Some(format!("recorded with --time {kept}: record with --time columns{reduced}"))
}

/// The part of a rank's total by which ranks that are alike differ at most: merging keeps these to 1 %.
const ALIKE: u64 = 50;

/// What per-rank sums tell: of each rank its time and how long it computes, ns.
pub(crate) fn without_times(
    header: &Header,
    ranks: &[(u32, u64, u64)],
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "The trace holds no exact times: who waits for whom cannot be told.")?;
    let usual = || {
        "st-record without --merge keeps them; st-merge then keeps what they tell, unless --waits never."
            .to_owned()
    };
    writeln!(out, "({})", why(header).unwrap_or_else(usual))?;
    let sum: u64 = ranks.iter().map(|(_, _, computed)| computed).sum();
    let mean = sum / ranks.len().to_u64().max(1);
    let Some((_, whole, most)) = ranks.iter().copied().max_by_key(|r| r.2) else { return Ok(()) };
    if whole == 0 {
        return writeln!(out, "It holds no times at all.");
    }
    let more = most.saturating_sub(mean);
    let shown = duration(more);
    if more <= whole / 100 {
        return writeln!(out, "\nranks compute equally long (the longest {shown} above the mean)");
    }
    let share = Cell::percent(more.into(), whole.into()).text;
    let longest: Vec<u32> = ranks.iter().filter(|r| most - r.2 <= most / ALIKE).map(|r| r.0).collect();
    let (who, verb, its) = match longest.len() {
        1 => (table::ranks(&longest), "computes", "its"),
        _ => (table::ranks(&longest), "compute", "their"),
    };
    writeln!(out, "\nimbalance: {who} {verb} {shown} longer than the mean, {share} of {its} time")
}

#[cfg(test)]
mod tests {
    use super::*;
    use st_kernels::{Kernel, Options, paper};
    use st_reduce::merge::merge;

    #[test]
    fn ranks_that_are_alike_are_named_together() {
        let said = |ranks: &[(u32, u64, u64)]| {
            let mut out = Vec::new();
            without_times(&Header::default(), ranks, &mut out).unwrap();
            String::from_utf8(out).unwrap().lines().last().unwrap().to_owned()
        };
        let of = |computed: &[u64]| {
            (0..).zip(computed).map(|(rank, ns)| (rank, 1_000_000, *ns)).collect::<Vec<_>>()
        };
        // Of each rank's total a hundredth is not kept.
        assert_eq!(
            said(&of(&[400_000, 798_000, 400_000, 800_000])),
            "imbalance: ranks 1, 3 compute 201 µs longer than the mean, 20.1 % of their time"
        );
        assert_eq!(
            said(&of(&[400_000, 400_000, 400_000, 800_000])),
            "imbalance: rank 3 computes 300 µs longer than the mean, 30.0 % of its time"
        );
        assert_eq!(said(&of(&[400_000; 4])), "ranks compute equally long (the longest 0 ns above the mean)");
    }

    #[test]
    fn ranks_without_times_beside_others_with_are_told() {
        let options = Options { steps: Some(2), ..Options::default() };
        let ranks: Vec<Section> =
            paper::sections(Kernel::Stencil1d, &options, 4).map(Result::unwrap).collect();
        assert_eq!(partly(&ranks), None);
        let mut merged = merge(ranks, true).unwrap();
        assert_eq!(partly(std::slice::from_ref(&merged)), None);
        merged.threads[0].columns.retain(|(rank, _)| *rank == 2);
        let told = partly(std::slice::from_ref(&merged)).unwrap();
        assert!(told.starts_with("exact times of 3 of 4 ranks are not in the trace: "), "{told}");
    }
}
