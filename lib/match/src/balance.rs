//! Whether all requests complete, and all messages are received, as far as numbers alone tell it: in the time of what is stored of
//! the calls instead of how many these are.
//!
//! The n-th send of a channel meets its n-th receive: where there are as many of both, none is left. What is not told by numbers
//! (wildcards, probes, persistent requests, what is cancelled or freed, several threads) is for those who go through the calls.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::calls::roles::{Action, Role, Start};
use st_model::calls::words::ABSENT;
use st_model::calls::{CallTable, Row, names};
use st_model::folded::SymbolCalls;
use st_model::num::Exact as _;
use st_model::objects::{Comm, Name, Named};
use st_model::section::{Section, Sym, Tables, Thread};
use st_model::steps::Budget;
use st_model::values::PROC_NULL;

use crate::Unknown;

/// What a message goes through: communicator, world ranks, tag.
type Through = (Name, u64, u64, i64);

/// A symbol, how often it is called, and what that does.
type Called = (Sym, u64, Action);

/// The symbols that the only thread of a rank calls, with how often; `None` where it has several, or calls something that makes
/// numbers tell nothing.
fn plain(section: &Section, rank: u32) -> Option<(usize, &Thread, Vec<Called>)> {
    let mut threads = section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank));
    let (number, thread) = threads.next().filter(|_| threads.next().is_none())?;
    let mut called = Vec::new();
    for (sym, calls) in (0..).zip(section.calls_of(thread, rank)).filter(|(_, calls)| *calls > 0) {
        let symbol = section.symbols.get(sym as usize)?;
        let Some(row) = CallTable::builtin().get(symbol.call) else { continue };
        let role = Role::of_call(row.id);
        let told = symbol.error == 0 || role.action.after(symbol.error) == Action::Internal;
        if calls == u64::MAX || !told || role.partitioned || is_odd(row, role.action) {
            return None;
        }
        called.push((sym, calls, role.action.after(symbol.error)));
    }
    Some((number, thread, called))
}

/// Whether what a call does with requests is not told by their numbers.
fn is_odd(row: &Row, action: Action) -> bool {
    let acts = matches!(action, Action::Match | Action::Matched { .. } | Action::Start | Action::Free);
    acts || Start::of(row) == Start::Persistent
        || matches!(row.name.as_str(), names::MPI_Cancel | names::MPI_Pcontrol)
}

/// Whether a rank completes as many requests as it makes, so that none is left; `false` also where that is not known.
pub(crate) fn completes_all(section: &Section, rank: u32) -> bool {
    let Some((_, thread, called)) = plain(section, rank) else { return false };
    let (mut made, mut completed) = (0u64, 0u64);
    for (sym, calls, action) in called {
        let Some(symbol) = section.symbols.get(sym as usize) else { return false };
        let role = Role::of_call(symbol.call);
        if action == Action::Complete {
            let elements = section.elements_of(thread, rank, (sym, role.completed[0]), calls);
            completed = completed.saturating_add(elements);
        }
        if role.makes != ABSENT && symbol.error == 0 {
            made = made.saturating_add(calls);
        }
    }
    made == completed && made != u64::MAX
}

/// Whether each channel has as many sends as receives, so that no message is left; `false` also where that is not known, or takes
/// more than the budget allows.
pub(crate) fn meet_all(sections: &[Section], budget: &Budget) -> bool {
    let mut channels: HashMap<Through, i128, FixedState> = HashMap::default();
    let ranks = || sections.iter().flat_map(|section| section.ranks.iter().map(move |rank| (section, rank)));
    let add = |(section, rank)| matches!(enter(section, rank, budget, &mut channels), Ok(true));
    ranks().all(|(section, rank)| completes_all(section, rank))
        && ranks().all(add)
        && channels.values().all(|n| *n == 0)
}

/// Adds the messages of a rank to its channels: those that it sends less those that it receives. Returns whether all are known.
fn enter(
    section: &Section,
    rank: u32,
    budget: &Budget,
    channels: &mut HashMap<Through, i128, FixedState>,
) -> Result<bool, Unknown> {
    let Some((thread, _, called)) = plain(section, rank) else { return Ok(false) };
    let mut last: Option<(i64, &Named<Comm>)> = None;
    for (sym, calls, action) in called {
        let [sends, receives] = match action {
            Action::Send { .. } => [true, false],
            Action::Receive { .. } => [false, true],
            Action::Both { .. } => [true; 2],
            _ => continue,
        };
        let Some(symbol) = section.symbols.get(sym as usize) else { return Ok(false) };
        let role = Role::of_call(symbol.call);
        let asked = [role.comm, role.peer[0], role.peer[1], role.tag[0], role.tag[1]];
        let reads = |slot: usize| asked.iter().any(|at| usize::from(*at) == slot);
        let Some(mut read) = section.folded(SymbolCalls { rank, thread, sym, calls }, reads) else {
            return Ok(false);
        };
        while let Some((event, times)) = read.next_call()? {
            budget.take(1)?;
            budget.take_short(event.words().words.len().to_u64())?;
            let words = event.words();
            let comm = words.one(role.comm);
            let known = last.filter(|(number, _)| *number == comm).map(|(_, named)| named);
            let Some(named) = known.or_else(|| Tables::find(&section.tables.comms, comm, rank)) else {
                return Ok(false);
            };
            last = Some((comm, named));
            for (side, acts) in [sends, receives].into_iter().enumerate() {
                let (peer, tag) = (words.one(role.peer[side]), words.one(role.tag[side]));
                if !acts || peer == PROC_NULL {
                    continue;
                }
                let other = u64::try_from(peer)
                    .ok()
                    .and_then(|peer| u64::try_from(named.content.members.get(peer)?).ok());
                let (Some(other), 0..) = (other.filter(|_| named.content.remote.is_empty()), tag) else {
                    return Ok(false);
                };
                let (me, n) = (u64::from(rank), i128::from(times));
                let (through, n) = if side == 0 {
                    ((named.name, me, other, tag), n)
                } else {
                    ((named.name, other, me, tag), -n)
                };
                *channels.entry(through).or_default() += n;
            }
        }
    }
    Ok(true)
}
