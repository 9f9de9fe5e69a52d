//! When ranks had paused recording ([`st_model::paused`]).

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::event::Event;
use st_model::num::saturate;
use st_model::section::Sym;

/// From the call that paused recording to the one that goes on with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pause {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// The symbol of the call that paused it.
    pub(crate) sym: Sym,
}

/// How long pauses last together, ns.
pub(crate) fn lasting(pauses: &[Pause]) -> u64 {
    pauses.iter().map(|p| saturate::<u64>(p.end.saturating_sub(p.begin))).fold(0, u64::saturating_add)
}

/// Pauses of all ranks, which are those of all their threads. *Memory:* 24 bytes for each.
#[derive(Default, Debug)]
pub(crate) struct Pauses(HashMap<u32, Vec<Pause>, FixedState>);

impl Pauses {
    /// A call from one time to another.
    pub(crate) fn event(&mut self, event: &Event<'_>, enter: i64, exit: i64) {
        let Some(level) = event.pcontrol() else { return };
        let of = self.0.entry(event.rank).or_default();
        let open = of.last_mut().filter(|last| last.end == i64::MAX);
        match (level, open) {
            (0, None) => of.push(Pause { begin: exit, end: i64::MAX, sym: event.sym }),
            (1, Some(open)) => open.end = enter,
            _ => {}
        }
    }

    /// Parts of a time in which a rank had paused recording, in order.
    pub(crate) fn within(&self, rank: u32, from: i64, to: i64) -> Vec<Pause> {
        let Some(of) = self.0.get(&rank).filter(|_| from < to) else { return Vec::new() };
        let near = of.iter().rev().take_while(|pause| pause.end > from);
        let cut = |p: &Pause| Pause { begin: p.begin.max(from), end: p.end.min(to), ..*p };
        let mut all: Vec<Pause> = near.map(cut).filter(|p| p.begin < p.end).collect();
        all.reverse();
        all
    }
}
