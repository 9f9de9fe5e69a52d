//! Programs on paper whose ranks read clocks that differ by what is known: what calls take there, and what was recorded.

use std::path::Path;

use crate::clocks::{Call, Chance, Fake, points, record};

/// How a clock's rate goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    Constant,
    /// Another rate from some moment on.
    Kink,
    /// Two periods.
    Wave,
    /// Another rate every tenth of the run.
    Steps,
    /// A rate that grows.
    Slope,
    /// A rate that goes at random.
    Walk,
}

pub(crate) const SHAPES: [Shape; 6] =
    [Shape::Constant, Shape::Kink, Shape::Wave, Shape::Steps, Shape::Slope, Shape::Walk];

/// Parts of a run in which a clock's rate stays.
const PIECES: i64 = 1_000;

/// A clock over so many ns, which goes a straight line but for some ns.
fn fake(shape: Shape, bend: i64, length: i64, chance: &mut Chance) -> Fake {
    let kink = PIECES / 5 + chance.below(PIECES * 3 / 5);
    let (phase, mut now) = (chance.below(500), chance.within(1_000));
    let mut sums = vec![0];
    for i in 0..PIECES {
        now = match shape {
            Shape::Constant => 0,
            Shape::Kink => i64::from(i > kink),
            Shape::Wave => ((i + phase) % 500 - 250).abs() - 125,
            Shape::Steps if i % 100 > 0 => now,
            Shape::Steps => chance.within(1_000),
            Shape::Slope => i,
            Shape::Walk => now + chance.within(1_000),
        };
        sums.push(sums[sums.len() - 1] + now);
    }
    let total = sums[sums.len() - 1];
    let bent: Vec<i64> = (0..).zip(&sums).map(|(i, s)| s * PIECES - total * i).collect();
    let most = bent.iter().map(|b| b.abs()).max().unwrap().max(1);
    let sign = 2 * chance.below(2) - 1;
    let part = |b: i64| i64::try_from(i128::from(b) * i128::from(sign * bend) / i128::from(most)).unwrap();
    let (first, drift, every) = (chance.within(5_000_000), chance.within(40_000), length / PIECES + 1);
    let straight = |i: i64| first + drift * i * every / 1_000_000_000;
    Fake { ahead: (0..).zip(bent).map(|(i, b)| straight(i) + part(b)).collect(), every }
}

/// Who sends to whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pattern {
    /// Each to its right neighbour.
    Ring,
    /// Each to both neighbours.
    BothWays,
    /// Each to up to four neighbours in a grid.
    Stencil,
    /// Rank 0 to each other rank, and back when that is done.
    Workers,
    /// Each to the next one, when it has heard from the one before; nothing comes back.
    Pipeline,
}

impl Pattern {
    /// To whom a rank sends in a step.
    fn peers(self, me: usize, ranks: usize) -> Vec<usize> {
        let (left, right) = ((me + ranks - 1) % ranks, (me + 1) % ranks);
        let wide = (1..=ranks).rfind(|w| w * w <= ranks && ranks.is_multiple_of(*w)).unwrap();
        match self {
            Self::Ring => vec![right],
            Self::BothWays if ranks == 2 => vec![right],
            Self::BothWays => vec![left, right],
            Self::Stencil => {
                let mut to = Vec::new();
                to.extend((!me.is_multiple_of(wide)).then(|| me - 1));
                to.extend((me % wide + 1 < wide).then(|| me + 1));
                to.extend(me.checked_sub(wide));
                to.extend((me + wide < ranks).then(|| me + wide));
                to
            }
            Self::Workers | Self::Pipeline => Vec::new(),
        }
    }
}

/// A program and its clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) shape: Shape,
    pub(crate) pattern: Pattern,
    pub(crate) ranks: usize,
    pub(crate) steps: i64,
    /// What a step takes, ns, and by what percentage ranks differ in that.
    pub(crate) pause: i64,
    pub(crate) uneven: i64,
    /// A sum over all ranks each so many steps; never, if 0.
    pub(crate) sums: i64,
    /// By how much a message in three is late at most, ns.
    pub(crate) late: i64,
    /// How far clocks go from a straight line, ns.
    pub(crate) bend: i64,
    /// What passes before clocks are compared first and messages begin, in percent of the run.
    pub(crate) quiet: i64,
    /// How often clocks are compared.
    pub(crate) comparisons: i64,
}

/// True times of all calls by rank; as recorded by fake clocks, a program.
struct Run {
    now: Vec<i64>,
    truth: Vec<Vec<i64>>,
    calls: Vec<Call>,
    /// The least time from each rank to each other one, ns.
    least: Vec<Vec<i64>>,
    late: i64,
    chance: Chance,
}

impl Run {
    fn new(case: &Case, begin: i64, mut chance: Chance) -> Self {
        let n = case.ranks;
        let least = (0..n).map(|_| (0..n).map(|_| 1_500 + chance.below(400)).collect()).collect();
        let (now, truth) = (vec![begin; n], vec![Vec::new(); n]);
        let mut run = Self { now, truth, calls: Vec::new(), least, late: case.late, chance };
        (0..n).for_each(|r| run.call(r, "MPI_Init", 0, (20_000, begin)));
        run
    }
    fn call(&mut self, rank: usize, name: &'static str, peer: usize, times: (i64, i64)) {
        self.truth[rank].extend([times.0, times.1]);
        self.calls.push((rank, name, i64::try_from(peer).unwrap(), times));
        self.now[rank] = times.1;
    }
    /// A message's time: mostly quick, some wait for a processor.
    fn takes(&mut self, from: usize, to: usize) -> i64 {
        let late = if self.chance.below(3) == 0 { self.late } else { 700 };
        self.least[from][to] + self.chance.below(late)
    }
    fn compute(&mut self, rank: usize, case: &Case) {
        // Each rank has its own speed.
        let slow = i64::try_from(rank * 7 % case.ranks).unwrap() * case.uneven * case.pause
            / 100
            / i64::try_from(case.ranks).unwrap();
        self.now[rank] += case.pause + slow + self.chance.below(case.pause * case.uneven / 100 + 1);
    }
    /// Sends; returns when it arrives.
    fn send(&mut self, from: usize, to: usize) -> i64 {
        let at = self.now[from] + 100;
        self.call(from, "MPI_Send", to, (at, at + 500));
        at + self.takes(from, to)
    }
    fn receive(&mut self, me: usize, from: usize, arrives: i64) {
        let at = self.now[me] + 100;
        self.call(me, "MPI_Recv", from, (at, arrives.max(at + 200)));
    }
    fn step(&mut self, case: &Case) {
        let n = case.ranks;
        match case.pattern {
            Pattern::Workers => {
                let arrives: Vec<i64> = (1..n).map(|w| self.send(0, w)).collect();
                for (w, arrives) in (1..).zip(arrives) {
                    self.receive(w, 0, arrives);
                    self.compute(w, case);
                }
                for w in 1..n {
                    let arrives = self.send(w, 0);
                    self.receive(0, w, arrives);
                }
            }
            Pattern::Pipeline => {
                for r in 0..n {
                    self.compute(r, case);
                    if r + 1 < n {
                        let arrives = self.send(r, r + 1);
                        self.receive(r + 1, r, arrives);
                    }
                }
            }
            pattern => {
                (0..n).for_each(|r| self.compute(r, case));
                let mut under_way = Vec::new();
                for r in 0..n {
                    for to in pattern.peers(r, n) {
                        under_way.push((to, r, self.send(r, to)));
                    }
                }
                under_way.sort_unstable();
                under_way.into_iter().for_each(|(me, from, arrives)| self.receive(me, from, arrives));
            }
        }
    }
    fn sum(&mut self) {
        let n = self.now.len();
        let last = self.now.iter().max().unwrap() + 100;
        for r in 0..n {
            let done = last + self.takes((r + 1) % n, r);
            self.call(r, "MPI_Allreduce", 0, (self.now[r] + 100, done));
        }
    }
}

impl Case {
    /// Writes what was recorded; returns the true times of each rank.
    pub(crate) fn record(&self, seed: u64, path: &Path) -> Vec<Vec<i64>> {
        let begin = self.steps * self.quiet / 100 * self.pause + 100_000;
        let mut run = Run::new(self, begin, Chance(seed));
        for step in 0..self.steps {
            run.step(self);
            if self.sums > 0 && step % self.sums == 0 {
                run.sum();
            }
        }
        let end = *run.now.iter().max().unwrap();
        let chance = &mut run.chance;
        let mut fakes = vec![Fake::none(end)];
        fakes.extend((1..self.ranks).map(|_| fake(self.shape, self.bend, end, chance)));
        let compared = |r: usize| {
            let error = |chance: &mut Chance| if r == 0 { 0 } else { 2_000 + chance.below(6_000) };
            points((begin, end), (self.comparisons, &fakes[r]), chance, error)
        };
        record(&run.calls, &fakes, compared, path);
        run.truth
    }
}
