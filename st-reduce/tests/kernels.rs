//! The numbers of clusters that the paper has, and which of them are one behaviour.
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use st_kernels::{Kernel, Options as KernelOptions, paper};
use st_reduce::cluster::{Clusterer, Clusters, Options, Signatures};
use st_trace::calls::Lane;
use st_trace::check::{Verdict, check};

fn clusters(kernel: Kernel, ranks: u32, size: Option<i32>, options: Options) -> Clusters {
    let mut clusterer = Clusterer::new(options);
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
        assert_eq!(numbers(&clusters(kernel, ranks, None, published())), expected, "{kernel:?} {ranks}");
    }
    // Sub-linear: on a ring of one dimension by the logarithm.
    let multigrid =
        [16, 64, 256].map(|ranks| numbers(&clusters(Kernel::Multigrid, ranks, None, published())).0);
    assert_eq!(multigrid, [5, 7, 9]);
}

#[test]
fn forms_unite_what_relative_peers_tell_apart() {
    let exact = Options::default();
    let reference = Options { signatures: Signatures::Reference, ..exact };
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
        assert_eq!(numbers(&clusters(kernel, ranks, size, reference)).1, apart, "{kernel:?} {ranks}");
        assert_eq!(numbers(&clusters(kernel, ranks, size, exact)), (1, 1), "{kernel:?} {ranks}");
    }
    // Numbers of keys are random, and counts that differ are not equal.
    assert_eq!(numbers(&clusters(Kernel::Sort, 16, None, exact)), (3, 14));
    assert_eq!(numbers(&clusters(Kernel::Wavefront, 64, None, exact)), (9, 1));
}

#[test]
fn the_published_signature_takes_first_and_last_columns_for_one() {
    // On 4 by 4 ranks the relative peers of either have the same exclusive or: one of the paper's three is lost.
    assert_eq!(numbers(&clusters(Kernel::Sweeps, 16, None, published())), (1, 2));
}

#[test]
fn only_what_is_lost_is_void() {
    let lanes = |c: &Clusters| -> u8 {
        c.sections.iter().flat_map(|s| &s.threads).fold(0, |v, t| v | t.lanes.voided)
    };
    let bit = |lane: Lane| 1u8 << lane as u8;
    let all = |kernel, size, options| {
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
    let tolerant = Options { tolerance: published().tolerance, ..exact };
    assert_eq!(all(Kernel::Sweeps, None, exact), 0);
    assert_eq!(all(Kernel::Sweeps, Some(64), tolerant), 0);
    assert_eq!(all(Kernel::Sweeps, None, tolerant), bit(Lane::Count));
    assert_eq!(all(Kernel::Wavefront, None, published()), 0);
    let paper = all(Kernel::Sweeps, None, published());
    assert_eq!(paper & bit(Lane::Call), 0);
    assert_ne!(paper & bit(Lane::Endpoint), 0);
}

#[test]
fn every_rank_is_in_one_cluster_however_many_there_are() {
    for kernel in [Kernel::Ocean, Kernel::Amr, Kernel::Workers, Kernel::Threads, Kernel::Rma] {
        for options in [Options::default(), published()] {
            let found = clusters(kernel, 12, None, options);
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
