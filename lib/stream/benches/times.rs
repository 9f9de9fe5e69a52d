//! Throughput of writing and reading exact times, in events, by compression level; of level 19 what its first MiB and what comes
//! after that takes, once in many.
#![expect(clippy::unwrap_used, reason = "a benchmark stops by it")]

use divan::Bencher;
use divan::counter::ItemsCount;
use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::columns::Column;
use st_model::header::Header;
use st_model::section::Section;
use st_stream::{ReadOptions, Reader, WriteOptions, Writer};

const EVENTS: u32 = 30_000;
/// Nine tenths of these are beyond the first MiB.
const MANY: u32 = 2_500_000;

fn main() {
    divan::main();
}

/// A short call, a long one and a computation, again and again, with noise.
fn section(events: u32) -> Section {
    let mut recorder = RankRecorder::new(0, Options::default());
    let thread = recorder.open_thread(0);
    let site = recorder.sites.label("loop");
    let barrier = recorder.symbol(CallTable::builtin().by_name("MPI_Barrier").unwrap().id, site, 0);
    let (mut column, mut at, mut noise) = (Column::default(), 0i64, 1u64);
    for event in 0..events {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (gap, duration) = [(40, 300), (90, 25_000), (400_000, 1_200)][event as usize % 3];
        let some = |n: i64, by: u32| n + ((n * (noise >> by & 0xffff).cast_signed()) >> 18);
        let enter = at + some(gap, 30);
        at = enter + some(duration, 47);
        column.chunks.extend(recorder.record(thread, barrier, &[0], enter, at).map(|c| *c));
    }
    column.chunks.extend(recorder.flush_columns().into_iter().map(|(_, chunk)| chunk));
    let mut section = recorder.finish("node");
    section.threads[0].columns = vec![(0, column)];
    section
}

fn written(section: &Section, level: u8) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &Header::default(), WriteOptions { level }).unwrap();
    writer.section(section).unwrap();
    writer.finish().unwrap()
}

#[divan::bench(args = [3, 20])]
fn write(bencher: Bencher<'_, '_>, level: u8) {
    let section = section(EVENTS);
    bencher.counter(ItemsCount::new(EVENTS)).bench_local(|| written(&section, level));
}

#[divan::bench(args = [3, 20])]
fn read(bencher: Bencher<'_, '_>, level: u8) {
    let bytes = written(&section(EVENTS), level);
    bencher.counter(ItemsCount::new(EVENTS)).bench_local(|| read_all(&bytes));
}

fn read_all(bytes: &[u8]) -> Option<Section> {
    Reader::new(bytes, ReadOptions::default()).unwrap().next_section().unwrap()
}

#[divan::bench(sample_count = 3)]
fn write_many(bencher: Bencher<'_, '_>) {
    let section = section(MANY);
    bencher.counter(ItemsCount::new(MANY)).bench_local(|| written(&section, 19));
}

#[divan::bench(sample_count = 3)]
fn read_many(bencher: Bencher<'_, '_>) {
    let bytes = written(&section(MANY), 19);
    bencher.counter(ItemsCount::new(MANY)).bench_local(|| read_all(&bytes));
}
