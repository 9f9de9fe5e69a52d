//! Reduction in a tree: the same by one process and by several, and without loss.

use std::fmt::Debug;

use st_kernels::{Kernel, Options as KernelOptions, paper};
use st_model::check::{ThreadCheck, check};
use st_model::section::{Elastic, Section};
use st_model::tree::Item;
use st_reduce::cluster::{Clusterer, Clustering, Options, Signatures};
use st_reduce::merge::{Layout, Merger, Merging};
use st_reduce::tree::{Parts, Reduce, Tree};

/// Programs of one and of many behaviours, with communicators of some ranks, and ranks that are idle.
const KERNELS: [Kernel; 7] = [
    Kernel::Stencil2d,
    Kernel::Wavefront,
    Kernel::Transpose,
    Kernel::Multigrid,
    Kernel::Fft,
    Kernel::Sort,
    Kernel::Workers,
];

fn sections(kernel: Kernel, ranks: u32) -> Vec<Section> {
    let options = KernelOptions { steps: Some(2), ..KernelOptions::default() };
    paper::sections(kernel, &options, ranks).map(Result::unwrap).collect()
}

/// What the root has if processes have these numbers of sections.
fn reduced<R: Reduce<Error: Debug> + Clone>(how: &R, all: &[Section], shares: &[usize]) -> Vec<Section> {
    let (mut place, mut trees) = (0, Vec::new());
    for &share in shares {
        let mut tree = Tree::new(how.clone());
        for section in &all[place..place + share] {
            tree.push(place as u64, section.clone()).unwrap();
            place += 1;
        }
        if place < all.len() {
            tree.follow().unwrap();
        }
        trees.push(tree.pack().unwrap());
    }
    assert_eq!(place, all.len());
    let mut root = Tree::new(how.clone());
    trees.iter().for_each(|t| root.take(Parts::unpack(t).unwrap()).unwrap());
    root.finish().unwrap()
}

fn merged(how: &Merging, parts: Vec<Section>) -> Section {
    let mut merger = how.root();
    parts.into_iter().for_each(|p| merger.add(p).unwrap());
    merger.finish()
}

fn sound(section: &Section) -> bool {
    check(section).unwrap().iter().all(ThreadCheck::passed)
}

#[test]
fn merging_does_not_depend_on_who_has_what() {
    let how = Merging::default();
    for kernel in KERNELS {
        let all = sections(kernel, 64);
        let mut tree = Tree::new(how.clone());
        all.iter().for_each(|s| tree.push_next(s.clone()).unwrap());
        let alone = merged(&how, tree.finish().unwrap());
        assert!(sound(&alone), "{kernel:?}");
        for shares in [&[32, 32][..], &[16; 4], &[1, 40, 0, 23]] {
            let parts = reduced(&how, &all, shares);
            assert!(parts.len() <= 16);
            assert_eq!(merged(&how, parts), alone, "{kernel:?} {shares:?}");
        }
    }
}

#[test]
fn ranks_that_stand_side_by_side_do_so_whoever_has_what() {
    let how = Merging::default();
    let options = KernelOptions { steps: Some(24), ..KernelOptions::default() };
    let all: Vec<Section> = paper::sections(Kernel::Amr, &options, 64).map(Result::unwrap).collect();
    let by_shares = |shares: &[usize], layout| {
        let mut merger = how.root().layout(layout);
        reduced(&how, &all, shares).into_iter().for_each(|p| merger.add(p).unwrap());
        merger.finish()
    };
    for layout in [Layout::Smaller, Layout::Lists] {
        let alone = by_shares(&[64], layout);
        assert!(sound(&alone));
        for shares in [&[32, 32][..], &[1, 40, 0, 23]] {
            assert!(by_shares(shares, layout) == alone, "{shares:?}");
        }
    }
    // In another order, and without a tree: what they execute stands there as it did.
    let alone = by_shares(&[64], Layout::Lists);
    let mut backwards = Merger::new(false).layout(Layout::Lists);
    all.iter().rev().for_each(|s| backwards.add(s.clone()).unwrap());
    let backwards = backwards.finish();
    let control = |s: &Section| {
        let named = |item: &Item| match *item {
            Item::Leaf { sym } => {
                (s.symbols[sym as usize].call.0, s.sites.get(s.symbols[sym as usize].site).unwrap().id, 0)
            }
            Item::Body { below } => (0, 0, below),
        };
        let counts = |e: &Elastic| (s.partitions[e.partition as usize].clone(), e.streams.clone());
        let thread = &s.threads[0];
        let items: Vec<_> = thread.tree.items().iter().map(named).collect();
        (items, thread.counts.iter().map(counts).collect::<Vec<_>>())
    };
    assert!(control(&alone) == control(&backwards));
}

/// What a tree has for a block of the first so many ranks.
fn part_by_part(how: &Merging, all: &[Section]) -> Parts {
    let mut tree = Tree::new(how.clone());
    (0..).zip(all).for_each(|(place, s)| tree.push(place, s.clone()).unwrap());
    tree.follow().unwrap();
    tree.into_parts()
}

#[test]
fn ranks_that_are_alike_are_merged_at_once_as_in_the_tree() {
    let how = Merging { keep_columns: true, ..Merging::default() };
    let mut blocks = 0;
    for (kernel, ranks) in KERNELS.iter().flat_map(|k| [(*k, 16), (*k, 256)]) {
        let all = sections(kernel, ranks);
        let mut block = how.alike();
        // Not one more than is alike.
        if !all.iter().all(|s| block.add(s.clone()).unwrap()) {
            continue;
        }
        blocks += 1;
        let mut at_once = Tree::new(how.clone());
        at_once.push_block(if ranks == 16 { 1 } else { 2 }, 0, block.finish()).unwrap();
        let (at_once, by_parts) = (at_once.into_parts(), part_by_part(&how, &all));
        assert_eq!(at_once, by_parts, "{kernel:?} {ranks}");
    }
    assert!(blocks >= 6, "of {blocks} blocks the ranks are alike");
}

#[test]
fn ranks_that_differ_in_more_than_parameters_are_not_alike() {
    for kernel in [Kernel::Workers, Kernel::Multigrid] {
        let mut block = Merging::default().alike();
        assert!(!sections(kernel, 16).into_iter().all(|s| block.add(s).unwrap()), "{kernel:?}");
    }
    let all = sections(Kernel::Stencil2d, 16);
    let mut block = Merging::default().alike();
    assert!(block.add(all[3].clone()).unwrap());
    assert!(block.add(all[3].clone()).is_err(), "the same rank");
    let mut merged = Merging::default().root();
    all.into_iter().for_each(|s| merged.add(s).unwrap());
    assert!(!Merging::default().alike().add(merged.finish()).unwrap(), "merged already");
}

#[test]
fn a_tree_of_several_levels_loses_nothing() {
    let how = Merging::default();
    for kernel in [Kernel::Multigrid, Kernel::Wavefront, Kernel::Amr, Kernel::Sort] {
        let parts = reduced(&how, &sections(kernel, 280), &[100, 180]);
        assert_eq!(parts.len(), 2, "256 ranks and the others");
        assert!(sound(&merged(&how, parts)), "{kernel:?}");
    }
}

#[test]
fn clusters_are_those_of_ranks_taken_one_by_one() {
    for signatures in [Signatures::Exact, Signatures::Reference, Signatures::Paper] {
        let options = Options { signatures, ..Options::default() };
        let how = Clustering(options.clone());
        for kernel in KERNELS {
            let all = sections(kernel, 64);
            let mut clusterer = Clusterer::new(options.clone());
            all.iter().for_each(|s| clusterer.add(s.clone()).unwrap());
            let one_by_one = clusterer.finish();
            for shares in [&[64][..], &[1, 40, 0, 23]] {
                let found = how.root(reduced(&how, &all, shares)).unwrap();
                assert_eq!(found.table, one_by_one.table, "{signatures:?} {kernel:?} {shares:?}");
                assert_eq!(found.sections, one_by_one.sections, "{signatures:?} {kernel:?} {shares:?}");
            }
        }
    }
}
