//! The main promise: projecting any merge, in any order, on a rank gives that rank's calls.
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use proptest::prelude::*;
use st_merge::master::Loops;
use st_merge::{Merger, merge};
use st_trace::calls::CallTable;
use st_trace::check::check;
use st_trace::objects::{Comm, Type};
use st_trace::project::Call;
use st_trace::ranks::RankSeq;
use st_trace::record::{Options, RankRecorder};
use st_trace::section::Section;

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
        let world = recorder.comms.predefined(comm("MPI_COMM_WORLD", 0, (0..RANKS).collect()));
        recorder.comms.predefined(comm("MPI_COMM_SELF", 0, vec![rank]));
        if rank == 2 {
            // An extra communicator on one rank shifts its indices.
            recorder.comms.create(
                CallTable::builtin().by_name("MPI_Comm_dup").unwrap().id,
                5,
                comm("x", 1, vec![2]),
            );
        }
        let split = CallTable::builtin().by_name("MPI_Comm_split").unwrap().id;
        let members = (0..RANKS).filter(|r| r % 2 == rank % 2).collect();
        let row = recorder.comms.create(split, 9, comm("MPI_Comm_split", 1, members));
        let dup = CallTable::builtin().by_name("MPI_Comm_dup").unwrap().id;
        let mut all = vec![world, row];
        for site in 10..14 {
            if rank == 2 && site == 12 {
                recorder.comms.create(dup, 6, comm("y", 1, vec![2]));
            }
            all.push(recorder.comms.create(dup, site, comm("MPI_Comm_dup", site, (0..RANKS).collect())));
        }
        let int = recorder.types.predefined(Type {
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
        let merged = merge(all, false).unwrap();
        prop_assert_eq!(&threaded.finish_with(3), &merged);
        let mut structural = Merger::new(false).loops(Loops::Structural);
        parts.into_iter().for_each(|s| structural.add(s).unwrap());
        for merged in [merged, structural.finish()] {
            for r in 0..RANKS {
                prop_assert_eq!(calls(&merged, r), calls(&sections[r as usize], r));
            }
            for c in check(&merged).unwrap() {
                prop_assert!(c.passed(), "{:?}", c);
            }
        }
    }
}
