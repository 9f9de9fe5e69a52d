//! What is written of calls that are told one by one.

use crate::common::Made;
use crate::tables::{Row, csv};

fn column(rows: &[Row], name: &str) -> Vec<String> {
    rows.iter().map(|row| row[name].clone()).collect()
}

/// What was said, without what is left out of parameters.
fn said(made: &Made, words: &[&str]) -> String {
    made.convert(words).1
}

/// Two ranks call functions that nobody knows.
const STRANGERS: &str = r#"{"rank":0,"call":"MPIX_Foo","enter":0,"exit":100,"site":"a.c:1"}
{"rank":0,"call":"MPI_Barrier","enter":200,"exit":300}
{"rank":1,"call":"MPIX_Bar","enter":0,"exit":500,"site":"a.c:1"}
{"rank":1,"call":"MPI_Barrier","enter":600,"exit":700}
"#;

#[test]
fn functions_that_nobody_knows_have_their_own_names() {
    let made = Made::of_lines(STRANGERS);
    let (path, _) = made.convert(&["--level", "summary", "-o", "app.csv"]);
    let functions = column(&csv(&path, "totals"), "function");
    let strangers: Vec<&String> = functions.iter().filter(|name| name.starts_with("MPIX")).collect();
    assert_eq!(strangers, ["MPIX_Foo", "MPIX_Bar"]);
    let (path, _) = made.convert(&["-o", "app.prv"]);
    let names = std::fs::read_to_string(path.with_extension("pcf")).unwrap();
    assert!(names.contains("MPIX_Foo") && names.contains("MPIX_Bar"), "{names}");
}

/// The receive of a message is posted and does not complete.
const OPEN: &str = r#"{"header":{"world":2,"program":"a"}}
{"rank":0,"call":"MPI_Init","enter":0,"exit":10}
{"rank":0,"call":"MPI_Send","dest":1,"tag":7,"bytes":800,"enter":60,"exit":70}
{"ended":0,"thread":0}
{"rank":1,"call":"MPI_Init","enter":0,"exit":10}
{"rank":1,"call":"MPI_Irecv","source":0,"tag":7,"bytes":1000,"request":"r","enter":20,"exit":30}
{"ended":1,"thread":0,"inside":"MPI_Waitall","entered":500}
"#;

#[test]
fn receives_that_do_not_complete_are_what_is_said() {
    let made = Made::of_lines(OPEN);
    for to in ["app.csv", "app.json", "app.pftrace", "app.prv"] {
        let said = said(&made, &["-o", to]);
        assert!(said.contains("1 messages whose receive is not seen to complete"), "{to}: {said}");
        assert!(!said.contains("is not there"), "{to}: {said}");
    }
    for to in ["app.cubex", "app.ti", "app.goal"] {
        let said = said(&made, &["-o", to]);
        assert!(!said.contains("is not there") && !said.contains("wildcard"), "{to}: {said}");
    }
    let played = std::fs::read_to_string(made.path("app.ti").join("rank-000001.txt")).unwrap();
    assert!(played.contains("1 irecv 0 0 1000\n"), "{played}");
}

#[test]
fn sends_that_one_with_a_wildcard_may_have_taken_are_not_without_receive() {
    let made = Made::of_lines(
        r#"{"rank":0,"call":"MPI_Irecv","source":"MPI_ANY_SOURCE","tag":"MPI_ANY_TAG","bytes":8,"request":"w","enter":1,"exit":2}
{"rank":0,"call":"MPI_Recv","source":1,"tag":7,"bytes":8,"enter":10,"exit":30}
{"rank":1,"call":"MPI_Send","dest":0,"tag":7,"bytes":8,"enter":10,"exit":20}
"#,
    );
    let said = said(&made, &["-o", "app.csv"]);
    assert!(said.contains("1 sends whose receive is not known: one with a wildcard has not completed"));
    assert!(said.contains("1 receives whose send is not known: one with a wildcard has not completed"));
    assert!(!said.contains("is not there"), "{said}");
}

#[test]
fn what_is_played_has_no_tags_and_sizes_that_nobody_knows() {
    let made = Made::of_lines(
        r#"{"rank":0,"call":"MPI_Send","dest":1,"tag":7,"bytes":800,"enter":1000,"exit":1500}
{"rank":0,"call":"MPI_Send","dest":1,"tag":8,"bytes":8,"enter":2000,"exit":2500}
{"rank":1,"call":"MPI_Recv","source":0,"tag":"MPI_ANY_TAG","bytes":800,"enter":900,"exit":5000}
{"rank":1,"call":"MPI_Recv","source":0,"tag":8,"count":16,"enter":5000,"exit":6000}
"#,
    );
    let (path, said) = made.convert(&["-o", "app.ti"]);
    assert!(said.contains("1 receives whose tag is not known"), "{said}");
    let played = std::fs::read_to_string(path.join("rank-000001.txt")).unwrap();
    assert_eq!(played.matches(" recv ").count(), 1, "{played}");
    assert!(played.lines().any(|line| line.starts_with("1 recv 0 ") && line.ends_with(" 16")), "{played}");
}

#[test]
fn a_receive_from_nobody_knows_whom_counts_once() {
    let made = Made::of_lines(
        r#"{"rank":0,"call":"MPI_Recv","source":"MPI_ANY_SOURCE","tag":7,"bytes":8,"enter":10,"exit":20}"#,
    );
    let said = said(&made, &["-o", "app.ti"]);
    assert!(said.contains("1 receives whose source is not known"), "{said}");
    assert!(!said.contains("not converted"), "{said}");
}

/// A receive that waits for seconds.
const LATE: &str = r#"{"rank":0,"call":"MPI_Init","enter":0,"exit":10}
{"rank":0,"call":"MPI_Send","dest":1,"tag":7,"bytes":800,"enter":5000000000,"exit":5000001000}
{"rank":1,"call":"MPI_Init","enter":0,"exit":10}
{"rank":1,"call":"MPI_Recv","source":0,"tag":7,"bytes":800,"enter":1000,"exit":9000000000}
{"rank":1,"call":"MPI_Barrier","comm":"MPI_COMM_SELF"}
"#;

#[test]
fn a_window_has_the_waits_of_its_calls_and_no_call_without_times() {
    let timed = LATE.lines().filter(|line| line.contains("enter")).collect::<Vec<_>>().join("\n");
    let made = Made::of_lines(&timed);
    let (path, _) = made.convert(&["--waits", "--from", "7", "-o", "app.csv"]);
    assert!(column(&csv(&path, "events"), "function").contains(&"MPI_Recv".to_owned()));
    assert_eq!(column(&csv(&path, "waits"), "wait_ns"), ["4999999000"]);
    let made = Made::of_lines(LATE);
    let (path, said) = made.convert(&["--from", "2", "-o", "app.csv"]);
    assert!(!column(&csv(&path, "events"), "function").contains(&"MPI_Barrier".to_owned()));
    assert!(said.contains("calls whose times are not known"), "{said}");
}

#[test]
fn records_of_paraver_have_nodes_of_the_ranks_that_are_written_and_polls_that_are_one() {
    let made = Made::of_lines(
        r#"{"header":{"world":3,"program":"app"}}
{"host":"alpha","ranks":[0]}
{"host":"beta","ranks":[1]}
{"rank":0,"call":"MPI_Init","enter":0,"exit":10}
{"rank":1,"call":"MPI_Init","enter":0,"exit":10}
{"rank":1,"call":"MPI_Test","request":null,"flag":false,"times":1000,"enter":20,"exit":1000}
{"rank":2,"call":"MPI_Init","enter":0,"exit":10}
"#,
    );
    let (path, said) = made.convert(&["--ranks", "1-2", "-o", "app.prv"]);
    let (records, rows) = (std::fs::read_to_string(&path).unwrap(), path.with_extension("row"));
    assert!(records.lines().next().unwrap().contains(":2(1,1):"), "{records}");
    let rows = std::fs::read_to_string(rows).unwrap();
    assert!(rows.starts_with("LEVEL NODE SIZE 2\nbeta\nunknown node\n"), "{rows}");
    assert!(said.contains("999 polls that are one record with others"), "{said}");
}

#[test]
fn a_series_has_a_program_and_says_of_how_many_ranks_its_means_are() {
    let made = Made::of_lines(STRANGERS);
    let (path, said) = made.convert(&["--ranks", "0", "-o", "series.jsonl", "--to", "extrap"]);
    assert!(said.contains("means are those of 1 rank, told as a run on 2"), "{said}");
    let lines = std::fs::read_to_string(path).unwrap();
    assert!(lines.contains(r#""callpath":"program""#), "{lines}");
}

#[test]
fn groups_that_no_table_has_are_counted() {
    let made = Made::of_lines(
        r#"{"group":"all","members":[0]}
{"rank":0,"call":"MPI_Comm_group","comm":"MPI_COMM_WORLD","group":"all"}
"#,
    );
    let said = said(&made, &["-o", "app.csv"]);
    assert!(said.contains("1 members of groups that calls make"), "{said}");
}
