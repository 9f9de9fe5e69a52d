//! What kernels do on paper must be a correct MPI program on any number of ranks.

mod calls;

use std::collections::HashSet;

use calls::{Call, Messages, Rank, all, cases, expand, messages, options, sections};
use clap::ValueEnum;
use st_kernels::{Kernel, Options, Slow, Unfit, paper};
use st_match::graph::{Barriers, Latency, Matcher, survey};
use st_model::calls::{CallTable, Meaning};
use st_model::section::Section;
use st_model::values::{ANY_SOURCE, NONE, PROC_NULL};
use st_stream::{Trace, WriteOptions};

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
fn slowed(kernel: Kernel, ranks: u32, rank: u32, factor: f64) -> Result<Vec<Section>, Unfit> {
    late(kernel, ranks, &[Slow { rank, factor }], options(kernel))
}

fn late(kernel: Kernel, ranks: u32, slow: &[Slow], options: Options) -> Result<Vec<Section>, Unfit> {
    let plan = paper::Plan::new(slow, kernel, &options, ranks, 2)?;
    let mut all = Vec::new();
    let keep = |section: Result<Section, Unfit>| -> Result<(), Unfit> {
        all.push(section?);
        Ok(())
    };
    let what = paper::Planned { kernel, options: &options, plan: &plan, ranks };
    paper::each("exact".parse().unwrap(), what, 2, |section| section, keep)?;
    Ok(all)
}

fn times(section: &Section) -> Vec<(i64, i64)> {
    section.threads[0].columns[0].1.times().collect()
}

#[test]
fn nothing_arrives_before_it_is_sent_where_ranks_wait_for_a_slow_one() {
    for kernel in Kernel::value_variants().iter().filter(|k| !matches!(k, Kernel::Threads)) {
        let ranks = if *kernel == Kernel::Sweeps { 4 } else { 16 };
        let noisy = Options { noise: 10.0, ..options(*kernel) };
        let all = late(*kernel, ranks, &[Slow { rank: 3, factor: 4.0 }], noisy).unwrap();
        let mut matcher = Matcher::new(Barriers::default());
        all.iter().for_each(|section| matcher.add(section).unwrap());
        let graph = matcher.finish();
        let points = |stream: usize| times(&all[stream]).into_iter().flat_map(|(enter, exit)| [enter, exit]);
        let found = survey(&graph, points, Latency::default());
        for tally in [found.messages, found.collective, found.pairs] {
            assert_eq!((tally.reversed, tally.violated), (0, 0), "{}", kernel.name());
        }
        // The same calls.
        for (slow, usual) in all.iter().zip(sections(*kernel, ranks, &options(*kernel))) {
            assert_eq!(expand(slow).calls, expand(&usual).calls, "{}", kernel.name());
        }
    }
}

#[test]
fn a_slow_rank_computes_longer_and_others_wait_as_long() {
    let [usual, slow] = [1.0, 4.0].map(|factor| slowed(Kernel::Stencil2d, 16, 3, factor).unwrap());
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
fn noise_is_waited_for_and_adds_up_to_nothing() {
    let noisy = Options { noise: 5.0, steps: Some(50), ..options(Kernel::Stencil2d) };
    let computed = |section: &Section| times(section).windows(2).map(|w| w[1].0 - w[0].1).sum::<i64>();
    let all = late(Kernel::Stencil2d, 64, &[], noisy.clone()).unwrap();
    let each: Vec<i64> = all.iter().map(computed).collect();
    let usual = computed(&sections(Kernel::Stencil2d, 64, &noisy)[0]);
    let mean = each.iter().sum::<i64>() / 64;
    assert!((mean - usual).abs() < usual / 50, "{mean} {usual}");
    // Ranks differ in what they compute, and less in when they end: who is early waits for its neighbours.
    let spread = each.iter().max().unwrap() - each.iter().min().unwrap();
    assert!(spread > usual / 10, "{spread} {usual}");
    let ends: Vec<i64> = all.iter().map(|section| times(section).last().unwrap().1).collect();
    let apart = ends.iter().max().unwrap() - ends.iter().min().unwrap();
    assert!(apart < spread / 2, "{apart} {spread}");
}

#[test]
fn plans_that_cannot_be_are_refused() {
    let said = |kernel, rank| slowed(kernel, 4, rank, 2.0).unwrap_err().to_string();
    assert_eq!(said(Kernel::Stencil2d, 4), "--slow 4: there are 4 ranks, from 0");
    assert_eq!(
        said(Kernel::Threads, 1),
        "--slow and --noise are for kernels with one thread per rank, threads has several"
    );
}
