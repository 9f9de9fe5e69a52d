//! What a thread does from one call to the next, and when it waits: what causes are looked for in.
//!
//! *Memory:* 20 bytes per call, 32 per wait, and at most 4 more per call for sums that stand at intervals, so that what is
//! done between two times is known without going through all calls between them.

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
    places: Vec<u32>,
    times: Vec<[i64; 2]>,
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
    /// Waits before each mark, ns.
    waits: Vec<i64>,
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

/// A time, so that the difference of two can be told: a trace may hold any number.
fn bounded(time: i64) -> i64 {
    time.clamp(i64::MIN / 8, i64::MAX / 8)
}

/// Fewest calls from one mark to the next.
const EVERY: usize = 32;

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
        self.places.push(place);
        self.times.push([enter, bounded(exit).max(enter)]);
    }

    /// A wait in the last call, or one before it, for a thread that comes to a place.
    pub(crate) fn wait(&mut self, enter: i64, until: i64, (by, place): (u32, u32)) {
        let (enter, until) = (bounded(enter), bounded(until));
        self.waits.push(Held { enter, until, since: enter, by, place });
    }

    pub(crate) fn begin(&self) -> i64 {
        self.begin
    }

    pub(crate) fn before(&self) -> Code {
        self.before
    }

    pub(crate) fn end(&self) -> i64 {
        self.times.last().map_or(self.begin, |t| t[1])
    }

    /// Where the call is that is made at a time.
    pub(crate) fn place_at(&self, time: i64) -> Option<u32> {
        let next = self.times.partition_point(|[_, exit]| *exit <= time);
        self.places.get(next).copied()
    }

    /// The thread is over: what is asked for can be found from now on.
    pub(crate) fn finish(&mut self, sums: &mut Sums) {
        self.waits.sort_by_key(|w| (w.enter, w.until));
        // Where times go back a wait may lie outside of its call.
        let (mut last, mut call) = (self.begin, 0);
        for wait in &mut self.waits {
            let before = |[_, exit]: &[i64; 2]| *exit <= wait.enter.max(last);
            call += self.times[call..].iter().take_while(|times| before(times)).count();
            let [enter, exit] = self.times.get(call).copied().unwrap_or([last; 2]);
            wait.enter = wait.enter.max(last).max(enter);
            wait.until = wait.until.min(exit).max(wait.enter);
            last = wait.until;
        }
        self.waits.retain(|w| w.ns() > 0);
        let mut places = self.places.clone();
        places.sort_unstable();
        places.dedup();
        let both = |p| [code(p, Activity::Computation), code(p, Activity::Call)];
        let codes: Vec<Code> = places.into_iter().flat_map(both).collect();
        let every = EVERY.max(2 * codes.len());
        self.marks = Marks { every, codes, sums: Vec::new(), waits: vec![0] };
        self.mark(sums);
    }

    fn mark(&mut self, sums: &mut Sums) {
        let (n, mut waited) = (self.marks.codes.len(), 0);
        self.marks.sums = vec![0; n];
        for block in 0..self.times.len() / self.marks.every {
            let end = self.starts(block + 1);
            self.scan(self.starts(block), end, 1, sums);
            waited += sums.waited;
            let before = self.marks.sums.len() - n;
            self.marks.sums.extend_from_within(before..);
            for (code, ns) in sums.drain() {
                let at = self.marks.codes.partition_point(|c| *c < code);
                self.marks.sums[before + n + at] += ns;
            }
            self.marks.waits.push(waited);
        }
    }

    /// When a block of calls begins: with the computation before the first.
    fn starts(&self, block: usize) -> i64 {
        let first = block * self.marks.every;
        if first == 0 { self.begin } else { self.times[first - 1][1] }
    }

    /// The last block that begins at a time or before it.
    fn block(&self, time: i64) -> usize {
        let (mut low, mut high) = (0, self.marks.waits.len());
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.starts(middle) <= time { low = middle } else { high = middle }
        }
        low
    }

    /// Adds what is done from one time to another, or takes it away, call by call. *Cost:* O(log calls + calls between them).
    fn scan(&self, from: i64, to: i64, sign: i64, sums: &mut Sums) {
        let first = self.times.partition_point(|[_, exit]| *exit <= from);
        let mut last = first.checked_sub(1).map_or(self.begin, |before| self.times[before][1]).max(from);
        let first_wait = self.waits.partition_point(|w| w.until <= from);
        let mut waits = self.waits[first_wait..].iter().peekable();
        for (place, [enter, exit]) in self.places[first..].iter().zip(&self.times[first..]) {
            if last >= to {
                return;
            }
            sums.add(code(*place, Activity::Computation), sign * ((*enter).min(to) - last).max(0));
            let (start, end) = ((*enter).max(from), (*exit).min(to));
            let mut waited = 0;
            while let Some(wait) = waits.peek().filter(|w| w.enter < end) {
                waited += (wait.until.min(end) - wait.enter.max(start)).max(0);
                if wait.until > end {
                    break;
                }
                waits.next();
            }
            sums.waited += sign * waited;
            sums.add(code(*place, Activity::Call), sign * ((end - start).max(0) - waited));
            last = *exit;
        }
    }

    /// Adds what is done from one time to another, or takes it away (`sign` −1). *Cost:* O(log calls + the calls between them,
    /// or the places if these are fewer).
    pub(crate) fn window(&self, from: i64, to: i64, sign: i64, sums: &mut Sums) {
        if to <= from {
            return;
        }
        let (a, b) = (self.block(from) + 1, self.block(to));
        if b < a {
            return self.scan(from, to, sign, sums);
        }
        self.scan(from, self.starts(a), sign, sums);
        let n = self.marks.codes.len();
        for (block, sign) in [(a, -sign), (b, sign)].into_iter().filter(|_| a != b) {
            let marked = &self.marks.sums[block * n..][..n];
            self.marks.codes.iter().zip(marked).for_each(|(code, ns)| sums.add(*code, sign * ns));
            sums.waited += sign * self.marks.waits[block];
        }
        self.scan(self.starts(b), to, sign, sums);
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
        for (place, [enter, exit]) in line.places.iter().zip(&line.times) {
            let own = line.waits.iter().filter(|w| (enter..exit).contains(&&w.enter));
            let of_call: i64 = own.map(|w| inside(w.enter, w.until)).sum();
            *all.entry(code(*place, Activity::Computation)).or_default() += inside(last, *enter);
            *all.entry(code(*place, Activity::Call)).or_default() += inside(*enter, *exit) - of_call;
            (waited, last) = (waited + of_call, *exit);
        }
        all.retain(|_, ns| *ns != 0);
        (all, waited)
    }

    proptest! {
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
                line.wait(enter, enter + (inside - waits).max(0), (0, place));
            }
            let mut sums = Sums::new(5);
            line.finish(&mut sums);
            for (from, long) in windows {
                line.window(from, from + long, 1, &mut sums);
                let waited = sums.waited;
                let found: BTreeMap<Code, i64> = sums.drain().collect();
                prop_assert_eq!((found, waited), slowly(&line, from, from + long));
            }
        }
    }
}
