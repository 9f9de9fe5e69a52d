//! Comparing two traces in normal form, rank by rank.

mod same;

use std::collections::{BTreeMap, HashMap, VecDeque};

use st_model::project::Error;
use st_model::ranklist::RankList;
use st_model::section::Section;
use st_model::sites::{CallSites, Site};

use crate::normal::{Normal, NormalCall, SiteKeys};
use crate::table::ranks as named;
use same::Same;

/// How far apart two sequences may run before they are taken for different to the end.
const WINDOW: usize = 512;

/// How many calls are skipped at most to find equal ones, where two calls of one place would do as one that has changed.
const NEAR: usize = 16;

/// A call that one trace has and the other has not, or has otherwise.
#[derive(Debug, Clone)]
pub struct Difference {
    /// World rank.
    pub rank: u32,
    /// Thread index.
    pub thread: usize,
    /// The call of the first trace, if it has one there.
    pub a: Option<NormalCall>,
    /// The call of the second trace, if it has one there.
    pub b: Option<NormalCall>,
}

/// What a comparison found.
#[derive(Debug, Default)]
pub struct Report {
    /// Calls that are equal: as many in either trace.
    pub equal: u64,
    /// Number of differences.
    pub different: u64,
    /// The first difference per call site (symbol of the first trace; of the second where the first has none).
    pub first: Vec<(Difference, u64)>,
    /// Ranks or threads that only one of the traces holds.
    pub unmatched: Vec<String>,
    /// Calls left out because they returned an error, in either trace.
    pub failed: (u64, u64),
    /// Unsuccessful tests and probes, in either trace: how many there are is chance.
    pub polls: (u64, u64),
    /// How many ranks the jobs have, if not equally many: parameters may follow from that, and are not compared.
    pub worlds: Option<[u64; 2]>,
}

impl Report {
    /// Whether the traces are equal.
    #[must_use]
    pub fn same(&self) -> bool {
        self.different == 0 && self.unmatched.is_empty()
    }
}

/// Where a rank's calls are: a section that holds it, with its number.
fn by_rank(sections: &[Section]) -> BTreeMap<u32, (usize, &Section)> {
    let numbered = sections.iter().enumerate();
    numbered.flat_map(|(i, s)| s.ranks.iter().map(move |r| (r, (i, s)))).collect()
}

/// Ranks of both traces whose calls [`diff`] goes through, since what is stored does not say that they are the same.
///
/// # Errors
///
/// If a section cannot be read back.
pub fn unlike(a: &[Section], b: &[Section], sites: Option<&[CallSites; 2]>) -> Result<RankList, Error> {
    let joined = sites.map(|both| joined(both.each_ref()));
    let mut same = Same::new([a, b], [0, 1].map(|side| joined.as_ref().map(|all| &all[side])));
    let (a, b) = (by_rank(a), by_rank(b));
    let mut all = RankList::default();
    for (&rank, &(i, sa)) in &a {
        let Some(&(j, sb)) = b.get(&rank) else { continue };
        for thread in 0..sa.threads.len().max(sb.threads.len()) {
            let has = |section: &Section| section.threads.get(thread).is_some_and(|t| t.ranks.contains(rank));
            if has(sa) && has(sb) && same.of([i, j], thread, rank)?.is_none() {
                all.insert(rank);
                break;
            }
        }
    }
    Ok(all)
}

/// How many ranks the job of a trace has, as far as that is known.
fn world(sections: &[Section]) -> Option<u64> {
    let mut comms = sections.iter().flat_map(|s| &s.tables.comms).flat_map(|comm| &comm.of);
    let world = comms.find(|(_, comm)| comm.content.kind == "MPI_COMM_WORLD");
    world.map(|(_, comm)| comm.content.members.len())
}

/// What only one trace has of the ranks.
fn alone(ranks: &[u32], which: &str) -> Option<String> {
    let are = if ranks.len() == 1 { "is" } else { "are" };
    (!ranks.is_empty()).then(|| format!("{} {are} only in the {which} trace", named(ranks)))
}

/// What stands for the call sites of either trace, by identity: those that both have, stand for themselves; others for what they
/// are called.
pub(crate) fn joined([a, b]: [&CallSites; 2]) -> [SiteKeys; 2] {
    let by_name = |all: &CallSites| -> SiteKeys {
        let key = |(n, site): (u32, &Site)| (site.id, all.by_name(n).unwrap_or(site.id));
        (0..).zip(all.table().sites()).map(key).collect()
    };
    let first = by_name(a);
    let mut second = by_name(b);
    for (id, key) in &mut second {
        *key = first.get(id).copied().unwrap_or(*key);
    }
    [first, second]
}

/// Compares two traces; with their call sites, these are part of it: equal are those of one identity, and those that are called
/// the same from the MPI call to the outermost function. Parameters are compared where the jobs have equally many ranks. Tells of each
/// rank that it is compared. *Cost:* O(calls) of ranks that are not stored in the same way ([`unlike`]).
///
/// # Errors
///
/// If a section cannot be read back.
pub fn diff(
    a: &[Section],
    b: &[Section],
    sites: Option<&[CallSites; 2]>,
    tell: &dyn Fn(u64),
) -> Result<Report, Error> {
    let worlds = world(a).zip(world(b)).filter(|(a, b)| a != b).map(<[u64; 2]>::from);
    let joined = sites.map(|both| joined(both.each_ref()));
    let [of_a, of_b] = [0, 1].map(|side| joined.as_ref().map(|all| &all[side]));
    let mut same = Same::new([a, b], [of_a, of_b]);
    let (a, b) = (by_rank(a), by_rank(b));
    let mut report = Report { worlds, ..Report::default() };
    let mut first = HashMap::new();
    for (mine, others, which) in [(&a, &b, "first"), (&b, &a, "second")] {
        let only: Vec<u32> = mine.keys().filter(|r| !others.contains_key(r)).copied().collect();
        report.unmatched.extend(alone(&only, which));
    }
    for (&rank, &(i, sa)) in &a {
        tell(1);
        let Some(&(j, sb)) = b.get(&rank) else { continue };
        for thread in 0..sa.threads.len().max(sb.threads.len()) {
            if let Some(sums) = same.of([i, j], thread, rank)? {
                report.equal = report.equal.saturating_add(sums.equal);
                for (all, of) in [(&mut report.failed, sums.failed), (&mut report.polls, sums.polls)] {
                    *all = (all.0.saturating_add(of), all.1.saturating_add(of));
                }
                continue;
            }
            let read = |section, of| {
                let normal = Normal::new(section, thread, rank, of)?;
                Some(if worlds.is_some() { normal.without_parameters() } else { normal })
            };
            match (read(sa, of_a), read(sb, of_b)) {
                (Some(x), Some(y)) => Pair { x, y, rank, thread }.compare(&mut report, &mut first)?,
                (None, None) => {}
                (x, _) => {
                    let which = if x.is_some() { "first" } else { "second" };
                    report
                        .unmatched
                        .push(format!("rank {rank} thread {thread} is only in the {which} trace"));
                }
            }
        }
    }
    Ok(report)
}

/// (whether the symbol is of the first trace, symbol) → position in the list of first differences.
type Firsts = HashMap<(bool, u32), usize>;

struct Pair<'a> {
    x: Normal<'a>,
    y: Normal<'a>,
    rank: u32,
    thread: usize,
}

impl Pair<'_> {
    fn compare(mut self, report: &mut Report, first: &mut Firsts) -> Result<(), Error> {
        let (mut a, mut b) = (VecDeque::new(), VecDeque::new());
        loop {
            fill(&mut self.x, &mut a, 1)?;
            fill(&mut self.y, &mut b, 1)?;
            match (a.front(), b.front()) {
                (None, None) => break,
                (Some(p), Some(q)) if p.key == q.key => {
                    report.equal += p.times;
                    a.pop_front();
                    b.pop_front();
                }
                _ => {
                    fill(&mut self.x, &mut a, WINDOW)?;
                    fill(&mut self.y, &mut b, WINDOW)?;
                    let (i, j) = differing(&a, &b);
                    self.differ(a.drain(..i).collect(), b.drain(..j).collect(), report, first);
                }
            }
        }
        report.failed.0 += self.x.failed;
        report.failed.1 += self.y.failed;
        report.polls.0 += self.x.polls;
        report.polls.1 += self.y.polls;
        Ok(())
    }

    /// Notes calls that do not agree: one against one as far as they go, then what is left of the longer.
    fn differ(&self, a: Vec<NormalCall>, b: Vec<NormalCall>, report: &mut Report, first: &mut Firsts) {
        let n = a.len().max(b.len());
        let (mut a, mut b) = (a.into_iter(), b.into_iter());
        for _ in 0..n {
            let d = Difference { rank: self.rank, thread: self.thread, a: a.next(), b: b.next() };
            let site = match (&d.a, &d.b) {
                (Some(c), _) => (true, c.sym),
                (None, Some(c)) => (false, c.sym),
                (None, None) => return,
            };
            report.different += 1;
            match first.get(&site) {
                Some(&i) => report.first[i].1 += 1,
                None => {
                    first.insert(site, report.first.len());
                    report.first.push((d, 1));
                }
            }
        }
    }
}

fn fill(from: &mut Normal<'_>, into: &mut VecDeque<NormalCall>, n: usize) -> Result<(), Error> {
    while into.len() < n {
        match from.next_call()? {
            Some(c) => into.push_back(c),
            None => break,
        }
    }
    Ok(())
}

/// How many calls of either sequence, whose first ones are not equal, come before both agree again. A call that has changed in
/// its parameters stands against what it was, be it so in every iteration, if no equal calls are near; where one has calls of
/// other places, these are skipped.
fn differing(a: &VecDeque<NormalCall>, b: &VecDeque<NormalCall>) -> (usize, usize) {
    let changed = matches!((a.front(), b.front()), (Some(p), Some(q)) if p.place == q.place);
    if changed {
        // As many skipped in both are as many changed ones.
        return rejoin(a, b, NEAR, |c| c.key).filter(|(i, j)| i != j).unwrap_or((1, 1));
    }
    rejoin(a, b, a.len() + b.len(), |c| c.place).unwrap_or((a.len(), b.len()))
}

/// The nearest pair of positions from which the sequences agree again (two calls in a row, or to the end), by the sum of what is
/// skipped, which is `most` or less.
fn rejoin(
    a: &VecDeque<NormalCall>,
    b: &VecDeque<NormalCall>,
    most: usize,
    what: impl Fn(&NormalCall) -> u64,
) -> Option<(usize, usize)> {
    let agree = |i: usize, j: usize| {
        let at = |k: usize| match (a.get(i + k), b.get(j + k)) {
            (Some(p), Some(q)) => what(p) == what(q),
            (None, None) => true,
            _ => false,
        };
        i < a.len() && j < b.len() && at(0) && at(1)
    };
    (1..=most)
        .flat_map(|skipped| (0..=skipped.min(a.len())).map(move |i| (i, skipped - i)))
        .find(|&(i, j)| j <= b.len() && agree(i, j))
}
