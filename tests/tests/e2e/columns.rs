//! Traces beside flat columns of what they hold, under a strong general coder.

use std::time::Duration;

use st_cli::Mpi;
use st_tests::jobs::Job;
use st_tests::process::{Outcome, Run};
use st_tests::{conclude, place};

/// Structure and parameters of each kernel take no more than flat columns of equal content under xz, and the exact times of
/// all kernels no more than their gaps and durations: on 16 ranks under Open MPI, and on paper, where times are not real.
#[test]
fn no_trace_is_larger_than_flat_columns() {
    let tool = place::root().join("tools/bench/kernels");
    let run = |args: &[&str]| Run::new(&tool, args).limit(Duration::from_secs(900));
    let real = place::mpis().into_iter().filter(|mpi| *mpi == Mpi::Openmpi);
    let real = real.map(|mpi| Job { mpi, ranks: 16 }.go(run(&["16"])));
    let compared: Vec<_> = real.chain([run(&["--paper", "4", "16"]).go()]).collect();
    let failures: Vec<_> = compared.iter().filter_map(|c| c.clone().and_then(Outcome::ok).err()).collect();
    conclude(compared.len(), &failures);
}
