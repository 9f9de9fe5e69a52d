//! `--name`: traces that are there already are named, or their names taken out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};
use st_tool::{Input, Output, Status, UsageError, report, streams_in};
use st_trace::stream::{ReadOptions, Reader};

use crate::args::Args;
use crate::pack::{self, Change};
use crate::{TOOL, names};

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
        match path.is_dir() {
            true => streams
                .extend(streams_in(&path)?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "st"))),
            false => streams.push(path),
        }
    }
    if args.output.is_some() && streams.len() != 1 {
        bail!(UsageError("--name with -o takes one trace".into()));
    }
    streams.iter().try_for_each(|stream| one(args, stream))
}

fn one(args: &Args, stream: &Path) -> Result<()> {
    let named = || stream.display().to_string();
    let mut reader = Reader::new(Input::open(stream)?, ReadOptions::default()).with_context(named)?;
    let header = reader.header().clone();
    // What is copied frame by frame below would not be looked into: a damaged trace is left as it is.
    while reader.next_section().with_context(named)?.is_some() {}
    let before = reader.provenance().to_vec();
    let streams = [stream.to_owned()];
    let mut change = Change::new(&args.naming);
    change.before = before;
    if args.naming.wanted() {
        // Since then, files without build-id may have changed in any way.
        let found =
            names::look_up(&names::sites(&streams)?, args.naming.symbols.clone(), UNIX_EPOCH, names::LIMIT);
        found.missing.iter().for_each(|why| args.talk.warn(TOOL, why));
        args.talk.detail(TOOL, format_args!("{}: {} addresses have names", named(), found.names.len()));
        change.names = found.names;
    }
    let mut output = Output::stream(args.output.as_deref().unwrap_or(stream))?;
    pack::pack(&streams, &header, change, &args.talk, &mut output)?;
    output.commit()
}
