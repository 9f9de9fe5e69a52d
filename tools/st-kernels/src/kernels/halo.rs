//! Halo exchange on a periodic two-dimensional grid whose messages are taken as they come: receives completed one by one
//! by `MPI_Waitany`, sends by polling with `MPI_Test`.

use crate::chance::draw_below;
use crate::grid::Grid;
use crate::{Communicator, Digest, Job, Kind, Op, Part, Receive};
use st_model::num::narrow;

/// Steps from one reduction to the next.
const REDUCE_EVERY: i32 = 5;
/// Topics of random numbers.
const FIRST: u32 = 30;
const MISSES: u32 = 31;

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let grid = Grid::nearly_square(job.ranks);
    let (x, y) = grid.coordinates(job.me);
    let sides =
        [grid.wrapped(x - 1, y), grid.wrapped(x + 1, y), grid.wrapped(x, y - 1), grid.wrapped(x, y + 1)];
    let parts = || [(); 4].map(|()| world.buffer(Kind::Double, job.size));
    let (out, back): ([Part; 4], [Part; 4]) = (parts(), parts());
    let (local, global) = (world.buffer(Kind::Double, 1), world.buffer(Kind::Double, 1));
    for step in 1..=job.steps {
        let mut receives = Vec::with_capacity(4);
        for ((rank, part), side) in sides.into_iter().zip(back).zip(0..) {
            // A message's tag is the side that it was sent to: the other one.
            receives.push(world.irecv(Receive::exact(part, rank, side ^ 1)));
        }
        let mut sends = Vec::with_capacity(4);
        for ((rank, part), side) in sides.into_iter().zip(out).zip(0..) {
            world.fill(part, seen.value());
            sends.push(world.isend(part, rank, side));
        }
        // On paper, messages come one after the other, a different one first in each step.
        let first = draw_below(4, job.seed, FIRST, step, 0);
        for turn in 0..4 {
            let guess = narrow((first + turn) % 4);
            if let Some(at) = world.waitany(&mut receives, guess) {
                seen.add(world.digest(back[at]));
            }
        }
        for (request, side) in sends.iter_mut().zip(0..) {
            let mut misses = draw_below(3, job.seed, MISSES, step, side).unsigned_abs();
            while !world.test(request, misses) {
                world.compute(job.seconds / 100.0);
                misses = 0;
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
