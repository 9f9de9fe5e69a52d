//! What commands print fits 80 columns: sentences as well as tables.

use crate::common::{kernel, printed, with_slow, write};
use clap::Parser as _;
use st_kernels::{Kernel, Slow};
use st_stat::args::Args;

const COMMANDS: [&str; 20] = [
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
];

/// Lines that are too wide.
fn wide(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.chars().count() > 80).collect()
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
