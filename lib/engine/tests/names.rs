//! The engine is the program by whose name it is started.
#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

fn started_as(name: &str, option: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_st-engine")).arg0(name).arg(option).output().unwrap()
}

#[test]
fn it_is_each_program_by_its_name() {
    for name in ["st-cluster", "st-merge", "st-replay", "st-sync"] {
        let output = started_as(name, "--version");
        assert!(output.status.success(), "{name}: {output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn by_its_own_name_it_says_what_to_start() {
    let output = started_as("lib/st/openmpi/st-engine", "--version");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("st-engine: this is what st-cluster, st-merge, st-replay, st-sync become"),
        "{said}"
    );
    assert!(output.stdout.is_empty(), "{said}");
}
