//! Halo exchange on a ring by several threads of each rank at once, each with the thread of its number on the neighbours.

use crate::{Communicator, Digest, Job, Kind, Receive};

/// Threads of a rank.
const THREADS: i32 = 3;

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let (right, left) = ((job.me + 1) % job.ranks, (job.me + job.ranks - 1) % job.ranks);
    let start = seen.value();
    let work = |world: &C, thread: i32, ready: &dyn Fn()| {
        world.query_thread();
        ready();
        let mut seen = Digest::new(start, thread);
        // The more, the higher the thread's number.
        let size = job.size * (thread + 1);
        let (out, back) = (world.buffer(Kind::Double, size), world.buffer(Kind::Double, size));
        for step in 0..job.steps {
            world.fill(out, seen.value());
            if (step + thread) % 2 == 0 {
                world.sendrecv(out, right, thread, Receive::exact(back, left, thread));
            } else {
                let mut requests =
                    [world.irecv(Receive::exact(back, right, thread)), world.isend(out, left, thread)];
                world.waitall(&mut requests);
            }
            seen.absorb(world.digest(back));
            world.compute(job.seconds / f64::from(THREADS));
        }
        seen.value()
    };
    for value in world.threads(THREADS, work) {
        seen.absorb(value);
    }
    world.barrier();
    seen
}
