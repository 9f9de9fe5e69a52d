//! Learning the steps of a round, while its calls are recorded one by one.

use super::{ARGUMENTS, Echo, Effect, FOLLOWING, Inputs, LONGEST, Made, NULL, Outs, Phase, Step};
use crate::ffi::Handle;
use crate::requests::{Key, Requests};
use crate::state::{Event, PAUSED, State, Thread};
use st_unwind::Registers;
use std::sync::atomic::Ordering;

impl State {
    /// Whether the call that is being made, and whose inputs were read, is to be learned if it succeeds.
    #[inline]
    pub(crate) fn learns(&mut self, thread: usize, inputs: &Inputs<'_>) -> bool {
        if let Phase::Idle(pause) = &mut self.echo.phase
            && *pause > 0
        {
            *pause -= 1;
            return false;
        }
        self.may_learn(thread, inputs)
    }

    fn may_learn(&mut self, thread: usize, inputs: &Inputs<'_>) -> bool {
        let fits = match inputs {
            Inputs::Unknown => false,
            Inputs::Scalars { values, .. } => values.len() <= ARGUMENTS,
            Inputs::Requests { .. } => true,
        };
        if !fits || self.threads.len() != 1 || PAUSED.load(Ordering::Relaxed) {
            if matches!(self.echo.phase, Phase::Learning(_)) {
                self.echo.fail();
            }
            return false;
        }
        self.echo.before.clear();
        self.echo.before.extend_from_slice(&self.threads[thread].words);
        true
    }

    /// Learns a call that has been recorded.
    ///
    /// # Safety
    ///
    /// The function in which the registers were captured must not have returned.
    pub(crate) unsafe fn learn(
        &mut self,
        call: u16,
        registers: Registers,
        event: &Event,
        inputs: &Inputs<'_>,
        outs: Outs,
    ) {
        let index = self.threads[0].index;
        let round = (self.recorder.round_number(index), self.recorder.round(index).map_or(0, |r| r.0));
        if round.1 == 0 || round.1 > LONGEST {
            // The round that was being learned was not the last one.
            self.echo.phase = Phase::Idle(0);
            return;
        }
        if self.echo.phase != Phase::Learning(round.0) {
            self.echo.phase = Phase::Learning(round.0);
            self.echo.restart();
            self.echo.restarts = 0;
        }
        // SAFETY: the caller's promise; the state's first thread is the calling one.
        let proof = unsafe { self.threads[0].unwinder.proof(registers) };
        let (Some(proof), Some(effect)) =
            (proof, self.echo.effect(outs, &self.threads[0], &mut self.requests))
        else {
            // A round is learned from where it completes no request of the round before.
            self.echo.restart();
            self.echo.restarts += 1;
            if self.echo.restarts > round.1 {
                self.echo.fail();
            }
            return;
        };
        let mut values = [0; ARGUMENTS];
        if let Inputs::Scalars { values: v, .. } = inputs {
            values[..v.len()].copy_from_slice(v);
        }
        let sym = self.symbol(event);
        let (before, words) = (self.echo.before.clone(), self.threads[0].words.clone());
        let mark = self.mark(0, event.call, event.site);
        self.echo.steps.push(Step {
            call,
            site: event.site,
            proof,
            mark,
            sym,
            values,
            before,
            words,
            changed: Vec::new(),
            effect,
        });
        if self.echo.steps.len() == round.1 {
            self.echo.learned();
        }
    }
}

impl Echo {
    /// Begins with the next call.
    fn restart(&mut self) {
        self.steps.clear();
        self.made.clear();
        self.open.clear();
    }

    /// What the thread's call has done to requests; `None` if that cannot be learned.
    fn effect(&mut self, outs: Outs, thread: &Thread, requests: &mut Requests) -> Option<Effect> {
        match outs {
            Outs::Nothing | Outs::Status { .. } => Some(Effect::None),
            Outs::Request(place) => {
                let key = (*thread.listed.last()?)?;
                // SAFETY: the call has written it.
                let handle = unsafe { *place }.raw();
                let kind = requests.get(key).kind;
                self.open.push(self.made.len());
                self.made.push(Made { handle, place: place.expose_provenance(), kind, key });
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
                // Not if a request was inactive.
                let lists = thread.words.len().checked_sub(4 * (completed + 1))?;
                let n = i64::try_from(completed).ok()?;
                let whole = lists == self.before.len()
                    && thread.words[lists..].iter().step_by(completed + 1).all(|length| *length == n);
                whole.then_some(Effect::Completes { requests: of, first: thread.listed_at })
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
