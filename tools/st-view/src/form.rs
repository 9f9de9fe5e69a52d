//! The text form, both ways.

use std::io::{self, BufReader};

use anyhow::{Context, Result, bail};
use st_cli::{Input, InvalidStream, Output, UsageError, Whole};
use st_stream::text;
use st_stream::{Trace, WriteOptions};

use crate::args::Args;

/// Prints the text form.
pub(crate) fn text(trace: &Trace, out: &mut Output) -> io::Result<()> {
    text::write(trace, out)
}

/// Reads the text form and writes its stream.
pub(crate) fn from_text(args: &Args) -> Result<()> {
    let path = match &args.inputs[..] {
        [] => "-".as_ref(),
        [path] => path.as_path(),
        _ => bail!(UsageError("--from-text reads one text".into())),
    };
    let input = Input::open(path, &args.input.steps)?;
    let name = input.name().to_owned();
    let trace = text::parse(BufReader::new(input)).map_err(|e| {
        if e.is_read() { anyhow::Error::new(e) } else { anyhow::Error::new(InvalidStream(e.to_string())) }
    });
    let trace = trace.with_context(|| name.clone())?;
    if !trace.complete && !args.input.partial {
        bail!(InvalidStream(format!(
            "{name}: the text of a truncated stream (--partial writes what it holds)"
        )));
    }
    // What other programs would refuse is no stream.
    Whole::of_trace(&name, &trace)?.remark("st-view", &args.talk);
    let mut out = Output::stream(&args.output.output)?;
    let level = args.level.unwrap_or(trace.level);
    st_stream::write(&trace, &mut out, WriteOptions { level }).context("writing")?;
    out.commit()
}
