//! What is wrong, as Python's exceptions with the texts that the programs print.

use std::io;

use pyo3::create_exception;
use pyo3::exceptions::{
    PyException, PyFileNotFoundError, PyMemoryError, PyOSError, PyPermissionError, PyValueError,
};
use pyo3::prelude::*;

use crate::arrow::Full;

create_exception!(st, Error, PyException, "Something is wrong with a trace, or what is asked of it.");
create_exception!(st, UsageError, Error, "The trace does not hold what is asked for.");
create_exception!(st, InvalidTrace, Error, "A file is no trace, or is damaged or cut off.");

/// The exit statuses of the programs.
const USAGE: u8 = 2;
const INVALID: u8 = 3;

/// The exception for an error of the library.
pub(crate) fn raised(error: &anyhow::Error) -> PyErr {
    let (line, status) = st_cli::line_and_code(error);
    let text = line.unwrap_or_else(|| format!("{error:#}"));
    if error.chain().any(|cause| cause.is::<Full>()) {
        return PyMemoryError::new_err(text);
    }
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    match (status, kind) {
        (USAGE, _) => UsageError::new_err(text),
        (INVALID, _) => InvalidTrace::new_err(text),
        (_, Some(io::ErrorKind::NotFound)) => PyFileNotFoundError::new_err(text),
        (_, Some(io::ErrorKind::PermissionDenied)) => PyPermissionError::new_err(text),
        (_, Some(_)) => PyOSError::new_err(text),
        (_, None) => Error::new_err(text),
    }
}

/// An argument that cannot be.
pub(crate) fn refused(text: String) -> PyErr {
    PyValueError::new_err(text)
}
