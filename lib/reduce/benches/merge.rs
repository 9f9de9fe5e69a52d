//! Cost of merging P ranks of a five-point stencil: per rank, alike or with borders.

use divan::{Bencher, black_box};
use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::objects::{Comm, Type};
use st_model::ranks::RankSeq;
use st_model::section::Section;
use st_reduce::merge::merge;

fn main() {
    divan::main();
}

/// One rank of a ring (`periodic`) or a chain: 50 steps of two sends, two receives and a reduction.
fn rank(me: u32, ranks: u32, periodic: bool) -> Section {
    let mut r = RankRecorder::new(me, Options { columns: false, ..Options::default() });
    let kind = "MPI_COMM_WORLD".into();
    let members = RankSeq::first(ranks);
    let world = r.objects.comms.predefined(Comm { kind, parent: 0, members, remote: RankSeq::default() });
    let (words, parts) = (Vec::new(), Vec::new());
    let int =
        r.objects.types.predefined(Type { kind: "MPI_INT".into(), words, parts, size: 4, lb: 0, extent: 4 });
    r.open_thread(0);
    let mut clock = 0;
    let mut call = |r: &mut RankRecorder, name: &str, site: &str, words: &[i64]| {
        let Some(row) = CallTable::builtin().by_name(name) else { return };
        let site = r.sites.label(site);
        let sym = r.symbol(row.id, site, 0);
        clock += 100;
        r.record(0, sym, words, clock, clock + 10);
    };
    let (p, me) = (i64::from(ranks), i64::from(me));
    for _ in 0..50 {
        for (site, peer) in [("left", me - 1), ("right", me + 1)] {
            let peer = if periodic { (peer + p) % p } else { peer };
            if (0..p).contains(&peer) {
                call(&mut r, "MPI_Send", site, &[64, int, peer, 7, world]);
                call(&mut r, "MPI_Recv", site, &[64, int, peer, 7, world, -9, -9, 256]);
            }
        }
        call(&mut r, "MPI_Barrier", "step", &[world]);
    }
    r.finish("node")
}

#[divan::bench(args = [16, 256, 1024], sample_count = 10)]
fn ring(bencher: Bencher<'_, '_>, ranks: u32) {
    let sections: Vec<Section> = (0..ranks).map(|r| rank(r, ranks, true)).collect();
    bencher
        .counter(divan::counter::ItemsCount::new(ranks))
        .with_inputs(|| sections.clone())
        .bench_values(|s| black_box(merge(s, false)));
}

#[divan::bench(args = [16, 256, 1024], sample_count = 10)]
fn chain(bencher: Bencher<'_, '_>, ranks: u32) {
    let sections: Vec<Section> = (0..ranks).map(|r| rank(r, ranks, false)).collect();
    bencher
        .counter(divan::counter::ItemsCount::new(ranks))
        .with_inputs(|| sections.clone())
        .bench_values(|s| black_box(merge(s, false)));
}
