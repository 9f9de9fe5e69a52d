//! The partition is that of the ranks' expanded calls, and every rank can be read back from its cluster.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::prelude::*;
use st_capture::fold::{Fold, Likeness};
use st_capture::record::{Options as RecordOptions, RankRecorder};
use st_model::calls::{CallTable, Meaning, Object};
use st_model::check::check;
use st_model::expr::Expr;
use st_model::form::{Form, Grid, Own};
use st_model::objects::{Comm, Type};
use st_model::proof::by_slot;
use st_model::ranks::RankSeq;
use st_model::section::Section;
use st_reduce::cluster::{Clusterer, Clustering, Clusters, Options, Signatures};
use st_reduce::tree::Reduce;
use st_reduce::user::Param;

const RANKS: u32 = 6;
const ROW: u32 = 3;

/// Some call of a generated program.
#[derive(Clone, Debug)]
enum Act {
    /// A message to a partner, with as many elements as a few ranks may differ in.
    Send {
        site: u8,
        peer: Peer,
        more: u8,
        on_row: bool,
    },
    Barrier {
        site: u8,
        on_row: bool,
    },
}

#[derive(Clone, Copy, Debug)]
enum Peer {
    Absolute(u32),
    Right(u32),
    Exclusive(u32),
    Mirrored,
    Grid,
    /// Any function of the rank.
    Table([u8; 6]),
    /// None on some ranks.
    Border(u8),
    /// What the user says, but on some ranks.
    Said(u8),
}

/// A generated program.
#[derive(Clone, Debug)]
enum Code {
    Do(Act),
    Loop(Vec<Code>, u8),
    Only(u8, Vec<Code>),
}

fn act() -> impl Strategy<Value = Act> {
    let peer = prop_oneof![
        (0..RANKS).prop_map(Peer::Absolute),
        (1..RANKS).prop_map(Peer::Right),
        (1..RANKS).prop_map(Peer::Exclusive),
        Just(Peer::Mirrored),
        Just(Peer::Grid),
        any::<[u8; 6]>().prop_map(Peer::Table),
        any::<u8>().prop_map(Peer::Border),
        prop_oneof![Just(0u8), any::<u8>()].prop_map(Peer::Said),
    ];
    prop_oneof![
        (0u8..3, peer, prop_oneof![Just(0u8), any::<u8>()], any::<bool>())
            .prop_map(|(site, peer, more, on_row)| Act::Send { site, peer, more, on_row }),
        (0u8..2, any::<bool>()).prop_map(|(site, on_row)| Act::Barrier { site, on_row }),
    ]
}

fn code() -> impl Strategy<Value = Vec<Code>> {
    // Few ranks differ, or else no two are alike.
    let mask = prop_oneof![Just(0x3Fu8), Just(0x07), Just(0x21), any::<u8>()];
    let inner = act().prop_map(Code::Do).prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            (proptest::collection::vec(inner.clone(), 1..4), 0u8..5).prop_map(|(c, n)| Code::Loop(c, n)),
            (mask.clone(), proptest::collection::vec(inner, 1..3)).prop_map(|(m, c)| Code::Only(m, c)),
        ]
    });
    proptest::collection::vec(inner, 0..6)
}

/// What the user says of where messages go.
const SAID: &str = "n % 3 == 1 ? me ^ 1 : (me * 5 + 2) % size";

fn said() -> Form {
    Form::User(Expr::parse(SAID, &HashMap::new()).unwrap())
}

struct Machine {
    rank: u32,
    /// Messages by site.
    sent: [u64; 3],
    recorder: RankRecorder,
    clock: i64,
}

impl Machine {
    fn run(&mut self, code: &[Code]) {
        for c in code {
            match c {
                Code::Do(act) => self.act(act),
                Code::Loop(inner, n) => (0..*n).for_each(|_| self.run(inner)),
                Code::Only(mask, inner) if mask >> self.rank & 1 == 1 => self.run(inner),
                Code::Only(..) => {}
            }
        }
    }

    fn act(&mut self, act: &Act) {
        let me = self.rank;
        match act {
            Act::Send { site, peer, more, on_row } => {
                let to = match peer {
                    Peer::Absolute(r) => i64::from(*r),
                    Peer::Right(k) => i64::from((me + k) % RANKS),
                    Peer::Exclusive(k) => i64::from((me ^ k) % RANKS),
                    Peer::Mirrored => i64::from(RANKS - 1 - me),
                    Peer::Grid => i64::from(me / ROW * ROW + (me + 1) % ROW),
                    Peer::Table(t) => i64::from(u32::from(t[me as usize]) % RANKS),
                    Peer::Border(mask) if mask >> me & 1 == 1 => -1,
                    Peer::Said(mask) if mask >> me & 1 == 0 => {
                        let (me, size) = if *on_row { (me % ROW, ROW) } else { (me, RANKS) };
                        said().value_at(
                            0,
                            Own { me: me.into(), size: size.into() },
                            self.sent[usize::from(*site)],
                        )
                    }
                    Peer::Border(_) | Peer::Said(_) => i64::from(me),
                };
                self.sent[usize::from(*site)] += 1;
                let count = 10 + i64::from(more >> me & 1);
                let (to, comm) = if *on_row { (to.min(to % i64::from(ROW)), 2) } else { (to, 0) };
                self.call("MPI_Send", *site, &[count, 0, to, 5, comm]);
            }
            Act::Barrier { site, on_row } => self.call("MPI_Barrier", *site, &[if *on_row { 2 } else { 0 }]),
        }
    }

    fn call(&mut self, name: &str, site: u8, words: &[i64]) {
        let site = self.recorder.sites.label(&format!("{name} {site}"));
        let sym = self.recorder.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
        self.clock += 7 + i64::from(self.rank);
        self.recorder.record(0, sym, words, self.clock, self.clock + 3);
    }
}

fn section(rank: u32, code: &[Code], fold: Fold) -> Section {
    let mut recorder = RankRecorder::new(rank, RecordOptions { fold, ..RecordOptions::default() });
    let comm = |kind: &str, parent, members: Vec<u32>| Comm {
        kind: kind.into(),
        parent,
        members: members.into_iter().collect(),
        remote: RankSeq::default(),
    };
    recorder.objects.comms.predefined(comm("MPI_COMM_WORLD", 0, (0..RANKS).collect()));
    recorder.objects.comms.predefined(comm("MPI_COMM_SELF", 0, vec![rank]));
    let split = CallTable::builtin().by_name("MPI_Comm_split").unwrap().id;
    recorder.objects.comms.create(
        split,
        9,
        comm("MPI_Comm_split", 1, (0..RANKS).filter(|r| r / ROW == rank / ROW).collect()),
    );
    let (words, parts) = (vec![], vec![]);
    recorder.objects.types.predefined(Type {
        kind: "MPI_INT".into(),
        words,
        parts,
        size: 4,
        lb: 0,
        extent: 4,
    });
    recorder.open_thread(0);
    let mut machine = Machine { rank, sent: [0; 3], recorder, clock: 0 };
    machine.run(code);
    machine.recorder.finish("host")
}

/// A rank's calls, as what identifies them on all ranks and each slot's words; objects by family.
type Calls = Vec<((u16, u128), Vec<Vec<i64>>)>;

fn calls(section: &Section, rank: u32) -> Calls {
    let all = section.project(0, rank).unwrap().map(|call| {
        let call = call.unwrap();
        let symbol = section.symbols[call.sym as usize];
        let slots = CallTable::builtin().slots(symbol.call);
        let words = slots.iter().zip(by_slot(slots, &call.words)).map(|(slot, words)| match slot.meaning {
            Meaning::Ref(Object::Comm) => {
                let family = section.tables.comms[usize::try_from(words[0]).unwrap()].family;
                vec![i64::try_from(family >> 65).unwrap()]
            }
            _ => words.to_vec(),
        });
        ((symbol.call.0, section.sites.get(symbol.site).unwrap().id), words.collect())
    });
    all.collect()
}

fn cluster(sections: &[Section], signatures: Signatures, users: &[Param]) -> Clusters {
    let users = users.to_vec();
    let mut clusterer = Clusterer::new(Options { signatures, users, ..Options::default() });
    sections.iter().for_each(|s| clusterer.add(s.clone()).unwrap());
    clusterer.finish()
}

/// Groups of ranks with equal keys, by lowest rank.
fn grouped<K: Ord>(ranks: impl IntoIterator<Item = u32>, key: impl Fn(u32) -> K) -> Vec<Vec<u32>> {
    let mut groups: BTreeMap<K, Vec<u32>> = BTreeMap::new();
    ranks.into_iter().for_each(|r| groups.entry(key(r)).or_default().push(r));
    let mut out: Vec<Vec<u32>> = groups.into_values().collect();
    out.sort();
    out
}

/// What a rank has in a slot of a symbol, all calls in order; who it is in those calls, if that is the same in all.
type Values = (Option<Own>, Vec<i64>);

/// The values of each slot of each symbol.
type All = BTreeMap<((u16, u128), usize), Values>;

fn values(section: &Section, rank: u32) -> All {
    let mut out: BTreeMap<_, (Vec<Own>, Vec<i64>)> = BTreeMap::new();
    let calls = calls(section, rank);
    for ((symbol, slots), call) in calls.iter().zip(section.project(0, rank).unwrap()) {
        let comm = *call.unwrap().words.last().unwrap();
        let own = section.own((Object::Comm, comm), rank).unwrap();
        for (i, words) in slots.iter().enumerate() {
            let of = out.entry((*symbol, i)).or_default();
            of.0.push(own);
            of.1.extend(words);
        }
    }
    let same = |owns: &[Own]| owns.iter().all(|o| *o == owns[0]).then(|| owns[0]);
    out.into_iter().map(|(k, (owns, v))| (k, (same(&owns), v))).collect()
}

fn leads(form: Form, ranks: &[&Values]) -> bool {
    let (from, values) = (ranks[0].0.unwrap(), &ranks[0].1);
    ranks.iter().all(|(own, other)| {
        // Both ways: a sum that happens to hit a special value is not that value.
        let value = |v: &i64| {
            let code = form.code(*v, from);
            Some(form.value(code, own.unwrap())).filter(|v| form.code(*v, own.unwrap()) == code)
        };
        values.iter().map(value).eq(other.iter().map(|v| Some(*v)))
    })
}

/// Number of directions in which the ranks differ from the first.
fn directions(grid: Grid, ranks: &[&Values]) -> usize {
    let place = |v: &Values| grid.place(v.0.unwrap().me);
    let from = place(ranks[0]);
    let all: Vec<(i64, i64)> = ranks
        .iter()
        .map(|v| (place(v)[0] - from[0], place(v)[1] + place(v)[2] - from[1] - from[2]))
        .collect();
    let parallel = all.iter().all(|a| all.iter().all(|b| a.0 * b.1 == a.1 * b.0));
    if all.iter().all(|a| *a == (0, 0)) {
        0
    } else if parallel {
        1
    } else {
        2
    }
}

/// Whether some form makes all ranks equal.
fn united(meaning: Meaning, ranks: &[&Values]) -> bool {
    let mut forms = vec![Form::Absolute];
    let size = ranks[0].0.unwrap().size;
    if meaning == Meaning::Rank {
        forms.extend([Form::RELATIVE, Form::MODULO, Form::MIRRORED, Form::Xor]);
    }
    if ranks.iter().all(|r| r.0.unwrap().size == size) {
        let grids: &[u32] = if size == 6 { &[1, 2, 3] } else { &[1] };
        for grid in grids.iter().map(|inner| Grid::new(1, *inner).unwrap()) {
            for wrap in [[false, false, true], [true, false, false], [true, false, true]] {
                if meaning == Meaning::Rank && grid != Grid::LINE {
                    forms.push(Form::Shift { grid, wrap });
                }
            }
            if matches!(meaning, Meaning::Rank | Meaning::Count) && ranks.len() >= directions(grid, ranks) + 2
            {
                for a in -24..=24 {
                    let inner = if grid == Grid::LINE { 0..=0 } else { -24..=24 };
                    forms.extend(inner.map(|c| Form::Affine { grid, factors: [a, 0, c] }));
                }
            }
        }
    }
    forms.into_iter().any(|f| leads(f, ranks))
}

/// Sub-clusters of a main cluster: of each slot, the values in a form that makes all ranks equal, or relative ones, or as
/// the user says if that leaves fewer.
fn subs(all: &[All], ranks: &[u32], user: Option<Form>) -> Vec<Vec<u32>> {
    let of = |r: u32| &all[r as usize];
    let slots: Vec<_> = of(ranks[0]).keys().copied().collect();
    let mut keys: BTreeMap<u32, Vec<Vec<i64>>> = BTreeMap::new();
    for slot in slots {
        let values: Vec<&Values> = ranks.iter().map(|r| &of(*r)[&slot]).collect();
        let meaning = CallTable::builtin().slots(st_model::calls::CallId(slot.0.0))[slot.1].meaning;
        let plain = values.iter().any(|v| v.0.is_none());
        let as_said = |v: &&Values| -> Option<Vec<i64>> {
            let form = user.filter(|_| meaning == Meaning::Rank && !plain)?;
            Some((0..).zip(&v.1).map(|(n, x)| form.code_at(*x, v.0.unwrap(), n)).collect())
        };
        let by_user: Option<Vec<Vec<i64>>> = values.iter().map(as_said).collect();
        let classes = |keys: &[Vec<i64>]| keys.iter().collect::<BTreeSet<_>>().len();
        if !plain && united(meaning, &values) || by_user.as_ref().is_some_and(|u| classes(u) == 1) {
            continue;
        }
        let usual = |v: &&Values| -> Vec<i64> {
            let relative = |x: &i64| if *x < 0 { *x - (1 << 40) } else { *x - v.0.unwrap().me };
            let peers = meaning == Meaning::Rank && !plain;
            if peers { v.1.iter().map(relative).collect() } else { v.1.clone() }
        };
        let usual: Vec<Vec<i64>> = values.iter().map(usual).collect();
        let fewer = by_user.filter(|u| classes(u) < classes(&usual)).unwrap_or(usual);
        for (rank, key) in ranks.iter().zip(fewer) {
            keys.entry(*rank).or_default().push(key);
        }
    }
    grouped(ranks.iter().copied(), |r| keys.get(&r).cloned())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn ranks_are_what_they_were(
        code in code(),
        order in Just((0..RANKS).collect::<Vec<_>>()).prop_shuffle(),
        folds in proptest::collection::vec(0usize..3, 6),
    ) {
        let fold = [Fold::Exact, Fold::None, Fold::Approx(Likeness::default())];
        let sections: Vec<Section> = (0..RANKS).map(|r| section(r, &code, fold[folds[r as usize]])).collect();
        let expanded: Vec<Calls> = (0..RANKS).map(|r| calls(&sections[r as usize], r)).collect();
        // Main clusters are ranks with equal expanded sequences of call sites, however each was folded.
        let path = |r: u32| expanded[r as usize].iter().map(|(symbol, _)| *symbol).collect::<Vec<_>>();
        let main = grouped(0..RANKS, path);
        let users = [Param::new("MPI_Send:dest", SAID, &HashMap::new()).unwrap()];
        let ways = [(Signatures::Exact, &[][..]), (Signatures::Reference, &[]), (Signatures::Exact, &users)];
        for (signatures, users) in ways {
            let found = cluster(&sections, signatures, users);
            prop_assert_eq!(found.table.iter().map(|g| g.ranks.iter().collect::<Vec<_>>()).collect::<Vec<_>>(), main.clone());
            if signatures == Signatures::Exact {
                let all: Vec<_> = (0..RANKS).map(|r| values(&sections[r as usize], r)).collect();
                for (group, ranks) in found.table.iter().zip(&main) {
                    let found: Vec<Vec<u32>> = group.subs.iter().map(|s| s.iter().collect()).collect();
                    prop_assert_eq!(found, subs(&all, ranks, users.first().map(|_| said())));
                }
            }
            for s in &found.sections {
                for rank in s.ranks.iter() {
                    prop_assert_eq!(&calls(s, rank), &expanded[rank as usize]);
                }
                for c in check(s).unwrap() {
                    prop_assert!(c.passed() && !c.lanes.contains(&st_model::check::Verdict::Voided), "{:?}", c);
                }
            }
        }
        // The order of ranks changes no cluster.
        let shuffled: Vec<Section> = order.iter().map(|r| sections[*r as usize].clone()).collect();
        for users in [&[][..], &users] {
            let tables = [&shuffled, &sections].map(|s| cluster(s, Signatures::Exact, users).table);
            prop_assert_eq!(&tables[0], &tables[1]);
        }
        // The form that a user gave is found however the ranks come together.
        let alone = cluster(&sections, Signatures::Exact, &users);
        let how = Clustering(Options { users: users.to_vec(), ..Options::default() });
        let mut parts = how.join(sections[..2].to_vec()).unwrap();
        parts.extend(how.join(sections[2..].to_vec()).unwrap());
        let together = how.root(parts).unwrap();
        prop_assert_eq!(together.table, alone.table);
        prop_assert_eq!(together.sections, alone.sections);
    }
}
