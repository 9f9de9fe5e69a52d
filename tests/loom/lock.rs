//! The recorder's lock under the orders that its threads' steps can have, and what each may see of the others' writes.
#![cfg(test)]
#![allow(dead_code, reason = "what the recorder uses")]

use loom::cell::Cell;
use loom::sync::Arc;

mod lock {
    include!(concat!(env!("OUT_DIR"), "/lock.rs"));
}
use lock::Lock;

const MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED: i32 = 0;
const MEMBARRIER_CMD_PRIVATE_EXPEDITED: i32 = 0;
const MEMBARRIER_CMD_GLOBAL: i32 = 0;

/// The owner takes it so many times, each of the others once: nobody is inside with another, and nothing is lost. (The cell
/// fails if two are in it, or if one does not see what the one before has done.)
fn turns(owner: usize, others: usize) {
    let mut model = loom::model::Builder::new();
    // Threads that wait can do so in endless orders: at most so many turns are taken from a thread that could go on.
    (model.preemption_bound, model.max_branches) = (Some(2), 100_000);
    model.check(move || {
        let lock = Lock::new(Cell::new(0));
        lock.begin_bias();
        let lock = Arc::new(lock);
        let add = |lock: &Lock<Cell<usize>>, owns| {
            let guard = lock.lock(owns);
            guard.set(guard.get() + 1);
        };
        let started: Vec<_> = (0..others)
            .map(|_| {
                let lock = lock.clone();
                loom::thread::spawn(move || add(&lock, false))
            })
            .collect();
        (0..owner).for_each(|_| add(&lock, true));
        started.into_iter().for_each(|s| s.join().unwrap());
        assert_eq!(lock.lock(true).get(), owner + others);
    });
}

#[test]
fn the_bias_ends_while_the_owner_comes_and_goes() {
    turns(1, 1);
    turns(2, 1);
}

#[test]
fn two_others_come_at_once() {
    turns(1, 2);
}
