//! The loop in progress: as long as the calls of its last round come again, they are only counted.
//!
//! Proof lanes and folding take as much work for a call as all the rest. Both know how to take many equal rounds at
//! once, so what an event does here is to move a place in the round. Lanes in which words change within the loop are entered
//! call by call (`live`). At the first call that is not expected all is caught up with, and every event since is part
//! of the next round that is looked for: it is known when its first symbol comes again.

use super::known::Known;
use crate::fold::Folder;
use crate::lanes::Lanes;
use crate::section::Sym;

/// Symbols of a round at most.
const LONGEST: usize = 4096;

/// All lanes.
const ALL: u8 = u8::MAX;

/// What has been recorded of the loop in progress, but not entered yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds {
    /// Symbols of a round; none if no loop is known.
    round: Vec<Sym>,
    /// Symbols of the round in progress.
    at: usize,
    /// Whole rounds.
    whole: u64,
    /// Lanes that have been entered all the same, by bit.
    live: u8,
    /// The symbols since the last loop ended: entered.
    tape: Vec<Sym>,
}

impl Rounds {
    /// Whether the round goes on with a symbol.
    #[inline]
    pub(super) fn expects(&self, sym: Sym) -> bool {
        self.round.get(self.at) == Some(&sym)
    }

    /// Symbols of a round, and of the round in progress.
    #[inline]
    pub(super) fn progress(&self) -> Option<(usize, usize)> {
        (!self.round.is_empty()).then_some((self.round.len(), self.at))
    }

    /// Goes on with the symbol that is expected. Says which lanes it has to be entered in.
    #[inline]
    pub(super) fn go_on(&mut self) -> u8 {
        self.at += 1;
        if self.at == self.round.len() {
            self.at = 0;
            self.whole += 1;
        }
        self.live
    }

    /// Enters some lanes event by event from now on.
    pub(super) fn enliven(&mut self, which: u8, known: &[Known], lanes: &mut Lanes) {
        let which = which & !self.live;
        if which != 0 {
            self.enter(which, known, lanes);
            self.live |= which;
        }
    }

    /// Enters all that has been counted: the loop has ended.
    pub(super) fn end(&mut self, known: &[Known], lanes: &mut Lanes, folder: &mut Folder) {
        if !self.round.is_empty() {
            self.enter(ALL & !self.live, known, lanes);
            folder.push_rounds(&self.round, self.whole);
            self.round[..self.at].iter().for_each(|sym| folder.push(*sym));
            self.round.clear();
        }
        (self.at, self.whole, self.live) = (0, 0, 0);
    }

    fn enter(&self, which: u8, known: &[Known], lanes: &mut Lanes) {
        if self.whole > 0 || self.at > 0 {
            let digests = self.round.iter().map(|sym| known[*sym as usize].digests.lanes());
            lanes.enter_rounds(which, digests, self.whole, self.at);
        }
    }

    /// Whether a symbol begins the next round of a loop: that which all symbols since the last loop make.
    #[inline]
    pub(super) fn begins(&mut self, sym: Sym) -> bool {
        let begins = self.tape.first() == Some(&sym);
        if begins {
            std::mem::swap(&mut self.round, &mut self.tape);
            self.tape.clear();
        }
        begins
    }

    /// Takes an event that has been entered for part of a loop to be found; or for the end of all that came before it.
    #[inline]
    pub(super) fn learn(&mut self, sym: Sym, simple: bool) {
        if !simple || self.tape.len() == LONGEST {
            self.tape.clear();
        }
        if simple {
            self.tape.push(sym);
        }
    }
}
