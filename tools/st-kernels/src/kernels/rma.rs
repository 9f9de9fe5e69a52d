//! Halo exchange on a ring by one-sided communication: each step puts to the right, gets from the left, and adds to a
//! counter of rank 0.

use crate::{Communicator, Digest, Job, Kind, Op};

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let (right, left) = ((job.me + 1) % job.ranks, (job.me + job.ranks - 1) % job.ranks);
    // A halo that others put into, then values that others get.
    let shared = world.buffer(Kind::Double, 2 * job.size);
    let (halo, inner) = (shared.first(job.size), shared.slice(job.size, job.size));
    let (out, back) = (world.buffer(Kind::Double, job.size), world.buffer(Kind::Double, job.size));
    let (total, one) = (world.buffer(Kind::Long, 1), world.buffer(Kind::Long, 1));
    world.fill(one, job.seed);
    let window = world.win_create(shared);
    let counter = world.win_create(total);
    for _ in 0..job.steps {
        world.fill(inner, seen.value());
        world.fill(out, seen.value() ^ 1);
        world.win_fence(&window);
        world.put(&window, out, right, 0);
        world.get(&window, back, left, job.size);
        world.win_fence(&window);
        seen.absorb(world.digest(halo));
        seen.absorb(world.digest(back));
        world.compute(job.seconds);
        world.win_fence(&counter);
        world.accumulate(&counter, one, 0, 0, Op::Sum);
        world.win_fence(&counter);
    }
    seen.absorb(world.digest(total));
    world.win_free(counter);
    world.win_free(window);
    seen
}
