//! Halo exchange on a ring, blocking: the smallest solver there is.

use crate::{Communicator, Digest, Job, Kind, Op, Receive};

/// Steps from one reduction to the next.
const REDUCE_EVERY: i32 = 5;
/// Tags of messages to the right and to the left.
const RIGHT: i32 = 1;
const LEFT: i32 = 2;

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let part = || world.buffer(Kind::Double, job.size);
    let (out, back) = (part(), part());
    let (local, global) = (world.buffer(Kind::Double, 1), world.buffer(Kind::Double, 1));
    let neighbour = |way: i32| {
        let at = job.me + way;
        let inside = (0..job.ranks).contains(&at);
        (inside || !job.open).then(|| at.rem_euclid(job.ranks))
    };
    let (left, right) = (neighbour(-1), neighbour(1));
    for step in 1..=job.steps {
        for (to, from, tag) in [(right, left, RIGHT), (left, right, LEFT)] {
            world.fill(out, seen.value());
            match (to, from) {
                (Some(to), Some(from)) => {
                    world.sendrecv(out, to, tag, Receive::exact(back, from, tag));
                    seen.absorb(world.digest(back));
                }
                (Some(to), None) => world.send(out, to, tag),
                (None, Some(from)) => {
                    world.recv(Receive::exact(back, from, tag));
                    seen.absorb(world.digest(back));
                }
                (None, None) => {}
            }
        }
        world.compute(job.seconds);
        if step % REDUCE_EVERY == 0 {
            world.fill(local, seen.value());
            world.allreduce(local, global, Op::Max);
            seen.absorb(world.digest(global));
        }
    }
    seen
}
