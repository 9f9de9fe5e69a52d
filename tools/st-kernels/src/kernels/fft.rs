//! Fourier transforms of a cube that is cut into pencils: ranks form a grid, and data are redistributed among the ranks
//! of each row, then of each column, there and back.
//!
//! Source: the two-dimensional decomposition of parallel FFT libraries (P3DFFT, 2DECOMP); FT of the NAS Parallel
//! Benchmarks is the case of one row.

use st_model::ranks::{RankSeq, Run};

use crate::grid::{Grid, share};
use crate::{Communicator, Digest, Job, Kind, Op, Part, nested};

/// Values per point: a complex number.
const VALUES: i32 = 2;

/// A communicator in which data are redistributed.
struct Exchange<C: Communicator> {
    among: C,
    /// Elements to and from each of its ranks.
    sends: Vec<i32>,
    receives: Vec<i32>,
    out: Part,
    back: Part,
}

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let grid = Grid::nearly_square(job.ranks);
    let (x, y) = grid.coordinates(job.me);
    let members = |start: i32, step: i32, n: i32| {
        RankSeq::from_runs([Run { start: start.into(), step: step.into(), n: n.unsigned_abs().into() }])
    };
    let row = world.split(Some(y), x, &members(y * grid.width, 1, grid.width));
    let column = world.split(Some(x), y, &members(x, grid.width, grid.height));
    let (Some(row), Some(column)) = (row, column) else { return seen };
    // Points of the third side stay where they are; the two others are cut.
    let row = exchange(world, job, row, grid.width, x);
    let column = exchange(world, job, column, grid.height, y);
    let (local, global) = (world.buffer(Kind::Double, 2), world.buffer(Kind::Double, 2));
    world.bcast(local, 0);
    for _ in 0..job.steps {
        world.compute(job.seconds / 3.0);
        row.run(false, &mut seen, world);
        world.compute(job.seconds / 3.0);
        column.run(false, &mut seen, world);
        world.compute(job.seconds / 3.0);
        column.run(true, &mut seen, world);
        row.run(true, &mut seen, world);
        world.fill(local, seen.value());
        world.reduce(local, global, Op::Sum, 0);
    }
    row.among.free();
    column.among.free();
    seen
}

/// One of `n` ranks that is `at` of them: its part of one side goes in parts of the other side to all.
fn exchange<C: Communicator>(world: &C, job: &Job, among: C, n: i32, at: i32) -> Exchange<C> {
    let part = |i: i32| VALUES * share(job.size, n, i);
    let mine = share(job.size, n, at);
    let sends: Vec<i32> = (0..n).map(|i| mine * part(i)).collect();
    let receives: Vec<i32> = (0..n).map(|i| part(at) * share(job.size, n, i)).collect();
    let out = world.buffer(Kind::Double, sends.iter().sum());
    let back = world.buffer(Kind::Double, receives.iter().sum());
    Exchange { among, sends, receives, out, back }
}

impl<C: Communicator> Exchange<C> {
    /// There, or back the way they came.
    #[track_caller]
    fn run(&self, back: bool, seen: &mut Digest, world: &C) {
        nested(world, || {
            let (from, sends, into, receives) = if back {
                (self.back, &self.receives, self.out, &self.sends)
            } else {
                (self.out, &self.sends, self.back, &self.receives)
            };
            world.fill(from, seen.value());
            self.among.alltoallv(from, sends, into, receives);
            seen.absorb(world.digest(into));
        });
    }
}
