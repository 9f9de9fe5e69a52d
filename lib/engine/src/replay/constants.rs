//! The constants of the MPI at hand that bindings cannot carry, and predefined handles by name.
#![expect(unsafe_code, reason = "calls the C shim")]

use st_model::num::narrow;
use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::num::TryFromIntError;

use mpi::ffi;
use st_model::values;

/// Macros of `mpi.h`. The C shim fills it, field by field in this order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constants {
    pub(crate) in_place: *mut c_void,
    pub(crate) unweighted: *mut c_int,
    pub(crate) weights_empty: *mut c_int,
    pub(crate) comm_world: ffi::MPI_Comm,
    pub(crate) comm_self: ffi::MPI_Comm,
    pub(crate) comm_null: ffi::MPI_Comm,
    pub(crate) group_empty: ffi::MPI_Group,
    pub(crate) group_null: ffi::MPI_Group,
    pub(crate) type_null: ffi::MPI_Datatype,
    pub(crate) byte: ffi::MPI_Datatype,
    pub(crate) op_null: ffi::MPI_Op,
    pub(crate) request_null: ffi::MPI_Request,
    pub(crate) message_null: ffi::MPI_Message,
    pub(crate) message_no_proc: ffi::MPI_Message,
    pub(crate) win_null: ffi::MPI_Win,
    pub(crate) file_null: ffi::MPI_File,
    pub(crate) info_null: ffi::MPI_Info,
    pub(crate) info_env: ffi::MPI_Info,
    pub(crate) errhandler_null: ffi::MPI_Errhandler,
    pub(crate) errhandlers: [ffi::MPI_Errhandler; values::ERRHANDLERS.len()],
    pub(crate) proc_null: c_int,
    pub(crate) any_source: c_int,
    pub(crate) any_tag: c_int,
    pub(crate) root: c_int,
    pub(crate) undefined: c_int,
    pub(crate) order: [c_int; 2],
    pub(crate) distribute: [c_int; 3],
    pub(crate) default_argument: c_int,
    pub(crate) split_shared: c_int,
    pub(crate) type_class: [c_int; 3],
    /// `MPI_GRAPH`, `MPI_CART`, `MPI_DIST_GRAPH`.
    pub(crate) topologies: [c_int; 3],
    pub(crate) asserts: [c_int; values::ASSERT.len()],
    pub(crate) amodes: [c_int; values::AMODE.len()],
    pub(crate) lock_types: [c_int; values::LOCK_TYPE.len()],
    pub(crate) whences: [c_int; values::WHENCE.len()],
    pub(crate) keyvals: [c_int; values::KEYVALS.len()],
    /// -1 for a class that this MPI has not.
    pub(crate) errors: [c_int; values::ERROR_CLASSES.len()],
}

unsafe extern "C" {
    fn st_constants(out: *mut Constants);
    fn st_type(name: *const c_char, out: *mut ffi::MPI_Datatype) -> c_int;
    /// An error handler that does nothing.
    pub(crate) fn st_no_handler(comm: *mut ffi::MPI_Comm, code: *mut c_int, ...);
    /// The same for windows.
    pub(crate) fn st_no_win_handler(win: *mut ffi::MPI_Win, code: *mut c_int, ...);
    /// The same for files.
    pub(crate) fn st_no_file_handler(file: *mut ffi::MPI_File, code: *mut c_int, ...);
    fn st_op(name: *const c_char, out: *mut ffi::MPI_Op) -> c_int;
}

impl Constants {
    /// The constants of the MPI that is linked.
    pub(crate) fn load() -> Self {
        let mut all = MaybeUninit::uninit();
        // SAFETY: the shim writes every field of the structure, which both sides declare alike.
        unsafe {
            st_constants(all.as_mut_ptr());
            all.assume_init()
        }
    }

    /// A rank word as the library's `int`. Ranks are below 2^31 in every MPI.
    pub(crate) fn rank(&self, word: i64) -> c_int {
        match word {
            values::PROC_NULL => self.proc_null,
            values::ANY_SOURCE => self.any_source,
            values::ROOT => self.root,
            rank => narrow(rank),
        }
    }

    /// A tag word as the library's `int`.
    pub(crate) fn tag(&self, word: i64) -> c_int {
        if word == values::ANY_TAG { self.any_tag } else { narrow(word) }
    }

    /// The sum of constants that a word's bits stand for. Bits of another library's own are left out.
    fn sum(constants: &[c_int], word: i64) -> c_int {
        let set = constants.iter().enumerate().filter(|(bit, _)| word >> bit & 1 == 1);
        set.fold(0, |sum, (_, constant)| sum | constant)
    }

    /// An `assert` word as the library's `int`.
    pub(crate) fn assert(&self, word: i64) -> c_int {
        Self::sum(&self.asserts, word)
    }

    /// An `amode` word as the library's `int`.
    pub(crate) fn amode(&self, word: i64) -> c_int {
        Self::sum(&self.amodes, word)
    }

    /// A `locktype` word as the library's `int`.
    pub(crate) fn lock_type(&self, word: i64) -> c_int {
        let known = usize::try_from(word).ok().and_then(|w| self.lock_types.get(w));
        known.copied().unwrap_or(self.lock_types[1])
    }

    /// A `whence` word as the library's `int`.
    pub(crate) fn whence(&self, word: i64) -> c_int {
        let known = usize::try_from(word).ok().and_then(|w| self.whences.get(w));
        known.copied().unwrap_or(self.whences[0])
    }

    /// A plain word in which `MPI_UNDEFINED` may stand.
    pub(crate) fn plain(&self, word: i64) -> Result<c_int, TryFromIntError> {
        if word == values::UNDEFINED { Ok(self.undefined) } else { c_int::try_from(word) }
    }
}

/// A predefined datatype by its C name; `None` if this MPI has none of the name.
pub(crate) fn predefined_type(name: &str, null: ffi::MPI_Datatype) -> Option<ffi::MPI_Datatype> {
    let name = CString::new(name).ok()?;
    let mut out = null;
    // SAFETY: a terminated string and a handle of our own.
    let found = unsafe { st_type(name.as_ptr(), &raw mut out) };
    (found != 0 && out != null).then_some(out)
}

/// A predefined operation by its C name; `None` if this MPI has none of the name.
pub(crate) fn predefined_op(name: &str, null: ffi::MPI_Op) -> Option<ffi::MPI_Op> {
    let name = CString::new(name).ok()?;
    let mut out = null;
    // SAFETY: a terminated string and a handle of our own.
    let found = unsafe { st_op(name.as_ptr(), &raw mut out) };
    (found != 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_in_the_order_of_the_trace() {
        let k = Constants::load();
        let at = |list: &[&str], name| list.iter().position(|n| *n == name).expect("a name of the list");
        // Some of which mpi.h says more than the name.
        let class = |name| k.errors[at(&values::ERROR_CLASSES, name)];
        assert_eq!([class("MPI_ERR_BUFFER"), class("MPI_ERR_COUNT"), class("MPI_ERR_TYPE")], [1, 2, 3]);
        assert_eq!(class("MPI_ERR_TAG"), 4);
        let keys: std::collections::BTreeSet<_> = k.keyvals.iter().collect();
        assert_eq!(keys.len(), k.keyvals.len(), "no two keys are one: {:?}", k.keyvals);
    }
}
