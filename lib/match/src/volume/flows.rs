//! Who sends how much to whom.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::calls::roles::{Action, Role, Start};
use st_model::calls::{CallTable, Kind, Row};
use st_model::event::Event;
use st_model::folded::{Folded, SymbolCalls};
use st_model::num::Exact as _;
use st_model::ranklist::RankList;
use st_model::requests::is_predictable;
use st_model::section::{Section, Symbol};
use st_model::steps::{Budget, Exceeded};

use super::{Graphs, Places, Volume, Volumes};
use crate::Unknown;

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

/// All flows of a trace. What ranks send is the sum over both kinds ([`Volume::sent`]).
#[derive(Debug, Default)]
pub struct Flows {
    /// By world ranks: who sends or reaches a window, and to whom or whose. Only pairs between which there is something.
    pub pairs: HashMap<(u32, u32), Flow, FixedState>,
    /// By world rank: what it sends to no one rank alone, in collective operations and to files; calls count as messages.
    pub shared: HashMap<u32, Flow, FixedState>,
}

impl Flows {
    /// Adds what a rank of a section sends ([`each_sent`]).
    ///
    /// # Errors
    ///
    /// As [`each_sent`].
    pub fn add(
        &mut self,
        section: &Section,
        rank: u32,
        graphs: &Graphs,
        budget: &Budget,
    ) -> Result<(), Unknown> {
        each_sent(section, rank, graphs, budget, |event, volume, times| {
            let mut rest = volume.sent.bytes;
            for (to, flow) in flows(event, volume, times) {
                self.pairs.entry((rank, to)).or_default().add(&flow);
            }
            for (_, bytes) in &volume.partners {
                rest = rest.saturating_sub(*bytes);
            }
            if rest > 0 {
                let sent = rest.saturating_mul(times.into());
                let flow = Flow { messages: times, sent, fetched: 0 };
                self.shared.entry(rank).or_default().add(&flow);
            }
        })
    }
}

/// What calls that move the same send to single ranks: to whom, and how much in all of them.
pub fn flows<'a>(
    event: &Event<'_>,
    volume: &'a Volume,
    times: u64,
) -> impl Iterator<Item = (u32, Flow)> + use<'a> {
    let got = event.row.is_some_and(|r| matches!(r.kind, Kind::Get | Kind::GetPut | Kind::CompareSwap));
    let all = u128::from(times);
    let fetched = if got { volume.received.bytes.saturating_mul(all) } else { 0 };
    let of = move |sent: u128| Flow { messages: times, sent: sent.saturating_mul(all), fetched };
    volume.partners.iter().map(move |(to, bytes)| (*to, of(*bytes)))
}

/// Tells of the calls with which a rank of a section sends something or reaches a window: a call, what it moves, and how
/// often it comes. Equal ones may come apart, and in any order. What the calls receive as messages is not told.
///
/// *Cost:* by what the section stores of the rank, whatever its number of calls; of ranks that make persistent requests
/// or call neighbourhood operations, or whose parameters are histograms, by their calls, for what these move depends on
/// the order of different ones.
///
/// # Errors
///
/// If the rank cannot be read back, or if that takes more than the budget allows.
pub fn each_sent(
    section: &Section,
    rank: u32,
    graphs: &Graphs,
    budget: &Budget,
    mut tell: impl FnMut(&Event<'_>, &Volume, u64),
) -> Result<(), Unknown> {
    let mut volumes = Volumes::new(section, rank, graphs);
    if let Some(all) = folded(section, rank, budget)? {
        for mut calls in all {
            while let Some((event, times)) = calls.next_call()? {
                budget.take(1)?;
                budget.take_short(event.words().words.len().to_u64())?;
                tell(&event, volumes.next_event(&event), times);
            }
        }
        return Ok(());
    }
    budget.spend(section, Some(&RankList::single(rank)), 1)?;
    for thread in 0..section.threads.len() {
        let Some(mut events) = section.events(thread, rank) else { continue };
        while let Some(event) = events.next_event()? {
            tell(&event, volumes.next_event(&event), 1);
        }
    }
    Ok(())
}

/// The calls with which a rank sends, symbol by symbol; `None` where what they send depends on the order of its calls.
fn folded<'a>(section: &'a Section, rank: u32, budget: &Budget) -> Result<Option<Vec<Folded<'a>>>, Exceeded> {
    let mut all = Vec::new();
    for (thread, t) in section.threads.iter().enumerate().filter(|(_, t)| t.ranks.contains(rank)) {
        budget.take_short(t.tree.items().len().to_u64() + section.symbols.len().to_u64())?;
        for (sym, calls) in (0..).zip(section.calls_of(t, rank)).filter(|(_, calls)| *calls > 0) {
            let acts =
                |s: &&Symbol| s.error == 0 || Role::of_call(s.call).action.after(s.error) != Action::Internal;
            let symbol = section.symbols.get(sym as usize).filter(acts);
            let Some(row) = symbol.and_then(|s| CallTable::builtin().get(s.call)) else { continue };
            match sends(row) {
                Sends::Nothing => continue,
                Sends::ByOthers => return Ok(None),
                Sends::ByItself => {}
            }
            let read = |slot| !is_predictable(row, slot);
            let calls = SymbolCalls { rank, thread, sym, calls };
            let Some(calls) = section.folded(calls, read) else { return Ok(None) };
            all.push(calls);
        }
    }
    Ok(Some(all))
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
