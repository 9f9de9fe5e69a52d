//! V-cycles of a multigrid solver on a cube of points, cut along three axes: each level has half as many points along each, and
//! where there are fewer than ranks along one, every other of these idles there until the way back.
//!
//! Source: communication structure of MG, NAS Parallel Benchmarks 3.3, `mg3P`, `comm3` and `comm3_ex`.

use crate::grid::Cube;
use crate::{Communicator, Digest, Job, Kind, Op, Part, Receive, nested};

/// Tag of messages along an axis; in a ring of two, both ways lead to the same rank.
fn tag(axis: usize, way: i32) -> i32 {
    [1, 3, 5][axis] + i32::from(way > 0)
}

/// A rank's share of the points of all levels, and what it needs to exchange borders.
struct Share {
    cube: Cube,
    at: [i32; 3],
    out: Part,
    back: [Part; 2],
}

/// A level: points along each axis.
#[derive(Clone, Copy)]
struct Level(i32);

/// What is passed along an axis, how far.
#[derive(Clone, Copy)]
struct Border {
    axis: usize,
    distance: i32,
    level: Level,
}

impl Share {
    fn new<C: Communicator>(world: &C, job: &Job) -> Self {
        let cube = Cube::nearly_cubic(job.ranks);
        // No border is longer than a side of the whole cube with what is beyond its edges.
        let buffer = || world.buffer(Kind::Double, (job.size + 2) * (job.size + 2));
        Self { cube, at: cube.place(job.me), out: buffer(), back: [buffer(), buffer()] }
    }

    /// How far ranks that have points of a level are from each other along an axis. Extents are powers of two.
    fn stride(&self, axis: usize, level: Level) -> i32 {
        let fits = |stride: &i32| stride.saturating_mul(level.0) >= self.cube.extents[axis];
        (0..30).map(|n| 1 << n).find(fits).unwrap_or(1)
    }

    /// Whether the rank has points of a level.
    fn works(&self, level: Level) -> bool {
        (0..3).all(|axis| self.at[axis] % self.stride(axis, level) == 0)
    }

    /// Points of a level along an axis that a rank has which has any.
    fn side(&self, axis: usize, level: Level) -> i32 {
        (level.0 / (self.cube.extents[axis] / self.stride(axis, level))).max(1)
    }

    /// Points of a border across an axis: with those beyond the edges that have come along axes before.
    fn border(&self, axis: usize, level: Level) -> i32 {
        let others = (0..3).filter(|other| *other != axis);
        others.map(|other| self.side(other, level) + if other < axis { 2 } else { 0 }).product()
    }

    fn neighbour(&self, axis: usize, distance: i32) -> i32 {
        let mut place = self.at;
        place[axis] += distance;
        // A closed cube has a rank at each place.
        self.cube.rank(place, false).unwrap_or(0)
    }
}

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let share = Share::new(world, job);
    let (local, norm) = (world.buffer(Kind::Double, 1), world.buffer(Kind::Double, 1));
    // The coarsest has two points along each axis.
    let levels: Vec<Level> = (0..30).map(|n| Level(job.size >> n)).take_while(|level| level.0 >= 2).collect();
    let coarsest = levels.last().copied().unwrap_or(Level(1));
    // Half as many points a side take an eighth of the work.
    let seconds = |level: Level| job.seconds * 0.875 * (f64::from(level.0) / f64::from(job.size)).powi(3);
    for _ in 0..job.steps {
        for &level in levels.iter().skip(1) {
            restrict(world, &share, level, &mut seen);
        }
        smooth(world, &share, coarsest, seconds(coarsest), &mut seen);
        for pair in levels.windows(2).rev() {
            let &[finer, level] = pair else { continue };
            interpolate(world, &share, level, finer, &mut seen);
            residual(world, &share, finer, &mut seen);
            smooth(world, &share, finer, seconds(finer), &mut seen);
        }
        world.fill(local, seen.value());
        world.allreduce(local, norm, Op::Sum);
        seen.absorb(world.digest(norm));
    }
    seen
}

/// The points of a level from those of the finer one, which each rank has.
#[track_caller]
fn restrict<C: Communicator>(world: &C, share: &Share, level: Level, seen: &mut Digest) {
    nested(world, || exchange(world, share, level, seen));
}

#[track_caller]
fn residual<C: Communicator>(world: &C, share: &Share, level: Level, seen: &mut Digest) {
    nested(world, || exchange(world, share, level, seen));
}

#[track_caller]
fn smooth<C: Communicator>(world: &C, share: &Share, level: Level, seconds: f64, seen: &mut Digest) {
    nested(world, || {
        if share.works(level) {
            world.compute(seconds);
        }
        exchange(world, share, level, seen);
    });
}

/// Borders of a level, along one axis after the other, among ranks that have points of it.
#[track_caller]
fn exchange<C: Communicator>(world: &C, share: &Share, level: Level, seen: &mut Digest) {
    nested(world, || {
        if share.works(level) {
            for axis in (0..3).filter(|axis| share.cube.extents[*axis] > 1) {
                let border = Border { axis, distance: share.stride(axis, level), level };
                pass(world, share, border, true, true, seen);
            }
        }
    });
}

/// From a level to a finer one, on which more ranks work: those get from both neighbours along each axis what they have missed.
/// As in MG, so do those that have no points along another axis.
#[track_caller]
fn interpolate<C: Communicator>(world: &C, share: &Share, level: Level, finer: Level, seen: &mut Digest) {
    nested(world, || {
        for axis in 0..3 {
            let (near, far) = (share.stride(axis, finer), share.stride(axis, level));
            if near < far && share.at[axis] % near == 0 {
                let gives = share.at[axis] % far == 0;
                let border = Border { axis, distance: near, level: finer };
                pass(world, share, border, gives, !gives, seen);
            }
        }
    });
}

/// Borders to and from both neighbours along an axis.
#[track_caller]
fn pass<C: Communicator>(
    world: &C,
    share: &Share,
    border: Border,
    gives: bool,
    takes: bool,
    seen: &mut Digest,
) {
    nested(world, || {
        let Border { axis, distance, level } = border;
        let count = share.border(axis, level);
        let mut coming = Vec::with_capacity(2);
        for (way, back) in [-1, 1].into_iter().zip(share.back).filter(|_| takes) {
            let back = back.first(count);
            // What comes from one side was sent towards the other.
            let receive = Receive::exact(back, share.neighbour(axis, way * distance), tag(axis, -way));
            coming.push((world.irecv(receive), back));
        }
        for way in [1, -1].into_iter().filter(|_| gives) {
            let out = share.out.first(count);
            world.fill(out, seen.value());
            world.send(out, share.neighbour(axis, way * distance), tag(axis, way));
        }
        for (mut request, back) in coming {
            world.wait(&mut request);
            seen.absorb(world.digest(back));
        }
    });
}
