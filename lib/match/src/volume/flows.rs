//! Who sends how much to whom.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::calls::roles::Start;
use st_model::calls::{CallTable, Kind, Row};
use st_model::num::Exact as _;
use st_model::project::Error;
use st_model::ranklist::RankList;
use st_model::requests::is_predictable;
use st_model::section::Section;
use st_model::steps::{Budget, Exceeded};

use super::{Graphs, Places, Volume, Volumes};

/// What goes from one rank to another, or to others together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flow {
    /// Messages and accesses to windows.
    pub messages: u64,
    /// Bytes sent.
    pub sent: u128,
    /// Bytes that the first got from the window of the second.
    pub fetched: u128,
}

impl Flow {
    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.messages = self.messages.saturating_add(other.messages);
        self.sent = self.sent.saturating_add(other.sent);
        self.fetched = self.fetched.saturating_add(other.fetched);
    }
}

/// Why flows cannot be known.
#[derive(Debug, thiserror::Error)]
pub enum Unknown {
    /// A rank cannot be read back.
    #[error(transparent)]
    Damaged(#[from] Error),
    /// It takes more than is allowed.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}

/// All flows of a trace. What ranks send is the sum over both kinds ([`Volume::sent`]).
#[derive(Debug, Default)]
pub struct Flows {
    /// By world ranks: who sends or reaches a window, and to whom or whose. Only pairs between which there is something.
    pub pairs: HashMap<(u32, u32), Flow, FixedState>,
    /// By world rank: what it sends to no one rank alone, in collective operations and to files; calls count as messages.
    pub shared: HashMap<u32, Flow, FixedState>,
}

impl Flows {
    /// Adds what a rank of a section sends.
    ///
    /// *Cost:* by what the section stores of the rank, whatever its number of calls; of ranks that make persistent requests
    /// or call neighbourhood operations, or whose parameters are histograms, by their calls, for what these move depends on
    /// the order of different ones.
    ///
    /// # Errors
    ///
    /// If the rank cannot be read back, or if that takes more than the budget allows.
    pub fn add(
        &mut self,
        section: &Section,
        rank: u32,
        graphs: &Graphs,
        budget: &Budget,
    ) -> Result<(), Unknown> {
        let mut mine = Self::default();
        if mine.fold(section, rank, graphs, budget)? {
            self.unite(mine);
            return Ok(());
        }
        budget.spend(section, Some(&RankList::single(rank)), 1)?;
        let mut volumes = Volumes::new(section, rank, graphs);
        for thread in 0..section.threads.len() {
            let Some(mut events) = section.events(thread, rank) else { continue };
            while let Some(event) = events.next_event()? {
                let row = event.row;
                self.enter(rank, row, volumes.next_event(&event), 1);
            }
        }
        Ok(())
    }

    fn unite(&mut self, other: Self) {
        other.pairs.iter().for_each(|(key, flow)| self.pairs.entry(*key).or_default().add(flow));
        other.shared.iter().for_each(|(key, flow)| self.shared.entry(*key).or_default().add(flow));
    }

    /// Adds what a rank sends, symbol by symbol; `false` where that takes the order of its calls.
    fn fold(
        &mut self,
        section: &Section,
        rank: u32,
        graphs: &Graphs,
        budget: &Budget,
    ) -> Result<bool, Unknown> {
        let mut volumes = Volumes::new(section, rank, graphs);
        for (thread, t) in section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank)) {
            budget.take_short(t.tree.items().len().to_u64() + section.symbols.len().to_u64())?;
            for (sym, calls) in (0..).zip(section.calls_of(t, rank)).filter(|(_, calls)| *calls > 0) {
                let symbol = section.symbols.get(sym as usize).filter(|s| s.error == 0);
                let Some(row) = symbol.and_then(|s| CallTable::builtin().get(s.call)) else { continue };
                match sends(row) {
                    Sends::Nothing => continue,
                    Sends::ByOthers => return Ok(false),
                    Sends::ByItself => {}
                }
                let read = |slot| !is_predictable(row, slot);
                let Some(mut calls) = section.folded((rank, thread), (sym, calls), read) else {
                    return Ok(false);
                };
                while let Some((event, times)) = calls.next_call()? {
                    budget.take(1)?;
                    budget.take_short(event.words().words.len().to_u64())?;
                    self.enter(rank, event.row, volumes.next_event(&event), times);
                }
            }
        }
        Ok(true)
    }

    /// Adds calls that move the same.
    fn enter(&mut self, rank: u32, row: Option<&Row>, volume: &Volume, times: u64) {
        let all = u128::from(times);
        let mut rest = volume.sent.bytes;
        let got = row.is_some_and(|r| matches!(r.kind, Kind::Get | Kind::GetPut | Kind::CompareSwap));
        for (to, bytes) in &volume.partners {
            rest = rest.saturating_sub(*bytes);
            let fetched = if got { volume.received.bytes.saturating_mul(all) } else { 0 };
            let flow = Flow { messages: times, sent: bytes.saturating_mul(all), fetched };
            self.pairs.entry((rank, *to)).or_default().add(&flow);
        }
        if rest > 0 {
            let flow = Flow { messages: times, sent: rest.saturating_mul(all), fetched: 0 };
            self.shared.entry(rank).or_default().add(&flow);
        }
    }
}

/// What it takes to know what a function's calls send.
enum Sends {
    Nothing,
    ByItself,
    /// Calls before.
    ByOthers,
}

fn sends(row: &Row) -> Sends {
    let Some(at) = Places::of(row) else { return Sends::Nothing };
    let neighbours = matches!(at.kind, Kind::NeighborAllgather | Kind::NeighborAlltoall);
    match at.kind {
        Kind::Receive | Kind::MatchedReceive | Kind::Read | Kind::Complete => Sends::Nothing,
        kind if kind.is_creation() => Sends::Nothing,
        Kind::Restart => Sends::ByOthers,
        _ if neighbours || at.start == Start::Persistent => Sends::ByOthers,
        _ => Sends::ByItself,
    }
}
