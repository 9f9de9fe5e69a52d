//! Situations that a job is started in: what is said beforehand, settings by the environment alone, several programs,
//! launchers that are not mpirun, other tools, threads, Python.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use st_cli::Mpi;
use st_tests::process::{Outcome, Run};
use st_tests::workplace::Workplace;
use st_tests::{Failure, place, recordings, render};

use crate::launch::{check, complete, under_each};

/// `st-record WORDS`, here.
fn record(p: &Workplace, words: &str) -> Result<Outcome, Failure> {
    p.go(Run::st("st-record", words.split_whitespace())?)
}

/// File name of the job's launcher.
fn mpirun(p: &Workplace) -> Result<String, Failure> {
    let words = p.job.words(["x"])?;
    Ok(Path::new(&words[0]).file_name().unwrap_or_default().to_string_lossy().into_owned())
}

/// The header, as JSON text.
fn header(trace: &Path) -> Result<String, Failure> {
    let text = Run::st("st-view", ["--text".as_ref(), trace.as_os_str()])?.go()?.ok()?.text();
    text.lines().find(|l| l.starts_with("header ")).map(str::to_owned).ok_or_else(|| "no header".into())
}

/// How often each rank made a call.
fn counts(trace: &Path, call: &str) -> Result<Vec<usize>, Failure> {
    let ranks = render::viewed(trace)?;
    Ok(ranks.values().map(|calls| calls.iter().filter(|c| c["call"] == call).count()).collect())
}

#[test]
fn hints_and_what_the_world_has_as_attributes_are_told_with_the_calls() {
    under_each(|p| {
        p.compile("hints", "hints.c", &[])?.ok()?;
        let o = p.outside("-o hints.st", "./hints")?.ok()?;
        for calls in render::viewed(&p.path("hints.st"))?.values() {
            let of = |name: &str| calls.iter().find(|c| c["call"] == name).ok_or("a call is missing");
            let hints = &of("MPI_File_open")?["hints"];
            check(hints == &serde_json::json!({"romio_cb_write": "enable"}), &hints.to_string(), &o)?;
            let value = of("MPI_Comm_get_attr")?["attribute"].to_string();
            check(o.text().trim() == value, &value, &o)?;
        }
        Ok(())
    });
}

#[test]
fn what_would_be_recorded_is_said_beforehand() {
    under_each(|p| {
        let o = record(p, "--check ./leaves")?.ok()?;
        let library = place::recorder()?;
        for said in [p.job.mpi.to_string(), "bindings   C\n".into(), library.display().to_string()] {
            check(o.text().contains(&said), &said, &o)?;
        }
        let o = record(p, &format!("--check -- {} -n 2 ./leaves : -n 1 ./leaves", mpirun(p)?))?.ok()?;
        check(
            o.text().contains("launcher") && o.text().ends_with("missed     nothing\n"),
            "the launcher",
            &o,
        )?;
        let o = record(p, "--check -- true")?.expect(4)?;
        check(o.text().contains("uses no MPI"), "no MPI", &o)?;
        p.script("job", "#!/bin/sh\nexec /opt/bin/mpirun -n 2 ./leaves\n")?;
        let o = record(p, "--check ./job")?.expect(4)?;
        check(o.text().contains("/opt/bin/mpirun by its full path"), "the full path", &o)?;
        p.script("job", "#!/bin/sh\nexec ./leaves\n")?;
        let o = record(p, "--check ./job")?.expect(4)?;
        check(o.text().contains("starts ./leaves without a launcher, and it is not recorded"), "alone", &o)?;
        p.script("job", "#!/no/such/interpreter\n")?;
        let o = record(p, "--check ./job")?.expect(4)?;
        check(o.text().contains(r#"its interpreter "/no/such/interpreter" is not there"#), "the script", &o)?;
        record(p, "--check ./no-such-program")?.expect(4)?;
        fs::set_permissions(p.path("leaves"), fs::Permissions::from_mode(0o4755))
            .map_err(|e| e.to_string())?;
        let o = record(p, "--check ./leaves")?.expect(4)?;
        check(o.text().contains("is setuid"), "setuid", &o)?;
        check(p.names(".") == ["job", "leaves"], "nothing is left", &o)
    });
}

#[test]
fn the_environment_alone_makes_a_job_record() {
    under_each(|p| {
        let env = record(p, "--env -o run --time sketch --clock monotonic ./leaves")?.ok()?.text();
        // As on a node that does not share it.
        fs::remove_dir(p.path("run")).map_err(|e| e.to_string())?;
        // Hydra passes the environment on; Open MPI does so on one node.
        let line = format!("{env}{} -n {} ./leaves", mpirun(p)?, p.job.ranks);
        let o = p.go(Run::new("sh", ["-c", &line]))?.ok()?;
        check(o.stderr.contains("one stream per rank in "), "the closing line", &o)?;
        complete(p, &p.path("run"))?;
        let said = header(&p.path("run/rank-000000.st"))?;
        check(
            said.contains("\"time\":\"sketch\"") && said.contains("\"source\":\"clock_monotonic\""),
            &said,
            &o,
        )
    });
}

#[test]
fn histograms_and_statistics_in_the_place_of_sketches() {
    under_each(|p| {
        let shapes = [
            ("hist", "\"time\":\"hist\",\"time-budget", "histograms of 5 bins", "-"),
            ("hist --hist-bins 10 --hist-smooth 20", "\"hist\":\"10:20\"", "histograms of 10 bins", "-"),
            ("stats", "\"time\":\"stats\"", "number, sum, squares and extremes", "="),
        ];
        for (option, states, kept, mark) in shapes {
            let o = p.outside(&format!("--time {option} -o one.st"), "./leaves")?.ok()?;
            check(header(&p.path("one.st"))?.contains(states), "the header", &o)?;
            complete(p, &p.path("one.st"))?;
            for jobs in ["1", "2"] {
                p.go(Run::st(
                    "st-merge",
                    ["-j", jobs, "one.st", "-o", &format!("merged{jobs}.st"), "--no-provenance"],
                )?)?
                .ok()?;
            }
            let merged =
                |jobs: &str| fs::read(p.path(&format!("merged{jobs}.st"))).map_err(|e| e.to_string());
            check(merged("1")? == merged("2")?, "threads change nothing", &o)?;
            let mut exchanges = Vec::new();
            for file in ["one.st", "merged1.st"] {
                let o = p.go(Run::st("st-view", ["--check", file])?)?.ok()?;
                let said = p.go(Run::st("st-stat", [file])?)?.ok()?.text();
                check(said.contains(&format!("{kept}, no exact times")), "the summary", &o)?;
                let text = p.go(Run::st("st-view", ["--text", file])?)?.ok()?.text();
                let listed = |l: &&str| l.trim_start().starts_with("time s");
                let paths: Vec<&str> = text.lines().filter(listed).collect();
                let shaped =
                    |l: &&str| l.ends_with(']') && l.rsplit('[').next().is_some_and(|t| t.contains(mark));
                check(!paths.is_empty() && paths.iter().all(shaped), "the text form", &o)?;
                exchanges.push(timed_exchanges(&p.path(file))?);
            }
            check(exchanges == [u64::from(p.job.ranks) * 20; 2], "every call is counted", &o)?;
        }
        Ok(())
    });
}

#[test]
fn a_trace_without_approximate_loops_does_not_name_them() {
    under_each(|p| {
        let line = p.job.words(["./leaves"])?.join(" ".as_ref()).to_string_lossy().into_owned();
        for merge in ["", "--merge "] {
            record(p, &format!("-q --fold approx {merge}-o approx.st -- {line}"))?.ok()?;
            let header = header(&p.path("approx.st"))?;
            if !header.contains(r#""fold":"exact""#) {
                return Err(format!("{merge}: {header}"));
            }
            let text = p.go(Run::st("st-view", ["--text", "approx.st"])?)?.ok()?.text();
            if text.contains("approx\"") || text.contains("--fold") {
                return Err(format!("{merge}: the provenance names them"));
            }
        }
        Ok(())
    });
}

/// How many events of `MPI_Sendrecv` have times.
fn timed_exchanges(trace: &Path) -> Result<u64, Failure> {
    let open = fs::File::open(trace).map_err(|e| e.to_string())?;
    let trace = st_stream::read(open, st_stream::ReadOptions::default()).map_err(|e| e.to_string())?;
    let calls = st_model::calls::CallTable::builtin();
    let mut n = 0;
    for section in &trace.sections {
        for path in section.threads.iter().flat_map(|t| &t.sketches) {
            let call = section.symbols.get(path.sym as usize).and_then(|s| calls.get(s.call));
            n += call.filter(|row| row.name == "MPI_Sendrecv").map_or(0, |_| path.comm.count);
        }
    }
    Ok(n)
}

#[test]
fn only_the_ranks_asked_for_are_recorded() {
    under_each(|p| {
        let o = p.outside("--only 1 -o one.st", "./leaves")?.ok()?;
        check(o.stderr.contains("1 rank,") && o.stderr.contains("nothing dropped"), "the closing line", &o)?;
        if counts(&p.path("one.st"), "MPI_Sendrecv")? != [20] {
            return Err("rank 1 is not there, or not alone".into());
        }
        let said = header(&p.path("one.st"))?;
        check(said.contains("\"only\":\"1\""), &said, &o)?;
        Run::st("st-view", ["--check".as_ref(), p.path("one.st").as_os_str()])?.go()?.ok()?;
        let merged = p.path("merged.st");
        Run::st("st-merge", [p.path("one.st").as_os_str(), "-o".as_ref(), merged.as_ref()])?.go()?.ok()?;
        let o = Run::st("st-stat", [merged.as_os_str()])?.go()?.ok()?;
        check(o.text().contains("MPI_Sendrecv"), "statistics", &o)?;
        Run::st("st-view", ["--check".as_ref(), merged.as_os_str()])?.go()?.ok().map(|_| ())
    });
}

#[test]
fn every_clock_runs_forward() {
    under_each(|p| {
        for (clock, source) in [("monotonic", "clock_monotonic"), ("tsc", "tsc"), ("mpi_wtime", "mpi_wtime")]
        {
            let file = p.path(&format!("{clock}.st"));
            let o = p.outside(&format!("--clock {clock} -o {clock}.st"), "./leaves")?.ok()?;
            complete(p, &file)?;
            let said = header(&file)?;
            check(said.contains(&format!("\"source\":\"{source}\"")), &said, &o)?;
            for calls in render::viewed(&file)?.values() {
                let times = calls.iter().flat_map(|c| [&c["enter"], &c["exit"]]).map(|t| t.as_i64());
                let times = times.collect::<Option<Vec<_>>>().ok_or("a call without times")?;
                check(times.is_sorted() && times.last() > times.first(), &format!("{clock}: {times:?}"), &o)?;
            }
        }
        p.outside("--clock sundial", "./leaves")?.expect(2).map(|_| ())
    });
}

#[test]
fn a_job_of_several_programs_is_one_job() {
    under_each(|p| {
        p.compile("other", "leaves.c", &[])?.ok()?;
        let line = format!("-q -o two.st -- {} -n 1 ./leaves 0 x : -n 1 ./other 0 y", mpirun(p)?);
        record(p, &line)?.ok()?;
        if counts(&p.path("two.st"), "MPI_Sendrecv")? != [20, 20] {
            return Err("not 20 exchanges on both ranks".into());
        }
        // All ranks are recorded, so their clocks are compared.
        let text = Run::st("st-view", ["--json".as_ref(), p.path("two.st").as_os_str()])?.go()?.ok()?.text();
        if text.lines().filter(|l| l.starts_with("{\"clock\"")).count() != 2 {
            return Err("the clocks of two ranks are not compared".into());
        }
        let said = header(&p.path("two.st"))?;
        if said.contains("./leaves") && said.contains("\":\",\"./other\",\"0\",\"y\"") {
            Ok(())
        } else {
            Err(said)
        }
    });
}

#[test]
fn a_job_of_which_some_ranks_are_recorded_comes_to_its_end() {
    // The recorder compares clocks by communicators of all ranks: with whom there is no recorder it must not begin.
    under_each(|p| {
        let (mpirun, st_record) = (mpirun(p)?, place::program("st-record")?.display().to_string());
        let line = format!("{mpirun} -n 1 {st_record} -q -o two -- ./leaves : -n 1 ./leaves");
        p.go(Run::new("sh", ["-c", &line]))?.ok()?;
        let script = "case ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} in 0) exec";
        let line = format!(
            "exec {mpirun} -n {} sh -c '{script} {st_record} -q -o first -- ./leaves;; *) exec ./leaves;; esac'",
            p.job.ranks
        );
        p.go(Run::new("sh", ["-c", &line]))?.ok()?;
        for run in ["two", "first"] {
            let ranks = render::viewed(&p.path(run))?;
            if ranks.len() != 1 || counts(&p.path(run), "MPI_Sendrecv")? != [20] {
                return Err(format!("{run}: not rank 0 alone, or not its 20 exchanges"));
            }
        }
        // All are recorded, and compare their clocks: by themselves where the launcher tells so.
        for options in ["-q -o all", "-q --sync -o told"] {
            p.inside(options, "./leaves")?.ok()?;
        }
        let compared = |run: &str| -> Result<bool, Failure> {
            let text = Run::st("st-view", ["--text".as_ref(), p.path(run).as_os_str()])?.go()?.ok()?.text();
            Ok(text.lines().any(|l| l.trim_start().starts_with("clock ")))
        };
        let found = [compared("two")?, compared("first")?, compared("all")?, compared("told")?];
        let expected = [false, false, p.job.mpi == Mpi::Openmpi, true];
        if found == expected { Ok(()) } else { Err(format!("clocks compared: {found:?}")) }
    });
}

/// A launcher that knows no MPI: it exports what it is told to, and starts the ranks through mpirun.
fn srun(p: &Workplace) -> Result<String, Failure> {
    let pass = if p.job.mpi == Mpi::Openmpi { "-x LD_PRELOAD -x ST_OUTPUT" } else { "" };
    Ok(format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo slurm 23.02; exit; fi\n\
         while :; do case $1 in\n --export=*) list=${{1#--export=}}; shift; IFS=,\n for v in $list; do [ $v = ALL ] || export \"$v\"; \
         done; unset IFS;;\n -n) n=$2; shift 2;;\n *) break;;\n esac; done\n\
         export SLURM_STEP_NUM_TASKS=$n\nexec {} -n $n {pass} sh -c 'SLURM_PROCID=${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} \
         exec \"$@\"' sh \"$@\"\n",
        mpirun(p)?
    ))
}

#[test]
fn launchers_of_batch_systems_are_known_outside_and_inside() {
    under_each(|p| {
        p.script("srun", &srun(p)?)?;
        let n = p.job.ranks;
        record(p, &format!("-q -o out.st -- ./srun -n {n} ./leaves"))?.ok()?;
        complete(p, &p.path("out.st"))?;
        let st_record = place::program("st-record")?;
        let line = format!("./srun -n {n} {} -q -o in -- ./leaves", st_record.display());
        p.go(Run::new("sh", ["-c", &line]))?.ok()?;
        complete(p, &p.path("in"))
    });
}

#[test]
fn launchers_by_full_path_and_in_scripts_are_known() {
    under_each(|p| {
        let words = p.job.words(["./leaves"])?;
        let line = words.join(" ".as_ref()).to_string_lossy().into_owned();
        record(p, &format!("-q -o full.st -- {line}"))?.ok()?;
        complete(p, &p.path("full.st"))?;
        p.script("wrapped", &format!("#!/bin/sh\nexec {} -n {} \"$@\"\n", mpirun(p)?, p.job.ranks))?;
        p.script("rank", "#!/bin/sh\nexec \"$@\"\n")?;
        record(p, "-q -o script.st -- ./wrapped ./rank ./leaves")?.ok()?;
        complete(p, &p.path("script.st"))
    });
}

#[test]
fn what_other_programs_start_is_recorded() {
    under_each(|p| {
        let line = p.job.words(["./leaves"])?.join(" ".as_ref()).to_string_lossy().into_owned();
        for through in
            ["nice -n 1", "timeout 100", "env A=B", "stdbuf -oL", "nohup", "setsid", "timeout 99 nice"]
        {
            record(p, &format!("-q -o job.st -- {through} {line}"))?.ok()?;
            complete(p, &p.path("job.st")).map_err(|e| format!("{through}: {e}"))?;
            let o = record(p, &format!("--check -- {through} {line}"))?.ok()?;
            let said =
                o.text().contains("launcher ") && o.text().contains("missed     nothing, if what stands");
            check(said, through, &o)?;
            record(p, &format!("-q --must-record -o alone.st -- {through} ./leaves"))?.ok()?;
        }
        let o = record(p, "-o none.st -- env -i ./leaves")?;
        check(
            o.stderr.contains("does env leave ./leaves the environment that st-record gives it?"),
            "why",
            &o,
        )
    });
}

#[test]
fn other_tools_see_each_call_once_and_so_do_we() {
    under_each(|p| {
        let ours = place::recorder()?;
        for (name, define) in [("profiling.so", "-DPLAIN"), ("next.so", "-DNEXT")] {
            p.compile(name, "shim.c", &["-shared", "-fPIC", define])?.ok()?;
            let shim = p.path(name);
            for (order, list) in [("before", [&shim, &ours]), ("after", [&ours, &shim])] {
                // A tool that forwards to PMPI hides MPI from whoever comes after it, and sees what we let through.
                let run = format!("{name}-{order}");
                fs::create_dir(p.path(&run)).map_err(|e| e.to_string())?;
                let preload = list.map(|l| l.display().to_string()).join(":");
                let line = format!(
                    "exec env ST_OUTPUT=\"$PWD/{run}\" LD_PRELOAD={preload} {} -n {} ./leaves",
                    mpirun(p)?,
                    p.job.ranks
                );
                let o = p.go(Run::new("sh", ["-c", &line]))?.ok()?;
                check(o.stderr.matches("shim saw 20\n").count() == 1, &run, &o)?;
                complete(p, &p.path(&run))?;
            }
        }
        Ok(())
    });
}

#[test]
fn what_a_command_line_has_ranks_preload_comes_behind_the_recorder() {
    under_each(|p| {
        p.compile("next.so", "shim.c", &["-shared", "-fPIC", "-DNEXT"])?.ok()?;
        let shim = p.path("next.so").display().to_string();
        let by_option = match p.job.mpi {
            Mpi::Openmpi => format!("-x LD_PRELOAD={shim} ./leaves"),
            Mpi::Mpich => format!("-env LD_PRELOAD {shim} ./leaves"),
        };
        for (name, rest) in [("option", by_option), ("env", format!("env LD_PRELOAD={shim} ./leaves"))] {
            let trace = format!("{name}.st");
            let o = record(p, &format!("-o {trace} -- {} -n {} {rest}", mpirun(p)?, p.job.ranks))?.ok()?;
            check(o.stderr.matches("shim saw 20\n").count() == 1, name, &o)?;
            complete(p, &p.path(&trace))?;
        }
        Ok(())
    });
}

/// A collective operation of ours on `MPI_COMM_WORLD` would move the tags of the program's later ones, and Open MPI's make
/// some programs wait for ever (see sync.rs of the recorder).
#[test]
fn collective_operations_of_the_recorder_are_on_its_own_communicators() {
    under_each(|p| {
        p.compile("guest.so", "guest.c", &["-shared", "-fPIC"])?.ok()?;
        p.compile("idle", "idle.c", &[])?.ok()?;
        let ours = place::recorder()?;
        fs::create_dir(p.path("run")).map_err(|e| e.to_string())?;
        let (ours, guest) = (ours.display(), p.path("guest.so"));
        let line = format!(
            "exec env ST_OUTPUT=\"$PWD/run\" ST_SYNC_INTERVAL=0.01 ST_REDUCE_EVERY=0.02 ST_MERGE=cluster \
             LD_PRELOAD={ours}:{} {} -n {} ./idle 5 100",
            guest.display(),
            mpirun(p)?,
            p.job.ranks
        );
        let o = p.go(Run::new("sh", ["-c", &line]))?.ok()?;
        let own = o.stderr.matches("guest: 0 on MPI_COMM_WORLD, some elsewhere\n").count();
        check(own == p.job.ranks as usize, "whose communicators", &o)
    });
}

#[test]
fn eight_threads_are_recorded_each_by_itself() {
    under_each(|p| {
        p.compile("threads", "threads.c", &["-pthread"])?.ok()?;
        let o = p.outside("-q -o threads.st", "./threads")?.ok()?;
        if o.text().contains("no MPI_THREAD_MULTIPLE") {
            place::say("this MPI has no MPI_THREAD_MULTIPLE: threads are NOT tested");
            return Ok(());
        }
        let file = p.path("threads.st");
        Run::st("st-view", ["--check".as_ref(), file.as_os_str()])?.go()?.ok()?;
        for calls in render::viewed(&file)?.values() {
            let mut sends = std::collections::BTreeMap::<(i64, i64), [usize; 3]>::new();
            for c in calls {
                let thread = c["thread"].as_i64().unwrap_or(-1);
                for (i, call) in ["MPI_Send", "MPI_Irecv", "MPI_Wait"].iter().enumerate() {
                    let tag = c.get("tag").and_then(|t| t.as_i64());
                    if c["call"] == *call {
                        sends.entry((thread, tag.unwrap_or(-1))).or_default()[i] += 1;
                    }
                }
            }
            let exact = sends.len() == 16
                && sends.iter().all(|((_, tag), n)| *n == if *tag < 0 { [0, 0, 100] } else { [100, 100, 0] });
            check(exact, &format!("calls by thread and tag: {sends:?}"), &o)?;
        }
        Ok(())
    });
}

const RING: &str = "
from array import array
from mpi4py import MPI
c = MPI.COMM_WORLD
for turn in range(20):
    got = c.sendrecv(c.rank, (c.rank + 1) % c.size, 1, None, (c.rank - 1) % c.size, 1)
assert got == (c.rank - 1) % c.size
n = array('i', [0])
c.Allreduce([array('i', [1]), MPI.INT], [n, MPI.INT])
if c.rank == 0: print('ring', n[0] == c.size)
";

/// Pythons with mpi4py for this MPI: those that were installed for the tests, and Debian's.
fn pythons(p: &Workplace) -> Vec<OsString> {
    let own = place::target().unwrap_or_default().join("mpi4py").join(p.job.mpi.name()).join("bin/python");
    let mut all = vec![own.into_os_string(), "/usr/bin/python3".into()];
    all.retain(|python| {
        // What `st-record --check` says of it.
        let run = Run::st("st-record", ["--check".as_ref(), "--".as_ref(), python.as_os_str()]);
        run.and_then(Run::go).is_ok_and(|o| o.text().contains(&format!("{}: libmp", p.job.mpi)))
    });
    all
}

#[test]
fn python_is_recorded() {
    under_each(|p| {
        let pythons = pythons(p);
        if pythons.is_empty() {
            place::say(&format!("no mpi4py for {}: recording Python is NOT tested", p.job.mpi));
        }
        for python in pythons {
            fs::write(p.path("ring.py"), RING).map_err(|e| e.to_string())?;
            let o = p.outside("-o ring.st", &format!("{} ring.py", python.display()))?.ok()?;
            check(o.text() == "ring True\n", "the program's output", &o)?;
            let file = p.path("ring.st");
            Run::st("st-view", ["--check".as_ref(), file.as_os_str()])?.go()?.ok()?;
            let said = header(&file)?;
            check(said.contains("\"Python\""), &said, &o)?;
            // mpi4py calls the functions with large counts where the library has them.
            for (call, n) in [("MPI_Allreduce", 1), ("MPI_Isend", 20)] {
                let (small, large) = (counts(&file, call)?, counts(&file, &format!("{call}_c"))?);
                let all: Vec<_> = small.iter().zip(large).map(|(a, b)| a + b).collect();
                each_rank(p, &all, n).map_err(|e| format!("{call}: {e}"))?;
            }
        }
        Ok(())
    });
}

/// As many calls on each rank of the job.
fn each_rank(p: &Workplace, found: &[usize], expected: usize) -> Result<(), Failure> {
    let ranks = usize::try_from(p.job.ranks).unwrap_or(0);
    if found == vec![expected; ranks] { Ok(()) } else { Err(format!("calls by rank: {found:?}")) }
}

#[test]
fn rust_is_recorded() {
    under_each(|p| {
        let ring = place::engine(p.job.mpi, "st-ring")?;
        let o = p.outside("-o ring.st", &ring.display().to_string())?.ok()?;
        check(o.text() == format!("ring true {}\n", p.job.ranks / 2), "the program's output", &o)?;
        check(o.stderr.contains("nothing dropped"), "the closing line", &o)?;
        let file = p.path("ring.st");
        for (call, calls) in
            [("MPI_Isend", 20), ("MPI_Ibarrier", 4), ("MPI_Comm_split", 1), ("MPI_Allreduce", 2)]
        {
            each_rank(p, &counts(&file, call)?, calls).map_err(|e| format!("{call}: {e}"))?;
        }
        recordings::round_trip(p.job, &file)
    });
}
