//! `--check`: what would be recorded, and what would be missed, said before anything runs.

use crate::ask;
use crate::binary::{self, FileKind, Interface, Library};
use crate::exports;
use crate::interpreter::{self, Mpi4py, is_python};
use crate::launcher::{self, LIBRARY, is_launcher};
use crate::script;
use crate::target::{MPI_INSIDE, of_launcher, resolve, unstartable};
use crate::wrapped_command;
use st_cli::Mpi;
use st_unwind::UnknownPython;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::path::Path;

/// What is missed of a program that links no MPI, but may come to one.
const MAY_LOAD: &str = "nothing of an MPI that the program loads, or that a program uses which it starts; without, there is no trace";

/// What is missed where no launcher is named, but something that can start one.
const BY_LAUNCHERS: &str =
    "nothing of what launchers start; a program of MPI that is started without one is not recorded";

/// What is missed of what another program starts.
const THROUGH: &str = "nothing, if what stands before it leaves it our environment";

/// What was found, line by line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    lines: Vec<(&'static str, String)>,
    /// Whether call sites of Python programs are to be their own lines (`--python`).
    lines_of_python: bool,
    /// What is recorded only if it comes to it, where that is not known.
    unless: Option<&'static str>,
    /// Reasons why something would be missed.
    pub problems: Vec<String>,
}

impl Report {
    fn line(&mut self, what: &'static str, text: impl Into<String>) {
        self.lines.push((what, text.into()));
    }
    fn problem(&mut self, text: impl Into<String>) {
        self.problems.push(text.into());
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, text) in &self.lines {
            writeln!(f, "{what:<10} {text}")?;
        }
        for p in &self.problems {
            writeln!(f, "{:<10} {p}", "problem")?;
        }
        let verdict = match (self.problems.is_empty(), self.unless) {
            (false, _) => "see the problems",
            (true, Some(unless)) => unless,
            (true, None) => "nothing",
        };
        writeln!(f, "{:<10} {verdict}", "missed")
    }
}

/// Looks at a command as st-record would start it, `lines` if Python's own lines are asked for.
#[must_use]
pub fn check(words: &[OsString], lines: bool) -> Report {
    let mut report = Report { lines_of_python: lines, ..Report::default() };
    command(&mut report, words, None);
    report
}

/// A command, below a launcher or not.
fn command(report: &mut Report, words: &[OsString], launcher: Option<Mpi>) {
    let Some(file) = resolve(&words[0]) else {
        return report.problem(format!("{}: command not found", words[0].display()));
    };
    if let Some(at) = wrapped_command::behind(words).filter(|_| !is_python(&file)) {
        let (shown, starts) = (file.display(), words[at].display());
        report.line(
            "through",
            format!("{shown}: what it starts ({starts}) has our environment, if it leaves it that"),
        );
        report.unless.get_or_insert(THROUGH);
        if let Some(why) = binary::privileged(&file) {
            report.problem(format!("{shown} {why}: what it starts may have an environment of its own"));
        }
        return match resolve(&words[at]) {
            Some(_) => command(report, &words[at..], launcher),
            // A shell's script, which need not be executable.
            None => program(report, Path::new(&words[at]), launcher),
        };
    }
    if !is_launcher(&words[0]) {
        return program(report, &file, launcher);
    }
    let launcher = of_launcher(&file);
    let told = launcher.map_or_else(|| "of an MPI that is not known".to_owned(), |m| m.to_string());
    report.line("launcher", format!("{} ({told})", file.display()));
    let mut programs: Vec<Vec<OsString>> = Vec::new();
    if let Some(list) = launcher::multi_prog(words) {
        match wrapped_command::programs_in(&list) {
            Ok(named) => programs.extend(named.into_iter().map(|word| vec![word])),
            Err(e) => report.problem(format!("{}: cannot be read: {e}", list.display())),
        }
    }
    programs.extend(launcher::programs(words).into_iter().map(|program| words[program].to_vec()));
    if programs.is_empty() {
        report.problem("no program that can be executed follows the launcher");
    }
    let mut seen = BTreeSet::new();
    for program in programs {
        if seen.insert(wrapped_command::recorded(&program).first().cloned()) {
            command(report, &program, launcher);
        }
    }
}

/// One program.
fn program(report: &mut Report, file: &Path, launcher: Option<Mpi>) {
    let shown = file.display();
    if let Some(why) = unstartable(file) {
        report.problem(why);
    }
    if let Some(why) = binary::privileged(file) {
        report.problem(format!("{shown} {why}: the loader ignores what is preloaded"));
    }
    match binary::kind(file) {
        FileKind::Static => {
            report.line("program", format!("{shown}: statically linked"));
            report.problem(format!("{shown} is statically linked: link it with the shared MPI library"));
        }
        FileKind::Foreign => {
            report.line("program", format!("{shown}: for another machine than x86-64"));
            report.problem(format!("{shown} is not for x86-64"));
        }
        FileKind::Unknown => {
            report.line("program", format!("{shown}: neither a program nor a script with #!"));
            if launcher.is_none() {
                report.problem(format!("{shown} cannot be started"));
            }
        }
        FileKind::Script(interpreter) => of_script(report, file, &interpreter, launcher),
        FileKind::Dynamic(loader) => dynamic(report, file, &loader, launcher),
    }
}

fn of_script(report: &mut Report, file: &Path, interpreter: &str, launcher: Option<Mpi>) {
    report.line("program", format!("{}: script for {interpreter}", file.display()));
    if is_python(file) {
        // A stand-in that finds the interpreter.
        python(report, file, launcher);
        return;
    }
    let words: Vec<_> = interpreter.split_whitespace().filter(|w| !w.ends_with("/env")).collect();
    if let Some(python) =
        words.first().filter(|w| is_python(Path::new(w))).and_then(|w| resolve(OsStr::new(w)))
    {
        self::python(report, &python, launcher);
        return;
    }
    for path in script::beyond(file) {
        report.problem(format!("the script starts {path} by its full path, where st-record cannot come in"));
    }
    if launcher.is_none() {
        for program in script::alone(file) {
            report.problem(format!("the script starts {program} without a launcher, and it is not recorded"));
        }
        report.unless = Some(BY_LAUNCHERS);
    }
    recorder(report, None);
}

fn python(report: &mut Report, interpreter: &Path, launcher: Option<Mpi>) {
    report.unless = launcher.is_none().then_some(BY_LAUNCHERS).or(report.unless);
    if report.lines_of_python
        && let Some(unknown) = interpreter::version(interpreter).and_then(|v| UnknownPython::of(&v))
    {
        report.problem(format!("--python: {unknown}"));
    }
    match interpreter::mpi4py(interpreter) {
        None => return,
        Some(Mpi4py::Loaded(told)) => return loaded(report, &told, launcher),
        Some(Mpi4py::Without) => report.line(
            "bindings",
            "Python without mpi4py: calls by extension modules that link MPI, or open it, are recorded",
        ),
        Some(Mpi4py::Broken(why)) => report.problem(format!("mpi4py cannot be loaded: {why}")),
    }
    if launcher.is_some() {
        recorder(report, None);
    }
}

/// What Python has loaded, as [`Mpi4py::Loaded`] tells it.
fn loaded(report: &mut Report, told: &str, launcher: Option<Mpi>) {
    let mut lines = told.lines();
    let (by, version) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let library = |path: &str| {
        let name = path.rsplit('/').next()?.to_owned();
        let library = Library { name, path: Some(path.into()) };
        binary::interface(&library).map(|interface| (interface, library))
    };
    let found: Vec<_> = lines.filter_map(library).collect();
    if let [_, _, ..] = found.as_slice() {
        let names: Vec<_> = found.iter().map(|(_, l)| l.name.as_str()).collect();
        report.problem(format!("Python loads several MPIs ({}): none is recorded", names.join(", ")));
    }
    report.line("bindings", "Python");
    let Some((interface, library)) = found.first() else {
        return report.problem(format!("{by} has loaded an MPI that is not known ({version})"));
    };
    report.line("MPI", format!("{}, by {by}", shown(library)));
    report.line("version", version);
    let called = binary::called(Path::new(by));
    agree(report, *interface, library.path.as_deref().map(|path| (path, &called)), launcher);
}

fn dynamic(report: &mut Report, file: &Path, loader: &Path, launcher: Option<Mpi>) {
    report.line("program", format!("{}: dynamically linked", file.display()));
    if loader.to_string_lossy().contains("musl") {
        report.problem("the program's C library is musl, the recorder's is glibc");
    }
    if is_python(file) {
        python(report, file, launcher);
        return;
    }
    let all = binary::libraries(loader, file);
    for l in all.iter().filter(|l| l.path.is_none() && l.name.starts_with("lib")) {
        report.problem(format!("{} is not found: the program will not start", l.name));
    }
    let linked: Vec<_> = all.iter().filter(|l| binary::interface(l).is_some()).collect();
    if let [_, _, ..] = linked.as_slice() {
        let names: Vec<_> = linked.iter().map(|l| l.name.as_str()).collect();
        report.problem(format!("{} links several MPIs ({})", file.display(), names.join(", ")));
    }
    let Some((library, interface)) = linked.first().and_then(|l| Some((*l, binary::interface(l)?))) else {
        let files: Vec<_> = all.iter().filter(|l| !of_c(&l.name)).filter_map(|l| l.path.as_deref()).collect();
        return without(report, file, &files, launcher);
    };
    let direct = binary::needed(file);
    let mut text = shown(library);
    if !direct.contains(&library.name)
        && let Some(by) =
            all.iter().find(|l| l.path.as_deref().is_some_and(|p| binary::needed(p).contains(&library.name)))
    {
        let _ = write!(text, ", through {}", by.name);
    }
    report.line("MPI", text);
    let theirs = all.iter().filter(|l| !of_mpi(&l.name)).filter_map(|l| l.path.clone());
    let ours: Vec<_> = std::iter::once(file.to_owned()).chain(theirs).collect();
    let bindings: BTreeSet<_> = ours.iter().flat_map(|f| binary::bindings(f)).collect();
    let named = bindings.iter().copied().collect::<Vec<_>>().join(", ");
    if let Some(version) = library.path.as_deref().and_then(ask::version) {
        report.line("version", version);
    }
    report.line("bindings", if named.is_empty() { "no call is linked".into() } else { named });
    let called = ours.iter().flat_map(|f| binary::called(f)).collect();
    agree(report, interface, library.path.as_deref().map(|path| (path, &called)), launcher);
}

/// A program that links no MPI, with the libraries that it links.
fn without(report: &mut Report, file: &Path, libraries: &[&Path], launcher: Option<Mpi>) {
    if binary::holds_mpi(file) {
        report.line("MPI", "statically linked");
        return report.problem(format!("{}: {MPI_INSIDE}", file.display()));
    }
    if !std::iter::once(&file).chain(libraries).any(|f| binary::can_find_mpi(f)) {
        report.line("MPI", "none is used");
        let shown = file.display();
        return report.problem(format!(
            "{shown} uses no MPI: it links none, and neither loads libraries nor starts programs; there is no trace of it"
        ));
    }
    report.line("MPI", "none is linked; if the program loads one, its calls are recorded");
    let shell = ["sh", "bash", "dash", "zsh"].iter().any(|s| file.ends_with(s));
    match launcher {
        // What it starts in its turn has the recorder, too.
        Some(_) => {
            report.unless = Some(MAY_LOAD);
            recorder(report, None);
        }
        None if shell => {
            report.unless = Some(BY_LAUNCHERS);
            recorder(report, None);
        }
        None => report.problem("the program links no MPI"),
    }
}

/// Whether a library is part of the C library, which can load and start anything for those who ask it to.
fn of_c(name: &str) -> bool {
    ["libc.so", "libdl.so", "libpthread.so", "ld-linux"].iter().any(|p| name.starts_with(p))
}

/// Whether a library belongs to an MPI (which calls itself through all its bindings).
fn of_mpi(name: &str) -> bool {
    ["libmpi", "libmpich", "libopen-rte", "libopen-pal", "liboshmem"].iter().any(|p| name.starts_with(p))
}

fn shown(library: &Library) -> String {
    let of = binary::interface(library).map_or_else(String::new, |i| i.to_string());
    let place = library.path.as_ref().map_or_else(|| "not found".to_owned(), |p| p.display().to_string());
    format!("{of}: {} => {place}", library.name)
}

/// A library, and which functions the program takes from elsewhere.
type Used<'a> = (&'a Path, &'a BTreeSet<String>);

/// The recorder, if the launcher is the program's MPI's.
fn agree(report: &mut Report, program: Interface, library: Option<Used<'_>>, launcher: Option<Mpi>) {
    if let (Some(p), Some(l)) = (program.mpi(), launcher)
        && p != l
    {
        report.problem(format!("the program links {p}, and the launcher is {l}'s: each rank will be alone"));
    }
    recorder(report, library);
}

/// The recorder, and what it would miss of the program's library, if that is known.
fn recorder(report: &mut Report, library: Option<Used<'_>>) {
    let path = match st_cli::find_common(LIBRARY) {
        Ok(path) => path,
        Err(e) => return report.problem(e.to_string()),
    };
    report.line("recorder", path.display().to_string());
    let Some((library, called)) = library else { return };
    let missed = exports::missed(&exports::functions(library), &exports::functions(&path));
    if missed.is_empty() {
        return;
    }
    let (called, other): (Vec<_>, Vec<_>) = missed.into_iter().partition(|name| called.contains(name));
    if !other.is_empty() {
        let n = other.len();
        report.line(
            "unrecorded",
            format!("{n} functions of this MPI that the program does not name: {}", some(&other)),
        );
    }
    if !called.is_empty() {
        let n = called.len();
        report.problem(format!(
            "{n} functions that the program names are not known to the recorder, and calls of them are missed: {}",
            some(&called)
        ));
    }
}

/// The first of many names.
fn some(names: &[String]) -> String {
    const NAMED: usize = 20;
    let more = names.len().saturating_sub(NAMED);
    let named = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// As [`super::check`], whether or not the recorder has been built: these tests are run before it is.
    fn check(words: &[OsString], lines_of_python: bool) -> Report {
        let mut report = super::check(words, lines_of_python);
        report.problems.retain(|problem| !problem.starts_with(LIBRARY));
        report
    }

    #[test]
    fn an_interpreter_whose_frames_cannot_be_read_is_a_problem_where_its_lines_are_asked_for() {
        let home = tempfile::tempdir().unwrap();
        let python = home.path().join("python3.8");
        // Written by another process: a file that a process forked meanwhile still has open cannot be started.
        let writes = r#"printf '#!/bin/sh\necho "3.8.18 (default) [GCC]"\n' >"$0"; chmod +x "$0""#;
        assert!(Command::new("sh").args(["-c", writes]).arg(&python).status().unwrap().success());
        let of = |lines| check(&[python.clone().into_os_string()], lines).problems;
        assert_eq!(of(false), Vec::<String>::new());
        let said = of(true);
        assert!(said[0].starts_with("--python: Python 3.8.18: its frames cannot be read, only"), "{said:?}");
    }

    #[test]
    fn what_python_has_loaded_says_which_mpi_and_which_version() {
        let mut report = Report::default();
        let told = "/v/mpi4py/MPI.so\nMPICH Version: 5.0.2\n/lib/libc.so.6\n/v/lib/libmpi_abi.so.1\n";
        loaded(&mut report, told, Some(Mpi::Mpich));
        let text = report.to_string();
        let mpi = "MPI with the standard's binary interface: libmpi_abi.so.1 => /v/lib/libmpi_abi.so.1, by /v/mpi4py/MPI.so";
        assert!(text.contains(mpi) && text.contains("MPICH Version: 5.0.2"), "{text}");
        let mut report = Report::default();
        loaded(&mut report, "/v/MPI.so\nx\n/a/libmpi.so.40\n/b/libmpich.so.12\n", None);
        let said = "Python loads several MPIs (libmpi.so.40, libmpich.so.12): none is recorded";
        assert!(report.problems.iter().any(|p| p == said), "{report}");
    }

    #[test]
    fn a_library_that_is_missing_is_a_problem() {
        let home = tempfile::tempdir().unwrap();
        let cc = |words: &[&str]| {
            let done = Command::new("cc").current_dir(home.path()).args(words).status();
            assert!(done.unwrap().success(), "{words:?}");
        };
        std::fs::write(home.path().join("a.c"), "int main(void) { return 0; }\n").unwrap();
        cc(&["-shared", "-o", "libmpi_gone.so", "-x", "c", "/dev/null"]);
        cc(&["-o", "a", "a.c", "-Wl,--no-as-needed", "-L.", "-lmpi_gone"]);
        std::fs::remove_file(home.path().join("libmpi_gone.so")).unwrap();
        let found = check(&[home.path().join("a").into_os_string()], false).problems;
        assert!(
            found.iter().any(|p| p == "libmpi_gone.so is not found: the program will not start"),
            "{found:?}"
        );
    }

    #[test]
    fn a_script_that_cannot_start_is_a_problem_and_one_that_can_promises_launchers_only() {
        let home = tempfile::tempdir().unwrap();
        let of = |first: &str| {
            let script = home.path().join("run");
            // Written by another process, as above.
            let writes = r#"printf '%b\ntrue\n' "$1" >"$0"; chmod +x "$0""#;
            let done = Command::new("sh").args(["-c", writes]).arg(&script).arg(first).status();
            assert!(done.unwrap().success());
            check(&[script.into_os_string()], false)
        };
        let said = "its interpreter \"/no/such/interp\" is not there";
        assert!(of("#!/no/such/interp -e").problems.iter().any(|p| p.contains(said)));
        assert!(of("#!/bin/sh\\r").problems.iter().any(|p| p.contains(r#""/bin/sh\r" is not there"#)));
        let report = of("#! /bin/sh -e");
        assert_eq!(report.problems, Vec::<String>::new());
        assert!(report.to_string().ends_with(&format!("missed     {BY_LAUNCHERS}\n")), "{report}");
    }

    #[test]
    fn what_starts_a_launcher_is_looked_through() {
        let of =
            |line: &str| check(&line.split(' ').map(OsString::from).collect::<Vec<_>>(), false).to_string();
        if resolve(OsStr::new("mpirun")).is_some() {
            let (plain, through) =
                (of("mpirun -n 2 hostname"), of("nice -n 1 timeout 9 mpirun -n 2 hostname"));
            let first = through.lines().next().unwrap();
            assert!(
                first.starts_with("through ") && first.contains("/nice: what it starts (mpirun)"),
                "{through}"
            );
            assert_eq!(through.lines().skip(1).collect::<Vec<_>>(), plain.lines().collect::<Vec<_>>());
            assert!(
                of("mpirun -n 2 env A=B hostname").contains("env"),
                "what is no program of MPI is named itself"
            );
        }
    }

    #[test]
    fn what_would_be_missed_is_a_problem() {
        let of = |words: &[&str]| check(&words.iter().map(OsString::from).collect::<Vec<_>>(), false);
        assert!(of(&["./no-such-program"]).to_string().contains("command not found"));
        // Below a launcher, too, and only what could come to use one is given the benefit of the doubt.
        let of_hostname = of(&["mpirun", "-n", "2", "hostname"]);
        if resolve(OsStr::new("mpirun")).is_some() && resolve(OsStr::new("hostname")).is_some() {
            assert!(of_hostname.problems.iter().any(|p| p.contains("hostname uses no MPI")), "{of_hostname}");
            let text = of(&["mpirun", "-n", "2", "sh", "-c", "true"]).to_string();
            assert!(!text.contains("uses no MPI") && !text.ends_with("missed     nothing\n"), "{text}");
        }
        let us = std::env::current_exe().unwrap();
        let report = of(&[us.to_str().unwrap()]);
        assert_eq!(report.problems, ["the program links no MPI"]);
        assert!(report.to_string().ends_with("missed     see the problems\n"));
        assert!(of(&["sh"]).problems.is_empty());
    }
}
