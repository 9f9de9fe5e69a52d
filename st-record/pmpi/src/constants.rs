//! What families of MPI differ in, as it is in that of the program's MPI: constants, handles, and the layout of statuses.
//! Nothing here means anything before [`select`] has been called.

use crate::family::Family;
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64};

#[allow(
    dead_code,
    non_snake_case,
    clippy::allow_attributes,
    reason = "generated, in the names of the standard; not all are asked for"
)]
mod generated {
    use super::{AtomicI32, AtomicU64, Constants, Relaxed, Word, c_int};
    include!(concat!(env!("OUT_DIR"), "/constants.rs"));
    pub(super) static ALL: [&Constants; 3] = [&OPENMPI, &MPICH, &STANDARD];
    pub(super) static STORED: (&[AtomicI32], &[AtomicU64]) = (&INTEGERS, &WORDS);
    pub(super) static NAMED: &[(&str, &str)] = &NAMES;
}
pub(crate) use generated::*;

/// A family's constants, in the order of `families.txt`.
struct Constants {
    integers: &'static [c_int],
    words: &'static [Word],
}

/// A handle or pointer.
enum Word {
    Is(u64),
    /// The address of what the library calls so.
    AddressOf(&'static CStr),
    /// What its variable holds.
    HeldBy(&'static CStr),
    Absent,
}

/// A word that no handle is.
const ABSENT: u64 = u64::MAX;

static FAMILY: AtomicU8 = AtomicU8::new(0);
/// The bits of a word that a handle fills.
static MASK: AtomicU64 = AtomicU64::new(u64::MAX);

/// The family of the program's MPI.
#[inline]
pub(crate) fn family() -> Family {
    match FAMILY.load(Relaxed) {
        0 => Family::Openmpi,
        1 => Family::Mpich,
        _ => Family::Standard,
    }
}

/// The bits of a word that a handle fills: MPICH's are `int`s, the others' pointers.
#[inline]
pub(crate) fn mask() -> u64 {
    MASK.load(Relaxed)
}

/// The program's MPI is of this family, and `find` says where its library has what it calls so.
///
/// # Safety
///
/// What is found is that library's.
pub(crate) unsafe fn select(family: Family, find: impl Fn(&CStr) -> *const c_void) {
    FAMILY.store(family as u8, Relaxed);
    MASK.store(if family == Family::Mpich { u64::from(u32::MAX) } else { u64::MAX }, Relaxed);
    let constants = ALL[family as usize];
    for (to, from) in STORED.0.iter().zip(constants.integers) {
        to.store(*from, Relaxed);
    }
    for (to, from) in STORED.1.iter().zip(constants.words) {
        let found = |name: &CStr| Some(find(name)).filter(|address| !address.is_null());
        let word = match from {
            Word::Is(word) => Some(*word),
            Word::AddressOf(name) => found(name).map(|address| address.expose_provenance() as u64),
            // SAFETY: the caller's promise: it is a pointer.
            Word::HeldBy(name) => found(name).map(|address| unsafe { *address.cast::<u64>() }),
            Word::Absent => None,
        };
        to.store(word.unwrap_or(ABSENT), Relaxed);
    }
}

/// Predefined objects of a section of `families.txt` by their handles, without the null one.
pub(crate) fn predefined(section: &str, null: u64) -> HashMap<u64, &'static str, FixedState> {
    let mut names = HashMap::default();
    for ((of, name), word) in NAMED.iter().zip(STORED.1) {
        let handle = word.load(Relaxed);
        if *of == section && handle != null && handle != ABSENT {
            names.entry(handle).or_insert(*name);
        }
    }
    names
}

/// Selects a family for a test, as long as the result lives.
#[cfg(test)]
pub(crate) fn selected(family: Family) -> std::sync::MutexGuard<'static, ()> {
    use std::sync::{Mutex, PoisonError};
    static LOCK: Mutex<()> = Mutex::new(());
    let guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: nothing is found.
    unsafe { select(family, |_| std::ptr::null()) };
    guard
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_has_its_own_column() {
        for (family, status, world) in
            [(Family::Openmpi, 24, ABSENT), (Family::Mpich, 20, 0x4400_0000), (Family::Standard, 32, 0x101)]
        {
            let _selected = selected(family);
            assert_eq!((super::family(), sizeof_MPI_Status(), MPI_COMM_WORLD()), (family, status, world));
            assert_eq!(mask() == u64::MAX, family != Family::Mpich);
        }
    }
}
