//! Frames on the stack, by their registers.

use crate::rules::Cursor;

/// The registers of a frame that is running.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    /// Instruction pointer.
    pub rip: u64,
    /// Stack pointer.
    pub rsp: u64,
    /// Frame pointer, or whatever the compiler keeps in its place.
    pub rbp: u64,
}

/// Captures the registers of the function that this is inlined into.
#[inline(always)]
#[must_use]
pub fn capture_registers() -> Registers {
    let (rip, rsp, rbp);
    // SAFETY: reads three registers, touches neither memory nor flags.
    unsafe {
        std::arch::asm!(
            "lea {rip}, [rip]",
            "mov {rsp}, rsp",
            "mov {rbp}, rbp",
            rip = out(reg) rip,
            rsp = out(reg) rsp,
            rbp = out(reg) rbp,
            options(nomem, nostack, preserves_flags),
        );
    }
    Registers { rip, rsp, rbp }
}

/// The stack pointer of the function that this is inlined into.
#[inline(always)]
#[must_use]
pub fn stack_pointer() -> u64 {
    let rsp;
    // SAFETY: reads a register, touches neither memory nor flags.
    unsafe {
        std::arch::asm!("mov {rsp}, rsp", rsp = out(reg) rsp, options(nomem, nostack, preserves_flags))
    };
    rsp
}

/// The frame that an MPI function was called from: its registers after the call returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StartFrame {
    /// Where the call returns to: the innermost frame of the site.
    pub return_address: u64,
    /// Stack pointer after the return: the address of the slot of the return address, plus 8.
    pub stack_pointer: u64,
    /// `rbp` after the return.
    pub frame_pointer: u64,
}

impl Cursor {
    /// The cursor as a starting frame.
    #[inline(always)]
    pub(crate) fn start_at(&self, return_address: u64) -> StartFrame {
        let (stack_pointer, frame_pointer) = (self.stack_pointer, self.frame_pointer);
        StartFrame { return_address, stack_pointer, frame_pointer }
    }
}
