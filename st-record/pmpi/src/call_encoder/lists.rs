//! Array parameters.
//!
//! SAFETY, for the whole module: pointers and lengths are the program's own; MPI reads the same elements.
#![expect(clippy::undocumented_unsafe_blocks, reason = "one reason for the module, above")]

use super::CallEncoder;
use crate::constants as k;
use crate::ffi::{Handles, Integer, is_mark};
use crate::normal;
use st_model::num::{narrow, saturate};
use st_model::values::{NONE, UNWEIGHTED};
use std::ffi::c_int;

/// Displacements above this are addresses: no program describes a buffer of that length from its start.
const ADDRESS: i64 = 1 << 32;

/// The program's array; empty for a length that is not positive.
unsafe fn slice<'a, T>(p: *const T, n: i64) -> &'a [T] {
    match usize::try_from(n) {
        Ok(n) if n > 0 && !p.is_null() => unsafe { std::slice::from_raw_parts(p, n) },
        _ => &[],
    }
}

/// Whether displacements are those of blocks that follow each other.
fn is_prefix_sum<D: Integer, N: Integer>(displacements: &[D], counts: &[N]) -> bool {
    let mut sum = 0_i64;
    displacements.iter().zip(counts).all(|(d, n)| {
        let here = d.word() == sum;
        sum = sum.wrapping_add(n.word());
        here
    })
}

/// Displacements relative to the smallest one if that is an address.
fn relative<D: Integer>(displacements: &[D]) -> impl Iterator<Item = i64> + '_ {
    let base = displacements.iter().map(|d| d.word()).min().filter(|m| *m > ADDRESS).unwrap_or(0);
    displacements.iter().map(move |d| d.word() - base)
}

impl CallEncoder<'_> {
    /// Adds a list.
    fn list<T: Copy>(&mut self, items: &[T], word: impl Fn(T) -> i64) {
        let words = &mut self.own().words;
        words.push(narrow(items.len()));
        words.extend(items.iter().map(|x| word(*x)));
    }

    /// Integers.
    pub(crate) unsafe fn ints<T: Integer>(&mut self, p: *const T, n: i64) {
        self.list(unsafe { slice(p, n) }, T::word);
    }
    /// Truth values.
    pub(crate) unsafe fn flags(&mut self, p: *const c_int, n: i64) {
        self.list(unsafe { slice(p, n) }, |v| i64::from(v != 0));
    }
    /// Distributions.
    pub(crate) unsafe fn distribs(&mut self, p: *const c_int, n: i64) {
        self.list(unsafe { slice(p, n) }, normal::distribution);
    }
    /// Arguments of distributions.
    pub(crate) unsafe fn dargs(&mut self, p: *const c_int, n: i64) {
        self.list(unsafe { slice(p, n) }, normal::distribution_argument);
    }
    /// Datatypes.
    pub(crate) unsafe fn types(&mut self, p: Handles, n: i64) {
        let n = if p.is_nowhere() { 0 } else { saturate(n) };
        self.push(narrow(n));
        for i in 0..n {
            let index = self.datatype(unsafe { p.get(i) });
            self.push(index);
        }
    }
    /// Displacements of blocks with these counts; nothing if the blocks follow each other.
    pub(crate) unsafe fn displacements<D: Integer, N: Integer>(
        &mut self,
        p: *const D,
        counts: *const N,
        n: i64,
    ) {
        let (displacements, counts) = unsafe { (slice(p, n), slice(counts, n)) };
        let implied = is_prefix_sum(displacements, counts);
        self.list(if implied { &[] } else { displacements }, D::word);
    }
    /// Displacements in bytes.
    pub(crate) unsafe fn addresses<T: Integer>(&mut self, p: *const T, n: i64) {
        let list = unsafe { slice(p, n) };
        let words = &mut self.own().words;
        words.push(narrow(list.len()));
        words.extend(relative(list));
    }
    /// Weights of edges.
    pub(crate) unsafe fn weights(&mut self, p: *const c_int, n: i64) {
        if is_mark(p, k::MPI_UNWEIGHTED()) {
            self.list(&[UNWEIGHTED], |v| v);
        } else if is_mark(p, k::MPI_WEIGHTS_EMPTY()) {
            self.push(0);
        } else {
            unsafe { self.ints(p, n) };
        }
    }
    /// The last of `n` integers; 0 if there are none.
    pub(crate) unsafe fn last(&self, p: *const c_int, n: i64) -> i64 {
        unsafe { slice(p, n) }.last().copied().map_or(0, i64::from)
    }
    /// The sum of `n` integers.
    pub(crate) unsafe fn sum(&self, p: *const c_int, n: i64) -> i64 {
        unsafe { slice(p, n) }.iter().copied().map(i64::from).sum()
    }
    /// Requests that the call names.
    pub(crate) unsafe fn requests(&mut self, p: Handles, n: i64) {
        let n = if p.is_nowhere() { 0 } else { saturate(n) };
        unsafe { self.request_list(p, n) };
        self.own().listed_at = p.address(0);
    }

    /// Keeps places for an output list of `n` elements.
    pub(crate) fn reserve_list(&mut self, n: i64) -> usize {
        let n = n.max(0);
        let at = self.reserve(n);
        (0..n).for_each(|_| self.push(NONE));
        at
    }
    /// Fills an output list.
    pub(crate) unsafe fn fill<T: Integer>(&mut self, at: usize, p: *const T) {
        let words = &mut self.own().words;
        let n = words[at];
        for (i, v) in unsafe { slice(p, n) }.iter().enumerate() {
            words[at + 1 + i] = v.word();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_in_a_row_need_no_displacements() {
        assert!(is_prefix_sum(&[0, 3, 3, 10], &[3, 0, 7, 1]));
        assert!(!is_prefix_sum(&[0, 3, 4, 10], &[3, 0, 7, 1]));
        assert!(!is_prefix_sum(&[1], &[3]));
        assert!(is_prefix_sum::<c_int, c_int>(&[], &[]));
    }

    #[test]
    fn addresses_are_relative_and_offsets_are_not() {
        assert_eq!(relative(&[8, 0, 16]).collect::<Vec<_>>(), [8, 0, 16]);
        let (l, a) = (ADDRESS, 0x7fff_0000_1000_i64);
        assert_eq!(relative(&[a + 8, a, a + 24]).collect::<Vec<_>>(), [8, 0, 24]);
        assert_eq!(relative(&[l, l + 1]).collect::<Vec<_>>(), [ADDRESS, ADDRESS + 1]);
    }
}
