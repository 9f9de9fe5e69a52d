//! How far two clocks are apart, by what exchanges of messages leave open.

use st_model::columns::Offset;

/// Two clocks part by no more than two thousandths of the time: NTP lets none go more than 500 millionths too fast or too slow, and
/// as much is left for what the recorder's own clock, which follows the system's, works off.
const APART: i64 = 500;

/// What is to be added to the child's clock for the parent's, at least and at most, when the child read it last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    /// The child's clock then, and the parent's at the latest.
    local: i64,
    here: i64,
    low: i64,
    high: i64,
}

/// What exchanges so far say together. A message may be quick one way in one of them, and the other way in another one:
/// where ranks wait for processors no exchange need be quick both ways.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Apart(Option<Range>);

impl Apart {
    /// The child has read its clock after the parent sent, and before the parent received the answer.
    pub(super) fn exchanged(&mut self, sent: i64, theirs: i64, received: i64) {
        let new = Range { local: theirs, here: received, low: sent - theirs, high: received - theirs };
        let both = self.0.map(|old| {
            // The old bounds are of when the child read its clock before.
            let wider = part(theirs - old.local);
            Range { low: new.low.max(old.low - wider), high: new.high.min(old.high + wider), ..new }
        });
        // A clock that was set in between begins anew.
        self.0 = Some(both.filter(|both| both.low <= both.high).unwrap_or(new));
    }

    /// What is open, ns, once anything is known.
    pub(super) fn open(&self) -> Option<i64> {
        self.0.map(|range| range.high - range.low)
    }

    /// The child's comparison with the first clock of all, from the parent's, which may have moved on since it was compared.
    /// Ranks on one node read one clock, unless exchanges prove that they do not.
    pub(super) fn passed_on(&self, own: Offset, far: bool) -> Option<Offset> {
        let Range { local, here, low, high } = self.0?;
        let same = !far && low <= 0 && high >= 0;
        let (offset, error) =
            if same { (0, high.max(-low)) } else { (low + (high - low) / 2, (high - low + 1) / 2) };
        // The first clock is right, and so is that of its node.
        let first = own.error == 0 || (same && own.offset == 0);
        let moved = if first { 0 } else { part(here - own.local) };
        Some(Offset { local, offset: own.offset + offset, error: own.error + error + moved })
    }
}

/// By how much two clocks part in some time, at most.
const fn part(time: i64) -> i64 {
    time.saturating_abs() / APART + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, from 0 up to, but not including, `end`.
    struct Chance(u64);

    impl Chance {
        fn below(&mut self, end: i64) -> i64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i64::try_from((self.0 >> 33) % end.unsigned_abs()).unwrap()
        }

        /// How long a message takes: some hundred ns, and often until its receiver has a processor again.
        fn takes(&mut self, slow: i64) -> i64 {
            let longest = 1 << self.below(22);
            let waits = if self.below(100) < slow { self.below(longest) } else { 0 };
            500 + self.below(300) + waits
        }
    }

    /// A clock: what it is ahead at time 0, and how much faster it goes, ns per s.
    #[derive(Clone, Copy)]
    struct Fake {
        ahead: i64,
        drift: i64,
    }

    impl Fake {
        fn shows(self, t: i64) -> i64 {
            t + self.ahead + i64::try_from(i128::from(t) * i128::from(self.drift) / 1_000_000_000).unwrap()
        }
    }

    /// A child compared with its parent, `rounds` exchanges from a time on; the time when that has ended.
    fn compared(
        clocks: [Fake; 2],
        (rounds, slow): (usize, [i64; 2]),
        mut now: i64,
        chance: &mut Chance,
    ) -> (Apart, i64) {
        let (mut apart, [parent, child]) = (Apart::default(), clocks);
        for _ in 0..rounds {
            let sent = now;
            let there = sent + chance.takes(slow[0]);
            now = there + chance.takes(slow[1]);
            apart.exchanged(parent.shows(sent), child.shows(there), parent.shows(now));
            now += 200;
        }
        (apart, now)
    }

    #[test]
    fn no_rank_is_farther_off_than_stated_however_long_messages_take() {
        let (mut chance, mut exceeded, mut all) = (Chance(1), 0, 0);
        let right = Fake { ahead: 0, drift: 0 };
        for case in 0..200 {
            // Mostly late, in one direction more than in the other.
            let slow = [chance.below(100), chance.below(100)];
            let mut fake = || Fake {
                ahead: chance.below(10_000_000) - 5_000_000,
                drift: chance.below(900_000) - 450_000,
            };
            let clocks = [right, fake(), fake(), fake()];
            // A chain: each passes on what it knows, later.
            let (mut own, mut now) = (Offset { local: 0, offset: 0, error: 0 }, 0);
            for pair in clocks.windows(2) {
                let (apart, end) = compared([pair[0], pair[1]], (30, slow), now, &mut chance);
                own = apart.passed_on(own, case % 2 == 0).unwrap();
                now = end + chance.below(50_000_000);
                // When the child's clock showed this.
                let fast = i128::from(1_000_000_000 + pair[1].drift);
                let shown = i128::from(own.local - pair[1].ahead) * 1_000_000_000;
                let truth = i64::try_from(shown / fast).unwrap() - own.local;
                exceeded += usize::from((own.offset - truth).abs() > own.error + 2);
                all += 1;
            }
        }
        assert_eq!((exceeded, all), (0, 600));
    }

    #[test]
    fn a_message_is_quick_there_in_one_exchange_and_back_in_another() {
        let mut apart = Apart::default();
        apart.exchanged(0, 700, 5_000_700);
        apart.exchanged(5_001_000, 9_001_000, 9_001_800);
        // Each way less than a µs, and what clocks may part by in nine ms.
        assert_eq!(apart.open(), Some(700 + 800 + 18_000 + 1));
    }

    #[test]
    fn bounds_are_of_when_the_child_read_its_clock() {
        // Its clock is fast by 600 millionths; the first answer comes late.
        let shows = |t: i64| t + t * 600 / 1_000_000;
        let mut apart = Apart::default();
        apart.exchanged(0, shows(700), 5_000_700);
        apart.exchanged(5_001_000, shows(9_001_000), 9_001_800);
        let own = Offset { local: 0, offset: 0, error: 0 };
        let told = apart.passed_on(own, true).unwrap();
        assert!((told.offset + 9_001_000 * 600 / 1_000_000).abs() <= told.error, "{told:?}");
    }

    #[test]
    fn ranks_on_a_node_read_one_clock_unless_exchanges_prove_otherwise() {
        let own = Offset { local: 0, offset: 5, error: 0 };
        let mut apart = Apart::default();
        apart.exchanged(0, 900, 1_500);
        assert_eq!(apart.passed_on(own, false), Some(Offset { local: 900, offset: 5, error: 900 }));
        assert_eq!(apart.passed_on(own, true), Some(Offset { local: 900, offset: 5 - 150, error: 750 }));
        apart.exchanged(2_000, 5_000, 4_000);
        let open = Offset { local: 5_000, offset: 5 - 2_000, error: 1_000 };
        assert_eq!(apart.passed_on(own, false), Some(open));
    }
}
