//! What calls move in both directions, in the time of what is stored of them instead of their number.

use st_model::calls::roles::{Action, Role, Start};
use st_model::calls::{CallTable, Kind, Meaning, Row};
use st_model::folded::SymbolCalls;
use st_model::num::Exact as _;
use st_model::section::{Form, Section, Sym, Symbol};
use st_model::steps::Budget;

use super::{Graphs, Places, Volume, Volumes};
use crate::Unknown;

/// How it is known what the calls of a symbol move, and how many they are.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// They move nothing, and each is one.
    Counted,
    /// By words of theirs.
    Read(&'static Row, Option<Places>),
}

/// The calls of a section, each of which tells by itself what it moves.
#[derive(Debug)]
pub struct Moved<'a> {
    section: &'a Section,
    /// By symbol.
    ways: Vec<Way>,
}

/// Calls of a thread that are alike.
#[derive(Clone, Copy, Debug)]
pub struct Alike<'a> {
    /// Number of the thread.
    pub thread: usize,
    /// Number of the symbol.
    pub sym: Sym,
    /// What each event moves.
    pub volume: &'a Volume,
    /// How often it comes, and how many calls these are: poll series are expanded.
    pub times: u64,
    /// See there.
    pub calls: u64,
}

impl<'a> Moved<'a> {
    /// `None` where that depends on the order of different calls, as with persistent requests, neighbourhood operations and
    /// exchanges in the background, or on what is drawn or expected in the place of a parameter.
    #[must_use]
    pub fn of(section: &'a Section) -> Option<Self> {
        let ways: Option<Vec<Way>> = section.symbols.iter().map(way).collect();
        let ways = ways?;
        let is_plain = |form: Form| !(form.counts() || matches!(form, Form::Histogram(_) | Form::Predicted));
        let plain = section.threads.iter().flat_map(|t| ways.iter().zip(&t.params)).all(|(way, slots)| {
            let mut slots = slots.iter().enumerate();
            slots.all(|(slot, streams)| !way.reads(slot) || is_plain(streams.values.form))
        });
        plain.then_some(Self { section, ways })
    }

    /// Tells of all calls of a rank, those of a symbol together. *Cost:* by what the section stores of the rank.
    ///
    /// # Errors
    ///
    /// If a list cannot be read back, or if it takes more than the budget allows.
    pub fn each(&self, rank: u32, budget: &Budget, mut tell: impl FnMut(Alike<'_>)) -> Result<(), Unknown> {
        // No call is of a neighbourhood.
        let (section, graphs, nothing) = (self.section, Graphs::default(), Volume::default());
        let mut volumes = Volumes::new(section, rank, &graphs);
        for (thread, t) in section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank)) {
            budget.take_short(t.tree.items().len().to_u64() + section.symbols.len().to_u64())?;
            for (sym, calls) in (0..).zip(section.calls_of(t, rank)).filter(|(_, calls)| *calls > 0) {
                if calls == u64::MAX {
                    budget.take(calls)?;
                }
                let way = self.ways.get(sym as usize).copied().unwrap_or(Way::Counted);
                let of = SymbolCalls { rank, thread, sym, calls };
                let read = match way {
                    Way::Counted => None,
                    Way::Read(..) => section.folded(of, |slot| way.reads(slot)),
                };
                let Some(mut read) = read else {
                    tell(Alike { thread, sym, volume: &nothing, times: calls, calls });
                    continue;
                };
                while let Some((event, times)) = read.next_call()? {
                    budget.take(1)?;
                    budget.take_short(event.words().words.len().to_u64())?;
                    let calls = event.calls().saturating_mul(times);
                    tell(Alike { thread, sym, volume: volumes.next_event(&event), times, calls });
                }
            }
        }
        Ok(())
    }
}

impl Way {
    fn reads(self, slot: usize) -> bool {
        let Self::Read(row, places) = self else { return false };
        let counts = slot + 1 == row.slots.len() && is_series(row);
        counts || places.is_some_and(|at| at.tells(slot))
    }
}

fn is_series(row: &Row) -> bool {
    row.slots.last().is_some_and(|slot| slot.meaning == Meaning::Times)
}

/// `None` where a call does not tell by itself what it moves, or what others do.
fn way(symbol: &Symbol) -> Option<Way> {
    let Some(row) = CallTable::builtin().get(symbol.call) else { return Some(Way::Counted) };
    if row.kind == Kind::DistGraph {
        return None;
    }
    let fails =
        symbol.error != 0 && Role::of_call(symbol.call).action.after(symbol.error) == Action::Internal;
    let moves = match Places::of(row).filter(|_| !fails) {
        None => None,
        Some(at) => match (at.kind, at.start) {
            (Kind::Restart | Kind::NeighborAllgather | Kind::NeighborAlltoall, _)
            | (_, Start::Persistent) => return None,
            (Kind::Write | Kind::SendReceive, start) if start != Start::Blocking => return None,
            (Kind::Receive | Kind::MatchedReceive | Kind::Read, start) if start != Start::Blocking => None,
            (kind, _) if kind.is_creation() => None,
            _ => Some(at),
        },
    };
    Some(if moves.is_some() || is_series(row) { Way::Read(row, moves) } else { Way::Counted })
}
