//! What is written of calls that are told one by one.

use crate::common::Made;
use crate::tables::{Row, csv};

fn column(rows: &[Row], name: &str) -> Vec<String> {
    rows.iter().map(|row| row[name].clone()).collect()
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
