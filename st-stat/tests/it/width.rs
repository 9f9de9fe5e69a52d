//! What commands print fits 80 columns, and 60: sentences as well as tables.

use std::path::Path;
use std::process::Command;

use crate::common::{kernel, printed, with_slow, write};
use clap::Parser as _;
use st_kernels::{Kernel, Slow};
use st_stat::args::Args;

const COMMANDS: [&str; 25] = [
    "calls",
    "calls --spread",
    "why --all",
    "waits",
    "waits --by pair",
    "delays",
    "path",
    "efficiency",
    "predict",
    "ranks",
    "phases",
    "at 0.001",
    "between 0 0.01",
    "matrix",
    "messages",
    "leaks",
    "hist MPI_Allreduce",
    "violations",
    "clusters",
    "timeline",
    "sizes",
    "sizes --by frame",
    "sizes --by parameter",
    "forecast",
    "calls --stacks",
];

/// Lines that are too wide.
fn wide(text: &str) -> Vec<&str> {
    wider(text, 80)
}

fn wider(text: &str, width: usize) -> Vec<&str> {
    text.lines().filter(|line| line.chars().count() > width).collect()
}

/// What a command prints where there are so many columns.
fn printed_in(columns: usize, words: &[&str], traces: &[&Path]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_st-stat"));
    let out =
        command.args(words).arg("-q").args(traces).env("COLUMNS", columns.to_string()).output().unwrap();
    assert!(out.stderr.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn what_is_printed_in_60_columns_fits() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a.st", "b.st"].map(|name| dir.path().join(name));
    let late = [Slow { rank: 2, factor: 3.0 }];
    write(&a, with_slow(Kernel::Stencil2d, 9, 30, &late));
    write(&b, with_slow(Kernel::Ocean, 9, 8, &late));
    for trace in [&a, &b] {
        for command in COMMANDS.iter().chain(&[""]) {
            let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
            let text = printed_in(60, &words, &[trace]);
            assert_eq!(wider(&text, 60), [""; 0], "{command}: {text}");
        }
    }
    for words in [&["diff"][..], &["diff", "--sites"], &["diff", "--time", "--all"]] {
        let text = printed_in(60, words, &[&b, &b]);
        assert_eq!(wider(&text, 60), [""; 0], "{words:?}: {text}");
    }
}

#[test]
fn of_a_stack_that_does_not_fit_the_innermost_frame_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("a.st");
    write(&trace, kernel(Kernel::Ocean, 4, 5));
    for columns in [60, 80, 100] {
        let text = printed_in(columns, &["calls", "--stacks"], &[&trace]);
        let line =
            text.lines().find(|line| line.starts_with("MPI_Allreduce") && line.contains("ocean")).unwrap();
        assert!(line.contains("  ocean.rs:227:19"), "{columns}: {line}");
    }
}

#[test]
fn what_is_printed_of_a_trace_fits() {
    let late = [Slow { rank: 2, factor: 3.0 }];
    for program in [with_slow(Kernel::Ocean, 9, 8, &late), with_slow(Kernel::Stencil2d, 9, 30, &late)] {
        for command in COMMANDS {
            let words: Vec<&str> = command.split(' ').collect();
            let text = printed(program.clone(), &words);
            assert_eq!(wide(&text), [""; 0], "{command}: {text}");
        }
    }
}

#[test]
fn what_is_printed_of_two_traces_fits() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, out] = ["a.st", "b.st", "out"].map(|name| dir.path().join(name));
    write(&a, kernel(Kernel::Ocean, 4, 5));
    write(&b, with_slow(Kernel::Ocean, 16, 30, &[Slow { rank: 1, factor: 9.0 }]));
    let [a, b, to] = [&a, &b, &out].map(|path| path.to_str().unwrap());
    for options in [&["--time", "--all"][..], &["--time"], &[]] {
        let words = [&["st-stat", "diff", "-q", "-o", to, a, b], options].concat();
        // Whether they differ is not asked.
        let _ = st_stat::run(&Args::try_parse_from(words).unwrap()).unwrap();
        let text = std::fs::read_to_string(&out).unwrap();
        assert_eq!(wide(&text), [""; 0], "{options:?}: {text}");
    }
}
