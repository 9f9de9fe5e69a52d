//! A call site known by the stack that led to it, for who expects the same call again.

use crate::frame::Registers;
use crate::rules::Check;
use crate::stack::read_word;

/// What a stack was that led to a call site: if registers and slots are the same again, so is the site.
#[derive(Clone, Debug)]
pub struct Proof {
    registers: Registers,
    /// All ones if the frame pointer matters, else zero.
    mask: u64,
    /// Slots above the stack pointer.
    checks: Box<[Check]>,
}

impl Proof {
    /// `frame_matters`: the frame pointer must be the same, too.
    pub(crate) fn new(registers: Registers, frame_matters: bool, checks: Box<[Check]>) -> Self {
        Self { registers, mask: if frame_matters { u64::MAX } else { 0 }, checks }
    }

    /// Whether a call comes from the same site.
    ///
    /// # Safety
    ///
    /// The registers are those of a running function, on the thread that the proof was made on.
    #[inline(always)]
    #[must_use]
    pub unsafe fn holds(&self, registers: &Registers) -> bool {
        let Registers { rip, rsp, rbp } = self.registers;
        if rip != registers.rip || rsp != registers.rsp || (rbp ^ registers.rbp) & self.mask != 0 {
            return false;
        }
        // SAFETY: aligned slots that were in this stack above the same live stack pointer.
        let differ = |c: &Check| unsafe { read_word(c.slot) } ^ c.value;
        self.checks.iter().fold(0, |bits, c| bits | differ(c)) == 0
    }
}
