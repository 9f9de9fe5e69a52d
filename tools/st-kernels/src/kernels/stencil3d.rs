//! Halo exchange with all 26 neighbours on a three-dimensional grid: faces, edges and corners of different sizes.
//!
//! Source: communication structure of shock hydrodynamics codes with a 27-point stencil (LULESH, `CommSend`).

use crate::grid::Cube;
use crate::{Communicator, Digest, Job, Kind, Op, Part, Receive};

/// A neighbour, and what is exchanged with it.
struct Border {
    rank: i32,
    /// Tag of messages to the neighbour, and of those from it.
    there: i32,
    back: i32,
    send: Part,
    receive: Part,
}

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let borders = borders(world, job);
    let (local, global) = (world.buffer(Kind::Double, 1), world.buffer(Kind::Double, 1));
    for _ in 0..job.steps {
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
        // The length of the next step is that of the slowest.
        world.fill(local, seen.value());
        world.allreduce(local, global, Op::Min);
        seen.absorb(world.digest(global));
    }
    seen
}

fn borders<C: Communicator>(world: &C, job: &Job) -> Vec<Border> {
    let cube = Cube::nearly_cubic(job.ranks);
    let at = cube.place(job.me);
    let mut borders = Vec::with_capacity(26);
    // Directions are numbered so that opposite ones add up to 26; the one in the middle is none.
    for there in (0..27).filter(|d| *d != 13) {
        let way = [there % 3 - 1, there / 3 % 3 - 1, there / 9 - 1];
        let place = [0, 1, 2].map(|d: usize| at[d] + way[d]);
        let Some(rank) = cube.rank(place, job.open) else { continue };
        let count = match way.iter().filter(|w| **w != 0).count() {
            1 => job.size,
            2 => (job.size / 10).max(1),
            _ => 1,
        };
        let (send, receive) = (world.buffer(Kind::Double, count), world.buffer(Kind::Double, count));
        borders.push(Border { rank, there, back: 26 - there, send, receive });
    }
    borders
}
