//! Halo exchange on a two-dimensional grid: the skeleton of an explicit solver.

use crate::grid::Grid;
use crate::{Communicator, Digest, Job, Kind, Op, Part, Receive};

/// Steps from one reduction to the next.
const REDUCE_EVERY: i32 = 5;

/// The four directions in which messages go; a message's tag is its direction's number.
const DIRECTIONS: [(i32, i32); 4] = [(-1, 0), (1, 0), (0, -1), (0, 1)];

/// A neighbour and what is exchanged with it.
struct Border {
    rank: i32,
    /// Direction of messages to the neighbour.
    there: i32,
    /// Direction of messages from it.
    back: i32,
    send: Part,
    receive: Part,
}

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let borders = borders(world, job);
    let (local, global) = (world.buffer(Kind::Double, 1), world.buffer(Kind::Double, 1));
    for step in 1..=job.steps {
        let mut requests = Vec::with_capacity(2 * borders.len());
        for b in &borders {
            requests.push(world.irecv(Receive::exact(b.receive, b.rank, b.back)));
        }
        for b in &borders {
            world.fill(b.send, seen.value());
            requests.push(world.isend(b.send, b.rank, b.there));
        }
        world.waitall(&mut requests);
        for b in &borders {
            seen.absorb(world.digest(b.receive));
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

fn borders<C: Communicator>(world: &C, job: &Job) -> Vec<Border> {
    let grid = Grid::nearly_square(job.ranks);
    let (x, y) = grid.coordinates(job.me);
    let mut borders = Vec::with_capacity(4);
    for ((dx, dy), there) in DIRECTIONS.into_iter().zip(0..) {
        let rank = if job.open { grid.bounded(x + dx, y + dy) } else { Some(grid.wrapped(x + dx, y + dy)) };
        if let Some(rank) = rank {
            let send = world.buffer(Kind::Double, job.size);
            let receive = world.buffer(Kind::Double, job.size);
            borders.push(Border { rank, there, back: there ^ 1, send, receive });
        }
    }
    borders
}
