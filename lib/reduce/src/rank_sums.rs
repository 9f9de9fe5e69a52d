//! What a merged trace keeps of each rank's total times: which ranks differ, and in which events, where that is more than noise.
//!
//! Recorded are the totals of every event on every rank, to 1 %. On a busy machine no two of them are equal, so that they take a
//! byte each: most of a merged file of many ranks. What is told by that is little: a rank's computation and its time in MPI, and in
//! which events ranks are unlike each other beyond what equal ranks are unlike each other by chance, and by more than a thousandth of
//! the run. That is kept.

use std::collections::{BinaryHeap, HashMap};

use st_model::calls::CallId;
use st_model::ints::Sealed;
use st_model::num::{Exact as _, float, saturate};
use st_model::rank_times::counted;
use st_model::section::{RankSums, Section, Sym, Thread};
use st_model::sketch::{bucket, representative};

/// Up to so many ranks the total of each is kept.
pub const EACH: u64 = 4096;

/// Runs of ranks whose mean is kept where there are more.
const BLOCKS: usize = 64;

/// Ranks that are kept beside what the others have in common.
const EXTREMES: usize = 32;

/// How many deviations of chance a rank is off that has not come there by chance.
const FAR: f64 = 5.0;

/// Part of a rank's computation, or of its time in MPI, that what is kept of it may be off what was recorded, which is right to 1 %
/// itself.
const WITHIN: f64 = 0.005;

/// Part of a rank's time that what is kept of its computation, or of its time in MPI, may always be off.
const LEAST: f64 = 0.0001;

/// Part of a rank's time by which an event may be longer or shorter than on others without this being told.
const LITTLE: f64 = 0.001;

/// Part of all ranks' time from which on an event's extremes are kept of more than [`EACH`] ranks.
const MATTERS: f64 = 0.01;

/// Deviation by which a bucket is off, as a part of the time.
const ROUNDING: f64 = 0.006;

/// Buckets that may be taken for one, coarsest first, where ranks are spread over [`SPREAD`] times as many.
const STEPS: [u16; 4] = [10, 5, 2, 1];
const SPREAD: f64 = 2.0;

/// Keeps of the ranks' totals what tells ranks apart beyond noise. Up to [`EACH`] ranks, those of a rank's computation and of its
/// time in MPI, without `MPI_Init` and `MPI_Finalize` as [`counted`] has it, stay as they were to 0.5 %, or 0.01 % of its time; beyond,
/// means of runs of ranks stay, and extremes of what matters. Whether anything changed. *Cost:* O(events · (events + ranks)).
pub fn keep_rank_sums(section: &mut Section) -> bool {
    let part_of_run = |call: CallId| counted(call).map(|counts| f64::from(u8::from(counts)));
    let weights: Vec<[f64; 2]> = section.symbols.iter().map(|s| part_of_run(s.call)).collect();
    let mut changed = false;
    for thread in &mut section.threads {
        changed |= keep(thread, &weights);
    }
    changed
}

/// Times of an event on all ranks, as buckets, and how coarse they may become.
struct Totals {
    was: Vec<u16>,
    /// 1 if they are part of a rank's time, else 0.
    weight: f64,
    /// From the coarsest to what is recorded.
    forms: Vec<Form>,
    /// The one that is taken.
    form: usize,
}

/// What is kept.
enum Form {
    /// The mean of all ranks but those that are far from it.
    Mean { of_all: u16, far: HashMap<usize, u16> },
    /// Multiples.
    Step(u16),
}

impl Form {
    fn of(&self, rank: usize, was: u16) -> u16 {
        match self {
            // Who has not had the event takes no time for it.
            _ if was == 0 => 0,
            Self::Mean { of_all, far } => far.get(&rank).copied().unwrap_or(*of_all),
            Self::Step(1) => was,
            Self::Step(step) => (was.saturating_add(step / 2) / step * step).max(1),
        }
    }
}

fn ns(bucket: u16) -> f64 {
    float(representative(bucket).into())
}

fn keep(thread: &mut Thread, weights: &[[f64; 2]]) -> bool {
    let chance = chances(thread);
    let (ranks, n) = (thread.ranks.len(), saturate::<usize>(thread.ranks.len()));
    let read = |of: &Sealed| -> Vec<u16> {
        let mut cursor = of.cursor();
        (0..n).map(|_| saturate(cursor.next())).collect()
    };
    let halves: [fn(&mut RankSums) -> &mut Sealed; 2] = [|s| &mut s.compute, |s| &mut s.comm];
    let mut whole = [vec![0.0; n], vec![0.0; n]];
    let weight = |sums: &RankSums| weights.get(sums.sym as usize).copied().unwrap_or([1.0; 2]);
    for sums in &mut thread.sums {
        let weight = weight(sums);
        for ((half, weight), whole) in halves.iter().zip(weight).zip(&mut whole) {
            read(half(sums)).iter().zip(whole).for_each(|(b, all)| *all += weight * ns(*b));
        }
    }
    let run: Vec<f64> = whole[0].iter().zip(&whole[1]).map(|(a, b)| a + b).collect();
    let mut changed = false;
    for (i, half) in halves.iter().enumerate() {
        let of_event = |sums: &RankSums| chance.get(&sums.sym).map_or(0.0, |c| c[i]);
        if ranks > EACH {
            let matters = MATTERS * run.iter().sum::<f64>();
            for sums in &mut thread.sums {
                let chance = of_event(sums);
                let was = read(half(sums));
                changed |= put(half(sums), &was, &in_blocks(&was, chance, matters));
            }
            continue;
        }
        let events = thread.sums.iter_mut().map(|sums| {
            let (chance, weight) = (of_event(sums), weight(sums)[i]);
            Totals::new((read(half(sums)), weight), chance, &run)
        });
        let mut events: Vec<Totals> = events.collect();
        let allowed = whole[i].iter().zip(&run).map(|(part, run)| (WITHIN * part).max(LEAST * run)).collect();
        refine(&mut events, allowed);
        for (sums, of) in thread.sums.iter_mut().zip(&events) {
            let kept: Vec<u16> = of.kept().collect();
            changed |= put(half(sums), &of.was, &kept);
        }
    }
    changed
}

fn put(into: &mut Sealed, was: &[u16], kept: &[u16]) -> bool {
    if was != kept {
        *into = Sealed::from(kept.iter().map(|b| i64::from(*b)).collect::<Vec<_>>());
    }
    was != kept
}

/// By event, the variance that its total has on equal ranks, before and in it: that of one time, as often as a rank has it.
fn chances(thread: &Thread) -> HashMap<Sym, [f64; 2]> {
    let mut all: HashMap<Sym, [(u64, u128, f64); 2]> = HashMap::new();
    for path in &thread.sketches {
        for (into, of) in all.entry(path.sym).or_default().iter_mut().zip([&path.compute, &path.comm]) {
            *into = (into.0 + of.count, into.1 + of.sum, into.2 + float(of.squares));
        }
    }
    let ranks = float(thread.ranks.len().into());
    let of = |(count, sum, squares): (u64, u128, f64)| {
        let n = float(count.max(1).into());
        (squares / n - (float(sum) / n).powi(2)).max(0.0) * (n / ranks).max(1.0)
    };
    all.into_iter().map(|(sym, both)| (sym, both.map(of))).collect()
}

/// Ranks that have an event, in order, with their totals; those that are furthest from the middle and not by chance; the mean of the
/// others, and whether it is chance alone by which these are unlike.
struct Unlike {
    far: HashMap<usize, u16>,
    mean: f64,
    by_chance: bool,
    /// Deviation of the others' buckets.
    spread: f64,
}

impl Unlike {
    fn of(was: &[u16], chance: f64) -> Self {
        let mut there: Vec<(usize, u16)> =
            was.iter().copied().enumerate().filter(|(_, bucket)| *bucket > 0).collect();
        there.sort_unstable_by_key(|(rank, bucket)| (*bucket, *rank));
        let middle = there.get(there.len() / 2).map_or(0.0, |(_, bucket)| ns(*bucket));
        let chance = chance + (ROUNDING * middle).powi(2);
        let is_far = |bucket: u16| (ns(bucket) - middle).powi(2) > FAR * FAR * chance;
        // They are at both ends of what is sorted.
        let mut far = HashMap::new();
        let (mut from, mut to) = (0, there.len());
        while far.len() < EXTREMES && from < to {
            let ends = [there[from], there[to - 1]];
            let off = ends.map(|(_, bucket)| (ns(bucket) - middle).abs());
            let low = off[0] > off[1];
            let (rank, bucket) = if low { ends[0] } else { ends[1] };
            if !is_far(bucket) {
                break;
            }
            (from, to) = if low { (from + 1, to) } else { (from, to - 1) };
            far.insert(rank, bucket);
        }
        let others = &there[from..to];
        let n = float(others.len().max(1).to_u64().into());
        let moments = |value: fn(u16) -> f64| {
            let mean = others.iter().map(|(_, b)| value(*b)).sum::<f64>() / n;
            let off = others.iter().map(|(_, b)| (value(*b) - mean).powi(2)).sum::<f64>();
            (mean, off / (n - 1.0).max(1.0))
        };
        let (mean, variance) = moments(ns);
        // What the variance of so many equal ranks does not exceed, three of its own deviations above.
        let most = chance * 3.0f64.mul_add((2.0 / (n - 1.0).max(1.0)).sqrt(), 1.0);
        let spread = moments(f64::from).1.sqrt();
        Self { far, mean, by_chance: variance <= most, spread }
    }

    fn mean(&self) -> u16 {
        bucket(st_model::num::rounded(self.mean))
    }
}

impl Totals {
    fn new((was, weight): (Vec<u16>, f64), chance: f64, run: &[f64]) -> Self {
        let unlike = Unlike::of(&was, chance);
        let mut forms = Vec::new();
        let mut there = was.iter().zip(run).filter(|(bucket, _)| **bucket > 0);
        let little = there.all(|(bucket, run)| (ns(*bucket) - unlike.mean).abs() <= LITTLE * run);
        if little {
            forms.push(Form::Mean { of_all: unlike.mean(), far: HashMap::new() });
        }
        if unlike.by_chance {
            forms.push(Form::Mean { of_all: unlike.mean(), far: unlike.far.clone() });
        }
        let fine = STEPS.into_iter().filter(|step| *step == 1 || f64::from(*step) * SPREAD <= unlike.spread);
        forms.extend(fine.map(Form::Step));
        Self { was, weight, forms, form: 0 }
    }

    fn is_exact(&self) -> bool {
        self.form + 1 >= self.forms.len()
    }

    fn kept(&self) -> impl Iterator<Item = u16> + '_ {
        let form = self.forms.get(self.form);
        self.was.iter().enumerate().map(move |(rank, was)| form.map_or(*was, |form| form.of(rank, *was)))
    }

    /// How far a rank is off in the direction of `sign`, if a finer form can change that: bits of what is positive, which are in its
    /// order.
    fn refinable(&self, rank: usize, sign: f64) -> Option<u64> {
        let error = sign * self.error(rank);
        (error > 0.0 && !self.is_exact()).then(|| error.to_bits())
    }

    /// Adds what each rank is off, times a sign.
    fn add_errors(&self, off: &mut [f64], sign: f64) {
        off.iter_mut().enumerate().for_each(|(rank, off)| *off += sign * self.error(rank));
    }

    /// What a rank is off.
    fn error(&self, rank: usize) -> f64 {
        let (Some(was), Some(form)) = (self.was.get(rank), self.forms.get(self.form)) else { return 0.0 };
        self.weight * (ns(form.of(rank, *was)) - ns(*was))
    }
}

/// Takes finer forms of what ranks' totals are off by, until no rank's is off by more than is allowed: of the rank that is off by most,
/// first of the event that most of that is of.
fn refine(events: &mut [Totals], mut allowed: Vec<f64>) {
    let mut off = vec![0.0; allowed.len()];
    events.iter().for_each(|event| event.add_errors(&mut off, 1.0));
    let beyond = |off: &[f64], allowed: &[f64]| {
        let over = off.iter().zip(allowed).map(|(off, allowed)| off.abs() - allowed).enumerate();
        over.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, over)| *over > 0.0).map(|(rank, _)| rank)
    };
    while let Some(rank) = beyond(&off, &allowed) {
        // Errors of the other sign make up for these: they stay. So does the order of ranks until this one is right.
        let sign = off[rank].signum();
        let errors =
            events.iter().enumerate().filter_map(|(i, event)| Some((event.refinable(rank, sign)?, i)));
        let mut most: BinaryHeap<(u64, usize)> = errors.collect();
        while sign * off[rank] > allowed[rank] {
            let Some((_, i)) = most.pop() else {
                // Nothing is finer in this direction: what it is still off comes of adding up.
                allowed[rank] = f64::INFINITY;
                break;
            };
            events[i].add_errors(&mut off, -1.0);
            events[i].form += 1;
            events[i].add_errors(&mut off, 1.0);
            most.extend(events[i].refinable(rank, sign).map(|error| (error, i)));
        }
    }
}

/// Of many ranks: the mean of all where they are unlike by chance, else that of each run of ranks; beside it the extremes of what takes
/// so much of all ranks' time that it matters.
fn in_blocks(was: &[u16], chance: f64, matters: f64) -> Vec<u16> {
    let unlike = Unlike::of(was, chance);
    let block = if unlike.by_chance { was.len() } else { was.len().div_ceil(BLOCKS) };
    let mut kept = Vec::with_capacity(was.len());
    for ranks in was.chunks(block.max(1)) {
        let there = ranks.iter().filter(|bucket| **bucket > 0);
        let others = there.clone().count().to_u64();
        let mean = there.map(|b| ns(*b)).sum::<f64>() / float(others.max(1).into());
        let mean = if unlike.by_chance { unlike.mean() } else { bucket(st_model::num::rounded(mean)) };
        kept.extend(ranks.iter().map(|was| if *was == 0 { 0 } else { mean }));
    }
    if was.iter().map(|b| ns(*b)).sum::<f64>() >= matters {
        let off = |rank: usize| (ns(was[rank]) - ns(kept[rank])).abs();
        let mut furthest: Vec<(f64, usize)> = (0..was.len()).map(|rank| (off(rank), rank)).collect();
        let at = furthest.len().saturating_sub(1).min(EXTREMES);
        furthest.select_nth_unstable_by(at, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        furthest.iter().take(at).for_each(|(_, rank)| kept[*rank] = was[*rank]);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_make_up_for_others_stay() {
        // One rank's times of three events, and the means that stand for them: half a ms too long, 0.6 too short, 0.4 too long.
        let event = |mean: u64| {
            let mean = Form::Mean { of_all: bucket(mean), far: HashMap::new() };
            Totals { was: vec![bucket(1_000_000)], weight: 1.0, forms: vec![mean, Form::Step(1)], form: 0 }
        };
        let mut events = [1_500_000, 400_000, 1_400_000].map(event);
        refine(&mut events, vec![250_000.0]);
        assert_eq!(events.map(|event| event.form), [1, 0, 0]);
    }

    #[test]
    fn the_least_time_is_not_none() {
        for step in STEPS {
            assert_eq!(Form::Step(step).of(0, 0), 0);
            assert!((1..30).all(|was| Form::Step(step).of(0, was) > 0), "{step}");
            assert!((1..3_000).all(|was| Form::Step(step).of(0, was).abs_diff(was) <= step / 2), "{step}");
        }
    }
}
