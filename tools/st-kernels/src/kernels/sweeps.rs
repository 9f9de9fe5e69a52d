//! Sweeps in alternating directions over a multi-partitioned domain: every rank owns one cell in each cross section,
//! so that all work at all stages of all sweeps. Cells differ in size, and messages with them.
//!
//! On a square number of ranks, q × q, rank (i, j) owns the cells (i+k, j+k, k) modulo q, k = 0 … q-1; on other numbers P
//! the domain is divided along x and z only, and rank i owns the cells (i+k, k) modulo P.
//!
//! Source: communication structure of BT and SP, NAS Parallel Benchmarks 3.3, `make_set`, `copy_faces`, `x_solve`.

use crate::grid::share;
use crate::{Communicator, Digest, Job, Kind, Op, Part, Receive, nested};

/// Values per point in a sweep's messages, there and back, and in the exchange of faces.
const THERE: i32 = 5;
const BACK: i32 = 2;
const FACES: i32 = 10;
/// Steps from one norm to the next.
const NORM_EVERY: i32 = 5;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Axis {
    X,
    Y,
    Z,
}

/// How the domain is divided.
#[derive(Clone, Copy, Debug)]
struct Division {
    /// Parts along x and z.
    q: i32,
    /// Parts along y: as many, or one.
    qy: i32,
    /// Points along each side of the domain.
    points: i32,
    /// The rank's place.
    i: i32,
    j: i32,
}

impl Division {
    fn new(job: &Job) -> Self {
        let root =
            (1..=job.ranks).find(|r| i64::from(*r) * i64::from(*r) >= i64::from(job.ranks)).unwrap_or(1);
        let square = i64::from(root) * i64::from(root) == i64::from(job.ranks);
        let (q, qy) = if square { (root, root) } else { (job.ranks, 1) };
        Self { q, qy, points: job.size, i: job.me % q, j: job.me / q }
    }

    /// The rank that has the next cell along an axis (`way` 1) or the one before (-1), whatever the stage.
    fn neighbour(&self, axis: Axis, way: i32) -> i32 {
        let (i, j) = match axis {
            Axis::X => (self.i + way, self.j),
            Axis::Y => (self.i, self.j + way),
            Axis::Z => (self.i - way, self.j - way),
        };
        j.rem_euclid(self.qy) * self.q + i.rem_euclid(self.q)
    }

    /// Number of cells along an axis: stages of a sweep.
    fn stages(&self, axis: Axis) -> i32 {
        if axis == Axis::Y { self.qy } else { self.q }
    }

    /// Points in the face across an axis of the rank's cell at a stage.
    fn face(&self, axis: Axis, stage: i32) -> i32 {
        // The cell's number k, from its place along the axis.
        let k = match axis {
            Axis::X => stage - self.i,
            Axis::Y => stage - self.j,
            Axis::Z => stage,
        }
        .rem_euclid(self.q);
        let x = || share(self.points, self.q, (self.i + k) % self.q);
        let y = || share(self.points, self.qy, (self.j + k) % self.qy);
        let z = || share(self.points, self.q, k);
        match axis {
            Axis::X => y() * z(),
            Axis::Y => x() * z(),
            Axis::Z => x() * y(),
        }
    }

    /// Points in all faces that the rank shares with the rank after it along an axis: those of all cells but the last.
    fn faces_after(&self, axis: Axis) -> i32 {
        (0..self.stages(axis) - 1).map(|s| self.face(axis, s)).sum()
    }
    /// The same towards the rank before.
    fn faces_before(&self, axis: Axis) -> i32 {
        (1..self.stages(axis)).map(|s| self.face(axis, s)).sum()
    }
}

/// Buffers and timing.
struct Work {
    division: Division,
    /// To the next, to the one before.
    send: [Part; 2],
    /// From the one before, from the next.
    receive: [Part; 2],
    seconds: f64,
}

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let division = Division::new(job);
    let largest = [Axis::X, Axis::Y, Axis::Z].map(|a| {
        let face = (0..division.stages(a)).map(|s| division.face(a, s)).max().unwrap_or(0);
        (THERE * face).max(FACES * division.faces_after(a).max(division.faces_before(a)))
    });
    let largest = largest.into_iter().max().unwrap_or(0);
    let part = || world.buffer(Kind::Double, largest);
    let stages = f64::from(2 * (2 * division.q + division.qy));
    let work = Work {
        division,
        send: [part(), part()],
        receive: [part(), part()],
        seconds: job.seconds / (stages + 1.0),
    };
    let (local, norm) = (world.buffer(Kind::Double, 5), world.buffer(Kind::Double, 5));
    for step in 1..=job.steps {
        copy_faces(world, &work, &mut seen);
        world.compute(work.seconds);
        solve(world, &work, Axis::X, &mut seen);
        solve(world, &work, Axis::Y, &mut seen);
        solve(world, &work, Axis::Z, &mut seen);
        if step % NORM_EVERY == 0 {
            world.fill(local, seen.value());
            world.allreduce(local, norm, Op::Sum);
            seen.absorb(world.digest(norm));
        }
    }
    seen
}

/// Exchanges the faces of all cells with the up to six neighbours, axis by axis.
fn copy_faces<C: Communicator>(world: &C, work: &Work, seen: &mut Digest) {
    let d = &work.division;
    for (axis, tag) in [(Axis::X, 10), (Axis::Y, 20), (Axis::Z, 30)] {
        let (after, before) = (FACES * d.faces_after(axis), FACES * d.faces_before(axis));
        if d.stages(axis) == 1 {
            continue;
        }
        let (next, previous) = (d.neighbour(axis, 1), d.neighbour(axis, -1));
        let [to_next, to_previous] = [work.send[0].first(after), work.send[1].first(before)];
        let [from_previous, from_next] = [work.receive[0].first(before), work.receive[1].first(after)];
        let from = [
            world.irecv(Receive::exact(from_previous, previous, tag)),
            world.irecv(Receive::exact(from_next, next, tag + 1)),
        ];
        world.fill(to_next, seen.value());
        world.fill(to_previous, seen.value());
        let to = [world.isend(to_next, next, tag), world.isend(to_previous, previous, tag + 1)];
        world.waitall(&mut [from[0], from[1], to[0], to[1]]);
        seen.absorb(world.digest(from_previous));
        seen.absorb(world.digest(from_next));
    }
}

/// Solves along an axis: elimination from the first stage to the last, substitution back.
#[track_caller]
fn solve<C: Communicator>(world: &C, work: &Work, axis: Axis, seen: &mut Digest) {
    nested(world, || {
        let d = &work.division;
        let last = d.stages(axis) - 1;
        let mut sending = None;
        for stage in 0..=last {
            let receive = (stage > 0).then(|| THERE * d.face(axis, stage));
            let send = (stage < last).then(|| THERE * d.face(axis, stage));
            let from = Neighbour { rank: d.neighbour(axis, -1), values: receive };
            let to = Neighbour { rank: d.neighbour(axis, 1), values: send };
            visit(world, work, from, to, &mut sending, seen);
        }
        for stage in (0..=last).rev() {
            let receive = (stage < last).then(|| BACK * d.face(axis, stage));
            let send = (stage > 0).then(|| BACK * d.face(axis, stage));
            let from = Neighbour { rank: d.neighbour(axis, 1), values: receive };
            let to = Neighbour { rank: d.neighbour(axis, -1), values: send };
            visit(world, work, from, to, &mut sending, seen);
        }
    });
}

/// Who has the cell before or after one.
struct Neighbour {
    rank: i32,
    /// Number of values that come from there, or go there, if any do.
    values: Option<i32>,
}

/// Works on one cell. A send goes on until the next cell, which never sends without having received.
#[track_caller]
fn visit<C: Communicator>(
    world: &C,
    work: &Work,
    from: Neighbour,
    to: Neighbour,
    sending: &mut Option<C::Request>,
    seen: &mut Digest,
) {
    const TAG: i32 = 1;
    nested(world, || {
        let pending = from.values.map(|count| {
            let part = work.receive[0].first(count);
            (part, world.irecv(Receive::exact(part, from.rank, TAG)))
        });
        // What does not need the neighbour's cell is done while the message is under way.
        world.compute(0.3 * work.seconds);
        if let Some(mut request) = sending.take() {
            world.wait(&mut request);
        }
        if let Some((part, mut request)) = pending {
            world.wait(&mut request);
            seen.absorb(world.digest(part));
        }
        world.compute(0.7 * work.seconds);
        if let Some(count) = to.values {
            let part = work.send[0].first(count);
            world.fill(part, seen.value());
            *sending = Some(world.isend(part, to.rank, TAG));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn division(me: i32, ranks: i32) -> Division {
        let job = Job { me, ranks, steps: 1, size: 26, seconds: 0.0, seed: 1, open: false };
        Division::new(&job)
    }

    #[test]
    fn neighbours_share_faces() {
        for ranks in [2, 3, 4, 5, 9, 16] {
            for d in (0..ranks).map(|me| division(me, ranks)) {
                for axis in [Axis::X, Axis::Y, Axis::Z] {
                    let next = division(d.neighbour(axis, 1), ranks);
                    assert_eq!(next.neighbour(axis, -1), d.j * d.q + d.i);
                    for s in 0..d.stages(axis) - 1 {
                        assert_eq!(d.face(axis, s), next.face(axis, s + 1), "{d:?} {axis:?} {s}");
                    }
                    assert_eq!(d.faces_after(axis), next.faces_before(axis));
                }
            }
        }
    }

    #[test]
    fn cells_fill_the_domain() {
        for ranks in [1, 2, 4, 9] {
            let of = |d: Division| -> i32 { (0..d.q).map(|s| d.face(Axis::Z, s) * share(26, d.q, s)).sum() };
            assert_eq!((0..ranks).map(|me| of(division(me, ranks))).sum::<i32>(), 26 * 26 * 26);
        }
    }
}
