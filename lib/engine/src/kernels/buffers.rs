//! Message buffers at fixed addresses.
#![expect(unsafe_code, reason = "typed elements in raw memory, as MPI sees it")]

use st_model::num::narrow;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;

use st_kernels::{Digest, Kind, Part, content};

/// All buffers of a rank. They live as long as this and never move, so that MPI may use them in the background.
#[derive(Default)]
pub(crate) struct Buffers {
    /// 8-byte words, so that elements of every kind are aligned.
    all: RefCell<Vec<Box<[Cell<u64>]>>>,
}

impl Buffers {
    /// A new buffer of `count` zeros.
    pub(crate) fn make(&self, kind: Kind, count: i32) -> Part {
        let count = count.max(0);
        let bytes = narrow::<usize>(i64::from(count) * i64::from(kind.bytes()));
        let mut all = self.all.borrow_mut();
        all.push((0..bytes.div_ceil(8)).map(|_| Cell::new(0)).collect());
        Part { buffer: all.len() - 1, kind, start: 0, count }
    }

    /// Address of a part.
    pub(crate) fn address(&self, part: Part) -> *mut c_void {
        let all = self.all.borrow();
        let words: &[Cell<u64>] = &all[part.buffer];
        let bytes = narrow::<usize>(i64::from(part.start) * i64::from(part.kind.bytes()));
        let length = narrow::<usize>(i64::from(part.count) * i64::from(part.kind.bytes()));
        assert!(bytes + length <= size_of_val(words), "{part:?} is outside of its buffer");
        words.as_ptr().cast_mut().cast::<u8>().wrapping_add(bytes).cast()
    }

    /// Fills a part with what follows from `seed`.
    pub(crate) fn fill(&self, part: Part, seed: u64) {
        let to = self.address(part);
        for k in 0..narrow(part.count) {
            let x = content(seed, k);
            // SAFETY: `address` has checked that all elements of the part lie in its buffer, which is aligned to 8 bytes
            // and outlives this; the kernels leave parts alone that MPI is using.
            unsafe {
                match part.kind {
                    Kind::Byte => to.cast::<u8>().add(k).write(x.to_le_bytes()[0]),
                    Kind::Int => to.cast::<i32>().add(k).write(small(x)),
                    Kind::Long => to.cast::<u64>().add(k).write(x),
                    Kind::Double => to.cast::<f64>().add(k).write(f64::from(small(x))),
                }
            }
        }
    }

    /// Digest of a part's content.
    pub(crate) fn digest(&self, part: Part) -> u64 {
        let from = self.address(part);
        let mut digest = Digest::new(0, part.count);
        for k in 0..narrow(part.count) {
            // SAFETY: as in `fill`; all bit patterns are values of these types.
            digest.absorb(unsafe {
                match part.kind {
                    Kind::Byte => from.cast::<u8>().add(k).read().into(),
                    Kind::Int => from.cast::<i32>().add(k).read().cast_unsigned().into(),
                    Kind::Long => from.cast::<u64>().add(k).read(),
                    Kind::Double => from.cast::<f64>().add(k).read().to_bits(),
                }
            });
        }
        digest.value()
    }
}

/// 20 bits: sums of doubles over all ranks are then exact in any order.
fn small(x: u64) -> i32 {
    narrow(x & 0xF_FFFF)
}
