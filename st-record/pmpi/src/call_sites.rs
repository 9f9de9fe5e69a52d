//! Which call site of the trace a stack is: looked up, once it has been found.

use foldhash::fast::FixedState;
use st_model::calls::CallId;
use std::collections::HashMap;

/// No function has this number.
const NO_CALL: CallId = CallId(0);

/// Sites of the recorder's table by the unwinder's number of a stack.
#[derive(Default)]
pub(crate) struct KnownSites {
    /// The function last called from there, and the site of such a call.
    last: Vec<(CallId, u32)>,
    /// The site for each function, if similar ones are taken for one: which ones are depends on the function.
    similar: HashMap<(u32, CallId), u32, FixedState>,
}

impl KnownSites {
    /// The site, if the function was the last one that was called from there.
    #[inline]
    pub(crate) fn last(&self, stack: u32, call: CallId) -> Option<u32> {
        self.last.get(stack as usize).filter(|(of, _)| *of == call).map(|(_, site)| *site)
    }

    /// The site, if it is known. `exact`: it is one for all functions.
    pub(crate) fn get(&mut self, stack: u32, call: CallId, exact: bool) -> Option<u32> {
        let site = if exact {
            self.last.get(stack as usize).filter(|(of, _)| *of != NO_CALL).map(|(_, site)| *site)
        } else {
            self.similar.get(&(stack, call)).copied()
        };
        site.inspect(|site| self.note(stack, call, *site))
    }

    /// Remembers a site that was not known.
    pub(crate) fn put(&mut self, stack: u32, call: CallId, site: u32, exact: bool) {
        if !exact {
            self.similar.insert((stack, call), site);
        }
        self.note(stack, call, site);
    }

    fn note(&mut self, stack: u32, call: CallId, site: u32) {
        let at = stack as usize;
        if self.last.len() <= at {
            self.last.resize(at + 1, (NO_CALL, 0));
        }
        self.last[at] = (call, site);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_sites_are_known_by_function_and_others_for_all() {
        let (a, b) = (CallId(20), CallId(24));
        for exact in [false, true] {
            let mut known = KnownSites::default();
            assert_eq!((known.last(2, a), known.get(2, a, exact)), (None, None));
            known.put(2, a, 7, exact);
            assert_eq!((known.last(2, a), known.last(2, b), known.last(1, a)), (Some(7), None, None));
            assert_eq!(known.get(2, b, exact), exact.then_some(7));
            known.put(2, b, 8, exact);
            assert_eq!((known.last(2, b), known.last(2, a)), (Some(8), None));
            assert_eq!(known.get(2, a, exact), Some(if exact { 8 } else { 7 }));
        }
    }
}
