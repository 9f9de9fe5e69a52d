//! Pipelined sweeps over a two-dimensional grid, from one corner to the other and back, as in a lower-upper solver:
//! each rank takes each block from two neighbours and passes it on to the two others.

use crate::grid::Grid;
use crate::{Communicator, Digest, Job, Kind, Op, Part, Receive, nested};

/// Blocks of a sweep: depth of the pipeline.
const BLOCKS: i32 = 10;

/// Buffers and place of a rank.
struct Place {
    grid: Grid,
    x: i32,
    y: i32,
    send: [Part; 2],
    receive: [Part; 2],
}

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let grid = Grid::nearly_square(job.ranks);
    let (x, y) = grid.coordinates(job.me);
    let part = || world.buffer(Kind::Double, job.size);
    let place = Place { grid, x, y, send: [part(), part()], receive: [part(), part()] };
    let (local, norm) = (world.buffer(Kind::Double, 5), world.buffer(Kind::Double, 5));

    let block = job.seconds / f64::from(2 * BLOCKS);
    let distance = f64::from(x + y) * block;
    let length = f64::from(grid.width + grid.height - 2) * block;
    for _ in 0..job.steps {
        world.expect_wait(distance);
        sweep(world, &place, 1, block, &mut seen);
        // The way back starts in the far corner, once the pipeline there has run dry.
        world.expect_wait(2.0 * (length - distance));
        sweep(world, &place, -1, block, &mut seen);
        world.fill(local, seen.value());
        world.expect_wait(distance);
        world.allreduce(local, norm, Op::Sum);
        seen.absorb(world.digest(norm));
    }
    seen
}

/// One sweep: `way` 1 from the first corner, -1 from the last.
#[track_caller]
fn sweep<C: Communicator>(world: &C, place: &Place, way: i32, block: f64, seen: &mut Digest) {
    nested(world, || {
        let Place { grid, x, y, send, receive } = *place;
        let from = [grid.bounded(x - way, y), grid.bounded(x, y - way)];
        let to = [grid.bounded(x + way, y), grid.bounded(x, y + way)];
        for tag in 0..BLOCKS {
            // Each neighbour has a place of its own in the text, as in the programs that this is like.
            if let Some(rank) = from[0] {
                world.recv(Receive::exact(receive[0], rank, tag));
                seen.absorb(world.digest(receive[0]));
            }
            if let Some(rank) = from[1] {
                world.recv(Receive::exact(receive[1], rank, tag));
                seen.absorb(world.digest(receive[1]));
            }
            world.compute(block);
            if let Some(rank) = to[0] {
                world.fill(send[0], seen.value());
                world.send(send[0], rank, tag);
            }
            if let Some(rank) = to[1] {
                world.fill(send[1], seen.value());
                world.send(send[1], rank, tag);
            }
        }
    });
}
