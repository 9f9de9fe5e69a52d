//! What a check finds wrong, and how it is said.

use st_model::sites::CallSites;

use crate::groups::Groups;
use crate::places::{PlaceId, Places};
use st_match::{Channel, NO_MESSAGE, PARTITIONED};

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Finding {
    Unbalanced { channel: Channel, receives: bool, waits: bool, n: u64, ends: [u64; 2], places: Vec<PlaceId> },
    TooLarge { channel: Channel, sent: i64, room: i64, places: [PlaceId; 2] },
    Disagree { group: u32, number: u64, ranks: [u32; 2], places: [PlaceId; 2], about: String },
    Missing { group: u32, rank: u32, has: u64, other: u32, place: PlaceId },
    Loose { what: Loose, rank: u32, place: PlaceId, n: u64 },
}

/// What one rank leaves undone by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Loose {
    Unknown,
    Elsewhere,
    Incomplete,
    Unmade,
}

/// Puts findings into words.
pub(super) struct Telling<'a> {
    pub(super) groups: &'a Groups,
    pub(super) places: &'a Places,
    pub(super) sites: &'a CallSites,
}

impl Telling<'_> {
    fn place(&self, place: PlaceId) -> String {
        self.places.describe(place, self.sites)
    }

    fn label(&self, group: u32) -> String {
        self.groups.get(group).map_or_else(String::new, |g| g.label.clone())
    }

    fn channel(&self, c: &Channel) -> String {
        let label = self.label(c.group);
        let tag = match c.tag {
            t if t < NO_MESSAGE => String::new(),
            t if t >= PARTITIONED => format!(", tag {}, in parts", t % PARTITIONED),
            t => format!(", tag {t}"),
        };
        let world = |side, position| {
            let found = self.groups.get(c.group).and_then(|g| g.world(side, position));
            found.filter(|r| *r != position).map_or(String::new(), |r| format!(" (rank {r} of all)"))
        };
        let inter = self.groups.get(c.group).is_some_and(|g| !g.sides[1].is_empty());
        let (from, to) = (world(c.side, c.from), world(if inter { 1 - c.side } else { 0 }, c.to));
        format!("{label}, rank {}{from} to {}{to}{tag}", c.from, c.to)
    }

    /// Which rank waits for a message in vain.
    fn waits(&self, c: &Channel, receives: bool) -> String {
        let group = self.groups.get(c.group);
        let other = if group.is_some_and(|g| !g.sides[1].is_empty()) { 1 - c.side } else { 0 };
        let (side, at, may) = if receives { (other, c.to, "would") } else { (c.side, c.from, "may") };
        let rank = group.and_then(|g| g.world(side, at));
        rank.map_or_else(String::new, |rank| format!(": rank {rank} {may} wait for ever"))
    }

    /// A line.
    pub(super) fn line(&self, finding: &Finding) -> String {
        match finding {
            Finding::Unbalanced { channel, receives, waits, n, ends, places } => {
                let what = if *receives { "receives without a send" } else { "sends without a receive" };
                let places: Vec<String> = places.iter().take(3).map(|p| self.place(*p)).collect();
                let waits = if *waits { self.waits(channel, *receives) } else { String::new() };
                let (channel, places) = (self.channel(channel), places.join(", "));
                format!("{channel}: {} sent, {} received: {n} {what}, of {places}{waits}", ends[0], ends[1])
            }
            Finding::TooLarge { channel, sent, room, places } => {
                let [from, to] = places.map(|p| self.place(p));
                let about = self.channel(channel);
                if channel.tag < NO_MESSAGE {
                    return format!("{about}: {from} gives {sent} bytes, {to} takes {room}");
                }
                format!("{about}: {from} sends {sent} bytes, {to} has room for {room}")
            }
            Finding::Disagree { group, number, ranks: [a, b], places, about } => {
                let [x, y] = places.map(|p| self.place(p));
                let label = self.label(*group);
                format!("{label}, collective operation {number}: rank {a} in {x}, rank {b} in {y}: {about}")
            }
            Finding::Missing { group, rank, has, other, place } => {
                let (label, place) = (self.label(*group), self.place(*place));
                format!(
                    "{label}: rank {rank} takes part in {has} collective operations, and rank {other} then in {place}"
                )
            }
            Finding::Loose { what, rank, place, n } => {
                let place = self.place(*place);
                match what {
                    Loose::Incomplete => format!("rank {rank}: {n} started by {place} never completed"),
                    Loose::Unknown => format!("rank {rank}: {place} completes {n} that nothing has started"),
                    Loose::Elsewhere => {
                        format!(
                            "rank {rank}: {place} completes {n} that another thread has started, which a replay cannot"
                        )
                    }
                    Loose::Unmade => {
                        format!("rank {rank}: {place} uses, {n} times, what no call makes that is replayed")
                    }
                }
            }
        }
    }
}
