//! Time for which a program paused recording: from an `MPI_Pcontrol(0)` to the next `MPI_Pcontrol(1)`, or the end. What ranks did
//! then is not in the trace: it is neither computation nor time in MPI.

use std::collections::BTreeMap;

use crate::calls::{CallId, CallTable, names};
use crate::event::Event;
use crate::ints::Sealed;
use crate::section::{Form, Section, SlotStreams, Sym, Symbol, Thread};

/// Whether recording is paused after a call, if it was before it or not.
#[must_use]
pub fn after(event: &Event<'_>, before: bool) -> bool {
    match event.pcontrol() {
        Some(0) => true,
        // Other calls are recorded since it has gone on, or since the run ends.
        Some(1) | None => false,
        Some(_) => before,
    }
}

/// How much of the time before a thread's events passed while recording was paused, by what distributions of times tell: of call
/// sites of `MPI_Pcontrol` all of whose calls pause, and of those that follow. Of sites whose level changes nothing is known.
#[derive(Clone, Default, Debug)]
pub struct Pauses {
    sites: Vec<Sym>,
    /// Time before each event that follows one of these, and before it in all, ns.
    before: BTreeMap<Sym, [u128; 2]>,
}

impl Pauses {
    /// Those of a thread.
    #[must_use]
    pub fn of(section: &Section, thread: &Thread) -> Self {
        let sites: Vec<Sym> = (0..)
            .zip(&section.symbols)
            .filter(|(sym, s)| pauses(thread, *sym, s))
            .map(|(sym, _)| sym)
            .collect();
        let mut before: BTreeMap<Sym, [u128; 2]> = BTreeMap::new();
        for sketch in thread.sketches.iter().filter(|_| !sites.is_empty()) {
            let [paused, all] = before.entry(sketch.sym).or_default();
            *paused += if sites.contains(&sketch.pred) { sketch.compute.sum } else { 0 };
            *all += sketch.compute.sum;
        }
        Self { sites, before }
    }

    /// Whether recording is paused after each call of a symbol.
    #[must_use]
    pub fn follow(&self, sym: Sym) -> bool {
        self.sites.contains(&sym)
    }

    /// The part of so much time before an event, ns.
    #[must_use]
    pub fn part_before(&self, sym: Sym, ns: u128) -> u128 {
        match self.before.get(&sym) {
            Some([paused, all]) if *all > 0 => ns.saturating_mul(*paused) / all,
            _ => 0,
        }
    }
}

/// Whether calls of a function may pause recording.
#[must_use]
pub fn may_pause(call: CallId) -> bool {
    CallTable::builtin().get(call).is_some_and(|row| row.name == names::MPI_Pcontrol)
}

/// The levels that a thread's calls of a symbol ask for, if it is one that may pause.
fn levels<'a>(thread: &'a Thread, sym: Sym, symbol: &Symbol) -> Option<&'a SlotStreams> {
    may_pause(symbol.call).then(|| thread.params.get(sym as usize)?.first()).flatten()
}

/// Whether calls of a symbol pause recording, or may: not where all levels are others.
#[must_use]
pub fn some_pause(thread: &Thread, sym: Sym, symbol: &Symbol) -> bool {
    let is_other = |stream: &Sealed| stream.is_empty() || stream.constant().is_some_and(|level| level != 0);
    levels(thread, sym, symbol).is_some_and(|level| {
        !matches!(level.values.form, Form::Absolute) || !level.values.streams.iter().all(is_other)
    })
}

/// Whether all calls of a symbol pause recording.
fn pauses(thread: &Thread, sym: Sym, symbol: &Symbol) -> bool {
    let plain = levels(thread, sym, symbol).filter(|level| matches!(level.values.form, Form::Absolute));
    plain.is_some_and(|level| level.values.streams.iter().all(|stream| stream.constant() == Some(0)))
}
