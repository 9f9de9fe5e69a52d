//! Where everything comes back: an archive of OTF2 is the same trace again, call by call, with objects, times and call sites.

use std::process::Command;

use crate::common::{Made, kernel_of};
use crate::import::lines_of;
use crate::otf2::THREADS;
use crate::otf2_import::{IN_PLACE, LITTLE, SHARED, is_there, of_ranks};
use crate::strict;
use clap::ValueEnum as _;
use serde_json::{Map, Value};
use st_kernels::Kernel;

/// What a trace is: its lines, with what call sites are in the place of their numbers.
fn told(made: &Made, name: &str) -> Vec<Map<String, Value>> {
    let lines = lines_of(&made.path(name), &made.path("lines"), &[]);
    let all = lines.lines().map(|line| serde_json::from_str::<Map<_, _>>(line).unwrap());
    let (sites, mut rest): (Vec<_>, Vec<_>) = all.partition(|line| {
        line.contains_key("site") && !line.contains_key("call") && !line.contains_key("ended")
    });
    // Who has read it adds a step; objects that no call names are not read.
    rest.retain(|line| {
        !line.contains_key("step") && line.get("group").is_none_or(|g| g != "MPI_GROUP_EMPTY")
    });
    for site in rest.iter_mut().filter_map(|line| line.get_mut("site")) {
        if let Some(of) = sites.iter().find(|line| line["site"] == *site) {
            let mut of = of.clone();
            of.remove("site");
            *site = Value::Object(of);
        }
    }
    rest
}

/// Whether the library is there; the trace must come back from an archive as it was, and nothing may be said to be lost.
fn comes_back(made: &Made, what: &str) -> bool {
    let output = made.run(&["--strict", "-o", "round.otf2"]);
    if !is_there(&output) {
        return false;
    }
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    let mut command = Command::new(env!("CARGO_BIN_EXE_st-convert"));
    command.current_dir(made.directory.path()).args(["--strict", "round.otf2", "-o", "round.st"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("warning"), "{what}: {said}");
    let [first, second] = ["app.st", "round.st"].map(|name| told(made, name));
    let differ = first.iter().zip(&second).find(|(a, b)| a != b);
    assert!(differ.is_none() && first.len() == second.len(), "{what}: {differ:#?}");
    true
}

#[test]
fn an_archive_of_a_kernel_is_the_same_trace_again() {
    for which in Kernel::value_variants() {
        if !comes_back(&kernel_of(*which, 4), &format!("{which:?}")) {
            return;
        }
    }
}

#[test]
fn an_archive_of_calls_of_all_kinds_is_the_same_trace_again() {
    for (lines, what) in
        [(SHARED, "shared"), (THREADS, "threads"), (LITTLE, "little"), (&of_ranks(IN_PLACE, 4), "in place")]
    {
        if !comes_back(&Made::of_lines(lines), what) {
            return;
        }
    }
    comes_back(&strict::all(), "all");
}

/// Ends of ranks that stop, errors, sends and receives in one, messages in parts, series of polls, and a function that nobody knows.
const ODD: &str = r#"
{"header":{"world":1,"program":"app"}}
{"site":0,"label":"a \"quoted\" place: äöü"}
{"rank":0,"call":"MPI_Init","enter":0,"exit":1}
{"rank":0,"call":"MPI_Send","site":0,"count":-1,"type":"MPI_INT","dest":0,"tag":1,"comm":"MPI_COMM_WORLD","error":"MPI_ERR_COUNT","enter":2,"exit":3}
{"rank":0,"call":"MPI_Isendrecv","site":0,"sendcount":9,"sendtype":"MPI_INT","dest":0,"sendtag":5,"recvcount":10,"recvtype":"MPI_INT","source":0,"recvtag":5,"comm":"MPI_COMM_WORLD","request":0,"bytes":36,"enter":4,"exit":5}
{"rank":0,"call":"MPI_Test","request":0,"flag":false,"completed":[],"times":7,"enter":6,"exit":7}
{"rank":0,"call":"MPI_Wait","requests":[0],"completed":[{"request":0,"source":0,"tag":5,"bytes":36}],"enter":8,"exit":9}
{"rank":0,"call":"MPI_Psend_init","partitions":12,"count":5,"type":"MPI_INT","dest":0,"tag":3,"comm":"MPI_COMM_WORLD","request":0,"bytes":240,"enter":10,"exit":11}
{"rank":0,"call":"MPIX_Harvest","enter":12,"exit":13}
{"ended":0,"thread":0,"inside":"MPI_Recv","site":0,"entered":14}
"#;

#[test]
fn what_is_odd_comes_back() {
    comes_back(&Made::of_lines(ODD), "odd");
}

#[test]
fn each_call_of_a_series_of_polls_is_counted_or_it_is_said_that_it_is_not() {
    let made = Made::of_lines(ODD);
    let said = |words: &[&str]| String::from_utf8(made.run(words).stderr).unwrap();
    let whole = said(&["-o", "whole.csv"]);
    assert!(whole.starts_with("st-convert: 13 calls of 1 thread, some "), "{whole}");
    let part = said(&["--until", "0.000000008", "-o", "part.csv"]);
    assert!(part.starts_with("st-convert: 4 calls (a series of polls is one) of 1 thread"), "{part}");
    lines_of(&made.path("app.st"), &made.path("app.jsonl"), &[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_st-convert"));
    command.current_dir(made.directory.path()).args(["app.jsonl", "-o", "back.st"]);
    let back = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(back.starts_with("st-convert: 13 calls of 1 rank, read from json"), "{back}");
}

#[test]
fn ranks_that_are_chosen_come_back_as_those_that_they_are() {
    let made = kernel_of(Kernel::Stencil2d, 4);
    if !is_there(&made.run(&["--ranks", "1,3", "--strict", "-o", "round.otf2"])) {
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_st-convert"));
    command.current_dir(made.directory.path()).args(["-q", "round.otf2", "-o", "round.st"]);
    assert!(command.output().unwrap().status.success());
    let calls = |name: &str| {
        let of = |line: &Map<String, Value>| {
            line.contains_key("call") && [1, 3].contains(&line["rank"].as_u64().unwrap())
        };
        told(&made, name).into_iter().filter(of).collect::<Vec<_>>()
    };
    let back = calls("round.st");
    assert!(!back.is_empty() && calls("app.st") == back);
    assert_eq!(back.len(), told(&made, "round.st").iter().filter(|line| line.contains_key("call")).count());
}

#[test]
fn more_ranks_than_files_can_be_open_go_there_and_back() {
    let made = kernel_of(Kernel::Stencil1d, 64);
    if !is_there(&made.run(&["-o", "round.otf2"])) {
        return;
    }
    let few = |words: &str| {
        let mut shell = Command::new("sh");
        let line = format!("ulimit -n 32; exec \"$0\" -q {words}");
        let output = shell
            .current_dir(made.directory.path())
            .args(["-c", &line, env!("CARGO_BIN_EXE_st-convert")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    };
    few("app.st -o few.otf2");
    few("few.otf2 -o round.st");
    assert_eq!(told(&made, "app.st"), told(&made, "round.st"));
}
