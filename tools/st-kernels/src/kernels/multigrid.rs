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
    let levels: Vec<Level> = (0..30).map(Level).take_while(|level| level.stride() < job.ranks).collect();
    let seconds = job.seconds / 4.0;
    for _ in 0..job.steps {
        for &level in &levels {
            if job.me % level.stride() == 0 {
                smooth(world, job, &buffers, level, seconds, &mut seen);
                hand(world, job, &buffers, level, DOWN, &mut seen);
            }
        }
        world.compute(seconds);
        for &level in levels.iter().rev() {
            if job.me % level.stride() == 0 {
                hand(world, job, &buffers, level, UP, &mut seen);
                smooth(world, job, &buffers, level, seconds, &mut seen);
            }
        }
        world.fill(local, seen.value());
        world.allreduce(local, norm, Op::Sum);
        seen.absorb(world.digest(norm));
    }
    seen
}

/// A level, from 0: the finest.
#[derive(Clone, Copy)]
struct Level(i32);

impl Level {
    /// Ranks that work on the level are multiples of this.
    fn stride(self) -> i32 {
        1 << self.0
    }

    /// Elements of a message: half as many from level to level.
    fn length(self, job: &Job) -> i32 {
        (job.size >> self.0).max(1)
    }
}

/// Exchanges with both neighbours among the ranks of a level.
#[track_caller]
fn smooth<C: Communicator>(
    world: &C,
    job: &Job,
    buffers: &Buffers,
    level: Level,
    seconds: f64,
    seen: &mut Digest,
) {
    nested(world, || {
        let stride = level.stride();
        let members = (job.ranks - 1) / stride + 1;
        let place = job.me / stride;
        let neighbour = |way: i32| (place + way).rem_euclid(members) * stride;
        let (out, back) = (buffers.out.first(level.length(job)), buffers.back.first(level.length(job)));
        for way in [1, -1] {
            world.fill(out, seen.value());
            world.sendrecv(out, neighbour(way), EXCHANGE, Receive::exact(back, neighbour(-way), EXCHANGE));
            seen.absorb(world.digest(back));
        }
        world.compute(seconds / f64::from(stride));
    });
}

/// Every other rank of a level gives its part to the one before it, or gets it back.
#[track_caller]
fn hand<C: Communicator>(world: &C, job: &Job, buffers: &Buffers, level: Level, tag: i32, seen: &mut Digest) {
    nested(world, || {
        let (out, back) = (buffers.out.first(level.length(job)), buffers.back.first(level.length(job)));
        let stride = level.stride();
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
