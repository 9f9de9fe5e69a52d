//! Streams that are damaged behind their checksums, through every command: each takes them for what they are or refuses them,
//! within bounds of memory and time.

use std::fs;
use std::path::Path;

use st_tests::process::Run;
use st_tests::{Failure, conclude, place};

/// Kilobytes of address space and seconds of processor time that a command may take.
const BOUNDS: (u32, u32) = (4_000_000, 20);
/// Damaged variants of each stream; `ST_TESTS_DAMAGED` says another number, and `ST_TESTS_SEED` where to begin.
const SEEDS: u64 = 2;

/// Commands, of which the first looks at all that a stream holds. `X` is the stream, `O` what may be written.
const COMMANDS: [&str; 19] = [
    "st-view --text X -o O",
    "st-view X",
    "st-view --flat X",
    "st-view --check X",
    "st-view --calls X -o O",
    "st-view --json X -o O",
    "st-stat X",
    "st-stat calls X",
    "st-stat sizes --by parameter X",
    "st-stat violations X",
    "st-stat clusters X",
    "st-stat diff X X",
    "st-stat diff --time X X",
    "st-stat hist MPI_Init X",
    "st-stat predict X",
    "st-merge X -o O",
    "st-cluster X -o O",
    "st-sync X -o O",
    "st-replay --check X",
];

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

/// Runs a command on a damaged stream; the status that it ended with.
fn go(command: &str, file: &Path, out: &Path) -> Result<i32, Failure> {
    let word = |w: &str| match w {
        "X" => file.display().to_string(),
        "O" => out.display().to_string(),
        w => w.to_owned(),
    };
    let words: Vec<String> = command.split(' ').map(word).collect();
    let program = place::program(&words[0])?.display().to_string();
    let (memory, time) = BOUNDS;
    let script = format!("ulimit -v {memory} -t {time} -c 0; exec \"$@\"");
    let args =
        ["-c", &script, "bash", &program].map(str::to_owned).into_iter().chain(words[1..].iter().cloned());
    let ended = Run::new("bash", args).go()?;
    let said = !ended.stderr.contains("panicked") && !ended.stderr.contains("out of memory");
    if (0..=4).contains(&ended.status) && said {
        Ok(ended.status)
    } else {
        Err(format!("{command}: {ended}"))
    }
}

#[test]
fn damaged_streams_are_taken_or_refused_by_all_alike() {
    let here = place::directory().unwrap();
    let (file, out) = (here.path().join("damaged.st"), here.path().join("out"));
    let (mut n, mut failures) = (0, Vec::new());
    let first = number("ST_TESTS_SEED", 0);
    let data = place::root().join("tests/data/v1");
    let mut streams: Vec<_> = fs::read_dir(data).unwrap().map(|e| e.unwrap().path()).collect();
    streams.retain(|path| path.extension().is_some_and(|e| e == "st"));
    streams.sort();
    for path in &streams {
        let whole = fs::read(path).unwrap();
        for seed in first..first + number("ST_TESTS_DAMAGED", SEEDS) {
            fs::write(&file, st_damage::damaged(&whole, seed).unwrap()).unwrap();
            let mut refused = false;
            for (i, command) in COMMANDS.iter().enumerate() {
                n += 1;
                let ended = go(command, &file, &out);
                refused |= i == 0 && ended == Ok(3);
                let same = match ended {
                    Ok(0) if refused => Err(format!("{command}: takes what st-view --text refuses")),
                    other => other.map(drop),
                };
                if let Err(why) = same {
                    failures.push(format!("{} damaged by {seed}: {why}", path.display()));
                }
            }
        }
    }
    conclude(n, &failures);
}
