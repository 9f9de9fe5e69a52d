//! Leaving out tags that tell no messages apart.
//!
//! A tag is redundant where all messages from one rank to another in one communicator have the same; and, into a rank that
//! receives by that tag from any source, all messages from all ranks. Where that is so in a whole trace, tags are stored as
//! 0 and wildcards as wildcards: the same receives match the same sends.
//!
//! Source: Wu, Mueller 2013, section 3.1, where tags are dropped without a test; here they stay where one is needed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::FixedState;
use st_model::calls::{CallTable, Meaning, Object, Row};
use st_model::ints::Ints;
use st_model::objects::Name;
use st_model::proof::by_slot;
use st_model::ranklist::RankList;
use st_model::section::{Section, Sym, Tables};
use st_model::values::{ANY_SOURCE, ANY_TAG};

use st_model::unite::Classes;
use st_model::unite::Renaming;

/// Streams of 0 and wildcards of one thread index, by united symbol and slot.
pub(crate) type Emptied = HashMap<(Sym, usize), Classes, FixedState>;

/// What is known of the tags of the sections so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tags {
    /// The tag of the messages from a rank to another of a communicator.
    channels: HashMap<(Name, i64, i64), i64, FixedState>,
    /// The tag by which a rank of a communicator receives from any source.
    any: HashMap<(Name, i64), i64, FixedState>,
    /// Why tags are needed.
    needed: Option<String>,
    threads: Vec<Gathered>,
}

#[derive(Clone, Debug, Default)]
struct Gathered {
    streams: Emptied,
    /// Ranks that execute a symbol without a value in the slot.
    without: HashMap<(Sym, usize), RankList, FixedState>,
}

/// Where a row has tags, and what they are for.
#[derive(Clone, Debug, Default)]
struct Role {
    /// Slots whose tags can be left out.
    tags: Vec<usize>,
    comm: usize,
    /// Slots of the peer and of the tag.
    send: Option<(usize, usize)>,
    receive: Option<(usize, usize)>,
    /// The tag is for messages of the library's own.
    internal: bool,
}

impl Role {
    fn of(row: &Row) -> Self {
        let tag = |own: &str| row.slot(own).or(row.slot("tag"));
        let pair = |peer: &str, own: &str| row.slot(peer).zip(tag(own));
        let (Some(comm), send, receive) =
            (row.comm_slot(), pair("dest", "sendtag"), pair("source", "recvtag"))
        else {
            // A completion has tags, and no communicator.
            return Self { tags: tags(row), ..Self::default() };
        };
        if send.is_some() || receive.is_some() {
            return Self { tags: tags(row), comm, send, receive, internal: false };
        }
        // The tags that make communicators of groups are a world of their own; those of bridges are not.
        Self { internal: row.slot("tag").is_some() && row.slot("group").is_none(), ..Self::default() }
    }
}

fn tags(row: &Row) -> Vec<usize> {
    let slots = row.slots.iter().enumerate();
    slots.filter(|(_, s)| s.meaning == Meaning::Tag).map(|(i, _)| i).collect()
}

impl Tags {
    /// Reads all calls of a section. *Cost:* O(calls).
    pub(crate) fn add(&mut self, section: &Section, renaming: &Renaming) {
        if section.histograms().next().is_some() {
            self.needed = Some("peers are histograms".into());
            return;
        }
        let table = CallTable::builtin();
        let role = |call| table.get(call).map(Role::of).unwrap_or_default();
        let roles: Vec<Role> = section.symbols.iter().map(|s| role(s.call)).collect();
        if self.threads.len() < section.threads.len() {
            self.threads.resize_with(section.threads.len(), Gathered::default);
        }
        for (i, thread) in section.threads.iter().enumerate() {
            for rank in thread.ranks.iter() {
                if self.needed.is_some() {
                    return;
                }
                self.read(section, i, rank, &roles, renaming);
            }
        }
    }

    fn read(&mut self, section: &Section, thread: usize, rank: u32, roles: &[Role], renaming: &Renaming) {
        let Some(mut calls) = section.project(thread, rank) else { return };
        let mut streams: HashMap<(Sym, usize), Ints, FixedState> = HashMap::default();
        let mut words = Vec::new();
        let end = loop {
            let sym = match calls.next_call(&mut words) {
                Ok(Some(sym)) => sym,
                other => break other,
            };
            let role = &roles[sym as usize];
            if role.internal {
                self.needed.get_or_insert_with(|| format!("{} has one", section.symbols[sym as usize].call));
            }
            if role.tags.is_empty() {
                continue;
            }
            let slots = CallTable::builtin().slots(section.symbols[sym as usize].call);
            let of: Vec<&[i64]> = by_slot(slots, &words).collect();
            let one = |slot: usize| of[slot].first().copied().unwrap_or(0);
            if role.send.is_some() || role.receive.is_some() {
                self.messages(section, rank, role, one);
            }
            let to = renaming.symbols.get(sym as usize).copied().unwrap_or(sym);
            for &slot in &role.tags {
                let values = of[slot].iter().map(|&tag| tag.min(0));
                streams.entry((to, slot)).or_default().extend(values);
            }
        };
        if end.is_err() {
            self.needed.get_or_insert_with(|| format!("rank {rank} cannot be read to its end"));
        }
        let into = &mut self.threads[thread];
        for (key, ints) in streams {
            if ints.is_empty() {
                into.without.entry(key).or_default().insert(rank);
            } else {
                into.streams.entry(key).or_default().add(ints.seal(), rank);
            }
        }
    }

    /// Takes note of the tags that a call sends and receives by.
    fn messages(&mut self, section: &Section, rank: u32, role: &Role, one: impl Fn(usize) -> i64) {
        let index = one(role.comm);
        let comm = Tables::find(&section.tables.comms, index, rank);
        let own = section.own((Object::Comm, index), rank);
        let (Some(comm), Some(own)) = (comm, own) else {
            if index >= 0 {
                self.needed = Some(format!("rank {rank} names a communicator that is not known"));
            }
            return;
        };
        let name = comm.name;
        let mut channel = |from: i64, to: i64, tag: i64| {
            let met = *self.channels.entry((name, from, to)).or_insert(tag);
            (met != tag).then(|| format!("{}: {from} sends to {to} by {met} and {tag}", comm.label()))
        };
        let mut why = None;
        if let Some((dest, tag)) = role.send.map(|(dest, tag)| (one(dest), one(tag)))
            && dest >= 0
        {
            why = why.or(channel(own.me, dest, tag));
        }
        match role.receive.map(|(source, tag)| (one(source), one(tag))) {
            None | Some((_, ANY_TAG)) => {}
            Some((ANY_SOURCE, tag)) => match self.any.entry((name, own.me)) {
                Entry::Occupied(met) if *met.get() != tag => {
                    let met = met.get();
                    let to = own.me;
                    why = Some(format!("{}: {to} receives from any source by {met} and {tag}", comm.label()));
                }
                entry => drop(entry.or_insert(tag)),
            },
            Some((source, tag)) if source >= 0 => why = why.or(channel(source, own.me, tag)),
            Some(_) => {}
        }
        if self.needed.is_none() {
            self.needed = why;
        }
    }

    /// The streams without tags, by thread, or why tags are needed.
    pub(crate) fn finish(self) -> Result<Vec<Emptied>, String> {
        if let Some(why) = self.needed {
            return Err(why);
        }
        let mut channels: Vec<_> = self.channels.into_iter().collect();
        channels.sort_unstable();
        for ((comm, from, to), tag) in channels {
            if let Some(by) = self.any.get(&(comm, to)).filter(|by| **by != tag) {
                return Err(format!(
                    "{to} receives from any source by {by}, and {from} sends to it by {tag}"
                ));
            }
        }
        let gathered = self.threads.into_iter().map(|mut t| {
            for (key, ranks) in t.without {
                let classes = t.streams.entry(key).or_default();
                let stream = classes.list().first().map(|(s, _)| s.clone()).unwrap_or_default();
                classes.add_all(stream, &ranks);
            }
            t.streams
        });
        Ok(gathered.collect())
    }
}
