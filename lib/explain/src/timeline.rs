//! What a thread does from one call to the next, and when it waits: what causes are looked for in.
//!
//! *Memory:* 12 bytes per call ([`Calls`]), 32 per wait, and at most 2 more per call for sums that stand at intervals, so that
//! what is done between two distant times is known without going through all calls between them.

use std::ops::Range;

use crate::calls::{Call, Calls};
use crate::waits::At;

/// What a rank does at a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Activity {
    /// It is outside of MPI, from the call before to the one at the place.
    Computation,
    /// It is in the call at the place.
    Call,
}

/// A rank that does something at a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Doing {
    /// Who, and where.
    pub at: At,
    /// What.
    pub what: Activity,
}

/// An activity at a place by number.
pub(crate) type Code = u32;

pub(crate) fn code(place: u32, what: Activity) -> Code {
    place << 1 | u32::from(what == Activity::Call)
}

/// What a number stands for, on a rank.
pub(crate) fn doing(rank: u32, code: Code) -> Doing {
    let what = if code & 1 == 1 { Activity::Call } else { Activity::Computation };
    Doing { at: At { rank, place: code >> 1 }, what }
}

/// A wait of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    pub(crate) enter: i64,
    pub(crate) until: i64,
    /// When the two threads synchronised last before that.
    pub(crate) since: i64,
    /// The thread that is waited for.
    pub(crate) by: u32,
    /// Where it is then.
    pub(crate) place: u32,
}

impl Held {
    pub(crate) fn ns(&self) -> i64 {
        self.until - self.enter
    }
}

/// One thread.
#[derive(Clone, Default, Debug)]
pub(crate) struct Timeline {
    pub(crate) rank: u32,
    begin: i64,
    /// What it did before the beginning.
    before: Code,
    calls: Calls,
    /// In the order of time.
    pub(crate) waits: Vec<Held>,
    marks: Marks,
}

/// Sums at intervals.
#[derive(Clone, Default, Debug)]
struct Marks {
    /// Calls between two of them.
    every: usize,
    /// Those of the activities of which there are sums.
    codes: Vec<Code>,
    /// Time of each of these without waits, ns, mark by mark.
    sums: Vec<i64>,
    /// How long the waits before each mark are.
    waited: Vec<i64>,
}

/// Times by activity, ns.
#[derive(Debug)]
pub(crate) struct Sums {
    of: Vec<i64>,
    touched: Vec<Code>,
    /// Time in waits, which is in none of them.
    pub(crate) waited: i64,
}

impl Sums {
    /// For a trace of so many places.
    pub(crate) fn new(places: usize) -> Self {
        Self { of: vec![0; 2 * places], touched: Vec::new(), waited: 0 }
    }

    fn add(&mut self, code: Code, ns: i64) {
        let Some(sum) = self.of.get_mut(code as usize).filter(|_| ns != 0) else { return };
        if *sum == 0 {
            self.touched.push(code);
        }
        *sum += ns;
    }

    /// All times that are not 0, each once, and nothing is left.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (Code, i64)> + '_ {
        self.waited = 0;
        let of = &mut self.of;
        let take = |code: Code| (code, std::mem::take(&mut of[code as usize]));
        self.touched.drain(..).map(take).filter(|(_, ns)| *ns != 0)
    }
}

/// Where a thread was looked at last: what is asked next is most often a little earlier, and is looked for from there.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Near {
    call: usize,
    wait: usize,
}

/// A time, so that the difference of two can be told: a trace may hold any number.
fn bounded(time: i64) -> i64 {
    time.clamp(i64::MIN / 8, i64::MAX / 8)
}

/// Fewest calls from one mark to the next.
const EVERY: usize = 64;

/// The first of `n` items, in an order in which those for which `before` holds come first, for which it does not; found in the
/// logarithm of how far that is from a guess.
fn first_after(n: usize, guess: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (guess.min(n), guess.min(n));
    // All below `low` are before, none from `high` on is.
    let mut step = 1;
    while low > 0 && !before(low - 1) {
        high = low - 1;
        low = low.saturating_sub(step);
        step *= 2;
    }
    if high == guess.min(n) {
        let mut step = 1;
        while high < n && before(high) {
            low = high + 1;
            high = (high + step).min(n);
            step *= 2;
        }
    }
    while low < high {
        let middle = low.midpoint(high);
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

impl Timeline {
    pub(crate) fn new(rank: u32) -> Self {
        Self { rank, ..Self::default() }
    }

    /// The first call: what comes before it is this.
    pub(crate) fn start(&mut self, begin: i64, place: u32, what: Activity) {
        (self.begin, self.before) = (bounded(begin), code(place, what));
    }

    /// A call. Times that go back are taken to stand still.
    pub(crate) fn call(&mut self, place: u32, enter: i64, exit: i64) {
        let enter = bounded(enter).max(self.end());
        self.calls.push(Call { place, enter, exit: bounded(exit).max(enter) });
    }

    /// A wait in the last call, or one before it, for a thread that comes to a place.
    pub(crate) fn wait(&mut self, enter: i64, until: i64, by: u32, place: u32) {
        let (enter, until) = (bounded(enter), bounded(until));
        if self.waits.len() == self.waits.capacity() {
            // A list that grows by doubling would take twice as much.
            self.waits.reserve_exact(self.waits.len() / 8 + 4);
        }
        self.waits.push(Held { enter, until, since: enter, by, place });
    }

    pub(crate) fn begin(&self) -> i64 {
        self.begin
    }

    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    pub(crate) fn before(&self) -> Code {
        self.before
    }

    pub(crate) fn end(&self) -> i64 {
        self.calls.end().unwrap_or(self.begin)
    }

    /// Number of the first call that ends after a time.
    pub(crate) fn call_at(&self, time: i64, near: usize) -> usize {
        first_after(self.calls.len(), near, |call| self.calls.get(call).is_some_and(|c| c.exit <= time))
    }

    /// Where the call is that is made at a time.
    pub(crate) fn place_at(&self, time: i64, near: &mut Near) -> Option<u32> {
        near.call = self.call_at(time, near.call);
        self.calls.get(near.call).map(|c| c.place)
    }

    /// The thread is over: what is asked for can be found from now on.
    pub(crate) fn finish(&mut self, sums: &mut Sums) {
        self.calls.finish();
        self.waits.sort_by_key(|w| (w.enter, w.until));
        // Where times go back a wait may lie outside of its call.
        let mut calls = self.calls.iter().peekable();
        let mut last = self.begin;
        for wait in &mut self.waits {
            let at = wait.enter.max(last);
            while calls.next_if(|c| c.exit <= at).is_some() {}
            let [enter, exit] = calls.peek().map_or([last; 2], |c| [c.enter, c.exit]);
            wait.enter = at.max(enter);
            wait.until = wait.until.min(exit).max(wait.enter);
            last = wait.until;
        }
        drop(calls);
        self.waits.retain(|w| w.ns() > 0);
        self.mark(sums);
    }

    fn mark(&mut self, sums: &mut Sums) {
        self.calls.iter().for_each(|c| sums.add(code(c.place, Activity::Call), 1));
        let mut places: Vec<u32> = sums.drain().map(|(code, _)| code >> 1).collect();
        places.sort_unstable();
        let both = |p| [code(p, Activity::Computation), code(p, Activity::Call)];
        let codes: Vec<Code> = places.into_iter().flat_map(both).collect();
        let (n, every) = (codes.len(), EVERY.max(4 * codes.len()));
        self.marks = Marks { every, codes, sums: vec![0; n], waited: vec![0] };
        let (mut waited, mut near) = (0, Near::default());
        for block in 0..self.calls.len() / every {
            near = self.scan(near, self.starts(block)..self.starts(block + 1), 1, sums);
            waited += sums.waited;
            let before = self.marks.sums.len() - n;
            self.marks.sums.extend_from_within(before..);
            for (code, ns) in sums.drain() {
                let at = self.marks.codes.partition_point(|c| *c < code);
                self.marks.sums[before + n + at] += ns;
            }
            self.marks.waited.push(waited);
        }
    }

    /// When a block of calls begins: with the computation before the first.
    fn starts(&self, block: usize) -> i64 {
        let before = (block * self.marks.every).checked_sub(1).and_then(|last| self.calls.get(last));
        before.map_or(self.begin, |c| c.exit)
    }

    /// Adds, or takes away, what is done from one time to another, the first call after which, and the first wait that ends after
    /// which, are known. Returns those of the other time.
    fn scan(
        &self,
        first: Near,
        Range { start: from, end: to }: Range<i64>,
        sign: i64,
        sums: &mut Sums,
    ) -> Near {
        let mut at = first;
        let mut last = from;
        for call in self.calls.from(first.call) {
            if last >= to {
                break;
            }
            sums.add(code(call.place, Activity::Computation), sign * (call.enter.min(to) - last).max(0));
            let (enter, end) = (call.enter.max(last), call.exit.min(to));
            let mut waited = 0;
            while let Some(wait) = self.waits.get(at.wait).filter(|w| w.enter < end) {
                waited += (wait.until.min(end) - wait.enter.max(enter)).max(0);
                if wait.until > end {
                    break;
                }
                at.wait += 1;
            }
            sums.waited += sign * waited;
            sums.add(code(call.place, Activity::Call), sign * ((end - enter).max(0) - waited));
            at.call += usize::from(call.exit <= to);
            last = call.exit.max(last);
        }
        at
    }

    /// Adds what is done from one time to another, or takes it away (`sign` −1). *Cost:* O(log calls + places), the logarithm that
    /// of how far both times are from where the thread was looked at last.
    pub(crate) fn window(&self, span: Range<i64>, sign: i64, near: &mut Near, sums: &mut Sums) {
        let (from, to) = (span.start.max(self.begin), span.end.min(self.end()));
        if to <= from {
            return;
        }
        let wait_at = |time, near| first_after(self.waits.len(), near, |i| self.waits[i].until <= time);
        near.call = self.call_at(to, near.call);
        let call = self.call_at(from, near.call);
        let every = self.marks.every;
        // Up to the first mark, and from the last one, unless these are as far as to go straight.
        let (a, b) = (call / every + 1, near.call / every);
        if near.call - call <= 2 * every || b <= a {
            near.wait = wait_at(from, near.wait);
            let wait = self.scan(Near { call, wait: near.wait }, from..to, sign, sums).wait;
            near.wait = wait;
            return;
        }
        let wait = wait_at(from, near.wait);
        self.scan(Near { call, wait }, from..self.starts(a), sign, sums);
        let n = self.marks.codes.len();
        for (block, sign) in [(a, -sign), (b, sign)] {
            let marked = &self.marks.sums[block * n..][..n];
            self.marks.codes.iter().zip(marked).for_each(|(code, ns)| sums.add(*code, sign * ns));
            sums.waited += sign * self.marks.waited[block];
        }
        let start = self.starts(b);
        near.wait =
            self.scan(Near { call: b * every, wait: wait_at(start, near.wait) }, start..to, sign, sums).wait;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// What is done from one time to another, looking at every call; and the waits in that time.
    fn slowly(line: &Timeline, from: i64, to: i64) -> (BTreeMap<Code, i64>, i64) {
        let inside = |a: i64, b: i64| (b.min(to) - a.max(from)).max(0);
        let (mut all, mut waited, mut last) = (BTreeMap::new(), 0, line.begin);
        for Call { place, enter, exit } in line.calls.iter() {
            let own = line.waits.iter().filter(|w| (enter..exit).contains(&w.enter));
            let of_call: i64 = own.map(|w| inside(w.enter, w.until)).sum();
            *all.entry(code(place, Activity::Computation)).or_default() += inside(last, enter);
            *all.entry(code(place, Activity::Call)).or_default() += inside(enter, exit) - of_call;
            (waited, last) = (waited + of_call, exit);
        }
        all.retain(|_, ns| *ns != 0);
        (all, waited)
    }

    proptest! {
        #[test]
        fn the_first_that_is_not_before_is_found_from_any_guess(n in 0..200_usize, at in 0..200_usize, guess in 0..300_usize) {
            prop_assert_eq!(first_after(n, guess, |i| i < at), at.min(n));
        }

        #[test]
        fn windows_are_sums_over_their_calls(
            calls in proptest::collection::vec((0..5_u32, 0..20_i64, 0..20_i64, 0..40_i64), 1..500),
            windows in proptest::collection::vec((-5..10_000_i64, 0..10_000_i64), 20),
        ) {
            let mut line = Timeline::new(0);
            line.start(7, 0, Activity::Call);
            for (place, before, inside, waits) in calls {
                let enter = line.end() + before;
                line.call(place, enter, enter + inside);
                line.wait(enter, enter + (inside - waits).max(0), 0, place);
            }
            let (mut sums, mut near) = (Sums::new(5), Near::default());
            line.finish(&mut sums);
            for (from, long) in windows {
                line.window(from..from + long, 1, &mut near, &mut sums);
                let waited = sums.waited;
                let found: BTreeMap<Code, i64> = sums.drain().collect();
                prop_assert_eq!((found, waited), slowly(&line, from, from + long));
            }
        }
    }
}
