//! V-cycles of a multigrid solver on a ring: from level to level every other rank hands its part to a neighbour and
//! idles until the way back.
//!
//! Source: communication structure of MG, NAS Parallel Benchmarks 3.3, `comm3` and `comm3_ex`.

use crate::{Communicator, Digest, Job, Kind, Op, Part, Receive, nested};

/// Tags of an exchange, and of the ways down and up.
const EXCHANGE: i32 = 1;
const DOWN: i32 = 2;
const UP: i32 = 3;

struct Buffers {
    out: Part,
    back: Part,
}

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let part = || world.buffer(Kind::Double, job.size);
    let buffers = Buffers { out: part(), back: part() };
    let (local, norm) = (world.buffer(Kind::Double, 1), world.buffer(Kind::Double, 1));
    // Ranks that work on a level are multiples of its stride.
    let levels: Vec<(i32, i32)> =
        (0..30).map(|level| (level, 1 << level)).take_while(|l| l.1 < job.ranks).collect();
    let seconds = job.seconds / 4.0;
    for _ in 0..job.steps {
        for &(level, stride) in &levels {
            if job.me % stride == 0 {
                smooth(world, job, &buffers, (level, stride), seconds, &mut seen);
                hand(world, job, &buffers, (level, stride), DOWN, &mut seen);
            }
        }
        world.compute(seconds);
        for &(level, stride) in levels.iter().rev() {
            if job.me % stride == 0 {
                hand(world, job, &buffers, (level, stride), UP, &mut seen);
                smooth(world, job, &buffers, (level, stride), seconds, &mut seen);
            }
        }
        world.fill(local, seen.value());
        world.allreduce(local, norm, Op::Sum);
        seen.absorb(world.digest(norm));
    }
    seen
}

/// Elements of a message on a level: half as many from level to level.
fn length(job: &Job, level: i32) -> i32 {
    (job.size >> level.min(30)).max(1)
}

/// Exchanges with both neighbours among the ranks of a level.
#[track_caller]
fn smooth<C: Communicator>(
    world: &C,
    job: &Job,
    buffers: &Buffers,
    (level, stride): (i32, i32),
    seconds: f64,
    seen: &mut Digest,
) {
    nested(world, || {
        let members = (job.ranks - 1) / stride + 1;
        let place = job.me / stride;
        let neighbour = |way: i32| (place + way).rem_euclid(members) * stride;
        let (out, back) = (buffers.out.first(length(job, level)), buffers.back.first(length(job, level)));
        for way in [1, -1] {
            world.fill(out, seen.value());
            world.sendrecv(out, neighbour(way), EXCHANGE, Receive::exact(back, neighbour(-way), EXCHANGE));
            seen.absorb(world.digest(back));
        }
        world.compute(seconds / f64::from(1 << level.min(30)));
    });
}

/// Every other rank of a level gives its part to the one before it, or gets it back.
#[track_caller]
fn hand<C: Communicator>(
    world: &C,
    job: &Job,
    buffers: &Buffers,
    (level, stride): (i32, i32),
    tag: i32,
    seen: &mut Digest,
) {
    nested(world, || {
        let (out, back) = (buffers.out.first(length(job, level)), buffers.back.first(length(job, level)));
        let idles = job.me / stride % 2 == 1;
        let partner = if idles { job.me - stride } else { job.me + stride };
        if partner >= job.ranks {
            return;
        }
        if idles == (tag == DOWN) {
            world.fill(out, seen.value());
            world.send(out, partner, tag);
        } else {
            world.recv(Receive::exact(back, partner, tag));
            seen.absorb(world.digest(back));
        }
    });
}
