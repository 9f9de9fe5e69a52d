//! `--check`: what would be recorded, and what would be missed, said before anything runs.

use crate::binary::{self, Kind};
use crate::launcher::{self, LIBRARY, is_launcher};
use crate::target::{of_launcher, resolve};
use st_cli::Mpi;
use st_model::calls::names;
use st_unwind::UnknownPython;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Prints where the package mpi4py is, without loading it.
const MPI4PY: &str = "import importlib.util as u; print(*u.find_spec('mpi4py').submodule_search_locations)";

/// Prints the interpreter's version.
const VERSION: &str = "import sys; print(sys.version)";

/// What was found, line by line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    lines: Vec<(&'static str, String)>,
    /// Whether call sites of Python programs are to be their own lines (`--python`).
    lines_of_python: bool,
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
        let verdict = if self.problems.is_empty() { "nothing" } else { "see the problems" };
        writeln!(f, "{:<10} {verdict}", "missed")
    }
}

/// Looks at a command as st-record would start it, `lines` if Python's own lines are asked for.
#[must_use]
pub fn check(words: &[OsString], lines: bool) -> Report {
    let mut report = Report { lines_of_python: lines, ..Report::default() };
    let Some(file) = resolve(&words[0]) else {
        report.problem(format!("{}: command not found", words[0].display()));
        return report;
    };
    if !is_launcher(&words[0]) {
        program(&mut report, &file, &words[1..], None);
        return report;
    }
    let launcher = of_launcher(&file);
    let told = launcher.map_or_else(|| "of an MPI that is not known".to_owned(), |m| m.to_string());
    report.line("launcher", format!("{} ({told})", file.display()));
    let programs = launcher::programs(words);
    if programs.is_empty() {
        report.problem("no program that can be executed follows the launcher");
    }
    let mut seen = BTreeSet::new();
    for (file, i) in programs.into_iter().filter_map(|i| Some((resolve(&words[i])?, i))) {
        if seen.insert(file.clone()) {
            program(&mut report, &file, &words[i + 1..], launcher);
        }
    }
    report
}

/// One program, with the words after it.
fn program(report: &mut Report, file: &Path, arguments: &[OsString], launcher: Option<Mpi>) {
    let shown = file.display();
    if let Some(why) = binary::privileged(file) {
        report.problem(format!("{shown} {why}: the loader ignores what is preloaded"));
    }
    match binary::kind(file) {
        Kind::Static => {
            report.line("program", format!("{shown}: statically linked"));
            report.problem(format!("{shown} is statically linked: link it with the shared MPI library"));
        }
        Kind::Foreign => {
            report.line("program", format!("{shown}: for another machine than x86-64"));
            report.problem(format!("{shown} is not for x86-64"));
        }
        Kind::Unknown => report.line("program", format!("{shown}: neither a program nor a script")),
        Kind::Script(interpreter) => script(report, file, (&interpreter, arguments), launcher),
        Kind::Dynamic(loader) => dynamic(report, file, (&loader, arguments), launcher),
    }
}

fn script(
    report: &mut Report,
    file: &Path,
    (interpreter, arguments): (&str, &[OsString]),
    launcher: Option<Mpi>,
) {
    report.line("program", format!("{}: script for {interpreter}", file.display()));
    if is_python(file) {
        // A stand-in that finds the interpreter.
        python(report, file, arguments, launcher);
        return;
    }
    let words: Vec<_> = interpreter.split_whitespace().filter(|w| !w.ends_with("/env")).collect();
    if let Some(python) =
        words.first().filter(|w| is_python(Path::new(w))).and_then(|w| resolve(OsStr::new(w)))
    {
        self::python(report, &python, &[file.into()], launcher);
        return;
    }
    for path in beyond(file) {
        report.problem(format!("the script starts {path} by its full path, where st-record cannot come in"));
    }
    match launcher {
        Some(mpi) => recorder(report, mpi),
        None => report.line("recorder", "the one of each launcher that the script starts"),
    }
}

fn is_python(file: &Path) -> bool {
    file.file_name().is_some_and(|n| n.to_string_lossy().starts_with("python"))
}

/// The launchers that a command, if it is a script, starts by their full paths, and that cannot be told to record.
#[must_use]
pub fn out_of_reach(words: &[OsString]) -> Vec<String> {
    let file = words.first().and_then(|word| resolve(word));
    file.filter(|f| matches!(binary::kind(f), Kind::Script(_))).map_or_else(Vec::new, |f| beyond(&f))
}

/// The same of a script.
fn beyond(script: &Path) -> Vec<String> {
    let text = fs::read_to_string(script).unwrap_or_default();
    let reached = |path: &&str| of_launcher(Path::new(path)).is_some_and(launcher::can_tell);
    full_paths(&text).into_iter().filter(|path| !reached(path)).map(str::to_owned).collect()
}

/// The launchers that a script names by their full paths.
fn full_paths(script: &str) -> BTreeSet<&str> {
    let code = script.lines().filter(|l| !l.trim_start().starts_with('#'));
    let words = code.flat_map(|l| l.split(|c: char| c.is_whitespace() || "\"'`();&|".contains(c)));
    words.filter(|w| w.starts_with('/') && is_launcher(OsStr::new(w))).collect()
}

/// The code that an interpreter of Python is given, as far as its arguments say: a script, or the text after `-c`.
fn code(arguments: &[OsString]) -> String {
    let is = |word: &OsString, option: &str| word == option;
    let end = arguments.iter().position(|w| is(w, "-m")).unwrap_or(arguments.len());
    let mut words = arguments[..end].iter();
    // Arguments of options are no files.
    let Some(word) = words.find(|w| is(w, "-c") || Path::new(w).is_file()) else { return String::new() };
    if is(word, "-c") {
        return words.next().map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
    }
    String::from_utf8_lossy(&fs::read(word).unwrap_or_default()).into_owned()
}

/// Whether code in Python looks functions of MPI up in a library that it opens itself, past what is preloaded.
fn opens_mpi(code: &str) -> bool {
    let has = |text: &str| code.contains(text);
    let (foreign, through_the_process) =
        (has("ctypes") || has("cffi"), has("DLL(None") || has("dlopen(None"));
    foreign && has(names::MPI_Init) && !through_the_process
}

fn python(report: &mut Report, interpreter: &Path, arguments: &[OsString], launcher: Option<Mpi>) {
    if opens_mpi(&code(arguments)) {
        report.problem(
            "the script calls MPI in a library that it opens itself (ctypes, cffi): such calls are missed, unless it opens the \
             process instead, CDLL(None), dlopen(None)",
        );
    }
    if report.lines_of_python
        && let Some(unknown) = version(interpreter).and_then(|v| UnknownPython::of(&v))
    {
        report.problem(format!("--python: {unknown}"));
    }
    let output = Command::new(interpreter).args(["-c", MPI4PY]).env_remove("LD_PRELOAD").output();
    let directory = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default();
    let files = fs::read_dir(&directory).into_iter().flatten().flatten().map(|e| e.path());
    let us = std::env::current_exe().unwrap_or_default();
    let Kind::Dynamic(loader) = binary::kind(&us) else { return };
    // The wheel has one library for each MPI, and takes the one whose MPI it finds.
    let mut found: Vec<_> = files
        .filter(|f| f.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"MPI.")))
        .filter(|f| f.extension().is_some_and(|e| e == "so"))
        .filter_map(|f| {
            let library =
                binary::libraries(&loader, &f).into_iter().find(|l| binary::mpi(&l.name).is_some())?;
            Some((binary::mpi(&library.name)?, library, f))
        })
        .collect();
    found.sort_by_key(|(mpi, library, _)| (Some(*mpi) != launcher, library.path.is_none()));
    let Some((mpi, library, by)) = found.first() else {
        report
            .line("bindings", "Python without mpi4py: calls by extension modules that link MPI are recorded");
        if let Some(mpi) = launcher {
            recorder(report, mpi);
        }
        return;
    };
    report.line("MPI", format!("{}, by {}", shown(library), by.display()));
    report.line("bindings", "Python");
    agree(report, Some(*mpi), launcher);
}

/// What an interpreter says of itself.
fn version(interpreter: &Path) -> Option<String> {
    let said = Command::new(interpreter).args(["-c", VERSION]).env_remove("LD_PRELOAD").output().ok()?;
    said.status.success().then(|| String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

fn dynamic(
    report: &mut Report,
    file: &Path,
    (loader, arguments): (&Path, &[OsString]),
    launcher: Option<Mpi>,
) {
    report.line("program", format!("{}: dynamically linked", file.display()));
    if loader.to_string_lossy().contains("musl") {
        report.problem("the program's C library is musl, the recorder's is glibc");
    }
    if is_python(file) {
        python(report, file, arguments, launcher);
        return;
    }
    let all = binary::libraries(loader, file);
    for l in all.iter().filter(|l| l.path.is_none() && l.name.starts_with("lib")) {
        report.problem(format!("{} is not found: the program will not start", l.name));
    }
    let Some(library) = all.iter().find(|l| binary::mpi(&l.name).is_some()) else {
        report.line("MPI", "none is linked");
        let shell = ["sh", "bash", "dash", "zsh"].iter().any(|s| file.ends_with(s));
        match launcher {
            Some(mpi) => {
                // What it starts in its turn has the recorder, too.
                recorder(report, mpi);
                if binary::mentions_mpi(file) {
                    let text = "names MPI_Init and links no MPI: calls that it looks up itself (dlopen, dlsym) are missed";
                    report.problem(format!("{} {text}", file.display()));
                }
            }
            None if shell => report.line("recorder", "the one of each launcher that it starts"),
            None => report.problem("the program links no MPI"),
        }
        return;
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
    let bindings: BTreeSet<_> =
        std::iter::once(file.to_owned()).chain(theirs).flat_map(|f| binary::bindings(&f)).collect();
    let named = bindings.iter().copied().collect::<Vec<_>>().join(", ");
    report.line("bindings", if named.is_empty() { "no call is linked".into() } else { named });
    agree(report, binary::mpi(&library.name), launcher);
}

/// Whether a library belongs to an MPI (which calls itself through all its bindings).
fn of_mpi(name: &str) -> bool {
    ["libmpi", "libmpich", "libopen-rte", "libopen-pal", "liboshmem"].iter().any(|p| name.starts_with(p))
}

fn shown(library: &binary::Library) -> String {
    let mpi = binary::mpi(&library.name).map_or_else(String::new, |m| m.to_string());
    let place = library.path.as_ref().map_or_else(|| "not found".to_owned(), |p| p.display().to_string());
    format!("{mpi}: {} => {place}", library.name)
}

/// The recorder of the program's MPI, if the launcher's is the same.
fn agree(report: &mut Report, program: Option<Mpi>, launcher: Option<Mpi>) {
    if let (Some(p), Some(l)) = (program, launcher)
        && p != l
    {
        report.problem(format!("the program links {p}, and the launcher is {l}'s: each rank will be alone"));
    }
    match program.or(launcher) {
        Some(mpi) => recorder(report, mpi),
        None => report.problem("nothing tells the MPI: start the program by its launcher"),
    }
}

fn recorder(report: &mut Report, mpi: Mpi) {
    match mpi.find(LIBRARY) {
        Ok(path) => report.line("recorder", path.display().to_string()),
        Err(e) => report.problem(e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn mpi_that_a_script_opens_itself_is_a_problem() {
        let home = tempfile::tempdir().unwrap();
        let script = home.path().join("a script.py");
        let of = |text: &str| {
            fs::write(&script, text).unwrap();
            let words = [OsString::from("-W"), "ignore".into(), script.clone().into(), "other.py".into()];
            opens_mpi(&code(&words))
        };
        let own = "import ctypes\nlib = ctypes.CDLL('libmpi.so.40')\nlib.MPI_Init(None, None)\n";
        assert!(of(own));
        // What the process holds is found after what is preloaded.
        assert!(!of(&own.replace("'libmpi.so.40'", "None")));
        assert!(!of("from mpi4py import MPI\nimport ctypes\n"));
        assert!(!of("# MPI_Init is called by an extension module\nimport solver\n"));
        let words = |line: &str| line.split('|').map(OsString::from).collect::<Vec<_>>();
        assert!(opens_mpi(&code(&words("-c|import cffi; ffi.dlopen('libmpi.so').MPI_Init(N, N)"))));
        assert_eq!(code(&words("-m|module|-c|text")), "");
        assert_eq!(code(&[]), "");
    }

    #[test]
    fn launchers_by_full_path_are_found_in_scripts() {
        let script = "#!/bin/sh\n# /usr/bin/mpirun is not used\nexec \"/opt/mpi/bin/mpiexec\" -n 2 ./a; mpirun -n 2 ./b\n";
        assert_eq!(full_paths(script).into_iter().collect::<Vec<_>>(), ["/opt/mpi/bin/mpiexec"]);
    }

    #[test]
    fn what_would_be_missed_is_a_problem() {
        let of = |words: &[&str]| check(&words.iter().map(OsString::from).collect::<Vec<_>>(), false);
        assert!(of(&["./no-such-program"]).to_string().contains("command not found"));
        let us = std::env::current_exe().unwrap();
        let report = of(&[us.to_str().unwrap()]);
        assert_eq!(report.problems, ["the program links no MPI"]);
        assert!(report.to_string().ends_with("missed     see the problems\n"));
        assert!(of(&["sh"]).problems.is_empty());
    }
}
