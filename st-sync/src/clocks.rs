//! The clocks of a trace: who reads the same one, how it is corrected, and by how much it may still be wrong.

use st_model::num::{narrow, saturate};
use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use st_match::graph::{Graph, Latency};
use st_model::columns::{Comparison, Offset};

use crate::args::Method;
use crate::bounds::{Bounds, TURNED, WANDER, WILDEST};
use crate::lags::{ClockPair, Lag};
use crate::offsets::Map;
use crate::pack::{Words, put_maybe};
use crate::surveyed::Surveyed;
use crate::taut_string::Gate;
use crate::team::Team;
use crate::trace::Traces;

/// Corrections by messages that are tried one after the other, and how far each draws bounds in, in quarters: first a way of few
/// bends, last the middle, where nothing contradicts anything.
const DRAWN: [i64; 3] = [2, 1, 1];
/// So many comparisons tell how a clock's rate changes.
const ENOUGH: usize = 4;
/// An error that many times larger than that of the comparisons calls for more of these.
const MUCH: i64 = 4;
/// Smaller errors do not, ns.
const LITTLE: i64 = 10_000;

/// One clock, and the ranks that read it.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    node: u32,
    /// How it was compared with rank 0's.
    compared: Comparison,
    /// What these comparisons make of it.
    pub(crate) interpolated: Map,
    /// What is made of it in all.
    pub(crate) map: Arc<Map>,
    /// How fast it leaves its map, ns per s, as messages show.
    rate: i64,
    /// How fast it may do so without anything showing it, ns per s.
    least: i64,
    /// How far it may be off, ns; `None` if nothing is known.
    pub(crate) error: Option<i64>,
}

/// All clocks. The first one is that of rank 0, or of the lowest rank.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    pub(crate) all: Vec<Clock>,
    /// Clock of each stream.
    of: Vec<u32>,
    by_rank: HashMap<u32, u32>,
    /// Messages went backwards between clocks, by more than comparisons may be wrong.
    reversed: bool,
}

impl Clocks {
    /// Finds the clocks. Ranks of a node whose clocks were found to be equally far from rank 0's, whenever they were compared, read
    /// one clock.
    ///
    /// # Errors
    ///
    /// If another process is gone.
    pub(crate) fn new(method: Method, traces: &Traces, graph: &Graph, team: &mut Team<'_>) -> Result<Self> {
        let mut ranks: Vec<(u32, u32)> = graph.streams.iter().map(|s| (s.rank, s.node)).collect();
        ranks.dedup();
        let mut words = Vec::new();
        let own = graph.streams.iter().enumerate().filter(|(s, stream)| stream.thread == 0 && team.has(*s));
        for (_, stream) in own {
            let points = traces.comparison(stream.rank).map_or(&[][..], |c| &c.points);
            words.extend([i64::from(stream.rank), narrow(points.len())]);
            words.extend(points.iter().flat_map(|p| [p.local, p.offset, p.error]));
        }
        let mut compared: HashMap<u32, Vec<Offset>> = HashMap::new();
        for words in team.all(&words)? {
            let mut words = Words(words.iter());
            while !words.0.as_slice().is_empty() {
                let (rank, n) = (words.id(), words.one());
                let mut point = || Offset { local: words.one(), offset: words.one(), error: words.one() };
                compared.insert(rank, (0..n).map(|_| point()).collect());
            }
        }
        let mut clocks = Self::default();
        let mut known: HashMap<(u32, Vec<i64>), u32> = HashMap::new();
        for (rank, node) in ranks {
            let points = compared.remove(&rank).unwrap_or_default();
            let offsets = points.iter().map(|p| p.offset).collect();
            let next = narrow(clocks.all.len());
            let clock = *known.entry((node, offsets)).or_insert(next);
            if clock == next {
                clocks.all.push(Clock::new(method, node, Comparison { points, ..Comparison::default() }));
            }
            clocks.by_rank.insert(rank, clock);
        }
        clocks.of = graph.streams.iter().map(|s| clocks.by_rank.get(&s.rank).copied().unwrap_or(0)).collect();
        Ok(clocks)
    }

    /// The clock of a stream.
    pub(crate) fn of(&self, stream: usize) -> &Clock {
        &self.all[self.of[stream] as usize]
    }

    /// How far the worst clock may be off, ns.
    pub(crate) fn worst(&self) -> i64 {
        self.all.iter().filter_map(|c| c.error).max().unwrap_or(0)
    }

    /// The clocks of two ranks.
    #[inline]
    pub(crate) fn pair(&self, [from, to]: [u32; 2]) -> Option<ClockPair> {
        Some(ClockPair { from: *self.by_rank.get(&from)?, to: *self.by_rank.get(&to)? })
    }

    /// The least latency between two clocks; between ranks that read one, nothing, so that it shows whether they do.
    pub(crate) fn latency(&self, clocks: ClockPair, latency: Latency) -> i64 {
        let node = |clock: u32| self.all[clock as usize].node;
        if clocks.is_one() { 0 } else { latency.between(node(clocks.from), node(clocks.to)) }
    }

    /// The maps of all streams.
    pub(crate) fn maps(&self) -> Vec<Arc<Map>> {
        self.of.iter().map(|c| Arc::clone(&self.all[*c as usize].map)).collect()
    }

    /// As [`Clocks::learn`], for all processes: the first one learns, since that takes long of many clocks, and all have found the
    /// same; it tells the others maps and errors.
    ///
    /// # Errors
    ///
    /// If another process is gone.
    pub(crate) fn learn_together(
        &mut self,
        found: &Surveyed,
        turn: usize,
        corrects: bool,
        team: &mut Team<'_>,
    ) -> Result<bool> {
        if team.size() == 1 {
            return Ok(self.learn(found, turn, corrects));
        }
        let mut words = Vec::new();
        if team.me() == 0 {
            words.push(i64::from(self.learn(found, turn, corrects)));
            self.all.iter().for_each(|clock| clock.put(&mut words));
        }
        let told = team.tell(words)?;
        let mut words = Words(told.iter());
        let corrected = words.one() != 0;
        if team.me() > 0 {
            self.all.iter_mut().for_each(|clock| clock.get(&mut words));
        }
        Ok(corrected)
    }

    /// Learns from what messages took by the clocks as they are corrected now how far these may be off, and, if some messages go
    /// backwards and another correction is allowed, corrects clocks by that. Whether it did.
    fn learn(&mut self, found: &Surveyed, turn: usize, corrects: bool) -> bool {
        let lags = &found.lags;
        let exact = self.all.iter().flat_map(|c| &c.compared.points).map(|p| p.error).max().unwrap_or(0);
        self.reversed |= lags.least() < exact.saturating_mul(-2);
        let gates: Vec<Vec<Gate>> = self.all.iter().map(Clock::gates).collect();
        if turn == 0 {
            let shown = Bounds::shown(lags, &gates);
            self.all
                .iter_mut()
                .zip(shown)
                .skip(1)
                .for_each(|(clock, shown)| clock.least = clock.wanders(shown));
        }
        let least = self.all.iter().map(|c| c.least).collect();
        let (bounds, rates) = Bounds::with_least_rates(lags, &gates, least);
        self.all.iter_mut().zip(&rates).for_each(|(clock, rate)| clock.rate = clock.rate.max(*rate));
        // What no rate explains is not asked again.
        let torn = self.all.iter_mut().enumerate().filter(|(i, _)| bounds.is_torn(*i));
        torn.for_each(|(_, clock)| clock.least = WILDEST);
        let Some(quarters) = DRAWN.get(turn).filter(|_| corrects && lags.least() < 0) else {
            // What has been followed once is not wholly known between the moments that bound it.
            let unseen = |(c, now): (&Clock, i64)| {
                c.least.min(WANDER) + if turn == 0 { 2 * now } else { now + c.rate / 2 }
            };
            let usual = median(rates.get(1..).unwrap_or(&[]));
            let mut rates: Vec<i64> =
                self.all.iter().zip(&rates).map(|(c, r)| unseen((c, *r.max(&usual)))).collect();
            rates.iter_mut().take(1).for_each(|first| *first = 0);
            self.state(found, &gates, &Bounds::new(lags, &gates, &rates));
            return false;
        };
        // What contradicts itself whatever clocks do is none of their faults.
        for (i, clock) in self.all.iter_mut().enumerate().skip(1).filter(|(i, _)| !bounds.is_torn(*i)) {
            clock.map = Arc::new(clock.map.then(&bounds.way(lags, i, *quarters)));
        }
        true
    }

    /// States errors: how far a clock's bounds are where it sends, receives or is compared, and at the ends of the run, where ranks
    /// begin and end.
    fn state(&mut self, found: &Surveyed, gates: &[Vec<Gate>], bounds: &Bounds) {
        let lags = &found.lags;
        let ends = [0, lags.parts() - 1];
        let of = |gates: &Vec<Gate>| gates.iter().map(|g| lags.part(g.at)).chain(ends).collect();
        let mut parts: Vec<Vec<usize>> = gates.iter().map(of).collect();
        // A clock by which a rank receives what another one reading it sends later is not one clock.
        let mut torn = vec![0; self.all.len()];
        if let [only] = &mut torn[..] {
            *only = found.shortest.near.saturating_neg().max(0);
        }
        for Lag { clocks, part, took } in lags.each() {
            let (from, to) = (clocks.from as usize, clocks.to as usize);
            if clocks.is_one() {
                torn[from] = took.saturating_neg().max(torn[from]);
            } else {
                parts[from].push(part);
                parts[to].push(part);
            }
        }
        for (i, clock) in self.all.iter_mut().enumerate() {
            let error = if i == 0 { Some(0) } else { bounds.error(i, parts[i].iter().copied()) };
            // Messages add to what comparisons tell, but are measured by them.
            let exact = clock.compared.points.iter().map(|p| p.error.saturating_abs()).min().unwrap_or(0);
            clock.error = error.map(|e| e.max(exact).saturating_add(torn[i]));
        }
    }

    /// What would make errors smaller, if two comparisons were not enough.
    pub(crate) fn advice(&self) -> Option<String> {
        let few = self.all.iter().all(|c| c.compared.points.len() <= 2);
        let off = |c: &&Clock| {
            let compared = c.compared.points.iter().map(|p| p.error).max();
            c.error.zip(compared).is_some_and(|(e, c)| e > LITTLE && e > c.saturating_mul(MUCH))
        };
        let worst = self.all.iter().filter(off).filter_map(|c| c.error).max();
        let why = match worst {
            _ if !few || self.all.len() < 2 => return None,
            Some(e) => format!("clocks may be off by {} µs", e / 1_000),
            None if self.reversed => "messages contradict them".to_owned(),
            None => return None,
        };
        Some(format!(
            "clocks were compared at the ends only, and {why}: record with --sync-interval 1 to follow their drift"
        ))
    }
}

impl Clock {
    fn new(method: Method, node: u32, compared: Comparison) -> Self {
        let interpolated = match method {
            Method::None => Map::default(),
            Method::Offset => Map::constant(&compared),
            Method::Linear | Method::Clc => Map::linear(&compared),
        };
        let error = compared.points.iter().map(|p| p.error).max();
        Self { node, compared, map: Arc::new(interpolated.clone()), interpolated, rate: 0, least: 0, error }
    }

    /// What is made of it, and how far it may be off.
    fn put(&self, words: &mut Vec<i64>) {
        put_maybe(words, self.error);
        words.push(narrow(self.map.points().len()));
        words.extend(self.map.points().iter().flat_map(|p| [p.local, p.offset, p.error]));
    }

    fn get(&mut self, words: &mut Words<'_>) {
        self.error = words.maybe();
        let n = words.one();
        let mut point = || Offset { local: words.one(), offset: words.one(), error: words.one() };
        self.map = Arc::new(Map::of((0..n).map(|_| point()).collect()));
    }

    /// How fast it may leave a straight line between comparisons, ns per s: half of what its rate changes at them, or what messages
    /// do not show, if comparisons are too few, or not exact enough, to show it.
    fn wanders(&self, unseen: i64) -> i64 {
        let line = self.interpolated.points();
        let slopes: Vec<i64> = line.windows(2).map(|w| slope(&w[0], &w[1])).collect();
        let changes = slopes.windows(2).map(|w| w[1].abs_diff(w[0]) / 2);
        let changes = saturate::<i64>(changes.max().unwrap_or(0));
        changes.max(unseen.min(self.unseen())).clamp(1, WILDEST)
    }

    /// By how much its rate may change in the middle of the run without comparisons showing it, ns per s.
    fn unseen(&self) -> i64 {
        let points = &self.compared.points;
        let [Some(first), .., Some(last)] = [points.first(), points.get(ENOUGH - 1), points.last()] else {
            return WILDEST;
        };
        let errors: Vec<i64> = points.iter().map(|p| p.error.saturating_abs()).collect();
        let span = last.local.abs_diff(first.local).max(1);
        saturate(i128::from(median(&errors)) * i128::from(TURNED) * 1_000_000_000 / i128::from(span))
    }

    /// What comparisons leave open: moments, and what may be to be added to the clock as it is corrected now.
    fn gates(&self) -> Vec<Gate> {
        let gate = |p: &Offset| {
            let at = self.map.apply(p.local);
            let off = p.local.saturating_add(p.offset).saturating_sub(at);
            let error = p.error.saturating_abs();
            Gate { at, low: off.saturating_sub(error), high: off.saturating_add(error) }
        };
        self.compared.points.iter().map(gate).collect()
    }
}

/// How fast a clock leaves rank 0's between two comparisons, ns per s.
fn slope(a: &Offset, b: &Offset) -> i64 {
    let run = i128::from(b.local) - i128::from(a.local);
    let rise = i128::from(b.offset) - i128::from(a.offset);
    saturate(rise * 1_000_000_000 / run.max(1))
}

fn median(numbers: &[i64]) -> i64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that was compared every second, each time as exactly.
    fn compared(n: i64, error: i64) -> Clock {
        let points = (0..n).map(|i| Offset { local: i * 1_000_000_000, offset: 0, error }).collect();
        Clock::new(Method::Clc, 0, Comparison { points, ..Comparison::default() })
    }

    #[test]
    fn comparisons_show_how_a_clock_wanders_if_they_are_many_and_exact() {
        let unseen = 1_500;
        // Two say nothing; eight of 7 s that are right to 1 µs would show 8 µs in 7 s.
        assert_eq!(compared(2, 1_000).wanders(unseen), unseen);
        assert_eq!(compared(8, 1_000).wanders(unseen), 8_000 / 7);
        assert_eq!(compared(8, 0).wanders(unseen), 1);
        // Those that are wrong by up to 5 ms do not show more than messages do.
        assert_eq!(compared(8, 5_000_000).wanders(unseen), unseen);
    }
}
