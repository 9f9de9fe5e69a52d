//! Nanoseconds per call of a rank's recorder and its journal: a loop of Irecv, Isend and Waitall whose message sizes are
//! constant, periodic or random.

use divan::Bencher;
use divan::counter::ItemsCount;
use st_capture::journal::{CallTimes, LogWriter};
use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_model::section::Sym;

/// Calls per run.
const CALLS: usize = 300_000;
/// Bytes of a log, after which it begins anew.
const LOG: usize = 512 << 10;

fn main() {
    divan::main();
}

/// A call of the loop: its symbol, its words, and which of them is a size.
struct Call {
    sym: Sym,
    words: Vec<i64>,
    size: Option<usize>,
}

/// Calls of the loop: lists have two elements, and the last word or the count is the size.
fn calls(r: &mut RankRecorder) -> Vec<Call> {
    let functions = [("MPI_Irecv", None), ("MPI_Isend", Some("count")), ("MPI_Waitall", Some("bytes"))];
    let call = |(site, (name, sized)): (u32, (&str, Option<&str>))| {
        let row = CallTable::builtin().by_name(name)?;
        let (mut words, mut size) = (Vec::new(), None);
        for slot in &row.slots {
            words.extend(if slot.list { &[2, 0, 1][..] } else { &[1] });
            if Some(slot.name.as_str()) == sized {
                size = Some(words.len() - 1);
            }
        }
        Some(Call { sym: r.symbol(row.id, site, 0), words, size })
    };
    (0..).zip(functions).filter_map(call).collect()
}

/// Sizes of a period; a period of 0 never repeats.
fn sizes(period: usize) -> Vec<i64> {
    let n = if period == 0 { CALLS } else { period };
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1 + i64::try_from((state >> 33) % 64).unwrap_or(0)
    };
    (0..n).map(|_| next()).collect()
}

fn record(bencher: Bencher<'_, '_>, period: usize, journal: bool) {
    let sizes = sizes(period);
    let run = || {
        let options = Options { columns: false, ..Options::default() };
        let mut r = RankRecorder::new(0, options);
        let thread = r.open_thread(0);
        let mut calls = calls(&mut r);
        let (mut log, mut room, mut at) = (LogWriter::after(&r), vec![0; LOG], 0);
        let mut now = 0;
        for i in 0..CALLS / calls.len() {
            for call in &mut calls {
                if let Some(size) = call.size {
                    call.words[size] = sizes[i % sizes.len()];
                }
                let enter = now + 100;
                now += 300 + i64::try_from(i % 64).unwrap_or(0);
                r.record(thread, call.sym, &call.words, enter, now);
                if journal {
                    let times = CallTimes { enter, exit: now };
                    match log.call(&mut room[at..], &r, thread, call.sym, &call.words, times) {
                        Some(n) => at += n,
                        None => at = 0,
                    }
                }
            }
        }
        r.finish("")
    };
    bencher.counter(ItemsCount::new(CALLS)).bench_local(run);
}

#[divan::bench(args = [1, 500, 50_000, 0])]
fn recorder(bencher: Bencher<'_, '_>, period: usize) {
    record(bencher, period, false);
}

#[divan::bench(args = [1, 500, 50_000, 0])]
fn recorder_and_journal(bencher: Bencher<'_, '_>, period: usize) {
    record(bencher, period, true);
}
