//! The main promise: projecting any merge, in any order, on a rank gives that rank's calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use st_capture::record::{Options, RankRecorder};
use st_model::calls::{CallId, CallTable};
use st_model::check::check;
use st_model::frequencies::Frequencies;
use st_model::objects::{Comm, Type};
use st_model::project::Call;
use st_model::proof::by_slot;
use st_model::ranks::RankSeq;
use st_model::section::{Form, Own, Section, Sym, Symbol};
use st_reduce::lossy::{Lossy, ParamKind};
use st_reduce::merge::master::Loops;
use st_reduce::merge::{Layout, Merger, merge};
use st_stream::structure_size;

const RANKS: u32 = 6;

/// What a generated program does in one call.
#[derive(Clone, Debug)]
enum Act {
    /// Send to a rank given absolutely, by some function of the own rank, or none; with a tag that rises by rank.
    Send { site: u8, count: i64, peer: Peer, slope: i64 },
    /// A wait over some requests.
    Wait { site: u8, n: usize },
    /// A barrier, on world or on a row communicator.
    Barrier { site: u8, row: bool },
    /// Barriers on all communicators one after the other: their indices run up, but not alike on all ranks.
    Sweep,
}

#[derive(Clone, Copy, Debug)]
enum Peer {
    Absolute(u32),
    Right(u32),
    Exclusive(u32),
    Mirrored,
    /// Displacement in a grid of two rows, with wrap.
    Grid(u32, u32),
    /// In turn the ranks to the right.
    Turn,
    Null,
}

/// A generated program: loops over calls, some executed only by some ranks.
#[derive(Clone, Debug)]
enum Code {
    Do(Act),
    Loop(Vec<Code>, u8, bool),
    Only(u8, Vec<Code>),
}

fn act() -> impl Strategy<Value = Act> {
    let peer = prop_oneof![
        (0..RANKS).prop_map(Peer::Absolute),
        (1..RANKS).prop_map(Peer::Right),
        (1..RANKS).prop_map(Peer::Exclusive),
        Just(Peer::Mirrored),
        (0u32..2, 0u32..3).prop_map(|(y, x)| Peer::Grid(y, x)),
        Just(Peer::Turn),
        Just(Peer::Null),
    ];
    prop_oneof![
        (0u8..3, 0i64..4, peer, 0i64..3).prop_map(|(site, count, peer, slope)| Act::Send {
            site,
            count,
            peer,
            slope
        }),
        (0u8..2, 0usize..3).prop_map(|(site, n)| Act::Wait { site, n }),
        (0u8..2, any::<bool>()).prop_map(|(site, row)| Act::Barrier { site, row }),
        Just(Act::Sweep),
    ]
}

fn code() -> impl Strategy<Value = Vec<Code>> {
    let leaf = act().prop_map(Code::Do);
    let inner = leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            (proptest::collection::vec(inner.clone(), 1..4), 0u8..5, any::<bool>())
                .prop_map(|(c, n, by_rank)| Code::Loop(c, n, by_rank)),
            (any::<u8>(), proptest::collection::vec(inner, 1..4)).prop_map(|(mask, c)| Code::Only(mask, c)),
        ]
    });
    proptest::collection::vec(inner, 0..8)
}

struct Machine {
    rank: u32,
    recorder: RankRecorder,
    world: i64,
    row: i64,
    all: Vec<i64>,
    int: i64,
    clock: i64,
    turn: u32,
}

impl Machine {
    fn new(rank: u32) -> Self {
        let mut recorder = RankRecorder::new(rank, Options::default());
        let comm = |kind: &str, parent, members: Vec<u32>| Comm {
            kind: kind.into(),
            parent,
            members: members.into_iter().collect(),
            remote: RankSeq::default(),
        };
        let world = recorder.objects.comms.predefined(comm("MPI_COMM_WORLD", 0, (0..RANKS).collect()));
        recorder.objects.comms.predefined(comm("MPI_COMM_SELF", 0, vec![rank]));
        if rank == 2 {
            // An extra communicator on one rank shifts its indices.
            recorder.objects.comms.create(
                CallTable::builtin().by_name("MPI_Comm_dup").unwrap().id,
                5,
                comm("x", 1, vec![2]),
            );
        }
        let split = CallTable::builtin().by_name("MPI_Comm_split").unwrap().id;
        let members = (0..RANKS).filter(|r| r % 2 == rank % 2).collect();
        let row = recorder.objects.comms.create(split, 9, comm("MPI_Comm_split", 1, members));
        let dup = CallTable::builtin().by_name("MPI_Comm_dup").unwrap().id;
        let mut all = vec![world, row];
        for site in 10..14 {
            if rank == 2 && site == 12 {
                recorder.objects.comms.create(dup, 6, comm("y", 1, vec![2]));
            }
            all.push(recorder.objects.comms.create(
                dup,
                site,
                comm("MPI_Comm_dup", site, (0..RANKS).collect()),
            ));
        }
        let int = recorder.objects.types.predefined(Type {
            kind: "MPI_INT".into(),
            words: vec![],
            parts: vec![],
            size: 4,
            lb: 0,
            extent: 4,
        });
        recorder.open_thread(0);
        Self { rank, recorder, world, row, all, int, clock: 0, turn: 0 }
    }

    fn run(&mut self, code: &[Code]) {
        for c in code {
            match c {
                Code::Do(a) => self.act(a),
                Code::Loop(inner, n, by_rank) => {
                    let n = if *by_rank { u32::from(*n) * self.rank } else { u32::from(*n) };
                    (0..n).for_each(|_| self.run(inner));
                }
                Code::Only(mask, inner) => {
                    if mask >> self.rank & 1 == 1 {
                        self.run(inner);
                    }
                }
            }
        }
    }

    fn act(&mut self, act: &Act) {
        let (name, site, words) = match act {
            Act::Sweep => {
                for comm in self.all.clone() {
                    self.call("MPI_Barrier", 9, &[comm]);
                }
                return;
            }
            Act::Send { site, count, peer, slope } => {
                let peer = match peer {
                    Peer::Absolute(r) => i64::from(*r),
                    Peer::Right(k) => i64::from((self.rank + k) % RANKS),
                    Peer::Exclusive(k) => i64::from(self.rank ^ k),
                    Peer::Mirrored => i64::from(RANKS - 1 - self.rank),
                    Peer::Grid(y, x) => i64::from((self.rank / 3 + y) % 2 * 3 + (self.rank + x) % 3),
                    Peer::Turn => {
                        self.turn += 1;
                        i64::from((self.rank + self.turn) % RANKS)
                    }
                    Peer::Null => -1,
                };
                let tag = 7 + slope * i64::from(self.rank % 3);
                ("MPI_Send", site, vec![*count, self.int, peer, tag, self.world])
            }
            Act::Wait { site, n } => {
                let k = i64::try_from(*n).unwrap();
                let mut w = vec![k, k];
                w.extend(0..k);
                for list in [0..k, 1..k + 1, 2..k + 2, 3..k + 3] {
                    w.push(k);
                    w.extend(list);
                }
                ("MPI_Waitall", site, w)
            }
            Act::Barrier { site, row } => {
                ("MPI_Barrier", site, vec![if *row { self.row } else { self.world }])
            }
        };
        self.call(name, *site, &words);
    }

    fn call(&mut self, name: &str, site: u8, words: &[i64]) {
        let site = self.recorder.sites.label(&format!("{name} {site}"));
        let call = CallTable::builtin().by_name(name).unwrap().id;
        let sym = self.recorder.symbol(call, site, 0);
        self.clock += 10;
        self.recorder.record(0, sym, words, self.clock, self.clock + 3);
    }
}

/// Calls as (symbol's meaning, words with objects by name).
fn calls(s: &Section, rank: u32) -> Vec<(u16, u128, Vec<i64>)> {
    let table = CallTable::builtin();
    let name = |c: Call| {
        let symbol = s.symbols[c.sym as usize];
        let mut words = c.words;
        if table.get(symbol.call).unwrap().name != "MPI_Waitall" {
            let last = words.len() - 1;
            let comm = &s.tables.comms[usize::try_from(words[last]).unwrap()];
            words[last] = i64::try_from(comm.on(rank).unwrap().name >> 65).unwrap();
        }
        (symbol.call.0, s.sites.get(symbol.site).unwrap().id, words)
    };
    s.project(0, rank).unwrap().map(|c| name(c.unwrap())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn projection_is_the_rank(code in code(), order in Just((0..RANKS).collect::<Vec<_>>()).prop_shuffle(), cut in 0usize..6) {
        let sections: Vec<Section> = (0..RANKS).map(|r| {
            let mut m = Machine::new(r);
            m.run(&code);
            m.recorder.finish("host")
        }).collect();
        let parts: Vec<Section> = order.iter().map(|&r| sections[r as usize].clone()).collect();
        // A tree of merges: some ranks first, then the rest one by one.
        let first = merge(parts[..cut].to_vec(), false).unwrap();
        let mut all = vec![first];
        all.extend_from_slice(&parts[cut..]);
        if cut == 0 {
            all.remove(0);
        }
        let mut threaded = Merger::new(false);
        all.iter().for_each(|s| threaded.add(s.clone()).unwrap());
        let laid_out = |layout| {
            let mut merger = Merger::new(false).layout(layout);
            all.iter().for_each(|s| merger.add(s.clone()).unwrap());
            merger.finish()
        };
        let (aligned, lists) = (laid_out(Layout::Aligned), laid_out(Layout::Lists));
        let merged = merge(all, false).unwrap();
        let (due, told) = (threaded.parts(), AtomicU64::new(0));
        let tell = |n| {
            told.fetch_add(n, Ordering::Relaxed);
        };
        prop_assert_eq!(&threaded.finish_with(3, &tell), &merged);
        prop_assert_eq!(told.into_inner(), due);
        prop_assert!(structure_size(&merged) <= structure_size(&aligned) + 64);
        let mut structural = Merger::new(false).loops(Loops::Structural);
        parts.into_iter().for_each(|s| structural.add(s).unwrap());
        for merged in [aligned, lists, structural.finish()] {
            for r in 0..RANKS {
                prop_assert_eq!(calls(&merged, r), calls(&sections[r as usize], r));
            }
            for c in check(&merged).unwrap() {
                prop_assert!(c.passed(), "{:?}", c);
            }
        }
    }
}

/// What a slot of a symbol was on all ranks, by function, call site and slot: codes with their frequencies.
type Seen = BTreeMap<(u16, u128, usize), Frequencies>;

/// Counts the values of the slots that are histograms in a merged section, as recorded.
fn seen(merged: &Section, sections: &[Section]) -> Seen {
    let key = |s: &Section, sym: u32, slot| {
        let symbol = s.symbols[sym as usize];
        (symbol.call.0, s.sites.get(symbol.site).unwrap().id, slot)
    };
    let mut out = Seen::new();
    for (sym, slot, streams) in merged.histograms() {
        let Form::Histogram(codes) = streams.values.form else { continue };
        let wanted = key(merged, sym, slot);
        let into = out.entry(wanted).or_default();
        for (s, me) in sections.iter().zip(0..) {
            let own = Own { me, size: RANKS.into() };
            for call in s.project(0, u32::try_from(me).unwrap()).unwrap().map(Result::unwrap) {
                if key(s, call.sym, slot) == wanted {
                    let slots = CallTable::builtin().slots(s.symbols[call.sym as usize].call);
                    let values = by_slot(slots, &call.words).nth(slot).unwrap();
                    values.iter().for_each(|v| into.add(codes.form().code(*v, own), 1));
                }
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn histograms_count_what_was(code in code(), histogram: [bool; 3], force: [bool; 3], threshold in 0usize..12) {
        // 0 stands for where it takes less room.
        let sections: Vec<Section> = (0..RANKS).map(|r| {
            let mut m = Machine::new(r);
            m.run(&code);
            m.recorder.finish("host")
        }).collect();
        let kinds = |which: [bool; 3]| {
            let all = [ParamKind::Dest, ParamKind::Source, ParamKind::Count].into_iter().zip(which);
            all.filter(|(_, on)| *on).map(|(kind, _)| kind).collect()
        };
        let threshold = (threshold > 0).then_some(threshold);
        let lossy = Lossy { histogram: kinds(histogram), threshold, force_merge: kinds(force) };
        let mut m = Merger::new(false).with_loss(lossy.clone());
        sections.iter().for_each(|s| m.add(s.clone()).unwrap());
        let merged = m.finish();
        let mut other = Merger::new(false).with_loss(lossy.clone());
        sections.iter().for_each(|s| other.add(s.clone()).unwrap());
        prop_assert_eq!(&other.finish_with(3, &|_| ()), &merged);

        // Each histogram has counted every value.
        let seen = seen(&merged, &sections);
        let mut voided = 0;
        for (sym, slot, streams) in merged.histograms() {
            let symbol = merged.symbols[sym as usize];
            let row = CallTable::builtin().get(symbol.call).unwrap();
            let kind = ParamKind::of(row, &row.slots[slot]).unwrap();
            prop_assert!(lossy.histogram.contains(&kind) || lossy.force_merge.contains(&kind));
            voided |= 1 << row.slots[slot].lane as u8;
            let key = (symbol.call.0, merged.sites.get(symbol.site).unwrap().id, slot);
            let [stream] = &streams.values.streams[..] else { panic!("one histogram for all ranks") };
            prop_assert_eq!(&Frequencies::from_stream(stream).unwrap(), &seen[&key]);
        }
        // Exactly their lanes are voided, and the others are proved.
        for c in check(&merged).unwrap() {
            prop_assert!(c.passed(), "{:?}", c);
            prop_assert_eq!(merged.threads[c.thread].lanes.voided, voided);
        }
        // All other words are those of the rank.
        let slots_lost = |row: u16, site: u128, slot| seen.contains_key(&(row, site, slot));
        for r in 0..RANKS {
            let pairs = calls(&merged, r).into_iter().zip(calls(&sections[r as usize], r));
            for ((call, site, a), (_, _, b)) in pairs {
                let slots = CallTable::builtin().slots(CallId(call));
                for (i, (a, b)) in by_slot(slots, &a).zip(by_slot(slots, &b)).enumerate() {
                    prop_assert!(a.len() == b.len() && (a == b || slots_lost(call, site, i)));
                }
            }
        }
        // Merging it again changes nothing, and what is exact cannot be added.
        let mut again = Merger::new(false).with_loss(lossy);
        again.add(merged.clone()).unwrap();
        let mut more = sections[0].clone();
        more.ranks = [RANKS].into_iter().collect();
        let makes = |sym: Sym| {
            let Symbol { call, site, .. } = merged.symbols[sym as usize];
            let site = merged.sites.get(site).unwrap().id;
            more.symbols.iter().any(|s| s.call == call && more.sites.get(s.site).unwrap().id == site)
        };
        let meets = merged.histograms().any(|(sym, _, _)| makes(sym));
        prop_assert_eq!(again.add(more).is_err(), meets);
        let mut again = Merger::new(false);
        again.add(merged.clone()).unwrap();
        let again = again.finish();
        for r in 0..RANKS {
            prop_assert_eq!(calls(&again, r), calls(&merged, r));
        }
        let lanes = |s: &Section| s.threads.iter().map(|t| t.lanes).collect::<Vec<_>>();
        prop_assert_eq!(lanes(&again), lanes(&merged));
    }
}

#[test]
fn ranks_that_each_have_calls_of_their_own_are_not_aligned() {
    let section = |rank: u32, differ: bool| {
        let mut m = Machine::new(rank);
        for n in 0..40 {
            let rank = if differ { rank } else { 0 };
            let what = (n * n * 3 + rank * 11 * (n % 5) + rank * rank * n) % 7;
            let (site, barrier) = (u8::try_from(what % 4).unwrap(), [m.world]);
            (0..=what / 2).for_each(|_| m.call("MPI_Barrier", site, &barrier));
        }
        m.recorder.finish("host")
    };
    let merged = |differ, layout| {
        let mut merger = Merger::new(false).layout(layout);
        (0..RANKS).for_each(|r| merger.add(section(r, differ)).unwrap());
        merger.finish()
    };
    let [smaller, aligned, lists] =
        [Layout::Smaller, Layout::Aligned, Layout::Lists].map(|layout| merged(true, layout));
    assert!(smaller == lists);
    assert!(structure_size(&lists) < structure_size(&aligned));
    (0..RANKS).for_each(|r| assert_eq!(calls(&lists, r), calls(&section(r, true), r)));
    // What has been laid out so can be merged again.
    let mut again = Merger::new(false).layout(Layout::Lists);
    again.add(lists.clone()).unwrap();
    assert!(again.finish() == lists);
    // All ranks have one list: nothing is left to lay out.
    assert!(merged(false, Layout::Lists) == merged(false, Layout::Aligned));
}

/// Of few sizes by chance a histogram is smaller; where sizes take turns it says more than that they do.
#[test]
fn histograms_take_the_place_of_what_takes_more_room() {
    let section = |rank: u32, chance: bool| {
        let mut m = Machine::new(rank);
        for n in 0..20_i64 {
            let count =
                if chance { 1 + (n * n * 7919 + i64::from(rank) * 104_729) % 1009 % 5 } else { 1 + n % 2 };
            m.call("MPI_Send", 0, &[count, m.int, 0, 3, m.world]);
        }
        m.recorder.finish("host")
    };
    let merged = |chance, lossy: Lossy| {
        let mut m = Merger::new(false).with_loss(lossy);
        (0..RANKS).for_each(|r| m.add(section(r, chance)).unwrap());
        m.finish()
    };
    let where_smaller: Lossy = "dest,source,count".parse().unwrap();
    let by_chance = merged(true, where_smaller.clone());
    assert_eq!(by_chance.histograms().count(), 1);
    assert!(structure_size(&by_chance) < structure_size(&merged(true, Lossy::default())));
    let in_turns = |lossy| merged(false, lossy).histograms().count();
    assert_eq!([in_turns(where_smaller), in_turns("count:1".parse().unwrap())], [0, 1]);
    for wrong in ["", "tag", "dest,", "dest:0", "dest:x", ":3"] {
        assert!(wrong.parse::<Lossy>().is_err(), "{wrong}");
    }
}

#[test]
fn ranks_that_differ_are_united_by_force_and_others_left_alone() {
    // The sizes follow the step, the partners no rule of the rank.
    let section = |rank: u32| {
        let mut m = Machine::new(rank);
        for n in 0..20 {
            let words = [1 + n * n * 5 % 23, m.int, i64::from(rank * rank * 7 % RANKS), 3, m.world];
            m.call("MPI_Send", 0, &words);
        }
        m.recorder.finish("host")
    };
    let merged = |histogram: &[ParamKind], force: &[ParamKind]| {
        let lossy = Lossy { histogram: histogram.to_vec(), threshold: Some(7), force_merge: force.to_vec() };
        let mut m = Merger::new(false).with_loss(lossy);
        (0..RANKS).for_each(|r| m.add(section(r)).unwrap());
        let s = m.finish();
        let names = |slot: usize| ["count", "type", "dest", "tag", "comm"][slot];
        s.histograms().map(|(_, slot, _)| names(slot)).collect::<Vec<_>>()
    };
    let all = [ParamKind::Dest, ParamKind::Source, ParamKind::Count];
    assert_eq!(merged(&[], &all), ["dest"]);
    assert_eq!(merged(&all, &[]), ["count"]);
    assert_eq!(merged(&[ParamKind::Dest], &[ParamKind::Count]), Vec::<&str>::new());
    assert_eq!(merged(&all, &all), ["count", "dest"]);
}
