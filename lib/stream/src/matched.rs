//! Counts of receives that need not be stored: a program that posts each receive for as much as is sent says the same number
//! twice, on two ranks.
//!
//! As with the counts of exchanges ([`super::transposed`]) only the stream's form knows of this: who reads it goes through the
//! calls of all ranks and makes the counts again. That is done for sections in which every receive of a symbol finds the
//! send that it matches, with the same count, and only where this saves enough for the calls that must be gone through: a
//! receive takes the next message that its source has sent to the rank in the communicator with its tag. Receives from
//! any source and with any tag take none.

use st_model::num::Exact;
use std::collections::HashMap;

use foldhash::fast::FixedState;

use st_model::calls::roles::{Action, Role, Start};
use st_model::calls::{CallTable, Slot};
use st_model::ints::{Ints, Sealed};
use st_model::objects::Name;
use st_model::proof::by_slot;
use st_model::ranks::RankSeq;
use st_model::section::{Elastic, Form, Partition, Section, Symbol, Tables};

/// Calls and words of all ranks that are gone through twice.
const MOST: u64 = 1 << 24;
/// Elements that must be stored otherwise: of a stream, and of all; and calls for each of the latter.
const WORTH: (usize, usize) = (16, 64);
const CALLS: usize = 256;

/// A symbol and its slot of a receive's count.
pub(super) type At = (usize, usize);

/// Where a function's words are that messages are matched by: count, peer and tag of what it sends and receives.
#[derive(Clone, Copy, Debug)]
struct Ends {
    sent: Option<[usize; 3]>,
    received: Option<[usize; 3]>,
    comm: usize,
}

impl Ends {
    fn of(symbol: &Symbol) -> Option<Self> {
        let role = Role::of(CallTable::builtin().get(symbol.call)?);
        let (sends, receives) = match role.action {
            Action::Send { start, .. } if start != Start::Persistent => (true, false),
            Action::Receive { start } if start != Start::Persistent => (false, true),
            Action::Both { .. } => (true, true),
            _ => return None,
        };
        let side = |side: usize| [role.count[side], role.peer[side], role.tag[side]].map(usize::from);
        Some(Self {
            sent: sends.then(|| side(0)),
            received: receives.then(|| side(1)),
            comm: usize::from(role.comm),
        })
    }
}

/// The slot of a symbol that holds the count of a receive, and of nothing else.
pub(super) fn slot(symbol: &Symbol) -> Option<usize> {
    let ends = Ends::of(symbol)?;
    let [count, ..] = ends.received?;
    ends.sent.is_none_or(|[sent, ..]| sent != count).then_some(count)
}

/// The streams of a section that follow from the sends of other ranks, and are worth it.
pub(super) fn follows(section: &Section) -> Vec<At> {
    let ([thread], true) = (&section.threads[..], section.ranks.len() > 1) else { return Vec::new() };
    let stored = |&(sym, slot): &At| {
        let values = &thread.params.get(sym)?.get(slot)?.values;
        let elements: usize = values.streams.iter().map(|s| s.elements().count()).sum();
        (values.form == Form::Absolute && elements >= WORTH.0).then_some((values, elements))
    };
    let slots = section.symbols.iter().enumerate().filter_map(|(sym, symbol)| Some((sym, slot(symbol)?)));
    let mut wanted: Vec<At> = slots.filter(|at| stored(at).is_some()).collect();
    let elements: usize = wanted.iter().filter_map(stored).map(|(_, elements)| elements).sum();
    let calls = thread.lanes.calls.to_usize();
    if elements < WORTH.1 || calls > elements.saturating_mul(CALLS) {
        return Vec::new();
    }
    let Some(made) = made(section, &wanted) else { return Vec::new() };
    let mut made = made.into_iter();
    wanted.retain(|at| {
        let made = made.next().flatten();
        let same = |(values, _): (&Elastic, usize)| made.filter(|m| is_same(values, &section.partitions, m));
        stored(at).and_then(same).is_some()
    });
    wanted
}

/// Makes the streams again that [`follows`] found; `None` if they do not follow.
pub(super) fn make(section: &mut Section, wanted: &[At]) -> Option<()> {
    let made = if section.threads.len() == 1 { made(section, wanted)? } else { return None };
    for ((sym, slot), made) in wanted.iter().zip(made) {
        let (made, values) = (made?, &mut section.threads[0].params.get_mut(*sym)?.get_mut(*slot)?.values);
        let classes = &section.partitions.get(values.partition as usize)?.classes;
        let of =
            |ranks: &st_model::ranklist::RankList| ranks.iter().find_map(|rank| made.get(&rank)).cloned();
        values.streams = classes.iter().map(of).collect::<Option<_>>()?;
    }
    Some(())
}

type Streams = HashMap<u32, Sealed, FixedState>;

/// Whether each rank reads the stream that was made for it, and each class has such a rank.
fn is_same(values: &Elastic, partitions: &[Partition], made: &Streams) -> bool {
    let Some(partition) = partitions.get(values.partition as usize) else { return false };
    let of = |ranks: &st_model::ranklist::RankList| ranks.iter().filter_map(|rank| made.get(&rank)).count();
    let found: usize = partition.classes.iter().map(of).sum();
    let each = |(stream, ranks): (&Sealed, &st_model::ranklist::RankList)| {
        let mut mine = ranks.iter().filter_map(|rank| made.get(&rank)).peekable();
        mine.peek().is_some() && mine.all(|made| made == stream)
    };
    found == made.len() && values.streams.iter().zip(&partition.classes).all(each)
}

/// Communicator, source, destination, tag.
type Channel = (Name, i64, i64, i64);

/// Counts received by rank, of those that execute a symbol, per symbol; `None` for one that has a receive without send, or
/// for all if there are too many calls.
fn made(section: &Section, wanted: &[At]) -> Option<Vec<Option<Streams>>> {
    let ends: Vec<Option<Ends>> = section.symbols.iter().map(Ends::of).collect();
    let mut left = MOST;
    let mut sent: HashMap<Channel, Vec<i64>, FixedState> = HashMap::default();
    for rank in section.ranks.iter() {
        each_end(section, rank, &ends, &mut left, |_, sends, channel, count| {
            if let (true, Some(channel)) = (sends, channel) {
                sent.entry(channel).or_default().push(count);
            }
        })?;
    }
    let mut places = vec![None; section.symbols.len()];
    for (i, (sym, _)) in wanted.iter().enumerate() {
        *places.get_mut(*sym)? = Some(i);
    }
    let mut taken: HashMap<Channel, usize, FixedState> = HashMap::default();
    let mut out: Vec<Option<Streams>> = vec![Some(Streams::default()); wanted.len()];
    for rank in section.ranks.iter() {
        let mut streams = vec![Ints::new(); wanted.len()];
        each_end(section, rank, &ends, &mut left, |sym, sends, channel, _| {
            if sends {
                return;
            }
            let count = channel.and_then(|channel| {
                let next = taken.entry(channel).or_default();
                *next += 1;
                sent.get(&channel)?.get(*next - 1).copied()
            });
            if let Some(i) = places[sym] {
                match count {
                    Some(count) => streams[i].push(count),
                    None => out[i] = None,
                }
            }
        })?;
        for (into, stream) in out.iter_mut().zip(streams).filter(|(_, stream)| !stream.is_empty()) {
            if let Some(into) = into {
                into.insert(rank, stream.seal());
            }
        }
    }
    Some(out)
}

/// Goes through a rank's calls: symbol, whether it is a send, the channel of the message if it has one, and the count.
fn each_end(
    section: &Section,
    rank: u32,
    ends: &[Option<Ends>],
    left: &mut u64,
    mut each: impl FnMut(usize, bool, Option<Channel>, i64),
) -> Option<()> {
    let Some(mut calls) = section.project(0, rank) else { return Some(()) };
    let mut comms: HashMap<i64, Option<(Name, &RankSeq)>, FixedState> = HashMap::default();
    let mut words = Vec::new();
    while let Some(sym) = calls.next_call(&mut words).ok()? {
        *left = left.checked_sub(1 + words.len().to_u64())?;
        let sym = sym as usize;
        let Some(ends) = ends.get(sym).copied().flatten() else { continue };
        let slots = CallTable::builtin().slots(section.symbols[sym].call);
        let word = |at: usize| word(slots, &words, at);
        let comm = comms.entry(word(ends.comm).unwrap_or(-1)).or_insert_with_key(|index| {
            let named = Tables::find(&section.tables.comms, *index, rank)?;
            Some((named.name, named.content.peers()))
        });
        for (sends, side) in [(true, ends.sent), (false, ends.received)] {
            let Some([count, peer, tag]) = side.map(|side| side.map(word)) else { continue };
            let channel = comm.zip(peer.zip(tag)).and_then(|((name, peers), (peer, tag))| {
                let (peer, me) = (peers.get(u64::try_from(peer).ok()?)?, i64::from(rank));
                let (from, to) = if sends { (me, peer) } else { (peer, me) };
                (tag >= 0).then_some((name, from, to, tag))
            });
            each(sym, sends, channel, count.unwrap_or(0));
        }
    }
    Some(())
}

/// The word of a slot.
fn word(slots: &[Slot], words: &[i64], at: usize) -> Option<i64> {
    by_slot(slots, words).nth(at)?.first().copied()
}
