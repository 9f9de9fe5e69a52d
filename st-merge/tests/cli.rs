//! The program and who starts it.
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use std::process::{Command, Output};

fn process(rank: &str) -> Output {
    let job = [("PMI_RANK", rank), ("PMI_SIZE", "2")];
    Command::new(env!("CARGO_BIN_EXE_st-merge")).arg("-").envs(job).output().unwrap()
}

#[test]
fn started_by_mpirun_it_says_once_that_it_is_one_process() {
    let (first, second) = (process("0"), process("1"));
    let said = String::from_utf8_lossy(&first.stderr);
    assert!(said.contains("the launcher started 2 processes, but st-merge is one"), "{said}");
    assert_eq!((first.status.code(), second.status.code()), (Some(2), Some(2)));
    assert_eq!(String::from_utf8_lossy(&second.stderr), "");
}
