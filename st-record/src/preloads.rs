//! What a command line has ranks preload (`mpirun -x LD_PRELOAD=…`, `env LD_PRELOAD=… ./program`): it would take the recorder's place.

use crate::launcher::{PRELOAD, is_launcher, programs};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

/// Options of launchers that a variable and its value follow.
const WITH_VALUE: [&[u8]; 2] = [b"env", b"genv"];
/// The one of Open MPI that a variable follows, with its value or without.
const HANDS_ON: &[u8] = b"x";

/// Options of `env` that an argument follows.
const WITH_ARGUMENT: [&[u8]; 4] = [b"-u", b"--unset", b"-C", b"--chdir"];

/// A command's words in which the recorder comes before what its ranks are told to preload. `all` is what they preload otherwise,
/// the recorder first.
#[must_use]
pub fn behind_recorder(words: &[OsString], all: &OsStr) -> Vec<OsString> {
    let ours = all.as_bytes().split(|b| *b == b':').next().unwrap_or_default();
    let launcher = words.first().is_some_and(|first| is_launcher(first));
    let programs = if launcher { programs(words) } else { std::iter::once(0..words.len()).collect() };
    let mut out = words.to_vec();
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
            out[i] = joined(&[PRELOAD.as_bytes(), b"=", all.as_bytes()]);
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
    out
}

/// The same in what `env` is told before its program.
fn assigned(words: &mut [OsString], ours: &[u8]) {
    let Some((first, rest)) = words.split_first_mut() else { return };
    if Path::new(first).file_name().is_none_or(|name| name != "env") {
        return;
    }
    let mut argument = false;
    for word in rest {
        let bytes = word.as_bytes();
        if !argument && !bytes.starts_with(b"-") && !bytes.contains(&b'=') {
            return;
        }
        argument = !argument && WITH_ARGUMENT.contains(&bytes);
        if let Some(at) = value(bytes) {
            *word = joined(&[&bytes[..at], ours, b":", &bytes[at..]]);
        }
    }
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
            ("mpirun -n 2 sh LD_PRELOAD=/a.so", "mpirun -n 2 sh LD_PRELOAD=/a.so"),
            ("mpirun -x MY_LD_PRELOAD=/a.so sh", "mpirun -x MY_LD_PRELOAD=/a.so sh"),
        ] {
            assert_eq!(with(line), said);
        }
    }
}
