//! What a script starts, as far as its text says.

use crate::binary::{self, FileKind};
use crate::env_list::{LIST, TUNE};
use crate::launcher::{self, LAUNCHERS, is_launcher};
use crate::target::{Target, inspect, of_launcher, resolve};
use crate::wrapped_command;
use st_cli::Mpi;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// The launchers that a command, if it is a script or starts one, starts by their full paths, and that cannot be told to record.
#[must_use]
pub fn out_of_reach(words: &[OsString]) -> Vec<String> {
    of_command(words).map_or_else(Vec::new, |script| beyond(&script))
}

/// The same of a script.
#[must_use]
pub fn beyond(script: &Path) -> Vec<String> {
    let text = fs::read_to_string(script).unwrap_or_default();
    let reached = |path: &&str| match of_launcher(Path::new(path)) {
        Some(Mpi::Openmpi) => true,
        Some(Mpi::Mpich) => launcher::can_tell(Mpi::Mpich),
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

/// Reads a command, the scripts that it names, and those that they name.
#[must_use]
pub fn said(words: &[OsString]) -> Said {
    let line = words.join(OsStr::new("\n")).to_string_lossy().into_owned();
    let mut said = Said::default();
    let mut seen = BTreeSet::new();
    let mut texts = vec![line];
    while let Some(text) = texts.pop() {
        said.by_list |= [LIST, TUNE].iter().any(|by| text.contains(by));
        said.by_path |= LAUNCHERS.iter().any(|launcher| text.contains(&format!("/{launcher}")));
        said.launchers.extend(full_paths(&text).into_iter().map(PathBuf::from));
        let commands: BTreeSet<_> = first_words(&text);
        for word in self::words(&text) {
            let here = Path::new(word).is_file().then(|| PathBuf::from(word));
            let file = here.or_else(|| commands.contains(word).then(|| resolve(word.as_ref())).flatten());
            if let Some(file) = file
                && seen.len() < MOST_SCRIPTS
                && seen.insert(file.clone())
            {
                texts.extend(text_of(&file));
            }
        }
    }
    said
}

/// So many files are looked at, of so many bytes at most: what is longer is data.
const MOST_SCRIPTS: usize = 1000;
const LONGEST_SCRIPT: u64 = 1 << 20;

/// A file's text, if it may be a script. It need neither be executable nor name its interpreter.
fn text_of(file: &Path) -> Option<String> {
    fs::metadata(file).is_ok_and(|m| m.is_file() && m.len() <= LONGEST_SCRIPT).then_some(())?;
    fs::read_to_string(file).ok().filter(|text| !text.contains('\0'))
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
    let text = fs::read_to_string(script).unwrap_or_default();
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
    fn first_words_of_a_script_are_commands() {
        let script = "#!/bin/sh\nA=1\n# ./no\nmpirun -n 2 \\\n  ./a\nexec \"./b\" c\n  ./d;\n";
        let commands: Vec<_> = first_words(script).into_iter().collect();
        assert_eq!(commands, ["./b", "./d", "A=1", "mpirun"]);
    }
}
