//! How to step out of a frame: the compact form of a row of call frame information, and a cache of them.

use crate::stack::{Window, word};

/// Where a frame's canonical frame address (the stack pointer after its return) comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cfa {
    /// Stack pointer plus offset.
    Stack,
    /// Frame pointer plus offset.
    Frame,
    /// The word at frame pointer plus offset: GCC's saved argument pointer, in functions that realign the stack.
    SavedArgument,
    /// A form that only the full evaluation knows.
    Complex,
    /// Unknown: the frame is the last one that can be told.
    End,
    /// The function is where the C library starts a program or a thread: the walk ends before it.
    Origin,
    /// The C library's function that the origin called: the walk ends before it.
    BeforeOrigin,
}

/// Where the caller's frame pointer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SavedFrame {
    /// Still in the register.
    Kept,
    /// In the slot at CFA plus offset.
    AtCfa,
    /// In the slot at frame pointer plus offset.
    AtFrame,
}

/// How to step out of a frame. The return address is in the word below the CFA in all but the complex forms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    pub(crate) cfa: Cfa,
    pub(crate) saved_frame: SavedFrame,
    pub(crate) cfa_offset: i32,
    pub(crate) frame_offset: i32,
}

impl Rule {
    /// A rule without offsets.
    pub(crate) fn plain(cfa: Cfa) -> Self {
        Self { cfa, saved_frame: SavedFrame::Kept, cfa_offset: 0, frame_offset: 0 }
    }
}

/// A stack slot that a walk read and what it held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Check {
    pub(crate) slot: u64,
    pub(crate) value: u64,
}

/// What a walk depended on besides its starting stack pointer and return address.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    /// Slots read, innermost first.
    pub(crate) checks: Vec<Check>,
    /// Whether the starting frame pointer was used.
    pub(crate) start_frame_used: bool,
}

/// Is told what a walk depends on.
pub(crate) trait Notes {
    /// A slot was read and held this.
    fn slot(&mut self, slot: u64, value: u64);
    /// The starting frame pointer was used.
    fn start_frame(&mut self);
}

impl Notes for Trail {
    #[inline(always)]
    fn slot(&mut self, slot: u64, value: u64) {
        self.checks.push(Check { slot, value });
    }
    #[inline(always)]
    fn start_frame(&mut self) {
        self.start_frame_used = true;
    }
}

/// Keeps no notes: for steps that are repeated on every call.
pub(crate) struct Unnoted;

impl Notes for Unnoted {
    #[inline(always)]
    fn slot(&mut self, _: u64, _: u64) {}
    #[inline(always)]
    fn start_frame(&mut self) {}
}

impl Trail {
    /// Forgets the last walk.
    pub(crate) fn clear(&mut self) {
        self.checks.clear();
        self.start_frame_used = false;
    }
}

/// A place in a walk: the registers of one frame at its call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    /// Address to look rules up by: inside the call instruction, that is, the return address less one.
    pub(crate) lookup: u64,
    pub(crate) stack_pointer: u64,
    pub(crate) frame_pointer: u64,
    /// Slot that the frame pointer was restored from; 0 if it is the starting one.
    pub(crate) frame_slot: u64,
    /// Whether the trail already vouches for the frame pointer.
    pub(crate) frame_noted: bool,
}

impl Cursor {
    /// The frame that a return address leads to.
    pub(crate) fn new(return_address: u64, stack_pointer: u64, frame_pointer: u64) -> Self {
        Self {
            lookup: return_address.wrapping_sub(1),
            stack_pointer,
            frame_pointer,
            frame_slot: 0,
            frame_noted: false,
        }
    }
    /// Records that the walk depends on the frame pointer.
    #[inline(always)]
    pub(crate) fn note_frame(&mut self, notes: &mut impl Notes) {
        if self.frame_noted {
            return;
        }
        self.frame_noted = true;
        if self.frame_slot == 0 {
            notes.start_frame();
        } else {
            notes.slot(self.frame_slot, self.frame_pointer);
        }
    }
    /// Sets the frame pointer to the word in a slot.
    #[inline(always)]
    pub(crate) fn restore_frame(&mut self, slot: u64, window: &Window) -> Option<()> {
        self.frame_pointer = window.read(slot)?;
        self.frame_slot = slot;
        self.frame_noted = false;
        Some(())
    }
    /// Steps out of the frame by a simple rule and returns the return address; nothing if a slot lies outside the
    /// stack or the rule is not simple.
    #[inline(always)]
    pub(crate) fn step(&mut self, rule: Rule, window: &Window, notes: &mut impl Notes) -> Option<u64> {
        let at = |base: u64, offset: i32| base.wrapping_add_signed(i64::from(offset));
        let cfa = match rule.cfa {
            Cfa::Stack => at(self.stack_pointer, rule.cfa_offset),
            Cfa::Frame => {
                self.note_frame(notes);
                at(self.frame_pointer, rule.cfa_offset)
            }
            Cfa::SavedArgument => {
                self.note_frame(notes);
                let slot = at(self.frame_pointer, rule.cfa_offset);
                let value = window.read(slot)?;
                notes.slot(slot, value);
                value
            }
            Cfa::Complex | Cfa::End | Cfa::Origin | Cfa::BeforeOrigin => return None,
        };
        let slot = cfa.wrapping_sub(8);
        let return_address = window.read(slot)?;
        notes.slot(slot, return_address);
        match rule.saved_frame {
            SavedFrame::Kept => {}
            SavedFrame::AtCfa => self.restore_frame(at(cfa, rule.frame_offset), window)?,
            SavedFrame::AtFrame => {
                self.note_frame(notes);
                self.restore_frame(at(self.frame_pointer, rule.frame_offset), window)?;
            }
        }
        self.stack_pointer = cfa;
        self.lookup = return_address.wrapping_sub(1);
        Some(return_address)
    }
}

/// Rules by lookup address: open addressing with linear probing, at most half full.
#[derive(Debug)]
pub(crate) struct RuleCache {
    /// Powers of two; the key 0 marks a free place.
    places: Vec<(u64, Rule)>,
    len: usize,
}

const FIRST_PLACES: usize = 256;
const FREE: (u64, Rule) =
    (0, Rule { cfa: Cfa::End, saved_frame: SavedFrame::Kept, cfa_offset: 0, frame_offset: 0 });

impl RuleCache {
    pub(crate) fn new() -> Self {
        Self { places: vec![FREE; FIRST_PLACES], len: 0 }
    }
    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }
    /// The rule at an address, if known.
    #[inline(always)]
    pub(crate) fn get(&self, lookup: u64) -> Option<Rule> {
        let mask = self.places.len() - 1;
        let mut i = spread(lookup) & mask;
        loop {
            let &(key, rule) = self.places.get(i)?;
            if key == lookup {
                return Some(rule);
            }
            if key == 0 {
                return None;
            }
            i = (i + 1) & mask;
        }
    }
    /// Sets the rule at an address.
    pub(crate) fn insert(&mut self, lookup: u64, rule: Rule) {
        if 2 * self.len >= self.places.len() {
            let doubled = vec![FREE; 2 * self.places.len()];
            let old = std::mem::replace(&mut self.places, doubled);
            self.len = 0;
            for (key, rule) in old.into_iter().filter(|p| p.0 != 0) {
                self.insert(key, rule);
            }
        }
        let mask = self.places.len() - 1;
        let mut i = spread(lookup) & mask;
        while let Some(place) = self.places.get_mut(i) {
            if place.0 == lookup || place.0 == 0 {
                self.len += usize::from(place.0 == 0);
                *place = (lookup, rule);
                return;
            }
            i = (i + 1) & mask;
        }
    }
}

/// Spreads an address over the bits that tables are indexed by (Fibonacci hashing, Knuth volume 3, section 6.4).
#[inline(always)]
pub(crate) fn spread(key: u64) -> usize {
    word(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_returns_what_was_set_through_growth() {
        let mut cache = RuleCache::new();
        let rule = |i: i32| Rule { cfa_offset: i, ..Rule::plain(Cfa::Stack) };
        let lookup = |i: i32| 0x40_0000 + u64::from(i.unsigned_abs()) * 5;
        for i in 0..2000 {
            cache.insert(lookup(i), rule(i));
        }
        for i in 0..2000 {
            assert_eq!(cache.get(lookup(i)), Some(rule(i)));
        }
        assert_eq!(cache.get(0x40_0001), None);
        cache.insert(0x40_0000, Rule::plain(Cfa::End));
        assert_eq!(cache.get(0x40_0000), Some(Rule::plain(Cfa::End)));
        cache.clear();
        assert_eq!(cache.get(0x40_0000), None);
    }
}
