//! Throughput of matching and of the logical clock, decoding apart, in points (two per call).
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops by it, and says what it measures"
)]

use divan::Bencher;
use divan::counter::ItemsCount;
use st_capture::record::RankRecorder;
use st_match::graph::{Barriers, Graph, Latency, Matcher, survey};
use st_model::calls::CallTable;
use st_model::columns::Column;
use st_model::objects::{Comm, Type};
use st_model::ranks::RankSeq;
use st_model::section::Section;
use st_sync::clc::{Options, correct};
use st_sync::team::Team;

/// Sizes of the ring: ranks that can be few steps apart, and ranks as a job has.
const RINGS: [u32; 2] = [8, 64];
/// Steps of all ranks of a ring.
const STEPS: i64 = 320_000;

fn main() {
    for (name, swing) in [("clean", 0), ("violated", SWING)] {
        let (graph, times) = ring(8, swing);
        let found = survey(&graph, |s| times[s].iter().copied(), latency()).all();
        println!(
            "{name}: {} messages, {:.1} % violated, mean error {} ns, largest {} ns",
            found.messages,
            percent(found.violated, found.messages),
            found.mean_error(),
            found.largest
        );
    }
    divan::main();
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// How far clocks are wrong at most, ns.
const SWING: i64 = 108_000;

fn latency() -> Latency {
    Latency { near: 500, far: 1_500 }
}

/// A clock's error: right for most of the time, then up and down again, each rank with a phase of its own, which no line
/// follows.
fn error(rank: i64, t: i64, swing: i64) -> i64 {
    let (period, width) = (400_000_000, 18_000_000);
    let phase = (t + rank * 137_000_000).rem_euclid(period);
    swing * phase.min(2 * width - phase).max(0) / width
}

/// Ranks that send to the right and receive from the left, four ranks a node, with waits of 10 to 60 µs.
fn sections(ranks: u32, swing: i64) -> Vec<Section> {
    let table = CallTable::builtin();
    let (send, receive) = (table.by_name("MPI_Send").unwrap().id, table.by_name("MPI_Recv").unwrap().id);
    (0..ranks)
        .map(|rank| {
            let mut recorder = RankRecorder::new(rank, st_capture::record::Options::default());
            let members = RankSeq::first(ranks);
            let kind = "MPI_COMM_WORLD".to_owned();
            recorder.objects.comms.predefined(Comm { kind, parent: 0, members, remote: RankSeq::default() });
            let kind = "MPI_INT".to_owned();
            recorder.objects.types.predefined(Type {
                kind,
                words: vec![],
                parts: vec![],
                size: 4,
                lb: 0,
                extent: 4,
            });
            let thread = recorder.open_thread(0);
            let (send, receive) = (recorder.symbol(send, 0, 0), recorder.symbol(receive, 0, 0));
            let mut column = Column::default();
            let me = i64::from(rank);
            let (right, left) = ((me + 1) % i64::from(ranks), (me + i64::from(ranks) - 1) % i64::from(ranks));
            for step in 0..STEPS / i64::from(ranks) {
                let at = step * 100_000 + (step * 7919 + me * 104_729) % 40_000;
                let clock = |t: i64| t + error(me, t, swing);
                let chunk = recorder.record(thread, send, &[1, 0, right, 0, 0], clock(at), clock(at + 2_000));
                column.chunks.extend(chunk.map(|c| *c));
                // All have sent by then.
                let got = step * 100_000 + 45_000 + (step * 31 + me * 17) % 50_000;
                let words = [1, 0, left, 0, 0, -9, -9, 4];
                let chunk = recorder.record(thread, receive, &words, clock(at + 3_000), clock(got));
                column.chunks.extend(chunk.map(|c| *c));
            }
            column.chunks.extend(recorder.flush_columns().into_iter().map(|(_, c)| c));
            let mut section = recorder.finish(&format!("node{}", rank / 4));
            section.threads[0].columns = vec![(rank, column)];
            section
        })
        .collect()
}

fn ring(ranks: u32, swing: i64) -> (Graph, Vec<Vec<i64>>) {
    let sections = sections(ranks, swing);
    let mut matcher = Matcher::new(Barriers::default());
    sections.iter().for_each(|s| matcher.add(s).unwrap());
    let times = |s: &Section| s.threads[0].columns[0].1.times().flat_map(|(a, b)| [a, b]).collect();
    (matcher.finish(), sections.iter().map(times).collect())
}

fn points() -> ItemsCount {
    ItemsCount::new(STEPS.unsigned_abs() * 4)
}

fn clock(bencher: Bencher<'_, '_>, ranks: u32, pulse: i64, jobs: usize) {
    let (graph, times) = ring(ranks, pulse);
    let options = Options { latency: latency(), jobs, ..Options::default() };
    bencher.counter(points()).bench_local(|| correct(&graph, &times[..], &options, &mut Team::alone()));
}

#[divan::bench(args = [1, 2], consts = RINGS)]
fn clean<const RANKS: u32>(bencher: Bencher<'_, '_>, jobs: usize) {
    clock(bencher, RANKS, 0, jobs);
}

#[divan::bench(args = [1, 2], consts = RINGS)]
fn violated<const RANKS: u32>(bencher: Bencher<'_, '_>, jobs: usize) {
    clock(bencher, RANKS, SWING, jobs);
}

#[divan::bench]
fn matching(bencher: Bencher<'_, '_>) {
    let sections = sections(8, 0);
    bencher.counter(points()).bench_local(|| {
        let mut matcher = Matcher::new(Barriers::default());
        sections.iter().for_each(|s| matcher.add(s).unwrap());
        matcher.finish()
    });
}

#[divan::bench]
fn surveying(bencher: Bencher<'_, '_>) {
    let (graph, times) = ring(8, SWING);
    bencher.counter(points()).bench_local(|| survey(&graph, |s| times[s].iter().copied(), latency()));
}
