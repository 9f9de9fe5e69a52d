//! How far clocks may be from what comparisons make of them, by what messages say.
//!
//! No message arrives before it was sent. So with each message one clock bounds the other: what is sent to it bounds it
//! from below, what it sends from above. A bound holds at one moment; clocks change their rates little, so that it holds a
//! little wider before and after, and it is handed on by messages to clocks further away. What a comparison says is a bound
//! on both sides. Between its bounds a clock is taken to go the shortest way.
//!
//! Sources: bounds by messages, Duda, Harrus, Haddad, Bernard 1987 (convex hulls for pairs of clocks) and Jezequel 1989 (along
//! a tree); here all clocks are bounded at once, as in a system of difference constraints, part of the run by part.

use std::ops::Range;

use crate::lags::{Lag, Lags};
use crate::taut_string::{Gate, Point, line};
use st_model::num::{narrow, saturate};

/// No bound: far enough for sums of a few of them.
const FAR: i64 = 1 << 60;
/// By how much a clock's rate changes at most, ns per s. Clocks of computers keep their rates within some thousandths of this;
/// only fake ones need more.
pub(crate) const WILDEST: i64 = 5_000_000;
/// By how much a clock's rate changes without messages showing it, ns per s: some times what a quartz wanders in minutes.
pub(crate) const WANDER: i64 = 2_000;
/// Blocks of parts in each of which some messages should be as quick as they can be.
const BLOCKS: usize = 16;
/// How often what messages show is looked at, with the rates that were found; and the rate that leaves bounds, in what they
/// leave open by the run's length: one that turns in its middle goes twice as far as this asks for.
const SHOWN: usize = 2;
pub(crate) const TURNED: i64 = 8;
/// Turns in which bounds are handed on between clocks, and through time; and, in each, between clocks in one part.
const TURNS: usize = 3;
const HOPS: usize = 64;

/// What is to be added to each clock at least and at most, ns, by clock and part of the run. The first clock is right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    low: Vec<Vec<i64>>,
    high: Vec<Vec<i64>>,
    /// Clocks of which bounds contradict each other.
    torn: Vec<bool>,
    /// First and last part in which a clock was compared, or had a message; the first before the last.
    known: Vec<(usize, usize)>,
}

impl Bounds {
    /// From what messages took, what comparisons leave open at their moments, and the clocks' rates, ns per s.
    ///
    /// *Cost:* O(entries of `lags` · turns).
    pub(crate) fn new(lags: &Lags, gates: &[Vec<Gate>], rates: &[i64]) -> Self {
        Self::of(Messages { lags, quickest: &between(lags) }, gates, rates)
    }

    fn of(messages: Messages<'_>, gates: &[Vec<Gate>], rates: &[i64]) -> Self {
        let lags = messages.lags;
        let mut bounds = Self::of_messages(messages, rates);
        bounds.known = known(lags, gates);
        for (clock, gates) in gates.iter().enumerate().skip(1) {
            let widened: Vec<Gate> = gates.iter().map(|g| widened(*g, lags, rates[clock])).collect();
            bounds.tighten(clock, lags, &widened);
            for gate in widened {
                let part = lags.part(gate.at);
                bounds.raise(clock, part, gate.low);
                bounds.lower(clock, part, gate.high);
            }
        }
        bounds.hand_on(messages, rates);
        bounds
    }

    /// Nothing known yet, but that the first clock is right.
    fn open(lags: &Lags, clocks: usize) -> Self {
        let open = |bound: i64| vec![vec![bound; lags.parts()]; clocks];
        let mut bounds =
            Self { low: open(-FAR), high: open(FAR), torn: vec![false; clocks], known: Vec::new() };
        for clock in [&mut bounds.low, &mut bounds.high] {
            if let Some(first) = clock.first_mut() {
                first.fill(0);
            }
        }
        bounds
    }

    /// What messages say without comparisons.
    fn of_messages(messages: Messages<'_>, rates: &[i64]) -> Self {
        let mut bounds = Self::open(messages.lags, rates.len());
        bounds.hand_on(messages, rates);
        bounds
    }

    /// By how much each clock's rate may change at least without messages showing it, ns per s: where these leave so much
    /// open, a clock that turns in the middle of the run leaves it.
    pub(crate) fn shown(lags: &Lags, gates: &[Vec<Gate>]) -> Vec<i64> {
        let mut rates = vec![WANDER; gates.len()];
        if gates.iter().all(Vec::is_empty) {
            return rates;
        }
        rates.iter_mut().take(1).for_each(|first| *first = 0);
        let quickest = between(lags);
        for _ in 0..SHOWN {
            let bounds = Self::of_messages(Messages { lags, quickest: &quickest }, &rates);
            for (clock, rate) in rates.iter_mut().enumerate().skip(1) {
                let span = gates[clock]
                    .first()
                    .zip(gates[clock].last())
                    .map_or(0, |(a, b)| b.at.saturating_sub(a.at));
                let open = bounds.open_in_half(clock).saturating_mul(TURNED);
                let turns = i128::from(open) * 1_000_000_000 / i128::from(span.max(1));
                *rate = saturate::<i64>(turns).clamp(*rate / 64 + 1, *rate);
            }
        }
        rates
    }

    /// What is open of a clock on either side in half of the run at most.
    fn open_in_half(&self, clock: usize) -> i64 {
        let mut open: Vec<i64> =
            self.high[clock].iter().zip(&self.low[clock]).map(|(h, l)| (h - l) / 2).collect();
        let half = open.len() / 2;
        *open.select_nth_unstable(half).1
    }

    /// Hands bounds on between clocks and through time.
    fn hand_on(&mut self, messages: Messages<'_>, rates: &[i64]) {
        self.through_time(messages.lags, rates);
        // A message may have been sent and received at the ends of its part.
        let most = |lag: &Lag| {
            let rates = rates[lag.clocks.from as usize] + rates[lag.clocks.to as usize];
            Lag { took: lag.took.saturating_add(within(rates, messages.lags.length() / 2)), ..*lag }
        };
        let most: Vec<Lag> = messages.quickest.iter().map(most).collect();
        for _ in 0..TURNS {
            if !self.between_clocks(&most) {
                return;
            }
            self.through_time(messages.lags, rates);
        }
    }

    /// Takes off what messages take at least. What a clock's bounds are apart does not depend on the clock, but on what
    /// messages take to it and back: where they are closest messages were as quick as they can be, and the comparisons tell
    /// how much of that is the way there, and how much the way back.
    fn tighten(&mut self, clock: usize, lags: &Lags, gates: &[Gate]) {
        let (low, high) = (&self.low[clock], &self.high[clock]);
        let known = |part: usize| low[part] > -FAR && high[part] < FAR;
        let block = |block: usize| block * lags.parts() / BLOCKS..(block + 1) * lags.parts() / BLOCKS;
        let of =
            |block: Range<usize>| block.filter(|part| known(*part)).map(|part| high[part] - low[part]).min();
        let mut apart: Vec<i64> = (0..BLOCKS).map(block).filter_map(of).collect();
        apart.sort_unstable();
        let Some(least) = apart.first() else { return };
        // No further below what is there than half of the run is above.
        let both = (2 * least - apart[apart.len() / 2]).max(0);
        let at = |gate: &Gate| Some(lags.part(gate.at)).filter(|part| known(*part)).map(|part| (part, *gate));
        let there = gates.iter().filter_map(at).map(|(part, g)| high[part].saturating_sub(g.low)).min();
        let back = gates.iter().filter_map(at).map(|(part, g)| g.high.saturating_sub(low[part])).min();
        let (Some(there), Some(back)) = (there, back) else { return };
        let (there, back) =
            (both.saturating_sub(back).clamp(0, both), both.saturating_sub(there).clamp(0, both));
        let over = (there + back - both).max(0);
        let (there, back) = (there - over / 2, back - over / 2);
        let bounds = self.low[clock].iter_mut().zip(&mut self.high[clock]);
        for (low, high) in bounds.filter(|(low, high)| **low > -FAR && **high < FAR) {
            *low += back;
            *high -= there;
        }
    }

    /// The lowest rates, but for a factor of two, or four if they are low, with which messages and comparisons contradict each other nowhere, and what bounds
    /// they make.
    pub(crate) fn with_least_rates(
        lags: &Lags,
        gates: &[Vec<Gate>],
        mut rates: Vec<i64>,
    ) -> (Self, Vec<i64>) {
        let quickest = between(lags);
        loop {
            let bounds = Self::of(Messages { lags, quickest: &quickest }, gates, &rates);
            let mut raised = false;
            for (rate, _) in
                rates.iter_mut().zip(&bounds.torn).filter(|(rate, torn)| **torn && **rate < WILDEST)
            {
                let more = if *rate < WANDER / 8 { 4 } else { 2 };
                *rate = (more * *rate).min(WILDEST);
                raised = true;
            }
            if !raised {
                return (bounds, rates);
            }
        }
    }

    /// A bound never crosses the other one: where they contradict each other, the first stays. Whether it has changed.
    fn raise(&mut self, clock: usize, part: usize, to: i64) -> bool {
        let (low, high) = (&mut self.low[clock][part], self.high[clock][part]);
        self.torn[clock] |= to > high;
        let raised = to.clamp(-FAR, high).max(*low);
        std::mem::replace(low, raised) != raised
    }

    fn lower(&mut self, clock: usize, part: usize, to: i64) -> bool {
        let (low, high) = (self.low[clock][part], &mut self.high[clock][part]);
        self.torn[clock] |= to < low;
        let lowered = to.clamp(low, FAR).min(*high);
        std::mem::replace(high, lowered) != lowered
    }

    /// Whether any bound has changed, by messages that took at most so long.
    fn between_clocks(&mut self, most: &[Lag]) -> bool {
        for hop in 0..HOPS {
            let mut changed = false;
            for &Lag { clocks, part, took } in most {
                let (from, to) = (clocks.from as usize, clocks.to as usize);
                changed |= self.raise(to, part, self.low[from][part].saturating_sub(took));
                changed |= self.lower(from, part, self.high[to][part].saturating_add(took));
                // The first clock is right: it is the other one that contradicts it.
                self.torn[from.max(to)] |= std::mem::take(&mut self.torn[0]);
            }
            if !changed {
                return hop > 0;
            }
        }
        true
    }

    fn through_time(&mut self, lags: &Lags, rates: &[i64]) {
        for (clock, rate) in rates.iter().enumerate().skip(1) {
            let step = within(*rate, lags.length());
            let mut hand_on = |from: usize, to: usize| {
                self.raise(clock, to, self.low[clock][from].saturating_sub(step));
                self.lower(clock, to, self.high[clock][from].saturating_add(step));
            };
            (1..lags.parts()).for_each(|part| hand_on(part - 1, part));
            (1..lags.parts()).rev().for_each(|part| hand_on(part, part - 1));
        }
    }

    /// The shortest way of a clock between its bounds, drawn in towards their middle to so many quarters: moments and what is to
    /// be added, from before the first part to after the last. Before the first message or comparison, and after the last, the
    /// clock is taken to go on as it did in as much time on the other side, and to stay as it is beyond that.
    pub(crate) fn way(&self, lags: &Lags, clock: usize, quarters: i64) -> Vec<Point> {
        let gate = |part: usize| {
            let (low, high) = (self.low[clock][part], self.high[clock][part]);
            let half = (high - low) / 2;
            let (middle, half) = (low + half, half / 4 * quarters + half % 4 * quarters / 4);
            Gate { at: lags.middle(part), low: middle - half, high: middle + half }
        };
        let (first, last) = self.known[clock];
        let gates: Vec<Gate> = (first..=last).map(gate).collect();
        let end = |gate: Option<&Gate>, by: i64| {
            gate.map_or((0, 0), |g| (g.at.saturating_add(by), 0.clamp(g.low, g.high)))
        };
        let way = line(end(gates.first(), -lags.length()), &gates, end(gates.last(), lags.length()));
        let begin = lags.middle(0).saturating_sub(lags.length());
        let done = lags.middle(lags.parts() - 1).saturating_add(lags.length());
        let mut whole = beyond(way.iter(), begin);
        whole.reverse();
        whole.extend(&way);
        whole.extend(beyond(way.iter().rev(), done));
        whole
    }

    /// Whether bounds of a clock contradict each other.
    pub(crate) fn is_torn(&self, clock: usize) -> bool {
        self.torn[clock]
    }

    /// How far a clock may be off at most where it sent or received something, ns; `None` if it did neither.
    pub(crate) fn error(&self, clock: usize, parts: impl Iterator<Item = usize>) -> Option<i64> {
        parts.map(|part| self.high[clock][part].max(-self.low[clock][part])).max().filter(|e| *e < FAR)
    }
}

/// What messages say.
#[derive(Clone, Copy)]
struct Messages<'a> {
    lags: &'a Lags,
    /// Those between different clocks.
    quickest: &'a [Lag],
}

fn between(lags: &Lags) -> Vec<Lag> {
    lags.each().filter(|lag| !lag.clocks.is_one()).collect()
}

/// What a gate says in the middle of its part.
fn widened(gate: Gate, lags: &Lags, rate: i64) -> Gate {
    let apart = gate.at.saturating_sub(lags.middle(lags.part(gate.at))).saturating_abs();
    let wider = within(rate, apart);
    Gate { low: gate.low.saturating_sub(wider), high: gate.high.saturating_add(wider), ..gate }
}

/// First and last part in which each clock was compared, or had a message with another one; all parts, if in none.
fn known(lags: &Lags, gates: &[Vec<Gate>]) -> Vec<(usize, usize)> {
    let mut known: Vec<Option<(usize, usize)>> = vec![None; gates.len()];
    let compared =
        gates.iter().enumerate().flat_map(|(clock, g)| g.iter().map(move |g| (clock, lags.part(g.at))));
    let messages = between(lags).into_iter().flat_map(|lag| {
        let clocks = [lag.clocks.from, lag.clocks.to];
        clocks.map(|clock| (clock as usize, lag.part))
    });
    for (clock, part) in compared.chain(messages) {
        let (first, last) = known[clock].get_or_insert((part, part));
        (*first, *last) = (part.min(*first), part.max(*last));
    }
    known.into_iter().map(|k| k.unwrap_or((0, lags.parts() - 1))).collect()
}

/// A way beyond its first point up to a moment, as it goes in as much time from there on, turned about that point; from there
/// outwards, without that point.
fn beyond<'a>(mut way: impl Iterator<Item = &'a Point>, to: i64) -> Vec<Point> {
    let Some(&about) = way.next() else { return Vec::new() };
    let far = i128::from(to.abs_diff(about.0));
    let mut points = Vec::new();
    let mut before = about;
    for &p in way {
        let (run, left) = (i128::from(p.0.abs_diff(before.0)), far - i128::from(before.0.abs_diff(about.0)));
        if left <= 0 {
            break;
        }
        let there = |from: i64, to: i64| {
            let by = i128::from(to.saturating_sub(from)) * run.min(left) / run.max(1);
            from.saturating_add(narrow(by))
        };
        let there = (there(before.0, p.0), there(before.1, p.1));
        let turned = |about: i64, there: i64| about.saturating_sub(there.saturating_sub(about));
        points.push((turned(about.0, there.0), turned(about.1, there.1)));
        before = p;
    }
    points
}

/// What a rate makes in some time, ns.
fn within(rate: i64, time: i64) -> i64 {
    saturate::<i64>(i128::from(rate) * i128::from(time) / 1_000_000_000).min(FAR)
}
