//! Call sites keep the names that they had when the program ran, whatever becomes of it, and never get others.

use std::fs;

use serde_json::Value;
use st_tests::Failure;
use st_tests::process::{Outcome, Run};
use st_tests::workplace::{Workplace, under_each};

const DEBUG: &[&str] = &["-g", "-O1", "-Wl,--build-id"];

/// Runs one of our programs here.
fn st(p: &Workplace, line: &str) -> Result<Outcome, Failure> {
    let (name, words) = line.split_once(' ').unwrap_or((line, ""));
    Run::st(name, words.split_whitespace())?.within(p.directory.path()).go()
}

/// Functions with their places, sorted.
fn places(p: &Workplace, trace: &str) -> Result<Vec<String>, Failure> {
    let text = st(p, &format!("st-stat calls --sites --format json {trace}"))?.ok()?.text();
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).map_err(|e| e.to_string())?;
        let word = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        Ok(format!("{} {}", word("function"), word("place")))
    };
    let mut all = text.lines().map(row).collect::<Result<Vec<_>, Failure>>()?;
    all.sort();
    Ok(all)
}

fn is(what: &str, found: &[String], expected: &[&str]) -> Result<(), Failure> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:#?}")) }
}

const PLACES: [&str; 8] = [
    "MPI_Allreduce sum sites.c:19",
    "MPI_Barrier main sites.c:30",
    "MPI_Comm_rank main sites.c:26",
    "MPI_Comm_size main sites.c:27",
    "MPI_Finalize main sites.c:32",
    "MPI_Init main sites.c:25",
    "MPI_Sendrecv main sites.c:28",
    "MPI_Sendrecv main sites.c:29",
];

#[test]
fn a_program_that_is_gone_or_another_changes_nothing() {
    under_each("app", "sites.c", DEBUG, |p| {
        p.outside("-q -o a.st", "./app")?.ok()?;
        let io = |e: std::io::Error| e.to_string();
        fs::rename(p.path("app"), p.path("moved")).map_err(io)?;
        is("moved", &places(p, "a.st")?, &PLACES)?;
        // Another build in its place.
        p.compile("app", "sites.c", &["-g", "-O0", "-Wl,--build-id"])?.ok()?;
        is("rebuilt", &places(p, "a.st")?, &PLACES)?;
        // Through the stages.
        st(p, "st-cluster -o c.st a.st")?.ok()?;
        st(p, "st-merge -o m.st c.st")?.ok()?;
        is("merged", &places(p, "m.st")?, &PLACES)?;
        st(p, "st-view --check m.st")?.ok()?;
        let tree = st(p, "st-view m.st")?.ok()?.text();
        if !tree.contains("MPI_Barrier [site 5, main sites.c:30]") {
            return Err(tree);
        }
        // Merged while it ends; and the same sites from another build, by their names.
        p.outside("-q --merge -o n.st", "./app")?.ok()?;
        is("merged inside", &places(p, "n.st")?, &PLACES)?;
        st(p, "st-stat diff --sites m.st n.st")?.ok().map(drop)
    });
}

#[test]
fn without_names_a_program_is_asked_if_it_is_the_same_build() {
    under_each("app", "sites.c", DEBUG, |p| {
        p.outside("-q --no-symbols -o a.st", "./app")?.ok()?;
        is("looked up", &places(p, "a.st")?, &PLACES)?;
        let io = |e: std::io::Error| e.to_string();
        fs::create_dir(p.path("kept")).map_err(io)?;
        fs::rename(p.path("app"), p.path("kept/app")).map_err(io)?;
        p.compile("app", "sites.c", &["-g", "-O0", "-Wl,--build-id"])?.ok()?;
        let other = st(p, "st-stat calls --sites a.st")?.ok()?;
        if !other.stderr.contains("is another build than the recorded one")
            || other.text().contains("sites.c")
        {
            return Err(other.to_string());
        }
        // By what was kept, which then is in the trace.
        let named = st(p, "st-stat calls --sites --symbols kept a.st")?.ok()?;
        if !named.text().contains("main sites.c:29") {
            return Err(named.to_string());
        }
        st(p, "st-record --name --symbols kept a.st")?.ok()?;
        fs::remove_dir_all(p.path("kept")).map_err(io)?;
        is("named", &places(p, "a.st")?, &PLACES)?;
        st(p, "st-view --check a.st")?.ok().map(drop)
    });
}

#[test]
fn an_anonymous_trace_names_nothing_and_proves_all() {
    under_each("secret_app", "sites.c", DEBUG, |p| {
        p.outside("-q --anonymise -o a.st", "./secret_app")?.ok()?;
        st(p, "st-view --check a.st")?.ok()?;
        let text = st(p, "st-view --text a.st")?.ok()?.text();
        let here = p.directory.path().display().to_string();
        for word in ["secret", "sites.c", "exchange", "-o", &here] {
            if text.contains(word) {
                return Err(format!("{word} is in the trace:\n{text}"));
            }
        }
        // One that was named; the sites of both are the same.
        p.outside("-q -o b.st", "./secret_app")?.ok()?;
        st(p, "st-record --name --anonymise -o c.st b.st")?.ok()?;
        if st(p, "st-view --text c.st")?.ok()?.text().contains("secret") {
            return Err("a trace keeps the name of its program".into());
        }
        st(p, "st-stat diff --sites a.st c.st")?.ok().map(drop)
    });
}

#[test]
fn stripped_programs_show_the_symbols_that_they_have() {
    under_each("app", "sites.c", &["-O1", "-s", "-rdynamic", "-Wl,--build-id"], |p| {
        p.outside("-q -o a.st", "./app")?.ok()?;
        fs::remove_file(p.path("app")).map_err(|e| e.to_string())?;
        let found = places(p, "a.st")?;
        match found.iter().all(|place| place.contains(" main+0x") || place.contains(" exchange+0x")) {
            true => Ok(()),
            false => Err(format!("{found:#?}")),
        }
    });
}
