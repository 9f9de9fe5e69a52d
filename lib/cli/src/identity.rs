//! Which files a command reads and which it writes: a result that took the place of an input would end it silently.

use crate::UsageError;
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A file, whatever it is called: its device and its number there.
type Identity = (u64, u64);

/// Standard output, in messages.
pub(crate) const STDOUT: &str = "standard output";

/// Inputs, by what they were when they were opened. Kept to the end: an output may be opened when they are read.
static INPUTS: Mutex<Option<HashMap<Identity, PathBuf>>> = Mutex::new(None);

fn identity(found: &Metadata) -> Option<Identity> {
    found.is_file().then(|| (found.dev(), found.ino()))
}

/// What regular file a path is, through links.
fn of(path: &Path) -> Option<Identity> {
    identity(&fs::metadata(path).ok()?)
}

/// Whether two paths are one regular file, through symbolic and hard links.
#[must_use]
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    of(one).is_some_and(|file| of(other) == Some(file))
}

/// What standard output is, once something is written to it.
static PRINTS: Mutex<Option<Identity>> = Mutex::new(None);

/// From now on no output may be this input.
pub(crate) fn note_input(input: &Path) -> Result<(), UsageError> {
    let Some(file) = of(input) else { return Ok(()) };
    if *PRINTS.lock().unwrap_or_else(PoisonError::into_inner) == Some(file) {
        return Err(refused(STDOUT, input));
    }
    let mut all = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    all.get_or_insert_default().insert(file, input.to_owned());
    Ok(())
}

/// From now on no input may be what standard output is.
pub(crate) fn prints_to(found: &Metadata) -> Result<(), UsageError> {
    refuse_output(STDOUT, found)?;
    *PRINTS.lock().unwrap_or_else(PoisonError::into_inner) = identity(found);
    Ok(())
}

/// Refuses an output with these facts, if it is what an input still is.
pub(crate) fn refuse_output(name: &str, found: &Metadata) -> Result<(), UsageError> {
    let all = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    let input = identity(found).and_then(|file| Some((file, all.as_ref()?.get(&file)?)));
    // What an input was may be gone, and its number another file's.
    match input.filter(|(file, path)| of(path) == Some(*file)) {
        Some((_, input)) => Err(refused(name, input)),
        None => Ok(()),
    }
}

/// What is said of an output that is an input.
pub(crate) fn refused(output: &str, input: &Path) -> UsageError {
    let input = input.display();
    let which = if *output == input.to_string() { String::new() } else { format!(" ({input})") };
    UsageError(format!(
        "{output}: this file is read{which}, and the result would take its place: name another one with -o"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Steps;
    use crate::{Input, Output};
    use std::io::Write as _;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// A directory with an input, and other names for it.
    fn names() -> (TempDir, [PathBuf; 4]) {
        let home = tempfile::tempdir().unwrap();
        let [input, link, hard] = ["run.st", "link.st", "hard.st"].map(|name| home.path().join(name));
        fs::write(&input, "a trace").unwrap();
        symlink(&input, &link).unwrap();
        fs::hard_link(&input, &hard).unwrap();
        let dotted = home.path().join(".").join("run.st");
        (home, [input, link, hard, dotted])
    }

    fn is_refused<T>(result: anyhow::Result<T>) -> bool {
        let said = result.err().map(|e| (e.is::<UsageError>(), format!("{e:#}")));
        said.is_some_and(|(usage, text)| usage && text.contains("name another one with -o"))
    }

    #[test]
    fn an_output_that_was_read_is_refused_whatever_it_is_called() {
        let (home, names) = names();
        drop(Input::open(&names[0], &Steps::default()).unwrap());
        for name in &names {
            assert!(is_refused(Output::text(name)) && is_refused(Output::stream(name)), "{}", name.display());
        }
        assert_eq!(fs::read(&names[0]).unwrap(), b"a trace");
        Output::text(&home.path().join("other.st")).unwrap().commit().unwrap();
    }

    #[test]
    fn an_input_that_is_being_written_is_refused_whatever_it_is_called() {
        let (_home, names) = names();
        for name in &names {
            let output = Output::stream(name).unwrap();
            assert!(
                names.iter().all(|input| is_refused(Input::open(input, &Steps::default()))),
                "{}",
                name.display()
            );
            drop(output);
        }
        // Nobody writes it any more.
        Input::open(&names[1], &Steps::default()).unwrap();
    }

    #[test]
    fn what_is_made_to_be_rewritten_may_be_read() {
        let (_home, names) = names();
        drop(Input::open(&names[0], &Steps::default()).unwrap());
        let mut output = Output::rewritten(&names[0]).unwrap();
        drop(Input::open(&names[0], &Steps::default()).unwrap());
        output.write_all(b"named").unwrap();
        output.commit().unwrap();
        assert_eq!(fs::read(&names[0]).unwrap(), b"named");
    }

    #[test]
    fn an_input_that_is_gone_bars_nothing() {
        let (_home, names) = names();
        drop(Input::open(&names[0], &Steps::default()).unwrap());
        fs::remove_file(&names[0]).unwrap();
        // Its number may be another file's: here it is.
        Output::text(&names[2]).unwrap().commit().unwrap();
    }

    #[test]
    fn devices_are_read_and_written_at_once() {
        drop(Input::open(Path::new("/dev/null"), &Steps::default()).unwrap());
        Output::text(Path::new("/dev/null")).unwrap().commit().unwrap();
    }
}
