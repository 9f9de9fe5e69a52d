//! What processes tell each other of their findings, as words.

use st_match::graph::{Example, Issues, Shortest, Survey, Tally};
use st_model::num::narrow;

fn wide(n: u64) -> i64 {
    n.cast_signed()
}

fn put_u128(out: &mut Vec<i64>, n: u128) {
    out.extend([n >> 64, n & u128::from(u64::MAX)].map(|half| narrow::<u64>(half).cast_signed()));
}

/// Words taken one after the other; what is missing is 0.
pub(crate) struct Words<'a>(pub(crate) std::slice::Iter<'a, i64>);

impl Words<'_> {
    pub(crate) fn one(&mut self) -> i64 {
        self.0.next().copied().unwrap_or(0)
    }
    fn count(&mut self) -> u64 {
        self.one().cast_unsigned()
    }
    fn u128(&mut self) -> u128 {
        u128::from(self.count()) << 64 | u128::from(self.count())
    }
    pub(crate) fn id(&mut self) -> u32 {
        narrow(self.one())
    }
    fn tally(&mut self) -> Tally {
        Tally {
            messages: self.count(),
            reversed: self.count(),
            violated: self.count(),
            error: self.u128(),
            largest: self.one(),
        }
    }
    pub(crate) fn survey(&mut self) -> Survey {
        let mut s = Survey {
            messages: self.tally(),
            collective: self.tally(),
            pairs: self.tally(),
            shortest: Shortest { near: self.one(), far: self.one() },
            ..Survey::default()
        };
        for _ in 0..self.count() {
            s.over_time.push(self.count());
        }
        for _ in 0..self.count() {
            let pair = (self.id(), self.id());
            s.ranks.insert(pair, self.tally());
        }
        s
    }
    pub(crate) fn issues(&mut self) -> Issues {
        let mut n = || self.count();
        let mut issues = Issues {
            sends: n(),
            receives: n(),
            incomplete: n(),
            cancelled: n(),
            ambiguous: n(),
            requests: n(),
            members: n(),
            disagreements: n(),
            neighbours: n(),
            untimed: n(),
            locks: n(),
            examples: Vec::new(),
        };
        for _ in 0..self.count() {
            let (from, to, tag) = (self.one(), self.one(), self.one());
            issues.examples.push(Example { from, to, tag, n: self.count(), receives: self.one() != 0 });
        }
        issues
    }
    /// A value that may be missing.
    pub(crate) fn maybe(&mut self) -> Option<i64> {
        let there = self.one() != 0;
        let value = self.one();
        there.then_some(value)
    }
    /// A sum.
    pub(crate) fn sum(&mut self) -> u128 {
        self.u128()
    }
}

fn put_tally(out: &mut Vec<i64>, t: &Tally) {
    out.extend([t.messages, t.reversed, t.violated].map(wide));
    put_u128(out, t.error);
    out.push(t.largest);
}

/// Without its span, which all processes know.
pub(crate) fn put_survey(out: &mut Vec<i64>, s: &Survey) {
    [s.messages, s.collective, s.pairs].iter().for_each(|t| put_tally(out, t));
    out.extend([s.shortest.near, s.shortest.far]);
    out.push(wide(s.over_time.len() as u64));
    out.extend(s.over_time.iter().map(|n| wide(*n)));
    out.push(wide(s.ranks.len() as u64));
    for ((a, b), t) in &s.ranks {
        out.extend([*a, *b].map(i64::from));
        put_tally(out, t);
    }
}

pub(crate) fn put_issues(out: &mut Vec<i64>, i: &Issues) {
    let counts = [i.sends, i.receives, i.incomplete, i.cancelled, i.ambiguous, i.requests, i.members];
    out.extend(counts.iter().chain(&[i.disagreements, i.neighbours, i.untimed, i.locks]).map(|n| wide(*n)));
    out.push(wide(i.examples.len() as u64));
    for e in &i.examples {
        out.extend([e.from, e.to, e.tag, wide(e.n), i64::from(e.receives)]);
    }
}

pub(crate) fn put_maybe(out: &mut Vec<i64>, value: Option<i64>) {
    out.extend([i64::from(value.is_some()), value.unwrap_or(0)]);
}

pub(crate) fn put_sum(out: &mut Vec<i64>, sum: u128) {
    put_u128(out, sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_come_back() {
        let tally = Tally { messages: 7, reversed: 3, violated: 4, error: (9 << 64) + 5, largest: 11 };
        let shortest = Shortest { near: -7, far: i64::MAX };
        let mut survey = Survey { messages: tally, over_time: vec![0, 2, 5], shortest, ..Survey::default() };
        survey.ranks.insert((3, 1), tally);
        let example = Example { from: 1, to: -1, tag: i64::MIN + 1, n: 2, receives: true };
        let issues =
            Issues { sends: 1, untimed: u64::MAX, locks: 3, examples: vec![example; 2], ..Issues::default() };
        let mut words = Vec::new();
        put_survey(&mut words, &survey);
        put_issues(&mut words, &issues);
        put_maybe(&mut words, Some(-4));
        put_maybe(&mut words, None);
        put_sum(&mut words, 1 << 70);
        let mut back = Words(words.iter());
        assert_eq!((back.survey(), back.issues()), (survey, issues));
        assert_eq!((back.maybe(), back.maybe(), back.sum()), (Some(-4), None, 1 << 70));
        assert!(back.0.next().is_none());
    }
}
