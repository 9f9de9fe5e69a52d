//! The answers of st-stat, by its own command line.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};
use st_cli::UsageError;
use st_stat::args::Args;

/// What of a trace's options commands take, too: by name, with the value.
pub(crate) type Options = Vec<(&'static str, OsString)>;

/// Commands that compare two traces.
const TWO: [&str; 2] = ["diff", "mape"];

/// What a command of st-stat prints of some streams: JSON lines, the first of which says which columns are of numbers.
pub(crate) fn answer(words: &[String], options: &Options, inputs: &[OsString]) -> Result<String> {
    let place = tempfile::tempdir().context("a temporary directory")?;
    let file = place.path().join("answer");
    let mut line: Vec<OsString> = vec!["st-stat".into()];
    line.extend(words.iter().map(OsString::from));
    let known = Args::command();
    let command = words.first().and_then(|name| known.find_subcommand(name)).unwrap_or(&known);
    let takes = |option: &str| command.get_arguments().any(|argument| argument.get_long() == Some(option));
    let of_two = TWO.contains(&command.get_name());
    if of_two || !takes("format") {
        let (name, what) =
            (command.get_name(), if of_two { "compares two traces" } else { "makes no table" });
        bail!(UsageError(format!("{name}: {what}: run st-stat {name}")));
    }
    for (option, value) in options {
        if takes(option) {
            line.push(format!("--{option}").into());
            line.extend((!value.is_empty()).then(|| value.clone()));
        }
    }
    line.extend(["--format", "typed", "-o"].map(OsString::from));
    line.push(file.clone().into());
    line.push("--".into());
    line.extend(inputs.iter().cloned());
    let args = match Args::try_parse_from(line) {
        Ok(args) => args,
        Err(e) => bail!(UsageError(told(&e))),
    };
    let _found = st_stat::run(&args)?;
    read(&file)
}

/// What is wrong with a command, without how it is written in a shell.
fn told(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.trim().split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => "help is st-stat's: run st-stat --help".into(),
        ErrorKind::ArgumentConflict => {
            format!("{first} (--format and --output are not to be asked for: the answer is a table)")
        }
        _ => first.lines().map(str::trim).collect::<Vec<_>>().join(" "),
    }
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).context("the answer of st-stat")
}
