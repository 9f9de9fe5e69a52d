//! The program as its users meet it.

use std::io::Read;
use std::process::{Command, Output, Stdio};

use st_stream::{ReadOptions, read};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_st-kernels"));
    for name in ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID"] {
        command.env_remove(name);
    }
    command
}

fn run(line: &str) -> Output {
    program().args(line.split_whitespace()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_paper_trace_is_a_stream_with_a_section_per_rank() {
    let output = run("wavefront --paper --ranks 6 --steps 2");
    assert!(output.status.success(), "{}", said(&output));
    let trace = read(&output.stdout[..], ReadOptions::default()).unwrap();
    assert_eq!((trace.header.world, trace.sections.len(), trace.complete), (6, 6, true));
    assert_eq!(trace.header.args, ["wavefront", "--steps=2", "--seconds=0.05", "--seed=1"]);
    assert_eq!(trace.provenance[0].tool, "st-kernels");
    for jobs in ["", "-j 1", "-j 4", "-j 9"] {
        let again = run(&format!("wavefront --paper --ranks 6 --steps 2 {jobs}"));
        assert!(again.stdout == output.stdout, "the same every time, {jobs}");
    }
}

#[test]
fn a_file_holds_what_standard_output_would() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.st");
    let output = run(&format!("stencil2d --paper --ranks 3 --no-provenance --level 3 -o {}", file.display()));
    assert!(output.status.success() && output.stdout.is_empty(), "{}", said(&output));
    let bytes = std::fs::read(&file).unwrap();
    let piped = run("stencil2d --paper --ranks 3 --no-provenance --level 3").stdout;
    assert!(piped == bytes, "{} and {} bytes", piped.len(), bytes.len());
    assert!(read(&bytes[..], ReadOptions::default()).unwrap().provenance.is_empty());
}

#[test]
fn outside_a_job_it_says_what_to_type() {
    let output = run("ocean");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("mpirun -n 4 st-kernels ocean"), "{}", said(&output));
}

#[test]
fn inside_a_job_without_its_engine_it_fails() {
    // A copy far from any build tree finds none.
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("st-kernels");
    std::fs::copy(env!("CARGO_BIN_EXE_st-kernels"), &copy).unwrap();
    let output = Command::new(copy).arg("ocean").env("PMI_RANK", "0").env("PMI_SIZE", "2").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("st-kernels-mpi was not built for MPICH"), "{}", said(&output));
}

#[test]
fn what_cannot_run_is_a_usage_error() {
    for (line, part) in [
        ("transpose --paper --ranks 6", "a power of two ranks"),
        ("workers --open --paper --ranks 4", "--open is for stencils"),
        ("ocean -o x.st", "-o goes with --paper"),
    ] {
        let output = run(line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(said(&output).contains(part) && output.stdout.is_empty(), "{}", said(&output));
    }
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let mut child = program()
        .args(["stencil2d", "--paper", "--ranks", "1000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), said(&output).as_str()), (Some(0), ""));
}
