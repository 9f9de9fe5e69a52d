//! The way out of our own module, by where in it the call came in: one comparison instead of a rule per frame.

use crate::frame::{Registers, StartFrame};
use crate::rules::{Cfa, Rule, SavedFrame, spread};
use crate::stack::{Window, read_word};

/// Ways out remembered; a power of two. Each function that captures registers has one.
const EXITS: usize = 256;

/// A way through one or two frames whose sizes do not depend on the call: offsets from the stack pointer.
#[derive(Clone, Copy, Debug, Default)]
struct Exit {
    /// Instruction pointer in the inner frame; 0: none.
    rip: u64,
    /// Slot of the inner frame's return address, and what it must hold; [`NO_INNER`] if there is one frame only.
    inner: u64,
    middle: u64,
    /// Slot of the outer frame's return address.
    outer: u64,
    /// Slot of the frame pointer, [`KEPT`] if it is still in the register.
    frame: u64,
}

const KEPT: u64 = u64::MAX;
const NO_INNER: u64 = u64::MAX;

/// The ways out of one thread, direct-mapped.
#[derive(Debug)]
pub(crate) struct Exits(Box<[Exit; EXITS]>);

impl Exits {
    pub(crate) fn new() -> Self {
        Self(Box::new([Exit::default(); EXITS]))
    }

    /// The frame outside, if this way is known and taken again.
    #[inline(always)]
    pub(crate) fn start(&self, from: &Registers, window: &Window) -> Option<StartFrame> {
        let exit = self.0.get(spread(from.rip) % EXITS)?;
        // The return address of the outer frame is the highest slot that is read.
        if exit.rip != from.rip || !window.holds(exit.outer) {
            return None;
        }
        // SAFETY: aligned slots of the window, which begins at the stack pointer.
        let read = |offset: u64| unsafe { read_word(from.rsp + offset) };
        if exit.inner != NO_INNER && read(exit.inner) != exit.middle {
            return None;
        }
        let frame_pointer = if exit.frame == KEPT { from.rbp } else { read(exit.frame) };
        Some(StartFrame {
            return_address: read(exit.outer),
            stack_pointer: from.rsp + exit.outer + 8,
            frame_pointer,
        })
    }

    /// The slots that [`Exits::start`] reads on this way, and the one of the frame pointer (`None`: it is in the register).
    pub(crate) fn slots(&self, from: &Registers) -> Option<([u64; 2], Option<u64>)> {
        let exit = self.0.get(spread(from.rip) % EXITS).filter(|e| e.rip == from.rip)?;
        let inner = if exit.inner == NO_INNER { exit.outer } else { exit.inner };
        let frame = (exit.frame != KEPT).then(|| from.rsp + exit.frame);
        Some(([from.rsp + inner, from.rsp + exit.outer], frame))
    }

    /// Remembers a way that led through a frame of the first rule (with the address that it returns to), if there are two,
    /// and out of one of the last. Ways of other forms are not kept.
    pub(crate) fn learn(&mut self, from: &Registers, first: Option<(Rule, u64)>, last: Rule) {
        let mut base = 0;
        let middle = first.map_or(0, |f| f.1);
        let mut exit = Exit { rip: from.rip, inner: NO_INNER, middle, outer: 0, frame: KEPT };
        for (outer, rule) in first.map(|f| (false, f.0)).into_iter().chain([(true, last)]) {
            let Some(cfa) = (rule.cfa == Cfa::Stack).then(|| i64::from(rule.cfa_offset)).filter(|o| *o >= 8)
            else {
                return;
            };
            base += cfa;
            let slot = if outer { &mut exit.outer } else { &mut exit.inner };
            *slot = (base - 8).cast_unsigned();
            match rule.saved_frame {
                SavedFrame::Kept => {}
                SavedFrame::AtCfa => exit.frame = (base + i64::from(rule.frame_offset)).cast_unsigned(),
                SavedFrame::AtFrame => return,
            }
        }
        let slots = [exit.inner, exit.outer, exit.frame];
        let fits = |s: &u64| *s == u64::MAX || (s.is_multiple_of(8) && *s <= exit.outer);
        if slots.iter().all(fits)
            && let Some(place) = self.0.get_mut(spread(from.rip) % EXITS)
        {
            *place = exit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Cursor, Unnoted};
    use crate::stack::Stacks;

    /// A rule for a frame of some words, with the frame pointer saved in one of them.
    fn rule(words: i32, saved: Option<i32>) -> Rule {
        let saved_frame = if saved.is_some() { SavedFrame::AtCfa } else { SavedFrame::Kept };
        let frame_offset = -8 * saved.unwrap_or(0);
        Rule { saved_frame, cfa_offset: 8 * words, frame_offset, ..Rule::plain(Cfa::Stack) }
    }

    #[test]
    fn known_ways_lead_where_the_rules_do() {
        let mut stack: [u64; 64] = std::array::from_fn(|i| 0x1000 + i as u64);
        let from = Registers { rip: 0x40_0000, rsp: (&raw mut stack).expose_provenance() as u64, rbp: 77 };
        let window = Stacks::of_this_thread().own_window(from.rsp).unwrap();
        let saved = [None, Some(2), Some(5)];
        for (a, b) in saved.iter().flat_map(|a| saved.iter().map(move |b| (*a, *b))) {
            let (inner, outer) = (rule(12, a), rule(7, b));
            let mut cursor = Cursor::new(from.rip, from.rsp, from.rbp);
            let first = cursor.step(inner, &window, &mut Unnoted).unwrap();
            let middle = cursor.start_at(first);
            let last = cursor.step(outer, &window, &mut Unnoted).unwrap();
            let mut exits = Exits::new();
            assert_eq!(exits.start(&from, &window), None);
            exits.learn(&from, Some((inner, first)), outer);
            assert_eq!(exits.start(&from, &window), Some(cursor.start_at(last)));
            exits.learn(&from, None, inner);
            assert_eq!(exits.start(&from, &window), Some(middle));
        }
    }

    #[test]
    fn another_way_in_is_not_taken_for_the_known_one() {
        let mut stack = [0x1000_u64; 64];
        let from = Registers { rip: 0x40_0000, rsp: (&raw mut stack).expose_provenance() as u64, rbp: 77 };
        let window = Stacks::of_this_thread().own_window(from.rsp).unwrap();
        let mut exits = Exits::new();
        exits.learn(&from, Some((rule(12, None), 0x999)), rule(7, None));
        assert_eq!(exits.start(&from, &window), None);
        // The frame pointer of the caller decides how large the frame is: not to be known beforehand.
        exits.learn(&Registers { rip: 1, ..from }, None, Rule::plain(Cfa::Frame));
        assert_eq!(exits.start(&Registers { rip: 1, ..from }, &window), None);
    }
}
