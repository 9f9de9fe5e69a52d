//! Writes the man pages and shell completions of all programs, or checks that the pages in the tree are current.

mod page;
mod programs;
mod synopsis;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use clap_complete::{Shell, generate_to};
use st_cli::Status;
use st_cli::options::Talk;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const TOOL: &str = "st-man";

/// Man pages and shell completions, from the programs' own option definitions
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    talk: Talk,
}

#[derive(Subcommand)]
enum Command {
    /// Write a page (section 1) per program and subcommand into DIR
    Write { dir: PathBuf },
    /// Compare the pages (section 1) in DIR with the programs: exit status 4 if one differs
    Check { dir: PathBuf },
    /// Write the completions of bash, fish and zsh into DIR
    Completions { dir: PathBuf },
}

fn main() -> ExitCode {
    let args = Args::parse();
    st_cli::report(TOOL, run(&args))
}

fn run(args: &Args) -> Result<Status> {
    match &args.command {
        Command::Write { dir } => write(dir),
        Command::Check { dir } => check(dir, &args.talk),
        Command::Completions { dir } => completions(dir),
    }
}

fn write(dir: &Path) -> Result<Status> {
    for (name, text) in page::all(programs::programs())? {
        let path = dir.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(Status::Ok)
}

fn check(dir: &Path, talk: &Talk) -> Result<Status> {
    let wanted = page::all(programs::programs())?;
    let found = pages_in(dir).with_context(|| dir.display().to_string())?;
    let mut status = Status::Ok;
    for (name, text) in &wanted {
        if found.get(name) != Some(text) {
            talk.note(TOOL, format_args!("{name} is not what the program says; run `make man`"));
            status = Status::Difference;
        }
    }
    for name in found.keys().filter(|name| !wanted.contains_key(*name)) {
        talk.note(TOOL, format_args!("{name} belongs to no program; delete it"));
        status = Status::Difference;
    }
    Ok(status)
}

/// The pages of section 1 in a directory, by file name.
fn pages_in(dir: &Path) -> Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "1")
            && let Some(name) = path.file_name().and_then(|n| n.to_str())
        {
            pages.insert(name.to_owned(), fs::read_to_string(&path)?);
        }
    }
    Ok(pages)
}

fn completions(dir: &Path) -> Result<Status> {
    fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    for mut program in programs::programs() {
        let name = program.get_name().to_owned();
        for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
            generate_to(shell, &mut program, &name, dir).with_context(|| format!("{name}: {shell}"))?;
        }
    }
    Ok(Status::Ok)
}
