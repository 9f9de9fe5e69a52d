//! What representatives of the published signatures stand for can be replayed to its end.

use clap::ValueEnum as _;
use st_cli::Symbols;
use st_kernels::{Kernel, Options as KernelOptions, paper};
use st_reduce::cluster::{Clusterer, Options, Signatures};
use st_replay::check::Checker;

const RANKS: u32 = 16;

#[test]
fn clusters_by_the_published_signatures_can_be_replayed() {
    let (options, mut united) = (KernelOptions::default(), 0);
    for kernel in Kernel::value_variants() {
        let mut clusterer = Clusterer::new(Options { signatures: Signatures::Paper, ..Options::default() });
        paper::sections(*kernel, &options, RANKS).for_each(|s| clusterer.add(s.unwrap()).unwrap());
        let clusters = clusterer.finish();
        let mut checker = Checker::new(None, None);
        clusters.sections.iter().for_each(|s| checker.see(s).unwrap());
        let verdict = checker.finish(&Symbols::default());
        assert!(verdict.faults.is_empty(), "{kernel:?}: {:#?}", verdict.faults);
        united += u32::from(clusters.sections.len() < st_model::num::narrow(RANKS));
    }
    assert!(united > 10, "{united}");
}
