//! What a script starts, as far as its text says.

use crate::binary::{self, FileKind};
use crate::launcher::{self, is_launcher};
use crate::target::{Target, inspect, of_launcher, resolve};
use crate::wrapped_command;
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
    let reached = |path: &&str| of_launcher(Path::new(path)).is_some_and(launcher::can_tell);
    full_paths(&text).into_iter().filter(|path| !reached(path)).map(str::to_owned).collect()
}

/// Whether a command, or the script that it is or starts, has this text.
#[must_use]
pub fn names(words: &[OsString], text: &str) -> bool {
    let script = || fs::read_to_string(of_command(words)?).ok();
    words.iter().any(|word| word.to_string_lossy().contains(text))
        || script().is_some_and(|s| s.contains(text))
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
    let words = code.flat_map(|l| l.split(|c: char| c.is_whitespace() || "\"'`();&|".contains(c)));
    words.filter(|w| w.starts_with('/') && is_launcher(OsStr::new(w))).collect()
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
    fn what_a_script_names_is_found_in_it_and_in_words() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("job.sh");
        fs::write(&script, "#!/bin/sh\nmpirun --mca some_list A=1 ./a\n").unwrap();
        let words = |all: &[&str]| all.iter().map(OsString::from).collect::<Vec<_>>();
        let of = |all: &[&str]| names(&words(all), "some_list");
        assert!(of(&[script.to_str().unwrap()]) && of(&["sh", "-c", "mpirun --mca some_list A=1 ./a"]));
        assert!(
            !of(&["sh", "-c", "mpirun ./a"]) && !names(&words(&[script.to_str().unwrap()]), "other_list")
        );
    }

    #[test]
    fn first_words_of_a_script_are_commands() {
        let script = "#!/bin/sh\nA=1\n# ./no\nmpirun -n 2 \\\n  ./a\nexec \"./b\" c\n  ./d;\n";
        let commands: Vec<_> = first_words(script).into_iter().collect();
        assert_eq!(commands, ["./b", "./d", "A=1", "mpirun"]);
    }
}
