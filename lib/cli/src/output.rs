//! Writing a result so that an unfinished one is never seen under its name.

use crate::temporary::{self, Replaces};
use crate::{Launch, identity, stdout};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempPath};

/// A result being written: to standard output (`-`), or to a file under a temporary name beside its target.
///
/// [`Output::commit`] gives the file its name; a dropped `Output` leaves nothing behind, nor does a signal that ends the
/// program. Targets that exist and are no regular files (`/dev/null`, a fifo) are written in place; a symbolic link's
/// target is replaced, not the link.
#[derive(Debug)]
pub struct Output {
    name: String,
    to: Sink,
}

/// Bytes that are written at once: what a pipe takes.
const BUFFER: usize = 1 << 16;

#[derive(Debug)]
enum Sink {
    Stdout(BufWriter<File>),
    InPlace(BufWriter<File>),
    Renamed { file: BufWriter<Unnamed>, target: PathBuf },
}

impl Output {
    /// Opens `target` for a stream. Streams are binary, so a terminal is refused.
    ///
    /// # Errors
    ///
    /// If standard output is meant and is a terminal, if the file is one of the command's inputs, or cannot be created.
    pub fn stream(target: &Path) -> Result<Self> {
        refuse_terminal(target, "a trace")?;
        Self::open(target, Replaces::NoInput)
    }

    /// Opens `target` for a stream that may take the place of what it is made of.
    ///
    /// # Errors
    ///
    /// If standard output is meant and is a terminal, or the file cannot be created.
    pub fn rewritten(target: &Path) -> Result<Self> {
        refuse_terminal(target, "a trace")?;
        Self::open(target, Replaces::Any)
    }

    /// Opens `target` for text.
    ///
    /// # Errors
    ///
    /// If the file is one of the command's inputs, or cannot be created.
    pub fn text(target: &Path) -> Result<Self> {
        Self::open(target, Replaces::NoInput)
    }

    fn open(target: &Path, replaces: Replaces) -> Result<Self> {
        if is_dash(target) {
            let name = identity::STDOUT;
            if stdout::is_closed() {
                bail!("{name}: is closed");
            }
            // Rust's own looks for lines in what is written.
            let own = io::stdout().as_fd().try_clone_to_owned();
            let file = File::from(own.with_context(|| format!("{name}: cannot open"))?);
            if let Ok(found) = file.metadata() {
                identity::prints_to(&found)?;
            }
            let to = Sink::Stdout(BufWriter::with_capacity(BUFFER, file));
            return Ok(Self { name: name.into(), to });
        }
        let name = target.display().to_string();
        if replaces == Replaces::NoInput
            && let Ok(found) = fs::metadata(target)
        {
            identity::refuse_output(&name, &found)?;
        }
        let to = open(target, replaces).with_context(|| format!("{name}: cannot create"))?;
        Ok(Self { name, to })
    }

    /// What is written to, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether this is standard output.
    #[must_use]
    pub fn is_stdout(&self) -> bool {
        matches!(self.to, Sink::Stdout(_))
    }

    /// Writes what is buffered, so that nothing is left to do but to give a file its name: of a program's outputs all are
    /// finished before the first is named.
    ///
    /// # Errors
    ///
    /// If writing fails (a full disk shows here at the latest); the target is then as it was.
    pub fn finish(self) -> Result<Finished> {
        let Self { name, to } = self;
        let unnamed = match to {
            Sink::Stdout(mut out) | Sink::InPlace(mut out) => {
                out.flush().map_err(|e| unwritten(&name, e))?;
                None
            }
            Sink::Renamed { file, target } => {
                let file = file.into_inner().map_err(|e| unwritten(&name, e.into_error()))?;
                Some((file.0.into_temp_path(), target))
            }
        };
        Ok(Finished { name, unnamed })
    }

    /// Writes what is buffered and, for a file, puts it in its target's place in one step.
    ///
    /// # Errors
    ///
    /// If writing or renaming fails; the target is then as it was.
    pub fn commit(self) -> Result<()> {
        self.finish()?.commit()
    }
}

/// A file under a temporary name. Its own errors would tell that name, which is not the one that the user has given.
#[derive(Debug)]
struct Unnamed(NamedTempFile);

impl Write for Unnamed {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.as_file_mut().write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_file_mut().flush()
    }
}

/// A result that is written and closed, and for a file not yet in its target's place. Dropped, it leaves nothing behind.
#[derive(Debug)]
#[must_use = "it has no name yet: `Finished::commit`"]
pub struct Finished {
    name: String,
    unnamed: Option<(TempPath, PathBuf)>,
}

impl Finished {
    /// Puts a file in its target's place in one step.
    ///
    /// # Errors
    ///
    /// If renaming fails; the target is then as it was.
    pub fn commit(self) -> Result<()> {
        let Some((file, target)) = self.unnamed else { return Ok(()) };
        file.persist(&target).map_err(|e| e.error).with_context(|| format!("{}: renaming", self.name))
    }
}

/// Where a file goes that is written already.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Destination {
    /// A name that nothing had.
    Free(PathBuf),
    /// That of a file which may be replaced.
    Replaced(PathBuf),
}

impl Finished {
    /// As [`Finished::commit`], in the directory of its target and to the name that `place` says, which is returned. If that was free
    /// and is not any more, since another process was faster, `place` is asked again: what is there stays.
    ///
    /// # Errors
    ///
    /// If renaming fails, or each of a hundred names is taken meanwhile.
    pub fn commit_to(self, mut place: impl FnMut() -> Destination) -> Result<PathBuf> {
        let (mut unnamed, name) = (self.unnamed, self.name);
        for _ in 0..100 {
            let (target, replaces) = match place() {
                Destination::Free(target) => (target, false),
                Destination::Replaced(target) => (target, true),
            };
            let Some((file, first)) = unnamed.take() else { return Ok(target) };
            let error = if replaces {
                // A link to nothing yet was followed when the output was made.
                let to = fs::canonicalize(&target).unwrap_or_else(|_| first.clone());
                file.persist(to).err()
            } else {
                file.persist_noclobber(&target).err()
            };
            match error {
                None => return Ok(target),
                Some(e) if !replaces && e.error.kind() == io::ErrorKind::AlreadyExists => {
                    unnamed = Some((e.path, first));
                }
                Some(e) => return Err(e.error).with_context(|| format!("{}: renaming", target.display())),
            }
        }
        Err(anyhow::anyhow!("{name}: others take each name that is free"))
    }
}

impl Write for Output {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let written = match &mut self.to {
            Sink::Stdout(out) | Sink::InPlace(out) => out.write(buf),
            Sink::Renamed { file, .. } => file.write(buf),
        };
        written.map_err(|e| unwritten(&self.name, e))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.to {
            Sink::Stdout(out) | Sink::InPlace(out) => out.flush(),
            Sink::Renamed { file, .. } => file.flush(),
        };
        flushed.map_err(|e| unwritten(&self.name, e))
    }
}

/// An output that cannot be written, whatever was being read.
#[derive(Debug, thiserror::Error)]
#[error("{name}: cannot write")]
struct Unwritten {
    name: String,
    source: io::Error,
}

fn unwritten(name: &str, source: io::Error) -> io::Error {
    io::Error::new(source.kind(), Unwritten { name: name.to_owned(), source })
}

/// Whether what went wrong is that an output cannot be written: then no input is to blame.
pub(crate) fn is_unwritten(error: &anyhow::Error) -> bool {
    let inner = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref).is_some_and(|e| e.is::<Unwritten>())
    };
    error.chain().any(inner)
}

/// Refuses a terminal for what nobody reads there.
///
/// # Errors
///
/// If standard output is meant and is a terminal.
pub fn refuse_terminal(target: &Path, what: &str) -> Result<()> {
    // A launcher may give its processes a terminal of its own, and pass on what comes out of it.
    if is_dash(target) && io::stdout().is_terminal() && Launch::current().is_none() {
        bail!("refusing to write {what} to a terminal; name a file with -o, or pipe it on");
    }
    Ok(())
}

fn open(target: &Path, replaces: Replaces) -> io::Result<Sink> {
    let target = match fs::metadata(target) {
        Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => {
            return Ok(Sink::InPlace(BufWriter::new(File::options().write(true).open(target)?)));
        }
        Ok(_) => fs::canonicalize(target)?,
        // A link may point to what is not there yet.
        Err(_) => fs::read_link(target).map_or_else(|_| target.to_owned(), |to| target.with_file_name(to)),
    };
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let place = fs::canonicalize(directory)?.join(target.file_name().unwrap_or_default());
    if temporary::is_open(&place) {
        return Err(io::Error::other("two outputs would be this one file"));
    }
    let mut prefix = OsString::from(".");
    prefix.push(target.file_name().unwrap_or_default());
    prefix.push(".");
    // The usual mode of a new file, reduced by the umask, instead of the private mode of temporary files.
    let mode = Permissions::from_mode(0o666);
    let file =
        tempfile::Builder::new().prefix(&prefix).suffix(".tmp").permissions(mode).tempfile_in(directory)?;
    temporary::goes_before_end(place, file.path(), replaces)?;
    Ok(Sink::Renamed { file: BufWriter::with_capacity(BUFFER, Unnamed(file)), target })
}

/// A name of the user's choice may be replaced, a default one may not: `app-4r.st`, and if that exists
/// `app-4r-2.st`, `app-4r-3.st`, ….
#[must_use]
pub fn free_name(wanted: &Path) -> PathBuf {
    let numbered = (2_u32..).map(|n| {
        let mut name = wanted.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-{n}"));
        if let Some(extension) = wanted.extension() {
            name.push(".");
            name.push(extension);
        }
        wanted.with_file_name(name)
    });
    std::iter::once(wanted.to_owned())
        .chain(numbered)
        .find(|name| fs::symlink_metadata(name).is_err())
        .unwrap_or_else(|| wanted.to_owned())
}

pub(crate) fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_another_takes_meanwhile_is_left_to_it() {
        let home = tempfile::tempdir().unwrap();
        let app = home.path().join("app.st");
        let write = |to: &Path, text: &[u8]| {
            let mut output = Output::stream(to).unwrap();
            output.write_all(text).unwrap();
            output.finish().unwrap()
        };
        let mut others = 2;
        let place = || {
            let free = free_name(&app);
            if others > 0 {
                others -= 1;
                fs::write(&free, "another's").unwrap();
            }
            Destination::Free(free)
        };
        let its = write(&app, b"ours").commit_to(place).unwrap();
        assert_eq!(its, home.path().join("app-3.st"));
        assert_eq!((fs::read(&its).unwrap(), fs::read(&app).unwrap()), (b"ours".into(), b"another's".into()));
        let again = write(&app, b"more").commit_to(|| Destination::Replaced(its.clone())).unwrap();
        assert_eq!((again, fs::read(&its).unwrap()), (its.clone(), b"more".into()));
        assert_eq!(entries(home.path()), ["app-2.st", "app-3.st", "app.st"]);
    }

    fn entries(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_committed_file_replaces_the_old_one_and_an_uncommitted_one_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.st");
        fs::write(&target, "old").unwrap();
        let mut output = Output::stream(&target).unwrap();
        output.write_all(b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        drop(output);
        assert_eq!(entries(directory.path()), ["a.st"]);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        let mut output = Output::stream(&target).unwrap();
        output.write_all(b"new").unwrap();
        output.commit().unwrap();
        assert_eq!(entries(directory.path()), ["a.st"]);
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn a_link_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real.st"), directory.path().join("link.st"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut output = Output::stream(&link).unwrap();
        output.write_all(b"new").unwrap();
        output.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        fs::remove_file(&real).unwrap();
        Output::stream(&link).unwrap().commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && real.is_file());
    }

    #[test]
    fn two_outputs_are_two_files() {
        let directory = tempfile::tempdir().unwrap();
        let (target, same) = (directory.path().join("a.svg"), directory.path().join(".").join("a.svg"));
        let first = Output::text(&target).unwrap();
        let error = Output::text(&same).unwrap_err();
        assert!(
            format!("{error:#}").ends_with("cannot create: two outputs would be this one file"),
            "{error:#}"
        );
        // One after the other is no matter.
        first.commit().unwrap();
        Output::text(&same).unwrap().commit().unwrap();
        drop(Output::text(&target).unwrap());
        Output::text(&target).unwrap().commit().unwrap();
    }

    #[test]
    fn devices_are_written_in_place_and_a_full_one_fails() {
        Output::stream(Path::new("/dev/null")).unwrap().commit().unwrap();
        let mut full = Output::stream(Path::new("/dev/full")).unwrap();
        full.write_all(b"x").unwrap();
        let error = full.commit().unwrap_err();
        assert!(is_unwritten(&error));
        assert_eq!(format!("{error:#}"), "/dev/full: cannot write: No space left on device (os error 28)");
    }

    #[test]
    fn a_directory_is_no_target() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Output::text(directory.path()).is_err());
    }

    #[test]
    fn default_names_are_numbered() {
        let directory = tempfile::tempdir().unwrap();
        let wanted = directory.path().join("app-4r.st");
        assert_eq!(free_name(&wanted), wanted);
        fs::write(&wanted, "").unwrap();
        let second = directory.path().join("app-4r-2.st");
        assert_eq!(free_name(&wanted), second);
        fs::write(&second, "").unwrap();
        assert_eq!(free_name(&wanted), directory.path().join("app-4r-3.st"));
    }
}
