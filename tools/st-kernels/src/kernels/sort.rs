//! Sample sort: splitters from samples of all ranks, then every key to the rank whose it is. How many keys go where
//! depends on the data. At the end each rank tells the next its largest key.
//!
//! Source: communication structure of IS, NAS Parallel Benchmarks 3.3, `rank` and `full_verify`.

use crate::chance::draw_below;
use crate::{Communicator, Digest, Job, Kind, Op, Part, Receive};
use st_model::num::narrow;

/// Samples per rank.
const SAMPLES: i32 = 4;
/// Tag of the largest key.
const LARGEST: i32 = 1000;
/// Topic of random numbers.
const KEYS: u32 = 30;

/// Keys that go from one rank to another in a step: known to both, as the data would tell them.
fn keys(job: &Job, step: i32, from: i32, to: i32) -> i32 {
    draw_below(2 * job.size / job.ranks + 2, job.seed ^ u64::from(step.cast_unsigned()), KEYS, from, to)
}

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let most = (2 * job.size / job.ranks + 2) * job.ranks;
    let (out, back) = (world.buffer(Kind::Int, most), world.buffer(Kind::Int, most));
    let (sample, samples) = (world.buffer(Kind::Int, SAMPLES), world.buffer(Kind::Int, SAMPLES * job.ranks));
    let ones: Vec<i32> = vec![1; narrow(job.ranks)];
    let counts: [Part; 2] = [world.buffer(Kind::Int, job.ranks), world.buffer(Kind::Int, job.ranks)];
    let (local, total) = (world.buffer(Kind::Long, 1), world.buffer(Kind::Long, 1));
    for step in 1..=job.steps {
        world.compute(job.seconds / 2.0);
        world.fill(sample, seen.value());
        world.allgather(sample, samples);
        seen.absorb(world.digest(samples));
        let sends: Vec<i32> = (0..job.ranks).map(|to| keys(job, step, job.me, to)).collect();
        let receives: Vec<i32> = (0..job.ranks).map(|from| keys(job, step, from, job.me)).collect();
        // Each rank tells every other how many keys will come.
        world.fill(counts[0], seen.value());
        world.alltoallv(counts[0], &ones, counts[1], &ones);
        seen.absorb(world.digest(counts[1]));
        let (from, into) = (out.first(sends.iter().sum()), back.first(receives.iter().sum()));
        world.fill(from, seen.value());
        world.alltoallv(from, &sends, into, &receives);
        seen.absorb(world.digest(into));
        world.compute(job.seconds / 2.0);
        world.fill(local, seen.value());
        world.allreduce(local, total, Op::Sum);
        seen.absorb(world.digest(total));
    }
    let (mine, before) = (world.buffer(Kind::Int, 1), world.buffer(Kind::Int, 1));
    let mut pending = (job.me > 0).then(|| world.irecv(Receive::exact(before, job.me - 1, LARGEST)));
    if job.me < job.ranks - 1 {
        world.fill(mine, seen.value());
        world.send(mine, job.me + 1, LARGEST);
    }
    if let Some(request) = &mut pending {
        world.wait(request);
        seen.absorb(world.digest(before));
    }
    seen
}
