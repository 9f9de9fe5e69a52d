//! An ocean model: a time step with several halo exchanges, a solver whose iteration count varies by step, and work
//! that is done in some steps only. The grid is periodic from west to east and folded onto itself in the north.
//!
//! The structure is that of POP: baroclinic step, barotropic conjugate-gradient solver, diagnostics, output.

use st_model::ranks::{RankSeq, Run};

use crate::chance::draw_below;
use crate::grid::Grid;
use crate::{Communicator, Digest, Job, Kind, Op, Part, Receive, nested};

/// Ranks that share a node's writer.
const NODE: i32 = 8;
/// Fields exchanged at once in the baroclinic step.
const FIELDS: i32 = 3;
/// Steps from one event to the next.
const DIAGNOSTICS_EVERY: i32 = 10;
const FORCING_EVERY: i32 = 12;
const TRACERS_EVERY: i32 = 25;
const OUTPUT_EVERY: i32 = 50;
/// Topics of random numbers.
const ITERATIONS: u32 = 20;
const ICE: u32 = 21;
const TRACERS: u32 = 22;
const CELLS: u32 = 23;
/// Tags.
const FOLD: i32 = 50;
const ICE_EDGE: i32 = 60;

/// What a rank keeps for the whole run.
struct Model<'a, C: Communicator> {
    world: &'a C,
    job: &'a Job,
    grid: Grid,
    x: i32,
    y: i32,
    /// The ranks of this one's row of the grid.
    row: C,
    /// The ranks of its node.
    node: C,
    /// The first ranks of all nodes; only those have it.
    writers: Option<C>,
    node_size: i32,
    /// Halo of four sides, out and in.
    send: [Part; 4],
    receive: [Part; 4],
    scalars: Part,
    sums: Part,
    /// Room for a message to or from each rank of the node.
    gathered: [Part; 2],
}

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let Some(model) = Model::new(world, job) else { return seen };
    let start = world.wtime();
    world.bcast(model.scalars, 0);
    model.node.allgather(model.scalars.first(1), model.gathered[0].first(model.node_size));
    for step in 1..=job.steps {
        model.step(step, &mut seen);
    }
    let end = world.wtime();
    debug_assert!(end >= start, "the clock runs forward");
    world.barrier();
    let Model { row, node, writers, .. } = model;
    row.free();
    node.free();
    if let Some(writers) = writers {
        writers.free();
    }
    seen
}

impl<'a, C: Communicator> Model<'a, C> {
    fn new(world: &'a C, job: &'a Job) -> Option<Self> {
        let run = |start: i32, step: i32, n: i32| {
            let n = u64::from(n.cast_unsigned());
            RankSeq::from_runs([Run { start: start.into(), step: step.into(), n }])
        };
        let grid = Grid::nearly_square(job.ranks);
        let (x, y) = grid.coordinates(job.me);
        let row = world.split(Some(y), x, &run(y * grid.width, 1, grid.width))?;
        let first = job.me / NODE * NODE;
        let node_size = NODE.min(job.ranks - first);
        let node = world.split(Some(job.me / NODE), job.me, &run(first, 1, node_size))?;
        let leads = (job.me == first).then_some(0);
        let writers = world.split(leads, job.me, &run(0, NODE, (job.ranks - 1) / NODE + 1));
        let halo = || world.buffer(Kind::Double, FIELDS * job.size);
        Some(Self {
            world,
            job,
            grid,
            x,
            y,
            row,
            node,
            writers,
            node_size,
            send: [halo(), halo(), halo(), halo()],
            receive: [halo(), halo(), halo(), halo()],
            scalars: world.buffer(Kind::Double, 8),
            sums: world.buffer(Kind::Double, 8),
            gathered: [
                world.buffer(Kind::Double, NODE * job.size),
                world.buffer(Kind::Double, NODE * job.size),
            ],
        })
    }

    /// Ranks to the west, east, south and north; the north and south ends have none.
    fn neighbours(&self) -> [Option<i32>; 4] {
        let (g, x, y) = (self.grid, self.x, self.y);
        [Some(g.wrapped(x - 1, y)), Some(g.wrapped(x + 1, y)), g.bounded(x, y - 1), g.bounded(x, y + 1)]
    }

    fn step(&self, step: i32, seen: &mut Digest) {
        let world = self.world;
        if step % FORCING_EVERY == 0 {
            world.fill(self.scalars, self.job.seed ^ u64::from(step.cast_unsigned()));
            world.bcast(self.scalars, 0);
            world.bcast(self.gathered[0].first(self.job.size), 0);
        }
        // Baroclinic: three fields at once, then one field twice.
        world.compute(0.5 * self.job.seconds);
        self.halo(FIELDS * self.job.size, seen);
        self.fold(step, seen);
        world.compute(0.2 * self.job.seconds);
        self.halo(self.job.size, seen);
        self.ice(step, seen);
        self.barotropic(step, seen);
        self.halo(self.job.size, seen);
        if step % DIAGNOSTICS_EVERY == 0 {
            self.diagnostics(step, seen);
        }
        if step % TRACERS_EVERY == 0 {
            self.tracers(step, seen);
        }
        if step % OUTPUT_EVERY == 0 {
            self.output(step, seen);
        }
    }

    /// Exchanges `count` values with each neighbour. The receives have room for all fields.
    #[track_caller]
    fn halo(&self, count: i32, seen: &mut Digest) {
        let world = self.world;
        nested(world, || {
            let neighbours = self.neighbours();
            let mut requests = Vec::with_capacity(8);
            for ((rank, part), side) in neighbours.into_iter().zip(self.receive).zip(0..) {
                if let Some(rank) = rank {
                    // A message's tag is the side that it was sent to: the other one.
                    requests.push(world.irecv(Receive::exact(part, rank, side ^ 1).carrying(count)));
                }
            }
            for ((rank, part), side) in neighbours.into_iter().zip(self.send).zip(0..) {
                if let Some(rank) = rank {
                    world.fill(part.first(count), seen.value());
                    requests.push(world.isend(part.first(count), rank, side));
                }
            }
            world.waitall(&mut requests);
            for (rank, part) in neighbours.into_iter().zip(self.receive) {
                if rank.is_some() {
                    seen.absorb(world.digest(part.first(count)));
                }
            }
        });
    }

    /// The northern row is folded: each rank exchanges with its mirror image.
    fn fold(&self, step: i32, seen: &mut Digest) {
        if self.y + 1 != self.grid.height {
            return;
        }
        let mirror = self.grid.wrapped(self.grid.width - 1 - self.x, self.y);
        let (out, back) = (self.send[3].first(self.job.size), self.receive[3].first(self.job.size));
        self.world.fill(out, seen.value());
        self.world.sendrecv(out, mirror, FOLD + step % 2, Receive::exact(back, mirror, FOLD + step % 2));
        seen.absorb(self.world.digest(back));
    }

    /// Sea ice at both ends: the rows there pass a changing number of cells to the east, some steps none. The ice grows and
    /// melts with the season and the latitude, alike along a row.
    fn ice(&self, step: i32, seen: &mut Digest) {
        if self.y != 0 && self.y + 1 != self.grid.height {
            return;
        }
        let world = self.world;
        let pole = i32::from(self.y != 0);
        let cells = draw_below(2 * self.job.size, self.job.seed, ICE, step, pole) - self.job.size;
        if cells <= 0 {
            return;
        }
        let west = self.grid.wrapped(self.x - 1, self.y);
        let east = self.grid.wrapped(self.x + 1, self.y);
        let (out, back) = (self.send[1].first(cells), self.receive[0].first(cells));
        let mut request = world.irecv(Receive::exact(back, west, ICE_EDGE));
        world.fill(out, seen.value());
        world.send(out, east, ICE_EDGE);
        world.wait(&mut request);
        seen.absorb(world.digest(back));
    }

    /// The solver: as many iterations as it takes, the same number on all ranks.
    fn barotropic(&self, step: i32, seen: &mut Digest) {
        let world = self.world;
        let iterations = 4 + draw_below(12, self.job.seed, ITERATIONS, step, 0);
        let compute = 0.3 * self.job.seconds / f64::from(iterations);
        self.dot(1, seen);
        for i in 1..=iterations {
            world.compute(compute);
            self.halo(self.job.size, seen);
            self.dot(2, seen);
            // The residual is looked at every fourth iteration.
            if i % 4 == 0 {
                self.dot(1, seen);
            }
        }
    }

    /// Global sums of `n` numbers.
    #[track_caller]
    fn dot(&self, n: i32, seen: &mut Digest) {
        let world = self.world;
        nested(world, || {
            world.fill(self.scalars.first(n), seen.value());
            world.allreduce(self.scalars.first(n), self.sums.first(n), Op::Sum);
            seen.absorb(world.digest(self.sums.first(n)));
        });
    }

    /// Means by row, global extremes, the time spent.
    fn diagnostics(&self, step: i32, seen: &mut Digest) {
        let world = self.world;
        world.fill(self.scalars, seen.value());
        self.row.allreduce(self.scalars.first(4), self.sums.first(4), Op::Sum);
        seen.absorb(world.digest(self.sums.first(4)));
        world.reduce(self.scalars.first(8), self.sums.first(8), Op::Min, 0);
        world.reduce(
            self.scalars.first(8),
            self.sums.first(8),
            Op::Max,
            step / DIAGNOSTICS_EVERY % self.job.ranks,
        );
        let _now = world.wtime();
        self.node.gather(self.scalars.first(1), self.gathered[0].first(self.node_size), 0);
    }

    /// Redistributes tracers among the ranks of a node, in all nodes alike.
    fn tracers(&self, step: i32, seen: &mut Digest) {
        let first = self.job.me / NODE * NODE;
        let moved = |from: i32, to: i32| {
            draw_below(self.job.size, self.job.seed ^ u64::from(step.cast_unsigned()), TRACERS, from, to)
        };
        let (place, mates) = (self.job.me - first, 0..self.node_size);
        let sends: Vec<i32> = mates.clone().map(|mate| moved(place, mate)).collect();
        let receives: Vec<i32> = mates.map(|mate| moved(mate, place)).collect();
        let from = self.gathered[0].first(sends.iter().sum());
        let into = self.gathered[1].first(receives.iter().sum());
        self.world.fill(from, seen.value());
        self.node.alltoallv(from, &sends, into, &receives);
        seen.absorb(self.world.digest(into));
    }

    /// Each node's first rank collects the node's active cells and writes them.
    fn output(&self, step: i32, seen: &mut Digest) {
        let cells = |place: i32| 1 + draw_below(self.job.size, self.job.seed, CELLS, step, place);
        let counts: Vec<i32> = (0..self.node_size).map(cells).collect();
        let own = self.send[0].first(cells(self.job.me % NODE));
        let all = self.gathered[1].first(counts.iter().sum());
        self.world.fill(own, seen.value());
        self.node.gatherv(own, all, &counts, 0);
        if let Some(writers) = &self.writers {
            seen.absorb(self.world.digest(all));
            self.world.fill(self.scalars.first(2), seen.value());
            writers.allreduce(self.scalars.first(2), self.sums.first(2), Op::Sum);
            seen.absorb(self.world.digest(self.sums.first(2)));
        }
        self.world.barrier();
    }
}
