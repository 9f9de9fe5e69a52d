//! What a command starts, where that is not the command itself: `nice mpirun …`, `env A=B ./program`, `srun --multi-prog FILE`.

use crate::binary::{self, FileKind};
use crate::launcher::{self, is_launcher};
use crate::target::{self, Target};
use anyhow::{Result, bail};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The words of a command from those on that say what is recorded: behind a program that starts what its command line names, as
/// `nice` or `strace` do, these are the launcher, the script or the program of MPI.
#[must_use]
pub fn recorded(words: &[OsString]) -> &[OsString] {
    behind(words).and_then(|at| words.get(at..)).unwrap_or(words)
}

/// Where in a command's words that begins which a program starts that is no script and links no MPI. No list says which programs
/// start others: one that uses MPI, and is named behind another, is not its data.
#[must_use]
pub fn behind(words: &[OsString]) -> Option<usize> {
    let first = words.first().filter(|first| !is_launcher(first))?;
    can_start(&target::resolve(first)?).then_some(())?;
    (1..words.len()).find(|at| is_recorded(&words[*at]))
}

/// Whether a program is none of MPI, and can start one.
fn can_start(file: &Path) -> bool {
    match binary::kind(file) {
        FileKind::Static => !binary::holds_mpi(file),
        FileKind::Dynamic(_) => {
            target::inspect(file).is_ok_and(|t| t == Target::Other) && binary::can_find_mpi(file)
        }
        FileKind::Script(_) | FileKind::Foreign | FileKind::Unknown => false,
    }
}

/// Whether a word names a launcher, a script, or a program that links MPI.
fn is_recorded(word: &OsStr) -> bool {
    if word.as_encoded_bytes().starts_with(b"-") {
        return false;
    }
    match target::resolve(word) {
        Some(file) => {
            is_launcher(word)
                || is_script(&file)
                || target::inspect(&file).is_ok_and(|target| target == Target::Links)
        }
        // A shell needs no permission to execute it.
        None => is_script(Path::new(word)),
    }
}

fn is_script(file: &Path) -> bool {
    // To open a pipe would wait for who writes to it.
    let mut first = [0; 2];
    fs::metadata(file).is_ok_and(|m| m.is_file())
        && File::open(file).and_then(|mut f| f.read_exact(&mut first)).is_ok()
        && first == *b"#!"
}

/// The executable files of which a launcher's ranks consist, as far as its command line says.
#[must_use]
pub fn of_launcher(words: &[OsString]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if let Some(list) = launcher::multi_prog(words) {
        // Who cannot read it says so: srun.
        files.extend(programs_in(&list).unwrap_or_default().iter().filter_map(|word| target::resolve(word)));
    }
    let commands = launcher::programs(words).into_iter();
    files.extend(commands.filter_map(|command| target::resolve(&recorded(&words[command])[0])));
    files
}

/// Whether a launcher's job can be recorded.
///
/// # Errors
///
/// If a program is statically linked, or neither the programs nor what the launcher says of itself tell how it passes variables on.
pub fn recordable(words: &[OsString]) -> Result<()> {
    let mut links = false;
    for file in of_launcher(words) {
        links |= target::inspect(&file)? == Target::Links;
    }
    let launcher = || target::resolve(&words[0]).and_then(|l| target::of_launcher(&l));
    if !links && !launcher::is_srun(&words[0]) && launcher().is_none() {
        bail!("{}: neither Open MPI's nor MPICH's launcher", words[0].display());
    }
    Ok(())
}

/// The programs that a file names which srun is given with `--multi-prog`, each once: behind a line's first word, the ranks.
///
/// # Errors
///
/// If it cannot be read.
pub fn programs_in(list: &Path) -> io::Result<Vec<OsString>> {
    let mut programs: Vec<OsString> = Vec::new();
    for line in fs::read_to_string(list)?.lines() {
        let mut words = line.split_whitespace();
        let ranks = words.next().filter(|first| !first.starts_with('#'));
        if let Some(program) = ranks.and_then(|_| words.next()).map(OsString::from)
            && !programs.contains(&program)
        {
            programs.push(program);
        }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn what_other_programs_start_is_behind_them() {
        let home = tempfile::tempdir().unwrap();
        let script = home.path().join("run.sh");
        fs::write(&script, "#!/bin/sh\nexec mpirun -n 2 ./a\n").unwrap();
        let script = script.display();
        let behind = |line: String| behind(&words(&line));
        // Not executable: a shell runs it.
        assert_eq!(behind(format!("sh {script} mpirun")), Some(1));
        assert_eq!(behind(format!("nice -n 5 sh {script}")), Some(4));
        // A script does what it likes with its words, and what starts nothing takes files.
        assert_eq!(behind(format!("{script} mpirun -n 2 sh")), None);
        assert_eq!(behind(format!("cat {script}")), None);
        assert_eq!(behind("sh -c true".into()), None);
        // A pipe is not opened: nobody may write to it.
        let pipe = home.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(behind(format!("nice cat {}", pipe.display())), None);
        if target::resolve(OsStr::new("mpirun")).is_some() {
            assert_eq!(behind("mpirun -n 2 sh".into()), None);
            for wrapper in ["nice -n 5", "timeout 60", "env A=B", "nohup", "stdbuf -oL"] {
                let n = wrapper.split(' ').count();
                assert_eq!(behind(format!("{wrapper} mpirun -n 2 sh")), Some(n), "{wrapper}");
            }
            let line = words("nice timeout 9 mpirun -n 2 sh");
            assert_eq!(recorded(&line), &line[3..]);
        }
    }

    #[test]
    fn a_list_of_programs_names_each_once() {
        let home = tempfile::tempdir().unwrap();
        let list = home.path().join("several");
        fs::write(&list, "# ranks program\n\n0   ./master --all\n1-2,4 ./worker %t\n*  ./worker\n7\n")
            .unwrap();
        assert_eq!(programs_in(&list).unwrap(), ["./master", "./worker"]);
        assert!(programs_in(home.path()).is_err());
    }
}
