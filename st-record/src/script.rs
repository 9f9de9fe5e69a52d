//! What a script starts, as far as its text says.

use crate::binary::{self, FileKind};
use crate::env_list::{LIST, TUNE};
use crate::launcher::{self, LAUNCHERS, is_launcher};
use crate::target::{MOST_BYTES, Starter, Target, contents, inspect, resolve};
use crate::wrapped_command;
use st_cli::Mpi;
use st_model::num::Exact;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The launchers that a command, if it is a script or starts one, starts by their full paths, and that cannot be told to record.
#[must_use]
pub fn out_of_reach(words: &[OsString]) -> Vec<String> {
    of_command(words).map_or_else(Vec::new, |script| beyond(&script))
}

/// The same of a script.
#[must_use]
pub fn beyond(script: &Path) -> Vec<String> {
    let text = text_of(script);
    let reached = |path: &&str| match Starter::of(Path::new(path)) {
        Some(Starter::Orte | Starter::Prrte) => true,
        Some(Starter::Hydra) => launcher::can_tell(Mpi::Mpich),
        None => false,
    };
    full_paths(&text).into_iter().filter(|path| !reached(path)).map(str::to_owned).collect()
}

/// What a command and the scripts that it names say of launchers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Said {
    /// They may use Open MPI's list of variables that ranks get.
    pub by_list: bool,
    /// A launcher is named by a path.
    pub by_path: bool,
    /// The launchers whose paths are written in full.
    pub launchers: Vec<PathBuf>,
}

/// Reads a command, the scripts that it names, and those that they name: only what a shell reads, as anything else is data.
#[must_use]
pub fn said(words: &[OsString]) -> Said {
    read(words).said
}

fn read(words: &[OsString]) -> Reader {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    let mut reader = Reader {
        said: Said::default(),
        asked: BTreeSet::new(),
        read: BTreeSet::new(),
        texts: Vec::new(),
        left: MOST_BYTES,
    };
    reader.command(&words);
    for word in words {
        // With blanks it is a command for a shell, not a file of the name of its first word.
        if word.contains(char::is_whitespace) {
            reader.text(word);
        } else {
            reader.launchers(word);
        }
    }
    while let Some(text) = reader.texts.pop() {
        reader.text(&text);
    }
    reader
}

/// So many words are looked up at most.
const MOST_WORDS: usize = 4_000;

struct Reader {
    said: Said,
    /// The words that have been looked up.
    asked: BTreeSet<(Role, String)>,
    read: BTreeSet<PathBuf>,
    texts: Vec<String>,
    /// So many bytes are still read.
    left: u64,
}

impl Reader {
    fn text(&mut self, text: &str) {
        self.launchers(text);
        for command in commands(&text.replace("\\\n", " ")) {
            self.command(&command);
        }
    }

    fn launchers(&mut self, text: &str) {
        self.said.by_list |= [LIST, TUNE].iter().any(|by| text.contains(by));
        self.said.by_path |= LAUNCHERS.iter().any(|launcher| text.contains(&format!("/{launcher}")));
        self.said.launchers.extend(full_paths(text).into_iter().map(PathBuf::from));
    }

    /// A simple command: what it starts, and which files it names.
    fn command(&mut self, words: &[&str]) {
        words.iter().filter(|word| word.contains('/')).for_each(|word| self.file(word, Role::Named));
        let mut rest = Some(words);
        while let Some(words) = rest.take() {
            let at = words.iter().position(|word| !BEFORE_COMMANDS.contains(word) && !is_assignment(word));
            match &words[at.unwrap_or(words.len())..] {
                [] => return,
                ["." | "source", file, ..] => self.file(file, Role::Operand),
                [first, ..] => self.file(first, Role::Started),
            }
            if let Some(shell) = words.iter().position(|word| is_shell(word)) {
                match operand(&words[shell + 1..]) {
                    Some(Operand::File(file)) => self.file(file, Role::Operand),
                    Some(Operand::Command(words)) => rest = Some(words),
                    None => {}
                }
            }
        }
    }

    /// Reads the file of a word, if a shell does.
    fn file(&mut self, word: &str, role: Role) {
        if self.asked.len() == MOST_WORDS || !self.asked.insert((role, word.to_owned())) {
            return;
        }
        let here = || Path::new(word).is_file().then(|| PathBuf::from(word));
        let found = match role {
            Role::Started => resolve(word.as_ref()),
            Role::Operand => here().or_else(|| resolve(word.as_ref())),
            Role::Named => here(),
        };
        let Some(file) = found.filter(|file| !self.read.contains(file)) else { return };
        let is_read = match binary::kind(&file) {
            FileKind::Script(interpreter) => interpreter.split_whitespace().any(is_shell),
            FileKind::Unknown => role != Role::Named,
            FileKind::Dynamic(_) | FileKind::Static | FileKind::Foreign => false,
        };
        if let Some(data) = is_read.then(|| contents(&file, self.left)).flatten() {
            self.left = self.left.saturating_sub(data.len().to_u64());
            self.texts.push(String::from_utf8_lossy(&data).into_owned());
            self.read.insert(file);
        }
    }
}

/// What a word that names a file is in a command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// What is started: a shell that finds no interpreter's name in it reads it itself.
    Started,
    /// What a shell is told to read.
    Operand,
    /// Any other: it may be started, too, as by `nice`.
    Named,
}

const SHELLS: [&str; 9] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "csh", "tcsh"];
/// Words of a shell's behind which a command begins.
const BEFORE_COMMANDS: [&str; 12] =
    ["exec", "if", "then", "elif", "else", "while", "until", "do", "time", "!", "{", "command"];

fn is_shell(word: &str) -> bool {
    Path::new(word).file_name().is_some_and(|name| SHELLS.iter().any(|shell| name == *shell))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

/// What a shell reads.
enum Operand<'a> {
    File(&'a str),
    Command(&'a [&'a str]),
}

/// What a shell reads that has these words behind its name.
fn operand<'a>(words: &'a [&'a str]) -> Option<Operand<'a>> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let Some(option) = word.strip_prefix(['-', '+']) else { return Some(Operand::File(word)) };
        if !option.starts_with('-') && option.contains('c') {
            return words.get(at + 1..).map(Operand::Command);
        }
        // Names of options, and a file of settings.
        let has_argument = option.ends_with(['o', 'O']) || ["-rcfile", "-init-file"].contains(&option);
        at += 1 + usize::from(has_argument);
    }
    None
}

/// The simple commands of a shell's text.
fn commands(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    code.flat_map(|line| line.split([';', '&', '|', '(', ')', '`'])).map(|command| words(command).collect())
}

/// A script's text, in whichever encoding.
fn text_of(script: &Path) -> String {
    let data = contents(script, MOST_BYTES).unwrap_or_default();
    String::from_utf8_lossy(&data).into_owned()
}

/// The programs of MPI that a command, if it is a script or starts one, starts without a launcher.
#[must_use]
pub fn without_launcher(words: &[OsString]) -> Vec<String> {
    of_command(words).map_or_else(Vec::new, |script| alone(&script))
}

/// The script that a command is, or starts.
fn of_command(words: &[OsString]) -> Option<PathBuf> {
    let word = wrapped_command::recorded(words).first()?;
    // A shell needs no permission to execute it.
    let file = resolve(word).unwrap_or_else(|| word.into());
    matches!(binary::kind(&file), FileKind::Script(_)).then_some(file)
}

/// The launchers that a script names by their full paths.
fn full_paths(script: &str) -> BTreeSet<&str> {
    let code = script.lines().filter(|l| !l.trim_start().starts_with('#'));
    code.flat_map(words).filter(|w| w.starts_with('/') && is_launcher(OsStr::new(w))).collect()
}

/// The words of a shell's text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "\"'`();&|".contains(c)).filter(|word| !word.is_empty())
}

/// The same of a script.
#[must_use]
pub fn alone(script: &Path) -> Vec<String> {
    let text = text_of(script);
    let links = |word: &&str| {
        let file = resolve(OsStr::new(word));
        file.is_some_and(|file| inspect(&file).is_ok_and(|target| target == Target::Links))
    };
    first_words(&text).into_iter().filter(links).map(str::to_owned).collect()
}

/// The words of a script that are commands: the first of each line, and those behind `exec`.
fn first_words(script: &str) -> BTreeSet<&str> {
    let mut first = BTreeSet::new();
    let mut goes_on = false;
    for line in script.lines() {
        let mut words = line.split_whitespace().skip_while(|word| *word == "exec");
        if let Some(word) = words.next().filter(|word| !goes_on && !word.starts_with('#')) {
            first.insert(word.trim_matches(['"', '\'', ';', '&']));
        }
        goes_on = line.ends_with('\\');
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn launchers_by_full_path_are_found_in_scripts() {
        let script = "#!/bin/sh\n# /usr/bin/mpirun is not used\nexec \"/opt/mpi/bin/mpiexec\" -n 2 ./a; mpirun -n 2 ./b\n";
        assert_eq!(full_paths(script).into_iter().collect::<Vec<_>>(), ["/opt/mpi/bin/mpiexec"]);
    }

    #[test]
    fn what_scripts_say_is_found_through_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let (job, inner) = (dir.path().join("job.sh"), dir.path().join("inner"));
        // Neither executable nor with an interpreter's name: a shell reads them.
        fs::write(&job, format!("cd /\n. {}\n", inner.display())).unwrap();
        fs::write(&inner, "/opt/mpi/bin/mpirun --mca mca_base_env_list A=1 ./a\n").unwrap();
        let of = |all: &[&str]| said(&all.iter().map(OsString::from).collect::<Vec<_>>());
        let all = Said { by_list: true, by_path: true, launchers: vec!["/opt/mpi/bin/mpirun".into()] };
        assert_eq!(of(&["bash", job.to_str().unwrap()]), all);
        assert_eq!(of(&["sh", "-c", &format!("cd /; . {}", job.display())]), all);
        assert_eq!(of(&["sh", "-c", "mpirun ./a"]), Said::default());
        let by_path = Said { by_path: true, ..Said::default() };
        assert_eq!(of(&["sh", "-c", "$MPI/bin/mpirun ./a"]), by_path);
        // A pipe is not opened: nobody may write to it.
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(of(&["cat", pipe.to_str().unwrap()]), Said::default());
    }

    #[test]
    fn only_what_a_shell_reads_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8]| {
            fs::write(dir.path().join(name), text).unwrap();
            dir.path().join(name).display().to_string()
        };
        let data = write("data", b"see /opt/mpi/bin/mpirun\n");
        let python = write("python", b"#!/usr/bin/python3\n'/opt/mpi/bin/mpirun'\n");
        // A name in Latin-1.
        let script = write("script", b"#!/usr/bin/env bash\n# M\xfcller\n/opt/mpi/bin/mpirun ./a\n");
        let finds = |command: &[&str]| {
            let said = said(&command.iter().map(OsString::from).collect::<Vec<_>>());
            assert_eq!(said.by_path, !said.launchers.is_empty());
            said.by_path
        };
        for command in [
            format!("cat {data}"),
            format!("bash -c 'cat {data}'"),
            format!("{python} {data}"),
            format!(". {python}x"),
        ] {
            assert!(!finds(&["sh", "-c", &command]), "{command}");
        }
        assert!(
            !finds(&["cat", &data])
                && !finds(&["sh", &write("job", format!("cat {data}").as_bytes()), &data])
        );
        for command in [
            format!("cd / && . {data}"),
            format!("A=1 bash -eo pipefail \\\n {data}"),
            format!("if true; then source {data}; fi"),
            format!("nice {script}"),
            format!("bash -c 'exec {script}'"),
        ] {
            assert!(finds(&["sh", "-c", &command]), "{command}");
        }
        assert!(finds(&["nice", "bash", "-x", &data]) && finds(&[&script]));
        assert_eq!(beyond(Path::new(&script)), ["/opt/mpi/bin/mpirun"]);
    }

    #[test]
    fn reading_scripts_has_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let job = dir.path().join("job");
        let numbers: String = (0..200_000).map(|n| format!("{n}\n")).collect();
        fs::write(&job, format!("/opt/mpi/bin/mpirun ./a <<END\n{numbers}END\n")).unwrap();
        let of = |job: &Path| read(&["sh".into(), job.into()]);
        assert!(of(&job).said.by_path);
        assert_eq!(of(&job).asked.len(), MOST_WORDS);
        let file = fs::File::options().append(true).open(&job).unwrap();
        file.set_len(MOST_BYTES + 1).unwrap();
        assert!(!of(&job).said.by_path);
    }

    #[test]
    fn launchers_that_a_script_names_are_not_started() {
        let dir = tempfile::tempdir().unwrap();
        let (job, launcher, ran) =
            (dir.path().join("job"), dir.path().join("mpirun"), dir.path().join("ran"));
        fs::write(&job, format!("#!/bin/sh\n{} ./a\n", launcher.display())).unwrap();
        fs::write(&launcher, format!("#!/bin/sh\n: >{}\n", ran.display())).unwrap();
        fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(beyond(&job), [launcher.to_str().unwrap()]);
        let said = said(&[job.into()]);
        assert_eq!(said.launchers, [launcher]);
        crate::by_path::by_environment(dir.path(), &said).unwrap();
        assert!(!ran.exists());
    }

    #[test]
    fn first_words_of_a_script_are_commands() {
        let script = "#!/bin/sh\nA=1\n# ./no\nmpirun -n 2 \\\n  ./a\nexec \"./b\" c\n  ./d;\n";
        let commands: Vec<_> = first_words(script).into_iter().collect();
        assert_eq!(commands, ["./b", "./d", "A=1", "mpirun"]);
    }
}
