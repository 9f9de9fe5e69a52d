//! Conjugate gradients on a two-dimensional partition of the matrix: rows are summed by exchanges with exclusive-or
//! partners, vectors are redistributed by an exchange with the transposed rank.
//!
//! Source: communication structure of CG, NAS Parallel Benchmarks 3.3, `setup_proc_info` and `conj_grad`.

use crate::{Communicator, Digest, Job, Kind, Part, Receive, nested};

/// Iterations of the inner solver.
const ITERATIONS: i32 = 8;
/// All messages have one tag: receives are posted before the sends that they match.
const TAG: i32 = 1;

/// A rank's partners.
struct Partners {
    /// Of the sums over a row, in order.
    row: Vec<i32>,
    /// Of the redistribution; may be the rank itself.
    transposed: i32,
}

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let partners = partners(job.me, job.ranks);
    let (out, back) = (world.buffer(Kind::Double, job.size), world.buffer(Kind::Double, job.size));
    let compute = job.seconds / f64::from(ITERATIONS + 1);
    for _ in 0..job.steps {
        dot(world, &partners, out, back, &mut seen);
        for _ in 0..ITERATIONS {
            multiply(world, &partners, out, back, compute, &mut seen);
            dot(world, &partners, out, back, &mut seen);
            dot(world, &partners, out, back, &mut seen);
        }
        multiply(world, &partners, out, back, compute, &mut seen);
        dot(world, &partners, out, back, &mut seen);
    }
    seen
}

/// Matrix times vector: the sum over the row, then the redistribution.
#[track_caller]
fn multiply<C: Communicator>(
    world: &C,
    partners: &Partners,
    out: Part,
    back: Part,
    seconds: f64,
    seen: &mut Digest,
) {
    nested(world, || {
        world.compute(seconds);
        for &partner in &partners.row {
            exchange(world, partner, out, back, seen);
        }
        if !partners.row.is_empty() {
            exchange(world, partners.transposed, out, back, seen);
        }
    });
}

/// A dot product: one number summed over the row.
#[track_caller]
fn dot<C: Communicator>(world: &C, partners: &Partners, out: Part, back: Part, seen: &mut Digest) {
    nested(world, || {
        for &partner in &partners.row {
            exchange(world, partner, out.first(1), back.first(1), seen);
        }
    });
}

#[track_caller]
fn exchange<C: Communicator>(world: &C, partner: i32, out: Part, back: Part, seen: &mut Digest) {
    nested(world, || {
        world.fill(out, seen.value());
        let mut request = world.irecv(Receive::exact(back, partner, TAG));
        world.send(out, partner, TAG);
        world.wait(&mut request);
        seen.absorb(world.digest(back));
    });
}

/// Partners of a rank of a power of two ranks: as many columns as rows, or twice as many.
fn partners(me: i32, ranks: i32) -> Partners {
    let log = ranks.trailing_zeros();
    let rows = 1 << (log / 2);
    let columns = ranks / rows;
    let mut row = Vec::new();
    let mut bit = columns / 2;
    while bit > 0 {
        row.push(me ^ bit);
        bit /= 2;
    }
    let transposed = if rows == columns {
        (me % rows) * rows + me / rows
    } else {
        2 * ((me / 2 % rows) * rows + me / 2 / rows) + me % 2
    };
    Partners { row, transposed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_are_mutual() {
        for ranks in [1, 2, 4, 8, 16, 32, 1024] {
            for me in 0..ranks {
                let p = partners(me, ranks);
                assert!((0..ranks).contains(&p.transposed));
                assert_eq!(partners(p.transposed, ranks).transposed, me);
                for (i, &q) in p.row.iter().enumerate() {
                    assert_eq!(partners(q, ranks).row[i], me);
                }
            }
        }
    }

    #[test]
    fn partners_are_those_of_the_source() {
        let p = partners(5, 16);
        assert_eq!((p.row, p.transposed), (vec![7, 4], 5));
        let p = partners(6, 32);
        assert_eq!((p.row, p.transposed), (vec![2, 4, 7], 24));
    }
}
