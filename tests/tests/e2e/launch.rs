//! Starting a recording: both ways, names of the result, exit statuses, and what is said.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use st_cli::Mpi;
use st_stream::MAGIC;
use st_tests::process::{Outcome, Run};
use st_tests::workplace::{self, Workplace};
use st_tests::{Failure, place, render};

/// A program without MPI. MPICH's launcher now and then dies of those that end at once (SIGPIPE), with us or without.
const SHORT: &str = "sleep 0.3";

/// Runs a test under each MPI, in a directory with the program `leaves`.
pub(crate) fn under_each(test: impl Fn(&Workplace) -> Result<(), Failure>) {
    workplace::under_each("leaves", "leaves.c", &[], test);
}

pub(crate) fn check(condition: bool, what: &str, outcome: &Outcome) -> Result<(), Failure> {
    if condition { Ok(()) } else { Err(format!("{what}: {outcome}")) }
}

/// All ranks with 20 exchanges.
pub(crate) fn complete(place: &Workplace, trace: &Path) -> Result<(), Failure> {
    Run::st("st-view", ["--check".as_ref(), trace.as_os_str()])?.go()?.ok()?;
    let ranks = render::viewed(trace)?;
    let exchanges =
        |calls: &Vec<render::Object>| calls.iter().filter(|c| c["call"] == "MPI_Sendrecv").count();
    let all = ranks.values().map(exchanges).collect::<Vec<_>>();
    let expected = usize::try_from(place.job.ranks).unwrap_or(0);
    if all == vec![20; expected] { Ok(()) } else { Err(format!("{}: exchanges: {all:?}", trace.display())) }
}

#[test]
fn outside_mpirun_it_leaves_one_file() {
    under_each(|p| {
        let o = p.outside("-o here.st", "./leaves 0 a -q")?.ok()?;
        check(o.text() == format!("got {} [a] [-q]\n", p.job.ranks - 1), "the program's output", &o)?;
        check(o.stderr.contains("said on standard error"), "the program's errors", &o)?;
        for word in ["recording to here.st", "exit 0", "next: st-stat here.st", "nothing dropped"] {
            check(o.stderr.contains(word), word, &o)?;
        }
        check(p.names(".") == ["here.st", "leaves"], &format!("files {:?}", p.names(".")), &o)?;
        complete(p, &p.path("here.st"))
    });
}

#[test]
fn a_file_that_is_no_trace_is_not_replaced() {
    under_each(|p| {
        fs::write(p.path("notes.txt"), "mine").map_err(|e| e.to_string())?;
        for name in ["notes.txt", "leaves"] {
            let o = p.outside(&format!("-q -o {name}"), "./leaves")?;
            check(o.status == 125 && o.stderr.contains("this file is no trace"), name, &o)?;
        }
        let kept = fs::read_to_string(p.path("notes.txt")).map_err(|e| e.to_string())?;
        if kept == "mine" { Ok(()) } else { Err(format!("notes.txt: {kept}")) }
    });
}

#[test]
fn a_quiet_recording_says_nothing() {
    under_each(|p| {
        let o = p.outside("-q -o here.st", "./leaves")?.ok()?;
        check(o.stderr == "said on standard error\n", "standard error", &o)?;
        let o = p.inside("-q -o run", "./leaves")?.ok()?;
        check(o.stderr == "said on standard error\n", "standard error", &o)
    });
}

#[test]
fn a_name_that_is_taken_gets_a_suffix_unless_it_was_given() {
    under_each(|p| {
        let n = p.job.ranks;
        for _ in 0..3 {
            p.outside("-q", "./leaves")?.ok()?;
        }
        let names = p.names(".");
        let traces: Vec<_> = names.iter().filter(|n| n.ends_with(".st")).collect();
        if traces.len() != 3 || !names.contains(&format!("leaves-{n}r.st")) {
            return Err(format!("{names:?}"));
        }
        traces.iter().try_for_each(|t| complete(p, &p.path(t)))?;
        fs::write(p.path("mine.st"), MAGIC).map_err(|e| e.to_string())?;
        p.outside("-q -o mine.st", "./leaves")?.ok()?;
        complete(p, &p.path("mine.st"))
    });
}

#[test]
fn inside_mpirun_it_leaves_a_directory() {
    under_each(|p| {
        let o = p.inside("-o run", "./leaves 0 x")?.ok()?;
        check(o.text() == format!("got {} [x]\n", p.job.ranks - 1), "the program's output", &o)?;
        let names = p.names("run");
        let expected: Vec<_> = (0..p.job.ranks).map(|r| format!("rank-{r:06}.st")).collect();
        check(names == expected, &format!("files {names:?}"), &o)?;
        complete(p, &p.path("run"))?;
        let merged = p.path("merged.st");
        Run::st("st-merge", [p.path("run").as_os_str(), "-o".as_ref(), merged.as_ref()])?.go()?.ok()?;
        complete(p, &merged)?;
        // The other way of launching records the same.
        p.outside("-q -o here.st", "./leaves 0 x")?.ok()?;
        let diff = ["diff".as_ref(), p.path("here.st").into_os_string().as_os_str(), merged.as_os_str()]
            .map(OsString::from);
        let said = Run::st("st-stat", diff)?.go()?.ok()?;
        check(said.text().contains("no difference"), "both ways", &said)
    });
}

#[test]
fn the_exit_status_is_the_programs() {
    under_each(|p| {
        let plain = p.go({
            let words = p.job.words(["./leaves", "7"])?;
            Run::new(&words[0], &words[1..])
        })?;
        let o = p.outside("-o seven.st", "./leaves 7")?;
        check(plain.status == 7 && o.status == 7 && plain.stdout == o.stdout, "status 7", &o)?;
        check(o.stderr.contains("exit 7"), "the closing line", &o)?;
        complete(p, &p.path("seven.st"))?;
        let o = p.inside("-q -o seven", "./leaves 7")?;
        check(o.status == 7, "status 7 inside", &o)?;
        complete(p, &p.path("seven"))
    });
}

#[test]
fn what_cannot_start_has_a_status_of_its_own() {
    under_each(|p| {
        let o = p.go(Run::st("st-record", ["--", "./no-such-program"])?)?.expect(127)?;
        check(o.stderr.contains("no-such-program"), "names the program", &o)?;
        let o = p.go(Run::st("st-record", ["--", "./"])?)?.expect(126)?;
        check(o.stderr.contains("a directory"), "says what it is", &o)?;
        let o = p.go(Run::st("st-record", ["-o", "no/such/place.st", "--", "./leaves"])?)?.expect(125)?;
        check(o.stderr.contains("no/such"), "names the place", &o)?;
        check(p.names(".") == ["leaves"], &format!("files {:?}", p.names(".")), &o)
    });
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let st_record = place::program("st-record").unwrap();
    under_each(|p| {
        for option in ["--check", "--env"] {
            for (to, said) in [("/dev/full", "cannot write: No space left"), ("&-", "is closed")] {
                let script = format!("exec \"$@\" >{to}");
                let words = ["-c".as_ref(), script.as_ref(), "sh".as_ref(), st_record.as_os_str()];
                let asked = [option, "--", "./leaves"].map(OsStr::new);
                let o = p.go(Run::new("sh", words.into_iter().chain(asked)))?.expect(125)?;
                check(o.stderr.contains(&format!("st-record: standard output: {said}")), option, &o)?;
            }
        }
        for option in ["--help", "--version"] {
            let script = "exec \"$@\" >&-";
            let words =
                ["-c".as_ref(), script.as_ref(), "sh".as_ref(), st_record.as_os_str(), option.as_ref()];
            let o = p.go(Run::new("sh", words))?.expect(1)?;
            check(o.stderr.contains("st-record: standard output: is closed"), option, &o)?;
        }
        let o = p.go(Run::st("st-record", ["--check", "--", "./leaves"])?)?.ok()?;
        check(o.text().ends_with("missed     nothing\n"), "the verdict", &o)
    });
}

#[test]
fn variables_of_the_users_reach_ranks_beside_ours() {
    under_each(|p| {
        if p.job.mpi != Mpi::Openmpi {
            return Ok(());
        }
        let st_record = place::program("st-record")?.display().to_string();
        fs::write(p.path("program.sh"), "echo got $THEIRS\nexec ./leaves\n").map_err(|e| e.to_string())?;
        let words = p.job.words(["sh", "program.sh"])?;
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let (mpirun, rest) = (&words[0], words[1..].join(" "));
        let (variable, option) =
            ("OMPI_MCA_mca_base_env_list=THEIRS=this", "--mca mca_base_env_list THEIRS=this");
        for (i, line) in [
            format!("{variable} {st_record} --must-record -o list-0.st -- {mpirun} {rest}"),
            format!("{st_record} --must-record -o list-1.st -- {mpirun} {option} {rest}"),
            format!("{variable} {st_record} --must-record -o list-2.st -- sh -c '{mpirun} {rest}'"),
        ]
        .into_iter()
        .enumerate()
        {
            let o = p.go(Run::new("sh", ["-c", &line]))?.ok()?;
            let got = u32::try_from(o.text().matches("got this").count());
            check(got == Ok(p.job.ranks), &format!("their variable: {line}"), &o)?;
            check(p.path(&format!("list-{i}.st")).exists(), "a trace", &o)?;
        }
        Ok(())
    });
}

/// Their variable, its `list` in a file of Open MPI's, and `-x` of a file.
const LIST: &str = "mca_base_env_list = THEIRS=this\n";
const EXPORT: &str = "-x THEIRS=this\n";
/// As `--tune` has it, in quotes.
const QUOTED: &str = "-mca mca_base_env_list 'THEIRS=this;MORE=2'\n";

#[test]
fn what_files_and_scripts_hand_on_reaches_ranks_beside_ours() {
    under_each(|p| {
        if p.job.mpi != Mpi::Openmpi {
            return Ok(());
        }
        let words = p.job.words(["sh", "program.sh"])?;
        let [mpirun, rest @ ..] = words.as_slice() else { return Err("no launcher".into()) };
        let rest = rest.join(OsStr::new(" ")).display().to_string();
        let name = Path::new(mpirun).file_name().unwrap_or_default().display().to_string();
        let path = mpirun.display().to_string();
        let write = |name: &str, text: &str| fs::write(p.path(name), text).map_err(|e| e.to_string());
        fs::create_dir_all(p.path("home/.openmpi")).map_err(|e| e.to_string())?;
        write("program.sh", "echo got $THEIRS\nexec ./leaves\n")?;
        write("list", LIST)?;
        write("export", EXPORT)?;
        write("quoted", QUOTED)?;
        // Without an interpreter's name: a shell is told to read them.
        let by_path = format!("{path} --mca mca_base_env_list THEIRS=this {rest}\n");
        write("path.sh", &by_path)?;
        // A comment in Latin-1.
        fs::write(p.path("latin.sh"), [b"# M\xfcller\n", by_path.as_bytes()].concat())
            .map_err(|e| e.to_string())?;
        write("plain.sh", &format!("{path} {rest}\n"))?;
        p.script("outer.sh", "#!/bin/sh\nsh ./path.sh\n")?;
        let [list, export, quoted] =
            ["list", "export", "quoted"].map(|file| p.path(file).display().to_string());
        let st_record = place::program("st-record")?.display().to_string();
        for (file, command) in [
            (LIST, format!("{path} {rest}")),
            (LIST, format!("sh -c '{path} {rest}'")),
            (LIST, format!("sh -c '{name} {rest}'")),
            (LIST, "sh plain.sh".into()),
            ("", "sh path.sh".into()),
            ("", "sh latin.sh".into()),
            ("", "./outer.sh".into()),
            ("", format!("{path} --tune {list} {rest}")),
            ("", format!("{path} --tune {quoted} {rest}")),
            ("", format!("sh -c '{path} --tune {list} {rest}'")),
            ("", format!("sh -c '{path} --tune {export} {rest}'")),
            (EXPORT, "sh plain.sh".into()),
        ] {
            write("home/.openmpi/mca-params.conf", file)?;
            let line = format!("HOME=$PWD/home {st_record} --must-record -o new.st -- {command}");
            let o = p.go(Run::new("sh", ["-c", &line]))?.ok()?;
            let got = u32::try_from(o.text().matches("got this").count());
            check(got == Ok(p.job.ranks), &format!("their variable: {file}: {line}"), &o)?;
            complete(p, &p.path("new.st"))?;
        }
        Ok(())
    });
}

#[test]
fn a_launcher_is_found_behind_stand_ins_whatever_is_left_of_the_environment() {
    under_each(|p| {
        let words = p.job.words(["./leaves"])?;
        let file = Path::new(&words[0]).file_name().map(|n| n.to_string_lossy().into_owned());
        let name = file.ok_or("a launcher without a name")?;
        let job = format!("{name} -n {} ./leaves", p.job.ranks);
        // Of all that is set for the recording only PATH is left: the job runs, and is not recorded.
        let unset = "for v in $(env | sed -n 's/^\\(ST_[A-Z_]*\\|LD_PRELOAD\\)=.*/\\1/p'); do unset $v; done";
        p.script("clear.sh", &format!("#!/bin/sh\n{unset}\nexec timeout 60 {job}\n"))?;
        let o = p.go(Run::st("st-record", ["-o", "clear.st", "--", "./clear.sh"])?)?.expect(0)?;
        check(!p.names(".").contains(&"clear.st".to_owned()), "it has no trace", &o)?;
        // A recording within another.
        p.script("inner.sh", &format!("#!/bin/sh\nexec timeout 60 {job}\n"))?;
        let st_record = place::program("st-record")?.display().to_string();
        p.script("outer.sh", &format!("#!/bin/sh\nexec {st_record} -o inner.st -- ./inner.sh\n"))?;
        let o = p.go(Run::st("st-record", ["-o", "outer.st", "--", "./outer.sh"])?)?.expect(0)?;
        check(p.names(".").contains(&"inner.st".to_owned()), "the inner one has a trace", &o)
    });
}

#[test]
fn a_statically_linked_program_is_refused() {
    under_each(|p| {
        // Plain C: what matters is that nothing can be preloaded.
        fs::write(p.path("static.c"), "int main(void) { return 0; }\n").map_err(|e| e.to_string())?;
        let (source, app) = (p.path("static.c"), p.path("static"));
        let cc =
            Run::new("cc", ["-static".as_ref(), "-o".as_ref(), app.as_os_str(), source.as_os_str()]).go()?;
        if cc.status != 0 {
            place::say("no static libc on this machine: refusing static programs is NOT tested");
            return Ok(());
        }
        let o = p.outside("", "./static")?.expect(125)?;
        check(o.stderr.contains("static"), "says why", &o)?;
        let o = p.go(Run::st("st-record", ["--", "./static"])?)?.expect(125)?;
        check(o.stderr.contains("static"), "says why", &o)
    });
}

#[test]
fn a_program_without_mpi_is_warned_of() {
    under_each(|p| {
        let o = p.outside("", SHORT)?.ok()?;
        check(o.stderr.contains("no MPI call was seen"), "the warning", &o)?;
        let o = p.outside("-q --must-record", SHORT)?.expect(125)?;
        check(o.stderr.contains("no MPI call was seen"), "an error, which -q does not silence", &o)?;
        check(p.names(".") == ["leaves"], &format!("files {:?}", p.names(".")), &o)
    });
}

#[test]
fn a_program_that_ends_in_its_first_call_is_said_to() {
    under_each(|p| {
        // All wait in it for those that never come there.
        let text = "#!/bin/sh\n[ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 0 ] && exec timeout -s KILL 2 ./leaves\nexec sleep 4\n";
        p.script("half", text)?;
        let o = p.outside("-o none.st", "./half")?;
        check(o.status != 0, "it has failed", &o)?;
        check(o.stderr.contains("called MPI_Init, and ended before that had returned"), "why", &o)?;
        check(!p.path("none.st").exists(), "no trace", &o)
    });
}

#[test]
fn what_an_older_run_left_is_not_taken_for_this_ones() {
    under_each(|p| {
        for name in ["keep.st", "keep.rest.st", "keep.spawn-1.st"] {
            fs::write(p.path(name), MAGIC).map_err(|e| e.to_string())?;
        }
        let o = p.outside("-o keep.st", SHORT)?.ok()?;
        check(p.names(".") == ["leaves"], &format!("files {:?}", p.names(".")), &o)?;
        // No process has such a number.
        fs::create_dir(p.path("run")).map_err(|e| e.to_string())?;
        let older = [
            "rank-000000.st",
            "rank-000098.99999999.journal",
            "rank-000098.99999999.times",
            "rank-000099.st",
        ];
        for name in older {
            fs::write(p.path("run").join(name), "old").map_err(|e| e.to_string())?;
        }
        let o = p.inside("-q -o run", "./leaves")?.ok()?;
        let expected: Vec<_> = (0..p.job.ranks).map(|r| format!("rank-{r:06}.st")).collect();
        check(p.names("run") == expected, &format!("files {:?}", p.names("run")), &o)?;
        complete(p, &p.path("run"))?;
        let o = p.inside("-q -o run --only 1", "./leaves")?.ok()?;
        check(p.names("run") == ["rank-000001.st"], &format!("files {:?}", p.names("run")), &o)?;
        fs::write(p.path("run").join("rank-000000.99999999.journal"), "old").map_err(|e| e.to_string())?;
        let o = p.inside("-q -o run", SHORT)?.ok()?;
        check(p.names("run").is_empty(), &format!("without MPI {:?}", p.names("run")), &o)
    });
}

#[test]
fn ranks_that_do_not_exist_are_named() {
    under_each(|p| {
        let o = p.outside("--only 99 -o here.st", "./leaves")?.ok()?;
        check(o.stderr.contains("there is no trace: --only: there is no rank 99"), "none", &o)?;
        p.outside("-q --must-record --only 99 -o here.st", "./leaves")?.expect(125)?;
        let o = p.outside("--must-record --only 1,99 -o here.st", "./leaves")?.ok()?;
        check(o.stderr.contains("there is no rank 99; the job has ranks 0 to"), "one", &o)
    });
}

#[test]
fn options_after_the_command_are_said_to_be_its_own() {
    under_each(|p| {
        let o = p.outside("-o here.st", "./leaves 0 --time-budget")?.ok()?;
        check(o.stderr.contains("--time-budget is passed on to the command"), "the warning", &o)?;
        let o = p.go(Run::st("st-record", ["--", "--merge", "./leaves"])?)?.expect(127)?;
        check(o.stderr.contains("options of st-record come before --"), "the hint", &o)
    });
}

#[test]
fn sessions_after_the_one_by_which_a_rank_is_left_out_do_nothing() {
    workplace::under_each("sessions", "sessions.c", &[], |p| {
        let o = p.outside("--only 0 -o here.st", "./sessions")?.ok()?;
        check(!o.stderr.contains("internal error"), "nothing fails", &o)?;
        let ended = o.text().matches("child ended with 0").count();
        check(ended == usize::try_from(p.job.ranks).unwrap_or(0), "each rank's child ends", &o)
    });
}

#[test]
fn a_thread_that_has_ended_keeps_little() {
    workplace::under_each("threads_in_turn", "threads_in_turn.c", &["-pthread"], |p| {
        let o = p.outside("-q -o here.st", "./threads_in_turn 300")?.ok()?;
        let all: Vec<i64> = o.text().lines().filter_map(|kb| kb.parse().ok()).collect();
        // What is known of code alone would be 40 kB more.
        check(!all.is_empty() && all.iter().all(|kb| *kb < 30), &format!("kB a thread: {all:?}"), &o)
    });
}

#[test]
fn what_a_killed_st_record_leaves_can_be_packed() {
    under_each(|p| {
        let left = ".st-record-left";
        fs::create_dir(p.path(left)).map_err(|e| e.to_string())?;
        let notes = |launcher: u32| {
            fs::write(p.path(left).join("notes"), format!("here.st\nlauncher={launcher}\n"))
                .map_err(|e| e.to_string())
        };
        notes(99_999_999)?;
        p.inside(&format!("-q -o {left}"), "./leaves")?.ok()?;
        let o = p.outside("-o other.st", SHORT)?.ok()?;
        check(o.stderr.contains("--recover") && o.stderr.contains(left), "the next recording names it", &o)?;
        notes(std::process::id())?;
        let recover = || p.go(Run::st("st-record", ["--recover", left])?);
        let o = recover()?.expect(125)?;
        check(o.stderr.contains("still works in it"), "not while it is in use", &o)?;
        fs::write(p.path(left).join("notes"), "here.st\nlauncher=1 host=elsewhere\n")
            .map_err(|e| e.to_string())?;
        let o = recover()?.expect(125)?;
        check(o.stderr.contains("recorded on elsewhere, where process 1"), "nor where it may be", &o)?;
        let o = p.go(Run::st("st-record", ["--recover", left, "--force"])?)?.ok()?;
        check(p.names(".") == ["here.st", "leaves"], &format!("files {:?}", p.names(".")), &o)?;
        complete(p, &p.path("here.st"))?;
        recover()?.expect(125).map(drop)
    });
}

#[test]
fn on_standard_output_the_trace_is_alone() {
    under_each(|p| {
        let o = p.outside("-o -", "./leaves 0")?.ok()?;
        check(o.stderr.contains("got "), "what the program prints is on standard error", &o)?;
        fs::write(p.path("piped.st"), &o.stdout).map_err(|e| e.to_string())?;
        complete(p, &p.path("piped.st"))?;
        let o = p.outside("-o .", "./leaves 0")?.expect(125)?;
        check(o.stderr.contains(".: is a directory") && o.stdout.is_empty(), "nothing has run", &o)
    });
}

#[test]
fn what_cannot_be_packed_is_kept() {
    under_each(|p| {
        // Nothing can take the place of a directory, as nothing can be written to a disk that is full.
        let words = p.job.words(["./leaves"])?;
        let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
        let job = format!("{} && mkdir here.st", words.join(" "));
        let o = p.go(Run::st("st-record", ["-o", "here.st", "--", "sh", "-c", &job])?)?.expect(1)?;
        let kept = p.names(".").into_iter().find(|name| name.starts_with(".st-record-"));
        let kept = kept.ok_or("nothing is kept")?;
        check(o.stderr.contains(&format!("{kept}: st-record --recover")), "where it is", &o)?;
        fs::remove_dir(p.path("here.st")).map_err(|e| e.to_string())?;
        let o = p.go(Run::st("st-record", ["--recover", &kept])?)?.ok()?;
        check(p.names(".") == ["here.st", "leaves"], &format!("files {:?}", p.names(".")), &o)?;
        complete(p, &p.path("here.st"))
    });
}

#[test]
fn a_script_that_starts_the_job_is_recorded() {
    under_each(|p| {
        let mpirun = p.job.words(["./leaves"])?;
        let name = |w: &OsString| Path::new(w).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let line = format!("{} -n {} ./leaves 5", name(&mpirun[0]), p.job.ranks);
        let o = p.go(Run::st("st-record", ["-q", "-o", "script.st", "--", "sh", "-c", &line])?)?.expect(5)?;
        check(o.text().starts_with("got "), "the program's output", &o)?;
        complete(p, &p.path("script.st"))?;
        // By its full path, and beside a variable of the script's own.
        let file = place::in_path(&name(&mpirun[0])).ok_or("no launcher in PATH")?;
        let set = if p.job.mpi == st_cli::Mpi::Openmpi { "-x A=1" } else { "-genv A 1" };
        let line = format!("{} {set} -n {} ./leaves 5", file.display(), p.job.ranks);
        let o = p.go(Run::st("st-record", ["-q", "-o", "path.st", "--", "sh", "-c", &line])?)?.expect(5)?;
        check(o.text().starts_with("got "), "the program's output", &o)?;
        complete(p, &p.path("path.st"))
    });
}
