//! The published signatures, to compare with: 64 bits that different behaviour may share.
//!
//! * *Call path*: the exclusive or, over events, of the event's sequence number times its stack signature, modulo 2^64; a stack
//!   signature is the exclusive or of the frames' addresses. Sequence numbers count events as they happened, from 1, which the
//!   paper leaves open.
//! * *Parameters*: bits 0-15 the average of counts, 16-31 the exclusive or of relative destinations, 32-47 that of relative
//!   sources, 48-54 datatypes met, 55-61 operations met, 62-63 kinds of communicators. Peers are relative modulo the number of
//!   ranks, and each enters once: that gives the paper's three groups for block-tridiagonal solvers, where peers per event
//!   would cancel out. Lists of counts and tags are left out.
//!
//! A representative stands for its cluster's calls and counts, where these differ for the least that is sent and the most that
//! is received; counts of collective operations each rank keeps. Its partners are relative modulo the number of ranks, as the
//! signature compares them. What the signature leaves out, or takes for the same by accident, each rank keeps: without it a
//! replay would wait for messages that nobody sends.
//!
//! Three events from one place are worth nothing (1·x ⊕ 2·x ⊕ 3·x = 0 where x has no two ones side by side), frames may change
//! places, counts wrap around at 2^16, and partners met in pairs cancel out.
//!
//! Source: Bahmani, Mueller 2014, sections 3.1 and 3.2, table 1. Its example for a communicator is bit 55, which is taken.

use std::collections::BTreeSet;

use st_model::calls::roles::{Action, Role};
use st_model::calls::{CallId, CallTable, Lane, Meaning, Object, Slot};
use st_model::form::Own;
use st_model::ints::{Cursor, Sealed};
use st_model::objects::{Comm, Content};
use st_model::section::{Section, SlotStreams, Tables};
use st_model::sites::{Frame, SiteTable};
use st_model::tree::Walk;

use crate::cluster::options::Options;
use crate::cluster::rank_view::View;
use crate::cluster::signature::{halves, total};
use crate::cluster::slot::Stand;
use crate::cluster::tolerance::Average;
use crate::codes::code;
use crate::lossy::ParamKind;
use crate::user;
use crate::who::Who;

/// Different values of a parameter that are looked at.
const VALUES: usize = 4096;
/// Datatypes by the bit they have.
const TYPES: [&[&str]; 6] = [
    &["MPI_CHAR", "MPI_BYTE", "MPI_CHARACTER", "MPI_SIGNED_CHAR", "MPI_UNSIGNED_CHAR"],
    &["MPI_INT", "MPI_INTEGER", "MPI_INT32_T", "MPI_UNSIGNED", "MPI_UINT32_T"],
    &["MPI_LONG", "MPI_LONG_LONG", "MPI_LONG_LONG_INT", "MPI_INT64_T", "MPI_UNSIGNED_LONG", "MPI_UINT64_T"],
    &["MPI_FLOAT", "MPI_REAL"],
    &["MPI_DOUBLE", "MPI_DOUBLE_PRECISION"],
    &["MPI_DOUBLE_COMPLEX", "MPI_COMPLEX", "MPI_C_DOUBLE_COMPLEX"],
];
/// Operations by the bit they have.
const OPS: [&str; 6] = ["MPI_MAX", "MPI_MIN", "MPI_SUM", "MPI_PROD", "MPI_LAND", "MPI_BAND"];

/// Signature of a rank's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// All bits but those of counts.
    pub(crate) bits: u64,
    /// The average of counts.
    pub(crate) count: Average,
}

impl Parameters {
    /// The 64 bits.
    #[must_use]
    pub fn value(self) -> u64 {
        self.bits | (self.count.sum / self.count.n.max(1)) & 0xFFFF
    }
}

/// Signature of a stack: the exclusive or of its frames' addresses.
#[must_use]
pub fn stack(sites: &SiteTable, site: u32) -> u64 {
    let Some(site) = sites.get(site) else { return 0 };
    if site.frames.is_empty() {
        return halves(site.id)[0];
    }
    // Modules lie apart, as they do in a process.
    let address = |f: &Frame| (u64::from(f.module) << 40).wrapping_add(f.offset);
    site.frames.iter().fold(0, |all, f| all ^ address(f))
}

/// The call-path signature over events from 1.
#[must_use]
pub fn exclusive_or(stacks: impl IntoIterator<Item = u64>) -> u64 {
    (1u64..).zip(stacks).fold(0, |all, (seq, x)| all ^ seq.wrapping_mul(x))
}

/// The call-path signature of a rank: over its threads' events one after the other. *Cost:* O(events).
#[must_use]
pub fn call_path(section: &Section, rank: u32) -> u64 {
    let stacks: Vec<u64> = section.symbols.iter().map(|s| stack(&section.sites, s.site)).collect();
    let view = View { section, rank };
    let events = section.threads.iter().filter(|t| t.ranks.contains(rank)).flat_map(|t| {
        let counts: Vec<Cursor<'_>> = t.counts.iter().map(|c| view.stream(c).cursor()).collect();
        // What cannot be read ends the sequence.
        Walk::new(&t.tree, counts).map_while(Result::ok)
    });
    exclusive_or(events.map(|sym| stacks.get(sym as usize).copied().unwrap_or(0)))
}

/// The signature of a rank's parameters. Those that do not tell ranks apart are left out, and so are those that are what the
/// user says.
#[must_use]
pub fn parameters(section: &Section, rank: u32, options: &Options) -> Parameters {
    let view = View { section, rank };
    let mut out = Parameters { bits: 0, count: Average { sum: 0, n: 0 } };
    let mut peers = [BTreeSet::new(), BTreeSet::new()];
    for thread in section.threads.iter().filter(|t| t.ranks.contains(rank)) {
        let executions = view.executions(thread);
        let symbols = section.symbols.iter().zip(&thread.params).zip(executions).enumerate();
        for (at, ((symbol, streams), n)) in symbols {
            let slots = CallTable::builtin().slots(symbol.call);
            let own = view.own(&mut Who::new(view.section), streams, slots).unwrap_or_default();
            let row = CallTable::builtin().get(symbol.call);
            for (slot, s) in slots.iter().zip(streams) {
                let len = s.lens.as_ref().map_or(n, |l| total(view.stream(l), n));
                let kind = row.and_then(|row| ParamKind::of(row, slot));
                let as_said = || {
                    let form = user::form(&options.users, section, at, &slot.name)?;
                    let codes = code(view.stream(&s.values), form, own, len)?;
                    codes.constant().filter(|c| *c == 0)
                };
                if kind.is_some_and(|kind| options.force_merge.contains(&kind)) || as_said().is_some() {
                    continue;
                }
                match slot.name.as_str() {
                    _ if len == 0 => {}
                    "dest" => relative(view.stream(&s.values), own, &mut peers[0]),
                    "source" if !slot.list => relative(view.stream(&s.values), own, &mut peers[1]),
                    _ => enter(&mut out, view, slot, (s, len)),
                }
            }
        }
    }
    let [dest, source] = peers.map(|all| all.into_iter().fold(0, |x, v| x ^ (v.cast_unsigned() & 0xFFFF)));
    out.bits |= dest << 16 | source << 32;
    out
}

/// Whether the signature has a slot's average: ranks with equal averages are alike, whatever their single counts.
fn is_averaged(slot: &Slot) -> bool {
    slot.meaning == Meaning::Count && slot.lane == Lane::Count && !slot.list && slot.name != "bytes"
}

/// Which counts stand for those of a cluster's ranks, of which the signature compares the averages; `None` where each rank keeps
/// its own. Messages must go on to fit the receives that they meet, which may be those of another cluster.
pub(crate) fn stands(call: CallId, slot: &Slot) -> Option<Stand> {
    // All members of a communicator must go on to have counts that fit each other's, and may be in several clusters.
    let collective = matches!(Role::of_call(call).action, Action::Collective { .. });
    if collective || !is_averaged(slot) {
        return None;
    }
    let params = CallTable::builtin().get(call).map_or(&[][..], |row| &row.params);
    let behind = params.iter().skip_while(|p| p.name != slot.name).skip(1);
    // The partner of a count stands before the next count.
    let partners = behind.take_while(|p| p.role != "count");
    let (mut sends, mut receives) = (false, false);
    for p in partners {
        sends |= p.role == "dest";
        receives |= p.role == "source" || p.role == "message";
    }
    match (sends, receives) {
        (true, true) => None,
        (true, false) => Some(Stand::Least),
        (false, true) => Some(Stand::Most),
        (false, false) => Some(Stand::First),
    }
}

fn enter(out: &mut Parameters, view: View<'_>, slot: &Slot, of: (&SlotStreams, u64)) {
    let (streams, len) = of;
    let values = view.stream(&streams.values);
    let tables = &view.section.tables;
    match slot.meaning {
        Meaning::Count if is_averaged(slot) => {
            out.count.sum = out.count.sum.saturating_add(total(values, len));
            out.count.n = out.count.n.saturating_add(len);
        }
        Meaning::Ref(Object::Type) => {
            for kind in kinds(&tables.types, values, view.rank, |t| t.kind.clone()) {
                let at = TYPES.iter().position(|names| names.contains(&kind.as_str())).unwrap_or(TYPES.len());
                out.bits |= 1 << (48 + at);
            }
        }
        Meaning::Ref(Object::Op) => {
            for kind in kinds(&tables.ops, values, view.rank, |o| o.kind.clone()) {
                let at = OPS.iter().position(|name| *name == kind).unwrap_or(OPS.len());
                out.bits |= 1 << (55 + at);
            }
        }
        Meaning::Ref(Object::Comm) => {
            for inter in kinds(&tables.comms, values, view.rank, Comm::clone).iter().filter(|c| c.parent != 0)
            {
                out.bits |= 1 << if inter.remote.is_empty() { 62 } else { 63 };
            }
        }
        _ => {}
    }
}

/// Adds the different values relative to the own rank; specials as they are.
fn relative(values: &Sealed, own: Own, into: &mut BTreeSet<i64>) {
    let value = |v: i64| if v < 0 { v } else { v.wrapping_sub(own.me).rem_euclid(own.size.max(1)) };
    into.extend(values.distinct(VALUES).unwrap_or_default().into_iter().map(value));
}

/// What the objects that values refer to are.
fn kinds<T: Content, K>(
    table: &[st_model::section::Entry<T>],
    values: &Sealed,
    rank: u32,
    kind: impl Fn(&T) -> K,
) -> Vec<K> {
    let all = values.distinct(VALUES).unwrap_or_default();
    all.into_iter().filter_map(|i| Some(kind(&Tables::find(table, i, rank)?.content))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::signature::Signature;
    use st_model::ints::Chain;

    /// Our signature of the same events.
    fn ours(stacks: &[u64]) -> Signature {
        stacks.iter().fold(Signature::empty(), |all, s| all.then(Signature::of(&[*s])))
    }

    #[test]
    fn what_the_published_signature_confuses_ours_does_not() {
        let x = 0x40_1000;
        let confused: [(&[u64], &[u64]); 4] = [
            // Three calls look like none.
            (&[x, x, x], &[]),
            // Seven, too.
            (&[x; 7], &[x, x, x]),
            // Even numbers discard the upper bits.
            (&[x, 1 << 63], &[x, 0]),
            // Other calls at other places.
            (&[1, 2], &[5, 0]),
        ];
        for (a, b) in confused {
            let published = |s: &[u64]| exclusive_or(s.iter().copied());
            assert_eq!(published(a), published(b), "{a:x?} {b:x?}");
            assert_ne!(ours(a), ours(b), "{a:x?} {b:x?}");
        }
    }

    #[test]
    fn most_short_sequences_share_a_published_signature() {
        // Four call sites near each other, as in the body of one function.
        let sites = [0x40_1136u64, 0x40_114c, 0x40_1162, 0x40_1178];
        let mut seen = std::collections::HashSet::new();
        let mut level = vec![Vec::new()];
        let mut all = 0;
        for _ in 0..=8 {
            seen.extend(level.iter().map(|s: &Vec<u64>| exclusive_or(s.iter().copied())));
            all += level.len();
            level = level.iter().flat_map(|s| sites.map(|c| [&s[..], &[c]].concat())).collect();
        }
        assert_eq!(all, 87_381);
        assert!(seen.len() < all / 4, "{}", seen.len());
    }

    #[test]
    fn frames_may_change_places() {
        let mut sites = SiteTable::new();
        let module = sites.module(st_model::sites::Module::default());
        let frame = |offset| Frame { module, offset };
        let a = sites.stack(vec![frame(0x10), frame(0x20)]);
        let b = sites.stack(vec![frame(0x20), frame(0x10)]);
        let recursive = sites.stack(vec![frame(0x10), frame(0x30), frame(0x30), frame(0x20)]);
        assert_eq!(stack(&sites, a), stack(&sites, b));
        assert_eq!(stack(&sites, a), stack(&sites, recursive));
        assert_ne!(sites.get(a).map(|s| s.id), sites.get(b).map(|s| s.id));
    }
}
