//! Exit statuses. Nothing else in the project decides one.

use crate::progress;
use st_model::project;
use std::error::Error;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// How a program that did not fail ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "pass it to `report`"]
pub enum Status {
    /// Done: exit status 0.
    Ok,
    /// A difference or a failed check was found and has been printed: exit status 4.
    Difference,
}

/// The command line asks for something impossible: exit status 2.
///
/// For what clap cannot see, as options that exclude each other by the input's content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsageError(pub String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for UsageError {}

/// An input is not a readable trace, or ends too early: exit status 3.
///
/// For programs that find out themselves, beyond what the stream reader checks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidStream(pub String);

impl fmt::Display for InvalidStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for InvalidStream {}

/// A check failed, and nothing was done: exit status 4.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedCheck(pub String);

impl fmt::Display for FailedCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for FailedCheck {}

/// Another process of the job says what is wrong: this one ends silently with the same exit status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elsewhere(pub u8);

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another process of the job failed")
    }
}

impl Error for Elsewhere {}

/// Prints the error, if there is one, as one line `tool: outermost: …: cause` and returns the exit status:
/// 0 done, 1 failed, 2 usage, 3 invalid or truncated stream, 4 difference.
///
/// A broken pipe anywhere among the causes means that the reader of our output has seen enough (`| head`);
/// that is no failure: silent, status 0. Rust ignores SIGPIPE, so the write returns an error and outputs under
/// temporary names are still removed.
pub fn report(tool: &str, result: anyhow::Result<Status>) -> ExitCode {
    let (line, code) = verdict(tool, &result);
    if let Some(line) = line {
        progress::print(format_args!("{line}"));
    }
    ExitCode::from(code)
}

fn verdict(tool: &str, result: &anyhow::Result<Status>) -> (Option<String>, u8) {
    let error = match result {
        Ok(Status::Ok) => return (None, 0),
        Ok(Status::Difference) => return (None, 4),
        Err(error) => error,
    };
    let (line, code) = line_and_code(error);
    (line.map(|line| format!("{tool}: {line}")), code)
}

/// The line that says what is wrong, unless nothing is or another process says it, and the exit status.
#[must_use]
pub fn line_and_code(error: &anyhow::Error) -> (Option<String>, u8) {
    let code = error.chain().find_map(code_of).unwrap_or(1);
    let silent = code == 0 || error.chain().any(|cause| cause.is::<Elsewhere>());
    let line = || format!("{error:#}").lines().map(str::trim).collect::<Vec<_>>().join("; ");
    ((!silent).then(line), code)
}

fn has_left(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Whether what went wrong is that the reader of our output has left.
#[must_use]
pub fn reader_left(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref().is_some_and(has_left))
}

/// The status that this one cause asks for, if it asks for any.
fn code_of(cause: &(dyn Error + 'static)) -> Option<u8> {
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        return has_left(error).then_some(0);
    }
    if cause.is::<UsageError>() {
        return Some(2);
    }
    if cause.is::<FailedCheck>() {
        return Some(4);
    }
    if let Some(Elsewhere(code)) = cause.downcast_ref() {
        return Some(*code);
    }
    if let Some(error) = cause.downcast_ref::<st_stream::Error>() {
        // A stream that cannot be read for the system's reasons is a failure, not an invalid stream.
        return (!matches!(error.kind(), st_stream::ErrorKind::Read(_))).then_some(3);
    }
    (cause.is::<InvalidStream>() || cause.is::<project::Error>()).then_some(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    fn failed<E: Error + Send + Sync + 'static>(error: E) -> (Option<String>, u8) {
        let result = Err(error).context("rank 3").context("run/rank3.st");
        verdict("st-merge", &result)
    }

    #[test]
    fn statuses_without_error_are_silent() {
        assert_eq!(verdict("st-view", &Ok(Status::Ok)), (None, 0));
        assert_eq!(verdict("st-view", &Ok(Status::Difference)), (None, 4));
    }

    #[test]
    fn a_chain_is_one_line_and_keeps_its_status() {
        let line = "st-merge: run/rank3.st: rank 3: no end frame".to_owned();
        assert_eq!(failed(InvalidStream("no end frame".into())), (Some(line), 3));
        assert_eq!(failed(UsageError("x".into())).1, 2);
        assert_eq!(failed(io::Error::from_raw_os_error(28)).1, 1);
    }

    #[test]
    fn a_message_of_several_lines_becomes_one() {
        let (line, _) = verdict("st-view", &Err(anyhow::anyhow!("first\n  second")));
        assert_eq!(line.as_deref(), Some("st-view: first; second"));
    }

    #[test]
    fn a_reader_that_left_is_no_failure() {
        assert_eq!(failed(io::Error::from(io::ErrorKind::BrokenPipe)), (None, 0));
    }
}
