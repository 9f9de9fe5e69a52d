//! What a command line has ranks preload (`mpirun -x LD_PRELOAD=…`, `env LD_PRELOAD=… ./program`): it would take the recorder's place.

use crate::launcher::{PRELOAD, is_launcher, programs};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

/// Options of launchers that a variable and its value follow.
const WITH_VALUE: [&[u8]; 2] = [b"env", b"genv"];
/// The one of Open MPI that a variable follows, with its value or without.
const HANDS_ON: &[u8] = b"x";

/// A program that starts another, which its command line names.
struct Starter {
    name: &'static str,
    /// Options that an argument follows.
    with_argument: &'static [&'static str],
    /// Words that are neither options nor the other program.
    words: usize,
}

impl Starter {
    const fn new(name: &'static str, with_argument: &'static [&'static str], words: usize) -> Self {
        Self { name, with_argument, words }
    }
}

const STARTERS: [Starter; 9] = [
    Starter::new(ENV, &["-u", "--unset", "-C", "--chdir"], 0),
    Starter::new("nice", &["-n", "--adjustment"], 0),
    Starter::new("nohup", &[], 0),
    Starter::new("numactl", NUMACTL, 0),
    Starter::new("setsid", &[], 0),
    Starter::new("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"], 0),
    Starter::new("taskset", &[], 1),
    Starter::new("time", &["-f", "--format", "-o", "--output"], 0),
    Starter::new("timeout", &["-k", "--kill-after", "-s", "--signal"], 1),
];

const ENV: &str = "env";

const NUMACTL: &[&str] = &[
    "-C",
    "--physcpubind",
    "-N",
    "--cpunodebind",
    "-m",
    "--membind",
    "-i",
    "--interleave",
    "-p",
    "--preferred",
];

/// A command's words in which the recorder comes before what its ranks are told to preload. `all` is what they preload otherwise,
/// the recorder first.
#[must_use]
pub fn behind_recorder(words: &[OsString], all: &OsStr) -> Vec<OsString> {
    let ours = all.as_bytes().split(|b| *b == b':').next().unwrap_or_default();
    let mut out = words.to_vec();
    let first = assigned(&mut out, ours);
    let (before, command) = words.split_at(first);
    if command.first().is_some_and(|first| is_launcher(first)) {
        let set = out[..first] != *before;
        launched(command, &mut out[first..], ours, all.as_bytes(), set);
    }
    out
}

/// The same in the words of a launcher. `set`: it is started with another value of the variable.
fn launched(words: &[OsString], out: &mut [OsString], ours: &[u8], all: &[u8], set: bool) {
    let programs = programs(words);
    let (mut after, mut option) = (0, &b""[..]);
    for (i, word) in words.iter().enumerate() {
        let bytes = word.as_bytes();
        if let Some(program) = programs.iter().find(|program| program.start == i) {
            assigned(&mut out[program.clone()], ours);
            after = program.end;
        }
        if i < after {
            continue;
        }
        if bytes == PRELOAD.as_bytes() && option == HANDS_ON {
            if !set {
                out[i] = joined(&[PRELOAD.as_bytes(), b"=", all]);
            }
        } else if let Some(value) =
            words.get(i + 1).filter(|_| bytes == PRELOAD.as_bytes() && WITH_VALUE.contains(&option))
        {
            out[i + 1] = joined(&[ours, b":", value.as_bytes()]);
        } else if let Some(at) = value(bytes) {
            out[i] = joined(&[&bytes[..at], ours, b":", &bytes[at..]]);
        }
        option =
            bytes.strip_prefix(b"-").map_or(&b""[..], |option| option.strip_prefix(b"-").unwrap_or(option));
    }
}

/// The same in what `env` is told before its program, also behind other programs that start one. Returns where that is.
fn assigned(words: &mut [OsString], ours: &[u8]) -> usize {
    let mut at = 0;
    while let Some(starter) = words.get(at).and_then(starter) {
        at += 1;
        let (mut left, mut options, is_env) = (starter.words, true, starter.name == ENV);
        while let Some(word) = words.get_mut(at) {
            let bytes = word.as_bytes();
            if options && bytes.starts_with(b"-") {
                options = bytes != b"--";
                at += usize::from(starter.with_argument.iter().any(|option| option.as_bytes() == bytes));
            } else if is_env && bytes.contains(&b'=') {
                options = false;
                if let Some(at) = value(bytes) {
                    *word = joined(&[&bytes[..at], ours, b":", &bytes[at..]]);
                }
            } else if left > 0 {
                (left, options) = (left - 1, false);
            } else {
                break;
            }
            at += 1;
        }
    }
    at.min(words.len())
}

/// What starts another program, if a program does.
fn starter(program: &OsString) -> Option<&'static Starter> {
    let name = Path::new(program).file_name()?;
    STARTERS.iter().find(|starter| name == starter.name)
}

/// Where in a word the value of the variable begins: at its begin, or in a list of `--export`.
fn value(word: &[u8]) -> Option<usize> {
    let name = [PRELOAD.as_bytes(), b"="].concat();
    let begins = |at: usize| at == 0 || b",=; \"'".contains(&word[at - 1]);
    let mut all = word.windows(name.len()).enumerate().filter(|(_, part)| *part == name);
    all.find(|(at, _)| begins(*at)).map(|(at, _)| at + name.len())
}

fn joined(parts: &[&[u8]]) -> OsString {
    OsString::from_vec(parts.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorder_comes_before_what_users_preload() {
        let with = |line: &str| {
            let words: Vec<_> = line.split_whitespace().map(OsString::from).collect();
            behind_recorder(&words, OsStr::new("/r.so:/old.so")).join(OsStr::new(" ")).into_string().unwrap()
        };
        for (line, said) in [
            ("mpirun -n 2 -x LD_PRELOAD=/a.so sh", "mpirun -n 2 -x LD_PRELOAD=/r.so:/a.so sh"),
            ("mpirun -x LD_PRELOAD -n 2 sh", "mpirun -x LD_PRELOAD=/r.so:/old.so -n 2 sh"),
            (
                "mpiexec.hydra -genv LD_PRELOAD /a.so -n 1 sh : -env LD_PRELOAD=/b.so sh",
                "mpiexec.hydra -genv LD_PRELOAD /r.so:/a.so -n 1 sh : -env LD_PRELOAD=/r.so:/b.so sh",
            ),
            (
                "mpirun -n 2 env -i A=1 LD_PRELOAD=/a.so sh -c LD_PRELOAD=/x",
                "mpirun -n 2 env -i A=1 LD_PRELOAD=/r.so:/a.so sh -c LD_PRELOAD=/x",
            ),
            ("srun --export=ALL,LD_PRELOAD=/a.so sh", "srun --export=ALL,LD_PRELOAD=/r.so:/a.so sh"),
            (
                "srun --export=MY_LD_PRELOAD=/x,LD_PRELOAD=/a.so sh",
                "srun --export=MY_LD_PRELOAD=/x,LD_PRELOAD=/r.so:/a.so sh",
            ),
            ("env -u X LD_PRELOAD=/a.so sh", "env -u X LD_PRELOAD=/r.so:/a.so sh"),
            ("env LD_PRELOAD=/a.so sh", "env LD_PRELOAD=/r.so:/a.so sh"),
            ("nice -n 5 env LD_PRELOAD=/a.so sh", "nice -n 5 env LD_PRELOAD=/r.so:/a.so sh"),
            (
                "mpirun -n 2 /usr/bin/timeout -k 5 10 env -u A -- LD_PRELOAD=/a.so nice sh LD_PRELOAD=/b",
                "mpirun -n 2 /usr/bin/timeout -k 5 10 env -u A -- LD_PRELOAD=/r.so:/a.so nice sh LD_PRELOAD=/b",
            ),
            (
                "mpirun taskset -c 0-3 numactl --membind 0 stdbuf -oL time -f %e env LD_PRELOAD=/a.so ./app",
                "mpirun taskset -c 0-3 numactl --membind 0 stdbuf -oL time -f %e env LD_PRELOAD=/r.so:/a.so ./app",
            ),
            (
                "env A=1 env LD_PRELOAD=/a.so ./app -x LD_PRELOAD=/b",
                "env A=1 env LD_PRELOAD=/r.so:/a.so ./app -x LD_PRELOAD=/b",
            ),
            ("nice mpirun -x LD_PRELOAD=/a.so sh", "nice mpirun -x LD_PRELOAD=/r.so:/a.so sh"),
            (
                "env LD_PRELOAD=/a.so mpirun -x LD_PRELOAD sh",
                "env LD_PRELOAD=/r.so:/a.so mpirun -x LD_PRELOAD sh",
            ),
            ("timeout", "timeout"),
            ("env -u", "env -u"),
            ("mpirun -n 2 sh LD_PRELOAD=/a.so", "mpirun -n 2 sh LD_PRELOAD=/a.so"),
            ("mpirun -x MY_LD_PRELOAD=/a.so sh", "mpirun -x MY_LD_PRELOAD=/a.so sh"),
        ] {
            assert_eq!(with(line), said);
        }
    }
}
