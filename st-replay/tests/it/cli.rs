//! The program itself: what it refuses before it starts anything.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use st_model::header::Header;
use st_stream::{Trace, WriteOptions};

use crate::script::sections;

fn write(path: &Path, ranks: u32, program: &str) {
    write_all(path, ranks, &format!("{program}\n* MPI_Finalize"));
}

fn write_all(path: &Path, ranks: u32, program: &str) {
    let header = Header { world: ranks, ..Header::default() };
    let sections = sections(ranks, &format!("* MPI_Init\n{program}"));
    let trace = Trace { header, sections, level: 0, ..Trace::default() };
    let mut file = File::create(path).unwrap();
    st_stream::write(&trace, &mut file, WriteOptions { level: 0 }).unwrap();
}

/// Runs st-replay where there is no mpirun, so that starting ranks would fail with another status.
fn run(args: &[&str], trace: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_st-replay"));
    command.args(args).arg(trace).env("PATH", "").output().unwrap()
}

#[test]
fn bad_traces_end_with_status_4_and_the_channel_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let bad = dir.path().join("bad.st");
    write(&bad, 2, "0 MPI_Send dest=1 tag=5\n0 MPI_Barrier\n1 MPI_Allreduce");
    let checked = run(&["--check"], &bad);
    let text = String::from_utf8(checked.stdout).unwrap();
    assert_eq!(checked.status.code(), Some(4), "{text}");
    assert!(text.contains("MPI_COMM_WORLD, rank 0 to 1, tag 5: 1 sent, 0 received"), "{text}");
    assert!(
        text.contains("rank 0 in MPI_Barrier (site 2, line 3), rank 1 in MPI_Allreduce (site 4, line 4)"),
        "{text}"
    );
    assert!(
        text.ends_with(
            "cannot be replayed to its end: 2 faults in 7 calls, 0 messages on 1 channel, 3 collectives\n"
        ),
        "{text}"
    );
    let replayed = run(&[], &bad);
    let text = String::from_utf8(replayed.stderr).unwrap();
    assert_eq!(replayed.status.code(), Some(4), "{text}");
    assert!(text.contains("rank 0 to 1, tag 5") && text.contains("(and 1 more)"), "{text}");
    assert_eq!(run(&["--unchecked"], &bad).status.code(), Some(1));
}

/// An MPI whose engine says this, and whose launcher fails with status 7.
fn engine(dir: &Path, script: &str) {
    fs::create_dir_all(dir.join("openmpi")).unwrap();
    for (name, script) in [("openmpi/st-engine", script), ("mpirun.openmpi", "exit 7")] {
        let file = dir.join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    }
}

/// Runs st-replay with this MPI alone.
fn run_under(mpi: &Path, args: &[&str], trace: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_st-replay"));
    let command = command.args(["--mpi", "openmpi"]).args(args).arg(trace);
    command.env("PATH", mpi).env("ST_LIBRARY_PATH", mpi).output().unwrap()
}

#[test]
fn an_engine_that_fails_does_not_say_that_its_mpi_has_all() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("good.st");
    write(&trace, 1, "* MPI_Barrier");
    engine(dir.path(), "");
    assert_eq!(run_under(dir.path(), &["--check"], &trace).status.code(), Some(0));
    engine(dir.path(), "echo no libmpi.so.40 >&2; exit 127");
    for option in ["--check", "--list"] {
        let failed = run_under(dir.path(), &[option], &trace);
        let said = String::from_utf8(failed.stderr).unwrap();
        assert_eq!(failed.status.code(), Some(1), "{said}");
        assert!(said.contains("st-engine: exit status: 127: no libmpi.so.40"), "{said}");
    }
}

#[test]
fn a_rank_that_would_wait_for_a_function_that_the_mpi_lacks_is_named_before_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("lacking.st");
    write(
        &trace,
        2,
        "0 MPI_Ssend dest=1\n1 MPI_Irecv source=0\n1 MPI_Wait requests=0 completed=0 source=0 tag=0 bytes=0",
    );
    let skip = ["--skip-unsupported"];
    engine(dir.path(), "");
    assert_eq!(run_under(dir.path(), &skip, &trace).status.code(), Some(7));
    engine(dir.path(), "echo MPI_Irecv");
    let refused = run_under(dir.path(), &skip, &trace);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(4), "{said}");
    assert!(said.contains("MPI_Irecv (1); left out") && said.contains("rank 0 may wait for ever"), "{said}");
    // All that are left out: nobody waits.
    engine(dir.path(), "echo MPI_Irecv; echo MPI_Ssend");
    assert_eq!(run_under(dir.path(), &skip, &trace).status.code(), Some(7));
    assert_eq!(run_under(dir.path(), &[], &trace).status.code(), Some(1));
}

#[test]
fn a_trace_that_ends_before_its_program_is_not_replayed_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let killed = dir.path().join("killed.st");
    let check = |more: &[&str]| {
        let checked = run(&[&["--check"], more].concat(), &killed);
        (checked.status.code(), String::from_utf8(checked.stdout).unwrap())
    };
    write_all(&killed, 4, "* MPI_Barrier\n1 MPI_Comm_rank\n2 MPI_Comm_rank\n3 MPI_Finalize");
    let (status, text) = check(&[]);
    assert_eq!(status, Some(4), "{text}");
    let said = "ranks 0-2 end before MPI_Finalize, after 2 to 3 calls: a replay ends there, with status 1\n";
    assert!(text.starts_with(said) && text.contains("cannot be replayed to its end: 1 fault in"), "{text}");
    // It goes so far, and a replay that stops before that ends in order.
    assert_eq!(run(&[], &killed).status.code(), Some(1));
    assert_eq!(check(&["--stop-after", "2"]).0, Some(0));
    write_all(&killed, 2, "* MPI_Barrier\n0 MPI_Finalize");
    let (status, text) = check(&[]);
    assert!(
        status == Some(4) && text.starts_with("rank 1 ends before MPI_Finalize, after 2 calls: "),
        "{text}"
    );
}

#[test]
fn good_traces_are_good_and_impossible_wishes_are_usage_errors() {
    let dir = tempfile::tempdir().unwrap();
    let good = dir.path().join("good.st");
    write(&good, 2, "0 MPI_Send dest=1 tag=5 count=2\n1 MPI_Recv source=0 tag=5 count=2");
    let checked = run(&["--check"], &good);
    assert_eq!(checked.status.code(), Some(0));
    assert!(String::from_utf8(checked.stdout).unwrap().contains("ok: 6 calls, 1 message on 1 channel"));
    let once = "name each of the processes 0 to 1 once";
    for (option, value, status, said) in [
        ("--scale", "MPI_Put=2", 2, "no function or call site MPI_Put"),
        ("--place", "0,0", 2, "process 0 is there twice"),
        ("--place", "0,2", 2, "there is no process 2 of 2"),
        ("--place", "1", 2, "1 places for 2 ranks"),
        ("--place", "", 2, once),
        ("--place", "0,one", 2, "--place 0,one: neither a list"),
        ("--place", good.to_str().unwrap(), 2, "neither a list"),
    ] {
        // Also where nothing would be started.
        for more in [&[][..], &["--check"]] {
            let refused = run(&[&[option, value], more].concat(), &good);
            let text = String::from_utf8(refused.stderr).unwrap();
            assert!(refused.status.code() == Some(status) && text.contains(said), "{value} {more:?}: {text}");
            assert!(refused.stdout.is_empty(), "{value} {more:?}");
        }
    }
}

/// A launcher that does this.
fn launcher(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn ranks_are_told_that_all_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, echo) = (dir.path().join("left-out.st"), dir.path().join("launcher"));
    write(&trace, 1, "* MPI_File_open newfile=0\n* MPI_File_close freefile=0");
    launcher(&echo, "echo starts \"$@\"");
    for unchecked in [&[][..], &["--unchecked"]] {
        let options = [&["--skip-unsupported", "--mpirun", echo.to_str().unwrap()], unchecked].concat();
        let Output { stdout, stderr, .. } = run(&options, &trace);
        let (passed, said) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert!(said.ends_with("MPI_File_close (1), MPI_File_open (1); left out\n"), "{said}");
        // What is left out depends on the ranks' MPI, and a launcher that is named may be that of any: they check.
        let n = passed.matches("--unchecked").count();
        assert!(passed.contains(" --said ") && n == unchecked.len(), "{passed}");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let (good, prints) = (dir.path().join("good.st"), dir.path().join("launcher"));
    write(&good, 2, "* MPI_Barrier");
    // As Open MPI's: prints what ranks print, and does not say when it cannot.
    let printing = |status: u8| launcher(&prints, &format!("printf 'rank,0\\n' || :\nexit {status}"));
    let replay = |shell: &str, quiet: &[&str], to: Stdio| {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", shell, "sh", env!("CARGO_BIN_EXE_st-replay"), "--mpirun"]).arg(&prints);
        let Output { status, stdout, stderr } = command
            .args(quiet)
            .arg(&good)
            .stdout(to)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
            .wait_with_output()
            .unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    };
    let (open, closed) = ("exec \"$@\"", "exec \"$@\" >&-");
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    printing(0);
    for quiet in [&[][..], &["--csv"], &["-q", "--json"]] {
        assert_eq!(replay(open, quiet, Stdio::piped()), (Some(0), "rank,0\n".into(), String::new()));
        let said = "st-replay: standard output: cannot write: No space left on device (os error 28)\n";
        assert_eq!(replay(open, quiet, full()), (Some(1), String::new(), said.into()), "{quiet:?}");
        let said = "st-replay: standard output: is closed\n";
        assert_eq!(replay(closed, quiet, Stdio::piped()), (Some(1), String::new(), said.into()), "{quiet:?}");
    }
    // Where there is none, nothing is lost.
    assert_eq!(replay(closed, &["-q"], Stdio::piped()).0, Some(0));
    printing(7);
    assert_eq!(replay(open, &[], full()), (Some(7), String::new(), String::new()));
}
