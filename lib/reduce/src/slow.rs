//! What merging keeps of the order in which ranks were slow: from exact times, where these are folded.
//!
//! Of the computation before each event that varies so much that it matters, durations are put into two or three classes. If it takes
//! few bytes to tell the class of each rank at each step, that is kept; else, if ranks are slow in a pattern that comes back, the
//! pattern; else how often they are slow together, which is all that there is to know where they are slow by chance.
//!
//! *Cost:* a pass over all calls; eight bytes for each call whose computation matters. What is looked at of a pattern is bounded.
//!
//! Source: our own; classes by the variance between them (Otsu 1979).

use std::collections::BTreeMap;

use st_model::num::{Exact, float, narrow, rounded, saturate};
use st_model::project::Error;
use st_model::section::{NO_SYM, Section, Sym, Thread};
use st_model::slow::{How, MOST, Slow, Steps, WHOLE};

/// What computation before an event varies by in all matters from this part of all ranks' time on.
const MATTERS: f64 = 0.02;
/// Bytes before compression: of one event, and of all of a thread, patterns aside that take few.
const SITE: usize = 160;
const ALL: usize = 480;
const FEW: usize = 32;
/// Classes beyond the first, and the part of the variance that is between classes from which on no more are made.
const LIMITS: usize = 2;
const EXPLAINED: f64 = 0.9;
/// Steps after which a pattern may come back, ranks and steps that it is looked for in, and patterns that are tried.
const PERIOD: usize = 1024;
const LOOKED_AT: usize = 16;
const SLOW: usize = 2048;
const TRIED: usize = 32;
/// The part of what is slow that a pattern must have.
const COVERED: f64 = 0.6;
/// From which correlation on, of ranks beside each other within few steps, chance does not tell the order.
const CORRELATED: f64 = 0.2;

/// How long ranks computed before the calls of an event, by rank, ns.
type Rows = Vec<Vec<u64>>;

/// Order that is not kept.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lost {
    /// The event.
    pub sym: Sym,
    /// What the computation before it varies by, as part of all ranks' time.
    pub part: f64,
}

/// Keeps in which order ranks were slow, of threads whose calls all have exact times. Returns what takes too much room.
///
/// # Errors
///
/// If the section is malformed.
pub fn keep_slow(section: &mut Section) -> Result<Vec<Lost>, Error> {
    let mut lost = Vec::new();
    for thread in 0..section.threads.len() {
        let Some(rows) = computed(section, thread)? else { continue };
        let t = &mut section.threads[thread];
        let run = run(t);
        let mut rows: Vec<_> = rows.into_iter().map(|(sym, rows)| (sym, varies(&rows) / run, rows)).collect();
        rows.retain(|(_, part, _)| *part >= MATTERS);
        rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut left = ALL;
        for (sym, part, rows) in rows {
            let Some((how, told)) = told(&rows, SITE.min(left.max(FEW))) else { continue };
            if let How::Steps(steps) = &how {
                left = left.saturating_sub(steps.size());
            }
            t.slow.push(Slow { sym, how });
            lost.extend((!told).then_some(Lost { sym, part }));
        }
        t.slow.sort_by_key(|slow| slow.sym);
    }
    Ok(lost)
}

/// All ranks' time, ns.
fn run(t: &Thread) -> f64 {
    let paths = t.sketches.iter().filter(|s| s.pred != NO_SYM);
    paths.map(|s| float(s.compute.sum) + float(s.comm.sum)).sum::<f64>().max(1.0)
}

/// Events whose computation may matter.
fn candidates(t: &Thread) -> BTreeMap<Sym, Rows> {
    let mut all: BTreeMap<Sym, f64> = BTreeMap::new();
    for path in t.sketches.iter().filter(|s| s.pred != NO_SYM) {
        let of = &path.compute;
        *all.entry(path.sym).or_default() += float(of.count.into()) * float(of.variance()).sqrt();
    }
    let least = MATTERS * run(t);
    // Calls after different calls may differ by more than each of them varies.
    all.retain(|_, deviation| *deviation >= least / 2.0);
    let ranks = saturate::<usize>(t.ranks.len());
    all.into_keys().map(|sym| (sym, vec![Vec::new(); ranks])).collect()
}

/// How long ranks computed before their calls, by event and rank; `None` if not all calls have exact times.
fn computed(section: &Section, thread: usize) -> Result<Option<BTreeMap<Sym, Rows>>, Error> {
    let Some(t) = section.threads.get(thread) else { return Ok(None) };
    let mut rows = candidates(t);
    if t.ranks.len() < 2 || t.columns.len().to_u64() != t.ranks.len() || rows.is_empty() {
        return Ok(None);
    }
    let mut words = Vec::new();
    for (place, (rank, column)) in t.columns.iter().enumerate() {
        let Some(mut calls) = section.project(thread, *rank) else { return Ok(None) };
        let (mut times, mut last) = (column.times(), None);
        while let Some(sym) = calls.next_call(&mut words)? {
            let Some((enter, exit)) = times.next() else { return Ok(None) };
            if let Some(row) = rows.get_mut(&sym).and_then(|rows| rows.get_mut(place)) {
                let gap = last.map_or(0, |last: i64| enter.saturating_sub(last));
                row.push(saturate(gap));
            }
            last = Some(exit);
        }
    }
    Ok(Some(rows))
}

fn mean_of(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = float(values.clone().count().max(1).to_u64().into());
    let mean = values.clone().sum::<f64>() / n;
    (mean, values.map(|v| (v - mean).powi(2)).sum::<f64>() / n)
}

fn ns(value: u64) -> f64 {
    float(value.into())
}

/// By how much ranks' durations are off the rank's mean, in all.
fn varies(rows: &[Vec<u64>]) -> f64 {
    let of = |row: &Vec<u64>| float(row.len().to_u64().into()) * mean_of(row.iter().map(|v| ns(*v))).1.sqrt();
    rows.iter().map(of).sum()
}

/// What is told of durations by rank in so many bytes, and whether that is all that matters.
fn told(rows: &[Vec<u64>], most: usize) -> Option<(How, bool)> {
    let limits = limits(rows);
    let mut classes = Vec::new();
    for n in (1..=limits.len()).rev() {
        // Those that were found first are between what differs most.
        let mut limits = limits[..n].to_vec();
        limits.sort_unstable();
        classes = classified(rows, &limits);
        let number: usize = classes.iter().flatten().filter(|class| **class > 0).count();
        if number.to_u64() <= MOST {
            let steps = Steps::new(limits.clone(), &classes);
            if steps.size() <= most && steps.steps <= MOST {
                return Some((How::Steps(steps), true));
            }
        }
        let pattern = pattern(&classes).map(|pattern| Steps::new(limits, &pattern));
        if let Some(steps) = pattern.filter(|steps| steps.size() <= most) {
            return Some((How::Steps(steps), true));
        }
    }
    let apart = apart(rows, &classes)?;
    Some((How::Chance(chance(&apart)), !is_correlated(&apart)))
}

/// Where classes of durations begin, the most important first.
fn limits(rows: &[Vec<u64>]) -> Vec<u64> {
    let mut values: Vec<u64> = rows.iter().flatten().copied().collect();
    values.sort_unstable();
    let mut sums = vec![(0.0, 0.0)];
    for value in &values {
        let (sum, squares) = sums.last().copied().unwrap_or_default();
        sums.push((sum + ns(*value), squares + ns(*value).powi(2)));
    }
    let off = |from: usize, to: usize| {
        let (sum, squares) = (sums[to].0 - sums[from].0, sums[to].1 - sums[from].1);
        (squares - sum * sum / float((to - from).max(1).to_u64().into())).max(0.0)
    };
    let whole = off(0, values.len());
    let (mut cuts, mut limits) = (vec![0, values.len()], Vec::new());
    let mut rest = whole;
    while limits.len() < LIMITS && rest > (1.0 - EXPLAINED) * whole {
        let mut best = (0.0, 0);
        for pair in cuts.windows(2) {
            let all = off(pair[0], pair[1]);
            for at in pair[0] + 1..pair[1] {
                let gain = all - off(pair[0], at) - off(at, pair[1]);
                if values[at] > values[at - 1] && gain > best.0 {
                    best = (gain, at);
                }
            }
        }
        if best.1 == 0 {
            break;
        }
        rest -= best.0;
        cuts.push(best.1);
        cuts.sort_unstable();
        let (below, from) = (values[best.1 - 1], values[best.1]);
        // In the middle by ratio: what a sketch says is a little off.
        let middle = rounded((ns(below).max(1.0) * ns(from)).sqrt());
        limits.push(middle.clamp(below + 1, from));
    }
    limits
}

/// The classes of durations, of each rank as many.
fn classified(rows: &[Vec<u64>], limits: &[u64]) -> Vec<Vec<u8>> {
    let steps = rows.iter().map(Vec::len).max().unwrap_or(0);
    let row = |row: &Vec<u64>| {
        let mut classes: Vec<u8> = row.iter().map(|ns| Steps::class(limits, *ns)).collect();
        classes.resize(steps, 0);
        classes
    };
    rows.iter().map(row).collect()
}

/// The class that is most common, the lower one of two.
fn common(classes: impl Iterator<Item = u8>) -> u8 {
    let mut counts = [0_u64; LIMITS + 1];
    for class in classes {
        if let Some(count) = counts.get_mut(usize::from(class)) {
            *count += 1;
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    saturate(counts.iter().position(|count| *count == most).unwrap_or(0))
}

/// The steps at which a rank is not of its own common class, with its class.
fn unusual(row: &[u8]) -> impl Iterator<Item = (usize, u8)> + '_ {
    let usual = common(row.iter().copied());
    row.iter().copied().enumerate().filter(move |(_, class)| *class != usual)
}

/// The classes of the steps after which all begins anew, if most of what is slow does.
fn pattern(classes: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let steps = classes.first().map_or(0, Vec::len);
    let every = classes.len().div_ceil(LOOKED_AT).max(1);
    let some: Vec<&Vec<u8>> = classes.iter().step_by(every).collect();
    let mut scores = Vec::new();
    for period in 1..=PERIOD.min(steps / 3) {
        let (mut again, mut all) = (0_u64, 0_u64);
        for row in &some {
            for (step, class) in unusual(row).take(SLOW) {
                let Some(later) = row.get(step + period) else { break };
                (again, all) = (again + u64::from(*later == class), all + 1);
            }
        }
        if all > 0 {
            scores.push((float(again.into()) / float(all.into()), period));
        }
    }
    let best = scores.iter().map(|(score, _)| *score).fold(0.0, f64::max);
    let tried = scores.into_iter().filter(|(score, _)| *score >= COVERED.max(0.9 * best)).take(TRIED);
    let tried = tried.map(|(_, period)| (covered(some.iter().copied(), period), period));
    let (_, period) = tried.filter(|(covered, _)| *covered >= COVERED).max_by(|a, b| {
        // Twice the period is as good.
        a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))
    })?;
    let fits = (classes.len() * period).to_u64() <= MOST && covered(classes.iter(), period) >= COVERED;
    fits.then(|| classes.iter().map(|row| folded(row, period)).collect())
}

/// A rank's common class at each step of a pattern.
fn folded(row: &[u8], period: usize) -> Vec<u8> {
    (0..period).map(|step| common(row.iter().skip(step).step_by(period).copied())).collect()
}

/// The part of what is not usual for a rank that a pattern has.
fn covered<'a>(rows: impl Iterator<Item = &'a Vec<u8>>, period: usize) -> f64 {
    let (mut there, mut all) = (0_u64, 0_u64);
    for row in rows {
        let pattern = folded(row, period);
        for (step, class) in unusual(row) {
            (there, all) = (there + u64::from(pattern[step % period] == class), all + 1);
        }
    }
    float(there.into()) / float(all.max(1).into())
}

/// By how much ranks are off their means, with the mean of each class in the place of durations; `None` if they are not.
fn apart(rows: &[Vec<u64>], classes: &[Vec<u8>]) -> Option<Vec<Vec<f64>>> {
    let mut means = [(0.0_f64, 0.0_f64); LIMITS + 1];
    for (ns_of, class) in
        rows.iter().flatten().zip(rows.iter().zip(classes).flat_map(|(row, c)| &c[..row.len()]))
    {
        let (sum, n) = means[usize::from(*class)];
        means[usize::from(*class)] = (sum + ns(*ns_of), n + 1.0);
    }
    let steps = rows.iter().map(Vec::len).min().filter(|steps| *steps > 1)?;
    let of = |row: &Vec<u8>| {
        let value = |class: &u8| means[usize::from(*class)].0 / means[usize::from(*class)].1.max(1.0);
        let values = row[..steps].iter().map(value);
        let mean = mean_of(values.clone()).0;
        values.map(|v| v - mean).collect::<Vec<f64>>()
    };
    let apart: Vec<_> = classes.iter().map(of).collect();
    apart.iter().flatten().any(|v| *v != 0.0).then_some(apart)
}

/// In how many of [`WHOLE`] steps ranks are slow together, or, if negative, when others are not: from how the sum of all varies.
fn chance(apart: &[Vec<f64>]) -> i8 {
    let (ranks, steps) = (float(apart.len().to_u64().into()), apart.first().map_or(0, Vec::len));
    let sums = (0..steps).map(|step| apart.iter().map(|row| row[step]).sum::<f64>().powi(2));
    let each: f64 = apart.iter().flatten().map(|v| v * v).sum();
    let varies = sums.sum::<f64>() / each - 1.0;
    if varies.abs() < 4.0 * (2.0 / float(steps.max(1).to_u64().into())).sqrt() {
        return 0;
    }
    let share = if varies > 0.0 { varies / (ranks - 1.0) } else { -varies };
    let share = narrow::<i64>(rounded((share * ns(WHOLE.unsigned_abs())).min(64.0)));
    narrow(if varies > 0.0 { share } else { -share })
}

/// Whether ranks are slow after, and by the same chance as, they or those beside them were.
fn is_correlated(apart: &[Vec<f64>]) -> bool {
    let (ranks, steps) = (apart.len(), apart.first().map_or(0, Vec::len));
    let each: f64 = apart.iter().flatten().map(|v| v * v).sum();
    let least = CORRELATED.max(5.0 / float((ranks * steps).to_u64().into()).sqrt());
    let beside = |rank: usize, by: usize| &apart[(rank + by) % ranks];
    let correlation = |by: usize, later: usize| {
        let of = |rank: usize| -> f64 {
            apart[rank].iter().zip(beside(rank, by).iter().skip(later)).map(|(a, b)| a * b).sum()
        };
        (0..ranks).map(of).sum::<f64>() / each
    };
    let near = [0, 1, 2, ranks - 1, ranks.saturating_sub(2)];
    near.into_iter().any(|by| (1..=4).any(|later| correlation(by, later).abs() > least))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Chance, the same each time.
    fn chance_of(rank: u64, step: u64, of: u64) -> u64 {
        let mut x = (step * 4096 + rank + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ (x >> 31)) % of
    }

    /// Durations of ranks that take ten times as long where `slow` says so, and up to a tenth more by chance.
    fn rows(ranks: u64, steps: u64, slow: impl Fn(u64, u64) -> bool) -> Vec<Vec<u64>> {
        let of =
            |rank, step| if slow(rank, step) { 10 * MS } else { MS } + chance_of(rank, step + 9999, MS / 10);
        (0..ranks).map(|rank| (0..steps).map(|step| of(rank, step)).collect()).collect()
    }

    fn steps(told: Option<(How, bool)>) -> (Steps, bool) {
        match told {
            Some((How::Steps(steps), all)) => (steps, all),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ranks_that_are_slow_in_turns_are_told_in_few_bytes_whatever_their_number() {
        for (ranks, number) in [(4, 60), (8, 1000), (64, 1000), (500, 1003)] {
            let rows = rows(ranks, number, |rank, step| step % ranks == rank);
            let (steps, all) = steps(told(&rows, SITE));
            assert!(all && steps.size() <= 32, "{ranks}: {}", steps.size());
            let of = steps.of_rank(3, ranks).unwrap();
            let slow = |step: u64| of[usize::try_from(step % of.len().to_u64()).unwrap()];
            assert!((0..number).all(|step| slow(step) == u8::from(step % ranks == 3)), "{ranks}");
        }
    }

    #[test]
    fn a_pattern_is_seen_behind_what_is_slow_by_chance() {
        let noisy = |rank, step| (step % 8 == rank) != (chance_of(rank, step, 64) == 0);
        let (steps, all) = steps(told(&rows(8, 2000, noisy), SITE));
        assert!(all && steps.steps == 8, "{}", steps.steps);
        assert!((0..8).all(|rank| steps.of_rank(rank, 8).unwrap()[usize::try_from(rank).unwrap()] == 1));
    }

    #[test]
    fn few_steps_are_told_one_by_one_and_many_by_their_chance() {
        let alone = |rank, step| chance_of(rank, step, 8) == 0;
        let together = |_, step| chance_of(0, step, 8) == 0;
        for slow in [&alone as &dyn Fn(u64, u64) -> bool, &together] {
            let rows = rows(4, 60, slow);
            let (steps, all) = steps(told(&rows, SITE));
            let of = steps.of_rank(2, 4).unwrap();
            assert!(all && (0..60).all(|step| of[step] == u8::from(rows[2][step] > 5 * MS)));
        }
        assert_eq!(told(&rows(4, 6000, alone), SITE), Some((How::Chance(0), true)));
        assert_eq!(told(&rows(4, 6000, together), SITE), Some((How::Chance(64), true)));
        // One of all, whichever: an order without a pattern, in which nothing follows from the step before.
        let (in_turns, all) = told(&rows(4, 6000, |rank, step| chance_of(0, step, 4) == rank), SITE).unwrap();
        assert!(all && matches!(in_turns, How::Chance(share) if share <= -50), "{in_turns:?}");
    }

    #[test]
    fn what_moves_without_a_pattern_is_said_to_be_lost() {
        // From rank to rank, each time from one that chance says.
        let wanders = |rank: u64, step: u64| (chance_of(0, step / 5, 8) + step) % 8 == rank;
        let (how, all) = told(&rows(8, 6000, wanders), SITE).unwrap();
        assert!(!all && matches!(how, How::Chance(_)), "{how:?}");
    }

    #[test]
    fn what_is_the_same_at_all_steps_is_no_order() {
        assert_eq!(told(&vec![vec![MS; 50]; 4], SITE), None);
        assert!(varies(&[vec![MS; 50], vec![3 * MS; 50]]) < 1.0);
    }
}
