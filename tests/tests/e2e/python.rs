//! Call sites of Python programs: `st-record --python`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use st_cli::Mpi;
use st_tests::process::Run;
use st_tests::workplace::Workplace;
use st_tests::{Failure, place};

use crate::launch::{check, under_each};
use crate::libraries::library;

/// Calls MPI by the interpreter's own foreign functions, so that every interpreter can run it, without a package.
const SCRIPT: &str = "import ctypes
mpi = ctypes.CDLL('LIBRARY')
WORLD

class Solver:
    def step(self, n):
        mpi.MPI_Barrier(world)
        mpi.MPI_Barrier(world)

def main():
    mpi.MPI_Init(None, None)
    solver = Solver()
    for n in range(3):
        solver.step(n)
    últ = lambda: mpi.MPI_Barrier(world)
    últ()
    list(mpi.MPI_Barrier(world) for n in range(2))
    mpi.MPI_Finalize()

main()
";

/// Release series whose frames are read.
const KNOWN: [&str; 5] = ["3.9", "3.10", "3.11", "3.12", "3.13"];

/// An interpreter of each series, if this machine has one: on the path, or where pyenv puts it.
fn interpreter(series: &str) -> Option<PathBuf> {
    let name = format!("python{series}");
    let runs = |python: &PathBuf| {
        let said = Run::new(python, ["-c", "import ctypes"]).go();
        said.is_ok_and(|o| o.ok().is_ok())
    };
    let own = env::var_os("HOME").map(PathBuf::from).unwrap_or_default().join(".pyenv/versions");
    let versions =
        fs::read_dir(own).into_iter().flatten().flatten().map(|e| e.path().join("bin").join(&name));
    let of_system = ["/usr/bin", "/usr/local/bin"].map(|bin| Path::new(bin).join(&name));
    of_system.into_iter().chain(versions).filter(|p| p.is_file()).find(runs)
}

/// The Python frames of all call sites of a trace, innermost first: function and line, of the script only.
fn stacks(trace: &Path, script: &Path) -> Result<BTreeSet<Vec<(String, u64)>>, Failure> {
    let text = Run::st("st-view", ["--text".as_ref(), trace.as_os_str()])?.go()?.ok()?.text();
    let begin = format!("\"python:{}::", script.display());
    let mut modules: Vec<Option<String>> = Vec::new();
    let mut all = BTreeSet::new();
    for line in text.lines() {
        let words: Vec<_> = line.trim().splitn(2, ' ').collect();
        match words.as_slice() {
            ["section", ..] => modules.clear(),
            ["module", module] => {
                let function = module.strip_prefix(&begin).and_then(|m| m.split('"').next());
                modules.push(function.map(str::to_owned));
            }
            ["site", site] => {
                let frame = |f: &str| {
                    let (module, line) = f.split_once("+0x")?;
                    let function = modules.get(module.parse::<usize>().ok()?)?.clone()?;
                    Some((function, u64::from_str_radix(line, 16).ok()?))
                };
                all.insert(site.split(' ').skip(1).filter_map(frame).collect());
            }
            _ => {}
        }
    }
    Ok(all)
}

/// Writes the script.
fn script(p: &Workplace) -> Result<PathBuf, Failure> {
    let world = match p.job.mpi {
        Mpi::Openmpi => {
            "world = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, 'ompi_mpi_comm_world')))"
        }
        Mpi::Mpich => "world = ctypes.c_int(0x44000000)",
    };
    let library = library(&p.path("leaves"))?.display().to_string();
    let script = p.path("solver.py");
    fs::write(&script, SCRIPT.replace("WORLD", world).replace("LIBRARY", &library))
        .map_err(|e| e.to_string())?;
    Ok(script)
}

fn recorded(p: &Workplace, python: &Path, series: &str) -> Result<(), Failure> {
    let script = script(p)?;
    let o = p.outside("--python -o py.st", &format!("{} {}", python.display(), script.display()))?.ok()?;
    check(o.stderr.contains("nothing dropped"), "the closing line", &o)?;
    has_lines(&p.path("py.st"), &script, series)
}

/// Whether the call sites of a trace are the lines of the script.
fn has_lines(file: &Path, script: &Path, series: &str) -> Result<(), Failure> {
    Run::st("st-view", ["--check".as_ref(), file.as_os_str()])?.go()?.ok()?;
    // From 3.11 on functions know what they are in; before, a generator's and a method's names are short.
    let long = !["3.9", "3.10"].contains(&series);
    let named = |long_name: &str, short: &str| if long { long_name.to_owned() } else { short.to_owned() };
    let outer = [("main", 0), ("<module>", 20)];
    let stack = |inner: &[(String, u64)], main: u64| {
        let outer = outer.map(|(f, l)| (f.to_owned(), if l == 0 { main } else { l }));
        inner.iter().cloned().chain(outer).collect::<Vec<_>>()
    };
    let step = |line| (named("Solver.step", "step"), line);
    let expected = [
        stack(&[], 11),
        stack(&[step(7)], 14),
        stack(&[step(8)], 14),
        stack(&[(named("main.<locals>.<lambda>", "<lambda>"), 15)], 16),
        stack(&[(named("main.<locals>.<genexpr>", "<genexpr>"), 17)], 17),
        stack(&[], 18),
    ];
    let found = stacks(file, script)?;
    if found == BTreeSet::from(expected) { Ok(()) } else { Err(format!("call sites: {found:#?}")) }
}

#[test]
fn call_sites_of_python_are_its_own_lines() {
    for series in KNOWN {
        if interpreter(series).is_none() {
            place::say(&format!("no Python {series} on this machine: its frames are NOT tested"));
        }
    }
    under_each(|p| {
        for series in KNOWN {
            if let Some(python) = interpreter(series) {
                recorded(p, &python, series).map_err(|e| format!("Python {series}: {e}"))?;
            }
        }
        Ok(())
    });
}

#[test]
fn each_job_of_a_script_has_the_lines_of_python() {
    let Some((series, python)) = KNOWN.iter().find_map(|series| Some((series, interpreter(series)?))) else {
        place::say("no Python on this machine whose frames are read: its jobs are NOT tested");
        return;
    };
    under_each(|p| {
        let script = script(p)?;
        let job: Vec<_> = p.job.words([python.as_os_str(), script.as_os_str()])?;
        let job = job.iter().map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ");
        fs::write(p.path("job.sh"), format!("{job}\n{job} &\nwait\n")).map_err(|e| e.to_string())?;
        let words = ["--python", "--must-record", "-o", "py.st", "--", "sh", "job.sh"];
        let o = p.go(Run::st("st-record", words)?)?.ok()?;
        check(o.stderr.contains(": 2 jobs in "), "the end", &o)?;
        ["py.st", "py-2.st"].iter().try_for_each(|file| has_lines(&p.path(file), &script, series))
    });
}

#[test]
fn an_unknown_python_is_refused_by_name_and_recorded_without() {
    under_each(|p| {
        p.compile("newpython", "newpython.c", &["-rdynamic"])?.ok()?;
        let o = p.outside("--python -o new.st", "./newpython")?.ok()?;
        let said = "--python: Python 3.99.1: its frames cannot be read, only those of Python 3.9, 3.10";
        check(o.stderr.matches(said).count() == 1, "one line", &o)?;
        check(o.stderr.contains("nothing dropped"), "the closing line", &o)?;
        let o = Run::st("st-view", ["--check".as_ref(), p.path("new.st").as_os_str()])?.go()?.ok()?;
        check(o.text().contains("sites ok"), "call sites", &o)
    });
}
