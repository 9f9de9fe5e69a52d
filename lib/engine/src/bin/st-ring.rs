//! A ring through the safe interface of the `mpi` crate: a Rust program for the tests to record.
#![expect(clippy::print_stdout, clippy::panic, reason = "a program to be recorded")]

use mpi::collective::SystemOperation;
use mpi::request::{WaitGuard, scope};
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};

const TURNS: i64 = 20;

fn main() {
    let Some(universe) = mpi::initialize() else { panic!("MPI is initialised already") };
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let (next, before) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut token = i64::from(rank);
    for turn in 0..TURNS {
        let mut got = -1_i64;
        scope(|s| {
            let _sent = WaitGuard::from(world.process_at_rank(next).immediate_send(s, &token));
            world.process_at_rank(before).receive_into(&mut got);
        });
        token = got;
        if turn % 5 == 0 {
            let _guard = WaitGuard::from(world.immediate_barrier());
        }
    }
    let expected = (i64::from(rank) - TURNS).rem_euclid(i64::from(size));
    let half = world.split_by_color(mpi::topology::Color::with_value(rank % 2));
    let members = half.map_or(0, |h| h.size());
    let (mut right, mut all) = (0, 0);
    world.all_reduce_into(&i32::from(token == expected), &mut right, SystemOperation::sum());
    world.all_reduce_into(&members, &mut all, SystemOperation::max());
    if rank == 0 {
        println!("ring {} {all}", right == size);
    }
}
