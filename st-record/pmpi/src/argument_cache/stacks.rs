//! Steps that come by several stacks, which are one call site.

use super::{ArgumentCache, CachedCall, Inputs, Phase};
use crate::call_sites::KnownSites;
use crate::journal::Mark;
use crate::thread::Thread;
use st_model::calls::CallId;
use st_unwind::{Registers, SiteId, Unwinder};
use std::mem;

/// Stacks of a step that are remembered, beside the one that is expected. Others are looked up each time.
const STACKS: usize = 64;

impl ArgumentCache {
    /// As [`ArgumentCache::expects`], which did not: whether the call comes by another stack than the step was expected by, which leads
    /// to the same call site.
    ///
    /// # Safety
    ///
    /// As there.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn expects_otherwise(
        &mut self,
        call: u16,
        registers: Registers,
        inputs: &Inputs<'_>,
        thread: Option<&mut Thread>,
        sites: &KnownSites,
    ) -> Option<(Mark, u32)> {
        let unwinder = thread?.unwinder.as_mut()?;
        let step =
            self.steps.get_mut(self.at).filter(|s| self.phase == Phase::Following && s.call == call)?;
        // SAFETY: the caller's promise.
        unsafe {
            step.comes_otherwise(registers, unwinder, sites)
                .then(|| self.expects(call, &registers, inputs))?
        }
    }
}

impl CachedCall {
    /// Whether a call of the step's function comes by another stack than the one expected, which leads to the same call site. Then it
    /// takes that one's place.
    ///
    /// # Safety
    ///
    /// The registers are those of a running function.
    unsafe fn comes_otherwise(
        &mut self,
        registers: Registers,
        unwinder: &mut Unwinder,
        sites: &KnownSites,
    ) -> bool {
        // SAFETY: the caller's promise. On another thread's stack the unwinder knows nothing.
        let Some(SiteId(stack)) = (unsafe { unwinder.known_site(registers) }) else { return false };
        if stack == self.stack.0 || sites.last(stack, CallId(self.call)) != Some(self.site) {
            return false;
        }
        let Some(at) = self.others.iter().position(|(other, _)| *other == stack) else {
            if self.others.len() < STACKS
                // SAFETY: the caller's promise.
                && let Some(proof) = unsafe { unwinder.proof(registers) }
            {
                let expected = mem::replace(&mut self.stack, (stack, proof));
                self.others.insert(self.next, expected);
            }
            return true;
        };
        // The others stay in their order, after the one that was expected.
        let (mut at, number) = (at, self.others.len());
        while at != self.next {
            let before = (at + number - 1) % number;
            self.others.swap(at, before);
            at = before;
        }
        mem::swap(&mut self.stack, &mut self.others[at]);
        true
    }

    /// The step has been made: of several stacks the one that has not come for longest is expected next.
    #[inline]
    pub(super) fn turn(&mut self) {
        if !self.others.is_empty() {
            self.turn_to_next();
        }
    }

    #[inline(never)]
    fn turn_to_next(&mut self) {
        if let Some(next) = self.others.get_mut(self.next) {
            mem::swap(&mut self.stack, next);
        }
        self.next += 1;
        if self.next >= self.others.len() {
            self.next = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argument_cache::{Effect, Stack};
    use st_unwind::capture_registers;
    use std::hint::black_box;
    use std::sync::Arc;

    /// As a wrapper does: the caller's line tells stacks apart.
    #[inline(never)]
    fn wrapped(place: u32, work: &mut dyn FnMut(u32, Registers)) {
        work(place, black_box(capture_registers()));
    }

    #[inline(never)]
    fn round(work: &mut dyn FnMut(u32, Registers)) {
        wrapped(0, work);
        wrapped(1, work);
        wrapped(2, work);
        wrapped(3, work);
    }

    fn step(call: u16, site: u32, stack: Stack) -> CachedCall {
        let (before, words, changed) = (Vec::new(), Vec::new(), Vec::new());
        let (values, effect, others) = ([0; 12], Effect::None, Vec::new());
        let mark = Mark::NONE;
        CachedCall {
            call,
            site,
            stack,
            others,
            next: 0,
            mark,
            sym: 0,
            values,
            before,
            words,
            changed,
            effect,
        }
    }

    #[test]
    fn stacks_of_one_site_take_turns() {
        let mut unwinder = Unwinder::new(Arc::default()).with_own_frames();
        let (mut sites, mut learned) = (KnownSites::default(), None);
        let (call, site) = (20, 3);
        let (mut expected, mut others) = (Vec::new(), Vec::new());
        let mut come = |place: u32, registers: Registers| {
            // SAFETY: the registers are of a caller's frame, which has not returned.
            let SiteId(stack) = unsafe { unwinder.call_site(registers) };
            // What proves it is learned when it is known.
            // SAFETY: as above.
            assert_eq!(unsafe { unwinder.known_site(registers) }, Some(SiteId(stack)));
            // The last one is another site.
            sites.put(stack, CallId(call), if place < 3 { site } else { 4 }, false);
            // SAFETY: as above.
            let proof = unsafe { unwinder.proof(registers) }.unwrap();
            let step = learned.get_or_insert_with(|| step(call, site, (stack, proof)));
            // SAFETY: as above.
            let expects = unsafe { step.stack.1.holds(&registers) };
            // SAFETY: as above.
            if expects || unsafe { step.comes_otherwise(registers, &mut unwinder, &sites) } {
                expected.push(expects);
                step.turn();
            } else {
                others.push(place);
            }
        };
        for _ in 0..black_box(4) {
            round(&mut come);
        }
        // Each is looked up once; then they are expected in their order.
        let mut all = vec![true, false, false];
        all.resize(12, true);
        assert_eq!((expected, others), (all, vec![3; 4]));
    }
}
