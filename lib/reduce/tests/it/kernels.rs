//! The numbers of clusters that the paper has, and which of them are one behaviour.

use st_kernels::{Kernel, Options as KernelOptions, paper};
use st_model::calls::Lane;
use st_model::check::{Verdict, check};
use st_model::frequencies::Frequencies;
use st_model::section::Section;
use st_reduce::cluster::{Clusterer, Clusters, Options, Signatures};
use st_reduce::lossy::ParamKind;
use st_reduce::merge::Merger;
use st_reduce::user::{Param, constants};

fn clusters(kernel: Kernel, ranks: u32, size: Option<i32>, options: &Options) -> Clusters {
    let mut clusterer = Clusterer::new(options.clone());
    let kernel_options = KernelOptions { size, steps: Some(3), ..KernelOptions::default() };
    paper::sections(kernel, &kernel_options, ranks).for_each(|s| clusterer.add(s.unwrap()).unwrap());
    clusterer.finish()
}

/// Number of main clusters, and of sub-clusters in the one that has most.
fn numbers(clusters: &Clusters) -> (usize, usize) {
    (clusters.table.len(), clusters.table.iter().map(|g| g.subs.len()).max().unwrap_or(0))
}

/// As published: counts may differ by 5 %.
fn published() -> Options {
    Options { signatures: Signatures::Paper, tolerance: Some("5%".parse().unwrap()), ..Options::default() }
}

#[test]
fn numbers_are_the_papers() {
    // Bahmani, Mueller 2014, table 2.
    for (kernel, ranks, expected) in [
        (Kernel::Wavefront, 16, (9, 1)),
        (Kernel::Wavefront, 64, (9, 1)),
        (Kernel::Sweeps, 25, (1, 3)),
        (Kernel::Fft, 16, (1, 1)),
        (Kernel::Fft, 64, (1, 1)),
        (Kernel::Sort, 16, (3, 1)),
        (Kernel::Sort, 64, (3, 1)),
    ] {
        assert_eq!(numbers(&clusters(kernel, ranks, None, &published())), expected, "{kernel:?} {ranks}");
    }
    // Sub-linear: on a ring of one dimension by the logarithm.
    let multigrid =
        [16, 64, 256].map(|ranks| numbers(&clusters(Kernel::Multigrid, ranks, None, &published())).0);
    assert_eq!(multigrid, [5, 7, 9]);
    // On a cube as many as the paper's MG, each with four sub-clusters.
    let cube = [16, 32, 64].map(|ranks| numbers(&clusters(Kernel::Multigrid3d, ranks, None, &published())));
    assert_eq!(cube, [(2, 4), (4, 4), (8, 4)]);
}

/// The papers' formulas on a square of ranks: the transposed one in CG, colours and keys of the two splits of FT.
fn formulas(kernel: Kernel, side: u32) -> Vec<Param> {
    let lets = constants(&[format!("q={side}")]).unwrap();
    let all: &[(&str, &str)] = match kernel {
        Kernel::Transpose => &[
            ("MPI_Send@transpose.rs:74:15 < transpose.rs:54:13:dest", "me % q * q + me / q"),
            ("MPI_Irecv@transpose.rs:73:33 < transpose.rs:54:13:source", "me % q * q + me / q"),
            ("MPI_Wait@transpose.rs:75:15 < transpose.rs:54:13:source", "me % q * q + me / q"),
        ],
        _ => &[
            ("@fft.rs:31:color", "me / q"),
            ("@fft.rs:31:key", "me % q"),
            ("@fft.rs:32:color", "me % q"),
            ("@fft.rs:32:key", "me / q"),
        ],
    };
    all.iter().map(|(target, text)| Param::new(target, text, &lets).unwrap()).collect()
}

#[test]
fn numbers_with_formulas_are_the_papers() {
    // Bahmani, Mueller 2014, table 3 (CG), where ranks of a row have the same partners in it, and tables 2 and 5 (FT).
    for side in [4u32, 8, 16] {
        let (ranks, all) = (side * side, side as usize);
        let users = formulas(Kernel::Transpose, side);
        let paper = |users| Options { users, ..published() };
        let reference = |users| Options { users, signatures: Signatures::Reference, ..Options::default() };
        let exact = |users| Options { users, ..Options::default() };
        let of = |kernel, options| numbers(&clusters(kernel, ranks, None, &options));
        assert!(of(Kernel::Transpose, paper(vec![])).1 > all, "without");
        assert_eq!(of(Kernel::Transpose, paper(users.clone())), (1, all));
        assert_eq!(of(Kernel::Transpose, reference(users.clone())), (1, all));
        assert_eq!(of(Kernel::Transpose, exact(users)), (1, 1));
        let users = formulas(Kernel::Fft, side);
        assert_eq!(of(Kernel::Fft, reference(vec![])), (1, all * all));
        for options in [paper(users.clone()), reference(users.clone()), exact(users.clone())] {
            assert_eq!(of(Kernel::Fft, options), (1, 1));
        }
    }
}

#[test]
fn partners_that_are_united_by_force_divide_no_ranks() {
    let endpoints = 1u8 << Lane::Endpoint as u8;
    let force_merge = vec![ParamKind::Dest, ParamKind::Source];
    for signatures in [Signatures::Reference, Signatures::Paper] {
        let options = Options { signatures, ..published() };
        let forced = Options { force_merge: force_merge.clone(), ..options.clone() };
        assert!(numbers(&clusters(Kernel::Transpose, 16, None, &options)).1 > 1);
        let found = clusters(Kernel::Transpose, 16, None, &forced);
        assert_eq!(numbers(&found), (1, 1));
        assert_eq!(found.sections[0].threads[0].lanes.voided, endpoints);
    }
}

#[test]
fn histograms_of_clusters_can_be_merged() {
    let forced = Options {
        force_merge: vec![ParamKind::Dest, ParamKind::Source, ParamKind::Count],
        ..Options::default()
    };
    let mut drawn = 0;
    for kernel in [Kernel::Amr, Kernel::Ocean, Kernel::Workers, Kernel::Multigrid] {
        let found = clusters(kernel, 24, None, &forced);
        let most = numbers(&clusters(kernel, 24, None, &Options::default())).1;
        assert!(found.table.len() > 1 && numbers(&found).1 <= most, "{kernel:?}");
        let mut merger = Merger::new(false);
        found.sections.iter().for_each(|s| merger.add(s.clone()).unwrap());
        let merged = merger.finish();
        drawn += merged.histograms().count();
        for c in found.sections.iter().chain([&merged]).flat_map(|s| check(s).unwrap()) {
            assert!(c.passed(), "{kernel:?} {c:?}");
        }
        // How often each value was is what it is in the clusters.
        let total = |s: &Section| -> u64 {
            let streams = s.histograms().flat_map(|(_, _, s)| s.values.streams.clone());
            streams.map(|s| Frequencies::from_stream(&s).unwrap().total()).sum()
        };
        assert_eq!(found.sections.iter().map(total).sum::<u64>(), total(&merged), "{kernel:?}");
    }
    assert!(drawn > 0);
}

#[test]
fn forms_unite_what_relative_peers_tell_apart() {
    let exact = Options::default();
    let reference = Options { signatures: Signatures::Reference, ..Options::default() };
    // First, last and other columns of the sweeps on a torus; every rank of the transposition has partners of its own; colours
    // and keys of the rows and columns of a transform; wrapped neighbours.
    for (kernel, ranks, size, apart) in [
        (Kernel::Sweeps, 25, Some(50), 9),
        (Kernel::Sweeps, 16, Some(64), 9),
        (Kernel::Transpose, 64, None, 64),
        (Kernel::Fft, 16, Some(64), 16),
        (Kernel::Stencil2d, 64, None, 9),
        (Kernel::Stencil3d, 64, None, 27),
    ] {
        assert_eq!(numbers(&clusters(kernel, ranks, size, &reference)).1, apart, "{kernel:?} {ranks}");
        assert_eq!(numbers(&clusters(kernel, ranks, size, &exact)), (1, 1), "{kernel:?} {ranks}");
    }
    // Numbers of keys are random, and counts that differ are not equal.
    assert_eq!(numbers(&clusters(Kernel::Sort, 16, None, &exact)), (3, 14));
    assert_eq!(numbers(&clusters(Kernel::Wavefront, 64, None, &exact)), (9, 1));
}

#[test]
fn the_published_signature_takes_first_and_last_columns_for_one() {
    // On 4 by 4 ranks the relative peers of either have the same exclusive or: one of the paper's three is lost.
    assert_eq!(numbers(&clusters(Kernel::Sweeps, 16, None, &published())), (1, 2));
}

#[test]
fn only_what_is_lost_is_void() {
    let lanes = |c: &Clusters| -> u8 {
        c.sections.iter().flat_map(|s| &s.threads).fold(0, |v, t| v | t.lanes.voided)
    };
    let bit = |lane: Lane| 1u8 << lane as u8;
    let all = |kernel, size, options: &Options| {
        let clusters = clusters(kernel, 16, size, options);
        for s in &clusters.sections {
            let table = clusters.table.iter().filter(|g| g.ranks.iter().any(|r| s.ranks.contains(r)));
            assert_eq!(table.count(), 1);
            for c in check(s).unwrap() {
                assert!(
                    c.passed() && (lanes(&clusters) != 0 || !c.lanes.contains(&Verdict::Voided)),
                    "{c:?}"
                );
            }
        }
        lanes(&clusters)
    };
    let exact = Options::default();
    let tolerant = Options { tolerance: published().tolerance, ..Options::default() };
    assert_eq!(all(Kernel::Sweeps, None, &exact), 0);
    assert_eq!(all(Kernel::Sweeps, Some(64), &tolerant), 0);
    assert_eq!(all(Kernel::Sweeps, None, &tolerant), bit(Lane::Count));
    assert_eq!(all(Kernel::Wavefront, None, &published()), 0);
    // First and last columns have other partners, which each keeps.
    assert_eq!(all(Kernel::Sweeps, None, &published()), bit(Lane::Count));
}

#[test]
fn every_rank_is_in_one_cluster_however_many_there_are() {
    for kernel in [Kernel::Ocean, Kernel::Amr, Kernel::Workers, Kernel::Threads, Kernel::Rma] {
        for options in [Options::default(), published()] {
            let found = clusters(kernel, 12, None, &options);
            let mut ranks: Vec<u32> =
                found.table.iter().flat_map(|g| g.subs.iter().flat_map(|s| s.iter())).collect();
            ranks.sort_unstable();
            assert_eq!(ranks, (0..12).collect::<Vec<_>>(), "{kernel:?}");
            for c in found.sections.iter().flat_map(|s| check(s).unwrap()) {
                assert!(c.passed(), "{kernel:?} {c:?}");
            }
        }
    }
}
