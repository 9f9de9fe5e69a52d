//! The answers of st-stat, by its own command line.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use clap::{CommandFactory as _, Parser as _};
use st_cli::UsageError;
use st_stat::args::Args;

/// What of a trace's options commands take, too: by name, with the value.
pub(crate) type Options = Vec<(&'static str, OsString)>;

/// What a command of st-stat prints of some streams: JSON lines, the first of which says which columns are of numbers.
pub(crate) fn answer(words: &[String], options: &Options, inputs: &[OsString]) -> Result<String> {
    let place = tempfile::tempdir().context("a temporary directory")?;
    let file = place.path().join("answer");
    let mut line: Vec<OsString> = vec!["st-stat".into()];
    line.extend(words.iter().map(OsString::from));
    let known = Args::command();
    let command = words.first().and_then(|name| known.find_subcommand(name)).unwrap_or(&known);
    for (option, value) in options {
        if command.get_arguments().any(|argument| argument.get_long() == Some(option)) {
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
        Err(e) => bail!(UsageError(e.to_string().trim().trim_start_matches("error: ").to_owned())),
    };
    let _found = st_stat::run(&args)?;
    read(&file)
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).context("the answer of st-stat")
}
