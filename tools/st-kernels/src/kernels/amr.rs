//! An adaptive mesh on a line of ranks: work moves through the domain, and from time to time neighbours hand each other
//! blocks to even it out. Each block that a rank has at a border sends a message of its own.
//!
//! What is handed over follows from the step and the border alone, so that each rank knows its neighbours' blocks.

use crate::chance::draw_below;
use crate::{Communicator, Digest, Job, Kind, Op, Receive};
use st_model::num::narrow;

/// Blocks that a rank has at first, and that it always keeps.
const BLOCKS: i32 = 8;
const LEAST: i32 = 2;
/// Steps from one rebalancing to the next.
const REBALANCE_EVERY: i32 = 8;
/// Blocks that a border hands over at most.
const MOST: i32 = 3;
/// Topic of random numbers.
const MOVES: u32 = 40;
/// Tags: of halos the number of the block, from here on of blocks handed over.
const HANDED: i32 = 100;

/// Blocks of the ranks near this one, after so many rebalancings.
struct Blocks {
    /// Rank of the first.
    first: i32,
    of: Vec<i32>,
}

impl Blocks {
    /// What is needed to know the neighbours' blocks after so many rebalancings: each looks one rank further.
    fn new(job: &Job, rounds: i32) -> Self {
        let first = (job.me - 2 - rounds).max(0);
        let last = job.me.saturating_add(2 + rounds).min(job.ranks - 1);
        Self { first, of: (first..=last).map(|_| BLOCKS).collect() }
    }
    fn of(&self, rank: i32) -> i32 {
        let at = usize::try_from(rank - self.first).ok();
        at.and_then(|at| self.of.get(at)).copied().unwrap_or(BLOCKS)
    }
    /// Number of blocks that rank `border` hands to the next rank in a rebalancing; negative the other way.
    ///
    /// Even borders move in even rounds and odd ones in odd rounds, so that a rank deals with one neighbour at a time.
    fn moved(&self, job: &Job, round: i32, border: i32) -> i32 {
        if border < 0 || border + 1 >= job.ranks || (border + round) % 2 != 0 {
            return 0;
        }
        let wish = draw_below(2 * MOST + 1, job.seed, MOVES, round, border) - MOST;
        wish.clamp(LEAST - self.of(border + 1), self.of(border) - LEAST)
    }
    fn rebalance(&mut self, job: &Job, round: i32) {
        let ranks = self.first..self.first.saturating_add(narrow(self.of.len()));
        let after = |r| self.of(r) + self.moved(job, round, r - 1) - self.moved(job, round, r);
        self.of = ranks.map(after).collect();
    }
}

pub(super) fn run<C: Communicator>(world: &C, job: &Job, mut seen: Digest) -> Digest {
    let rounds = job.steps / REBALANCE_EVERY;
    let room = (BLOCKS + MOST * rounds).saturating_mul(job.size);
    let (out, back) = (world.buffer(Kind::Double, room), world.buffer(Kind::Double, 2 * room));
    let (load, most) = (world.buffer(Kind::Int, 1), world.buffer(Kind::Int, 1));
    let mut blocks = Blocks::new(job, rounds);
    let neighbours = [job.me - 1, job.me + 1].map(|r| (0..job.ranks).contains(&r).then_some(r));
    for step in 1..=job.steps {
        let mine = blocks.of(job.me);
        world.fill(out, seen.value());
        let mut requests = Vec::new();
        let mut received = Vec::new();
        for (rank, side) in neighbours.into_iter().zip(0..) {
            let Some(rank) = rank else { continue };
            for block in 0..blocks.of(rank) {
                let part = back.slice(side * room + block * job.size, job.size);
                requests.push(world.irecv(Receive::exact(part, rank, block)));
                received.push(part);
            }
        }
        for rank in neighbours.into_iter().flatten() {
            for block in 0..mine {
                requests.push(world.isend(out.slice(block * job.size, job.size), rank, block));
            }
        }
        world.waitall(&mut requests);
        received.into_iter().for_each(|part| seen.absorb(world.digest(part)));
        world.compute(job.seconds * f64::from(mine) / f64::from(BLOCKS));
        if step % REBALANCE_EVERY == 0 {
            world.fill(load, job.seed);
            world.allreduce(load, most, Op::Max);
            let round = step / REBALANCE_EVERY;
            for (border, rank) in [(job.me - 1, job.me - 1), (job.me, job.me + 1)] {
                let n = blocks.moved(job, round, border);
                let gives = (n > 0) == (rank > job.me);
                for block in 0..n.abs() {
                    let tag = HANDED + block;
                    if gives {
                        world.send(out.first(job.size), rank, tag);
                    } else {
                        world.recv(Receive::exact(back.first(job.size), rank, tag));
                        seen.absorb(world.digest(back.first(job.size)));
                    }
                }
            }
            blocks.rebalance(job, round);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_agree_on_blocks() {
        let job = |me| Job { me, ranks: 40, steps: 40, size: 1, seconds: 0.0, seed: 7, open: false };
        let mut all: Vec<Blocks> = (0..40).map(|me| Blocks::new(&job(me), 5)).collect();
        for round in 1..=5 {
            all.iter_mut().zip(0..).for_each(|(b, me)| b.rebalance(&job(me), round));
        }
        let own: Vec<i32> = all.iter().zip(0..).map(|(b, me)| b.of(me)).collect();
        assert_eq!(own.iter().sum::<i32>(), 40 * BLOCKS);
        assert!(own.iter().all(|n| *n >= LEAST) && own.iter().any(|n| *n != BLOCKS), "{own:?}");
        for (b, me) in all.iter().zip(0i32..) {
            for rank in [me - 1, me + 1].into_iter().filter(|r| (0..40).contains(r)) {
                assert_eq!(b.of(rank), own[usize::try_from(rank).unwrap_or(0)]);
            }
        }
    }
}
