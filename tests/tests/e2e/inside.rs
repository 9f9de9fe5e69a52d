//! Calls inside of calls, which are told of and not recorded, and calls on stacks that have little room.

use st_tests::process::Run;
use st_tests::workplace::{self, Workplace};
use st_tests::{Failure, process::Outcome};

/// `st-stat WORDS trace.st`, each fact on a line of its own.
fn stat(p: &Workplace, words: &[&str]) -> Result<Outcome, Failure> {
    let words = words.iter().map(Into::into).chain([p.path("trace.st").into_os_string()]);
    Run::st("st-stat", words)?.env("COLUMNS", "1000").go()?.ok()
}

/// What is said has this in it.
fn has(said: &str, what: &str) -> Result<(), Failure> {
    if said.contains(what) { Ok(()) } else { Err(format!("expected {what:?} in\n{said}")) }
}

#[test]
fn calls_inside_of_others_are_counted_and_named() {
    workplace::under_each("inside", "inside.c", &["-g"], |p| {
        let o = p.outside("-o trace.st", "./inside")?.ok()?;
        let n = p.job.ranks;
        let (sizes, freed, failed) = (5 * n, 3 * n, 2 * n);
        let named = format!(
            "(MPI_Type_size {sizes}, MPI_Comm_free {freed}, MPI_Error_class {failed}, MPI_Initialized {failed})"
        );
        has(
            &o.stderr,
            &format!("{} calls inside of others not recorded {named}", sizes + freed + 2 * failed),
        )?;
        has(
            &stat(p, &[])?.text(),
            &format!("not recorded: MPI_Comm_free {freed}, MPI_Error_class {failed}, "),
        )?;
        // Each rank's three, which are no leak.
        let o = stat(p, &["leaks"])?;
        has(
            &o.stderr,
            &format!("are not recorded (MPI_Comm_free {freed}): what is listed may have ended there"),
        )?;
        // Without a launcher that is told.
        let o = p.inside("-o run", "./inside")?.ok()?;
        has(
            &o.stderr,
            "calls of rank 0 inside of others are not recorded: MPI_Comm_free 3, MPI_Error_class 2, ",
        )
    });
}

#[test]
fn a_call_out_of_which_the_program_ends_is_told() {
    workplace::under_each("inside", "inside.c", &["-g"], |p| {
        p.outside("-q -o trace.st", "./inside exit")?;
        let told = format!("rank {} ends at call ", p.job.ranks - 1);
        let text = stat(p, &[])?.text();
        let line = text.lines().find(|line| line.contains(&told)).ok_or(text.clone())?;
        has(line, ", MPI_Send")?;
        has(line, ", which did not return")
    });
}

#[test]
fn calls_are_made_on_stacks_of_little_room() {
    workplace::under_each("coroutine", "coroutine.c", &["-g"], |p| {
        p.plain("./coroutine 8")?.ok()?;
        has(&p.outside("-q -o trace.st", "./coroutine 16")?.ok()?.text(), "ok")?;
        let text = stat(p, &["calls", "--functions", "--format", "csv"])?.text();
        has(&text, &format!("MPI_Barrier,{},", 20 * p.job.ranks))
    });
}
