//! What kernels do on paper must be a correct MPI program on any number of ranks.
#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

use std::collections::{BTreeMap, HashMap, HashSet};

use clap::ValueEnum;
use st_kernels::{Kernel, Options, Slow, Unfit, paper};
use st_match::graph::{Barriers, Latency, Matcher, survey};
use st_model::calls::{CallTable, Meaning, Object};
use st_model::section::Section;
use st_model::values::{ANY_SOURCE, ANY_TAG, NONE, PROC_NULL};
use st_stream::{Trace, WriteOptions};

/// A call with its words by slot name.
#[derive(Clone, PartialEq, Debug)]
struct Call {
    name: String,
    slots: HashMap<String, Vec<i64>>,
    /// Name of the communicator; 0 for calls that have none.
    comm: u128,
}

impl Call {
    fn one(&self, slot: &str) -> i64 {
        self.slots[slot][0]
    }
}

/// A rank's calls, and the members of the communicators it used.
struct Rank {
    calls: Vec<Call>,
    members: HashMap<u128, Vec<i64>>,
}

fn options(kernel: Kernel) -> Options {
    let steps = match kernel {
        Kernel::Ocean => 51,
        Kernel::Amr => 17,
        Kernel::Transpose | Kernel::Sweeps => 2,
        _ => 6,
    };
    Options { steps: Some(steps), ..Options::default() }
}

fn sections(kernel: Kernel, ranks: u32, options: &Options) -> Vec<Section> {
    paper::sections(kernel, options, ranks).collect::<Result<_, _>>().unwrap()
}

fn expand(section: &Section) -> Rank {
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

fn all(kernel: Kernel, ranks: u32) -> Vec<Rank> {
    sections(kernel, ranks, &options(kernel)).iter().map(expand).collect()
}

/// Kernel and numbers of ranks to try.
fn cases() -> impl Iterator<Item = (Kernel, u32)> {
    Kernel::value_variants().iter().flat_map(|&kernel| {
        [1, 2, 3, 4, 9, 32].into_iter().filter_map(move |ranks: u32| {
            let fits = kernel.check(ranks.cast_signed(), &Options::default()).is_ok();
            // The ocean makes many calls; nine ranks are more than a node of it.
            (fits && (kernel != Kernel::Ocean || ranks <= 9)).then_some((kernel, ranks))
        })
    })
}

/// Messages by communicator, sender, receiver (world ranks) and tag: bytes, in order.
type Messages = BTreeMap<(u128, i64, i64, i64), Vec<i64>>;

fn size_of(section: &Section, index: i64) -> i64 {
    section.tables.types[usize::try_from(index).unwrap()].of[0].1.content.size
}

/// What a rank sends and what it receives.
fn messages(section: &Section, rank: &Rank) -> (Messages, Messages) {
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

fn complete(
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

#[test]
fn every_message_sent_is_received() {
    for (kernel, ranks) in cases() {
        let (mut sent, mut received) = (Messages::new(), Messages::new());
        for section in &sections(kernel, ranks, &options(kernel)) {
            let (s, r) = messages(section, &expand(section));
            sent.extend(s);
            received.extend(r);
        }
        assert_eq!(sent, received, "{} on {ranks} ranks", kernel.name());
        let messages = !matches!(kernel, Kernel::Fft | Kernel::Rma);
        assert!(ranks == 1 || sent.is_empty() != messages, "{} and messages", kernel.name());
    }
}

#[test]
fn members_agree_on_collective_calls() {
    // What all members must pass alike.
    let common = |call: &Call| match call.name.as_str() {
        "MPI_Barrier" | "MPI_Comm_free" | "MPI_Comm_split" | "MPI_Alltoallv" | "MPI_Win_create" => vec![],
        "MPI_Bcast" => vec!["count", "type", "root"],
        "MPI_Allreduce" => vec!["count", "type", "op"],
        "MPI_Reduce" => vec!["count", "type", "op", "root"],
        "MPI_Gather" => vec!["sendcount", "sendtype", "root"],
        "MPI_Gatherv" => vec!["sendtype", "root"],
        "MPI_Allgather" => vec!["sendcount", "recvcount", "sendtype"],
        _ => vec!["no collective"],
    };
    for (kernel, ranks) in cases() {
        let all = all(kernel, ranks);
        let collectives = |rank: &Rank, comm: u128| -> Vec<Call> {
            let of = rank.calls.iter().filter(|c| c.comm == comm && common(c) != ["no collective"]);
            of.cloned().collect()
        };
        let mut seen = HashSet::new();
        for rank in &all {
            for (&comm, members) in rank.members.iter().filter(|(comm, _)| seen.insert(**comm)) {
                let theirs: Vec<Vec<Call>> =
                    members.iter().map(|&m| collectives(&all[usize::try_from(m).unwrap()], comm)).collect();
                for other in &theirs {
                    let shape = |calls: &[Call]| -> Vec<(String, Vec<Vec<i64>>)> {
                        calls
                            .iter()
                            .map(|c| {
                                (c.name.clone(), common(c).iter().map(|s| c.slots[*s].clone()).collect())
                            })
                            .collect()
                    };
                    assert_eq!(shape(other), shape(&theirs[0]), "{} on {ranks} ranks", kernel.name());
                }
                counts_agree(&theirs);
            }
        }
    }
}

/// Counts that differ between ranks are known to both sides.
fn counts_agree(members: &[Vec<Call>]) {
    let uneven = |call: &&Call| ["MPI_Alltoallv", "MPI_Gatherv"].contains(&call.name.as_str());
    for (n, call) in members[0].iter().enumerate().filter(|(_, call)| uneven(call)) {
        for (i, a) in members.iter().enumerate() {
            for (j, b) in members.iter().enumerate() {
                match call.name.as_str() {
                    "MPI_Alltoallv" => assert_eq!(a[n].slots["sendcounts"][j], b[n].slots["recvcounts"][i]),
                    "MPI_Gatherv" if a[n].one("root") == i64::try_from(i).unwrap() => {
                        assert_eq!(a[n].slots["recvcounts"][j], b[n].one("sendcount"));
                    }
                    "MPI_Gatherv" => assert!(a[n].slots["recvcounts"].is_empty()),
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn ranks_are_ranks_of_their_communicator() {
    for (kernel, ranks) in cases() {
        for rank in all(kernel, ranks) {
            for call in &rank.calls {
                let row = CallTable::builtin().by_name(&call.name).unwrap();
                for slot in row.slots.iter().filter(|s| s.meaning == Meaning::Rank) {
                    let size = rank
                        .members
                        .get(&call.comm)
                        .map_or(ranks.into(), |m| i64::try_from(m.len()).unwrap());
                    for &r in &call.slots[&slot.name] {
                        assert_ne!(r, PROC_NULL, "{}: no kernel names MPI_PROC_NULL", call.name);
                        assert!(
                            r < size && (r >= 0 || r == ANY_SOURCE || r == NONE),
                            "{}: {} = {r}",
                            call.name,
                            slot.name
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn traces_are_sound_and_the_same_every_time() {
    for (kernel, ranks) in cases() {
        let first = sections(kernel, ranks, &options(kernel));
        assert_eq!(first, sections(kernel, ranks, &options(kernel)), "{}", kernel.name());
        for section in &first {
            assert!(
                st_model::check::check(section).unwrap().iter().all(st_model::check::ThreadCheck::passed)
            );
            let calls = expand(section).calls;
            let mut events = 0;
            for thread in &section.threads {
                let (column_rank, column) = &thread.columns[0];
                assert!(section.ranks.contains(*column_rank));
                let times: Vec<(i64, i64)> = column.times().collect();
                assert!(
                    times.iter().all(|(enter, exit)| enter < exit) && times.is_sorted(),
                    "time runs forward"
                );
                events += column.events();
            }
            assert_eq!(events, calls.len() as u64);
            assert!(calls[0].name.starts_with("MPI_Init"));
            assert!(section.threads.len() > 1 || calls[calls.len() - 1].name == "MPI_Finalize");
        }
    }
}

#[test]
fn clocks_of_other_nodes_are_compared_with_the_first() {
    let options = options(Kernel::Stencil2d);
    let sections = sections(Kernel::Stencil2d, 20, &options);
    let starts = sections.iter().map(|s| {
        let column = &s.threads[0].columns[0].1;
        let (_, exit) = column.times().next().unwrap();
        (column.clock.points.first().map(|p| p.offset), exit)
    });
    let starts: Vec<_> = starts.collect();
    // MPI_Init takes 20 to 23 ms on all ranks; clocks are up to a millisecond apart.
    for (rank, (offset, exit)) in starts.iter().enumerate() {
        assert_eq!(offset.is_some(), rank >= 8, "eight ranks share the first node's clock");
        assert!((20_000_000..23_000_000).contains(&(exit + offset.unwrap_or(0))), "{rank}: {exit}");
    }
    assert!(starts[8].1.abs_diff(starts[16].1) > 1000);
}

#[test]
fn another_seed_is_another_ocean() {
    let calls = |seed| all_calls(&Options { seed, steps: Some(5), ..Options::default() });
    assert_ne!(calls(1), calls(2));
    assert_eq!(calls(3), calls(3));
}

fn all_calls(options: &Options) -> usize {
    sections(Kernel::Ocean, 4, options).iter().map(|s| expand(s).calls.len()).sum()
}

#[test]
fn calls_from_shared_functions_have_sites_of_their_own() {
    let section = paper::rank(Kernel::Ocean, &options(Kernel::Ocean), 4, 0).unwrap();
    let labels: Vec<&str> = section.sites.sites().iter().map(|s| s.label.as_str()).collect();
    assert!(labels.len() > 35, "{}", labels.len());
    let waitall = CallTable::builtin().by_name("MPI_Waitall").unwrap().id;
    let halos = section.symbols.iter().filter(|s| s.call == waitall).count();
    assert_eq!(halos, 4, "halo() is called from four places");
    assert!(labels.iter().any(|l| l.starts_with("ocean.rs:") && l.contains(" < ocean.rs:")), "{labels:?}");
}

#[test]
fn open_borders_have_fewer_neighbours() {
    let receives = |open, rank: u32| {
        let options = Options { open, steps: Some(1), ..Options::default() };
        let section = paper::rank(Kernel::Stencil2d, &options, 16, rank).unwrap();
        expand(&section).calls.iter().filter(|c| c.name == "MPI_Irecv").count()
    };
    assert_eq!((receives(false, 0), receives(true, 0), receives(true, 1), receives(true, 5)), (4, 2, 3, 4));
}

#[test]
fn the_million_th_rank_is_as_cheap_as_the_first() {
    let options = Options { steps: Some(2), ..Options::default() };
    for kernel in [Kernel::Stencil2d, Kernel::Wavefront, Kernel::Workers] {
        let section = paper::rank(kernel, &options, 1_000_000, 999_999).unwrap();
        assert_eq!(section.hosts[0].0, "node124999");
        assert!(!expand_names(&section).is_empty());
    }
}

fn expand_names(section: &Section) -> Vec<u32> {
    let rank = section.ranks.iter().next().unwrap();
    section.project(0, rank).unwrap().map(|c| c.unwrap().sym).collect()
}

#[test]
fn unfit_jobs_are_refused() {
    let fault =
        |kernel, options: &Options, ranks| paper::rank(kernel, options, ranks, 0).unwrap_err().to_string();
    let plain = Options::default();
    assert_eq!(fault(Kernel::Transpose, &plain, 6), "transpose runs on a power of two ranks, not on 6");
    let open = Options { open: true, ..plain.clone() };
    assert_eq!(fault(Kernel::Ocean, &open, 4), "--open is for stencils, not for ocean");
    let large = Options { size: Some(6000), ..plain };
    assert_eq!(fault(Kernel::Sweeps, &large, 4), "--size 6000 is too large for sweeps: at most 5000");
}

/// Bytes of structure and parameters of a rank's trace, not compressed.
fn structure(section: &Section) -> u64 {
    let trace = Trace { sections: vec![section.clone()], ..Trace::default() };
    let mut bytes = Vec::new();
    st_stream::write(&trace, &mut bytes, WriteOptions { level: 0 }).unwrap();
    let frames = st_stream::frame_sizes(&bytes[..], st_stream::ReadOptions::default()).unwrap();
    frames.iter().filter(|f| f.kind == "STRUCT").map(|f| f.expanded).sum()
}

/// Bytes of structure of one of 16 ranks after some steps.
fn after(kernel: Kernel, steps: i32) -> u64 {
    let options = Options { steps: Some(steps), ..Options::default() };
    structure(&paper::rank(kernel, &options, 16, 3).unwrap())
}

/// Kernels whose numbers of calls and messages are drawn from random numbers, or follow from what comes first.
const IRREGULAR: [Kernel; 5] = [Kernel::Sort, Kernel::Ocean, Kernel::Workers, Kernel::Amr, Kernel::Halo];

#[test]
fn size_does_not_grow_with_the_number_of_steps() {
    for &kernel in Kernel::value_variants().iter().filter(|kernel| !IRREGULAR.contains(kernel)) {
        // From 100 steps on only numbers get longer.
        let (few, more, many) = (after(kernel, 10), after(kernel, 100), after(kernel, 10_000));
        assert!(more.abs_diff(many) <= 16, "{}: {few}, {more}, {many} bytes", kernel.name());
        assert!(many <= few + few / 10 + 16, "{}: {few}, {more}, {many} bytes", kernel.name());
    }
}

/// Where each step draws something, steps cost what they draw, and later ones no more than earlier ones.
#[test]
fn size_follows_what_is_irregular() {
    for kernel in IRREGULAR {
        let [few, more, many] = [250, 500, 1_000].map(|steps| after(kernel, steps));
        let (first, second) = (more.abs_diff(few), many.abs_diff(more));
        // Twice as many steps draw twice as much, more or less; a cost that grew would make it four times as much.
        assert!(second <= first * 3, "{}: {few}, {more}, {many} bytes", kernel.name());
        assert!(many < 128 * 1_000, "{}: {many} bytes", kernel.name());
    }
}

#[test]
fn all_ways_of_folding_hold_the_same_calls() {
    for kernel in Kernel::value_variants() {
        let ranks = if *kernel == Kernel::Sweeps { 4 } else { 8 };
        for fold in ["none", "approx", "approx:50:80:50"] {
            let fold = fold.parse().unwrap();
            let options = options(*kernel);
            let exact = sections(*kernel, ranks, &options);
            let other = paper::sections_by(fold, *kernel, &options, ranks);
            for (a, b) in exact.iter().zip(other) {
                let b = b.unwrap();
                assert_eq!(expand(a).calls, expand(&b).calls, "{} {fold}", kernel.name());
                assert!(st_model::check::check(&b).unwrap().iter().all(|c| c.passed()));
            }
        }
    }
}

/// All ranks of a kernel with a slow one, and the events that each holds.
fn slowed(kernel: Kernel, ranks: u32, slow: &str) -> Result<Vec<Section>, Unfit> {
    let (options, slow) = (options(kernel), [slow.parse::<Slow>().unwrap()]);
    let plan = paper::Plan::new(&slow, kernel, &options, (ranks, 2))?;
    let mut all = Vec::new();
    let keep = |section: Result<Section, Unfit>| -> Result<(), Unfit> {
        all.push(section?);
        Ok(())
    };
    paper::each("exact".parse().unwrap(), (kernel, &options, &plan), (ranks, 2), |section| section, keep)?;
    Ok(all)
}

fn times(section: &Section) -> Vec<(i64, i64)> {
    section.threads[0].columns[0].1.times().collect()
}

#[test]
fn nothing_arrives_before_it_is_sent_where_ranks_wait_for_a_slow_one() {
    for kernel in Kernel::value_variants().iter().filter(|k| !matches!(k, Kernel::Threads)) {
        let ranks = if *kernel == Kernel::Sweeps { 4 } else { 16 };
        let all = slowed(*kernel, ranks, "3:4").unwrap();
        let mut matcher = Matcher::new(Barriers::default());
        all.iter().for_each(|section| matcher.add(section).unwrap());
        let graph = matcher.finish();
        let points = |stream: usize| times(&all[stream]).into_iter().flat_map(|(enter, exit)| [enter, exit]);
        let found = survey(&graph, points, Latency::default());
        for tally in [found.messages, found.collective, found.pairs] {
            assert_eq!((tally.reversed, tally.violated), (0, 0), "{}", kernel.name());
        }
        // The same calls, of which none is shorter by itself.
        for (slow, usual) in all.iter().zip(sections(*kernel, ranks, &options(*kernel))) {
            assert_eq!(expand(slow).calls, expand(&usual).calls, "{}", kernel.name());
        }
    }
}

#[test]
fn a_slow_rank_computes_longer_and_others_wait_as_long() {
    let [usual, slow] = ["3:1", "3:4"].map(|slow| slowed(Kernel::Stencil2d, 16, slow).unwrap());
    let computed = |section: &Section| {
        let gaps = times(section).windows(2).map(|w| w[1].0 - w[0].1).sum::<i64>();
        let inside = times(section).iter().map(|(enter, exit)| exit - enter).sum::<i64>();
        (gaps, inside)
    };
    let seconds = 50_000_000;
    for (rank, (usual, slow)) in usual.iter().zip(&slow).enumerate() {
        let ((before, mpi), (after, waited)) = (computed(usual), computed(slow));
        if rank == 3 {
            assert!((after - before - 3 * seconds).abs() < seconds / 100, "{before} {after}");
        } else {
            assert_eq!(after, before, "rank {rank}");
            // What it computes after the last exchange only the root of the reduction at the end waits for.
            let expected = if rank == 0 { 3 * seconds } else { 3 * seconds * 5 / 6 };
            assert!((waited - mpi - expected).abs() < seconds / 10, "rank {rank}: {mpi} {waited}");
        }
    }
}

#[test]
fn plans_that_cannot_be_are_refused() {
    let said = |kernel, slow| slowed(kernel, 4, slow).unwrap_err().to_string();
    assert_eq!(said(Kernel::Stencil2d, "4:2"), "--slow 4: there are 4 ranks, from 0");
    assert_eq!(
        said(Kernel::Threads, "1:2"),
        "--slow is for kernels with one thread per rank, threads has several"
    );
}
