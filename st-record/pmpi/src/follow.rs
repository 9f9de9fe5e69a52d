//! Following the loop in progress: what [`ArgumentCache`](crate::argument_cache::ArgumentCache) is told of the calls, and asked.

use crate::argument_cache::{Inputs, Outs, Seen};
use crate::state::{PAUSED, State};
use crate::thread::Event;
use st_unwind::Registers;
use std::sync::atomic::Ordering;

impl State {
    /// Whether the call that is being made, and whose inputs were read, is to be learned if it succeeds.
    #[inline]
    pub(crate) fn learns(&mut self, thread: usize, inputs: &Inputs<'_>) -> bool {
        if self.cache.pauses() {
            return false;
        }
        // What proves a native call site says nothing of an interpreter's frames.
        let may_be = self.threads.len() == 1 && !self.settings.python && !PAUSED.load(Ordering::Relaxed);
        self.cache.may_learn(inputs, may_be.then(|| self.threads[thread].words.as_slice()))
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
        let length = self.recorder.round(index).map_or(0, |r| r.0);
        if !self.cache.goes_on((self.recorder.round_number(index), length)) {
            return;
        }
        // SAFETY: the caller's promise; the state's first thread is the calling one.
        let proof = self.threads[0].unwinder.as_ref().and_then(|u| unsafe { u.proof(registers) });
        let effect = self.cache.effect(outs, &self.threads[0], &mut self.requests);
        let (Some(proof), Some(effect)) = (proof, effect) else { return self.cache.begin_again(length) };
        let sym = self.symbol(event);
        let mark = self.mark(0, event.call, event.site);
        let stack = (self.threads[0].stack, proof);
        let seen = Seen { call, site: event.site, stack, mark, sym };
        self.cache.add(seen, inputs, &self.threads[0].words, effect, length);
    }

    /// The call that is being made was expected to be the next step and did not come out so (or another thread has begun to
    /// call): reads its inputs after all.
    #[cold]
    pub(crate) fn prepare_late(&mut self, thread: usize) {
        self.settle_cache();
        let Self { cache, requests, threads, .. } = self;
        let Some(t) = threads.get_mut(thread) else { return };
        t.begin();
        requests.begin();
        cache.read_inputs(t);
    }
}
