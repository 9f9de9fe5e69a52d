//! Tests that find nothing, and for whom they are made: for who comes last to what the next test that finds something completes.
//!
//! They are no wait states, as in Scalasca, where tests never wait: what they take is told as polling, and only whose fault it is is found
//! here.

use st_model::num::saturate;

/// Tests at one place, one after another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Poll {
    pub(crate) place: u32,
    /// When the first is entered and the last is left.
    pub(crate) enter: i64,
    pub(crate) exit: i64,
    /// How long they and the time between those that follow each other at once are, ns.
    pub(crate) ns: u64,
}

impl Poll {
    /// How long it is before a time, ns: of tests with other things between them, as if they were spread evenly.
    pub(crate) fn until(&self, time: i64) -> u64 {
        let whole: u64 = saturate(self.exit.saturating_sub(self.enter));
        let part: u64 = saturate(time.min(self.exit).saturating_sub(self.enter));
        if part >= whole {
            return self.ns;
        }
        saturate(u128::from(self.ns) * u128::from(part) / u128::from(whole.max(1)))
    }
}

/// Places that are kept apart.
const PLACES: usize = 8;

/// What a thread has tested for in vain since it found something or waited.
#[derive(Clone, Default, Debug)]
pub(crate) struct Polls(Vec<Poll>);

impl Polls {
    pub(crate) fn add(&mut self, poll: Poll) {
        if let Some(known) = self.0.iter_mut().find(|p| p.place == poll.place) {
            known.exit = poll.exit;
            known.ns = known.ns.saturating_add(poll.ns);
        } else if self.0.len() < PLACES {
            self.0.push(poll);
        }
    }

    /// When the first was entered; nothing if there are none.
    pub(crate) fn since(&self) -> Option<i64> {
        self.0.first().map(|poll| poll.enter)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Poll> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_before_a_time_with_what_of_them_is() {
        let mut polls = Polls::default();
        polls.add(Poll { place: 1, enter: 100, exit: 200, ns: 100 });
        let parts = |polls: &Polls, time| polls.iter().map(|p| p.until(time)).collect::<Vec<_>>();
        assert_eq!([50, 150, 900].map(|time| parts(&polls, time)), [vec![0], vec![50], vec![100]]);
        polls.add(Poll { place: 2, enter: 200, exit: 210, ns: 10 });
        polls.add(Poll { place: 1, enter: 400, exit: 500, ns: 100 });
        assert_eq!((polls.since(), parts(&polls, 300)), (Some(100), vec![100, 10]));
    }
}
