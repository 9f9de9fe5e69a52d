//! Nanoseconds of folding and parameter streams together, per call: each call goes through the count-stream tree and through
//! the streams of its parameters, for inputs of every kind and of two lengths, so that a cost that grows shows.
//!
//! `streams` is the tree and one stream per call site and parameter, each value appended by itself. `recorder` is what a
//! rank really has (`record.rs`): its comparison of words, loop in progress and proof lanes included, without times.
//! Parameters are those of `MPI_Isend`. Of each call site the sizes have a period of 500, the partners one of four, the
//! requests one of two; the others are constant.
//!
//! Printed is processor time, which a busy machine disturbs less than the clock on the wall: the least of five runs, and
//! beside it the memory of the tree. Arguments choose inputs by a part of their names, and numbers of calls.

#![expect(clippy::print_stdout, reason = "what was measured")]

use std::hint::black_box;
use std::time::Instant;

use st_capture::fold::{DEFAULT_WINDOW, Folder, Sym};
use st_capture::record::{Options, RankRecorder};
use st_model::calls::{CallId, CallTable};
use st_model::ints::Ints;

/// Calls per run.
const LENGTHS: [usize; 2] = [1_000_000, 10_000_000];
/// Runs, of which the fastest counts.
const RUNS: usize = 5;

/// A sequence of numbers without structure.
struct Noise(u64);

impl Noise {
    fn below(&mut self, n: u64) -> Sym {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Sym::try_from((self.0 >> 33) % n).unwrap_or(0)
    }
}

/// `n` call sites out of `below` without structure.
fn noise(n: usize, below: u64) -> Vec<Sym> {
    let mut noise = Noise(7);
    (0..n).map(|_| noise.below(below)).collect()
}

/// `n` call sites by steps of a loop.
fn steps(n: usize, step: impl Fn(&mut Noise, &mut Vec<Sym>)) -> Vec<Sym> {
    let (mut noise, mut calls) = (Noise(7), Vec::with_capacity(n + 1_000));
    while calls.len() < n {
        step(&mut noise, &mut calls);
    }
    calls.truncate(n);
    calls
}

/// A number of calls.
type Input = fn(usize) -> Vec<Sym>;

/// What is called.
const INPUTS: [(&str, Input); 11] = [
    ("loop of three", |n| steps(n, |_, calls| calls.extend([0, 1, 2]))),
    ("nested, varying trips", |n| {
        steps(n, |noise, calls| {
            let (outer, inner) = (1 + noise.below(7), 1 + noise.below(3));
            calls.push(1);
            for _ in 0..outer {
                calls.push(2);
                (0..inner).for_each(|_| calls.extend([3, 4]));
            }
            calls.extend([5, 6, 6]);
        })
    }),
    ("random trips", |n| {
        steps(n, |noise, calls| {
            calls.push(1);
            (0..noise.below(10)).for_each(|_| calls.extend([2, 3, 4]));
            calls.push(5);
        })
    }),
    ("trips that grow slowly", |n| {
        let mut step = 0_usize;
        let mut calls = Vec::with_capacity(n + 1_000_000);
        while calls.len() < n {
            calls.push(1);
            (0..=step / 1_000).for_each(|_| calls.extend([2, 3]));
            step += 1;
        }
        calls.truncate(n);
        calls
    }),
    ("period 500", |n| noise(500, 64).repeat(n / 500)),
    ("period 5,000", |n| noise(5_000, 64).repeat(n / 5_000)),
    ("period 50,000", |n| noise(50_000, 64).repeat(n / 50_000)),
    ("random of 3", |n| noise(n, 3)),
    ("random of 20", |n| noise(n, 20)),
    ("random of 1,000", |n| noise(n, 1_000)),
    ("random ifs", |n| {
        steps(n, |noise, calls| {
            let chance = noise.below(8);
            calls.extend([1, 2]);
            calls.extend((chance & 1 == 1).then_some(3));
            calls.push(4);
            calls.extend((chance & 2 == 2).then_some(5));
            calls.extend((chance & 4 == 4).then_some(6));
            calls.extend([7, 0]);
        })
    }),
];

/// Parameters of `MPI_Isend`: count, type, dest, tag, comm, request.
const PARAMETERS: usize = 6;

/// What is sent at each execution of a call site.
fn words(sizes: &[Sym], sym: Sym, execution: usize) -> [i64; PARAMETERS] {
    let turn = |n: usize| i64::try_from(execution % n).unwrap_or(0);
    [sizes[execution % sizes.len()].into(), 3, turn(4), sym.into(), 0, turn(2)]
}

/// Executions of each call site so far.
fn next(executions: &mut Vec<usize>, sym: Sym) -> usize {
    let at = usize::try_from(sym).unwrap_or(0);
    if executions.len() <= at {
        executions.resize(at + 1, 0);
    }
    executions[at] += 1;
    executions[at] - 1
}

/// Processor time of this thread so far, ns; time on the wall where the system does not tell.
fn now(start: Instant) -> u128 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let running = stat.split(' ').next().and_then(|field| field.parse().ok());
    running.unwrap_or_else(|| start.elapsed().as_nanos())
}

/// The least nanoseconds per call, and the result of the last run.
fn least<T>(calls: &[Sym], mut run: impl FnMut(&[Sym]) -> T) -> (u128, Option<T>) {
    let (start, mut least, mut last) = (Instant::now(), u128::MAX, None);
    for _ in 0..RUNS {
        drop(last.take());
        let begin = now(start);
        last = Some(run(calls));
        least = least.min(now(start) - begin);
    }
    (least / u128::try_from(calls.len().max(1)).unwrap_or(1), last)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let (lengths, names): (Vec<_>, Vec<_>) = args.iter().partition(|arg| arg.parse::<usize>().is_ok());
    let lengths: Vec<usize> = lengths.iter().filter_map(|n| n.parse().ok()).collect();
    println!("{:<24} {:>10} {:>8} {:>9} {:>10}", "input", "calls", "streams", "recorder", "tree, kB");
    for (name, input) in INPUTS {
        if !names.is_empty() && !names.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        for &n in if lengths.is_empty() { &LENGTHS[..] } else { &lengths } {
            let calls = input(n);
            let (streams, last) = least(&calls, streams);
            let kilobytes = last.map_or(0, |(folder, _)| folder.heap_words() * 8 / 1_000);
            let (recorder, _) = least(&calls, recorder);
            println!("{name:<24} {n:>10} {streams:>8} {recorder:>9} {kilobytes:>10}");
        }
    }
}

/// The tree, and the streams by themselves.
fn streams(calls: &[Sym]) -> (Folder, Vec<[Ints; PARAMETERS]>) {
    let (mut folder, mut streams, sizes) = (Folder::new(DEFAULT_WINDOW), Vec::new(), noise(500, 64));
    let mut executions = Vec::new();
    for &sym in calls {
        let words = words(&sizes, sym, next(&mut executions, sym));
        folder.push(black_box(sym));
        if streams.len() < executions.len() {
            streams.resize_with(executions.len(), <[Ints; PARAMETERS]>::default);
        }
        let own = &mut streams[usize::try_from(sym).unwrap_or(0)];
        own.iter_mut().zip(words).for_each(|(stream, word)| stream.push(word));
    }
    (folder, streams)
}

/// A rank's recorder.
fn recorder(calls: &[Sym]) -> RankRecorder {
    let mut r = RankRecorder::new(0, Options { columns: false, sketches: false, ..Options::default() });
    let (thread, sizes, mut executions) = (r.open_thread(0), noise(500, 64), Vec::new());
    let isend = CallTable::builtin().by_name("MPI_Isend").map_or(CallId(0), |row| row.id);
    for site in 0..1_000 {
        r.symbol(isend, site, 0);
    }
    for &sym in calls {
        let words = words(&sizes, sym, next(&mut executions, sym));
        r.record(thread, black_box(sym), &words, 0, 0);
    }
    r
}
