//! Learning the steps of a round, while its calls are recorded one by one.

use super::{
    ARGUMENTS, ArgumentCache, CachedCall, Effect, FOLLOWING, Inputs, LONGEST, Made, NULL, Outs, Phase,
};
use crate::ffi::Handles;
use crate::journal::Mark;
use crate::local::made_at;
use crate::requests::{Key, Requests};
use crate::thread::Thread;
use st_model::section::Sym;
use st_unwind::Proof;
use std::sync::atomic::Ordering;

/// A call that has been recorded, as far as only others know it.
pub(crate) struct Seen {
    pub(crate) call: u16,
    pub(crate) site: u32,
    /// The unwinder's number of its stack, and what proves that.
    pub(crate) stack: (u32, Proof),
    pub(crate) mark: Mark,
    pub(crate) sym: Sym,
}

impl ArgumentCache {
    /// Whether calls are let pass for now; counts them.
    #[inline]
    pub(crate) fn pauses(&mut self) -> bool {
        match &mut self.phase {
            Phase::Idle(pause) if *pause > 0 => {
                *pause -= 1;
                true
            }
            _ => false,
        }
    }

    /// Whether the call that is being made is to be learned if it succeeds. Its inputs were read into `words`; `None`: it must not
    /// be.
    pub(crate) fn may_learn(&mut self, inputs: &Inputs<'_>, words: Option<&[i64]>) -> bool {
        let fits = match inputs {
            Inputs::Unknown => false,
            Inputs::Scalars { values, .. } => values.len() <= ARGUMENTS,
            Inputs::Requests { .. } => true,
        };
        let Some(words) = words.filter(|_| fits) else {
            if matches!(self.phase, Phase::Learning(_)) {
                self.fail();
            }
            return false;
        };
        self.before.clear();
        self.before.extend_from_slice(words);
        true
    }

    /// A call has been recorded that is part of a round, given by its number and length: whether it can be learned.
    pub(crate) fn goes_on(&mut self, (number, length): (u64, usize)) -> bool {
        if length == 0 || length > LONGEST {
            // The round that was being learned was not the last one.
            self.phase = Phase::Idle(0);
            return false;
        }
        if self.phase != Phase::Learning(number) {
            self.phase = Phase::Learning(number);
            self.restart();
            self.restarts = 0;
        }
        true
    }

    /// The call cannot be learned. A round, of this length, is learned from where it completes no request of the round before.
    pub(crate) fn begin_again(&mut self, length: usize) {
        self.restart();
        self.restarts += 1;
        if self.restarts > length {
            self.fail();
        }
    }

    /// Learns a call of a round of a length. `words` are those that it has after it was made.
    pub(crate) fn add(
        &mut self,
        seen: Seen,
        inputs: &Inputs<'_>,
        words: &[i64],
        effect: Effect,
        length: usize,
    ) {
        let mut values = [0; ARGUMENTS];
        if let Inputs::Scalars { values: v, .. } = inputs {
            values[..v.len()].copy_from_slice(v);
        }
        let Seen { call, site, stack, mark, sym } = seen;
        let (before, words) = (self.before.clone(), words.to_vec());
        self.steps.push(CachedCall {
            call,
            site,
            stack,
            others: Vec::new(),
            next: 0,
            mark,
            sym,
            values,
            before,
            words,
            changed: Vec::new(),
            effect,
        });
        if self.steps.len() == length {
            self.learned();
        }
    }

    /// Begins with the next call.
    fn restart(&mut self) {
        self.steps.clear();
        self.made.clear();
        self.open.clear();
    }

    /// What the thread's call has done to requests; `None` if that cannot be learned.
    pub(crate) fn effect(&mut self, outs: Outs, thread: &Thread, requests: &mut Requests) -> Option<Effect> {
        match outs {
            Outs::Nothing | Outs::Status { .. } | Outs::Words { .. } => Some(Effect::None),
            Outs::Request(place) => {
                let key = (*thread.listed.last()?)?;
                // SAFETY: the call has written it.
                let handle = unsafe { place.get(0) };
                let kind = requests.get(key).kind;
                self.open.push(self.made.len());
                self.made.push(Made { handle, place: place.address(0), kind, key });
                Some(Effect::Makes(self.made.len() - 1))
            }
            Outs::Completed(_) => {
                let (made, open) = (&self.made, &mut self.open);
                let mut completed = 0;
                let mut find = |key: &Option<Key>| {
                    let Some(key) = key else { return Some(NULL) };
                    completed += 1;
                    let i = open.iter().position(|o| made[*o].key == *key)?;
                    Some(open.swap_remove(i))
                };
                let of = thread.listed.iter().map(&mut find).collect::<Option<Box<[_]>>>()?;
                let first = Handles::at(thread.listed_at);
                let mut named = thread.listed.iter().enumerate();
                let in_place = named.all(|(i, key)| {
                    key.is_none_or(|key| requests.is_made_at(key, made_at(i, first.address(i))))
                });
                // Not if a request was inactive.
                let lists = thread.words.len().checked_sub(4 * (completed + 1))?;
                let n = i64::try_from(completed).ok()?;
                let whole = lists == self.before.len()
                    && thread.words[lists..].iter().step_by(completed + 1).all(|length| *length == n);
                whole.then_some(Effect::Completes { requests: of, first: thread.listed_at, in_place })
            }
        }
    }

    /// All steps are known: follows them, if what a round makes it also completes.
    fn learned(&mut self) {
        if !self.open.is_empty() {
            return self.fail();
        }
        (self.phase, self.at, self.followed) = (Phase::Following, 0, 0);
        FOLLOWING.store(true, Ordering::Relaxed);
    }
}
