//! Memory for messages: arbitrary bytes of sufficient size.
//!
//! Nobody looks at what is sent, so all sends share one buffer (several reads at once are no conflict) and all
//! blocking receives another; what one-sided operations and parted reads of files bring shares a third, whatever order it
//! comes in. A non-blocking receive has a block of its own until it completes.

use st_model::num::narrow;
use std::collections::BTreeMap;
use std::ffi::c_void;

use anyhow::{Context, Result};

/// Bytes that a transfer touches, relative to the buffer address that MPI is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Span {
    /// First byte; 0 or negative.
    pub(crate) low: i64,
    /// One past the last byte; 0 or positive.
    pub(crate) high: i64,
}

impl Span {
    /// What `count` elements touch, the first of them `first` extents from the buffer address.
    /// `lower` and `bytes` are the true lower bound and true extent of one element.
    pub(crate) fn elements(first: i64, count: i64, extent: i64, lower: i64, bytes: i64) -> Result<Self> {
        if count <= 0 || bytes <= 0 {
            return Ok(Self::default());
        }
        let start = |i: i64| i.checked_mul(extent).and_then(|at| at.checked_add(lower));
        let ends = || {
            let (a, b) = (start(first)?, start(first.checked_add(count - 1)?)?);
            Some(Self { low: a.min(b).min(0), high: a.max(b).checked_add(bytes)?.max(0) })
        };
        ends().context("a message larger than the address space")
    }

    /// `size` bytes from the buffer address on.
    pub(crate) fn bytes(size: i64) -> Self {
        Self { low: 0, high: size.max(0) }
    }

    /// Both spans.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The span, moved by a displacement in bytes.
    pub(crate) fn shifted(self, by: i64) -> Result<Self> {
        let (low, high) = (self.low.checked_add(by), self.high.checked_add(by));
        let (low, high) = low.zip(high).context("a displacement beyond the address space")?;
        Ok(Self { low: low.min(0), high: high.max(0) })
    }
}

/// A piece of memory, aligned for every basic type.
#[derive(Debug, Default)]
pub(crate) struct Block(Vec<u128>);

/// Size of a block's unit.
const UNIT: u64 = 16;

impl Block {
    /// Zeroed memory (untouched pages cost nothing) of at least `units` units.
    fn new(units: usize) -> Self {
        Self(vec![0; units])
    }

    /// The address to give to MPI so that the span lies inside the block.
    fn address(&mut self, span: Span) -> *mut c_void {
        let before = span.low.unsigned_abs().div_ceil(UNIT);
        let before = narrow::<usize>(before);
        self.0.as_mut_ptr().wrapping_add(before).cast()
    }
}

/// Units that a span needs.
fn units(span: Span) -> Result<usize> {
    let units = span.low.unsigned_abs().div_ceil(UNIT) + span.high.unsigned_abs().div_ceil(UNIT);
    usize::try_from(units.max(1)).context("a message larger than the address space")
}

/// A buffer that several operations use at a time.
#[derive(Debug, Default)]
struct Shared {
    block: Block,
    /// Smaller ones from before: operations that started then may still use them.
    outgrown: Vec<Block>,
}

impl Shared {
    fn address(&mut self, span: Span) -> Result<*mut c_void> {
        let needed = units(span)?;
        if self.block.0.len() < needed {
            let old = std::mem::replace(&mut self.block, Block::new(needed.next_power_of_two()));
            // Doubling: all outgrown blocks together are smaller than the one in use.
            self.outgrown.push(old);
        }
        Ok(self.block.address(span))
    }
}

/// All message memory of a rank.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    send: Shared,
    receive: Block,
    landing: Shared,
    /// Free blocks by their number of units, a power of two.
    free: BTreeMap<usize, Vec<Block>>,
}

impl Memory {
    /// An address to send from.
    pub(crate) fn source(&mut self, span: Span) -> Result<*mut c_void> {
        self.send.address(span)
    }

    /// An address at which several operations may write at any time from now on.
    pub(crate) fn landing(&mut self, span: Span) -> Result<*mut c_void> {
        self.landing.address(span)
    }

    /// An address for a blocking call to receive at. Valid until the next call of this function.
    pub(crate) fn sink(&mut self, span: Span) -> Result<*mut c_void> {
        let needed = units(span)?;
        if self.receive.0.len() < needed {
            self.receive = Block::new(needed.next_power_of_two());
        }
        Ok(self.receive.address(span))
    }

    /// A block to receive into while other calls are made, and the address in it. Returned by [`Memory::release`].
    pub(crate) fn lease(&mut self, span: Span) -> Result<(Block, *mut c_void)> {
        let size = units(span)?.next_power_of_two();
        let mut block = self.free.get_mut(&size).and_then(Vec::pop).unwrap_or_else(|| Block::new(size));
        let address = block.address(span);
        Ok((block, address))
    }

    /// Takes a leased block back.
    pub(crate) fn release(&mut self, block: Block) {
        self.free.entry(block.0.len()).or_default().push(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_cover_what_elements_touch() {
        // Three elements of 8 bytes, 10 apart, data from byte 2 on.
        assert_eq!(Span::elements(0, 3, 10, 2, 6).unwrap(), Span { low: 0, high: 28 });
        assert_eq!(Span::elements(0, 3, -10, 0, 6).unwrap(), Span { low: -20, high: 6 });
        assert_eq!(Span::elements(5, 0, 10, 0, 6).unwrap(), Span::default());
        assert!(Span::elements(0, i64::MAX, 8, 0, 8).is_err());
        assert_eq!(Span { low: 0, high: 8 }.shifted(-20).unwrap(), Span { low: -20, high: 0 });
    }

    #[test]
    fn addresses_leave_room_on_both_sides() {
        let mut m = Memory::default();
        let (mut block, at) = m.lease(Span { low: -20, high: 6 }).unwrap();
        let start = block.0.as_mut_ptr() as usize;
        assert!(at as usize - start >= 20);
        assert!(start + block.0.len() * 16 >= at as usize + 6);
        let kept = block.0.len();
        m.release(block);
        let (again, _) = m.lease(Span { low: -20, high: 6 }).unwrap();
        assert_eq!((again.0.len(), m.free[&kept].len()), (kept, 0));
    }

    #[test]
    fn a_growing_send_buffer_keeps_what_is_still_read() {
        let mut m = Memory::default();
        let first = m.source(Span::bytes(100)).unwrap();
        assert_eq!(m.source(Span::bytes(50)).unwrap(), first);
        assert_ne!(m.source(Span::bytes(1000)).unwrap(), first);
        assert_eq!(m.send.outgrown.iter().filter(|b| !b.0.is_empty()).count(), 1);
    }
}
