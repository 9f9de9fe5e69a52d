//! Texts that calls take and return.

use std::ffi::{CString, c_char, c_int};

use anyhow::{Context, Result};
use st_replay::words::Words;

use crate::replay::state::Replay;

/// Longest of the lengths of names, keys and messages under any MPI.
pub(crate) const LONGEST: usize = 4096;

/// Calls with room for a text and an integer.
pub(crate) fn text(call: impl FnOnce(*mut c_char, *mut c_int) -> Result<()>) -> Result<()> {
    let mut text: [c_char; LONGEST] = [0; LONGEST];
    let mut n = 0;
    call(text.as_mut_ptr(), &raw mut n)
}

/// The text of the next word.
pub(crate) fn string(r: &Replay<'_>, w: &mut Words<'_>) -> Result<CString> {
    let text = r.handles.text(w.word()?).context("a text that the trace does not hold")?;
    Ok(CString::new(text)?)
}
