//! The frame around every kernel.

use crate::{Communicator, Digest, Job, Kernel, Kind, Op, Options};

/// What a run came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// This rank.
    pub rank: i32,
    /// Number of ranks.
    pub ranks: i32,
    /// Checksum over all that all ranks received. Only rank 0's means anything.
    pub checksum: u64,
}

/// Runs a kernel on this rank, from `MPI_Init` to `MPI_Finalize`, if `accept` lets it run on so many ranks.
///
/// # Errors
///
/// What `accept` says; MPI is then finalised again.
pub fn execute<C: Communicator, E>(
    world: &C,
    kernel: Kernel,
    options: &Options,
    accept: impl FnOnce(i32) -> Result<(), E>,
) -> Result<Outcome, E> {
    if kernel == Kernel::Threads {
        world.init_thread();
    } else {
        world.init();
    }
    let rank = world.rank();
    let ranks = world.size();
    if let Err(reason) = accept(ranks) {
        world.finalize();
        return Err(reason);
    }
    let job = Job::new(kernel, options, rank, ranks);
    let seen = kernel.run(world, &job, Digest::new(options.seed, rank));
    let mine = world.buffer(Kind::Long, 1);
    let total = world.buffer(Kind::Long, 1);
    world.fill(mine, seen.value());
    world.reduce(mine, total, Op::Sum, 0);
    let checksum = world.digest(total);
    world.finalize();
    Ok(Outcome { rank, ranks, checksum })
}
