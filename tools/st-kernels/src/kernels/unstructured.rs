//! Conjugate gradients with the sparse matrix of an unstructured mesh that a partitioner has cut: who a rank's neighbours
//! are, and how many values it sends each, follows no rule but that a neighbour's neighbour is the rank itself.
//!
//! Parts are numbered as recursive bisection numbers them: most neighbours of a part have numbers near its own, some far
//! off. Whether two ranks are neighbours, and what each sends, is drawn from both numbers alone, so that either knows it.

use crate::chance::draw_below;
use crate::{Communicator, Digest, Job, Kind, Op, Part, Receive};

/// Topics of random numbers.
const NEIGHBOURS: u32 = 50;
const VALUES: u32 = 51;
const ROWS: u32 = 52;
/// How far off in number a neighbour may be, and in how many cases of ten it is one.
const NEAR: [(i32, i32); 9] = [(1, 9), (2, 6), (3, 4), (4, 3), (7, 3), (8, 2), (15, 2), (16, 2), (61, 1)];
/// Steps from one look at how far off the solution is to the next.
const RESIDUAL_EVERY: i32 = 10;
/// Tags of how many values there are, and of values.
const COUNT: i32 = 1;
const HALO: i32 = 2;

/// A neighbour, and what is exchanged with it.
struct Border {
    rank: i32,
    send: Part,
    receive: Part,
}

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let borders: Vec<Border> = neighbours(job).map(|rank| border(world, job, rank)).collect();
    agree(world, &borders);
    let (local, global) = (world.buffer(Kind::Double, 1), world.buffer(Kind::Double, 1));
    // Parts have nearly as many rows: up to a tenth more.
    let rows = 1.0 + f64::from(draw_below(101, job.seed, ROWS, job.me, 0)) / 1000.0;
    for step in 1..=job.steps {
        let mut requests = Vec::with_capacity(2 * borders.len());
        for b in &borders {
            requests.push(world.irecv(Receive::exact(b.receive, b.rank, HALO)));
        }
        for b in &borders {
            world.fill(b.send, seen.value());
            requests.push(world.isend(b.send, b.rank, HALO));
        }
        world.waitall(&mut requests);
        for b in &borders {
            seen.absorb(world.digest(b.receive));
        }
        world.compute(job.seconds * rows);
        // Two scalar products a step, and the norm of what is left now and then.
        for _ in 0..2 {
            reduce(world, local, global, &mut seen);
        }
        if step % RESIDUAL_EVERY == 0 {
            reduce(world, local, global, &mut seen);
        }
    }
    seen
}

fn reduce<C: Communicator>(world: &C, local: Part, global: Part, seen: &mut Digest) {
    world.fill(local, seen.value());
    world.allreduce(local, global, Op::Sum);
    seen.absorb(world.digest(global));
}

/// Neighbours tell each other how many values each will send.
fn agree<C: Communicator>(world: &C, borders: &[Border]) {
    let (out, back) = (world.buffer(Kind::Int, 1), world.buffer(Kind::Int, 1));
    for b in borders {
        world.sendrecv(out, b.rank, COUNT, Receive::exact(back, b.rank, COUNT));
    }
}

/// Ranks whose parts border on this one's, ascending.
fn neighbours(job: &Job) -> impl Iterator<Item = i32> {
    let below = NEAR.into_iter().rev().map(|(off, of_ten)| (-off, of_ten));
    let (me, ranks, seed) = (job.me, job.ranks, job.seed);
    below.chain(NEAR).filter_map(move |(off, of_ten): (i32, i32)| {
        let rank = me.checked_add(off).filter(|rank| (0..ranks).contains(rank))?;
        (draw_below(10, seed, NEIGHBOURS, me.min(rank), me.max(rank)) < of_ten).then_some(rank)
    })
}

fn border<C: Communicator>(world: &C, job: &Job, rank: i32) -> Border {
    let values = |from, to| job.size / 4 + draw_below(job.size, job.seed, VALUES, from, to);
    let part = |n: i32| world.buffer(Kind::Double, n.max(1));
    Border { rank, send: part(values(job.me, rank)), receive: part(values(rank, job.me)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbours_neighbour_is_the_rank_itself() {
        let job = |me| Job { me, ranks: 90, steps: 1, size: 1, seconds: 0.0, seed: 7, open: false };
        let all: Vec<Vec<i32>> = (0..90).map(|me| neighbours(&job(me)).collect()).collect();
        for (me, of) in (0i32..).zip(&all) {
            assert!(of.is_sorted() && !of.contains(&me));
            assert!(of.iter().all(|&rank| all[usize::try_from(rank).unwrap()].contains(&me)), "{me}: {of:?}");
        }
        let numbers: Vec<usize> = all.iter().map(Vec::len).collect();
        assert!(numbers.iter().any(|&n| n < 4) && numbers.iter().any(|&n| n > 6), "{numbers:?}");
    }
}
