//! What ranks do on paper: their calls by name of slot, and what these send and receive.

use std::collections::{BTreeMap, HashMap};

use clap::ValueEnum;
use st_kernels::{Kernel, Options, paper};
use st_model::calls::{CallTable, Meaning, Object};
use st_model::section::Section;
use st_model::values::{ANY_SOURCE, ANY_TAG, NONE};

/// A call with its words by slot name.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) slots: HashMap<String, Vec<i64>>,
    /// Name of the communicator; 0 for calls that have none.
    pub(crate) comm: u128,
}

impl Call {
    pub(crate) fn one(&self, slot: &str) -> i64 {
        self.slots[slot][0]
    }
}

/// A rank's calls, and the members of the communicators it used.
pub(crate) struct Rank {
    pub(crate) calls: Vec<Call>,
    pub(crate) members: HashMap<u128, Vec<i64>>,
}

pub(crate) fn options(kernel: Kernel) -> Options {
    let steps = match kernel {
        Kernel::Ocean => 51,
        Kernel::Amr => 17,
        Kernel::Transpose | Kernel::Sweeps => 2,
        _ => 6,
    };
    Options { steps: Some(steps), ..Options::default() }
}

pub(crate) fn sections(kernel: Kernel, ranks: u32, options: &Options) -> Vec<Section> {
    paper::sections(kernel, options, ranks).collect::<Result<_, _>>().unwrap()
}

pub(crate) fn expand(section: &Section) -> Rank {
    let rank = section.ranks.iter().next().unwrap();
    let comms = &section.tables.comms;
    let name = |index: i64| comms[usize::try_from(index).unwrap()].on(rank).unwrap();
    let mut members = HashMap::new();
    // One thread after the other; each completes what it starts.
    let all = (0..section.threads.len()).flat_map(|thread| section.project(thread, rank).unwrap());
    let calls = all.map(|call| {
        let call = call.unwrap();
        let row = CallTable::builtin().get(section.symbols[call.sym as usize].call).unwrap();
        let mut words = call.words.into_iter();
        let mut comm = 0;
        let mut slots = HashMap::new();
        for slot in &row.slots {
            let n = if slot.list { words.next().unwrap() } else { 1 };
            let values: Vec<i64> = words.by_ref().take(usize::try_from(n).unwrap()).collect();
            if comm == 0 && slot.meaning == Meaning::Ref(Object::Comm) {
                comm = name(values[0]).name;
                members.insert(comm, name(values[0]).content.members.iter().collect());
            }
            slots.insert(slot.name.clone(), values);
        }
        assert_eq!(words.next(), None, "{}", row.name);
        Call { name: row.name.clone(), slots, comm }
    });
    let calls = calls.collect();
    Rank { calls, members }
}

pub(crate) fn all(kernel: Kernel, ranks: u32) -> Vec<Rank> {
    sections(kernel, ranks, &options(kernel)).iter().map(expand).collect()
}

/// Kernel and numbers of ranks to try.
pub(crate) fn cases() -> impl Iterator<Item = (Kernel, u32)> {
    Kernel::value_variants().iter().flat_map(|&kernel| {
        [1, 2, 3, 4, 9, 32].into_iter().filter_map(move |ranks: u32| {
            let fits = kernel.check(ranks.cast_signed(), &Options::default()).is_ok();
            // The ocean makes many calls; nine ranks are more than a node of it.
            (fits && (kernel != Kernel::Ocean || ranks <= 9)).then_some((kernel, ranks))
        })
    })
}

/// Messages by communicator, sender, receiver (world ranks) and tag: bytes, in order.
pub(crate) type Messages = BTreeMap<(u128, i64, i64, i64), Vec<i64>>;

pub(crate) fn size_of(section: &Section, index: i64) -> i64 {
    section.tables.types[usize::try_from(index).unwrap()].of[0].1.content.size
}

/// What a rank sends and what it receives.
pub(crate) fn messages(section: &Section, rank: &Rank) -> (Messages, Messages) {
    let me = i64::from(section.ranks.iter().next().unwrap());
    let (mut sent, mut received) = (Messages::new(), Messages::new());
    let mut open: HashMap<i64, Option<(u128, i64, i64)>> = HashMap::new();
    for call in &rank.calls {
        let world = |r: i64| rank.members[&call.comm][usize::try_from(r).unwrap()];
        let mut send = |count: &str, kind: &str, tag: &str| {
            let bytes = call.one(count) * size_of(section, call.one(kind));
            sent.entry((call.comm, me, world(call.one("dest")), call.one(tag))).or_default().push(bytes);
        };
        // Source and tag of a receive: as asked for, or as the status says.
        let resolved = |tag: &str| {
            let (source, tag) = (call.one("source"), call.one(tag));
            let said = (call.one("rsource"), call.one("rtag"));
            if source == ANY_SOURCE || tag == ANY_TAG {
                assert!((source == ANY_SOURCE || source == said.0) && (tag == ANY_TAG || tag == said.1));
                return said;
            }
            assert_eq!(said, (NONE, NONE));
            (source, tag)
        };
        match call.name.as_str() {
            "MPI_Send" => send("count", "type", "tag"),
            "MPI_Isend" => {
                send("count", "type", "tag");
                open.insert(call.one("request"), None);
            }
            "MPI_Sendrecv" => {
                send("sendcount", "sendtype", "sendtag");
                let (source, tag) = resolved("recvtag");
                received.entry((call.comm, world(source), me, tag)).or_default().push(call.one("bytes"));
            }
            "MPI_Recv" => {
                let (source, tag) = resolved("tag");
                received.entry((call.comm, world(source), me, tag)).or_default().push(call.one("bytes"));
                assert!(call.one("bytes") <= call.one("count") * size_of(section, call.one("type")));
            }
            "MPI_Irecv" => {
                let request = (call.comm, world(call.one("source")), call.one("tag"));
                let lowest = (0..).find(|slot| !open.contains_key(slot)).unwrap();
                assert_eq!(call.one("request"), lowest);
                open.insert(lowest, Some(request));
            }
            "MPI_Wait" | "MPI_Waitall" | "MPI_Waitsome" | "MPI_Waitany" | "MPI_Test" => {
                complete(call, me, rank, &mut open, &mut received);
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "requests are left open: {open:?}");
    (sent, received)
}

pub(crate) fn complete(
    call: &Call,
    me: i64,
    rank: &Rank,
    open: &mut HashMap<i64, Option<(u128, i64, i64)>>,
    received: &mut Messages,
) {
    let requests = &call.slots["requests"];
    let completed = call.slots["completed"].len();
    match call.name.as_str() {
        "MPI_Waitsome" => {}
        "MPI_Waitany" => assert_eq!(completed, 1),
        "MPI_Test" => assert_eq!(i64::try_from(completed).unwrap(), call.one("flag")),
        _ => assert_eq!(completed, requests.len()),
    }
    for (i, &position) in call.slots["completed"].iter().enumerate() {
        let request = requests[usize::try_from(position).unwrap()];
        let [source, tag, bytes] = ["source", "tag", "bytes"].map(|s| call.slots[s][i]);
        match open.remove(&request).expect("a completed request was open") {
            None => assert_eq!((source, tag, bytes), (NONE, NONE, NONE)),
            Some((comm, from, asked)) => {
                assert_eq!((rank.members[&comm][usize::try_from(source).unwrap()], tag), (from, asked));
                received.entry((comm, from, me, tag)).or_default().push(bytes);
            }
        }
    }
}
