//! `--name`: traces that are there already are named, or their names taken out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use anyhow::{Result, bail};
use st_cli::options::{Steps, StreamIn};
use st_cli::{Output, Status, UsageError, each_section, report, streams_in};

use crate::args::Args;
use crate::names;
use crate::pack::{self, Change};
use crate::tool::TOOL;

/// Does so with all traces that are named on the command line.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    report(TOOL, all(args).map(|()| Status::Ok))
}

fn all(args: &Args) -> Result<()> {
    let mut streams = Vec::new();
    for word in &args.command {
        if word.as_encoded_bytes().starts_with(b"-") {
            bail!(UsageError(format!("--name: options stand before the traces: {}", word.display())));
        }
        let path = PathBuf::from(word);
        let mine = match path.is_dir() {
            true => {
                let mut mine = streams_in(&path)?;
                mine.retain(|p| p.extension().is_some_and(|e| e == "st"));
                if mine.is_empty() {
                    bail!("{}: no stream (*.st) in this directory", path.display());
                }
                mine
            }
            false => vec![path],
        };
        // What is copied frame by frame below would not be looked into: what is wrong is left as it is.
        let mut input = StreamIn::default().shown(TOOL, &args.talk);
        input.steps = Steps::ANY;
        each_section(&mine, &input, |_, _| Ok(()))?.remark(TOOL, &args.talk);
        streams.extend(mine);
    }
    if args.output.is_some() && streams.len() != 1 {
        bail!(UsageError("--name with -o takes one trace".into()));
    }
    streams.iter().try_for_each(|stream| one(args, stream))
}

fn one(args: &Args, stream: &Path) -> Result<()> {
    let named = || stream.display().to_string();
    let reader = pack::open(stream)?;
    let streams = [stream.to_owned()];
    let mut change = Change::new(&args.naming);
    change.before = reader.provenance().to_vec();
    if args.naming.wanted() {
        // Since then, files without build-id may have changed in any way.
        let found =
            names::look_up(&names::sites(&streams)?, args.naming.symbols.clone(), UNIX_EPOCH, names::LIMIT);
        found.missing.iter().for_each(|why| args.talk.warn(TOOL, why));
        args.talk.detail(TOOL, format_args!("{}: {} addresses have names", named(), found.names.len()));
        change.names = found.names;
    }
    let mut output = Output::rewritten(args.output.as_deref().unwrap_or(stream))?;
    pack::pack(&streams, reader.header(), change, &args.talk, &mut output)?;
    output.commit()
}
