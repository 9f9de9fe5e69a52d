//! What ranks asked of their own place is kept, and makes no clusters.

use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::groups::groups;
use st_model::objects::{Comm, Op, Type};
use st_model::ranks::RankSeq;
use st_model::section::Section;
use st_reduce::cluster::{Clusterer, Clusters, Options as ClusterOptions};
use st_reduce::merge::Merger;

const RANKS: u32 = 8;

/// A rank in a cube that asks where it is, and reduces `count` numbers with all.
fn rank(rank: u32, count: i64) -> Section {
    let mut r = RankRecorder::new(rank, Options::default());
    let members = RankSeq::first(RANKS);
    let world = Comm { kind: "MPI_COMM_WORLD".into(), parent: 0, members, remote: RankSeq::default() };
    let world = r.objects.comms.predefined(world);
    let (words, parts) = (vec![], vec![]);
    let int = Type { kind: "MPI_INT".into(), words, parts, size: 4, lb: 0, extent: 4 };
    let int = r.objects.types.predefined(int);
    let sum = r.objects.ops.predefined(Op { kind: "MPI_SUM".into(), commutes: true });
    r.open_thread(0);
    let mut call = |name: &str, words: &[i64]| {
        let site = r.sites.label(name);
        let sym = r.symbol(CallTable::builtin().by_name(name).unwrap().id, site, 0);
        r.record(0, sym, words, 0, 0);
    };
    let [x, y, z] = [rank / 4, rank / 2 % 2, rank % 2].map(i64::from);
    call("MPI_Cart_get", &[world, 3, 3, 2, 2, 2, 3, 0, 0, 0, 3, x, y, z]);
    call("MPI_Cart_coords", &[world, i64::from(rank), 3, 3, x, y, z]);
    call("MPI_Cart_rank", &[world, 3, 1 - x, y, z, i64::from(rank ^ 4)]);
    call("MPI_Allreduce", &[0, count, int, sum, world]);
    r.finish("host")
}

fn clusters(sections: &[Section], options: &ClusterOptions) -> Clusters {
    let mut clusterer = Clusterer::new(options.clone());
    sections.iter().for_each(|s| clusterer.add(s.clone()).unwrap());
    clusterer.finish()
}

/// Number of main clusters, and of all sub-clusters.
fn numbers(clusters: &Clusters) -> (usize, usize) {
    (clusters.table.len(), clusters.table.iter().map(|g| g.subs.len()).sum())
}

#[test]
fn coordinates_make_no_clusters_unless_asked_for() {
    let sections: Vec<Section> = (0..RANKS).map(|r| rank(r, 5)).collect();
    let (usual, asked) = (ClusterOptions::default(), ClusterOptions { asked: true, ..Default::default() });
    assert_eq!(numbers(&clusters(&sections, &usual)), (1, 1));
    assert_eq!(numbers(&clusters(&sections, &asked)), (1, 8));
    // They are in the trace all the same, clustered and merged.
    let mut merger = Merger::new(false);
    clusters(&sections, &usual).sections.into_iter().for_each(|s| merger.add(s).unwrap());
    let merged = merger.finish();
    let words = |s: &Section, rank| -> Vec<Vec<i64>> {
        s.project(0, rank).unwrap().map(|c| c.unwrap().words).collect()
    };
    for (s, rank) in sections.iter().zip(0..) {
        assert_eq!(words(&merged, rank), words(s, rank));
    }
    let subs = |asked| -> usize { groups(&merged, asked).iter().map(|g| g.subs.len()).sum() };
    assert_eq!((subs(false), subs(true)), (1, 8));
    // What ranks do tells them apart as before.
    let uneven: Vec<Section> = (0..RANKS).map(|r| rank(r, i64::from(r * r))).collect();
    assert_eq!(numbers(&clusters(&uneven, &usual)), (1, 8));
}

#[test]
fn counts_that_are_nearly_equal_are_united_wherever_ranks_are() {
    let sections: Vec<Section> = (0..RANKS).map(|r| rank(r, i64::from(100 + r * 7 % 3))).collect();
    let tolerance = Some("5%".parse().unwrap());
    let options = |asked| ClusterOptions { tolerance, asked, ..ClusterOptions::default() };
    assert_eq!(numbers(&clusters(&sections, &options(false))), (1, 1));
    assert_eq!(numbers(&clusters(&sections, &options(true))), (1, 8));
}
