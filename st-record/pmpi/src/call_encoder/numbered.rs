//! Attribute keys, error handlers, sessions; error codes by their classes; and what types are made of.
//!
//! SAFETY, for the whole module: as in [`crate::comms`].
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use super::CallEncoder;
use crate::constants as k;
use crate::ffi::{Handle, Handles, Integer};
use crate::normal;
use crate::numbered::named;
use crate::real;
use st_model::num::saturate;
use st_model::values::NULL;
use std::ffi::c_int;

impl CallEncoder<'_> {
    /// A predefined attribute key, or null.
    fn known_keyval(keyval: c_int) -> Option<i64> {
        let known = k::keyvals().iter().position(|&x| x == keyval).map(named);
        known.or_else(|| (keyval == k::MPI_KEYVAL_INVALID()).then_some(NULL))
    }
    /// Word of an attribute key.
    pub(crate) fn keyval(&mut self, keyval: c_int) -> i64 {
        Self::known_keyval(keyval).unwrap_or_else(|| self.state.minor.keyvals.number(key(keyval)))
    }
    /// A new attribute key.
    pub(crate) fn new_keyval(&mut self, keyval: c_int) -> i64 {
        self.state.minor.keyvals.refer(key(keyval))
    }
    /// Forgets an attribute key.
    pub(crate) fn free_keyval(&mut self, keyval: c_int) {
        self.state.minor.keyvals.free(key(keyval));
    }
    /// Word of an error handler.
    pub(crate) fn errhandler(&mut self, handle: u64) -> i64 {
        let minor = &mut self.state.minor;
        minor.predefined.get(&handle).copied().unwrap_or_else(|| minor.errhandlers.number(handle))
    }
    /// An error handler that the call made, or returned.
    pub(crate) fn new_errhandler(&mut self, handle: u64) -> i64 {
        let minor = &mut self.state.minor;
        minor.predefined.get(&handle).copied().unwrap_or_else(|| minor.errhandlers.refer(handle))
    }
    /// Forgets a reference to an error handler.
    pub(crate) fn free_errhandler(&mut self, handle: u64) {
        self.state.minor.errhandlers.free(handle);
    }
    /// Number of a session.
    pub(crate) fn session(&mut self, handle: u64) -> i64 {
        match handle {
            h if h == k::MPI_SESSION_NULL() => NULL,
            h => self.state.minor.sessions.number(h),
        }
    }
    /// A new session.
    pub(crate) fn new_session(&mut self, handle: u64) -> i64 {
        self.session(handle)
    }
    /// Forgets a session.
    pub(crate) fn free_session(&mut self, handle: u64) {
        self.state.minor.sessions.free(handle);
    }
    /// Class of an error code, as a word; 0 for success.
    #[expect(clippy::unused_self, reason = "called as the others")]
    pub(crate) fn error(&self, code: c_int) -> i64 {
        if code == 0 { 0 } else { i64::from(normal::class_of(i64::from(code))) }
    }
    /// An error class, as a word.
    #[expect(clippy::unused_self, reason = "called as the others")]
    pub(crate) fn errorclass(&self, class: c_int) -> i64 {
        if class == 0 { 0 } else { i64::from(normal::error_class(class)) }
    }

    /// Types that a type is made of, `n` of them in the program's array: a last slot. The library hands out references
    /// to those that a program made, and the program gives them back by `MPI_Type_free`.
    pub(crate) unsafe fn contents<T: Integer>(&mut self, at: usize, types: Handles, n: T) {
        let n = n.word();
        self.set(at, n.max(0));
        for i in 0..saturate(n) {
            let handle = unsafe { types.get(i) };
            // Open MPI gives a copy, MPICH the type once more.
            if self.state.types.knows(handle) {
                self.state.types.retain(handle);
            }
            let index = self.datatype(handle);
            self.push(index);
        }
    }
}

/// An attribute key among handles.
fn key(keyval: c_int) -> u64 {
    u64::from(keyval.cast_unsigned())
}

/// Number of types that a type is made of.
pub(crate) fn parts(datatype: Handle) -> c_int {
    let (mut integers, mut addresses, mut types, mut combiner) = (0, 0, 0, 0);
    unsafe {
        real::MPI_Type_get_envelope(
            datatype,
            &raw mut integers,
            &raw mut addresses,
            &raw mut types,
            &raw mut combiner,
        );
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::Family;
    use st_model::values::FIRST_NAMED;

    #[test]
    fn predefined_keys_have_words_of_their_own() {
        let _family = k::selected(Family::Standard);
        assert_eq!(CallEncoder::known_keyval(k::MPI_KEYVAL_INVALID()), Some(NULL));
        assert_eq!(CallEncoder::known_keyval(k::keyvals()[0]), Some(FIRST_NAMED));
        assert_eq!(CallEncoder::known_keyval(k::keyvals()[4]), Some(FIRST_NAMED - 4));
    }
}
