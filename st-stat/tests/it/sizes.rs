//! What st-stat says of a stream's bytes.

use std::path::Path;
use std::process::Command;

use st_capture::record::{Options, RankRecorder};
use st_model::calls::CallTable;
use st_stream::{Trace, WriteOptions};

/// A rank that sends 40 messages of constant and 40 of random size.
fn write(path: &Path) {
    let mut r = RankRecorder::new(0, Options { columns: false, ..Options::default() });
    let thread = r.open_thread(0);
    let row = CallTable::builtin().by_name("MPI_Send").unwrap();
    let (a, b) = (r.sites.label("constant"), r.sites.label("random"));
    let (a, b) = (r.symbol(row.id, a, 0), r.symbol(row.id, b, 0));
    let count = row.slots.iter().position(|s| s.name == "count").unwrap();
    let mut state = 1_u32;
    for _ in 0..40 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let mut words = vec![0; row.slots.len()];
        r.record(thread, a, &words, 0, 0);
        words[count] = (state >> 8).into();
        r.record(thread, b, &words, 0, 0);
    }
    let trace = Trace { sections: vec![r.finish("host")], ..Trace::default() };
    st_stream::write(&trace, std::fs::File::create(path).unwrap(), WriteOptions::FILE).unwrap();
}

fn rows(path: &Path, by: &str) -> Vec<serde_json::Value> {
    let out = Command::new(env!("CARGO_BIN_EXE_st-stat"))
        .args(["sizes", "--by", by, "--format", "json"])
        .arg(path)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn every_byte_has_a_place_and_a_cause() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.st");
    write(&path);
    let frames = rows(&path, "frame");
    let sum = |rows: &[serde_json::Value], kinds: &[&str]| -> u64 {
        let of = rows.iter().filter(|r| kinds.is_empty() || kinds.contains(&r["frame"].as_str().unwrap()));
        of.map(|r| r["bytes"].as_u64().unwrap()).sum()
    };
    assert_eq!(sum(&frames, &[]), std::fs::metadata(&path).unwrap().len());
    let whole = sum(&frames, &["STRUCT", "SKETCH"]);
    for by in ["parameter", "site"] {
        let rows = rows(&path, by);
        // Shares are rounded one by one.
        assert!(sum(&rows, &[]).abs_diff(whole) <= rows.len() as u64, "{by}");
    }
    let parameters = rows(&path, "parameter");
    assert_eq!((&parameters[0]["parameter"], &parameters[0]["place"]), (&"count".into(), &"random".into()));
    assert!(parameters[0]["cause"].as_str().unwrap().starts_with("40 values"), "{}", parameters[0]);
    let constant = parameters.iter().find(|r| r["place"] == "constant" && r["parameter"] == "count").unwrap();
    assert_eq!(constant["cause"], "constant");
    assert_eq!(rows(&path, "site")[0]["place"], "random");
}

#[test]
fn of_a_directory_it_says_what_to_name() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("rank-000000.st");
    let said = || {
        let out = Command::new(env!("CARGO_BIN_EXE_st-stat")).arg("sizes").arg(dir.path()).output().unwrap();
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    let (status, text) = said();
    assert!(status == Some(1) && text.contains("no stream"), "{text}");
    write(&first);
    let (status, text) = said();
    let named = format!("name one stream of it, as {}, or all as one: st-merge", first.display());
    assert!(status == Some(2) && text.contains(&named), "{text}");
}
